//! [`Records`]: where users and grants are kept.

use std::collections::{BTreeMap, VecDeque};
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

/// Changes of records that are to be written, oldest first.
#[derive(Default)]
pub(super) struct Unwritten(VecDeque<(&'static str, String, Option<String>)>);

impl Unwritten {
    pub(super) fn put(&mut self, kind: &'static str, name: &str, text: &str) {
        self.0.push_back((kind, name.to_owned(), Some(text.to_owned())));
    }

    pub(super) fn remove(&mut self, kind: &'static str, name: &str) {
        self.0.push_back((kind, name.to_owned(), None));
    }

    /// Writes all of them, or up to the first that can't be.
    pub(super) fn write(&mut self, records: &dyn Records) -> io::Result<()> {
        while let Some((kind, name, text)) = self.0.front() {
            match text {
                Some(text) => records.put(kind, name, text)?,
                None => records.remove(kind, name)?,
            }
            self.0.pop_front();
        }
        Ok(())
    }
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
