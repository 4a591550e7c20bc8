//! The paper's example, and what one person or one setting changes.

mod oracle;
mod previous;
mod properties;

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included};

use kohort_model::Silent;
use kohort_model::spec::{Algorithm, RegisterMethod, RegisterRows};

use super::estimate::{AskedInterval, Estimator, ShownCell, ShownClass, ShownGroup};
use super::*;
use oracle::{Case, asked, case, check, range, released, run, spec, without_register};

const MICRODATA: &str = include_str!("../../../testkit/golden/register/microdata.csv");
const PUBLIC: &str = include_str!("../../../testkit/golden/register/public.csv");

const METHODS: [RegisterMethod; 2] = [RegisterMethod::Refine, RegisterMethod::Direct];

fn golden() -> Case {
    let lines = |csv: &'static str| -> Vec<Vec<String>> {
        csv.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
    };
    let numbers = |cells: &[String]| cells[1..3].iter().map(|cell| cell.parse().unwrap()).collect::<Vec<i32>>();
    let private = lines(MICRODATA).iter().map(|cells| (cells[0].clone(), numbers(cells), cells[3].clone())).collect();
    let register = lines(PUBLIC).iter().map(|cells| (cells[0].clone(), numbers(cells))).collect();
    case(private, register)
}

/// The paper's NCP of a row: the perimeter of its box, not over the column's range.
fn perimeter(cells: &[String]) -> f64 {
    cells[..2].iter().map(|cell| range(cell)).map(|(lo, hi)| 2.0 * (hi - lo)).sum()
}

#[test]
fn the_register_example_comes_out_to_the_digit() {
    let case = golden();
    for method in METHODS {
        // The paper drops register rows that are not needed, which tells who is private, so presence must be public.
        let mut spec = spec(3, Algorithm::Mondrian, method);
        spec.register.release = RegisterRows::Microdata;
        let found = run(&case, &spec, 1).unwrap();
        assert_eq!(found.method, method);
        let rows = released(&case, &found.anonymized.release, 0);
        let mut expected: Vec<[&str; 3]> = Vec::new();
        for class in [["[1,2]", "[1,2]", "1"], ["[1,2]", "[3,4]", "1"], ["[3,5]", "2", "2"]] {
            expected.extend([class; 2]);
        }
        expected.push(["6", "4", "2"]);
        assert_eq!(rows, expected);
        let groups = [["1", "v1"], ["1", "v1"], ["1", "v2"], ["1", "v2"], ["2", "v1"], ["2", "v2"], ["2", "v3"]];
        assert_eq!(released(&case, &found.anonymized.release, 1), groups);
        assert_eq!(rows.iter().map(|cells| perimeter(cells)).sum::<f64>(), 24.0);
        assert_eq!(found.anonymized.loss.dm, 13.0);
        assert_eq!(found.n_register_used, 5);
        assert!(found.classes.iter().all(|class| class.n_persons() == 3));
    }
}

#[test]
fn where_presence_is_hidden_the_register_example_keeps_every_row_of_its_classes() {
    let case = golden();
    for method in METHODS {
        let found = run(&case, &spec(3, Algorithm::Mondrian, method), 1).unwrap();
        check(&case, &found, 3, 1).unwrap();
        // X of the register is far from everybody. The median cuts put X into some class, which keeps the row.
        assert_eq!(found.n_register_used, 6);
        assert_eq!(found.anonymized.release.tables[0].rows.len(), 13);
        assert_eq!(found.anonymized.loss.dm, 13.0);
        assert_eq!(found.partitioners, ["mondrian"]);
    }
}

#[test]
fn the_plain_release_of_the_register_example_loses_62_and_25() {
    let case = golden();
    let spec = spec(3, Algorithm::Mondrian, RegisterMethod::Refine);
    let plain = crate::anonymize(&case.table, &spec, &asked(3, 1), &Silent).unwrap();
    let rows = released(&case, &plain.release, 0);
    assert_eq!(rows.iter().map(|cells| perimeter(cells)).sum::<f64>(), 62.0);
    assert_eq!(plain.loss.dm, 25.0);
}

/// A reader who estimates from released texts: rows with quasi cells and a group, and the values of each group.
fn reader(rows: &[Vec<String>], values: &[Vec<String>]) -> Estimator {
    let mut groups: Vec<ShownGroup> = Vec::new();
    for cells in values {
        let (group, value) = (cells[0].parse::<usize>().unwrap(), cells[1][1..].parse::<usize>().unwrap());
        groups.resize(groups.len().max(group + 1), ShownGroup { n_rows: 0, values: vec![0; 4] });
        groups[group].n_rows += 1;
        groups[group].values[value] += 1;
    }
    let mut classes: BTreeMap<&Vec<String>, u64> = BTreeMap::new();
    rows.iter().for_each(|cells| *classes.entry(cells).or_default() += 1);
    let shown = |(cells, n_rows): (&Vec<String>, u64)| {
        let cell = |text: &String| {
            let (lo, hi) = range(text);
            ShownCell::Range { lo, hi, step: 0.0 }
        };
        ShownClass { cells: cells[..2].iter().map(cell).collect(), n_rows, group: cells[2].parse().unwrap() }
    };
    Estimator::new(classes.into_iter().map(shown).collect(), groups)
}

fn assert_close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
    }
}

#[test]
fn the_register_example_is_estimated_to_the_digit() {
    let case = golden();
    let query =
        [AskedInterval::Range((Included(0.0), Included(4.0))), AskedInterval::Range((Excluded(2.0), Included(4.0)))];
    let mut spec = spec(3, Algorithm::Mondrian, RegisterMethod::Refine);
    spec.register.release = RegisterRows::Microdata;
    let estimates = |joined: &JoinedRegister| {
        let found = anonymize_with_register(&case.table, joined, &[], &spec, &asked(3, 1), &Silent).unwrap();
        let table = |table: usize| released(&case, &found.anonymized.release, table);
        let reader = reader(&table(0), &table(1));
        (reader.count(&query), reader.values(&query))
    };
    let (count, values) = estimates(&case.joined);
    assert_close(&[count], &[2.0]);
    assert_close(&values, &[0.0, 1.0, 1.0, 0.0]);
    let (count, values) = estimates(&without_register(&case));
    assert_close(&[count], &[11.0 / 3.0]);
    assert_close(&values, &[0.0, 5.0 / 3.0, 5.0 / 3.0, 1.0 / 3.0]);
}

#[test]
fn a_person_whom_the_register_describes_differently_counts_only_in_a_box_of_both_places() {
    let person = |name: &str, number: i32| (name.to_owned(), vec![number], "v1".to_owned());
    let private = vec![person("A", 1), person("B", 2), person("C", 8), person("D", 9)];
    // The register says that B is elsewhere, so in a class with A alone B hides nobody.
    let register = vec![("A".to_owned(), vec![1]), ("B".to_owned(), vec![8])];
    let case = case(private, register);
    for method in METHODS {
        let found = run(&case, &spec(2, Algorithm::Mondrian, method), 1).unwrap();
        assert_eq!(found.classes.len(), 1);
        check(&case, &found, 2, 1).unwrap();
    }
}

#[test]
fn direct_gives_way_if_a_column_with_one_private_value_would_be_generalized() {
    // The private table has one value in the second column. So any range there loses the whole column, even if it is
    // small compared with the register's range.
    let person = |name: &str, first: i32, value: &str| (name.to_owned(), vec![first, 10], value.to_owned());
    let private = vec![person("A", 0, "v1"), person("B", 5, "v0")];
    let register = vec![("C".to_owned(), vec![0, 6]), ("D".to_owned(), vec![3, 0])];
    let case = case(private, register);
    let mut spec = spec(2, Algorithm::Mondrian, RegisterMethod::Direct);
    spec.register.release = RegisterRows::Microdata;
    let found = run(&case, &spec, 1).unwrap();
    // The plain release generalizes only the first column.
    assert!((found.anonymized.loss.ncp - 0.5).abs() < 1e-12, "{}", found.anonymized.loss.ncp);
    assert_eq!(found.method, RegisterMethod::Refine);
}

#[test]
fn one_far_register_row_does_not_change_what_others_lose_where_presence_is_public() {
    let place = |person: i32| vec![person * 7 % 12, person * 5 % 11];
    let private = |persons: i32| -> Vec<_> {
        (0..persons).map(|person| (format!("p{person}"), place(person), format!("v{}", person % 3))).collect()
    };
    let register = || -> Vec<_> { (40..140).map(|person| (format!("r{person}"), place(person))).collect() };
    let near = case(private(40), register());
    let far = case(private(40), [register(), vec![("far".to_owned(), vec![10_000_000, 5])]].concat());
    for method in METHODS {
        let mut spec = spec(4, Algorithm::Auto, method);
        spec.register.release = RegisterRows::Microdata;
        let [near, far] = [&near, &far].map(|case| run(case, &spec, 1).unwrap().anonymized.loss);
        for (name, lm) in &far.columns {
            // Only those lose everything who share a class with the far person.
            let limit = near.columns[name] + 0.35;
            assert!(*lm <= limit, "{method:?} {name}: {lm} instead of {}", near.columns[name]);
        }
    }
}

#[test]
fn the_method_auto_takes_the_one_that_loses_less() {
    let case = golden();
    let mut spec = spec(3, Algorithm::Mondrian, RegisterMethod::Auto);
    spec.register.release = RegisterRows::Microdata;
    let ncp = |method: RegisterMethod| {
        let mut spec = spec.clone();
        spec.register.method = method;
        run(&case, &spec, 1).unwrap().anonymized.loss.ncp
    };
    let found = run(&case, &spec, 1).unwrap();
    assert_eq!(found.anonymized.loss.ncp, ncp(RegisterMethod::Refine).min(ncp(RegisterMethod::Direct)));
    assert_eq!(found.anonymized.loss.ncp, ncp(found.method));
}

#[test]
fn where_presence_is_public_register_persons_are_not_released() {
    let case = golden();
    let mut spec = spec(3, Algorithm::Mondrian, RegisterMethod::Refine);
    spec.register.release = RegisterRows::Microdata;
    let found = run(&case, &spec, 1).unwrap();
    let tables = &found.anonymized.release.tables;
    assert_eq!((tables[0].rows.len(), tables[1].rows.len()), (7, 7));
    assert!(tables[0].rows.iter().all(|&row| row < 7));
}

#[test]
fn presence_is_kept_within_its_bounds_or_refused() {
    let case = golden();
    for method in METHODS {
        let mut spec = spec(3, Algorithm::Mondrian, method);
        spec.delta_presence = Some((0.0, 0.6));
        let found = run(&case, &spec, 1).unwrap();
        check(&case, &found, 3, 1).unwrap();
        assert!(found.classes.iter().all(|class| class.microdata.len() as f64 <= 0.6 * class.n_persons() as f64));
        spec.delta_presence = Some((0.5, 1.0));
        let everybody = run(&case, &spec, 1).unwrap();
        assert_eq!(everybody.anonymized.release.tables[0].rows.len(), 13, "nobody can be ruled out");
        // 7 of 13 are private.
        for share in [(0.0, 0.5), (0.6, 1.0)] {
            spec.delta_presence = Some(share);
            assert!(matches!(run(&case, &spec, 1), Err(AnonymizeError::Presence { .. })));
        }
    }
}

#[test]
fn a_register_hides_fewer_private_persons_than_k_where_they_have_no_values_to_tell() {
    let mut case = golden();
    case.table.columns.retain(|column| column.name != "sa");
    let found = |k: u32, method: RegisterMethod| {
        let spec = spec(k, Algorithm::Mondrian, method);
        anonymize_with_register(&case.table, &case.joined, &[], &spec, &[Requirement::K(k)], &Silent)
    };
    for method in METHODS {
        let hidden = found(8, method).unwrap();
        assert_eq!(hidden.anonymized.release.tables.len(), 1);
        assert!(hidden.classes.iter().all(|class| class.n_persons() >= 8));
        assert!(matches!(found(14, method), Err(AnonymizeError::TooFewJoined { .. })));
    }
}
