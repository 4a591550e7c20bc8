//! [`verify_tables_written`]: whether files, read back, contain the release of many tables that was verified.
//!
//! # Guarantee
//! Each file contains the cells of its table in the released order. The trees that the cells and keys of the files form
//! satisfy every requirement.

use kohort_model::{Cells, Release, Requirement, Schema, Table};
use rayon::prelude::*;

use super::alone::{check_tables, join_read};
use super::count::{CountedColumns, count_tables};
use super::lineage::Lineage;
use super::shape::{ReleasedLink, Shape, same_count};
use crate::count::cells::CellIds;
use crate::single::written::{changed, shape as check_shape};
use crate::structure::{check_table, other_name, place};
use crate::{Findings, Verified, Violation, Violations};

/// Verifies the tables read back from written files, in the order of the release.
///
/// # Errors
/// If a file differs from the release, or the cells of the files do not satisfy a requirement.
pub fn verify_tables_written(
    written: &[Table],
    release: &Verified<Release>,
    originals: &[Table],
    schema: &Schema,
    requirements: &[Vec<Requirement>],
) -> Result<Findings, Violations> {
    let tables = release.get().tables.as_slice();
    same_count("the files", written.len(), tables.len()).map_err(Violations)?;
    same_count("the original", originals.len(), tables.len()).map_err(Violations)?;
    same_count("the requirements", requirements.len(), tables.len()).map_err(Violations)?;
    let private_shape = Shape::of_schema(schema, originals).map_err(Violations)?;
    let mut violations = Vec::new();
    for ((file, released), original) in written.iter().zip(tables).zip(originals) {
        violations.extend(other_name(&file.name, &released.name));
        let mut found = check_table(original);
        found.extend(check_shape(file, &released.columns, released.rows.len()));
        if let Some((n, first_row)) = place(released.rows.len(), |row| released.rows[row] as usize >= original.n_rows) {
            found.push(Violation::SourceRowOutOfRange { n, first_row });
        }
        if released.columns.iter().any(|column| column.source >= original.columns.len()) {
            found.push(Violation::ColumnWithoutSource { column: original.name.clone() });
        }
        violations.extend(found.into_iter().map(|violation| violation.in_table(&released.name)));
    }
    violations.extend(check_tables(written, &private_shape));
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    for ((file, released), original) in written.iter().zip(tables).zip(originals) {
        let pairs = file.columns.par_iter().zip(&released.columns);
        let changed = pairs.filter_map(|(column, of_release)| changed(column, of_release, &released.rows, original));
        violations.extend(changed.map(|violation| violation.in_table(&released.name)).collect::<Vec<_>>());
    }

    let shape = Shape::of_links(&ReleasedLink::of(schema, originals), written).map_err(Violations)?;
    let forest = match join_read(written, &shape) {
        Ok(forest) => forest,
        Err(more) => {
            violations.extend(more);
            return Err(Violations(violations));
        }
    };
    let lineage = Lineage::of(&private_shape, schema, originals).map_err(Violations)?;
    let own_ks = lineage.own_ks(&shape, originals, requirements, &mut violations);
    let mut rolls = Vec::with_capacity(written.len());
    for (table, (file, (released, original))) in written.iter().zip(tables.iter().zip(originals)).enumerate() {
        let (mut quasi, mut copied) = (Vec::new(), Vec::new());
        for (column, of_release) in file.columns.iter().zip(&released.columns) {
            match of_release.cells {
                Cells::Recoded { .. } => quasi.push(CellIds::by_text(&column.ids, &column.texts)),
                Cells::Copied => copied.push((column, &original.columns[of_release.source])),
                Cells::Surrogate { .. } => {}
            }
        }
        let columns = CountedColumns { quasi, copied, rows: None };
        let mut roll = columns.roll(file, &shape.of(table), &requirements[table], &mut violations);
        roll.require_own_k(&own_ks[table], &released.rows);
        rolls.push(roll);
    }
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    let mut findings = count_tables(&shape, &forest, rolls)?;
    if !findings.unmet.is_empty() {
        return Err(Violations(findings.unmet));
    }
    findings.suppressed = release.findings().suppressed;
    for (counted, before) in findings.tables.iter_mut().zip(&release.findings().tables) {
        counted.suppressed = before.suppressed;
        for (counted, before) in counted.references.iter_mut().zip(&before.references) {
            counted.removed = before.removed;
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use kohort_model::NULL;

    use super::super::cases::{BOOKS, LIMIT, STUDENT, TAKES, release, requirements, schema, students, written};
    use super::*;
    use crate::verify_tables;

    fn verified() -> Verified<Release> {
        verify_tables(release(), &students(), &schema(), &requirements(), LIMIT).unwrap()
    }

    fn verify(files: &[Table]) -> Result<Findings, Violations> {
        verify_tables_written(files, &verified(), &students(), &schema(), &requirements())
    }

    /// The violations after a change to the files.
    fn spoiled(spoil: impl FnOnce(&mut [Table])) -> Vec<Violation> {
        let mut files = written(&release(), &students());
        spoil(&mut files);
        verify(&files).unwrap_err().0
    }

    #[test]
    fn faithful_files_have_the_release_s_findings() {
        assert_eq!(&verify(&written(&release(), &students())).unwrap(), verified().findings());
    }

    #[test]
    fn other_cells_are_found() {
        let changed = |table: &str, column: &str, first_row| {
            Violation::WrittenCells { column: column.to_owned(), n: 1, first_row }.in_table(table)
        };
        let set = |table: &mut Table, column: usize, row: usize, text: &str| {
            table.columns[column].ids[row] = table.columns[column].texts.push(text);
        };
        let violations = spoiled(|files| set(&mut files[TAKES], 3, 1, "92"));
        assert_eq!(violations, [changed("takes", "grade", 2)]);
        let violations = spoiled(|files| set(&mut files[TAKES], 2, 1, "Science"));
        assert_eq!(violations, [changed("takes", "course", 2)]);
        let violations = spoiled(|files| set(&mut files[STUDENT], 0, 1, "02"));
        assert_eq!(violations[0], changed("student", "sid", 2));
        let violations = spoiled(|files| files[BOOKS].columns[0].ids[6] = NULL);
        assert_eq!(violations[0], changed("books", "scid", 7));
    }

    #[test]
    fn other_tables_rows_or_columns_are_found() {
        let violations = spoiled(|files| files.swap(0, 1));
        let named = |table: &str, released: &str| Violation::TableName {
            table: table.to_owned(),
            released: released.to_owned(),
        };
        assert!(violations.contains(&named("student", "takes")) && violations.contains(&named("takes", "student")));
        let violations = spoiled(|files| {
            files[BOOKS].n_rows = 7;
            files[BOOKS].columns.iter_mut().for_each(|column| column.ids.truncate(7));
        });
        assert_eq!(violations, [Violation::WrittenRows { released: 8, written: 7 }.in_table("books")]);
        let violations = spoiled(|files| drop(files[TAKES].columns.pop()));
        assert_eq!(violations, [Violation::WrittenColumns { position: 4 }.in_table("takes")]);
        let files = written(&release(), &students());
        let violations = verify(&files[..2]).unwrap_err().0;
        assert_eq!(violations, [Violation::TableCount { what: "the files", n: 2, expected: 3 }]);
    }

    #[test]
    fn requirements_are_recounted_from_the_files() {
        let files = written(&release(), &students());
        let asked = [vec![Requirement::K(3)], Vec::new(), Vec::new()];
        let violations = verify_tables_written(&files, &verified(), &students(), &schema(), &asked).unwrap_err().0;
        let unmet = Violation::Unmet {
            requirement: Requirement::K(3),
            n_classes: 2,
            reached: 2.0,
            first_row: 1,
            class_size: 2,
        };
        assert_eq!(violations, [unmet.in_table("student")]);
    }
}
