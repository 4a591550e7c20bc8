//! [`refresh`]: what of a new partition can be shown to readers of the old one, and what they could combine if all were.
//!
//! # Guarantee
//! Whoever is shown by [`Refreshed::atoms`] is in a part of one old atom, or in a set of persons of whom readers saw
//! nothing; each of these sets stands by itself. An old atom is either parted so, with what is shown no more of it
//! standing by itself too, or gone as a whole, or it stays as it is. So the sets stay laminar, and what readers of both
//! can make out are unions of sets that stand. Persons are compared, not rows: whoever has another row than the one that
//! is shown, or had, is no newcomer.
//!
//! Whether newcomers of a class are shown is decided once: where they are too few they wait for others, where they are
//! enough and their values do not suffice they are sealed, as crowds are that come later.
//! # Cost
//! One pass over both partitions.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

use super::ledger::{AtomId, AtomMember, ClassId, Effect, Member, MemberKey, Past, PersonKey};
use super::standard::{Judge, Standard};

/// An atom that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldAtom {
    /// Its class.
    pub class: ClassId,
    /// Its number.
    pub atom: AtomId,
    /// Who is in it.
    pub members: Vec<AtomMember>,
}

/// A class that is to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewClass<M> {
    /// Its labels.
    pub nodes: Vec<u32>,
    /// Who is in it. Rows that did not change have the keys they had.
    pub members: Vec<M>,
}

/// What readers of the old and the new could combine, if all of the new partition were shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Combined {
    /// Persons in sets that do not stand by themselves.
    pub n_exposed: u64,
    /// Persons in the smallest of these sets, `None` where there is none.
    pub fewest: Option<u64>,
}

/// What of a new partition can be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refreshed {
    /// What readers could combine, if all were shown.
    pub combined: Combined,
    /// Per new class its atoms.
    pub atoms: Vec<Vec<Vec<MemberKey>>>,
    /// Places of old atoms that stay as they are.
    pub kept: BTreeSet<usize>,
    /// Rows of newcomers who are too few.
    pub waiting: Vec<MemberKey>,
    /// Rows of newcomers whose values do not suffice.
    pub sealed: Vec<MemberKey>,
    /// Rows of persons of whom something was seen that they could be known by.
    pub hidden: Vec<MemberKey>,
}

/// Compares the atoms that are shown with classes that are to be shown instead. `past` says what readers have seen of
/// persons who are in no atom.
///
/// # Errors
/// Where the past can't be read.
pub fn refresh<E, M: Borrow<Member>>(
    standard: &Standard,
    old: &[OldAtom],
    new: &[NewClass<M>],
    past: impl Fn(PersonKey) -> Result<Past, E>,
) -> Result<Refreshed, E> {
    let mut atom_of: BTreeMap<MemberKey, usize> = BTreeMap::new();
    let mut shown: BTreeSet<PersonKey> = BTreeSet::new();
    for (atom, OldAtom { members, .. }) in old.iter().enumerate() {
        atom_of.extend(members.iter().map(|member| (member.member.key, atom)));
        shown.extend(members.iter().map(|member| member.member.person));
    }
    let mut parts: Vec<Parts<'_>> = old.iter().map(|_| Parts::default()).collect();
    let mut newcomers: Vec<Vec<&Member>> = Vec::with_capacity(new.len());
    let mut judge = standard.judge();
    let mut refreshed = Refreshed { atoms: vec![Vec::new(); new.len()], ..Refreshed::default() };
    for (class, NewClass { members, .. }) in new.iter().enumerate() {
        let (mut unseen, mut seen) = (Vec::new(), Vec::new());
        for member in members.iter().map(Borrow::borrow) {
            match atom_of.remove(&member.key) {
                Some(atom) => parts[atom].stay.entry(class).or_default().push(member),
                None if !shown.contains(&member.person) && past(member.person)? == Past::Nothing => unseen.push(member),
                None => seen.push(member.key),
            }
        }
        refreshed.combined.expose(seen.len());
        refreshed.hidden.extend(seen);
        newcomers.push(unseen);
    }
    for (parts, OldAtom { members, .. }) in parts.iter_mut().zip(old) {
        let is_gone = |member: &&AtomMember| atom_of.contains_key(&member.member.key);
        parts.go = members.iter().filter(is_gone).map(|member| &member.member).collect();
    }
    for (atom, parts) in parts.iter().enumerate() {
        if refreshed.combined.may_part(&mut judge, parts) {
            for (&class, members) in &parts.stay {
                refreshed.atoms[class].push(keys(members));
            }
        } else {
            refreshed.kept.insert(atom);
        }
    }
    for (class, members) in newcomers.iter().enumerate().filter(|(_, members)| !members.is_empty()) {
        if judge.stands(members) {
            refreshed.atoms[class].push(keys(members));
            continue;
        }
        refreshed.combined.expose(members.len());
        let left = if judge.are_many(members, 0) { &mut refreshed.sealed } else { &mut refreshed.waiting };
        left.extend(keys(members));
    }
    Ok(refreshed)
}

impl Refreshed {
    /// What showing that does to what is kept, from unused numbers on. Of rows that are hidden or wait nothing is said:
    /// whoever is new to the ledger is to be put there, and whoever waits is to be given a class. Classes that show
    /// nobody any more are the caller's to give up.
    pub fn effects<M: Borrow<Member>>(
        &self,
        old: &[OldAtom],
        new: &[NewClass<M>],
        (mut next_class, mut next_atom): (ClassId, AtomId),
    ) -> Vec<Effect> {
        let mut effects = Vec::new();
        let shown: BTreeSet<MemberKey> = self.atoms.iter().flatten().flatten().copied().collect();
        for (place, OldAtom { class, atom, members }) in old.iter().enumerate() {
            if self.kept.contains(&place) {
                continue;
            }
            let keys = members.iter().map(|member| member.member.key).collect();
            effects.push(Effect::Remove { class: *class, atom: *atom, members: keys });
            let gone = members.iter().filter(|member| !shown.contains(&member.member.key));
            let remember = |member: &AtomMember| Effect::Remember { person: member.member.person, past: Past::InCrowd };
            effects.extend(gone.map(remember));
        }
        for (class, atoms) in new.iter().zip(&self.atoms).filter(|(_, atoms)| !atoms.is_empty()) {
            let by_key: BTreeMap<MemberKey, &Member> =
                class.members.iter().map(Borrow::borrow).map(|member| (member.key, member)).collect();
            effects.push(Effect::Found { class: next_class, nodes: class.nodes.clone() });
            for members in atoms {
                let waits = |key: &MemberKey| Effect::Wait { class: next_class, member: by_key[key].clone() };
                effects.extend(members.iter().map(waits));
                effects.push(Effect::Admit { class: next_class, atom: next_atom, members: members.clone() });
                next_atom.0 += 1;
            }
            next_class.0 += 1;
        }
        let sealed: BTreeSet<MemberKey> = self.sealed.iter().copied().collect();
        for member in new.iter().flat_map(|class| &class.members).map(Borrow::borrow) {
            if sealed.contains(&member.key) {
                effects.push(Effect::Hide { member: member.clone() });
                effects.push(Effect::Remember { person: member.person, past: Past::InCrowd });
            }
        }
        effects
    }
}

/// What becomes of an old atom.
#[derive(Default)]
struct Parts<'a> {
    /// Per new class who is in it.
    stay: BTreeMap<usize, Vec<&'a Member>>,
    /// Who is shown no more.
    go: Vec<&'a Member>,
}

fn keys(members: &[&Member]) -> Vec<MemberKey> {
    members.iter().map(|member| member.key).collect()
}

impl Combined {
    /// Counts a set of persons that does not stand.
    fn expose(&mut self, n_persons: usize) {
        if n_persons > 0 {
            self.n_exposed += n_persons as u64;
            self.fewest = Some(self.fewest.map_or(n_persons as u64, |fewest| fewest.min(n_persons as u64)));
        }
    }

    /// Whether all parts of an atom stand; counts those that do not.
    fn may_part(&mut self, judge: &mut Judge<'_>, parts: &Parts<'_>) -> bool {
        if parts.stay.is_empty() {
            return true;
        }
        let gone = Some(&parts.go).filter(|gone| !gone.is_empty());
        let failing = parts.stay.values().chain(gone).filter(|part| !judge.stands(part));
        let failing: Vec<usize> = failing.map(Vec::len).collect();
        failing.iter().for_each(|&n_persons| self.expose(n_persons));
        failing.is_empty()
    }
}
