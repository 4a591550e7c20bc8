//! Whether a step or a refresh of a materialized view may be shown, judged by the promises of `docs/changing-data.md`:
//! every set of rows that readers of all answers can tell apart satisfies the requirements, and nobody is in two
//! crowds.
//!
//! The judge believes what a step says about earlier snapshots, because the step is all it has. A step that contradicts
//! itself is harmful.

use std::collections::{BTreeMap, BTreeSet};

use kohort_model::{Column, Distance, Requirement, Role, Table};
use kohort_verify::{Refresh, Seen, Step, StepColumn, StepMember};

use super::Harm;
use crate::mutations::steps::{Asked, ShownRefresh, ShownStep};
use crate::oracle::{Verdict, judge};

impl ShownStep {
    /// Whether the step breaks a promise.
    pub fn harm(&self) -> Harm {
        let Step { atoms } = &self.step;
        let mut judge = Judge { asked: &self.asked, harm: self.asked.uncountable(), is_close: false };
        let before: Vec<&StepMember> = atoms.iter().flat_map(|atom| &atom.before).collect();
        let after: Vec<&StepMember> = atoms.iter().flat_map(|atom| &atom.after).collect();
        judge.names(&before, &after);
        judge.numbers(atoms.iter().map(|atom| atom.atom));
        judge.labels(atoms.iter().map(|atom| (atom.class, (&atom.labels_before, &atom.labels))));
        let known: BTreeSet<u64> = before.iter().map(|member| member.person).collect();
        for atom in atoms {
            let n_labels = atom.labels.len();
            judge.shape(n_labels, atom.before.iter().chain(&atom.after));
            match &atom.labels_before {
                Some(labels) if *labels != atom.labels => judge.blame("the labels of a class changed"),
                None if !atom.before.is_empty() => judge.blame("a row was shown in a class that did not exist"),
                _ => {}
            }
            if judge.harm.is_some() {
                break;
            }
            judge.covered(&atom.labels, &atom.after);
            let is_new = atom.before.is_empty();
            for member in &atom.after {
                let is_as_before =
                    atom.before.iter().any(|was| StepMember { seen: member.seen, ..was.clone() } == *member);
                let is_unseen = member.seen == Seen::Never && !known.contains(&member.person);
                if member.k < 2 || !(if is_new { is_unseen } else { is_as_before }) {
                    judge.blame("a member asks for no crowd, joined after the others, or was seen before");
                }
            }
            let stays: BTreeSet<u64> = atom.after.iter().map(|member| member.person).collect();
            let gone: Vec<&StepMember> = atom.before.iter().filter(|member| !stays.contains(&member.person)).collect();
            judge.crowd(&atom.after.iter().collect::<Vec<_>>());
            judge.crowd(&gone);
        }
        judge.verdict()
    }
}

impl ShownRefresh {
    /// Whether the refresh breaks a promise.
    pub fn harm(&self) -> Harm {
        let Refresh { before, after } = &self.refresh;
        let mut judge = Judge { asked: &self.asked, harm: self.asked.uncountable(), is_close: false };
        let was: Vec<&StepMember> = before.values().flatten().collect();
        let is: Vec<&StepMember> = after.iter().flat_map(|atom| &atom.members).collect();
        judge.names(&was, &is);
        judge.numbers(after.iter().map(|atom| atom.atom));
        judge.labels(after.iter().map(|atom| (atom.class, &atom.labels)));
        let n_labels = after.iter().map(|atom| atom.labels.len()).max();
        for atom in after {
            judge.shape(atom.labels.len(), &atom.members);
        }
        // If there are no labels, the members say how many quasi columns there are.
        let n_labels = n_labels.or_else(|| was.first().map(|member| member.paths.len())).unwrap_or(0);
        judge.shape(n_labels, was.iter().copied());
        if judge.harm.is_some() {
            return judge.verdict();
        }
        let value = |member: &StepMember| -> Vec<String> { member.paths.iter().map(|path| path[0].clone()).collect() };
        // The atom in which readers saw this very row, whatever labels are above its values now.
        let origin = |member: &StepMember| {
            let is_same = |was: &&StepMember| {
                (was.person, was.k, &was.values, value(was)) == (member.person, member.k, &member.values, value(member))
            };
            before.iter().find(|(_, members)| members.iter().any(|was| is_same(&was))).map(|(atom, _)| *atom)
        };
        for atom in after {
            judge.covered(&atom.labels, &atom.members);
            let origins: BTreeSet<Option<u64>> = atom.members.iter().map(origin).collect();
            if origins.len() > 1 {
                judge.blame("members come from several atoms, or newcomers are among them");
            }
            for member in &atom.members {
                let was_seen = member.seen == Seen::Elsewhere || was.iter().any(|was| was.person == member.person);
                if member.k < 2 || origin(member).is_none() && was_seen {
                    judge.blame("a member asks for no crowd, or was seen before");
                }
            }
            let is_whole = |origin: &Option<u64>| origin.is_some_and(|from| before[&from].len() == atom.members.len());
            if !origins.iter().all(is_whole) {
                judge.crowd(&atom.members.iter().collect::<Vec<_>>());
            }
        }
        for members in before.values() {
            let stays = |member: &&StepMember| is.iter().any(|is| is.person == member.person);
            let gone: Vec<&StepMember> = members.iter().filter(|member| !stays(member)).collect();
            if gone.len() < members.len() {
                judge.crowd(&gone);
            }
        }
        judge.verdict()
    }
}

impl Asked {
    /// A requirement on a column that rows do not show, or with a distance for which steps have no order.
    fn uncountable(&self) -> Option<String> {
        let is_known = |name: &str| self.columns.iter().any(|column| column.name == name);
        let is_uncountable = |asked: &&Requirement| {
            asked.sensitive_column().is_some_and(|name| !is_known(name))
                || asked.distance().is_some_and(|distance| distance != Distance::Equal)
        };
        self.requirements
            .iter()
            .any(|asked| is_uncountable(&asked))
            .then(|| "a requirement can't be counted on these columns".to_owned())
    }
}

struct Judge<'a> {
    asked: &'a Asked,
    harm: Option<String>,
    is_close: bool,
}

impl Judge<'_> {
    fn blame(&mut self, why: &str) {
        self.harm.get_or_insert_with(|| why.to_owned());
    }

    fn verdict(self) -> Harm {
        match self.harm {
            Some(why) => Harm::Harmful(why),
            None if self.is_close => Harm::DecidedByRounding,
            None => Harm::Harmless,
        }
    }

    /// Checks that everybody is shown once at a time, in one row, and that a row always belongs to the same person.
    fn names(&mut self, before: &[&StepMember], after: &[&StepMember]) {
        for members in [before, after] {
            let persons: BTreeSet<u64> = members.iter().map(|member| member.person).collect();
            let rows: BTreeSet<u64> = members.iter().map(|member| member.row).collect();
            if persons.len() < members.len() || rows.len() < members.len() {
                self.blame("a person or a row occurs twice");
            }
        }
        for was in before {
            if after.iter().any(|is| is.row == was.row && is.person != was.person) {
                self.blame("one row belongs to two persons");
            }
        }
    }

    fn numbers(&mut self, atoms: impl Iterator<Item = u64>) {
        let atoms: Vec<u64> = atoms.collect();
        if atoms.iter().collect::<BTreeSet<_>>().len() < atoms.len() {
            self.blame("two atoms have the same number");
        }
    }

    /// Checks that atoms of one class have the same labels.
    fn labels<T: PartialEq>(&mut self, labels: impl Iterator<Item = (u64, T)>) {
        let mut by_class: BTreeMap<u64, Vec<T>> = BTreeMap::new();
        labels.for_each(|(class, labels)| by_class.entry(class).or_default().push(labels));
        if by_class.values().any(|labels| labels.iter().any(|other| *other != labels[0])) {
            self.blame("atoms of one class have different labels");
        }
    }

    fn shape<'m>(&mut self, n_labels: usize, members: impl IntoIterator<Item = &'m StepMember>) {
        let n_values = self.asked.columns.len();
        let fits = |member: &StepMember| {
            member.paths.len() == n_labels
                && member.values.len() == n_values
                && member.paths.iter().all(|path| !path.is_empty())
        };
        if !members.into_iter().all(fits) {
            self.blame("a member has too many or too few cells");
        }
    }

    fn covered(&mut self, labels: &[String], members: &[StepMember]) {
        let is_covered =
            |member: &StepMember| labels.iter().zip(&member.paths).all(|(label, path)| path.contains(label));
        if !members.iter().all(is_covered) {
            self.blame("a label does not cover the values of a member");
        }
    }

    /// Checks that a set of rows that readers can tell apart satisfies the requirements.
    fn crowd(&mut self, members: &[&StepMember]) {
        if members.is_empty() || self.harm.is_some() {
            return;
        }
        if members.iter().any(|member| member.k as usize > members.len()) {
            self.blame("a crowd is smaller than the k that a member asks for");
        }
        for requirement in &self.asked.requirements {
            match self.asked.judged(requirement, members) {
                Verdict::Holds => {}
                Verdict::Fails => self.blame("a crowd does not satisfy a requirement"),
                Verdict::TooClose => self.is_close = true,
            }
        }
    }
}

impl Asked {
    /// Whether a crowd satisfies a requirement. The table starts with the persons of the time when the view was built.
    fn judged(&self, requirement: &Requirement, members: &[&StepMember]) -> Verdict {
        if requirement.own_k_column().is_some() {
            // Everybody's own k is checked in any case.
            return Verdict::Holds;
        }
        let position =
            requirement.sensitive_column().and_then(|name| self.columns.iter().position(|column| column.name == name));
        let Some(position) = position else {
            let n_wanted = requirement.k().unwrap_or(0) as usize;
            return if members.len() >= n_wanted { Verdict::Holds } else { Verdict::Fails };
        };
        let StepColumn { name, reference } = &self.columns[position];
        let held: Vec<Option<&str>> = members.iter().map(|member| member.values[position].as_deref()).collect();
        let is_share_of_nothing =
            held.iter().any(|value| reference.get(&value.map(str::to_owned)).is_none_or(|&n| n == 0));
        if requirement.compares_with_release() && is_share_of_nothing {
            return Verdict::Fails;
        }
        let then = reference.iter().flat_map(|(value, &n)| (0..n).map(|_| value.as_deref()));
        let mut cells: Vec<Option<&str>> = then.collect();
        let n_then = cells.len() as u32;
        cells.extend(held);
        let column = Column::from_cells(name, Role::Sensitive, cells.iter().copied());
        let table = Table { name: "then".to_owned(), columns: vec![column], n_rows: cells.len(), person: None };
        let (then, crowd): (Vec<u32>, Vec<u32>) = ((0..n_then).collect(), (n_then..cells.len() as u32).collect());
        judge(&table, requirement, &crowd, &then)
    }
}
