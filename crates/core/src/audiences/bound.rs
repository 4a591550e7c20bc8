//! A lower bound of what the wings of a butterfly lose, computed without building them.
//!
//! # Guarantee
//! never more than what the wings lose, however they are partitioned. A wing's class holds k rows of the body or more,
//! so in each of its columns it shows an interval with the codes of k rows, the row's own among them. Of all such
//! intervals the narrowest loses least, and intervals that hold others lose no less than these, on trees and with
//! nulls too; what a row loses is the sum over columns. With atoms that have boxes, codes are inside of intervals, and
//! what an atom shows loses no less than what it shows already.
//! # Paper
//! `[PTL+08]` theorem 4
//! # Deviations
//! the paper takes one number for all rows of a node: the distance to the (k/m)-th neighbour inside of one of its m
//! classes, or to the k-th in the whole table, smallest over all rows. Here every row counts with its own, to the k-th
//! neighbour inside of the node, column by column. Its printed inequalities (1) and (2) point the wrong way; what is
//! meant, and shown above, is that a row loses at least that much
//! # Cost
//! linear in rows and columns, where the paper's is k per row

use std::collections::VecDeque;

use super::atoms::Atoms;
use super::plan::{Plan, Split};
use crate::encode::Domain;
use crate::partition::count_runs;

/// A lower bound of what all parts of a split lose on these atoms.
pub(super) fn least_loss_of_wings(atoms: &Atoms<'_>, members: &[u32], split: &Split) -> f64 {
    split.parts.iter().map(|part| least_loss_of_part(atoms, members, part)).sum()
}

fn least_loss_of_part(atoms: &Atoms<'_>, members: &[u32], part: &Plan) -> f64 {
    // A column of a group's own body is shown to at least one of its audiences. We don't know which, so count with the
    // smallest k.
    let k = u64::from(least_k(part));
    part.columns.iter().map(|&column| least_loss_of_column(atoms, members, column, k)).sum()
}

fn least_k(plan: &Plan) -> u32 {
    let parts = plan.split.iter().flat_map(|split| &split.parts);
    parts.map(least_k).min().unwrap_or(u32::MAX).min(plan.rules.k())
}

fn least_loss_of_column(atoms: &Atoms<'_>, members: &[u32], column: usize, k: u64) -> f64 {
    let domain = &atoms.domains[column];
    let runs = runs_of(atoms, members, column);
    let widths = narrowest(domain, &runs, k);
    let by_neighbours: f64 = runs.iter().zip(&widths).map(|(run, width)| run.1 as f64 * width).sum();
    if !atoms.have_boxes() {
        return by_neighbours;
    }
    let shown = |&atom: &u32| {
        let (lo, hi) = atoms.interval(atom, column);
        f64::from(atoms.rows.weight(atom)) * domain.width(lo, hi)
    };
    by_neighbours.max(members.iter().map(shown).sum())
}

/// The codes of some atoms in a column, ascending, and how many rows hold each.
pub(super) fn runs_of(atoms: &Atoms<'_>, members: &[u32], column: usize) -> Vec<(u32, u64)> {
    let cells = members.iter().map(|&atom| (atoms.rows.cells(atom)[column], atoms.rows.weight(atom)));
    let mut runs = Vec::new();
    count_runs(cells, (0, atoms.domains[column].n_codes().saturating_sub(1)), &mut Vec::new(), &mut runs);
    runs
}

/// For each run, the width of the narrowest interval that contains it and weighs at least k. If all runs together weigh
/// less than k, the width of the interval of all runs.
pub(super) fn narrowest(domain: &Domain, runs: &[(u32, u64)], k: u64) -> Vec<f64> {
    let Some(&(last, _)) = runs.last() else { return Vec::new() };
    // The narrowest interval that starts at run `start` ends at run `ends[start]`.
    let mut ends = Vec::with_capacity(runs.len());
    let (mut end, mut weight) = (0, 0);
    for start in 0..runs.len() {
        while end < runs.len() && weight < k {
            weight += runs[end].1;
            end += 1;
        }
        if weight < k {
            break;
        }
        ends.push(end - 1);
        weight -= runs[start].1;
    }
    if ends.is_empty() {
        return vec![domain.width(runs[0].0, last); runs.len()];
    }
    let width = |start: usize, end: usize| domain.width(runs[start].0, runs[end].0);
    // Starts whose interval reaches the run, narrowest first.
    let mut reaching: VecDeque<(usize, f64)> = VecDeque::new();
    let mut short = 0;
    let of_run = |run: usize| {
        if let Some(&end) = ends.get(run) {
            let opened = width(run, end);
            while reaching.back().is_some_and(|&(_, other)| other >= opened) {
                reaching.pop_back();
            }
            reaching.push_back((run, opened));
        }
        // Of the intervals that end before the run, the last one is the narrowest after it is stretched to the run.
        while short < ends.len() && ends[short] < run {
            short += 1;
        }
        while reaching.front().is_some_and(|&(start, _)| start < short) {
            reaching.pop_front();
        }
        let stretched = short.checked_sub(1).map_or(f64::INFINITY, |start| width(start, run));
        reaching.front().map_or(f64::INFINITY, |&(_, narrowest)| narrowest).min(stretched)
    };
    (0..runs.len()).map(of_run).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kohort_model::{Column, Role, ValueType};
    use proptest::prelude::*;

    fn domain(n: u32, value_type: ValueType) -> Domain {
        let texts: Vec<String> = (0..n).map(|number| format!("{number:02}")).collect();
        let cells = texts.iter().map(|text| Some(text.as_str())).chain([None]);
        Domain::of(&Column::from_cells("c", Role::Quasi, cells).typed(value_type)).unwrap().0
    }

    proptest! {
        #[test]
        fn the_narrowest_interval_is_the_one_all_intervals_give(
            weights in prop::collection::vec(0u64..4, 2..12), k in 1u64..9, ordered: bool,
        ) {
            let value_type = if ordered { ValueType::Integer } else { ValueType::Text };
            let domain = domain(weights.len() as u32 - 1, value_type);
            let runs: Vec<(u32, u64)> =
                weights.iter().enumerate().filter(|(_, weight)| **weight > 0).map(|(code, &weight)| (code as u32, weight)).collect();
            let all = runs.len();
            let brute = |run: usize| {
                let mut least = f64::INFINITY;
                for start in 0..=run {
                    for end in run..all {
                        if runs[start..=end].iter().map(|run| run.1).sum::<u64>() >= k {
                            least = least.min(domain.width(runs[start].0, runs[end].0));
                        }
                    }
                }
                least
            };
            prop_assume!(runs.iter().map(|run| run.1).sum::<u64>() >= k);
            prop_assert_eq!(narrowest(&domain, &runs, k), (0..all).map(brute).collect::<Vec<_>>());
        }
    }
}
