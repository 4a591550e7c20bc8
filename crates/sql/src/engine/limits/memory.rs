//! [`QueryMemory`]: how much memory the sorts, joins and groupings of queries may take.
//!
//! ```text
//! all queries            what the owner of the server allows
//!   queries of analysts  three quarters of it; the rest is for owners
//!     one login          half of it, however many connections the login has
//! ```
//!
//! # Guarantee
//! A query that would need more fails, and the others go on. No query writes temporary files instead, because private rows
//! would be in them.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool, MemoryReservation};
use parking_lot::Mutex;

/// The memory of all queries together.
#[derive(Debug)]
pub(crate) struct QueryMemory {
    all: Arc<SharedMemory>,
    analysts: Arc<SharedMemory>,
    logins: Mutex<HashMap<String, Weak<SharedMemory>>>,
}

impl QueryMemory {
    pub(crate) fn unlimited() -> QueryMemory {
        let most = Arc::new(AtomicUsize::new(usize::MAX));
        let all =
            Arc::new(SharedMemory { name: "queries", most, quarters: 4, taken: AtomicUsize::new(0), whole: None });
        let analysts = all.part("queries of analysts", 3);
        QueryMemory { all, analysts, logins: Mutex::default() }
    }

    pub(crate) fn limit(&self, most: usize) {
        self.all.most.store(most, Ordering::Relaxed);
    }

    /// The memory of queries that nobody logged in for.
    pub(crate) fn of_all(&self) -> Arc<dyn MemoryPool> {
        self.all.clone()
    }

    /// The memory of one login, which all of its sessions share.
    pub(crate) fn of_login(&self, login: &str) -> Arc<dyn MemoryPool> {
        let mut logins = self.logins.lock();
        if let Some(known) = logins.get(login).and_then(Weak::upgrade) {
            return known;
        }
        logins.retain(|_, memory| memory.strong_count() > 0);
        let own = self.analysts.part("queries of one login", 2);
        logins.insert(login.to_owned(), Arc::downgrade(&own));
        own
    }
}

/// Memory that some queries share, as a part of what others share.
#[derive(Debug)]
struct SharedMemory {
    name: &'static str,
    /// Bytes that all queries may take.
    most: Arc<AtomicUsize>,
    /// How many quarters of that are for these queries.
    quarters: usize,
    taken: AtomicUsize,
    /// Memory that this is a part of.
    whole: Option<Arc<SharedMemory>>,
}

impl SharedMemory {
    fn part(self: &Arc<Self>, name: &'static str, quarters: usize) -> Arc<SharedMemory> {
        let (most, whole) = (Arc::clone(&self.most), Some(Arc::clone(self)));
        Arc::new(SharedMemory { name, most, quarters, taken: AtomicUsize::new(0), whole })
    }

    /// This memory, the memory that it is a part of, and so on.
    fn with_wholes(&self) -> impl Iterator<Item = &SharedMemory> {
        std::iter::successors(Some(self), |memory| memory.whole.as_deref())
    }

    fn most(&self) -> usize {
        match self.most.load(Ordering::Relaxed) {
            most if most == usize::MAX || self.quarters == 4 => most,
            most => most / 4 * self.quarters,
        }
    }
}

impl fmt::Display for SharedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl MemoryPool for SharedMemory {
    fn name(&self) -> &str {
        self.name
    }

    fn grow(&self, _reservation: &MemoryReservation, additional: usize) {
        for memory in self.with_wholes() {
            memory.taken.fetch_add(additional, Ordering::Relaxed);
        }
    }

    fn shrink(&self, _reservation: &MemoryReservation, shrink: usize) {
        for memory in self.with_wholes() {
            memory.taken.fetch_sub(shrink, Ordering::Relaxed);
        }
    }

    fn try_grow(&self, _reservation: &MemoryReservation, additional: usize) -> Result<()> {
        for (n_grown, memory) in self.with_wholes().enumerate() {
            let most = memory.most();
            let grown = |taken: usize| taken.checked_add(additional).filter(|taken| *taken <= most);
            if memory.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown).is_err() {
                for part in self.with_wholes().take(n_grown) {
                    part.taken.fetch_sub(additional, Ordering::Relaxed);
                }
                let problem = format!("{} may take {most} bytes together", memory.name);
                return Err(DataFusionError::ResourcesExhausted(problem));
            }
        }
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    fn memory_limit(&self) -> MemoryLimit {
        match self.most() {
            usize::MAX => MemoryLimit::Infinite,
            most => MemoryLimit::Finite(most),
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion::execution::memory_pool::MemoryConsumer;

    use super::*;

    fn reservation(pool: &Arc<dyn MemoryPool>) -> MemoryReservation {
        MemoryConsumer::new("test").register(pool)
    }

    #[test]
    fn a_login_takes_half_and_leaves_the_rest_to_others() {
        let memory = QueryMemory::unlimited();
        memory.limit(100);
        let all = memory.of_all();
        let (ann, again, bob) = (memory.of_login("ann"), memory.of_login("ann"), memory.of_login("bob"));
        let (first, second, third) = (reservation(&ann), reservation(&again), reservation(&bob));
        first.try_grow(40).unwrap();
        assert!(second.try_grow(11).is_err(), "however many sessions they have");
        second.try_grow(10).unwrap();
        assert!(third.try_grow(26).is_err(), "a quarter is for owners");
        third.try_grow(25).unwrap();
        let owner = reservation(&all);
        owner.try_grow(25).unwrap();
        assert_eq!(all.reserved(), 100);
        assert!(owner.try_grow(1).is_err());
        owner.shrink(25);
        drop((first, third));
        assert_eq!((all.reserved(), ann.reserved(), bob.reserved()), (10, 10, 0));
        owner.try_grow(80).unwrap();
        assert!(second.try_grow(20).is_err(), "nor more than there is");
        assert_eq!((ann.reserved(), memory.analysts.reserved()), (10, 10), "a refusal takes nothing");
        drop((second, owner, ann, again, bob));
        assert_eq!(all.reserved(), 0);
        memory.of_login("cem");
        assert_eq!(memory.logins.lock().len(), 1, "logins without sessions are forgotten");
    }
}
