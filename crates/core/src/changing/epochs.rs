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
    AtomId, AtomMember, ClassId, Edit, Effect, Ledger, Member, MemberKey, Past, PersonKey, Place, Shown,
};
use super::standard::{Judge, Standard};
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
        self.pasts.get(&person).map_or_else(|| self.ledger.past(person), |&past| Ok(past))
    }

    fn remember(&mut self, person: PersonKey, past: Past) {
        self.effects.push(Effect::Remember { person, past });
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
            for member in members.iter_mut().filter(|member| keys.contains(&member.member.key)) {
                member.shown = Shown::Leaves;
                self.remember(member.member.person, Past::InCrowd);
            }
            match self.rule.departures {
                Departures::Withdraw => self.withdraw(class, atom, &members),
                Departures::Batch => self.let_go(class, atom, &members, &keys),
            }
        }
        Ok(())
    }

    fn withdraw(&mut self, class: ClassId, atom: AtomId, members: &[AtomMember]) {
        let (mut gone, mut survivors) = (Vec::new(), Vec::new());
        for AtomMember { member, shown } in members {
            match shown {
                Shown::Leaves => gone.push(member.key),
                Shown::Stays => {
                    survivors.push(member.key);
                    self.remember(member.person, Past::InCrowd);
                }
            }
        }
        self.effects.push(Effect::Withdraw { class, atom, gone, survivors });
    }

    /// Removes those who leave an atom, if they may go, and marks those who leave from now on and stay shown.
    fn let_go(&mut self, class: ClassId, atom: AtomId, members: &[AtomMember], new: &BTreeSet<MemberKey>) {
        let (mut leaving, mut staying): (Vec<&Member>, Vec<&Member>) = (Vec::new(), Vec::new());
        for AtomMember { member, shown } in members {
            match shown {
                Shown::Leaves => leaving.push(member),
                Shown::Stays => staying.push(member),
            }
        }
        let goes = match self.rule.closing {
            Closing::Earliest => {
                // Where those who stay are too few, some of those who leave stay with them for a while.
                while !staying.is_empty() && !leaving.is_empty() && !self.judge.stands(&staying) {
                    staying.extend(leaving.pop());
                }
                !leaving.is_empty() && (staying.is_empty() || self.judge.stands(&leaving))
            }
            Closing::BySize(size) => {
                let (now, before): (Vec<_>, Vec<_>) = leaving.iter().partition(|member| new.contains(&member.key));
                let stayed: Vec<&Member> = staying.iter().copied().chain(now).collect();
                let are_many = |part: &[&Member]| self.judge.are_many(part, size);
                let was_decided = are_many(&before) && are_many(&stayed);
                let is_decided = are_many(&leaving) && are_many(&staying);
                let may_part = !was_decided && is_decided;
                staying.is_empty() || may_part && self.judge.stands(&leaving) && self.judge.stands(&staying)
            }
        };
        let gone: Vec<MemberKey> = leaving.iter().filter(|_| goes).map(|member| member.key).collect();
        let all_gone: BTreeSet<MemberKey> = gone.iter().copied().collect();
        for &member in new.difference(&all_gone) {
            self.effects.push(Effect::Leave { member });
        }
        if !gone.is_empty() {
            self.effects.push(Effect::Remove { class, atom, members: gone });
        }
    }

    fn arrive(&mut self, member: Member) -> Result<(), L::Error> {
        match (member.k, self.past(member.person)?) {
            (0 | 1, Past::Nothing) => {
                let person = member.person;
                self.effects.push(Effect::ShowAlone { member });
                self.remember(person, Past::Alone);
            }
            (0 | 1, Past::Alone) => self.effects.push(Effect::ShowAlone { member }),
            // Who is seen alone now would be known in the old crowd, and who was seen alone hides nobody. In another
            // crowd somebody could be known by what both have in common.
            (_, Past::InCrowd | Past::Alone) => self.effects.push(Effect::Hide { member }),
            (_, Past::Nothing) => {
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
            match self.crowd(&waiting) {
                Crowd::None => {}
                Crowd::Stands(members) => self.admit_at(class, &members),
                Crowd::Fails(members) => self.seal(&members),
            }
        }
        Ok(())
    }

    /// Hides those whose values do not suffice. That they are not shown tells something of these, so they are no
    /// newcomers any more.
    fn seal(&mut self, members: &[&Member]) {
        members.iter().for_each(|member| self.remember(member.person, Past::InCrowd));
        let members = members.iter().map(|member| member.key).collect();
        self.effects.push(Effect::Seal { members });
    }

    /// Of those who wait, the largest part that may be an atom: whoever does not ask for more persons than there are.
    fn crowd<'m>(&mut self, waiting: &'m [Member]) -> Crowd<'m> {
        let mut members: Vec<&Member> = waiting.iter().collect();
        members.sort_by_key(|member| member.k);
        while members.last().is_some_and(|member| member.k as usize > members.len()) {
            members.pop();
        }
        match self.rule.closing {
            Closing::BySize(size) if !self.judge.are_many(&members, size) => Crowd::None,
            Closing::BySize(_) if !self.judge.stands(&members) => Crowd::Fails(members),
            Closing::Earliest if !self.judge.stands(&members) => Crowd::None,
            Closing::BySize(_) | Closing::Earliest => Crowd::Stands(members),
        }
    }

    /// Admits members to the class they waited at if they fit into its labels, else as a class of their own.
    fn admit_at(&mut self, class: ClassId, members: &[&Member]) {
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
        let atom = self.next_atom;
        self.next_atom.0 += 1;
        let members = members.iter().map(|member| member.key).collect();
        self.effects.push(Effect::Admit { class, atom, members });
    }

    /// Per quasi column the lowest node above everybody.
    fn common_nodes(&self, members: &[&Member]) -> Vec<u32> {
        let columns = self.rule.trees.iter().enumerate();
        let nodes = columns.map(|(column, tree)| {
            members.iter().map(|member| member.nodes[column]).reduce(|a, b| tree.join(a, b)).unwrap_or(0)
        });
        nodes.collect()
    }
}

/// What those who wait at a class are.
enum Crowd<'m> {
    /// Too few, or not yet what is asked.
    None,
    /// They may be shown.
    Stands(Vec<&'m Member>),
    /// They are many and may not be shown.
    Fails(Vec<&'m Member>),
}
