//! Tests of releases that are read together: the paper's example, every kind of cell, and a comparison with brute
//! force.

use std::collections::BTreeSet;

use kohort_model::{Column, Hierarchy, Role, ValueType};
use proptest::prelude::*;

use super::*;

const VEHICLES: &str = "Red Truck;Truck;*\nBlack Truck;Truck;*\nWhite Sedan;Sedan;*\nGreen Sedan;Sedan;*";
const JOBS: &str = "Dentist;Medical;*\nFamily doctor;Medical;*\nBanker;Finance;*\nMortgage broker;Finance;*";

fn table(name: &str, columns: Vec<Column>) -> Table {
    let n_rows = columns[0].ids.len();
    Table { name: name.to_owned(), columns, n_rows, person: None }
}

fn column(name: &str, cells: &[&str]) -> Column {
    Column::from_cells(name, Role::Plain, cells.iter().map(|&cell| Some(cell).filter(|&cell| cell != "-")))
}

fn numbers(name: &str, cells: &[&str]) -> Column {
    column(name, cells).typed(ValueType::Integer)
}

/// Releases of one column each, of the same persons.
fn of_one_column(column: impl Fn(&[&str]) -> Column, releases: &[&[&str]]) -> Vec<Table> {
    releases.iter().enumerate().map(|(n, cells)| table(&format!("r{n}"), vec![column(cells)])).collect()
}

/// Audits releases whose order of rows is not known.
fn audit(releases: &[Table], audiences: &[Knows], k: Option<u64>) -> Result<AuditFindings, Violations> {
    let releases = releases.iter().map(|table| AuditedRelease { table: table.clone(), order: None });
    super::audit(&releases.collect::<Vec<_>>(), audiences, k)
}

fn knows(audience: &str, columns: &[&str]) -> Knows {
    Knows { audience: audience.to_owned(), columns: columns.iter().map(|&column| column.to_owned()).collect() }
}

/// Class sizes of the only column, all releases read together.
fn together(releases: &[Table]) -> Vec<(u64, u64)> {
    let found = audit(releases, &[knows("all", &["x"])], None).unwrap();
    assert_eq!(found.union, None);
    found.audiences[0].together.smallest_classes.clone()
}

fn named(ids: &[&str], other: Column) -> Table {
    let mut table = table("named", vec![column("id", ids), other]);
    table.person = Some(0);
    table
}

/// The two releases of example 1.
fn accidents(job: impl Fn(Column) -> Column, vehicle: impl Fn(Column) -> Column) -> [Table; 2] {
    let release = |name: &str, jobs: [&str; 4], vehicles: [&str; 4]| {
        let ages = numbers("age", &["30"; 4]);
        table(name, vec![job(column("occupation", &jobs)), ages, vehicle(column("vehicle", &vehicles))])
    };
    [
        release(
            "insurer",
            ["Dentist", "Family doctor", "Banker", "Mortgage broker"],
            ["Truck", "Sedan", "Sedan", "Truck"],
        ),
        release(
            "hr",
            ["Medical", "Medical", "Finance", "Finance"],
            ["Red Truck", "White Sedan", "Green Sedan", "Black Truck"],
        ),
    ]
}

#[test]
fn the_two_releases_of_the_paper_single_everybody_out() {
    let audiences = [knows("insurer", &["age", "vehicle"]), knows("hr", &["occupation", "age"])];
    let with_hierarchies = accidents(
        |job| job.with_hierarchy(Hierarchy::from_paths(JOBS).unwrap()),
        |vehicle| vehicle.with_hierarchy(Hierarchy::from_paths(VEHICLES).unwrap()),
    );
    let without = accidents(|job| job, |vehicle| vehicle);
    for releases in [with_hierarchies, without] {
        let found = audit(&releases, &audiences, Some(2)).unwrap();
        assert_eq!((found.persons, found.persons_in_all, found.rows), (4, 4, vec![4, 4]));
        for (position, audience) in found.audiences.iter().enumerate() {
            assert_eq!((audience.together.smallest, audience.together.below_k), (1, Some(4)));
            assert_eq!((audience.together.unique_persons, audience.together.classes), (4, 4));
            let alone: Vec<u64> = audience.alone.iter().flatten().map(|alone| alone.smallest).collect();
            // Each release protects only from its own audience.
            assert_eq!(alone, if position == 0 { [2, 1] } else { [1, 2] });
        }
        assert_eq!(found.union.unwrap().together.smallest, 1);
    }
}

#[test]
fn one_release_for_both_stays_as_it_is_however_often_it_is_read() {
    let jobs = column("occupation", &["Medical", "Medical", "Finance", "Finance"]);
    let release = table("both", vec![jobs, column("vehicle", &["Truck", "Sedan", "Sedan", "Truck"])]);
    let audiences = [knows("insurer", &["vehicle"]), knows("hr", &["occupation"])];
    for releases in [vec![release.clone()], vec![release.clone(), release]] {
        let found = audit(&releases, &audiences, Some(2)).unwrap();
        assert!(found.audiences.iter().all(|audience| audience.together.below_k == Some(0)));
        assert_eq!(found.union.unwrap().together.smallest, 1);
    }
}

#[test]
fn ranges_meet_in_what_they_share() {
    let releases = of_one_column(
        |cells| numbers("x", cells),
        &[
            &["[20,29]", "[20,29]", "[20,29]", "*", "30", "[30,30]"],
            &["[25,34]", "25", "[25,29]", "[25,29]", "[20,40]", "*"],
        ],
    );
    // The intersections: [25,29], 25, [25,29], [25,29], 30, 30.
    assert_eq!(together(&releases), [(1, 1), (2, 1), (3, 1)]);
}

#[test]
fn spellings_of_a_value_are_told_apart_where_a_release_does() {
    let decimals = |cells: &[&str]| column("x", cells).typed(ValueType::Decimal);
    let once = of_one_column(decimals, &[&["1.5", "1.50"]]);
    assert_eq!(together(&once), [(1, 2)]);
    let there = of_one_column(decimals, &[&["1.5", "1.5"], &["1.50", "[1.50,1.50]"]]);
    let back = of_one_column(decimals, &[&["1.50", "[1.50,1.50]"], &["1.5", "1.5"]]);
    assert_eq!(together(&there), [(2, 1)]);
    assert_eq!(together(&back), [(2, 1)]);
}

#[test]
fn labels_are_the_leaves_below_them() {
    let tree = "a;x;all\nb;x;all\nc;y;all";
    let leaves = |cells: &[&str]| column("x", cells).with_hierarchy(Hierarchy::from_paths(tree).unwrap());
    // y has only the leaf c, so it says the same as c. The root and a star say nothing.
    let releases = of_one_column(leaves, &[&["x", "all", "c", "y", "x"], &["all", "x", "*", "c", "a"]]);
    assert_eq!(together(&releases), [(1, 1), (2, 2)]);
}

#[test]
fn labels_that_are_not_understood_are_kept_side_by_side() {
    let plain = |cells: &[&str]| column("x", cells);
    let releases = of_one_column(plain, &[&["x", "x", "x", "*", "x"], &["x", "x", "a", "x", "*"]]);
    assert_eq!(together(&releases), [(1, 1), (4, 1)]);
    // A column of text has no ranges, so `[1,2]` and `1` are just two different texts.
    let releases = of_one_column(plain, &[&["[1,2]", "1"], &["1", "1"]]);
    assert_eq!(together(&releases), [(1, 2)]);
}

#[test]
fn a_null_is_a_cell_of_its_own() {
    let releases =
        of_one_column(|cells| numbers("x", cells), &[&["-", "-", "-", "30", "30"], &["-", "*", "30", "30", "-"]]);
    // Two persons have only null, two have null and 30, and one has only 30.
    assert_eq!(together(&releases), [(1, 1), (2, 2)]);
}

#[test]
fn releases_that_contradict_each_other_are_refused() {
    let ranges = of_one_column(|cells| numbers("x", cells), &[&["30", "[20,29]", "31"], &["30", "30", "32"]]);
    let refused = |releases: &[Table]| audit(releases, &[knows("all", &["x"])], None).unwrap_err().0;
    let contradict =
        |n, first_row| Violation::ReleasesContradict { column: "x".to_owned(), n, release: "r0".to_owned(), first_row };
    assert_eq!(refused(&ranges), [contradict(2, 2)]);
    let tree = |cells: &[&str]| column("x", cells).with_hierarchy(Hierarchy::from_paths(VEHICLES).unwrap());
    assert_eq!(refused(&of_one_column(tree, &[&["Truck"], &["Green Sedan"]])), [contradict(1, 1)]);
}

#[test]
fn rows_are_matched_by_their_order_or_by_person() {
    let by_order = [table("a", vec![numbers("x", &["1", "2"])]), table("b", vec![numbers("x", &["1", "2", "3"])])];
    let wrong = audit(&by_order, &[knows("all", &["x"])], None).unwrap_err();
    assert_eq!(wrong.to_string(), "b has 3 rows but a has 2, so rows can't be matched by their order");

    let a = named(&["p", "q", "r"], numbers("x", &["[1,9]", "[1,9]", "[1,9]"]));
    let b = named(&["s", "r", "q"], numbers("x", &["[1,5]", "[5,9]", "[5,9]"]));
    // p: [1,9] from a alone; q, r: [5,9]; s: [1,5] from b alone.
    let found = audit(&[a.clone(), b.clone()], &[knows("all", &["x"])], Some(2)).unwrap();
    assert_eq!((found.persons, found.persons_in_all, found.rows), (4, 2, vec![3, 3]));
    assert_eq!(found.audiences[0].together.smallest_classes, [(1, 2), (2, 1)]);
    assert_eq!(found.audiences[0].together.below_k, Some(2));
    assert_eq!(audit(&[b, a], &[knows("all", &["x"])], Some(2)).unwrap().audiences[0].together.smallest, 1);
}

#[test]
fn persons_are_named_once_in_each_release() {
    let a = named(&["p", "q"], numbers("x", &["1", "1"]));
    let refused = |b: Table| audit(&[a.clone(), b], &[knows("all", &["x"])], None).unwrap_err().to_string();
    assert_eq!(
        refused(named(&["p", "p"], numbers("x", &["1", "1"]))),
        "named: person column 'id': 1 row repeats a person, first in row 2"
    );
    assert_eq!(
        refused(named(&["p", "-"], numbers("x", &["1", "1"]))),
        "named: person column 'id' is null in 1 row, first in row 2"
    );
    assert_eq!(refused(table("b", vec![numbers("x", &["1"])])), "b has no column that names the person");
    // 01 and 1 may be the same person, but persons are matched by text.
    assert_eq!(
        refused(named(&["r", "s"], numbers("x", &["1", "1"]))),
        "no person in column 'id' is in two of the releases, so there is nothing to read together"
    );
}

#[test]
fn a_column_that_only_some_releases_have_is_known_from_those() {
    let a = table("a", vec![numbers("x", &["1", "1", "2"]), column("y", &["u", "v", "v"])]);
    let b = table("b", vec![numbers("x", &["*", "*", "*"])]);
    let found = audit(&[a, b], &[knows("one", &["y"]), knows("two", &["x", "y"])], None).unwrap();
    assert_eq!(found.audiences[0].alone[1], None);
    assert_eq!(found.audiences[0].together.smallest, 1);
    assert_eq!(found.audiences[1].alone[1].as_ref().unwrap().smallest, 3);
    assert_eq!(found.union.unwrap().together.smallest_classes, [(1, 3)]);
}

proptest! {
    #[test]
    fn as_many_look_alike_as_by_listing_what_each_person_can_be(
        releases in proptest::collection::vec(proptest::collection::vec((0u8..8, 0u8..8), 6), 1..4),
        truth in proptest::collection::vec(0u8..8, 6),
    ) {
        // Ranges around the truth, so that no two releases contradict each other.
        let range = |truth: u8, (a, b): (u8, u8)| (truth.saturating_sub(a), (truth + b).min(7));
        let ranges: Vec<Vec<(u8, u8)>> = releases
            .iter()
            .map(|release| release.iter().zip(&truth).map(|(&widths, &truth)| range(truth, widths)).collect())
            .collect();
        let tables: Vec<Table> = ranges
            .iter()
            .map(|release| {
                let cells: Vec<String> = release
                    .iter()
                    .map(|&(low, high)| if low == high { low.to_string() } else { format!("[{low},{high}]") })
                    .collect();
                table("r", vec![numbers("x", &cells.iter().map(String::as_str).collect::<Vec<_>>())])
            })
            .collect();
        let can_be: Vec<BTreeSet<u8>> = (0..6)
            .map(|person| {
                (0..8u8)
                    .filter(|value| ranges.iter().all(|r| (r[person].0..=r[person].1).contains(value)))
                    .collect()
            })
            .collect();
        let smallest = can_be.iter().map(|mine| can_be.iter().filter(|other| *other == mine).count()).min().unwrap();
        let found = audit(&tables, &[knows("all", &["x"])], None).unwrap();
        prop_assert_eq!(found.audiences[0].together.smallest, smallest as u64);
        let distinct: BTreeSet<&BTreeSet<u8>> = can_be.iter().collect();
        prop_assert_eq!(found.audiences[0].together.classes, distinct.len() as u64);
    }
}

#[test]
fn rows_of_a_sorted_release_are_never_matched_by_their_order() {
    // Matched row by row, everybody would seem to hide among two, although the rows of the second file belong to
    // others.
    let releases = of_one_column(|cells| numbers("x", cells), &[&["1", "1", "2", "2"], &["1", "1", "2", "2"]]);
    let audited = |orders: [Option<Order>; 2]| {
        let releases: Vec<AuditedRelease> =
            releases.iter().zip(orders).map(|(table, order)| AuditedRelease { table: table.clone(), order }).collect();
        super::audit(&releases, &[knows("all", &["x"])], Some(2))
    };
    assert_eq!(audited([None, Some(Order::Input)]).unwrap().audiences[0].together.smallest, 2);
    let refused = audited([Some(Order::Input), Some(Order::Sorted)]).unwrap_err();
    assert_eq!(refused.0, [Violation::RowsSorted { release: "r1".to_owned() }]);
    let one = AuditedRelease { table: releases[0].clone(), order: Some(Order::Sorted) };
    assert!(super::audit(&[one], &[knows("all", &["x"])], Some(2)).is_ok(), "one release needs no matching");
}
