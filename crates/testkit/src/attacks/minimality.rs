//! An attacker who knows the algorithm, everybody's quasi values and the release asks which private tables could have
//! given this release.
//!
//! The attacker tries every table that gives people the released values in another order. A partitioner that looks at
//! sensitive values to decide where to cut makes another release of some of these tables, so the attacker rules them
//! out. `[WFW+07]`

use std::collections::{BTreeMap, BTreeSet};

use kohort_core::anonymize;
use kohort_core::register::anonymize_with_register;
use kohort_model::spec::{Algorithm, RegisterMethod};
use kohort_model::{
    Cells, Column, Hierarchy, InRegister, JoinedRegister, Release, Requirement, Role, Silent, Spec, Table, ValueType,
};

use super::{Attack, Count, Promise, Side, System};
use crate::random::Random;

pub(super) const ATTACKS: &[Attack] = &[Attack {
    name: "minimality",
    system: System::Tables,
    knows: "the algorithm, everybody's age, and which illnesses there are",
    does: "anonymizes every table that gives people these illnesses in another order, and rules out those that give \
           another release",
    success: "persons for whom an illness that their class shows is ruled out",
    run: minimality,
}];

/// How a release is made: with or without a register.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    /// One table.
    Plain(Algorithm),
    /// One table beside a register.
    Register(Algorithm, RegisterMethod),
}

/// Every way to make a release.
pub fn ways() -> Vec<Way> {
    let algorithms = [
        Algorithm::Auto,
        Algorithm::Mondrian,
        Algorithm::TopDown,
        Algorithm::Datafly,
        Algorithm::Cluster,
        Algorithm::FullDomain,
    ];
    let beside = algorithms.iter().filter(|algorithm| **algorithm != Algorithm::FullDomain).flat_map(|&algorithm| {
        [RegisterMethod::Refine, RegisterMethod::Direct].map(|method| Way::Register(algorithm, method))
    });
    algorithms.into_iter().map(Way::Plain).chain(beside).collect()
}

/// Ages in a hierarchy of decades.
fn ages(ages: &[u32]) -> Column {
    let texts: Vec<String> = ages.iter().map(u32::to_string).collect();
    let paths: String = (20..60).map(|age| format!("{age};{}s;*\n", age / 10 * 10)).collect();
    let column = Column::from_cells("age", Role::Quasi, texts.iter().map(|text| Some(text.as_str())));
    column.typed(ValueType::Integer).with_hierarchy(Hierarchy::from_paths(&paths).expect("decades are a hierarchy"))
}

fn private_table(private: &[u32], illnesses: &[&str]) -> Table {
    let illness = Column::from_cells("illness", Role::Sensitive, illnesses.iter().map(|&text| Some(text)));
    Table { name: "t".to_owned(), columns: vec![ages(private), illness], n_rows: private.len(), person: None }
}

/// The release of people of these ages, from 20 to 59, who have these illnesses; `None` if it is refused.
pub fn release(
    way: Way,
    private: &[u32],
    register: &[u32],
    illnesses: &[&str],
    asked: &[Requirement],
) -> Option<String> {
    let table = private_table(private, illnesses);
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
pub fn orders<'v>(values: &[&'v str]) -> BTreeSet<Vec<&'v str>> {
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

/// The orders of illnesses that give the same release; `None` if there is no release.
pub fn behind<'v>(
    way: Way,
    private: &[u32],
    register: &[u32],
    illnesses: &[&'v str],
    asked: &[Requirement],
) -> Option<Vec<Vec<&'v str>>> {
    let seen = release(way, private, register, illnesses, asked)?;
    let same = |order: &Vec<&str>| release(way, private, register, order, asked).as_ref() == Some(&seen);
    Some(orders(illnesses).into_iter().filter(same).collect())
}

/// For each person the illnesses that the rows of their class show: a reader who replays nothing can't narrow them
/// down.
fn left_open<'v>(
    way: Algorithm,
    private: &[u32],
    illnesses: &[&'v str],
    asked: &[Requirement],
) -> Vec<BTreeSet<&'v str>> {
    let table = private_table(private, illnesses);
    let spec = Spec { algorithm: way, ..Spec::new(2) };
    let release = anonymize(&table, &spec, asked, &Silent).expect("it was released before").release;
    let released = &release.tables[0];
    let Cells::Recoded { ids, .. } = &released.columns[0].cells else { panic!("ages are recoded") };
    let mut classes: BTreeMap<u32, BTreeSet<&str>> = BTreeMap::new();
    for (&id, &person) in ids.iter().zip(&released.rows) {
        classes.entry(id).or_default().insert(illnesses[person as usize]);
    }
    let mut open = vec![BTreeSet::new(); private.len()];
    ids.iter().zip(&released.rows).for_each(|(id, &person)| open[person as usize].clone_from(&classes[id]));
    open
}

fn minimality() -> Vec<Side> {
    let ruled_out = |asked: &[Requirement]| {
        let mut random = Random::new(8);
        let mut count = Count::default();
        for _ in 0..25 {
            let private: Vec<u32> = (0..6).map(|_| *random.pick(&[24, 27, 31, 33, 42, 48])).collect();
            let illnesses: Vec<&str> = (0..6).map(|_| *random.pick(&["cold", "flu", "gout", "ulcer"])).collect();
            for algorithm in [Algorithm::Auto, Algorithm::Mondrian] {
                let Some(behind) = behind(Way::Plain(algorithm), &private, &[], &illnesses, asked) else { continue };
                for (person, open) in left_open(algorithm, &private, &illnesses, asked).iter().enumerate() {
                    let possible: BTreeSet<&str> = behind.iter().map(|order| order[person]).collect();
                    count.add(open.iter().any(|illness| !possible.contains(illness)), 0.0);
                }
            }
        }
        count
    };
    let diverse = [Requirement::K(2), Requirement::DistinctL { column: "illness".to_owned(), l: 2 }];
    vec![
        Side::kohort("`k = 2`, `l = 2`", Promise::Nothing("ask for more than you need"), ruled_out(&diverse)),
        Side::kohort("`k = 2`", Promise::Nobody, ruled_out(&diverse[..1])),
    ]
}
