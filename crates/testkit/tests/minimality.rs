//! What an attacker who knows the algorithm, everybody's quasi values and the release learns, for every way to make a
//! release.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use kohort_model::Requirement;
use kohort_testkit::attacks::minimality::{Way, behind, orders, release, ways};
use proptest::prelude::*;

/// What an attacker who knows the algorithm can conclude from a release.
#[derive(Debug, PartialEq)]
struct Learned {
    /// How many private tables could have given the release.
    n_tables: usize,
    /// The largest share of these tables in which one person has one particular illness.
    share: f64,
}

fn learned(way: Way, private: &[u32], register: &[u32], illnesses: &[&str], asked: &[Requirement]) -> Learned {
    let behind = behind(way, private, register, illnesses, asked).unwrap();
    let share = |person: usize, illness: &str| {
        behind.iter().filter(|order| order[person] == illness).count() as f64 / behind.len() as f64
    };
    let persons = 0..private.len();
    let shares = persons.flat_map(|person| illnesses.iter().map(move |illness| (person, *illness)));
    let share = shares.map(|(person, illness)| share(person, illness)).fold(0.0, f64::max);
    Learned { n_tables: behind.len(), share }
}

const PRIVATE: [u32; 6] = [31, 31, 42, 42, 42, 42];
const REGISTER: [u32; 4] = [31, 42, 42, 55];

#[test]
fn the_minimality_attack_finds_whose_values_kept_a_class_from_being_cut() {
    // All six persons are in one class, a third of them have flu, and 360 tables fit. But classes of two and four
    // persons would have been large enough, so the values must have prevented the cut: the two persons aged 31 have the
    // same illness, and only flu occurs twice.
    let illnesses = ["flu", "flu", "cold", "gout", "mumps", "ulcer"];
    assert_eq!(orders(&illnesses).len(), 360);
    let column = || "illness".to_owned();
    for asked in
        [Requirement::Alpha { column: column(), alpha: 0.5 }, Requirement::DistinctL { column: column(), l: 2 }]
    {
        let asked = [Requirement::K(2), asked];
        for way in ways() {
            let found = learned(way, &PRIVATE, &REGISTER, &illnesses, &asked);
            assert_eq!(found, Learned { n_tables: 24, share: 1.0 }, "{way:?}");
        }
    }
}

#[test]
fn if_only_k_is_asked_every_table_that_fits_the_classes_remains_possible() {
    // There are two classes: two ways to give flu and a cold to the persons aged 31, and 24 ways for the others.
    let illnesses = ["flu", "cold", "flu", "gout", "mumps", "ulcer"];
    for way in ways() {
        let found = learned(way, &PRIVATE, &REGISTER, &illnesses, &[Requirement::K(2)]);
        assert_eq!(found, Learned { n_tables: 48, share: 0.5 }, "{way:?}");
    }
}

fn random_table() -> impl Strategy<Value = (Vec<u32>, Vec<u32>, Vec<usize>)> {
    (2usize..14, 0usize..20).prop_flat_map(|(n_private, n_register)| {
        let ages = |n| prop::collection::vec(20u32..60, n);
        (ages(n_private), ages(n_register), Just((0..n_private).collect::<Vec<_>>()).prop_shuffle())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn where_only_k_is_asked_classes_do_not_depend_on_who_has_what(
        (private, register, order) in random_table(),
        n_values in 1usize..5,
    ) {
        let names = ["a", "b", "c", "d"];
        let illnesses: Vec<&str> = (0..private.len()).map(|person| names[person % n_values]).collect();
        let others: Vec<&str> = order.iter().map(|&person| illnesses[person]).collect();
        for way in ways() {
            let quasi = |illnesses: &[&str]| {
                let shown = release(way, &private, &register, illnesses, &[Requirement::K(2)])?;
                Some(shown.lines().filter(|row| row.starts_with("t:")).map(|row| match way {
                    Way::Plain(_) => row.split(',').next().unwrap_or_default().to_owned(),
                    Way::Register(..) => row.to_owned(),
                }).collect::<Vec<String>>())
            };
            prop_assert_eq!(quasi(&illnesses), quasi(&others), "{:?}", way);
        }
    }
}
