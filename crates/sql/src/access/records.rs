//! [`Records`]: storage for users and grants.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use parking_lot::Mutex;

/// A storage of texts by kind and name.
pub trait Records: Send + Sync {
    /// All records of a kind, sorted by name.
    ///
    /// # Errors
    /// If they can't be read.
    fn list(&self, kind: &str) -> io::Result<Vec<Record>>;

    /// Stores a record, and replaces one of the same kind and name.
    ///
    /// # Errors
    /// If it can't be written.
    fn put(&self, kind: &str, name: &str, text: &str) -> io::Result<()>;

    /// Removes a record if it exists.
    ///
    /// # Errors
    /// If the removal can't be written.
    fn remove(&self, kind: &str, name: &str) -> io::Result<()>;
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its name, which is unique among records of its kind.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Changes of records that are still to be written, oldest first.
#[derive(Default)]
pub(super) struct Unwritten(VecDeque<(&'static str, String, Option<String>)>);

impl Unwritten {
    pub(super) fn put(&mut self, kind: &'static str, name: &str, text: &str) {
        self.0.push_back((kind, name.to_owned(), Some(text.to_owned())));
    }

    pub(super) fn remove(&mut self, kind: &'static str, name: &str) {
        self.0.push_back((kind, name.to_owned(), None));
    }

    /// Writes the changes in order, until one fails.
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

/// Records in memory.
#[derive(Debug, Default)]
pub struct MemoryRecords {
    texts: Mutex<BTreeMap<(String, String), String>>,
}

impl Records for MemoryRecords {
    fn list(&self, kind: &str) -> io::Result<Vec<Record>> {
        let texts = self.texts.lock();
        let of_kind = texts.iter().filter(|((of, _), _)| of == kind);
        Ok(of_kind.map(|((_, name), text)| Record { name: name.clone(), text: text.clone() }).collect())
    }

    fn put(&self, kind: &str, name: &str, text: &str) -> io::Result<()> {
        self.texts.lock().insert((kind.to_owned(), name.to_owned()), text.to_owned());
        Ok(())
    }

    fn remove(&self, kind: &str, name: &str) -> io::Result<()> {
        self.texts.lock().remove(&(kind.to_owned(), name.to_owned()));
        Ok(())
    }
}
