//! [`refresh`]: what readers of an old and a new partition could combine, and what the new one's atoms are.
//!
//! # Guarantee
//! Where nobody is exposed, the new classes are unions of cells, each of which stands by itself and lies in one old
//! atom, or was never shown, or is carried by a core as riders are; what is shown no more stands by itself as well. So
//! all sets that readers of both can make out are unions of sets that stand. The new atoms are these cells, for readers
//! of both can tell them apart.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use super::ledger::{AtomMember, Member, MemberKey, Past, PersonKey, Standing};
use super::standard::{Candidate, Judge, Standard};

/// What readers of the old and the new could combine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Combined {
    /// Persons in sets that do not stand by themselves.
    pub n_exposed: u64,
    /// Persons in the smallest set that can be made out, `None` where there is none.
    pub fewest: Option<u64>,
}

/// A new partition as it is to be kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refreshed {
    /// What readers could combine.
    pub combined: Combined,
    /// Per new class its atoms. A class in which somebody is exposed is one atom, which may only be written by force.
    pub atoms: Vec<Vec<Vec<(MemberKey, Standing)>>>,
}

/// Compares the atoms that are shown with classes that are to be shown instead. `past` says what readers have seen of
/// persons before.
///
/// # Errors
/// Where the past can't be read.
pub fn refresh<E, M: Borrow<Member>>(
    standard: &Standard,
    old: &[Vec<AtomMember>],
    new: &[Vec<M>],
    past: impl Fn(PersonKey) -> Result<Past, E>,
) -> Result<Refreshed, E> {
    let mut judge = standard.judge();
    let mut refreshed = Refreshed::default();
    let mut atom_of: BTreeMap<MemberKey, (usize, Standing)> = BTreeMap::new();
    for (atom, members) in old.iter().enumerate() {
        atom_of.extend(members.iter().map(|member| (member.member.key, (atom, member.standing))));
    }
    for class in new {
        let class: Vec<&Member> = class.iter().map(Borrow::borrow).collect();
        let pasts = class.iter().map(|member| past(member.person)).collect::<Result<Vec<_>, _>>()?;
        let mut cells: BTreeMap<Option<usize>, Vec<Candidate<'_>>> = BTreeMap::new();
        for (&member, past) in class.iter().zip(&pasts) {
            let (atom, standing) = match (atom_of.remove(&member.key), past) {
                (Some((atom, standing)), _) => (Some(atom), standing),
                (None, Past::Nothing) => (None, Standing::Core),
                (None, Past::Among(_) | Past::Alone) => (None, Standing::Rider),
            };
            cells.entry(atom).or_default().push(Candidate { member, standing, past });
        }
        let mut all_stand = true;
        for cell in cells.values() {
            all_stand &= refreshed.combined.count(&mut judge, cell);
        }
        let as_kept = |candidate: &Candidate<'_>| (candidate.member.key, candidate.standing);
        refreshed.atoms.push(if all_stand {
            cells.values().map(|cell| cell.iter().map(as_kept).collect()).collect()
        } else {
            vec![class.iter().map(|member| (member.key, Standing::Core)).collect()]
        });
    }
    for members in old {
        let gone = members.iter().filter(|member| atom_of.contains_key(&member.member.key));
        let gone: Vec<&AtomMember> = gone.collect();
        if gone.len() == members.len() {
            continue;
        }
        let pasts = gone.iter().map(|member| past(member.member.person)).collect::<Result<Vec<_>, _>>()?;
        let cell: Vec<Candidate<'_>> = gone
            .iter()
            .zip(&pasts)
            .map(|(AtomMember { member, standing, .. }, past)| Candidate { member, standing: *standing, past })
            .collect();
        refreshed.combined.count(&mut judge, &cell);
    }
    Ok(refreshed)
}

impl Combined {
    fn count(&mut self, judge: &mut Judge<'_>, cell: &[Candidate<'_>]) -> bool {
        let n_persons = cell.len() as u64;
        if n_persons == 0 {
            return true;
        }
        self.fewest = Some(self.fewest.map_or(n_persons, |fewest| fewest.min(n_persons)));
        let stands = judge.is_part(cell);
        self.n_exposed += if stands { 0 } else { n_persons };
        stands
    }
}
