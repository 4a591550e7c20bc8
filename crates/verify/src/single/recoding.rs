//! Whether a released table is a recoding of its private table, cell by cell.

use kohort_model::{Cells, Column, NULL, ReleasedColumn, ReleasedTable, Role, Table};

use crate::Violation;
use crate::reading::coverage::Coverage;
use crate::structure::{Places, cells_without_text, column_length, place};

/// The key columns of a table, as positions in the private table.
#[derive(Default)]
pub(crate) struct KeyColumns {
    /// The table's own key, if another table points to it.
    pub(crate) own: Option<usize>,
    /// The columns that point to rows of other tables: to the parent, and to referenced rows.
    pub(crate) foreign: Vec<usize>,
    /// The column that names the person, if no table points to it. It must not be released.
    pub(crate) never: Option<usize>,
}

impl KeyColumns {
    /// Whether this column joins tables, so that it must be released.
    pub(crate) fn joins(&self, column: usize) -> bool {
        self.own == Some(column) || self.foreign.contains(&column)
    }
}

/// Checks, column after column, that a table releases the columns of its private table that it must, in their order.
pub(crate) struct ColumnCheck<'a> {
    original: &'a Table,
    keys: &'a KeyColumns,
    is_released: Vec<bool>,
    next_source: usize,
}

impl<'a> ColumnCheck<'a> {
    pub(crate) fn new(original: &'a Table, keys: &'a KeyColumns) -> Self {
        ColumnCheck { original, keys, is_released: vec![false; original.columns.len()], next_source: 0 }
    }

    /// The faults of releasing the next column, given by its position in the private table.
    pub(crate) fn next(&mut self, source: usize) -> Vec<Violation> {
        let column = &self.original.columns[source];
        let name = || column.name.clone();
        let mut violations = Vec::new();
        if source < self.next_source {
            violations.push(Violation::ColumnOrder { column: name() });
        }
        self.next_source = self.next_source.max(source + 1);
        self.is_released[source] = true;
        if self.keys.never == Some(source) {
            violations.push(Violation::PersonReleased { column: name() });
        } else if column.role == Role::Key && !self.keys.joins(source) {
            violations.push(Violation::KeyJoinsNothing { column: name() });
        }
        violations
    }

    /// Columns that must be released and were not among those checked.
    pub(crate) fn missing(self) -> impl Iterator<Item = Violation> {
        let columns = self.original.columns.iter().zip(self.is_released).enumerate();
        columns.filter_map(|(position, (column, is_released))| {
            let must = match column.role {
                Role::Quasi | Role::Sensitive | Role::Plain => true,
                Role::Identifier | Role::Key | Role::PersonK | Role::Drop => self.keys.joins(position),
            };
            let missing = || Violation::ColumnMissing { column: column.name.clone(), role: column.role };
            (must && !is_released).then(missing)
        })
    }
}

/// Released rows that have no source row, or the same one as another row; or a table without rows.
pub(crate) fn source_rows(rows: &[u32], original: &Table) -> Vec<Violation> {
    if rows.is_empty() {
        return vec![Violation::NoRows { table: original.name.clone() }];
    }
    if let Some((n, first_row)) = place(rows.len(), |row| rows[row] as usize >= original.n_rows) {
        return vec![Violation::SourceRowOutOfRange { n, first_row }];
    }
    let mut taken = vec![false; original.n_rows];
    let mut repeated = Places::default();
    for (row, &source) in (1..).zip(rows) {
        if std::mem::replace(&mut taken[source as usize], true) {
            repeated.add(row);
        }
    }
    repeated.found().map(|(n, first_row)| Violation::SourceRowTwice { n, first_row }).into_iter().collect()
}

/// Columns that are missing, superfluous, out of order, of the wrong kind or malformed.
pub(crate) fn columns(table: &ReleasedTable, original: &Table, keys: &KeyColumns) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut check = ColumnCheck::new(original, keys);
    for column in &table.columns {
        let Some(source) = original.columns.get(column.source) else {
            violations.push(Violation::ColumnWithoutSource { column: column.name.clone() });
            continue;
        };
        let name = source.name.clone();
        if column.name != source.name {
            violations.push(Violation::ColumnRenamed { column: name.clone(), released: column.name.clone() });
        }
        violations.extend(check.next(column.source));
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
    violations.extend(check.missing());
    violations
}

/// Cells of another kind than the role of the column allows.
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

/// Cells that do not cover their original, or keys that are not renumbered as they must be.
pub(crate) fn cells(column: &ReleasedColumn, rows: &[u32], original: &Table, keys: &KeyColumns) -> Option<Violation> {
    let source = &original.columns[column.source];
    match &column.cells {
        // Copied cells are always read from the private column itself, so there is nothing to compare.
        Cells::Copied => None,
        Cells::Recoded { labels, ids } => Coverage::new(source, labels).violation(ids, rows),
        // The number of a foreign key is checked where the tables are joined.
        Cells::Surrogate { .. } if keys.foreign.contains(&column.source) => None,
        Cells::Surrogate { ids } => renumbering(ids, rows, source),
    }
}

/// Keys that are not numbered from 1 in the order in which they first occur.
fn renumbering(ids: &[u32], rows: &[u32], source: &Column) -> Option<Violation> {
    let mut numbers = vec![0; source.texts.len()];
    let mut n_numbers = 0;
    let mut wrong = Places::default();
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
            wrong.add(row);
        }
    }
    wrong.found().map(|(n, first_row)| Violation::KeyRenumbering { column: source.name.clone(), n, first_row })
}
