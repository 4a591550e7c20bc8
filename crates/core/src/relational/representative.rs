//! [`Representative`]: what all members of a cluster look like, a tree of boxes, and which row of each member went to
//! which node.
//!
//! A person is a representative of itself. Joining two pairs their nodes from the persons down; a node without a
//! partner leaves, with everything below it.
//!
//! # Guarantee
//! every member has exactly one row at every node, below the row it has at the node above; every box covers the codes
//! of its rows and is what a cell can show. Nodes stand in canonical order, siblings that look the same side by side
//! # Paper
//! algorithms 1 and 3 of `[NCN08]`

use super::cost::{Meter, Pairs, Scratch};
use super::forest::{Forest, Kind};

/// What all members of a cluster look like.
#[derive(Clone, Debug, Default)]
pub(super) struct Representative {
    /// Per kind its nodes.
    pub(super) layers: Vec<Layer>,
    /// The folded persons.
    pub(super) members: Vec<u32>,
    /// How many persons they stand for.
    pub(super) weight: u64,
    /// Cells of all its persons' rows that found no partner.
    pub(super) left_out: f64,
    /// Whether it may be a class is not asked under this weight.
    pub(super) asked_from: u64,
    /// When it was last added to.
    pub(super) met: u32,
}

/// The nodes of one table, those of one parent side by side.
#[derive(Clone, Debug, Default)]
pub(super) struct Layer {
    /// The node above.
    pub(super) parents: Vec<u32>,
    /// One interval per quasi column.
    pub(super) bounds: Vec<(u32, u32)>,
    /// What the node's own cells lose.
    pub(super) own: Vec<f64>,
    /// What the node and all below it lose.
    pub(super) total: Vec<f64>,
    /// Quasi cells of the node and all below it.
    pub(super) cells: Vec<u32>,
    /// At the first of several siblings that look the same, how many there are.
    pub(super) runs: Vec<u32>,
    /// Per child table, where the children of each node start, and the end.
    pub(super) child_starts: Vec<Vec<u32>>,
    /// Per node, and there per member, the slot of its row.
    pub(super) slots: Vec<u32>,
    /// Of a person, per node the number of its subtree in the forest; else empty.
    pub(super) numbers: Vec<u32>,
    /// What the cheapest node would lose by leaving.
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

    fn clear(&mut self, n_child_tables: usize) {
        self.parents.clear();
        self.bounds.clear();
        self.own.clear();
        self.total.clear();
        self.cells.clear();
        self.runs.clear();
        self.slots.clear();
        self.numbers.clear();
        self.child_starts.resize_with(n_child_tables, Vec::new);
        self.child_starts.iter_mut().for_each(Vec::clear);
    }
}

impl Representative {
    /// A folded person.
    pub(super) fn of_person(forest: &Forest, folded: u32) -> Representative {
        let mut person = Representative::default();
        person.become_person(forest, folded);
        person
    }

    /// Turns into a folded person, in the memory it has.
    pub(super) fn become_person(&mut self, forest: &Forest, folded: u32) {
        self.members.clear();
        self.members.push(folded);
        self.weight = u64::from(forest.weight(folded));
        self.left_out = 0.0;
        self.asked_from = 0;
        self.layers.resize_with(forest.kinds.len(), Layer::default);
        for (kind, of_kind) in forest.kinds.iter().enumerate() {
            let layer = &mut self.layers[kind];
            layer.clear(of_kind.children.len());
            let mut run = (0, None);
            for (node, slot) in forest.slots(folded, kind).enumerate() {
                layer.parents.push(slot.parent);
                layer.bounds.extend(slot.codes.iter().map(|&code| (code, code)));
                layer.slots.push(node as u32);
                layer.numbers.push(slot.number);
                layer.runs.push(0);
                let look = Some((slot.parent, slot.number));
                if run.1 != look {
                    run = (node, look);
                }
                layer.runs[run.0] += 1;
            }
            layer.own.resize(layer.parents.len(), 0.0);
        }
        self.link(&forest.kinds);
        self.sum_up(&forest.kinds);
    }

    /// One of each subtree of a table, the node of a subtree at the place of its number; it stands for one person and has
    /// nothing to say above that table. The subtrees are given by a person and a slot each.
    pub(super) fn of_subtrees(forest: &Forest, kind: usize, examples: &[(u32, u32)]) -> Representative {
        let mut catalogue = Representative { weight: 1, ..Representative::default() };
        catalogue.layers.resize_with(forest.kinds.len(), Layer::default);
        let mut person = Representative::default();
        for (layer, of_kind) in catalogue.layers.iter_mut().zip(&forest.kinds) {
            layer.clear(of_kind.children.len());
        }
        let above = std::iter::successors(forest.kinds[kind].parent, |&above| forest.kinds[above].parent);
        for above in above {
            catalogue.layers[above].parents.push(0);
            catalogue.layers[above].own.push(0.0);
        }
        for &(folded, slot) in examples {
            person.become_person(forest, folded);
            catalogue.copy_nodes(&person, forest, kind, (slot, slot + 1), 0);
        }
        catalogue.link(&forest.kinds);
        catalogue.sum_up(&forest.kinds);
        catalogue
    }

    /// Appends nodes of a person, and all below them, under a node.
    fn copy_nodes(&mut self, person: &Representative, forest: &Forest, kind: usize, range: (u32, u32), parent: u32) {
        let n_quasi = forest.kinds[kind].n_quasi;
        for node in range.0..range.1 {
            let (from, to) = (&person.layers[kind], &mut self.layers[kind]);
            let copy = to.len() as u32;
            to.parents.push(parent);
            to.bounds.extend_from_slice(&from.bounds[node as usize * n_quasi..][..n_quasi]);
            to.own.push(0.0);
            to.runs.push(from.runs[node as usize]);
            to.numbers.push(from.numbers[node as usize]);
            for (position, &child) in forest.kinds[kind].children.iter().enumerate() {
                self.copy_nodes(person, forest, child, from.children(position, node), copy);
            }
        }
    }

    /// What all its persons lose, rows left out counted in full.
    pub(super) fn loss(&self) -> f64 {
        self.weight as f64 * self.layers[0].total[0] + self.left_out
    }

    /// All quasi cells of its persons' rows, released or not.
    pub(super) fn n_cells(&self) -> f64 {
        self.weight as f64 * f64::from(self.layers[0].cells[0]) + self.left_out
    }

    /// One that stands for the members of both.
    pub(super) fn join(&self, other: &Representative, meter: &Meter<'_>, scratch: &mut Scratch) -> Representative {
        let kinds = meter.kinds();
        let mut joined = Representative {
            layers: vec![Layer::default(); kinds.len()],
            members: [self.members.as_slice(), &other.members].concat(),
            weight: self.weight + other.weight,
            left_out: self.left_out + other.left_out,
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
                    let left = |side: &Representative, nodes: &[u32]| {
                        let cells = nodes.iter().map(|&node| u64::from(side.layers[child].cells[node as usize]));
                        (cells.sum::<u64>() * side.weight) as f64
                    };
                    joined.left_out += left(self, &pairs.left_of_a) + left(other, &pairs.left_of_b);
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
        let kinds = meter.kinds();
        let mut rest =
            Representative { layers: vec![Layer::default(); kinds.len()], members: self.members.clone(), ..*self };
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
                    rest.left_out += self.weight as f64 * f64::from(from.cells[node]);
                    continue;
                }
                of_nodes[node] = Some(to.parents.len() as u32);
                to.parents.push(above);
                to.bounds.extend_from_slice(&from.bounds[node * of_kind.n_quasi..][..of_kind.n_quasi]);
                to.slots.extend_from_slice(&from.slots[node * self.members.len()..][..self.members.len()]);
            }
            number.push(of_nodes);
        }
        rest.restore(meter);
        rest
    }

    /// Puts nodes in canonical order and measures them, once parents, bounds and slots are known.
    fn restore(&mut self, meter: &Meter<'_>) {
        let kinds = meter.kinds();
        for (kind, layer) in self.layers.iter_mut().enumerate() {
            layer.child_starts = vec![Vec::new(); kinds[kind].children.len()];
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
            let key = |node: u32| (&layer.bounds[node as usize * n_quasi..][..n_quasi], &below[node as usize]);
            let mut order: Vec<u32> = (0..layer.len() as u32).collect();
            order.sort_by(|&a, &b| key(a).cmp(&key(b)));
            let mut of_nodes = vec![0; layer.len()];
            let mut look = 0;
            for (place, &node) in order.iter().enumerate() {
                look += u32::from(place > 0 && key(order[place - 1]) != key(node));
                of_nodes[node as usize] = look;
            }
            looks[kind] = of_nodes;
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
            let mut different = keys.clone();
            different.sort_unstable();
            different.dedup();
            orbits.push(keys.iter().map(|key| different.partition_point(|other| other < key) as u32).collect());
        }
        orbits
    }

    /// The rows of all persons at a node.
    pub(super) fn rows_at(&self, forest: &Forest, kind: usize, node: usize, mut visit: impl FnMut(u32)) {
        let slots = &self.layers[kind].slots[node * self.members.len()..][..self.members.len()];
        for (&member, &slot) in self.members.iter().zip(slots) {
            forest.rows_of_members(member, kind).for_each(|rows| visit(rows[slot as usize]));
        }
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
            let mut places = vec![0; order.len()];
            for (place, &node) in (0..).zip(&order) {
                places[node as usize] = place;
            }
            let take = |node: &u32| *node as usize;
            layer.parents = order.iter().map(|node| above[take(node)]).collect();
            layer.bounds = order
                .iter()
                .flat_map(|node| layer.bounds[take(node) * of_kind.n_quasi..][..of_kind.n_quasi].iter().copied())
                .collect();
            layer.own = order.iter().map(|node| layer.own[take(node)]).collect();
            layer.slots = order
                .iter()
                .flat_map(|node| layer.slots[take(node) * n_members..][..n_members].iter().copied())
                .collect();
            layer.runs = vec![0; order.len()];
            let mut run = (0, None);
            for (place, node) in order.iter().enumerate() {
                let look = Some((layer.parents[place], looks[kind][take(node)]));
                if run.1 != look {
                    run = (place, look);
                }
                layer.runs[run.0] += 1;
            }
            place_of.push(places);
        }
    }

    /// Finds where children start, from what every node hangs off.
    fn link(&mut self, kinds: &[Kind]) {
        for (kind, of_kind) in kinds.iter().enumerate() {
            for (position, &child) in of_kind.children.iter().enumerate() {
                let n_nodes = self.layers[kind].len();
                let mut starts = std::mem::take(&mut self.layers[kind].child_starts[position]);
                starts.clear();
                starts.resize(n_nodes + 1, 0);
                for &parent in &self.layers[child].parents {
                    starts[parent as usize + 1] += 1;
                }
                for node in 0..n_nodes {
                    starts[node + 1] += starts[node];
                }
                self.layers[kind].child_starts[position] = starts;
            }
        }
    }

    /// Sums losses and cells from the leaves up.
    fn sum_up(&mut self, kinds: &[Kind]) {
        for (kind, of_kind) in kinds.iter().enumerate() {
            let layer = &mut self.layers[kind];
            layer.total.clone_from(&layer.own);
            layer.cells.clear();
            layer.cells.resize(layer.parents.len(), of_kind.n_quasi as u32);
        }
        for kind in (1..kinds.len()).rev() {
            let Some(parent) = kinds[kind].parent else { continue };
            let (before, after) = self.layers.split_at_mut(kind);
            let (above, layer) = (&mut before[parent], &after[0]);
            for (node, &parent) in layer.parents.iter().enumerate() {
                above.total[parent as usize] += layer.total[node];
                above.cells[parent as usize] += layer.cells[node];
            }
        }
        for layer in &mut self.layers {
            let kept = layer.cells.iter().zip(&layer.total).map(|(&cells, total)| f64::from(cells) - total);
            layer.least_kept = kept.fold(f64::INFINITY, f64::min);
        }
    }
}
