//! Persons with several rows, compared with trying every way to trace rows back.

use kohort_model::{Column, Distance, Requirement, Role, Table, ValueType};
use proptest::prelude::*;

use super::*;
use crate::oracle::Naive;

fn column(name: &str, role: Role, cells: impl Iterator<Item = String>) -> Column {
    let cells: Vec<String> = cells.collect();
    Column::from_cells(name, role, cells.iter().map(|cell| Some(cell.as_str())))
}

/// Rows of a person, an age and a disease.
fn private(rows: &[(u8, u8, u8)]) -> Table {
    let columns = vec![
        column("id", Role::Key, rows.iter().map(|row| row.0.to_string())),
        column("age", Role::Quasi, rows.iter().map(|row| row.1.to_string())).typed(ValueType::Integer),
        column("disease", Role::Sensitive, rows.iter().map(|row| row.2.to_string())),
    ];
    Table { name: "t".to_owned(), columns, n_rows: rows.len(), person: Some(0) }
}

/// Released rows of a range of ages and a disease. If `persons` is given, a column names the person of each row.
fn shown(rows: &[(u8, u8, u8)], persons: Option<&[u8]>) -> Table {
    let mut columns = vec![
        column("age", Role::Quasi, rows.iter().map(|row| format!("[{},{}]", row.0, row.1))),
        column("disease", Role::Sensitive, rows.iter().map(|row| row.2.to_string())),
    ];
    let ids = persons.map(|persons| column("id", Role::Key, persons.iter().map(ToString::to_string)));
    columns.extend(ids);
    Table { name: "t".to_owned(), columns, n_rows: rows.len(), person: persons.map(|_| 2) }
}

fn requirement() -> impl Strategy<Value = Requirement> {
    let name = || "disease".to_owned();
    prop_oneof![
        (1u32..4).prop_map(Requirement::K),
        (1u32..3).prop_map(move |l| Requirement::DistinctL { column: name(), l }),
        (1.0f64..2.5).prop_map(move |l| Requirement::EntropyL { column: name(), l }),
        (0.5f64..3.0, 1u32..3).prop_map(move |(c, l)| Requirement::RecursiveCL { column: name(), c, l }),
        (0.0f64..0.6).prop_map(move |t| Requirement::TCloseness { column: name(), t, distance: Distance::Equal }),
        (0.3f64..1.0).prop_map(move |alpha| Requirement::Alpha { column: name(), alpha }),
        (0.0f64..2.0).prop_map(move |beta| Requirement::Beta { column: name(), beta }),
        (0.0f64..2.0).prop_map(move |beta| Requirement::EnhancedBeta { column: name(), beta }),
    ]
}

/// Whether some way to trace the released rows back leaves out that many whole persons and satisfies everything.
fn some_way(
    released: &[(u8, u8, u8)],
    private: &[(u8, u8, u8)],
    asked: &[Requirement],
    n_left_out: usize,
    given: &mut Vec<usize>,
) -> bool {
    if let Some(&(low, high, disease)) = released.get(given.len()) {
        return (0..private.len()).any(|row| {
            let (_, age, other) = private[row];
            let fits = !given.contains(&row) && low <= age && age <= high && disease == other;
            fits && {
                given.push(row);
                let found = some_way(released, private, asked, n_left_out, given);
                given.pop();
                found
            }
        });
    }
    let here: Vec<u8> = given.iter().map(|&row| private[row].0).collect();
    let mut gone: Vec<u8> = (0..private.len()).filter(|row| !given.contains(row)).map(|row| private[row].0).collect();
    gone.sort_unstable();
    gone.dedup();
    if gone.len() != n_left_out || gone.iter().any(|person| here.contains(person)) {
        return false;
    }
    let table = shown(released, Some(&here));
    let naive = Naive::new(&table, &[0]);
    asked.iter().all(|requirement| naive.failing(requirement).is_empty())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn a_release_is_accepted_exactly_where_some_way_to_trace_its_rows_satisfies_everything(
        rows in proptest::collection::vec((0u8..4, 0u8..4, 0u8..3), 2..7),
        labels in proptest::collection::vec((0u8..3, 0u8..3), 7),
        left_out in proptest::collection::vec(proptest::bool::weighted(0.2), 4),
        told_left_out in 0usize..12,
        asked in proptest::collection::vec(requirement(), 1..4),
    ) {
        let kept: Vec<&(u8, u8, u8)> = rows.iter().filter(|row| !left_out[row.0 as usize]).collect();
        let released: Vec<(u8, u8, u8)> = kept
            .iter()
            .zip(&labels)
            .map(|(&&(_, age, disease), &(below, above))| (age.saturating_sub(below), age + above, disease))
            .collect();
        prop_assume!(!released.is_empty());
        let mut gone: Vec<u8> = rows.iter().map(|row| row.0).filter(|&person| left_out[person as usize]).collect();
        gone.sort_unstable();
        gone.dedup();
        // Most releases state the true number of persons left out, some another number.
        let n_left_out = if told_left_out < 10 { gone.len() } else { told_left_out - 10 };
        let suppressed = Suppressed { rows: (rows.len() - released.len()) as u64, persons: n_left_out as u64 };
        let found = verify_against(&shown(&released, None), &private(&rows), &asked, suppressed, SuppressionLimit::share(1.0));
        let expected = some_way(&released, &rows, &asked, n_left_out, &mut Vec::new());
        match found {
            Ok(_) => prop_assert!(expected, "accepted"),
            Err(Violations(violations)) => {
                prop_assert!(!expected, "{:?}", violations);
                prop_assert!(!violations.iter().any(Violation::is_undecided), "{:?}", violations);
            }
        }
    }
}

#[test]
fn shares_are_counted_in_persons_and_not_in_rows() {
    // Everybody has the flu and a cold; person 1 has the flu in three rows.
    let rows = [(1, 20, 0), (1, 20, 0), (1, 20, 0), (1, 20, 1), (2, 20, 0), (2, 20, 1)];
    let others = [(3, 40, 0), (3, 40, 1), (4, 40, 0), (4, 40, 1)];
    let rows: Vec<(u8, u8, u8)> = rows.into_iter().chain(others).collect();
    let released: Vec<(u8, u8, u8)> = rows.iter().map(|&(_, age, disease)| (age, age + 9, disease)).collect();
    let name = || "disease".to_owned();
    for requirement in [
        Requirement::K(2),
        Requirement::EntropyL { column: name(), l: 2.0 },
        Requirement::RecursiveCL { column: name(), c: 1.1, l: 2 },
        Requirement::TCloseness { column: name(), t: 0.01, distance: Distance::Equal },
        Requirement::Beta { column: name(), beta: 0.01 },
        Requirement::EnhancedBeta { column: name(), beta: 0.01 },
    ] {
        let asked = std::slice::from_ref(&requirement);
        let findings = verify_against(
            &shown(&released, None),
            &private(&rows),
            asked,
            Suppressed::default(),
            SuppressionLimit::NOBODY,
        )
        .unwrap();
        assert_eq!((findings.counted, findings.persons), (Counted::Persons, 4), "{requirement:?}");
        assert!(findings.skipped.is_empty(), "{requirement:?}");
        let counted_as_rows = Table { person: None, ..private(&rows) };
        let by_rows = verify_against(
            &shown(&released, None),
            &counted_as_rows,
            asked,
            Suppressed::default(),
            SuppressionLimit::NOBODY,
        );
        assert_eq!(by_rows.is_ok(), requirement == Requirement::K(2), "{requirement:?}");
    }
}

#[test]
fn a_person_who_asks_for_more_than_there_are_is_the_one_left_out() {
    // Persons 0, 1 and 3 have one row each, and these look the same. Person 3 asks for six, but only four persons are
    // released.
    let persons = [4, 0, 3, 2, 2, 4, 1, 4, 4, 2];
    let rows = persons.map(|person| (person, 7, 0));
    let mut original = private(&rows);
    let wishes = persons.map(|person| Some(["0", "2", "4", "6", "1"][person as usize]));
    original.columns.push(Column::from_cells("wish", Role::PersonK, wishes));
    let asked = [Requirement::K(1), Requirement::PersonK { column: "wish".to_owned() }];
    let released = shown(&[(7, 7, 0); 9], None);
    let findings =
        verify_against(&released, &original, &asked, Suppressed { rows: 1, persons: 1 }, SuppressionLimit::share(1.0))
            .unwrap();
    assert_eq!((findings.k, findings.persons), (4, 4));
}

#[test]
fn persons_are_left_out_whole_or_not_at_all() {
    let rows = [(1, 20, 0), (1, 40, 0), (2, 20, 0), (3, 20, 0)];
    // The row with age 40 is not released, although another row of its person is.
    let released = [(20, 29, 0), (20, 29, 0), (20, 29, 0)];
    let verify = |persons| {
        let suppressed = Suppressed { rows: 1, persons };
        verify_against(
            &shown(&released, None),
            &private(&rows),
            &[Requirement::K(1)],
            suppressed,
            SuppressionLimit::share(1.0),
        )
        .unwrap_err()
        .0
    };
    assert!(matches!(verify(1)[..], [Violation::PersonSplit { .. }]));
    assert!(matches!(verify(0)[..], [Violation::PersonSplit { .. }]));
}
