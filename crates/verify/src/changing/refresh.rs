//! [`verify_refresh`]: whether a view that was partitioned anew may be shown to readers who kept its former atoms.

use std::collections::{BTreeMap, BTreeSet};

use kohort_model::Requirement;

use crate::changing::counter::Counter;
use crate::changing::numbers::{NumberedAtom, numbered_twice, persons_twice, rows_of_two};
use crate::changing::{
    Part, Seen, StepColumn, StepError, StepErrors, StepFindings, StepMember, asks_for_no_class, malformed, not_covered,
    persons,
};
use crate::{Verifiable, Verified};

/// A view before and after it is partitioned anew.
#[derive(Clone, PartialEq, Eq)]
pub struct Refresh {
    /// The atoms that are shown, by their numbers.
    pub before: BTreeMap<u64, Vec<StepMember>>,
    /// The atoms that are to be shown.
    pub after: Vec<RefreshedAtom>,
}

/// An atom after a view is partitioned anew.
#[derive(Clone, PartialEq, Eq)]
pub struct RefreshedAtom {
    /// The number of the class to which the atom belongs.
    pub class: u64,
    /// The number of the atom.
    pub atom: u64,
    /// The labels of the class.
    pub labels: Vec<String>,
    /// The members.
    pub members: Vec<StepMember>,
}

impl Verifiable for Refresh {
    type Findings = StepFindings;
}

/// Verifies a refresh. Every person's own k is required, whether or not `requirements` say so.
///
/// # Errors
/// Everything that is wrong with the refresh. Atoms are numbered from 1: those after the refresh, then those before it.
pub fn verify_refresh(
    refresh: Refresh,
    columns: &[StepColumn],
    requirements: &[Requirement],
) -> Result<Verified<Refresh>, StepErrors> {
    let counter = Counter { columns, requirements };
    let mut errors = counter.uncountable();
    let before: Vec<&[StepMember]> = refresh.before.values().map(Vec::as_slice).collect();
    let n_after = refresh.after.len();
    let first = refresh.after.first().map(|atom| atom.labels.len());
    let n_quasi = first.or_else(|| Some(before.iter().find_map(|members| members.first())?.paths.len())).unwrap_or(0);
    for (number, atom) in (1..).zip(&refresh.after) {
        let n_wrong_labels = usize::from(atom.labels.len() != n_quasi);
        errors.extend(malformed(number, n_wrong_labels, n_quasi, columns.len(), &atom.members));
    }
    for (number, &members) in (n_after + 1..).zip(&before) {
        errors.extend(malformed(number, 0, n_quasi, columns.len(), members));
    }
    // The checks below look cells up by position, so no cell may be missing.
    if !errors.is_empty() {
        return Err(StepErrors(errors));
    }
    let former = FormerAtoms::new(&before);
    let mut removed: Vec<BTreeSet<u64>> = before.iter().map(|members| persons(members)).collect();
    for (number, RefreshedAtom { labels, members, .. }) in (1..).zip(&refresh.after) {
        errors.extend(asks_for_no_class(number, members));
        errors.extend(not_covered(number, labels, members));
        errors.extend(former.seen_before(number, members));
        let origins: BTreeSet<Option<usize>> = members.iter().map(|member| former.atom_of(member)).collect();
        if origins.len() > 1 {
            errors.push(StepError::Mixed { atom: number, n: origins.len() });
        }
        for member in members {
            if let Some(atom) = former.atom_of(member)
                && !removed[atom].remove(&member.person)
            {
                errors.push(StepError::PersonTwice { atom: number, n: 1 });
            }
        }
        // An atom that stays as it was is not counted again: it was verified before, and the shares that it was
        // compared with may have changed since.
        let is_unchanged = origins.iter().all(|origin| origin.is_some_and(|atom| before[atom].len() == members.len()));
        if !is_unchanged {
            errors.extend(counter.unmet(number, Part::Shown, &members.iter().collect::<Vec<_>>()));
        }
    }
    for (number, (members, removed)) in (n_after + 1..).zip(before.iter().zip(&removed)) {
        let removed: Vec<&StepMember> = members.iter().filter(|member| removed.contains(&member.person)).collect();
        if removed.len() < members.len() {
            errors.extend(counter.unmet(number, Part::Removed, &removed));
        }
    }
    let was = || (n_after + 1..).zip(before.iter().copied());
    let is = || (1..).zip(refresh.after.iter().map(|atom| atom.members.as_slice()));
    errors.extend(persons_twice(was()));
    errors.extend(persons_twice(is()));
    errors.extend(rows_of_two(was().chain(is())));
    errors.extend(numbered_twice(refresh.after.iter().map(numbered)));
    let findings = StepFindings::of_sizes(refresh.after.iter().map(|atom| atom.members.len() as u64));
    if errors.is_empty() { Ok(Verified::attest(refresh, findings)) } else { Err(StepErrors(errors)) }
}

fn numbered(refreshed: &RefreshedAtom) -> NumberedAtom<'_> {
    let RefreshedAtom { class, atom, labels, .. } = refreshed;
    NumberedAtom { class: *class, atom: *atom, labels_before: None, labels }
}

/// The atoms that readers saw before the refresh.
struct FormerAtoms<'a> {
    /// For each person, the atoms that hold one of the person's rows, with that row.
    of_person: BTreeMap<u64, Vec<(usize, &'a StepMember)>>,
}

impl<'a> FormerAtoms<'a> {
    fn new(before: &[&'a [StepMember]]) -> Self {
        let mut of_person: BTreeMap<u64, Vec<(usize, &StepMember)>> = BTreeMap::new();
        for (atom, &members) in before.iter().enumerate() {
            for member in members {
                of_person.entry(member.person).or_default().push((atom, member));
            }
        }
        FormerAtoms { of_person }
    }

    /// The position of the former atom in which readers saw this person with the same row.
    fn atom_of(&self, member: &StepMember) -> Option<usize> {
        let known = self.of_person.get(&member.person).into_iter().flatten();
        known.filter(|(_, before)| shows_the_same(before, member)).map(|(atom, _)| *atom).next()
    }

    /// Members who come from no former atom although readers saw something of them before.
    fn seen_before(&self, number: usize, members: &[StepMember]) -> Option<StepError> {
        let is_known = |member: &&StepMember| {
            self.atom_of(member).is_none()
                && (member.seen == Seen::Elsewhere || self.of_person.contains_key(&member.person))
        };
        let n = members.iter().filter(is_known).count();
        (n > 0).then_some(StepError::SeenBefore { atom: number, n })
    }
}

/// Whether two rows hold the same values. Their ancestors may differ, because a hierarchy can change between refreshes.
fn shows_the_same(before: &StepMember, after: &StepMember) -> bool {
    let leaves = |member: &StepMember| member.paths.iter().map(|path| path.first().cloned()).collect::<Vec<_>>();
    (before.k, &before.values) == (after.k, &after.values) && leaves(before) == leaves(after)
}
