//! What the default promises, on random rows.

use std::collections::BTreeSet;

use kohort_model::spec::Leftovers;
use kohort_model::{Column, Requirement, Role, Silent, Table, ValueType};
use proptest::prelude::*;

use super::*;
use crate::encode::{Domain, Rows, bounds};
use crate::partition::sample::{N_CODES, domains, fold};
use crate::requirement::Rules;

fn with_task<T>(rows: &Rows, k: u32, with: impl FnOnce(&Task<'_>) -> T) -> T {
    let (domains, rules) = (domains(rows.n_columns()), Rules::k_only(k));
    let leftovers = Leftovers::Merge;
    with(&Task { rows, domains: &domains, rules: &rules, allowance: 0, leftovers, progress: &Silent })
}

proptest! {
    #[test]
    fn every_row_is_in_one_class_of_at_least_k_and_mondrian_loses_no_less(
        cells in (1usize..4).prop_flat_map(|n| prop::collection::vec(prop::collection::vec(0..N_CODES, n), 1..150)),
        k in 1u32..20,
    ) {
        let rows = fold(&cells);
        with_task(&rows, k, |task| {
            let Ok(classes) = LeastLoss { repacks: 1 }.partition(task) else {
                prop_assert!((cells.len() as u32) < k);
                return Ok(());
            };
            let mut seen = vec![0; rows.len()];
            for class in classes.to_lists() {
                prop_assert!(rows.weight_of(&class) >= u64::from(k));
                class.iter().for_each(|&row| seen[row as usize] += 1);
            }
            prop_assert!(seen.iter().all(|&times| times == 1));
            let mondrian = Mondrian { spec: MondrianSpec::default(), keep_tree: KeepTree::No }.partition(task).unwrap();
            prop_assert!(task.loss(&classes.to_lists()) <= task.loss(&mondrian.to_lists()) + 1e-6);
            Ok(())
        })?;
    }
}

proptest! {
    #[test]
    fn more_repacking_never_loses_more(
        cells in (1usize..4).prop_flat_map(|n| prop::collection::vec(prop::collection::vec(0..N_CODES, n), 20..150)),
        k in 1u32..8,
    ) {
        let rows = fold(&cells);
        with_task(&rows, k, |task| {
            let loss = |repacks: u32| task.loss(&LeastLoss { repacks }.partition(task).unwrap().to_lists());
            let losses = [0, 1, 2, 5].map(loss);
            prop_assert!(losses.is_sorted_by(|fewer, more| *more <= fewer + 1e-6), "{losses:?}");
            Ok(())
        })?;
    }
}

/// Rows of the table in some folded rows.
fn members(rows: &Rows, class: &[u32]) -> Vec<u32> {
    class.iter().flat_map(|&row| rows.members(row)).copied().collect()
}

proptest! {
    #[test]
    fn repacked_classes_hold_every_row_once_satisfy_l_and_lose_no_more(
        cells in (1usize..4).prop_flat_map(|n| prop::collection::vec(prop::collection::vec(0..N_CODES, n), 4..120)),
        values in prop::collection::vec(0..3u8, 120),
        k in 1u32..8,
        least in 1u32..3,
    ) {
        let rows = fold(&cells);
        let texts: Vec<String> = values[..cells.len()].iter().map(u8::to_string).collect();
        let illness = Column::from_cells("illness", Role::Sensitive, texts.iter().map(|text| Some(text.as_str())));
        let table = Table { name: "t".to_owned(), columns: vec![illness], n_rows: cells.len(), person: None };
        let asked = [Requirement::K(k), Requirement::DistinctL { column: "illness".to_owned(), l: least }];
        let rules = Rules::compile(&table, &asked, &(0..cells.len() as u32).collect::<Vec<_>>()).unwrap();
        let domains = domains(rows.n_columns());
        let task = Task::of_everybody(&rows, &domains, &rules, &Silent);
        let Ok(first) = (Mondrian { spec: MondrianSpec::default(), keep_tree: KeepTree::No }).partition(&task) else {
            return Ok(());
        };
        let first = first.to_lists();
        let (repacked, _) = repack::repack(&task, first.clone(), Search { steps: 10, starts: 2, visits: VISITS });
        prop_assert!(task.loss(&repacked) <= task.loss(&first) + 1e-6);
        let mut seen = repacked.concat();
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..rows.len() as u32).collect::<Vec<_>>());
        for class in &repacked {
            let of_class = members(&rows, class);
            let distinct: BTreeSet<u8> = of_class.iter().map(|&row| values[row as usize]).collect();
            prop_assert!(of_class.len() >= k as usize && distinct.len() >= least as usize);
        }
    }

    #[test]
    fn candidates_are_distinct_boxes_that_cost_what_they_are_wide(
        cells in (1usize..4).prop_flat_map(|n| prop::collection::vec(prop::collection::vec(0..N_CODES, n), 1..80)),
        prices in prop::collection::vec(0.0..2.0f64, 80),
        k in 1u32..8,
    ) {
        let rows = fold(&cells);
        with_task(&rows, k, |task| {
            let candidates = candidates::Candidates::find(task, &prices[..rows.len()], 0.9, VISITS);
            let mut found = BTreeSet::new();
            for candidate in 0..candidates.len() {
                let mut held = candidates.rows(candidate).to_vec();
                let width = bounds::width(task.domains, &rows.bounds(&held));
                prop_assert!((candidates.costs[candidate] - width).abs() < 1e-9);
                prop_assert!(rows.weight_of(&held) >= u64::from(k));
                held.sort_unstable();
                prop_assert!(found.insert(held));
            }
            Ok(())
        })?;
    }
}

#[test]
fn seven_numbers_fall_into_the_classes_that_brute_force_finds() {
    let rows = Rows::from_folded(1, &[0, 1, 2, 3, 4, 6, 7], &[1; 7]);
    let texts: Vec<String> = (0..8).map(|number| number.to_string()).collect();
    let column = Column::from_cells("n", Role::Quasi, texts.iter().map(|text| Some(text.as_str())));
    let domains = [Domain::of(&column.typed(ValueType::Integer)).unwrap().0];
    let rules = Rules::k_only(3);
    let task = Task::of_everybody(&rows, &domains, &rules, &Silent);
    let mut classes = LeastLoss { repacks: 1 }.partition(&task).unwrap().to_lists();
    classes.iter_mut().for_each(|class| class.sort_unstable());
    classes.sort();
    // With k = 3 there are two classes at most, and one class of everybody loses more.
    let mut least = f64::INFINITY;
    for chosen in 1u32..1 << 7 {
        let (first, second): (Vec<u32>, Vec<u32>) = (0..7).partition(|row| chosen >> row & 1 == 1);
        if first.len() >= 3 && second.len() >= 3 {
            least = least.min(task.loss(&[first, second]));
        }
    }
    assert!((task.loss(&classes) - least).abs() < 1e-9, "{classes:?}");
}

#[test]
fn threads_do_not_change_the_classes() {
    let mut state = 11u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32 % N_CODES
    };
    let cells: Vec<Vec<u32>> = (0..6_000).map(|_| (0..4).map(|_| next().min(next())).collect()).collect();
    let rows = fold(&cells);
    let with_threads = |n: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
        pool.install(|| with_task(&rows, 5, |task| LeastLoss { repacks: 1 }.partition(task).unwrap()))
    };
    assert_eq!(with_threads(1), with_threads(8));
}
