//! [`BodyTree`]: binary trees whose nodes may become bodies.
//!
//! # Paper
//! `[PTL+08]` section 4.2.2
//! # Deviations
//! There is a second tree beside that of the union's classes. It first cuts only columns that the audiences share, as
//! long as both sides satisfy the rules. Leaves that still differ there are then cut in all columns.

use rayon::prelude::*;

use super::atoms::Atoms;
use super::plan::{Plan, Split};
use crate::encode::bounds;
use crate::lists::Lists;
use crate::partition::{CutNode, CutTree, Mondrian};

/// Atoms in an order in which every node of a binary tree is a run of them.
pub(super) struct BodyTree {
    /// The atoms of each leaf, which may be one class for all audiences.
    leaves: Lists,
    /// Inner nodes as runs of leaves, in pre-order.
    pub(super) nodes: Vec<CutNode>,
}

impl BodyTree {
    /// A tree of classes that came with their cuts, or else of classes put together by the nearness of their boxes.
    pub(super) fn of_classes(atoms: &Atoms<'_>, leaves: &[Vec<u32>], cuts: Option<&CutTree>) -> BodyTree {
        match cuts {
            Some(cuts) => BodyTree::of_leaves(leaves, cuts.nodes.clone()),
            None => cluster(atoms, leaves),
        }
    }

    /// The classes that cuts in all columns lead to. If these atoms don't satisfy the rules together, they are one
    /// leaf.
    pub(super) fn of_all_columns(atoms: &Atoms<'_>, members: &[u32], plan: &Plan, mondrian: &Mondrian) -> BodyTree {
        let projection = atoms.project(members, &plan.columns);
        let Some(mut classes) = projection.partition(&plan.domains, &plan.rules, mondrian) else {
            return BodyTree::of_leaves(&[members.to_vec()], Vec::new());
        };
        let cuts = classes.tree.take();
        let leaves: Vec<Vec<u32>> = classes.iter().map(|class| projection.atoms(class)).collect();
        BodyTree::of_classes(atoms, &leaves, cuts.as_ref())
    }

    /// Cuts in the columns of the body first, then in all.
    pub(super) fn body_first(
        atoms: &Atoms<'_>,
        members: &[u32],
        plan: &Plan,
        split: &Split,
        mondrian: &Mondrian,
    ) -> BodyTree {
        let projection = atoms.project(members, &split.body);
        let classes =
            if split.body.is_empty() { None } else { projection.partition(&split.domains, &plan.rules, mondrian) };
        let Some(mut classes) = classes else {
            return BodyTree::of_leaves(&[members.to_vec()], Vec::new());
        };
        let cuts = classes.tree.take().map_or_else(Vec::new, |tree| tree.nodes);
        let twice = 2 * u64::from(plan.rules.k());
        let grow = |class: usize| {
            let leaf = projection.atoms(classes.rows(class));
            let bounds = atoms.bounds(&leaf, &split.body);
            if bounds.iter().all(|(lo, hi)| lo == hi) || atoms.rows.weight_of(&leaf) < twice {
                BodyTree::of_leaves(&[leaf], Vec::new())
            } else {
                BodyTree::of_all_columns(atoms, &leaf, plan, mondrian)
            }
        };
        let grown: Vec<BodyTree> = (0..classes.len()).into_par_iter().map(grow).collect();
        graft(&cuts, grown)
    }

    fn of_leaves(leaves: &[Vec<u32>], nodes: Vec<CutNode>) -> BodyTree {
        BodyTree { leaves: leaves.iter().map(|leaf| leaf.iter().copied()).collect(), nodes }
    }

    pub(super) fn n_leaves(&self) -> usize {
        self.leaves.len()
    }

    /// The atoms of a run of leaves.
    pub(super) fn members(&self, first: u32, end: u32) -> &[u32] {
        self.leaves.run(first as usize..end as usize)
    }
}

/// Puts a tree in the place of each leaf of another.
fn graft(cuts: &[CutNode], trees: Vec<BodyTree>) -> BodyTree {
    let mut firsts = vec![0];
    let (mut leaves, mut nodes) = (Lists::default(), Vec::new());
    for tree in trees {
        let first = firsts[firsts.len() - 1];
        firsts.push(first + tree.n_leaves() as u32);
        leaves.append(&tree.leaves);
        nodes.extend(tree.nodes.iter().map(|node| node.moved(|leaf| leaf + first)));
    }
    nodes.extend(cuts.iter().map(|cut| cut.moved(|leaf| firsts[leaf as usize])));
    nodes.sort_unstable_by_key(|node| (node.first, std::cmp::Reverse(node.end)));
    BodyTree { leaves, nodes }
}

/// Halves the classes again and again where their centres lie widest apart, at the weighted median.
fn cluster(atoms: &Atoms<'_>, leaves: &[Vec<u32>]) -> BodyTree {
    let columns: Vec<usize> = (0..atoms.domains.len()).collect();
    let centres: Vec<Vec<u32>> = leaves.iter().map(|leaf| bounds::middle(&atoms.bounds(leaf, &columns))).collect();
    let weights: Vec<u64> = leaves.iter().map(|leaf| atoms.rows.weight_of(leaf)).collect();
    let mut order: Vec<usize> = (0..leaves.len()).collect();
    let mut nodes = Vec::with_capacity(leaves.len());
    let mut open = vec![(0, order.len())];
    while let Some((first, end)) = open.pop() {
        if end - first < 2 {
            continue;
        }
        let run = &mut order[first..end];
        let width = |column: usize| {
            let codes = run.iter().map(|&leaf| centres[leaf][column]);
            let (lo, hi) = codes.map(|code| (code, code)).fold(bounds::EMPTY, bounds::both);
            atoms.domains[column].width(lo, hi)
        };
        let widths: Vec<f64> = columns.iter().map(|&column| width(column)).collect();
        let widest = columns.iter().copied().rev().max_by(|&a, &b| widths[a].total_cmp(&widths[b])).unwrap_or(0);
        run.sort_unstable_by_key(|&leaf| (centres[leaf][widest], leaf));
        let half = run.iter().map(|&leaf| weights[leaf]).sum::<u64>() / 2;
        let mut weight = 0;
        let reached = run.iter().position(|&leaf| {
            weight += weights[leaf];
            weight >= half
        });
        let middle = first + reached.map_or(1, |position| position + 1).clamp(1, end - first - 1);
        nodes.push(CutNode { first: first as u32, middle: middle as u32, end: end as u32, column: widest as u32 });
        open.push((middle, end));
        open.push((first, middle));
    }
    let ordered: Vec<Vec<u32>> = order.into_iter().map(|leaf| leaves[leaf].clone()).collect();
    BodyTree::of_leaves(&ordered, nodes)
}
