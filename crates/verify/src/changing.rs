//! [`verify_step`]: whether a step of a view over changing data may be shown.
//!
//! # Guarantee
//! - Who is shown together from now on, who is shown no more, and who stays of an atom that lost members: each of these
//!   sets satisfies every requirement by the members who were never shown elsewhere, its core. An atom gains nobody.
//! - Who was shown elsewhere is in a set whose core shows each tuple that may be theirs at least as often as there are
//!   such members, all of them together as often as the person asks for, and only where nothing is asked of values but how many there are.
//! - Every label covers what is under it, and labels of a class that was there before only rise.
//!
//! Coverage is decided by the paths of values, as texts. Shares are compared with those of the view as it was built.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use kohort_model::{Distance, Requirement};

use crate::distance::{Held, Reference};
use crate::requirement::{ClassView, Distances, SensitiveView, judge};
use crate::roll::Shares;
use crate::{Findings, Verified};

/// What a row shows beside its quasi labels, in the order of the columns.
pub type ShownValues = Vec<Option<String>>;

/// A step of a view: every atom that it touches.
#[derive(Clone, PartialEq, Eq)]
pub struct Step {
    /// The atoms.
    pub atoms: Vec<AtomStep>,
}

/// An atom before and after a step; without members it is not there.
#[derive(Clone, PartialEq, Eq)]
pub struct AtomStep {
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
    /// Whose it is.
    pub person: u64,
    /// The person's own k.
    pub k: u32,
    /// Per quasi column the value and its ancestors, the root last.
    pub paths: Vec<Vec<String>>,
    /// The rest of what is shown.
    pub values: ShownValues,
    /// The tuples that may be the person's by what was shown elsewhere; empty where nothing was.
    pub remembered: BTreeSet<ShownValues>,
    /// Whether the person was shown elsewhere before.
    pub seen: Seen,
}

/// Whether a person was shown in another atom before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Never: the person is of the atom's core.
    Never,
    /// Before.
    Elsewhere,
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
pub enum StepProblem {
    #[error("atom {atom}: {n} members or labels do not fit the view's columns")]
    Malformed { atom: usize, n: usize },
    #[error("atom {atom}: {n} persons are in it twice")]
    PersonTwice { atom: usize, n: usize },
    #[error("atom {atom}: {n} members came, or changed, after it was first shown")]
    Gained { atom: usize, n: usize },
    #[error("atom {atom}: {n} members ask for no class")]
    AsksForNoClass { atom: usize, n: usize },
    #[error("atom {atom}: {n} members of the core were shown elsewhere")]
    CoreSeen { atom: usize, n: usize },
    #[error("atom {atom}: quasi column {column}: the label does not cover {n} members")]
    NotCovered { atom: usize, column: usize, n: usize },
    #[error("atom {atom}: quasi column {column}: the class's label is not above the one before")]
    NotRaised { atom: usize, column: usize },
    #[error("atom {atom}: {part}: {n_persons} persons do not satisfy {requirement:?}")]
    Unmet { atom: usize, part: Part, requirement: Requirement, n_persons: usize },
    #[error("atom {atom}: {part}: {n} persons who were shown elsewhere are not hidden by the others")]
    NotHidden { atom: usize, part: Part, n: usize },
    #[error("requirement {requirement:?} can't be counted here")]
    Uncountable { requirement: Requirement },
}

/// Everything that is wrong with a step.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct StepProblems(pub Vec<StepProblem>);

/// Verifies a step. Every person's own k is asked in any case.
///
/// # Errors
/// Everything that is wrong with it.
pub fn verify_step(
    step: Step,
    columns: &[StepColumn],
    requirements: &[Requirement],
) -> Result<Verified<Step>, StepProblems> {
    let mut problems = uncountable(columns, requirements);
    let counter = Counter { columns, requirements };
    for (place, atom) in step.atoms.iter().enumerate() {
        let malformed = malformed(atom, columns.len());
        if malformed > 0 {
            problems.push(StepProblem::Malformed { atom: place + 1, n: malformed });
        } else if problems.is_empty() {
            problems.extend(structure(place + 1, atom));
            problems.extend(labels(place + 1, atom));
            let after = persons(&atom.after);
            let removed: Vec<&StepMember> =
                atom.before.iter().filter(|member| !after.contains(&member.person)).collect();
            problems.extend(counter.part(place + 1, Part::Shown, &atom.after.iter().collect::<Vec<_>>()));
            problems.extend(counter.part(place + 1, Part::Removed, &removed));
        }
    }
    if !problems.is_empty() {
        return Err(StepProblems(problems));
    }
    let sizes = step.atoms.iter().map(|atom| atom.after.len() as u64).filter(|&size| size > 0);
    let mut findings = Findings::of_nobody(sizes.clone().sum());
    findings.persons = findings.rows;
    findings.classes = sizes.clone().count() as u64;
    findings.k = sizes.min().unwrap_or(0);
    Ok(Verified::attest(step, findings))
}

fn uncountable(columns: &[StepColumn], requirements: &[Requirement]) -> Vec<StepProblem> {
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
    uncountable.map(|requirement| StepProblem::Uncountable { requirement: requirement.clone() }).collect()
}

fn malformed(atom: &AtomStep, n_values: usize) -> usize {
    let n_quasi = atom.labels.len();
    let labels_before = atom.labels_before.iter().filter(|labels| labels.len() != n_quasi).count();
    let is_malformed = |member: &&StepMember| {
        member.paths.len() != n_quasi
            || member.values.len() != n_values
            || member.remembered.iter().any(|tuple| tuple.len() != n_values)
    };
    labels_before + atom.before.iter().chain(&atom.after).filter(is_malformed).count()
}

fn persons(members: &[StepMember]) -> BTreeSet<u64> {
    members.iter().map(|member| member.person).collect()
}

fn structure(atom: usize, step: &AtomStep) -> Vec<StepProblem> {
    let mut problems = Vec::new();
    let mut report = |n: usize, problem: fn(usize, usize) -> StepProblem| {
        if n > 0 {
            problems.push(problem(atom, n));
        }
    };
    let n_twice = |members: &[StepMember]| members.len() - persons(members).len();
    report(n_twice(&step.before) + n_twice(&step.after), |atom, n| StepProblem::PersonTwice { atom, n });
    let of = |members: &[StepMember], holds: fn(&StepMember) -> bool| members.iter().filter(|m| holds(m)).count();
    report(of(&step.after, |member| member.k < 2), |atom, n| StepProblem::AsksForNoClass { atom, n });
    if step.before.is_empty() {
        let is_false_core = |member: &StepMember| member.seen == Seen::Never && !member.remembered.is_empty();
        report(of(&step.after, is_false_core), |atom, n| StepProblem::CoreSeen { atom, n });
    } else {
        let was = |member: &StepMember| {
            step.before.iter().any(|before| {
                (before.person, before.k, before.seen) == (member.person, member.k, member.seen)
                    && (&before.paths, &before.values) == (&member.paths, &member.values)
            })
        };
        report(step.after.iter().filter(|m| !was(m)).count(), |atom, n| StepProblem::Gained { atom, n });
    }
    problems
}

fn labels(atom: usize, step: &AtomStep) -> Vec<StepProblem> {
    let mut problems = Vec::new();
    for (column, label) in step.labels.iter().enumerate() {
        let covers = |member: &&StepMember| member.paths[column].contains(label);
        let n = step.after.iter().filter(|member| !covers(member)).count();
        if n > 0 {
            problems.push(StepProblem::NotCovered { atom, column: column + 1, n });
        }
        let Some(before) = step.labels_before.as_ref().map(|labels| &labels[column]) else { continue };
        let rises = |member: &StepMember| {
            let place = |wanted: &String| member.paths[column].iter().position(|label| label == wanted);
            place(before).is_some_and(|before| place(label).is_some_and(|after| before <= after))
        };
        if before != label && !step.before.iter().any(rises) {
            problems.push(StepProblem::NotRaised { atom, column: column + 1 });
        }
    }
    problems
}

/// Counts requirements of sets of members.
struct Counter<'a> {
    columns: &'a [StepColumn],
    requirements: &'a [Requirement],
}

impl Counter<'_> {
    fn part(&self, atom: usize, part: Part, members: &[&StepMember]) -> Vec<StepProblem> {
        if members.is_empty() {
            return Vec::new();
        }
        let (core, riders): (Vec<&StepMember>, Vec<&StepMember>) =
            members.iter().partition(|member| member.seen == Seen::Never);
        let n_persons = core.len();
        let own_k = Requirement::PersonK { column: "own k".to_owned() };
        let asked = self.requirements.iter().filter(|asked| !matches!(asked, Requirement::PersonK { .. }));
        let unmet = asked.chain([&own_k]).filter(|requirement| !self.holds(requirement, &core));
        let unmet =
            unmet.map(|requirement| StepProblem::Unmet { atom, part, requirement: requirement.clone(), n_persons });
        let mut problems: Vec<StepProblem> = unmet.collect();
        let n = riders.iter().filter(|rider| !self.is_hidden(rider, &core, riders.len())).count();
        if n > 0 {
            problems.push(StepProblem::NotHidden { atom, part, n });
        }
        problems
    }

    /// Whether a person who was shown elsewhere could have any of the tuples that were possible before.
    fn is_hidden(&self, rider: &StepMember, core: &[&StepMember], n_riders: usize) -> bool {
        let n_holders = |tuple: &ShownValues| core.iter().filter(|member| member.values == *tuple).count();
        let only_counts = self.requirements.iter().all(|requirement| match requirement {
            Requirement::K(_) | Requirement::PersonK { .. } | Requirement::DistinctL { .. } => true,
            Requirement::EntropyL { .. }
            | Requirement::RecursiveCL { .. }
            | Requirement::TCloseness { .. }
            | Requirement::Alpha { .. }
            | Requirement::Beta { .. }
            | Requirement::EnhancedBeta { .. } => false,
        });
        let k = self.requirements.iter().filter_map(|requirement| match requirement {
            Requirement::K(k) => Some(*k),
            _ => None,
        });
        let k = k.fold(rider.k, u32::max) as usize;
        only_counts
            && rider.remembered.iter().map(n_holders).sum::<usize>() >= k
            && rider.remembered.contains(&rider.values)
            && rider.remembered.iter().all(|tuple| n_holders(tuple) >= n_riders)
    }

    fn holds(&self, requirement: &Requirement, core: &[&StepMember]) -> bool {
        let n_persons = core.len() as u64;
        let own_k = core.iter().map(|member| u64::from(member.k)).max().unwrap_or(0);
        let position = self.columns.iter().position(|column| Some(column.name.as_str()) == requirement.column());
        let Some(position) = position.filter(|_| !matches!(requirement, Requirement::PersonK { .. })) else {
            return n_persons > 0 && judge(requirement, &ClassView { n_persons, own_k, sensitive: None }).holds;
        };
        if n_persons == 0 {
            return false;
        }
        let column = &self.columns[position];
        let mut ids: BTreeMap<&Option<String>, u32> = BTreeMap::new();
        let mut counts: Vec<u64> = Vec::new();
        for (value, &count) in &column.reference {
            ids.insert(value, counts.len() as u32);
            counts.push(count);
        }
        let mut values: Vec<u32> = Vec::with_capacity(core.len());
        for member in core {
            let id = *ids.entry(&member.values[position]).or_insert(counts.len() as u32);
            if id as usize == counts.len() {
                counts.push(0);
            }
            values.push(id);
        }
        // A share of nothing is no share, and nothing can be compared with it.
        let compares = matches!(
            requirement,
            Requirement::TCloseness { .. } | Requirement::Beta { .. } | Requirement::EnhancedBeta { .. }
        );
        if compares && values.iter().any(|&value| counts[value as usize] == 0) {
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
        let paths = vec![vec![age.to_owned(), format!("{}0s", &age[..1]), "*".to_owned()]];
        let (values, remembered) = (vec![Some(disease.to_owned())], BTreeSet::new());
        StepMember { person, k: 2, paths, values, remembered, seen: Seen::Never }
    }

    fn rider(person: u64, diseases: &[&str]) -> StepMember {
        let remembered = diseases.iter().map(|&disease| vec![Some(disease.to_owned())]).collect();
        StepMember { remembered, seen: Seen::Elsewhere, ..member(person, "20", diseases[0]) }
    }

    fn problems(label: &str, before: &[StepMember], after: &[StepMember]) -> Vec<StepProblem> {
        let labels_before = (!before.is_empty()).then(|| vec!["20s".to_owned()]);
        let (before, after) = (before.to_vec(), after.to_vec());
        let step = Step { atoms: vec![AtomStep { labels_before, labels: vec![label.to_owned()], before, after }] };
        let columns = [StepColumn { name: "disease".to_owned(), reference: BTreeMap::new() }];
        let requirements = [Requirement::K(2), Requirement::DistinctL { column: "disease".to_owned(), l: 2 }];
        verify_step(step, &columns, &requirements).err().map_or_else(Vec::new, |StepProblems(problems)| problems)
    }

    #[test]
    fn each_rule_is_held() {
        let crowd = [member(1, "20", "flu"), member(2, "21", "gout")];
        let four = [crowd.to_vec(), vec![member(3, "20", "flu"), member(4, "20", "gout")]].concat();
        assert_eq!(problems("20s", &[], &crowd), []);
        assert_eq!(problems("20s", &four, &crowd), []);
        assert_eq!(problems("*", &crowd, &crowd), []);
        assert_eq!(problems("20s", &crowd, &[]), []);

        let alike = [member(1, "20", "flu"), member(2, "21", "flu")];
        assert!(matches!(problems("20s", &[], &alike)[..], [StepProblem::Unmet { part: Part::Shown, .. }]));
        let one_goes = problems("20s", &four, &four[..3]);
        assert!(matches!(one_goes[0], StepProblem::Unmet { part: Part::Removed, n_persons: 1, .. }));
        assert!(matches!(problems("20s", &crowd, &four)[..], [StepProblem::Gained { n: 2, .. }]));
        assert!(matches!(problems("30s", &[], &crowd)[..], [StepProblem::NotCovered { n: 2, .. }]));
        let lowered = problems("20", &crowd, &crowd);
        assert!(lowered.contains(&StepProblem::NotRaised { atom: 1, column: 1 }));
        let twice = [crowd.to_vec(), vec![crowd[0].clone()]].concat();
        assert!(matches!(problems("20s", &[], &twice)[..], [StepProblem::PersonTwice { n: 1, .. }]));
        let mut demanding = crowd.clone();
        demanding[0].k = 3;
        let unmet = problems("20s", &[], &demanding);
        assert!(matches!(unmet[..], [StepProblem::Unmet { requirement: Requirement::PersonK { .. }, .. }]));
    }

    #[test]
    fn who_was_shown_elsewhere_must_be_hidden_by_the_others() {
        let crowd = vec![member(1, "20", "flu"), member(2, "21", "gout")];
        let with = |riders: &[StepMember]| problems("20s", &[], &[crowd.clone(), riders.to_vec()].concat());
        assert_eq!(with(&[rider(3, &["flu", "gout"])]), []);
        assert!(matches!(with(&[rider(3, &["flu", "cold"])])[..], [StepProblem::NotHidden { n: 1, .. }]));
        let two = [rider(3, &["flu", "gout"]), rider(4, &["flu", "gout"])];
        assert!(matches!(with(&two)[..], [StepProblem::NotHidden { n: 2, .. }]));
        let mut false_core = rider(3, &["flu", "gout"]);
        false_core.seen = Seen::Never;
        assert!(matches!(with(&[false_core])[..], [StepProblem::CoreSeen { n: 1, .. }]));
    }
}
