//! Properties of releases for random private tables and registers.

use std::collections::{BTreeMap, BTreeSet};

use kohort_model::spec::{Algorithm, RegisterMethod, RegisterRows, Unmatched};
use kohort_model::{InRegister, Release, Silent, Spec};
use proptest::prelude::*;

use super::oracle::{
    Case, N_VALUES, asked, can_be_released, case, check, holds, quasi, released, run, spec, without_register,
};
use crate::encode::bounds::include;
use crate::encode::{Domain, Encoded};
use crate::register::anonymize_with_register;
use crate::register::crowd::Crowd;
use crate::register::index::RowTree;
use crate::requirement::Rules;

/// Private persons. Some of them are in the register, and the register describes some of these differently.
fn random_case() -> impl Strategy<Value = Case> {
    let numbers = |n_columns| prop::collection::vec(0..N_VALUES, n_columns);
    (1usize..4, 1usize..40, 0usize..90).prop_flat_map(move |(n_columns, n_private, n_register)| {
        let private = prop::collection::vec((numbers(n_columns), 0..4, 0..8, numbers(n_columns)), n_private);
        let register = prop::collection::vec(numbers(n_columns), n_register);
        (private, register).prop_map(move |(private, others)| {
            let name = |position: usize| format!("p{position}");
            let mut register: BTreeMap<String, Vec<i32>> = BTreeMap::new();
            for (position, (numbers, _, registered, otherwise)) in private.iter().enumerate() {
                let said = match registered {
                    0..3 => continue,
                    3 => otherwise,
                    _ => numbers,
                };
                register.entry(name(position)).or_insert_with(|| said.clone());
            }
            let others = others.into_iter().enumerate().map(|(position, numbers)| (format!("r{position}"), numbers));
            let register = register.into_iter().chain(others).collect();
            let private = private.into_iter().enumerate();
            let private =
                private.map(|(position, (numbers, value, ..))| (name(position), numbers, format!("v{value}")));
            case(private.collect(), register)
        })
    })
}

fn random_spec() -> impl Strategy<Value = Spec> {
    let algorithms =
        vec![Algorithm::Mondrian, Algorithm::TopDown, Algorithm::Auto, Algorithm::Cluster, Algorithm::Datafly];
    let methods = vec![RegisterMethod::Refine, RegisterMethod::Direct, RegisterMethod::Auto];
    (1u32..9, prop::sample::select(algorithms), prop::sample::select(methods))
        .prop_map(|(k, algorithm, method)| spec(k, algorithm, method))
}

proptest! {
    #![proptest_config(crate::random_cases(400))]

    #[test]
    fn every_release_keeps_its_promises(
        case in random_case(),
        spec in random_spec(),
        l in 1u32..4,
    ) {
        match run(&case, &spec, l) {
            Ok(found) => check(&case, &found, spec.k as usize, l as usize)?,
            Err(error) => prop_assert!(!can_be_released(&case, spec.k, l), "refused without need: {}", error),
        }
    }

    #[test]
    fn whoever_looks_everybody_up_finds_k_candidates_for_every_row(case in random_case(), spec in random_spec()) {
        let found = match run(&case, &spec, 1) {
            Ok(found) => found,
            Err(error) => {
                prop_assert!(!can_be_released(&case, spec.k, 1), "refused without need: {}", error);
                return Ok(());
            }
        };
        // The population as the attacker knows it: the register, and everybody who is in no register.
        let in_register: BTreeSet<&str> = case.register.iter().map(|person| person.0.as_str()).collect();
        let others = case.private.iter().filter(|person| !in_register.contains(person.0.as_str()));
        let public = case.register.iter().map(|person| &person.1).chain(others.map(|person| &person.1));
        let public: Vec<&Vec<i32>> = public.collect();
        for cells in released(&case, &found.anonymized.release, 0) {
            let candidates = public.iter().filter(|numbers| holds(&cells[..cells.len() - 1], numbers)).count();
            prop_assert!(candidates >= spec.k as usize, "{candidates} candidates");
        }
    }

    #[test]
    fn where_presence_is_public_nothing_loses_more_than_the_plain_release(
        mut case in random_case(),
        mut spec in random_spec(),
        l in 1u32..4,
    ) {
        case.joined.persons.fill(InRegister::Absent);
        spec.register.release = RegisterRows::Microdata;
        let plain = anonymize_with_register(&case.table, &without_register(&case), &[], &spec, &asked(spec.k, l), &Silent);
        let found = run(&case, &spec, l);
        prop_assert_eq!(found.is_ok(), can_be_released(&case, spec.k, l));
        prop_assert!(plain.is_err() || found.is_ok(), "a register takes a release away");
        if let (Ok(plain), Ok(found)) = (plain, found) {
            prop_assert!(found.anonymized.loss.ncp <= plain.anonymized.loss.ncp + 1e-12);
        }
    }

    #[test]
    fn an_empty_register_gives_the_plain_release(mut case in random_case(), spec in random_spec(), l in 1u32..4) {
        let rows: Vec<&Vec<i32>> = case.private.iter().map(|person| &person.1).collect();
        case.joined.rows.columns = quasi(&rows);
        case.joined.rows.n_rows = rows.len();
        case.joined.n_register = 0;
        case.joined.persons.fill(InRegister::Absent);
        let plain = crate::anonymize(&case.table, &spec, &asked(spec.k, l), &Silent);
        let found = run(&case, &spec, l);
        prop_assert_eq!(plain.is_ok(), found.is_ok());
        if let (Ok(plain), Ok(found)) = (plain, found) {
            prop_assert!((plain.loss.ncp - found.anonymized.loss.ncp).abs() < 1e-12);
            prop_assert_eq!(plain.loss.dm, found.anonymized.loss.dm);
            let n_quasi = case.joined.rows.columns.len();
            let quasi = |release: &Release| -> Vec<Vec<String>> {
                released(&case, release, 0).into_iter().map(|cells| cells[..n_quasi].to_vec()).collect()
            };
            prop_assert_eq!(quasi(&plain.release), quasi(&found.anonymized.release));
        }
    }

    #[test]
    fn the_order_of_the_input_leaves_no_trace(
        original in random_case(),
        spec in random_spec(),
        by in any::<prop::sample::Index>(),
    ) {
        let mut private = original.private.clone();
        private.rotate_left(by.index(original.private.len()));
        private.reverse();
        let mut register = original.register.clone();
        register.reverse();
        let turned = case(private, register);
        let (found, other) = (run(&original, &spec, 2), run(&turned, &spec, 2));
        prop_assert_eq!(found.is_ok(), can_be_released(&original, spec.k, 2));
        prop_assert_eq!(found.is_ok(), other.is_ok());
        if let (Ok(found), Ok(other)) = (found, other) {
            for table in 0..2 {
                let cells = released(&original, &found.anonymized.release, table);
                prop_assert_eq!(cells, released(&turned, &other.anonymized.release, table));
            }
        }
    }

    #[test]
    fn the_index_finds_what_a_scan_of_all_free_rows_finds(
        case in random_case(),
        taken in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        back in 0usize..20,
        corners in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 3),
    ) {
        let everybody: Vec<u32> = (0..case.table.n_rows as u32).collect();
        let columns: Vec<usize> = (0..case.joined.rows.columns.len()).collect();
        let encoded = Encoded::new(&case.joined.rows, &columns).unwrap();
        let rules = Rules::k_only(1);
        let crowd = Crowd::new(&case.joined, &encoded, &rules, (&everybody, |_| true), Unmatched::Count);
        let mut index = RowTree::new(&crowd);
        let rows = 0..crowd.rows.len() as u32;
        let mut free: BTreeSet<u32> = rows.filter(|&row| !crowd.register_rows(row).is_empty()).collect();
        let all: Vec<u32> = free.iter().copied().collect();
        let taken: Vec<u32> = taken.iter().filter(|_| !all.is_empty()).map(|row| all[row.index(all.len())]).collect();
        for row in &taken {
            index.take(*row);
            free.remove(row);
        }
        for row in taken.iter().take(back) {
            index.give_back(*row);
            free.insert(*row);
        }
        let interval = |(domain, (a, b)): (&Domain, &(prop::sample::Index, prop::sample::Index))| {
            let n_codes = domain.n_codes() as usize;
            let (a, b) = (a.index(n_codes) as u32, b.index(n_codes) as u32);
            (a.min(b), a.max(b))
        };
        let shown: Vec<(u32, u32)> = encoded.domains.iter().zip(&corners).map(interval).collect();
        let lies_inside = |row: &&u32| {
            crowd.rows.cells(**row).iter().zip(&shown).all(|(code, (lo, hi))| lo <= code && code <= hi)
        };
        let inside: Vec<u32> = free.iter().filter(lies_inside).copied().collect();
        prop_assert_eq!(index.within(&shown), inside);
        let width_with = |row: u32| {
            let mut grown = shown.clone();
            include(&mut grown, crowd.rows.cells(row));
            crowd.width(&grown)
        };
        let least = free.iter().map(|&row| width_with(row)).min_by(f64::total_cmp);
        prop_assert_eq!(index.nearest(&shown).map(width_with), least);
    }
}

#[test]
fn threads_do_not_change_the_release() {
    let mut state = 7u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as i32 % N_VALUES
    };
    let person = |row: i32| (format!("p{row}"), vec![next(), next(), next()], format!("v{}", row % 5));
    let private = (0..1_000).map(person).collect();
    let register = (0..1_500).map(|row| (format!("r{row}"), vec![next(), next(), next()])).collect();
    let case = case(private, register);
    for method in [RegisterMethod::Refine, RegisterMethod::Direct] {
        let with_threads = |n: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
            pool.install(|| run(&case, &spec(7, Algorithm::TopDown, method), 2).unwrap().classes)
        };
        assert_eq!(with_threads(1), with_threads(4));
    }
}
