//! [`Login`]: a user who has logged in.
//!
//! A user can be dropped and the name given to another person, and a password can be changed because it leaked. So a
//! login is valid only as long as the user and the password stay the same. A number identifies them, because logins do
//! not outlive the process.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A user who has logged in. Clones share one login.
#[derive(Clone, Debug)]
pub struct Login {
    name: Arc<str>,
    incarnation: Arc<AtomicU64>,
}

impl Login {
    pub(super) fn new(name: &str, incarnation: u64) -> Login {
        Login { name: name.into(), incarnation: Arc::new(AtomicU64::new(incarnation)) }
    }

    /// Whether this login belongs to the user with this name and number.
    pub(super) fn is(&self, name: &str, incarnation: u64) -> bool {
        *self.name == *name && self.incarnation.load(Ordering::Acquire) == incarnation
    }

    /// Moves the login to the user's new number, when the same person sets a new password.
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
