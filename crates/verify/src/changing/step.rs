//! [`verify_step`]: whether the atoms that a step touches may be shown as they are after it.

use std::collections::BTreeSet;

use kohort_model::Requirement;

use crate::changing::counter::Counter;
use crate::changing::numbers::{NumberedAtom, numbered_twice, persons_twice, rows_of_two};
use crate::changing::{
    Part, Seen, StepColumn, StepError, StepErrors, StepFindings, StepMember, asks_for_no_class, malformed, not_covered,
    persons,
};
use crate::{Verifiable, Verified};

/// A step of a view: every atom that the step touches.
#[derive(Clone, PartialEq, Eq)]
pub struct Step {
    /// The atoms.
    pub atoms: Vec<AtomStep>,
}

/// An atom before and after a step. An atom without members does not exist at that time.
#[derive(Clone, PartialEq, Eq)]
pub struct AtomStep {
    /// The number of the class to which the atom belongs.
    pub class: u64,
    /// The number of the atom.
    pub atom: u64,
    /// The labels of the class before, `None` if the class is new.
    pub labels_before: Option<Vec<String>>,
    /// The labels of the class after.
    pub labels: Vec<String>,
    /// The members before.
    pub before: Vec<StepMember>,
    /// The members after.
    pub after: Vec<StepMember>,
}

impl Verifiable for Step {
    type Findings = StepFindings;
}

/// Verifies a step. Every person's own k is required, whether or not `requirements` say so.
///
/// # Errors
/// Everything that is wrong with the step.
pub fn verify_step(
    step: Step,
    columns: &[StepColumn],
    requirements: &[Requirement],
) -> Result<Verified<Step>, StepErrors> {
    let counter = Counter { columns, requirements };
    let mut errors = counter.uncountable();
    for (number, atom) in (1..).zip(&step.atoms) {
        let n_before = atom.labels_before.as_ref().map_or(atom.labels.len(), Vec::len);
        let n_wrong_labels = usize::from(n_before != atom.labels.len());
        let members = atom.before.iter().chain(&atom.after);
        errors.extend(malformed(number, n_wrong_labels, atom.labels.len(), columns.len(), members));
    }
    // The checks below look cells up by position, so no cell may be missing.
    if !errors.is_empty() {
        return Err(StepErrors(errors));
    }
    let shown_before: BTreeSet<u64> =
        step.atoms.iter().flat_map(|atom| &atom.before).map(|member| member.person).collect();
    for (number, atom) in (1..).zip(&step.atoms) {
        errors.extend(beside_before(number, atom, &shown_before));
        errors.extend(asks_for_no_class(number, &atom.after));
        errors.extend(not_covered(number, &atom.labels, &atom.after));
        let after = persons(&atom.after);
        let removed: Vec<&StepMember> = atom.before.iter().filter(|member| !after.contains(&member.person)).collect();
        errors.extend(counter.unmet(number, Part::Shown, &atom.after.iter().collect::<Vec<_>>()));
        errors.extend(counter.unmet(number, Part::Removed, &removed));
    }
    let before = || (1..).zip(step.atoms.iter().map(|atom| atom.before.as_slice()));
    let after = || (1..).zip(step.atoms.iter().map(|atom| atom.after.as_slice()));
    errors.extend(persons_twice(before()));
    errors.extend(persons_twice(after()));
    errors.extend(rows_of_two(before().chain(after())));
    errors.extend(numbered_twice(step.atoms.iter().map(numbered)));
    let findings = StepFindings::of_sizes(step.atoms.iter().map(|atom| atom.after.len() as u64));
    if errors.is_empty() { Ok(Verified::attest(step, findings)) } else { Err(StepErrors(errors)) }
}

fn numbered(step: &AtomStep) -> NumberedAtom<'_> {
    let AtomStep { class, atom, labels_before, labels, .. } = step;
    NumberedAtom { class: *class, atom: *atom, labels_before: labels_before.as_deref(), labels }
}

/// Whether an atom fits what readers saw before: its class keeps its labels, and it only loses members.
fn beside_before(atom: usize, step: &AtomStep, shown_before: &BTreeSet<u64>) -> Vec<StepError> {
    let mut errors = Vec::new();
    match &step.labels_before {
        Some(before) if *before != step.labels => errors.push(StepError::Relabelled { atom }),
        None if !step.before.is_empty() => errors.push(StepError::ClassIsNew { atom }),
        Some(_) | None => {}
    }
    if step.before.is_empty() {
        let is_known = |member: &&StepMember| member.seen == Seen::Elsewhere || shown_before.contains(&member.person);
        let n = step.after.iter().filter(is_known).count();
        errors.extend((n > 0).then_some(StepError::SeenBefore { atom, n }));
    } else {
        let was_member = |member: &StepMember| {
            step.before.iter().any(|before| {
                (before.row, before.person, before.k) == (member.row, member.person, member.k)
                    && (&before.paths, &before.values) == (&member.paths, &member.values)
            })
        };
        let n = step.after.iter().filter(|member| !was_member(member)).count();
        errors.extend((n > 0).then_some(StepError::Gained { atom, n }));
    }
    errors
}
