//! Somebody who knows the algorithm and how many rows everybody has: what did the rows show that were left out?
//!
//! Where one person of a class has three visits and another two, the third visit finds no partner and is left out. If all
//! three look the same, something has to say which one goes. A rule that looks at their values tells something about the
//! row that is missing. `[WFW+07]`

use std::collections::{BTreeMap, BTreeSet};

use super::{Attack, Count, Promise, Side, System};
use crate::oracle::views::as_read;
use crate::scenario::tables_job;

pub(super) const ATTACKS: &[Attack] = &[Attack {
    name: "minimality: the row that was left out",
    system: System::Tables,
    knows: "the algorithm, and how many visits each of two patients had",
    does: "anonymizes every pair of tables that could be behind the release, and rules out those that give another",
    success: "pairs of tables that let the attacker rule out illnesses which the released trees leave open",
    run: left_out_row,
}];

const SPEC: &str = "k = 2
[tables.patient]
file = \"patient.csv\"
person = \"pid\"
columns = { age = \"quasi\" }
[tables.visit]
file = \"visit.csv\"
parent = { table = \"patient\", foreign_key = \"pid\" }
columns = { code = \"quasi\", illness = \"sensitive\" }
";

const ILLNESSES: [&str; 3] = ["cold", "flu", "gout"];

/// Illnesses in order: all that tells visits of one patient apart.
type Visits = Vec<&'static str>;

/// Everything that so many visits can show.
fn all_visits(n: usize) -> BTreeSet<Visits> {
    let Some(n) = n.checked_sub(1) else { return BTreeSet::from([Vec::new()]) };
    all_visits(n).iter().flat_map(|visits| ILLNESSES.map(|illness| with(visits, illness))).collect()
}

fn with(visits: &Visits, illness: &'static str) -> Visits {
    let mut visits = [visits.as_slice(), &[illness]].concat();
    visits.sort_unstable();
    visits
}

/// What two patients with these visits show: nobody can tell which of the two is which.
fn released(first: &Visits, second: &Visits) -> Vec<Visits> {
    let lines = |pid: &'static str, visits: &Visits| -> Vec<String> {
        visits.iter().map(|illness| format!("{pid},7,{illness}")).collect()
    };
    let visits = [lines("a", first), lines("b", second)].concat();
    let job = tables_job(SPEC, &[("pid,age", vec!["a,40".into(), "b,40".into()]), ("pid,code,illness", visits)]);
    let done = job.run().unwrap_or_else(|error| panic!("{error}"));
    let (files, _) = as_read(&done.release, &job.tables, &job.schema);
    let cell = |name: &str, row: usize| files[1].column(name).and_then(|column| column.cell(row)).expect("it is shown");
    let mut shown: BTreeMap<&str, Visits> = BTreeMap::new();
    for row in 0..files[1].n_rows {
        let illness = ILLNESSES.iter().find(|illness| **illness == cell("illness", row)).expect("it was in the table");
        shown.entry(cell("pid", row)).or_default().push(illness);
    }
    let mut shown: Vec<Visits> = shown.into_values().collect();
    shown.iter_mut().for_each(|visits| visits.sort_unstable());
    shown.sort_unstable();
    shown
}

/// Per pair of tables whether the first patient can't have had some visits that the release leaves open.
fn ruled_out(n_first: usize, n_second: usize) -> Count {
    let mut behind: BTreeMap<Vec<Visits>, Vec<Visits>> = BTreeMap::new();
    for first in all_visits(n_first) {
        for second in all_visits(n_second) {
            behind.entry(released(&first, &second)).or_default().push(first.clone());
        }
    }
    let mut count = Count::default();
    for (shown, firsts) in &behind {
        // Either of the two trees is the first patient's, with any illnesses in the visits that are missing.
        let mut open: BTreeSet<Visits> = shown.iter().cloned().collect();
        for _ in n_second..n_first {
            open = open.iter().flat_map(|visits| ILLNESSES.map(|illness| with(visits, illness))).collect();
        }
        let possible: BTreeSet<Visits> = firsts.iter().cloned().collect();
        firsts.iter().for_each(|_| count.add(possible != open, 0.0));
    }
    count
}

fn left_out_row() -> Vec<Side> {
    vec![
        Side::kohort(
            "`k = 2`, 3 visits and 2",
            Promise::Nothing("drop the column, or release as many rows of everybody"),
            ruled_out(3, 2),
        ),
        Side::kohort("`k = 2`, 2 visits each", Promise::Nobody, ruled_out(2, 2)),
    ]
}
