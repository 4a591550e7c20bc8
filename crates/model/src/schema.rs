//! [`Schema`]: how several tables are linked.
//!
//! Person tables have no parent. Every other table has one parent table, and each of its rows names a row of the parent
//! by a foreign key. So the rows that belong to a person form a tree, and the trees of different persons have no row in
//! common.
//!
//! # Paper
//! Definitions 1, 2 and the snowflake of section IV-A in `[NCN08]`
//! # Deviations
//! There may be several person tables, while the paper has one. Rows may also reference rows of any table by second
//! foreign keys. A reference says nothing about the person to whom a row belongs.

mod error;

use std::collections::HashMap;

pub use error::{SchemaError, SchemaErrorKind, SchemaErrors};

use crate::spec::{Childless, Orphans, TableSpec};
use crate::{Column, NULL, Spec, Table};

/// How tables are linked. Positions are those of `spec.tables` and of every slice of tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// The tables, in the order of the spec.
    pub tables: Vec<SchemaTable>,
}

/// One table and its links.
#[derive(Clone, Debug, PartialEq)]
pub struct SchemaTable {
    /// The name of the table.
    pub name: String,
    /// The position of the table's own key column, if it has one.
    pub key: Option<usize>,
    /// The parent; `None` for a person table, in which each row is a person.
    pub parent: Option<SchemaParent>,
    /// The second foreign keys, in the order of columns.
    pub references: Vec<SchemaReference>,
    /// The largest share of its rows that may be left out, if the spec limits it; only for a child table.
    pub max_rows_left_out: Option<f64>,
}

/// A second foreign key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemaReference {
    /// The position of the column that holds the reference.
    pub column: usize,
    /// The position of the referenced table.
    pub table: usize,
}

/// The parent of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemaParent {
    /// The position of the parent table.
    pub table: usize,
    /// The position, in the child, of the column that holds the parent's key.
    pub foreign_key: usize,
}

impl Schema {
    /// The schema of a consistent spec and its tables, which are in the order of the spec.
    ///
    /// # Errors
    /// Every fault in the data by table and row: null and repeated keys, orphans, persons without children.
    pub fn of(spec: &Spec, tables: &[Table]) -> Result<Schema, SchemaErrors> {
        let mut errors = Vec::new();
        let linked = spec.tables.iter().zip(tables).map(|(wanted, table)| {
            let noted = SchemaTable::of(spec, wanted, table);
            noted.unwrap_or_else(|fault| {
                errors.push(SchemaError { table: wanted.name.clone(), fault });
                SchemaTable {
                    name: wanted.name.clone(),
                    key: None,
                    parent: None,
                    references: Vec::new(),
                    max_rows_left_out: None,
                }
            })
        });
        let schema = Schema { tables: linked.collect() };
        if errors.is_empty() {
            for (position, wanted) in spec.tables.iter().enumerate() {
                let faults = schema.faults(tables, position, wanted);
                errors.extend(faults.into_iter().map(|fault| SchemaError { table: wanted.name.clone(), fault }));
            }
        }
        if errors.is_empty() { Ok(schema) } else { Err(SchemaErrors(errors)) }
    }

    /// The person tables, ascending.
    pub fn roots(&self) -> Vec<usize> {
        (0..self.tables.len()).filter(|&table| self.tables[table].parent.is_none()).collect()
    }

    /// The child tables of a table, ascending.
    pub fn children(&self, table: usize) -> Vec<usize> {
        let is_child = |child: &usize| self.tables[*child].parent.is_some_and(|parent| parent.table == table);
        (0..self.tables.len()).filter(is_child).collect()
    }

    /// Whether this column joins tables: it points to another table, or another table points to it. Other keys are not
    /// released.
    pub fn joins_by(&self, table: usize, column: usize) -> bool {
        let linked = &self.tables[table];
        let points = linked.parent.is_some_and(|parent| parent.foreign_key == column)
            || linked.references.iter().any(|reference| reference.column == column);
        let is_referenced = || {
            let mut references = self.tables.iter().flat_map(|other| &other.references);
            references.any(|reference| reference.table == table)
        };
        points || (linked.key == Some(column) && (!self.children(table).is_empty() || is_referenced()))
    }

    /// Whether any table has a second foreign key.
    pub fn has_references(&self) -> bool {
        self.tables.iter().any(|table| !table.references.is_empty())
    }

    /// For each row of a table, the row that a reference names; [`NULL`] if it names none.
    pub fn reference_rows(&self, tables: &[Table], table: usize, reference: SchemaReference) -> Vec<u32> {
        self.rows_named(tables, reference.table, &tables[table].columns[reference.column])
    }

    /// For each row of a table, its row in the parent table; [`NULL`] for an orphan. `None` for a person table.
    pub fn parent_rows(&self, tables: &[Table], table: usize) -> Option<Vec<u32>> {
        let parent = self.tables[table].parent?;
        Some(self.rows_named(tables, parent.table, &tables[table].columns[parent.foreign_key]))
    }

    /// For each cell, the row of a table that has it as key; [`NULL`] if there is none.
    fn rows_named(&self, tables: &[Table], table: usize, foreign_key: &Column) -> Vec<u32> {
        let Some(key) = self.tables[table].key else { return vec![NULL; foreign_key.ids.len()] };
        let key = &tables[table].columns[key];
        let mut row_of_text: HashMap<&str, u32> = HashMap::with_capacity(key.texts.len());
        for (row, &id) in key.ids.iter().enumerate().filter(|&(_, &id)| id != NULL) {
            row_of_text.entry(key.texts.get(id)).or_insert(row as u32);
        }
        let row_of_id: Vec<u32> =
            foreign_key.texts.iter().map(|text| row_of_text.get(text).copied().unwrap_or(NULL)).collect();
        foreign_key.ids.iter().map(|&id| row_of_id.get(id as usize).copied().unwrap_or(NULL)).collect()
    }

    fn faults(&self, tables: &[Table], position: usize, wanted: &TableSpec) -> Vec<SchemaErrorKind> {
        let table = &tables[position];
        let mut faults = Vec::new();
        let key = self.tables[position].key;
        let named = if self.tables[position].parent.is_none() { table.person } else { None };
        for column in key.into_iter().chain(named.filter(|&person| Some(person) != key)) {
            faults.extend(key_faults(&table.columns[column]));
        }
        if let (Some(parents), Some(parent)) = (self.parent_rows(tables, position), &wanted.parent) {
            let rows = rows_where(&parents, |&parent| parent == NULL);
            if wanted.orphans == Orphans::Refuse && !rows.is_empty() {
                faults.push(SchemaErrorKind::Orphans { parent: parent.table.clone(), rows });
            }
        }
        for &reference in &self.tables[position].references {
            let column = &table.columns[reference.column];
            let named = self.reference_rows(tables, position, reference);
            let lost: Vec<bool> = named.iter().zip(&column.ids).map(|(&row, &id)| row == NULL && id != NULL).collect();
            let rows = rows_where(&lost, |&lost| lost);
            if !rows.is_empty() {
                let target = self.tables[reference.table].name.clone();
                faults.push(SchemaErrorKind::Dangling { column: column.name.clone(), target, rows });
            }
        }
        let children = self.children(position);
        if self.tables[position].parent.is_none() && wanted.childless == Childless::Refuse && !children.is_empty() {
            let mut has_child = vec![false; table.n_rows];
            for parents in children.iter().filter_map(|&child| self.parent_rows(tables, child)) {
                parents.iter().filter(|&&row| row != NULL).for_each(|&row| has_child[row as usize] = true);
            }
            let rows = rows_where(&has_child, |&has_child| !has_child);
            if !rows.is_empty() {
                faults.push(SchemaErrorKind::Childless { rows });
            }
        }
        faults
    }
}

impl SchemaTable {
    fn of(spec: &Spec, wanted: &TableSpec, table: &Table) -> Result<SchemaTable, SchemaErrorKind> {
        let position =
            |name: &str| table.position(name).ok_or_else(|| SchemaErrorKind::MissingColumn { column: name.to_owned() });
        let key = wanted.key.as_deref().or(wanted.person.as_deref()).map(position).transpose()?;
        let parent = match &wanted.parent {
            None => None,
            Some(parent) => {
                let of_parent = spec.tables.iter().position(|other| other.name == parent.table);
                let table = of_parent.ok_or_else(|| SchemaErrorKind::MissingParent { parent: parent.table.clone() })?;
                Some(SchemaParent { table, foreign_key: position(&parent.foreign_key)? })
            }
        };
        let mut references = Vec::new();
        for column in &wanted.columns {
            let Some(name) = &column.references else { continue };
            let of_target = spec.tables.iter().position(|other| other.name == *name);
            let table = of_target.ok_or_else(|| SchemaErrorKind::MissingParent { parent: name.clone() })?;
            references.push(SchemaReference { column: position(&column.name)?, table });
        }
        references.sort_unstable_by_key(|reference| reference.column);
        Ok(SchemaTable {
            name: wanted.name.clone(),
            key,
            parent,
            references,
            max_rows_left_out: wanted.max_rows_left_out,
        })
    }
}

/// Null and repeated keys.
fn key_faults(key: &Column) -> Vec<SchemaErrorKind> {
    let mut faults = Vec::new();
    let nulls = rows_where(&key.ids, |&id| id == NULL);
    if !nulls.is_empty() {
        faults.push(SchemaErrorKind::NullKeys { column: key.name.clone(), rows: nulls });
    }
    let mut first_row = vec![0; key.texts.len()];
    let mut repeated = Vec::new();
    for (row, &id) in (1..).zip(&key.ids).filter(|&(_, &id)| id != NULL) {
        match first_row[id as usize] {
            0 => first_row[id as usize] = row,
            earlier => repeated.push((row, earlier)),
        }
    }
    if !repeated.is_empty() {
        faults.push(SchemaErrorKind::RepeatedKeys { column: key.name.clone(), rows: repeated });
    }
    faults
}

/// The rows whose cell is wrong, numbered from 1.
fn rows_where<T>(cells: &[T], is_wrong: impl Fn(&T) -> bool) -> Vec<u64> {
    (1..).zip(cells).filter(|(_, cell)| is_wrong(cell)).map(|(row, _)| row).collect()
}

#[cfg(test)]
mod tests;
