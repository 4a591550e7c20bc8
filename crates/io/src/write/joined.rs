//! [`FileForms`]: the columns of the two files of a release with a register.
//!
//! Released rows show labels, so only the types of the joined columns matter here. Their cells are left out, because a
//! register of many millions must not be in memory twice.

use kohort_model::register::SENSITIVE_GROUP;
use kohort_model::{Column, JoinedRegister, NULL, Role, Table, ValueType};

use crate::read::{ColumnReading, Original};
use crate::{LoadedTable, Origin};

/// The columns of the file of rows, and of the file of sensitive groups.
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

    /// For each released table the private columns that it comes from.
    pub(crate) fn originals(&self) -> [Original<'_>; 2] {
        [&self.rows, &self.values].map(|(table, origin)| Original { table, origin })
    }
}

/// A column without its cells: it keeps its type, and whether it has nulls.
fn with_null_alone(column: &Column) -> Column {
    let ids = if column.has_nulls() { vec![NULL] } else { Vec::new() };
    Column { ids, ..column.without_cells() }
}

/// The column with the numbers of sensitive groups.
fn group_column() -> Column {
    Column::from_cells(SENSITIVE_GROUP, Role::Key, []).typed(ValueType::Integer)
}
