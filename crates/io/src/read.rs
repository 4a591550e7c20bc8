//! Reading: from a file and a spec to a [`LoadedTable`], or all reasons why not.

mod arrow;
mod audit;
mod batches;
mod columns;
mod csv;
mod dictionary;
mod error;
mod hierarchies;
mod listing;
mod load;
mod manifest;
mod nearest;
mod open;
mod persons;
mod register;
mod release;
mod roles;
mod rows;
mod sources;
mod tables;
mod typing;

pub use audit::{AuditOptions, read_for_audit};
pub use batches::TableBatches;
pub use columns::FileColumns;
pub use error::{MissingValue, ReadError, ReadErrors, RowNumber, RowNumbers};
pub use hierarchies::texts_by_value;
pub use load::{LoadedTable, Origin, check_labels, load};
pub use open::{CheckOptions, read_batches_for_check, read_for_check};
pub use register::{EarlierRegister, JoinedBy, LoadedRegister, LoadedRegisters, load_registers};
pub use release::{ReleaseError, manifest_digest, read_listing, read_release, read_release_of, read_release_with};
pub use rows::{PlainCells, PrivateRows, read_rows};
pub use sources::{Batches, InMemory, Sources};
pub use tables::{LoadError, LoadedTables, load_tables};
pub use typing::infer_type;

#[cfg(any(fuzzing, test))]
pub(crate) use csv::CsvBatches;
pub(crate) use csv::CsvFile;
pub(crate) use dictionary::{TextDictionary, ValueDictionary};
pub(crate) use listing::{ListingError, read_listing_file};
pub(crate) use load::{ColumnReading, Original};
pub(crate) use open::{OpenTable, read_released, released_in};
pub(crate) use rows::columns_together;
pub(crate) use typing::infer;

use arrow_schema::Field;
use kohort_model::Texts;

use persons::{KnownPersons, NamedPerson};

/// A column as read: its distinct texts, per row the id of one or `NULL`, and its Arrow field, if it has one.
pub(crate) struct RawColumn {
    pub(crate) texts: Texts,
    pub(crate) ids: Vec<u32>,
    pub(crate) field: Option<Field>,
}

/// What is to be kept of a column.
#[derive(Clone, Copy)]
pub(crate) enum Keep<'p> {
    /// Its cells.
    Texts,
    /// Who they name.
    Persons(&'p KnownPersons<'p>),
}

/// What was kept of a column.
pub(crate) enum Kept {
    Texts(RawColumn),
    /// Per row who [`KnownPersons`] says it is of.
    Persons(Vec<NamedPerson>),
}
