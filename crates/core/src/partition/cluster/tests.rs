//! What clustering promises, on random rows.

use kohort_model::spec::Leftovers;
use kohort_model::{Column, Requirement, Role, Silent, Table};
use proptest::prelude::*;

use super::*;
use crate::encode::Rows;
use crate::partition::sample::{N_CODES, domains, fold};
use crate::requirement::{Rules, Tally};

/// Rules on a sensitive column of few values, and rows shared by persons where `rows_per_person` is above 1.
fn rules(n_rows: usize, k: u32, further: Option<Requirement>, rows_per_person: usize) -> Rules {
    let diseases: Vec<String> = (0..n_rows).map(|row| format!("d{}", row * row % 7)).collect();
    let persons: Vec<String> = (0..n_rows).map(|row| format!("p{}", row / rows_per_person)).collect();
    let column =
        |name, role, texts: &[String]| Column::from_cells(name, role, texts.iter().map(|text| Some(text.as_str())));
    let columns = vec![column("disease", Role::Sensitive, &diseases), column("person", Role::Key, &persons)];
    let table = Table { name: "t".to_owned(), columns, n_rows, person: Some(1) };
    let requirements: Vec<Requirement> = [Requirement::K(k)].into_iter().chain(further).collect();
    Rules::compile(&table, &requirements, &(0..n_rows as u32).collect::<Vec<_>>()).unwrap()
}

fn random_cluster() -> impl Strategy<Value = Cluster> {
    (prop::option::of(0.0..1.0), prop::option::of(1u32..20))
        .prop_map(|(threshold, cluster_limit)| Cluster { threshold, cluster_limit })
}

fn random_rows() -> impl Strategy<Value = Vec<Vec<u32>>> {
    (1usize..4).prop_flat_map(|n_columns| prop::collection::vec(prop::collection::vec(0..N_CODES, n_columns), 1..150))
}

fn random_further() -> impl Strategy<Value = Option<Requirement>> {
    let column = || "disease".to_owned();
    prop_oneof![
        Just(None),
        (2u32..5).prop_map(move |l| Some(Requirement::DistinctL { column: column(), l })),
        (0.2..0.8).prop_map(move |alpha| Some(Requirement::Alpha { column: column(), alpha })),
        (0.0..0.5).prop_map(move |t| {
            Some(Requirement::TCloseness { column: column(), t, distance: kohort_model::Distance::Equal })
        }),
    ]
}

/// How often each folded row is in a class, provided that every class stands.
fn times_placed(task: &Task<'_>, classes: &Classes) -> Result<Vec<u32>, TestCaseError> {
    let mut times = vec![0; task.rows.len()];
    for class in 0..classes.len() {
        let mut tally = Tally::new(task.rules);
        for &row in classes.rows(class) {
            times[row as usize] += 1;
            task.rows.members(row).iter().for_each(|&member| tally.add(member));
        }
        prop_assert!(tally.stands());
    }
    Ok(times)
}

proptest! {
    #[test]
    fn every_row_is_in_one_class_and_every_class_stands(
        cells in random_rows(), k in 1u32..20, further in random_further(), rows_per_person in 1usize..3, cluster in random_cluster(),
    ) {
        let (rows, rules) = (fold(&cells), rules(cells.len(), k, further, rows_per_person));
        let (domains, leftovers) = (domains(rows.n_columns()), Leftovers::Merge);
        let task = Task { rows: &rows, domains: &domains, rules: &rules, allowance: 0, leftovers, progress: &Silent };
        match cluster.partition(&task) {
            Ok(classes) => prop_assert!(times_placed(&task, &classes)?.iter().all(|&times| times == 1)),
            Err(Unreachable) => prop_assert!(task.check().is_err()),
        }
    }

    #[test]
    fn no_more_are_left_out_than_allowed(
        cells in random_rows(), k in 1u32..20, further in random_further(), allowance in 0u64..20, cluster in random_cluster(),
    ) {
        let (rows, rules) = (fold(&cells), rules(cells.len(), k, further, 1));
        let (domains, leftovers) = (domains(rows.n_columns()), Leftovers::Suppress);
        let task = Task { rows: &rows, domains: &domains, rules: &rules, allowance, leftovers, progress: &Silent };
        let Ok(classes) = cluster.partition(&task) else {
            prop_assert!(task.check().is_err());
            return Ok(());
        };
        let times = times_placed(&task, &classes)?;
        prop_assert!(times.iter().all(|&times| times <= 1));
        let left_out = (0..rows.len() as u32).filter(|&row| times[row as usize] == 0);
        let n_left_out: u64 = left_out.map(|row| u64::from(rows.weight(row))).sum();
        let allowed = if rules.measures_against_release() { 0 } else { allowance };
        prop_assert!(n_left_out <= allowed);
    }

    #[test]
    fn the_order_of_the_input_changes_nothing(cells in random_rows(), k in 1u32..20, cluster in random_cluster()) {
        let backwards: Vec<Vec<u32>> = cells.iter().rev().cloned().collect();
        let (domains, rules, leftovers) = (domains(cells[0].len()), Rules::k_only(k), Leftovers::Merge);
        let [one, other] = [&cells, &backwards].map(|cells| {
            let rows = &fold(cells);
            let task = Task { rows, domains: &domains, rules: &rules, allowance: 0, leftovers, progress: &Silent };
            cluster.partition(&task)
        });
        prop_assert_eq!(one, other);
    }
}

fn classes_of(cells: &[u32], weights: &[u32], k: u32, cluster: Cluster, leftovers: Leftovers) -> Vec<Vec<u32>> {
    let (rows, rules, domains) = (Rows::from_folded(1, cells, weights), Rules::k_only(k), domains(1));
    let task = Task { rows: &rows, domains: &domains, rules: &rules, allowance: 1, leftovers, progress: &Silent };
    let classes = cluster.partition(&task).unwrap();
    (0..classes.len()).map(|class| classes.rows(class).to_vec()).collect()
}

#[test]
fn a_row_that_stands_alone_is_a_class_of_its_own() {
    let classes = classes_of(&[1, 2, 3, 4], &[1, 5, 1, 1], 3, Cluster::default(), Leftovers::Merge);
    assert_eq!(classes, [vec![1], vec![0, 2, 3]]);
}

#[test]
fn a_row_beyond_the_threshold_opens_a_cluster_until_the_limit_is_reached() {
    let cells = [0, 4, 15, 16];
    let with = |threshold, limit| Cluster { threshold: Some(threshold), cluster_limit: Some(limit) };
    let near = classes_of(&cells, &[1; 4], 2, with(0.1, 10), Leftovers::Merge);
    assert_eq!(near, [vec![1, 0], vec![2, 3]], "the two that are left take each other in");
    let limited = classes_of(&cells, &[1; 4], 2, with(0.1, 1), Leftovers::Merge);
    assert_eq!(limited, [vec![0, 1], vec![2, 3]]);
}

#[test]
fn a_row_far_from_all_classes_is_left_out_where_that_is_allowed() {
    let cells = [0, 1, 2, 29];
    let merged = classes_of(&cells, &[1; 4], 3, Cluster::default(), Leftovers::Merge);
    assert_eq!(merged, [vec![0, 1, 2, 3]]);
    let suppressed = classes_of(&cells, &[1; 4], 3, Cluster::default(), Leftovers::Suppress);
    assert_eq!(suppressed, [vec![0, 1, 2]]);
}
