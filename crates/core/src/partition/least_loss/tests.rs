//! What the default promises, on random rows.

use kohort_model::Silent;
use kohort_model::spec::Leftovers;
use proptest::prelude::*;

use super::*;
use crate::encode::Rows;
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
            let Ok(classes) = LeastLoss.partition(task) else {
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
        pool.install(|| with_task(&rows, 5, |task| LeastLoss.partition(task).unwrap()))
    };
    assert_eq!(with_threads(1), with_threads(8));
}
