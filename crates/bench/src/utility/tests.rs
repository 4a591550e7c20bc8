//! Answers against brute force on tiny tables.

use kohort_core::encode::Encoded;
use kohort_core::partition::Classes;
use kohort_core::recode::{Recoding, Shown};
use kohort_core::register::JoinedClass;
use kohort_model::{Column, Hierarchy, Role, Table, ValueType};
use proptest::prelude::*;

use super::answers::{Answer, Quality, Returned, Utility, ask, sanity_bound};
use super::ranges::{Places, RangeCount, mean_relative_error, range_counts};
use super::workload::{Query, QueryInterval, Workload, WorkloadSpec};

/// The cells of a row.
type Cells = (u8, u8, u8);

/// A table of whole numbers without a gap, words in a tree, and words without a hierarchy. In columns that have nulls,
/// a zero stands for null.
fn table(cells: &[Cells]) -> Table {
    let column = |name: &str, of: fn(&Cells) -> Option<String>| {
        let texts: Vec<Option<String>> = cells.iter().map(of).collect();
        Column::from_cells(name, Role::Quasi, texts.iter().map(Option::as_deref))
    };
    let paths = "1;low;*\n2;low;*\n3;low;*\n4;high;*\n5;higher;high;*\n6;higher;high;*\n";
    Table {
        name: "t".to_owned(),
        n_rows: cells.len(),
        columns: vec![
            column("number", |row| (row.0 > 0).then(|| row.0.to_string())).typed(ValueType::Integer),
            column("tree", |row| Some((row.1 % 6 + 1).to_string()))
                .with_hierarchy(Hierarchy::from_paths(paths).unwrap()),
            column("word", |row| (row.2 > 0).then(|| row.2.to_string())),
        ],
        person: None,
    }
}

/// Rows in which every number from 1 to 5 occurs, so that distances of codes are distances of numbers.
fn cells() -> impl Strategy<Value = Vec<Cells>> {
    prop::collection::vec((0u8..6, 0u8..6, 0u8..4), 0..12).prop_map(|mut cells| {
        cells.extend((1..6).map(|number| (number, number, 1)));
        cells
    })
}

/// The codes of a row, straight from the table.
fn codes(encoded: &Encoded<'_>, row: u32) -> Vec<u32> {
    (0..encoded.domains.len()).map(|column| encoded.code(column, row)).collect()
}

/// For each quasi column, the codes that a class shows.
type CodeSets = Vec<Vec<u32>>;

fn asked(interval: &QueryInterval) -> Vec<u32> {
    (interval.lo..=interval.hi).collect()
}

proptest! {
    #[test]
    fn answers_are_what_counting_gives(
        cells in cells(),
        class_of in prop::collection::vec(0usize..4, 17),
        n_columns in 1usize..4,
        share in 0.0f64..1.0,
        seed in any::<u64>(),
    ) {
        let table = table(&cells);
        let encoded = Encoded::new(&table, &[0, 1, 2]).unwrap();
        // Class 3 is left out of the release.
        let (kept, left): (Vec<u32>, Vec<u32>) =
            (0..cells.len() as u32).partition(|&row| class_of[row as usize] < 3);
        let (rows, left_out) = (encoded.fold(&kept), encoded.fold(&left));
        // A folded row is in the class of its first member.
        let mut lists = vec![Vec::new(); 3];
        for row in 0..rows.len() as u32 {
            lists[class_of[rows.members(row)[0] as usize]].push(row);
        }
        lists.retain(|list| !list.is_empty());
        let classes = Classes::from_lists(lists);
        let shown = Shown::new(&classes, &encoded, &rows);
        let recoding = Recoding { table: &table, encoded: &encoded, rows: &rows, classes: &classes, shown: &shown };
        let spec = WorkloadSpec { n_queries: 20, n_columns, share, seed };
        let workload = Workload::random(&encoded.domains, &spec).unwrap();
        let answers = ask(&workload, &recoding, &left_out);

        let boxes: Vec<CodeSets> = (0..shown.len()).map(|class| {
            (0..3).map(|column| { let (lo, hi) = shown.interval(class, column); (lo..=hi).collect() }).collect()
        }).collect();
        for (query, answer) in workload.queries.iter().zip(&answers) {
            let matches = |row: u32| {
                let codes = codes(&encoded, row);
                query.intervals.iter().all(|interval| asked(interval).contains(&codes[interval.column]))
            };
            let actual = (0..cells.len() as u32).filter(|&row| matches(row)).count() as u64;
            prop_assert_eq!(answer.actual, actual);
            let (mut estimate, mut could_be, mut matching, mut must_be) = (0.0, [0, 0], [0, 0], [0, 0]);
            for (class, shown_codes) in boxes.iter().enumerate() {
                let members: Vec<u32> = shown.members(class, &classes, &rows).collect();
                let n_matching = members.iter().filter(|&&row| matches(row)).count();
                let mut share = 1.0;
                for interval in &query.intervals {
                    let cell = &shown_codes[interval.column];
                    let both = cell.iter().filter(|code| asked(interval).contains(code)).count();
                    share *= both as f64 / cell.len() as f64;
                }
                estimate += members.len() as f64 * share;
                let returned = [members.len() as u64, n_matching as u64];
                let give = |to: &mut [u64; 2]| { to[0] += returned[0]; to[1] += returned[1]; };
                if share > 0.0 { give(&mut could_be); }
                if n_matching > 0 { give(&mut matching); }
                if share == 1.0 { give(&mut must_be); }
            }
            prop_assert!((answer.estimate - estimate).abs() < 1e-9, "{} is not {}", answer.estimate, estimate);
            prop_assert_eq!([answer.could_be.n_rows, answer.could_be.n_matching], could_be);
            prop_assert_eq!([answer.matching.n_rows, answer.matching.n_matching], matching);
            prop_assert_eq!([answer.must_be.n_rows, answer.must_be.n_matching], must_be);
        }
    }
}

fn answer(actual: u64, estimate: f64, could_be: (u64, u64), must_be: (u64, u64)) -> Answer {
    let returned = |(n_rows, n_matching)| Returned { n_rows, n_matching };
    Answer { actual, estimate, could_be: returned(could_be), matching: returned(could_be), must_be: returned(must_be) }
}

#[test]
fn a_summary_is_the_mean_and_the_median_over_queries() {
    let answers = [
        answer(10, 15.0, (20, 10), (5, 5)),
        answer(4, 4.0, (4, 4), (4, 4)),
        answer(0, 3.0, (6, 0), (0, 0)),
        answer(2, 1.0, (8, 1), (0, 0)),
    ];
    let utility = Utility::of(&answers, 2.0).unwrap();
    assert_eq!(utility.mean_error, (0.5 + 0.0 + 1.5 + 0.5) / 4.0);
    assert_eq!(utility.median_error, 0.5);
    assert_eq!(
        utility.could_be,
        Quality { precision: (0.5 + 1.0 + 0.0 + 0.125) / 4.0, recall: (1.0 + 1.0 + 1.0 + 0.5) / 4.0 }
    );
    assert_eq!(utility.matching, utility.could_be);
    assert_eq!(utility.must_be, Quality { precision: 1.0, recall: (0.5 + 1.0 + 1.0 + 0.0) / 4.0 });
    assert_eq!(Utility::of(&answers[..3], 1.0).unwrap().mean_error, (0.5 + 0.0 + 3.0) / 3.0);
    assert_eq!(Utility::of(&[], 1.0), None);
}

#[test]
fn few_rows_count_as_a_thousandth_of_the_table_where_they_divide() {
    assert_eq!(sanity_bound(30_000), 30.0);
    assert_eq!(sanity_bound(12), 1.0);
}

#[test]
fn classes_of_equal_rows_answer_every_query_exactly() {
    let cells: Vec<Cells> = (0..60).map(|row: u8| (row % 6, row % 5, row % 4)).collect();
    let table = table(&cells);
    let encoded = Encoded::new(&table, &[0, 1, 2]).unwrap();
    let rows = encoded.fold(&(0..60).collect::<Vec<u32>>());
    let classes = Classes::from_lists((0..rows.len() as u32).map(|row| vec![row]).collect());
    let shown = Shown::new(&classes, &encoded, &rows);
    let recoding = Recoding { table: &table, encoded: &encoded, rows: &rows, classes: &classes, shown: &shown };
    let spec = WorkloadSpec { n_queries: 100, n_columns: 2, share: 0.2, seed: 1 };
    let workload = Workload::random(&encoded.domains, &spec).unwrap();
    let answers = ask(&workload, &recoding, &encoded.fold(&[]));
    assert!(answers.iter().any(|answer| answer.actual > 0));
    let exact = Quality { precision: 1.0, recall: 1.0 };
    let expected = Utility { mean_error: 0.0, median_error: 0.0, could_be: exact, matching: exact, must_be: exact };
    assert_eq!(Utility::of(&answers, sanity_bound(60)), Some(expected));
}

#[test]
fn a_query_of_everything_is_answered_without_error_and_one_of_a_part_by_its_share() {
    let column = Column::from_cells("n", Role::Quasi, ["1", "2", "3", "4", "5"].map(Some)).typed(ValueType::Integer);
    let table = Table { name: "t".to_owned(), columns: vec![column], n_rows: 5, person: None };
    let encoded = Encoded::new(&table, &[0]).unwrap();
    // The last two rows are the register's, and the last one is in no class.
    let private = encoded.fold(&[0, 1, 2]);
    let class = |cell, microdata: &[u32], register: &[u32], group| JoinedClass {
        cells: vec![cell],
        microdata: microdata.to_vec(),
        register: register.to_vec(),
        group,
    };
    let places = Places::new(&encoded.domains);
    let estimator = places.estimator(&[class((0, 1), &[0, 1], &[], 1), class((2, 3), &[2], &[3], 2)], |_| 0);
    let asked = |lo: u32, hi: u32| {
        let query = Query { intervals: vec![QueryInterval { column: 0, lo, hi }] };
        range_counts(&Workload { queries: vec![query] }, &places, &estimator, &private)
    };
    assert_eq!(asked(0, 4), [RangeCount { actual: 3, estimate: 3.0 }]);
    assert_eq!(mean_relative_error(&asked(0, 4), 1.0), Some(0.0));
    assert_eq!(asked(0, 0), [RangeCount { actual: 1, estimate: 1.0 }]);
    assert_eq!(asked(3, 3), [RangeCount { actual: 0, estimate: 0.5 }]);
    assert_eq!(mean_relative_error(&asked(3, 3), 1.0), Some(0.5));
    assert_eq!(mean_relative_error(&[], 1.0), None);
}
