//! [`MemoryLedger`]: what is kept of a view, in memory.

use std::collections::BTreeMap;
use std::convert::Infallible;

use super::ledger::{AtomId, AtomMember, ClassId, Effect, Ledger, Member, MemberKey, Past, PersonKey, Place, Shown};

/// A ledger in memory, which applies effects to itself.
#[derive(Clone, Debug, Default)]
pub struct MemoryLedger {
    classes: BTreeMap<ClassId, Vec<u32>>,
    places: BTreeMap<MemberKey, Place>,
    /// Rows that are in no atom.
    outside: BTreeMap<MemberKey, Member>,
    atoms: BTreeMap<AtomId, (ClassId, Vec<AtomMember>)>,
    pasts: BTreeMap<PersonKey, Past>,
    next_atom: u64,
}

impl MemoryLedger {
    /// An empty ledger.
    pub fn new() -> MemoryLedger {
        MemoryLedger::default()
    }

    /// The labels of all classes.
    pub fn classes(&self) -> &BTreeMap<ClassId, Vec<u32>> {
        &self.classes
    }

    /// All atoms with their classes.
    pub fn all_atoms(&self) -> &BTreeMap<AtomId, (ClassId, Vec<AtomMember>)> {
        &self.atoms
    }

    /// Writes what a change does.
    ///
    /// # Panics
    /// If an effect speaks of what is not there.
    pub fn write(&mut self, effects: &[Effect]) {
        for effect in effects {
            self.write_one(effect);
        }
    }

    fn write_one(&mut self, effect: &Effect) {
        match effect {
            Effect::Found { class, nodes } => {
                self.classes.insert(*class, nodes.clone());
            }
            Effect::Wait { class, member } => self.put_outside(member.clone(), Place::Waiting(*class)),
            Effect::Hide { member } => self.put_outside(member.clone(), Place::Hidden),
            Effect::ShowAlone { member } => self.put_outside(member.clone(), Place::Alone),
            Effect::Admit { class, atom, members } => {
                let members = members.iter().map(|key| {
                    let member = self.outside.remove(key).expect("members wait before they are admitted");
                    self.places.insert(*key, Place::Atom { class: *class, atom: *atom });
                    AtomMember { member, shown: Shown::Stays }
                });
                let mut members: Vec<AtomMember> = members.collect();
                members.sort_by_key(|member| member.member.key);
                self.atoms.insert(*atom, (*class, members));
                self.next_atom = self.next_atom.max(atom.0 + 1);
            }
            Effect::Seal { members } => {
                self.places.extend(members.iter().map(|key| (*key, Place::Hidden)));
            }
            Effect::Leave { member } => {
                let Some(Place::Atom { atom, .. }) = self.places.get(member) else { return };
                let (_, members) = self.atoms.get_mut(atom).expect("the atom of a place exists");
                let leaving = members.iter_mut().filter(|other| other.member.key == *member);
                leaving.for_each(|other| other.shown = Shown::Leaves);
            }
            Effect::Remove { atom, members, .. } => {
                self.take(*atom, members);
            }
            Effect::Withdraw { atom, gone, survivors, .. } => {
                let all: Vec<MemberKey> = gone.iter().chain(survivors).copied().collect();
                for member in self.take(*atom, &all) {
                    if survivors.contains(&member.member.key) {
                        self.put_outside(member.member, Place::Hidden);
                    }
                }
            }
            Effect::Dissolve { class } => {
                self.classes.remove(class);
            }
            Effect::Forget { member } => {
                self.outside.remove(member);
                self.places.remove(member);
            }
            Effect::Remember { person, past } => {
                self.pasts.insert(*person, *past);
            }
        }
    }

    fn put_outside(&mut self, member: Member, place: Place) {
        self.places.insert(member.key, place);
        self.outside.insert(member.key, member);
    }

    fn take(&mut self, atom: AtomId, keys: &[MemberKey]) -> Vec<AtomMember> {
        let (_, members) = self.atoms.get_mut(&atom).expect("an effect speaks of an atom that is there");
        let (taken, kept) = std::mem::take(members).into_iter().partition(|member| keys.contains(&member.member.key));
        *members = kept;
        if members.is_empty() {
            self.atoms.remove(&atom);
        }
        for key in keys {
            self.places.remove(key);
        }
        taken
    }
}

impl Ledger for MemoryLedger {
    type Error = Infallible;

    fn place(&self, member: MemberKey) -> Result<Option<Place>, Infallible> {
        Ok(self.places.get(&member).copied())
    }

    fn atom(&self, atom: AtomId) -> Result<Vec<AtomMember>, Infallible> {
        Ok(self.atoms.get(&atom).map(|(_, members)| members.clone()).unwrap_or_default())
    }

    fn waiting(&self, class: ClassId) -> Result<Vec<Member>, Infallible> {
        let here = self.outside.values().filter(|member| self.places.get(&member.key) == Some(&Place::Waiting(class)));
        Ok(here.cloned().collect())
    }

    fn past(&self, person: PersonKey) -> Result<Past, Infallible> {
        Ok(self.pasts.get(&person).copied().unwrap_or_default())
    }

    fn unused(&self) -> Result<(ClassId, AtomId), Infallible> {
        let next_class = self.classes.keys().next_back().map_or(0, |class| class.0 + 1);
        Ok((ClassId(next_class), AtomId(self.next_atom)))
    }
}
