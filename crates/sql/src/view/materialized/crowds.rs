//! [`Crowds`]: which rows are shown in which crowd from now on, as the verifier has seen it.
//!
//! # Guarantee
//! A row enters or leaves an atom only if a [`Verified`] step or refresh says so.

use std::collections::{BTreeMap, BTreeSet};

use kohort_core::changing::{AtomId, ClassId, MemberKey};
use kohort_verify::{Refresh, Step, StepMember, Verified};

use super::follow::RowState;
use super::ledger::IN_ATOM;
use super::members::MISSING;

/// The changes of crowds.
#[derive(Default)]
pub(super) struct Crowds {
    admitted: BTreeMap<MemberKey, RowState>,
    removed: BTreeSet<MemberKey>,
    /// The labels of classes that have a verified atom.
    labels: BTreeMap<ClassId, Vec<Option<String>>>,
}

impl Crowds {
    /// The changes of a step.
    pub(super) fn of_step(step: &Verified<Step>) -> Crowds {
        let mut crowds = Crowds::default();
        for atom in &step.get().atoms {
            crowds.admit(atom.class, atom.atom, &atom.before, &atom.after);
            crowds.remove(&atom.before, &atom.after);
            crowds.label(atom.class, &atom.labels);
        }
        crowds
    }

    /// The changes of a refresh.
    pub(super) fn of_refresh(refresh: &Verified<Refresh>) -> Crowds {
        let mut crowds = Crowds::default();
        let Refresh { before, after } = refresh.get();
        let nobody = Vec::new();
        for atom in after {
            crowds.admit(atom.class, atom.atom, before.get(&atom.atom).unwrap_or(&nobody), &atom.members);
            crowds.label(atom.class, &atom.labels);
        }
        let after: BTreeMap<u64, &Vec<StepMember>> = after.iter().map(|atom| (atom.atom, &atom.members)).collect();
        for (atom, members) in before {
            crowds.remove(members, after.get(atom).copied().unwrap_or(&nobody));
        }
        crowds
    }

    /// The rows that enter an atom, each with its new place.
    pub(super) fn admitted(&self) -> impl Iterator<Item = (MemberKey, RowState)> {
        self.admitted.iter().map(|(key, state)| (*key, *state))
    }

    /// The rows that leave their atom.
    pub(super) fn removed(&self) -> impl Iterator<Item = MemberKey> {
        self.removed.iter().copied()
    }

    /// Whether all of these members leave their atom.
    pub(super) fn remove_all(&self, keys: &[MemberKey]) -> bool {
        keys.iter().all(|key| self.removed.contains(key))
    }

    /// Whether the verified step puts every one of these members into this class and atom.
    pub(super) fn admit_all(&self, class: ClassId, atom: AtomId, keys: &[MemberKey]) -> bool {
        let expected = in_atom(class.0, atom.0);
        let is_there = |state: &RowState| (state.class, state.atom) == (expected.class, expected.atom);
        keys.iter().all(|key| self.admitted.get(key).is_some_and(is_there))
    }

    /// The labels with which a class was verified.
    pub(super) fn labels(&self, class: ClassId) -> Option<&Vec<Option<String>>> {
        self.labels.get(&class)
    }

    fn admit(&mut self, class: u64, atom: u64, before: &[StepMember], after: &[StepMember]) {
        let known: BTreeSet<u64> = before.iter().map(|member| member.row).collect();
        let new = after.iter().filter(|member| !known.contains(&member.row));
        self.admitted.extend(new.map(|member| (MemberKey(member.row), in_atom(class, atom))));
    }

    fn remove(&mut self, before: &[StepMember], after: &[StepMember]) {
        let stays: BTreeSet<u64> = after.iter().map(|member| member.row).collect();
        let gone = before.iter().filter(|member| !stays.contains(&member.row));
        self.removed.extend(gone.map(|member| MemberKey(member.row)));
    }

    fn label(&mut self, class: u64, labels: &[String]) {
        let label = |label: &String| Some(label.clone()).filter(|label| label != MISSING);
        self.labels.insert(ClassId(class), labels.iter().map(label).collect());
    }
}

fn in_atom(class: u64, atom: u64) -> RowState {
    RowState { place: IN_ATOM, class: Some(class.cast_signed()), atom: Some(atom.cast_signed()) }
}
