//! An order of connected rows that tells nothing more than their cells do.
//!
//! Rows that look the same, down to the cells released as they are, are ordered by their connections: first by colours,
//! refined until the colour of a row determines the colours of all its neighbours, then by a walk along the
//! connections.
//!
//! # Guarantee
//! Neither the order of the input nor private keys show. Connections are a forest, so rows that a walk can't tell apart
//! can be exchanged together with everything behind them, and which of them came first leaves no trace.
//! # Cost
//! one sort of the connected rows per round, and as many rounds as connections are long

use kohort_model::{NULL, Schema};

use super::canonical::Numbers;
use super::references::{Kept, Planned, places};
use crate::ranks::ranks;

/// For each table and row, the place of a connected row among rows of equal content; 0 for other rows.
pub(super) struct RowPlaces(Vec<Vec<u32>>);

impl RowPlaces {
    /// The places of rows, given the numbers of their contents per plan and kind.
    pub(super) fn of(schema: &Schema, planned: &[Planned<'_>], numbers: &[Vec<Numbers>], kept: &Kept) -> RowPlaces {
        let nothing = places(planned, schema.tables.len())
            .into_iter()
            .map(|(plan, kind)| vec![0; numbers[plan][kind].of_row.len()]);
        let mut places = RowPlaces(nothing.collect());
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
    /// For each node, its table and row.
    rows: Vec<(u32, u32)>,
    /// Per node its content.
    contents: Vec<(u32, u32)>,
    /// For each node, its connections: the kind, and the other node.
    edges: Vec<Vec<(u32, u32)>>,
}

impl Net {
    fn of(schema: &Schema, planned: &[Planned<'_>], numbers: &[Vec<Numbers>], kept: &Kept) -> Net {
        let plan_of = places(planned, schema.tables.len());
        let person = |table: usize, row: u32| {
            let (plan, kind) = plan_of[table];
            (plan, planned[plan].grove.persons[kind][row as usize])
        };
        let mut is_connected: Vec<Vec<bool>> =
            planned.iter().map(|plan| vec![false; plan.grove.persons[0].len()]).collect();
        for (table, linked) in schema.tables.iter().enumerate() {
            for (reference, targets) in linked.references.iter().zip(&kept[table]) {
                for (row, &target) in (0..).zip(targets).filter(|&(_, &target)| target != NULL) {
                    for (plan, person) in [person(table, row), person(reference.table, target)] {
                        is_connected[plan][person as usize] = true;
                    }
                }
            }
        }
        // Sorted by name, so that the order of the spec changes nothing.
        let mut by_name: Vec<usize> = (0..plan_of.len()).collect();
        by_name.sort_by_key(|&table| &schema.tables[table].name);
        let mut net = Net { rows: Vec::new(), contents: Vec::new(), edges: Vec::new() };
        let mut node_of: Vec<Vec<u32>> = vec![Vec::new(); plan_of.len()];
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
            let references = schema.tables[table].references.iter().zip(&kept[table]);
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

    /// For each node, its colour. Colours follow the contents, and are refined until they determine those of all
    /// neighbours.
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
