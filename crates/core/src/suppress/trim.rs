//! Leaving out the few rows that make their classes wide.
//!
//! A class shrinks where the rows at one end of a column leave: the rows with the smallest or the largest number, or
//! those outside of the heaviest child of a node. That pays where the other rows gain more than the leaving rows lose,
//! each of whose cells then counts 1. The best bargain of all classes goes first, until the allowance is used up.
//!
//! # Guarantee
//! what is left of a class satisfies the rules; no more persons are left out than the task allows
//! # Deviations
//! Nobody leaves in three cases: if persons have several rows, because they would have to leave several classes at
//! once; if a requirement compares classes with the whole release, because it changes with everybody who leaves; and if
//! the partitioner decides what classes show.
//! # Cost
//! each class is looked at once and again for each bargain it makes

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rayon::prelude::*;

use crate::encode::{Domain, Rows};
use crate::partition::{Classes, Task};
use crate::ranks::Total;
use crate::requirement::Tally;

/// Rows whose leaving pays, ordered by the gain per person, then by class.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Bargain {
    gain_per_person: Total,
    class: Reverse<usize>,
    n_persons: u64,
    leaving: Vec<u32>,
}

/// The classes without the rows whose leaving pays.
pub(crate) fn trim(task: &Task<'_>, classes: Classes) -> Classes {
    let placed = task.rows.weight_of(classes.all_rows());
    let mut allowance = task.allowance.saturating_sub(task.rows.n_members() as u64 - placed);
    let fixed = classes.boxes.is_some() || task.rules.measures_against_release();
    if allowance == 0 || fixed || task.rules.person_of_row().is_some() {
        return classes;
    }
    let mut of_class = classes.to_lists();
    let found: Vec<Option<Bargain>> = of_class
        .par_iter()
        .enumerate()
        .map_init(|| Tally::new(task.rules), |tally, (class, rows)| best_bargain(task, tally, class, rows))
        .collect();
    let mut open: BinaryHeap<Bargain> = found.into_iter().flatten().collect();
    let mut tally = Tally::new(task.rules);
    while let Some(bargain) = open.pop() {
        if bargain.n_persons > allowance {
            continue;
        }
        allowance -= bargain.n_persons;
        let rows = &mut of_class[bargain.class.0];
        rows.retain(|row| !bargain.leaving.contains(row));
        open.extend(best_bargain(task, &mut tally, bargain.class.0, rows));
    }
    Classes { notes: classes.notes, ..Classes::from_lists(of_class) }
}

/// The rows of a class whose leaving pays most per person.
fn best_bargain(task: &Task<'_>, tally: &mut Tally<'_>, class: usize, rows: &[u32]) -> Option<Bargain> {
    let n_all = task.rows.weight_of(rows);
    if n_all <= u64::from(task.rules.k()) {
        return None;
    }
    let before = widths(task, rows);
    let mut best: Option<Bargain> = None;
    for column in 0..task.domains.len() {
        for (leaving, staying) in ends(&task.domains[column], task.rows, column, rows) {
            let n_leaving = task.rows.weight_of(&leaving);
            if leaving.is_empty() || n_all - n_leaving < u64::from(task.rules.k()) {
                continue;
            }
            let after = widths(task, &staying);
            let gained: f64 = before.iter().zip(&after).map(|(before, after)| before - after).sum();
            let lost: f64 = before.iter().map(|width| 1.0 - width).sum();
            let gain = gained * (n_all - n_leaving) as f64 - lost * n_leaving as f64;
            let gain_per_person = gain / n_leaving as f64;
            if gain_per_person <= 1e-9 || best.as_ref().is_some_and(|best| best.gain_per_person.0 >= gain_per_person) {
                continue;
            }
            if task.stands(tally, staying.iter().copied()) {
                let (gain_per_person, class) = (Total(gain_per_person), Reverse(class));
                best = Some(Bargain { gain_per_person, class, n_persons: n_leaving, leaving });
            }
        }
    }
    best
}

fn widths(task: &Task<'_>, rows: &[u32]) -> Vec<f64> {
    let bounds = task.rows.bounds(rows);
    bounds.iter().zip(task.domains).map(|(&(lo, hi), domain)| domain.width(lo, hi)).collect()
}

/// Ways to shrink a class in one column, as leaving and staying rows.
fn ends(domain: &Domain, rows: &Rows, column: usize, class: &[u32]) -> Vec<(Vec<u32>, Vec<u32>)> {
    let code = |row: u32| rows.cells(row)[column];
    let (lo, hi) = rows.bounds(class)[column];
    if lo == hi {
        return Vec::new();
    }
    let without = |leaves: &dyn Fn(u32) -> bool| class.iter().partition(|&&row| leaves(code(row)));
    match domain.tree() {
        None => vec![without(&|code| code == lo), without(&|code| code == hi)],
        Some(tree) => {
            let firsts = tree.child_firsts(tree.common_ancestor(lo, hi));
            let child = |code: u32| firsts.partition_point(|&first| first <= code);
            let mut children: Vec<(usize, u64)> =
                class.iter().map(|&row| (child(code(row)), u64::from(rows.weight(row)))).collect();
            children.sort_unstable();
            let heaviest = children
                .chunk_by(|a, b| a.0 == b.0)
                .map(|same| (same.iter().map(|row| row.1).sum::<u64>(), Reverse(same[0].0)))
                .max();
            heaviest.map(|(_, child_kept)| without(&|code| child(code) != child_kept.0)).into_iter().collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requirement::Rules;
    use kohort_model::spec::Leftovers;
    use kohort_model::{Column, Role, Silent, ValueType};

    fn trimmed(cells: &[u32], allowance: u64) -> Vec<u32> {
        let texts: Vec<String> = (0..=100).map(|number| format!("{number}")).collect();
        let column = Column::from_cells("n", Role::Quasi, texts.iter().map(|text| Some(text.as_str())));
        let (domain, _) = Domain::of(&column.typed(ValueType::Integer)).unwrap();
        let rows = Rows::from_folded(1, cells, &vec![1; cells.len()]);
        let rules = Rules::k_only(3);
        let (domains, leftovers) = ([domain], Leftovers::Suppress);
        let task = Task { rows: &rows, domains: &domains, rules: &rules, allowance, leftovers, progress: &Silent };
        let all = Classes::from_lists(vec![(0..cells.len() as u32).collect()]);
        trim(&task, all).rows(0).to_vec()
    }

    #[test]
    fn an_outlier_leaves_its_class() {
        assert_eq!(trimmed(&[0, 1, 2, 90], 1), [0, 1, 2]);
        assert_eq!(trimmed(&[0, 50, 51, 52, 100], 2), [1, 2, 3]);
    }

    #[test]
    fn nobody_leaves_beyond_the_allowance_or_under_k() {
        assert_eq!(trimmed(&[0, 1, 2, 90], 0), [0, 1, 2, 3]);
        assert_eq!(trimmed(&[0, 1, 90], 1), [0, 1, 2]);
    }

    #[test]
    fn nobody_leaves_where_the_others_gain_less_than_the_leaver_loses() {
        assert_eq!(trimmed(&[0, 1, 2, 3], 1), [0, 1, 2, 3]);
    }
}
