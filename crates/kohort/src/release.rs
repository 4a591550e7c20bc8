//! [`Release`]: a verified release in memory, which can be written to a folder, to a stream or to Arrow batches.

use std::io::Write;
use std::path::Path;

use kohort_io::{
    ColumnManifests, Private, ReleasedBatches, WriteOptions, WrittenFile, release_batches, stage, write_csv_to,
};
use kohort_model::{Manifest, Progress, ReleasedTable, Silent};
use kohort_verify::{Findings, Verified};

use crate::described::own_values_listed;
use crate::error::{Error, Report};
use crate::manifest::Facts;
use crate::report::Documents;
use crate::totals::{self, TotalChange};
use crate::verification::count_read;

/// A release that the verifier has accepted, with the private tables it was made from.
///
/// Only [`crate::Job::anonymize`] makes a `Release`, so it always satisfies what was asked. Each way of writing it encodes
/// the rows, reads them back and verifies them again.
#[derive(Debug)]
pub struct Release {
    facts: Facts,
    release: Verified<kohort_model::Release>,
    private: Private,
    manifest: Manifest,
    rows_left_out: Vec<u64>,
}

impl Release {
    pub(crate) fn new(
        facts: Facts,
        release: Verified<kohort_model::Release>,
        private: Private,
        rows_left_out: Vec<u64>,
    ) -> Self {
        let released = &release.get().tables;
        let unnamed = |(table, columns): (&ReleasedTable, ColumnManifests)| WrittenFile {
            name: String::new(),
            sha256: String::new(),
            n_rows: table.rows.len() as u64,
            csv: None,
            columns,
        };
        let files: Vec<WrittenFile> = released.iter().zip(private.column_manifests(released)).map(unnamed).collect();
        let manifest = facts.manifest(&private.spec, &files, release.findings());
        Release { facts, release, private, manifest, rows_left_out }
    }

    /// What was asked, reached and lost. Before the release is written, files have no names and no digests.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// What the verifier counted in the release. Its class sizes are not in the manifest.
    pub fn findings(&self) -> &Findings {
        self.release.findings()
    }

    /// Writes the release to a folder that does not exist yet or is empty. Tables have the format of their input, or
    /// Parquet where they came from memory.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder can't be written, [`Error::Input`] if it is not empty. Then nothing is kept.
    pub fn write(&self, folder: impl AsRef<Path>) -> Result<Manifest, Error> {
        self.write_with(folder, WriteOptions::default(), &Silent)
    }

    /// Does the same as [`Release::write`], in another format or in place of another release. `progress` is told how far the
    /// work is, and can cancel it.
    ///
    /// # Errors
    /// As [`Release::write`], and [`Error::Cancelled`].
    pub fn write_with(
        &self,
        folder: impl AsRef<Path>,
        options: WriteOptions,
        progress: &dyn Progress,
    ) -> Result<Manifest, Error> {
        let mut staged = stage(&self.release, &self.private, folder.as_ref(), options, progress)?;
        if progress.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let manifest = self.facts.manifest(&self.private.spec, staged.files(), staged.findings());
        // Documents follow from the manifest as readers read it, which can change the last bit of a fraction.
        let read = as_read(&manifest)?;
        let tables = staged.read_tables(&read)?;
        let counted = count_read(staged.place(), read, &tables, progress).map_err(as_fault)?;
        for (name, text) in &Documents::of(&counted, &tables).map_err(as_fault)?.files {
            staged.add_document(name, text)?;
        }
        staged.publish(&manifest)?;
        Ok(manifest)
    }

    /// Writes the only table of the release as CSV. The bytes are verified before the first one is written.
    ///
    /// # Errors
    /// [`Error::Input`] if the release has several tables, [`Error::Io`] if the stream can't be written.
    pub fn write_csv(&self, target: &mut dyn Write) -> Result<(), Error> {
        if self.release.get().tables.len() != 1 {
            return Err(Error::input("several tables can't be printed", "write the release to a folder"));
        }
        write_csv_to(target, &self.release, &self.private)?;
        Ok(())
    }

    /// The released tables as Arrow batches, which are verified once more after they were encoded.
    ///
    /// # Errors
    /// [`Error::Io`] if a column can't be encoded.
    pub fn to_batches(&self) -> Result<Vec<ReleasedBatches>, Error> {
        let (tables, _) = release_batches(&self.release, &self.private)?;
        Ok(tables)
    }

    /// Rows of the private table, counted from 1, that were left out because of earlier releases. They are for the publisher
    /// alone: the release and its manifest must not tell who was left out.
    pub fn rows_left_out(&self) -> &[u64] {
        &self.rows_left_out
    }

    /// By how much rows that are left out change totals and means of sensitive numbers in child tables. The publisher alone
    /// should know, because with the released total it tells the sum of the values that are left out.
    pub fn total_changes(&self) -> Vec<TotalChange> {
        totals::changes(&self.private, &self.release.get().tables)
    }

    /// Columns whose released hierarchy lists only values that the private table holds. If the publisher made the hierarchy
    /// from the table, it tells readers which values the table holds, and should be withheld.
    pub fn own_values_listed(&self) -> Vec<String> {
        own_values_listed(&self.private.spec, &self.release.get().tables, &self.private.tables())
    }
}

/// A release that was verified and is not as its readers count it is a fault of kohort.
pub(crate) fn as_fault(error: Error) -> Error {
    match error {
        Error::NotMet(reports) | Error::CannotTell(reports) | Error::Input(reports) => Error::Fault(reports),
        error => error,
    }
}

/// A manifest as it is read from its file.
pub(crate) fn as_read(manifest: &Manifest) -> Result<Manifest, Error> {
    let fault = |error: serde_json::Error| Error::Fault(vec![Report::new(format!("manifest.json: {error}"))]);
    let text = serde_json::to_string(manifest).map_err(fault)?;
    serde_json::from_str(&text).map_err(fault)
}
