//! [`Lineage`]: the parent and the person of each private row.

use kohort_model::{NULL, Requirement, Schema, Table};

use super::keys::KeyCells;
use super::shape::{Reference, Shape};
use crate::Violation;
use crate::count::cells::CellIds;
use crate::count::roll::OwnK;

/// The parents, persons and references of private rows.
pub(crate) struct Lineage {
    /// For each table and row, the row of the parent table; [`NULL`] for orphans. Empty for person tables.
    pub(crate) parents: Vec<Vec<u32>>,
    /// For each table and row, the row of the person table; [`NULL`] for orphans and rows below them.
    pub(crate) persons: Vec<Vec<u32>>,
    /// For each table, reference and row, the row that is referenced; [`NULL`] if none is.
    pub(crate) targets: Vec<Vec<Vec<u32>>>,
}

impl Lineage {
    /// Joins the private tables by their keys.
    ///
    /// # Errors
    /// Keys that do not tell rows apart.
    pub(crate) fn of(shape: &Shape, schema: &Schema, originals: &[Table]) -> Result<Lineage, Vec<Violation>> {
        let mut violations = Vec::new();
        let targets = |table: usize| -> Vec<Vec<u32>> {
            let named = |to: &Reference| {
                let key = KeyCells::of_column(&originals[to.table].columns[to.key]);
                KeyCells::of_column(&originals[table].columns[to.column]).join(&key)
            };
            shape.references(table).iter().map(named).collect()
        };
        let mut lineage = Lineage {
            parents: vec![Vec::new(); originals.len()],
            persons: vec![Vec::new(); originals.len()],
            targets: (0..originals.len()).map(targets).collect(),
        };
        for &table in &shape.top_down {
            let original = &originals[table];
            let mut keys: Vec<usize> = shape.key(table).into_iter().collect();
            if shape.is_of_persons(table) {
                keys.extend(original.person.into_iter().chain(schema.tables[table].key));
            }
            keys.sort_unstable();
            keys.dedup();
            for key in keys {
                let key = &original.columns[key];
                if let Some((n, first_row)) = KeyCells::of_column(key).unusable() {
                    let column = key.name.clone();
                    violations.push(Violation::OriginalKeys { column, n, first_row }.in_table(&original.name));
                }
            }
            let Some(link) = shape.link(table) else {
                lineage.persons[table] = (0..original.n_rows as u32).collect();
                continue;
            };
            let key = KeyCells::of_column(&originals[link.parent].columns[link.key]);
            let parents = KeyCells::of_column(&original.columns[link.foreign_key]).join(&key);
            let above = &lineage.persons[link.parent];
            let person = |&parent: &u32| if parent == NULL { NULL } else { above[parent as usize] };
            lineage.persons[table] = parents.iter().map(person).collect();
            lineage.parents[table] = parents;
        }
        if violations.is_empty() { Ok(lineage) } else { Err(violations) }
    }

    /// For each person table, the columns of own k with the k of every person of the table. The k of a person may be in
    /// any of their rows, released or not. Adds a violation for each column that can't be read.
    pub(crate) fn own_ks(
        &self,
        shape: &Shape,
        originals: &[Table],
        requirements: &[Vec<Requirement>],
        violations: &mut Vec<Violation>,
    ) -> Vec<Vec<OwnK>> {
        let mut own_ks: Vec<Vec<OwnK>> = originals.iter().map(|_| Vec::new()).collect();
        for (table, original) in originals.iter().enumerate() {
            let root = shape.root(table);
            let persons = CellIds::by_id(self.persons[table].as_slice(), originals[root].n_rows);
            for name in requirements[table].iter().filter_map(Requirement::own_k_column) {
                // The name of a child table tells its column from one of the same name in the person table.
                let qualified = if root == table { name.to_owned() } else { format!("{}.{name}", original.name) };
                if own_ks[root].iter().any(|own_k| own_k.column == qualified) {
                    continue;
                }
                let read = match original.column(name) {
                    None => Err(Violation::UnknownColumn { column: name.to_owned() }),
                    Some(column) => OwnK::read(column, None, original.n_rows, Some(&persons)),
                };
                match read {
                    Err(violation) => violations.push(violation.in_table(&original.name)),
                    Ok(own_k) => {
                        let of_person = (0..originals[root].n_rows).map(|person| own_k.of_person(person)).collect();
                        own_ks[root].push(OwnK::new(qualified, of_person));
                    }
                }
            }
        }
        own_ks
    }
}
