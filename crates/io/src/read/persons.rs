//! [`KnownPersons`]: who a register's key names, as one number per row instead of a text.
//!
//! A person of the private table is the position of its row. Anybody else is a hash of the key, with a fixed seed so that
//! results don't depend on chance. Two keys may share a hash: then two persons are taken for one, or for one of whom
//! contradicting things are said. Either way too few are counted, never too many.
//!
//! # Cost   8 bytes per register row, whatever the keys look like

use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::quality::FixedState;
use kohort_model::{Column, NULL};

/// Persons of the private table by their key.
pub(crate) struct KnownPersons<'t> {
    rows: HashMap<&'t str, u32>,
    hasher: FixedState,
}

/// Numbers from here on are hashes of keys.
const FIRST_HASH: u64 = 1 << 63;

/// The number of a row that names nobody.
pub(crate) const NOBODY: u64 = u64::MAX;

impl<'t> KnownPersons<'t> {
    /// The persons of a column in which each stands once.
    pub(crate) fn new(column: &'t Column) -> Self {
        let named = (0..).zip(&column.ids).filter(|&(_, &id)| id != NULL);
        KnownPersons {
            rows: named.map(|(row, &id)| (column.texts.get(id), row)).collect(),
            hasher: FixedState::with_seed(0),
        }
    }

    /// The number of who a key names.
    pub(crate) fn number(&self, key: &str) -> u64 {
        match self.rows.get(key) {
            Some(&row) => u64::from(row),
            None => (self.hasher.hash_one(key) | FIRST_HASH).min(NOBODY - 1),
        }
    }
}

/// The row of the private table that a number stands for.
pub(crate) fn private_row(number: u64) -> Option<usize> {
    (number < FIRST_HASH).then_some(number as usize)
}

#[cfg(test)]
mod tests {
    use kohort_model::Role;

    use super::*;

    #[test]
    fn private_persons_are_rows_and_all_others_are_not() {
        let column = Column::from_cells("id", Role::Key, [Some("a"), Some("b")]);
        let persons = KnownPersons::new(&column);
        assert_eq!(private_row(persons.number("b")), Some(1));
        assert_eq!(private_row(persons.number("c")), None);
        assert_ne!(persons.number("c"), persons.number("d"));
        assert_eq!(private_row(NOBODY), None);
    }
}
