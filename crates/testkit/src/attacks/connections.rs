//! Attacks on keys: connections between people single them out, although every cell is blurred.

use std::collections::BTreeMap;

use kohort_core::anonymize;
use kohort_core::relational::AnonymizedTables;
use kohort_model::{Release, Requirement, Role, Schema, Silent, Spec, Table, ValueType};

use super::{Attack, Count, Promise, Side, System};
use crate::generate::snowflake::TablesJob;
use crate::oracle::views::{Joined, Known, KnownRows, Tree, View, as_read};
use crate::random::Random;
use crate::scenario::tables_job;

pub(super) const ATTACKS: &[Attack] = &[
    Attack {
        name: "the same doctor three times",
        system: System::Tables,
        knows: "how often each patient saw the same doctor",
        does: "looks for patients with that pattern of doctors' numbers",
        success: "patients whom 1 to 4 released patients fit",
        run: same_doctor,
    },
    Attack {
        name: "rows of a person in several tables",
        system: System::Tables,
        knows: "age and all codes of every patient's visits",
        does: "joins the tables by the patients' numbers, and looks for patients who fit",
        success: "patients whom 1 to 4 released patients fit",
        run: several_tables,
    },
];

const CLINIC: &str = "k = 5
[tables.patient]
file = \"patient.csv\"
person = \"pid\"
columns = { age = \"quasi\" }
[tables.visit]
file = \"visit.csv\"
parent = { table = \"patient\", foreign_key = \"pid\" }
columns = { code = \"quasi\", doctor = { role = \"key\", references = \"doctor\" } }
[tables.doctor]
file = \"doctor.csv\"
key = \"did\"
person = true
columns = { school = \"quasi\" }
";

/// Sixty patients who look the same, with three visits each; `doctor` says whom a patient saw.
pub fn clinic(n_doctors: usize, doctor: impl Fn(usize, usize) -> usize) -> TablesJob {
    let visits = (0..60).flat_map(|patient| (0..3).map(move |visit| (patient, visit)));
    tables_job(
        CLINIC,
        &[
            ("pid,age", (0..60).map(|patient| format!("p{patient:02},40")).collect()),
            ("pid,code,doctor", visits.map(|(p, v)| format!("p{p:02},x,d{:02}", doctor(p, v))).collect()),
            ("did,school", (0..n_doctors).map(|doctor| format!("d{doctor:02},s")).collect()),
        ],
    )
}

/// For each released patient of a clinic, how often they saw which doctor.
///
/// # Panics
/// If the tables are not those of [`clinic`].
pub fn seen(job: &TablesJob, done: &AnonymizedTables) -> BTreeMap<String, BTreeMap<String, usize>> {
    let (files, _) = as_read(&done.release, &job.tables, &job.schema);
    doctors_by_patient(&files[1])
}

fn doctors_by_patient(visits: &Table) -> BTreeMap<String, BTreeMap<String, usize>> {
    let cell = |name: &str, row: usize| visits.column(name).expect("visits have it").cell(row).map(str::to_owned);
    let mut seen: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    for row in 0..visits.n_rows {
        let doctors = seen.entry(cell("pid", row).expect("a visit has a patient")).or_default();
        if let Some(doctor) = cell("doctor", row) {
            *doctors.entry(doctor).or_default() += 1;
        }
    }
    seen
}

/// How often each patient saw each doctor, most often first.
fn patterns(seen: &BTreeMap<String, BTreeMap<String, usize>>) -> Vec<Vec<usize>> {
    let pattern = |doctors: &BTreeMap<String, usize>| {
        let mut times: Vec<usize> = doctors.values().copied().collect();
        times.sort_unstable_by(|a, b| b.cmp(a));
        times
    };
    seen.values().map(pattern).collect()
}

fn same_doctor() -> Vec<Side> {
    // Patient 33 saw doctor 7 three times, patients 40 and 41 somebody twice, all others three different ones.
    let job = clinic(20, |patient, visit| match patient {
        33 => 7,
        40 | 41 => visit / 2,
        _ => (patient * 3 + visit) % 20,
    });
    let truth = patterns(&doctors_by_patient(&job.tables[1]));
    // A reference may be null in the release, so a pattern fits every patient who has at least as much.
    let fits = |known: &[usize], shown: &[usize]| {
        shown.len() <= known.len() && shown.iter().zip(known).all(|(shown, known)| shown <= known)
    };
    let single_out = |shown: &[Vec<usize>], exact: bool| {
        let n_like = |known: &Vec<usize>| {
            shown.iter().filter(|shown| if exact { *shown == known } else { fits(known, shown) }).count()
        };
        Count::of(truth.iter().map(|known| (1..5).contains(&n_like(known))))
    };
    let done = job.run().unwrap_or_else(|error| panic!("{error}"));
    vec![
        Side::naive("doctors renumbered", single_out(&truth, true)),
        Side::kohort("`references = \"doctor\"`", Promise::Nobody, single_out(&patterns(&seen(&job, &done)), false)),
    ]
}

const VISITS: &str = "k = 5
[tables.patient]
file = \"patient.csv\"
person = \"pid\"
columns = { age = \"quasi\" }
[tables.visit]
file = \"visit.csv\"
parent = { table = \"patient\", foreign_key = \"pid\" }
columns = { code = \"quasi\" }
";

/// Patients of all ages, with one to three visits each.
fn patients() -> TablesJob {
    let mut random = Random::new(31);
    let mut visits = Vec::new();
    let mut patients = Vec::new();
    for patient in 0..120 {
        patients.push(format!("p{patient:03},{}", 18 + random.below(60)));
        visits.extend((0..=random.below(3)).map(|_| format!("p{patient:03},{}", random.below(12))));
    }
    let mut job = tables_job(VISITS, &[("pid,age", patients), ("pid,code", visits)]);
    for column in job.tables.iter_mut().flat_map(|table| &mut table.columns) {
        if column.role == Role::Quasi {
            *column = column.clone().typed(ValueType::Integer);
        }
    }
    job
}

/// Each table made k-anonymous by itself. Keys may be renumbered, but they still join the right rows.
fn table_by_table(job: &TablesJob) -> Release {
    let release = |table: &Table| {
        let mut alone = Table { person: None, ..table.clone() };
        alone.columns.iter_mut().filter(|column| column.role == Role::Key).for_each(|key| key.role = Role::Plain);
        let done = anonymize(&alone, &Spec::new(5), &[Requirement::K(5)], &Silent);
        done.unwrap_or_else(|error| panic!("{error}")).release.tables.swap_remove(0)
    };
    Release { tables: job.tables.iter().map(release).collect() }
}

/// Everything that there is to know about a person.
fn all_of(tree: &Tree) -> View {
    let rows = |rows: &Vec<Tree>| {
        let all = || Some(rows.iter().map(all_of).collect());
        KnownRows { some: all(), all: all(), exactly: None }
    };
    View {
        cells: tree.cells.iter().map(|cell| Known::Was(cell.clone())).collect(),
        rows: tree.children.iter().map(rows).collect(),
    }
}

fn several_tables() -> Vec<Side> {
    let job = patients();
    let private = Joined::new(&job.tables, &job.schema);
    let found = |release: &Release| {
        let (files, schema): (Vec<Table>, Schema) = as_read(release, &job.tables, &job.schema);
        let released = Joined::new(&files, &schema);
        let n_fitting = |person: &Tree| released.answer(0, &all_of(person)).len();
        Count::of(private.persons(0).iter().map(|person| (1..5).contains(&n_fitting(person))))
    };
    let done = job.run().unwrap_or_else(|error| panic!("{error}"));
    vec![
        Side::naive("each table made 5-anonymous by itself", found(&table_by_table(&job))),
        Side::kohort("`k = 5` of both tables", Promise::Nobody, found(&done.release)),
    ]
}
