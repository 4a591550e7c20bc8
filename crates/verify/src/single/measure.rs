//! [`measure`] and [`verify_alone`]: what a table shows by itself.

use kohort_model::{Column, Requirement, Role, Table};

use crate::asked::Perspectives;
use crate::count::cells::CellIds;
use crate::count::learned::Source;
use crate::count::roll::{Roll, Sensitive, Shares, own_ks, persons_of, sensitive_names};
use crate::structure::{check_table, no_rows};
use crate::{Asked, Findings, RowsOf, Skipped, Violation, Violations};

/// Counts any table. Rows with equal cells in the `quasi` columns form a class. Classes are counted in persons if the
/// table has a person column, otherwise in rows. The `sensitive` columns and those that requirements name are measured.
/// [`Findings::unmet`] lists requirements that fail.
///
/// # Errors
/// If the table can't be counted: it has no rows, a row without a person, or lacks a column that a requirement names.
///
/// # Panics
/// If a position is beyond the table's columns.
pub fn measure<'a>(
    table: &Table,
    quasi: &[usize],
    sensitive: &[usize],
    asked: impl Into<Asked<'a>>,
) -> Result<Findings, Violations> {
    let mut violations = Vec::new();
    let perspectives = Perspectives::new(asked.into(), &names(table, quasi), &mut violations);
    measure_from(table, quasi, sensitive, (&perspectives, Source::Private, Shares::Pairs), None, violations)
}

pub(crate) fn names<'t>(table: &'t Table, quasi: &[usize]) -> Vec<&'t str> {
    quasi.iter().map(|&position| table.columns[position].name.as_str()).collect()
}

/// Measures a table. If it is a part of a whole table, `whole` has for each column the number of nulls of the whole and then the
/// number of rows that hold each text.
pub(crate) fn measure_from(
    table: &Table,
    quasi: &[usize],
    sensitive: &[usize],
    (perspectives, source, shares): (&Perspectives, Source, Shares),
    whole: Option<&[Vec<u64>]>,
    mut violations: Vec<Violation>,
) -> Result<Findings, Violations> {
    violations.extend(check_table(table));
    let requirements = perspectives.requirements();
    violations.extend(no_rows(table));
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    let mut measured = sensitive.to_vec();
    for name in sensitive_names(&requirements) {
        match table.position(name) {
            Some(position) if measured.contains(&position) => {}
            Some(position) => measured.push(position),
            None => violations.push(Violation::UnknownColumn { column: name.to_owned() }),
        }
    }
    let persons = persons_of(table, None)?;
    let own_k = own_ks(table, None, persons.as_ref(), &requirements, &mut violations);
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    let columns: Vec<&Column> = quasi.iter().map(|&position| &table.columns[position]).collect();
    let quasi: Vec<CellIds<'_>> =
        columns.iter().map(|column| CellIds::by_id(column.ids.as_slice(), column.texts.len())).collect();
    let shown: Vec<_> = columns.iter().map(|&column| (&column.texts, column)).collect();
    let roll = Roll {
        n_rows: table.n_rows,
        quasi,
        persons,
        shares,
        sensitive: measured
            .into_iter()
            .map(|position| {
                let column = &table.columns[position];
                Sensitive {
                    whole: whole.map(|counts| counts[position].as_slice()),
                    ..Sensitive::new(column, column, None)
                }
            })
            .collect(),
        own_k,
    };
    perspectives.count(&roll, &shown, source)
}

/// Verifies a released table by itself, counted in persons if the person column is released, otherwise in rows.
/// Persons' own k is never released, so a requirement on it is listed in [`Findings::skipped`], unless the table does
/// have the column.
///
/// If several rows may belong to the same person, a class has at most as many persons as rows, and shares of values
/// can't be counted. Then a requirement fails only if it fails whichever rows belong together. Requirements that can't
/// be confirmed in this way are listed in [`Findings::skipped`].
///
/// # Errors
/// Every requirement that some class does not satisfy, or the faults that make it impossible to count the table.
///
/// # Panics
/// If a position is beyond the table's columns.
pub fn verify_alone<'a>(
    released: &Table,
    quasi: &[usize],
    asked: impl Into<Asked<'a>>,
    rows_of: RowsOf,
) -> Result<Findings, Violations> {
    let Alone { perspectives, shares, skipped, violations } = Alone::new(released, quasi, asked.into(), rows_of);
    let sensitive = released.with_role(Role::Sensitive);
    let mut findings =
        measure_from(released, quasi, &sensitive, (&perspectives, Source::Released, shares), None, violations)?;
    if !findings.unmet.is_empty() {
        return Err(Violations(findings.unmet));
    }
    findings.skipped.extend(skipped);
    Ok(findings)
}

/// What is counted of a released table by itself.
pub(crate) struct Alone {
    pub(crate) perspectives: Perspectives,
    pub(crate) shares: Shares,
    pub(crate) skipped: Vec<Skipped>,
    pub(crate) violations: Vec<Violation>,
}

impl Alone {
    pub(crate) fn new(released: &Table, quasi: &[usize], asked: Asked<'_>, rows_of: RowsOf) -> Self {
        let mut violations: Vec<Violation> = released
            .with_role(Role::Key)
            .into_iter()
            .filter(|&key| released.person != Some(key))
            .map(|key| Violation::KeyJoinsNothing { column: released.columns[key].name.clone() })
            .collect();
        let mut perspectives = Perspectives::new(asked, &names(released, quasi), &mut violations);
        let is_hidden = |requirement: &Requirement| {
            requirement.own_k_column().is_some_and(|column| released.position(column).is_none())
        };
        let hidden = perspectives.requirements().into_iter().filter(is_hidden);
        let mut skipped: Vec<Skipped> = hidden.filter_map(|requirement| Skipped::own_k(&requirement)).collect();
        perspectives.leave_out(is_hidden);
        let shares = match rows_of {
            RowsOf::PersonsUnnamed if released.person.is_none() => Shares::Hidden,
            RowsOf::PersonsUnnamed | RowsOf::PersonsEach => Shares::Pairs,
        };
        if shares == Shares::Hidden {
            skipped.extend(perspectives.requirements().iter().filter_map(Skipped::of_persons));
            let of_persons = |requirement: &Requirement| Skipped::of_persons(requirement).is_some();
            skipped.extend(perspectives.take_hidden(of_persons).iter().filter_map(Skipped::of_persons));
        }
        Alone { perspectives, shares, skipped, violations }
    }
}

#[cfg(test)]
mod tests {
    use kohort_model::{Distance, Hierarchy, NULL, ValueType};
    use proptest::prelude::*;

    use super::*;
    use crate::Counted;
    use crate::cases::{AGE, DISEASE, ID, WARD, ZIP, clinic};
    use crate::oracle::Naive;

    #[test]
    fn a_table_is_counted_in_persons_where_it_names_them() {
        let findings = measure(&clinic(), &[WARD], &[DISEASE], &[]).unwrap();
        // Wards: A has persons 1, 2, 5; B has 3, 4, 6; null has 5.
        assert_eq!((findings.counted, findings.rows, findings.persons), (Counted::Persons, 7, 6));
        assert_eq!((findings.classes, findings.k, findings.unique_persons), (3, 1, 1));
        assert_eq!(findings.class_sizes, [(1, 1), (3, 2)]);
        assert_eq!(findings.highest_risk, 1.0);
        assert!((findings.average_risk - (5.0 / 3.0 + 1.0) / 6.0).abs() < 1e-12);
        let rows = Table { person: None, ..clinic() };
        let findings = measure(&rows, &[AGE, ZIP], &[], &[]).unwrap();
        assert_eq!((findings.counted, findings.persons, findings.k), (Counted::Rows, 7, 1));
    }

    #[test]
    fn without_quasi_columns_all_persons_look_the_same() {
        let findings = measure(&clinic(), &[], &[], &[Requirement::K(6)]).unwrap();
        assert_eq!((findings.classes, findings.k), (1, 6));
        assert!(findings.unmet.is_empty());
    }

    #[test]
    fn a_null_is_not_an_empty_text() {
        let column = Column::from_cells("x", Role::Quasi, [None, Some(""), Some("")]);
        let table = Table { name: "t".to_owned(), columns: vec![column], n_rows: 3, person: None };
        assert_eq!(measure(&table, &[0], &[], &[]).unwrap().class_sizes, [(1, 1), (2, 1)]);
    }

    #[test]
    fn tables_that_can_t_be_counted_are_refused() {
        let mut nameless = clinic();
        nameless.columns[ID].ids[2] = NULL;
        let violations = measure(&nameless, &[AGE], &[], &[]).unwrap_err().0;
        assert_eq!(violations, [Violation::PersonMissing { column: "id".to_owned(), n: 1, first_row: 3 }]);
        let empty = Table { name: "t".to_owned(), columns: Vec::new(), n_rows: 0, person: None };
        let violations = measure(&empty, &[], &[], &[]).unwrap_err().0;
        assert_eq!(violations, [Violation::NoRows { table: "t".to_owned() }]);
        let mut short = clinic();
        short.columns[AGE].ids.pop();
        short.columns[ZIP].ids[0] = 99;
        let expected = [
            Violation::ColumnLength { column: "age".to_owned(), n_cells: 6, n_rows: 7 },
            Violation::CellWithoutText { column: "zip".to_owned(), n: 1, first_row: 1 },
        ];
        assert_eq!(measure(&short, &[AGE], &[], &[]).unwrap_err().0, expected);
        let nowhere = Requirement::DistinctL { column: "nowhere".to_owned(), l: 2 };
        let violations = measure(&clinic(), &[AGE], &[], &[nowhere]).unwrap_err().0;
        assert_eq!(violations, [Violation::UnknownColumn { column: "nowhere".to_owned() }]);
    }

    #[test]
    fn a_table_too_long_for_row_numbers_is_refused() {
        let table = Table { name: "t".to_owned(), columns: Vec::new(), n_rows: u32::MAX as usize, person: None };
        let violations = measure(&table, &[], &[], &[]).unwrap_err().0;
        assert_eq!(violations, [Violation::TooManyRows { table: "t".to_owned(), n_rows: u64::from(u32::MAX) }]);
    }

    #[test]
    fn own_k_is_skipped_where_it_is_not_released_and_said_to_be() {
        let mut released = clinic();
        released.columns.pop();
        let own_k = Requirement::PersonK { column: "wish".to_owned() };
        let findings = verify_alone(&released, &[DISEASE], &[Requirement::K(2), own_k], RowsOf::PersonsEach).unwrap();
        assert_eq!(findings.skipped, [Skipped::PersonK { column: "wish".to_owned() }]);
        assert_eq!(findings.sensitive.len(), 1, "sensitive columns are measured unasked");
        assert!(verify_alone(&released, &[WARD], &[Requirement::K(2)], RowsOf::PersonsEach).is_err());
        let mut with_key = released;
        with_key.columns[WARD].role = Role::Key;
        let violations = verify_alone(&with_key, &[DISEASE], &[Requirement::K(2)], RowsOf::PersonsEach).unwrap_err().0;
        assert_eq!(violations, [Violation::KeyJoinsNothing { column: with_key.columns[WARD].name.clone() }]);
    }

    #[test]
    fn rows_that_may_share_a_person_refute_and_confirm_what_they_can() {
        let mut released = Table { person: None, ..clinic() };
        released.columns[ID].role = Role::Plain;
        let column = || "disease".to_owned();
        let verify = |asked: &[Requirement]| verify_alone(&released, &[AGE], asked, RowsOf::PersonsUnnamed);
        let by_rows = |asked: &[Requirement]| verify_alone(&released, &[AGE], asked, RowsOf::PersonsEach);
        // The class of Eve has two rows with two values, all others one row.
        let skewed = [Requirement::TCloseness { column: column(), t: 0.1, distance: Distance::Equal }];
        assert!(by_rows(&skewed).is_err());
        let findings = verify(&skewed).unwrap();
        assert_eq!(findings.skipped, [Skipped::OfPersons { requirement: skewed[0].clone() }]);
        for refuted in [
            Requirement::K(2),
            Requirement::DistinctL { column: column(), l: 2 },
            Requirement::EntropyL { column: column(), l: 1.5 },
            Requirement::RecursiveCL { column: column(), c: 9.0, l: 2 },
            Requirement::Alpha { column: column(), alpha: 0.9 },
        ] {
            let violations = verify(std::slice::from_ref(&refuted)).unwrap_err().0;
            assert!(matches!(&violations[..], [Violation::Unmet { n_classes: 5, .. }]), "{refuted:?} {violations:?}");
        }
    }

    /// Rows of (person, two quasi cells, number, leaf, own k).
    type Row = (u8, u8, u8, Option<u8>, Option<u8>, Option<u8>);

    fn table(rows: &[Row], persons: bool) -> Table {
        let text = |cells: Vec<Option<String>>, name: &str, role| {
            Column::from_cells(name, role, cells.iter().map(Option::as_deref))
        };
        let spelled = ["1", "01", "2", "10", "-3"];
        let leaves = ["a", "b", "c", "d", "e"];
        let tree = "a;x;r;all\nb;x;r;all\nc;r;all\nd;all\ne;y;all";
        let columns = vec![
            text(rows.iter().map(|row| Some(row.0.to_string())).collect(), "id", Role::Key),
            text(rows.iter().map(|row| Some(row.1.to_string()).filter(|_| row.1 > 0)).collect(), "p", Role::Quasi),
            text(rows.iter().map(|row| Some(row.2.to_string())).collect(), "q", Role::Quasi),
            text(rows.iter().map(|row| row.3.map(|n| spelled[n as usize].to_owned())).collect(), "n", Role::Sensitive)
                .typed(ValueType::Integer),
            text(rows.iter().map(|row| row.4.map(|n| leaves[n as usize].to_owned())).collect(), "h", Role::Sensitive)
                .with_hierarchy(Hierarchy::from_paths(tree).unwrap()),
            text(rows.iter().map(|row| row.5.map(|k| k.to_string())).collect(), "wish", Role::PersonK),
        ];
        Table { name: "t".to_owned(), columns, n_rows: rows.len(), person: persons.then_some(0) }
    }

    fn requirements(bound: f64, n: u32) -> Vec<Requirement> {
        let mut all = vec![Requirement::K(n), Requirement::PersonK { column: "wish".to_owned() }];
        for name in ["n", "h"] {
            let column = || name.to_owned();
            all.extend([
                Requirement::DistinctL { column: column(), l: n },
                Requirement::EntropyL { column: column(), l: 1.0 + bound * 2.0 },
                Requirement::RecursiveCL { column: column(), c: bound * 4.0, l: n },
                Requirement::TCloseness { column: column(), t: bound, distance: Distance::Equal },
                Requirement::TCloseness { column: column(), t: bound, distance: Distance::Ordered },
                Requirement::Alpha { column: column(), alpha: bound },
                Requirement::Beta { column: column(), beta: bound * 3.0 },
                Requirement::EnhancedBeta { column: column(), beta: bound * 3.0 },
            ]);
        }
        let column = "h".to_owned();
        all.push(Requirement::TCloseness { column, t: bound, distance: Distance::Hierarchical });
        all
    }

    fn rows() -> impl Strategy<Value = Vec<Row>> {
        let value = || proptest::option::weighted(0.85, 0u8..5);
        let row = (0u8..9, 0u8..3, 0u8..2, value(), value(), proptest::option::weighted(0.3, 0u8..5));
        proptest::collection::vec(row, 1..28)
    }

    #[test]
    fn one_thread_and_eight_find_the_same() {
        let cell = |row: usize, step: usize, n: usize| ((row * step) ^ (row >> 3)) % n;
        let value = |row, step| Some(cell(row, step, 6) as u8).filter(|&n| n < 5);
        let row = |row| {
            let person = cell(row, 7, 250) as u8;
            (person, cell(row, 3, 17) as u8, cell(row, 5, 11) as u8, value(row, 31), value(row, 37), None)
        };
        let table = table(&(0..20_000).map(row).collect::<Vec<_>>(), true);
        let found = |n_threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            pool.install(|| measure(&table, &[1, 2], &[3, 4], &requirements(0.3, 3)).unwrap())
        };
        assert_eq!(found(1), found(8));
        assert!(!found(1).unmet.is_empty());
    }

    proptest! {
        #[test]
        fn counts_agree_with_the_comparison_of_every_pair_of_rows(
            rows in rows(),
            persons in any::<bool>(),
            bound in 0.05f64..1.0,
            n in 1u32..4,
        ) {
            let table = table(&rows, persons);
            let quasi = [1, 2];
            let requirements = requirements(bound, n);
            let findings = measure(&table, &quasi, &[3, 4], &requirements).unwrap();
            let naive = Naive::new(&table, &quasi);
            prop_assert_eq!(findings.k, naive.k() as u64);
            prop_assert_eq!(findings.persons, naive.n_persons() as u64);
            prop_assert_eq!(findings.classes, naive.n_classes() as u64);
            prop_assert_eq!(findings.unique_persons, naive.n_unique() as u64);
            prop_assert!((findings.average_risk - naive.average_risk()).abs() < 1e-12);
            let mut unmet = findings.unmet.iter();
            for requirement in &requirements {
                let failing = naive.failing(requirement);
                let Some(&first) = failing.first() else { continue };
                match unmet.next() {
                    Some(Violation::Unmet { requirement: found, n_classes, first_row, class_size, .. }) => {
                        prop_assert_eq!(found, requirement);
                        prop_assert_eq!(*n_classes, failing.len() as u64);
                        prop_assert_eq!(*first_row, first as u64 + 1);
                        prop_assert_eq!(*class_size, naive.size(first) as u64);
                    }
                    other => prop_assert!(false, "{requirement:?} fails in {failing:?}, found {other:?}"),
                }
            }
            prop_assert_eq!(unmet.next(), None);
        }

        #[test]
        fn what_is_reached_is_the_tightest_that_holds(rows in rows(), persons in any::<bool>()) {
            let table = table(&rows, persons);
            let asked = requirements(1.0, 2);
            let findings = measure(&table, &[1, 2], &[3, 4], &asked).unwrap();
            for sensitive in &findings.sensitive {
                let column = || sensitive.column.clone();
                let t = |t, distance| Requirement::TCloseness { column: column(), t, distance };
                let entropy = |l| Requirement::EntropyL { column: column(), l };
                let alpha = |alpha| Requirement::Alpha { column: column(), alpha };
                let beta = |beta| Requirement::Beta { column: column(), beta };
                let more = 1e-6;
                let ordered = sensitive.t_ordered.unwrap();
                let mut tight = vec![
                    (Requirement::DistinctL { column: column(), l: sensitive.l as u32 }, true),
                    (Requirement::DistinctL { column: column(), l: sensitive.l as u32 + 1 }, false),
                    (entropy(sensitive.entropy_l), true),
                    (entropy(sensitive.entropy_l + more), false),
                    (t(sensitive.t, Distance::Equal), true),
                    (t(sensitive.t - more, Distance::Equal), false),
                    (t(ordered, Distance::Ordered), true),
                    (t(ordered - more, Distance::Ordered), false),
                    (alpha(sensitive.alpha), true),
                    (alpha(sensitive.alpha - more), false),
                    (beta(sensitive.beta), true),
                    (beta(sensitive.beta - more), false),
                ];
                if let Some(hierarchical) = sensitive.t_hierarchical {
                    tight.push((t(hierarchical, Distance::Hierarchical), true));
                    tight.push((t(hierarchical - more, Distance::Hierarchical), false));
                }
                let enhanced = sensitive.enhanced_beta;
                let beta = enhanced.unwrap_or(1e9);
                tight.push((Requirement::EnhancedBeta { column: column(), beta }, enhanced.is_some()));
                if let Some(c) = sensitive.recursive_c.filter(|c| c.is_finite()) {
                    tight.push((Requirement::RecursiveCL { column: column(), c: c + more, l: 2 }, true));
                    tight.push((Requirement::RecursiveCL { column: column(), c: c - more, l: 2 }, false));
                }
                for (requirement, holds) in tight {
                    let naive = Naive::new(&table, &[1, 2]);
                    prop_assert_eq!(naive.failing(&requirement).is_empty(), holds, "{:?}", requirement);
                }
            }
        }
    }
}
