//! [`Login`]: somebody who has logged in.
//!
//! A name may be dropped and given to somebody else, and a password may be changed because it became known. So a login is
//! held by whoever had the name and the password then, and by nobody after them. Logins do not outlive the process, so that
//! a number will do.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Somebody who has logged in: a name, and who had it. Clones are the same login.
#[derive(Clone, Debug)]
pub struct Login {
    name: Arc<str>,
    incarnation: Arc<AtomicU64>,
}

impl Login {
    pub(super) fn new(name: &str, incarnation: u64) -> Login {
        Login { name: name.into(), incarnation: Arc::new(AtomicU64::new(incarnation)) }
    }

    /// Whether it is of this one of those who had this name.
    pub(super) fn is(&self, name: &str, incarnation: u64) -> bool {
        *self.name == *name && self.incarnation.load(Ordering::Acquire) == incarnation
    }

    /// It is theirs too who it becomes: the same person, with another password.
    pub(super) fn becomes(&self, incarnation: u64) {
        self.incarnation.store(incarnation, Ordering::Release);
    }
}

/// The name.
impl Deref for Login {
    type Target = str;

    fn deref(&self) -> &str {
        &self.name
    }
}
