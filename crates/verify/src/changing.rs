//! [`verify_step`] and [`verify_refresh`]: whether a view over changing data may show what it is about to show.
//!
//! The rows of such a view are kept in atoms: persons who were first shown together. Readers may keep everything that
//! they ever saw, so a check compares what is shown now with what was shown before.
//!
//! # Guarantee
//! After a step:
//! - Every requirement holds for each of these sets: the members of a new atom, the members who leave an atom, and the
//!   members who stay in an atom that lost others.
//! - No atom gains a member. Nobody whom readers saw before is in a new atom. Readers saw a person before if
//!   [`StepMember::seen`] says so, or if the step itself lists the person among those who were shown.
//! - Every label covers the values under it. All atoms of a class show the labels of the class, and these never change.
//! - Every atom has a number of its own. At each of the two times, a person is in one atom at most. A row belongs to
//!   one person, before and after.
//!
//! After a refresh, every atom is an atom from before, a part of one, or new in the sense above. The members of an atom
//! who are no longer shown satisfy every requirement, unless they are the whole atom. Persons are compared together
//! with what their rows show.
//!
//! A label covers a value if it is the text of the value or of one of its ancestors. Shares of values are compared with
//! the shares at the time when the view was built.
//!
//! Atoms, classes and rows have the numbers under which they are stored, so that the caller stores the [`Verified`]
//! step itself instead of deriving its content a second time.
//!
//! [`Verified`]: crate::Verified

mod counter;
mod error;
mod numbers;
mod refresh;
mod step;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use error::{Part, StepError, StepErrors};
pub use refresh::{Refresh, RefreshedAtom, verify_refresh};
pub use step::{AtomStep, Step, verify_step};

/// The cells that a row shows beside its quasi labels, in the order of the columns.
pub type ShownValues = Vec<Option<Arc<str>>>;

/// A row of an atom.
#[derive(Clone, PartialEq, Eq)]
pub struct StepMember {
    /// The number of the row.
    pub row: u64,
    /// The person to whom the row belongs.
    pub person: u64,
    /// The person's own k.
    pub k: u32,
    /// For each quasi column, the value and its ancestors, the root last.
    pub paths: Vec<Arc<[String]>>,
    /// The other cells that are shown.
    pub values: ShownValues,
    /// Whether readers saw something of the person outside of this atom.
    pub seen: Seen,
}

/// Whether readers saw something of a person outside of an atom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Readers saw nothing.
    Never,
    /// The person was shown in another atom or alone, or was in a crowd that could not be shown because of its values.
    Elsewhere,
}

/// A column that rows show beside quasi labels.
#[derive(Clone, PartialEq, Eq)]
pub struct StepColumn {
    /// The name of the column.
    pub name: String,
    /// How many persons held each value when the view was built.
    pub reference: BTreeMap<Option<String>, u64>,
}

/// Counts of the atoms after a step or a refresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepFindings {
    /// Atoms that have members.
    pub atoms: u64,
    /// Persons in all atoms.
    pub persons: u64,
    /// Persons in the smallest atom; 0 if there is no atom.
    pub k: u64,
}

impl StepFindings {
    fn of_sizes(sizes: impl Iterator<Item = u64>) -> Self {
        let sizes: Vec<u64> = sizes.filter(|&size| size > 0).collect();
        let k = sizes.iter().copied().min().unwrap_or(0);
        StepFindings { atoms: sizes.len() as u64, persons: sizes.iter().sum(), k }
    }
}

fn persons(members: &[StepMember]) -> BTreeSet<u64> {
    members.iter().map(|member| member.person).collect()
}

/// Counts the members that have too few or too many cells, plus `n_wrong_labels`.
fn malformed<'a>(
    atom: usize,
    n_wrong_labels: usize,
    n_quasi: usize,
    n_values: usize,
    members: impl IntoIterator<Item = &'a StepMember>,
) -> Option<StepError> {
    let is_malformed = |member: &&StepMember| {
        let has_value = |path: &Arc<[String]>| !path.is_empty();
        member.paths.len() != n_quasi || member.values.len() != n_values || !member.paths.iter().all(has_value)
    };
    let n = n_wrong_labels + members.into_iter().filter(is_malformed).count();
    (n > 0).then_some(StepError::Malformed { atom, n })
}

/// Persons with a k of 0 or 1 must not fill up an atom, because they are shown without a class anyway.
fn asks_for_no_class(atom: usize, members: &[StepMember]) -> Option<StepError> {
    let n = members.iter().filter(|member| member.k < 2).count();
    (n > 0).then_some(StepError::AsksForNoClass { atom, n })
}

fn not_covered(atom: usize, labels: &[String], members: &[StepMember]) -> Vec<StepError> {
    let mut errors = Vec::new();
    for (column, label) in labels.iter().enumerate() {
        let n = members.iter().filter(|member| !member.paths[column].contains(label)).count();
        errors.extend((n > 0).then_some(StepError::NotCovered { atom, column: column + 1, n }));
    }
    errors
}
