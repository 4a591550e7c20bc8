//! [`verify_step`] and [`verify_refresh`]: whether a view over changing data may show what it is about to.
//!
//! # Guarantee
//! Of a step:
//! - Who is shown together from now on, who is shown no more, and who stays of an atom that lost members: each of these
//!   sets satisfies every requirement. An atom gains nobody, and nobody is in a new one of whom readers saw something: by
//!   what is told of them, or because the step itself names them among those who were shown.
//! - Every label covers what is under it, and labels of a class never change. All atoms of a class have its labels.
//! - Every atom is named once, and so is every person among all who were shown, and among all who are. A row is one
//!   person's, before and after.
//!
//! Of a refresh: every atom after it is one of before, a part of one, or new as above; what is shown no more of an atom
//! satisfies every requirement, or is all of it. Persons are compared, with what their rows show.
//!
//! Coverage is decided by the paths of values, as texts. Shares are compared with those of the view as it was built.
//!
//! Atoms, classes and rows have the numbers under which they are kept, so that what was verified can be written from
//! the [`Verified`] step itself, and need not be derived a second time from what it was made of.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use kohort_model::{Distance, Requirement};

use crate::count::distance::{Held, Reference};
use crate::count::requirement::{ClassView, Distances, SensitiveView, judge};
use crate::count::roll::Shares;
use crate::{Verifiable, Verified};

/// What a row shows beside its quasi labels, in the order of the columns.
pub type ShownValues = Vec<Option<Arc<str>>>;

/// A step of a view: every atom that it touches.
#[derive(Clone, PartialEq, Eq)]
pub struct Step {
    /// The atoms.
    pub atoms: Vec<AtomStep>,
}

/// An atom before and after a step; without members it is not there.
#[derive(Clone, PartialEq, Eq)]
pub struct AtomStep {
    /// The number of its class.
    pub class: u64,
    /// Its own number.
    pub atom: u64,
    /// The labels of its class before, `None` where the class is new.
    pub labels_before: Option<Vec<String>>,
    /// The labels of its class after.
    pub labels: Vec<String>,
    /// Its members before.
    pub before: Vec<StepMember>,
    /// Its members after.
    pub after: Vec<StepMember>,
}

/// A row of an atom.
#[derive(Clone, PartialEq, Eq)]
pub struct StepMember {
    /// The number of the row.
    pub row: u64,
    /// Whose it is.
    pub person: u64,
    /// The person's own k.
    pub k: u32,
    /// Per quasi column the value and its ancestors, the root last.
    pub paths: Vec<Arc<[String]>>,
    /// The rest of what is shown.
    pub values: ShownValues,
    /// Whether readers saw something of the person outside of this atom.
    pub seen: Seen,
}

/// Whether readers saw something of a person outside of an atom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Nothing.
    Never,
    /// In another atom, alone, or that a crowd was not shown for its values.
    Elsewhere,
}

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
    /// The number of its class.
    pub class: u64,
    /// Its own number.
    pub atom: u64,
    /// The labels of its class.
    pub labels: Vec<String>,
    /// Its members.
    pub members: Vec<StepMember>,
}

/// What was counted of the atoms after a step or a refresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepFindings {
    /// Atoms that show somebody.
    pub atoms: u64,
    /// Persons in them.
    pub persons: u64,
    /// Persons in the smallest crowd; 0 where there is no crowd.
    pub k: u64,
}

impl Verifiable for Step {
    type Findings = StepFindings;
}

impl Verifiable for Refresh {
    type Findings = StepFindings;
}

/// A column that rows show beside quasi labels.
#[derive(Clone, PartialEq, Eq)]
pub struct StepColumn {
    /// Its name.
    pub name: String,
    /// How many persons held each value when the view was built.
    pub reference: BTreeMap<Option<String>, u64>,
}

/// Which of an atom's members a problem is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Those who are shown after the step.
    Shown,
    /// Those who are shown no more.
    Removed,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::Shown => "those who are shown",
            Part::Removed => "those who are shown no more",
        })
    }
}

/// What is wrong with a step. Atoms are numbered from 1, in the step's order. No cell appears.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum StepError {
    #[error("atom {atom}: {n} members or labels do not fit the view's columns")]
    Malformed { atom: usize, n: usize },
    #[error("atom {atom}: {n} persons are in it twice")]
    PersonTwice { atom: usize, n: usize },
    #[error("atom {atom}: {n} of its persons are in an atom before it too")]
    InTwoAtoms { atom: usize, n: usize },
    #[error("atom {atom}: {n} of its rows are another person's too")]
    RowOfTwo { atom: usize, n: usize },
    #[error("atom {atom}: an atom before it has the same number")]
    NumberTwice { atom: usize },
    #[error("atom {atom}: an atom before it shows the same class with other labels")]
    OtherLabels { atom: usize },
    #[error("atom {atom}: {n} members came, or changed, after it was first shown")]
    Gained { atom: usize, n: usize },
    #[error("atom {atom}: {n} members ask for no class")]
    AsksForNoClass { atom: usize, n: usize },
    #[error("atom {atom}: readers saw something of {n} members before")]
    SeenBefore { atom: usize, n: usize },
    #[error("atom {atom}: its members come from {n} atoms, or are newcomers beside others")]
    Mixed { atom: usize, n: usize },
    #[error("atom {atom}: quasi column {column}: the label does not cover {n} members")]
    NotCovered { atom: usize, column: usize, n: usize },
    #[error("atom {atom}: its class has other labels than before")]
    Relabelled { atom: usize },
    #[error("atom {atom}: its members were shown before, and its class was not")]
    ClassIsNew { atom: usize },
    #[error("atom {atom}: {part}: {n_persons} persons do not satisfy {requirement:?}")]
    Unmet { atom: usize, part: Part, requirement: Requirement, n_persons: usize },
    #[error("requirement {requirement:?} can't be counted here")]
    Uncountable { requirement: Requirement },
}

/// Everything that is wrong with a step.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct StepErrors(pub Vec<StepError>);

/// Verifies a step. Every person's own k is asked in any case.
///
/// # Errors
/// Everything that is wrong with it.
pub fn verify_step(
    step: Step,
    columns: &[StepColumn],
    requirements: &[Requirement],
) -> Result<Verified<Step>, StepErrors> {
    let mut problems = uncountable(columns, requirements);
    for (number, atom) in (1..).zip(&step.atoms) {
        let n_before = atom.labels_before.as_ref().map_or(atom.labels.len(), Vec::len);
        let labels = usize::from(n_before != atom.labels.len());
        let members = atom.before.iter().chain(&atom.after);
        problems.extend(malformed(number, labels, atom.labels.len(), columns.len(), members));
    }
    // Beyond this point cells are looked up, so everything must be there.
    if !problems.is_empty() {
        return Err(StepErrors(problems));
    }
    let counter = Counter { columns, requirements };
    let shown_before: BTreeSet<u64> =
        step.atoms.iter().flat_map(|atom| &atom.before).map(|member| member.person).collect();
    for (number, atom) in (1..).zip(&step.atoms) {
        problems.extend(structure(number, atom, &shown_before));
        problems.extend(not_covered(number, &atom.labels, &atom.after));
        let after = persons(&atom.after);
        let removed: Vec<&StepMember> = atom.before.iter().filter(|member| !after.contains(&member.person)).collect();
        problems.extend(counter.part(number, Part::Shown, &atom.after.iter().collect::<Vec<_>>()));
        problems.extend(counter.part(number, Part::Removed, &removed));
    }
    let before = || (1..).zip(step.atoms.iter().map(|atom| atom.before.as_slice()));
    let after = || (1..).zip(step.atoms.iter().map(|atom| atom.after.as_slice()));
    problems.extend(persons_twice(before()));
    problems.extend(persons_twice(after()));
    problems.extend(rows_of_two(before().chain(after())));
    problems.extend(named_twice(step.atoms.iter().map(Named::after_step)));
    let findings = findings(step.atoms.iter().map(|atom| atom.after.len() as u64));
    if problems.is_empty() { Ok(Verified::attest(step, findings)) } else { Err(StepErrors(problems)) }
}

/// Verifies a refresh, for readers who kept what was shown before. Every person's own k is asked in any case.
///
/// # Errors
/// Everything that is wrong with it. Atoms are those of after the refresh, then those of before.
pub fn verify_refresh(
    refresh: Refresh,
    columns: &[StepColumn],
    requirements: &[Requirement],
) -> Result<Verified<Refresh>, StepErrors> {
    let mut problems = uncountable(columns, requirements);
    let before: Vec<&Vec<StepMember>> = refresh.before.values().collect();
    let n_after = refresh.after.len();
    let first = refresh.after.first().map(|atom| atom.labels.len());
    let n_quasi = first.or_else(|| Some(before.iter().find_map(|members| members.first())?.paths.len())).unwrap_or(0);
    for (number, atom) in (1..).zip(&refresh.after) {
        let labels = usize::from(atom.labels.len() != n_quasi);
        problems.extend(malformed(number, labels, n_quasi, columns.len(), &atom.members));
    }
    for (number, &members) in (n_after + 1..).zip(&before) {
        problems.extend(malformed(number, 0, n_quasi, columns.len(), members));
    }
    // Beyond this point cells are looked up, so everything must be there.
    if !problems.is_empty() {
        return Err(StepErrors(problems));
    }
    let counter = Counter { columns, requirements };
    let mut atom_of: BTreeMap<u64, Vec<(usize, &StepMember)>> = BTreeMap::new();
    for (atom, &members) in before.iter().enumerate() {
        for member in members {
            atom_of.entry(member.person).or_default().push((atom, member));
        }
    }
    let mut left: Vec<BTreeSet<u64>> = before.iter().map(|members| persons(members)).collect();
    // A row is the same by its own values, whatever is above them now.
    let leaves = |member: &StepMember| member.paths.iter().map(|path| path.first().cloned()).collect::<Vec<_>>();
    let shows_as = |before: &StepMember, after: &StepMember| {
        (before.k, &before.values) == (after.k, &after.values) && leaves(before) == leaves(after)
    };
    for (number, RefreshedAtom { labels, members, .. }) in (1..).zip(&refresh.after) {
        problems.extend(asks_for_no_class(number, members));
        problems.extend(not_covered(number, labels, members));
        let origin = |member: &StepMember| {
            let known = atom_of.get(&member.person).into_iter().flatten();
            known.filter(|(_, before)| shows_as(before, member)).map(|(atom, _)| *atom).next()
        };
        let origins: BTreeSet<Option<usize>> = members.iter().map(origin).collect();
        if origins.len() > 1 {
            problems.push(StepError::Mixed { atom: number, n: origins.len() });
        }
        let is_known = |member: &&StepMember| {
            origin(member).is_none() && (member.seen == Seen::Elsewhere || atom_of.contains_key(&member.person))
        };
        let n = members.iter().filter(is_known).count();
        if n > 0 {
            problems.push(StepError::SeenBefore { atom: number, n });
        }
        for member in members {
            if let Some(atom) = origin(member)
                && !left[atom].remove(&member.person)
            {
                problems.push(StepError::PersonTwice { atom: number, n: 1 });
            }
        }
        // One that is as it was may have been shown by other shares.
        let is_as_before = origins.iter().all(|origin| origin.is_some_and(|atom| before[atom].len() == members.len()));
        if !is_as_before {
            problems.extend(counter.part(number, Part::Shown, &members.iter().collect::<Vec<_>>()));
        }
    }
    for (number, (members, left)) in (n_after + 1..).zip(before.iter().zip(&left)) {
        let removed: Vec<&StepMember> = members.iter().filter(|member| left.contains(&member.person)).collect();
        if removed.len() < members.len() {
            problems.extend(counter.part(number, Part::Removed, &removed));
        }
    }
    let was = || (n_after + 1..).zip(before.iter().map(|members| members.as_slice()));
    let is = || (1..).zip(refresh.after.iter().map(|atom| atom.members.as_slice()));
    problems.extend(persons_twice(was()));
    problems.extend(persons_twice(is()));
    problems.extend(rows_of_two(was().chain(is())));
    problems.extend(named_twice(refresh.after.iter().map(Named::after_refresh)));
    let findings = findings(refresh.after.iter().map(|atom| atom.members.len() as u64));
    if problems.is_empty() { Ok(Verified::attest(refresh, findings)) } else { Err(StepErrors(problems)) }
}

/// What was counted, by the sizes of atoms.
fn findings(sizes: impl Iterator<Item = u64>) -> StepFindings {
    let sizes: Vec<u64> = sizes.filter(|&size| size > 0).collect();
    let k = sizes.iter().copied().min().unwrap_or(0);
    StepFindings { atoms: sizes.len() as u64, persons: sizes.iter().sum(), k }
}

/// An atom by its numbers and labels.
struct Named<'a> {
    class: u64,
    atom: u64,
    labels_before: Option<&'a [String]>,
    labels: &'a [String],
}

impl<'a> Named<'a> {
    fn after_step(step: &'a AtomStep) -> Self {
        let AtomStep { class, atom, labels_before, labels, .. } = step;
        Named { class: *class, atom: *atom, labels_before: labels_before.as_deref(), labels }
    }

    fn after_refresh(refreshed: &'a RefreshedAtom) -> Self {
        let RefreshedAtom { class, atom, labels, .. } = refreshed;
        Named { class: *class, atom: *atom, labels_before: None, labels }
    }
}

/// Atoms that are named more than once, and classes with more than one way to look.
fn named_twice<'a>(atoms: impl Iterator<Item = Named<'a>>) -> Vec<StepError> {
    let mut problems = Vec::new();
    let mut numbers = BTreeSet::new();
    let mut looks: BTreeMap<u64, (Option<&[String]>, &[String])> = BTreeMap::new();
    for (number, atom) in (1..).zip(atoms) {
        if !numbers.insert(atom.atom) {
            problems.push(StepError::NumberTwice { atom: number });
        }
        let look = (atom.labels_before, atom.labels);
        if *looks.entry(atom.class).or_insert(look) != look {
            problems.push(StepError::OtherLabels { atom: number });
        }
    }
    problems
}

/// Persons who are named more than once at one time, in an atom or in two: one of them fills a place that is not theirs.
fn persons_twice<'a>(atoms: impl Iterator<Item = (usize, &'a [StepMember])>) -> Vec<StepError> {
    let mut problems = Vec::new();
    let mut elsewhere = BTreeSet::new();
    for (atom, members) in atoms {
        let here = persons(members);
        let n_twice = members.len() - here.len();
        problems.extend((n_twice > 0).then_some(StepError::PersonTwice { atom, n: n_twice }));
        let n = here.intersection(&elsewhere).count();
        problems.extend((n > 0).then_some(StepError::InTwoAtoms { atom, n }));
        elsewhere.extend(here);
    }
    problems
}

/// Rows that are of two persons, at one time or at two: what is written is the row, and it is there once.
fn rows_of_two<'a>(atoms: impl Iterator<Item = (usize, &'a [StepMember])>) -> Vec<StepError> {
    let mut problems = Vec::new();
    let mut owners: BTreeMap<u64, u64> = BTreeMap::new();
    for (atom, members) in atoms {
        let is_anothers = |member: &&StepMember| *owners.entry(member.row).or_insert(member.person) != member.person;
        let n = members.iter().filter(is_anothers).count();
        problems.extend((n > 0).then_some(StepError::RowOfTwo { atom, n }));
    }
    problems
}

fn uncountable(columns: &[StepColumn], requirements: &[Requirement]) -> Vec<StepError> {
    let is_known = |name: &str| columns.iter().any(|column| column.name == name);
    let is_countable = |requirement: &Requirement| match requirement {
        Requirement::K(_) | Requirement::PersonK { .. } => true,
        Requirement::TCloseness { column, distance, .. } => *distance == Distance::Equal && is_known(column),
        Requirement::DistinctL { column, .. }
        | Requirement::EntropyL { column, .. }
        | Requirement::RecursiveCL { column, .. }
        | Requirement::Alpha { column, .. }
        | Requirement::Beta { column, .. }
        | Requirement::EnhancedBeta { column, .. } => is_known(column),
    };
    let uncountable = requirements.iter().filter(|requirement| !is_countable(requirement));
    uncountable.map(|requirement| StepError::Uncountable { requirement: requirement.clone() }).collect()
}

/// Members that lack a cell or have one too much, and as many labels as are counted already.
fn malformed<'a>(
    atom: usize,
    n_labels: usize,
    n_quasi: usize,
    n_values: usize,
    members: impl IntoIterator<Item = &'a StepMember>,
) -> Option<StepError> {
    let is_malformed = |member: &&StepMember| {
        let has_value = |path: &Arc<[String]>| !path.is_empty();
        member.paths.len() != n_quasi || member.values.len() != n_values || !member.paths.iter().all(has_value)
    };
    let n = n_labels + members.into_iter().filter(is_malformed).count();
    (n > 0).then_some(StepError::Malformed { atom, n })
}

fn persons(members: &[StepMember]) -> BTreeSet<u64> {
    members.iter().map(|member| member.person).collect()
}

/// What an atom may not be beside what was shown before.
fn structure(atom: usize, step: &AtomStep, shown_before: &BTreeSet<u64>) -> Vec<StepError> {
    let mut problems: Vec<StepError> = asks_for_no_class(atom, &step.after).into_iter().collect();
    match &step.labels_before {
        Some(before) if *before != step.labels => problems.push(StepError::Relabelled { atom }),
        None if !step.before.is_empty() => problems.push(StepError::ClassIsNew { atom }),
        Some(_) | None => {}
    }
    if step.before.is_empty() {
        let is_known = |member: &&StepMember| member.seen == Seen::Elsewhere || shown_before.contains(&member.person);
        let n = step.after.iter().filter(is_known).count();
        problems.extend((n > 0).then_some(StepError::SeenBefore { atom, n }));
    } else {
        let was = |member: &StepMember| {
            step.before.iter().any(|before| {
                (before.row, before.person, before.k) == (member.row, member.person, member.k)
                    && (&before.paths, &before.values) == (&member.paths, &member.values)
            })
        };
        let n = step.after.iter().filter(|member| !was(member)).count();
        problems.extend((n > 0).then_some(StepError::Gained { atom, n }));
    }
    problems
}

fn asks_for_no_class(atom: usize, members: &[StepMember]) -> Option<StepError> {
    let n = members.iter().filter(|member| member.k < 2).count();
    (n > 0).then_some(StepError::AsksForNoClass { atom, n })
}

fn not_covered(atom: usize, labels: &[String], members: &[StepMember]) -> Vec<StepError> {
    let mut problems = Vec::new();
    for (column, label) in labels.iter().enumerate() {
        let n = members.iter().filter(|member| !member.paths[column].contains(label)).count();
        problems.extend((n > 0).then_some(StepError::NotCovered { atom, column: column + 1, n }));
    }
    problems
}

/// Counts requirements of sets of members.
struct Counter<'a> {
    columns: &'a [StepColumn],
    requirements: &'a [Requirement],
}

impl Counter<'_> {
    fn part(&self, atom: usize, part: Part, members: &[&StepMember]) -> Vec<StepError> {
        if members.is_empty() {
            return Vec::new();
        }
        let n_persons = members.len();
        let own_k = Requirement::PersonK { column: "own k".to_owned() };
        let asked = self.requirements.iter().filter(|asked| asked.own_k_column().is_none());
        let unmet = asked.chain([&own_k]).filter(|requirement| !self.holds(requirement, members));
        let unmet =
            unmet.map(|requirement| StepError::Unmet { atom, part, requirement: requirement.clone(), n_persons });
        unmet.collect()
    }

    fn holds(&self, requirement: &Requirement, members: &[&StepMember]) -> bool {
        let n_persons = members.len() as u64;
        let own_k = members.iter().map(|member| u64::from(member.k)).max().unwrap_or(0);
        if n_persons == 0 {
            return false;
        }
        let Some(name) = requirement.sensitive_column() else {
            return judge(requirement, &ClassView { n_persons, own_k, sensitive: None }).holds;
        };
        let Some(position) = self.columns.iter().position(|column| column.name == name) else {
            return false;
        };
        let column = &self.columns[position];
        let mut ids: BTreeMap<Option<&str>, u32> = BTreeMap::new();
        let mut counts: Vec<u64> = Vec::new();
        for (value, &count) in &column.reference {
            ids.insert(value.as_deref(), counts.len() as u32);
            counts.push(count);
        }
        let mut values: Vec<u32> = Vec::with_capacity(members.len());
        for member in members {
            let id = *ids.entry(member.values[position].as_deref()).or_insert(counts.len() as u32);
            if id as usize == counts.len() {
                counts.push(0);
            }
            values.push(id);
        }
        // A share of nothing is no share, and nothing can be compared with it.
        if requirement.compares_with_release() && values.iter().any(|&value| counts[value as usize] == 0) {
            return false;
        }
        values.sort_unstable();
        let mut held = Held::default();
        held.refill(values.into_iter());
        let reference = Reference { total: counts.iter().sum(), counts };
        let distances = Distances { reference, ordered: None, hierarchical: None };
        let sensitive = SensitiveView { held: &held, holders: &held, shares: Shares::Pairs, distances: &distances };
        judge(requirement, &ClassView { n_persons, own_k, sensitive: Some(sensitive) }).holds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(person: u64, age: &str, disease: &str) -> StepMember {
        let paths = vec![[age.to_owned(), format!("{}0s", &age[..1]), "*".to_owned()].into()];
        StepMember { row: person, person, k: 2, paths, values: vec![Some(disease.into())], seen: Seen::Never }
    }

    fn requirements() -> [Requirement; 2] {
        [Requirement::K(2), Requirement::DistinctL { column: "disease".to_owned(), l: 2 }]
    }

    fn columns() -> [StepColumn; 1] {
        [StepColumn { name: "disease".to_owned(), reference: BTreeMap::new() }]
    }

    fn problems(label: &str, before: &[StepMember], after: &[StepMember]) -> Vec<StepError> {
        let labels_before = (!before.is_empty()).then(|| vec!["20s".to_owned()]);
        let (before, after) = (before.to_vec(), after.to_vec());
        let labels = vec![label.to_owned()];
        let step = Step { atoms: vec![AtomStep { class: 1, atom: 1, labels_before, labels, before, after }] };
        verify_step(step, &columns(), &requirements()).err().map_or_else(Vec::new, |StepErrors(problems)| problems)
    }

    #[test]
    fn each_rule_is_held() {
        let crowd = [member(1, "20", "flu"), member(2, "21", "gout")];
        let four = [crowd.to_vec(), vec![member(3, "20", "flu"), member(4, "20", "gout")]].concat();
        assert_eq!(problems("20s", &[], &crowd), []);
        assert_eq!(problems("20s", &four, &crowd), []);
        assert_eq!(problems("*", &crowd, &crowd), [StepError::Relabelled { atom: 1 }]);
        assert_eq!(problems("20s", &crowd, &[]), []);

        let alike = [member(1, "20", "flu"), member(2, "21", "flu")];
        assert!(matches!(problems("20s", &[], &alike)[..], [StepError::Unmet { part: Part::Shown, .. }]));
        let one_goes = problems("20s", &four, &four[..3]);
        assert!(matches!(one_goes[0], StepError::Unmet { part: Part::Removed, n_persons: 1, .. }));
        assert!(matches!(problems("20s", &crowd, &four)[..], [StepError::Gained { n: 2, .. }]));
        assert!(matches!(problems("30s", &[], &crowd)[..], [StepError::NotCovered { n: 2, .. }]));
        let lowered = problems("20", &crowd, &crowd);
        assert!(lowered.contains(&StepError::Relabelled { atom: 1 }));
        let twice = [crowd.to_vec(), vec![crowd[0].clone()]].concat();
        assert!(matches!(problems("20s", &[], &twice)[..], [StepError::PersonTwice { n: 1, .. }]));
        let mut demanding = crowd.clone();
        demanding[0].k = 3;
        let unmet = problems("20s", &[], &demanding);
        assert!(matches!(unmet[..], [StepError::Unmet { requirement: Requirement::PersonK { .. }, .. }]));
    }

    #[test]
    fn nobody_is_new_who_was_seen_before() {
        let mut crowd = vec![member(1, "20", "flu"), member(2, "21", "gout"), member(3, "20", "gout")];
        crowd[2].seen = Seen::Elsewhere;
        assert!(matches!(problems("20s", &[], &crowd)[..], [StepError::SeenBefore { n: 1, .. }]));
        assert_eq!(problems("20s", &crowd, &crowd), [], "who stays was seen where they stay");
    }

    #[test]
    fn every_atom_person_and_row_is_named_once() {
        let atom = |number: u64, class: u64, label: &str, members: &[StepMember]| AtomStep {
            class,
            atom: number,
            labels_before: None,
            labels: vec![label.to_owned()],
            before: Vec::new(),
            after: members.to_vec(),
        };
        let problems = |atoms: Vec<AtomStep>| {
            let verified = verify_step(Step { atoms }, &columns(), &requirements());
            verified.err().map_or_else(Vec::new, |StepErrors(problems)| problems)
        };
        let crowd = [member(1, "20", "flu"), member(2, "21", "gout")];
        let others = [member(3, "20", "flu"), member(4, "21", "gout")];
        assert_eq!(problems(vec![atom(1, 1, "20s", &crowd), atom(2, 1, "20s", &others)]), []);
        let twice = problems(vec![atom(1, 1, "20s", &crowd), atom(1, 1, "20s", &others)]);
        assert_eq!(twice, [StepError::NumberTwice { atom: 2 }]);
        let differ = problems(vec![atom(1, 1, "20s", &crowd), atom(2, 1, "*", &others)]);
        assert_eq!(differ, [StepError::OtherLabels { atom: 2 }]);
        let again = [StepMember { row: 9, ..crowd[0].clone() }, others[1].clone()];
        let in_two = problems(vec![atom(1, 1, "20s", &crowd), atom(2, 1, "20s", &again)]);
        assert_eq!(in_two, [StepError::InTwoAtoms { atom: 2, n: 1 }], "the same person in another row");
        let borrowed = [StepMember { row: 1, ..others[0].clone() }, others[1].clone()];
        let in_two = problems(vec![atom(1, 1, "20s", &crowd), atom(2, 1, "20s", &borrowed)]);
        assert_eq!(in_two, [StepError::RowOfTwo { atom: 2, n: 1 }], "the same row for another person");
        let shared = [crowd[0].clone(), StepMember { row: 1, ..crowd[1].clone() }];
        let shared = problems(vec![atom(1, 1, "20s", &shared)]);
        assert_eq!(shared, [StepError::RowOfTwo { atom: 1, n: 1 }], "one row for two persons of an atom");
    }

    #[test]
    fn a_step_does_not_contradict_itself() {
        let atom = |number: u64, before: &[StepMember], after: &[StepMember]| AtomStep {
            class: 1,
            atom: number,
            labels_before: Some(vec!["20s".to_owned()]),
            labels: vec!["20s".to_owned()],
            before: before.to_vec(),
            after: after.to_vec(),
        };
        let problems = |atoms: Vec<AtomStep>| {
            let verified = verify_step(Step { atoms }, &columns(), &requirements());
            verified.err().map_or_else(Vec::new, |StepErrors(problems)| problems)
        };
        let crowd = [member(1, "20", "flu"), member(2, "21", "gout")];
        let others = [member(3, "20", "flu"), member(4, "21", "gout")];
        let both = [crowd.to_vec(), others.to_vec()].concat();
        assert_eq!(problems(vec![atom(1, &both, &crowd), atom(2, &others, &others)]).len(), 1, "in two atoms before");
        let moved = problems(vec![atom(1, &both, &crowd), atom(2, &[], &others)]);
        assert_eq!(moved, [StepError::SeenBefore { atom: 2, n: 2 }], "who leaves one atom is not new in another");
        let new = problems(vec![AtomStep { labels_before: None, ..atom(1, &crowd, &crowd) }]);
        assert_eq!(new, [StepError::ClassIsNew { atom: 1 }]);
        let other = AtomStep { labels_before: None, ..atom(2, &[], &others) };
        let looks = problems(vec![atom(1, &crowd, &crowd), other]);
        assert_eq!(looks, [StepError::OtherLabels { atom: 2 }], "a class was there before, or it was not");
    }

    #[test]
    fn what_is_counted_are_the_atoms_after_the_step() {
        let members = vec![member(1, "20", "flu"), member(2, "21", "gout"), member(3, "20", "flu")];
        let labels = vec!["20s".to_owned()];
        let (shown, gone) = (members.clone(), Vec::new());
        let new = AtomStep {
            class: 1,
            atom: 1,
            labels_before: Some(labels.clone()),
            labels: labels.clone(),
            before: gone,
            after: shown,
        };
        let before = vec![member(4, "20", "flu"), member(5, "21", "gout")];
        let labels_before = Some(labels.clone());
        let old = AtomStep { class: 1, atom: 2, labels_before, labels, before, after: Vec::new() };
        let verified = verify_step(Step { atoms: vec![new, old] }, &columns(), &requirements()).unwrap();
        assert_eq!(*verified.findings(), StepFindings { atoms: 1, persons: 3, k: 3 });
    }

    fn refreshed(before: &[&[StepMember]], after: &[&[StepMember]]) -> Vec<StepError> {
        // Numbers of their own: none stays the atom that it was.
        let before = (101..).zip(before).map(|(atom, members)| (atom, members.to_vec())).collect();
        let atom = |(atom, members): (u64, &&[StepMember])| RefreshedAtom {
            class: atom,
            atom,
            labels: vec!["*".to_owned()],
            members: members.to_vec(),
        };
        let after = (1..).zip(after).map(atom).collect();
        let verified = verify_refresh(Refresh { before, after }, &columns(), &requirements());
        verified.err().map_or_else(Vec::new, |StepErrors(problems)| problems)
    }

    #[test]
    fn a_refresh_parts_atoms_into_crowds_and_mixes_none() {
        let four = [member(1, "20", "flu"), member(2, "21", "gout"), member(3, "20", "flu"), member(4, "20", "gout")];
        let others = [member(5, "30", "flu"), member(6, "31", "gout")];
        assert_eq!(refreshed(&[&four], &[&four[..2], &four[2..]]), []);
        assert_eq!(refreshed(&[&four], &[&four[..2]]), [], "two who go are a crowd");
        assert_eq!(refreshed(&[&four], &[&others]), [], "all may go");
        assert_eq!(refreshed(&[&four, &others], &[&others, &four]), []);

        let mixed = [four[0].clone(), four[1].clone(), others[0].clone(), others[1].clone()];
        assert!(matches!(refreshed(&[&four[..2], &others], &[&mixed])[..], [StepError::Mixed { n: 2, .. }]));
        assert!(matches!(refreshed(&[&four[..2]], &[&mixed])[..], [StepError::Mixed { n: 2, .. }]));
        let one_goes = refreshed(&[&four], &[&four[..3]]);
        assert!(
            one_goes
                .iter()
                .any(|problem| matches!(problem, StepError::Unmet { part: Part::Removed, n_persons: 1, .. }))
        );
        let alike = refreshed(&[&four], &[&[four[0].clone(), four[2].clone()], &[four[1].clone(), four[3].clone()]]);
        assert_eq!(alike.len(), 2);
        let mut moved = four[..2].to_vec();
        moved[0].paths = member(1, "29", "flu").paths;
        let moved = refreshed(&[&four[..2]], &[&[moved[0].clone(), member(7, "20", "gout")]]);
        assert!(matches!(moved[..], [StepError::SeenBefore { n: 1, .. }]), "another row of the same person");
        let twice = refreshed(&[&four], &[&four, &four]);
        assert!(twice.contains(&StepError::PersonTwice { atom: 2, n: 1 }));
    }
}
