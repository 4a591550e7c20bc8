//! Random steps that change the table and the choices, and the model of both.

use std::collections::BTreeMap;

use proptest::prelude::*;

const AGES: [Option<i64>; 6] = [Some(21), Some(24), Some(36), Some(52), Some(57), None];
/// The last is unknown to the DGH.
const ZIPS: [Option<&str>; 5] = [Some("0851"), Some("0852"), Some("9911"), None, Some("7777")];
const DISEASES: [Option<&str>; 4] = [Some("flu"), Some("cold"), Some("gout"), None];
const N_NAMES: u8 = 14;
pub(crate) const EVERYBODY: &str = "*";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Patient {
    pub(crate) age: Option<i64>,
    pub(crate) zip: Option<&'static str>,
    pub(crate) disease: Option<&'static str>,
    pub(crate) ward: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) k: u32,
    pub(crate) level: u8,
    pub(crate) shows_age: bool,
    pub(crate) shows_disease: bool,
    /// The last day on which the ward is shown, counted from the first of January 2026.
    pub(crate) ward_until: u32,
}

/// A day after every history.
const FOREVER: u32 = 30;

impl Choice {
    /// Somebody who refuses nothing.
    pub(crate) fn open(k: u32, level: u8) -> Choice {
        Choice { k, level, shows_age: true, shows_disease: true, ward_until: FOREVER }
    }

    /// The choice as cells of the table of choices, after the name.
    pub(crate) fn cells(&self) -> [String; 5] {
        let word = |shows: bool| if shows { "yes" } else { "no" }.to_owned();
        let until = format!("2026-01-{:02}", self.ward_until + 1);
        [self.k.to_string(), self.level.to_string(), word(self.shows_age), word(self.shows_disease), until]
    }

    fn literals(&self) -> String {
        let [k, level, age, disease, ward] = self.cells();
        format!("{k}, {level}, '{age}', '{disease}', '{ward}'")
    }

    fn assignments(&self) -> String {
        let [k, level, age, disease, ward] = self.cells();
        format!("k = {k}, level = {level}, age_op = '{age}', disease_op = '{disease}', ward_until = '{ward}'")
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Change {
    Insert(Vec<(u8, Patient)>),
    Delete(Vec<u8>),
    Update(u8, Patient),
    Rename(u8, u8),
    Sicken(Option<&'static str>, Option<&'static str>),
    Choose(Option<u8>, Choice),
    Choose2(Option<u8>, Choice),
    ChooseNothing(Option<u8>),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    Commit,
    Rollback,
}

impl End {
    pub(crate) fn statement(self) -> &'static str {
        match self {
            End::Commit => "COMMIT",
            End::Rollback => "ROLLBACK",
        }
    }

    pub(crate) fn forgets(self) -> bool {
        matches!(self, End::Rollback)
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Alone(Change),
    Together(Vec<Change>, End),
    Reopen,
    Refresh,
    RefreshPart,
    ForceRefresh,
    /// Sets the clock to a day, which may be in the past.
    Day(u32),
}

/// All days of histories are before this day.
const LAST_DAY: u32 = 12;

fn name(number: u8) -> String {
    format!("p{number}")
}

fn person(number: Option<u8>) -> String {
    number.map_or_else(|| EVERYBODY.to_owned(), name)
}

fn literal(text: Option<&str>) -> String {
    text.map_or_else(|| "NULL".to_owned(), |text| format!("'{text}'"))
}

fn cell(text: Option<&str>) -> String {
    text.unwrap_or("NULL").to_owned()
}

impl Patient {
    fn literals(&self) -> String {
        let age = self.age.map_or_else(|| "NULL".to_owned(), |age| age.to_string());
        format!("{age}, {}, {}, {}", literal(self.zip), literal(self.disease), literal(self.ward))
    }

    pub(crate) fn cells(&self) -> [String; 4] {
        let age = self.age.map_or_else(|| "NULL".to_owned(), |age| age.to_string());
        [age, cell(self.zip), cell(self.disease), cell(self.ward)]
    }
}

impl Change {
    pub(crate) fn statement(&self) -> String {
        match self {
            Change::Insert(patients) => {
                let rows =
                    patients.iter().map(|(number, patient)| format!("('{}', {})", name(*number), patient.literals()));
                format!("INSERT INTO patient VALUES {}", rows.collect::<Vec<_>>().join(", "))
            }
            Change::Delete(numbers) => {
                let names: Vec<String> = numbers.iter().map(|&number| format!("'{}'", name(number))).collect();
                format!("DELETE FROM patient WHERE name IN ({})", names.join(", "))
            }
            Change::Update(number, patient) => {
                let age = patient.age.map_or_else(|| "NULL".to_owned(), |age| age.to_string());
                format!(
                    "UPDATE patient SET age = {age}, zip = {}, disease = {}, ward = {} WHERE name = '{}'",
                    literal(patient.zip),
                    literal(patient.disease),
                    literal(patient.ward),
                    name(*number)
                )
            }
            Change::Rename(old, new) => {
                format!("UPDATE patient SET name = '{}' WHERE name = '{}'", name(*new), name(*old))
            }
            Change::Sicken(old, new) => {
                let condition = old.map_or_else(|| "IS NULL".to_owned(), |old| format!("= '{old}'"));
                format!("UPDATE patient SET disease = {} WHERE disease {condition}", literal(*new))
            }
            Change::Choose(number, choice) => {
                format!("INSERT INTO choice VALUES ('{}', {})", person(*number), choice.literals())
            }
            Change::Choose2(number, choice) => {
                format!("UPDATE choice SET {} WHERE name = '{}'", choice.assignments(), person(*number))
            }
            Change::ChooseNothing(number) => format!("DELETE FROM choice WHERE name = '{}'", person(*number)),
        }
    }
}

/// The model of the tables.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) patients: BTreeMap<String, Patient>,
    pub(crate) choices: BTreeMap<String, Choice>,
}

impl Model {
    /// Three classes of three persons, for which every definition can be reached.
    pub(crate) fn at_first() -> Model {
        let mut model = Model { patients: BTreeMap::new(), choices: BTreeMap::new() };
        for number in 0..9u8 {
            let place = usize::from(number / 3);
            let patient = Patient {
                age: [Some(21), Some(36), Some(52)][place],
                zip: ZIPS[place],
                disease: DISEASES[usize::from(number) % 3],
                ward: Some("north"),
            };
            model.patients.insert(name(number), patient);
        }
        model.choices.insert(EVERYBODY.to_owned(), Choice::open(2, 0));
        model.choices.insert(name(1), Choice::open(3, 1));
        model
    }

    /// The same persons, each with a choice.
    pub(crate) fn with_choices(choices: Vec<Choice>) -> Model {
        let mut model = Model::at_first();
        model.choices.extend((0..).map(name).zip(choices));
        model
    }

    pub(crate) fn tables(&self) -> String {
        let patients = self.patients.iter().map(|(name, patient)| format!("('{name}', {})", patient.literals()));
        let choices = self.choices.iter().map(|(name, choice)| format!("('{name}', {})", choice.literals()));
        format!(
            "CREATE TABLE patient (name TEXT PRIMARY KEY, age INT, zip TEXT, disease TEXT, ward TEXT);
             CREATE TABLE choice (name TEXT PRIMARY KEY, k INT, level INT, age_op TEXT, disease_op TEXT, ward_until TEXT);
             INSERT INTO patient VALUES {};
             INSERT INTO choice VALUES {};",
            patients.collect::<Vec<_>>().join(", "),
            choices.collect::<Vec<_>>().join(", ")
        )
    }

    /// Changes the model; `false` if the change is not possible.
    pub(crate) fn apply(&mut self, change: &Change) -> bool {
        match change {
            Change::Insert(patients) => {
                let mut all = self.patients.clone();
                for (number, patient) in patients {
                    if all.insert(name(*number), patient.clone()).is_some() {
                        return false;
                    }
                }
                self.patients = all;
            }
            Change::Delete(numbers) => {
                self.patients.retain(|known, _| !numbers.iter().any(|&number| name(number) == *known));
            }
            Change::Update(number, patient) => {
                if let Some(known) = self.patients.get_mut(&name(*number)) {
                    *known = patient.clone();
                }
            }
            Change::Rename(old, new) => {
                let (old, new) = (name(*old), name(*new));
                if old != new && self.patients.contains_key(&old) {
                    if self.patients.contains_key(&new) {
                        return false;
                    }
                    let patient = self.patients.remove(&old).unwrap();
                    self.patients.insert(new, patient);
                }
            }
            Change::Sicken(old, new) => {
                self.patients.values_mut().filter(|patient| patient.disease == *old).for_each(|p| p.disease = *new);
            }
            Change::Choose(number, choice) => {
                if self.choices.contains_key(&person(*number)) {
                    return false;
                }
                self.choices.insert(person(*number), *choice);
            }
            Change::Choose2(number, choice) => {
                self.choices.entry(person(*number)).and_modify(|known| *known = *choice);
            }
            Change::ChooseNothing(number) => drop(self.choices.remove(&person(*number))),
        }
        true
    }

    pub(crate) fn patients(&self) -> Vec<Vec<String>> {
        let row = |(name, patient): (&String, &Patient)| std::iter::once(name.clone()).chain(patient.cells()).collect();
        let mut rows: Vec<Vec<String>> = self.patients.iter().map(row).collect();
        rows.sort();
        rows
    }

    pub(crate) fn choice(&self, name: &str) -> Option<Choice> {
        self.choices.get(name).or_else(|| self.choices.get(EVERYBODY)).copied()
    }
}

pub(crate) mod changes {
    use super::{Change, Choice, Patient};

    /// Inserts six persons into the youngest class, two with each disease.
    pub(crate) fn crowd() -> Change {
        let patient = |disease: &'static str| {
            let (age, zip, ward) = (Some(21), Some("0851"), Some("north"));
            Patient { age, zip, disease: Some(disease), ward }
        };
        let diseases = ["flu", "cold", "gout", "flu", "cold", "gout"];
        Change::Insert((20..).zip(diseases.map(patient)).collect())
    }

    /// Sets the k of everybody without an own choice.
    pub(crate) fn everybody(k: u32) -> Change {
        Change::Choose2(None, Choice::open(k, 0))
    }
}

fn patient() -> impl Strategy<Value = Patient> {
    let age = prop_oneof![8 => 0..5usize, 1 => Just(5usize)];
    let zip = prop_oneof![12 => 0..3usize, 1 => Just(3usize), 1 => Just(4usize)];
    let disease = prop_oneof![8 => 0..3usize, 1 => Just(3usize)];
    (age, zip, disease, any::<bool>()).prop_map(|(age, zip, disease, is_north)| Patient {
        age: AGES[age],
        zip: ZIPS[zip],
        disease: DISEASES[disease],
        ward: Some(if is_north { "north" } else { "south" }),
    })
}

fn choice(k: impl Strategy<Value = u32>) -> impl Strategy<Value = Choice> {
    let shows = || prop::bool::weighted(0.75);
    let until = prop_oneof![2 => Just(FOREVER), 3 => 0..LAST_DAY];
    (k, 0..3u8, shows(), shows(), until).prop_map(|(k, level, shows_age, shows_disease, ward_until)| Choice {
        k,
        level,
        shows_age,
        shows_disease,
        ward_until,
    })
}

fn change() -> impl Strategy<Value = Change> {
    let number = || 0..N_NAMES;
    let somebody = || prop_oneof![4 => (0..N_NAMES).prop_map(Some), 1 => Just(None)];
    let choice = || choice(prop_oneof![Just(0u32), Just(1), Just(2), Just(2), Just(3)]);
    let disease = || prop_oneof![4 => 0..3usize, 1 => Just(3usize)].prop_map(|at| DISEASES[at]);
    prop_oneof![
        6 => prop::collection::vec((number(), patient()), 1..5).prop_map(Change::Insert),
        4 => prop::collection::vec(number(), 1..4).prop_map(Change::Delete),
        2 => (number(), patient()).prop_map(|(number, patient)| Change::Update(number, patient)),
        1 => (number(), number()).prop_map(|(old, new)| Change::Rename(old, new)),
        1 => (disease(), disease()).prop_map(|(old, new)| Change::Sicken(old, new)),
        1 => (somebody(), choice()).prop_map(|(number, choice)| Change::Choose(number, choice)),
        2 => (somebody(), choice()).prop_map(|(number, choice)| Change::Choose2(number, choice)),
        1 => somebody().prop_map(Change::ChooseNothing),
    ]
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let end = || prop_oneof![3 => Just(End::Commit), 1 => Just(End::Rollback)];
    let step = prop_oneof![
        8 => change().prop_map(Step::Alone),
        5 => (prop::collection::vec(change(), 1..5), end()).prop_map(|(changes, end)| Step::Together(changes, end)),
        2 => Just(Step::Reopen),
        1 => Just(Step::Refresh),
        1 => Just(Step::RefreshPart),
        1 => Just(Step::ForceRefresh),
        3 => (0..LAST_DAY).prop_map(Step::Day),
    ];
    prop::collection::vec(step, 1..14)
}

/// The choices of the first persons, who all ask for k = 2.
pub(crate) fn first_choices() -> impl Strategy<Value = Vec<Choice>> {
    prop::collection::vec(choice(Just(2u32)), 9)
}

/// Steps that move the clock, change choices, and remove persons.
pub(crate) fn undecided_steps() -> impl Strategy<Value = Vec<Step>> {
    let mind = (0..9u8, choice(Just(2u32))).prop_map(|(number, choice)| Change::Choose2(Some(number), choice));
    let step = prop_oneof![
        4 => (0..LAST_DAY).prop_map(Step::Day),
        2 => mind.prop_map(Step::Alone),
        2 => prop::collection::vec(0..9u8, 2..5).prop_map(|numbers| Step::Alone(Change::Delete(numbers))),
        2 => change().prop_map(Step::Alone),
        2 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 4..14)
}
