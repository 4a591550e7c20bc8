//! Tests of audiences: forged releases, and a comparison with brute force.

use kohort_model::{
    Audience, Audiences, Cells, Coalition, Column, Release, ReleasedColumn, ReleasedTable, Requirement, Role, Table,
};
use proptest::prelude::*;

use super::*;
use crate::cases::{recoded, written};
use crate::oracle::Naive;
use crate::{
    RowsOf, Suppressed, SuppressionLimit, measure, verify_against, verify_alone, verify_release, verify_written,
};

const NOBODY: Suppressed = Suppressed { rows: 0, persons: 0 };

/// Quasi columns `a`, `b`, ... and a sensitive one.
fn table(cells: &[&[&str]], sensitive: &[&str]) -> Table {
    let cell = |column: usize| cells.iter().map(move |row| Some(row[column]));
    let mut columns: Vec<Column> =
        (0..cells[0].len()).map(|column| Column::from_cells(&name(column), Role::Quasi, cell(column))).collect();
    columns.push(Column::from_cells("s", Role::Sensitive, sensitive.iter().map(|&cell| Some(cell))));
    Table { name: "t".to_owned(), columns, n_rows: cells.len(), person: None }
}

fn name(column: usize) -> String {
    char::from(b'a' + column as u8).to_string()
}

/// A release that shows everything as it is.
fn as_it_is(table: &Table) -> Release {
    let quasi = table.columns.len() - 1;
    let column = |position: usize| {
        let texts: Vec<&str> = table.columns[position].texts.iter().collect();
        recoded(&name(position), position, &texts, table.columns[position].ids.clone())
    };
    let mut columns: Vec<ReleasedColumn> = (0..quasi).map(column).collect();
    columns.push(ReleasedColumn { name: "s".to_owned(), source: quasi, cells: Cells::Copied });
    let rows = (0..table.n_rows as u32).collect();
    Release { tables: vec![ReleasedTable { name: "t".to_owned(), rows, columns }] }
}

fn audience(name: &str, quasi: &str, k: u32) -> Audience {
    let quasi = quasi.chars().map(String::from).collect();
    Audience { name: name.to_owned(), quasi, requirements: vec![Requirement::K(k)] }
}

fn audiences(each: &[Audience], collusion_k: Option<u32>) -> Audiences {
    Audiences::new(each.to_vec()).with_collusion_k(collusion_k)
}

/// What all four verifications find in a table that is released as it is, after asserting that they agree.
fn verified(table: &Table, asked: &Audiences) -> Result<Findings, Vec<Violation>> {
    let release = as_it_is(table);
    let file = written(&release, table);
    let quasi: Vec<usize> = (0..table.columns.len() - 1).collect();
    let in_memory = verify_release(release.clone(), table, asked, SuppressionLimit::NOBODY)
        .map(|verified| verified.findings().clone());
    let alone = verify_alone(&file, &quasi, asked, RowsOf::PersonsEach);
    let against = verify_against(&file, table, asked, NOBODY, SuppressionLimit::NOBODY);
    let believed = audiences(&[audience("anybody", &quasi.iter().map(|&q| name(q)).collect::<String>(), 1)], None);
    let believed = verify_release(release, table, &believed, SuppressionLimit::NOBODY).unwrap();
    let read_back = verify_written(&file, &believed, table, asked);
    let violations = |found: &Result<Findings, Violations>| found.as_ref().err().map(|wrong| wrong.0.clone());
    for other in [&alone, &against, &read_back] {
        assert_eq!(violations(other), violations(&in_memory));
        // Files do not say which labels overlap, so what is learned can't be compared.
        let figures = |found: &Findings| {
            let mut audiences = found.audiences.clone();
            audiences.iter_mut().for_each(|audience| audience.learned.clear());
            (found.k, found.classes, audiences, found.collusion_k)
        };
        assert_eq!(other.as_ref().ok().map(figures), in_memory.as_ref().ok().map(figures));
    }
    in_memory.map_err(|wrong| wrong.0)
}

/// The accident table of [PTL+08], anonymized by a butterfly: occupation, age, vehicle.
fn accidents() -> Table {
    let cells: [&[&str]; 4] = [
        &["Medical", "30", "Truck"],
        &["Medical", "30", "Sedan"],
        &["Finance", "30", "Sedan"],
        &["Finance", "30", "Truck"],
    ];
    table(&cells, &["No", "Yes", "No", "No"])
}

#[test]
fn a_butterfly_is_k_for_each_audience_and_not_for_both_together() {
    let asked = [audience("hr", "ab", 2), audience("insurer", "bc", 2)];
    let found = verified(&accidents(), &audiences(&asked, None)).unwrap();
    assert_eq!((found.k, found.classes, found.collusion_k), (2, 4, Some(1)));
    let of_each: Vec<(&str, u64, u64)> =
        found.audiences.iter().map(|found| (found.audience.as_str(), found.k, found.classes)).collect();
    assert_eq!(of_each, [("hr", 2, 2), ("insurer", 2, 2)]);
    assert_eq!(found.class_sizes, [(2, 4)]);
    assert!((found.average_risk - 0.5).abs() < 1e-12);

    let wrong = verified(&accidents(), &audiences(&asked, Some(2))).unwrap_err();
    let [Violation::Together { violation }] = wrong.as_slice() else { panic!("{wrong:?}") };
    assert!(matches!(**violation, Violation::Unmet { n_classes: 4, class_size: 1, .. }));
    assert!(wrong[0].to_string().starts_with("all audiences together: at least 2 persons in each class: 4 classes"));
}

#[test]
fn a_coalition_is_refused_one_sensitive_value_although_each_audience_sees_two() {
    let l = |l| Requirement::DistinctL { column: "s".to_owned(), l };
    let mut asked = audiences(&[audience("hr", "ab", 2), audience("insurer", "b", 2)], None);
    asked.each[1].requirements.push(l(2));
    let coalition = |requirement| Coalition {
        name: Some("both".to_owned()),
        members: vec!["hr".to_owned(), "insurer".to_owned()],
        requirements: vec![requirement],
    };
    asked.each.push(audience("board", "c", 1));
    asked.coalitions = vec![coalition(Requirement::K(2))];
    let found = verified(&accidents(), &asked).unwrap();
    let reached: Vec<(&str, u64, u64)> =
        found.coalitions.iter().map(|found| (found.audience.as_str(), found.k, found.sensitive[0].l)).collect();
    assert_eq!(reached, [("all", 1, 1), ("both", 2, 1)]);
    asked.coalitions = vec![coalition(l(2))];
    let wrong = verified(&accidents(), &asked).unwrap_err();
    let [Violation::ForCoalition { coalition, violation }] = wrong.as_slice() else { panic!("{wrong:?}") };
    assert_eq!(coalition, "both");
    assert!(matches!(**violation, Violation::Unmet { n_classes: 1, class_size: 2, .. }));
}

#[test]
fn labels_decide_what_a_column_tells_audiences_that_do_not_know_it() {
    let table = accidents();
    let learned = |asked: &Audiences| {
        let verified = verify_release(as_it_is(&table), &table, asked, SuppressionLimit::NOBODY)?;
        Ok::<_, Violations>(verified.findings().audiences[0].learned.clone())
    };
    let of = |requirement: Requirement| {
        let mut asked = audiences(&[audience("hr", "ab", 2), audience("insurer", "bc", 2)], None);
        asked.each[0].requirements.push(requirement);
        learned(&asked)
    };
    let l = |l| Requirement::DistinctL { column: "c".to_owned(), l };
    let told = LearnedFindings { column: "c".to_owned(), l: Some(2), t: 0.0, certain: 0 };
    assert_eq!(of(l(2)).unwrap(), [told]);
    let wrong = of(l(3)).unwrap_err().0;
    let [Violation::ForAudience { violation, .. }] = wrong.as_slice() else { panic!("{wrong:?}") };
    assert!(matches!(**violation, Violation::Unmet { n_classes: 2, class_size: 2, .. }));
    let alpha = Requirement::Alpha { column: "c".to_owned(), alpha: 1.0 };
    let undefined = Violation::NotOfLabels { column: "c".to_owned() }.for_audience("hr");
    assert_eq!(of(alpha).unwrap_err().0, [undefined]);
    let known = Requirement::DistinctL { column: "a".to_owned(), l: 2 };
    let known_already = Violation::KnownAlready { column: "a".to_owned() }.for_audience("hr");
    assert_eq!(of(known).unwrap_err().0, [known_already]);
}

#[test]
fn a_release_that_is_k_for_one_audience_only_is_refused_and_the_other_is_named() {
    let mut table = accidents();
    table.columns[2].ids[3] = table.columns[2].texts.push("Van");
    let wrong = verified(&table, &audiences(&[audience("hr", "ab", 2), audience("insurer", "bc", 2)], None));
    let wrong = wrong.unwrap_err();
    assert_eq!(wrong.len(), 1);
    assert!(wrong[0].to_string().starts_with("audience 'insurer': at least 2 persons in each class: 2 classes fail"));
}

#[test]
fn every_audience_has_its_own_k() {
    let asked = |hr, insurer| audiences(&[audience("hr", "ab", hr), audience("insurer", "b", insurer)], None);
    let cells: [&[&str]; 4] = [&["x", "1"], &["x", "1"], &["y", "1"], &["y", "1"]];
    let table = table(&cells, &["1", "2", "1", "2"]);
    assert_eq!(verified(&table, &asked(2, 4)).unwrap().k, 2);
    assert!(verified(&table, &asked(3, 4)).is_err());
    assert!(verified(&table, &asked(2, 5)).is_err());
}

#[test]
fn diversity_holds_in_the_classes_of_each_audience() {
    let l = Requirement::DistinctL { column: "s".to_owned(), l: 2 };
    let diverse = |mut audience: Audience| {
        audience.requirements.push(l.clone());
        audience
    };
    let (hr, insurer) = (audience("hr", "ab", 2), audience("insurer", "bc", 2));
    let found = verified(&accidents(), &audiences(&[hr.clone(), insurer.clone()], None)).unwrap();
    assert_eq!((found.audiences[0].sensitive[0].l, found.audiences[1].sensitive[0].l), (1, 1));
    assert_eq!(found.sensitive[0].l, 1);
    // The rows with Finance and Truck show only the value No.
    let wrong = verified(&accidents(), &audiences(&[hr, diverse(insurer)], None)).unwrap_err();
    assert_eq!(wrong.len(), 1);
    assert!(wrong[0].to_string().starts_with("audience 'insurer': column 's': at least 2 distinct values"));
}

#[test]
fn a_release_that_is_no_super_butterfly_passes_for_three_audiences() {
    // Every row agrees with one other row in a and b, with another in a and c, and with a third in b and c.
    let rows: Vec<[String; 3]> =
        (0..8).map(|bits| [bits & 1, bits >> 1 & 1, bits >> 2].map(|bit: u32| bit.to_string())).collect();
    let cells: Vec<Vec<&str>> = rows.iter().map(|row| row.iter().map(String::as_str).collect()).collect();
    let cells: Vec<&[&str]> = cells.iter().map(Vec::as_slice).collect();
    let table = table(&cells, &["1"; 8]);
    // A super butterfly would put every column into its body, because two audiences know it. So all eight rows would
    // have to look the same.
    let asked = [audience("ab", "ab", 2), audience("ac", "ac", 2), audience("bc", "bc", 2)];
    let found = verified(&table, &audiences(&asked, Some(1))).unwrap();
    assert_eq!((found.k, found.collusion_k, found.classes), (2, Some(1), 8));
}

#[test]
fn no_column_stays_uncounted() {
    let asked = audiences(&[audience("hr", "ab", 1)], None);
    assert_eq!(verified(&accidents(), &asked).unwrap_err(), [Violation::KnownToNobody { column: "c".to_owned() }]);
    let asked = audiences(&[audience("hr", "abcx", 1)], None);
    let wrong = verified(&accidents(), &asked).unwrap_err();
    assert_eq!(wrong, [Violation::KnownColumnMissing { column: "x".to_owned() }.for_audience("hr")]);
    let wrong = verified(&accidents(), &audiences(&[], None)).unwrap_err();
    assert_eq!(wrong[0], Violation::NoAudience);
}

#[test]
fn nobody_s_own_k_is_above_the_smallest_class_of_any_audience() {
    let mut original = accidents();
    original.columns.push(Column::from_cells("wish", Role::PersonK, ["2", "2", "2", "3"].map(Some)));
    let own_k = Requirement::PersonK { column: "wish".to_owned() };
    let with_own_k = |mut audience: Audience| {
        audience.requirements.push(own_k.clone());
        audience
    };
    let asked = audiences(&[audience("hr", "ab", 2), with_own_k(audience("insurer", "bc", 2))], None);
    let release = as_it_is(&accidents());
    let wrong = verify_release(release.clone(), &original, &asked, SuppressionLimit::NOBODY).unwrap_err().0;
    assert!(matches!(&wrong[..], [Violation::ForAudience { audience, .. }] if audience == "insurer"));
    let asked_of_none = audiences(&[audience("hr", "ab", 2), audience("insurer", "bc", 2)], None);
    assert!(
        verify_against(&written(&release, &accidents()), &original, &asked_of_none, NOBODY, SuppressionLimit::NOBODY)
            .is_ok()
    );
    let wrong = verify_against(&written(&release, &accidents()), &original, &asked, NOBODY, SuppressionLimit::NOBODY)
        .unwrap_err()
        .0;
    assert_eq!(wrong, [Violation::WithoutOrigin { n: 1, first_row: 4 }]);
}

proptest! {
    #[test]
    fn audiences_are_counted_as_by_the_comparison_of_every_pair_of_rows(
        rows in proptest::collection::vec((0u8..2, 0u8..2, 0u8..3, 0u8..2, 0u8..9), 1..24),
        known in proptest::collection::vec(proptest::collection::btree_set(0usize..4, 1..4), 1..5),
        ks in proptest::collection::vec(1u32..5, 5),
        persons in any::<bool>(),
    ) {
        let cells: Vec<[String; 5]> =
            rows.iter().map(|row| [row.0, row.1, row.2, row.3, row.4].map(|cell| cell.to_string())).collect();
        let column = |position: usize, role| {
            let cells = cells.iter().map(|row| Some(row[position].as_str()));
            Column::from_cells(&name(position), role, cells)
        };
        let mut columns: Vec<Column> = (0..4).map(|position| column(position, Role::Quasi)).collect();
        columns.push(column(4, Role::Key));
        let table = Table { name: "t".to_owned(), columns, n_rows: rows.len(), person: persons.then_some(4) };
        let union: Vec<usize> = (0..4).filter(|position| known.iter().any(|known| known.contains(position))).collect();
        let each: Vec<Audience> = known
            .iter()
            .enumerate()
            .map(|(n, known)| audience(&n.to_string(), &known.iter().map(|&q| name(q)).collect::<String>(), ks[n]))
            .collect();
        let asked = audiences(&each, Some(ks[4]));
        let found = measure(&table, &union, &[], &asked).unwrap();
        let mut n_unmet = 0;
        for (n, known) in known.iter().enumerate() {
            let known: Vec<usize> = known.iter().copied().collect();
            let naive = Naive::new(&table, &known);
            prop_assert_eq!(found.audiences[n].k, naive.k() as u64);
            prop_assert_eq!(found.audiences[n].classes, naive.n_classes() as u64);
            prop_assert_eq!(found.audiences[n].unique_persons, naive.n_unique() as u64);
            n_unmet += usize::from(!naive.failing(&Requirement::K(ks[n])).is_empty());
        }
        let naive = Naive::new(&table, &union);
        prop_assert_eq!(found.collusion_k, Some(naive.k() as u64));
        prop_assert_eq!(found.classes, naive.n_classes() as u64);
        n_unmet += usize::from(!naive.failing(&Requirement::K(ks[4])).is_empty());
        prop_assert_eq!(found.unmet.len(), n_unmet);
        prop_assert_eq!(found.k, found.audiences.iter().map(|found| found.k).min().unwrap());
    }
}
