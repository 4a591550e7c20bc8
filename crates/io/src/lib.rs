//! Files: private tables in, verified releases out. No other crate touches the files of a user.
//!
//! Reading turns CSV, Parquet and Arrow into [`kohort_model::Table`]s, in which every column is a dictionary of texts in the
//! order of first appearance. Writing takes nothing but a `Verified<Release>`. The written files are read back and verified
//! again before the release appears under its name.
//!
//! Other crates see no Arrow values: a copied cell of any Arrow type travels through them as a text that stands for the same
//! value bit by bit (`arrow_text`), and becomes an Arrow value again when it is written. The exception are [`TableBatches`],
//! which a query engine takes as they are.

mod arrow_text;
mod bounds;
mod cells;
mod described;
mod digest;
mod format;
#[cfg(any(fuzzing, test))]
pub mod fuzzed;
mod private;
mod read;
mod write;

pub use bounds::CellForm;
pub use cells::{CellStore, ClassSizes, ReleasedCells, Spill, StagedCells, StoredRows, parts_of};
pub use described::ColumnManifests;
pub use format::{Compression, Format, InputFormat};
pub use private::{AskedOfOne, Private, PrivateTables, asked_of_join};
pub use read::{
    AuditOptions, Batches, CheckOptions, CountedRowsAgain, CountedTable, DOCUMENTS, EarlierRegister, EstimatedTable,
    FileColumns, InMemory, JoinedBy, KeyFault, LazyColumns, LoadError, LoadedRegister, LoadedRegisters, LoadedTable,
    LoadedTables, MissingText, MissingValue, NotHandedOver, NumberedRows, Origin, Piece, PlainCells, PrivateRows,
    ReadError, ReadErrors, ReleaseError, ReleasedColumns, RowNumber, RowNumbers, RowsAgain, Sources, StreamedTable,
    TableBatches, check_labels, count_released, infer_type, load, load_registers, load_tables, manifest_digest,
    missing_values, read_batches_for_check, read_for_audit, read_for_check, read_listing, read_manifest_of,
    read_release, read_release_of, read_release_with, read_rows, texts_by_value,
};
pub use write::{
    Existing, ReleasedBatches, Staged, VerifiedRows, WriteError, WriteOptions, WrittenFile, check_target,
    release_batches, stage, write_csv_to, write_rows,
};

/// Who can mend an error. It decides the exit code of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// The user: the input, or what was asked of it, is wrong.
    Input,
    /// Not the user: the file system or kohort failed.
    Io,
}
