//! [`verify_written`]: whether a file, read back, contains the release that was verified.
//!
//! # Guarantee
//! The file contains the cells of the release in the same order, and every requirement holds for the cells of the file.
//! The person of each row is taken from the release, because the file does not name persons.
//! # Cost        texts are compared once per pair of dictionary entries, not per row

use kohort_model::{Cells, Column, NULL, Release, ReleasedColumn, Table, Texts};
use rayon::prelude::*;

use crate::asked::Perspectives;
use crate::count::cells::CellIds;
use crate::count::learned::Source;
use crate::count::roll::{Roll, Sensitive, Shares, own_ks, persons_of};
use crate::single::release::recoded_names;
use crate::structure::{Places, check_table, place};
use crate::{Asked, Findings, Verified, Violation, Violations};

/// Verifies the table read back from a written file.
///
/// # Errors
/// If the file differs from the release, or its cells do not satisfy a requirement.
pub fn verify_written<'a>(
    written: &Table,
    release: &Verified<Release>,
    original: &Table,
    asked: impl Into<Asked<'a>>,
) -> Result<Findings, Violations> {
    let [table] = release.get().tables.as_slice() else {
        return Err(Violation::NotOneTable { n: release.get().tables.len() as u64 }.into());
    };
    let rows = table.rows.as_slice();
    let mut violations = check_table(written);
    violations.extend(check_table(original));
    violations.extend(shape(written, &table.columns, rows.len()));
    if let Some((n, first_row)) = place(rows.len(), |row| rows[row] as usize >= original.n_rows) {
        violations.push(Violation::SourceRowOutOfRange { n, first_row });
    }
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    let pairs = written.columns.par_iter().zip(&table.columns);
    let changed = pairs.filter_map(|(column, released)| changed(column, released, rows, original));
    violations.extend(changed.collect::<Vec<_>>());

    let persons = persons_of(original, Some(rows))?;
    let (mut quasi, mut copied, mut shown) = (Vec::new(), Vec::new(), Vec::new());
    for (column, released) in written.columns.iter().zip(&table.columns) {
        let source = &original.columns[released.source];
        match released.cells {
            Cells::Recoded { .. } => {
                quasi.push(CellIds::by_text(&column.ids, &column.texts));
                shown.push((&column.texts, source));
            }
            Cells::Copied => copied.push((column, source)),
            Cells::Surrogate { .. } => {}
        }
    }
    let perspectives = Perspectives::new(asked.into(), &recoded_names(table), &mut violations);
    let requirements = perspectives.requirements();
    let sensitive = Sensitive::measured(&copied, None, &requirements, &mut violations);
    let own_k = own_ks(original, Some(rows), persons.as_ref(), &requirements, &mut violations);
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    let roll = Roll { n_rows: rows.len(), quasi, persons, shares: Shares::Pairs, sensitive, own_k };
    let mut findings = perspectives.count(&roll, &shown, Source::Private)?;
    if !findings.unmet.is_empty() {
        return Err(Violations(findings.unmet));
    }
    findings.suppressed = release.findings().suppressed;
    Ok(findings)
}

/// Whether the written table has the column names and the number of rows of the release.
pub(crate) fn shape(written: &Table, columns: &[ReleasedColumn], n_rows: usize) -> Vec<Violation> {
    let mut violations = Vec::new();
    let n_columns = written.columns.len().max(columns.len());
    let name = |position: usize| written.columns.get(position).map(|column| column.name.as_str());
    let differs = |&position: &usize| name(position) != columns.get(position).map(|column| column.name.as_str());
    if let Some(position) = (0..n_columns).find(differs) {
        violations.push(Violation::WrittenColumns { position: position as u64 + 1 });
    }
    if written.n_rows != n_rows {
        violations.push(Violation::WrittenRows { released: n_rows as u64, written: written.n_rows as u64 });
    }
    violations
}

/// Cells of a written column that differ from the release.
pub(crate) fn changed(
    written: &Column,
    released: &ReleasedColumn,
    rows: &[u32],
    original: &Table,
) -> Option<Violation> {
    let source = &original.columns[released.source];
    let (n, first_row) = match &released.cells {
        Cells::Recoded { labels, ids } => differences(written, labels, |row| ids[row], rows.len()),
        Cells::Copied => differences(written, &source.texts, |row| source.ids[rows[row] as usize], rows.len()),
        Cells::Surrogate { ids } => return changed_numbers(written, ids),
    }?;
    Some(Violation::WrittenCells { column: written.name.clone(), n, first_row })
}

/// Cells of a written column that differ from these numbers.
pub(crate) fn changed_numbers(written: &Column, ids: &[u32]) -> Option<Violation> {
    let numbers: Vec<Option<u32>> = written.texts.iter().map(plain_number).collect();
    let (n, first_row) = place(ids.len(), |row| match written.ids[row] {
        NULL => ids[row] != NULL,
        id => numbers[id as usize].is_none_or(|number| number != ids[row] || number == NULL),
    })?;
    Some(Violation::WrittenCells { column: written.name.clone(), n, first_row })
}

/// How many rows differ from the written ones, and the first of them. `equal_to` remembers pairs of equal texts, so
/// that they are compared once.
fn differences(written: &Column, texts: &Texts, id: impl Fn(usize) -> u32, n_rows: usize) -> Option<(u64, u64)> {
    let mut equal_to = vec![NULL; texts.len()];
    let mut different = Places::default();
    for row in 0..n_rows {
        let same = match (id(row), written.ids[row]) {
            (NULL, written) => written == NULL,
            (_, NULL) => false,
            (id, other) if equal_to[id as usize] == other => true,
            (id, other) => {
                let same = texts.get(id) == written.texts.get(other);
                if same {
                    equal_to[id as usize] = other;
                }
                same
            }
        };
        if !same {
            different.add(row + 1);
        }
    }
    different.found()
}

/// The number that a text spells without sign or leading zeros.
pub(crate) fn plain_number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|number: &u32| number.to_string() == text)
}

#[cfg(test)]
mod tests {
    use kohort_model::Requirement;

    use super::*;
    use crate::cases::{LIMIT, clinic, clinic_release, clinic_requirements, written};
    use crate::{Counted, verify_release};

    fn verified() -> Verified<Release> {
        verify_release(clinic_release(), &clinic(), &clinic_requirements(), LIMIT).unwrap()
    }

    /// The violations after a change to the file.
    fn spoiled(spoil: impl FnOnce(&mut Table)) -> Vec<Violation> {
        let mut file = written(&clinic_release(), &clinic());
        spoil(&mut file);
        verify_written(&file, &verified(), &clinic(), &clinic_requirements()).unwrap_err().0
    }

    fn cell(table: &mut Table, column: usize, row: usize, text: Option<&str>) {
        let column = &mut table.columns[column];
        column.ids[row] = text.map_or(NULL, |text| column.texts.push(text));
    }

    #[test]
    fn a_faithful_file_has_the_release_s_findings() {
        let file = written(&clinic_release(), &clinic());
        let findings = verify_written(&file, &verified(), &clinic(), &clinic_requirements()).unwrap();
        assert_eq!(&findings, verified().findings());
        assert_eq!(findings.counted, Counted::Persons);
    }

    #[test]
    fn other_cells_are_found() {
        let changed =
            |column: &str, first_row| vec![Violation::WrittenCells { column: column.to_owned(), n: 1, first_row }];
        assert_eq!(spoiled(|table| cell(table, 0, 1, Some("[20,29]"))), changed("age", 2));
        assert_eq!(spoiled(|table| cell(table, 1, 5, None)), changed("zip", 6));
        assert_eq!(spoiled(|table| cell(table, 2, 3, Some("cold"))), changed("disease", 4));
        assert_eq!(spoiled(|table| cell(table, 3, 5, Some(""))), changed("ward", 6));
    }

    #[test]
    fn a_repeated_text_in_the_file_s_dictionary_changes_nothing() {
        let mut file = written(&clinic_release(), &clinic());
        cell(&mut file, 0, 1, Some("[21,29]"));
        let findings = verify_written(&file, &verified(), &clinic(), &clinic_requirements()).unwrap();
        assert_eq!(findings.classes, 2);
    }

    #[test]
    fn a_file_with_other_columns_rows_or_order_is_refused() {
        assert_eq!(spoiled(|table| table.columns.swap(2, 3)), [Violation::WrittenColumns { position: 3 }]);
        assert_eq!(spoiled(|table| drop(table.columns.pop())), [Violation::WrittenColumns { position: 4 }]);
        let shorter = spoiled(|table| {
            table.n_rows = 5;
            table.columns.iter_mut().for_each(|column| column.ids.truncate(5));
        });
        assert_eq!(shorter, [Violation::WrittenRows { released: 6, written: 5 }]);
        let swapped = spoiled(|table| table.columns.iter_mut().for_each(|column| column.ids.swap(0, 5)));
        assert_eq!(swapped.len(), 4);
    }

    #[test]
    fn requirements_are_recounted_from_the_file() {
        let file = written(&clinic_release(), &clinic());
        let violations = verify_written(&file, &verified(), &clinic(), &[Requirement::K(3)]).unwrap_err().0;
        assert!(matches!(violations[..], [Violation::Unmet { n_classes: 1, class_size: 2, .. }]));
    }
}
