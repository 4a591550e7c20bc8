//! [`Lineage`]: which private row hangs off which, and which person it is of.

use kohort_model::{NULL, Requirement, Schema, Table};

use super::keys::KeyCells;
use super::shape::{Reference, Shape};
use crate::Violation;
use crate::count::cells::CellIds;
use crate::count::roll::OwnK;

/// Private rows by the row they hang off and by their person.
pub(crate) struct Lineage {
    /// Per table and row the row of the parent table, [`NULL`] for orphans; empty for person tables.
    pub(crate) parents: Vec<Vec<u32>>,
    /// Per table and row the row of the person table, [`NULL`] for orphans and what hangs off them.
    pub(crate) persons: Vec<Vec<u32>>,
    /// Per table, reference and row the row that is referenced, [`NULL`] where none is.
    pub(crate) targets: Vec<Vec<Vec<u32>>>,
}

impl Lineage {
    /// Follows the private keys.
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

    /// Persons' own k, wherever among their rows it stands, released or not: per person table the requirements, each
    /// with the own k of every person of the table. What can't be read is added to the violations.
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
                // A child table's column is told from the person table's by the table's name.
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

/// The own k of some of the persons, with the requirements that ask for it.
pub(crate) fn of_released(own_ks: &[OwnK], rows: &[u32]) -> Vec<(Requirement, OwnK)> {
    let of_rows = |own_k: &OwnK| rows.iter().map(|&row| own_k.of_person(row as usize)).collect();
    let asked = |own_k: &OwnK| {
        let requirement = Requirement::PersonK { column: own_k.column.clone() };
        (requirement, OwnK::new(own_k.column.clone(), of_rows(own_k)))
    };
    own_ks.iter().map(asked).collect()
}
