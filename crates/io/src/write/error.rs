//! [`WriteError`]: why a release could not be written. Whatever it is, nothing of the release remains.

use std::path::{Path, PathBuf};

use kohort_verify::Violations;

use crate::{ErrorClass, ReadErrors};

/// Why a release could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The operating system failed.
    #[error("{}: can't be written: {source}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
    /// The output folder holds something already.
    #[error("{} exists and is not empty", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// The output folder holds something that is no release, and is not deleted even when asked to.
    #[error("{} is not empty and holds no manifest.json, so it is not replaced", path.display())]
    NotARelease {
        /// The folder.
        path: PathBuf,
    },
    /// The output folder can't be one.
    #[error("{} can't be an output folder", path.display())]
    BadTarget {
        /// As given.
        path: PathBuf,
    },
    /// The folder the output folder would be in does not exist.
    #[error("{} does not exist", path.display())]
    NoParent {
        /// The folder above.
        path: PathBuf,
    },
    /// A table whose name can't be a file's.
    #[error("table name '{name}' can't be a file name")]
    BadTableName {
        /// The name.
        name: String,
    },
    /// A column of more distinct texts than its type can number.
    #[error("column '{column}' has more distinct values than its type {data_type} can hold")]
    TooManyLabels {
        /// The column.
        column: String,
        /// Its Arrow type.
        data_type: String,
    },
    /// A column whose values mean nothing as text.
    #[error("column '{column}' of type {data_type} can't be written to a CSV file")]
    NoTextForm {
        /// The column.
        column: String,
        /// Its Arrow type.
        data_type: String,
    },
    /// A column of bounds whose name is taken.
    #[error("column '{column}' can't be written as bounds: there is a column '{bound}' already")]
    BoundNameTaken {
        /// The column.
        column: String,
        /// The name its bound would have.
        bound: String,
    },
    /// A label without bounds where all have some.
    #[error("column '{column}' has a label that is neither a value nor a range")]
    NoBounds {
        /// The column.
        column: String,
    },
    /// Labels that readers would take for something else than they stand for.
    #[error(
        "column '{column}': read by the manifest's rule, its labels would not cover {n_values} of the values they stand for"
    )]
    Misleading {
        /// The column.
        column: String,
        /// How many values.
        n_values: u64,
    },
    /// The released part of a hierarchy is not what it should be.
    #[error("what was written can't be read back: the hierarchy of column '{column}'")]
    Listing {
        /// The column.
        column: String,
    },
    /// The writer of a file format failed.
    #[error("{}: can't be written: {message}", path.display())]
    Encode {
        /// Where.
        path: PathBuf,
        /// What the writer said.
        message: String,
    },
    /// The written file can't be read.
    #[error("what was written can't be read back: {0}")]
    ReadBack(ReadErrors),
    /// The written file is not the release.
    #[error("what was written is not what was verified: {0}")]
    Changed(Violations),
}

impl WriteError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| WriteError::Io { path, source }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            WriteError::Io { .. } | WriteError::Encode { .. } => {
                Some("check that there is space left and that you may write there; nothing was kept".to_owned())
            }
            WriteError::NotEmpty { .. } => Some("name another folder, or replace the release with --force".to_owned()),
            WriteError::NotARelease { .. } => Some("name another folder, or delete it yourself".to_owned()),
            WriteError::BadTarget { .. } => Some("name a folder that does not exist yet, e.g. -o out/".to_owned()),
            WriteError::NoParent { path } => Some(format!("create it first: mkdir -p {}", path.display())),
            WriteError::BadTableName { .. } => Some("rename the table in the spec".to_owned()),
            WriteError::TooManyLabels { column, .. } => Some(format!("write '{column}' as plain text, or use CSV")),
            WriteError::NoTextForm { column, .. } => {
                Some(format!("drop '{column}', or write Parquet or Arrow with --format"))
            }
            WriteError::BoundNameTaken { bound, .. } => Some(format!("rename '{bound}', or use --cells labels")),
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

    /// Who can do something about it.
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
            | WriteError::Encode { .. }
            | WriteError::NoBounds { .. }
            | WriteError::Listing { .. }
            | WriteError::ReadBack(_)
            | WriteError::Changed(_) => ErrorClass::Io,
        }
    }
}
