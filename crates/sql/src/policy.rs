//! `Policies`: what each person allows, for which purpose and which recipient.
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

pub(crate) use error::PolicyError;
pub(crate) use import::{ImportDefaults, ImportError, import_policy};
pub use log::ComplianceLog;
pub(crate) use log::{LogEntry, LogOutcome, UsedView};
pub(crate) use read::unused_choices;

use crate::names::Names;

/// The person that stands for everybody without a row of their own.
pub(crate) const EVERYBODY: &str = "*";

/// Stands in `choice_of` for a person without a choice.
const NO_CHOICE: u32 = u32::MAX;

/// What persons allow. Persons are numbered from 0 up to [`Policies::n_persons`]. `Debug` shows how many there are.
#[derive(Default)]
pub(crate) struct Policies {
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

/// A purpose and a recipient: stated by a statement, granted to a user, or those for which persons made choices. One is
/// `None` if it is not stated, or if the table of choices has no such column.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "(Option<String>, Option<String>)", into = "(Option<String>, Option<String>)")]
pub struct Pair {
    /// What the answer is for.
    pub purpose: Option<String>,
    /// Who gets the answer.
    pub recipient: Option<String>,
}

impl Pair {
    /// Whether it agrees with everything that another pair states.
    pub(crate) fn fits(&self, stated: &Pair) -> bool {
        let fits = |own: &Option<String>, stated: &Option<String>| match (own, stated) {
            (_, None) => true,
            (own, Some(stated)) => own.as_deref().is_some_and(|own| is_same(own, stated)),
        };
        fits(&self.purpose, &stated.purpose) && fits(&self.recipient, &stated.recipient)
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [purpose, recipient] = [&self.purpose, &self.recipient].map(|name| name.as_deref().unwrap_or_default());
        write!(f, "PURPOSE {purpose} RECIPIENT {recipient}")
    }
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
pub(crate) struct PairId(pub usize);

/// What one person allows for one pair.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Choice {
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
    pub(crate) fn shows(&self, column: usize, today: NaiveDate) -> bool {
        today.to_epoch_days() <= self.until[column]
    }
}

impl Policies {
    /// The number of the person with this id, or else the number of `*`; `None` if there is neither.
    pub(crate) fn person(&self, id: &str) -> Option<u32> {
        self.persons.find(id).or(self.everybody)
    }

    /// How many persons are numbered, including `*`.
    pub(crate) fn n_persons(&self) -> usize {
        self.persons.len()
    }

    /// A person's largest k over all pairs.
    pub(crate) fn k(&self, person: u32) -> u32 {
        self.largest_k[person as usize]
    }

    /// A person's k for one pair; `None` if the person refuses it.
    pub(crate) fn k_for(&self, pair: PairId, person: u32) -> Option<u32> {
        self.choice(pair, person).map(|choice| choice.k)
    }

    /// All pairs for which choices were made, in the order of the table.
    pub(crate) fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    /// The pair of this purpose and recipient. If the table has no purposes or no recipients, any value is accepted.
    ///
    /// # Errors
    /// If one is missing, or nobody made a choice for it.
    pub(crate) fn pair(&self, stated: &Pair) -> Result<PairId, PolicyError> {
        let (purpose, recipient) = (stated.purpose.as_deref(), stated.recipient.as_deref());
        let known_purposes = || distinct(self.pairs.iter().filter_map(|pair| pair.purpose.as_deref()));
        let known_recipients = || distinct(self.pairs.iter().filter_map(|pair| pair.recipient.as_deref()));
        if self.has_purposes {
            let Some(purpose) = purpose else { return Err(PolicyError::NoPurpose { known: known_purposes() }) };
            if !self.pairs.iter().any(|pair| pair.purpose.as_deref().is_some_and(|known| is_same(known, purpose))) {
                return Err(PolicyError::UnknownPurpose { given: purpose.to_owned(), known: known_purposes() });
            }
        }
        if self.has_recipients {
            let Some(recipient) = recipient else {
                return Err(PolicyError::NoRecipient { known: known_recipients() });
            };
            if !self.pairs.iter().any(|pair| pair.recipient.as_deref().is_some_and(|known| is_same(known, recipient))) {
                return Err(PolicyError::UnknownRecipient { given: recipient.to_owned(), known: known_recipients() });
            }
        }
        let fits = |known: Option<&str>, given: Option<&str>| {
            known.is_none_or(|known| is_same(known, given.unwrap_or_default()))
        };
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
    pub(crate) fn choice(&self, pair: PairId, person: u32) -> Option<&Choice> {
        let of_pair = &self.choice_of[pair.0];
        let number = match (of_pair[person as usize], self.everybody) {
            (NO_CHOICE, Some(everybody)) => of_pair[everybody as usize],
            (own, _) => own,
        };
        // `NO_CHOICE` is larger than the number of any choice.
        self.choices.get_index(number as usize)
    }

    /// Columns of the view that nobody allows for any purpose on this day, so that they need not be collected.
    pub(crate) fn unused_columns(&self, today: NaiveDate) -> Vec<usize> {
        let is_unused = |column: &usize| self.choices.iter().all(|choice| !choice.shows(*column, today));
        (0..self.n_columns).filter(is_unused).collect()
    }
}

/// Whether two names of purposes or recipients are the same, without regard to case.
pub(crate) fn is_same(known: &str, given: &str) -> bool {
    known == given || known.to_lowercase() == given.to_lowercase()
}

/// Each name once, in the order of its first appearance.
fn distinct<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let mut known: Vec<String> = Vec::new();
    for name in names {
        if !known.iter().any(|other| is_same(other, name)) {
            known.push(name.to_owned());
        }
    }
    known
}

#[cfg(test)]
mod tests;
