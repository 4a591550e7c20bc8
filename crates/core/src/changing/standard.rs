//! [`Standard`]: what every atom must satisfy, compiled for rows that come one by one.
//!
//! # Deviations
//! Shares that t-closeness and beta-likeness compare with are those of the last build: fixed, so that an atom that
//! satisfied them once does so always, and the union of two as well. A value that was not there then satisfies
//! neither. Distances by order and by hierarchy are refused: their values have no numbers that stay.

use kohort_model::{Distance, Requirement};

use super::ledger::Member;
use crate::requirement::{Bound, Counts, Ground, Sensitive};

/// One position of the tuples, as it was when the view was built.
#[derive(Clone, PartialEq, Eq)]
pub struct ReferenceColumn {
    /// The column's name.
    pub name: String,
    /// Per value number how many persons held it.
    pub counts: Vec<u64>,
}

/// What every atom must satisfy. Each person's own k is asked in any case.
#[derive(Debug)]
pub struct Standard {
    k: u32,
    columns: Vec<(usize, Sensitive)>,
}

/// A requirement that rows which come one by one can't be held to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnfitStandard {
    /// It names a column that tuples do not have.
    #[error("nothing is shown of column '{column}', which a requirement names")]
    UnknownColumn {
        /// The column.
        column: String,
    },
    /// It measures by order or hierarchy.
    #[error("column '{column}': t by order or by hierarchy is not available where data changes")]
    Distance {
        /// The column.
        column: String,
    },
}

impl UnfitStandard {
    /// What to do about it.
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
    /// Where a requirement does not fit.
    pub fn compile(requirements: &[Requirement], columns: &[ReferenceColumn]) -> Result<Standard, UnfitStandard> {
        let mut standard = Standard { k: 2, columns: Vec::new() };
        for requirement in requirements {
            let bound = match requirement {
                Requirement::K(k) => {
                    standard.k = standard.k.max(*k);
                    continue;
                }
                Requirement::PersonK { .. } => continue,
                Requirement::DistinctL { l, .. } => Bound::DistinctL(*l),
                Requirement::EntropyL { l, .. } => Bound::EntropyL(*l),
                Requirement::RecursiveCL { c, l, .. } => Bound::RecursiveCL { c: *c, l: *l },
                Requirement::TCloseness { t, distance: Distance::Equal, .. } => {
                    Bound::TCloseness { t: *t, ground: Ground::equal() }
                }
                Requirement::TCloseness { column, distance: Distance::Ordered | Distance::Hierarchical, .. } => {
                    return Err(UnfitStandard::Distance { column: column.clone() });
                }
                Requirement::Alpha { alpha, .. } => Bound::Alpha(*alpha),
                Requirement::Beta { beta, .. } => Bound::Beta(*beta),
                Requirement::EnhancedBeta { beta, .. } => Bound::EnhancedBeta(*beta),
            };
            let name = requirement.column().unwrap_or_default();
            let position = columns.iter().position(|column| column.name == name);
            let position = position.ok_or_else(|| UnfitStandard::UnknownColumn { column: name.to_owned() })?;
            match standard.columns.iter_mut().find(|(known, _)| *known == position) {
                Some((_, sensitive)) => sensitive.bounds.push(bound),
                None => {
                    let counts = &columns[position].counts;
                    let total = counts.iter().sum::<u64>().max(1) as f64;
                    let shares = counts.iter().map(|&count| count as f64 / total).collect();
                    let (column, bounds) = (name.to_owned(), vec![bound]);
                    standard.columns.push((position, Sensitive { column, codes: Vec::new(), shares, bounds }));
                }
            }
        }
        Ok(standard)
    }

    /// The k that every atom needs.
    pub(super) fn k(&self) -> u32 {
        self.k
    }

    /// Something that asks it of one set of members after another.
    pub(super) fn judge(&self) -> Judge<'_> {
        let counts = self.columns.iter().map(|(_, sensitive)| Counts::of_values(sensitive.shares.len())).collect();
        Judge { standard: self, counts }
    }
}

/// Asks a standard of sets of members.
pub(super) struct Judge<'a> {
    standard: &'a Standard,
    counts: Vec<Counts>,
}

impl Judge<'_> {
    /// Whether these satisfy everything by themselves: they may be an atom, or leave one together.
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

    /// Whether these are so many persons, and as many as each of them asks for, whatever their values. Nobody at all is
    /// not.
    pub(super) fn are_many(&self, members: &[&Member], size: u32) -> bool {
        let largest_k = members.iter().map(|member| member.k).fold(self.standard.k.max(size), u32::max);
        members.len() >= largest_k as usize
    }
}
