//! [`Grants`]: which views and which purposes and recipients each user holds, or held before.
//!
//! A record's name is a JSON array, so that no name of a user or view can be mistaken for two.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::records::Unwritten;
use super::{AccessError, Records};

const VIEWS: &str = "view grant";
const PAIRS: &str = "pair grant";
const DROPPED: &str = "dropped view";

/// Whether something is granted now, or was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// It may be used.
    Now,
    /// It was revoked, but answers may have been kept.
    Before,
}

impl Held {
    fn word(self) -> &'static str {
        match self {
            Held::Now => "held",
            Held::Before => "revoked",
        }
    }

    /// What is not known to be revoked only by its word is taken as revoked.
    fn from_word(word: &str) -> Held {
        if word == Held::Now.word() { Held::Now } else { Held::Before }
    }
}

/// A purpose and a recipient. Case does not matter, as in policies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantedPair {
    /// What for.
    pub purpose: String,
    /// To whom.
    pub recipient: String,
}

impl GrantedPair {
    /// Whether two are the same but for case.
    pub fn is_same(&self, other: &GrantedPair) -> bool {
        self.fits(Some(&other.purpose), Some(&other.recipient))
    }

    /// Whether it is what is stated, as far as something is.
    pub fn fits(&self, purpose: Option<&str>, recipient: Option<&str>) -> bool {
        let fits = |own: &str, stated: Option<&str>| stated.is_none_or(|s| s.to_lowercase() == own.to_lowercase());
        fits(&self.purpose, purpose) && fits(&self.recipient, recipient)
    }
}

impl fmt::Display for GrantedPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PURPOSE {} RECIPIENT {}", self.purpose, self.recipient)
    }
}

/// Grants by user.
#[derive(Default)]
pub(super) struct Grants {
    views: BTreeMap<String, BTreeMap<String, Held>>,
    pairs: BTreeMap<String, Vec<(GrantedPair, Held)>>,
    /// Views that were held and are no more.
    dropped: BTreeMap<String, BTreeSet<String>>,
}

impl Grants {
    pub(super) fn read(records: &dyn Records) -> Result<Grants, AccessError> {
        let mut grants = Grants::default();
        for record in records.list(VIEWS)? {
            let (user, view) =
                serde_json::from_str(&record.name).map_err(|_| AccessError::BadRecord { kind: VIEWS })?;
            grants.put_view(user, view, Held::from_word(&record.text));
        }
        for record in records.list(PAIRS)? {
            let (user, purpose, recipient): (String, String, String) =
                serde_json::from_str(&record.name).map_err(|_| AccessError::BadRecord { kind: PAIRS })?;
            grants.put_pair(user, GrantedPair { purpose, recipient }, Held::from_word(&record.text));
        }
        for record in records.list(DROPPED)? {
            let (user, view): (String, String) =
                serde_json::from_str(&record.name).map_err(|_| AccessError::BadRecord { kind: DROPPED })?;
            grants.dropped.entry(user).or_default().insert(view);
        }
        Ok(grants)
    }

    pub(super) fn dropped(&self, user: &str) -> impl Iterator<Item = &str> {
        self.dropped.get(user).into_iter().flatten().map(String::as_str)
    }

    pub(super) fn views(&self, user: &str) -> impl Iterator<Item = (&str, Held)> {
        self.views.get(user).into_iter().flatten().map(|(view, how)| (view.as_str(), *how))
    }

    pub(super) fn holds_view(&self, user: &str, view: &str) -> bool {
        self.views.get(user).is_some_and(|views| views.get(view) == Some(&Held::Now))
    }

    pub(super) fn pairs(&self, user: &str) -> impl Iterator<Item = (&GrantedPair, Held)> {
        self.pairs.get(user).into_iter().flatten().map(|(pair, how)| (pair, *how))
    }

    /// Grants a view once that is written.
    pub(super) fn grant_view(&mut self, user: &str, view: &str, records: &dyn Records) -> Result<(), AccessError> {
        records.put(VIEWS, &view_name(user, view), Held::Now.word())?;
        self.put_view(user.to_owned(), view.to_owned(), Held::Now);
        Ok(())
    }

    /// Takes a view away; that is to be written.
    pub(super) fn revoke_view(&mut self, user: &str, view: &str, unwritten: &mut Unwritten) {
        self.put_view(user.to_owned(), view.to_owned(), Held::Before);
        unwritten.put(VIEWS, &view_name(user, view), Held::Before.word());
    }

    /// Grants a purpose and a recipient once that is written.
    pub(super) fn grant_pair(
        &mut self,
        user: &str,
        pair: &GrantedPair,
        records: &dyn Records,
    ) -> Result<(), AccessError> {
        let pair = self.known_pair(user, pair);
        records.put(PAIRS, &pair_name(user, &pair), Held::Now.word())?;
        self.put_pair(user.to_owned(), pair, Held::Now);
        Ok(())
    }

    /// Takes a purpose and a recipient away; that is to be written.
    pub(super) fn revoke_pair(&mut self, user: &str, pair: &GrantedPair, unwritten: &mut Unwritten) {
        let pair = self.known_pair(user, pair);
        unwritten.put(PAIRS, &pair_name(user, &pair), Held::Before.word());
        self.put_pair(user.to_owned(), pair, Held::Before);
    }

    /// A pair under the name it has already, which may differ in case.
    fn known_pair(&self, user: &str, pair: &GrantedPair) -> GrantedPair {
        let known = self.pairs(user).find(|(known, _)| known.is_same(pair));
        known.map_or(pair, |(known, _)| known).clone()
    }

    pub(super) fn revoke_all(&mut self, user: &str, unwritten: &mut Unwritten) {
        let views: Vec<String> = self.views(user).map(|(view, _)| view.to_owned()).collect();
        views.iter().for_each(|view| self.revoke_view(user, view, unwritten));
        let pairs: Vec<GrantedPair> = self.pairs(user).map(|(pair, _)| pair.clone()).collect();
        pairs.iter().for_each(|pair| self.revoke_pair(user, pair, unwritten));
    }

    pub(super) fn forget_view(&mut self, view: &str, records: &dyn Records) -> Result<(), AccessError> {
        for (user, views) in &mut self.views {
            if views.contains_key(view) {
                // First: what can't be written to its end is held, and dropped too, rather than neither.
                records.put(DROPPED, &view_name(user, view), "")?;
                self.dropped.entry(user.clone()).or_default().insert(view.to_owned());
                records.remove(VIEWS, &view_name(user, view))?;
                views.remove(view);
            }
        }
        Ok(())
    }

    fn put_view(&mut self, user: String, view: String, how: Held) {
        self.views.entry(user).or_default().insert(view, how);
    }

    fn put_pair(&mut self, user: String, pair: GrantedPair, how: Held) {
        let pairs = self.pairs.entry(user).or_default();
        match pairs.iter_mut().find(|(known, _)| known.is_same(&pair)) {
            Some((_, known)) => *known = how,
            None => pairs.push((pair, how)),
        }
    }
}

fn view_name(user: &str, view: &str) -> String {
    serde_json::json!([user, view]).to_string()
}

fn pair_name(user: &str, pair: &GrantedPair) -> String {
    serde_json::json!([user, pair.purpose, pair.recipient]).to_string()
}
