//! An attacker who has the release, the register, the algorithm and k wants to learn who is in the private table.
//!
//! The replay tries every private table that a small register allows, so the share of tables in which a person is
//! private is known exactly. The face attack runs on tables of ordinary size.

use std::collections::{BTreeMap, BTreeSet};

use kohort_core::register::{AnonymizedWithRegister, anonymize_with_register};
use kohort_model::spec::{Algorithm, RegisterRows};
use kohort_model::{
    Cells, Column, InRegister, JoinedRegister, Presence, Release, Requirement, Role, Silent, Spec, Table, ValueType,
};
use kohort_verify::{AskedOfJoin, SuppressionLimit, ToldApart, verify_joined};

use super::{Attack, Count, Promise, Side, System};
use crate::random::Random;

pub(super) const ATTACKS: &[Attack] = &[
    Attack {
        name: "faces of boxes",
        system: System::Register,
        knows: "the register, the algorithm and k",
        does: "names persons who lie alone on a side of their class's box, without whom the box would be smaller and the \
               class still large enough",
        success: "named persons who are in the private table",
        run: faces_of_boxes,
    },
    Attack {
        name: "replay of all memberships",
        system: System::Register,
        knows: "the register, the algorithm, k, and how many are private with which values",
        does: "anonymizes every private table that a small register allows, and counts in how many of those behind a \
               release each person is private",
        success: "persons whose presence the attacker is surer of than the release says anybody can be",
        run: replay_of_memberships,
    },
];

/// The quasi values of a person.
pub type Place = Vec<i32>;

/// What the private table says about a person.
#[derive(Clone, Debug)]
pub struct Secret {
    /// The sensitive value.
    pub value: &'static str,
    /// The person's place in the private table, if it differs from the one in the register.
    pub elsewhere: Option<Place>,
}

/// A register and private persons: some of them are in the register, some are not.
#[derive(Clone, Debug)]
pub struct World<'a> {
    /// The place of everybody in the register.
    pub register: &'a [Place],
    /// The private persons of the register, one per secret.
    pub private: Vec<usize>,
    /// What the private table says about each person of `private`.
    pub secrets: &'a [Secret],
    /// Private persons whom the register does not have.
    pub absent: &'a [(Place, &'static str)],
}

/// The quasi columns `x0`, `x1`, ... of persons at these places.
///
/// # Panics
/// If there is no place.
pub fn quasi(places: &[Place]) -> Vec<Column> {
    let column = |column: usize| {
        let texts: Vec<String> = places.iter().map(|place| place[column].to_string()).collect();
        let cells = texts.iter().map(|text| Some(text.as_str()));
        Column::from_cells(&format!("x{column}"), Role::Quasi, cells).typed(ValueType::Integer)
    };
    (0..places[0].len()).map(column).collect()
}

impl World<'_> {
    /// The private table, and its join with the register.
    pub fn tables(&self) -> (Table, JoinedRegister) {
        let place = |(&person, secret): (&usize, &Secret)| match &secret.elsewhere {
            Some(place) => place.clone(),
            None => self.register[person].clone(),
        };
        let mut places: Vec<Place> = self.private.iter().zip(self.secrets).map(place).collect();
        places.extend(self.absent.iter().map(|(place, _)| place.clone()));
        let values = self.secrets.iter().map(|secret| secret.value).chain(self.absent.iter().map(|(_, value)| *value));
        let mut columns = quasi(&places);
        columns.push(Column::from_cells("value", Role::Sensitive, values.map(Some)));
        let n_microdata = places.len();
        let table = Table { name: "t".to_owned(), columns, n_rows: n_microdata, person: None };
        let others = (0..self.register.len()).filter(|person| !self.private.contains(person));
        places.extend(others.map(|person| self.register[person].clone()));
        let n_register = places.len() - n_microdata;
        let mut persons = Vec::new();
        for (&person, secret) in self.private.iter().zip(self.secrets) {
            places.push(self.register[person].clone());
            let said = places.len() as u32 - 1;
            persons.push(match secret.elsewhere {
                None => InRegister::Same(said),
                Some(_) => InRegister::Differs(said),
            });
        }
        persons.resize(n_microdata, InRegister::Absent);
        let rows = Table { name: "t".to_owned(), columns: quasi(&places), n_rows: places.len(), person: None };
        let (key_prints, respelled) = (Vec::new(), Vec::new());
        (table, JoinedRegister { rows, n_microdata, n_register, persons, key_prints, respelled })
    }

    /// The release, and what the verifier says about presence; `None` if nothing is released.
    ///
    /// # Panics
    /// If the verifier refuses the release.
    pub fn release(&self, spec: &Spec, requirements: &[Requirement]) -> Option<(String, Presence)> {
        let (table, joined) = self.tables();
        let done = anonymize_with_register(&table, &joined, &[], spec, requirements, &Silent).ok()?;
        let shown = shown(&table, &done.anonymized.release);
        let asked = AskedOfJoin {
            requirements,
            delta_presence: spec.delta_presence,
            rows: RegisterRows::All,
            told_apart: ToldApart::ByValues(spec.unmatched()),
            previous: &[],
            limit: SuppressionLimit::share(spec.max_suppressed),
        };
        let verified =
            verify_joined(done.anonymized.release, &table, &joined, asked).unwrap_or_else(|found| panic!("{found}"));
        let presence = verified.findings().joined.as_ref().and_then(|joined| joined.presence);
        Some((shown, presence.expect("presence is counted where register rows are released")))
    }
}

/// A release as a reader has it.
fn shown(table: &Table, release: &Release) -> String {
    let mut text = String::new();
    for released in &release.tables {
        for row in 0..released.rows.len() {
            let cells = released.columns.iter().map(|column| match &column.cells {
                Cells::Recoded { labels, ids } => labels.get(ids[row]).to_owned(),
                Cells::Surrogate { ids } => ids[row].to_string(),
                Cells::Copied => {
                    table.columns[column.source].cell(released.rows[row] as usize).unwrap_or_default().to_owned()
                }
            });
            text += &format!("{}:{}\n", released.name, cells.collect::<Vec<_>>().join(","));
        }
    }
    text
}

/// Every way to choose this many persons, in every order.
fn choices(n_persons: usize, n: usize) -> Vec<Vec<usize>> {
    let Some(n) = n.checked_sub(1) else { return vec![Vec::new()] };
    let longer = |choice: Vec<usize>| {
        let others: Vec<usize> = (0..n_persons).filter(|person| !choice.contains(person)).collect();
        others.into_iter().map(move |person| [choice.as_slice(), &[person]].concat())
    };
    choices(n_persons, n).into_iter().flat_map(longer).collect()
}

/// What a reader learns who replays every private table.
#[derive(Debug, Default)]
pub struct Learned {
    /// Different releases.
    pub n_releases: usize,
    /// The largest difference, over all releases, between how sure a reader is of somebody's presence and how sure the
    /// release says that readers can be.
    pub surer_than_stated: f64,
    /// The surest that a reader can be of somebody's presence: the largest share, among the private tables that could
    /// have given a release, of tables in which that person is private.
    pub surest: f64,
    /// For each release and person, whether a reader is surer of their presence than the release says.
    pub count: Count,
}

/// Replays all private tables. `release` gives the release of a table, and how sure it says that readers can be of
/// anybody.
pub fn replay(
    register: &[Place],
    secrets: &[Secret],
    absent: &[(Place, &'static str)],
    release: impl Fn(&World<'_>) -> Option<(String, f64)>,
) -> Learned {
    let mut behind: BTreeMap<String, Vec<(Vec<usize>, f64)>> = BTreeMap::new();
    for private in choices(register.len(), secrets.len()) {
        let world = World { register, private: private.clone(), secrets, absent };
        if let Some((release, stated)) = release(&world) {
            behind.entry(release).or_default().push((private, stated));
        }
    }
    let mut learned = Learned { n_releases: behind.len(), ..Learned::default() };
    for worlds in behind.values() {
        let stated = worlds.iter().map(|(_, stated)| *stated).fold(f64::INFINITY, f64::min);
        for person in 0..register.len() {
            let n = worlds.iter().filter(|(private, _)| private.contains(&person)).count();
            let share = n as f64 / worlds.len() as f64;
            learned.surest = learned.surest.max(share);
            learned.surer_than_stated = learned.surer_than_stated.max(share - stated);
            learned.count.add(share > stated + 1e-9, 0.0);
        }
    }
    learned
}

/// Private persons with these values, whose places are those of the register.
pub fn secrets(values: &[&'static str]) -> Vec<Secret> {
    values.iter().map(|&value| Secret { value, elsewhere: None }).collect()
}

fn in_a_row(places: &[i32]) -> Vec<Place> {
    places.iter().map(|&place| vec![place]).collect()
}

/// Registers laid out so that a careless partitioner would cut by who is private.
pub fn registers() -> Vec<Vec<Place>> {
    vec![
        in_a_row(&[1, 2, 3, 4, 5, 6, 7]),
        in_a_row(&[1, 2, 2, 3, 7, 8, 9, 20]),
        vec![vec![1, 1], vec![2, 5], vec![3, 1], vec![3, 4], vec![6, 2], vec![7, 7], vec![9, 3]],
    ]
}

/// How often the face attack is right: it names each person who lies alone on a face.
pub fn face_attack(release: &Release, table: &Table, world: &World<'_>, k: u32) -> Count {
    let is_private: BTreeSet<usize> = world.private.iter().copied().collect();
    // A guess names some person of a released class.
    let share = is_private.len() as f64 / release.tables[0].rows.len() as f64;
    let mut count = Count::default();
    for face in faces(release, table, world.register, k as usize) {
        if let [person] = face.as_slice() {
            count.add(is_private.contains(person), share);
        }
    }
    count
}

/// Persons on one face of a class's box, so few that the class would still have k persons without them. An attacker who
/// believes that such rows are left out to shrink the box concludes that one of them is private.
fn faces(release: &Release, table: &Table, register: &[Place], k: usize) -> BTreeSet<Vec<usize>> {
    let released = &release.tables[0];
    let mut classes: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    for line in shown(table, release).lines().filter(|line| line.starts_with("t:")).take(released.rows.len()) {
        *classes.entry(cells_of(line)).or_default() += 1;
    }
    let mut named = BTreeSet::new();
    for (cells, n_rows) in classes.iter().filter(|(_, n_rows)| **n_rows > k) {
        let bounds: Vec<(i32, i32)> = cells[..register[0].len()].iter().map(|cell| range(cell)).collect();
        let is_inside = |place: &Place| place.iter().zip(&bounds).all(|(at, (lo, hi))| lo <= at && at <= hi);
        let inside: Vec<usize> = (0..register.len()).filter(|&person| is_inside(&register[person])).collect();
        for (column, &(lo, hi)) in bounds.iter().enumerate().filter(|(_, (lo, hi))| lo < hi) {
            for end in [lo, hi] {
                let face: Vec<usize> = inside.iter().copied().filter(|&who| register[who][column] == end).collect();
                if !face.is_empty() && face.len() <= n_rows - k {
                    named.insert(face);
                }
            }
        }
    }
    named
}

/// The cells of a line; a range has a comma of its own.
fn cells_of(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_range = false;
    for letter in line[2..].chars() {
        is_range = (is_range || letter == '[') && letter != ']';
        if letter == ',' && !is_range {
            cells.push(String::new());
        } else {
            cells.last_mut().expect("there is one from the beginning").push(letter);
        }
    }
    cells
}

fn range(cell: &str) -> (i32, i32) {
    let number = |text: &str| text.parse().expect("places are numbers");
    match cell.strip_prefix('[').and_then(|cell| cell.strip_suffix(']')).and_then(|cell| cell.split_once(',')) {
        Some((lo, hi)) => (number(lo), number(hi)),
        None => (number(cell), number(cell)),
    }
}

/// A register of this many persons with three columns, and the positions of a random tenth of them, who are private.
pub fn town(n_persons: usize) -> (Vec<Place>, Vec<usize>) {
    let mut random = Random::new(5);
    let register: Vec<Place> = (0..n_persons).map(|_| (0..3).map(|_| random.below(200) as i32).collect()).collect();
    let private = random.choose(&(0..n_persons).collect::<Vec<usize>>(), n_persons / 10);
    (register, private)
}

/// A release as the paper makes it: register rows that a class does not need are dropped where that shrinks its box.
pub fn careless(done: &AnonymizedWithRegister) -> Release {
    let mut release = done.anonymized.release.clone();
    let table = &mut release.tables[0];
    let row_of: BTreeMap<u32, usize> = table.rows.iter().copied().zip(0..).collect();
    let everybody = done.classes.iter().flat_map(|class| {
        let first = row_of[&class.microdata[0]];
        class.microdata.iter().chain(&class.register).map(move |&source| (first, source))
    });
    let everybody: Vec<(usize, u32)> = everybody.collect();
    table.rows = everybody.iter().map(|&(_, source)| source).collect();
    for column in &mut table.columns {
        if let Cells::Recoded { ids, .. } | Cells::Surrogate { ids } = &mut column.cells {
            *ids = everybody.iter().map(|&(first, _)| ids[first]).collect();
        }
    }
    release
}

/// A spec for a register that does not hide presence: k, and classes made for the private persons alone.
fn fitted(k: u32) -> Spec {
    let mut spec = Spec { algorithm: Algorithm::Mondrian, ..Spec::new(k) };
    spec.register.release = RegisterRows::Microdata;
    spec
}

fn faces_of_boxes() -> Vec<Side> {
    const K: u32 = 9;
    let (register, private) = town(4_000);
    let secrets = secrets(&["a", "b", "c", "d"].repeat(100));
    let world = World { register: &register, private, secrets: &secrets, absent: &[] };
    let (table, joined) = world.tables();
    let made = |spec: &Spec| {
        anonymize_with_register(&table, &joined, &[], spec, &[Requirement::K(K)], &Silent).expect("k is reachable")
    };
    let count = |release: &Release| face_attack(release, &table, &world, K);
    let mondrian = Spec { algorithm: Algorithm::Mondrian, ..Spec::new(K) };
    let bounded = Spec { delta_presence: Some((0.0, 0.3)), ..mondrian.clone() };
    vec![
        Side::naive("rows that are not needed dropped, as in [SMP10]", count(&careless(&made(&fitted(K))))),
        Side::kohort("`k = 9`", Promise::Chance, count(&made(&mondrian).anonymized.release)),
        Side::kohort("`delta_presence = [0, 0.3]`", Promise::Share(0.3), count(&made(&bounded).anonymized.release)),
    ]
}

/// What a careless publisher releases and claims: the largest share of private persons in a class.
fn careless_release(world: &World<'_>, spec: &Spec) -> Option<(String, f64)> {
    let (table, joined) = world.tables();
    let done = anonymize_with_register(&table, &joined, &[], spec, &[Requirement::K(spec.k)], &Silent).ok()?;
    let shares = done.classes.iter().map(|class| class.microdata.len() as f64 / class.n_persons() as f64);
    Some((shown(&table, &careless(&done)), shares.fold(0.0, f64::max)))
}

fn replay_of_memberships() -> Vec<Side> {
    let secrets = secrets(&["a", "b", "b"]);
    let count = |release: &dyn Fn(&World<'_>) -> Option<(String, f64)>| {
        let mut count = Count::default();
        for register in registers() {
            let found = replay(&register, &secrets, &[], release).count;
            count = Count { tried: count.tried + found.tried, succeeded: count.succeeded + found.succeeded, ..count };
        }
        count
    };
    let ours = |delta_presence: Option<(f64, f64)>| {
        let spec = Spec { delta_presence, algorithm: Algorithm::Mondrian, ..Spec::new(3) };
        // If a bound was asked for, the release states the bound.
        let stated = |highest: f64| delta_presence.map_or(highest, |(_, most)| most);
        count(&|world| {
            let (release, presence) = world.release(&spec, &[Requirement::K(3)])?;
            Some((release, stated(presence.highest)))
        })
    };
    vec![
        Side::naive(
            "rows that are not needed dropped, as in [SMP10]",
            count(&|world| careless_release(world, &fitted(3))),
        ),
        Side::kohort("`k = 3`", Promise::Nobody, ours(None)),
        Side::kohort("`delta_presence = [0, 0.5]`", Promise::Nobody, ours(Some((0.0, 0.5)))),
    ]
}
