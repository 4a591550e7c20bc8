//! [`Representative`]: what all members of a cluster look like, a tree of boxes, and which row of each member went to
//! which node.
//!
//! A person is a representative of itself. Joining two pairs their nodes from the persons down; a node without a
//! partner leaves, with everything below it.
//!
//! # Guarantee
//! every member has exactly one row at every node, below the row it has at the node above; every box covers the codes
//! of its rows and is what a cell can show. Nodes are in canonical order, siblings that look the same side by side
//! # Paper
//! algorithms 1 and 3 of `[NCN08]`

use super::cost::{Meter, Pairs, Scratch};
use super::forest::{Forest, Kind};
use crate::ranks::{places, ranks};

/// What all members of a cluster look like.
#[derive(Clone, Debug, Default)]
pub(super) struct Representative {
    /// Per kind its nodes.
    pub(super) layers: Vec<Layer>,
    /// The folded persons.
    pub(super) members: Vec<u32>,
    /// The number of persons that the representative stands for.
    pub(super) weight: u64,
    /// The number of cells of all its persons' rows that found no partner.
    pub(super) left_out: f64,
    /// What leaving these rows out counts for while classes are looked for: their cells, or more if the spec limits how many
    /// rows of a table may be left out.
    pub(super) forgone: f64,
    /// A cluster of less weight than this is not checked: it can't be a class.
    pub(super) asked_from: u64,
    /// When the last person was added.
    pub(super) met: u32,
}

/// The nodes of one table, those of one parent side by side.
#[derive(Clone, Debug, Default)]
pub(super) struct Layer {
    /// The node above.
    pub(super) parents: Vec<u32>,
    /// One interval per quasi column.
    pub(super) bounds: Vec<(u32, u32)>,
    /// The loss of each node's own cells.
    pub(super) own: Vec<f64>,
    /// The loss of each node with everything below it.
    pub(super) total: Vec<f64>,
    /// The number of quasi cells of each node with everything below it.
    pub(super) cells: Vec<u32>,
    /// What leaving out each node with everything below it costs, if nothing of it is lost yet.
    pub(super) worth: Vec<f64>,
    /// At the first of several siblings that look the same, how many there are.
    pub(super) runs: Vec<u32>,
    /// For each child table, where the children of each node start, and the end.
    pub(super) child_starts: Vec<Vec<u32>>,
    /// For each node and member, the slot of its row.
    pub(super) slots: Vec<u32>,
    /// For each node of a person, the number of its subtree in the forest; empty for clusters of several.
    pub(super) numbers: Vec<u32>,
    /// The smallest loss of a node, if it left.
    pub(super) least_kept: f64,
}

impl Layer {
    pub(super) fn len(&self) -> usize {
        self.parents.len()
    }

    pub(super) fn children(&self, position: usize, node: u32) -> (u32, u32) {
        let starts = &self.child_starts[position];
        (starts[node as usize], starts[node as usize + 1])
    }

    /// Runs of the nodes in a range: the first node of each and how many they are.
    #[inline]
    pub(super) fn runs(&self, (from, to): (u32, u32)) -> impl Iterator<Item = (u32, u32)> {
        let mut next = from;
        std::iter::from_fn(move || {
            (next < to).then(|| {
                let run = (next, self.runs[next as usize]);
                next += run.1;
                run
            })
        })
    }
}

impl Representative {
    /// A folded person, and when it was met.
    pub(super) fn of_person(forest: &Forest, folded: u32, met: u32) -> Representative {
        let mut layers = vec![Layer::default(); forest.kinds.len()];
        for (kind, layer) in layers.iter_mut().enumerate() {
            for (node, slot) in (0..).zip(forest.slots(folded, kind)) {
                layer.parents.push(slot.parent);
                layer.bounds.extend(slot.codes.iter().map(|&code| (code, code)));
                layer.slots.push(node);
                layer.numbers.push(slot.number);
            }
            layer.runs = runs(layer.parents.iter().copied().zip(layer.numbers.iter().copied()));
            layer.own = vec![0.0; layer.parents.len()];
        }
        let weight = u64::from(forest.weight(folded));
        let mut person = Representative { layers, members: vec![folded], weight, met, ..Representative::default() };
        person.link(&forest.kinds);
        person.sum_up(&forest.kinds);
        person
    }

    /// The loss of all its persons. Rows that are left out count in full.
    pub(super) fn loss(&self) -> f64 {
        self.weight as f64 * self.layers[0].total[0] + self.left_out
    }

    /// What all its persons' rows cost, released or not. As [`Representative::loss`], but rows that are left out count
    /// what they are worth.
    pub(super) fn cost(&self) -> f64 {
        self.weight as f64 * self.layers[0].total[0] + self.forgone
    }

    /// What leaving out all its persons would cost.
    pub(super) fn worth(&self) -> f64 {
        self.weight as f64 * self.layers[0].worth[0] + self.forgone
    }

    /// All quasi cells of its persons' rows, released or not.
    pub(super) fn n_cells(&self) -> f64 {
        self.weight as f64 * f64::from(self.layers[0].cells[0]) + self.left_out
    }

    /// A representative of the members of both.
    pub(super) fn join(&self, other: &Representative, meter: &Meter<'_>, scratch: &mut Scratch) -> Representative {
        let kinds = meter.kinds;
        let mut joined = Representative {
            layers: vec![Layer::default(); kinds.len()],
            members: [self.members.as_slice(), &other.members].concat(),
            weight: self.weight + other.weight,
            left_out: self.left_out + other.left_out,
            forgone: self.forgone + other.forgone,
            asked_from: self.asked_from.max(other.asked_from),
            met: self.met.max(other.met),
        };
        let mut nodes: Vec<Vec<(u32, u32)>> = vec![Vec::new(); kinds.len()];
        let mut pairs = Pairs::default();
        nodes[0].push((0, 0));
        joined.layers[0].parents.push(0);
        for (kind, of_kind) in kinds.iter().enumerate() {
            let parents = std::mem::take(&mut nodes[kind]);
            for (position, &child) in of_kind.children.iter().enumerate() {
                for (parent, &(a, b)) in (0..).zip(&parents) {
                    let in_a = self.layers[kind].children(position, a);
                    let in_b = other.layers[kind].children(position, b);
                    meter.pair(scratch, child, (self, in_a), (other, in_b), &mut pairs);
                    for &pair in &pairs.matched {
                        nodes[child].push(pair);
                        joined.layers[child].parents.push(parent);
                    }
                    for (side, nodes) in [(self, &pairs.left_of_a), (other, &pairs.left_of_b)] {
                        joined.leave(side, child, nodes.iter().map(|&node| node as usize));
                    }
                }
            }
            let layer = &mut joined.layers[kind];
            let (above, beside) = (&self.layers[kind], &other.layers[kind]);
            for &(a, b) in &parents {
                let columns = a as usize * of_kind.n_quasi..(a as usize + 1) * of_kind.n_quasi;
                let (a_bounds, b_bounds) =
                    (&above.bounds[columns], &beside.bounds[b as usize * of_kind.n_quasi..][..of_kind.n_quasi]);
                for (column, (a, b)) in a_bounds.iter().zip(b_bounds).enumerate() {
                    layer.bounds.push(meter.hull(kind, column, a.0.min(b.0), a.1.max(b.1)));
                }
                let slots = |layer: &Layer, members: usize, node: u32| {
                    layer.slots[node as usize * members..][..members].to_vec()
                };
                layer.slots.extend(slots(above, self.members.len(), a));
                layer.slots.extend(slots(beside, other.members.len(), b));
            }
        }
        joined.restore(meter);
        joined
    }

    /// Takes nodes out, with everything below them; `leaves` says per kind and node whether it goes.
    pub(super) fn without(&self, leaves: &[Vec<bool>], meter: &Meter<'_>) -> Representative {
        let kinds = meter.kinds;
        let mut rest =
            Representative { layers: vec![Layer::default(); kinds.len()], members: self.members.clone(), ..*self };
        let mut left: Vec<(usize, usize)> = Vec::new();
        let mut number: Vec<Vec<Option<u32>>> = Vec::with_capacity(kinds.len());
        for (kind, of_kind) in kinds.iter().enumerate() {
            let (from, to) = (&self.layers[kind], &mut rest.layers[kind]);
            let mut of_nodes = vec![None; from.len()];
            for node in 0..from.len() {
                let above = match of_kind.parent {
                    None => Some(0),
                    Some(parent) => number[parent][from.parents[node] as usize],
                };
                let Some(above) = above else { continue };
                if leaves[kind][node] {
                    left.push((kind, node));
                    continue;
                }
                of_nodes[node] = Some(to.parents.len() as u32);
                to.parents.push(above);
                to.bounds.extend_from_slice(&from.bounds[node * of_kind.n_quasi..][..of_kind.n_quasi]);
                to.slots.extend_from_slice(&from.slots[node * self.members.len()..][..self.members.len()]);
            }
            number.push(of_nodes);
        }
        left.into_iter().for_each(|(kind, node)| rest.leave(self, kind, [node]));
        rest.restore(meter);
        rest
    }

    /// Counts nodes of a representative as left out, with everything below them.
    fn leave(&mut self, of: &Representative, kind: usize, nodes: impl IntoIterator<Item = usize>) {
        let (layer, weight) = (&of.layers[kind], of.weight as f64);
        for node in nodes {
            self.left_out += weight * f64::from(layer.cells[node]);
            self.forgone += weight * layer.worth[node];
        }
    }

    /// Puts nodes in canonical order and measures them, once parents, bounds and slots are known.
    fn restore(&mut self, meter: &Meter<'_>) {
        let kinds = meter.kinds;
        for (kind, layer) in self.layers.iter_mut().enumerate() {
            layer.own = (0..layer.parents.len()).map(|node| meter.own_width(kind, layer, node)).collect();
        }
        self.link(kinds);
        let looks = self.looks(kinds);
        self.sort(kinds, &looks);
        self.link(kinds);
        self.sum_up(kinds);
    }

    /// Numbers nodes by their own box and all below them: equal for nodes that look the same from there down.
    pub(super) fn looks(&self, kinds: &[Kind]) -> Vec<Vec<u32>> {
        let mut looks: Vec<Vec<u32>> = vec![Vec::new(); kinds.len()];
        for kind in (0..kinds.len()).rev() {
            let layer = &self.layers[kind];
            let n_quasi = kinds[kind].n_quasi;
            let mut below: Vec<Vec<u32>> = vec![Vec::new(); layer.len()];
            for (position, &child) in kinds[kind].children.iter().enumerate() {
                for (node, below) in (0..).zip(&mut below) {
                    let (from, to) = layer.children(position, node);
                    let start = below.len() + 1;
                    // The number of children comes first, so that lists of several tables can't be confused.
                    below.push(to - from);
                    below.extend_from_slice(&looks[child][from as usize..to as usize]);
                    below[start..].sort_unstable();
                }
            }
            let boxes = (0..layer.len()).map(|node| &layer.bounds[node * n_quasi..][..n_quasi]);
            looks[kind] = ranks(&boxes.zip(&below).collect::<Vec<_>>()).0;
        }
        looks
    }

    /// Numbers nodes so that those nobody can tell apart are equal: same look, below nodes nobody can tell apart.
    pub(super) fn orbits(&self, kinds: &[Kind]) -> Vec<Vec<u32>> {
        let looks = self.looks(kinds);
        let mut orbits: Vec<Vec<u32>> = Vec::with_capacity(kinds.len());
        for (kind, of_kind) in kinds.iter().enumerate() {
            let above = |node: usize| {
                of_kind.parent.map_or(0, |parent| orbits[parent][self.layers[kind].parents[node] as usize])
            };
            let keys: Vec<(u32, u32)> =
                looks[kind].iter().enumerate().map(|(node, &look)| (above(node), look)).collect();
            orbits.push(ranks(&keys).0);
        }
        orbits
    }

    /// The rows of all persons at a node.
    pub(super) fn rows_at<'r>(
        &'r self,
        forest: &'r Forest,
        kind: usize,
        node: usize,
    ) -> impl Iterator<Item = u32> + 'r {
        let slots = &self.layers[kind].slots[node * self.members.len()..][..self.members.len()];
        let members = self.members.iter().zip(slots);
        members
            .flat_map(move |(&member, &slot)| forest.rows_of_members(member, kind).map(move |rows| rows[slot as usize]))
    }

    /// Puts the children of every node in the order of their looks.
    fn sort(&mut self, kinds: &[Kind], looks: &[Vec<u32>]) {
        let n_members = self.members.len();
        let mut place_of: Vec<Vec<u32>> = Vec::with_capacity(kinds.len());
        for (kind, of_kind) in kinds.iter().enumerate() {
            let layer = &mut self.layers[kind];
            let above: Vec<u32> = match of_kind.parent {
                None => vec![0; layer.len()],
                Some(parent) => layer.parents.iter().map(|&node| place_of[parent][node as usize]).collect(),
            };
            let mut order: Vec<u32> = (0..layer.len() as u32).collect();
            order.sort_by_key(|&node| (above[node as usize], looks[kind][node as usize]));
            let nodes = || order.iter().map(|&node| node as usize);
            let n_quasi = of_kind.n_quasi;
            layer.parents = nodes().map(|node| above[node]).collect();
            layer.bounds = nodes().flat_map(|node| &layer.bounds[node * n_quasi..][..n_quasi]).copied().collect();
            layer.own = nodes().map(|node| layer.own[node]).collect();
            layer.slots = nodes().flat_map(|node| &layer.slots[node * n_members..][..n_members]).copied().collect();
            layer.runs = runs(nodes().map(|node| (above[node], looks[kind][node])));
            place_of.push(places(&order));
        }
    }

    /// Finds where the children of every node start.
    fn link(&mut self, kinds: &[Kind]) {
        for (kind, of_kind) in kinds.iter().enumerate() {
            let n_nodes = self.layers[kind].len();
            let starts = |&child: &usize| {
                let mut starts = vec![0; n_nodes + 1];
                for &parent in &self.layers[child].parents {
                    starts[parent as usize + 1] += 1;
                }
                for node in 0..n_nodes {
                    starts[node + 1] += starts[node];
                }
                starts
            };
            self.layers[kind].child_starts = of_kind.children.iter().map(starts).collect();
        }
    }

    fn sum_up(&mut self, kinds: &[Kind]) {
        for (kind, of_kind) in kinds.iter().enumerate() {
            let layer = &mut self.layers[kind];
            layer.total.clone_from(&layer.own);
            layer.cells.clear();
            layer.cells.resize(layer.parents.len(), of_kind.n_quasi as u32);
            layer.worth.clear();
            layer.worth.resize(layer.parents.len(), of_kind.worth);
        }
        for kind in (1..kinds.len()).rev() {
            let Some(parent) = kinds[kind].parent else { continue };
            let (before, after) = self.layers.split_at_mut(kind);
            let (above, layer) = (&mut before[parent], &after[0]);
            for (node, &parent) in layer.parents.iter().enumerate() {
                above.total[parent as usize] += layer.total[node];
                above.cells[parent as usize] += layer.cells[node];
                above.worth[parent as usize] += layer.worth[node];
            }
        }
        for layer in &mut self.layers {
            let kept = layer.worth.iter().zip(&layer.total).map(|(worth, total)| worth - total);
            layer.least_kept = kept.fold(f64::INFINITY, f64::min);
        }
    }
}

/// At the first of several neighbours with equal parents and looks, how many there are; elsewhere 0.
fn runs(looks: impl ExactSizeIterator<Item = (u32, u32)>) -> Vec<u32> {
    let mut runs = vec![0; looks.len()];
    let mut run = (0, None);
    for (node, look) in looks.enumerate() {
        if run.1 != Some(look) {
            run = (node, Some(look));
        }
        runs[run.0] += 1;
    }
    runs
}
