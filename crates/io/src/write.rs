//! Writing: from a `Verified<Release>` to files that are verified once more.

mod arrow;
mod batches;
mod cells;
mod csv;
mod error;
mod folder;
mod joined;
mod listing;
mod rows;
mod stdout;
mod stream;
mod table;

pub use batches::{ReleasedBatches, release_batches};
pub use error::WriteError;
pub use folder::{Existing, Staged, WriteOptions, WrittenFile, check_target, stage};
pub use rows::{VerifiedRows, write_rows};
pub use stdout::write_csv_to;

pub(crate) use cells::{CellIds, CellsOf, FileColumn, Kind, ShownBounds};
#[cfg(any(fuzzing, test))]
pub(crate) use csv::write_texts;
pub(crate) use folder::{Partial, check_reading, described, file_name_of, private_folder, sync, write_listings};
pub(crate) use joined::FileForms;
pub(crate) use listing::COLUMNS as LISTING_COLUMNS;
pub(crate) use stream::RowWriter;
pub(crate) use table::{Form, SpelledLabels};
