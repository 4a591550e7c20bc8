//! [`BlindSearch`]: bodies and wings that tell no audience how the columns of others steered them.
//!
//! Bodies are cut by columns that all audiences concerned know, and by nothing else. Inside of a body each audience's
//! wing is a function of its own columns there. How far bodies are cut is weighed against what wings would lose if
//! own columns were spread evenly, since what they really lose depends on columns that others don't know.
//!
//! # Guarantee
//! If only k is asked and each person has one row: let rows that look the same to an audience exchange everything that
//! the audience does not know, and every released cell stays as it is. So for an audience that knows the algorithm and
//! its own columns of everybody, all such exchanges are equally possible.
//! # Deviations
//! `[PTL+08]` chooses bodies by what they and their wings lose. Columns that several but not all audiences know show
//! one box per body. If audiences may collude, only the one with most columns has a wing.
//! # Cost
//! one partition of the common columns, and one of each wing

use std::collections::{BTreeMap, BTreeSet};

use kohort_model::Requirement;

use super::atoms::Atoms;
use super::butterfly::Piece;
use super::plan::{Ask, Compile, columns_of, domains_of, shared, together};
use super::settle::Outcome;
use super::shown::ShownBoxes;
use crate::partition::{CutNode, Mondrian, Partitioner};
use crate::requirement::UnfitColumn;

/// A search steered by common columns.
pub(super) struct BlindSearch<'s> {
    /// Cuts common columns.
    pub(super) quick: Mondrian,
    /// Partitions wings.
    pub(super) partitioner: &'s dyn Partitioner,
    pub(super) compile: Compile<'s>,
    /// The coalitions: the positions of the members among the audiences, and the requirements.
    pub(super) coalitions: Vec<(BTreeSet<usize>, Vec<Requirement>)>,
}

/// An audience with the columns that are not settled yet.
#[derive(Clone)]
struct Viewer {
    /// The audience's position among all audiences.
    audience: usize,
    ask: Ask,
}

impl BlindSearch<'_> {
    /// The cells that all atoms show.
    ///
    /// # Errors
    /// If a requirement names a column that is not fit for it.
    pub(super) fn find<'a>(&self, atoms: Atoms<'a>, asks: &[Ask]) -> Result<Outcome<'a>, UnfitColumn> {
        let mut shown = ShownBoxes::new(&atoms, std::iter::empty());
        let viewers: Vec<Viewer> =
            asks.iter().cloned().enumerate().map(|(audience, ask)| Viewer { audience, ask }).collect();
        let bodies = self.settle_viewers(&atoms, &atoms.all(), &viewers, &mut shown)?;
        Ok(Outcome { atoms, shown, bodies })
    }

    /// Shows these atoms in all columns of the viewers, and says which bodies they form.
    fn settle_viewers(
        &self,
        atoms: &Atoms<'_>,
        members: &[u32],
        viewers: &[Viewer],
        shown: &mut ShownBoxes,
    ) -> Result<Vec<Vec<u32>>, UnfitColumn> {
        let viewers: Vec<Viewer> = viewers.iter().filter(|viewer| !viewer.ask.columns.is_empty()).cloned().collect();
        let whole = || Ok(vec![members.to_vec()]);
        match viewers.as_slice() {
            [] => return whole(),
            [only] => {
                self.show_wing(atoms, members, &only.ask, shown)?;
                return whole();
            }
            _ => {}
        }
        let common = common(&viewers);
        if !common.is_empty() {
            let bodies = self.bodies(atoms, members, &common, &viewers)?;
            let inside: Vec<Viewer> = viewers.iter().map(|viewer| viewer.without(&common)).collect();
            for body in &bodies {
                show_one_box(atoms, body, &common, shown);
                self.settle_viewers(atoms, body, &inside, shown)?;
            }
            return Ok(bodies);
        }
        for group in self.groups(&viewers) {
            self.settle_group(atoms, members, &group, shown)?;
        }
        whole()
    }

    /// Groups of viewers: two viewers of different groups share no column and do not collude.
    fn groups(&self, viewers: &[Viewer]) -> Vec<Vec<Viewer>> {
        let mut groups: Vec<Vec<Viewer>> = Vec::new();
        for viewer in viewers {
            let concerns =
                |other: &Viewer| !viewer.ask.columns.is_disjoint(&other.ask.columns) || self.collude(viewer, other);
            let (with, mut apart): (Vec<_>, Vec<_>) = groups.into_iter().partition(|group| group.iter().any(concerns));
            apart.push(with.into_iter().flatten().chain([viewer.clone()]).collect());
            groups = apart;
        }
        groups
    }

    fn collude(&self, one: &Viewer, other: &Viewer) -> bool {
        let members = self.coalitions.iter().map(|(members, _)| members);
        members.into_iter().any(|members| members.contains(&one.audience) && members.contains(&other.audience))
    }

    fn settle_group(
        &self,
        atoms: &Atoms<'_>,
        members: &[u32],
        group: &[Viewer],
        shown: &mut ShownBoxes,
    ) -> Result<(), UnfitColumn> {
        let colludes = |viewer: &Viewer| {
            group.iter().any(|other| other.audience != viewer.audience && self.collude(viewer, other))
        };
        if !group.iter().any(colludes) && (group.len() == 1 || !common(group).is_empty()) {
            return self.settle_viewers(atoms, members, group, shown).map(|_| ());
        }
        // Columns that several audiences know, but not all of them, show one box per body. After that every audience
        // has only columns of its own.
        let of_several = shared(group.iter().map(|viewer| &viewer.ask.columns));
        let own: Vec<Viewer> = group.iter().map(|viewer| viewer.without(&of_several)).collect();
        show_one_box(atoms, members, &of_several, shown);
        let mut colluding: Vec<Viewer> = Vec::new();
        for viewer in own {
            if colludes(&viewer) { colluding.push(viewer) } else { self.show_wing(atoms, members, &viewer.ask, shown)? }
        }
        // If only one of the colluding audiences has a wing, all of them together see no more than that one does.
        let most = colluding.iter().map(|viewer| viewer.ask.columns.len()).max().unwrap_or(0);
        let Some(chosen) = colluding.iter().position(|viewer| viewer.ask.columns.len() == most) else { return Ok(()) };
        let mut winged = colluding.remove(chosen).ask;
        let asks: Vec<Ask> = colluding.into_iter().map(|viewer| viewer.ask).collect();
        show_one_box(atoms, members, &columns_of(&asks), shown);
        winged.requirements.extend(together(&asks));
        winged.requirements.extend(self.coalitions.iter().flat_map(|(_, requirements)| requirements).cloned());
        self.show_wing(atoms, members, &winged, shown)
    }

    fn show_wing(
        &self,
        atoms: &Atoms<'_>,
        members: &[u32],
        ask: &Ask,
        shown: &mut ShownBoxes,
    ) -> Result<(), UnfitColumn> {
        let columns: Vec<usize> = ask.columns.iter().copied().collect();
        if columns.is_empty() {
            return Ok(());
        }
        let rules = (self.compile)(&ask.requirements)?;
        let classes =
            atoms.project(members, &columns).classes(&domains_of(atoms.domains, &columns), &rules, self.partitioner);
        for class in classes {
            shown.show(atoms, &Piece::new(atoms, &class, &columns));
        }
        Ok(())
    }

    /// Bodies by common columns alone.
    fn bodies(
        &self,
        atoms: &Atoms<'_>,
        members: &[u32],
        common: &BTreeSet<usize>,
        viewers: &[Viewer],
    ) -> Result<Vec<Vec<u32>>, UnfitColumn> {
        let asks: Vec<Ask> = viewers.iter().map(|viewer| viewer.ask.clone()).collect();
        let mut asked = together(&asks);
        asked.extend(self.coalitions.iter().flat_map(|(_, requirements)| requirements).cloned());
        let rules = (self.compile)(&asked)?;
        let core: &[usize] = &common.iter().copied().collect::<Vec<_>>();
        let projection = atoms.project(members, core);
        let Some(mut classes) = projection.partition(&domains_of(atoms.domains, core), &rules, &self.quick) else {
            return Ok(vec![members.to_vec()]);
        };
        let nodes = classes.tree.take().map_or_else(Vec::new, |tree| tree.nodes);
        let leaves: Vec<Vec<u32>> = classes.iter().map(|class| projection.atoms(class)).collect();
        let own: Vec<Ask> = asks.iter().map(|ask| ask.without(common)).collect();
        let loss = |body: &[u32]| {
            let weight = atoms.rows.weight_of(body);
            let in_wings: f64 = own.iter().map(|ask| expected_loss_of_wing(ask, weight)).sum();
            (atoms.perimeter(&atoms.bounds(body, core), core) + in_wings) * weight as f64
        };
        // Bodies that show the same box become one, because nobody can tell them apart.
        let mut bodies: BTreeMap<Vec<(u32, u32)>, Vec<u32>> = BTreeMap::new();
        for body in best_runs(&leaves, &nodes, loss) {
            let bounds = atoms.bounds(&body, core).into_iter().zip(core);
            let shown = bounds.map(|((lo, hi), &column)| atoms.domains[column].hull(lo, hi)).collect();
            bodies.entry(shown).or_default().extend(body);
        }
        Ok(bodies.into_values().collect())
    }
}

impl Viewer {
    fn without(&self, columns: &BTreeSet<usize>) -> Viewer {
        Viewer { audience: self.audience, ask: self.ask.without(columns) }
    }
}

/// The columns that all viewers know.
fn common(viewers: &[Viewer]) -> BTreeSet<usize> {
    let columns = viewers.iter().map(|viewer| viewer.ask.columns.clone());
    columns.reduce(|common, known| &common & &known).unwrap_or_default()
}

fn show_one_box(atoms: &Atoms<'_>, members: &[u32], columns: &BTreeSet<usize>, shown: &mut ShownBoxes) {
    let columns: Vec<usize> = columns.iter().copied().collect();
    shown.show(atoms, &Piece::new(atoms, members, &columns));
}

/// The loss of a row of a body in the columns of an audience's wing if the body's rows are spread evenly: as many classes
/// of k as fit, each cut equally often in every column. Known before any of these columns is looked at.
fn expected_loss_of_wing(ask: &Ask, weight: u64) -> f64 {
    let (n_columns, k) = (ask.columns.len() as f64, f64::from(ask.k().max(1)));
    if n_columns == 0.0 {
        return 0.0;
    }
    let n_classes = (weight as f64 / k).floor().max(1.0);
    let size = weight as f64 / n_classes;
    n_columns * n_classes.powf(-1.0 / n_columns) * (size - 1.0) / (size + 1.0)
}

/// The runs of leaves that lose least. From the bottom up, a node becomes one run if that loses no more than its two
/// sides do.
fn best_runs(leaves: &[Vec<u32>], nodes: &[CutNode], loss: impl Fn(&[u32]) -> f64) -> Vec<Vec<u32>> {
    let mut best: Vec<(f64, Vec<Vec<u32>>)> = leaves.iter().map(|leaf| (loss(leaf), vec![leaf.clone()])).collect();
    // In pre-order children come after their parents. The result of a subtree is kept at its first leaf.
    for node in nodes.iter().rev() {
        let (second_loss, second) = std::mem::take(&mut best[node.middle as usize]);
        let (first_loss, first) = std::mem::take(&mut best[node.first as usize]);
        let one: Vec<u32> = leaves[node.first as usize..node.end as usize].concat();
        let loss_of_one = loss(&one);
        best[node.first as usize] = if loss_of_one <= first_loss + second_loss {
            (loss_of_one, vec![one])
        } else {
            (first_loss + second_loss, [first, second].concat())
        };
    }
    best.into_iter().flat_map(|(_, runs)| runs).collect()
}
