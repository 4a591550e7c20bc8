//! [`Newcomers`]: limits the connections that have not logged in yet.
//!
//! # Guarantee
//! The number of these connections is limited, in all and per address, and yet a new one is always accepted: if no
//! place is left, the oldest connection is closed. It is the oldest of the same address if that address is at its
//! limit, and otherwise the oldest of the address with the most connections. So a client that opens connections and
//! sends nothing keeps nobody out.
//! # Deviations
//! A client that opens connections faster than others can log in still disturbs clients with the same address.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The connections that have not logged in, by address.
pub(crate) struct Newcomers {
    most: usize,
    most_of_one: usize,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    n_waiting: usize,
    /// The connections of each address, in the order of their arrival.
    by_address: HashMap<IpAddr, BTreeMap<u64, Arc<Notify>>>,
    next: u64,
}

/// A connection that has not logged in, until this is dropped.
pub(crate) struct Newcomer {
    newcomers: Arc<Newcomers>,
    address: IpAddr,
    number: u64,
    leave: Arc<Notify>,
}

impl Newcomers {
    /// Allows `most` connections, and `most_of_one` of one address, but at least one of each.
    pub(crate) fn new(most: usize, most_of_one: usize) -> Arc<Newcomers> {
        let (most, most_of_one) = (most.max(1), most_of_one.max(1));
        Arc::new(Newcomers { most, most_of_one, waiting: Mutex::default() })
    }

    /// Takes a place. If none is free, another connection is told to leave.
    pub(crate) fn take(self: &Arc<Self>, address: IpAddr) -> Newcomer {
        let mut waiting = self.waiting();
        let n_of_address = waiting.by_address.get(&address).map_or(0, BTreeMap::len);
        if n_of_address >= self.most_of_one {
            waiting.send_away(address);
        } else if waiting.n_waiting >= self.most {
            // Compare the address too, so that the choice does not depend on the order of the hash map.
            let fullest = waiting.by_address.iter().max_by_key(|(address, of_it)| (of_it.len(), **address));
            if let Some(fullest) = fullest.map(|(address, _)| *address) {
                waiting.send_away(fullest);
            }
        }
        let (number, leave) = (waiting.next, Arc::new(Notify::new()));
        waiting.next += 1;
        waiting.n_waiting += 1;
        waiting.by_address.entry(address).or_default().insert(number, Arc::clone(&leave));
        drop(waiting);
        Newcomer { newcomers: Arc::clone(self), address, number, leave }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// Tells the oldest connection of an address to leave. Its place is free at once.
    fn send_away(&mut self, address: IpAddr) {
        let oldest = self.by_address.get(&address).and_then(|of_it| of_it.first_key_value());
        if let Some((number, leave)) = oldest.map(|(number, leave)| (*number, Arc::clone(leave))) {
            self.remove(address, number);
            leave.notify_one();
        }
    }

    fn remove(&mut self, address: IpAddr, number: u64) {
        let Some(of_it) = self.by_address.get_mut(&address) else { return };
        if of_it.remove(&number).is_some() {
            self.n_waiting -= 1;
        }
        if of_it.is_empty() {
            self.by_address.remove(&address);
        }
    }
}

impl Newcomer {
    /// Waits until another connection has taken this one's place.
    pub(crate) async fn must_leave(&self) {
        self.leave.notified().await;
        // Renew the notification for the next call.
        self.leave.notify_one();
    }
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        self.newcomers.waiting().remove(self.address, self.number);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    fn leaves(newcomer: &Newcomer) -> bool {
        newcomer.must_leave().now_or_never().is_some()
    }

    #[test]
    fn the_oldest_of_an_address_gives_way_to_the_next_from_there() {
        let newcomers = Newcomers::new(10, 3);
        let other = newcomers.take(THERE);
        let mut here: Vec<Newcomer> = (0..3).map(|_| newcomers.take(HERE)).collect();
        assert!(!here.iter().any(leaves));
        here.push(newcomers.take(HERE));
        assert_eq!(here.iter().map(leaves).collect::<Vec<_>>(), [true, false, false, false]);
        assert!(leaves(&here[0]), "it is told whenever it asks");
        drop(here.remove(1));
        here.push(newcomers.take(HERE));
        assert_eq!(here.iter().map(leaves).collect::<Vec<_>>(), [true, false, false, false]);
        assert!(!leaves(&other));
    }

    #[test]
    fn if_all_places_are_taken_the_address_with_most_of_them_gives_way() {
        let newcomers = Newcomers::new(4, 3);
        let there = newcomers.take(THERE);
        let here: Vec<Newcomer> = (0..3).map(|_| newcomers.take(HERE)).collect();
        let second = newcomers.take(THERE);
        assert_eq!(here.iter().map(leaves).collect::<Vec<_>>(), [true, false, false]);
        assert!(![&there, &second].into_iter().any(leaves));
        drop((here, there, second));
        assert!(newcomers.waiting().by_address.is_empty());
        assert_eq!(newcomers.waiting().n_waiting, 0);
    }
}
