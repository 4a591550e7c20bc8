//! Writing: from a `Verified<Release>` to files that were verified once more.

mod arrow;
mod cells;
mod csv;
mod folder;
mod joined;
mod listing;
mod problem;
mod rows;
mod stdout;
mod table;

pub use folder::{Existing, WriteOptions, WrittenFile, check_target, write_joined, write_release, write_tables};
pub use problem::WriteProblem;
pub use rows::{VerifiedRows, write_rows};
pub use stdout::write_csv_to;

#[cfg(any(fuzzing, test))]
pub(crate) use csv::write_texts;
pub(crate) use joined::FileForms;
pub(crate) use listing::COLUMNS as LISTING_COLUMNS;
