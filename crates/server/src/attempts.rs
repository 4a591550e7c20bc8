//! [`Attempts`]: limits failed logins per address and user.
//!
//! # Guarantee
//! An address may send [`PER_ADDRESS`] wrong passwords in a [`WINDOW`], and [`PER_USER`] for one user. A password that
//! is being checked counts as wrong until the check ends, and further logins wait for the end of such checks. They
//! never wait for a client, so a client that begins logins and does not finish them delays nobody. Nobody can lock out
//! a user for other addresses. Memory is limited: if there are too many entries, the older half is removed. Names that
//! are too long for any user count as one name.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

const WINDOW: Duration = Duration::from_secs(60);
const PER_USER: u32 = 5;
const PER_ADDRESS: u32 = 30;
const MOST_KEPT: usize = 10_000;
/// The largest length of a name in bytes.
const LONGEST_NAME: usize = 63;

/// Recent failed logins.
#[derive(Default)]
pub(crate) struct Attempts {
    failed: Mutex<HashMap<Who, FailedAttempts>>,
    ended: Notify,
}

/// Whether a password may be checked.
pub(crate) enum Attempted<'a> {
    /// The password may be checked now.
    Begun(Attempt<'a>),
    /// The password can be checked only after other checks have ended.
    Later,
    /// The password may not be checked, because too many logins have failed.
    Never,
}

/// An address, and the user if failures are counted per user.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Who {
    network: IpAddr,
    user: Option<String>,
}

#[derive(Clone, Copy)]
struct FailedAttempts {
    since: Instant,
    n_times: u32,
    /// The number of passwords being checked, which may be wrong.
    n_open: u32,
}

impl FailedAttempts {
    fn is_over(&self, now: Instant) -> bool {
        now.duration_since(self.since) >= WINDOW
    }
}

/// A password that is being checked.
pub(crate) struct Attempt<'a> {
    attempts: &'a Attempts,
    who: [Who; 2],
}

impl Attempts {
    /// Whether so many logins have failed that this one may not begin.
    pub(crate) fn have_failed(&self, address: IpAddr, user: &str, now: Instant) -> bool {
        let failed = self.failed();
        let has_failed = |(who, most): &(Who, u32)| {
            failed.get(who).is_some_and(|known| !known.is_over(now) && known.n_times >= *most)
        };
        keys(address, user).iter().any(has_failed)
    }

    /// Waits for the end of a check.
    pub(crate) fn ended(&self) -> Notified<'_> {
        self.ended.notified()
    }

    /// Begins to check a password for this address and user, if that is allowed now.
    pub(crate) fn begin(&self, address: IpAddr, user: &str, now: Instant) -> Attempted<'_> {
        let mut failed = self.failed();
        let keys = keys(address, user);
        let (mut has_failed, mut is_busy) = (false, false);
        for (who, most) in &keys {
            let Some(known) = failed.get(who) else { continue };
            let n_failed = if known.is_over(now) { 0 } else { known.n_times };
            has_failed |= n_failed >= *most;
            is_busy |= n_failed.saturating_add(known.n_open) >= *most;
        }
        if has_failed {
            return Attempted::Never;
        }
        if is_busy {
            return Attempted::Later;
        }
        if failed.len() + 2 > MOST_KEPT {
            forget_older_half(&mut failed);
        }
        for (who, _) in &keys {
            failed.entry(who.clone()).or_insert(FailedAttempts { since: now, n_times: 0, n_open: 0 }).n_open += 1;
        }
        Attempted::Begun(Attempt { attempts: self, who: keys.map(|(who, _)| who) })
    }

    fn failed(&self) -> MutexGuard<'_, HashMap<Who, FailedAttempts>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Attempt<'_> {
    /// Counts the login as failed.
    pub(crate) fn fail(self, now: Instant) {
        let mut failed = self.attempts.failed();
        for who in &self.who {
            let Some(known) = failed.get_mut(who) else { continue };
            if known.is_over(now) {
                *known = FailedAttempts { since: now, n_times: 0, ..*known };
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
        drop(failed);
        self.attempts.ended.notify_waiters();
    }
}

fn forget_older_half(failed: &mut HashMap<Who, FailedAttempts>) {
    let mut since: Vec<Instant> = failed.values().map(|failed| failed.since).collect();
    let middle = since.len() / 2;
    let (_, middle, _) = since.select_nth_unstable(middle);
    let (middle, mut n_left) = (*middle, failed.len() / 2);
    failed.retain(|_, failed| {
        // Many logins may have failed at the same moment.
        let stays = failed.since >= middle && n_left > 0;
        n_left -= usize::from(stays);
        stays || failed.n_open > 0
    });
}

/// The keys under which a login is counted, and their limits.
fn keys(address: IpAddr, user: &str) -> [(Who, u32); 2] {
    let network = network(address);
    let user = if user.len() > LONGEST_NAME { "" } else { user };
    [(Who { network, user: Some(user.to_owned()) }, PER_USER), (Who { network, user: None }, PER_ADDRESS)]
}

/// The network of an address. A user of IPv6 usually has 2^64 addresses, so they count as one.
pub(crate) fn network(address: IpAddr) -> IpAddr {
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

    impl<'a> Attempted<'a> {
        fn begun(self) -> Option<Attempt<'a>> {
            match self {
                Attempted::Begun(attempt) => Some(attempt),
                Attempted::Later | Attempted::Never => None,
            }
        }

        fn is_never(&self) -> bool {
            matches!(self, Attempted::Never)
        }
    }

    fn fail(attempts: &Attempts, address: IpAddr, user: &str, now: Instant) {
        attempts.begin(address, user, now).begun().unwrap().fail(now);
    }

    #[test]
    fn after_some_failures_an_address_waits_and_others_do_not() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        for _ in 0..PER_USER {
            fail(&attempts, ADDRESS, "ann", now);
        }
        assert!(attempts.begin(ADDRESS, "ann", now).is_never());
        assert!(attempts.have_failed(ADDRESS, "ann", now));
        assert!(!attempts.have_failed(ADDRESS, "bob", now));
        assert!(!attempts.have_failed(ADDRESS, "ann", now + WINDOW));
        assert!(attempts.begin(ADDRESS, "bob", now).begun().is_some());
        assert!(attempts.begin(OTHER, "ann", now).begun().is_some());
        assert!(attempts.begin(ADDRESS, "ann", now + WINDOW).begun().is_some());
    }

    #[test]
    fn logins_at_the_same_time_are_as_many_as_may_fail_and_others_wait_for_them() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        let mut open: Vec<Attempt<'_>> =
            (0..PER_USER).map(|_| attempts.begin(ADDRESS, "ann", now).begun().unwrap()).collect();
        let waits = |attempts: &Attempts| matches!(attempts.begin(ADDRESS, "ann", now), Attempted::Later);
        assert!(waits(&attempts));
        open.pop().unwrap().fail(now);
        assert!(waits(&attempts), "four are open, and one failed");
        drop(open);
        assert!(attempts.begin(ADDRESS, "ann", now).begun().is_some(), "none of the others failed");
    }

    #[test]
    fn many_users_from_one_address_are_as_many_attempts() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        for user in 0..PER_ADDRESS {
            fail(&attempts, ADDRESS, &format!("user {user}"), now);
        }
        assert!(attempts.begin(ADDRESS, "another", now).is_never());
        let v6 = |last| IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last));
        for last in 0..u16::try_from(PER_ADDRESS).unwrap() {
            fail(&attempts, v6(last), &format!("user {last}"), now);
        }
        assert!(attempts.begin(v6(999), "another", now).is_never());
    }

    #[test]
    fn the_number_of_entries_is_limited() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        for last in 0..20_000u32 {
            fail(&attempts, IpAddr::V4(last.into()), &"x".repeat(9_000), now);
        }
        assert!(attempts.failed().len() <= MOST_KEPT);
        let longest = attempts.failed().keys().filter_map(|who| who.user.as_ref().map(String::len)).max();
        assert!(longest <= Some(LONGEST_NAME));
    }
}
