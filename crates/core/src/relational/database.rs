//! [`Database`]: tables that hang together, and how two become one.
//!
//! # Paper
//! definitions 4 (structurally equivalent), 6 (union) and 7 (concatenation) of `[NCN08]`
//! # Deviations
//! whether the result is sound, such as that keys are still unique, is for [`Schema::of`] to say

use std::collections::BTreeSet;

use kohort_model::schema::{SchemaParent, SchemaTable};
use kohort_model::{Column, Schema, Table};

/// Tables and how they hang together.
#[derive(Clone, Debug)]
pub struct Database {
    /// How they hang together.
    pub schema: Schema,
    /// In the order of the schema.
    pub tables: Vec<Table>,
}

/// Two databases do not have the same tables, columns and links.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("table '{table}' is not in both databases with the same columns and links")]
pub struct NotEquivalent {
    /// A table that differs.
    pub table: String,
}

impl Database {
    /// The rows of both, table by table; a row that both have is there once.
    ///
    /// # Errors
    /// Where the two are not structurally equivalent.
    pub fn union(&self, other: &Database) -> Result<Database, NotEquivalent> {
        let mut tables = Vec::with_capacity(self.tables.len());
        for (position, table) in self.tables.iter().enumerate() {
            let differs = || NotEquivalent { table: table.name.clone() };
            let in_other = other.position(&table.name).ok_or_else(differs)?;
            if self.shape(position) != other.shape(in_other) {
                return Err(differs());
            }
            tables.push(united(table, &other.tables[in_other]));
        }
        let is_extra = |table: &&Table| self.position(&table.name).is_none();
        if let Some(extra) = other.tables.iter().find(is_extra) {
            return Err(NotEquivalent { table: extra.name.clone() });
        }
        Ok(Database { schema: self.schema.clone(), tables })
    }

    /// Hangs the other's table of persons, and all below it, off this one's: its rows become part of this one's
    /// persons, whom `foreign_key` names. `None` where either has not exactly one table of persons, or there is no such
    /// column.
    pub fn concatenate(&self, other: &Database, foreign_key: &str) -> Option<Database> {
        let ([root], [other_root]) =
            (self.schema.roots()[..].try_into().ok()?, other.schema.roots()[..].try_into().ok()?);
        let (root, other_root): (usize, usize) = (root, other_root);
        let foreign_key = other.tables[other_root].position(foreign_key)?;
        let n_before = self.tables.len();
        let moved = |(position, table): (usize, &SchemaTable)| {
            let parent = match table.parent {
                Some(parent) => SchemaParent { table: parent.table + n_before, ..parent },
                None => SchemaParent { table: root, foreign_key },
            };
            debug_assert!(table.parent.is_some() || position == other_root);
            SchemaTable { parent: Some(parent), ..table.clone() }
        };
        let linked = self.schema.tables.iter().cloned().chain(other.schema.tables.iter().enumerate().map(moved));
        let mut tables = [self.tables.as_slice(), &other.tables].concat();
        tables[n_before + other_root].person = None;
        Some(Database { schema: Schema { tables: linked.collect() }, tables })
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.tables.iter().position(|table| table.name == name)
    }

    /// What must agree between structurally equivalent tables: columns, roles, types, key, and the parent by name.
    fn shape(&self, position: usize) -> impl PartialEq {
        let table = &self.tables[position];
        let linked = &self.schema.tables[position];
        let columns: Vec<_> =
            table.columns.iter().map(|column| (column.name.clone(), column.role, column.value_type)).collect();
        let parent = linked.parent.map(|parent| (self.tables[parent.table].name.clone(), parent.foreign_key));
        (columns, linked.key, parent, table.person)
    }
}

fn united(a: &Table, b: &Table) -> Table {
    let cells = |table: &Table, row: usize| -> Vec<Option<String>> {
        table.columns.iter().map(|column| column.cell(row).map(str::to_owned)).collect()
    };
    let known: BTreeSet<Vec<Option<String>>> = (0..a.n_rows).map(|row| cells(a, row)).collect();
    let new: Vec<usize> = (0..b.n_rows).filter(|&row| !known.contains(&cells(b, row))).collect();
    let columns = a.columns.iter().zip(&b.columns).map(|(of_a, of_b)| {
        let cells = (0..a.n_rows).map(|row| of_a.cell(row)).chain(new.iter().map(|&row| of_b.cell(row)));
        let Column { texts, ids, .. } = Column::from_cells(&of_a.name, of_a.role, cells);
        Column { texts, ids, ..of_a.clone() }
    });
    Table { name: a.name.clone(), columns: columns.collect(), n_rows: a.n_rows + new.len(), person: a.person }
}
