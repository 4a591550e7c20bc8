//! [`refresh`]: which part of a new partition can be shown to readers of the old one, and what they could combine if
//! all of it were shown.
//!
//! # Guarantee
//! Everybody shown by [`Refreshed::atoms`] is in a part of one old atom, or in a set of persons of whom readers saw
//! nothing. Each of these sets satisfies the requirement by itself. An old atom is divided in this way, withdrawn as a
//! whole, or kept as it is. If it is divided, its members who are no longer shown satisfy the requirement by themselves
//! too. So the sets stay laminar, and readers of both versions can only tell apart unions of sets that satisfy the
//! requirement. Persons are compared, not rows: a person who has, or had, another row than the shown one is no
//! newcomer.
//!
//! Whether newcomers of a class are shown is decided once. If they are too few, they wait for others. If they are
//! enough but their values don't satisfy the requirement, they are sealed, like crowds that come later.
//! # Cost
//! One pass over both partitions.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

use super::ledger::{AtomId, AtomMember, ClassId, Effect, Member, MemberKey, Past, PersonKey};
use super::standard::{AtomJudge, Standard};

/// An atom that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldAtom {
    /// Its class.
    pub class: ClassId,
    /// Its number.
    pub atom: AtomId,
    /// The members of the atom.
    pub members: Vec<AtomMember>,
}

/// A class that is to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewClass<M> {
    /// Its labels.
    pub nodes: Vec<u32>,
    /// The members of the class. Rows that did not change have the keys they had.
    pub members: Vec<M>,
}

/// What readers of the old and the new version could combine, if all of the new partition were shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Combined {
    /// The number of persons in sets that don't satisfy the requirement by themselves.
    pub n_exposed: u64,
    /// The number of persons in the smallest of these sets; `None` if every set satisfies the requirement.
    pub fewest: Option<u64>,
}

/// The part of a new partition that can be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refreshed {
    /// What readers could combine, if all of the new partition were shown.
    pub combined: Combined,
    /// Per new class its atoms.
    pub atoms: Vec<Vec<Vec<MemberKey>>>,
    /// The positions of old atoms that stay as they are.
    pub kept: BTreeSet<usize>,
    /// Rows of newcomers who are too few to be shown.
    pub waiting: Vec<MemberKey>,
    /// Rows of newcomers whose values don't satisfy the requirement.
    pub sealed: Vec<MemberKey>,
    /// Rows of persons who could be identified by something that readers have seen of them.
    pub hidden: Vec<MemberKey>,
}

/// Compares the atoms that are shown with classes that are to be shown instead. `past` says what readers have seen of
/// persons who are in no atom.
///
/// # Errors
/// If the past can't be read.
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
    /// The effects of showing the new partition, with numbers from the unused ones on. Rows that are hidden or wait are
    /// the caller's part: new ones must be put into the ledger, and waiting ones given a class. The caller also gives
    /// up classes that show nobody any more.
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

/// The parts that an old atom falls into.
#[derive(Default)]
struct Parts<'a> {
    /// For each new class, who is in it.
    stay: BTreeMap<usize, Vec<&'a Member>>,
    /// Members that are shown no more.
    go: Vec<&'a Member>,
}

pub(super) fn keys(members: &[&Member]) -> Vec<MemberKey> {
    members.iter().map(|member| member.key).collect()
}

impl Combined {
    /// Counts a set of persons that does not satisfy the requirement by itself.
    fn expose(&mut self, n_persons: usize) {
        if n_persons > 0 {
            self.n_exposed += n_persons as u64;
            self.fewest = Some(self.fewest.map_or(n_persons as u64, |fewest| fewest.min(n_persons as u64)));
        }
    }

    /// Whether all parts of an atom satisfy the requirement by themselves. Counts those that don't.
    fn may_part(&mut self, judge: &mut AtomJudge<'_>, parts: &Parts<'_>) -> bool {
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
