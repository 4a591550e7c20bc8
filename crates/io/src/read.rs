//! Reading: turns a file and a spec into a [`LoadedTable`], or reports everything that is wrong.

mod applied;
mod arrow;
mod audit;
mod batches;
mod columns;
mod counted;
mod csv;
mod dictionary;
mod error;
mod estimate;
mod hierarchies;
mod lazy;
mod listing;
mod load;
mod manifest;
mod missing;
mod nearest;
mod open;
mod persons;
mod pseudonym;
mod register;
mod release;
mod roles;
mod rows;
mod sources;
mod streamed;
mod tables;
mod transform;
mod typing;

pub use audit::{AuditOptions, read_for_audit};
pub use batches::TableBatches;
pub use columns::FileColumns;
pub use counted::{CountedRowsAgain, CountedTable};
pub use error::{MissingValue, ReadError, ReadErrors, RowNumber, RowNumbers};
pub use estimate::EstimatedTable;
pub use hierarchies::texts_by_value;
pub use lazy::{LazyColumns, NotHandedOver};
pub use load::{LoadedTable, Origin, check_labels, load};
pub use missing::{MissingText, missing_values};
pub use open::{CheckOptions, read_batches_for_check, read_for_check};
pub use pseudonym::KeyFault;
pub use register::{EarlierRegister, JoinedBy, LoadedRegister, LoadedRegisters, load_registers};
pub use release::{
    DOCUMENTS, ReleaseError, ReleasedColumns, count_released, manifest_digest, read_listing, read_manifest_of,
    read_release, read_release_of, read_release_with,
};
pub use rows::{PlainCells, PrivateRows, read_rows};
pub use sources::{Batches, InMemory, Sources};
pub use streamed::{NumberedRows, Piece, RowsAgain, StreamedTable};
pub use tables::{LoadError, LoadedTables, load_tables};
pub use typing::infer_type;

pub(crate) use csv::{CsvBatches, CsvFile};
pub(crate) use dictionary::{TextDictionary, ValueDictionary};
pub(crate) use listing::{ListingError, read_listing_file};
pub(crate) use load::{ColumnReading, Original};
pub(crate) use open::{OpenTable, read_released, released_in};
pub(crate) use release::as_readers_see;
pub(crate) use rows::columns_together;
pub(crate) use streamed::{NumberedColumns, Pieces};
pub(crate) use typing::infer;

use arrow_schema::Field;
use kohort_model::Texts;

use persons::{KnownPersons, NamedPerson};

/// A column as it was read: its distinct texts, for each row the id of its text or `NULL`, and the Arrow field, if the file
/// has one.
pub(crate) struct RawColumn {
    pub(crate) texts: Texts,
    pub(crate) ids: Vec<u32>,
    pub(crate) field: Option<Field>,
}

/// What a reader keeps of a column.
#[derive(Clone, Copy)]
pub(crate) enum Keep<'p> {
    /// The texts of the column's cells.
    Texts,
    /// The persons that the column's cells name, without the texts.
    Persons(&'p KnownPersons<'p>),
}

/// What a reader has kept of a column.
pub(crate) enum Kept {
    Texts(RawColumn),
    /// For each row, the person that [`KnownPersons`] finds for the row's key.
    Persons(Vec<NamedPerson>),
}
