//! Whether a release beside a register has the tables, columns and rows it must have.

use kohort_model::register::{SENSITIVE_GROUP, SENSITIVE_TABLE};
use kohort_model::spec::RegisterRows;
use kohort_model::{Cells, JoinedRegister, Release, ReleasedColumn, ReleasedTable, Role, Table};

use crate::Violation;
use crate::single::recoding::{KeyColumns, columns, source_rows};
use crate::structure::{column_length, other_name, place};

/// Positions of the private columns whose cells are released in the sensitive table.
pub(super) fn copied_columns(original: &Table) -> Vec<usize> {
    let is_copied = |&column: &usize| match original.columns[column].role {
        Role::Sensitive | Role::Plain => true,
        Role::Identifier | Role::Quasi | Role::Key | Role::PersonK | Role::Drop => false,
    };
    (0..original.columns.len()).filter(is_copied).collect()
}

/// Checks the tables, columns and rows of a release beside a register.
pub(super) fn check_release(
    release: &Release,
    original: &Table,
    joined: &JoinedRegister,
    released_rows: RegisterRows,
) -> Vec<Violation> {
    let copied = copied_columns(original);
    let expected = if copied.is_empty() { 1 } else { 2 };
    if release.tables.len() != expected {
        let n = release.tables.len() as u64;
        return vec![Violation::TableCount { what: "the release", n, expected: expected as u64 }];
    }
    let mut violations = Vec::new();
    let table = &release.tables[0];
    violations.extend(other_name(&table.name, &original.name));
    violations.extend(source_rows(&table.rows, &joined.rows));
    let most = match released_rows {
        RegisterRows::All => joined.n_microdata + joined.n_register,
        RegisterRows::Microdata => joined.n_microdata,
    };
    if let Some((n, first_row)) = place(table.rows.len(), |row| table.rows[row] as usize >= most) {
        violations.push(Violation::SourceRowOutOfRange { n, first_row });
    }
    let (quasi, groups): (Vec<ReleasedColumn>, Vec<ReleasedColumn>) =
        table.columns.iter().cloned().partition(|column| column.name != SENSITIVE_GROUP);
    let recoded = ReleasedTable { name: table.name.clone(), rows: table.rows.clone(), columns: quasi };
    violations.extend(columns(&recoded, &joined.rows, &KeyColumns::default()));
    let is_last = table.columns.last().is_some_and(|column| column.name == SENSITIVE_GROUP);
    let n_groups = usize::from(!copied.is_empty());
    if groups.len() != n_groups || (n_groups == 1 && !is_last) {
        violations.push(Violation::ColumnOrder { column: SENSITIVE_GROUP.to_owned() });
    }
    groups.iter().for_each(|column| violations.extend(group_column(column, table.rows.len())));
    if let Some(values) = release.tables.get(1) {
        violations.extend(other_name(&values.name, SENSITIVE_TABLE));
        violations.extend(check_values(values, original, &copied));
    }
    violations
}

/// Checks the sensitive table: its columns are the group of each row, then every copied column.
fn check_values(table: &ReleasedTable, original: &Table, copied: &[usize]) -> Vec<Violation> {
    let mut violations = source_rows(&table.rows, original);
    match table.columns.split_first() {
        Some((groups, columns)) if groups.name == SENSITIVE_GROUP => {
            violations.extend(group_column(groups, table.rows.len()));
            let sources = columns.iter().map(|column| column.source);
            if !sources.eq(copied.iter().copied()) {
                violations.push(Violation::ColumnOrder { column: SENSITIVE_TABLE.to_owned() });
                return violations;
            }
            for column in columns {
                let source = &original.columns[column.source];
                if column.name != source.name {
                    let violation =
                        Violation::ColumnRenamed { column: source.name.clone(), released: column.name.clone() };
                    violations.push(violation);
                }
                if !matches!(column.cells, Cells::Copied) {
                    let (column, role) = (source.name.clone(), source.role);
                    violations.push(Violation::WrongCells { column, role, expected: "unchanged" });
                }
            }
        }
        _ => violations.push(Violation::ColumnOrder { column: SENSITIVE_GROUP.to_owned() }),
    }
    violations
}

fn group_column(column: &ReleasedColumn, n_rows: usize) -> Option<Violation> {
    match &column.cells {
        Cells::Surrogate { ids } => column_length(&column.name, ids.len(), n_rows),
        Cells::Recoded { .. } | Cells::Copied => {
            let (column, role) = (column.name.clone(), Role::Key);
            Some(Violation::WrongCells { column, role, expected: "as numbers" })
        }
    }
}
