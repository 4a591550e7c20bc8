//! [`AtOnce`]: the naive way to keep a view. Persons join and leave classes as soon as they come and go.
//!
//! # Paper
//! `[EPS+12]` section 7: a newcomer joins the nearest class and raises its labels. A class that becomes too small when
//! somebody leaves is dissolved, and its members join others.

use kohort_core::changing::{Edit, GrowingTree, Member, MemberKey};

use super::attacker::Row;

/// The classes of a view.
#[derive(Default)]
pub(super) struct AtOnce {
    /// The classes, each with its number and its members, and the change with which each member joined.
    classes: Vec<(u64, Vec<(Member, u64)>)>,
    n_changes: u64,
}

impl AtOnce {
    /// Starts with these classes.
    pub(super) fn new(classes: Vec<Vec<Member>>) -> AtOnce {
        let since = |members: Vec<Member>| members.into_iter().map(|member| (member, 0)).collect();
        AtOnce { classes: (0..).zip(classes.into_iter().map(since)).collect(), n_changes: 0 }
    }

    /// Applies one edit; `stands` decides whether rows may form a class.
    pub(super) fn apply(&mut self, trees: &[GrowingTree], stands: &dyn Fn(&[Row]) -> bool, edit: Edit) {
        let (old, new) = match edit {
            Edit::Insert(new) => (None, Some(new)),
            Edit::Delete(old) => (Some(old), None),
            Edit::Update { old, new } => (Some(old), Some(new)),
        };
        old.into_iter().for_each(|old| self.leave(trees, stands, old));
        new.into_iter().for_each(|new| self.join(trees, stands, new));
    }

    /// The rows that are shown, with the numbers of their classes.
    pub(super) fn shown(&self) -> Vec<(u64, Row)> {
        let rows = |(class, members): &(u64, Vec<(Member, u64)>)| {
            members.iter().map(|member| (*class, row(member))).collect::<Vec<_>>()
        };
        self.classes.iter().flat_map(rows).collect()
    }

    fn join(&mut self, trees: &[GrowingTree], stands: &dyn Fn(&[Row]) -> bool, member: Member) {
        self.n_changes += 1;
        let new = (member, self.n_changes);
        let change = |members: &[(Member, u64)]| -> u32 {
            let column = |(column, tree): (usize, &GrowingTree)| {
                let nodes = members.iter().map(|(member, _)| member.nodes[column]);
                let label = nodes.reduce(|a, b| tree.join(a, b)).expect("classes have members");
                let joined = tree.join(label, new.0.nodes[column]);
                tree.distance(label, joined) * members.len() as u32 + tree.distance(new.0.nodes[column], joined)
            };
            trees.iter().enumerate().map(column).sum()
        };
        let nearest = self.classes.iter_mut().min_by_key(|(class, members)| (change(members), *class));
        if let Some((_, members)) = nearest {
            let with_new: Vec<Row> = members.iter().chain([&new]).map(row).collect();
            if new.0.k >= 2 && stands(&with_new) {
                members.push(new);
            }
        }
    }

    fn leave(&mut self, trees: &[GrowingTree], stands: &dyn Fn(&[Row]) -> bool, key: MemberKey) {
        let is_his = |(member, _): &(Member, u64)| member.key == key;
        let Some(place) = self.classes.iter().position(|(_, members)| members.iter().any(is_his)) else { return };
        self.classes[place].1.retain(|member| !is_his(member));
        if !stands(&self.classes[place].1.iter().map(row).collect::<Vec<_>>()) {
            let (_, rest) = self.classes.remove(place);
            rest.into_iter().for_each(|(member, _)| self.join(trees, stands, member));
        }
    }
}

/// The row of a member for the attacker. A row that vanished and came back is another row.
fn row((member, since): &(Member, u64)) -> Row {
    Row { showing: (member.key.0, *since), person: member.person.0, k: member.k, tuple: member.tuple.clone() }
}
