//! [`Standard`]: what every atom must satisfy, compiled for rows that come one by one.
//!
//! # Deviations
//! t-closeness and beta-likeness compare with the shares of the last build. These are fixed, so an atom that satisfied
//! the requirement once always does, and so does the union of two atoms. A value that did not occur in the last build
//! satisfies neither requirement. Distances by order and by hierarchy are refused, because the numbers of their values
//! would change.

use kohort_model::{Distance, Requirement};

use super::ledger::Member;
use crate::requirement::{Counts, Ground, Sensitive};

/// One position of the tuples, with its values at the time the view was built.
#[derive(Clone, PartialEq, Eq)]
pub struct ReferenceColumn {
    /// The column's name.
    pub name: String,
    /// For each value number, how many persons held it.
    pub counts: Vec<u64>,
}

/// The requirements that every atom must satisfy. Each person's own k is asked in any case.
#[derive(Debug)]
pub struct Standard {
    k: u32,
    columns: Vec<(usize, Sensitive)>,
}

/// Why a requirement can't be checked for rows that come one by one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnfitStandard {
    /// The requirement names a column that tuples do not have.
    #[error("nothing is shown of column '{column}', which a requirement names")]
    UnknownColumn {
        /// The column.
        column: String,
    },
    /// The requirement measures by order or hierarchy.
    #[error("column '{column}': t by order or by hierarchy is not available where data changes")]
    Distance {
        /// The column.
        column: String,
    },
}

impl UnfitStandard {
    /// What the user can do about the error.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            UnfitStandard::UnknownColumn { .. } => None,
            UnfitStandard::Distance { .. } => Some("use the equal distance"),
        }
    }
}

impl Standard {
    /// Compiles the requirements; columns are the positions of the tuples.
    ///
    /// # Errors
    /// If a requirement does not fit.
    pub fn compile(requirements: &[Requirement], columns: &[ReferenceColumn]) -> Result<Standard, UnfitStandard> {
        let mut standard = Standard { k: 2, columns: Vec::new() };
        for requirement in requirements {
            standard.k = standard.k.max(requirement.k().unwrap_or(0));
            let Some(name) = requirement.sensitive_column() else { continue };
            if requirement.distance().is_some_and(|distance| distance != Distance::Equal) {
                return Err(UnfitStandard::Distance { column: name.to_owned() });
            }
            let position = columns.iter().position(|column| column.name == name);
            let position = position.ok_or_else(|| UnfitStandard::UnknownColumn { column: name.to_owned() })?;
            let known = standard.columns.iter().position(|(known, _)| *known == position);
            let place = known.unwrap_or(standard.columns.len());
            if known.is_none() {
                standard.columns.push((position, Sensitive::measured(name, &columns[position].counts)));
            }
            standard.columns[place].1.ask(requirement, |_, _| Ground::Equal);
        }
        Ok(standard)
    }

    pub(super) fn k(&self) -> u32 {
        self.k
    }

    /// A judge, which checks one set of members after another.
    pub(super) fn judge(&self) -> AtomJudge<'_> {
        let counts = self.columns.iter().map(|(_, sensitive)| Counts::of_values(sensitive.shares.len())).collect();
        AtomJudge { standard: self, counts }
    }
}

/// Checks whether sets of members satisfy a standard.
pub(super) struct AtomJudge<'a> {
    standard: &'a Standard,
    counts: Vec<Counts>,
}

impl AtomJudge<'_> {
    /// Whether these members satisfy all requirements by themselves, so that they may be an atom, or leave one
    /// together.
    pub(super) fn stands(&mut self, members: &[&Member]) -> bool {
        if !self.are_many(members, 0) || members.iter().any(|member| member.k < 2) {
            return false;
        }
        let n_persons = members.len() as u64;
        self.standard.columns.iter().zip(&mut self.counts).all(|((position, sensitive), counts)| {
            counts.clear();
            for member in members {
                // A value that was not there when the view was built has no share.
                counts.add_any(member.tuple[*position]);
            }
            sensitive.holds_for_any(counts, n_persons)
        })
    }

    /// Whether there are at least `size` members, and as many as each of them asks for. Their values don't matter. An
    /// empty set is never enough.
    pub(super) fn are_many(&self, members: &[&Member], size: u32) -> bool {
        let largest_k = members.iter().map(|member| member.k).fold(self.standard.k.max(size), u32::max);
        members.len() >= largest_k as usize
    }
}
