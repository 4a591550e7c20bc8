//! [`import_policy`]: turns a policy file into rows of a table of choices.
//!
//! # TOML
//!
//! ```toml
//! person = "name"                     # the column that names persons; "person" if absent
//! k = 5                               # for policies without a k
//! sa_level = 0
//!
//! [[policy]]
//! purpose = "Treatment"               # in all policies or in none; the same for recipient
//! recipient = "Nurse"
//! k = 2
//! sa_level = 1
//! columns = { birth = "forever", zipcode = 2030-12-31, disease = 365 }
//!
//! [[policy.exceptions]]               # absent keys are as in the policy
//! person = "P3"
//! k = 3
//! columns = { zipcode = 30 }
//! ```
//!
//! `columns` lists the columns that may be shown, and for how long: `"forever"`, until a date, or for a number of days
//! after the import. Other columns are refused. A policy applies to everybody (`*`), an exception to one person.
//!
//! # P3P 1.0
//! Every STATEMENT becomes one policy per purpose and recipient. P3P has no k, and only two of its retentions have a
//! definite length: `no-retention` (nothing is shown) and `indefinitely`. The others are an error until a TOML file
//! says how long they last:
//!
//! ```toml
//! p3p = "policy.xml"                  # relative to this file
//! k = 5
//! [retention]
//! stated-purpose = 365
//! [data]
//! "user.home-info.postal.postalcode" = "zipcode"
//! ```
//!
//! Without an entry in `[data]`, the data element `#user.bdate` is the column `user_bdate`.

mod p3p;
mod toml;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::NaiveDate;
use datafusion::arrow::array::{ArrayRef, BooleanArray, Date32Array, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{Field, Schema};

use super::EVERYBODY;

/// Values for what the policy file leaves out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ImportDefaults {
    /// The column that names persons.
    pub person: Option<String>,
    /// The k to use if the file has none.
    pub k: Option<u32>,
}

/// Why a policy can't be imported. Messages contain names of columns, purposes and keys, but never a person.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}: {fault}", .path.display())]
pub struct ImportError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub fault: ImportFault,
}

/// What is wrong with a policy file.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportFault {
    #[error("can't be read: {0}")]
    File(Arc<std::io::Error>),
    #[error("neither TOML nor P3P")]
    Kind,
    #[error("line {line}: {what}")]
    Syntax { line: usize, what: String },
    #[error("policy {position} has no k")]
    NoK { position: usize },
    #[error("some policies have a {key}, others have none")]
    Mixed {
        /// `purpose` or `recipient`.
        key: &'static str,
    },
    /// There are two policies for one purpose and recipient, or two exceptions for one person.
    #[error("policy {position} repeats the purpose, recipient and person of an earlier one")]
    Twice { position: usize },
    /// A number of days is too large.
    #[error("a retention ends beyond the year 9999")]
    TooLong,
    #[error("the retention '{name}' has no definite length")]
    Retention { name: String },
    #[error("line {line}: the STATEMENT has no {element}")]
    Statement { line: usize, element: &'static str },
    /// A statement allows what an earlier one does not allow.
    #[error(
        "line {line}: of two STATEMENTs with the same purpose and recipient, one allows column '{column}' and one does not"
    )]
    Contradiction { line: usize, column: String },
    #[error("the table of choices would have two columns '{column}'")]
    SameColumn { column: String },
    #[error("the file has no policy")]
    Empty,
}

impl ImportFault {
    fn of(self, path: &Path) -> ImportError {
        ImportError { path: path.to_owned(), fault: self }
    }
}

impl ImportError {
    /// What to do about it, if there is a remedy.
    pub fn hint(&self) -> Option<String> {
        Some(match &self.fault {
            ImportFault::File(_) => "check the path".to_owned(),
            ImportFault::Kind => "give a file that ends in .toml or .xml".to_owned(),
            ImportFault::NoK { .. } => "give k in the TOML file, or IMPORT POLICY ... INTO choices K 5".to_owned(),
            ImportFault::Mixed { key } => format!("give every policy a {key}, or none, so that all are for any {key}"),
            ImportFault::Twice { .. } => "write one policy with all columns".to_owned(),
            ImportFault::TooLong => "write \"forever\"".to_owned(),
            ImportFault::Retention { name } => {
                let file = self.path.file_name().unwrap_or_default().to_string_lossy();
                format!("import a TOML file that says p3p = \"{file}\", a k, and under [retention] {name} = 365")
            }
            ImportFault::SameColumn { .. } => {
                "every table of choices has columns for purpose, recipient, k, sa_level and others: give the policy's column or \
                 the column of persons another name; for P3P under [data]"
                    .to_owned()
            }
            ImportFault::Contradiction { .. } => "say it in one STATEMENT".to_owned(),
            ImportFault::Empty => "write a [[policy]], or p3p = \"policy.xml\"".to_owned(),
            ImportFault::Syntax { .. } | ImportFault::Statement { .. } => return None,
        })
    }
}

/// One row of the new table.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ImportedRow {
    /// The person; `None` for everybody.
    person: Option<String>,
    purpose: Option<String>,
    recipient: Option<String>,
    k: u32,
    level: u8,
    /// The columns that may be shown, and the last day of each.
    columns: BTreeMap<String, NaiveDate>,
}

/// Turns a policy file into rows of a table of choices. The columns are the person's column, `purpose`, `recipient`,
/// `k`, `sa_level`, and `<column>_op` and `<column>_until` for every column that a policy names.
///
/// # Errors
/// If the file is not valid, or leaves open what must not be guessed.
pub(crate) fn import_policy(
    path: &Path,
    defaults: &ImportDefaults,
    today: NaiveDate,
) -> Result<RecordBatch, ImportError> {
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    let (person, rows) = match extension.as_str() {
        "toml" => toml::read(path, defaults, today)?,
        "xml" => {
            let terms = p3p::PolicyTerms { k: defaults.k, level: 0, retention: BTreeMap::new(), data: BTreeMap::new() };
            (defaults.person.clone(), p3p::read(path, &terms)?)
        }
        _ => return Err(ImportFault::Kind.of(path)),
    };
    check(&rows).map_err(|fault| fault.of(path))?;
    let batch = to_batch(person.as_deref().unwrap_or("person"), &rows);
    let mut names = HashSet::new();
    match batch.schema_ref().fields().iter().find(|field| !names.insert(field.name())) {
        Some(twice) => Err(ImportFault::SameColumn { column: twice.name().clone() }.of(path)),
        None => Ok(batch),
    }
}

fn check(rows: &[ImportedRow]) -> Result<(), ImportFault> {
    if rows.is_empty() {
        return Err(ImportFault::Empty);
    }
    if rows.iter().any(|row| row.purpose.is_some() != rows[0].purpose.is_some()) {
        return Err(ImportFault::Mixed { key: "purpose" });
    }
    if rows.iter().any(|row| row.recipient.is_some() != rows[0].recipient.is_some()) {
        return Err(ImportFault::Mixed { key: "recipient" });
    }
    Ok(())
}

fn read_text(path: &Path) -> Result<String, ImportError> {
    std::fs::read_to_string(path).map_err(|error| ImportFault::File(Arc::new(error)).of(path))
}

/// The last day for `forever`.
fn last_day_of_all() -> NaiveDate {
    NaiveDate::from_ymd_opt(9999, 12, 31).expect("a day of the calendar")
}

fn to_batch(person: &str, rows: &[ImportedRow]) -> RecordBatch {
    let mut fields = Vec::new();
    let mut arrays: Vec<ArrayRef> = Vec::new();
    let mut add = |name: &str, array: ArrayRef| {
        fields.push(Field::new(name, array.data_type().clone(), true));
        arrays.push(array);
    };
    let texts = |text: fn(&ImportedRow) -> Option<&str>| -> ArrayRef {
        Arc::new(rows.iter().map(text).collect::<StringArray>())
    };
    let numbers = |number: fn(&ImportedRow) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(rows.iter().map(number)))
    };
    add(person, texts(|row| Some(row.person.as_deref().unwrap_or(EVERYBODY))));
    if rows.iter().any(|row| row.purpose.is_some()) {
        add("purpose", texts(|row| row.purpose.as_deref()));
    }
    if rows.iter().any(|row| row.recipient.is_some()) {
        add("recipient", texts(|row| row.recipient.as_deref()));
    }
    add("k", numbers(|row| i64::from(row.k)));
    add("sa_level", numbers(|row| i64::from(row.level)));
    // Columns that a policy does not list are refused, whatever columns a view may have.
    add("others_op", Arc::new(BooleanArray::from(vec![false; rows.len()])));
    let columns: BTreeSet<&String> = rows.iter().flat_map(|row| row.columns.keys()).collect();
    for column in columns {
        let opt_in: BooleanArray = rows.iter().map(|row| Some(row.columns.contains_key(column))).collect();
        let until: Date32Array = rows.iter().map(|row| row.columns.get(column).map(NaiveDate::to_epoch_days)).collect();
        add(&format!("{column}_op"), Arc::new(opt_in));
        add(&format!("{column}_until"), Arc::new(until));
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("every column has a cell per row")
}

#[cfg(test)]
mod tests;
