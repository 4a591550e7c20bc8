//! [`Search`]: which rows become bodies.
//!
//! Bottom-up over a tree, a node's rows become one butterfly if that loses less than what its two sides lose.
//!
//! # Guarantee
//! Every body satisfies the plan's rules. The loss is never higher than with the tree's leaves as classes, and with
//! nested splits never higher than with super ones.
//! # Paper
//! `[PTL+08]` section 4.2.4, figure 3
//! # Deviations
//! The paper gives up all ancestors of a node once the shared columns lose more there than the whole table does in all.
//! Here each node compares the loss of the shared columns alone with the present loss of its own rows. That takes
//! constant time, because boxes grow from child to parent, and it skips more nodes, but none that could pay. Below a
//! node whose rows agree on all shared columns no smaller bodies are tried, because the larger one has all their
//! choices and more.
//! # Cost
//! a partition of the wings per node that the bound lets through

use std::sync::atomic::{AtomicU64, Ordering};

use kohort_model::Progress;
use rayon::prelude::*;

use super::atoms::Atoms;
use super::bound::least_loss_of_wings;
use super::butterfly::{Butterfly, Piece, Wing};
use super::plan::{Plan, Split};
use super::tree::BodyTree;
use crate::encode::bounds::{self, Bounds};
use crate::partition::{CutNode, Mondrian, Partitioner};

/// Subtrees with at most one in this many rows are given to threads as a whole.
const SHARE_OF_A_JOB: u64 = 32;

/// If cutting the body's columns first loses less than this share of the loss of classes in all columns, the tree of
/// classes in all columns is not searched. That search takes longest for tables in which bodies gain much, and there it
/// gains less.
pub(super) const GOOD_ENOUGH: f64 = 0.75;

/// Searches for bodies.
pub(super) struct Search<'a> {
    pub(super) atoms: &'a Atoms<'a>,
    /// Partitions while bodies are sought.
    pub(super) quick: Mondrian,
    /// Partitions the wings of the bodies that were chosen, if a second partitioner is used for that.
    pub(super) thorough: Option<&'a dyn Partitioner>,
    pub(super) trees: Trees,
    pub(super) counts: &'a BoundCounts,
    /// Asked before each butterfly is built, because building them takes nearly all of the time. A search that is cancelled
    /// builds no more of them, and its caller drops what was found.
    pub(super) progress: &'a dyn Progress,
}

/// Which trees are searched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Trees {
    /// The tree of classes in all columns.
    OfClasses,
    /// The tree that cuts the body's columns first. It may lose more than the classes do.
    BodyFirst,
    /// Both trees. The tree of classes is skipped if the other one loses less than this share of the loss of classes in
    /// all columns, because it is then not worth the time.
    Both { good_enough: f64 },
}

/// How often the bound was computed, how often it allowed a butterfly, and how often that butterfly was kept.
#[derive(Debug, Default)]
pub(super) struct BoundCounts {
    pub(super) asked: AtomicU64,
    pub(super) let_through: AtomicU64,
    pub(super) taken: AtomicU64,
}

/// Bodies that together hold all rows.
#[derive(Default)]
pub(super) struct Solution<'p> {
    pub(super) loss: f64,
    pub(super) bodies: Vec<Body<'p>>,
}

/// Some rows and what they show: a butterfly, or else a class in all columns of the plan.
pub(super) struct Body<'p> {
    pub(super) atoms: Vec<u32>,
    loss: f64,
    columns: &'p [usize],
    butterfly: Option<Butterfly<'p>>,
}

/// The facts about a leaf or node that are known before anything is built.
#[derive(Clone)]
struct NodeOutline {
    weight: u64,
    /// The bounds in the columns of the body.
    bounds: Bounds,
}

impl<'p> Body<'p> {
    fn class(atoms: &Atoms<'_>, members: &[u32], columns: &'p [usize]) -> Body<'p> {
        let width = atoms.perimeter(&atoms.bounds(members, columns), columns);
        let loss = width * atoms.rows.weight_of(members) as f64;
        Body { atoms: members.to_vec(), loss, columns, butterfly: None }
    }

    /// The boxes that its atoms show.
    pub(super) fn into_pieces(self, atoms: &Atoms<'_>) -> Vec<Piece<'p>> {
        let mut pieces = Vec::new();
        match self.butterfly {
            Some(butterfly) => butterfly.add_pieces(atoms, &self.atoms, &mut pieces),
            None => pieces.push(Piece::new(atoms, &self.atoms, self.columns)),
        }
        pieces
    }
}

impl<'p> Solution<'p> {
    fn new(bodies: Vec<Body<'p>>) -> Solution<'p> {
        Solution { loss: bodies.iter().map(|body| body.loss).sum(), bodies }
    }

    fn or_less(self, other: Solution<'p>) -> Solution<'p> {
        if other.loss < self.loss { other } else { self }
    }
}

impl NodeOutline {
    fn unite(&self, other: &NodeOutline) -> NodeOutline {
        let mut bounds = self.bounds.clone();
        bounds::unite(&mut bounds, &other.bounds);
        NodeOutline { weight: self.weight + other.weight, bounds }
    }

    fn agrees(&self) -> bool {
        self.bounds.iter().all(|(lo, hi)| lo == hi)
    }
}

impl Search<'_> {
    /// Finds bodies for some atoms, which satisfy the plan's rules together. `classes` is a tree of classes in all of
    /// the plan's columns, if the caller has one already.
    pub(super) fn solve<'p>(&self, members: &[u32], plan: &'p Plan, classes: Option<BodyTree>) -> Solution<'p> {
        let classes = classes.unwrap_or_else(|| BodyTree::of_all_columns(self.atoms, members, plan, &self.quick));
        let Some(split) = &plan.split else {
            let leaves = (0..classes.n_leaves() as u32).map(|leaf| classes.members(leaf, leaf + 1));
            return Solution::new(leaves.map(|leaf| Body::class(self.atoms, leaf, &plan.columns)).collect());
        };
        let flat = self.split(members, plan, split, &classes);
        match &plan.nested {
            Some(nested) => flat.or_less(self.split(members, plan, nested, &classes)),
            None => flat,
        }
    }

    fn split<'p>(&self, members: &[u32], plan: &'p Plan, split: &'p Split, classes: &BodyTree) -> Solution<'p> {
        // Compare finished results: the thorough partitioner may make much better wings than the quick one.
        let of_classes = || self.finish(self.best(classes, plan, split));
        let body_first = || {
            let tree = BodyTree::body_first(self.atoms, members, plan, split, &self.quick);
            self.finish(self.best(&tree, plan, split))
        };
        match self.trees {
            Trees::OfClasses => of_classes(),
            Trees::BodyFirst => body_first(),
            Trees::Both { good_enough } => {
                let body_first = body_first();
                if body_first.loss < good_enough * self.loss_of_leaves(classes, plan) {
                    body_first
                } else {
                    of_classes().or_less(body_first)
                }
            }
        }
    }

    /// The result of a separate search for a group of audiences inside a body.
    fn solve_group<'p>(&self, members: &[u32], group: &'p Plan) -> Wing<'p> {
        let solution = self.solve(members, group, None);
        let pieces = solution.bodies.into_iter().flat_map(|inner| inner.into_pieces(self.atoms));
        Wing::of_pieces(solution.loss, pieces.collect())
    }

    /// The loss if each leaf of a tree is a class.
    fn loss_of_leaves(&self, tree: &BodyTree, plan: &Plan) -> f64 {
        let loss = |leaf: u32| Body::class(self.atoms, tree.members(leaf, leaf + 1), &plan.columns).loss;
        let losses: Vec<f64> = (0..tree.n_leaves() as u32).into_par_iter().map(loss).collect();
        losses.iter().sum()
    }

    /// Builds the wings of chosen butterflies once more, by the thorough partitioner and for groups by a search of
    /// their own, and keeps what loses less.
    fn finish<'p>(&self, chosen: Solution<'p>) -> Solution<'p> {
        let finished = |mut body: Body<'p>| {
            if let Some(butterfly) = &mut body.butterfly
                && !self.progress.is_cancelled()
            {
                let of_group = |group| self.solve_group(&body.atoms, group);
                butterfly.improve(self.atoms, &body.atoms, self.thorough, of_group);
                body.loss = butterfly.loss();
            }
            body
        };
        Solution::new(chosen.bodies.into_par_iter().map(finished).collect())
    }

    /// The best bodies that runs of leaves can be.
    fn best<'p>(&self, tree: &BodyTree, plan: &'p Plan, split: &'p Split) -> Solution<'p> {
        let outline = |leaf: u32| {
            let members = tree.members(leaf, leaf + 1);
            NodeOutline { weight: self.atoms.rows.weight_of(members), bounds: self.atoms.bounds(members, &split.body) }
        };
        let leaves: Vec<NodeOutline> = (0..tree.n_leaves() as u32).into_par_iter().map(outline).collect();
        let nodes = outlines_of_nodes(tree, &leaves);
        let job = BodyJob { search: self, tree, plan, split, leaves: &leaves, nodes: &nodes };
        // The sum of all bodies again, in their order: sums of subtrees are rounded differently.
        Solution::new(job.run().bodies)
    }
}

/// For each node, the outline of all its leaves.
fn outlines_of_nodes(tree: &BodyTree, leaves: &[NodeOutline]) -> Vec<NodeOutline> {
    let mut at: Vec<NodeOutline> = leaves.to_vec();
    let mut outlines: Vec<NodeOutline> = Vec::with_capacity(tree.nodes.len());
    // In pre-order children come after their parents. The outline of a subtree is kept at its first leaf.
    for node in tree.nodes.iter().rev() {
        let united = at[node.first as usize].unite(&at[node.middle as usize]);
        at[node.first as usize] = united.clone();
        outlines.push(united);
    }
    outlines.reverse();
    outlines
}

/// The search of one tree.
struct BodyJob<'j, 'p> {
    search: &'j Search<'j>,
    tree: &'j BodyTree,
    plan: &'p Plan,
    split: &'p Split,
    leaves: &'j [NodeOutline],
    nodes: &'j [NodeOutline],
}

/// The leaves and nodes below a node whose rows agree on the whole body. They are not tried.
struct Covered {
    leaves: Vec<bool>,
    nodes: Vec<bool>,
}

impl<'p> BodyJob<'_, 'p> {
    fn run(&self) -> Solution<'p> {
        let covered = self.covered();
        let total: u64 = self.leaves.iter().map(|leaf| leaf.weight).sum();
        // Small subtrees, and the leaves that are in none of them, each as a range of leaves and a range of nodes.
        // `upper` are the nodes above the subtrees.
        let mut subtrees: Vec<(u32, u32, usize, usize)> = Vec::new();
        let mut upper: Vec<usize> = Vec::new();
        let mut next_leaf = 0;
        for (position, node) in self.tree.nodes.iter().enumerate() {
            if node.end <= next_leaf {
                continue;
            }
            if self.nodes[position].weight * SHARE_OF_A_JOB > total {
                upper.push(position);
                continue;
            }
            subtrees.extend((next_leaf..node.first).map(|leaf| (leaf, leaf + 1, 0, 0)));
            // A binary tree has one inner node less than leaves.
            subtrees.push((node.first, node.end, position, position + (node.end - node.first) as usize - 1));
            next_leaf = node.end;
        }
        subtrees.extend((next_leaf..self.leaves.len() as u32).map(|leaf| (leaf, leaf + 1, 0, 0)));
        let mut at: Vec<Option<Solution<'p>>> = Vec::new();
        at.resize_with(self.leaves.len(), || None);
        let solved: Vec<Solution<'p>> = subtrees
            .par_iter()
            .map(|&(first, end, from, to)| {
                let mut at: Vec<Option<Solution<'p>>> =
                    (first..end).map(|leaf| Some(self.leaf(leaf, covered.leaves[leaf as usize]))).collect();
                for position in (from..to).rev() {
                    self.node(position, covered.nodes[position], &mut at, first);
                }
                at[0].take().expect("the first leaf's place holds what its subtree has come to")
            })
            .collect();
        for (subtree, best) in subtrees.iter().zip(solved) {
            at[subtree.0 as usize] = Some(best);
        }
        for position in upper.into_iter().rev() {
            self.node(position, covered.nodes[position], &mut at, 0);
        }
        at[0].take().expect("the first leaf's place holds what the tree has come to")
    }

    fn covered(&self) -> Covered {
        let mut covered = Covered { leaves: vec![false; self.leaves.len()], nodes: vec![false; self.nodes.len()] };
        let mut until = 0;
        for (position, node) in self.tree.nodes.iter().enumerate() {
            covered.nodes[position] = node.first < until;
            if node.first >= until && self.nodes[position].agrees() {
                until = node.end;
                covered.leaves[node.first as usize..node.end as usize].fill(true);
            }
        }
        covered
    }

    fn leaf(&self, leaf: u32, covered: bool) -> Solution<'p> {
        let members = self.tree.members(leaf, leaf + 1);
        let mut best = Solution::new(vec![Body::class(self.search.atoms, members, &self.plan.columns)]);
        if !covered {
            self.improve(&mut best, leaf, leaf + 1, &self.leaves[leaf as usize]);
        }
        best
    }

    /// Joins what the two sides of a node have come to, `at` the places of leaves from `offset` on.
    fn node(&self, position: usize, covered: bool, at: &mut [Option<Solution<'p>>], offset: u32) {
        let CutNode { first, middle, end, .. } = self.tree.nodes[position];
        let mut take = |leaf: u32| at[(leaf - offset) as usize].take().expect("children come before their parents");
        let (mut best, mut second) = (take(first), take(middle));
        let loss = best.loss + second.loss;
        if best.bodies.len() < second.bodies.len() {
            std::mem::swap(&mut best.bodies, &mut second.bodies);
        }
        best.bodies.append(&mut second.bodies);
        best.loss = loss;
        if !covered {
            self.improve(&mut best, first, end, &self.nodes[position]);
        }
        at[(first - offset) as usize] = Some(best);
    }

    /// Makes leaves one butterfly if that loses less than they do now.
    fn improve(&self, best: &mut Solution<'p>, first: u32, end: u32, outline: &NodeOutline) {
        let Search { atoms, counts, quick, .. } = self.search;
        let of_body = atoms.perimeter(&outline.bounds, &self.split.body) * outline.weight as f64;
        if of_body >= best.loss || self.search.progress.is_cancelled() {
            return;
        }
        let members = self.tree.members(first, end);
        let agrees = outline.agrees();
        if !agrees {
            counts.asked.fetch_add(1, Ordering::Relaxed);
            if of_body + least_loss_of_wings(atoms, members, self.split) >= best.loss {
                return;
            }
            counts.let_through.fetch_add(1, Ordering::Relaxed);
        }
        // If the rows agree on the body, a separate search for the groups of audiences is worth its time. Otherwise
        // this body is one of many candidates, and an estimate suffices.
        let butterfly = if agrees {
            let of_group = |group, _| Some(self.search.solve_group(members, group));
            Butterfly::build(atoms, members, self.split, quick, &of_group)
        } else {
            Butterfly::build_flat(atoms, members, self.split, quick)
        };
        let Some(butterfly) = butterfly else { return };
        let loss = butterfly.loss();
        if loss < best.loss {
            if !agrees {
                counts.taken.fetch_add(1, Ordering::Relaxed);
            }
            let (atoms, columns) = (members.to_vec(), self.plan.columns.as_slice());
            *best = Solution::new(vec![Body { atoms, loss, columns, butterfly: Some(butterfly) }]);
        }
    }
}
