//! [`Paper`]: the paper's immediate rule.
//!
//! # Guarantee
//! None over time. A reader who kept an earlier answer sees by difference what a newcomer's row shows. It is here to
//! be compared with, and for views that nobody reads twice.
//! # Paper
//! `[EPS+12]` section 7
//! # Deviations
//! The paper knows one k, and nothing else that a class must satisfy. Here a newcomer joins the nearest class that is
//! large enough for them and satisfies the requirement with them; a class that one who goes leaves without it is
//! dissolved. Where there is no class to join, rows are hidden until a refresh; the paper is silent.
//! # Cost
//! One who comes: one search in the index, and where shares of values are asked for the members of one class. One who
//! goes: the members of their class.

use std::collections::{BTreeMap, BTreeSet};

use super::index::ClassIndex;
use super::ledger::{AtomId, AtomMember, ClassId, Edit, Effect, Ledger, Member, MemberKey, Place};
use super::standard::{Judge, Standard};
use super::tree::GrowingTree;

/// What owners must be told before they choose the rule.
pub const UNSAFE: &str =
    "CHANGES PAPER shows newcomers at once: whoever compares two answers learns their sensitive values";

/// The rule, over the classes of one view.
#[derive(Clone, Copy, Debug)]
pub struct Paper<'a> {
    /// Per quasi column its DGH.
    pub trees: &'a [GrowingTree],
    /// What every class must satisfy.
    pub standard: &'a Standard,
}

impl Paper<'_> {
    /// What one change does. The index follows at once; where the change is not committed, make it anew. Effects must
    /// be written before the next change.
    ///
    /// # Errors
    /// Where the ledger can't be read.
    pub fn apply<L: Ledger>(&self, index: &mut ClassIndex, ledger: &L, edit: Edit) -> Result<Vec<Effect>, L::Error> {
        let (old, new) = match edit {
            Edit::Insert(new) => (None, Some(new)),
            Edit::Delete(old) => (Some(old), None),
            Edit::Update { old, new } => (Some(old), Some(new)),
        };
        let (_, next_atom) = ledger.unused()?;
        let judge = self.standard.judge();
        let (effects, came, went) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
        let mut step = Step { rule: *self, index, ledger, judge, next_atom, effects, came, went };
        if let Some(old) = old {
            step.delete(old)?;
        }
        if let Some(new) = new {
            step.insert(new)?;
        }
        Ok(step.effects)
    }
}

struct Step<'a, L: Ledger> {
    rule: Paper<'a>,
    index: &'a mut ClassIndex,
    /// As it was before.
    ledger: &'a L,
    judge: Judge<'a>,
    next_atom: AtomId,
    effects: Vec<Effect>,
    /// Who joined which class since.
    came: BTreeMap<ClassId, Vec<Member>>,
    /// Who is in their class no more.
    went: BTreeSet<MemberKey>,
}

impl<L: Ledger> Step<'_, L> {
    fn push(&mut self, effect: Effect) {
        self.index.follow(self.rule.trees, std::slice::from_ref(&effect));
        self.effects.push(effect);
    }

    fn insert(&mut self, member: Member) -> Result<(), L::Error> {
        if member.k < 2 {
            self.push(Effect::ShowAlone { member });
            return Ok(());
        }
        let others = u64::from(member.k) - 1;
        let nearest = self.index.nearest_of(self.rule.trees, &member.nodes, others).map(|(class, _)| class);
        let class = match nearest {
            Some(class) if self.may_join(class, &member)? => class,
            _ => {
                self.push(Effect::Hide { member });
                return Ok(());
            }
        };
        let labels = self.index.get(class).map_or(Vec::new(), |(labels, _)| labels.to_vec());
        let joined = self.rule.trees.iter().zip(&labels).zip(&member.nodes);
        let nodes: Vec<u32> = joined.map(|((tree, &label), &node)| tree.join(label, node)).collect();
        if nodes != labels {
            self.push(Effect::Raise { class, nodes });
        }
        let members = vec![member.key];
        self.came.entry(class).or_default().push(member.clone());
        self.push(Effect::Wait { class, member });
        let atom = self.next_atom;
        self.next_atom.0 += 1;
        self.push(Effect::Admit { class, atom, members });
        Ok(())
    }

    /// Whether a class that is large enough satisfies the requirement with one more.
    fn may_join(&mut self, class: ClassId, member: &Member) -> Result<bool, L::Error> {
        if !self.rule.standard.speaks_of_shares() {
            return Ok(true);
        }
        let members = self.members(class)?;
        let with_member: Vec<&Member> = members.iter().map(|(_, member)| member).chain([member]).collect();
        Ok(self.judge.stands(&with_member))
    }

    fn delete(&mut self, key: MemberKey) -> Result<(), L::Error> {
        match self.ledger.place(key)? {
            None => {}
            Some(Place::Waiting(_) | Place::Alone | Place::Hidden) => self.push(Effect::Forget { member: key }),
            Some(Place::Atom { class, atom }) => {
                self.push(Effect::Remove { class, atom, members: vec![key] });
                self.went.insert(key);
                let rest = self.members(class)?;
                if !self.judge.stands(&rest.iter().map(|(_, member)| member).collect::<Vec<_>>()) {
                    self.dissolve(class, rest)?;
                }
            }
        }
        Ok(())
    }

    /// A class's members as they are now; those who joined it since have an atom each.
    fn members(&self, class: ClassId) -> Result<Vec<(AtomId, Member)>, L::Error> {
        let mut members = Vec::new();
        for atom in self.ledger.atoms(class)? {
            let all = self.ledger.atom(atom)?.into_iter();
            let here = all.filter(|AtomMember { member, .. }| !self.went.contains(&member.key));
            members.extend(here.map(|here| (atom, here.member)));
        }
        let came = self.came.get(&class).into_iter().flatten();
        members.extend(came.map(|member| (self.next_atom, member.clone())));
        Ok(members)
    }

    /// Gives up a class of the ledger, and lets its members look for others.
    fn dissolve(&mut self, class: ClassId, rest: Vec<(AtomId, Member)>) -> Result<(), L::Error> {
        for part in rest.chunk_by(|a, b| a.0 == b.0) {
            let members = part.iter().map(|(_, member)| member.key).collect();
            self.push(Effect::Remove { class, atom: part[0].0, members });
        }
        self.went.extend(rest.iter().map(|(_, member)| member.key));
        self.push(Effect::Dissolve { class });
        rest.into_iter().try_for_each(|(_, member)| self.insert(member))
    }
}
