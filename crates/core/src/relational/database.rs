//! [`Database`]: tables that hang together, and how two become one.
//!
//! # Paper
//! definitions 4 (structurally equivalent), 6 (union) and 7 (concatenation) of `[NCN08]`
//! # Deviations
//! whether the result is sound, such as that keys are still unique, is for [`Schema::of`] to say

use std::collections::BTreeSet;

use kohort_model::schema::{SchemaParent, SchemaReference, SchemaTable};
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
            let references = table.references.iter();
            let references =
                references.map(|reference| SchemaReference { table: reference.table + n_before, ..*reference });
            SchemaTable { parent: Some(parent), references: references.collect(), ..table.clone() }
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
        let references = linked.references.iter();
        let references: Vec<_> = references.map(|to| (to.column, self.tables[to.table].name.clone())).collect();
        (columns, linked.key, parent, references, table.person)
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

#[cfg(test)]
mod tests {
    use kohort_model::Role;

    use super::*;
    use crate::relational::tests::students;

    fn students_with(rows: std::ops::Range<usize>) -> Database {
        let (spec, tables) = students();
        let schema = Schema::of(&spec, &tables).unwrap();
        let mut database = Database { schema, tables };
        for table in &mut database.tables {
            let rows = rows.start.min(table.n_rows)..rows.end.min(table.n_rows);
            table.n_rows = rows.len();
            table.columns.iter_mut().for_each(|column| column.ids = column.ids[rows.clone()].to_vec());
        }
        database
    }

    #[test]
    fn a_union_has_every_row_once() {
        let all = students_with(0..100);
        let union = students_with(0..7).union(&students_with(3..100)).unwrap();
        for (united, whole) in union.tables.iter().zip(&all.tables) {
            assert_eq!(united.n_rows, whole.n_rows);
            for (a, b) in united.columns.iter().zip(&whole.columns) {
                assert!((0..united.n_rows).all(|row| a.cell(row) == b.cell(row)));
            }
        }
    }

    #[test]
    fn databases_of_another_structure_have_no_union() {
        let mut other = students_with(0..100);
        other.tables[1].columns[3].role = Role::Plain;
        let refused = students_with(0..100).union(&other).unwrap_err();
        assert_eq!(refused, NotEquivalent { table: "takes".to_owned() });
    }

    #[test]
    fn concatenation_hangs_one_kind_of_person_off_another() {
        let students = students_with(0..100);
        let mut courses = students.clone();
        courses.tables.remove(0);
        courses.schema.tables.remove(0);
        courses.schema.tables[0].parent = None;
        courses.schema.tables[1].parent = Some(SchemaParent { table: 0, foreign_key: 0 });
        courses.tables[0].person = Some(0);
        let mut persons = students.clone();
        persons.tables.truncate(1);
        persons.schema.tables.truncate(1);
        let whole = persons.concatenate(&courses, "sid").unwrap();
        assert_eq!(whole.schema, students.schema);
        assert_eq!(whole.tables[1].person, None);
        assert!(persons.concatenate(&courses, "nothing").is_none());
    }
}
