//! An order of rows that references connect, which tells nothing that their cells don't.
//!
//! Rows that look the same, down to the cells released as they are, are told apart by what they are connected with: first
//! by colours, refined until a row's colour says the colours of all its neighbours, then by a walk along the connections.
//!
//! # Guarantee
//! Neither the order of the input nor private keys show. Connections are a forest, so rows that a walk can't tell apart
//! can be exchanged together with everything behind them, and which of them came first leaves no trace.
//! # Cost
//! one sort of the connected rows per round, and as many rounds as connections are long

use kohort_model::{NULL, Schema};

use super::canonical::Numbers;
use super::references::{Kept, Planned};

/// Per table and row where a connected row stands among those of equal content; 0 for other rows.
pub(super) struct Places(Vec<Vec<u32>>);

impl Places {
    /// Places of rows, given the numbers of their contents per plan and kind.
    pub(super) fn of(schema: &Schema, planned: &[Planned<'_>], numbers: &[Vec<Numbers>], kept: &Kept) -> Places {
        let n_rows = |table: usize| -> usize {
            let of_plan = |plan: &Planned<'_>| {
                plan.grove.kinds.iter().position(|kind| kind.table == table).map(|kind| plan.grove.parents[kind].len())
            };
            planned.iter().find_map(of_plan).unwrap_or(0)
        };
        let mut places = Places((0..schema.tables.len()).map(|table| vec![0; n_rows(table)]).collect());
        let net = Net::of(schema, planned, numbers, kept);
        for (place, node) in (1..).zip(net.walk(&net.colours())) {
            let (table, row) = net.rows[node as usize];
            places.0[table as usize][row as usize] = place;
        }
        places
    }

    pub(super) fn of_row(&self, table: usize, row: u32) -> u32 {
        self.0[table][row as usize]
    }
}

/// Connected rows.
struct Net {
    /// Per node its table and row.
    rows: Vec<(u32, u32)>,
    /// Per node its content.
    contents: Vec<(u32, u32)>,
    /// Per node what it is connected with: how, and the other node.
    edges: Vec<Vec<(u32, u32)>>,
}

impl Net {
    fn of(schema: &Schema, planned: &[Planned<'_>], numbers: &[Vec<Numbers>], kept: &Kept) -> Net {
        let n_tables = schema.tables.len();
        let mut plan_of = vec![(0, 0); n_tables];
        for (plan, of_plan) in planned.iter().enumerate() {
            for (kind, of_kind) in of_plan.grove.kinds.iter().enumerate() {
                plan_of[of_kind.table] = (plan, kind);
            }
        }
        let person = |table: usize, row: u32| {
            let (plan, kind) = plan_of[table];
            (plan, planned[plan].grove.persons[kind][row as usize])
        };
        let mut is_connected: Vec<Vec<bool>> =
            planned.iter().map(|plan| vec![false; plan.grove.persons[0].len()]).collect();
        for (table, linked) in schema.tables.iter().enumerate() {
            for (reference, targets) in linked.references.iter().zip(&kept.targets[table]) {
                for (row, &target) in (0..).zip(targets).filter(|&(_, &target)| target != NULL) {
                    for (plan, person) in [person(table, row), person(reference.table, target)] {
                        is_connected[plan][person as usize] = true;
                    }
                }
            }
        }
        // By name, so that the order of the spec changes nothing.
        let mut by_name: Vec<usize> = (0..n_tables).collect();
        by_name.sort_by_key(|&table| &schema.tables[table].name);
        let mut net = Net { rows: Vec::new(), contents: Vec::new(), edges: Vec::new() };
        let mut node_of: Vec<Vec<u32>> = vec![Vec::new(); n_tables];
        for (rank, &table) in (0..).zip(&by_name) {
            let (plan, kind) = plan_of[table];
            let of_rows = &numbers[plan][kind].of_row;
            node_of[table] = vec![NULL; of_rows.len()];
            for (row, &number) in (0..).zip(of_rows).filter(|&(_, &number)| number != NULL) {
                let (plan, person) = person(table, row);
                if is_connected[plan][person as usize] {
                    node_of[table][row as usize] = net.rows.len() as u32;
                    net.rows.push((table as u32, row));
                    net.contents.push((rank, number));
                }
            }
        }
        net.edges.resize_with(net.rows.len(), Vec::new);
        let mut label = 0;
        for &table in &by_name {
            let (plan, kind) = plan_of[table];
            let above =
                schema.tables[table].parent.map(|parent| (parent.table, &planned[plan].shown.layers[kind].parents));
            let references = schema.tables[table].references.iter().zip(&kept.targets[table]);
            for (other, others) in above.into_iter().chain(references.map(|(to, targets)| (to.table, targets))) {
                label += 2;
                for (row, &met) in (0..).zip(others).filter(|&(_, &met)| met != NULL) {
                    let (from, to) = (node_of[table][row as usize], node_of[other][met as usize]);
                    if from != NULL && to != NULL {
                        net.edges[from as usize].push((label, to));
                        net.edges[to as usize].push((label + 1, from));
                    }
                }
            }
        }
        net
    }

    /// Per node its colour. Colours follow the contents, and refine each other until all neighbours are told.
    fn colours(&self) -> Vec<u32> {
        let (mut colours, mut n_colours) = ranks(&self.contents);
        loop {
            let seen: Vec<(u32, Vec<(u32, u32)>)> = self
                .edges
                .iter()
                .zip(&colours)
                .map(|(edges, &own)| {
                    let mut around: Vec<(u32, u32)> =
                        edges.iter().map(|&(label, other)| (label, colours[other as usize])).collect();
                    around.sort_unstable();
                    (own, around)
                })
                .collect();
            let (refined, n_refined) = ranks(&seen);
            if n_refined == n_colours {
                return colours;
            }
            (colours, n_colours) = (refined, n_refined);
        }
    }

    /// Nodes in the order of a walk that begins at the least colour and turns to the least colour first.
    fn walk(&self, colours: &[u32]) -> Vec<u32> {
        let mut by_colour: Vec<u32> = (0..self.rows.len() as u32).collect();
        by_colour.sort_by_key(|&node| colours[node as usize]);
        let mut is_met = vec![false; self.rows.len()];
        let mut walked = Vec::with_capacity(self.rows.len());
        let mut next: Vec<u32> = Vec::new();
        for start in by_colour {
            next.push(start);
            while let Some(node) = next.pop() {
                if std::mem::replace(&mut is_met[node as usize], true) {
                    continue;
                }
                walked.push(node);
                let mut around: Vec<(u32, u32, u32)> = self.edges[node as usize]
                    .iter()
                    .filter(|&&(_, other)| !is_met[other as usize])
                    .map(|&(label, other)| (label, colours[other as usize], other))
                    .collect();
                around.sort_unstable();
                next.extend(around.into_iter().rev().map(|(_, _, other)| other));
            }
        }
        walked
    }
}

/// Per value its rank among the different ones, and how many these are.
fn ranks<T: Ord>(values: &[T]) -> (Vec<u32>, usize) {
    let mut order: Vec<u32> = (0..values.len() as u32).collect();
    order.sort_by(|&a, &b| values[a as usize].cmp(&values[b as usize]));
    let mut ranks = vec![0; values.len()];
    let mut rank = 0;
    for (place, &node) in order.iter().enumerate() {
        rank += u32::from(place > 0 && values[order[place - 1] as usize] != values[node as usize]);
        ranks[node as usize] = rank;
    }
    (ranks, if values.is_empty() { 0 } else { rank as usize + 1 })
}
