//! [`Grants`]: the views, purposes and recipients that each user has or once had.
//!
//! The name of a record is a JSON array, so that two names can't be confused with one that contains a separator.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::DeserializeOwned;

use super::records::Unwritten;
use super::{AccessError, Record, Records};
use crate::policy::Pair;

const VIEWS: &str = "view grant";
const PAIRS: &str = "pair grant";
const DROPPED: &str = "dropped view";

/// Whether something is granted now or was granted before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// It is granted.
    Now,
    /// It was revoked, but the user may have kept answers.
    Before,
}

impl Held {
    fn word(self) -> &'static str {
        match self {
            Held::Now => "held",
            Held::Before => "revoked",
        }
    }

    /// Every word except that of `Now` means revoked, so that a damaged record gives no right.
    fn from_word(word: &str) -> Held {
        if word == Held::Now.word() { Held::Now } else { Held::Before }
    }
}

/// What is granted or revoked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Granted {
    /// The right to read a view.
    View(String),
    /// The right to use a purpose and a recipient.
    Pair(Pair),
}

impl Granted {
    fn is_same(&self, other: &Granted) -> bool {
        match (self, other) {
            (Granted::Pair(pair), Granted::Pair(other)) => pair.fits(other),
            _ => self == other,
        }
    }

    /// The kind and the name of the record that a user has it.
    fn record(&self, user: &str) -> (&'static str, String) {
        match self {
            Granted::View(view) => (VIEWS, view_name(user, view)),
            Granted::Pair(Pair { purpose, recipient }) => {
                (PAIRS, serde_json::json!([user, purpose, recipient]).to_string())
            }
        }
    }
}

impl fmt::Display for Granted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Granted::View(view) => write!(f, "SELECT ON {view}"),
            Granted::Pair(pair) => pair.fmt(f),
        }
    }
}

/// Grants by user.
#[derive(Default)]
pub(super) struct Grants {
    of_users: BTreeMap<String, Vec<(Granted, Held)>>,
    /// Dropped views, by the users who had them.
    dropped: BTreeMap<String, BTreeSet<String>>,
}

impl Grants {
    pub(super) fn read(records: &dyn Records) -> Result<Grants, AccessError> {
        let mut grants = Grants::default();
        for Record { name, text } in records.list(VIEWS)? {
            let (user, view) = parsed(VIEWS, &name)?;
            grants.put(user, Granted::View(view), Held::from_word(&text));
        }
        for Record { name, text } in records.list(PAIRS)? {
            let (user, purpose, recipient): (String, String, String) = parsed(PAIRS, &name)?;
            let pair = Pair { purpose: Some(purpose), recipient: Some(recipient) };
            grants.put(user, Granted::Pair(pair), Held::from_word(&text));
        }
        for Record { name, .. } in records.list(DROPPED)? {
            let (user, view): (String, String) = parsed(DROPPED, &name)?;
            grants.dropped.entry(user).or_default().insert(view);
        }
        Ok(grants)
    }

    pub(super) fn dropped(&self, user: &str) -> impl Iterator<Item = &str> {
        self.dropped.get(user).into_iter().flatten().map(String::as_str)
    }

    /// What a user has, or also had.
    fn of(&self, user: &str) -> impl Iterator<Item = &(Granted, Held)> {
        self.of_users.get(user).into_iter().flatten()
    }

    pub(super) fn views(&self, user: &str) -> impl Iterator<Item = (&String, Held)> {
        self.of(user).filter_map(|(what, how)| match what {
            Granted::View(view) => Some((view, *how)),
            Granted::Pair(_) => None,
        })
    }

    pub(super) fn pairs(&self, user: &str) -> impl Iterator<Item = (&Pair, Held)> {
        self.of(user).filter_map(|(what, how)| match what {
            Granted::Pair(pair) => Some((pair, *how)),
            Granted::View(_) => None,
        })
    }

    pub(super) fn holds_view(&self, user: &str, view: &str) -> bool {
        self.views(user).any(|(held, how)| held == view && how == Held::Now)
    }

    pub(super) fn holds(&self, user: &str, what: &Granted) -> bool {
        self.of(user).any(|(held, how)| held.is_same(what) && *how == Held::Now)
    }

    /// Writes a grant, and then grants it.
    pub(super) fn grant(&mut self, user: &str, what: &Granted, records: &dyn Records) -> Result<(), AccessError> {
        let what = self.known(user, what);
        let (kind, name) = what.record(user);
        records.put(kind, &name, Held::Now.word())?;
        self.put(user.to_owned(), what, Held::Now);
        Ok(())
    }

    /// Revokes a grant, and adds the change to those to be written.
    pub(super) fn revoke(&mut self, user: &str, what: &Granted, unwritten: &mut Unwritten) {
        let what = self.known(user, what);
        let (kind, name) = what.record(user);
        unwritten.put(kind, &name, Held::Before.word());
        self.put(user.to_owned(), what, Held::Before);
    }

    pub(super) fn revoke_all(&mut self, user: &str, unwritten: &mut Unwritten) {
        let all: Vec<Granted> = self.of(user).map(|(what, _)| what.clone()).collect();
        all.iter().for_each(|what| self.revoke(user, what, unwritten));
    }

    pub(super) fn forget_view(&mut self, view: &str, records: &dyn Records) -> Result<(), AccessError> {
        let is_it = |what: &Granted| matches!(what, Granted::View(held) if held == view);
        for (user, held) in &mut self.of_users {
            if held.iter().any(|(what, _)| is_it(what)) {
                // Write this first: if the next write fails, the view counts as granted and as dropped, rather than as
                // neither.
                records.put(DROPPED, &view_name(user, view), "")?;
                self.dropped.entry(user.clone()).or_default().insert(view.to_owned());
                records.remove(VIEWS, &view_name(user, view))?;
                held.retain(|(what, _)| !is_it(what));
            }
        }
        Ok(())
    }

    /// A grant in the spelling under which it is already stored, or else as given.
    fn known(&self, user: &str, what: &Granted) -> Granted {
        let known = self.of(user).find(|(known, _)| known.is_same(what));
        known.map_or(what, |(known, _)| known).clone()
    }

    fn put(&mut self, user: String, what: Granted, how: Held) {
        let of_user = self.of_users.entry(user).or_default();
        match of_user.iter_mut().find(|(known, _)| known.is_same(&what)) {
            Some((_, known)) => *known = how,
            None => of_user.push((what, how)),
        }
    }
}

fn view_name(user: &str, view: &str) -> String {
    serde_json::json!([user, view]).to_string()
}

fn parsed<T: DeserializeOwned>(kind: &'static str, name: &str) -> Result<T, AccessError> {
    serde_json::from_str(name).map_err(|_| AccessError::BadRecord { kind })
}
