//! The released part of a hierarchy file, read back.

use std::path::Path;

use kohort_model::Silent;
use kohort_model::spec::CsvSpec;
use kohort_verify::{Listing, ListingErrorKind};

use super::error::ReadErrors;
use super::open::{CheckOptions, read_released};
use crate::write::LISTING_COLUMNS;
use crate::{Compression, InputFormat};

/// Why a file is no listing.
pub(crate) enum ListingError {
    /// The file can't be read as a table.
    Table(ReadErrors),
    /// The file has other columns, or a cell is missing.
    OtherColumns,
    /// The file lists something impossible.
    Fault(ListingErrorKind),
}

/// Reads the values that the labels of a column stand for.
pub(crate) fn read_listing_file(path: &Path) -> Result<Listing, ListingError> {
    let csv = CsvSpec { separator: Some(','), ..CsvSpec::default() };
    let options = CheckOptions { format: Some(InputFormat::Csv(Compression::None)), csv };
    let table = read_released(path, &options, &Silent).map_err(ListingError::Table)?;
    let [labels, values] = table.columns.as_slice() else { return Err(ListingError::OtherColumns) };
    if [&labels.name, &values.name] != LISTING_COLUMNS {
        return Err(ListingError::OtherColumns);
    }
    let pair = |row: usize| Some((labels.cell(row)?.to_owned(), values.cell(row)?.to_owned()));
    let pairs: Option<Vec<(String, String)>> = (0..table.n_rows).map(pair).collect();
    Listing::new(pairs.ok_or(ListingError::OtherColumns)?).map_err(ListingError::Fault)
}
