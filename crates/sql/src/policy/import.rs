//! [`import_policy`]: a policy's file becomes rows of a table of choices.
//!
//! # TOML
//!
//! ```toml
//! person = "name"                     # the column that names persons; "person" if absent
//! k = 5                               # for policies that give none
//! sa_level = 0
//!
//! [[policy]]
//! purpose = "Treatment"               # in all policies or in none; the same for recipient
//! recipient = "Nurse"
//! k = 2
//! sa_level = 1
//! columns = { birth = "forever", zipcode = 2030-12-31, disease = 365 }
//!
//! [[policy.exceptions]]               # what is absent is as in the policy
//! person = "P3"
//! k = 3
//! columns = { zipcode = 30 }
//! ```
//!
//! `columns` lists what may be shown, and for how long: `"forever"`, up to a date, or for so many days from the import
//! on. What is not listed is refused. A policy speaks of everybody, `*`; exceptions speak of one person each.
//!
//! # P3P 1.0
//! Every STATEMENT becomes a policy per purpose and recipient. P3P has no k, and of its retentions only
//! `no-retention` (nothing is shown) and `indefinitely` are certain; the others are refused by name until a TOML file
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
//! Without an entry in `[data]` the data `#user.bdate` are the column `user_bdate`.

mod p3p;
mod toml;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::NaiveDate;
use datafusion::arrow::array::{ArrayRef, BooleanArray, Date32Array, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{Field, Schema};

use super::EVERYBODY;

/// What a policy's file need not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportDefaults {
    /// The column that names persons.
    pub person: Option<String>,
    /// k where the file has none.
    pub k: Option<u32>,
}

/// Why a policy can't be imported. Names of columns, purposes and keys are shown, persons never.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// A file that can't be read.
    #[error("{}: can't be read: {error}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: Arc<std::io::Error>,
    },
    /// A file of another kind.
    #[error("{}: neither TOML nor P3P", .path.display())]
    Kind {
        /// The file.
        path: PathBuf,
    },
    /// A text that can't be understood.
    #[error("{}: line {line}: {what}", .path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// A policy without k.
    #[error("{}: policy {position} has no k", .path.display())]
    NoK {
        /// The file.
        path: PathBuf,
        /// The policy's position, from 1.
        position: usize,
    },
    /// A key that some policies have and others have not.
    #[error("{}: some policies have a {key}, others have none", .path.display())]
    Mixed {
        /// The file.
        path: PathBuf,
        /// `purpose` or `recipient`.
        key: &'static str,
    },
    /// Two policies for one purpose and recipient, or two exceptions for one person.
    #[error("{}: policy {position}: a second one for the same purpose, recipient and person", .path.display())]
    Twice {
        /// The file.
        path: PathBuf,
        /// The policy's position, from 1.
        position: usize,
    },
    /// Days that no calendar has.
    #[error("{}: a retention ends beyond the year 9999", .path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// A retention nobody knows the length of.
    #[error("{}: the retention '{name}' has no length", .path.display())]
    Retention {
        /// The file.
        path: PathBuf,
        /// P3P's name.
        name: String,
    },
    /// A statement that lacks something.
    #[error("{}: line {line}: the STATEMENT has no {element}", .path.display())]
    Statement {
        /// The file.
        path: PathBuf,
        /// Where it begins, from 1.
        line: usize,
        /// What it lacks.
        element: &'static str,
    },
    /// Names that would make two columns of the table of choices one.
    #[error("{}: the table of choices would have two columns '{column}'", .path.display())]
    SameColumn {
        /// The file.
        path: PathBuf,
        /// Their name.
        column: String,
    },
    /// Nothing to import.
    #[error("{}: there is no policy in it", .path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

impl ImportError {
    /// What to do about it, where there is a remedy.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            ImportError::File { .. } => "check the path".to_owned(),
            ImportError::Kind { .. } => "give a file that ends in .toml or .xml".to_owned(),
            ImportError::NoK { .. } => "give k in the TOML file, or IMPORT POLICY ... INTO choices K 5".to_owned(),
            ImportError::Mixed { key, .. } => format!("give every policy a {key}, or none: then it is for all"),
            ImportError::Twice { .. } => "write one policy with all its columns".to_owned(),
            ImportError::TooLong { .. } => "write \"forever\"".to_owned(),
            ImportError::Retention { path, name } => {
                let file = path.file_name().unwrap_or_default().to_string_lossy();
                format!("import a TOML file that says p3p = \"{file}\", a k, and under [retention] {name} = 365")
            }
            ImportError::SameColumn { .. } => {
                "purpose, recipient, k, sa_level and others are columns of every table of choices: rename the one of the \
                 policy or of the persons, for P3P under [data]"
                    .to_owned()
            }
            ImportError::Empty { .. } => "write a [[policy]], or p3p = \"policy.xml\"".to_owned(),
            ImportError::Syntax { .. } | ImportError::Statement { .. } => return None,
        })
    }
}

/// One row to be.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ImportedRow {
    /// `None` is everybody.
    person: Option<String>,
    purpose: Option<String>,
    recipient: Option<String>,
    k: u32,
    level: u8,
    /// Columns that may be shown, and their last day.
    columns: BTreeMap<String, NaiveDate>,
}

/// Reads a policy into rows of a table of choices: the person's column, `purpose`, `recipient`, `k`, `sa_level`, and for
/// every column that some policy names `<column>_op` and `<column>_until`.
///
/// # Errors
/// Where the file is none, or leaves open what must not be guessed.
pub fn import_policy(path: &Path, defaults: &ImportDefaults, today: NaiveDate) -> Result<RecordBatch, ImportError> {
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    let (person, rows) = match extension.as_str() {
        "toml" => toml::read(path, defaults, today)?,
        "xml" => {
            let terms = p3p::PolicyTerms { k: defaults.k, level: 0, retention: BTreeMap::new(), data: BTreeMap::new() };
            (defaults.person.clone(), p3p::read(path, &terms)?)
        }
        _ => return Err(ImportError::Kind { path: path.to_owned() }),
    };
    check(path, &rows)?;
    let batch = to_batch(person.as_deref().unwrap_or("person"), &rows);
    let mut names = HashSet::new();
    match batch.schema_ref().fields().iter().find(|field| !names.insert(field.name())) {
        Some(twice) => Err(ImportError::SameColumn { path: path.to_owned(), column: twice.name().clone() }),
        None => Ok(batch),
    }
}

fn check(path: &Path, rows: &[ImportedRow]) -> Result<(), ImportError> {
    if rows.is_empty() {
        return Err(ImportError::Empty { path: path.to_owned() });
    }
    let mixed = |key| ImportError::Mixed { path: path.to_owned(), key };
    if rows.iter().any(|row| row.purpose.is_some() != rows[0].purpose.is_some()) {
        return Err(mixed("purpose"));
    }
    if rows.iter().any(|row| row.recipient.is_some() != rows[0].recipient.is_some()) {
        return Err(mixed("recipient"));
    }
    Ok(())
}

fn read_text(path: &Path) -> Result<String, ImportError> {
    std::fs::read_to_string(path).map_err(|error| ImportError::File { path: path.to_owned(), error: Arc::new(error) })
}

/// The last day there is: `forever`.
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
    // What a policy does not list is refused, whatever columns a view may have.
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
