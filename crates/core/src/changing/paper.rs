//! [`Paper`]: the paper's immediate rule.
//!
//! # Guarantee
//! None over time. A reader who kept an earlier answer sees by difference what a newcomer's row shows. It is here to
//! be compared with, and for views that nobody reads twice.
//! # Paper
//! `[EPS+12]` section 7
//! # Deviations
//! A class is dissolved when it is smaller than k or than what a member asks for; the paper knows one k. Where there
//! is no class left to join, rows are hidden until a refresh; the paper is silent.

use super::index::ClassIndex;
use super::ledger::{AtomId, AtomMember, ClassId, Edit, Effect, Ledger, Member, MemberKey, Place};
use super::standard::Standard;
use super::tree::GrowingTree;

/// What owners must be told before they choose the rule.
pub const UNSAFE: &str =
    "CHANGES PAPER shows newcomers at once: whoever compares two answers learns their sensitive values";

/// The rule, over the classes of one view.
#[derive(Clone, Copy, Debug)]
pub struct Paper<'a> {
    /// Per quasi column its DGH.
    pub trees: &'a [GrowingTree],
    /// Of this only k counts.
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
        let mut step = Step { rule: *self, index, next_atom, effects: Vec::new() };
        if let Some(old) = old {
            step.delete(ledger, old)?;
        }
        if let Some(new) = new {
            step.insert(new);
        }
        Ok(step.effects)
    }
}

struct Step<'a> {
    rule: Paper<'a>,
    index: &'a mut ClassIndex,
    next_atom: AtomId,
    effects: Vec<Effect>,
}

impl Step<'_> {
    fn push(&mut self, effect: Effect) {
        self.index.follow(self.rule.trees, std::slice::from_ref(&effect));
        self.effects.push(effect);
    }

    fn insert(&mut self, member: Member) {
        if member.k < 2 {
            return self.push(Effect::ShowAlone { member });
        }
        let Some((class, _)) = self.index.nearest(self.rule.trees, &member.nodes) else {
            return self.push(Effect::Hide { member });
        };
        let labels = self.index.get(class).map_or(Vec::new(), |(labels, _)| labels.to_vec());
        let joined = self.rule.trees.iter().zip(&labels).zip(&member.nodes);
        let nodes: Vec<u32> = joined.map(|((tree, &label), &node)| tree.join(label, node)).collect();
        if nodes != labels {
            self.push(Effect::Raise { class, nodes });
        }
        let members = vec![member.key];
        self.push(Effect::Wait { class, member });
        let atom = self.next_atom;
        self.next_atom.0 += 1;
        self.push(Effect::Admit { class, atom, members });
    }

    fn delete<L: Ledger>(&mut self, ledger: &L, key: MemberKey) -> Result<(), L::Error> {
        match ledger.place(key)? {
            None => {}
            Some(Place::Waiting(_) | Place::Alone | Place::Hidden) => self.push(Effect::Forget { member: key }),
            Some(Place::Atom { class, atom }) => {
                self.push(Effect::Remove { class, atom, members: vec![key] });
                let rest = self.rest(ledger, class, key)?;
                let k = rest.iter().map(|(_, member)| member.k).fold(self.rule.standard.k(), u32::max);
                if rest.len() < k as usize {
                    self.dissolve(class, rest);
                }
            }
        }
        Ok(())
    }

    /// A class's members, but for one.
    fn rest<L: Ledger>(&self, ledger: &L, class: ClassId, but: MemberKey) -> Result<Vec<(AtomId, Member)>, L::Error> {
        let mut rest = Vec::new();
        for atom in ledger.atoms(class)? {
            let members = ledger.atom(atom)?.into_iter();
            let others = members.filter(|AtomMember { member, .. }| member.key != but);
            rest.extend(others.map(|other| (atom, other.member)));
        }
        Ok(rest)
    }

    fn dissolve(&mut self, class: ClassId, rest: Vec<(AtomId, Member)>) {
        for part in rest.chunk_by(|a, b| a.0 == b.0) {
            let members = part.iter().map(|(_, member)| member.key).collect();
            self.push(Effect::Remove { class, atom: part[0].0, members });
        }
        self.push(Effect::Dissolve { class });
        for (_, member) in rest {
            self.insert(member);
        }
    }
}
