//! An audience that knows the algorithm, its own columns of everybody and the release: what does it learn about columns
//! that only others know?
//!
//! Rows that look the same to the audience exchange everything that it does not know, in every order. Each order is a
//! table in which the audience sees the same classes. If some of these tables give another release, the audience rules
//! them out. It may then narrow somebody's value down to fewer than the class shows, or to one. `[WFW+07]`

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use kohort_core::audiences::anonymize_audiences;
use kohort_model::spec::Algorithm;
use kohort_model::{Audience, Audiences, Cells, Column, Requirement, Role, Silent, Spec, Steer, Table, ValueType};

use super::{Attack, Count, Promise, Side, System};

const KNOWS: &str = "the algorithm, and everybody's values in its own columns";
const DOES: &str = "anonymizes every table in which persons of a class exchange what the audience does not know, and rules \
                    out those that give another release";

pub(super) const ATTACKS: &[Attack] = &[
    Attack {
        name: "minimality of an audience: ruled out",
        system: System::Audiences,
        knows: KNOWS,
        does: DOES,
        success: "persons for whom a value is ruled out in a column that only others know",
        run: || sides(|leaks| leaks.narrowed),
    },
    Attack {
        name: "minimality of an audience: certain",
        system: System::Audiences,
        knows: KNOWS,
        does: DOES,
        success: "persons for whom one value remains although the class shows several",
        run: || sides(|leaks| leaks.certain),
    },
];

const NAMES: [&str; 5] = ["x", "a", "b", "y", "c"];

/// A row per person, a number per column.
pub type People = Vec<Vec<u32>>;

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

/// Audiences by the columns they know, each with the same k.
pub fn audiences(each: &[&[usize]], k: u32, steer: Steer) -> Audiences {
    let audience = |(number, columns): (usize, &&[usize])| Audience {
        name: format!("audience {number}"),
        quasi: columns.iter().map(|&column| NAMES[column].to_owned()).collect(),
        requirements: vec![Requirement::K(k)],
    };
    let each = each.iter().enumerate().map(audience).collect();
    Audiences { steer, ..Audiences::new(each) }
}

/// The released cells of each person.
///
/// # Panics
/// If nothing is released.
pub fn shown(people: &People, asked: &Audiences, algorithm: Algorithm) -> Vec<Vec<String>> {
    let spec = Spec { algorithm, ..Spec::new(1) };
    let made = anonymize_audiences(&table(people), &spec, asked, &Silent).expect("k is reachable");
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

/// The rows as a reader has them, in no particular order.
pub fn rows(shown: &[Vec<String>]) -> Vec<Vec<String>> {
    let mut rows = shown.to_vec();
    rows.sort();
    rows
}

/// The persons of each class that an audience sees.
pub fn classes(shown: &[Vec<String>], knows: &[usize]) -> Vec<Vec<usize>> {
    let mut classes: BTreeMap<Vec<&str>, Vec<usize>> = BTreeMap::new();
    for (person, cells) in shown.iter().enumerate() {
        classes.entry(knows.iter().map(|&column| cells[column].as_str()).collect()).or_default().push(person);
    }
    classes.into_values().collect()
}

/// Every table that results from exchanging, within the audience's classes, what the audience does not know.
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

/// The table in which two persons have exchanged everything but some columns.
#[must_use]
pub fn exchanged(people: &People, one: usize, other: usize, knows: &[usize]) -> People {
    let mut people = people.clone();
    for column in (0..people[0].len()).filter(|column| !knows.contains(column)) {
        let value = people[one][column];
        people[one][column] = people[other][column];
        people[other][column] = value;
    }
    people
}

/// For how many persons an audience finds out a value that the classes leave open, and for how many it can rule values
/// out.
#[derive(Debug, Default, PartialEq)]
pub struct Leaks {
    /// Persons in all tables.
    pub persons: u64,
    /// Persons for whom one value remains.
    pub certain: u64,
    /// Persons for whom fewer values remain than the classes leave open.
    pub narrowed: u64,
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
            self.certain += u64::from(after.len() == 1 && before.len() > 1);
            self.narrowed += u64::from(after.len() < before.len());
        }
    }

    /// What the first of two audiences learns about the second one's column, on 120 tables of five persons, by two
    /// algorithms. The audiences share one column and have one each of their own.
    pub fn between_two(steer: Steer) -> Leaks {
        let mut leaks = Leaks::default();
        for algorithm in [Algorithm::Auto, Algorithm::Mondrian] {
            for people in tables(3, 60) {
                leaks.add(&people, &[0, 1], 2, &audiences(&[&[0, 1], &[0, 2]], 2, steer), algorithm);
            }
        }
        leaks
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

/// What is learned by default and with `steer = "common"`, replayed once for both attacks.
fn replayed() -> &'static [Leaks; 2] {
    static LEAKS: OnceLock<[Leaks; 2]> = OnceLock::new();
    LEAKS.get_or_init(|| [Steer::All, Steer::Common].map(Leaks::between_two))
}

fn sides(succeeded: impl Fn(&Leaks) -> u64) -> Vec<Side> {
    let count = |leaks: &Leaks| Count { tried: leaks.persons, succeeded: succeeded(leaks), by_chance: 0.0 };
    let [by_default, common] = replayed();
    let helps = Promise::Nothing("`steer = \"common\"`");
    vec![
        Side::kohort("`k = 2` for each audience", helps, count(by_default)),
        Side::kohort("the same, `steer = \"common\"`", Promise::Nobody, count(common)),
    ]
}
