//! An audience that knows the algorithm, its own columns of everybody and the release: what does it learn about columns
//! that only others know?
//!
//! Rows that look the same to the audience exchange everything it does not know, in every order. Each order is a table
//! that shows the audience the same classes. If some of these tables give another release, the audience rules them
//! out, and may narrow somebody's value down to fewer than the class shows, or to one. `[WFW+07]`

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::{BTreeMap, BTreeSet};

use kohort_core::audiences::{AnonymizedForAudiences, anonymize_audiences};
use kohort_model::spec::Algorithm;
use kohort_model::{
    Audience, Audiences, Cells, Coalition, Column, Requirement, Role, Silent, Spec, Steer, Table, ValueType,
};
use proptest::prelude::*;

const NAMES: [&str; 5] = ["x", "a", "b", "y", "c"];

/// A row per person, a number per column.
type People = Vec<Vec<u32>>;

fn table(people: &People) -> Table {
    let column = |position: usize| {
        let texts: Vec<String> = people.iter().map(|row| row[position].to_string()).collect();
        let cells = texts.iter().map(|text| Some(text.as_str()));
        Column::from_cells(NAMES[position], Role::Quasi, cells).typed(ValueType::Integer)
    };
    Table {
        name: "t".to_owned(),
        columns: (0..people[0].len()).map(column).collect(),
        n_rows: people.len(),
        person: None,
    }
}

fn audiences(each: &[&[usize]], k: u32, steer: Steer) -> Audiences {
    let audience = |(number, columns): (usize, &&[usize])| Audience {
        name: format!("audience {number}"),
        quasi: columns.iter().map(|&column| NAMES[column].to_owned()).collect(),
        requirements: vec![Requirement::K(k)],
    };
    let each = each.iter().enumerate().map(audience).collect();
    Audiences { steer, ..Audiences::new(each) }
}

fn release(people: &People, asked: &Audiences, algorithm: Algorithm) -> AnonymizedForAudiences {
    let spec = Spec { algorithm, ..Spec::new(1) };
    anonymize_audiences(&table(people), &spec, asked, &Silent).unwrap()
}

/// Per person the released cells.
fn shown(people: &People, asked: &Audiences, algorithm: Algorithm) -> Vec<Vec<String>> {
    let made = release(people, asked, algorithm);
    let released = &made.anonymized.release.tables[0];
    let mut of_person = vec![Vec::new(); people.len()];
    for (position, &person) in released.rows.iter().enumerate() {
        let cell = |column: &kohort_model::ReleasedColumn| match &column.cells {
            Cells::Recoded { labels, ids } => labels.get(ids[position]).to_owned(),
            Cells::Copied | Cells::Surrogate { .. } => unreachable!("all columns are quasi"),
        };
        of_person[person as usize] = released.columns.iter().map(cell).collect();
    }
    of_person
}

/// What a reader has: rows in no order.
fn rows(shown: &[Vec<String>]) -> Vec<Vec<String>> {
    let mut rows = shown.to_vec();
    rows.sort();
    rows
}

/// The persons of each class that an audience sees.
fn classes(shown: &[Vec<String>], knows: &[usize]) -> Vec<Vec<usize>> {
    let mut classes: BTreeMap<Vec<&str>, Vec<usize>> = BTreeMap::new();
    for (person, cells) in shown.iter().enumerate() {
        classes.entry(knows.iter().map(|&column| cells[column].as_str()).collect()).or_default().push(person);
    }
    classes.into_values().collect()
}

/// Every table that comes from exchanging what an audience does not know inside of its classes.
fn exchanges(people: &People, classes: &[Vec<usize>], knows: &[usize]) -> BTreeSet<People> {
    let mut found = BTreeSet::from([people.clone()]);
    for class in classes {
        found = found.iter().flat_map(|people| orders(people, class, knows)).collect();
    }
    found
}

fn orders(people: &People, class: &[usize], knows: &[usize]) -> BTreeSet<People> {
    let Some((&first, rest)) = class.split_first() else { return BTreeSet::from([people.clone()]) };
    let mut found = BTreeSet::new();
    for &other in class {
        found.extend(orders(&exchanged(people, first, other, knows), rest, knows));
    }
    found
}

fn exchanged(people: &People, one: usize, other: usize, knows: &[usize]) -> People {
    let mut people = people.clone();
    for column in (0..people[0].len()).filter(|column| !knows.contains(column)) {
        let value = people[one][column];
        people[one][column] = people[other][column];
        people[other][column] = value;
    }
    people
}

/// Of how many persons an audience knows a value for sure that the classes leave open, and of how many it can rule
/// values out.
#[derive(Debug, Default, PartialEq)]
struct Leaks {
    persons: usize,
    certain: usize,
    narrowed: usize,
}

impl Leaks {
    fn add(&mut self, people: &People, knows: &[usize], hidden: usize, asked: &Audiences, algorithm: Algorithm) {
        let seen = shown(people, asked, algorithm);
        let possible = exchanges(people, &classes(&seen, knows), knows);
        let behind: Vec<&People> =
            possible.iter().filter(|people| rows(&shown(people, asked, algorithm)) == rows(&seen)).collect();
        for person in 0..people.len() {
            let before: BTreeSet<u32> = possible.iter().map(|people| people[person][hidden]).collect();
            let after: BTreeSet<u32> = behind.iter().map(|people| people[person][hidden]).collect();
            self.persons += 1;
            self.certain += usize::from(after.len() == 1 && before.len() > 1);
            self.narrowed += usize::from(after.len() < before.len());
        }
    }
}

/// Five persons each, from a fixed sequence.
fn tables(n_columns: usize, n_tables: usize) -> Vec<People> {
    let mut state = 7u64;
    let mut next = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % n) as u32
    };
    (0..n_tables).map(|_| (0..5).map(|_| (0..n_columns).map(|_| next(5)).collect()).collect()).collect()
}

const ALGORITHMS: [Algorithm; 2] = [Algorithm::Auto, Algorithm::Mondrian];

/// Two audiences that share one column and have one each; what the first learns of the other's.
fn leaks(steer: Steer, n_tables: usize) -> Leaks {
    let mut leaks = Leaks::default();
    for algorithm in ALGORITHMS {
        for people in tables(3, n_tables) {
            leaks.add(&people, &[0, 1], 2, &audiences(&[&[0, 1], &[0, 2]], 2, steer), algorithm);
        }
    }
    leaks
}

#[test]
fn where_all_columns_steer_an_audience_can_narrow_down_what_only_others_know() {
    let leaks = leaks(Steer::All, 60);
    assert_eq!(leaks.persons, 600);
    assert!(leaks.narrowed > 0, "{leaks:?}");
    assert!(leaks.certain > 0, "{leaks:?}");
}

#[test]
fn where_common_columns_steer_the_algorithm_tells_an_audience_nothing() {
    assert_eq!(leaks(Steer::Common, 60), Leaks { persons: 600, certain: 0, narrowed: 0 });
}

fn people(n_columns: usize) -> impl Strategy<Value = People> {
    prop::collection::vec(prop::collection::vec(0u32..8, n_columns), 6..30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn exchanging_what_an_audience_does_not_know_changes_nothing(
        people in people(5),
        choice in 0usize..5,
        audience in 0usize..3,
        pairs in prop::collection::vec((0usize..1000, 0usize..1000), 1..20),
        collude in any::<bool>(),
        algorithm in prop::sample::select(vec![
            Algorithm::Auto, Algorithm::Mondrian, Algorithm::TopDown, Algorithm::Datafly, Algorithm::Cluster,
        ]),
    ) {
        let knowledge: [[&[usize]; 3]; 5] = [
            [&[0, 1], &[0, 2], &[0, 3, 4]],
            [&[0, 1], &[0, 2, 3], &[3, 4]],
            [&[0, 1, 3], &[0, 2, 3], &[0, 4]],
            [&[0], &[0, 1, 2], &[3, 4]],
            [&[0, 1], &[1, 2], &[0, 2, 3, 4]],
        ];
        let knowledge = knowledge[choice];
        let mut asked = audiences(&knowledge, 2, Steer::Common);
        if collude {
            let members = vec!["audience 0".to_owned(), "audience 2".to_owned()];
            asked.coalitions.push(Coalition { name: Some("two".to_owned()), members, requirements: vec![Requirement::K(3)] });
        }
        let knows = knowledge[audience];
        let seen = shown(&people, &asked, algorithm);
        let classes = classes(&seen, knows);
        let mut exchanged_people = people.clone();
        for (one, other) in pairs {
            let class = &classes[one % classes.len()];
            exchanged_people =
                exchanged(&exchanged_people, class[one / 7 % class.len()], class[other % class.len()], knows);
        }
        prop_assert_eq!(rows(&shown(&exchanged_people, &asked, algorithm)), rows(&seen));
    }
}
