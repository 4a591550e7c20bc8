//! [`verify_release`]: whether a release in memory is truthful and satisfies its requirements.
//!
//! # Guarantee
//! Every private row is released at most once. Each released cell covers or equals its original. All rows of a person
//! are released, or none of them. No forbidden column is released. No more persons are left out than the limit allows.
//! Every class satisfies every requirement.
//!
//! The release has one table, so no other table points to its person column. That column is therefore not released in
//! any form.

use kohort_model::{Cells, Column, Release, ReleasedTable, Table, Texts};
use rayon::prelude::*;

use crate::asked::Perspectives;
use crate::count::cells::CellIds;
use crate::count::learned::Source;
use crate::count::roll::{Roll, Sensitive, Shares, own_ks, persons_of};
use crate::single::recoding::{KeyColumns, cells, columns, source_rows};
use crate::structure::{Places, check_table};
use crate::{Asked, Suppressed, SuppressionLimit, Verified, Violation, Violations};

/// Verifies a release of one table against the private table it was made from.
///
/// # Errors
/// Everything that is wrong with the release.
pub fn verify_release<'a>(
    release: Release,
    original: &Table,
    asked: impl Into<Asked<'a>>,
    limit: SuppressionLimit,
) -> Result<Verified<Release>, Violations> {
    let [table] = release.tables.as_slice() else {
        return Err(Violation::NotOneTable { n: release.tables.len() as u64 }.into());
    };
    let mut violations = check_table(original);
    violations.extend(source_rows(&table.rows, original));
    let keys = KeyColumns { never: original.person, ..KeyColumns::default() };
    violations.extend(columns(table, original, &keys));
    // The checks below look cells up by position, so no cell may be missing.
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    let cells = table.columns.par_iter().filter_map(|column| cells(column, &table.rows, original, &keys));
    violations.extend(cells.collect::<Vec<_>>());

    let persons = match persons_of(original, Some(&table.rows)) {
        Ok(persons) => persons,
        Err(violation) => {
            violations.push(violation);
            return Err(Violations(violations));
        }
    };
    let suppressed = match suppressed(&table.rows, original) {
        Ok(suppressed) => suppressed,
        Err(violation) => {
            violations.push(violation);
            Suppressed::default()
        }
    };
    let perspectives = Perspectives::new(asked.into(), &recoded_names(table), &mut violations);
    let shown = table.columns.iter().filter_map(|column| match &column.cells {
        Cells::Recoded { labels, .. } => Some((labels, &original.columns[column.source])),
        Cells::Copied | Cells::Surrogate { .. } => None,
    });
    let shown: Vec<(&Texts, &Column)> = shown.collect();
    let counted = roll(table, original, persons, &perspectives)
        .and_then(|roll| perspectives.count(&roll, &shown, Source::Private));
    match counted {
        Err(Violations(more)) => violations.extend(more),
        Ok(mut findings) => {
            violations.append(&mut findings.unmet);
            violations.extend(limit.exceeded(suppressed.persons, findings.persons + suppressed.persons));
            if violations.is_empty() {
                findings.suppressed = Some(suppressed);
                return Ok(Verified::attest(release, findings));
            }
        }
    }
    Err(Violations(violations))
}

/// The rows and persons left out.
///
/// # Errors
/// If only some rows of a person are left out.
fn suppressed(rows: &[u32], original: &Table) -> Result<Suppressed, Violation> {
    let n_rows = (original.n_rows - rows.len()) as u64;
    let Some(person) = original.person_column() else {
        return Ok(Suppressed { rows: n_rows, persons: n_rows });
    };
    let mut row_released = vec![false; original.n_rows];
    let mut person_released = vec![false; person.texts.len()];
    for &row in rows {
        row_released[row as usize] = true;
        person_released[person.ids[row as usize] as usize] = true;
    }
    let mut left_out = vec![false; person.texts.len()];
    let (mut n_left_out, mut split) = (0, Places::default());
    for (row, &id) in (1..).zip(&person.ids) {
        if !row_released[row - 1] && !std::mem::replace(&mut left_out[id as usize], true) {
            n_left_out += 1;
            if person_released[id as usize] {
                split.add(row);
            }
        }
    }
    if let Some((n, first_row)) = split.found() {
        return Err(Violation::PersonSplit { n, first_row });
    }
    Ok(Suppressed { rows: n_rows, persons: n_left_out })
}

/// The names of generalized columns.
pub(crate) fn recoded_names(table: &ReleasedTable) -> Vec<&str> {
    let recoded = table.columns.iter().filter(|column| matches!(column.cells, Cells::Recoded { .. }));
    recoded.map(|column| column.name.as_str()).collect()
}

/// The released rows, to be counted.
fn roll<'a>(
    table: &'a ReleasedTable,
    original: &'a Table,
    persons: Option<CellIds<'a>>,
    perspectives: &Perspectives,
) -> Result<Roll<'a>, Violations> {
    let requirements = perspectives.requirements();
    let rows = Some(table.rows.as_slice());
    let n_rows = table.rows.len();
    let mut violations = Vec::new();
    let (mut quasi, mut copied) = (Vec::new(), Vec::new());
    for column in &table.columns {
        match &column.cells {
            Cells::Recoded { labels, ids } => quasi.push(CellIds::by_text(ids, labels)),
            Cells::Copied => copied.push((&original.columns[column.source], &original.columns[column.source])),
            Cells::Surrogate { .. } => {}
        }
    }
    let sensitive = Sensitive::measured(&copied, rows, &requirements, &mut violations);
    let own_k = own_ks(original, rows, persons.as_ref(), &requirements, &mut violations);
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    Ok(Roll { n_rows, quasi, persons, shares: Shares::Pairs, sensitive, own_k })
}

#[cfg(test)]
mod tests {
    use kohort_model::{NULL, ReleasedColumn, Requirement, Role, ValueType};
    use proptest::prelude::*;

    use super::*;
    use crate::Counted;
    use crate::cases::{
        AGE, DISEASE, ID, LIMIT, NAME, WARD, WISH, ZIP, clinic, clinic_release, clinic_requirements, recoded,
    };

    /// The violations after a change to the release.
    fn spoiled(spoil: impl FnOnce(&mut ReleasedTable)) -> Vec<Violation> {
        spoiled_for(&clinic(), &clinic_requirements(), spoil)
    }

    fn spoiled_for(
        original: &Table,
        requirements: &[Requirement],
        spoil: impl FnOnce(&mut ReleasedTable),
    ) -> Vec<Violation> {
        let mut release = clinic_release();
        spoil(&mut release.tables[0]);
        verify_release(release, original, requirements, LIMIT).unwrap_err().0
    }

    fn name(column: &str) -> String {
        column.to_owned()
    }

    #[test]
    fn a_true_release_is_verified() {
        let verified = verify_release(clinic_release(), &clinic(), &clinic_requirements(), LIMIT).unwrap();
        let findings = verified.findings();
        assert_eq!((findings.rows, findings.persons, findings.classes, findings.k), (6, 5, 2, 2));
        assert_eq!(findings.counted, Counted::Persons);
        assert_eq!(findings.suppressed, Some(Suppressed { rows: 1, persons: 1 }));
        assert_eq!(findings.class_sizes, [(2, 1), (3, 1)]);
        assert_eq!(findings.sensitive[0].l, 2);
        assert!((findings.average_risk - (3.0 / 3.0 + 2.0 / 2.0) / 5.0).abs() < 1e-12);
        assert_eq!(verified.into_inner().tables.len(), 1);
    }

    #[test]
    fn a_release_that_leaves_out_more_persons_than_asked_is_never_verified() {
        let verify = |limit| verify_release(clinic_release(), &clinic(), &clinic_requirements(), limit);
        let exceeded = |limit| Violation::TooManySuppressed { n: 1, n_persons: 6, limit };
        assert_eq!(verify(SuppressionLimit::NOBODY).unwrap_err().0, [exceeded(0.0)]);
        assert_eq!(verify(SuppressionLimit::share(0.16)).unwrap_err().0, [exceeded(0.16)]);
        let verified = verify(SuppressionLimit::share(0.17)).unwrap();
        assert_eq!(verified.findings().suppressed, Some(Suppressed { rows: 1, persons: 1 }));
    }

    #[test]
    fn a_person_with_several_rows_is_left_out_once() {
        let original = clinic();
        // Person 5 has two of the seven rows.
        let verify = |limit| {
            let mut release = clinic_release();
            let rows = release.tables[0].rows.clone();
            let stays: Vec<bool> =
                rows.iter().map(|&row| original.columns[ID].cell(row as usize) != Some("5")).collect();
            let table = &mut release.tables[0];
            let kept = |ids: &mut Vec<u32>| {
                let mut stays = stays.iter();
                ids.retain(|_| *stays.next().unwrap());
            };
            kept(&mut table.rows);
            for column in &mut table.columns {
                match &mut column.cells {
                    Cells::Recoded { ids, .. } | Cells::Surrogate { ids } => kept(ids),
                    Cells::Copied => {}
                }
            }
            verify_release(release, &original, &[Requirement::K(1)], limit)
        };
        let found = verify(SuppressionLimit::share(0.4)).unwrap();
        assert_eq!(found.findings().suppressed, Some(Suppressed { rows: 3, persons: 2 }));
        let violations = verify(SuppressionLimit::share(0.3)).unwrap_err().0;
        assert_eq!(violations, [Violation::TooManySuppressed { n: 2, n_persons: 6, limit: 0.3 }]);
    }

    #[test]
    fn without_a_person_column_each_row_is_one() {
        let original = Table { person: None, ..clinic() };
        let verified = verify_release(clinic_release(), &original, &[Requirement::K(3)], LIMIT).unwrap();
        assert_eq!((verified.findings().counted, verified.findings().k), (Counted::Rows, 3));
    }

    #[test]
    fn a_release_is_one_table_with_rows() {
        let nothing = verify_release(Release { tables: Vec::new() }, &clinic(), &[], LIMIT).unwrap_err();
        assert_eq!(nothing.0, [Violation::NotOneTable { n: 0 }]);
        let empty = spoiled(|table| {
            *table = ReleasedTable { name: name("clinic"), rows: Vec::new(), columns: table.columns.clone() };
            table.columns[0] = recoded("age", AGE, &[], Vec::new());
            table.columns[1] = recoded("zip", ZIP, &[], Vec::new());
        });
        assert_eq!(empty, [Violation::NoRows { table: name("clinic") }]);
    }

    #[test]
    fn source_rows_exist_and_are_used_once() {
        let violations = spoiled(|table| table.rows[1] = 7);
        assert_eq!(violations, [Violation::SourceRowOutOfRange { n: 1, first_row: 2 }]);
        let violations = spoiled(|table| table.rows[2] = 0);
        assert_eq!(violations, [Violation::SourceRowTwice { n: 1, first_row: 3 }]);
    }

    #[test]
    fn columns_have_one_cell_per_row_and_each_cell_a_label() {
        let violations = spoiled(|table| table.columns[0] = recoded("age", AGE, &["*"], vec![0; 5]));
        assert_eq!(violations, [Violation::ColumnLength { column: name("age"), n_cells: 5, n_rows: 6 }]);
        let violations = spoiled(|table| table.columns[0] = recoded("age", AGE, &["*"], vec![0, 0, 1, 1, 1, 1]));
        assert_eq!(violations, [Violation::CellWithoutText { column: name("age"), n: 4, first_row: 3 }]);
    }

    #[test]
    fn every_column_stands_once_in_its_place_under_its_name() {
        let violations = spoiled(|table| table.columns.swap(2, 3));
        assert_eq!(violations, [Violation::ColumnOrder { column: name("disease") }]);
        let violations = spoiled(|table| table.columns.push(table.columns[3].clone()));
        assert_eq!(violations, [Violation::ColumnOrder { column: name("ward") }]);
        let violations = spoiled(|table| drop(table.columns.remove(0)));
        assert_eq!(violations, [Violation::ColumnMissing { column: name("age"), role: Role::Quasi }]);
        let violations = spoiled(|table| table.columns[3].name = name("station"));
        assert_eq!(violations, [Violation::ColumnRenamed { column: name("ward"), released: name("station") }]);
        let violations = spoiled(|table| table.columns[3].source = 99);
        assert!(violations.contains(&Violation::ColumnWithoutSource { column: name("ward") }));
    }

    #[test]
    fn identifiers_own_k_and_the_person_are_never_released() {
        let copy = |column: &str, source| ReleasedColumn { name: name(column), source, cells: Cells::Copied };
        let violations = spoiled(|table| table.columns.insert(0, copy("name", NAME)));
        assert_eq!(violations, [Violation::ColumnForbidden { column: name("name"), role: Role::Identifier }]);
        let violations = spoiled(|table| table.columns.push(copy("wish", WISH)));
        assert_eq!(violations, [Violation::ColumnForbidden { column: name("wish"), role: Role::PersonK }]);
        let violations = spoiled(|table| table.columns.insert(0, copy("id", ID)));
        assert_eq!(violations, [Violation::PersonReleased { column: name("id") }]);
    }

    #[test]
    fn cells_are_of_the_kind_their_role_asks_for() {
        let violations = spoiled(|table| table.columns[0].cells = Cells::Copied);
        let expected = "generalized";
        assert_eq!(violations, [Violation::WrongCells { column: name("age"), role: Role::Quasi, expected }]);
        let violations = spoiled(|table| table.columns[2] = recoded("disease", DISEASE, &["*"], vec![0; 6]));
        let expected = "unchanged";
        assert_eq!(violations, [Violation::WrongCells { column: name("disease"), role: Role::Sensitive, expected }]);
        let violations = spoiled(|table| table.columns[3].cells = Cells::Surrogate { ids: vec![1; 6] });
        assert_eq!(violations, [Violation::WrongCells { column: name("ward"), role: Role::Plain, expected }]);
    }

    #[test]
    fn a_narrowed_cell_or_a_label_of_another_column_covers_nothing() {
        let ids = vec![0, 0, 0, 1, 1, 1];
        let narrowed = recoded("age", AGE, &["[21,28]", "[41,45]"], ids.clone());
        let violations = spoiled(|table| table.columns[0] = narrowed);
        assert_eq!(violations, [Violation::NotCovered { column: name("age"), n: 1, first_row: 1 }]);
        let swapped = recoded("zip", ZIP, &["[21,29]", "[41,45]"], ids);
        let violations = spoiled(|table| table.columns[1] = swapped);
        assert_eq!(violations, [Violation::NotCovered { column: name("zip"), n: 6, first_row: 1 }]);
    }

    #[test]
    fn a_person_is_released_whole_or_not_at_all() {
        let violations = spoiled(|table| {
            table.rows[5] = 6;
            table.columns[0] = recoded("age", AGE, &["[21,29]", "*"], vec![0, 0, 0, 1, 1, 1]);
        });
        assert_eq!(violations, [Violation::PersonSplit { n: 1, first_row: 6 }]);
    }

    #[test]
    fn a_person_without_a_name_is_refused() {
        let mut original = clinic();
        original.columns[ID].ids[3] = NULL;
        let violations = spoiled_for(&original, &clinic_requirements(), |_| {});
        assert_eq!(violations, [Violation::PersonMissing { column: name("id"), n: 1, first_row: 4 }]);
    }

    #[test]
    fn a_key_that_joins_no_tables_is_not_released() {
        let mut original = clinic();
        original.columns[WARD].role = Role::Key;
        for cells in [Cells::Surrogate { ids: vec![1, 2, 2, 2, 1, NULL] }, Cells::Copied] {
            let violations = spoiled_for(&original, &clinic_requirements(), |table| table.columns[3].cells = cells);
            assert_eq!(violations, [Violation::KeyJoinsNothing { column: name("ward") }]);
        }
        let mut without = clinic_release();
        without.tables[0].columns.remove(3);
        assert!(verify_release(without, &original, &clinic_requirements(), LIMIT).is_ok());
    }

    #[test]
    fn labels_that_read_the_same_are_one_class_and_others_are_not() {
        let doubled = recoded("age", AGE, &["[21,29]", "[41,45]", "[21,29]"], vec![0, 2, 0, 1, 1, 1]);
        let mut release = clinic_release();
        release.tables[0].columns[0] = doubled;
        assert_eq!(verify_release(release, &clinic(), &clinic_requirements(), LIMIT).unwrap().findings().classes, 2);
        let apart = recoded("age", AGE, &["[21,29]", "[41,45]", "*"], vec![0, 2, 0, 1, 1, 1]);
        let violations = spoiled(|table| table.columns[0] = apart);
        assert_eq!(violations.len(), 3, "too few persons, for some too few for themselves, and one disease alone");
    }

    #[test]
    fn requirements_speak_of_columns_that_are_released() {
        let asked = [
            Requirement::DistinctL { column: name("name"), l: 1 },
            Requirement::Alpha { column: name("nowhere"), alpha: 1.0 },
            Requirement::PersonK { column: name("elsewhere") },
        ];
        let unknown = ["name", "nowhere", "elsewhere"];
        let violations = spoiled_for(&clinic(), &asked, |_| {});
        assert_eq!(violations, unknown.map(|column| Violation::UnknownColumn { column: name(column) }));
        let violations = spoiled_for(&clinic(), &[Requirement::PersonK { column: name("name") }], |_| {});
        assert_eq!(violations, [Violation::OwnKUnreadable { column: name("name"), n: 6, first_row: 1 }]);
    }

    #[test]
    fn all_violations_are_reported_at_once() {
        let violations = spoiled_for(&clinic(), &[Requirement::K(3)], |table| {
            table.columns[0] = recoded("age", AGE, &["[21,28]", "[41,44]"], vec![0, 0, 0, 1, 1, 1]);
        });
        let unmet = Violation::Unmet {
            requirement: Requirement::K(3),
            n_classes: 1,
            reached: 2.0,
            first_row: 4,
            class_size: 2,
        };
        assert_eq!(violations, [Violation::NotCovered { column: name("age"), n: 3, first_row: 1 }, unmet]);
    }

    proptest! {
        #[test]
        fn one_cell_that_does_not_cover_is_always_found(
            ages in proptest::collection::vec(proptest::option::weighted(0.9, 0i64..90), 1..40),
            spoiled_row in any::<proptest::sample::Index>(),
            lie in 0usize..6,
        ) {
            let texts: Vec<Option<String>> = ages.iter().map(|age| age.map(|age| age.to_string())).collect();
            let column = Column::from_cells("age", Role::Quasi, texts.iter().map(Option::as_deref))
                .typed(ValueType::Integer);
            let original = Table { name: name("t"), columns: vec![column], n_rows: ages.len(), person: None };
            let row = spoiled_row.index(ages.len());
            // A range covers the ages below 45, and a star the others.
            let truth: Vec<u32> = ages.iter().map(|age| if age.is_some_and(|age| age < 45) { 0 } else { 1 }).collect();
            let lie = match (ages[row], lie) {
                (Some(age), 0) => format!("[{},90]", age + 1),
                (Some(age), 1) => format!("[-1,{}]", age - 1),
                (Some(age), 2) => (age + 1).to_string(),
                (Some(_), 3) => String::new(),
                (Some(age), 4) => format!("[{age};{age}]"),
                (None, 0..=4) => "[-1,90]".to_owned(),
                (_, _) => "**".to_owned(),
            };
            let release = |ids: Vec<u32>| {
                let columns = vec![recoded("age", 0, &["[0,44]", "*", &lie], ids)];
                let rows = (0..ages.len() as u32).collect();
                Release { tables: vec![ReleasedTable { name: name("t"), rows, columns }] }
            };
            prop_assert!(verify_release(release(truth.clone()), &original, &[], LIMIT).is_ok());
            let mut spoiled = truth;
            spoiled[row] = 2;
            let first_row = row as u64 + 1;
            prop_assert_eq!(
                verify_release(release(spoiled), &original, &[], LIMIT).unwrap_err().0,
                vec![Violation::NotCovered { column: name("age"), n: 1, first_row }]
            );
        }
    }
}
