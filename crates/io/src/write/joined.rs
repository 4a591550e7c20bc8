//! [`FileForms`]: what the two files of a release beside a register are like, column by column.
//!
//! Released rows are joined rows, and their cells are labels: of the joined columns only their types matter here, so that
//! a register of many millions is not held twice.

use kohort_model::register::SENSITIVE_GROUP;
use kohort_model::{Column, JoinedRegister, NULL, Role, Table, ValueType};

use crate::read::{ColumnReading, Original};
use crate::{LoadedTable, Origin};

/// The forms of rows and of sensitive groups.
pub(crate) struct FileForms {
    rows: (Table, Origin),
    values: (Table, Origin),
}

impl FileForms {
    pub(crate) fn new(original: &LoadedTable, joined: &JoinedRegister) -> Self {
        let LoadedTable { table, origin } = original;
        let mut columns: Vec<Column> = joined.rows.columns.iter().map(with_null_alone).collect();
        columns.push(group_column());
        let field = |column: &Column| table.position(&column.name).and_then(|position| origin.fields[position].clone());
        let fields = columns.iter().map(field).collect();
        let reading = |column: &Column| match table.position(&column.name) {
            Some(position) => origin.readings[position].clone(),
            None => ColumnReading::of_numbers(),
        };
        let readings = columns.iter().map(reading).collect();
        let rows = Table { name: table.name.clone(), columns, n_rows: joined.rows.n_rows, person: None };
        let mut values = table.clone();
        values.columns.push(group_column());
        let mut of_values = origin.clone();
        of_values.fields.push(None);
        of_values.readings.push(ColumnReading::of_numbers());
        FileForms { rows: (rows, Origin { fields, readings, ..origin.clone() }), values: (values, of_values) }
    }

    /// Per released table what its columns come from.
    pub(crate) fn originals(&self) -> [Original<'_>; 2] {
        [&self.rows, &self.values].map(|(table, origin)| Original { table, origin })
    }
}

/// A column of which nothing is known but its type, and whether it has nulls.
fn with_null_alone(column: &Column) -> Column {
    let ids = if column.has_nulls() { vec![NULL] } else { Vec::new() };
    Column { ids, ..column.without_cells() }
}

/// What numbers of groups are like.
fn group_column() -> Column {
    Column::from_cells(SENSITIVE_GROUP, Role::Key, []).typed(ValueType::Integer)
}
