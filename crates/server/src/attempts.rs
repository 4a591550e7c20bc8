//! [`Attempts`]: how often logins failed lately, by address and user.
//!
//! # Guarantee
//! An address gets [`PER_ADDRESS`] wrong passwords in a [`WINDOW`], and [`PER_USER`] for one user. Nobody can lock out a
//! user for other addresses. Memory is bounded: where there are too many, the older half is forgotten.

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
}

impl Attempts {
    /// Whether an address may try this user now.
    pub(crate) fn may_try(&self, address: IpAddr, user: &str, now: Instant) -> bool {
        let failed = self.failed();
        keys(address, user).iter().all(|(who, most)| {
            failed.get(who).is_none_or(|failed| failed.n_times < *most || now.duration_since(failed.since) >= WINDOW)
        })
    }

    /// Counts a login that failed.
    pub(crate) fn record_failure(&self, address: IpAddr, user: &str, now: Instant) {
        let mut failed = self.failed();
        if failed.len() + 2 > MOST_KEPT {
            forget_older_half(&mut failed);
        }
        for (who, _) in keys(address, user) {
            let entry = failed.entry(who).or_insert(Failed { since: now, n_times: 0 });
            if now.duration_since(entry.since) >= WINDOW {
                *entry = Failed { since: now, n_times: 0 };
            }
            entry.n_times = entry.n_times.saturating_add(1);
        }
    }

    fn failed(&self) -> MutexGuard<'_, HashMap<Who, Failed>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
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
        stays
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
            assert!(attempts.may_try(ADDRESS, "ann", now));
            attempts.record_failure(ADDRESS, "ann", now);
        }
        assert!(!attempts.may_try(ADDRESS, "ann", now));
        assert!(attempts.may_try(ADDRESS, "bob", now));
        assert!(attempts.may_try(OTHER, "ann", now));
        assert!(attempts.may_try(ADDRESS, "ann", now + WINDOW));
    }

    #[test]
    fn many_users_from_one_address_are_as_many_attempts() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        for user in 0..PER_ADDRESS {
            attempts.record_failure(ADDRESS, &format!("user {user}"), now);
        }
        assert!(!attempts.may_try(ADDRESS, "another", now));
        let v6 = |last| IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last));
        for last in 0..u16::try_from(PER_ADDRESS).unwrap() {
            attempts.record_failure(v6(last), "ann", now);
        }
        assert!(!attempts.may_try(v6(999), "another", now));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        for last in 0..20_000u32 {
            attempts.record_failure(IpAddr::V4(last.into()), "ann", now);
        }
        assert!(attempts.failed().len() <= MOST_KEPT);
    }
}
