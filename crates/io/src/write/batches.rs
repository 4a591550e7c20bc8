//! [`release_batches`]: a release as Arrow batches in memory, for programs that need no file.
//!
//! The batches are read back and verified like files, because the code that encodes them can be wrong.

use kohort_model::{Release, Silent};
use kohort_verify::{Findings, Verified};

use super::arrow::ArrowTable;
use super::cells::file_columns;
use super::error::WriteError;
use super::table::{Form, labels_again};
use crate::read::{Batches, released_in};
use crate::{Private, ReadErrors};

/// A released table in memory.
#[derive(Clone, Debug)]
pub struct ReleasedBatches {
    /// The name of the table.
    pub name: String,
    /// The rows of the table.
    pub rows: Batches,
}

/// The tables of a release as batches, and what the verifier counted in them.
///
/// # Errors
/// If a column can't be encoded, or the batches do not hold the verified rows.
pub fn release_batches(
    release: &Verified<Release>,
    private: &Private,
) -> Result<(Vec<ReleasedBatches>, Findings), WriteError> {
    let (mut tables, mut read) = (Vec::new(), Vec::new());
    private.with_originals(|originals| {
        for (table, &original) in release.get().tables.iter().zip(originals) {
            let columns = file_columns(table, original)?;
            let encoded = ArrowTable::new(&columns, table.rows.len(), original)?;
            let fail = |message: String| WriteError::Encode { path: table.name.clone().into(), message };
            let batches = encoded.batches().collect::<Result<_, _>>().map_err(|error| fail(error.to_string()))?;
            let rows = Batches::new(encoded.schema().clone(), batches)
                .map_err(|_| fail("its batches differ in their columns".to_owned()))?;
            let mut written = released_in(&table.name, rows.open(&Silent))
                .map_err(|problems| WriteError::ReadBack(ReadErrors { file: table.name.clone().into(), problems }))?;
            labels_again(&mut written, Form::Arrow, table, original)?;
            read.push(written);
            tables.push(ReleasedBatches { name: table.name.clone(), rows });
        }
        Ok(())
    })?;
    let findings = private.verify_written(&read, release).map_err(WriteError::Changed)?;
    Ok((tables, findings))
}
