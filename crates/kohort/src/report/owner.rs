//! [`report_against`]: figures of a release that need its private tables, for their owner alone.
//!
//! # Guarantee
//! The release is verified against the private tables first. A bin of private values holds at least k persons. The figures are
//! never written into the release, because readers could subtract what it shows.
//! # Limits
//! What readers expect after the release is what `kohort estimate` expects, so columns that it can't estimate have no figure
//! after. Only columns of the table of persons have marginals. Pairs are counted in at most [`MOST_PAIRS`] combinations of bins.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use kohort_io::{load, load_tables, read_release_of};
use kohort_model::report::{
    AboveBeforeAfter, BinReport, MarginalReport, OwnerReport, PairCounts, SumReport, SumsReport,
};
use kohort_model::{Column, Manifest, NULL, Progress, Requirement, Role, Spec, Table, Value, ValueType};
use kohort_verify::{ReleasedLink, measure_tables};

use super::figures::fewest_named;
use super::readers::above;
use crate::Job;
use crate::error::{Error, violation_reports};
use crate::estimate::{EstimateOptions, estimate_from};
use crate::expression::{Comparison, Condition, Test};
use crate::job::without_orphans;
use crate::verification::{Verdict, measure_before, verify_against_with};

/// The class sizes that occur, each with the number of classes.
type Sizes = Vec<(u64, u64)>;

/// A marginal has about so many bins at most.
const MOST_BINS: usize = 12;
/// So many combinations of two bins are estimated.
const MOST_PAIRS: usize = 120;

/// Figures of a release that need the private tables of its job: how risky these were, how marginals, pairs of columns, sums and means
/// changed. They are for the owner of the tables alone.
///
/// # Errors
/// As [`crate::verify_against`], and [`Error::NotMet`] if the release does not verify.
///
/// ```no_run
/// # fn main() -> Result<(), kohort::Error> {
/// let job = kohort::Job::read("release.toml")?;
/// let report = kohort::report_against("out", &job, &kohort::Silent)?;
/// println!("{} persons were alone in a class", report.unique.0);
/// # Ok(())
/// # }
/// ```
pub fn report_against(release: impl AsRef<Path>, job: &Job, progress: &dyn Progress) -> Result<OwnerReport, Error> {
    let release = release.as_ref();
    let verification = verify_against_with(release, job, progress)?;
    if verification.verdict == Verdict::NotMet {
        return Err(Error::NotMet(verification.wrong));
    }
    let spec = job.spec();
    let (originals, sizes) = originals(job, spec, progress)?;
    let (manifest, tables) = read_release_of(&originals, release, progress)?;
    let k = fewest_named(&manifest);
    let private = Private { originals: &originals, manifest: &manifest, tables: &tables, k };
    let (marginals, pairs) = private.marginals();
    // Audiences count persons each for itself, so take those who know all columns, as before.
    let found = &verification.findings;
    let after = found.coalitions.first().map_or(&found.class_sizes, |together| &together.class_sizes);
    let pair = |(before, after)| AboveBeforeAfter { before, after };
    Ok(OwnerReport {
        kohort: env!("CARGO_PKG_VERSION").to_owned(),
        warning: "for the owner of the private table alone: these figures come from it, and must not be given away with the release"
            .to_owned(),
        k,
        above: above(&sizes).into_iter().zip(above(after)).map(pair).collect(),
        unique: (alone(&sizes), alone(after)),
        marginals,
        pairs,
        sums: private.sums(),
    })
}

/// Persons who are alone in a class.
fn alone(sizes: &[(u64, u64)]) -> u64 {
    sizes.iter().find(|(size, _)| *size == 1).map_or(0, |(_, classes)| *classes)
}

/// The private tables, and the class sizes that a release with unchanged quasi columns would have.
fn originals(job: &Job, spec: &Spec, progress: &dyn Progress) -> Result<(Vec<Table>, Sizes), Error> {
    match spec.tables.as_slice() {
        [table] if !spec.links_rows() => {
            let original = load(job.sources(), spec, table, progress)?.table;
            // Nothing but k persons is asked here, and everybody is counted in all quasi columns.
            let before = measure_before(&original, &[Requirement::K(1)])?;
            Ok((vec![original], before.class_sizes))
        }
        _ => {
            let loaded = load_tables(job.sources(), spec, progress)?;
            let links = ReleasedLink::of(&loaded.schema, &loaded.tables);
            let before = measure_tables(&without_orphans(&loaded.tables, &loaded.schema), &links)
                .map_err(|violations| Error::NotMet(violation_reports(&violations.0)))?;
            Ok((loaded.tables, before.class_sizes))
        }
    }
}

/// The private tables beside their release.
struct Private<'a> {
    originals: &'a [Table],
    manifest: &'a Manifest,
    tables: &'a [Table],
    k: u64,
}

/// Values of a column that are counted together.
struct Bin {
    label: String,
    /// What a reader asks to count the bin; `None` for everything that is in no other bin.
    test: Option<Test>,
    /// The private rows.
    rows: Vec<u32>,
}

impl Private<'_> {
    /// The marginals of the quasi columns of the table of persons, and how far pairs of bins are off.
    fn marginals(&self) -> (Vec<MarginalReport>, PairCounts) {
        let is_child = |table: &Table| self.manifest.links.iter().any(|link| link.table == table.name);
        let Some(released) = self.tables.iter().find(|table| !is_child(table)) else {
            return (Vec::new(), PairCounts::default());
        };
        let Some(original) = self.originals.iter().find(|table| table.name == released.name) else {
            return (Vec::new(), PairCounts::default());
        };
        let quasi = released.columns.iter().filter(|column| column.role == Role::Quasi);
        let binned: Vec<(&Column, Vec<Bin>)> = quasi
            .filter_map(|column| original.column(&column.name))
            .map(|column| (column, bins(column, original, self.k)))
            .collect();
        let marginals = binned.iter().map(|(column, bins)| self.marginal(column, bins)).collect();
        (marginals, self.pairs(&binned))
    }

    /// The rows that a reader expects in bins of different columns at once, and of how many; `None` if a column can't be
    /// estimated.
    fn expected(&self, bins: &[(&Column, &Bin)]) -> Option<(f64, f64)> {
        let condition =
            |(column, bin): &(&Column, &Bin)| Some(Condition { column: column.name.clone(), test: bin.test.clone()? });
        let conditions: Vec<Condition> = bins.iter().map(condition).collect::<Option<_>>()?;
        let found = estimate_from(self.manifest, self.tables, &conditions, &EstimateOptions::default());
        found.ok().map(|estimate| (estimate.count, estimate.of))
    }

    fn marginal(&self, column: &Column, bins: &[Bin]) -> MarginalReport {
        let expected: Vec<Option<(f64, f64)>> = bins.iter().map(|bin| self.expected(&[(column, bin)])).collect();
        let named: f64 = expected.iter().flatten().map(|(count, _)| count).sum();
        let of_all = expected.iter().flatten().map(|(_, of)| *of).next();
        let bin = |(bin, expected): (&Bin, Option<(f64, f64)>)| BinReport {
            label: bin.label.clone(),
            before: bin.rows.len() as u64,
            after: match bin.test {
                Some(_) => expected.map(|(count, _)| count),
                None => of_all.map(|of| (of - named).max(0.0)),
            },
        };
        let bins: Vec<BinReport> = bins.iter().zip(expected).map(bin).collect();
        let before: f64 = bins.iter().map(|bin| bin.before as f64).sum();
        let after: Option<f64> = bins.iter().map(|bin| bin.after).sum();
        let distance = after.filter(|after| *after > 0.0 && before > 0.0).map(|after_all| {
            let share = |bin: &BinReport| (bin.before as f64 / before - bin.after.unwrap_or(0.0) / after_all).abs();
            bins.iter().map(share).sum::<f64>() / 2.0
        });
        MarginalReport { column: column.name.clone(), bins, distance }
    }

    /// Counts of two bins of different columns at once.
    fn pairs(&self, binned: &[(&Column, Vec<Bin>)]) -> PairCounts {
        let mut pairs = Vec::new();
        for (position, (column, bins)) in binned.iter().enumerate() {
            for (other, other_bins) in &binned[position + 1..] {
                let named = |bin: &&Bin| bin.test.is_some();
                for bin in bins.iter().filter(named) {
                    pairs.extend(other_bins.iter().filter(named).map(|other_bin| (*column, bin, *other, other_bin)));
                }
            }
        }
        // An even choice over all pairs of columns, always the same.
        let step = pairs.len().div_ceil(MOST_PAIRS).max(1);
        let mut errors = Vec::new();
        for (column, bin, other, other_bin) in pairs.into_iter().step_by(step) {
            let rows: HashSet<u32> = bin.rows.iter().copied().collect();
            let n_both = other_bin.rows.iter().filter(|row| rows.contains(row)).count() as u64;
            if n_both < self.k {
                continue;
            }
            if let Some((expected, _)) = self.expected(&[(column, bin), (other, other_bin)]) {
                errors.push((expected - n_both as f64).abs() / n_both as f64);
            }
        }
        errors.sort_unstable_by(f64::total_cmp);
        PairCounts {
            n: errors.len() as u64,
            median_error: errors.get(errors.len() / 2).copied(),
            largest_error: errors.last().copied(),
        }
    }

    /// Sums and means of the numbers that are released as they are.
    fn sums(&self) -> Vec<SumsReport> {
        let mut sums = Vec::new();
        for table in self.tables {
            // The sensitive values beside a register are a table of their own, of the only private one.
            let original =
                self.originals.iter().find(|original| original.name == table.name).or(self.originals.first());
            for column in table.columns.iter().filter(|column| matches!(column.role, Role::Sensitive | Role::Plain)) {
                let is_number = matches!(column.value_type, ValueType::Integer | ValueType::Decimal | ValueType::Float);
                let private = original.and_then(|original| original.column(&column.name)).filter(|_| is_number);
                let Some(private) = private else { continue };
                sums.push(SumsReport {
                    table: table.name.clone(),
                    column: column.name.clone(),
                    before: sum(private, column),
                    after: sum(column, column),
                });
            }
        }
        sums
    }
}

/// The sum of the cells that are numbers. `typed` says how they are spelled.
fn sum(column: &Column, typed: &Column) -> SumReport {
    let number = |text: &str| match Value::parse(text, typed.value_type, &typed.notation)? {
        Value::Integer(value) => Some(value as f64),
        Value::Float(value) => Some(value),
        Value::Decimal(value) => Some(value.mantissa as f64 / 10f64.powi(value.scale as i32)),
        _ => None,
    };
    let numbers: Vec<Option<f64>> = column.texts.iter().map(number).collect();
    let cells = column.ids.iter().filter_map(|&id| *numbers.get(id as usize)?);
    let (n, sum) = cells.fold((0u64, 0.0), |(n, sum), value| (n + 1, sum + value));
    SumReport { n, sum, mean: (n > 0).then(|| sum / n as f64) }
}

/// Bins of a column in each of which at least `k` persons hold a value. Values that no such bin can take are in none.
fn bins(column: &Column, table: &Table, k: u64) -> Vec<Bin> {
    let mut rows_of: Vec<Vec<u32>> = vec![Vec::new(); column.texts.len()];
    for (row, &id) in (0u32..).zip(&column.ids) {
        if id != NULL {
            rows_of[id as usize].push(row);
        }
    }
    let n_persons = |rows: &[u32]| match table.person_column() {
        None => rows.len() as u64,
        Some(persons) => rows.iter().map(|&row| persons.ids[row as usize]).collect::<HashSet<u32>>().len() as u64,
    };
    let is_held = |id: &u32| !rows_of[*id as usize].is_empty();
    let mut ids: Vec<u32> = (0..column.texts.len() as u32).filter(is_held).collect();
    if !column.value_type.is_ordered() {
        ids.retain(|id| n_persons(&rows_of[*id as usize]) >= k);
        ids.sort_by_key(|id| (std::cmp::Reverse(rows_of[*id as usize].len()), column.texts.get(*id).to_owned()));
        ids.truncate(MOST_BINS);
        let bin = |id: u32| {
            let text = column.texts.get(id).to_owned();
            let rows = std::mem::take(&mut rows_of[id as usize]);
            Bin { label: text.clone(), test: Some(Test::In(vec![text])), rows }
        };
        let mut bins: Vec<Bin> = ids.into_iter().map(bin).collect();
        let rows = rows_of.concat();
        if n_persons(&rows) >= k {
            bins.push(Bin { label: "all others".to_owned(), test: None, rows });
        }
        return bins;
    }
    // Spellings of one value are counted together.
    let mut by_value: BTreeMap<OrderedText<'_>, Vec<u32>> = BTreeMap::new();
    for id in ids {
        let text = column.texts.get(id);
        if let Some(value) = Value::parse(text, column.value_type, &column.notation) {
            by_value.entry(OrderedText { value, text }).or_default().append(&mut rows_of[id as usize]);
        }
    }
    let wanted = (column.ids.len() / MOST_BINS).max(1);
    let mut bins: Vec<(&str, &str, Vec<u32>)> = Vec::new();
    let mut is_open = false;
    for (value, rows) in by_value {
        match bins.last_mut().filter(|_| is_open) {
            Some((_, high, all)) => {
                *high = value.text;
                all.extend(rows);
            }
            None => bins.push((value.text, value.text, rows)),
        }
        let (_, _, rows) = bins.last().expect("a bin was just added or extended");
        is_open = rows.len() < wanted || n_persons(rows) < k;
    }
    // The last bin may have too few persons.
    if is_open && let Some((low, high, rows)) = bins.pop() {
        match bins.last_mut() {
            Some((_, last, all)) => {
                *last = high;
                all.extend(rows);
            }
            None if n_persons(&rows) >= k => bins.push((low, high, rows)),
            None => {}
        }
    }
    // The lowest and the highest value may be one person's, so the bins at the ends do not name them.
    let n_bins = bins.len();
    let bin = |(position, (low, high, rows)): (usize, (&str, &str, Vec<u32>))| {
        let (label, test) = match (position == 0, position + 1 == n_bins) {
            (true, true) => {
                return Bin {
                    label: "all values".to_owned(),
                    test: Some(Test::Between(low.to_owned(), high.to_owned())),
                    rows,
                };
            }
            (true, false) => (format!("up to {high}"), Test::Compare(Comparison::AtMost, high.to_owned())),
            (false, true) => (format!("from {low}"), Test::Compare(Comparison::AtLeast, low.to_owned())),
            (false, false) if low == high => (low.to_owned(), Test::In(vec![low.to_owned()])),
            (false, false) => (format!("{low} to {high}"), Test::Between(low.to_owned(), high.to_owned())),
        };
        Bin { label, test: Some(test), rows }
    };
    bins.into_iter().enumerate().map(bin).collect()
}

/// A text by the order of its value. Spellings of one value are equal.
struct OrderedText<'a> {
    value: Value<'a>,
    text: &'a str,
}

impl Ord for OrderedText<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.value.cmp(&other.value)
    }
}

impl PartialOrd for OrderedText<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for OrderedText<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for OrderedText<'_> {}
