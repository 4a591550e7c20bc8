//! The tables of changes to a step and to a refresh of a materialized view.
//!
//! A step and a refresh both consist of crowds before and after. So most changes are written once, for [`Crowds`], and
//! the result is put back into a step or a refresh.

use std::collections::BTreeMap;
use std::sync::Arc;

use kohort_model::{Distance, Requirement};
use kohort_verify::{AtomStep, Refresh, RefreshedAtom, Seen, Step, StepColumn, StepMember};

/// The requirements on every set of rows that readers can tell apart.
#[derive(Clone, PartialEq)]
pub struct Asked {
    /// The columns that rows show beside their quasi labels.
    pub columns: Vec<StepColumn>,
    /// The requirements.
    pub requirements: Vec<Requirement>,
}

/// A step, with everything against which it is verified.
#[derive(Clone)]
pub struct ShownStep {
    /// What the step must satisfy.
    pub asked: Asked,
    /// The step.
    pub step: Step,
}

/// A refresh, with everything against which it is verified.
#[derive(Clone)]
pub struct ShownRefresh {
    /// What the refresh must satisfy.
    pub asked: Asked,
    /// The refresh.
    pub refresh: Refresh,
}

/// A crowd before and after.
#[derive(Clone)]
struct Crowd {
    class: u64,
    atom: u64,
    labels_before: Option<Vec<String>>,
    labels: Vec<String>,
    before: Vec<StepMember>,
    after: Vec<StepMember>,
}

/// The crowds of a step or of a refresh.
#[derive(Clone)]
pub struct Crowds {
    asked: Asked,
    crowds: Vec<Crowd>,
}

/// When members are changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Before,
    After,
    Always,
}

/// A way to change crowds.
pub struct CrowdChange {
    /// The name of the change.
    pub name: &'static str,
    /// Makes every changed set of crowds that this way gives from one set.
    changed: fn(&Crowds) -> Vec<Crowds>,
}

/// Every way to change crowds.
pub const CROWD_CHANGES: &[CrowdChange] = &[
    CrowdChange { name: "member: another row", changed: |shown| shown.each_member(other_row) },
    CrowdChange { name: "member: another person", changed: |shown| shown.each_member(other_person) },
    CrowdChange { name: "member: another k", changed: |shown| shown.each_member(other_k) },
    CrowdChange { name: "member: another path", changed: |shown| shown.each_member(other_path) },
    CrowdChange { name: "member: another value", changed: |shown| shown.each_member(other_value) },
    CrowdChange { name: "member: seen or not", changed: |shown| shown.each_member(seen_or_not) },
    CrowdChange {
        name: "member: missing",
        changed: |shown| shown.each_place(|members, place, _| drop(members.remove(place))),
    },
    CrowdChange {
        name: "member: twice",
        changed: |shown| shown.each_place(|members, place, _| members.push(members[place].clone())),
    },
    CrowdChange {
        name: "member: twice, under another row",
        changed: |shown| {
            shown.each_place(|members, place, fresh| members.push(StepMember { row: fresh, ..members[place].clone() }))
        },
    },
    CrowdChange {
        name: "member: a row of two persons",
        changed: |shown| {
            shown.each_place(|members, place, fresh| {
                members.push(StepMember { person: fresh, ..members[place].clone() });
            })
        },
    },
    CrowdChange {
        name: "member: somebody more",
        changed: |shown| {
            shown.each_place(|members, place, fresh| {
                members.push(StepMember { row: fresh, person: fresh, ..members[place].clone() });
            })
        },
    },
    CrowdChange { name: "member: moved to another crowd", changed: |shown| shown.moved(Leaves::Yes) },
    CrowdChange { name: "member: in another crowd too", changed: |shown| shown.moved(Leaves::No) },
    CrowdChange {
        name: "members: in another order",
        changed: |shown| {
            shown.each_crowd(|crowd, _| {
                crowd.before.reverse();
                crowd.after.reverse();
            })
        },
    },
    CrowdChange { name: "crowd: another number", changed: |shown| shown.each_number(|crowd| &mut crowd.atom) },
    CrowdChange { name: "crowd: another class", changed: |shown| shown.each_number(|crowd| &mut crowd.class) },
    CrowdChange {
        name: "crowd: missing",
        changed: |shown| shown.each_crowd_of_list(|crowds, place, _| drop(crowds.remove(place))),
    },
    CrowdChange {
        name: "crowd: twice",
        changed: |shown| shown.each_crowd_of_list(|crowds, place, _| crowds.push(crowds[place].clone())),
    },
    CrowdChange {
        name: "crowd: twice, under another number",
        changed: |shown| {
            shown.each_crowd_of_list(|crowds, place, fresh| crowds.push(Crowd { atom: fresh, ..crowds[place].clone() }))
        },
    },
    CrowdChange { name: "crowd: not there before", changed: |shown| shown.each_crowd(|crowd, _| crowd.before.clear()) },
    CrowdChange { name: "crowd: not there after", changed: |shown| shown.each_crowd(|crowd, _| crowd.after.clear()) },
    CrowdChange {
        name: "crowd: as it was",
        changed: |shown| shown.each_crowd(|crowd, _| crowd.after = crowd.before.clone()),
    },
    CrowdChange {
        name: "crowd: as it is",
        changed: |shown| shown.each_crowd(|crowd, _| crowd.before = crowd.after.clone()),
    },
    CrowdChange {
        name: "crowd: backwards",
        changed: |shown| shown.each_crowd(|crowd, _| std::mem::swap(&mut crowd.before, &mut crowd.after)),
    },
    CrowdChange { name: "crowd: a part of it as another", changed: in_two },
    CrowdChange { name: "crowd: two as one", changed: as_one },
    CrowdChange { name: "crowds: in another order", changed: |shown| vec![shown.with(|copy| copy.crowds.reverse())] },
    CrowdChange { name: "crowds: none", changed: |shown| vec![shown.with(|copy| copy.crowds.clear())] },
    CrowdChange { name: "label: another", changed: |shown| shown.each_label(|crowd| Some(&mut crowd.labels)) },
    CrowdChange {
        name: "label before: another",
        changed: |shown| shown.each_label(|crowd| crowd.labels_before.as_mut()),
    },
    CrowdChange { name: "label, before and after: another", changed: both_labels },
    CrowdChange { name: "labels: one more or less", changed: wrong_number_of_labels },
    CrowdChange {
        name: "class: not there before",
        changed: |shown| shown.each_crowd(|crowd, _| crowd.labels_before = None),
    },
    CrowdChange {
        name: "class: there before",
        changed: |shown| shown.each_crowd(|crowd, _| crowd.labels_before = Some(crowd.labels.clone())),
    },
    CrowdChange { name: "asked: more", changed: more_is_asked },
    CrowdChange { name: "asked: shares of other values", changed: other_reference },
];

/// Every step that differs from this one by one change, with the name of the change.
pub fn changed_steps(shown: &ShownStep) -> Vec<(&'static str, ShownStep)> {
    let crowd = |atom: &AtomStep| {
        let AtomStep { class, atom, labels_before, labels, before, after } = atom.clone();
        Crowd { class, atom, labels_before, labels, before, after }
    };
    let crowds = Crowds { asked: shown.asked.clone(), crowds: shown.step.atoms.iter().map(crowd).collect() };
    let step = |crowds: Crowds| {
        let atom = |crowd: Crowd| {
            let Crowd { class, atom, labels_before, labels, before, after } = crowd;
            AtomStep { class, atom, labels_before, labels, before, after }
        };
        ShownStep { asked: crowds.asked, step: Step { atoms: crowds.crowds.into_iter().map(atom).collect() } }
    };
    let different = |changed: &ShownStep| changed.step != shown.step || changed.asked != shown.asked;
    let changed = CROWD_CHANGES.iter().flat_map(|change| {
        let changed = (change.changed)(&crowds).into_iter();
        changed.map(|crowds| (change.name, step(crowds)))
    });
    changed.filter(|(_, changed)| different(changed)).collect()
}

/// Every refresh that differs from this one by one change, with the name of the change.
pub fn changed_refreshes(shown: &ShownRefresh) -> Vec<(&'static str, ShownRefresh)> {
    let Refresh { before, after } = &shown.refresh;
    // Crowds that are gone come after those that are still there.
    let mut crowds: Vec<Crowd> = Vec::new();
    for RefreshedAtom { class, atom, labels, members } in after.clone() {
        let before = before.get(&atom).cloned().unwrap_or_default();
        crowds.push(Crowd { class, atom, labels_before: None, labels, before, after: members });
    }
    for (&atom, members) in before.iter().filter(|(number, _)| after.iter().all(|atom| atom.atom != **number)) {
        let n_labels = members.first().map_or(0, |member| member.paths.len());
        let labels = vec![String::new(); n_labels];
        crowds.push(Crowd {
            class: atom,
            atom,
            labels_before: None,
            labels,
            before: members.clone(),
            after: Vec::new(),
        });
    }
    let crowds = Crowds { asked: shown.asked.clone(), crowds };
    let refresh = |crowds: Crowds| {
        let mut before: BTreeMap<u64, Vec<StepMember>> = BTreeMap::new();
        let mut after = Vec::new();
        for Crowd { class, atom, labels, before: was, after: members, .. } in crowds.crowds {
            if !was.is_empty() {
                before.entry(atom).or_default().extend(was);
            }
            if !members.is_empty() {
                after.push(RefreshedAtom { class, atom, labels, members });
            }
        }
        ShownRefresh { asked: crowds.asked, refresh: Refresh { before, after } }
    };
    let different = |changed: &ShownRefresh| changed.refresh != shown.refresh || changed.asked != shown.asked;
    let changed = CROWD_CHANGES.iter().flat_map(|change| {
        let changed = (change.changed)(&crowds).into_iter();
        changed.map(|crowds| (change.name, refresh(crowds)))
    });
    changed.filter(|(_, changed)| different(changed)).collect()
}

/// Whether somebody who is put into another crowd also stays in their own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaves {
    Yes,
    No,
}

impl Crowds {
    fn with(&self, change: impl FnOnce(&mut Crowds)) -> Crowds {
        let mut copy = self.clone();
        change(&mut copy);
        copy
    }

    fn members(&self) -> impl Iterator<Item = &StepMember> {
        self.crowds.iter().flat_map(|crowd| crowd.before.iter().chain(&crowd.after))
    }

    /// A number that is not in use.
    fn fresh(&self) -> u64 {
        let used = self.members().flat_map(|member| [member.row, member.person]);
        used.chain(self.crowds.iter().flat_map(|crowd| [crowd.atom, crowd.class])).max().map_or(1, |most| most + 1)
    }

    fn each_crowd(&self, change: fn(&mut Crowd, u64)) -> Vec<Crowds> {
        let fresh = self.fresh();
        (0..self.crowds.len()).map(|place| self.with(|copy| change(&mut copy.crowds[place], fresh))).collect()
    }

    fn each_crowd_of_list(&self, change: fn(&mut Vec<Crowd>, usize, u64)) -> Vec<Crowds> {
        let fresh = self.fresh();
        (0..self.crowds.len()).map(|place| self.with(|copy| change(&mut copy.crowds, place, fresh))).collect()
    }

    /// Changes each member before, after, and both at once. `change` gets all crowds to choose members from.
    fn each_member(&self, change: fn(&StepMember, &Crowds) -> Vec<StepMember>) -> Vec<Crowds> {
        let mut changed = Vec::new();
        for place in 0..self.crowds.len() {
            let Crowd { before, after, .. } = &self.crowds[place];
            let mut members: Vec<&StepMember> = before.iter().chain(after).collect();
            members.dedup();
            for member in members {
                for instead in change(member, self) {
                    for when in [When::Before, When::After, When::Always] {
                        changed.push(self.with(|copy| {
                            let Crowd { before, after, .. } = &mut copy.crowds[place];
                            let is_changed = |other: &&mut StepMember| other.row == member.row;
                            if when != When::After {
                                before.iter_mut().filter(is_changed).for_each(|was| *was = instead.clone());
                            }
                            if when != When::Before {
                                after.iter_mut().filter(is_changed).for_each(|is| *is = instead.clone());
                            }
                        }));
                    }
                }
            }
        }
        changed
    }

    /// Changes each place in a list of members, before and after. `change` gets a number that is not in use.
    fn each_place(&self, change: fn(&mut Vec<StepMember>, usize, u64)) -> Vec<Crowds> {
        let fresh = self.fresh();
        let mut changed = Vec::new();
        for place in 0..self.crowds.len() {
            for at in 0..self.crowds[place].before.len() {
                changed.push(self.with(|copy| change(&mut copy.crowds[place].before, at, fresh)));
            }
            for at in 0..self.crowds[place].after.len() {
                changed.push(self.with(|copy| change(&mut copy.crowds[place].after, at, fresh)));
            }
            for row in self.crowds[place].before.iter().map(|member| member.row) {
                let at = |members: &[StepMember]| members.iter().position(|member| member.row == row);
                let mut copy = self.clone();
                let Crowd { before, after, .. } = &mut copy.crowds[place];
                if let (Some(was), Some(is)) = (at(before), at(after)) {
                    change(before, was, fresh);
                    change(after, is, fresh);
                    changed.push(copy);
                }
            }
        }
        changed
    }

    fn moved(&self, leaves: Leaves) -> Vec<Crowds> {
        let mut changed = Vec::new();
        for from in 0..self.crowds.len() {
            for to in (0..self.crowds.len()).filter(|&to| to != from) {
                for when in [When::Before, When::After] {
                    let members: fn(&mut Crowd) -> &mut Vec<StepMember> = match when {
                        When::Before => |crowd| &mut crowd.before,
                        _ => |crowd| &mut crowd.after,
                    };
                    for at in 0..members(&mut self.crowds[from].clone()).len() {
                        changed.push(self.with(|copy| {
                            let own = members(&mut copy.crowds[from]);
                            let member = if leaves == Leaves::Yes { own.remove(at) } else { own[at].clone() };
                            members(&mut copy.crowds[to]).push(member);
                        }));
                    }
                }
            }
        }
        changed
    }

    /// Gives each crowd every other number of the kind, and one that is not in use.
    fn each_number(&self, number: fn(&mut Crowd) -> &mut u64) -> Vec<Crowds> {
        let mut numbers: Vec<u64> = self.clone().crowds.iter_mut().map(|crowd| *number(crowd)).collect();
        numbers.push(self.fresh());
        let places = (0..self.crowds.len()).flat_map(|place| numbers.iter().map(move |&other| (place, other)));
        places.map(|(place, other)| self.with(|copy| *number(&mut copy.crowds[place]) = other)).collect()
    }

    /// Every label above a value of the column, and one that is above none.
    fn labels_of(&self, column: usize) -> Vec<String> {
        let paths = self.members().filter_map(|member| member.paths.get(column));
        let mut labels: Vec<String> = paths.flat_map(|path| path.iter().cloned()).collect();
        labels.extend(["unseen".to_owned(), String::new()]);
        labels.sort_unstable();
        labels.dedup();
        labels
    }

    fn each_label(&self, labels: fn(&mut Crowd) -> Option<&mut Vec<String>>) -> Vec<Crowds> {
        let mut changed = Vec::new();
        for place in 0..self.crowds.len() {
            for column in 0..self.crowds[place].labels.len() {
                for label in self.labels_of(column) {
                    // Change one crowd, and then all crowds of its class.
                    changed.push(self.with(|copy| {
                        if let Some(labels) = labels(&mut copy.crowds[place]) {
                            labels[column].clone_from(&label);
                        }
                    }));
                    changed.push(self.with(|copy| {
                        let class = copy.crowds[place].class;
                        for crowd in copy.crowds.iter_mut().filter(|crowd| crowd.class == class) {
                            if let Some(labels) = labels(crowd) {
                                labels[column].clone_from(&label);
                            }
                        }
                    }));
                }
            }
        }
        changed
    }
}

fn other_row(member: &StepMember, shown: &Crowds) -> Vec<StepMember> {
    let rows = shown.members().map(|other| other.row).chain([shown.fresh()]);
    rows.map(|row| StepMember { row, ..member.clone() }).collect()
}

fn other_person(member: &StepMember, shown: &Crowds) -> Vec<StepMember> {
    let persons = shown.members().map(|other| other.person).chain([shown.fresh()]);
    persons.map(|person| StepMember { person, ..member.clone() }).collect()
}

fn other_k(member: &StepMember, _: &Crowds) -> Vec<StepMember> {
    let others = [0, 1, 2, member.k.saturating_sub(1), member.k + 1, member.k + 9, u32::MAX];
    others.into_iter().map(|k| StepMember { k, ..member.clone() }).collect()
}

fn other_path(member: &StepMember, shown: &Crowds) -> Vec<StepMember> {
    let mut changed = Vec::new();
    for column in 0..member.paths.len() {
        let path = &member.paths[column];
        let mut others: Vec<Arc<[String]>> =
            shown.members().filter_map(|other| other.paths.get(column).cloned()).collect();
        others.extend([
            Arc::from(&path[1..]),
            Arc::from(&path[..path.len() - 1]),
            Arc::from([]),
            [vec!["unseen".to_owned()], path.to_vec()].concat().into(),
        ]);
        for other in others {
            let mut copy = member.clone();
            copy.paths[column] = other;
            changed.push(copy);
        }
    }
    let mut less = member.clone();
    less.paths.pop();
    let mut more = member.clone();
    more.paths.push(Arc::from(["*".to_owned()]));
    changed.extend([less, more]);
    changed
}

fn other_value(member: &StepMember, shown: &Crowds) -> Vec<StepMember> {
    let mut changed = Vec::new();
    for column in 0..member.values.len() {
        let others = shown.members().filter_map(|other| other.values.get(column).cloned());
        for other in others.chain([None, Some("unseen".into())]) {
            let mut copy = member.clone();
            copy.values[column] = other;
            changed.push(copy);
        }
    }
    let mut less = member.clone();
    less.values.pop();
    let mut more = member.clone();
    more.values.push(None);
    changed.extend([less, more]);
    changed
}

fn seen_or_not(member: &StepMember, _: &Crowds) -> Vec<StepMember> {
    let seen = match member.seen {
        Seen::Never => Seen::Elsewhere,
        Seen::Elsewhere => Seen::Never,
    };
    vec![StepMember { seen, ..member.clone() }]
}

/// Makes the first members of a crowd a crowd of their own, in the same class or in another.
fn in_two(shown: &Crowds) -> Vec<Crowds> {
    let (fresh, mut changed) = (shown.fresh(), Vec::new());
    for place in 0..shown.crowds.len() {
        for at in 1..shown.crowds[place].after.len() {
            for class in [shown.crowds[place].class, fresh] {
                changed.push(shown.with(|copy| {
                    let crowd = &mut copy.crowds[place];
                    let after = crowd.after.split_off(at);
                    let more = Crowd { class, atom: fresh, before: Vec::new(), after, ..crowd.clone() };
                    copy.crowds.push(more);
                }));
                // The two crowds were apart from the beginning.
                changed.push(shown.with(|copy| {
                    let crowd = &mut copy.crowds[place];
                    let rest = crowd.after.split_off(at);
                    let is_of_rest = |member: &StepMember| rest.iter().any(|other| other.row == member.row);
                    let before: Vec<StepMember> = crowd.before.iter().filter(|was| is_of_rest(was)).cloned().collect();
                    crowd.before.retain(|was| !is_of_rest(was));
                    let more = Crowd { class, atom: fresh, before, after: rest.clone(), ..crowd.clone() };
                    copy.crowds.push(more);
                }));
            }
        }
    }
    changed
}

/// Moves everybody of one crowd into another: before, after and both.
fn as_one(shown: &Crowds) -> Vec<Crowds> {
    let mut changed = Vec::new();
    for from in 0..shown.crowds.len() {
        for to in (0..shown.crowds.len()).filter(|&to| to != from) {
            for when in [When::Before, When::After, When::Always] {
                changed.push(shown.with(|copy| {
                    let Crowd { before, after, .. } = copy.crowds[from].clone();
                    if when != When::After {
                        copy.crowds[from].before.clear();
                        copy.crowds[to].before.extend(before);
                    }
                    if when != When::Before {
                        copy.crowds[from].after.clear();
                        copy.crowds[to].after.extend(after);
                    }
                }));
            }
        }
    }
    changed
}

/// Other labels both before and after.
fn both_labels(shown: &Crowds) -> Vec<Crowds> {
    let mut changed = Vec::new();
    for place in 0..shown.crowds.len() {
        for column in 0..shown.crowds[place].labels.len() {
            for label in shown.labels_of(column) {
                changed.push(shown.with(|copy| {
                    let class = copy.crowds[place].class;
                    for crowd in copy.crowds.iter_mut().filter(|crowd| crowd.class == class) {
                        crowd.labels[column].clone_from(&label);
                        if let Some(before) = &mut crowd.labels_before {
                            before[column].clone_from(&label);
                        }
                    }
                }));
            }
        }
    }
    changed
}

fn wrong_number_of_labels(shown: &Crowds) -> Vec<Crowds> {
    let less = shown.each_crowd(|crowd, _| drop(crowd.labels.pop()));
    let more = shown.each_crowd(|crowd, _| crowd.labels.push("*".to_owned()));
    let less_before = shown.each_crowd(|crowd, _| drop(crowd.labels_before.as_mut().map(Vec::pop)));
    [less, more, less_before].concat()
}

fn more_is_asked(shown: &Crowds) -> Vec<Crowds> {
    let column = shown.asked.columns.first().map_or_else(|| "c0".to_owned(), |column| column.name.clone());
    let unknown = "unknown".to_owned();
    let more = vec![
        Requirement::K(3),
        Requirement::K(9),
        Requirement::DistinctL { column: column.clone(), l: 3 },
        Requirement::DistinctL { column: unknown, l: 1 },
        Requirement::EntropyL { column: column.clone(), l: 2.31 },
        Requirement::RecursiveCL { column: column.clone(), c: 1.13, l: 2 },
        Requirement::TCloseness { column: column.clone(), t: 0.213, distance: Distance::Equal },
        Requirement::TCloseness { column: column.clone(), t: 1.0, distance: Distance::Ordered },
        Requirement::Alpha { column: column.clone(), alpha: 0.413 },
        Requirement::Beta { column: column.clone(), beta: 0.313 },
        Requirement::EnhancedBeta { column, beta: 0.313 },
    ];
    more.into_iter().map(|asked| shown.with(|copy| copy.asked.requirements.push(asked))).collect()
}

/// Changes the reference: each value belonged to one person more, or to nobody.
fn other_reference(shown: &Crowds) -> Vec<Crowds> {
    let mut changed = Vec::new();
    for column in 0..shown.asked.columns.len() {
        for value in shown.asked.columns[column].reference.keys() {
            for n in [None, Some(0), Some(71)] {
                changed.push(shown.with(|copy| {
                    let reference = &mut copy.asked.columns[column].reference;
                    reference.retain(|held, _| held != value);
                    reference.extend(n.map(|n| (value.clone(), n)));
                }));
            }
        }
    }
    changed
}
