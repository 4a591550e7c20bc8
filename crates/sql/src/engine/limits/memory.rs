//! [`QueryMemory`]: what sorts, joins and groupings of all queries may take together. Of that an analyst has half,
//! however many connections they have, and all analysts together three quarters: the rest is for owners.
//!
//! # Guarantee
//! A query that would need more ends, and the others go on. Nothing is written to temporary files instead: rows below a
//! view would lie there.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool, MemoryReservation};

/// Bytes that queries take, and the most they may.
#[derive(Debug)]
pub(in crate::engine) struct QueryMemory {
    most: AtomicUsize,
    taken: AtomicUsize,
    /// Of that what analysts take.
    taken_by_logins: AtomicUsize,
    of_logins: Mutex<HashMap<String, Weak<LoginMemory>>>,
}

impl QueryMemory {
    pub(in crate::engine) fn unlimited() -> QueryMemory {
        QueryMemory {
            most: AtomicUsize::new(usize::MAX),
            taken: AtomicUsize::new(0),
            taken_by_logins: AtomicUsize::new(0),
            of_logins: Mutex::default(),
        }
    }

    pub(in crate::engine) fn limit(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }

    /// What queries of one login take, shared by all of its sessions.
    pub(in crate::engine) fn of_login(self: &Arc<Self>, login: &str) -> Arc<LoginMemory> {
        let mut logins = self.of_logins.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = logins.get(login).and_then(Weak::upgrade) {
            return known;
        }
        logins.retain(|_, memory| memory.strong_count() > 0);
        let own = Arc::new(LoginMemory { all: Arc::clone(self), taken: AtomicUsize::new(0) });
        logins.insert(login.to_owned(), Arc::downgrade(&own));
        own
    }
}

/// Takes so many bytes more, if they may be.
fn take(taken: &AtomicUsize, additional: usize, most: usize, whose: &str) -> Result<()> {
    let grown = |taken: usize| taken.checked_add(additional).filter(|taken| *taken <= most);
    match taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown) {
        Ok(_) => Ok(()),
        Err(_) => Err(DataFusionError::ResourcesExhausted(format!("{whose} may take {most} bytes together"))),
    }
}

impl fmt::Display for QueryMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl MemoryPool for QueryMemory {
    fn name(&self) -> &str {
        "queries"
    }

    fn grow(&self, _reservation: &MemoryReservation, additional: usize) {
        self.taken.fetch_add(additional, Ordering::Relaxed);
    }

    fn shrink(&self, _reservation: &MemoryReservation, shrink: usize) {
        self.taken.fetch_sub(shrink, Ordering::Relaxed);
    }

    fn try_grow(&self, _reservation: &MemoryReservation, additional: usize) -> Result<()> {
        take(&self.taken, additional, self.most.load(Ordering::Relaxed), "queries")
    }

    fn reserved(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    fn memory_limit(&self) -> MemoryLimit {
        match self.most.load(Ordering::Relaxed) {
            usize::MAX => MemoryLimit::Infinite,
            most => MemoryLimit::Finite(most),
        }
    }
}

/// Bytes that queries of one login take, of what all may.
#[derive(Debug)]
pub(in crate::engine) struct LoginMemory {
    all: Arc<QueryMemory>,
    taken: AtomicUsize,
}

impl LoginMemory {
    fn most(&self) -> usize {
        self.share(2, 4)
    }

    fn share(&self, share: usize, of: usize) -> usize {
        match self.all.memory_limit() {
            MemoryLimit::Finite(most) => most / of * share,
            _ => usize::MAX,
        }
    }
}

impl fmt::Display for LoginMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl MemoryPool for LoginMemory {
    fn name(&self) -> &str {
        "queries of a login"
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.taken.fetch_add(additional, Ordering::Relaxed);
        self.all.taken_by_logins.fetch_add(additional, Ordering::Relaxed);
        self.all.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.taken.fetch_sub(shrink, Ordering::Relaxed);
        self.all.taken_by_logins.fetch_sub(shrink, Ordering::Relaxed);
        self.all.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let all = &self.all;
        let give_back = |taken: &AtomicUsize| {
            taken.fetch_sub(additional, Ordering::Relaxed);
        };
        take(&self.taken, additional, self.most(), "queries of one login")?;
        take(&all.taken_by_logins, additional, self.share(3, 4), "queries of analysts")
            .inspect_err(|_| give_back(&self.taken))?;
        all.try_grow(reservation, additional).inspect_err(|_| {
            give_back(&self.taken);
            give_back(&all.taken_by_logins);
        })
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
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use datafusion::execution::memory_pool::MemoryConsumer;

    use super::*;

    fn reservation(pool: &Arc<impl MemoryPool + 'static>) -> MemoryReservation {
        MemoryConsumer::new("test").register(&(Arc::clone(pool) as Arc<dyn MemoryPool>))
    }

    #[test]
    fn a_login_takes_half_and_leaves_the_rest_to_others() {
        let all = Arc::new(QueryMemory::unlimited());
        all.limit(100);
        let (ann, again, bob) = (all.of_login("ann"), all.of_login("ann"), all.of_login("bob"));
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
        assert_eq!(ann.reserved(), 10, "what was not given is not counted");
        drop((second, owner, ann, again, bob));
        assert_eq!(all.reserved(), 0);
        all.of_login("cem");
        assert_eq!(all.of_logins.lock().unwrap().len(), 1, "who is gone is forgotten");
    }
}
