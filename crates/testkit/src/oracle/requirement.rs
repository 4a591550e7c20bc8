//! Whether a class satisfies a requirement, straight from the definitions of [`kohort_model::Requirement`].
//!
//! Earth mover's distances are computed in another way than the engine does. A hierarchical distance is a shortest way
//! in a tree, so it is the sum, over all edges, of what must cross the edge times the length of the edge.

use std::collections::{BTreeMap, BTreeSet};

use kohort_model::{Column, Distance, Requirement, Table, Value};

use super::{person, persons};

/// Shares closer to a bound than this are undecided, because two sums of the same numbers may be rounded to either
/// side.
const ROUNDING: f64 = 1e-7;

/// Whether a class satisfies a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The class satisfies it.
    Holds,
    /// The class does not satisfy it.
    Fails,
    /// The class is on the boundary, where rounding decides.
    TooClose,
}

/// A sensitive value, as its rank among the values of the column; null is the last.
type Rank = usize;

/// Whether a class satisfies every requirement; `release` are all rows that are released.
pub fn stands(table: &Table, requirements: &[Requirement], class: &[u32], release: &[u32]) -> Verdict {
    let verdicts = requirements.iter().map(|requirement| judge(table, requirement, class, release));
    verdicts.fold(Verdict::Holds, |so_far, verdict| match (so_far, verdict) {
        (Verdict::Fails, _) | (_, Verdict::Fails) => Verdict::Fails,
        (Verdict::TooClose, _) | (_, Verdict::TooClose) => Verdict::TooClose,
        (Verdict::Holds, Verdict::Holds) => Verdict::Holds,
    })
}

/// Whether a class satisfies a requirement.
///
/// # Panics
/// If the table lacks the requirement's column.
pub fn judge(table: &Table, requirement: &Requirement, class: &[u32], release: &[u32]) -> Verdict {
    let n_persons = persons(table, class).len();
    let exactly = |holds: bool| if holds { Verdict::Holds } else { Verdict::Fails };
    if let Some(k) = requirement.k() {
        return exactly(n_persons >= k as usize);
    }
    let column = requirement.column().and_then(|name| table.column(name)).expect("the column is there");
    if requirement.own_k_column().is_some() {
        let largest = own_ks(table, column, release, class).into_iter().max().unwrap_or(0);
        return exactly(n_persons >= largest);
    }
    let ranks = ranks(column);
    let counts = holders(table, &ranks, class);
    let all = holders(table, &ranks, release);
    let (total, whole) = (sum(&counts), sum(&all));
    let q = |rank: &Rank| counts.get(rank).map_or(0.0, |&n| n as f64 / total);
    let p = |rank: &Rank| all[rank] as f64 / whole;
    let gains = || counts.keys().map(|rank| (p(rank), (q(rank) - p(rank)) / p(rank)));
    match requirement {
        Requirement::K(_) | Requirement::PersonK { .. } => unreachable!("decided above"),
        Requirement::DistinctL { l, .. } => exactly(counts.len() >= *l as usize),
        Requirement::EntropyL { l, .. } => {
            let entropy: f64 = counts.keys().map(|rank| -q(rank) * q(rank).ln()).sum();
            above(entropy - l.ln())
        }
        Requirement::RecursiveCL { c, l, .. } => {
            let mut descending: Vec<usize> = counts.values().copied().collect();
            descending.sort_unstable_by(|a, b| b.cmp(a));
            let tail: usize = descending.iter().skip(*l as usize - 1).sum();
            above(c * tail as f64 - descending[0] as f64)
        }
        Requirement::TCloseness { t, distance, .. } => {
            let shares = |counts: &BTreeMap<Rank, usize>, total: f64| -> BTreeMap<Rank, f64> {
                counts.iter().map(|(&rank, &n)| (rank, n as f64 / total)).collect()
            };
            let (class, release) = (shares(&counts, total), shares(&all, whole));
            above(t - earth_movers(column, &ranks, *distance, &class, &release))
        }
        Requirement::Alpha { alpha, .. } => {
            let largest = counts.values().copied().max().unwrap_or(0);
            above(alpha - largest as f64 / n_persons as f64)
        }
        Requirement::Beta { beta, .. } => above(gains().map(|(_, gain)| beta - gain).fold(f64::MAX, f64::min)),
        Requirement::EnhancedBeta { beta, .. } => {
            above(gains().map(|(share, gain)| beta.min(-share.ln()) - gain).fold(f64::MAX, f64::min))
        }
    }
}

/// The distance of a class's values to those of all released rows.
pub(crate) fn distance_of(table: &Table, column: &Column, distance: Distance, class: &[u32], release: &[u32]) -> f64 {
    let ranks = ranks(column);
    let shares = |rows: &[u32]| -> BTreeMap<Rank, f64> {
        let counts = holders(table, &ranks, rows);
        let total = sum(&counts);
        counts.into_iter().map(|(rank, n)| (rank, n as f64 / total)).collect()
    };
    earth_movers(column, &ranks, distance, &shares(class), &shares(release))
}

/// How many persons have each value that occurs in these rows, for a column of any type.
pub(crate) fn holders_of(table: &Table, column: &Column, rows: &[u32]) -> BTreeMap<usize, usize> {
    holders(table, &ranks(column), rows)
}

fn above(margin: f64) -> Verdict {
    if margin > ROUNDING {
        Verdict::Holds
    } else if margin < -ROUNDING {
        Verdict::Fails
    } else {
        Verdict::TooClose
    }
}

/// The own k of each person of the class: the largest that one of the person's released rows asks for.
fn own_ks(table: &Table, column: &Column, release: &[u32], class: &[u32]) -> Vec<usize> {
    let members = persons(table, class);
    let of_members = release.iter().filter(|&&row| members.contains(&person(table, row)));
    of_members
        .map(|&row| column.cell(row as usize).map_or(0, |text| text.parse().expect("an own k is a number")))
        .collect()
}

/// The rank of the value of each row. Two spellings are one value, unless a hierarchy tells them apart.
fn ranks(column: &Column) -> Vec<Rank> {
    let by_text = column.hierarchy.is_some();
    let parse = |text| Value::parse(text, column.value_type, &column.notation).expect("values are of their type");
    let mut texts: Vec<&str> = column.texts.iter().collect();
    texts.sort_unstable_by(|a, b| parse(a).cmp(&parse(b)).then(a.cmp(b)));
    let mut rank_of: BTreeMap<&str, Rank> = BTreeMap::new();
    let mut next = 0;
    for (position, text) in texts.iter().enumerate() {
        let same = position > 0 && !by_text && parse(texts[position - 1]) == parse(text);
        next += usize::from(position > 0 && !same);
        rank_of.insert(text, next);
    }
    (0..column.ids.len()).map(|row| column.cell(row).map_or(next + 1, |text| rank_of[text])).collect()
}

/// How many persons have each value that occurs in these rows.
fn holders(table: &Table, ranks: &[Rank], rows: &[u32]) -> BTreeMap<Rank, usize> {
    let pairs: BTreeSet<(String, Rank)> = rows.iter().map(|&row| (person(table, row), ranks[row as usize])).collect();
    let mut counts = BTreeMap::new();
    for (_, rank) in pairs {
        *counts.entry(rank).or_default() += 1;
    }
    counts
}

fn sum(counts: &BTreeMap<Rank, usize>) -> f64 {
    counts.values().sum::<usize>() as f64
}

fn earth_movers(
    column: &Column,
    ranks: &[Rank],
    distance: Distance,
    class: &BTreeMap<Rank, f64>,
    release: &BTreeMap<Rank, f64>,
) -> f64 {
    let extra = |rank: &Rank| class.get(rank).copied().unwrap_or(0.0) - release[rank];
    match distance {
        Distance::Equal => release.keys().map(|rank| extra(rank).abs()).sum::<f64>() / 2.0,
        Distance::Ordered => {
            // Earth moves from neighbour to neighbour among the values that occur.
            let mut carried = 0.0;
            let mut moved = 0.0;
            for rank in release.keys() {
                carried += extra(rank);
                moved += f64::abs(carried);
            }
            moved / (release.len().max(2) - 1) as f64
        }
        Distance::Hierarchical => {
            let hierarchy = column.hierarchy.as_ref().expect("a hierarchical distance needs a hierarchy");
            let mut heights = vec![0usize; hierarchy.n_nodes()];
            let mut extras = vec![0.0; hierarchy.n_nodes()];
            let mut moved = 0.0;
            for leaf in hierarchy.leaves() {
                for (steps, node) in hierarchy.path(leaf).enumerate() {
                    heights[node as usize] = heights[node as usize].max(steps);
                }
            }
            let height = heights[0].max(1) as f64;
            for &rank in release.keys() {
                let row = ranks.iter().position(|&other| other == rank).expect("ranks come from rows");
                match column.cell(row) {
                    Some(text) => {
                        let leaf = hierarchy.leaf(text).expect("every value is a leaf");
                        hierarchy.path(leaf).for_each(|node| extras[node as usize] += extra(&rank));
                    }
                    // Null is a leaf of its own below the root, as far from it as any other leaf.
                    None => moved += extra(&rank).abs() / 2.0,
                }
            }
            for node in 1..hierarchy.n_nodes() as u32 {
                let parent = hierarchy.parent(node).expect("only the root has none") as usize;
                // Half of the way between two values leads up to their common ancestor, half of it down.
                let length = (heights[parent] - heights[node as usize]) as f64 / height / 2.0;
                moved += extras[node as usize].abs() * length;
            }
            moved
        }
    }
}

#[cfg(test)]
mod tests {
    use kohort_model::{Hierarchy, Role, ValueType};

    use super::*;

    fn table(cells: &[Option<&str>], change: impl FnOnce(Column) -> Column) -> Table {
        let column = change(Column::from_cells("s", Role::Sensitive, cells.iter().copied()));
        Table { name: "t".to_owned(), columns: vec![column], n_rows: cells.len(), person: None }
    }

    fn holds(table: &Table, requirement: &Requirement, class: &[u32]) -> Verdict {
        let all: Vec<u32> = (0..table.n_rows as u32).collect();
        judge(table, requirement, class, &all)
    }

    #[test]
    fn the_salary_example_of_t_closeness() {
        let salaries: Vec<String> = (3..12).map(|thousands| (thousands * 1000).to_string()).collect();
        let cells: Vec<Option<&str>> = salaries.iter().map(|text| Some(text.as_str())).collect();
        let table = table(&cells, |column| column.typed(ValueType::Integer));
        let t = |t| Requirement::TCloseness { column: "s".to_owned(), t, distance: Distance::Ordered };
        assert_eq!(holds(&table, &t(0.374), &[0, 1, 2]), Verdict::Fails);
        assert_eq!(holds(&table, &t(0.376), &[0, 1, 2]), Verdict::Holds);
        assert_eq!(holds(&table, &t(0.375), &[0, 1, 2]), Verdict::TooClose);
        assert_eq!(holds(&table, &t(0.167), &[3, 5, 8]), Verdict::Holds);
        assert_eq!(holds(&table, &t(0.166), &[3, 5, 8]), Verdict::Fails);
    }

    #[test]
    fn a_hierarchical_distance_counts_the_height_of_the_common_ancestor() {
        let hierarchy = Hierarchy::from_paths("a;x;*\nb;x;*\nc;y;*\nd;y;*\n").unwrap();
        let table = table(&["a", "b", "c", "d"].map(Some), |column| column.with_hierarchy(hierarchy));
        let t = |t| Requirement::TCloseness { column: "s".to_owned(), t, distance: Distance::Hierarchical };
        // All of the class is at a: a quarter moves to b over half the height, and a half moves to the other branch
        // over the full height.
        assert_eq!(holds(&table, &t(0.63), &[0]), Verdict::Holds);
        assert_eq!(holds(&table, &t(0.62), &[0]), Verdict::Fails);
    }

    #[test]
    fn two_spellings_of_a_number_are_one_value() {
        let two = Requirement::DistinctL { column: "s".to_owned(), l: 2 };
        let cells = [Some("1.5"), Some("1.50")];
        assert_eq!(holds(&table(&cells, |column| column.typed(ValueType::Decimal)), &two, &[0, 1]), Verdict::Fails);
        assert_eq!(holds(&table(&cells, |column| column), &two, &[0, 1]), Verdict::Holds);
    }
}
