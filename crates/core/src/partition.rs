//! [`Partitioner`]: turns folded rows into classes that satisfy the rules.
//!
//! # Guarantee
//! every class of the result satisfies the rules, every row is in at most one class, and rows in none belong to no
//! more persons than the task allows; or an error

mod cluster;
mod cut;
mod datafly;
mod full_domain;
mod least_loss;
mod levels;
mod mondrian;
mod outline;
#[cfg(test)]
mod sample;
mod top_down;

pub use cluster::Cluster;
pub(crate) use cut::count_runs;
pub use datafly::{Datafly, OwnK};
pub use full_domain::{FullDomain, Objective};
pub use least_loss::LeastLoss;
pub use levels::Levels;
pub use mondrian::{KeepTree, Mondrian};
pub use top_down::TopDown;

use kohort_model::spec::Leftovers;
use kohort_model::{Note, Progress};
use rayon::prelude::*;

use crate::encode::{Domain, Rows, bounds};
use crate::lists::Lists;
use crate::requirement::{Rules, Tally};
use outline::Outline;

/// The work of a partitioner.
pub struct Task<'a> {
    /// The folded rows.
    pub rows: &'a Rows,
    /// The domain of each column.
    pub domains: &'a [Domain],
    /// The requirements of every class.
    pub rules: &'a Rules,
    /// How many persons may be left out.
    pub allowance: u64,
    /// Whether rows that fit into no class join one or are left out.
    pub leftovers: Leftovers,
    /// Receives the number of folded rows that have found their class.
    pub progress: &'a dyn Progress,
}

/// Turns rows into classes.
pub trait Partitioner: Sync {
    /// The word a spec and a manifest use.
    fn name(&self) -> &'static str;

    /// The classes of a task.
    ///
    /// # Errors
    /// If even all rows together do not satisfy the rules.
    fn partition(&self, task: &Task<'_>) -> Result<Classes, Unreachable>;
}

/// Even all rows in one class do not satisfy the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no class can satisfy the requirement: all rows together do not")]
pub struct Unreachable;

impl<'a> Task<'a> {
    /// A task in which everybody must find a class.
    pub fn of_everybody(
        rows: &'a Rows,
        domains: &'a [Domain],
        rules: &'a Rules,
        progress: &'a dyn Progress,
    ) -> Task<'a> {
        Task { rows, domains, rules, allowance: 0, leftovers: Leftovers::Merge, progress }
    }

    /// Whether these folded rows may be a class. The tally is memory that the caller reuses from class to class.
    pub(crate) fn stands(&self, tally: &mut Tally<'_>, rows: impl Iterator<Item = u32> + Clone) -> bool {
        let k = u64::from(self.rules.k());
        // Persons have at least one row each, so too few rows are too few persons.
        let weight: u64 = rows.clone().map(|row| u64::from(self.rows.weight(row))).sum();
        if weight < k || self.rules.weight_suffices() {
            return weight >= k;
        }
        tally.recount(rows.flat_map(|row| self.rows.members(row)).copied());
        tally.stands()
    }

    /// Refuses a task if all its rows in one class do not satisfy the rules: no partition does then.
    fn check(&self) -> Result<(), Unreachable> {
        let stand = self.stands(&mut Tally::new(self.rules), 0..self.rows.len() as u32);
        if stand { Ok(()) } else { Err(Unreachable) }
    }

    /// The total loss of these classes.
    fn loss(&self, classes: &[Vec<u32>]) -> f64 {
        // Added in one order, because threads must not decide which of two sums is smaller.
        let losses: Vec<f64> = classes.par_iter().map(|rows| Outline::of(self, rows).loss()).collect();
        losses.iter().sum()
    }

    /// By how much the loss of each class grows if these folded rows join it.
    fn growths<'c>(&self, classes: impl Iterator<Item = &'c [u32]>, joining: &[u32]) -> Vec<f64> {
        let joining = Outline::of(self, joining);
        let growth = |class: &'c [u32]| {
            let class = Outline::of(self, class);
            let joint = bounds::width_of_both(self.domains, &class.bounds, &joining.bounds);
            joint * (class.weight + joining.weight) as f64 - class.loss()
        };
        classes.map(growth).collect()
    }

    /// Joins every class for which `stands` is false to the class whose total loss grows least; the first of equals. The
    /// classes that come out satisfy the rules, or all rows are in one class. Each leftover is compared with all classes,
    /// so there should be few of them.
    pub(crate) fn join_leftovers(&self, mut classes: Vec<Vec<u32>>, stands: impl Fn(&[u32]) -> bool) -> Classes {
        while let Some(leftover) = classes.iter().position(|class| !stands(class)) {
            if classes.len() == 1 {
                break;
            }
            let mut joining = classes.swap_remove(leftover);
            let growths = self.growths(classes.iter().map(Vec::as_slice), &joining);
            let nearest = (0..classes.len()).min_by(|&a, &b| growths[a].total_cmp(&growths[b])).unwrap_or(0);
            classes[nearest].append(&mut joining);
        }
        Classes::from_lists(classes)
    }
}

/// Folded rows, class by class. Rows in no class are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Classes {
    pub(crate) lists: Lists,
    /// The cells that each class shows, one interval per column and class after class; `None` if each class shows the
    /// smallest box that contains it. A partitioner that needs every cell of a column at one level shows more.
    pub boxes: Option<Vec<(u32, u32)>>,
    /// The cuts that led to the classes, if the caller asked for them.
    pub tree: Option<CutTree>,
    /// What a user should know about how the classes were found.
    pub notes: Vec<Note>,
}

/// The binary tree of cuts: inner nodes cover a run of neighbouring classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutTree {
    /// In pre-order, the root first; empty if nothing was cut.
    pub nodes: Vec<CutNode>,
}

/// A cut: classes `first..middle` on one side, `middle..end` on the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutNode {
    /// The first class below.
    pub first: u32,
    /// The first class of the second side.
    pub middle: u32,
    /// One past the last class.
    pub end: u32,
    /// The column that was cut.
    pub column: u32,
}

impl CutNode {
    /// The same cut after its classes were moved to other positions.
    pub(crate) fn moved(&self, to: impl Fn(u32) -> u32) -> CutNode {
        CutNode { first: to(self.first), middle: to(self.middle), end: to(self.end), column: self.column }
    }
}

impl Classes {
    pub(crate) fn new(lists: Lists) -> Classes {
        Classes { lists, ..Classes::default() }
    }

    /// Classes as lists of folded rows.
    pub fn from_lists(lists: Vec<Vec<u32>>) -> Classes {
        Classes::new(lists.into_iter().collect())
    }

    /// The folded rows of each class.
    pub fn to_lists(&self) -> Vec<Vec<u32>> {
        self.iter().map(<[u32]>::to_vec).collect()
    }

    /// How many classes there are.
    pub fn len(&self) -> usize {
        self.lists.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The folded rows of a class.
    pub fn rows(&self, class: usize) -> &[u32] {
        self.lists.get(class)
    }

    /// The folded rows of each class, class after class.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        self.lists.iter()
    }

    /// All folded rows, class after class.
    pub fn all_rows(&self) -> &[u32] {
        self.lists.items()
    }
}
