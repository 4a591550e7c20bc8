//! Somebody who knows the algorithm, everybody's quasi values and the release: which private tables can it be of?
//!
//! Every table is tried that gives people the released values in another order. A partitioner that looks at sensitive
//! values to decide where to cut gives some of them another release, and these are ruled out. `[WFW+07]`

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeSet;

use kohort_core::anonymize;
use kohort_core::register::anonymize_with_register;
use kohort_model::spec::{Algorithm, RegisterMethod};
use kohort_model::{
    Cells, Column, Hierarchy, InRegister, JoinedRegister, Release, Requirement, Role, Silent, Spec, Table, ValueType,
};
use proptest::prelude::*;

const ALGORITHMS: [Algorithm; 6] = [
    Algorithm::Auto,
    Algorithm::Mondrian,
    Algorithm::TopDown,
    Algorithm::Datafly,
    Algorithm::Cluster,
    Algorithm::FullDomain,
];

/// With or without a register.
#[derive(Clone, Copy, Debug)]
enum Way {
    Plain(Algorithm),
    Register(Algorithm, RegisterMethod),
}

fn ways() -> Vec<Way> {
    let beside = ALGORITHMS.iter().filter(|algorithm| **algorithm != Algorithm::FullDomain).flat_map(|&algorithm| {
        [RegisterMethod::Refine, RegisterMethod::Direct].map(|method| Way::Register(algorithm, method))
    });
    ALGORITHMS.into_iter().map(Way::Plain).chain(beside).collect()
}

/// Ages in a hierarchy of decades.
fn ages(ages: &[u32]) -> Column {
    let texts: Vec<String> = ages.iter().map(u32::to_string).collect();
    let paths: String = (20..60).map(|age| format!("{age};{}s;*\n", age / 10 * 10)).collect();
    let column = Column::from_cells("age", Role::Quasi, texts.iter().map(|text| Some(text.as_str())));
    column.typed(ValueType::Integer).with_hierarchy(Hierarchy::from_paths(&paths).unwrap())
}

/// What is released of people of these ages who have these illnesses, `None` where it is refused.
fn release(way: Way, private: &[u32], register: &[u32], illnesses: &[&str], asked: &[Requirement]) -> Option<String> {
    let illness = Column::from_cells("illness", Role::Sensitive, illnesses.iter().map(|&text| Some(text)));
    let table =
        Table { name: "t".to_owned(), columns: vec![ages(private), illness], n_rows: private.len(), person: None };
    let mut spec = Spec::new(2);
    match way {
        Way::Plain(algorithm) => {
            spec.algorithm = algorithm;
            anonymize(&table, &spec, asked, &Silent).ok().map(|done| shown(&table, &done.release))
        }
        Way::Register(algorithm, method) => {
            spec.algorithm = algorithm;
            spec.register.method = method;
            // Everybody is in the register, with the same values.
            let everybody = [private, register, private].concat();
            let rows =
                Table { name: "t".to_owned(), columns: vec![ages(&everybody)], n_rows: everybody.len(), person: None };
            let (n_microdata, n_register) = (private.len(), register.len());
            let said = (n_microdata + n_register) as u32..everybody.len() as u32;
            let persons = said.map(InRegister::Same).collect();
            let (key_prints, respelled) = (Vec::new(), Vec::new());
            let joined = JoinedRegister { rows, n_microdata, n_register, persons, key_prints, respelled };
            let done = anonymize_with_register(&table, &joined, &[], &spec, asked, &Silent).ok()?;
            Some(shown(&table, &done.anonymized.release))
        }
    }
}

/// A release as a reader has it: rows that look the same are in no order.
fn shown(table: &Table, release: &Release) -> String {
    let rows = release.tables.iter().flat_map(|released| {
        (0..released.rows.len()).map(move |row| {
            let cells = released.columns.iter().map(|column| match &column.cells {
                Cells::Recoded { labels, ids } => labels.get(ids[row]).to_owned(),
                Cells::Surrogate { ids } => ids[row].to_string(),
                Cells::Copied => {
                    table.columns[column.source].cell(released.rows[row] as usize).unwrap_or_default().to_owned()
                }
            });
            format!("{}:{}\n", released.name, cells.collect::<Vec<_>>().join(","))
        })
    });
    let mut rows: Vec<String> = rows.collect();
    rows.sort();
    rows.concat()
}

/// Every order of the values, each once.
fn orders<'v>(values: &[&'v str]) -> BTreeSet<Vec<&'v str>> {
    if values.is_empty() {
        return BTreeSet::from([Vec::new()]);
    }
    let mut found = BTreeSet::new();
    for position in 0..values.len() {
        let mut rest = values.to_vec();
        let first = rest.remove(position);
        found.extend(orders(&rest).into_iter().map(|order| [&[first][..], &order].concat()));
    }
    found
}

/// What follows from a release for somebody who knows the algorithm.
#[derive(Debug, PartialEq)]
struct Learned {
    /// How many tables can be behind it.
    n_tables: usize,
    /// The largest share of them in which one person has one illness.
    share: f64,
}

fn learned(way: Way, private: &[u32], register: &[u32], illnesses: &[&str], asked: &[Requirement]) -> Learned {
    let seen = release(way, private, register, illnesses, asked).unwrap();
    let behind: Vec<Vec<&str>> = orders(illnesses)
        .into_iter()
        .filter(|order| release(way, private, register, order, asked).as_ref() == Some(&seen))
        .collect();
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
    // All six are in one class, a third of them with the flu, and 360 tables fit. But two and four persons would have
    // been enough, so the class was not cut because of the values: the two of 31 have the same, and only the flu is
    // there twice.
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
fn where_only_k_is_asked_every_table_that_fits_the_classes_can_be_behind_them() {
    // Two classes: two ways to give the flu and a cold to those of 31, 24 for the others.
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
