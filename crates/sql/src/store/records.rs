//! [`StoreRecords`]: users and grants in the data folder.

use std::io;

use kohort_store::{Store, StoreError};

use crate::access::{Record, Records};

/// Records in a store. Each is written in a transaction of its own.
pub struct StoreRecords {
    store: Store,
}

impl StoreRecords {
    /// The records of a store.
    pub fn new(store: Store) -> StoreRecords {
        StoreRecords { store }
    }
}

/// The kind in the store, with a prefix that tells it from other records.
fn own(kind: &str) -> String {
    format!("access {kind}")
}

fn failed(error: StoreError) -> io::Error {
    io::Error::other(error)
}

impl Records for StoreRecords {
    fn list(&self, kind: &str) -> io::Result<Vec<Record>> {
        let records = self.store.read().and_then(|state| state.records(&own(kind))).map_err(failed)?;
        Ok(records.into_iter().map(|(name, text)| Record { name, text }).collect())
    }

    fn put(&self, kind: &str, name: &str, text: &str) -> io::Result<()> {
        let change = self.store.write().map_err(failed)?;
        change.put_record(&own(kind), name, text).and_then(|()| change.commit()).map_err(failed)
    }

    fn remove(&self, kind: &str, name: &str) -> io::Result<()> {
        let change = self.store.write().map_err(failed)?;
        change.remove_record(&own(kind), name).and_then(|_| change.commit()).map_err(failed)
    }
}
