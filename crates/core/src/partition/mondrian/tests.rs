//! What Mondrian promises, on random rows.

use std::collections::BTreeMap;

use kohort_model::Silent;
use kohort_model::spec::Leftovers;
use proptest::prelude::*;

use super::*;
use crate::encode::Rows;
use crate::partition::sample::{N_CODES, domains, fold};
use crate::requirement::Rules;

fn partition(rows: &Rows, k: u32, spec: MondrianSpec) -> Result<Classes, Unreachable> {
    let (domains, rules) = (domains(rows.n_columns()), Rules::k_only(k));
    let leftovers = Leftovers::Merge;
    let task = Task { rows, domains: &domains, rules: &rules, allowance: 0, leftovers, progress: &Silent };
    Mondrian { spec, keep_tree: KeepTree::Yes }.partition(&task)
}

fn weight(rows: &Rows, class: &[u32]) -> u32 {
    class.iter().map(|&row| rows.weight(row)).sum()
}

fn random_rows() -> impl Strategy<Value = Vec<Vec<u32>>> {
    (1usize..4).prop_flat_map(|n_columns| prop::collection::vec(prop::collection::vec(0..N_CODES, n_columns), 1..200))
}

fn random_spec() -> impl Strategy<Value = MondrianSpec> {
    (prop::bool::ANY, prop::bool::ANY).prop_map(|(relaxed, round_robin)| MondrianSpec {
        cuts: if relaxed { Cuts::Relaxed } else { Cuts::Strict },
        choose: if round_robin { Choose::RoundRobin } else { Choose::Widest },
    })
}

proptest! {
    #[test]
    fn every_row_is_in_one_class_of_at_least_k(cells in random_rows(), k in 1u32..30, spec in random_spec()) {
        let rows = fold(&cells);
        let Ok(classes) = partition(&rows, k, spec) else {
            prop_assert!((cells.len() as u32) < k);
            return Ok(());
        };
        let mut seen = vec![0; rows.len()];
        for class in 0..classes.len() {
            prop_assert!(weight(&rows, classes.rows(class)) >= k);
            classes.rows(class).iter().for_each(|&row| seen[row as usize] += 1);
        }
        prop_assert!(seen.iter().all(|&times| times == 1));
    }

    #[test]
    fn strict_cuts_leave_no_number_column_that_could_still_be_cut(cells in random_rows(), k in 1u32..10) {
        let rows = fold(&cells);
        let Ok(classes) = partition(&rows, k, MondrianSpec::default()) else {
            prop_assert!((cells.len() as u32) < k);
            return Ok(());
        };
        for class in 0..classes.len() {
            for column in (0..rows.n_columns()).step_by(2) {
                let mut weights: BTreeMap<u32, u32> = BTreeMap::new();
                for &row in classes.rows(class) {
                    *weights.entry(rows.cells(row)[column]).or_default() += rows.weight(row);
                }
                let total: u32 = weights.values().sum();
                let mut below = 0;
                for weight in weights.values() {
                    below += weight;
                    prop_assert!(below < k || total - below < k, "a cut of {below} and {} was missed", total - below);
                }
            }
        }
    }

    #[test]
    fn the_tree_has_one_cut_fewer_than_classes_and_its_nodes_nest(cells in random_rows(), k in 1u32..10, spec in random_spec()) {
        let rows = fold(&cells);
        let Ok(classes) = partition(&rows, k, spec) else {
            prop_assert!((cells.len() as u32) < k);
            return Ok(());
        };
        let nodes = classes.tree.clone().unwrap().nodes;
        prop_assert_eq!(nodes.len() + 1, classes.len());
        let is_node = |first: u32, end: u32| end - first == 1 || nodes.iter().any(|node| (node.first, node.end) == (first, end));
        prop_assert!(is_node(0, classes.len() as u32));
        for node in &nodes {
            prop_assert!(node.first < node.middle && node.middle < node.end);
            prop_assert!(is_node(node.first, node.middle) && is_node(node.middle, node.end));
        }
    }
}

#[test]
fn threads_do_not_change_the_classes() {
    // Enough rows that nodes are shared between threads.
    let mut state = 7u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32 % N_CODES
    };
    let cells: Vec<Vec<u32>> = (0..120_000).map(|_| (0..5).map(|_| next()).collect()).collect();
    let rows = fold(&cells);
    let with_threads = |n: usize, spec: MondrianSpec| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
        pool.install(|| partition(&rows, 5, spec).unwrap())
    };
    for cuts in [Cuts::Strict, Cuts::Relaxed] {
        let spec = MondrianSpec { cuts, choose: Choose::Widest };
        assert!(rows.len() > 2 * SHARED_NODE);
        assert_eq!(with_threads(1, spec), with_threads(8, spec));
    }
}

#[test]
fn hundreds_of_columns_are_cut_too() {
    let cells: Vec<Vec<u32>> =
        (0..40).map(|row| (0..300).map(|column| (row * (column + 3)) % N_CODES).collect()).collect();
    let rows = fold(&cells);
    let classes = partition(&rows, 2, MondrianSpec::default()).unwrap();
    assert!(classes.len() > 5);
}

/// 700 columns of 40 codes take 4,200 bits.
#[test]
fn very_wide_rows_are_cut_as_narrow_ones_are() {
    let cells: Vec<Vec<u32>> =
        (0..60u32).map(|row| (0..700).map(|column| (row + column) % N_CODES).collect()).collect();
    let rows = fold(&cells);
    let domains = domains(rows.n_columns());
    assert!(Layout::new(&domains.iter().map(Domain::n_codes).collect::<Vec<_>>()).words() > 64);
    for (cuts, choose) in [(Cuts::Strict, Choose::Widest), (Cuts::Relaxed, Choose::RoundRobin)] {
        let classes = partition(&rows, 5, MondrianSpec { cuts, choose }).unwrap();
        assert!(classes.len() >= 6, "{} classes", classes.len());
        assert!((0..classes.len()).all(|class| weight(&rows, classes.rows(class)) >= 5));
    }
}
