//! An attacker who knows the algorithm, and how many rows everybody has, wants to learn something about rows that were
//! left out.
//!
//! If one person of a class has three visits and another has two, the third visit finds no partner and is left out. If
//! all three look the same, some rule has to choose one. A rule that looks at their values tells something about the
//! row that is missing. `[WFW+07]`

use std::collections::{BTreeMap, BTreeSet};

use super::{Attack, Count, Promise, Side, System};
use crate::generate::snowflake::TablesJob;
use crate::oracle::views::as_read;
use crate::random::Random;
use crate::scenario::tables_job;

pub(super) const ATTACKS: &[Attack] = &[
    Attack {
        name: "the row that was left out",
        system: System::Tables,
        knows: "how many visits each patient had, and that a rule decides which of several alike visits is left out",
        does: "takes the missing visit's illness for the last one in the alphabet",
        success: "missing visits for which that is right",
        run: guesses,
    },
    Attack {
        name: "the row that was left out: replay",
        system: System::Tables,
        knows: "the algorithm, all private cells but the illnesses, and how many visits each of two patients had",
        does: "anonymizes every pair of tables that could be behind the release, and rules out those that give another",
        success: "pairs of tables that let the attacker rule out illnesses which the released trees leave open",
        run: replays,
    },
];

/// The columns that tell visits apart, beside their values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Visits {
    Keyed,
    Nameless,
}

/// Patients by age, each with the illnesses of their visits, which all have the same code.
fn job(patients: &[(usize, &[&'static str])], visits: Visits) -> TablesJob {
    let key = if visits == Visits::Keyed { "key = \"vid\"\n" } else { "" };
    let spec = format!(
        "k = 2\n[tables.patient]\nfile = \"patient.csv\"\nperson = \"pid\"\ncolumns = {{ age = \"quasi\" }}\n\
         [tables.visit]\nfile = \"visit.csv\"\n{key}parent = {{ table = \"patient\", foreign_key = \"pid\" }}\n\
         columns = {{ code = \"quasi\", illness = \"sensitive\" }}\n"
    );
    let (mut persons, mut rows) = (Vec::new(), Vec::new());
    for (patient, (age, illnesses)) in patients.iter().enumerate() {
        persons.push(format!("p{patient:03},{age}"));
        for illness in *illnesses {
            let key = if visits == Visits::Keyed { format!("v{:04},", rows.len()) } else { String::new() };
            rows.push(format!("{key}p{patient:03},7,{illness}"));
        }
    }
    let header = if visits == Visits::Keyed { "vid,pid,code,illness" } else { "pid,code,illness" };
    tables_job(&spec, &[("pid,age", persons), (header, rows)])
}

const FOUR: [&str; 4] = ["asthma", "cold", "flu", "gout"];

fn guesses() -> Vec<Side> {
    // Two patients of each age, one with a visit more than the other.
    let mut random = Random::new(14);
    let visits: Vec<Vec<&str>> =
        (0..300).map(|patient| (0..2 + patient % 2).map(|_| *random.pick(&FOUR)).collect()).collect();
    let patients: Vec<(usize, &[&'static str])> =
        visits.iter().enumerate().map(|(patient, visits)| (18 + patient / 2, visits.as_slice())).collect();
    let n_last = visits.iter().flatten().filter(|illness| **illness == FOUR[3]).count();
    let by_chance = n_last as f64 / visits.iter().map(Vec::len).sum::<usize>() as f64;
    let mut naive = Count::default();
    for visits in visits.iter().filter(|visits| visits.len() == 3) {
        naive.add(visits.iter().max() == Some(&FOUR[3]), by_chance);
    }
    let missing = |visits: Visits| {
        let job = job(&patients, visits);
        let done = job.run().unwrap_or_else(|error| panic!("{error}"));
        let released: BTreeSet<u32> = done.release.tables[1].rows.iter().copied().collect();
        let illness = job.tables[1].column("illness").expect("visits have illnesses");
        let mut count = Count::default();
        for row in (0..job.tables[1].n_rows as u32).filter(|row| !released.contains(row)) {
            count.add(illness.cell(row as usize) == Some(FOUR[3]), by_chance);
        }
        count
    };
    vec![
        Side::naive("the last of alike rows left out, by their values", naive),
        Side::kohort("visits without a key", Promise::Chance, missing(Visits::Nameless)),
        Side::kohort("visits with `key`", Promise::Chance, missing(Visits::Keyed)),
    ]
}

const THREE: [&str; 3] = ["cold", "flu", "gout"];

/// Every sequence of this many illnesses.
fn sequences(n: usize) -> Vec<Vec<&'static str>> {
    let Some(n) = n.checked_sub(1) else { return vec![Vec::new()] };
    let longer = |sequence: Vec<&'static str>| THREE.map(|illness| [sequence.as_slice(), &[illness]].concat());
    sequences(n).into_iter().flat_map(longer).collect()
}

fn sorted(mut illnesses: Vec<&'static str>) -> Vec<&'static str> {
    illnesses.sort_unstable();
    illnesses
}

/// The illnesses of two patients as a reader sees them, who can't tell which patient is which.
fn released(first: &[&'static str], second: &[&'static str], visits: Visits) -> Vec<Vec<&'static str>> {
    let job = job(&[(40, first), (40, second)], visits);
    let done = job.run().unwrap_or_else(|error| panic!("{error}"));
    let (files, _) = as_read(&done.release, &job.tables, &job.schema);
    let cell = |name: &str, row: usize| files[1].column(name).and_then(|column| column.cell(row)).expect("it is shown");
    let mut shown: BTreeMap<&str, Vec<&'static str>> = BTreeMap::new();
    for row in 0..files[1].n_rows {
        let illness = THREE.iter().find(|illness| **illness == cell("illness", row)).expect("it was in the table");
        shown.entry(cell("pid", row)).or_default().push(illness);
    }
    let mut shown: Vec<Vec<&str>> = shown.into_values().map(sorted).collect();
    shown.sort_unstable();
    shown
}

/// For each pair of tables, whether a reader can rule out an illness of the first patient that the release leaves open.
fn ruled_out(visits: Visits) -> Count {
    let mut behind: BTreeMap<Vec<Vec<&str>>, Vec<Vec<&str>>> = BTreeMap::new();
    for first in sequences(3) {
        for second in sequences(2) {
            behind.entry(released(&first, &second, visits)).or_default().push(sorted(first.clone()));
        }
    }
    let mut count = Count::default();
    for (shown, firsts) in &behind {
        // Either tree can be the first patient's, with any illness in the missing visit.
        let with_any = |tree: &Vec<&'static str>| THREE.map(|illness| sorted([tree.as_slice(), &[illness]].concat()));
        let open: BTreeSet<Vec<&str>> = shown.iter().flat_map(with_any).collect();
        let possible: BTreeSet<Vec<&str>> = firsts.iter().cloned().collect();
        firsts.iter().for_each(|_| count.add(possible != open, 0.0));
    }
    count
}

fn replays() -> Vec<Side> {
    vec![
        Side::kohort("visits without a key", Promise::Nothing("give the table a `key`"), ruled_out(Visits::Nameless)),
        Side::kohort("visits with `key`", Promise::Nobody, ruled_out(Visits::Keyed)),
    ]
}
