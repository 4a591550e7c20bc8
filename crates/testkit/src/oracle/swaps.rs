//! Which persons can be exchanged in released tables that reference each other, by trying.
//!
//! The oracle knows nothing of orders, colours or trees. Two persons can be exchanged if some one-to-one map from the
//! rows connected with the one to the rows connected with the other keeps tables, quasi cells, parents and references.
//! All maps are tried, so tables must be tiny.

use std::collections::BTreeMap;

use kohort_model::{Column, Role, Schema, Table};

/// Rows as they were read, joined by the texts of their keys.
pub struct Connected {
    /// The first node of each table.
    starts: Vec<usize>,
    /// The table and the quasi cells of each node.
    shown: Vec<(usize, Vec<Option<String>>)>,
    /// What each node points to: its parent and each reference, if there is one.
    points_to: Vec<Vec<Option<usize>>>,
    /// What points to each node, and by which link.
    pointed_from: Vec<Vec<(usize, usize)>>,
}

impl Connected {
    /// Joins tables as a reader would.
    ///
    /// # Panics
    /// If a key that is not null names no row.
    pub fn new(tables: &[Table], schema: &Schema) -> Connected {
        let mut starts = Vec::new();
        let mut shown = Vec::new();
        for (position, table) in tables.iter().enumerate() {
            starts.push(shown.len());
            let quasi: Vec<&Column> = table.columns.iter().filter(|column| column.role == Role::Quasi).collect();
            for row in 0..table.n_rows {
                shown.push((position, quasi.iter().map(|column| column.cell(row).map(str::to_owned)).collect()));
            }
        }
        let mut points_to = vec![Vec::new(); shown.len()];
        let mut pointed_from = vec![Vec::new(); shown.len()];
        for (position, (table, linked)) in tables.iter().zip(&schema.tables).enumerate() {
            let parent = linked.parent.map(|parent| (parent.foreign_key, parent.table));
            let references = linked.references.iter().map(|reference| (reference.column, reference.table));
            for (link, (column, to)) in parent.into_iter().chain(references).enumerate() {
                let key = &tables[to].columns[schema.tables[to].key.expect("a table pointed to has a key")];
                let row_of_key: BTreeMap<&str, usize> =
                    (0..tables[to].n_rows).filter_map(|row| Some((key.cell(row)?, row))).collect();
                for row in 0..table.n_rows {
                    let target = table.columns[column].cell(row).map(|cell| starts[to] + row_of_key[cell]);
                    points_to[starts[position] + row].push(target);
                    if let Some(target) = target {
                        pointed_from[target].push((starts[position] + row, link));
                    }
                }
            }
        }
        Connected { starts, shown, points_to, pointed_from }
    }

    /// For each row of a table, the number of rows of the table with which it can be exchanged, itself included.
    pub fn exchangeable(&self, table: usize) -> Vec<usize> {
        self.crowds(table).iter().map(Vec::len).collect()
    }

    /// For each row of a table, the rows with which it can be exchanged, itself included.
    pub fn crowds(&self, table: usize) -> Vec<Vec<usize>> {
        let start = self.starts[table];
        let rows: Vec<usize> = (start..self.shown.len()).take_while(|&node| self.shown[node].0 == table).collect();
        let crowd = |&a: &usize| {
            let crowd = rows.iter().filter(|&&b| self.can_be_exchanged(a, b));
            crowd.map(|node| node - start).collect()
        };
        rows.iter().map(crowd).collect()
    }

    fn can_be_exchanged(&self, a: usize, b: usize) -> bool {
        let (of_a, of_b) = (self.around(a), self.around(b));
        if of_a.len() != of_b.len() {
            return false;
        }
        let mut map = BTreeMap::new();
        self.fits(&map, a, b) && {
            map.insert(a, b);
            self.extends(&of_a, 1, &mut map)
        }
    }

    /// All nodes connected with a node, each after one of its neighbours.
    fn around(&self, node: usize) -> Vec<usize> {
        let mut found = vec![node];
        let mut next = 0;
        while next < found.len() {
            for other in self.neighbours(found[next]) {
                if !found.contains(&other) {
                    found.push(other);
                }
            }
            next += 1;
        }
        found
    }

    fn neighbours(&self, node: usize) -> Vec<usize> {
        let above = self.points_to[node].iter().flatten().copied();
        above.chain(self.pointed_from[node].iter().map(|&(other, _)| other)).collect()
    }

    /// Whether a partial map can be completed.
    fn extends(&self, nodes: &[usize], next: usize, map: &mut BTreeMap<usize, usize>) -> bool {
        let Some(&node) = nodes.get(next) else { return true };
        let met = self.neighbours(node).into_iter().find_map(|other| map.get(&other).copied());
        let beside = met.expect("a node comes after one of its neighbours");
        let mut candidates = self.neighbours(beside);
        candidates.sort_unstable();
        candidates.dedup();
        for candidate in candidates {
            if !map.values().any(|&taken| taken == candidate) && self.fits(map, node, candidate) {
                map.insert(node, candidate);
                if self.extends(nodes, next + 1, map) {
                    return true;
                }
                map.remove(&node);
            }
        }
        false
    }

    /// Whether a node may be mapped to another, given what is mapped already.
    fn fits(&self, map: &BTreeMap<usize, usize>, a: usize, b: usize) -> bool {
        let links_agree = |(of_a, of_b): (&Option<usize>, &Option<usize>)| match (of_a, of_b) {
            (None, None) => true,
            (Some(to_a), Some(to_b)) if *to_a == a || *to_b == b => (*to_a == a) == (*to_b == b),
            (Some(to_a), Some(to_b)) => map.get(to_a).is_none_or(|mapped| mapped == to_b),
            _ => false,
        };
        self.shown[a] == self.shown[b]
            && self.pointed_from[a].len() == self.pointed_from[b].len()
            && self.points_to[a].iter().zip(&self.points_to[b]).all(links_agree)
            && self.pointed_from[a]
                .iter()
                .all(|(from, link)| map.get(from).is_none_or(|mapped| self.points_to[*mapped][*link] == Some(b)))
    }
}
