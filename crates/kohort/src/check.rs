//! [`Check`]: counts which requirements a table satisfies, whoever made it.

mod risks;

use std::collections::BTreeSet;
use std::path::Path;

use kohort_io::{
    Batches, CheckOptions, CountedTable, FileColumns, ReadError, ReadErrors, infer_type, read_batches_for_check,
    read_for_check,
};
use kohort_model::spec::CsvSpec;
use kohort_model::{Distance, Notation, Progress, Requirement, Table};
use kohort_verify::{Findings, PartsCounter, Violations, measure};

use crate::error::{Error, Report, violation_reports};
use crate::in_parts::count_in_parts;
use crate::make::notation_of;
use crate::memory::Memory;

pub use risks::{ColumnRisk, RiskOptions, Risks};

/// The columns of a table to be counted, and the requirements to be checked.
///
/// ```no_run
/// use kohort::{Check, Requirement, Silent};
///
/// # fn main() -> Result<(), kohort::Error> {
/// let check = Check {
///     quasi: vec!["age".to_owned(), "zip".to_owned()],
///     requirements: vec![Requirement::K(5)],
///     ..Check::default()
/// };
/// let checked = check.file("patients.csv", &Silent)?;
/// println!("smallest class {}, {} requirements unmet", checked.findings.k, checked.unmet.len());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Check {
    /// Columns that others could know about a person.
    pub quasi: Vec<String>,
    /// Columns that nobody should learn.
    pub sensitive: Vec<String>,
    /// The column that names the person; without it each row is a person.
    pub person: Option<String>,
    /// What every class should satisfy.
    pub requirements: Vec<Requirement>,
}

/// What was counted in a table.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The counts.
    pub findings: Findings,
    /// Requirements that are not met.
    pub unmet: Vec<Report>,
}

impl Check {
    /// Counts a file: CSV (also `.gz`, `.zst`), Parquet or Arrow; `-` is standard input.
    ///
    /// # Errors
    /// [`Error::Input`] if it can't be read or a column is not there.
    pub fn file(&self, path: impl AsRef<Path>, progress: &dyn Progress) -> Result<Checked, Error> {
        self.file_read_as(path, CsvSpec::default(), progress)
    }

    /// Does the same as [`Check::file`]. If the file is CSV, it is read in this way.
    ///
    /// # Errors
    /// As [`Check::file`].
    pub fn file_read_as(
        &self,
        path: impl AsRef<Path>,
        csv: CsvSpec,
        progress: &dyn Progress,
    ) -> Result<Checked, Error> {
        let (path, notation) = (path.as_ref(), notation_of(&csv));
        let options = CheckOptions { csv, ..CheckOptions::default() };
        self.count(path, read_for_check(path, &options, progress)?, &notation)
    }

    /// Does the same as [`Check::file`] for a file that may be larger than memory. Rows wait encrypted in the folder for temporary
    /// files.
    ///
    /// # Errors
    /// As [`Check::file`], and [`Error::Input`] for persons with several rows, which can't be counted in parts in this version.
    pub fn file_within(
        &self,
        path: impl AsRef<Path>,
        memory: Memory,
        progress: &dyn Progress,
    ) -> Result<Checked, Error> {
        if let Some(person) = &self.person {
            let message =
                format!("persons with several rows, named by '{person}', can't be counted in parts in this version");
            return Err(Error::input(message, "set no limit on memory: then all of it is read at once"));
        }
        let of_requirements = self.requirements.iter().filter_map(|requirement| requirement.column());
        let names = self.quasi.iter().chain(&self.sensitive).cloned().chain(of_requirements.map(str::to_owned));
        let (path, options, names): (_, _, BTreeSet<String>) =
            (path.as_ref(), CheckOptions::default(), names.collect());
        if names.is_empty() {
            return Err(Error::input("there is no column to count", "name columns that others could know"));
        }
        let mut counted = CountedTable::count(path, &options, &names, memory.of_texts(), progress)?;
        let quasi = positions(path, &counted.table, &self.quasi)?;
        let sensitive = positions(path, &counted.table, &self.sensitive)?;
        order_values(&mut counted.table, &self.requirements, &Notation::default());
        let refused = |violations: Violations| Error::Input(violation_reports(&violations.0));
        let mut counter =
            PartsCounter::of_table(&counted.table, &quasi, &sensitive, &self.requirements).map_err(refused)?;
        let folder = std::env::temp_dir();
        count_in_parts(&mut counted, &mut counter, &quasi, memory, &folder, progress)?.map_err(refused)?;
        let findings = counter
            .finish()
            .ok_or_else(|| Error::input("there are no rows to count", "check that this is the file you mean"))?;
        let unmet = violation_reports(&findings.unmet);
        Ok(Checked { findings, unmet })
    }

    /// Counts rows in memory.
    ///
    /// # Errors
    /// [`Error::Input`] if a column is not there.
    pub fn batches(&self, batches: &Batches, progress: &dyn Progress) -> Result<Checked, Error> {
        let name = "table";
        self.count(Path::new(name), read_batches_for_check(name, batches, progress)?, &Notation::default())
    }

    fn count(&self, place: &Path, mut table: Table, notation: &Notation) -> Result<Checked, Error> {
        self.count_in(place, &mut table, notation)
    }

    /// Counts a table, which then says who its persons are.
    fn count_in(&self, place: &Path, table: &mut Table, notation: &Notation) -> Result<Checked, Error> {
        let quasi = positions(place, table, &self.quasi)?;
        let sensitive = positions(place, table, &self.sensitive)?;
        table.person = positions(place, table, self.person.as_slice())?.first().copied();
        order_values(table, &self.requirements, notation);
        let findings = measure(table, &quasi, &sensitive, &self.requirements)
            .map_err(|violations| Error::Input(violation_reports(&violations.0)))?;
        let unmet = violation_reports(&findings.unmet);
        Ok(Checked { findings, unmet })
    }
}

/// Infers the types of columns whose order a requirement uses.
fn order_values(table: &mut Table, requirements: &[Requirement], notation: &Notation) {
    for requirement in requirements {
        if requirement.distance() == Some(Distance::Ordered)
            && let Some(position) = requirement.sensitive_column().and_then(|column| table.position(column))
        {
            let column = &mut table.columns[position];
            column.value_type = infer_type(&column.texts, notation);
            column.notation = notation.clone();
        }
    }
}

/// The positions of the columns with these names, or an error with all missing names.
pub(crate) fn positions(file: &Path, table: &Table, names: &[String]) -> Result<Vec<usize>, Error> {
    let columns: Vec<String> = names.iter().filter(|name| table.position(name).is_none()).cloned().collect();
    if !columns.is_empty() {
        let of_file: Vec<String> = table.columns.iter().map(|column| column.name.clone()).collect();
        let known = FileColumns::of_file(&of_file, names.iter().map(String::as_str));
        let problems = vec![ReadError::UnknownColumn { columns, known }];
        return Err(ReadErrors { file: file.to_owned(), problems }.into());
    }
    Ok(names.iter().filter_map(|name| table.position(name)).collect())
}
