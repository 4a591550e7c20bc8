//! A change of a materialized view as the verifier sees it: atoms before and after, in texts.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use kohort_core::changing::{
    AtomId, AtomMember, ClassId, Effect, GrowingTree, Ledger, Member, MemberKey, Past, PersonKey, Shown, Standing,
    Tuple,
};
use kohort_verify::{AtomStep, Seen, ShownValues, Step, StepColumn, StepMember, verify_step};

use super::ledger::StoredLedger;
use super::members::tuple_columns;
use super::memory::{Memory, requirements};
use super::problem::MaterializedProblem;
use crate::view::Definition;

/// Recounts what effects do to atoms.
///
/// # Errors
/// Where a set of persons that readers can make out does not satisfy what is asked.
pub(super) fn verify(
    definition: &Definition,
    ledger: &StoredLedger<'_>,
    effects: &[Effect],
    newcomers: &BTreeMap<MemberKey, Member>,
) -> Result<(), MaterializedProblem> {
    let mut changing = Changing { ledger, newcomers, atoms: BTreeMap::new(), pasts: BTreeMap::new() };
    for effect in effects {
        changing.follow(effect)?;
    }
    let founded: BTreeMap<ClassId, &Vec<u32>> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Found { class, nodes } => Some((*class, nodes)),
            _ => None,
        })
        .collect();
    let memory = ledger.memory;
    let labels_of = |nodes: &[u32]| -> Vec<String> {
        memory.trees.iter().zip(nodes).map(|(tree, &node)| tree.label(node).to_owned()).collect()
    };
    let mut atoms = Vec::with_capacity(changing.atoms.len());
    for (class, before, after) in changing.atoms.values() {
        let known = memory.index.get(*class).map(|(nodes, _)| labels_of(nodes));
        let labels = founded.get(class).map(|nodes| labels_of(nodes)).or_else(|| known.clone());
        let labels = labels.ok_or_else(|| MaterializedProblem::Damaged { view: definition.name.clone() })?;
        let members = |members: &[AtomMember]| members.iter().map(|member| changing.member(member)).collect();
        let (before, after): (Result<Vec<_>, _>, Result<Vec<_>, _>) = (members(before), members(after));
        let labels_before = known.filter(|_| !founded.contains_key(class));
        atoms.push(AtomStep { labels_before, labels, before: before?, after: after? });
    }
    let unverified =
        |problem| MaterializedProblem::Unverified { view: definition.name.clone(), problem: Box::new(problem) };
    let columns = columns(definition, memory);
    verify_step(Step { atoms }, &columns, &requirements(definition, &memory.pairs)).map(drop).map_err(unverified)
}

/// What rows show beside quasi labels, with the shares of values when the view was made.
fn columns(definition: &Definition, memory: &Memory) -> Vec<StepColumn> {
    let names = tuple_columns(definition, &memory.pairs);
    let column = |(position, name): (usize, String)| {
        let counts = memory.made.counts.get(position).into_iter().flatten();
        let held = counts
            .enumerate()
            .filter_map(|(number, &count)| Some((memory.values[position].text(number as u32)?.clone(), count)));
        StepColumn { name, reference: held.collect() }
    };
    names.into_iter().enumerate().map(column).collect()
}

/// Atoms that a change touches.
struct Changing<'a> {
    ledger: &'a StoredLedger<'a>,
    newcomers: &'a BTreeMap<MemberKey, Member>,
    /// Their classes, and who was and is in them.
    atoms: BTreeMap<AtomId, (ClassId, Vec<AtomMember>, Vec<AtomMember>)>,
    pasts: BTreeMap<PersonKey, Past>,
}

impl Changing<'_> {
    fn follow(&mut self, effect: &Effect) -> Result<(), MaterializedProblem> {
        match effect {
            Effect::Admit { class, atom, members } => {
                let waiting = self.ledger.waiting_members(members.iter().map(|(key, _)| *key), self.newcomers)?;
                let admitted = members.iter().zip(waiting).map(|(&(_, standing), member)| AtomMember {
                    member,
                    standing,
                    shown: Shown::Stays,
                });
                let admitted = admitted.collect();
                self.atoms.insert(*atom, (*class, Vec::new(), admitted));
            }
            Effect::Remove { class, atom, members } => self.take(*class, *atom, members)?,
            Effect::Withdraw { class, atom, gone, survivors, .. } => {
                self.take(*class, *atom, gone)?;
                self.take(*class, *atom, survivors)?;
            }
            Effect::Remember { person, past } => {
                self.pasts.insert(*person, past.clone());
            }
            Effect::Found { .. }
            | Effect::Raise { .. }
            | Effect::Wait { .. }
            | Effect::Hide { .. }
            | Effect::ShowAlone { .. }
            | Effect::Seal { .. }
            | Effect::Leave { .. }
            | Effect::Dissolve { .. }
            | Effect::Forget { .. } => {}
        }
        Ok(())
    }

    fn take(&mut self, class: ClassId, atom: AtomId, keys: &[MemberKey]) -> Result<(), MaterializedProblem> {
        if let std::collections::btree_map::Entry::Vacant(entry) = self.atoms.entry(atom) {
            let members = self.ledger.atom(atom)?;
            entry.insert((class, members.clone(), members));
        }
        if let Some((_, _, after)) = self.atoms.get_mut(&atom) {
            let keys: HashSet<MemberKey> = keys.iter().copied().collect();
            after.retain(|member| !keys.contains(&member.member.key));
        }
        Ok(())
    }

    fn member(&self, member: &AtomMember) -> Result<StepMember, MaterializedProblem> {
        let AtomMember { member, standing, .. } = member;
        let memory = self.ledger.memory;
        let path = |(tree, &node): (&GrowingTree, &u32)| {
            let up = std::iter::successors(Some(node), |&node| tree.parent(node));
            up.map(|node| tree.label(node).to_owned()).collect()
        };
        let texts = |tuple: &Tuple| -> ShownValues {
            let text = |(values, &number): (&super::memory::Values, &u32)| values.text(number).cloned().flatten();
            memory.values.iter().zip(tuple).map(text).collect()
        };
        let past = match (standing, self.pasts.get(&member.person)) {
            (Standing::Core, _) => Past::Nothing,
            (Standing::Rider, Some(past)) => past.clone(),
            (Standing::Rider, None) => self.ledger.past(member.person)?,
        };
        Ok(StepMember {
            person: member.person.0,
            k: member.k,
            paths: memory.trees.iter().zip(&member.nodes).map(path).collect(),
            values: texts(&member.tuple),
            remembered: match past {
                Past::Among(tuples) => tuples.iter().map(texts).collect(),
                Past::Nothing | Past::Alone => BTreeSet::new(),
            },
            seen: match standing {
                Standing::Core => Seen::Never,
                Standing::Rider => Seen::Elsewhere,
            },
        })
    }
}
