//! [`verify_joined_written`]: whether files, read back, contain the release beside a register that was verified.

use kohort_model::register::SENSITIVE_GROUP;
use kohort_model::{Cells, Column, JoinedRegister, Release, ReleasedColumn, Table};
use rayon::prelude::*;

use super::{AskedOfJoin, CellsOf, JoinedRows, SensitiveRows};
use crate::single::written::{changed, changed_numbers, shape};
use crate::structure::check_table;
use crate::{Findings, Verified, Violation, Violations};

/// Verifies the tables read back from written files, in the order of the release.
///
/// # Errors
/// If a file differs from the release, or its cells do not satisfy what is asked.
pub fn verify_joined_written(
    written: &[Table],
    release: &Verified<Release>,
    original: &Table,
    joined: &JoinedRegister,
    asked: AskedOfJoin<'_>,
) -> Result<Findings, Violations> {
    let tables = &release.get().tables;
    if written.len() != tables.len() {
        let (n, expected) = (written.len() as u64, tables.len() as u64);
        return Err(Violation::TableCount { what: "the files", n, expected }.into());
    }
    let mut violations = Vec::new();
    for (written, table) in written.iter().zip(tables) {
        violations.extend(check_table(written));
        violations.extend(shape(written, &table.columns, table.rows.len()));
    }
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    for ((written, table), private) in written.iter().zip(tables).zip([&joined.rows, original]) {
        let pairs = written.columns.par_iter().zip(&table.columns);
        let differences = pairs.filter_map(|(column, released)| match &released.cells {
            Cells::Surrogate { ids } => changed_numbers(column, ids),
            Cells::Recoded { .. } | Cells::Copied => changed(column, released, &table.rows, private),
        });
        violations.extend(differences.collect::<Vec<_>>());
    }
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    let claimed = JoinedRows::of_release(release.get(), original);
    let quasi = written[0].columns.iter().zip(&tables[0].columns).filter(is_recoded);
    let shown = JoinedRows {
        rows: &tables[0].rows,
        quasi: quasi.map(|(column, _)| (&column.texts, column.ids.as_slice())).collect(),
        // The groups of the files were compared above, and are the same.
        groups: claimed.groups,
        values: claimed.values.map(|values| SensitiveRows {
            copied: copied(&written[1], &tables[1].columns, original),
            cells: CellsOf::ShownRows,
            ..values
        }),
    };
    let mut findings = shown.count(original, joined, asked)?;
    findings.suppressed = release.findings().suppressed;
    Ok(findings)
}

fn is_recoded((_, released): &(&Column, &ReleasedColumn)) -> bool {
    matches!(released.cells, Cells::Recoded { .. })
}

fn copied<'a>(written: &'a Table, columns: &[ReleasedColumn], original: &'a Table) -> Vec<(&'a Column, &'a Column)> {
    let pairs = written.columns.iter().zip(columns).filter(|(_, released)| released.name != SENSITIVE_GROUP);
    pairs.map(|(column, released)| (column, &original.columns[released.source])).collect()
}
