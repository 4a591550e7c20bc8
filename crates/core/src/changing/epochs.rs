//! [`Epochs`]: the rule that rows are shown, and removed, only in a crowd.
//!
//! # Deviations
//! `[EPS+12]` raises the labels of the class that a newcomer joins. Here, newcomers who fit into the labels of their
//! class join it as it is. Others found a class of their own, which satisfies the requirement by itself, so nobody who
//! is already shown becomes less precise.
//! # Cost
//! A change reads the atom or the waiting list it touches; a batch reads each of them once.

use std::collections::{BTreeMap, BTreeSet};

use super::index::ClassIndex;
use super::ledger::{
    AtomId, AtomMember, ClassId, Edit, Effect, Ledger, Member, MemberKey, Past, PersonKey, Place, Shown,
};
use super::refresh::keys;
use super::standard::{AtomJudge, Standard};
use super::tree::GrowingTree;

/// What happens to the rows of persons who were deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departures {
    /// The rows stay shown until the leaving and the staying members of the atom both satisfy the requirement.
    Batch,
    /// The whole atom of a deleted person is withdrawn at once, so its other members are hidden, too.
    Withdraw,
}

/// When it is decided whether waiting or leaving members are a crowd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// As soon as they satisfy the requirement. If the requirement is about values, a reader who knows who came when
    /// learns something about the last member: before that member came, the values were not enough.
    Earliest,
    /// As soon as there are this many members, and as many as each of them asks for; so only numbers decide when.
    /// Newcomers whose values don't satisfy the requirement at that time are hidden until a refresh, and an atom that
    /// can't be parted at that time is withdrawn as a whole.
    BySize(u32),
}

/// The rule, over the classes of one view.
#[derive(Clone, Copy, Debug)]
pub struct Epochs<'a> {
    /// For each quasi column, its DGH.
    pub trees: &'a [GrowingTree],
    /// The view's classes.
    pub index: &'a ClassIndex,
    /// The requirements of every atom.
    pub standard: &'a Standard,
    /// How rows go.
    pub departures: Departures,
    /// When crowds are counted.
    pub closing: Closing,
}

impl Epochs<'_> {
    /// The effects of a batch of changes. Write them, commit, then let the index follow.
    ///
    /// # Errors
    /// If the ledger can't be read.
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

/// The net result of some edits: a row that comes and goes in one batch is left out.
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
    judge: AtomJudge<'a>,
    next_class: ClassId,
    next_atom: AtomId,
    effects: Vec<Effect>,
    /// What readers have seen of a person, for each person for whom that changed in this batch.
    pasts: BTreeMap<PersonKey, Past>,
    /// Members that came to wait, by class.
    came: BTreeMap<ClassId, Vec<Member>>,
    /// Members that wait no more.
    went: BTreeSet<MemberKey>,
    /// The class that was created in this batch because the view had none.
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
                // A row that the ledger does not know was never shown.
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
        let (gone, survivors) = leaving_and_staying(members);
        survivors.iter().for_each(|member| self.remember(member.person, Past::InCrowd));
        self.effects.push(Effect::Withdraw { class, atom, gone: keys(&gone), survivors: keys(&survivors) });
    }

    /// Removes those who leave an atom, if they may go, and marks those who leave from now on and stay shown.
    fn let_go(&mut self, class: ClassId, atom: AtomId, members: &[AtomMember], new: &BTreeSet<MemberKey>) {
        let (mut leaving, mut staying) = leaving_and_staying(members);
        let goes = match self.rule.closing {
            Closing::Earliest => {
                // If too few members stay, some of those who leave are shown with them for a while.
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
        let gone = if goes { keys(&leaving) } else { Vec::new() };
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
            // A former crowd member shown alone now would be identified in old snapshots, and somebody once shown alone
            // gives no cover. So hide them. In another crowd, somebody could be identified by what both crowds have in
            // common.
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
                Waiters::None => {}
                Waiters::Stands(members) => self.admit_at(class, &members),
                Waiters::Fails(members) => self.seal(&members),
            }
        }
        Ok(())
    }

    /// Hides newcomers whose values don't satisfy the requirement. That they are not shown tells readers something
    /// about their values, so they no longer count as newcomers.
    fn seal(&mut self, members: &[&Member]) {
        members.iter().for_each(|member| self.remember(member.person, Past::InCrowd));
        self.effects.push(Effect::Seal { members: keys(members) });
    }

    /// The largest part of those who wait that may be an atom: everybody who does not ask for more persons than there
    /// are.
    fn crowd<'m>(&mut self, waiting: &'m [Member]) -> Waiters<'m> {
        let mut members: Vec<&Member> = waiting.iter().collect();
        members.sort_by_key(|member| member.k);
        while members.last().is_some_and(|member| member.k as usize > members.len()) {
            members.pop();
        }
        match self.rule.closing {
            Closing::BySize(size) if !self.judge.are_many(&members, size) => Waiters::None,
            Closing::BySize(_) if !self.judge.stands(&members) => Waiters::Fails(members),
            Closing::Earliest if !self.judge.stands(&members) => Waiters::None,
            Closing::BySize(_) | Closing::Earliest => Waiters::Stands(members),
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
        self.effects.push(Effect::Admit { class, atom, members: keys(members) });
    }

    /// For each quasi column, the lowest node above everybody.
    fn common_nodes(&self, members: &[&Member]) -> Vec<u32> {
        let columns = self.rule.trees.iter().enumerate();
        let nodes = columns.map(|(column, tree)| {
            members.iter().map(|member| member.nodes[column]).reduce(|a, b| tree.join(a, b)).unwrap_or(0)
        });
        nodes.collect()
    }
}

/// The members of an atom who leave, and those who stay.
fn leaving_and_staying(members: &[AtomMember]) -> (Vec<&Member>, Vec<&Member>) {
    let with = |shown: Shown| members.iter().filter(move |member| member.shown == shown).map(|member| &member.member);
    (with(Shown::Leaves).collect(), with(Shown::Stays).collect())
}

/// Whether those who wait at a class may be shown.
enum Waiters<'m> {
    /// There are too few members, or not as many as each of them asks for.
    None,
    /// The members may be shown.
    Stands(Vec<&'m Member>),
    /// There are enough members, but their values don't satisfy the requirement, so they may not be shown.
    Fails(Vec<&'m Member>),
}
