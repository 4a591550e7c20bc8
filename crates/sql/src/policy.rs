//! [`Policies`]: what each person allows, for which purpose and which recipient.
//!
//! # The table of choices
//! One row per person, purpose and recipient, with columns found by their names:
//!
//! | column | holds |
//! | --- | --- |
//! | the first name in `name REFERENCES choices (k, sa_level)` | the person; `*` stands for everybody without a row of their own |
//! | the names in parentheses | k, a whole number from 0; the level to which sensitive values are generalized, 0 without the column |
//! | `purpose`, `recipient` | the purpose and the recipient; without the column a row is valid for all of them |
//! | `<column>_op` | whether the view's column may be shown: true or false, `T`/`F`, `yes`/`no`, 1/0; NULL refuses; without the column it may be shown |
//! | `<column>_until` | the last day on which it may be shown; NULL refuses; without the column there is no end |
//!
//! Purposes and recipients are compared without regard to case.
//!
//! # Guarantee
//! Default deny: nothing is shown of a person without a row for the purpose and recipient, unless `*` has one. A table
//! with any row that can't be understood is an error. Messages contain names of purposes and recipients, but no other
//! cell.
//! # Paper
//! `[EPS+12]`, sections 3 and 4, figure 8.
//! # Cost
//! 4 bytes per person and pair. Equal choices are stored once. Reading is one pass.

mod error;
mod import;
mod log;
mod read;

use std::fmt;

use chrono::NaiveDate;
use indexmap::IndexSet;
use serde::{Deserialize, Serialize};

pub use error::{PolicyError, PolicyRowError};
pub use import::{ImportDefaults, ImportError, ImportFault, import_policy};
pub use log::{ComplianceLog, LogEntry, LogOutcome, UsedView};
pub(crate) use read::unused_choices;

use crate::names::Names;

/// The person that stands for everybody without a row of their own.
pub(crate) const EVERYBODY: &str = "*";

/// Stands in `choice_of` for a person without a choice.
const NO_CHOICE: u32 = u32::MAX;

/// What persons allow. Persons are numbered from 0 up to [`Policies::n_persons`]. `Debug` shows how many there are.
#[derive(Default)]
pub struct Policies {
    /// How many columns the view has.
    n_columns: usize,
    persons: Names,
    everybody: Option<u32>,
    /// The distinct choices.
    choices: IndexSet<Choice>,
    pairs: Vec<Pair>,
    /// For each pair and person, the number of the person's choice or [`NO_CHOICE`].
    choice_of: Vec<Vec<u32>>,
    largest_k: Vec<u32>,
    has_purposes: bool,
    has_recipients: bool,
}

impl fmt::Debug for Policies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Policies({} persons)", self.n_persons())
    }
}

/// A purpose and a recipient for which persons made choices.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "(Option<String>, Option<String>)", into = "(Option<String>, Option<String>)")]
pub struct Pair {
    /// The purpose; `None` if the table has no such column.
    pub purpose: Option<String>,
    /// The recipient; `None` if the table has no such column.
    pub recipient: Option<String>,
}

impl From<(Option<String>, Option<String>)> for Pair {
    fn from((purpose, recipient): (Option<String>, Option<String>)) -> Pair {
        Pair { purpose, recipient }
    }
}

impl From<Pair> for (Option<String>, Option<String>) {
    fn from(pair: Pair) -> (Option<String>, Option<String>) {
        (pair.purpose, pair.recipient)
    }
}

/// The position of a [`Pair`] in [`Policies::pairs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PairId(pub usize);

/// What one person allows for one pair.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Choice {
    /// How many persons must look the same as this one.
    pub k: u32,
    /// The level to which sensitive values are generalized.
    pub level: u8,
    /// For each column of the view, the last day on which it may be shown, in days since 1970-01-01.
    until: Box<[i32]>,
}

impl Choice {
    /// The part that decides what readers see: the level, and for each column the last day on which it may be shown.
    pub(crate) fn shown(&self) -> (u8, &[i32]) {
        (self.level, &self.until)
    }

    /// Whether the view's column at this position may be shown on this day.
    pub fn shows(&self, column: usize, today: NaiveDate) -> bool {
        today.to_epoch_days() <= self.until[column]
    }
}

impl Policies {
    /// The number of the person with this id, or else the number of `*`; `None` if there is neither.
    pub fn person(&self, id: &str) -> Option<u32> {
        self.persons.find(id).or(self.everybody)
    }

    /// How many persons are numbered, including `*`.
    pub fn n_persons(&self) -> usize {
        self.persons.len()
    }

    /// A person's largest k over all pairs.
    pub fn k(&self, person: u32) -> u32 {
        self.largest_k[person as usize]
    }

    /// A person's k for one pair; `None` if the person refuses it.
    pub fn k_for(&self, pair: PairId, person: u32) -> Option<u32> {
        self.choice(pair, person).map(|choice| choice.k)
    }

    /// All pairs for which choices were made, in the order of the table.
    pub fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    /// The pair of this purpose and recipient. If the table has no purposes or no recipients, any value is accepted.
    ///
    /// # Errors
    /// If one is missing, or nobody made a choice for it.
    pub fn pair(&self, purpose: Option<&str>, recipient: Option<&str>) -> Result<PairId, PolicyError> {
        let known_purposes = || distinct(self.pairs.iter().filter_map(|pair| pair.purpose.as_deref()));
        let known_recipients = || distinct(self.pairs.iter().filter_map(|pair| pair.recipient.as_deref()));
        if self.has_purposes {
            let Some(purpose) = purpose else { return Err(PolicyError::NoPurpose { known: known_purposes() }) };
            if !self.pairs.iter().any(|pair| is_same(pair.purpose.as_deref(), purpose)) {
                return Err(PolicyError::UnknownPurpose { given: purpose.to_owned(), known: known_purposes() });
            }
        }
        if self.has_recipients {
            let Some(recipient) = recipient else {
                return Err(PolicyError::NoRecipient { known: known_recipients() });
            };
            if !self.pairs.iter().any(|pair| is_same(pair.recipient.as_deref(), recipient)) {
                return Err(PolicyError::UnknownRecipient { given: recipient.to_owned(), known: known_recipients() });
            }
        }
        let fits =
            |known: Option<&str>, given: Option<&str>| known.is_none() || is_same(known, given.unwrap_or_default());
        let found = self
            .pairs
            .iter()
            .position(|pair| fits(pair.purpose.as_deref(), purpose) && fits(pair.recipient.as_deref(), recipient));
        found.map(PairId).ok_or_else(|| PolicyError::UnknownPair {
            purpose: purpose.unwrap_or_default().to_owned(),
            recipient: recipient.unwrap_or_default().to_owned(),
        })
    }

    /// What a person allows for a pair; `None` means nothing at all.
    pub fn choice(&self, pair: PairId, person: u32) -> Option<&Choice> {
        let of_pair = &self.choice_of[pair.0];
        let number = match (of_pair[person as usize], self.everybody) {
            (NO_CHOICE, Some(everybody)) => of_pair[everybody as usize],
            (own, _) => own,
        };
        // `NO_CHOICE` is larger than the number of any choice.
        self.choices.get_index(number as usize)
    }

    /// Columns of the view that nobody allows for any purpose on this day, so that they need not be collected.
    pub fn unused_columns(&self, today: NaiveDate) -> Vec<usize> {
        let is_unused = |column: &usize| self.choices.iter().all(|choice| !choice.shows(*column, today));
        (0..self.n_columns).filter(is_unused).collect()
    }
}

fn is_same(known: Option<&str>, given: &str) -> bool {
    known.is_some_and(|known| known == given || known.to_lowercase() == given.to_lowercase())
}

/// Each name once, in the order of its first appearance.
fn distinct<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let mut known: Vec<String> = Vec::new();
    for name in names {
        if !known.iter().any(|other| is_same(Some(other), name)) {
            known.push(name.to_owned());
        }
    }
    known
}

#[cfg(test)]
mod tests;
