//! Files: private tables in, verified releases out. The only crate that touches what a user owns.
//!
//! Reading turns CSV, Parquet and Arrow into [`kohort_model::Table`]s, every column a dictionary of texts in the order
//! of first appearance. Writing takes nothing but `Verified<Release>`, and what was written is read back and verified
//! again before it appears under its name.
//!
//! Arrow stops here, but for [`TableBatches`], which a query engine takes as they are: a copied cell of any Arrow type travels through the other crates as a text that means the same
//! value bit by bit (`arrow_text`), and becomes an Arrow value again when it is written.

mod arrow_text;
mod bounds;
mod described;
mod digest;
mod format;
#[cfg(any(fuzzing, test))]
pub mod fuzzed;
mod private;
mod read;
mod write;

pub use bounds::CellForm;
pub use described::ColumnManifests;
pub use format::{Compression, Format, InputFormat};
pub use private::{AskedOfOne, Private, PrivateTables, asked_of_join};
pub use read::{
    AuditOptions, Batches, CheckOptions, EarlierRegister, FileColumns, InMemory, JoinedBy, LoadError, LoadedRegister,
    LoadedRegisters, LoadedTable, LoadedTables, MissingValue, Origin, PlainCells, PrivateRows, ReadError, ReadErrors,
    ReleaseError, RowNumber, RowNumbers, Sources, TableBatches, check_labels, infer_type, load, load_registers,
    load_tables, manifest_digest, read_batches_for_check, read_for_audit, read_for_check, read_listing, read_release,
    read_release_of, read_release_with, read_rows, texts_by_value,
};
pub use write::{
    Existing, ReleasedBatches, Staged, VerifiedRows, WriteError, WriteOptions, WrittenFile, check_target,
    release_batches, stage, write_csv_to, write_rows,
};

/// Who can do something about an error; decides the exit code of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// The input or the way it was asked for is wrong.
    Input,
    /// The file system failed, or kohort did.
    Io,
}
