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
mod leftovers;
mod levels;
mod mondrian;
#[cfg(test)]
mod sample;
mod top_down;

pub use cluster::Cluster;
pub use datafly::{Block, Datafly, OwnK, Step};
pub use full_domain::{FullDomain, Objective};
pub use least_loss::LeastLoss;
pub(crate) use leftovers::join_leftovers;
pub use levels::Levels;
pub use mondrian::{KeepTree, Mondrian};
pub use top_down::TopDown;

use kohort_model::spec::Leftovers;
use kohort_model::{Note, Progress};

use crate::encode::{Domain, Rows};
use crate::requirement::{Rules, Tally};

/// What a partitioner works on.
pub struct Task<'a> {
    /// The folded rows.
    pub rows: &'a Rows,
    /// The domain of each column.
    pub domains: &'a [Domain],
    /// What every class must satisfy.
    pub rules: &'a Rules,
    /// How many persons may be left out.
    pub allowance: u64,
    /// What becomes of rows that fit into no class.
    pub leftovers: Leftovers,
    /// Told of folded rows that have found their class.
    pub progress: &'a dyn Progress,
}

/// Turns rows into classes.
pub trait Partitioner: Sync {
    /// The word a spec and a manifest use.
    fn name(&self) -> &'static str;

    /// The classes of a task.
    ///
    /// # Errors
    /// Where even all rows together do not satisfy the rules.
    fn partition(&self, task: &Task<'_>) -> Result<Classes, Unreachable>;
}

/// Even all rows in one class do not satisfy the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no class can satisfy the requirement: all rows together do not")]
pub struct Unreachable;

impl Task<'_> {
    /// Whether these folded rows may be a class; the tally is what a caller reuses from class to class.
    pub(crate) fn stands(&self, tally: &mut Tally<'_>, rows: impl Iterator<Item = u32> + Clone) -> bool {
        let k = u64::from(self.rules.k());
        // Persons have at least one row each, so too few rows are too few persons.
        let weight: u64 = rows.clone().map(|row| u64::from(self.rows.weight(row))).sum();
        if weight < k || self.rules.weight_suffices() {
            return weight >= k;
        }
        tally.clear();
        rows.flat_map(|row| self.rows.members(row)).for_each(|&member| tally.add(member));
        tally.stands()
    }
}

/// Whether all rows in one class satisfy the rules: if not, no partition does.
fn all_stand_together(task: &Task<'_>) -> bool {
    task.stands(&mut Tally::new(task.rules), 0..task.rows.len() as u32)
}

/// Folded rows, class by class. Rows in no class are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Classes {
    rows: Vec<u32>,
    /// Class `c` is `rows[starts[c]..starts[c + 1]]`.
    starts: Vec<u32>,
    /// What each class shows, one interval per column and class after class, where that is more than the smallest
    /// box that holds it: a publisher may need every cell of a column at one level.
    pub boxes: Option<Vec<(u32, u32)>>,
    /// The cuts that led to the classes, where they were asked for.
    pub tree: Option<CutTree>,
    /// What the partitioner did otherwise than expected.
    pub notes: Vec<Note>,
}

/// The binary tree of cuts: inner nodes cover a run of neighbouring classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutTree {
    /// In pre-order, the root first; none where nothing was cut.
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

impl Classes {
    /// Classes by their rows and where each starts; the last start is the end.
    pub fn new(rows: Vec<u32>, starts: Vec<u32>) -> Classes {
        debug_assert_eq!(starts.last().copied().unwrap_or(0) as usize, rows.len());
        Classes { rows, starts, boxes: None, tree: None, notes: Vec::new() }
    }

    /// Classes as lists of folded rows.
    pub fn from_lists(lists: Vec<Vec<u32>>) -> Classes {
        let mut starts = Vec::with_capacity(lists.len() + 1);
        let mut rows = Vec::new();
        starts.push(0);
        for list in lists {
            rows.extend(list);
            starts.push(rows.len() as u32);
        }
        Classes::new(rows, starts)
    }

    /// The folded rows of each class.
    pub fn to_lists(&self) -> Vec<Vec<u32>> {
        (0..self.len()).map(|class| self.rows(class).to_vec()).collect()
    }

    /// How many classes there are.
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The folded rows of a class.
    pub fn rows(&self, class: usize) -> &[u32] {
        &self.rows[self.starts[class] as usize..self.starts[class + 1] as usize]
    }

    /// All folded rows, class after class.
    pub fn all_rows(&self) -> &[u32] {
        &self.rows
    }
}
