//! Changes of a materialized view as the verifier sees them: atoms before and after, in texts.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use kohort_core::changing::{
    AtomId, AtomMember, ClassId, Effect, GrowingTree, Ledger, Member, MemberKey, OldAtom, Past, Shown,
};
use kohort_verify::{
    AtomStep, Refresh, RefreshedAtom, Seen, Step, StepColumn, StepMember, Verified, verify_refresh, verify_step,
};

use super::error::MaterializedError;
use super::ledger::StoredLedger;
use super::members::tuple_columns;
use super::memory::{Memory, requirements};
use crate::view::Definition;

/// Has the verifier recount what effects do to atoms.
///
/// # Errors
/// If a set of persons that readers can tell apart does not satisfy the requirements.
pub(super) fn verify(
    definition: &Definition,
    ledger: &StoredLedger<'_>,
    effects: &[Effect],
    newcomers: &BTreeMap<MemberKey, Member>,
) -> Result<Verified<Step>, MaterializedError> {
    let mut changing = Changing { ledger, newcomers, atoms: BTreeMap::new() };
    for effect in effects {
        changing.apply(effect)?;
    }
    let founded: BTreeMap<ClassId, &Vec<u32>> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Found { class, nodes } => Some((*class, nodes)),
            _ => None,
        })
        .collect();
    let memory = ledger.memory;
    let mut texts = StepTexts::of(memory);
    let mut atoms = Vec::with_capacity(changing.atoms.len());
    for (atom, (class, before, after)) in &changing.atoms {
        let known = memory.index.get(*class).map(|(nodes, _)| labels_of(memory, nodes));
        let labels = founded.get(class).map(|nodes| labels_of(memory, nodes)).or_else(|| known.clone());
        let labels = labels.ok_or_else(|| ledger.layout.damaged())?;
        let labels_before = known.filter(|_| !founded.contains_key(class));
        // Members who stay in an atom were seen in it. Only newcomers must not have been seen elsewhere.
        let seen = if before.is_empty() { ledger.seen(after)? } else { vec![Seen::Never; after.len()] };
        let before = texts.members(before, &vec![Seen::Never; before.len()]);
        let after = texts.members(after, &seen);
        atoms.push(AtomStep { class: class.0, atom: atom.0, labels_before, labels, before, after });
    }
    let unverified =
        |problem| MaterializedError::Unverified { view: definition.name.clone(), problem: Box::new(problem) };
    let columns = columns(definition, memory);
    verify_step(Step { atoms }, &columns, &requirements(definition, &memory.made.pairs)).map_err(unverified)
}

/// Has the verifier recount what a refresh shows, together with what was shown before, in persons and texts of both times.
///
/// # Errors
/// If a set of persons that readers of both can tell apart does not satisfy the requirements.
pub(super) fn verify_remade(
    definition: &Definition,
    ledger: &StoredLedger<'_>,
    (old, memory_before): (&[OldAtom], &Memory),
    effects: &[Effect],
) -> Result<Verified<Refresh>, MaterializedError> {
    let memory = ledger.memory;
    let damaged = || ledger.layout.damaged();
    let mut before_texts = StepTexts::of(memory_before);
    let unasked = |members: &[AtomMember]| vec![Seen::Never; members.len()];
    let before =
        old.iter().map(|old| (old.atom.0, before_texts.members(&old.members, &unasked(&old.members)))).collect();
    let mut atoms: BTreeMap<AtomId, (ClassId, Vec<AtomMember>)> =
        old.iter().map(|old| (old.atom, (old.class, old.members.clone()))).collect();
    let mut labels: BTreeMap<ClassId, Vec<String>> = BTreeMap::new();
    let mut waiting: HashMap<MemberKey, &Member> = HashMap::new();
    for effect in effects {
        match effect {
            Effect::Found { class, nodes } => {
                labels.insert(*class, labels_of(memory, nodes));
            }
            Effect::Remove { atom, members, .. } => {
                let (_, left) = atoms.get_mut(atom).ok_or_else(damaged)?;
                let gone: HashSet<&MemberKey> = members.iter().collect();
                left.retain(|member| !gone.contains(&member.member.key));
            }
            Effect::Wait { member, .. } => drop(waiting.insert(member.key, member)),
            Effect::Admit { class, atom, members } => {
                let member = |key: &MemberKey| waiting.get(key).map(|&member| member.clone()).ok_or_else(damaged);
                let members = members.iter().map(|key| Ok(AtomMember { member: member(key)?, shown: Shown::Stays }));
                atoms.insert(*atom, (*class, members.collect::<Result<_, MaterializedError>>()?));
            }
            _ => {}
        }
    }
    let (mut texts, mut after) = (StepTexts::of(memory), Vec::with_capacity(atoms.len()));
    for (atom, (class, members)) in atoms.iter().filter(|(_, (_, members))| !members.is_empty()) {
        let known = || memory_before.index.get(*class).map(|(nodes, _)| labels_of(memory_before, nodes));
        let labels = labels.get(class).cloned().or_else(known).ok_or_else(damaged)?;
        let members = texts.members(members, &ledger.seen(members)?);
        after.push(RefreshedAtom { class: class.0, atom: atom.0, labels, members });
    }
    let unverified =
        |problem| MaterializedError::Unverified { view: definition.name.clone(), problem: Box::new(problem) };
    let (columns, requirements) = (columns(definition, memory), requirements(definition, &memory.made.pairs));
    verify_refresh(Refresh { before, after }, &columns, &requirements).map_err(unverified)
}

fn labels_of(memory: &Memory, nodes: &[u32]) -> Vec<String> {
    memory.trees.iter().zip(nodes).map(|(tree, &node)| tree.label(node).to_owned()).collect()
}

/// What rows show beside quasi labels, with the shares of values when the view was made.
fn columns(definition: &Definition, memory: &Memory) -> Vec<StepColumn> {
    let names = tuple_columns(definition, &memory.made.pairs);
    let column = |(position, name): (usize, String)| {
        let counts = memory.made.counts.get(position).into_iter().flatten();
        let held = counts
            .enumerate()
            .filter_map(|(number, &count)| Some((memory.values[position].get_index(number)?.clone(), count)));
        StepColumn { name, reference: held.collect() }
    };
    names.into_iter().enumerate().map(column).collect()
}

impl StoredLedger<'_> {
    /// For each member, whether readers saw something of the person before this change.
    fn seen(&self, members: &[AtomMember]) -> Result<Vec<Seen>, MaterializedError> {
        self.look_up_pasts(members.iter().map(|member| member.member.person))?;
        let seen = |member: &AtomMember| {
            Ok(match self.past(member.member.person)? {
                Past::Nothing => Seen::Never,
                Past::InCrowd | Past::Alone => Seen::Elsewhere,
            })
        };
        members.iter().map(seen).collect()
    }
}

/// Atoms that a change touches.
struct Changing<'a> {
    ledger: &'a StoredLedger<'a>,
    newcomers: &'a BTreeMap<MemberKey, Member>,
    /// For each atom, its class, its members before, and its members after.
    atoms: BTreeMap<AtomId, (ClassId, Vec<AtomMember>, Vec<AtomMember>)>,
}

impl Changing<'_> {
    fn apply(&mut self, effect: &Effect) -> Result<(), MaterializedError> {
        match effect {
            Effect::Admit { class, atom, members } => {
                let waiting = self.ledger.waiting_members(members.iter().copied(), self.newcomers)?;
                let admitted = waiting.into_iter().map(|member| AtomMember { member, shown: Shown::Stays });
                let admitted = admitted.collect();
                self.atoms.insert(*atom, (*class, Vec::new(), admitted));
            }
            Effect::Remove { class, atom, members } => self.take(*class, *atom, members)?,
            Effect::Withdraw { class, atom, gone, survivors, .. } => {
                self.take(*class, *atom, gone)?;
                self.take(*class, *atom, survivors)?;
            }
            Effect::Found { .. }
            | Effect::Wait { .. }
            | Effect::Hide { .. }
            | Effect::ShowAlone { .. }
            | Effect::Seal { .. }
            | Effect::Leave { .. }
            | Effect::Dissolve { .. }
            | Effect::Forget { .. }
            | Effect::Remember { .. } => {}
        }
        Ok(())
    }

    fn take(&mut self, class: ClassId, atom: AtomId, keys: &[MemberKey]) -> Result<(), MaterializedError> {
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
}

/// Turns members into texts. Members with the same path or value share its text.
struct StepTexts<'a> {
    memory: &'a Memory,
    /// Per quasi column and node.
    paths: Vec<HashMap<u32, Arc<[String]>>>,
    /// Per position of tuples and number.
    values: Vec<HashMap<u32, Option<Arc<str>>>>,
}

impl<'a> StepTexts<'a> {
    fn of(memory: &'a Memory) -> StepTexts<'a> {
        let (paths, values) = (memory.trees.len(), memory.values.len());
        StepTexts { memory, paths: vec![HashMap::new(); paths], values: vec![HashMap::new(); values] }
    }

    fn members(&mut self, members: &[AtomMember], seen: &[Seen]) -> Vec<StepMember> {
        members.iter().zip(seen).map(|(member, &seen)| self.member(&member.member, seen)).collect()
    }

    fn member(&mut self, member: &Member, seen: Seen) -> StepMember {
        let mut paths = Vec::with_capacity(member.nodes.len());
        for ((tree, known), &node) in self.memory.trees.iter().zip(&mut self.paths).zip(&member.nodes) {
            let path = || up(tree, node).map(|node| tree.label(node).to_owned()).collect();
            paths.push(Arc::clone(known.entry(node).or_insert_with(path)));
        }
        let mut values = Vec::with_capacity(member.tuple.len());
        for ((of_column, known), &number) in self.memory.values.iter().zip(&mut self.values).zip(&member.tuple) {
            let text = || of_column.get_index(number as usize)?.as_deref().map(Arc::from);
            values.push(known.entry(number).or_insert_with(text).clone());
        }
        StepMember { row: member.key.0, person: member.person.0, k: member.k, paths, values, seen }
    }
}

/// A node and its ancestors.
fn up(tree: &GrowingTree, node: u32) -> impl Iterator<Item = u32> {
    std::iter::successors(Some(node), |&node| tree.parent(node))
}
