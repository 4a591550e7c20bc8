//! [`Act`]: one step of an engine. [`World`]: a model of what the engine should hold. [`History`]: random acts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use kohort_crashkit::Chance;

use super::Found;
use crate::histories::steps::{Change, Choice, End, Model, Patient};
use crate::histories::{Asked, DEFINITIONS};

const AGES: [i64; 5] = [21, 24, 36, 52, 57];
const ZIPS: [&str; 3] = ["0851", "0852", "9911"];
const DISEASES: [&str; 3] = ["flu", "cold", "gout"];

/// The views of these histories: `v` asks for two diseases in every class, `w` for what each person chooses.
pub(super) fn asked_of(view: &str) -> Asked {
    if view == "v" { DEFINITIONS[3] } else { DEFINITIONS[2] }
}

/// One thing that an engine does and acknowledges.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    CreateTable(&'static str),
    CreateHierarchy(&'static str),
    FillHierarchy(&'static str),
    DropHierarchy(&'static str),
    Change(Change),
    Together(Vec<Change>, End),
    /// New patients from a file.
    Copy(Vec<(u8, Patient)>),
    CreateView(&'static str, Asked),
    DropView(&'static str),
    Refresh(&'static str),
    /// The engine is closed and opened again.
    Reopen,
}

impl Act {
    /// The statements; `file` is the one of [`Act::file`].
    pub(crate) fn sql(&self, file: &Path) -> String {
        match self {
            Act::CreateTable("patient") => {
                "CREATE TABLE patient (name TEXT PRIMARY KEY, age INT, zip TEXT, disease TEXT, ward TEXT)".to_owned()
            }
            Act::CreateTable(_) => {
                let columns = "name TEXT PRIMARY KEY, k INT, level INT, age_op TEXT, disease_op TEXT, ward_until TEXT";
                format!("CREATE TABLE choice ({columns})")
            }
            Act::CreateHierarchy("age") => "CREATE DGH age FROM STEPS (10, 50)".to_owned(),
            Act::CreateHierarchy(name) => format!("CREATE DGH {name}"),
            Act::FillHierarchy(name) => format!("INSERT INTO DGH {name} VALUES {}", pairs(name).0),
            Act::DropHierarchy(name) => format!("DROP DGH {name}"),
            Act::Change(change) => change.statement(),
            Act::Together(changes, end) => {
                let statements: Vec<String> = changes.iter().map(Change::statement).collect();
                format!("BEGIN; {}; {}", statements.join("; "), end.statement())
            }
            Act::Copy(_) => format!("COPY patient FROM '{}'", file.display()),
            Act::CreateView(name, asked) => asked.view(name, ""),
            Act::DropView(name) => format!("DROP ANONYMIZATION_VIEW {name}"),
            Act::Refresh(name) => format!("REFRESH ANONYMIZATION_VIEW {name} FORCE"),
            Act::Reopen => String::new(),
        }
    }

    /// The contents of the file that the act reads.
    pub(crate) fn file(&self) -> Option<String> {
        let Act::Copy(patients) = self else { return None };
        let line = |(number, patient): &(u8, Patient)| format!("p{number},{}\n", patient.cells().join(","));
        Some("name,age,zip,disease,ward\n".to_owned() + &patients.iter().map(line).collect::<String>())
    }
}

/// The pairs of a DGH, and the number of its leaves.
fn pairs(name: &str) -> (&'static str, usize) {
    match name {
        "zip" => ("('0851', '085*'), ('0852', '085*'), ('9911', '991*'), ('085*', '*'), ('991*', '*')", 3),
        "disease" => ("('flu', 'virus'), ('cold', 'virus'), ('virus', 'any'), ('gout', 'any')", 3),
        _ => ("('north', '*'), ('south', '*')", 2),
    }
}

/// A model of what an engine should hold.
#[derive(Clone, Debug)]
pub(crate) struct World {
    tables: BTreeSet<&'static str>,
    pub(crate) model: Model,
    dghs: BTreeMap<&'static str, String>,
    pub(crate) views: BTreeMap<&'static str, Asked>,
}

impl World {
    /// An empty engine.
    pub(crate) fn empty() -> World {
        let model = Model { patients: BTreeMap::new(), choices: BTreeMap::new() };
        World { tables: BTreeSet::new(), model, dghs: BTreeMap::new(), views: BTreeMap::new() }
    }

    pub(crate) fn apply(&mut self, act: &Act) {
        match act {
            Act::CreateTable(name) => drop(self.tables.insert(name)),
            Act::CreateHierarchy(name) => {
                let shown = if *name == "age" { "NULL" } else { "0" };
                self.dghs.insert(name, shown.to_owned());
            }
            Act::FillHierarchy(name) => drop(self.dghs.insert(name, pairs(name).1.to_string())),
            Act::DropHierarchy(name) => drop(self.dghs.remove(name)),
            Act::Change(change) => assert!(self.model.apply(change), "{change:?} works"),
            Act::Together(changes, end) => {
                let before = self.model.clone();
                changes.iter().for_each(|change| assert!(self.model.apply(change), "{change:?} works"));
                if end.forgets() {
                    self.model = before;
                }
            }
            Act::Copy(patients) => assert!(self.model.apply(&Change::Insert(patients.clone())), "they are new"),
            Act::CreateView(name, asked) => drop(self.views.insert(name, *asked)),
            Act::DropView(name) => drop(self.views.remove(name)),
            Act::Refresh(_) | Act::Reopen => {}
        }
    }

    pub(crate) fn expected(&self) -> Found {
        let rows = |table: &&'static str| match *table {
            "patient" => self.model.patients(),
            _ => {
                let row = |(name, choice): (&String, &Choice)| {
                    std::iter::once(name.clone()).chain(choice.cells()).collect::<Vec<String>>()
                };
                self.model.choices.iter().map(row).collect()
            }
        };
        Found {
            tables: self.tables.iter().map(|table| ((*table).to_owned(), rows(table))).collect(),
            dghs: self.dghs.iter().map(|(name, values)| ((*name).to_owned(), values.clone())).collect(),
            views: self.views.keys().map(|&name| name.to_owned()).collect(),
        }
    }
}

fn patient(place: usize, disease: usize) -> Patient {
    let zip = [0, 1, 2, 2, 2][place % AGES.len()];
    Patient {
        age: Some(AGES[place % AGES.len()]),
        zip: Some(ZIPS[zip]),
        disease: Some(DISEASES[disease % 3]),
        ward: Some("north"),
    }
}

/// This many new people, spread over the places in turn.
fn crowd(first: u8, n_people: u8, n_places: u8) -> Vec<(u8, Patient)> {
    (0..n_people).map(|number| (first + number, patient((number % n_places).into(), (number / 2).into()))).collect()
}

/// The tables, the DGHs, the first people and two views.
fn beginning() -> Vec<Act> {
    vec![
        Act::CreateTable("patient"),
        Act::CreateTable("choice"),
        Act::CreateHierarchy("age"),
        Act::CreateHierarchy("zip"),
        Act::FillHierarchy("zip"),
        Act::CreateHierarchy("disease"),
        Act::FillHierarchy("disease"),
        Act::Change(Change::Insert(crowd(0, 12, 3))),
        Act::Change(Change::Choose(None, Choice::open(2, 0))),
        Act::Change(Change::Choose(Some(1), Choice::open(3, 1))),
        Act::CreateView("v", asked_of("v")),
        Act::CreateView("w", asked_of("w")),
    ]
}

/// A history that contains every kind of act.
pub(crate) fn short_history() -> Vec<Act> {
    let refuses = Choice { shows_disease: false, ..Choice::open(2, 0) };
    let everyday = vec![
        Act::Change(Change::Insert(crowd(20, 1, 1))),
        Act::Together(
            vec![Change::Insert(crowd(21, 5, 2)), Change::Delete(vec![0]), Change::Update(3, patient(1, 2))],
            End::Commit,
        ),
        Act::Change(Change::Update(4, patient(0, 1))),
        Act::Together(vec![Change::Delete(vec![5, 6]), Change::Insert(crowd(40, 2, 1))], End::Rollback),
        Act::Copy(crowd(50, 9, 3)),
        Act::Change(Change::Choose(Some(7), refuses)),
        Act::CreateHierarchy("ward"),
        Act::Reopen,
        Act::FillHierarchy("ward"),
        Act::Change(Change::Delete(vec![1, 2, 50, 51])),
        Act::Refresh("v"),
        Act::Change(Change::Rename(52, 90)),
        Act::Refresh("w"),
        Act::DropView("v"),
        Act::DropHierarchy("ward"),
        Act::Change(Change::Insert(crowd(70, 6, 2))),
        Act::CreateView("v", asked_of("v")),
        Act::Together(vec![Change::Delete(vec![70, 71]), Change::Insert(crowd(80, 4, 1))], End::Commit),
    ];
    [beginning(), everyday].concat()
}

/// Random acts, and the model after them.
pub(crate) struct History {
    chance: Chance,
    pub(crate) world: World,
    beginning: std::vec::IntoIter<Act>,
}

impl History {
    pub(crate) fn new(seed: u64) -> History {
        History { chance: Chance::new(seed), world: World::empty(), beginning: beginning().into_iter() }
    }

    /// The next act, which always works.
    pub(crate) fn next_act(&mut self) -> Act {
        let act = self.beginning.next().unwrap_or_else(|| self.random_act());
        self.world.apply(&act);
        act
    }

    fn random_act(&mut self) -> Act {
        let view = ["v", "w"][self.below(2)];
        match self.below(16) {
            0 => Act::Reopen,
            1 | 2 => Act::Copy(self.newcomers(&self.world.model.clone(), 6)),
            3 if self.world.views.contains_key(view) => Act::Refresh(view),
            4 if self.world.views.contains_key(view) => Act::DropView(view),
            3..=6 if !self.world.views.contains_key(view) => {
                // Enough people for a view, even if the table is empty.
                let model = &mut self.world.model.clone();
                let newcomers = self.newcomers(model, 6);
                match model.patients.len() {
                    0..24 => Act::Change(Change::Insert(newcomers)),
                    _ => Act::CreateView(view, asked_of(view)),
                }
            }
            7 => match self.world.dghs.get("ward").map(String::as_str) {
                None => Act::CreateHierarchy("ward"),
                Some("0") => Act::FillHierarchy("ward"),
                Some(_) => Act::DropHierarchy("ward"),
            },
            8..=11 => Act::Change(self.change(&mut self.world.model.clone())),
            _ => {
                let mut model = self.world.model.clone();
                let n_changes = 1 + self.below(3);
                let changes = (0..n_changes).map(|_| self.change(&mut model)).collect();
                Act::Together(changes, if self.below(4) == 0 { End::Rollback } else { End::Commit })
            }
        }
    }

    fn below(&mut self, end: usize) -> usize {
        self.chance.below(end as u64) as usize
    }

    /// A random change of rows, also applied to the model.
    fn change(&mut self, model: &mut Model) -> Change {
        let number = |name: &String| name[1..].parse::<u8>().unwrap();
        let known: Vec<u8> = model.patients.keys().map(number).collect();
        let somebody = |chance: usize| known.get(chance % known.len().max(1)).copied();
        let change = match (self.below(8), somebody(self.below(250))) {
            (0 | 1, Some(one)) => Change::Delete(vec![one]),
            (2, Some(one)) => Change::Update(one, patient(self.below(5), self.below(3))),
            (3, Some(one)) => {
                let choice = Choice {
                    shows_disease: self.below(4) > 0,
                    ..Choice::open(2 + self.below(3) as u32, self.below(2) as u8)
                };
                match model.choices.contains_key(&format!("p{one}")) {
                    true => Change::Choose2(Some(one), choice),
                    false => Change::Choose(Some(one), choice),
                }
            }
            _ => Change::Insert(self.newcomers(model, 3)),
        };
        assert!(model.apply(&change), "{change:?} works");
        change
    }

    /// Up to this many people who are not in the table.
    fn newcomers(&mut self, model: &Model, most: usize) -> Vec<(u8, Patient)> {
        let free: Vec<u8> =
            (0..=u8::MAX).filter(|number| !model.patients.contains_key(&format!("p{number}"))).collect();
        let n_people = 1 + self.below(most);
        let first = self.below(free.len() - n_people);
        free[first..][..n_people].iter().map(|&number| (number, patient(self.below(5), self.below(3)))).collect()
    }
}
