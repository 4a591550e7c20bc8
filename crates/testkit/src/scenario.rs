//! [`Scenario`]: a small job given as texts, run the way the command runs it, from file to released file.
//! [`tables_job`]: a small job of several tables.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kohort_core::{AnonymizeError, Anonymized, anonymize};
use kohort_io::{Existing, Format, LoadedTable, Private, WriteOptions, stage};
use kohort_model::spec::TableSpec;
use kohort_model::{Column, Release, Requirement, Schema, Silent, Spec, Table};
use kohort_verify::{SuppressionLimit, Verified, verify_release};
use tempfile::TempDir;

use crate::generate::snowflake::TablesJob;

/// A job of several tables: a spec, and the header and rows of each table, where an empty cell is null.
///
/// # Panics
/// If spec and tables do not fit each other, because such jobs are written by hand.
pub fn tables_job(spec: &str, tables: &[(&str, Vec<String>)]) -> TablesJob {
    let spec = Spec::parse(spec).unwrap_or_else(|problems| panic!("{problems}"));
    let read = |(wanted, (header, rows)): (&TableSpec, &(&str, Vec<String>))| {
        let cells: Vec<Vec<Option<&str>>> = rows
            .iter()
            .map(|row| row.split(',').map(|cell| Some(cell).filter(|cell| !cell.is_empty())).collect())
            .collect();
        let columns: Vec<Column> = header
            .split(',')
            .enumerate()
            .map(|(position, name)| {
                let role =
                    wanted.columns.iter().find(|column| column.name == name).expect("every column has a role").role;
                Column::from_cells(name, role, cells.iter().map(|row| row[position]))
            })
            .collect();
        let person = wanted.person.as_ref().and_then(|name| header.split(',').position(|column| column == name));
        Table { name: wanted.name.clone(), columns, n_rows: rows.len(), person }
    };
    let tables: Vec<Table> = spec.tables.iter().zip(tables).map(read).collect();
    let schema = Schema::of(&spec, &tables).unwrap_or_else(|problems| panic!("{problems}"));
    TablesJob { tables, schema, spec }
}

/// A table and a spec, read.
pub struct Scenario {
    folder: TempDir,
    /// The spec; may be changed before it is run.
    pub spec: Spec,
    /// The private table.
    pub loaded: LoadedTable,
}

impl Scenario {
    /// Reads a table and a spec from their texts. The spec's first table is the CSV text, whatever file it names.
    ///
    /// # Panics
    /// If the table or the spec is wrong, because scenarios are written by hand.
    pub fn new(csv: &str, spec: &str) -> Scenario {
        Self::with_files(csv, spec, &BTreeMap::new())
    }

    /// Reads a table and a spec from their texts, together with files that the spec names, such as hierarchies.
    ///
    /// # Panics
    /// If one of the texts is wrong.
    pub fn with_files(csv: &str, spec: &str, files: &BTreeMap<String, String>) -> Scenario {
        let folder = tempfile::tempdir().expect("there is a temporary folder");
        let write = |name: &Path, text: &str| std::fs::write(folder.path().join(name), text).expect("it is writable");
        let spec = Spec::parse(spec).unwrap_or_else(|problems| panic!("{problems}"));
        write(&spec.tables[0].file, csv);
        files.iter().for_each(|(name, text)| write(Path::new(name), text));
        Self::read(folder, spec)
    }

    fn read(folder: TempDir, spec: Spec) -> Scenario {
        let loaded = kohort_io::load(folder.path(), &spec, &spec.tables[0], &Silent)
            .unwrap_or_else(|problems| panic!("{problems}"));
        Scenario { folder, spec, loaded }
    }

    /// What every class must satisfy.
    pub fn requirements(&self) -> Vec<Requirement> {
        self.spec.requirements(&self.spec.tables[0])
    }

    /// How many persons may be left out.
    pub fn limit(&self) -> SuppressionLimit {
        SuppressionLimit::share(self.spec.max_suppressed)
    }

    /// The release, or why there is none.
    ///
    /// # Errors
    /// The errors of [`anonymize`].
    pub fn run(&self) -> Result<Anonymized, AnonymizeError> {
        anonymize(&self.loaded.table, &self.spec, &self.requirements(), &Silent)
    }

    /// The verified release.
    ///
    /// # Panics
    /// If there is no release.
    pub fn verified(&self) -> Verified<Release> {
        let done = self.run().unwrap_or_else(|error| panic!("{error}"));
        verify_release(done.release, &self.loaded.table, &self.requirements(), self.limit())
            .unwrap_or_else(|violations| panic!("{violations}"))
    }

    /// The released file.
    ///
    /// # Panics
    /// If there is no release.
    pub fn released_csv(&self) -> String {
        let mut bytes = Vec::new();
        kohort_io::write_csv_to(&mut bytes, &self.verified(), &self.private())
            .unwrap_or_else(|problem| panic!("{problem}"));
        String::from_utf8(bytes).expect("releases are UTF-8")
    }

    /// Writes the release to a folder, and gives back the released file.
    ///
    /// # Panics
    /// If there is no release.
    pub fn write(&self, format: Format) -> PathBuf {
        let options = WriteOptions { format: Some(format), existing: Existing::Refuse };
        let folder = self.folder.path().join(format!("release-{}", format.extension()));
        let staged = stage(&self.verified(), &self.private(), &folder, options, &Silent)
            .unwrap_or_else(|problem| panic!("{problem}"));
        let file = folder.join(&staged.files()[0].name);
        // Manifests are tested where they are made; here only the table is read.
        staged.publish(&()).unwrap_or_else(|problem| panic!("{problem}"));
        file
    }

    fn private(&self) -> Private {
        Private::one(self.spec.clone(), self.loaded.clone())
    }
}
