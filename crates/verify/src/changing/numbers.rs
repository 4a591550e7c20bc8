//! Whether every atom, person and row of a step or a refresh is listed once.

use std::collections::{BTreeMap, BTreeSet};

use crate::changing::{StepError, StepMember, persons};

/// The numbers and the labels of an atom.
pub(super) struct NumberedAtom<'a> {
    pub(super) class: u64,
    pub(super) atom: u64,
    pub(super) labels_before: Option<&'a [String]>,
    pub(super) labels: &'a [String],
}

/// Atoms that have the same number, and atoms that give one class different labels.
pub(super) fn numbered_twice<'a>(atoms: impl Iterator<Item = NumberedAtom<'a>>) -> Vec<StepError> {
    let mut errors = Vec::new();
    let mut numbers = BTreeSet::new();
    let mut labels_of_class: BTreeMap<u64, (Option<&[String]>, &[String])> = BTreeMap::new();
    for (position, atom) in (1..).zip(atoms) {
        if !numbers.insert(atom.atom) {
            errors.push(StepError::NumberTwice { atom: position });
        }
        let labels = (atom.labels_before, atom.labels);
        if *labels_of_class.entry(atom.class).or_insert(labels) != labels {
            errors.push(StepError::OtherLabels { atom: position });
        }
    }
    errors
}

/// Persons who are listed more than once at one time, in one atom or in two. They would count as two members.
pub(super) fn persons_twice<'a>(atoms: impl Iterator<Item = (usize, &'a [StepMember])>) -> Vec<StepError> {
    let mut errors = Vec::new();
    let mut in_earlier_atoms = BTreeSet::new();
    for (atom, members) in atoms {
        let here = persons(members);
        let n_twice = members.len() - here.len();
        errors.extend((n_twice > 0).then_some(StepError::PersonTwice { atom, n: n_twice }));
        let n = here.intersection(&in_earlier_atoms).count();
        errors.extend((n > 0).then_some(StepError::InTwoAtoms { atom, n }));
        in_earlier_atoms.extend(here);
    }
    errors
}

/// Rows that belong to two persons, at one time or at two. Only one such row can be stored, so one of the persons would
/// be missing from what readers see.
pub(super) fn rows_of_two<'a>(atoms: impl Iterator<Item = (usize, &'a [StepMember])>) -> Vec<StepError> {
    let mut errors = Vec::new();
    let mut owners: BTreeMap<u64, u64> = BTreeMap::new();
    for (atom, members) in atoms {
        let is_anothers = |member: &&StepMember| *owners.entry(member.row).or_insert(member.person) != member.person;
        let n = members.iter().filter(is_anothers).count();
        errors.extend((n > 0).then_some(StepError::RowOfTwo { atom, n }));
    }
    errors
}
