//! [`Records`]: where users and grants are kept.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, PoisonError};

/// Texts by kind and name that outlive the process, or don't.
pub trait Records: Send + Sync {
    /// All records of a kind, by name.
    ///
    /// # Errors
    /// Where they can't be read.
    fn list(&self, kind: &str) -> io::Result<Vec<Record>>;

    /// Keeps a record in the place of the one of this kind and name.
    ///
    /// # Errors
    /// Where it can't be written.
    fn put(&self, kind: &str, name: &str, text: &str) -> io::Result<()>;

    /// Removes a record if it is there.
    ///
    /// # Errors
    /// Where it can't be written.
    fn remove(&self, kind: &str, name: &str) -> io::Result<()>;
}

/// A text by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its name, one of its kind.
    pub name: String,
    /// What it says.
    pub text: String,
}

/// Records that end with the process.
#[derive(Debug, Default)]
pub struct MemoryRecords {
    texts: Mutex<BTreeMap<(String, String), String>>,
}

impl MemoryRecords {
    fn texts(&self) -> std::sync::MutexGuard<'_, BTreeMap<(String, String), String>> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Records for MemoryRecords {
    fn list(&self, kind: &str) -> io::Result<Vec<Record>> {
        let texts = self.texts();
        let of_kind = texts.iter().filter(|((of, _), _)| of == kind);
        Ok(of_kind.map(|((_, name), text)| Record { name: name.clone(), text: text.clone() }).collect())
    }

    fn put(&self, kind: &str, name: &str, text: &str) -> io::Result<()> {
        self.texts().insert((kind.to_owned(), name.to_owned()), text.to_owned());
        Ok(())
    }

    fn remove(&self, kind: &str, name: &str) -> io::Result<()> {
        self.texts().remove(&(kind.to_owned(), name.to_owned()));
        Ok(())
    }
}
