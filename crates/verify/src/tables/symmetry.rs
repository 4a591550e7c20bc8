//! Orbits of released rows whose tables also reference each other.
//!
//! Rows are the nodes of a graph. A row has an edge to its parent and to each row that it references. Siblings that
//! reference the same row through the same column get a common node, which has edges to the siblings, to their parent
//! and to the referenced row. So "the same doctor three times" is one edge to the doctor, not three.
//!
//! # Guarantee
//! Two rows are in one orbit exactly if a symmetry of the whole release takes one to the other: a one-to-one map of all
//! released rows to themselves that keeps tables, quasi cells, parents, references and empty references. So a reader
//! who knows all of these about everybody, and how they are connected, can't tell the rows of an orbit apart.
//!
//! The graph must be a forest. In a forest, it is enough to compare the trees below each node, seen from the middle of
//! its tree, to decide which nodes a symmetry exchanges. In graphs with circles it is not: whether three friends form a
//! triangle can't be seen from what each of them sees. A release with circles is therefore refused.
//! # Cost
//! O(n log n) over all rows. Each node is visited when it becomes a leaf, and once more on the way back.

use std::collections::HashMap;

use kohort_model::NULL;

use super::forest::Forest;
use super::shape::Shape;
use crate::Violation;
use crate::count::cells::CellIds;
use crate::count::grouping::Classes;
use crate::structure::place;

/// The rows of each table, grouped by orbit. `names` gives the names of a table and of the column of one of its
/// references.
///
/// # Errors
/// If references form a circle.
pub(crate) fn orbits(
    shape: &Shape,
    forest: &Forest,
    cells: &[Vec<&CellIds<'_>>],
    names: impl Fn(usize, usize) -> (String, String),
) -> Result<Vec<Classes>, Vec<Violation>> {
    let graph = RowGraph::of(shape, forest, cells);
    let peeled = Peeled::of(&graph);
    let mut violations = Vec::new();
    for table in 0..shape.n_tables() {
        for (position, reference) in shape.references(table).iter().enumerate() {
            let targets = &forest.targets[table][position];
            let in_circle = |row: usize| {
                let is_left = |table: usize, row: usize| peeled.round[graph.starts[table] + row] == NULL;
                targets[row] != NULL && is_left(table, row) && is_left(reference.table, targets[row] as usize)
            };
            if let Some((n, first_row)) = place(targets.len(), in_circle) {
                let (table, column) = names(table, position);
                violations.push(Violation::ReferencesInCircle { column, n, first_row }.in_table(&table));
            }
        }
    }
    if !violations.is_empty() {
        return Err(violations);
    }
    let (orbits, n_orbits) = peeled.orbits(&graph);
    let of_table = |table: usize| {
        let of_rows = &orbits[graph.starts[table]..graph.starts[table] + forest.n_rows[table]];
        Classes::group(&[&CellIds::by_id(of_rows, n_orbits)], forest.n_rows[table])
    };
    Ok((0..shape.n_tables()).map(of_table).collect())
}

/// One end of an edge: the node at the other end, and the label of the edge, seen from here.
type End = (u32, u32);

/// The rows of all tables, and the edges between them.
struct RowGraph {
    /// The node of the first row of each table.
    starts: Vec<usize>,
    /// A number for each node, equal for rows of one table with equal cells, and for common nodes of one column.
    colours: Vec<u32>,
    /// The edges of each node.
    edges: Vec<Vec<End>>,
}

impl RowGraph {
    fn of(shape: &Shape, forest: &Forest, cells: &[Vec<&CellIds<'_>>]) -> RowGraph {
        let mut graph = RowGraph { starts: Vec::new(), colours: Vec::new(), edges: Vec::new() };
        let mut n_colours = 0;
        for (cells, &n_rows) in cells.iter().zip(&forest.n_rows) {
            graph.starts.push(graph.colours.len());
            let classes = Classes::group(cells, n_rows);
            graph.colours.extend(classes.class_of_rows().iter().map(|&class| n_colours + class));
            n_colours += classes.len() as u32;
        }
        graph.edges.resize_with(graph.colours.len(), Vec::new);
        let mut label = 0;
        let mut next_label = || {
            label += 2;
            label
        };
        for table in 0..shape.n_tables() {
            let node = |row: usize| (graph.starts[table] + row) as u32;
            let above = shape.link(table).map(|link| graph.starts[link.parent] as u32);
            let parent = |row: usize| above.map_or(NULL, |first| first + forest.parents[table][row]);
            let mut has_own_edge = vec![above.is_some(); forest.n_rows[table]];
            let mut new_edges: Vec<(u32, u32, u32)> = Vec::new();
            let mut new_colours: Vec<u32> = Vec::new();
            for (reference, targets) in shape.references(table).iter().zip(&forest.targets[table]) {
                let (to_target, to_parent, to_member) = (next_label(), next_label(), next_label());
                let mut shared: HashMap<(u32, u32), Vec<usize>> = HashMap::new();
                for (row, &target) in targets.iter().enumerate().filter(|&(_, &target)| target != NULL) {
                    let target = graph.starts[reference.table] as u32 + target;
                    // Persons have no siblings, so each has edges of its own.
                    let key = if above.is_some() { (parent(row), target) } else { (node(row), target) };
                    shared.entry(key).or_default().push(row);
                }
                let mut shared: Vec<((u32, u32), Vec<usize>)> = shared.into_iter().collect();
                shared.sort_unstable();
                for ((parent, target), rows) in shared {
                    if let [row] = rows[..] {
                        new_edges.push((node(row), target, to_target));
                        continue;
                    }
                    let group = (graph.edges.len() + new_colours.len()) as u32;
                    new_colours.push(n_colours);
                    new_edges.push((group, target, to_target));
                    new_edges.push((group, parent, to_parent));
                    for row in rows {
                        new_edges.push((group, node(row), to_member));
                        has_own_edge[row] = false;
                    }
                }
                n_colours += 1;
            }
            let to_parent = next_label();
            let hanging = (0..forest.n_rows[table]).filter(|&row| has_own_edge[row]);
            new_edges.extend(hanging.map(|row| (node(row), parent(row), to_parent)));
            graph.colours.extend(new_colours);
            graph.edges.resize_with(graph.colours.len(), Vec::new);
            for (from, to, label) in new_edges {
                graph.edges[from as usize].push((to, label));
                graph.edges[to as usize].push((from, label + 1));
            }
        }
        graph
    }
}

/// A forest, peeled from its leaves to the middle of every tree.
struct Peeled {
    /// The round in which each node was peeled off; [`NULL`] for nodes that never become leaves because of a circle.
    round: Vec<u32>,
    /// The nodes of each round.
    rounds: Vec<Vec<u32>>,
    /// The last edge of each node when it was peeled off; `None` for the last node of a tree.
    last: Vec<Option<End>>,
}

impl Peeled {
    fn of(graph: &RowGraph) -> Peeled {
        let n_nodes = graph.edges.len();
        let mut degrees: Vec<usize> = graph.edges.iter().map(Vec::len).collect();
        let mut peeled = Peeled { round: vec![NULL; n_nodes], rounds: Vec::new(), last: vec![None; n_nodes] };
        let mut leaves: Vec<u32> = (0..n_nodes as u32).filter(|&node| degrees[node as usize] <= 1).collect();
        while !leaves.is_empty() {
            let round = peeled.rounds.len() as u32;
            leaves.iter().for_each(|&node| peeled.round[node as usize] = round);
            let mut touched = Vec::new();
            for &node in &leaves {
                let is_left = |&&(other, _): &&End| {
                    let when = peeled.round[other as usize];
                    when == NULL || when == round
                };
                let Some(&(other, label)) = graph.edges[node as usize].iter().find(is_left) else { continue };
                peeled.last[node as usize] = Some((other, label));
                if peeled.round[other as usize] == NULL {
                    degrees[other as usize] -= 1;
                    touched.push(other);
                }
            }
            touched.sort_unstable();
            touched.dedup();
            touched.retain(|&node| degrees[node as usize] <= 1);
            peeled.rounds.push(std::mem::replace(&mut leaves, touched));
        }
        peeled
    }

    /// The orbit of each node, and the number of orbits.
    fn orbits(&self, graph: &RowGraph) -> (Vec<u32>, usize) {
        let n_nodes = graph.edges.len();
        // First the looks of rooted trees: a node and the nodes that were peeled off it.
        let mut below: Vec<Vec<(u32, u32)>> = vec![Vec::new(); n_nodes];
        let mut numbers: HashMap<Vec<u32>, u32> = HashMap::new();
        let mut looks = vec![0; n_nodes];
        for &node in self.rounds.iter().flatten() {
            let mut list = std::mem::take(&mut below[node as usize]);
            list.sort_unstable();
            let key: Vec<u32> = std::iter::once(graph.colours[node as usize])
                .chain(list.into_iter().flat_map(|(label, look)| [label, look]))
                .collect();
            let next = numbers.len() as u32;
            let look = *numbers.entry(key).or_insert(next);
            looks[node as usize] = look;
            if let Some((other, label)) = self.hangs_off(node) {
                below[other as usize].push((label, look));
            }
        }
        // Then the orbits, from the middle outwards. If a tree has two middle nodes, the orbit of each depends on the
        // look of the other.
        let mut numbers: HashMap<[u32; 4], u32> = HashMap::new();
        let mut orbits = vec![0; n_nodes];
        for &node in self.rounds.iter().rev().flatten() {
            let look = looks[node as usize];
            let key = match (self.last[node as usize], self.hangs_off(node)) {
                (_, Some((other, label))) => [2, orbits[other as usize], label, look],
                (Some((partner, label)), None) => [1, looks[partner as usize], label, look],
                (None, None) => [0, 0, 0, look],
            };
            let next = numbers.len() as u32;
            orbits[node as usize] = *numbers.entry(key).or_insert(next);
        }
        let n_orbits = numbers.len();
        (orbits, n_orbits)
    }

    /// The node from which a node was peeled off; `None` for a middle node.
    fn hangs_off(&self, node: u32) -> Option<End> {
        self.last[node as usize].filter(|&(other, _)| self.round[other as usize] > self.round[node as usize])
    }
}
