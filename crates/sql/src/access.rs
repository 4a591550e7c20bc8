//! [`Accounts`]: who may log in, which views they may read, and for which purposes.
//!
//! # Guarantee
//! A password is never kept, only what checks it ([`Verifier`]). What is revoked is refused from the next statement on,
//! and from the next rows of open cursors. A grant that was revoked is remembered: whoever held it may still have the
//! answers, so a later grant is audited against it too, or refused where the view was dropped since. A login is of somebody,
//! not of a name ([`Login`]): whoever gets the name or the password after them does not revive it.
//! # Cost
//! Everything is held in memory. What gives something is recorded ([`Recording`]) and written to [`Records`] before it counts;
//! what takes something away counts at once, is recorded then, and is written by [`Accounts::write`], so that nobody who holds
//! up writing keeps what was revoked. Nothing is written before its record is.

mod error;
mod grants;
mod login;
mod records;
mod verifier;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tokio::sync::watch;

pub use error::AccessError;
pub use grants::{GrantedPair, Held};
pub use login::Login;
pub use records::{MemoryRecords, Record, Records};
pub use verifier::{ITERATIONS, Verifier, random_bytes};

use crate::role::Role;
use grants::Grants;
use records::Unwritten;

const USERS: &str = "user";
const SERVER: &str = "server";
const SECRET: &str = "secret";
/// Bytes of a login's name in UTF-8, as in PostgreSQL.
const LONGEST_NAME: usize = 63;
/// Characters of a password.
const SHORTEST_PASSWORD: usize = 8;
const LONGEST_PASSWORD: usize = 1024;

/// Keeps the record of a change, which is not written where this fails. It must not look at the accounts.
pub type Recording<'a> = &'a dyn Fn() -> std::io::Result<()>;

/// For a change that no statement asks for.
pub const UNASKED: Recording<'static> = &|| Ok(());

/// Who may log in, and what they may read.
pub struct Accounts {
    records: Box<dyn Records>,
    state: RwLock<State>,
    /// Counts what was taken away, and tells whoever waits for that, or for the end of a login.
    taken_away: watch::Sender<u64>,
    secret: [u8; 32],
}

#[derive(Default)]
struct State {
    users: BTreeMap<String, User>,
    grants: Grants,
    /// What counts and is not written yet.
    unwritten: Unwritten,
    /// How many users and passwords there were since the start.
    n_incarnations: u64,
}

/// Somebody who may log in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// What they may run.
    pub role: Role,
    /// What checks their password.
    pub verifier: Verifier,
    /// Which of those who had this name, with which password.
    incarnation: u64,
}

impl Accounts {
    /// Nobody, in memory.
    ///
    /// # Errors
    /// Where the system gives no random bytes.
    pub fn in_memory() -> Result<Accounts, AccessError> {
        Accounts::open(Box::new(MemoryRecords::default()))
    }

    /// Whom these records name.
    ///
    /// # Errors
    /// Where they can't be read.
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

    /// Somebody by name.
    pub fn user(&self, name: &str) -> Option<User> {
        self.read().users.get(name).cloned()
    }

    /// Whether somebody may change things at all.
    pub fn has_owner(&self) -> bool {
        self.read().users.values().any(|user| user.role == Role::Owner)
    }

    /// What checks a login, and whose it is once it was: of somebody who is unknown, one that no password fits and that
    /// looks like any other.
    pub fn verifier(&self, name: &str) -> (Verifier, Option<Login>) {
        let user = self.user(name);
        // Made in either case, so that both take as long.
        let nobody = Verifier::of_nobody(&self.secret, name);
        match user {
            Some(user) => (user.verifier, Some(Login::new(name, user.incarnation))),
            None => (nobody, None),
        }
    }

    /// What somebody who has logged in may run; `None` once they are dropped, or their password is another.
    pub fn role(&self, login: &Login) -> Option<Role> {
        self.read().of(login).map(|user| user.role)
    }

    /// Ends once a login is no more.
    pub async fn until_gone(&self, login: &Login) {
        self.once(|accounts| accounts.role(login).is_none().then_some(())).await;
    }

    /// Ends once something is so that was not before something was taken away.
    pub(crate) async fn once<T>(&self, mut found: impl FnMut(&Accounts) -> Option<T>) -> T {
        let mut taken_away = self.taken_away.subscribe();
        loop {
            if let Some(found) = found(self) {
                return found;
            }
            if taken_away.changed().await.is_err() {
                // The sender is here, so it does not fail.
                std::future::pending::<()>().await;
            }
        }
    }

    fn take_away(&self) {
        self.taken_away.send_modify(|n_taken| *n_taken += 1);
    }

    /// Counts what was taken away: where it has changed, whatever is open must be asked for again.
    pub fn revocations(&self) -> u64 {
        *self.taken_away.borrow()
    }

    /// Adds somebody.
    ///
    /// # Errors
    /// Where the name is taken or none, or the password too short.
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
        let mut state = self.lock();
        if state.users.contains_key(name) {
            return Err(AccessError::UserExists { name: name.to_owned() });
        }
        self.settle(&mut state, recording)?;
        let user = User { role, verifier, incarnation: state.next_incarnation() };
        self.records.put(USERS, name, &user.to_text())?;
        state.users.insert(name.to_owned(), user);
        Ok(())
    }

    /// Gives somebody another password, at once. Sessions of theirs end, but for the one that asks for it. To be followed by
    /// [`Accounts::write`].
    ///
    /// # Errors
    /// Where there is no such user, or the password is too short.
    pub fn set_password(
        &self,
        name: &str,
        password: &str,
        asked_by: Option<&Login>,
        recording: Recording<'_>,
    ) -> Result<(), AccessError> {
        let verifier = checked_verifier(password)?;
        let mut state = self.lock();
        let incarnation = state.next_incarnation();
        let Some(known) = state.users.get(name) else { return Err(AccessError::unknown_user(name)) };
        let stays = asked_by.filter(|login| login.is(name, known.incarnation));
        let user = User { role: known.role, verifier, incarnation };
        state.unwritten.put(USERS, name, &user.to_text());
        state.users.insert(name.to_owned(), user);
        stays.into_iter().for_each(|login| login.becomes(incarnation));
        let recorded = recording();
        drop(state);
        // The number stays: cursors of others need not be asked for again.
        self.taken_away.send_modify(|_| {});
        recorded.map_err(AccessError::Unrecorded)
    }

    /// Removes somebody, at once; sessions of theirs end. Returns whether they were there. To be followed by
    /// [`Accounts::write`].
    ///
    /// # Errors
    /// Where there is no such user and there must be, or the last owner would go.
    pub fn drop_user(&self, name: &str, if_exists: bool, recording: Recording<'_>) -> Result<bool, AccessError> {
        let mut state = self.lock();
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

    /// Everybody and what they may run, by name.
    pub fn users(&self) -> Vec<(String, Role)> {
        self.read().users.iter().map(|(name, user)| (name.clone(), user.role)).collect()
    }

    /// Grants a view. That it may be granted is the caller's to know.
    ///
    /// # Errors
    /// Where there is no such user.
    pub fn grant_view(&self, user: &str, view: &str, recording: Recording<'_>) -> Result<(), AccessError> {
        let mut state = self.lock();
        state.check_user(user)?;
        self.settle(&mut state, recording)?;
        state.grants.grant_view(user, view, self.records.as_ref())
    }

    /// Takes a view away, at once. To be followed by [`Accounts::write`].
    ///
    /// # Errors
    /// Where it was not granted.
    pub fn revoke_view(&self, user: &str, view: &str, recording: Recording<'_>) -> Result<(), AccessError> {
        let mut state = self.lock();
        state.check_user(user)?;
        if !state.grants.holds_view(user, view) {
            return Err(AccessError::NotGranted { what: format!("SELECT ON {view}"), user: user.to_owned() });
        }
        let State { grants, unwritten, .. } = &mut *state;
        grants.revoke_view(user, view, unwritten);
        self.taken(state, recording)
    }

    /// Takes a view away from everybody: it is dropped, and another of its name is another view. Who held it is remembered.
    ///
    /// # Errors
    /// Where it can't be recorded.
    pub fn forget_view(&self, view: &str, recording: Recording<'_>) -> Result<(), AccessError> {
        let mut state = self.lock();
        self.settle(&mut state, recording)?;
        state.grants.forget_view(view, self.records.as_ref())?;
        drop(state);
        self.take_away();
        Ok(())
    }

    /// Grants a purpose and a recipient.
    ///
    /// # Errors
    /// Where there is no such user.
    pub fn grant_pair(&self, user: &str, pair: &GrantedPair, recording: Recording<'_>) -> Result<(), AccessError> {
        let mut state = self.lock();
        state.check_user(user)?;
        self.settle(&mut state, recording)?;
        state.grants.grant_pair(user, pair, self.records.as_ref())
    }

    /// Takes a purpose and a recipient away, at once. To be followed by [`Accounts::write`].
    ///
    /// # Errors
    /// Where they were not granted.
    pub fn revoke_pair(&self, user: &str, pair: &GrantedPair, recording: Recording<'_>) -> Result<(), AccessError> {
        let mut state = self.lock();
        state.check_user(user)?;
        if !state.grants.pairs(user).any(|(held, how)| held.is_same(pair) && how == Held::Now) {
            return Err(AccessError::NotGranted { what: pair.to_string(), user: user.to_owned() });
        }
        let State { grants, unwritten, .. } = &mut *state;
        grants.revoke_pair(user, pair, unwritten);
        self.taken(state, recording)
    }

    /// Writes what was taken away, counts already and is recorded. What can't be written is tried again with the next change
    /// of users or grants; it counts until the process ends.
    ///
    /// # Errors
    /// Where something can't be written.
    pub fn write(&self) -> Result<(), AccessError> {
        Ok(self.lock().unwritten.write(self.records.as_ref())?)
    }

    /// Whether somebody who has logged in may read a view now.
    pub fn may_read(&self, login: &Login, view: &str) -> bool {
        let state = self.read();
        state.of(login).is_some() && state.grants.holds_view(login, view)
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

    fn lock(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a change that gives something, and writes what was taken away before: what is given must not be written before
    /// that. Records of what was taken away are kept before this one.
    fn settle(&self, state: &mut State, recording: Recording<'_>) -> Result<(), AccessError> {
        recording().map_err(AccessError::Log)?;
        Ok(state.unwritten.write(self.records.as_ref())?)
    }

    /// Records what was taken away, and tells everybody of it, recorded or not.
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

    /// Whose login it is, as long as they are who they were.
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
    // Clients that hash passwords would make the hash the password. As a verifier it would tell who there is by how often it
    // was hashed.
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
