//! [`ShownCells`]: one hash per person of what a version shows of the person beside labels.
//!
//! Two versions of a view may put everybody into the same classes and still differ in a cell. A reader who kept the first
//! version and reads the second sees which rows are new, and so tells the persons whose cells changed apart from the others
//! of their class.
//!
//! # Guarantee
//! The hashes of a person in two versions differ if the person's sensitive or plain cells differ, or, with DISCLOSURE ROW,
//! if the person's choices differ, except for a collision of 64 bits. Labels do not count. Hashes of two processes can't be
//! compared, and no hash tells a cell.
//! # Deviations
//! A cell that nobody may see counts as shown, so a warning may be needless.
//! # Cost
//! A hash per row, and 8 bytes per person.

use std::fmt::Write;
use std::hash::BuildHasher;
use std::sync::LazyLock;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use foldhash::quality::RandomState;
use kohort_model::{Disclosure, Role, Table};

use super::digest::row_bytes;
use crate::policy::{Choice, Pair, PairId, Policies};
use crate::view::Definition;
use crate::view::consent::Wishes;

/// Random, so nobody can craft cells that collide, and the same for all versions, so that they can be compared.
static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::default);

/// What a version shows of each person.
pub(in crate::view) struct ShownCells {
    /// Names and types of the columns.
    columns: String,
    /// For each person of the version, a hash.
    of_person: Vec<u64>,
}

impl ShownCells {
    /// What is shown of the persons of a table that was read from these rows; `None` if values of a column's type can't be
    /// written as bytes.
    pub(in crate::view) fn of(
        definition: &Definition,
        policies: Option<&Policies>,
        wishes: &Wishes,
        table: &Table,
        rows: &RecordBatch,
    ) -> Option<ShownCells> {
        let is_shown = |position: &usize| match definition.columns[*position].role {
            Role::Sensitive | Role::Plain => *position != definition.identifier,
            _ => false,
        };
        let shown: Vec<usize> = (0..definition.columns.len()).filter(is_shown).collect();
        let mut columns = String::new();
        for &position in &shown {
            let column = &definition.columns[position];
            writeln!(columns, "{:?} {}", column.name, rows.column(position).data_type())
                .expect("a text takes any text");
        }
        let cells: Vec<ArrayRef> = shown.iter().map(|&position| rows.column(position).clone()).collect();
        let bytes = if cells.is_empty() { None } else { Some(row_bytes(&cells).ok()?) };
        let choices = policies.filter(|_| definition.clauses.disclosure == Disclosure::Row).map(of_choices);
        let person_column = table.person_column()?;
        let mut of_person = vec![0u64; person_column.texts.len()];
        for (row, &person) in person_column.ids.iter().enumerate() {
            let cells = bytes.as_ref().map(|bytes| bytes.row(row));
            let policy = wishes.policy_of_row.get(row).copied().flatten();
            let choice = choices.as_ref().zip(policy).map(|(choices, policy)| choices[policy as usize]);
            let hash = SEED.hash_one((cells.as_ref().map(AsRef::<[u8]>::as_ref), choice));
            // A sum, because rows come in any order.
            let of_person = &mut of_person[person as usize];
            *of_person = of_person.wrapping_add(hash);
        }
        Some(ShownCells { columns, of_person })
    }

    /// Whether both show the same columns.
    pub(in crate::view) fn is_comparable(&self, other: &ShownCells) -> bool {
        self.columns == other.columns
    }

    /// The hash of what is shown of a person.
    pub(in crate::view) fn of_person(&self, person: usize) -> u64 {
        self.of_person[person]
    }
}

/// For each policy, a hash of what it lets readers see, which does not depend on the order of purposes and recipients.
fn of_choices(policies: &Policies) -> Vec<u64> {
    let of_pair = |policy: u32| {
        move |(number, pair): (usize, &Pair)| {
            let shows = policies.choice(PairId(number), policy).map(Choice::shown);
            SEED.hash_one((&pair.purpose, &pair.recipient, shows))
        }
    };
    let of_policy = |policy: u32| {
        policies.pairs().iter().enumerate().map(of_pair(policy)).fold(0, |all: u64, hash| all.wrapping_add(hash))
    };
    (0..policies.n_persons() as u32).map(of_policy).collect()
}
