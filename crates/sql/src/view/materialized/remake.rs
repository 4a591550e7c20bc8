//! [`Materialized::remake`]: partitioning a view anew that was read before.
//!
//! Rows that did not change keep their keys, and persons what readers have seen of them. What can be shown of the fresh
//! partition so that readers of the old one make out nobody is decided by `kohort_core::changing::refresh`, recounted by
//! `verify_refresh`, and written as a change is. By force the view is made as if nobody had read it, and everything that
//! was remembered is forgotten.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use kohort_core::changing::{
    AtomId, AtomMember, ClassId, Combined, Effect, Ledger, Member, MemberKey, NewClass, OldAtom, Past, Place,
    Refreshed, Shown, refresh,
};
use kohort_core::loss::NcpOfLabels;
use kohort_store::Change;

use super::Materialized;
use super::cells::KeptCells;
use super::crowds::Crowds;
use super::error::MaterializedError;
use super::follow::{Arrival, COUNTERS, Changed, RowState};
use super::ledger::{KeptRow, Persons};
use super::load::load;
use super::make::{ClassOfVersion, MADE, Making, ValueCounts, classes_of_version, fix_shares, made};
use super::members::{NewRow, asks_of_values, new_rows};
use super::memory::{Counters, Made, Memory, Values};
use super::step::verify_remade;
use super::write::Writing;
use crate::parser::Refresh;
use crate::view::ViewError;

/// A view that was made anew.
pub struct Remade {
    /// The view.
    pub view: Materialized,
    /// What became of the old one.
    pub told: Told,
}

/// What the owner is told of a refresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Everything is shown anew, and readers of both make out nobody.
    Whole,
    /// So many persons stay as they were or are not shown, and what showing them would have told.
    Partial {
        /// Persons in classes that stay as they are.
        n_kept: u64,
        /// Persons who are hidden.
        n_hidden: u64,
        /// Persons who wait.
        n_waiting: u64,
        /// What readers could combine, if all were shown.
        combined: Combined,
    },
    /// Everything is shown anew; what readers of both can combine, where it can be told.
    Forced(Option<Combined>),
}

impl Materialized {
    /// Makes it anew within a change.
    ///
    /// # Errors
    /// Where readers of the old and the new could tell persons apart, unless that is forced or only what is safe is to
    /// be shown.
    pub fn remake(&self, change: &Change, making: &Making<'_>, how: Refresh) -> Result<Remade, ViewError> {
        let (old_memory, _) = load(&self.definition, &self.layout, change)?;
        let counters = Counters { epoch: old_memory.counters.epoch + 1, ..old_memory.counters };
        let compared = self.compare(change, making, old_memory)?;
        match how {
            Refresh::Force => {
                let told = Told::Forced(compared.as_ref().map(|compared| compared.plan.refreshed.combined));
                drop(compared);
                Ok(Remade { view: Materialized::make_from(change, making, counters)?, told })
            }
            Refresh::Whole | Refresh::Partial => {
                let other_readers = || MaterializedError::OtherReaders { view: self.definition.name.clone() };
                let compared = compared.ok_or_else(other_readers)?;
                let Combined { n_exposed, fewest } = compared.plan.refreshed.combined;
                if how == Refresh::Whole && n_exposed > 0 {
                    let (view, fewest) = (self.definition.name.clone(), fewest.unwrap_or(1));
                    return Err(MaterializedError::Exposes { view, n_exposed, fewest }.into());
                }
                self.show(change, making, compared)
            }
        }
    }

    /// Compares what is shown with a version; `None` where the rows of both can't be compared.
    fn compare(&self, change: &Change, making: &Making<'_>, old: Memory) -> Result<Option<Compared>, ViewError> {
        let definition = &self.definition;
        let mut made = made(definition, making)?;
        if !take_order_of_pairs(&mut made, &old.made) && asks_of_values(definition) {
            return Ok(None);
        }
        let has_other_trees = made.hierarchies != old.made.hierarchies || made.roots != old.made.roots;
        let mut memory = Memory::new(definition, made, old.counters)?;
        // Numbers of values and choices stay, so that rows can be compared.
        memory.values = old.values.clone();
        (memory.choices, memory.restricting) = (old.choices.clone(), old.restricting.clone());
        memory.made.marked.clone_from(&old.made.marked);
        if !has_other_trees {
            memory.trees.clone_from(&old.trees);
        }
        let persons = Persons::default();
        let kept = self.ledger(&old, change, &persons).rows(Vec::new())?;
        let policies = making.policies.as_ref();
        let rows = new_rows(definition, &memory, &making.rows, policies.map(|rows| &rows.policies))?;
        let mut compared =
            Compared { old, memory, persons, kept, has_other_trees, rows, members: Vec::new(), plan: Plan::default() };
        compared.take_members(self, change, making)?;
        let classes = compared.classes(making);
        let counts = compared.value_counts(&classes);
        fix_shares(&mut compared.memory, definition, counts)?;
        compared.plan = compared.plan(self, change, &classes)?;
        Ok(Some(compared))
    }

    /// Shows what can be shown.
    fn show(&self, change: &Change, making: &Making<'_>, compared: Compared) -> Result<Remade, ViewError> {
        let Compared { old, mut memory, persons, kept, has_other_trees, rows, members, plan } = compared;
        let told = plan.told();
        // Labels of classes that stay are those of the old DGHs.
        if has_other_trees && !plan.refreshed.kept.is_empty() {
            return Err(MaterializedError::OtherHierarchies { view: self.definition.name.clone() }.into());
        }
        let n_values: Vec<usize> = old.values.iter().map(Values::len).collect();
        memory.counters.epoch += 1;
        if !has_other_trees {
            memory.index.clone_from(&old.index);
        }
        (memory.alone, memory.restricted) = (old.alone.clone(), old.restricted.clone());
        let (verified, mut effects) = {
            let ledger = self.ledger(&memory, change, &persons);
            let effects = plan.refreshed.effects(&plan.old, &plan.new, ledger.unused()?);
            ledger.look_up_all_pasts()?;
            (verify_remade(&self.definition, &ledger, (&plan.old, &old), &effects)?, effects)
        };
        let shown_in = plan.classes_that_stay();
        let classes = self.labels(change)?.into_iter().filter(|(_, is_alone, _)| !is_alone);
        let classes = classes.map(|(number, ..)| ClassId(number.cast_unsigned()));
        let empty = classes.filter(|class| !shown_in.contains(class)).map(|class| Effect::Dissolve { class });
        effects.extend(empty.collect::<Vec<_>>());
        memory.index.follow(&memory.trees, &effects);
        memory.made.ncp_when_made = Some(ncp(&memory, &shown_in, &effects));
        let others = plan.others(&memory, &persons, &kept, &members, &effects);
        effects.extend(others);
        let arrivals = arrivals(&rows, &members, &kept);
        let changed = Changed::of_nobody(&making.rows, making.now);
        let mut writing = Writing { view: self, memory: &mut memory, change, persons: &persons, changed: &changed };
        writing.write(&Crowds::of_refresh(&verified), &effects, arrivals)?;
        self.write_values(&memory, change, &n_values)?;
        let (name, store) = (&self.definition.name, MaterializedError::Store);
        let counters = serde_json::to_string(&memory.counters).expect("numbers are JSON");
        change.put_record(COUNTERS, name, &counters).map_err(store)?;
        let made = serde_json::to_string(&memory.made).expect("texts and numbers are JSON");
        change.put_record(MADE, name, &made).map_err(store)?;
        let (mut memory, table) = load(&self.definition, &self.layout, change)?;
        let (definition, layout) = (Arc::clone(&making.version.definition), self.layout.clone());
        memory.kept = KeptCells::read(&layout, &definition, change, making.most_kept_bytes)?.map(Arc::new);
        let view = Materialized::with(definition, making.origin.clone(), layout, memory, table)?;
        Ok(Remade { view, told })
    }
}

/// Gives the pairs of a new version the order of the old one; `false` where they are others.
fn take_order_of_pairs(made: &mut Made, old: &Made) -> bool {
    let of = |made: &Made| made.pairs.iter().cloned().collect::<BTreeSet<_>>();
    let are_same = of(made) == of(old);
    if are_same {
        made.pairs.clone_from(&old.pairs);
    }
    are_same
}

/// Mean loss of what is shown: classes that stay, and those that effects found.
fn ncp(memory: &Memory, stay: &BTreeSet<ClassId>, effects: &[Effect]) -> f64 {
    let founded = effects.iter().filter_map(|effect| match effect {
        Effect::Found { class, .. } => Some(*class),
        _ => None,
    });
    let mut ncp = NcpOfLabels::new(&memory.trees);
    for class in stay.iter().copied().chain(founded) {
        if let Some((nodes, n_members)) = memory.index.get(class) {
            ncp.add(nodes, n_members);
        }
    }
    ncp.mean()
}

/// Rows that are new to the tables. Where effects say nothing else of them, they are hidden.
fn arrivals<'r>(rows: &'r [NewRow], members: &Members, kept: &[KeptRow]) -> Arrivals<'r> {
    let known: BTreeSet<MemberKey> = kept.iter().map(|row| row.member.key).collect();
    let mut arrivals = BTreeMap::new();
    for (row, (key, choice, member)) in rows.iter().zip(members) {
        if !known.contains(key) {
            arrivals.insert(*key, Arrival { row, choice: *choice, member: member.clone(), state: RowState::HIDDEN });
        }
    }
    arrivals
}

/// Rows that are new to the tables.
type Arrivals<'r> = BTreeMap<MemberKey, Arrival<'r>>;

/// Per row its key, the number of what its person allows, and its member, where a DGH takes it.
type Members = Vec<(MemberKey, Option<i64>, Option<Arc<Member>>)>;

/// What is shown, beside a fresh version of the view.
struct Compared {
    /// What was in memory of the old one.
    old: Memory,
    memory: Memory,
    persons: Persons,
    kept: Vec<KeptRow>,
    /// Whether DGHs are others than when the view was made.
    has_other_trees: bool,
    rows: Vec<NewRow>,
    members: Members,
    plan: Plan,
}

impl Compared {
    /// Makes rows members, those that did not change under the keys they had.
    fn take_members(&mut self, view: &Materialized, change: &Change, making: &Making<'_>) -> Result<(), ViewError> {
        let Compared { memory, persons, kept, rows, members, .. } = self;
        let current = kept.iter().filter(|row| row.shown == Shown::Stays);
        let current: HashMap<&str, &KeptRow> = current.map(|row| (row.name.as_str(), row)).collect();
        let mut next = change.next_row(&view.layout.rows).map_err(MaterializedError::Store)?;
        for row in rows.iter() {
            let choice = view.choice(memory, change, row, making.policies.as_ref())?;
            let key = MemberKey(next.cast_unsigned());
            let mut member = memory.member(row, choice, key, persons.shared_key(&row.name));
            let known = current.get(row.name.as_ref()).filter(|was| match &member {
                // What no DGH takes stays hidden.
                None => was.nodes == "[]" && was.member.k == row.k,
                Some(member) => {
                    let leaves = serde_json::to_string(&memory.labels(&member.nodes)).expect("texts are JSON");
                    was.member.k == member.k && was.nodes == leaves && was.member.tuple == member.tuple
                }
            });
            let key = known.map_or(key, |was| was.member.key);
            next += i64::from(known.is_none());
            if let Some(member) = &mut member {
                member.key = key;
            }
            members.push((key, choice, member.map(Arc::new)));
        }
        Ok(())
    }

    /// The classes of the version, with who is in them.
    fn classes(&self, making: &Making<'_>) -> Vec<ClassOfVersion> {
        let rows = self.rows.iter().zip(&self.members);
        classes_of_version(
            making.version,
            rows.filter_map(|(row, (key, _, member))| Some((row.place, member.as_ref().map(|_| *key)?))),
        )
    }

    fn value_counts(&self, classes: &[ClassOfVersion]) -> ValueCounts {
        let crowds = classes.iter().filter(|class| !class.is_alone);
        let in_crowds: HashSet<MemberKey> = crowds.flat_map(|class| class.members.iter().copied()).collect();
        let mut counts = ValueCounts::default();
        for member in self.members.iter().filter_map(|(_, _, member)| member.as_ref()) {
            if in_crowds.contains(&member.key) {
                counts.add(&member.tuple);
            }
        }
        counts
    }

    fn plan(&self, view: &Materialized, change: &Change, classes: &[ClassOfVersion]) -> Result<Plan, ViewError> {
        let mut old: BTreeMap<AtomId, OldAtom> = BTreeMap::new();
        for row in &self.kept {
            if let Place::Atom { class, atom } = row.place {
                let members = &mut old.entry(atom).or_insert(OldAtom { class, atom, members: Vec::new() }).members;
                members.push(AtomMember { member: row.member.clone(), shown: row.shown });
            }
        }
        let old: Vec<OldAtom> = old.into_values().collect();
        let by_key: HashMap<MemberKey, &Arc<Member>> =
            self.members.iter().filter_map(|(key, _, member)| Some((*key, member.as_ref()?))).collect();
        let damaged = || MaterializedError::Damaged { view: view.definition.name.clone() };
        let (mut new, mut alone) = (Vec::new(), Vec::new());
        for class in classes {
            let members = class.members.iter().map(|key| Arc::clone(by_key[key]));
            if class.is_alone {
                alone.extend(members);
            } else {
                let nodes = self.memory.nodes(&class.labels).ok_or_else(damaged)?;
                new.push(NewClass { nodes, members: members.collect() });
            }
        }
        let ledger = view.ledger(&self.memory, change, &self.persons);
        ledger.look_up_all_pasts()?;
        let refreshed = refresh(&self.memory.standard, &old, &new, |person| ledger.past(person))?;
        let seen = alone.iter().map(|member| ledger.past(member.person)).collect::<Result<Vec<_>, _>>()?;
        let alone = alone.into_iter().zip(seen).collect();
        Ok(Plan { old, new, alone, refreshed })
    }
}

/// What is shown of a fresh version.
#[derive(Default)]
struct Plan {
    old: Vec<OldAtom>,
    new: Vec<NewClass<Arc<Member>>>,
    /// Who asks for no class, and what readers have seen of them.
    alone: Vec<(Arc<Member>, Past)>,
    refreshed: Refreshed,
}

impl Plan {
    fn told(&self) -> Told {
        let Refreshed { combined, kept, waiting, sealed, hidden, .. } = &self.refreshed;
        if combined.n_exposed == 0 {
            return Told::Whole;
        }
        Told::Partial {
            n_kept: kept.iter().map(|&atom| self.old[atom].members.len() as u64).sum(),
            n_hidden: (sealed.len() + hidden.len()) as u64,
            n_waiting: waiting.len() as u64,
            combined: *combined,
        }
    }

    /// The classes of atoms that stay as they are.
    fn classes_that_stay(&self) -> BTreeSet<ClassId> {
        self.refreshed.kept.iter().map(|&atom| self.old[atom].class).collect()
    }

    /// What becomes of everybody who is not shown anew.
    fn others(
        &self,
        memory: &Memory,
        persons: &Persons,
        kept: &[KeptRow],
        members: &Members,
        effects: &[Effect],
    ) -> Vec<Effect> {
        let there: HashMap<MemberKey, Option<&Arc<Member>>> =
            members.iter().map(|(key, _, member)| (*key, member.as_ref())).collect();
        let shown: BTreeSet<MemberKey> = self.refreshed.atoms.iter().flatten().flatten().copied().collect();
        let kept_atoms: BTreeSet<AtomId> = self.refreshed.kept.iter().map(|&atom| self.old[atom].atom).collect();
        let mut others = Vec::new();
        for row in kept {
            let (key, is_there) = (row.member.key, there.contains_key(&row.member.key));
            match row.place {
                Place::Atom { atom, .. } if kept_atoms.contains(&atom) => {
                    if !is_there && row.shown == Shown::Stays {
                        others.push(Effect::Leave { member: key });
                        others.push(Effect::Remember { person: persons.key(&row.name), past: Past::InCrowd });
                    }
                }
                // The version leaves them out, and they are in the table.
                Place::Atom { .. } if is_there && !shown.contains(&key) => {
                    others.push(Effect::Hide { member: row.member.clone() });
                }
                Place::Atom { .. } => {}
                Place::Waiting(_) | Place::Hidden | Place::Alone if !is_there => {
                    others.push(Effect::Forget { member: key });
                }
                Place::Waiting(_) if !shown.contains(&key) && !self.refreshed.sealed.contains(&key) => {
                    others.push(Effect::Wait { class: ClassId(0), member: row.member.clone() });
                }
                Place::Waiting(_) | Place::Hidden | Place::Alone => {}
            }
        }
        let waits = |effect: &Effect| match effect {
            Effect::Wait { member, .. } => Some(member.key),
            _ => None,
        };
        let known: BTreeSet<MemberKey> = others.iter().filter_map(waits).collect();
        for key in self.refreshed.waiting.iter().filter(|key| !known.contains(key)) {
            if let Some(Some(member)) = there.get(key) {
                others.push(Effect::Wait { class: ClassId(0), member: member.as_ref().clone() });
            }
        }
        let places: HashMap<MemberKey, Place> = kept.iter().map(|row| (row.member.key, row.place)).collect();
        let in_crowds: BTreeSet<u64> =
            self.old.iter().flat_map(|old| &old.members).map(|member| member.member.person.0).collect();
        for (member, past) in &self.alone {
            // Who was shown in a crowd and is shown alone would be known in the crowd.
            let was_in_crowd = in_crowds.contains(&member.person.0) || *past == Past::InCrowd;
            if !was_in_crowd && places.get(&member.key) != Some(&Place::Alone) {
                others.push(Effect::ShowAlone { member: member.as_ref().clone() });
                others.push(Effect::Remember { person: member.person, past: Past::Alone });
            }
        }
        self.find_classes(memory, effects, others)
    }

    /// Gives whoever waits the nearest class, or founds one where there is none.
    fn find_classes(&self, memory: &Memory, effects: &[Effect], mut others: Vec<Effect>) -> Vec<Effect> {
        let used = effects.iter().filter_map(|effect| match effect {
            Effect::Found { class, .. } => Some(class.0 + 1),
            _ => None,
        });
        let next_class = ClassId(used.fold(memory.counters.next_class, u64::max));
        let mut founded = None;
        for effect in &mut others {
            if let Effect::Wait { class, member } = effect {
                *class = match memory.index.nearest(&memory.trees, &member.nodes) {
                    Some((nearest, _)) => nearest,
                    None => {
                        founded.get_or_insert_with(|| member.nodes.clone());
                        next_class
                    }
                };
            }
        }
        let found = founded.map(|nodes| Effect::Found { class: next_class, nodes });
        found.into_iter().chain(others).collect()
    }
}
