//! [`Materialized::remake`]: partitions a view anew that may have been read before.
//!
//! Rows that did not change keep their keys, and it stays known what readers have seen of each person.
//! `kohort_core::changing::refresh` decides how much of the new partition can be shown so that readers of the old one
//! can't single out anybody. `verify_refresh` recounts it, and it is written like a change. With FORCE the view is made as
//! if nobody had read it, and what readers have seen is forgotten.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use indexmap::IndexSet;
use kohort_core::changing::{
    AtomId, AtomMember, ClassId, Combined, Effect, Ledger, Member, MemberKey, NewClass, OldAtom, Past, Place,
    Refreshed, Shown, refresh,
};
use kohort_core::loss::NcpOfLabels;
use kohort_store::Change;

use super::Materialized;
use super::crowds::Crowds;
use super::error::MaterializedError;
use super::follow::{Arrival, KeyedRow, RowState};
use super::layout::Layout;
use super::ledger::{KeptRow, Persons, StoredLedger};
use super::load::{classes, load};
use super::make::{Making, ValueCounts, fix_shares, made};
use super::members::{NewRow, asks_of_values, new_rows};
use super::memory::{Counters, Made, Memory};
use super::step::verify_remade;
use super::write::Writing;
use crate::parser::Refresh;
use crate::view::{Version, ViewError};

/// A view that was made anew.
pub(crate) struct Remade {
    pub view: Materialized,
    /// What became of the old view.
    pub told: Told,
}

/// What the owner is told about a refresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// Everything is shown anew, and readers of both views can't single out anybody.
    Whole,
    /// Some persons stay as they were or are not shown.
    Partial {
        /// Persons in classes that did not change.
        n_kept: u64,
        /// Persons who are hidden.
        n_hidden: u64,
        /// Persons who wait.
        n_waiting: u64,
        /// What readers could have combined if all were shown.
        combined: Combined,
    },
    /// Everything is shown anew. Tells what readers of both can combine, if that is known.
    Forced(Option<Combined>),
}

impl Materialized {
    /// Makes the view anew within a change.
    ///
    /// # Errors
    /// If readers of both views could single out persons, unless the refresh is forced or partial.
    pub(crate) fn remake(&self, change: &Change, making: &Making<'_>, how: Refresh) -> Result<Remade, ViewError> {
        let (old_memory, _) = load(&self.layout, change)?;
        let counters = Counters { epoch: old_memory.counters.epoch + 1, ..old_memory.counters };
        let compared = self.compare(change, making, old_memory)?;
        match how {
            Refresh::Force => {
                let told = Told::Forced(compared.as_ref().map(|compared| compared.plan.refreshed.combined));
                drop(compared);
                Ok(Remade { view: Materialized::make_from(change, making, counters)?, told })
            }
            Refresh::Whole | Refresh::Partial => {
                let other_readers = || MaterializedError::OtherReaders { view: self.layout.definition.name.clone() };
                let compared = compared.ok_or_else(other_readers)?;
                let Combined { n_exposed, fewest } = compared.plan.refreshed.combined;
                if how == Refresh::Whole && n_exposed > 0 {
                    let (view, fewest) = (self.layout.definition.name.clone(), fewest.unwrap_or(1));
                    return Err(MaterializedError::Exposes { view, n_exposed, fewest }.into());
                }
                self.show(change, making, compared)
            }
        }
    }

    /// Compares what is shown with a new version; `None` if the rows of both can't be compared.
    fn compare(&self, change: &Change, making: &Making<'_>, old: Memory) -> Result<Option<Compared>, ViewError> {
        let definition = &self.layout.definition;
        let mut made = made(definition, making)?;
        if !take_order_of_pairs(&mut made, &old.made) && asks_of_values(definition) {
            return Ok(None);
        }
        let has_other_trees = made.hierarchies != old.made.hierarchies || made.roots != old.made.roots;
        let mut memory = Memory::new(definition, made, old.counters)?;
        // Keep the numbers of values and choices, so that rows can be compared.
        memory.values = old.values.clone();
        (memory.choices, memory.restricting) = (old.choices.clone(), old.restricting.clone());
        memory.made.marked.clone_from(&old.made.marked);
        if !has_other_trees {
            memory.trees.clone_from(&old.trees);
        }
        let persons = Persons::default();
        let of_old = StoredLedger { state: change, layout: &self.layout, memory: &old, persons: &persons };
        let kept = of_old.rows(Vec::new())?;
        let policies = making.policies.as_ref();
        let rows = new_rows(definition, &memory, &making.rows, policies.map(|rows| &rows.policies))?;
        let mut writing = self.writing(change, making, &mut memory, &persons);
        let members = writing.keyed(&rows, &kept, policies)?;
        let mut compared =
            Compared { old, memory, persons, kept, has_other_trees, rows, members, plan: RefreshPlan::default() };
        let (new, alone) = compared.new_classes(&self.layout, making.version)?;
        let mut counts = ValueCounts::default();
        new.iter().flat_map(|class| &class.members).for_each(|member| counts.add(&member.tuple));
        fix_shares(&mut compared.memory, definition, counts)?;
        compared.plan = compared.plan(&self.layout, change, new, alone)?;
        Ok(Some(compared))
    }

    fn writing<'a>(
        &'a self,
        change: &'a Change,
        making: &'a Making<'_>,
        memory: &'a mut Memory,
        persons: &'a Persons,
    ) -> Writing<'a> {
        Writing { layout: &self.layout, memory, change, persons, rows: &making.rows, now: making.now }
    }

    /// Writes what can be shown.
    fn show(&self, change: &Change, making: &Making<'_>, compared: Compared) -> Result<Remade, ViewError> {
        let Compared { old, mut memory, persons, kept, has_other_trees, rows, members, plan } = compared;
        let told = plan.told();
        // Classes that stay have labels of the old DGHs.
        if has_other_trees && !plan.refreshed.kept.is_empty() {
            return Err(MaterializedError::OtherHierarchies { view: self.layout.definition.name.clone() }.into());
        }
        let n_values: Vec<usize> = old.values.iter().map(IndexSet::len).collect();
        memory.counters.epoch += 1;
        if !has_other_trees {
            memory.index.clone_from(&old.index);
        }
        (memory.alone, memory.restricted) = (old.alone.clone(), old.restricted.clone());
        let (verified, mut effects) = {
            let ledger = StoredLedger { state: change, layout: &self.layout, memory: &memory, persons: &persons };
            let effects = plan.refreshed.effects(&plan.old, &plan.new, ledger.unused()?);
            ledger.look_up_all_pasts()?;
            (verify_remade(&self.layout.definition, &ledger, (&plan.old, &old), &effects)?, effects)
        };
        let shown_in = plan.classes_that_stay();
        let classes = classes(&self.layout, change)?.into_iter().filter(|((_, is_alone, _), _)| !is_alone);
        let classes = classes.map(|((number, ..), _)| ClassId(number.cast_unsigned()));
        let empty = classes.filter(|class| !shown_in.contains(class)).map(|class| Effect::Dissolve { class });
        effects.extend(empty.collect::<Vec<_>>());
        memory.index.follow(&memory.trees, &effects);
        memory.made.ncp_when_made = Some(ncp(&memory, &shown_in, &effects));
        let others = plan.others(&memory, &persons, &kept, &members, &effects);
        effects.extend(others);
        let arrivals = arrivals(&rows, &members);
        let mut writing = self.writing(change, making, &mut memory, &persons);
        writing.write(&Crowds::of_refresh(&verified), &effects, arrivals)?;
        writing.write_values(&n_values)?;
        memory.put_counters(&self.layout, change)?;
        memory.put_made(&self.layout, change)?;
        let definition = Arc::clone(&making.version.definition);
        let view = Materialized::open(definition, making.origin.clone(), change, making.most_kept_bytes)?;
        Ok(Remade { view, told })
    }
}

/// Gives the pairs of a new version the order of the old one; `false` if they are not the same pairs.
fn take_order_of_pairs(made: &mut Made, old: &Made) -> bool {
    let of = |made: &Made| made.pairs.iter().cloned().collect::<BTreeSet<_>>();
    let are_same = of(made) == of(old);
    if are_same {
        made.pairs.clone_from(&old.pairs);
    }
    are_same
}

/// The mean loss of what is shown: classes that stay, and classes that effects found.
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

/// The rows that are new to the tables. They are hidden unless effects say otherwise.
fn arrivals<'r>(rows: &'r [NewRow], members: &[KeyedRow]) -> Arrivals<'r> {
    let new = rows.iter().zip(members).filter(|(_, keyed)| keyed.was != Some(keyed.key));
    let arrival = |(row, keyed): (&'r NewRow, &KeyedRow)| {
        let (choice, member) = (keyed.choice, keyed.member.clone());
        (keyed.key, Arrival { row, choice, member, state: RowState::HIDDEN })
    };
    new.map(arrival).collect()
}

/// Rows that are new to the tables.
type Arrivals<'r> = BTreeMap<MemberKey, Arrival<'r>>;

/// New classes with their members, and members who ask for no class.
type NewClasses = (Vec<NewClass<Arc<Member>>>, Vec<Arc<Member>>);

/// What is shown, compared with a new version of the view.
struct Compared {
    /// The memory of the old view.
    old: Memory,
    memory: Memory,
    persons: Persons,
    kept: Vec<KeptRow>,
    /// Whether the DGHs differ from those the view was made with.
    has_other_trees: bool,
    rows: Vec<NewRow>,
    members: Vec<KeyedRow>,
    plan: RefreshPlan,
}

impl Compared {
    /// The classes of the new version with their members, and the members who ask for no class.
    fn new_classes(&self, layout: &Layout, version: &Version) -> Result<NewClasses, MaterializedError> {
        let members = self.rows.iter().zip(&self.members);
        let members: HashMap<usize, &Arc<Member>> =
            members.filter_map(|(row, keyed)| Some((row.place, keyed.member.as_ref()?))).collect();
        let directory = version.directory(None);
        let (mut new, mut alone) = (Vec::new(), Vec::new());
        for class in 0..directory.n_classes() as u32 {
            let rows = directory.rows(&[class]).into_iter();
            let of_class = rows.filter_map(|row| members.get(&(row as usize)).map(|&member| Arc::clone(member)));
            if directory.class(class).is_alone {
                alone.extend(of_class);
            } else {
                let nodes = self.memory.nodes(&directory.labels().of(class)).ok_or_else(|| layout.damaged())?;
                new.push(NewClass { nodes, members: of_class.collect() });
            }
        }
        Ok((new, alone))
    }

    fn plan(
        &self,
        layout: &Layout,
        change: &Change,
        new: Vec<NewClass<Arc<Member>>>,
        alone: Vec<Arc<Member>>,
    ) -> Result<RefreshPlan, ViewError> {
        let mut old: BTreeMap<AtomId, OldAtom> = BTreeMap::new();
        for row in &self.kept {
            if let Place::Atom { class, atom } = row.place {
                let members = &mut old.entry(atom).or_insert(OldAtom { class, atom, members: Vec::new() }).members;
                members.push(AtomMember { member: row.member.clone(), shown: row.shown });
            }
        }
        let old: Vec<OldAtom> = old.into_values().collect();
        let ledger = StoredLedger { state: change, layout, memory: &self.memory, persons: &self.persons };
        ledger.look_up_all_pasts()?;
        let refreshed = refresh(&self.memory.standard, &old, &new, |person| ledger.past(person))?;
        let seen = alone.iter().map(|member| ledger.past(member.person)).collect::<Result<Vec<_>, _>>()?;
        let alone = alone.into_iter().zip(seen).collect();
        Ok(RefreshPlan { old, new, alone, refreshed })
    }
}

/// What is shown of a new version.
#[derive(Default)]
struct RefreshPlan {
    old: Vec<OldAtom>,
    new: Vec<NewClass<Arc<Member>>>,
    /// The members who ask for no class, and what readers have seen of them.
    alone: Vec<(Arc<Member>, Past)>,
    refreshed: Refreshed,
}

impl RefreshPlan {
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

    /// The effects for all members who are not shown anew in a crowd.
    fn others(
        &self,
        memory: &Memory,
        persons: &Persons,
        kept: &[KeptRow],
        members: &[KeyedRow],
        effects: &[Effect],
    ) -> Vec<Effect> {
        let there: HashMap<MemberKey, Option<&Arc<Member>>> =
            members.iter().map(|keyed| (keyed.key, keyed.member.as_ref())).collect();
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
                // The row is in the table, but the new version leaves it out.
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
            // A former crowd member who is shown alone would be identified in old answers.
            let was_in_crowd = in_crowds.contains(&member.person.0) || *past == Past::InCrowd;
            if !was_in_crowd && places.get(&member.key) != Some(&Place::Alone) {
                others.push(Effect::ShowAlone { member: member.as_ref().clone() });
                others.push(Effect::Remember { person: member.person, past: Past::Alone });
            }
        }
        self.find_classes(memory, effects, others)
    }

    /// Lets members wait at their nearest class, or founds a class if there is none.
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
