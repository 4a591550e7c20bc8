//! [`WriteError`]: why a release could not be written. In every case nothing of the release remains.

use std::path::{Path, PathBuf};

use kohort_verify::Violations;

use crate::{ErrorClass, ReadErrors};

/// Why a release could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum WriteError {
    /// The operating system failed.
    #[error("{}: can't be written: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    /// There is too little space for the rows of a table that is larger than memory.
    #[error(
        "{}: rows that don't fit into memory may take {} MB there, and {} MB are free",
        path.display(), n_bytes >> 20, n_free >> 20
    )]
    NoSpace { path: PathBuf, n_bytes: u64, n_free: u64 },
    /// The output folder holds something already.
    #[error("{} exists and is not empty", path.display())]
    NotEmpty { path: PathBuf },
    /// The output folder holds something that is no release, and is not deleted even when asked to.
    #[error("{} is not empty and holds no manifest.json, so it is not replaced", path.display())]
    NotARelease { path: PathBuf },
    /// The path can't be an output folder.
    #[error("{} can't be an output folder", path.display())]
    BadTarget { path: PathBuf },
    /// The parent of the output folder does not exist.
    #[error("{} does not exist", path.display())]
    NoParent { path: PathBuf },
    /// A table whose name can't be a file's.
    #[error("table name '{name}' can't be a file name")]
    BadTableName { name: String },
    /// A column with more distinct texts than its type can number.
    #[error("column '{column}' has more distinct values than its type {data_type} can hold")]
    TooManyLabels { column: String, data_type: String },
    /// A column whose values have no readable text.
    #[error("column '{column}' of type {data_type} can't be written to a CSV file")]
    NoTextForm { column: String, data_type: String },
    /// A column of bounds whose name is taken.
    #[error("column '{column}' can't be written as bounds: there is a column '{bound}' already")]
    BoundNameTaken { column: String, bound: String },
    /// A label that can't be split into bounds.
    #[error("column '{column}' has a label that is neither a value nor a range")]
    NoBounds { column: String },
    /// Labels that readers would misunderstand.
    #[error(
        "column '{column}': read by the manifest's rule, its labels would not cover {n_values} of the values they stand for"
    )]
    Misleading { column: String, n_values: u64 },
    /// The released part of a hierarchy can't be read back as it was written.
    #[error("the written hierarchy of column '{column}' can't be read back")]
    Listing { column: String },
    /// The writer of a file format failed.
    #[error("{}: can't be written: {message}", path.display())]
    Encode { path: PathBuf, message: String },
    /// The written file can't be read.
    #[error("the written release can't be read back: {0}")]
    ReadBack(ReadErrors),
    /// The written file does not hold the verified rows.
    #[error("the written release is not the verified one: {0}")]
    Changed(Violations),
}

impl WriteError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| WriteError::Io { path, source }
    }

    /// What to do about the problem.
    pub fn hint(&self) -> Option<String> {
        match self {
            WriteError::Io { .. } | WriteError::Encode { .. } => {
                Some("check that there is space left and that you may write there; nothing was kept".to_owned())
            }
            WriteError::NoSpace { .. } => Some("make room, write to another disk, or give more memory".to_owned()),
            WriteError::NotEmpty { .. } => Some("name another folder, or replace the release with {force}".to_owned()),
            WriteError::NotARelease { .. } => Some("name another folder, or delete it yourself".to_owned()),
            WriteError::BadTarget { .. } => {
                Some("name a folder that does not exist yet, e.g. {folder=out/}".to_owned())
            }
            WriteError::NoParent { path } => Some(format!("create it first: mkdir -p {}", path.display())),
            WriteError::BadTableName { .. } => Some("rename the table in the spec".to_owned()),
            WriteError::TooManyLabels { column, .. } => Some(format!("write '{column}' as plain text, or use CSV")),
            WriteError::NoTextForm { column, .. } => {
                Some(format!("drop '{column}', or write Parquet or Arrow with {{format}}"))
            }
            WriteError::BoundNameTaken { bound, .. } => Some(format!("rename '{bound}', or use {{cells=labels}}")),
            WriteError::Misleading { .. } => {
                Some("give another date_format, or a hierarchy file instead of a rule".to_owned())
            }
            WriteError::NoBounds { .. }
            | WriteError::Listing { .. }
            | WriteError::ReadBack(_)
            | WriteError::Changed(_) => {
                Some("nothing was kept; this is a fault of the disk or of kohort: please report it".to_owned())
            }
        }
    }

    /// Who can mend the problem.
    pub fn class(&self) -> ErrorClass {
        match self {
            WriteError::NotEmpty { .. }
            | WriteError::NotARelease { .. }
            | WriteError::BadTarget { .. }
            | WriteError::NoParent { .. }
            | WriteError::BadTableName { .. }
            | WriteError::TooManyLabels { .. }
            | WriteError::NoTextForm { .. }
            | WriteError::Misleading { .. }
            | WriteError::BoundNameTaken { .. } => ErrorClass::Input,
            WriteError::Io { .. }
            | WriteError::NoSpace { .. }
            | WriteError::Encode { .. }
            | WriteError::NoBounds { .. }
            | WriteError::Listing { .. }
            | WriteError::ReadBack(_)
            | WriteError::Changed(_) => ErrorClass::Io,
        }
    }
}
