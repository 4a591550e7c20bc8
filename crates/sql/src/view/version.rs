//! [`Version`]: what a computed view is pinned to: data, definition, DGHs and policies as they were when it was verified.

pub(super) mod build;
pub(super) mod digest;
pub(super) mod directory;
pub(super) mod fingerprint;
pub(super) mod kept;
pub(super) mod partition;
pub(super) mod raise;
pub(super) mod shown;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::error::Result;
use kohort_io::PrivateRows;
use kohort_labels::rewrite::Meanings;
use kohort_model::{Hierarchy, Role};
use rayon::prelude::*;

use super::consent::refused_columns;
use super::read::assemble::Chosen;
use super::read::choose::LabelComparison;
use super::{Definition, Fingerprint, Reader, ViewError};
use crate::parser::{Answers, Purposes};
use crate::policy::{Pair, PairId, Policies, PolicyError};
use directory::Directory;
use kept::KeptRows;
use shown::ShownCells;

/// A view as it was verified.
pub(crate) struct Version {
    /// Numbers the versions of all views of an engine.
    pub number: u64,
    pub definition: Arc<Definition>,
    /// The state of the tables it was made from.
    pub fingerprint: Fingerprint,
    /// For each column, what its labels can stand for.
    pub meanings: Meanings,
    /// What persons allow, if the definition refers to policies.
    pub policies: Option<Arc<Policies>>,
    /// Per column its tree.
    pub hierarchies: Vec<Option<Arc<Hierarchy>>>,
    /// For each column, the type of its values.
    pub value_types: Vec<kohort_model::ValueType>,
    /// One for all purposes, or one per pair of purpose and recipient.
    pub(in crate::view) directories: Vec<Directory>,
    /// What the version shows of each person beside labels; `None` if that can't be compared, or need not be.
    pub(in crate::view) shown: Option<ShownCells>,
    /// The rows it was verified for, if they are kept.
    pub(in crate::view) kept: Option<KeptRows>,
    /// For each reader and class, the columns that somebody in the class refuses. A cache, filled when a reader first
    /// asks.
    pub(in crate::view) refusals: Mutex<HashMap<Reader, Arc<[u64]>>>,
    /// Figures for the owner.
    pub summary: Summary,
}

/// Figures about a version, for its owner.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Summary {
    /// Rows shown.
    pub n_rows: u64,
    pub n_classes: u64,
    /// Persons in the smallest class.
    pub k: u64,
    /// Mean loss over the quasi cells of persons in classes.
    pub ncp: f64,
    /// Over all rows in classes, the sum of persons in the class beyond the k that the row's person asks for.
    pub k_deviation: u64,
    /// Rows of persons without a policy.
    pub n_denied: u64,
    /// Rows of persons who ask for a k of 0 or 1.
    pub n_alone: u64,
    /// Rows that fit into no class and are not shown.
    pub n_left_over: u64,
}

impl Summary {
    /// The worst figures of two partitions of one view.
    pub(in crate::view) fn worse(self, other: Summary) -> Summary {
        if self == Summary::default() {
            return other;
        }
        Summary {
            n_rows: self.n_rows.max(other.n_rows),
            n_classes: self.n_classes.max(other.n_classes),
            k: self.k.min(other.k),
            ncp: self.ncp.max(other.ncp),
            k_deviation: self.k_deviation.max(other.k_deviation),
            n_denied: self.n_denied.max(other.n_denied),
            n_alone: self.n_alone.max(other.n_alone),
            n_left_over: self.n_left_over.max(other.n_left_over),
        }
    }
}

impl Version {
    /// The classes that a reader sees.
    pub(crate) fn directory(&self, pair: Option<PairId>) -> &Directory {
        match (self.definition.clauses.purposes, pair) {
            (Purposes::Apart, Some(pair)) => &self.directories[pair.0],
            _ => &self.directories[0],
        }
    }

    /// The pair of purpose and recipient that a reader states; `None` if the view refers to no policies.
    ///
    /// # Errors
    /// If no policy names them, or one of them is missing.
    pub(crate) fn pair(&self, stated: &Pair) -> Result<Option<PairId>, PolicyError> {
        self.policies.as_ref().map(|policies| policies.pair(stated)).transpose()
    }

    /// For each class, the columns that somebody in it refuses to show a reader: bit `p` for the column at position
    /// `p`.
    pub(in crate::view) fn refusals(&self, reader: Reader) -> Arc<[u64]> {
        let mut known = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        let count = || self.count_refusals(reader);
        Arc::clone(known.entry(reader).or_insert_with(count))
    }

    fn count_refusals(&self, reader: Reader) -> Arc<[u64]> {
        let directory = self.directory(reader.pair);
        let (Some(policies), Some(pair)) = (self.policies.as_deref(), reader.pair) else {
            return vec![0; directory.n_classes()].into();
        };
        let of_policy = |&policy: &u32| refused_columns(&self.definition, policies, policy, pair, reader.today);
        let of_class =
            |class: u32| directory.policies(class).iter().map(of_policy).fold(0, |all, refused| all | refused);
        (0..directory.n_classes() as u32).into_par_iter().map(of_class).collect::<Vec<u64>>().into()
    }

    /// The classes that could satisfy all comparisons, as a reader sees them.
    pub(in crate::view) fn choose(&self, reader: Reader, comparisons: &[LabelComparison]) -> Result<Chosen> {
        if comparisons.is_empty() {
            return Ok(Chosen::All);
        }
        let (directory, refusals) = (self.directory(reader.pair), self.refusals(reader));
        let refused = (0..).zip(refusals.iter()).filter(|(_, columns)| **columns != 0).map(|(class, _)| class);
        let hides = |class: u32, columns: u64| refusals[class as usize] & columns != 0;
        let classes = directory.labels().choose(&self.definition, comparisons, refused, hides)?;
        Ok(if classes.len() == directory.n_classes() { Chosen::All } else { Chosen::Classes(classes) })
    }

    /// Gives rows that were fetched for this version its trees and types.
    ///
    /// # Errors
    /// [`ViewError::Stale`] if a value is in none of the trees, because it was not there when the view was verified.
    pub(in crate::view) fn attach(&self, private: &mut PrivateRows) -> Result<(), ViewError> {
        for (position, &value_type) in self.value_types.iter().enumerate() {
            private.set_type(position, value_type);
            let Some(hierarchy) = &self.hierarchies[position] else { continue };
            let column = &private.table().columns[position];
            if column.role != Role::Plain && column.texts.iter().any(|text| hierarchy.leaf(text).is_none()) {
                return Err(ViewError::Stale);
            }
            private.set_hierarchy(position, Arc::clone(hierarchy));
        }
        Ok(())
    }

    /// What the labels of its columns can stand for.
    pub(crate) fn meanings(&self) -> Meanings {
        Arc::clone(&self.meanings)
    }

    /// Whether another version has the same classes of the same rows.
    pub(in crate::view) fn is_same_as(&self, other: &Version) -> bool {
        let mut directories = self.directories.iter().zip(&other.directories);
        self.directories.len() == other.directories.len() && directories.all(|(mine, theirs)| mine.is_same_as(theirs))
    }

    /// The label of everything, which a column shows if it must not tell anything.
    pub(in crate::view) fn everything(&self, position: usize) -> &str {
        self.hierarchies[position].as_deref().map_or("*", |hierarchy| hierarchy.label(hierarchy.root()))
    }

    /// Whether only those classes answer that have a member with the asked values.
    pub(crate) fn answers_matching(&self) -> bool {
        self.definition.clauses.answers == Answers::Matching
    }
}
