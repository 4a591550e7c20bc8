//! [`Epochs`]: the rule by which nobody is shown, and nobody goes, but in a crowd.
//!
//! # Deviations
//! `[EPS+12]` raises the class a newcomer joins. Here newcomers who fit into the labels of the class they wait at join
//! it as they are, and others found a class of their own: it stands by itself, so nobody who is shown already has to
//! lose for it.
//! # Cost
//! A change reads the atom or the waiting list it touches; a batch reads each of them once.

use std::collections::{BTreeMap, BTreeSet};

use super::index::ClassIndex;
use super::ledger::{
    AtomId, AtomMember, ClassId, Edit, Effect, Ledger, Member, MemberKey, Past, PersonKey, Place, Shown, Standing,
    Survivors,
};
use super::standard::{Candidate, Judge, Standard};
use super::tree::GrowingTree;

/// How rows that were deleted go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departures {
    /// They stay shown until those who leave an atom, and those who stay, each satisfy the requirement.
    Batch,
    /// Their atom is withdrawn at once, and hides whoever else is in it.
    Withdraw,
}

/// When it is decided whether those who wait, or leave, are a crowd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// As soon as they satisfy the requirement. Where it speaks of values, whoever knows who came when learns
    /// something of the last one: before, the values did not suffice.
    Earliest,
    /// As soon as they are so many, and as many as each of them asks for; numbers alone say when. Newcomers whose
    /// values do not suffice then are hidden until a refresh, and an atom that can't be parted then goes as a whole.
    BySize(u32),
}

/// The rule, over the classes of one view.
#[derive(Clone, Copy, Debug)]
pub struct Epochs<'a> {
    /// Per quasi column its DGH.
    pub trees: &'a [GrowingTree],
    /// The view's classes.
    pub index: &'a ClassIndex,
    /// What every atom must satisfy.
    pub standard: &'a Standard,
    /// How rows go.
    pub departures: Departures,
    /// When crowds are counted.
    pub closing: Closing,
}

impl Epochs<'_> {
    /// What a batch of changes does. Write it, commit, then let the index follow.
    ///
    /// # Errors
    /// Where the ledger can't be read.
    pub fn apply<L: Ledger>(&self, ledger: &L, edits: Vec<Edit>) -> Result<Vec<Effect>, L::Error> {
        let mut batch = Batch::new(*self, ledger)?;
        let (arriving, departing) = net(edits);
        batch.depart(&departing)?;
        for member in arriving {
            batch.arrive(member)?;
        }
        batch.settle()?;
        Ok(batch.effects)
    }

    /// Admits groups of waiting members as classes of their own, as far as a group may stand: for owners who will not
    /// wait until enough have come to one class. Groups must not depend on tuples.
    ///
    /// # Errors
    /// Where the ledger can't be read.
    pub fn admit<L: Ledger>(&self, ledger: &L, groups: &[Vec<MemberKey>]) -> Result<Vec<Effect>, L::Error> {
        let mut batch = Batch::new(*self, ledger)?;
        for group in groups {
            batch.admit_group(group)?;
        }
        Ok(batch.effects)
    }
}

/// What comes and what goes on the whole: rows that come and go in one batch never were.
fn net(edits: Vec<Edit>) -> (Vec<Member>, BTreeSet<MemberKey>) {
    let mut arriving: BTreeMap<MemberKey, Member> = BTreeMap::new();
    let mut departing = BTreeSet::new();
    for edit in edits {
        let (old, new) = match edit {
            Edit::Insert(new) => (None, Some(new)),
            Edit::Delete(old) => (Some(old), None),
            Edit::Update { old, new } => (Some(old), Some(new)),
        };
        if let Some(old) = old
            && arriving.remove(&old).is_none()
        {
            departing.insert(old);
        }
        if let Some(new) = new {
            arriving.insert(new.key, new);
        }
    }
    (arriving.into_values().collect(), departing)
}

/// One batch under way: what the ledger says, and what was decided since.
struct Batch<'a, L: Ledger> {
    rule: Epochs<'a>,
    ledger: &'a L,
    judge: Judge<'a>,
    next_class: ClassId,
    next_atom: AtomId,
    effects: Vec<Effect>,
    /// What readers have seen of persons, where that changed.
    pasts: BTreeMap<PersonKey, Past>,
    /// Who came to wait at classes.
    came: BTreeMap<ClassId, Vec<Member>>,
    /// Who waits no more.
    went: BTreeSet<MemberKey>,
    /// The class that was founded because there was none.
    first_class: Option<(ClassId, Vec<u32>)>,
}

impl<'a, L: Ledger> Batch<'a, L> {
    fn new(rule: Epochs<'a>, ledger: &'a L) -> Result<Self, L::Error> {
        let (next_class, next_atom) = ledger.unused()?;
        Ok(Batch {
            rule,
            ledger,
            judge: rule.standard.judge(),
            next_class,
            next_atom,
            effects: Vec::new(),
            pasts: BTreeMap::new(),
            came: BTreeMap::new(),
            went: BTreeSet::new(),
            first_class: None,
        })
    }

    fn past(&self, person: PersonKey) -> Result<Past, L::Error> {
        self.pasts.get(&person).map_or_else(|| self.ledger.past(person), |past| Ok(past.clone()))
    }

    fn remember(&mut self, person: PersonKey, past: Past) {
        self.effects.push(Effect::Remember { person, past: past.clone() });
        self.pasts.insert(person, past);
    }

    fn depart(&mut self, keys: &BTreeSet<MemberKey>) -> Result<(), L::Error> {
        let mut atoms: BTreeMap<AtomId, (ClassId, BTreeSet<MemberKey>)> = BTreeMap::new();
        for &key in keys {
            match self.ledger.place(key)? {
                // Nobody can be shown of whom nothing is known.
                None => {}
                Some(Place::Waiting(_) | Place::Hidden | Place::Alone) => {
                    self.went.insert(key);
                    self.effects.push(Effect::Forget { member: key });
                }
                Some(Place::Atom { class, atom }) => {
                    atoms.entry(atom).or_insert_with(|| (class, BTreeSet::new())).1.insert(key);
                }
            }
        }
        for (atom, (class, keys)) in atoms {
            let mut members = self.ledger.atom(atom)?;
            self.remember_members(&members, |member| keys.contains(&member.member.key))?;
            for member in members.iter_mut().filter(|member| keys.contains(&member.member.key)) {
                member.shown = Shown::Leaves;
            }
            match self.rule.departures {
                Departures::Withdraw => self.withdraw(class, atom, &members)?,
                Departures::Batch => self.let_go(class, atom, &members, &keys)?,
            }
        }
        Ok(())
    }

    /// Remembers of some members of an atom which tuples may be theirs: those of the core they came with.
    fn remember_members(
        &mut self,
        members: &[AtomMember],
        which: impl Fn(&AtomMember) -> bool,
    ) -> Result<(), L::Error> {
        let core = members.iter().filter(|member| member.standing == Standing::Core);
        let core: BTreeSet<_> = core.map(|member| member.member.tuple.clone()).collect();
        for member in members.iter().filter(|member| which(member)) {
            if member.standing == Standing::Core && self.past(member.member.person)? == Past::Nothing {
                self.remember(member.member.person, Past::Among(core.clone()));
            }
        }
        Ok(())
    }

    fn withdraw(&mut self, class: ClassId, atom: AtomId, members: &[AtomMember]) -> Result<(), L::Error> {
        self.remember_members(members, |member| member.shown == Shown::Stays)?;
        let keys_of = |shown: Shown| {
            members.iter().filter(|member| member.shown == shown).map(|member| member.member.key).collect()
        };
        let to = if self.rule.standard.carries_riders() { Survivors::Wait } else { Survivors::Hide };
        let (gone, survivors) = (keys_of(Shown::Leaves), keys_of(Shown::Stays));
        self.effects.push(Effect::Withdraw { class, atom, gone, survivors, to });
        if to == Survivors::Wait {
            let survivors = members.iter().filter(|member| member.shown == Shown::Stays);
            self.came.entry(class).or_default().extend(survivors.map(|member| member.member.clone()));
        }
        Ok(())
    }

    /// Removes those who leave an atom, if they may go, and marks those who leave from now on and stay shown.
    fn let_go(
        &mut self,
        class: ClassId,
        atom: AtomId,
        members: &[AtomMember],
        new: &BTreeSet<MemberKey>,
    ) -> Result<(), L::Error> {
        let pasts = members.iter().map(|member| self.past(member.member.person)).collect::<Result<Vec<_>, _>>()?;
        let candidates = members.iter().zip(&pasts).map(|(member, past)| {
            let AtomMember { member, standing, shown } = member;
            (Candidate { member, standing: *standing, past }, *shown)
        });
        let (mut leaving, mut staying) = (Vec::new(), Vec::new());
        for (candidate, shown) in candidates {
            match shown {
                Shown::Leaves => leaving.push(candidate),
                Shown::Stays => staying.push(candidate),
            }
        }
        let goes = match self.rule.closing {
            Closing::Earliest => {
                // Where those who stay are too few, some of those who leave stay with them for a while.
                while !staying.is_empty() && !leaving.is_empty() && !self.judge.is_part(&staying) {
                    staying.extend(leaving.pop());
                }
                !leaving.is_empty() && (staying.is_empty() || self.judge.is_part(&leaving))
            }
            Closing::BySize(size) => {
                let was_leaving = |candidate: &Candidate<'_>| !new.contains(&candidate.member.key);
                let (before, now): (Vec<_>, Vec<_>) = leaving.iter().partition(|candidate| was_leaving(candidate));
                let stayed: Vec<Candidate<'_>> = staying.iter().copied().chain(now).collect();
                let are_many = |part: &[Candidate<'_>]| self.judge.are_many(part, size);
                let was_decided = are_many(&before) && are_many(&stayed);
                let is_decided = are_many(&leaving) && are_many(&staying);
                let may_part = !was_decided && is_decided;
                staying.is_empty() || may_part && self.judge.is_part(&leaving) && self.judge.is_part(&staying)
            }
        };
        let gone: Vec<MemberKey> = leaving.iter().filter(|_| goes).map(|candidate| candidate.member.key).collect();
        let all_gone: BTreeSet<MemberKey> = gone.iter().copied().collect();
        for &member in new.difference(&all_gone) {
            self.effects.push(Effect::Leave { member });
        }
        if !gone.is_empty() {
            self.effects.push(Effect::Remove { class, atom, members: gone });
        }
        Ok(())
    }

    fn arrive(&mut self, member: Member) -> Result<(), L::Error> {
        let past = self.past(member.person)?;
        match (member.k, &past) {
            (0 | 1, Past::Nothing) => {
                let person = member.person;
                self.effects.push(Effect::ShowAlone { member });
                self.remember(person, Past::Alone);
            }
            (0 | 1, Past::Alone) => self.effects.push(Effect::ShowAlone { member }),
            // Who is seen alone now would be known in the old crowd, and who was seen alone hides nobody.
            (0 | 1, Past::Among(_)) | (_, Past::Alone) => self.effects.push(Effect::Hide { member }),
            // Whether a new tuple is shown must not depend on which one it is.
            (_, Past::Among(tuples)) if !(self.rule.standard.carries_riders() && tuples.contains(&member.tuple)) => {
                self.effects.push(Effect::Hide { member });
            }
            (_, Past::Nothing | Past::Among(_)) => {
                let class = self.class_for(&member);
                self.effects.push(Effect::Wait { class, member: member.clone() });
                self.came.entry(class).or_default().push(member);
            }
        }
        Ok(())
    }

    fn class_for(&mut self, member: &Member) -> ClassId {
        if let Some((class, _)) = self.rule.index.nearest(self.rule.trees, &member.nodes) {
            return class;
        }
        if let Some((class, _)) = &self.first_class {
            return *class;
        }
        let class = self.found(member.nodes.clone());
        self.first_class = Some((class, member.nodes.clone()));
        class
    }

    fn found(&mut self, nodes: Vec<u32>) -> ClassId {
        let class = self.next_class;
        self.next_class.0 += 1;
        self.effects.push(Effect::Found { class, nodes });
        class
    }

    /// Looks at every class that somebody came to.
    fn settle(&mut self) -> Result<(), L::Error> {
        for (class, came) in std::mem::take(&mut self.came) {
            let mut waiting: BTreeMap<MemberKey, Member> = BTreeMap::new();
            if self.first_class.as_ref().is_none_or(|(first, _)| *first != class) {
                if self.ledger.n_waiting(class)? + came.len() < self.rule.standard.k() as usize {
                    continue;
                }
                waiting.extend(self.ledger.waiting(class)?.into_iter().map(|member| (member.key, member)));
            }
            waiting.retain(|key, _| !self.went.contains(key));
            waiting.extend(came.into_iter().map(|member| (member.key, member)));
            let waiting: Vec<Member> = waiting.into_values().collect();
            match self.crowd(&waiting)? {
                Crowd::None => {}
                Crowd::Stands(members) => self.admit_at(class, &members),
                Crowd::Fails(members) => self.effects.push(Effect::Seal { members }),
            }
        }
        Ok(())
    }

    fn admit_group(&mut self, keys: &[MemberKey]) -> Result<(), L::Error> {
        let mut group: BTreeMap<MemberKey, Member> = BTreeMap::new();
        let mut classes = BTreeSet::new();
        for &key in keys {
            if let Some(Place::Waiting(class)) = self.ledger.place(key)? {
                classes.insert(class);
            }
        }
        for class in classes {
            let waiting = self.ledger.waiting(class)?.into_iter();
            group.extend(waiting.filter(|member| keys.contains(&member.key)).map(|member| (member.key, member)));
        }
        group.retain(|key, _| !self.went.contains(key));
        let group: Vec<Member> = group.into_values().collect();
        match self.crowd(&group)? {
            Crowd::None => {}
            Crowd::Stands(members) => {
                let nodes = self.common_nodes(&members);
                let class = self.found(nodes);
                self.push_admission(class, &members);
            }
            Crowd::Fails(members) => {
                self.went.extend(members.iter().copied());
                self.effects.push(Effect::Seal { members });
            }
        }
        Ok(())
    }

    /// Of those who wait, the largest part that may be an atom: whoever does not ask for more persons than there are,
    /// and whoever was shown before as long as the others hide them.
    fn crowd(&mut self, waiting: &[Member]) -> Result<Crowd, L::Error> {
        if waiting.len() < self.rule.standard.k() as usize {
            return Ok(Crowd::None);
        }
        let pasts = waiting.iter().map(|member| self.past(member.person)).collect::<Result<Vec<_>, _>>()?;
        let (new, seen): (Vec<_>, Vec<_>) = waiting.iter().zip(&pasts).partition(|(_, past)| **past == Past::Nothing);
        let candidate = |standing| move |(member, past)| Candidate { member, standing, past };
        let mut members: Vec<Candidate<'_>> = new.into_iter().map(candidate(Standing::Core)).collect();
        members.sort_by_key(|candidate| candidate.member.k);
        while members.last().is_some_and(|candidate| candidate.member.k as usize > members.len()) {
            members.pop();
        }
        let keys = |members: &[Candidate<'_>]| members.iter().map(|candidate| candidate.member.key).collect();
        match self.rule.closing {
            Closing::BySize(size) if !self.judge.are_many(&members, size) => return Ok(Crowd::None),
            Closing::BySize(_) if !self.judge.is_part(&members) => return Ok(Crowd::Fails(keys(&members))),
            Closing::Earliest if !self.judge.is_part(&members) => return Ok(Crowd::None),
            Closing::BySize(_) | Closing::Earliest => {}
        }
        for rider in seen.into_iter().map(candidate(Standing::Rider)) {
            members.push(rider);
            if !self.judge.is_part(&members) {
                members.pop();
            }
        }
        Ok(Crowd::Stands(members.iter().map(|candidate| (candidate.member.clone(), candidate.standing)).collect()))
    }

    /// Admits members to the class they waited at if they fit into its labels, else as a class of their own.
    fn admit_at(&mut self, class: ClassId, members: &[(Member, Standing)]) {
        let nodes = self.common_nodes(members);
        let labels = match &self.first_class {
            Some((first, labels)) if *first == class => Some(labels.as_slice()),
            _ => self.rule.index.get(class).map(|(labels, _)| labels),
        };
        let fits = labels.is_some_and(|labels| {
            let columns = self.rule.trees.iter().zip(labels).zip(&nodes);
            columns.into_iter().all(|((tree, &label), &node)| tree.join(label, node) == label)
        });
        let class = if fits { class } else { self.found(nodes) };
        self.push_admission(class, members);
    }

    fn push_admission(&mut self, class: ClassId, members: &[(Member, Standing)]) {
        let atom = self.next_atom;
        self.next_atom.0 += 1;
        self.went.extend(members.iter().map(|(member, _)| member.key));
        let members = members.iter().map(|(member, standing)| (member.key, *standing)).collect();
        self.effects.push(Effect::Admit { class, atom, members });
    }

    /// Per quasi column the lowest node above everybody.
    fn common_nodes(&self, members: &[(Member, Standing)]) -> Vec<u32> {
        let columns = self.rule.trees.iter().enumerate();
        let nodes = columns.map(|(column, tree)| {
            members.iter().map(|(member, _)| member.nodes[column]).reduce(|a, b| tree.join(a, b)).unwrap_or(0)
        });
        nodes.collect()
    }
}

/// What those who wait at a class are.
enum Crowd {
    /// Too few, or not yet what is asked.
    None,
    /// They may be shown.
    Stands(Vec<(Member, Standing)>),
    /// They are many and may not be shown.
    Fails(Vec<MemberKey>),
}
