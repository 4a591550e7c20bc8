//! [`Search`]: which rows become bodies.
//!
//! Bottom-up over a tree, a node's rows become one butterfly where that loses less than what its two sides lose.
//!
//! # Guarantee
//! every body stands under the plan's rules; no more loss than the tree's leaves as classes; on nested splits no more
//! than on super ones
//! # Paper
//! `[PTL+08]` section 4.2.4, figure 3
//! # Deviations
//! the paper gives up all ancestors of a node once the shared columns lose more there than the whole table does in all.
//! Here each node compares what the shared columns alone lose with what its own rows lose now, which takes constant
//! time: boxes grow from child to parent. That skips more, and nothing that could pay. Below a node whose rows agree on
//! all shared columns no smaller bodies are tried: the larger one has their choices and more
//! # Cost
//! a partition of the wings per node that the bound lets through

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use super::atoms::Atoms;
use super::bound::least_loss_of_wings;
use super::butterfly::{Butterfly, Piece, Wing};
use super::plan::{Plan, Split};
use super::tree::BodyTree;
use crate::partition::{CutNode, Mondrian, Partitioner};

/// Subtrees of at most this share of the rows are given to threads as a whole.
const SHARE_OF_A_JOB: u64 = 32;

/// Where cutting the body's columns first loses less than this share of what classes in all columns lose, the tree of
/// these is not searched: it takes longest where it can gain most, and there it gains less.
pub(super) const GOOD_ENOUGH: f64 = 0.75;

/// What searches share.
pub(super) struct Search<'a> {
    pub(super) atoms: &'a Atoms<'a>,
    /// Partitions while bodies are sought.
    pub(super) quick: Mondrian,
    /// Partitions the wings of the bodies that were chosen, where that is another.
    pub(super) thorough: Option<&'a dyn Partitioner>,
    pub(super) trees: Trees,
    pub(super) counts: &'a Counts,
}

/// Which trees are searched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Trees {
    /// That of classes in all columns.
    OfClasses,
    /// That of cuts in the columns of the body first. It may lose more than the classes do.
    BodyFirst,
    /// Both, unless the second loses so little that the first is not worth the time: than this share of what classes
    /// in all columns lose.
    Both { good_enough: f64 },
}

/// How often the bound was asked, and what came of it.
#[derive(Debug, Default)]
pub(super) struct Counts {
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

/// A run of leaves that is one body: a butterfly, or else a class.
struct Run<'p> {
    first: u32,
    end: u32,
    butterfly: Option<Butterfly<'p>>,
}

/// What a subtree has come to.
struct Best<'p> {
    loss: f64,
    runs: Vec<Run<'p>>,
}

/// What is known of a leaf or node before anything is built.
#[derive(Clone)]
struct Outline {
    weight: u64,
    /// In the columns of the body.
    bounds: Vec<(u32, u32)>,
}

impl<'p> Body<'p> {
    fn class(atoms: &Atoms<'_>, members: &[u32], columns: &'p [usize]) -> Body<'p> {
        let width = atoms.perimeter(&atoms.bounds(members, columns), columns);
        let loss = width * atoms.rows.weight_of(members) as f64;
        Body { atoms: members.to_vec(), loss, columns, butterfly: None }
    }

    /// What its atoms show.
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

impl Outline {
    fn unite(&self, other: &Outline) -> Outline {
        let united = self.bounds.iter().zip(&other.bounds).map(|(a, b)| (a.0.min(b.0), a.1.max(b.1)));
        Outline { weight: self.weight + other.weight, bounds: united.collect() }
    }

    fn agrees(&self) -> bool {
        self.bounds.iter().all(|(lo, hi)| lo == hi)
    }
}

impl Search<'_> {
    /// Bodies for some atoms, which stand under the plan's rules together. `classes` is a tree of classes for all of
    /// the plan's columns, where there is one already.
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
        // Compared when they are finished: the quick partitioner may be far from what the thorough one makes of wings.
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

    /// What a search of its own finds for a group of audiences in a body.
    fn solve_group<'p>(&self, members: &[u32], group: &'p Plan) -> Wing<'p> {
        let solution = self.solve(members, group, None);
        let pieces = solution.bodies.into_iter().flat_map(|inner| inner.into_pieces(self.atoms));
        Wing::of_pieces(solution.loss, pieces.collect())
    }

    /// What the leaves of a tree lose as classes.
    fn loss_of_leaves(&self, tree: &BodyTree, plan: &Plan) -> f64 {
        let loss = |leaf: u32| Body::class(self.atoms, tree.members(leaf, leaf + 1), &plan.columns).loss;
        let losses: Vec<f64> = (0..tree.n_leaves() as u32).into_par_iter().map(loss).collect();
        losses.iter().sum()
    }

    /// Builds the wings of chosen butterflies once more, by the thorough partitioner and for groups by a search of
    /// their own, and keeps what loses less.
    fn finish<'p>(&self, chosen: Solution<'p>) -> Solution<'p> {
        let finished = |mut body: Body<'p>| {
            if let Some(butterfly) = &mut body.butterfly {
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
            Outline { weight: self.atoms.rows.weight_of(members), bounds: self.atoms.bounds(members, &split.body) }
        };
        let leaves: Vec<Outline> = (0..tree.n_leaves() as u32).into_par_iter().map(outline).collect();
        let nodes = outlines_of_nodes(tree, &leaves);
        let job = BodyJob { search: self, tree, plan, split, leaves: &leaves, nodes: &nodes };
        let best = job.run();
        let body = |run: Run<'p>| {
            let members = tree.members(run.first, run.end);
            match run.butterfly {
                None => Body::class(self.atoms, members, &plan.columns),
                Some(butterfly) => Body {
                    atoms: members.to_vec(),
                    loss: butterfly.loss(),
                    columns: &plan.columns,
                    butterfly: Some(butterfly),
                },
            }
        };
        Solution::new(best.runs.into_par_iter().map(body).collect())
    }
}

/// Node by node what its leaves are together.
fn outlines_of_nodes(tree: &BodyTree, leaves: &[Outline]) -> Vec<Outline> {
    let mut at: Vec<Outline> = leaves.to_vec();
    let mut outlines: Vec<Outline> = Vec::with_capacity(tree.nodes.len());
    // In pre-order children come after their parents; what is known of a subtree stands at its first leaf.
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
    leaves: &'j [Outline],
    nodes: &'j [Outline],
}

/// A leaf or node is tried unless a node above it agrees on the whole body.
struct Covered {
    leaves: Vec<bool>,
    nodes: Vec<bool>,
}

impl<'p> BodyJob<'_, 'p> {
    fn run(&self) -> Best<'p> {
        let covered = self.covered();
        let total: u64 = self.leaves.iter().map(|leaf| leaf.weight).sum();
        // Subtrees that are small enough, and the leaves that are in none: as leaves and nodes from where to where.
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
        let mut at: Vec<Option<Best<'p>>> = Vec::new();
        at.resize_with(self.leaves.len(), || None);
        let solved: Vec<Best<'p>> = subtrees
            .par_iter()
            .map(|&(first, end, from, to)| {
                let mut at: Vec<Option<Best<'p>>> =
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

    fn leaf(&self, leaf: u32, covered: bool) -> Best<'p> {
        let members = self.tree.members(leaf, leaf + 1);
        let atoms = self.search.atoms;
        let bounds = atoms.bounds(members, &self.plan.columns);
        let loss = atoms.perimeter(&bounds, &self.plan.columns) * self.leaves[leaf as usize].weight as f64;
        let run = Run { first: leaf, end: leaf + 1, butterfly: None };
        let mut best = Best { loss, runs: vec![run] };
        if !covered {
            self.improve(&mut best, leaf, leaf + 1, &self.leaves[leaf as usize]);
        }
        best
    }

    /// Joins what the two sides of a node have come to, `at` the places of leaves from `offset` on.
    fn node(&self, position: usize, covered: bool, at: &mut [Option<Best<'p>>], offset: u32) {
        let CutNode { first, middle, end, .. } = self.tree.nodes[position];
        let mut take = |leaf: u32| at[(leaf - offset) as usize].take().expect("children come before their parents");
        let (mut best, mut second) = (take(first), take(middle));
        let loss = best.loss + second.loss;
        if best.runs.len() < second.runs.len() {
            std::mem::swap(&mut best.runs, &mut second.runs);
        }
        best.runs.append(&mut second.runs);
        best.loss = loss;
        if !covered {
            self.improve(&mut best, first, end, &self.nodes[position]);
        }
        at[(first - offset) as usize] = Some(best);
    }

    /// Makes leaves one butterfly, where that loses less than they do now.
    fn improve(&self, best: &mut Best<'p>, first: u32, end: u32, outline: &Outline) {
        let Search { atoms, counts, quick, .. } = self.search;
        let of_body = atoms.perimeter(&outline.bounds, &self.split.body) * outline.weight as f64;
        if of_body >= best.loss {
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
        // What groups of audiences lose is worth a search of its own where the body is settled, and an estimate where
        // it is one of many.
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
            *best = Best { loss, runs: vec![Run { first, end, butterfly: Some(butterfly) }] };
        }
    }
}
