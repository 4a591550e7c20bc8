//! Where one column of a node may be cut.
//!
//! A cut puts the rows whose code lies in an interval on one side and the others on the other. On numbers and dates the
//! interval is everything up to the boundary nearest the median. On a tree, the children of the smallest node that
//! contains all values are tried in this order: the child whose rows gain most by being separated from the rest, if it
//! is not small; the boundary between children nearest the median; the boundary between any two values nearest the
//! median. The last still separates something if one child is too small for a class.

use crate::encode::{Domain, Tree};

/// A child is separated from the rest by itself only if its weight times this is at least that of the node: otherwise the
/// many small children of a node would be peeled off one by one, in quadratic time.
const SMALLEST_PEEL: u64 = 8;

/// Rows with codes in `lo..=hi` go to the first side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) lo: u32,
    pub(super) hi: u32,
    /// What the first side weighs.
    pub(super) weight: u64,
}

/// The codes of some cells, each with its weight, added up and ascending. All codes are in `lo..=hi`. Codes are counted where
/// they are dense and sorted where they are sparse; `scratch` is memory that the caller reuses.
#[inline]
pub(crate) fn count_runs(
    cells: impl ExactSizeIterator<Item = (u32, u32)>,
    (lo, hi): (u32, u32),
    scratch: &mut Vec<u64>,
    runs: &mut Vec<(u32, u64)>,
) {
    let span = (hi - lo) as usize + 1;
    runs.clear();
    scratch.clear();
    if span <= 2 * cells.len() + 16 {
        scratch.resize(span, 0);
        cells.for_each(|(code, weight)| scratch[(code - lo) as usize] += u64::from(weight));
        let counted = scratch.iter().enumerate().filter(|(_, weight)| **weight > 0);
        runs.extend(counted.map(|(offset, &weight)| (lo + offset as u32, weight)));
    } else {
        // Code and weight in one word sort faster than a pair.
        scratch.extend(cells.map(|(code, weight)| u64::from(code) << 32 | u64::from(weight)));
        scratch.sort_unstable();
        for cell in scratch {
            let (code, weight) = ((*cell >> 32) as u32, *cell & u64::from(u32::MAX));
            match runs.last_mut() {
                Some(run) if run.0 == code => run.1 += weight,
                _ => runs.push((code, weight)),
            }
        }
    }
}

/// The cuts worth trying on a column, best first. `runs` are the codes of the node with their weights, ascending,
/// at least two.
pub(super) fn candidates(domain: &Domain, runs: &[(u32, u64)], total: u64, cuts: &mut Vec<Cut>) {
    cuts.clear();
    let last = runs[runs.len() - 1].0;
    match domain.tree() {
        Some(tree) => tree_cuts(domain, tree, runs, total, cuts),
        None if Some(last) == domain.null() => {
            let null = runs.len() - 1;
            push(cuts, Cut { lo: last, hi: last, weight: runs[null].1 });
            if null > 1 {
                push(cuts, balanced(runs[..null].iter().copied(), runs[0].0, total));
            }
        }
        None => push(cuts, balanced(runs.iter().copied(), runs[0].0, total)),
    }
}

fn tree_cuts(domain: &Domain, tree: &Tree, runs: &[(u32, u64)], total: u64, cuts: &mut Vec<Cut>) {
    let (first, last) = (runs[0].0, runs[runs.len() - 1].0);
    let node = tree.common_ancestor(first, last);
    let whole = domain.width(first, last);
    // Groups of runs by the child of the node they are below.
    let firsts = tree.child_firsts(node);
    let mut groups: Vec<Cut> = Vec::new();
    let mut next_child_first = 0;
    for &(code, weight) in runs {
        match groups.last_mut() {
            Some(group) if code < next_child_first => {
                group.hi = code;
                group.weight += weight;
            }
            _ => {
                let child = firsts.partition_point(|&first| first <= code);
                next_child_first = firsts.get(child).copied().unwrap_or(u32::MAX);
                groups.push(Cut { lo: code, hi: code, weight });
            }
        }
    }
    let gain = |group: &Cut| group.weight as f64 * (whole - domain.width(group.lo, group.hi));
    let best = groups.iter().copied().reduce(|best, group| if gain(&group) > gain(&best) { group } else { best });
    if let Some(best) = best.filter(|best| best.weight * SMALLEST_PEEL >= total) {
        push(cuts, best);
    }
    push(cuts, balanced(groups.iter().map(|group| (group.hi, group.weight)), first, total));
    if groups.len() < runs.len() {
        push(cuts, balanced(runs.iter().copied(), first, total));
    }
}

fn push(cuts: &mut Vec<Cut>, cut: Cut) {
    if !cuts.contains(&cut) {
        cuts.push(cut);
    }
}

/// Everything up to the boundary that leaves the two sides closest in weight; the first of equals. If there are two
/// runs or more, the last run is never on the first side.
fn balanced(runs: impl Iterator<Item = (u32, u64)> + Clone, lo: u32, total: u64) -> Cut {
    let mut best = Cut { lo, hi: lo, weight: 0 };
    let mut weight = 0;
    for (hi, run) in runs {
        weight += run;
        if best.weight > 0 && weight.abs_diff(total - weight) >= best.weight.abs_diff(total - best.weight) {
            break;
        }
        best = Cut { lo, hi, weight };
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use kohort_model::{Column, Hierarchy, Role, ValueType};

    fn cuts(domain: &Domain, runs: &[(u32, u64)]) -> Vec<(u32, u32)> {
        let mut cuts = Vec::new();
        candidates(domain, runs, runs.iter().map(|run| run.1).sum(), &mut cuts);
        cuts.iter().map(|cut| (cut.lo, cut.hi)).collect()
    }

    #[test]
    fn numbers_are_cut_next_to_their_median() {
        let column = Column::from_cells("n", Role::Quasi, ["1", "2", "3", "4"].map(Some)).typed(ValueType::Integer);
        let (domain, _) = Domain::of(&column).unwrap();
        assert_eq!(cuts(&domain, &[(0, 1), (1, 1), (2, 1), (3, 1)]), [(0, 1)]);
        assert_eq!(cuts(&domain, &[(0, 9), (1, 1), (2, 1), (3, 1)]), [(0, 0)]);
        assert_eq!(cuts(&domain, &[(0, 1), (3, 9)]), [(0, 0)]);
    }

    #[test]
    fn null_is_told_from_numbers_first() {
        let column = Column::from_cells("n", Role::Quasi, [Some("1"), Some("2"), None]).typed(ValueType::Integer);
        let (domain, _) = Domain::of(&column).unwrap();
        assert_eq!(cuts(&domain, &[(0, 4), (1, 4), (2, 1)]), [(2, 2), (0, 0)]);
    }

    #[test]
    fn a_tree_is_cut_by_its_most_rewarding_child_then_between_children_then_anywhere() {
        let text = "a;x;*\nb;x;*\nc;y;*\nd;y;*\ne;z;*\n";
        let column = Column::from_cells("t", Role::Quasi, ["a", "b", "c", "d", "e"].map(Some))
            .with_hierarchy(Hierarchy::from_paths(text).unwrap());
        let (domain, _) = Domain::of(&column).unwrap();
        assert_eq!(cuts(&domain, &[(0, 1), (1, 1), (2, 5), (3, 5), (4, 4)]), [(2, 3), (0, 3), (0, 2)]);
    }
}
