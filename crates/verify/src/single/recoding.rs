//! Whether one released table is a recoding of the private table it names, cell by cell.

use kohort_model::{Cells, Column, NULL, ReleasedColumn, ReleasedTable, Role, Table};

use crate::Violation;
use crate::reading::coverage::Coverage;
use crate::structure::{cells_without_text, column_length, place};

/// Key columns by what they are to other tables, as positions in the private table.
#[derive(Default)]
pub(crate) struct KeyColumns {
    /// The table's own key, where another table points to it.
    pub(crate) own: Option<usize>,
    /// The columns that point to other rows: the parent's, and those referenced.
    pub(crate) foreign: Vec<usize>,
    /// What names the person and is pointed to by no table: it is not released.
    pub(crate) never: Option<usize>,
}

impl KeyColumns {
    /// Whether tables are joined by this column, so that it has to be released.
    pub(crate) fn joins(&self, column: usize) -> bool {
        self.own == Some(column) || self.foreign.contains(&column)
    }
}

/// Rows that come from nowhere, or from where another came from; no rows at all.
pub(crate) fn source_rows(rows: &[u32], original: &Table) -> Vec<Violation> {
    if rows.is_empty() {
        return vec![Violation::NoRows { table: original.name.clone() }];
    }
    if let Some((n, first_row)) = place(rows.len(), |row| rows[row] as usize >= original.n_rows) {
        return vec![Violation::SourceRowOutOfRange { n, first_row }];
    }
    let mut taken = vec![false; original.n_rows];
    let (mut n, mut first_row) = (0, 0);
    for (row, &source) in (1..).zip(rows) {
        if std::mem::replace(&mut taken[source as usize], true) {
            n += 1;
            first_row = if first_row == 0 { row } else { first_row };
        }
    }
    if n > 0 { vec![Violation::SourceRowTwice { n, first_row }] } else { Vec::new() }
}

/// Columns that are missing, too many, out of order, of the wrong kind or malformed.
pub(crate) fn columns(table: &ReleasedTable, original: &Table, keys: &KeyColumns) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut released = vec![false; original.columns.len()];
    let mut next_source = 0;
    for column in &table.columns {
        let Some(source) = original.columns.get(column.source) else {
            violations.push(Violation::ColumnWithoutSource { column: column.name.clone() });
            continue;
        };
        let name = source.name.clone();
        if column.name != source.name {
            violations.push(Violation::ColumnRenamed { column: name.clone(), released: column.name.clone() });
        }
        if column.source < next_source {
            violations.push(Violation::ColumnOrder { column: name.clone() });
        }
        next_source = next_source.max(column.source + 1);
        released[column.source] = true;
        if keys.never == Some(column.source) {
            violations.push(Violation::PersonReleased { column: name.clone() });
        } else if source.role == Role::Key && !keys.joins(column.source) {
            violations.push(Violation::KeyJoinsNothing { column: name.clone() });
        }
        violations.extend(wrong_kind(&column.cells, source));
        match &column.cells {
            Cells::Recoded { labels, ids } => {
                violations.extend(column_length(&name, ids.len(), table.rows.len()));
                violations.extend(cells_without_text(&name, ids, labels.len()));
            }
            Cells::Surrogate { ids } => violations.extend(column_length(&name, ids.len(), table.rows.len())),
            Cells::Copied => {}
        }
    }
    for (position, (source, released)) in original.columns.iter().zip(released).enumerate() {
        let must = match source.role {
            Role::Quasi | Role::Sensitive | Role::Plain => true,
            Role::Identifier | Role::Key | Role::PersonK | Role::Drop => keys.joins(position),
        };
        if must && !released {
            violations.push(Violation::ColumnMissing { column: source.name.clone(), role: source.role });
        }
    }
    violations
}

/// Cells of another kind than the column's role asks for.
fn wrong_kind(cells: &Cells, source: &Column) -> Option<Violation> {
    let wrong = |expected| Violation::WrongCells { column: source.name.clone(), role: source.role, expected };
    match (source.role, cells) {
        (Role::Identifier | Role::PersonK | Role::Drop, _) => {
            Some(Violation::ColumnForbidden { column: source.name.clone(), role: source.role })
        }
        (Role::Quasi, Cells::Recoded { .. })
        | (Role::Sensitive | Role::Plain | Role::Key, Cells::Copied)
        | (Role::Key, Cells::Surrogate { .. }) => None,
        (Role::Quasi, _) => Some(wrong("generalized")),
        (Role::Sensitive | Role::Plain, _) => Some(wrong("unchanged")),
        (Role::Key, _) => Some(wrong("renumbered or unchanged")),
    }
}

/// Cells that are not true.
pub(crate) fn cells(column: &ReleasedColumn, rows: &[u32], original: &Table, keys: &KeyColumns) -> Option<Violation> {
    let source = &original.columns[column.source];
    match &column.cells {
        // Copied cells are read from the private column wherever they are needed, so there is nothing to compare.
        Cells::Copied => None,
        Cells::Recoded { labels, ids } => Coverage::new(source, labels).violation(ids, rows),
        // A foreign key is numbered as the row it names, which is found out where the two are joined.
        Cells::Surrogate { .. } if keys.foreign.contains(&column.source) => None,
        Cells::Surrogate { ids } => renumbering(ids, rows, source),
    }
}

/// Keys that are not numbered from 1 in the order of their first row.
fn renumbering(ids: &[u32], rows: &[u32], source: &Column) -> Option<Violation> {
    let mut numbers = vec![0; source.texts.len()];
    let mut n_numbers = 0;
    let (mut n, mut first_row) = (0, 0);
    for (row, (&id, &source_row)) in (1..).zip(ids.iter().zip(rows)) {
        let expected = match source.ids[source_row as usize] {
            NULL => NULL,
            key => {
                let number = &mut numbers[key as usize];
                if *number == 0 {
                    n_numbers += 1;
                    *number = n_numbers;
                }
                *number
            }
        };
        if id != expected {
            n += 1;
            first_row = if first_row == 0 { row } else { first_row };
        }
    }
    (n > 0).then(|| Violation::KeyRenumbering { column: source.name.clone(), n, first_row })
}
