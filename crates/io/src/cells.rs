//! Tables that are larger than memory: their rows wait on the disk, cell by cell, and the released rows of all cells are merged
//! into one file.
//!
//! 1. [`CellStore`] takes the rows of each cell, and gives a cell back as a table.
//! 2. [`ReleasedCells`] takes the verified release of each cell.
//! 3. [`ReleasedCells::stage`] merges them in the order of a release, writes the file, reads it back twice for the verifier,
//!    and hands out the same [`crate::Staged`] folder as for a table in memory.

mod merge;
mod persons;
mod read_back;
mod released;
mod spill;
mod store;

pub use released::{ClassSizes, ReleasedCells, StagedCells};
pub use spill::Spill;
pub(crate) use spill::remove_abandoned;
pub use store::{CellStore, StoredRows, parts_of};
