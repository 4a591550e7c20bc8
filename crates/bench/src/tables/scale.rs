//! Databases of many persons: generated students, the American Time Use Survey, and baseball players.
//!
//! Each is anonymized and verified in a process of its own, which gives its time and peak memory.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Duration;

use kohort_core::relational::anonymize_tables;
use kohort_io::load;
use kohort_model::spec::{Algorithm, MAX_ROWS_LEFT_OUT};
use kohort_model::{Requirement, Schema, Silent, Spec};
use kohort_testkit::students::Books;
use kohort_verify::{SuppressionLimit, verify_tables};
use serde::{Deserialize, Serialize};

use super::made::{self, Private};
use super::students::Students;
use crate::measure::{Cost, timed};
use crate::report::{Grid, Section, count, megabytes, seconds};
use crate::{child, excerpt};

/// The hidden argument that makes this program anonymize one of the databases.
pub(crate) const RELEASE: &str = "tables-release";

/// The k of most releases.
const K: u32 = 5;
const N_STUDENTS: usize = 100_000;

const EXPLANATION: &str = "\
Databases of many persons, anonymized by `auto` with its defaults: 100,000 students made as in `tables`; the American
Time Use Survey (sex, age, state and edu of persons, with sensitive earnings; tiercode of activities by its first 4 and
2 digits, with sensitive duration); Lahman's people (birthYear, birthCountry, birthState, height, weight, bats, throws)
with salaries and batting (yearID, teamID). Text without a hierarchy is shown or not. *Policies* are 100,000 made policies
with 14,243 claims, *long* are 30 made persons with 5,000 rows each, and *wide* are 200 made persons with rows in twelve
tables at up to four levels. Each process is measured from its start to its end: it reads or makes the data, anonymizes and
verifies. Stages are wall times of the same run.

*Left out* are rows of child tables that find no partner. No spec limits them, so `auto` prefers classes that leave out at most
5 % of each table where that costs little loss. *Least loss* is the LM of an earlier version, which looked for the
least loss alone and left out 10 % of the activities of `atus` and 19 % of the rows of `lahman` (revision cda6584f93, 2026-11-16). To
reach: at most 5 % left out of each table, at an LM at most 5 % above it.
";

/// A database, and the limits of its release.
struct Database {
    /// The name, which is also its argument.
    name: &'static str,
    k: u32,
    most_time: Option<Duration>,
    most_memory: Option<u64>,
    /// The LM of an earlier version that did not care how many rows it leaves out.
    least_loss: Option<f64>,
}

const STUDENTS: Database = Database { most_time: Some(Duration::from_secs(60)), ..Database::named("students") };
const ATUS: Database = Database {
    most_time: Some(Duration::from_secs(600)),
    most_memory: Some(6_000_000_000),
    least_loss: Some(0.2327),
    ..Database::named("atus")
};
const LAHMAN: Database = Database { least_loss: Some(0.4027), ..Database::named("lahman") };
const POLICIES: Database = Database { k: 10, ..Database::named("policies") };
const LONG: Database = Database { most_time: Some(Duration::from_secs(5)), ..Database::named("long") };
const WIDE: Database = Database { most_time: Some(Duration::from_secs(5)), ..Database::named("wide") };

const DATABASES: [Database; 6] = [STUDENTS, ATUS, LAHMAN, POLICIES, LONG, WIDE];

const ATUS_SPEC: &str = r#"
k = 5
[tables.person]
file = "person.parquet"
person = "person_id"
childless = "keep"
[tables.person.columns]
person_id = "key"
sex = "quasi"
age = "quasi"
state = "quasi"
edu = "quasi"
weekly_earn = "sensitive"
[tables.activity]
file = "activity.parquet"
parent = { table = "person", foreign_key = "person_id" }
[tables.activity.columns]
person_id = "key"
tiercode = { role = "quasi", type = "text", hierarchy = "tiercode.csv" }
dur = "sensitive"
"#;

const LAHMAN_SPEC: &str = r#"
k = 5
[tables.people]
file = "people.parquet"
person = "playerID"
childless = "keep"
[tables.people.columns]
playerID = "key"
birthYear = "quasi"
birthCountry = "quasi"
birthState = "quasi"
height = "quasi"
weight = "quasi"
bats = "quasi"
throws = "quasi"
[tables.salaries]
file = "salaries.parquet"
parent = { table = "people", foreign_key = "playerID" }
orphans = "drop"
[tables.salaries.columns]
playerID = "key"
yearID = "quasi"
teamID = "quasi"
salary = "sensitive"
[tables.batting]
file = "batting.parquet"
parent = { table = "people", foreign_key = "playerID" }
orphans = "drop"
[tables.batting.columns]
playerID = "key"
yearID = "quasi"
teamID = "quasi"
HR = "sensitive"
"#;

/// What a process reports about its release.
#[derive(Serialize, Deserialize)]
struct Account {
    persons: usize,
    rows: usize,
    rows_out: usize,
    lm: f64,
    dm: f64,
    k: u64,
    classes: u64,
    lm_of_tables: Vec<(String, f64)>,
    /// For each child table, the share of its rows that are left out.
    left_out: Vec<(String, f64)>,
    read: Duration,
    anonymize: Duration,
    verify: Duration,
}

/// Runs the benchmark.
pub(crate) fn run(data: &Path) -> Result<Section, Box<dyn Error>> {
    let mut rows_kept = Grid::new(["", "left out", "LM", "least loss", "reached"]);
    let mut grid = Grid::new([
        "",
        "persons",
        "rows",
        "rows out",
        "wall",
        "CPU",
        "peak memory",
        "to reach",
        "reached",
        "k",
        "classes",
        "LM",
        "DM",
    ]);
    let mut stages = Grid::new(["", "read", "anonymize", "verify", "LM by table"]);
    for database in DATABASES {
        eprintln!("tables-scale: {}", database.name);
        let arguments = [RELEASE, database.name, child::path(data)?];
        let run = child::run(&std::env::current_exe()?, &arguments)?;
        let account: Account = serde_json::from_str(&run.stdout)?;
        grid.push([
            database.name.to_owned(),
            count(account.persons),
            count(account.rows),
            count(account.rows_out),
            seconds(run.cost.wall),
            seconds(run.cost.cpu),
            megabytes(run.peak_memory),
            database.limits(),
            database.judge(run.cost, run.peak_memory).to_owned(),
            account.k.to_string(),
            count(account.classes as usize),
            format!("{:.4}", account.lm),
            count(account.dm as usize),
        ]);
        let left_out = account.left_out.iter().map(|(table, share)| format!("{table} {:.1} %", 100.0 * share));
        rows_kept.push([
            database.name.to_owned(),
            left_out.collect::<Vec<_>>().join(", "),
            format!("{:.4}", account.lm),
            database.least_loss.map_or_else(String::new, |loss| format!("{loss:.4}")),
            database.keeps_rows(&account).to_owned(),
        ]);
        let of_tables = account.lm_of_tables.iter().map(|(table, lm)| format!("{table} {lm:.4}"));
        stages.push([
            database.name.to_owned(),
            seconds(account.read),
            seconds(account.anonymize),
            seconds(account.verify),
            of_tables.collect::<Vec<_>>().join(", "),
        ]);
    }
    let body = format!("{EXPLANATION}\n{}\n{}\n{}", grid.render(), stages.render(), rows_kept.render());
    Ok(Section { name: "tables-scale", body, figures: Vec::new() })
}

impl Database {
    const fn named(name: &'static str) -> Database {
        Database { name, k: K, most_time: None, most_memory: None, least_loss: None }
    }

    /// Whether few enough rows are left out, at little more than the least loss.
    fn keeps_rows(&self, account: &Account) -> &'static str {
        let Some(least) = self.least_loss else { return "" };
        let is_kept = account.left_out.iter().all(|&(_, share)| share <= MAX_ROWS_LEFT_OUT);
        if is_kept && account.lm <= 1.05 * least { "yes" } else { "no" }
    }

    fn limits(&self) -> String {
        let time = self.most_time.map(|time| format!("<= {} s", time.as_secs()));
        let memory = self.most_memory.map(|memory| format!("<= {}", megabytes(memory)));
        time.into_iter().chain(memory).collect::<Vec<_>>().join(", ")
    }

    fn judge(&self, cost: Cost, peak_memory: u64) -> &'static str {
        let is_late = self.most_time.is_some_and(|most| cost.wall > most);
        let is_large = self.most_memory.is_some_and(|most| peak_memory > most);
        match (self.most_time, is_late || is_large) {
            (None, _) => "",
            (Some(_), true) => "no",
            (Some(_), false) => "yes",
        }
    }
}

/// Anonymizes and verifies one database and prints a report.
pub(crate) fn release(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let [name, data] = arguments else { return Err("the arguments must be a database and the data folder".into()) };
    let folder = tempfile::tempdir()?;
    let (read, read_cost) = timed(|| read(name, Path::new(data), folder.path()));
    let (tables, mut spec, schema) = read?;
    spec.k = DATABASES.iter().find(|database| database.name == *name).map_or(K, |database| database.k);
    spec.algorithm = Algorithm::Auto;
    let (anonymized, anonymize) = timed(|| anonymize_tables(&tables, &schema, &spec, &Silent));
    let anonymized = anonymized?;
    let requirements: Vec<Vec<Requirement>> = spec.tables.iter().map(|table| spec.requirements(table)).collect();
    let limit = SuppressionLimit::share(spec.max_suppressed);
    let (verified, verify) = timed(|| verify_tables(anonymized.release, &tables, &schema, &requirements, limit));
    let verified = verified?;
    let with_loss = tables.iter().zip(&anonymized.loss_of_tables).filter(|(_, loss)| !loss.columns.is_empty());
    let released = &verified.get().tables;
    let children = tables.iter().zip(released).zip(&schema.tables).filter(|(_, linked)| linked.parent.is_some());
    let left_out = children.map(|((table, released), _)| {
        let n_left_out = table.n_rows - released.rows.len();
        (table.name.clone(), n_left_out as f64 / table.n_rows.max(1) as f64)
    });
    let account = Account {
        left_out: left_out.collect(),
        persons: anonymized.persons.n_in as usize,
        rows: tables.iter().map(|table| table.n_rows).sum(),
        rows_out: verified.get().tables.iter().map(|table| table.rows.len()).sum(),
        lm: anonymized.loss.lm,
        dm: anonymized.loss.dm,
        k: verified.findings().k,
        classes: verified.findings().classes,
        lm_of_tables: with_loss.map(|(table, loss)| (table.name.clone(), loss.lm)).collect(),
        read: read_cost.wall,
        anonymize: anonymize.wall,
        verify: verify.wall,
    };
    println!("{}", serde_json::to_string(&account)?);
    Ok(())
}

fn read(name: &str, data: &Path, folder: &Path) -> Result<Private, Box<dyn Error>> {
    match name {
        name if name == STUDENTS.name => {
            let Students { tables, spec, schema, .. } = Students::generate(N_STUDENTS, Books::Some)?;
            Ok((tables, spec, schema))
        }
        name if name == ATUS.name => {
            let source = data.join("atus");
            let person = ["person_id", "sex", "age", "state", "edu", "weekly_earn"];
            copy(&source.join("person.parquet"), &person, &folder.join("person.parquet"))?;
            let activity = ["person_id", "tiercode", "dur"];
            copy(&source.join("activity.parquet"), &activity, &folder.join("activity.parquet"))?;
            write_activities(folder)?;
            load_all(ATUS_SPEC, folder)
        }
        name if name == LAHMAN.name => {
            let source = data.join("lahman");
            let people = ["playerID", "birthYear", "birthCountry", "birthState", "height", "weight", "bats", "throws"];
            copy(&source.join("People.parquet"), &people, &folder.join("people.parquet"))?;
            let salaries = ["playerID", "yearID", "teamID", "salary"];
            copy(&source.join("Salaries.parquet"), &salaries, &folder.join("salaries.parquet"))?;
            let batting = ["playerID", "yearID", "teamID", "HR"];
            copy(&source.join("Batting.parquet"), &batting, &folder.join("batting.parquet"))?;
            load_all(LAHMAN_SPEC, folder)
        }
        name if name == POLICIES.name => made::policies(),
        name if name == LONG.name => made::long(),
        name if name == WIDE.name => made::wide(),
        other => Err(format!("there is no database '{other}'").into()),
    }
}

fn copy(source: &Path, columns: &[&str], target: &Path) -> Result<(), Box<dyn Error>> {
    excerpt::write(source, columns, usize::MAX, target)
}

fn load_all(spec: &str, folder: &Path) -> Result<Private, Box<dyn Error>> {
    let spec = Spec::parse(spec)?;
    let mut tables = Vec::new();
    for table in &spec.tables {
        tables.push(load(folder, &spec, table, &Silent)?.table);
    }
    let schema = Schema::of(&spec, &tables)?;
    Ok((tables, spec, schema))
}

/// The hierarchy of activities: the first four digits of six, then the first two. The file has no leading zeros.
fn write_activities(folder: &Path) -> Result<(), Box<dyn Error>> {
    const CODES: &str = "k = 1\n[tables.activity]\nfile = \"activity.parquet\"\n[tables.activity.columns]\n\
        person_id = \"drop\"\ntiercode = { role = \"quasi\", type = \"text\" }\ndur = \"drop\"\n";
    let spec = Spec::parse(CODES)?;
    let activities = load(folder, &spec, &spec.tables[0], &Silent)?.table;
    let codes = &activities.column("tiercode").ok_or("the activities have no tiercode")?.texts;
    let mut paths = Vec::new();
    for code in codes.iter() {
        let number: u32 = code.parse().map_err(|_| "a tiercode is not a number")?;
        paths.push(format!("{code};{:04}xx;{:02}xxxx;*\n", number / 100, number / 10_000));
    }
    paths.sort_unstable();
    fs::write(folder.join("tiercode.csv"), paths.concat())?;
    Ok(())
}
