//! [`Attempts`]: how often logins failed lately, by address and user.
//!
//! # Guarantee
//! An address gets [`PER_ADDRESS`] wrong passwords in a [`WINDOW`], and [`PER_USER`] for one user. A login under way counts
//! like a failed one until it ends, so that many at once are no way around it. Nobody can lock out a user for other
//! addresses. Memory is bounded: where there are too many, the older half of what failed is forgotten.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const WINDOW: Duration = Duration::from_secs(60);
const PER_USER: u32 = 5;
const PER_ADDRESS: u32 = 30;
const MOST_KEPT: usize = 10_000;

/// Failed logins of late.
#[derive(Default)]
pub(crate) struct Attempts {
    failed: Mutex<HashMap<Who, Failed>>,
}

/// An address, and the user it tried where that counts.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Who {
    network: IpAddr,
    user: Option<String>,
}

#[derive(Clone, Copy)]
struct Failed {
    since: Instant,
    n_times: u32,
    /// Logins under way, which may fail.
    n_open: u32,
}

impl Failed {
    fn is_over(&self, now: Instant) -> bool {
        now.duration_since(self.since) >= WINDOW
    }
}

/// A login under way.
pub(crate) struct Attempt<'a> {
    attempts: &'a Attempts,
    who: [Who; 2],
}

impl Attempts {
    /// Lets an address try this user, where it may now.
    pub(crate) fn begin(&self, address: IpAddr, user: &str, now: Instant) -> Option<Attempt<'_>> {
        let mut failed = self.failed();
        let keys = keys(address, user);
        let may_try = keys.iter().all(|(who, most)| {
            failed.get(who).is_none_or(|known| {
                let n_failed = if known.is_over(now) { 0 } else { known.n_times };
                n_failed.saturating_add(known.n_open) < *most
            })
        });
        if !may_try {
            return None;
        }
        if failed.len() + 2 > MOST_KEPT {
            forget_older_half(&mut failed);
        }
        for (who, _) in &keys {
            failed.entry(who.clone()).or_insert(Failed { since: now, n_times: 0, n_open: 0 }).n_open += 1;
        }
        Some(Attempt { attempts: self, who: keys.map(|(who, _)| who) })
    }

    fn failed(&self) -> MutexGuard<'_, HashMap<Who, Failed>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Attempt<'_> {
    /// Counts it as failed.
    pub(crate) fn fail(self, now: Instant) {
        let mut failed = self.attempts.failed();
        for who in &self.who {
            let Some(known) = failed.get_mut(who) else { continue };
            if known.is_over(now) {
                *known = Failed { since: now, n_times: 0, ..*known };
            }
            known.n_times = known.n_times.saturating_add(1);
        }
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let mut failed = self.attempts.failed();
        for who in &self.who {
            if let Some(known) = failed.get_mut(who) {
                known.n_open -= 1;
                if known.n_open == 0 && known.n_times == 0 {
                    failed.remove(who);
                }
            }
        }
    }
}

fn forget_older_half(failed: &mut HashMap<Who, Failed>) {
    let mut since: Vec<Instant> = failed.values().map(|failed| failed.since).collect();
    let middle = since.len() / 2;
    let (_, middle, _) = since.select_nth_unstable(middle);
    let (middle, mut n_left) = (*middle, failed.len() / 2);
    failed.retain(|_, failed| {
        // Many may have failed at the same moment.
        let stays = failed.since >= middle && n_left > 0;
        n_left -= usize::from(stays);
        stays || failed.n_open > 0
    });
}

/// What a login counts for, and how often.
fn keys(address: IpAddr, user: &str) -> [(Who, u32); 2] {
    let network = network(address);
    [(Who { network, user: Some(user.to_owned()) }, PER_USER), (Who { network, user: None }, PER_ADDRESS)]
}

/// Somebody with one address of version 6 has 2^64 of them.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from(u128::from(address) & !u128::from(u64::MAX)).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    #[test]
    fn after_some_failures_an_address_waits_and_others_do_not() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        for _ in 0..PER_USER {
            attempts.begin(ADDRESS, "ann", now).unwrap().fail(now);
        }
        assert!(attempts.begin(ADDRESS, "ann", now).is_none());
        assert!(attempts.begin(ADDRESS, "bob", now).is_some());
        assert!(attempts.begin(OTHER, "ann", now).is_some());
        assert!(attempts.begin(ADDRESS, "ann", now + WINDOW).is_some());
    }

    #[test]
    fn logins_at_the_same_time_are_as_many_attempts() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        let open: Vec<Attempt<'_>> = (0..PER_USER).map(|_| attempts.begin(ADDRESS, "ann", now).unwrap()).collect();
        assert!(attempts.begin(ADDRESS, "ann", now).is_none());
        drop(open);
        assert!(attempts.begin(ADDRESS, "ann", now).is_some(), "none of them failed");
        assert!(attempts.failed().is_empty());
    }

    #[test]
    fn many_users_from_one_address_are_as_many_attempts() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        for user in 0..PER_ADDRESS {
            attempts.begin(ADDRESS, &format!("user {user}"), now).unwrap().fail(now);
        }
        assert!(attempts.begin(ADDRESS, "another", now).is_none());
        let v6 = |last| IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last));
        for last in 0..u16::try_from(PER_ADDRESS).unwrap() {
            attempts.begin(v6(last), &format!("user {last}"), now).unwrap().fail(now);
        }
        assert!(attempts.begin(v6(999), "another", now).is_none());
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        for last in 0..20_000u32 {
            attempts.begin(IpAddr::V4(last.into()), "ann", now).unwrap().fail(now);
        }
        assert!(attempts.failed().len() <= MOST_KEPT);
    }
}
