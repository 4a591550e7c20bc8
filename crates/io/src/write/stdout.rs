//! [`write_csv_to`]: a release of one table as CSV to a stream. A stream can't be taken back once it has begun, so the bytes
//! go to a temporary file first, are read back and verified there, and only then copied.

use std::fs::File;
use std::io::{self, Write};

use kohort_model::Release;
use kohort_verify::{Findings, Verified, Violation};

use super::error::WriteError;
use super::table::{read_back, write_table};
use crate::{Compression, Format, Private};

/// Writes a release of one table as CSV, verified before the first byte leaves.
///
/// # Errors
/// If the disk fails, the stream is closed, or the temporary file does not hold the verified rows.
pub fn write_csv_to(
    target: &mut dyn Write,
    release: &Verified<Release>,
    private: &Private,
) -> Result<Findings, WriteError> {
    let folder =
        tempfile::Builder::new().prefix(".kohort-partial-").tempdir().map_err(WriteError::io(&std::env::temp_dir()))?;
    let path = folder.path().join("table.csv");
    let format = Format::Csv(Compression::None);
    let file = File::create_new(&path).map_err(WriteError::io(&path))?;
    let several = || WriteError::Changed(Violation::NotOneTable { n: release.get().tables.len() as u64 }.into());
    let written = private.with_originals(|originals| {
        let ([table], [original]) = (release.get().tables.as_slice(), originals) else { return Err(several()) };
        write_table(table, *original, format, Box::new(file), &path)?;
        read_back(&path, format, table, *original)
    })?;
    let findings = private.verify_written(&[written], release).map_err(WriteError::Changed)?;
    let mut file = File::open(&path).map_err(WriteError::io(&path))?;
    io::copy(&mut file, target).and_then(|_| target.flush()).map_err(WriteError::io("standard output".as_ref()))?;
    Ok(findings)
}
