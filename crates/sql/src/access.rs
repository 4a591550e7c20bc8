//! [`Accounts`]: the users who may log in, and the views and purposes granted to them.
//!
//! # Guarantee
//! A password is never stored, only a [`Verifier`] for it. A revoked right is refused from the next statement on, and
//! from the next rows of open cursors. Revoked grants are remembered, because the user may still have the answers: a
//! later grant is audited against them too, and refused if the view has been dropped since. A [`Login`] belongs to a
//! person, not to a name: if a user is dropped or gets a new password, a new user of the same name does not revive old
//! logins.
//! # Cost
//! Everything is in memory. A change that gives a right is logged ([`Recording`]) and written to [`Records`] before it
//! takes effect. A change that takes a right away takes effect at once, is then logged, and is written by
//! [`Accounts::write`], so that nobody can keep a revoked right by delaying the write. No change is written before it
//! is logged.

mod error;
mod grants;
mod login;
mod records;
mod verifier;

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::{RwLock, RwLockWriteGuard};
use tokio::sync::watch;

pub use error::AccessError;
pub use grants::Granted;
pub use login::Login;
pub use records::{MemoryRecords, Record, Records};
pub use verifier::{ITERATIONS, Verifier, random_bytes};

use crate::policy::Pair;
use crate::role::Role;
use grants::{Grants, Held};
use records::Unwritten;

const USERS: &str = "user";
const SERVER: &str = "server";
const SECRET: &str = "secret";
/// The largest length of a user's name in bytes, as in PostgreSQL.
const LONGEST_NAME: usize = 63;
/// The allowed lengths of a password in characters.
const SHORTEST_PASSWORD: usize = 8;
const LONGEST_PASSWORD: usize = 1024;

/// Logs a change. If this fails, the change is not written. The function must not use the accounts, which are locked.
pub type Recording<'a> = &'a dyn Fn() -> std::io::Result<()>;

/// Logs nothing, for a change that no statement asked for.
pub const UNASKED: Recording<'static> = &|| Ok(());

/// The users and their grants.
pub struct Accounts {
    records: Box<dyn Records>,
    state: RwLock<State>,
    /// Counts revocations, and notifies those who wait for one or for the end of a login.
    taken_away: watch::Sender<u64>,
    secret: [u8; 32],
}

#[derive(Default)]
struct State {
    users: BTreeMap<String, User>,
    grants: Grants,
    /// Changes that are in effect but not written yet.
    unwritten: Unwritten,
    /// Counts the users and passwords created since the start.
    n_incarnations: u64,
}

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The role, which decides what the user may run.
    pub role: Role,
    /// Checks the user's password.
    pub verifier: Verifier,
    /// Tells this user and password from earlier ones of the same name.
    incarnation: u64,
}

impl Accounts {
    /// Accounts in memory, without any user.
    ///
    /// # Errors
    /// If the system provides no random bytes.
    pub fn in_memory() -> Result<Accounts, AccessError> {
        Accounts::open(Box::new(MemoryRecords::default()))
    }

    /// Reads the accounts from these records.
    ///
    /// # Errors
    /// If the records can't be read.
    pub fn open(records: Box<dyn Records>) -> Result<Accounts, AccessError> {
        let mut state = State::default();
        for Record { name, text } in records.list(USERS)? {
            let incarnation = state.next_incarnation();
            let user = User::from_text(&text, incarnation).ok_or(AccessError::BadRecord { kind: USERS })?;
            state.users.insert(name, user);
        }
        state.grants = Grants::read(records.as_ref())?;
        let known = records.list(SERVER)?.into_iter().find(|record| record.name == SECRET);
        let secret = match known {
            Some(record) => verifier::decode_32(&record.text).ok_or(AccessError::BadRecord { kind: SERVER })?,
            None => {
                let secret: [u8; 32] = random_bytes()?;
                records.put(SERVER, SECRET, &verifier::encode(&secret))?;
                secret
            }
        };
        Ok(Accounts { records, state: RwLock::new(state), taken_away: watch::Sender::new(0), secret })
    }

    /// The user of this name.
    pub fn user(&self, name: &str) -> Option<User> {
        self.state.read().users.get(name).cloned()
    }

    /// Whether there is an owner.
    pub fn has_owner(&self) -> bool {
        self.state.read().users.values().any(|user| user.role == Role::Owner)
    }

    /// The verifier for a login, and the login to use if the password is right. An unknown name gets a verifier that no
    /// password fits, so that clients can't find out which names exist.
    pub fn verifier(&self, name: &str) -> (Verifier, Option<Login>) {
        let user = self.user(name);
        // Compute this in both cases, so that both take the same time.
        let nobody = Verifier::of_nobody(&self.secret, name);
        match user {
            Some(user) => (user.verifier, Some(Login::new(name, user.incarnation))),
            None => (nobody, None),
        }
    }

    /// The role of a login; `None` once the user is dropped or has a new password.
    pub fn role(&self, login: &Login) -> Option<Role> {
        self.state.read().of(login).map(|user| user.role)
    }

    /// Waits until a login ends.
    pub async fn until_gone(&self, login: &Login) {
        self.once(|accounts| accounts.role(login).is_none().then_some(())).await;
    }

    /// Waits until `found` returns something. It is called now and after each revocation.
    pub(crate) async fn once<T>(&self, mut found: impl FnMut(&Accounts) -> Option<T>) -> T {
        let mut taken_away = self.taken_away.subscribe();
        loop {
            if let Some(found) = found(self) {
                return found;
            }
            if taken_away.changed().await.is_err() {
                // `changed` can't fail as long as the sender exists, and `self` owns it.
                std::future::pending::<()>().await;
            }
        }
    }

    fn take_away(&self) {
        self.taken_away.send_modify(|n_taken| *n_taken += 1);
    }

    /// The number of revocations. If it has changed, open cursors must be authorized again.
    pub fn revocations(&self) -> u64 {
        *self.taken_away.borrow()
    }

    /// Adds a user.
    ///
    /// # Errors
    /// If the name is taken or not valid, or the password is too short.
    pub fn create_user(
        &self,
        name: &str,
        role: Role,
        password: &str,
        recording: Recording<'_>,
    ) -> Result<(), AccessError> {
        if name.is_empty() || name.len() > LONGEST_NAME || name.chars().any(char::is_control) {
            return Err(AccessError::BadName { longest: LONGEST_NAME });
        }
        let verifier = checked_verifier(password)?;
        let mut state = self.state.write();
        if state.users.contains_key(name) {
            return Err(AccessError::UserExists { name: name.to_owned() });
        }
        self.settle(&mut state, recording)?;
        let user = User { role, verifier, incarnation: state.next_incarnation() };
        self.records.put(USERS, name, &user.to_text())?;
        state.users.insert(name.to_owned(), user);
        Ok(())
    }

    /// Changes a password at once. All sessions of the user end except the one that asks for it. Call
    /// [`Accounts::write`] afterwards.
    ///
    /// # Errors
    /// If there is no such user, or the password is too short.
    pub fn set_password(
        &self,
        name: &str,
        password: &str,
        asked_by: Option<&Login>,
        recording: Recording<'_>,
    ) -> Result<(), AccessError> {
        let verifier = checked_verifier(password)?;
        let mut state = self.state.write();
        let incarnation = state.next_incarnation();
        let Some(known) = state.users.get(name) else { return Err(AccessError::unknown_user(name)) };
        let stays = asked_by.filter(|login| login.is(name, known.incarnation));
        let user = User { role: known.role, verifier, incarnation };
        state.unwritten.put(USERS, name, &user.to_text());
        state.users.insert(name.to_owned(), user);
        stays.into_iter().for_each(|login| login.becomes(incarnation));
        let recorded = recording();
        drop(state);
        // Notify without counting: cursors of other users need not be authorized again.
        self.taken_away.send_modify(|_| {});
        recorded.map_err(AccessError::Unrecorded)
    }

    /// Removes a user at once and ends the user's sessions. Returns whether the user existed. Call [`Accounts::write`]
    /// afterwards.
    ///
    /// # Errors
    /// If there is no such user and `if_exists` is false, or this is the last owner.
    pub fn drop_user(&self, name: &str, if_exists: bool, recording: Recording<'_>) -> Result<bool, AccessError> {
        let mut state = self.state.write();
        let Some(user) = state.users.get(name) else {
            return if if_exists { Ok(false) } else { Err(AccessError::unknown_user(name)) };
        };
        let n_owners = state.users.values().filter(|user| user.role == Role::Owner).count();
        if user.role == Role::Owner && n_owners == 1 {
            return Err(AccessError::LastOwner);
        }
        let State { users, grants, unwritten, .. } = &mut *state;
        grants.revoke_all(name, unwritten);
        unwritten.remove(USERS, name);
        users.remove(name);
        self.taken(state, recording).map(|()| true)
    }

    /// All users and their roles, sorted by name.
    pub fn users(&self) -> Vec<(String, Role)> {
        self.state.read().users.iter().map(|(name, user)| (name.clone(), user.role)).collect()
    }

    /// Grants something. The caller must have checked that it may be granted.
    ///
    /// # Errors
    /// If there is no such user.
    pub fn grant(&self, user: &str, what: &Granted, recording: Recording<'_>) -> Result<(), AccessError> {
        let mut state = self.state.write();
        state.check_user(user)?;
        self.settle(&mut state, recording)?;
        state.grants.grant(user, what, self.records.as_ref())
    }

    /// Revokes something at once. Call [`Accounts::write`] afterwards.
    ///
    /// # Errors
    /// If it was not granted.
    pub fn revoke(&self, user: &str, what: &Granted, recording: Recording<'_>) -> Result<(), AccessError> {
        let mut state = self.state.write();
        state.check_user(user)?;
        if !state.grants.holds(user, what) {
            return Err(AccessError::NotGranted { what: what.to_string(), user: user.to_owned() });
        }
        let State { grants, unwritten, .. } = &mut *state;
        grants.revoke(user, what, unwritten);
        self.taken(state, recording)
    }

    /// Revokes a view from everybody, because it is dropped and a new view of the same name must not inherit its
    /// grants. The users who had it are remembered.
    ///
    /// # Errors
    /// If it can't be logged.
    pub fn forget_view(&self, view: &str, recording: Recording<'_>) -> Result<(), AccessError> {
        let mut state = self.state.write();
        self.settle(&mut state, recording)?;
        state.grants.forget_view(view, self.records.as_ref())?;
        drop(state);
        self.take_away();
        Ok(())
    }

    /// Writes revocations that are in effect and logged. If this fails, they stay in effect until the process ends, and
    /// the next change of users or grants tries again.
    ///
    /// # Errors
    /// If something can't be written.
    pub fn write(&self) -> Result<(), AccessError> {
        Ok(self.state.write().unwritten.write(self.records.as_ref())?)
    }

    /// Whether a login may read a view now.
    pub fn may_read(&self, login: &Login, view: &str) -> bool {
        let state = self.state.read();
        state.of(login).is_some() && state.grants.holds_view(login, view)
    }

    /// The views that a user may read now.
    pub fn views(&self, user: &str) -> BTreeSet<String> {
        let state = self.state.read();
        state.grants.views(user).filter(|(_, how)| *how == Held::Now).map(|(view, _)| view.clone()).collect()
    }

    /// The views that a user may read or could once read.
    pub fn views_ever(&self, user: &str) -> BTreeSet<String> {
        self.state.read().grants.views(user).map(|(view, _)| view.clone()).collect()
    }

    /// A view that the user could once read and that has been dropped since, if there is one.
    pub fn dropped_view(&self, user: &str) -> Option<String> {
        self.state.read().grants.dropped(user).next().map(str::to_owned)
    }

    /// The purposes and recipients that a user may use now.
    pub fn pairs(&self, user: &str) -> Vec<Pair> {
        let state = self.state.read();
        state.grants.pairs(user).filter(|(_, how)| *how == Held::Now).map(|(pair, _)| pair.clone()).collect()
    }

    /// The purposes and recipients that a user may use or could once use.
    pub fn pairs_ever(&self, user: &str) -> Vec<Pair> {
        self.state.read().grants.pairs(user).map(|(pair, _)| pair.clone()).collect()
    }

    /// Logs a change that gives a right, and then writes all earlier revocations, because a new right must not be written
    /// before them.
    fn settle(&self, state: &mut State, recording: Recording<'_>) -> Result<(), AccessError> {
        recording().map_err(AccessError::Log)?;
        Ok(state.unwritten.write(self.records.as_ref())?)
    }

    /// Logs a revocation, and notifies everybody who waits, even if it can't be logged.
    fn taken(&self, state: RwLockWriteGuard<'_, State>, recording: Recording<'_>) -> Result<(), AccessError> {
        let recorded = recording();
        drop(state);
        self.take_away();
        recorded.map_err(AccessError::Unrecorded)
    }
}

impl State {
    fn next_incarnation(&mut self) -> u64 {
        self.n_incarnations += 1;
        self.n_incarnations
    }

    /// The user of a login, unless the user was dropped or has a new password.
    fn of(&self, login: &Login) -> Option<&User> {
        self.users.get(&**login).filter(|user| login.is(login, user.incarnation))
    }

    fn check_user(&self, user: &str) -> Result<(), AccessError> {
        if self.users.contains_key(user) { Ok(()) } else { Err(AccessError::unknown_user(user)) }
    }
}

impl User {
    fn to_text(&self) -> String {
        format!("{} {}", self.role.word(), self.verifier)
    }

    fn from_text(text: &str, incarnation: u64) -> Option<User> {
        let (role, verifier) = text.split_once(' ')?;
        let role = [Role::Owner, Role::Analyst].into_iter().find(|known| known.word() == role)?;
        Some(User { role, verifier: verifier.parse().ok()?, incarnation })
    }
}

fn checked_verifier(password: &str) -> Result<Verifier, AccessError> {
    // Some clients hash the password themselves. If we hashed it again, the hash would become the password. If we used it
    // as the verifier, its number of iterations could differ from ours, which would reveal that the name exists.
    if password.parse::<Verifier>().is_ok() {
        return Err(AccessError::HashedPassword);
    }
    let n_characters = password.chars().count();
    if !(SHORTEST_PASSWORD..=LONGEST_PASSWORD).contains(&n_characters) {
        return Err(AccessError::BadPassword { shortest: SHORTEST_PASSWORD, longest: LONGEST_PASSWORD });
    }
    Verifier::of_password(password)
}

#[cfg(test)]
mod tests;
