//! Where one column of a node may be cut.
//!
//! A cut puts the rows whose code lies in an interval on one side and the others on the other. On numbers and dates
//! the interval is everything up to the boundary nearest the median. On a tree it follows the children of the
//! smallest node that holds all values: first the child whose rows gain most by being told from the rest, provided
//! that it is not small, then the boundary between children nearest the median, then the boundary between any two
//! values nearest it, which still tells something where one child is too small to stand alone.

use crate::encode::{Domain, Tree};

/// A child is told from the rest by itself only if it weighs at least this share of the node: otherwise a node of
/// many small children would be peeled one by one, in quadratic time.
const SMALLEST_PEEL: u64 = 8;

/// Rows with codes in `lo..=hi` go to the first side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) lo: u32,
    pub(super) hi: u32,
    /// What the first side weighs.
    pub(super) weight: u64,
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

/// Everything up to the boundary that leaves the two sides closest in weight; the first of equals. The last run is
/// never on the first side where there are two.
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
