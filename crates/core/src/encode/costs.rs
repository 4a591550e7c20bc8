//! [`Costs`]: what partitioners minimize in a column instead of LM.
//!
//! # Guarantee
//! The cost of an interval never falls when the interval grows. A cost is the loss of a cell, or differs from it by a constant
//! for each value, so that the classes of least cost are those of least loss.
//! # Paper
//! non-uniform entropy: `[GT09]`
//! # Deviations
//! A target is predicted from one column at a time. The information that a column has on it is counted on at most
//! [`MOST_BINS`] runs of neighbouring codes and [`MOST_GROUPS`] groups of target values, less what chance would show, because
//! many rare values predict anything by chance. A tenth of LM is added, so that columns without information are not lost for nothing.
//! # Cost
//! a table of all pairs of codes for columns of few codes, else a number per code

use kohort_model::spec::LossObjective;
use kohort_model::{Column, NULL, Spec, Table, Value};

use super::{Domain, Encoded};

/// Columns with at most this many codes keep a table of costs.
const TABULATED: u32 = 128;

/// The information on a target is counted on at most this many runs of codes, and groups of target values.
const MOST_BINS: usize = 32;
const MOST_GROUPS: usize = 16;

/// The share of LM in the cost of a column whose target is another column.
const LM_BESIDE_TARGET: f64 = 0.1;

/// What partitioners minimize in a column.
#[derive(Clone, Debug)]
pub(crate) struct Costs {
    weight: f64,
    measure: Measure,
    /// The cost of `lo..=hi` is at `lo * n_codes + hi`; empty if there are too many codes.
    table: Vec<f64>,
}

#[derive(Clone, Debug)]
enum Measure {
    Lm,
    /// LM divided by this, but at most 1.
    Relative(f64),
    /// The share of rows below each code; a value costs nothing.
    Rank {
        before: Vec<f64>,
    },
    /// The logarithm of the rows, less that of the rarest value's, over what a row loses on average if everything is lost.
    Entropy {
        before: Vec<f64>,
        rarest: f64,
        most: f64,
    },
    /// What the column tells about a target. Codes are put into bins; each pair of bins has the information on the target that is
    /// lost if the two become one label, relative to what other columns tell.
    Told {
        bin_of_code: Vec<u32>,
        n_bins: usize,
        lost: Vec<f64>,
    },
}

impl Costs {
    fn new(domain: &Domain, weight: f64, measure: Measure) -> Costs {
        let mut costs = Costs { weight, measure, table: Vec::new() };
        let n_codes = if domain.n_codes() <= TABULATED { domain.n_codes() } else { 0 };
        let pairs = (0..n_codes).flat_map(|lo| (0..n_codes).map(move |hi| (lo.min(hi), lo.max(hi))));
        costs.table = pairs.map(|(lo, hi)| costs.compute(domain, lo, hi)).collect();
        costs
    }

    /// LM over a range that is narrower than that of the domain.
    pub(super) fn relative_to(range: f64) -> Costs {
        Costs { weight: 1.0, measure: Measure::Relative(range), table: Vec::new() }
    }

    /// Whether costs add up where LM does.
    pub(super) fn add_up(&self) -> bool {
        matches!(self.measure, Measure::Lm)
    }

    #[inline]
    pub(super) fn of(&self, domain: &Domain, lo: u32, hi: u32) -> f64 {
        match self.table.get((lo * domain.n_codes() + hi) as usize).filter(|_| !self.table.is_empty()) {
            Some(&cost) => cost,
            None => self.compute(domain, lo, hi),
        }
    }

    fn compute(&self, domain: &Domain, lo: u32, hi: u32) -> f64 {
        let within = |before: &[f64]| {
            let (lo, hi) = domain.hull(lo, hi);
            before[hi as usize + 1] - before[lo as usize]
        };
        self.weight
            * match &self.measure {
                Measure::Lm => domain.lm(lo, hi),
                Measure::Relative(range) => match domain.lm(lo, hi) {
                    0.0 => 0.0,
                    width => (width / range).min(1.0),
                },
                Measure::Rank { .. } if lo == hi => 0.0,
                Measure::Rank { before } => within(before),
                // Intervals without any row are never shown; they cost as little as the rarest value.
                Measure::Entropy { before, rarest, most } => (within(before).max(*rarest) / rarest).ln() / most,
                Measure::Told { .. } if lo == hi => 0.0,
                Measure::Told { bin_of_code, n_bins, lost } => {
                    let (first, last) = domain.hull(lo, hi);
                    let (first, last) = (bin_of_code[first as usize] as usize, bin_of_code[last as usize] as usize);
                    lost[first * n_bins + last] + LM_BESIDE_TARGET * domain.lm(lo, hi)
                }
            }
    }
}

/// The costs of each quasi column of a table, as the spec asks.
pub(super) fn asked(encoded: &Encoded<'_>, table: &Table, spec: &Spec) -> Vec<Costs> {
    let n_columns = encoded.domains.len();
    let before = |column: usize| -> Vec<f64> { encoded.rows_before(column).iter().map(|&n| n as f64).collect() };
    let measures: Vec<Measure> = match &spec.objective {
        LossObjective::Lm => (0..n_columns).map(|_| Measure::Lm).collect(),
        LossObjective::Rank => (0..n_columns).map(|column| rank(&before(column))).collect(),
        LossObjective::Entropy => (0..n_columns).map(|column| entropy(before(column))).collect(),
        LossObjective::Target(target) => match table.columns.iter().find(|column| column.name == *target) {
            Some(target) => told(encoded, table, target),
            None => (0..n_columns).map(|_| Measure::Lm).collect(),
        },
    };
    let weight = |column: usize| {
        let name = &table.columns[encoded.columns[column]].name;
        let of_column = spec.weights().find(|(of, column)| of.name == table.name && column.name == *name);
        of_column.map_or(1.0, |(_, column)| column.weight)
    };
    let columns = measures.into_iter().enumerate();
    columns.map(|(column, measure)| Costs::new(&encoded.domains[column], weight(column), measure)).collect()
}

fn rank(before: &[f64]) -> Measure {
    let n_rows = before[before.len() - 1].max(1.0);
    Measure::Rank { before: before.iter().map(|n| n / n_rows).collect() }
}

fn entropy(before: Vec<f64>) -> Measure {
    let n_rows = before[before.len() - 1];
    let numbers = || before.windows(2).map(|pair| pair[1] - pair[0]).filter(|&n| n > 0.0);
    let rarest = numbers().fold(n_rows.max(1.0), f64::min);
    let most = numbers().map(|n| n / n_rows * (n_rows / n).ln()).sum::<f64>();
    // A column with one value can't lose anything.
    Measure::Entropy { rarest, most: if most > 0.0 { most } else { 1.0 }, before }
}

/// What each column tells about the target.
fn told(encoded: &Encoded<'_>, table: &Table, target: &Column) -> Vec<Measure> {
    let (group_of_row, n_groups) = groups(target);
    let columns: Vec<(Vec<u32>, usize, Vec<f64>)> = (0..encoded.domains.len())
        .map(|column| {
            let (bin_of_code, n_bins) = bins(&encoded.rows_before(column));
            let mut numbers = vec![vec![0.0; n_groups]; n_bins];
            for (&id, &group) in table.columns[encoded.columns[column]].ids.iter().zip(&group_of_row) {
                numbers[bin_of_code[encoded.code_of(column, id) as usize] as usize][group as usize] += 1.0;
            }
            (bin_of_code, n_bins, lost(&numbers))
        })
        .collect();
    // The column that tells most costs 1 if it is lost as a whole.
    let most = columns.iter().map(|(_, n_bins, lost)| lost[n_bins - 1]).fold(0.0, f64::max);
    let scale = if most > 0.0 { 1.0 / most } else { 0.0 };
    let measure = |(bin_of_code, n_bins, lost): (Vec<u32>, usize, Vec<f64>)| Measure::Told {
        bin_of_code,
        n_bins,
        lost: lost.into_iter().map(|lost| lost * scale).collect(),
    };
    columns.into_iter().map(measure).collect()
}

/// For each row the group of its target value, and the number of groups. Neighbouring numbers and dates are one group; other
/// values have one each, but the rarest are one together.
fn groups(target: &Column) -> (Vec<u32>, usize) {
    let null = target.texts.len();
    let mut n_of_value = vec![0u64; null + 1];
    let value = |id: u32| if id == NULL { null } else { id as usize };
    target.ids.iter().for_each(|&id| n_of_value[value(id)] += 1);
    let mut order: Vec<usize> = (0..=null).filter(|&value| n_of_value[value] > 0).collect();
    let text = |value: usize| (value < null).then(|| target.texts.get(value as u32));
    let number = |value: usize| (value < null).then(|| target.value(value as u32)).flatten();
    let mut group_of_value = vec![0u32; null + 1];
    let typed: Option<Vec<Option<Value<'_>>>> =
        target.value_type.is_ordered().then(|| (0..=null).map(number).collect());
    if let Some(typed) = typed {
        order.sort_by(|&a, &b| typed[a].cmp(&typed[b]).then_with(|| text(a).cmp(&text(b))));
        let before: Vec<u64> = std::iter::once(0)
            .chain(order.iter().scan(0, |sum, &value| {
                *sum += n_of_value[value];
                Some(*sum)
            }))
            .collect();
        let (group_of_place, _) = runs_of_equal_share(&before, MOST_GROUPS);
        order.iter().zip(group_of_place).for_each(|(&value, group)| group_of_value[value] = group);
    } else {
        order.sort_by(|&a, &b| n_of_value[b].cmp(&n_of_value[a]).then_with(|| text(a).cmp(&text(b))));
        order.iter().enumerate().for_each(|(place, &value)| group_of_value[value] = place.min(MOST_GROUPS - 1) as u32);
    }
    let n_groups = group_of_value.iter().max().map_or(1, |&last| last as usize + 1);
    (target.ids.iter().map(|&id| group_of_value[value(id)]).collect(), n_groups)
}

fn bins(before: &[u64]) -> (Vec<u32>, usize) {
    runs_of_equal_share(before, MOST_BINS)
}

/// For each place the run of neighbours that it is in, and the number of runs: all places by themselves if they are few, else runs
/// of about as many rows each.
fn runs_of_equal_share(before: &[u64], most: usize) -> (Vec<u32>, usize) {
    let n_places = before.len() - 1;
    if n_places <= most {
        return ((0..n_places as u32).collect(), n_places.max(1));
    }
    let n_rows = before[n_places].max(1);
    let wanted = (0..n_places).map(|place| before[place] * most as u64 / n_rows);
    let mut runs: Vec<u32> = Vec::with_capacity(n_places);
    let mut last = None;
    for wanted in wanted {
        let next = match (last, runs.last()) {
            (Some(before), Some(&run)) if before == wanted => run,
            (_, Some(&run)) => run + 1,
            (_, None) => 0,
        };
        last = Some(wanted);
        runs.push(next);
    }
    let n_runs = runs.last().map_or(1, |&run| run as usize + 1);
    (runs, n_runs)
}

/// For each pair of bins, the information on the target that is lost per row of the table if the bins from the first to the
/// last are one. `numbers` has the rows of each bin by their group.
fn lost(numbers: &[Vec<f64>]) -> Vec<f64> {
    let (n_bins, n_groups) = (numbers.len(), numbers.first().map_or(0, Vec::len));
    let n_rows = numbers.iter().flatten().sum::<f64>().max(1.0);
    // The entropy of the groups of some rows, times their number.
    let entropy = |of_groups: &[f64]| {
        let n: f64 = of_groups.iter().sum();
        of_groups.iter().filter(|&&in_group| in_group > 0.0).map(|in_group| in_group * (n / in_group).ln()).sum::<f64>()
    };
    let mut lost = vec![0.0; n_bins * n_bins];
    for first in 0..n_bins {
        let mut together = numbers[first].clone();
        let mut apart = entropy(&together);
        for last in first + 1..n_bins {
            together.iter_mut().zip(&numbers[last]).for_each(|(sum, n)| *sum += n);
            apart += entropy(&numbers[last]);
            // Each bin and each group more seems to tell this much by chance.
            let by_chance = ((last - first) * n_groups.saturating_sub(1)) as f64 / 2.0;
            lost[first * n_bins + last] = (entropy(&together) - apart - by_chance).max(0.0) / n_rows;
        }
    }
    // Less what chance shows, a wider interval could seem to lose less.
    for n_more in 1..n_bins {
        for first in 0..n_bins - n_more {
            let last = first + n_more;
            let narrower = lost[(first + 1) * n_bins + last].max(lost[first * n_bins + last - 1]);
            lost[first * n_bins + last] = lost[first * n_bins + last].max(narrower);
        }
    }
    lost
}

#[cfg(test)]
mod tests {
    use kohort_model::{Role, Silent, ValueType};
    use proptest::prelude::*;

    use super::*;

    const OBJECTIVES: [&str; 4] = ["lm", "rank", "entropy", "target:c"];

    /// A number, a text with a hierarchy and a sensitive value per row; `None` is null.
    fn table(rows: &[(Option<u32>, u32, u32)]) -> Table {
        let column = |name: &str, role, cells: Vec<Option<String>>| {
            Column::from_cells(name, role, cells.iter().map(Option::as_deref))
        };
        let numbers = rows.iter().map(|row| row.0.map(|number| number.to_string())).collect();
        let texts = rows.iter().map(|row| Some(format!("t{}", row.1))).collect();
        let values = rows.iter().map(|row| Some(format!("v{}", row.2))).collect();
        let paths: String = (0..8).map(|leaf| format!("t{leaf};g{};*\n", leaf / 3)).collect();
        let tree = kohort_model::Hierarchy::from_paths(&paths).unwrap();
        let columns = vec![
            column("a", Role::Quasi, numbers).typed(ValueType::Integer),
            column("b", Role::Quasi, texts).with_hierarchy(tree),
            column("c", Role::Sensitive, values),
        ];
        Table { name: "t".to_owned(), columns, n_rows: rows.len(), person: None }
    }

    fn spec(objective: &str, weights: [f64; 2]) -> Spec {
        Spec::parse(&format!(
            "k = 2\nobjective = \"{objective}\"\n[tables.t]\nfile = \"t.csv\"\n[tables.t.columns]\n\
             a = {{ role = \"quasi\", weight = {:?} }}\nb = {{ role = \"quasi\", weight = {:?} }}\nc = \"sensitive\"\n",
            weights[0], weights[1]
        ))
        .unwrap()
    }

    fn rows() -> impl Strategy<Value = Vec<(Option<u32>, u32, u32)>> {
        let number = prop_oneof![6 => (0u32..20).prop_map(Some), 1 => Just(Some(10_000)), 1 => Just(None)];
        prop::collection::vec((number, 0u32..8, 0u32..3), 1..40)
    }

    proptest! {
        #[test]
        fn costs_never_fall_when_an_interval_grows(
            rows in rows(),
            objective in prop::sample::select(OBJECTIVES.to_vec()),
        ) {
            let table = table(&rows);
            let encoded = Encoded::new(&table, &[0, 1]).unwrap().minimizing(&spec(objective, [2.0, 0.5]));
            for domain in &encoded.domains {
                for lo in 0..domain.n_codes() {
                    for hi in lo..domain.n_codes() {
                        let cost = domain.width(lo, hi);
                        prop_assert!(cost.is_finite() && cost >= 0.0);
                        prop_assert!(hi == lo || cost >= domain.width(lo + 1, hi).max(domain.width(lo, hi - 1)) - 1e-12);
                    }
                }
            }
        }

        #[test]
        fn costs_are_the_reported_loss_up_to_a_constant(
            rows in rows(),
            cuts in prop::collection::vec((0u32..30, 0u32..8), 2),
            is_rank in any::<bool>(),
        ) {
            let table = table(&rows);
            let objective = if is_rank { "rank" } else { "entropy" };
            let encoded = Encoded::new(&table, &[0, 1]).unwrap().minimizing(&spec(objective, [1.0, 1.0]));
            let all: Vec<u32> = (0..table.n_rows as u32).collect();
            let folded = encoded.fold(&all);
            let rules = crate::requirement::Rules::k_only(1);
            // What is minimized less what is reported, of two releases of the same rows.
            let [one, other] = [cuts[0], cuts[1]].map(|(number, text)| {
                let mut classes = vec![Vec::new(); 4];
                for row in 0..folded.len() as u32 {
                    let cells = folded.cells(row);
                    classes[usize::from(cells[0] < number) + 2 * usize::from(cells[1] < text)].push(row);
                }
                classes.retain(|class| !class.is_empty());
                let cost: f64 = classes
                    .iter()
                    .map(|class| {
                        let width = super::super::bounds::width(&encoded.domains, &folded.bounds(class));
                        width * folded.weight_of(class) as f64 / table.n_rows as f64
                    })
                    .sum();
                let classes = crate::partition::Classes::from_lists(classes);
                let shown = crate::recode::Shown::new(&classes, &encoded, &folded);
                let recoding =
                    crate::recode::Recoding { table: &table, encoded: &encoded, rows: &folded, classes: &classes, shown: &shown };
                let n = table.n_rows as u64;
                let persons = kohort_model::Persons { n_in: n, n_out: n, suppressed: 0 };
                let loss = crate::loss::measure(&recoding, &rules, persons);
                cost - 2.0 * if is_rank { loss.rank.unwrap() } else { loss.entropy.unwrap() }
            });
            prop_assert!((one - other).abs() < 1e-9, "{one} is not {other}");
        }

        #[test]
        fn every_objective_keeps_k(rows in rows(), objective in prop::sample::select(OBJECTIVES.to_vec()), k in 2u32..5) {
            let (table, mut spec) = (table(&rows), spec(objective, [3.0, 1.0]));
            spec.k = k;
            let requirements = spec.requirements(&spec.tables[0]);
            match crate::anonymize(&table, &spec, &requirements, &Silent) {
                Err(_) => prop_assert!(rows.len() < k as usize),
                Ok(done) => {
                    let released = &done.release.tables[0];
                    prop_assert_eq!(released.rows.len(), rows.len());
                    let shown: Vec<&Vec<u32>> = released.columns.iter().filter_map(|column| match &column.cells {
                        kohort_model::Cells::Recoded { ids, .. } => Some(ids),
                        _ => None,
                    }).collect();
                    prop_assert_eq!(shown.len(), 2);
                    for row in 0..rows.len() {
                        let alike = (0..rows.len()).filter(|&other| shown.iter().all(|ids| ids[row] == ids[other]));
                        prop_assert!(alike.count() >= k as usize);
                    }
                }
            }
        }
    }

    /// Numbers and texts that have nothing to do with each other; the value follows from the text or from the number.
    fn unrelated(value: impl Fn(u32, u32) -> u32) -> Table {
        let rows: Vec<(Option<u32>, u32, u32)> = (0..320)
            .map(|row| {
                let (number, text) = (row % 20, row / 20 % 8);
                (Some(number), text, value(number, text))
            })
            .collect();
        table(&rows)
    }

    fn lm_of(table: &Table, spec: &Spec) -> [f64; 2] {
        let mut spec = spec.clone();
        spec.k = 8;
        let requirements = spec.requirements(&spec.tables[0]);
        let loss = crate::anonymize(table, &spec, &requirements, &Silent).unwrap().loss;
        [loss.columns["a"], loss.columns["b"]]
    }

    #[test]
    fn a_target_keeps_the_column_that_predicts_it() {
        let by_number = lm_of(&unrelated(|number, _| number / 7), &spec("target:c", [1.0, 1.0]));
        let by_text = lm_of(&unrelated(|_, text| text / 3), &spec("target:c", [1.0, 1.0]));
        assert!(by_number[0] < by_text[0] && by_text[1] < by_number[1], "{by_number:?} {by_text:?}");
    }

    #[test]
    fn a_heavier_column_loses_less() {
        let table = unrelated(|_, _| 0);
        let (first, second) = (lm_of(&table, &spec("lm", [100.0, 1.0])), lm_of(&table, &spec("lm", [1.0, 100.0])));
        assert!(first[0] < second[0] && second[1] < first[1], "{first:?} {second:?}");
    }
}
