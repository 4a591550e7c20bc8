//! Somebody who has the release, the register, the algorithm and k: what do they learn about who is private?
//!
//! First every private table that a small register allows is replayed, so that the share of them in which somebody is
//! private is known exactly. Then the face attack is run on tables of ordinary size.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::{BTreeMap, BTreeSet};

use kohort_core::register::{AnonymizedWithRegister, anonymize_with_register};
use kohort_model::spec::{Algorithm, RegisterMethod, RegisterRows, Unmatched};
use kohort_model::{
    Cells, Column, InRegister, JoinedRegister, Presence, Release, Requirement, Role, Silent, Spec, Table, ValueType,
};
use kohort_testkit::random::Random;
use kohort_verify::{AskedOfJoin, SuppressionLimit, ToldApart, Violation, Violations, verify_joined};

const METHODS: [RegisterMethod; 2] = [RegisterMethod::Refine, RegisterMethod::Direct];

/// Where somebody is.
type Place = Vec<i32>;

/// What a private person brings along, whoever it is.
#[derive(Clone, Debug)]
struct Secret {
    value: &'static str,
    /// Where the private table says they are, where that is not where the register says.
    elsewhere: Option<Place>,
}

/// A register, and private persons: some of the register, some of nowhere.
#[derive(Clone, Debug)]
struct World<'a> {
    register: &'a [Place],
    /// Who of the register is private, a person per secret.
    private: Vec<usize>,
    secrets: &'a [Secret],
    /// Private persons whom the register does not have.
    absent: &'a [(Place, &'static str)],
}

fn quasi(places: &[Place]) -> Vec<Column> {
    let column = |column: usize| {
        let texts: Vec<String> = places.iter().map(|place| place[column].to_string()).collect();
        let cells = texts.iter().map(|text| Some(text.as_str()));
        Column::from_cells(&format!("x{column}"), Role::Quasi, cells).typed(ValueType::Integer)
    };
    (0..places[0].len()).map(column).collect()
}

impl World<'_> {
    /// The private table, and its join with the register.
    fn tables(&self) -> (Table, JoinedRegister) {
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

    /// What is released, and what the verifier says of presence; `None` where nothing is.
    fn release(&self, spec: &Spec, requirements: &[Requirement]) -> Option<(String, Presence)> {
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
        let verified = verify_joined(done.anonymized.release, &table, &joined, asked).unwrap();
        Some((shown, verified.findings().joined.as_ref().unwrap().presence.unwrap()))
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

/// Every way to choose so many persons, in every order.
fn choices(n_persons: usize, n: usize) -> Vec<Vec<usize>> {
    let Some(n) = n.checked_sub(1) else { return vec![Vec::new()] };
    let longer = |choice: Vec<usize>| {
        let others: Vec<usize> = (0..n_persons).filter(|person| !choice.contains(person)).collect();
        others.into_iter().map(move |person| [choice.as_slice(), &[person]].concat())
    };
    choices(n_persons, n).into_iter().flat_map(longer).collect()
}

/// What a reader who replays every private table learns.
#[derive(Debug, Default)]
struct Learned {
    n_releases: usize,
    /// By how much somebody's presence is surer than the verifier says, over all releases.
    surer_than_stated: f64,
    /// The share of private tables behind a release in which one person is private: the largest.
    surest: f64,
}

fn learned(register: &[Place], secrets: &[Secret], absent: &[(Place, &'static str)], spec: &Spec) -> Learned {
    learned_of(register, secrets, absent, spec, &[Requirement::K(spec.k)])
}

fn learned_of(
    register: &[Place],
    secrets: &[Secret],
    absent: &[(Place, &'static str)],
    spec: &Spec,
    asked: &[Requirement],
) -> Learned {
    let mut behind: BTreeMap<String, Vec<(Vec<usize>, f64)>> = BTreeMap::new();
    for private in choices(register.len(), secrets.len()) {
        let world = World { register, private: private.clone(), secrets, absent };
        if let Some((release, presence)) = world.release(spec, asked) {
            behind.entry(release).or_default().push((private, presence.highest));
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
        }
    }
    learned
}

fn spec(k: u32, algorithm: Algorithm, method: RegisterMethod, unmatched: Unmatched) -> Spec {
    let mut spec = Spec::new(k);
    spec.algorithm = algorithm;
    spec.register.method = method;
    spec.register.unmatched = unmatched;
    spec
}

fn secrets(values: &[&'static str]) -> Vec<Secret> {
    values.iter().map(|&value| Secret { value, elsewhere: None }).collect()
}

fn in_a_row(places: &[i32]) -> Vec<Place> {
    places.iter().map(|&place| vec![place]).collect()
}

const ALGORITHMS: [Algorithm; 5] =
    [Algorithm::Mondrian, Algorithm::Auto, Algorithm::TopDown, Algorithm::Cluster, Algorithm::Datafly];

/// Registers that are laid out so that who is private would steer where to cut.
fn registers() -> Vec<Vec<Place>> {
    vec![
        in_a_row(&[1, 2, 3, 4, 5, 6, 7]),
        in_a_row(&[1, 2, 2, 3, 7, 8, 9, 20]),
        vec![vec![1, 1], vec![2, 5], vec![3, 1], vec![3, 4], vec![6, 2], vec![7, 7], vec![9, 3]],
    ]
}

#[test]
fn replaying_every_private_table_makes_nobody_surer_than_the_manifest_says() {
    for register in registers() {
        for algorithm in ALGORITHMS {
            for method in METHODS {
                let found =
                    learned(&register, &secrets(&["a", "b", "b"]), &[], &spec(3, algorithm, method, Unmatched::Count));
                assert!(found.n_releases > 0);
                assert!(found.surer_than_stated < 1e-9, "{algorithm:?} {method:?} {found:?}");
            }
        }
    }
}

#[test]
fn replaying_every_private_table_makes_nobody_surer_than_was_asked() {
    for register in registers() {
        for algorithm in ALGORITHMS {
            for method in METHODS {
                let mut spec = spec(3, algorithm, method, Unmatched::Count);
                spec.delta_presence = Some((0.0, 0.5));
                let found = learned(&register, &secrets(&["a", "b", "b"]), &[], &spec);
                assert!(found.n_releases > 0, "{algorithm:?} {method:?}");
                assert!(found.surest <= 0.5 + 1e-9, "{algorithm:?} {method:?} {found:?}");
                assert!(found.surer_than_stated < 1e-9, "{algorithm:?} {method:?} {found:?}");
            }
        }
    }
}

#[test]
fn people_outside_of_the_register_and_people_who_moved_give_nobody_away() {
    for register in registers() {
        let far = vec![30; register[0].len()];
        // Nobody of the register is there: without a key it would be the same person.
        let near = vec![0; register[0].len()];
        let absent = [(near.clone(), "c"), (far.clone(), "a")];
        let mut moved = secrets(&["a", "b"]);
        moved[0].elsewhere = Some(near);
        let mut moved_far = secrets(&["a", "b"]);
        moved_far[1].elsewhere = Some(far);
        for (algorithm, method) in [Algorithm::Mondrian, Algorithm::Auto, Algorithm::TopDown].map(both).concat() {
            for (secrets, absent, unmatched) in [
                (secrets(&["a", "b"]), &absent[..], Unmatched::Count),
                (secrets(&["a", "b"]), &absent[..], Unmatched::Doubt),
                (moved.clone(), &absent[..1], Unmatched::Count),
                (moved_far.clone(), &absent, Unmatched::Count),
            ] {
                let found = learned(&register, &secrets, absent, &spec(3, algorithm, method, unmatched));
                assert!(found.n_releases > 0, "{algorithm:?} {method:?}");
                assert!(found.surer_than_stated < 1e-9, "{algorithm:?} {method:?} {unmatched:?} {found:?}");
            }
        }
    }
}

fn both(algorithm: Algorithm) -> [(Algorithm, RegisterMethod); 2] {
    METHODS.map(|method| (algorithm, method))
}

#[test]
fn people_who_are_left_out_give_nobody_away() {
    // Half of those with the common value can be in no group.
    for register in registers() {
        for (algorithm, method) in both(Algorithm::Mondrian) {
            let mut spec = spec(3, algorithm, method, Unmatched::Count);
            spec.max_suppressed = 0.5;
            let alpha = Requirement::Alpha { column: "value".to_owned(), alpha: 0.5 };
            let asked = [Requirement::K(2), alpha];
            let found = learned_of(&register, &secrets(&["a", "a", "a", "b", "c"]), &[], &spec, &asked);
            assert!(found.n_releases > 0, "{algorithm:?} {method:?}");
            assert!(found.surer_than_stated < 1e-9, "{algorithm:?} {method:?} {found:?}");
        }
    }
}

/// Persons on one face of a class's box who are so few that the class would do without them: an attacker who believes
/// that rows are left out where that shrinks the box concludes that one of them is private.
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

/// The cells of a line, where ranges have commas of their own.
fn cells_of(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_range = false;
    for letter in line[2..].chars() {
        is_range = (is_range || letter == '[') && letter != ']';
        if letter == ',' && !is_range { cells.push(String::new()) } else { cells.last_mut().unwrap().push(letter) }
    }
    cells
}

fn range(cell: &str) -> (i32, i32) {
    let number = |text: &str| text.parse().unwrap();
    match cell.strip_prefix('[').and_then(|cell| cell.strip_suffix(']')).and_then(|cell| cell.split_once(',')) {
        Some((lo, hi)) => (number(lo), number(hi)),
        None => (number(cell), number(cell)),
    }
}

/// So many persons of three columns, a tenth of them private.
fn town(n_persons: usize) -> (Vec<Place>, Vec<usize>) {
    let mut random = Random::new(5);
    let register: Vec<Place> = (0..n_persons).map(|_| (0..3).map(|_| random.below(200) as i32).collect()).collect();
    let private = random.choose(&(0..n_persons).collect::<Vec<usize>>(), n_persons / 10);
    (register, private)
}

#[test]
fn the_face_attack_is_right_no_more_often_than_a_guess() {
    let (register, private) = town(4_000);
    let secrets = secrets(&["a", "b", "c", "d"].repeat(100));
    let world = World { register: &register, private, secrets: &secrets, absent: &[] };
    let is_private: BTreeSet<usize> = world.private.iter().copied().collect();
    let (table, joined) = world.tables();
    for delta_presence in [None, Some((0.0, 0.3))] {
        for (algorithm, k) in [(Algorithm::Mondrian, 9), (Algorithm::Auto, 9), (Algorithm::TopDown, 9)] {
            for method in METHODS {
                let mut spec = spec(k, algorithm, method, Unmatched::Count);
                spec.delta_presence = delta_presence;
                let done = anonymize_with_register(&table, &joined, &[], &spec, &[Requirement::K(k)], &Silent).unwrap();
                let claims = faces(&done.anonymized.release, &table, &register, k as usize);
                let named: Vec<usize> = claims.iter().filter(|face| face.len() == 1).map(|face| face[0]).collect();
                let right = named.iter().filter(|person| is_private.contains(person)).count();
                // A guess names any person of a released class.
                let n_rows = done.anonymized.release.tables[0].rows.len();
                let share = 400.0 / n_rows as f64;
                let guessed = share * named.len() as f64;
                assert!(named.len() >= 30, "{algorithm:?} {method:?}: only {} persons are named", named.len());
                assert!(
                    (right as f64) < guessed + 4.0 * (guessed + 1.0).sqrt(),
                    "{algorithm:?} {method:?}: {right} of {} named persons are private, {guessed:.1} by a guess",
                    named.len()
                );
            }
        }
    }
}

/// A release as the paper makes it: register rows that a class does not need are dropped where that shrinks its box.
fn careless(done: &AnonymizedWithRegister) -> Release {
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

#[test]
fn the_verifier_finds_that_boxes_were_fitted_to_the_private_persons() {
    let (register, private) = town(4_000);
    let secrets = secrets(&["a", "b", "c", "d"].repeat(100));
    let world = World { register: &register, private, secrets: &secrets, absent: &[] };
    let (table, joined) = world.tables();
    let requirements = [Requirement::K(9)];
    let presence_of = |release: Release, delta_presence| {
        let rows = RegisterRows::All;
        let told_apart = ToldApart::ByValues(Unmatched::Count);
        let asked = AskedOfJoin {
            requirements: &requirements,
            delta_presence,
            rows,
            told_apart,
            previous: &[],
            limit: SuppressionLimit::NOBODY,
        };
        let verified = verify_joined(release, &table, &joined, asked)?;
        Ok::<Presence, Violations>(verified.findings().joined.as_ref().unwrap().presence.unwrap())
    };
    // 22 persons lie alone on a face of their box, and all 22 are private; chance makes it 7.
    let mut fitted = spec(9, Algorithm::Mondrian, RegisterMethod::Refine, Unmatched::Count);
    fitted.register.release = RegisterRows::Microdata;
    let done = anonymize_with_register(&table, &joined, &[], &fitted, &requirements, &Silent).unwrap();
    let violations = presence_of(careless(&done), Some((0.0, 0.99))).unwrap_err();
    assert!(matches!(violations.0[..], [Violation::Presence { .. }]), "{violations:?}");

    for method in METHODS {
        let mut spec = spec(9, Algorithm::Mondrian, method, Unmatched::Count);
        spec.delta_presence = Some((0.0, 0.3));
        let done = anonymize_with_register(&table, &joined, &[], &spec, &requirements, &Silent).unwrap();
        let presence = presence_of(done.anonymized.release, spec.delta_presence).unwrap();
        assert!(presence.highest <= 0.3 && presence.average <= 0.3, "{method:?} {presence:?}");
    }
}
