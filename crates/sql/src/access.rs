//! [`Accounts`]: who may log in, which views they may read, and for which purposes.
//!
//! # Guarantee
//! A password is never kept, only what checks it ([`Verifier`]). What is revoked is refused from the next statement on,
//! and from the next rows of open cursors. A grant that was revoked is remembered: whoever held it may still have the
//! answers, so a later grant is audited against it too, or refused where the view was dropped since.
//! # Cost
//! Everything is held in memory and written through to [`Records`].

mod grants;
mod problem;
mod records;
mod verifier;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

pub use grants::{GrantedPair, Held};
pub use problem::AccessProblem;
pub use records::{MemoryRecords, Record, Records};
pub use verifier::{ITERATIONS, Verifier, random_bytes};

use crate::engine::Role;
use grants::Grants;

const USERS: &str = "user";
const SERVER: &str = "server";
const SECRET: &str = "secret";
/// Bytes of a login's name in UTF-8, as in PostgreSQL.
const LONGEST_NAME: usize = 63;
/// Characters of a password.
const SHORTEST_PASSWORD: usize = 8;
const LONGEST_PASSWORD: usize = 1024;

/// Who may log in, and what they may read.
pub struct Accounts {
    records: Box<dyn Records>,
    state: RwLock<State>,
    /// Counts what was taken away.
    revocations: AtomicU64,
    secret: [u8; 32],
}

#[derive(Default)]
struct State {
    users: BTreeMap<String, User>,
    grants: Grants,
}

/// Somebody who may log in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// What they may run.
    pub role: Role,
    /// What checks their password.
    pub verifier: Verifier,
}

impl Accounts {
    /// Nobody, in memory.
    ///
    /// # Errors
    /// Where the system gives no random bytes.
    pub fn in_memory() -> Result<Accounts, AccessProblem> {
        Accounts::open(Box::new(MemoryRecords::default()))
    }

    /// Whom these records name.
    ///
    /// # Errors
    /// Where they can't be read.
    pub fn open(records: Box<dyn Records>) -> Result<Accounts, AccessProblem> {
        let mut state = State::default();
        for Record { name, text } in records.list(USERS)? {
            let user = User::from_text(&text).ok_or(AccessProblem::BadRecord { kind: USERS })?;
            state.users.insert(name, user);
        }
        state.grants = Grants::read(records.as_ref())?;
        let known = records.list(SERVER)?.into_iter().find(|record| record.name == SECRET);
        let secret = match known {
            Some(record) => verifier::decode_32(&record.text).ok_or(AccessProblem::BadRecord { kind: SERVER })?,
            None => {
                let secret: [u8; 32] = random_bytes()?;
                records.put(SERVER, SECRET, &verifier::encode(&secret))?;
                secret
            }
        };
        Ok(Accounts { records, state: RwLock::new(state), revocations: AtomicU64::new(0), secret })
    }

    /// Somebody by name.
    pub fn user(&self, name: &str) -> Option<User> {
        self.read().users.get(name).cloned()
    }

    /// Whether somebody may change things at all.
    pub fn has_owner(&self) -> bool {
        self.read().users.values().any(|user| user.role == Role::Owner)
    }

    /// What checks a login: of somebody who is unknown, one that no password fits and that looks like any other.
    pub fn verifier(&self, name: &str) -> (Verifier, Option<Role>) {
        let user = self.user(name);
        // Made in either case, so that both take as long.
        let nobody = Verifier::of_nobody(&self.secret, name);
        match user {
            Some(user) => (user.verifier, Some(user.role)),
            None => (nobody, None),
        }
    }

    /// Counts what was taken away: where it has changed, whatever is open must be asked for again.
    pub fn revocations(&self) -> u64 {
        self.revocations.load(Ordering::Acquire)
    }

    /// Adds somebody.
    ///
    /// # Errors
    /// Where the name is taken or none, or the password too short.
    pub fn create_user(&self, name: &str, role: Role, password: &str) -> Result<(), AccessProblem> {
        if name.is_empty() || name.len() > LONGEST_NAME || name.chars().any(char::is_control) {
            return Err(AccessProblem::BadName { longest: LONGEST_NAME });
        }
        let user = User { role, verifier: checked_verifier(password)? };
        let mut state = self.write();
        if state.users.contains_key(name) {
            return Err(AccessProblem::UserExists { name: name.to_owned() });
        }
        self.records.put(USERS, name, &user.to_text())?;
        state.users.insert(name.to_owned(), user);
        Ok(())
    }

    /// Gives somebody another password.
    ///
    /// # Errors
    /// Where there is no such user, or the password is too short.
    pub fn set_password(&self, name: &str, password: &str) -> Result<(), AccessProblem> {
        let verifier = checked_verifier(password)?;
        let mut state = self.write();
        let Some(user) = state.users.get(name) else { return Err(AccessProblem::unknown_user(name)) };
        let user = User { role: user.role, verifier };
        self.records.put(USERS, name, &user.to_text())?;
        state.users.insert(name.to_owned(), user);
        Ok(())
    }

    /// Removes somebody; sessions of theirs answer nothing from here on. Returns whether they were there.
    ///
    /// # Errors
    /// Where there is no such user and there must be, or the last owner would go.
    pub fn drop_user(&self, name: &str, if_exists: bool) -> Result<bool, AccessProblem> {
        let mut state = self.write();
        let Some(user) = state.users.get(name) else {
            return if if_exists { Ok(false) } else { Err(AccessProblem::unknown_user(name)) };
        };
        let n_owners = state.users.values().filter(|user| user.role == Role::Owner).count();
        if user.role == Role::Owner && n_owners == 1 {
            return Err(AccessProblem::LastOwner);
        }
        state.grants.revoke_all(name, self.records.as_ref())?;
        self.records.remove(USERS, name)?;
        state.users.remove(name);
        self.revocations.fetch_add(1, Ordering::AcqRel);
        Ok(true)
    }

    /// Everybody and what they may run, by name.
    pub fn users(&self) -> Vec<(String, Role)> {
        self.read().users.iter().map(|(name, user)| (name.clone(), user.role)).collect()
    }

    /// Grants a view. That it may be granted is the caller's to know.
    ///
    /// # Errors
    /// Where there is no such user.
    pub fn grant_view(&self, user: &str, view: &str) -> Result<(), AccessProblem> {
        let mut state = self.write_for(user)?;
        state.grants.set_view(user, view, Held::Now, self.records.as_ref())
    }

    /// Takes a view away.
    ///
    /// # Errors
    /// Where it was not granted.
    pub fn revoke_view(&self, user: &str, view: &str) -> Result<(), AccessProblem> {
        let mut state = self.write_for(user)?;
        if !state.grants.holds_view(user, view) {
            return Err(AccessProblem::NotGranted { what: format!("SELECT ON {view}"), user: user.to_owned() });
        }
        state.grants.set_view(user, view, Held::Before, self.records.as_ref())?;
        self.revocations.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Takes a view away from everybody: it is dropped, and another of its name is another view. Who held it is remembered.
    ///
    /// # Errors
    /// Where it can't be recorded.
    pub fn forget_view(&self, view: &str) -> Result<(), AccessProblem> {
        self.write().grants.forget_view(view, self.records.as_ref())?;
        self.revocations.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Grants a purpose and a recipient.
    ///
    /// # Errors
    /// Where there is no such user.
    pub fn grant_pair(&self, user: &str, pair: &GrantedPair) -> Result<(), AccessProblem> {
        let mut state = self.write_for(user)?;
        state.grants.set_pair(user, pair, Held::Now, self.records.as_ref())
    }

    /// Takes a purpose and a recipient away.
    ///
    /// # Errors
    /// Where they were not granted.
    pub fn revoke_pair(&self, user: &str, pair: &GrantedPair) -> Result<(), AccessProblem> {
        let mut state = self.write_for(user)?;
        if !state.grants.pairs(user).any(|(held, how)| held.is_same(pair) && how == Held::Now) {
            return Err(AccessProblem::NotGranted { what: pair.to_string(), user: user.to_owned() });
        }
        state.grants.set_pair(user, pair, Held::Before, self.records.as_ref())?;
        self.revocations.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Whether somebody may read a view now.
    pub fn may_read(&self, user: &str, view: &str) -> bool {
        let state = self.read();
        state.users.contains_key(user) && state.grants.holds_view(user, view)
    }

    /// The views somebody may read now.
    pub fn views(&self, user: &str) -> BTreeSet<String> {
        let state = self.read();
        state.grants.views(user).filter(|(_, how)| *how == Held::Now).map(|(view, _)| view.to_owned()).collect()
    }

    /// The views somebody reads or has read.
    pub fn views_ever(&self, user: &str) -> BTreeSet<String> {
        self.read().grants.views(user).map(|(view, _)| view.to_owned()).collect()
    }

    /// A view that somebody could read once and that was dropped since, if there is one.
    pub fn dropped_view(&self, user: &str) -> Option<String> {
        self.read().grants.dropped(user).next().map(str::to_owned)
    }

    /// The purposes and recipients somebody may use now.
    pub fn pairs(&self, user: &str) -> Vec<GrantedPair> {
        let state = self.read();
        state.grants.pairs(user).filter(|(_, how)| *how == Held::Now).map(|(pair, _)| pair.clone()).collect()
    }

    /// The purposes and recipients somebody uses or has used.
    pub fn pairs_ever(&self, user: &str) -> Vec<GrantedPair> {
        self.read().grants.pairs(user).map(|(pair, _)| pair.clone()).collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, where it knows somebody.
    fn write_for(&self, user: &str) -> Result<RwLockWriteGuard<'_, State>, AccessProblem> {
        let state = self.write();
        if state.users.contains_key(user) { Ok(state) } else { Err(AccessProblem::unknown_user(user)) }
    }
}

impl User {
    fn to_text(&self) -> String {
        format!("{} {}", self.role.word(), self.verifier)
    }

    fn from_text(text: &str) -> Option<User> {
        let (role, verifier) = text.split_once(' ')?;
        let role = [Role::Owner, Role::Analyst].into_iter().find(|known| known.word() == role)?;
        Some(User { role, verifier: verifier.parse().ok()? })
    }
}

fn checked_verifier(password: &str) -> Result<Verifier, AccessProblem> {
    // Clients that hash passwords would make the hash the password. As a verifier it would tell who there is by how often it
    // was hashed.
    if password.parse::<Verifier>().is_ok() {
        return Err(AccessProblem::HashedPassword);
    }
    let n_characters = password.chars().count();
    if !(SHORTEST_PASSWORD..=LONGEST_PASSWORD).contains(&n_characters) {
        return Err(AccessProblem::BadPassword { shortest: SHORTEST_PASSWORD, longest: LONGEST_PASSWORD });
    }
    Verifier::of_password(password)
}

#[cfg(test)]
mod tests;
