//! [`Policies`]: what persons allow, for which purpose and to whom.
//!
//! # The table of choices
//! One row per person, purpose and recipient, with columns found by their names:
//!
//! | column | holds |
//! | --- | --- |
//! | as in `name REFERENCES choices (k, sa_level)` | the person; `*` is everybody without a row of their own |
//! | as named there | k, a whole number from 0; the level sensitive values are raised to, 0 without the column |
//! | `purpose`, `recipient` | what for and to whom; without the column a row is for all |
//! | `<column>_op` | whether the view's column may be shown: true or false, `T`/`F`, `yes`/`no`, 1/0; NULL refuses; without the column it may |
//! | `<column>_until` | the last day on which it may; NULL refuses; without the column there is no end |
//!
//! Purposes and recipients are found in any case.
//!
//! # Guarantee
//! Default deny: who has no row for a purpose and recipient, not even as everybody, shows nothing there. A table that
//! can't be understood as a whole is an error, and no message holds a cell but names of purposes and recipients.
//! # Paper
//! `[EPS+12]`, sections 3 and 4, figure 8.
//! # Cost
//! 4 bytes per person and pair, and what differs between choices once; reading is one pass.

mod error;
mod import;
mod intern;
mod log;
mod read;
mod terms;

use chrono::NaiveDate;

pub use error::{PolicyError, PolicyRowError};
pub use import::{ImportDefaults, ImportError, import_policy};
use intern::Names;
pub use log::{ComplianceLog, LogEntry, LogOutcome, UsedView};
pub(crate) use read::unused_choices;
use terms::Terms;

/// The person that stands for everybody without a row of their own.
const EVERYBODY: &str = "*";

/// No choice, in lists of ids of terms.
const NO_TERMS: u32 = u32::MAX;

/// What persons allow. Persons are numbers from 0 to [`Policies::n_persons`].
#[derive(Debug)]
pub struct Policies {
    persons: Names,
    everybody: Option<u32>,
    terms: Terms,
    pairs: Vec<Pair>,
    /// Per pair and person the id of their terms, or [`NO_TERMS`].
    terms_of: Vec<Vec<u32>>,
    largest_k: Vec<u32>,
    has_purposes: bool,
    has_recipients: bool,
}

/// A purpose and a recipient that choices were made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// What for, `None` where the table does not say.
    pub purpose: Option<String>,
    /// To whom, `None` where the table does not say.
    pub recipient: Option<String>,
}

/// The position of a [`Pair`] in [`Policies::pairs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PairId(pub usize);

/// What one person allows for one pair.
#[derive(Clone, Copy, Debug)]
pub struct Choice<'p> {
    /// How many persons look the same as this one.
    pub k: u32,
    /// The level sensitive values are raised to.
    pub level: u8,
    /// Per column of the view the last day on which it may be shown, in days since 1970-01-01.
    until: &'p [i32],
}

impl<'p> Choice<'p> {
    /// What of it decides what readers see: the level, and per column the last day on which it may be shown.
    pub(crate) fn shown(self) -> (u8, &'p [i32]) {
        (self.level, self.until)
    }

    /// Whether the view's column at this position may be shown on this day.
    pub fn shows(&self, column: usize, today: NaiveDate) -> bool {
        today.to_epoch_days() <= self.until[column]
    }
}

impl Policies {
    /// The number of the person with this id: their own, or everybody's; `None` where there is neither.
    pub fn person(&self, id: &str) -> Option<u32> {
        self.persons.find(id).or(self.everybody)
    }

    /// How many numbers of persons there are, everybody's included.
    pub fn n_persons(&self) -> usize {
        self.persons.len()
    }

    /// A person's largest k over all pairs.
    pub fn k(&self, person: u32) -> u32 {
        self.largest_k[person as usize]
    }

    /// A person's k for one pair; `None` where they refuse it.
    pub fn k_for(&self, pair: PairId, person: u32) -> Option<u32> {
        self.choice(pair, person).map(|choice| choice.k)
    }

    /// All pairs that choices were made for, in the order of the table.
    pub fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    /// The pair of this purpose and recipient. Where the table has no purposes or no recipients, any will do.
    ///
    /// # Errors
    /// Where one is missing, or nobody made a choice for it.
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

    /// What a person allows for a pair; `None` is nothing at all.
    pub fn choice(&self, pair: PairId, person: u32) -> Option<Choice<'_>> {
        let terms = self.terms_id(pair.0, person);
        (terms != NO_TERMS).then(|| self.terms.choice(terms))
    }

    /// Columns of the view that nobody allows for any purpose on this day: they need not be collected.
    pub fn unused_columns(&self, today: NaiveDate) -> Vec<usize> {
        let is_unused = |column: &usize| self.terms.all().all(|choice| !choice.shows(*column, today));
        (0..self.terms.n_columns()).filter(is_unused).collect()
    }

    fn terms_id(&self, pair: usize, person: u32) -> u32 {
        match (self.terms_of[pair][person as usize], self.everybody) {
            (NO_TERMS, Some(everybody)) => self.terms_of[pair][everybody as usize],
            (own, _) => own,
        }
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
