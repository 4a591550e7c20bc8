//! An engine that is killed loses nothing that it acknowledged, and its view agrees with its table.
//!
//! A history changes a table, and a materialized view follows. After the crash both must be what a whole number of
//! transactions leads to: all that were acknowledged, and at most the one that was under way. `KOHORT_CRASHES` says how
//! many histories there are.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use kohort_crashkit::{Chance, acknowledge, work_until_killed};
use kohort_sql::{Engine, Session};

use crate::folder::{analyst, open, sorted};
use crate::session::{owner, rows};

const N_HISTORIES: u64 = 60;
const N_THREADS: u64 = 2;
const THIS: &str = "killed::a_killed_engine_loses_nothing_that_it_acknowledged";
const FOLDER: &str = "KOHORT_CRASH_FOLDER";
const SEED: &str = "KOHORT_CRASH_SEED";
const K: usize = 3;

const TABLES: &str = "
    CREATE TABLE patient (name TEXT PRIMARY KEY, age INT, disease TEXT);
    CREATE DGH age FROM STEPS (10, 50);
    INSERT INTO patient VALUES ('a', 21, 'flu'), ('b', 22, 'gout'), ('c', 23, 'flu'), ('d', 64, 'flu'), ('e', 66, 'cold'),
        ('f', 68, 'gout');
    CREATE MATERIALIZED ANONYMIZATION_VIEW v ON SELECT name, age, disease FROM patient WITH ANONYMIZATION_ID name
        ANONYMIZATION_QUASI_ID (age DGH_NAME age) ANONYMIZATION_SENSITIVE_ATTR (disease) K 3;";

#[test]
fn a_killed_engine_loses_nothing_that_it_acknowledged() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let seed = std::env::var(SEED).unwrap().parse().unwrap();
        block_on(work(Path::new(&folder), seed));
    }
    let asked = std::env::var("KOHORT_CRASHES").ok();
    let n_histories = asked.map_or(N_HISTORIES, |n| n.parse().unwrap());
    std::thread::scope(|scope| {
        for thread in 0..N_THREADS {
            scope.spawn(move || (thread..n_histories).step_by(N_THREADS as usize).for_each(kill_and_check));
        }
    });
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

type Patients = BTreeMap<String, (i64, &'static str)>;

/// Random transactions, and what they lead to.
struct History {
    chance: Chance,
    patients: Patients,
    n_names: u64,
}

impl History {
    fn new(seed: u64) -> History {
        let first = [("a", 21, "flu"), ("b", 22, "gout"), ("c", 23, "flu"), ("d", 64, "flu"), ("e", 66, "cold")];
        let first = first.into_iter().chain([("f", 68, "gout")]);
        let patients = first.map(|(name, age, disease)| (name.to_owned(), (age, disease))).collect();
        History { chance: Chance::new(seed), patients, n_names: 0 }
    }

    fn patient(&mut self) -> (i64, &'static str) {
        let age = [21, 23, 27, 64, 66][self.chance.below(5) as usize];
        (age, ["flu", "cold", "gout"][self.chance.below(3) as usize])
    }

    fn somebody(&mut self) -> Option<String> {
        let place = self.chance.below(self.patients.len().max(1) as u64) as usize;
        self.patients.keys().nth(place).cloned()
    }

    fn statement(&mut self) -> String {
        match (self.chance.below(6), self.somebody()) {
            (0, Some(name)) => {
                self.patients.remove(&name);
                format!("DELETE FROM patient WHERE name = '{name}';")
            }
            (1, Some(name)) => {
                let (age, disease) = self.patient();
                self.patients.insert(name.clone(), (age, disease));
                format!("UPDATE patient SET age = {age}, disease = '{disease}' WHERE name = '{name}';")
            }
            _ => {
                let mut values = Vec::new();
                for _ in 0..=self.chance.below(3) {
                    let (age, disease) = self.patient();
                    self.n_names += 1;
                    let name = format!("p{}", self.n_names);
                    values.push(format!("('{name}', {age}, '{disease}')"));
                    self.patients.insert(name, (age, disease));
                }
                format!("INSERT INTO patient VALUES {};", values.join(", "))
            }
        }
    }

    /// The next transaction; some are rolled back.
    fn next_transaction(&mut self) -> String {
        match self.chance.below(4) {
            0 => {
                let (patients, n_names) = (self.patients.clone(), self.n_names);
                let statements = format!("BEGIN; {} {} ROLLBACK;", self.statement(), self.statement());
                (self.patients, self.n_names) = (patients, n_names);
                statements
            }
            1 => self.statement(),
            _ => format!("BEGIN; {} {} {} COMMIT;", self.statement(), self.statement(), self.statement()),
        }
    }

    fn expected(&self) -> Vec<Vec<String>> {
        let row = |(name, (age, disease)): (&String, &(i64, &str))| {
            vec![name.clone(), age.to_string(), (*disease).to_owned()]
        };
        self.patients.iter().map(row).collect()
    }
}

/// Runs the history of a seed until the process is killed.
async fn work(folder: &Path, seed: u64) -> ! {
    let engine = open(folder).await;
    let mut session = owner(&engine);
    rows(&mut session, TABLES).await;
    acknowledge(0);
    let mut history = History::new(seed);
    for n_transactions in 1.. {
        rows(&mut session, &history.next_transaction()).await;
        acknowledge(n_transactions);
    }
    unreachable!("the numbers do not end")
}

fn kill_and_check(seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let mut chance = Chance::new(seed);
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", THIS, "--nocapture"]).env(FOLDER, folder.path()).env(SEED, seed.to_string());
    let until = chance.below(12);
    let acknowledged = work_until_killed(&mut command, until, chance.below(3_000_000)).unwrap();
    block_on(async {
        let engine = open(folder.path()).await;
        let mut session = owner(&engine);
        let mut history = History::new(seed);
        (0..acknowledged).for_each(|_| drop(history.next_transaction()));
        let found = sorted(&mut session, "SELECT * FROM patient").await;
        if found != history.expected() {
            history.next_transaction();
            assert_eq!(found, history.expected(), "seed {seed}: neither {acknowledged} transactions nor one more");
        }
        check_view(&engine, &mut session, seed).await;

        // The engine goes on where it stopped.
        rows(&mut session, &history.next_transaction()).await;
        assert_eq!(sorted(&mut session, "SELECT * FROM patient").await, history.expected(), "seed {seed}");
        check_view(&engine, &mut session, seed).await;
    });
}

/// Everybody in the table is shown, waits or is hidden; whoever is shown beside them leaves; classes are crowds.
async fn check_view(engine: &Engine, session: &mut Session, seed: u64) {
    let shown = rows(&mut analyst(engine), "SELECT age, disease FROM v").await;
    let mut n_rows: BTreeMap<&str, usize> = BTreeMap::new();
    shown.iter().for_each(|row| *n_rows.entry(&row[0]).or_default() += 1);
    assert!(n_rows.values().all(|&n| n >= K), "seed {seed}: {n_rows:?}");
    let n_patients: usize = rows(session, "SELECT count(*) FROM patient").await[0][0].parse().unwrap();
    let standing = &rows(session, "SHOW ANONYMIZATION_VIEWS").await[0];
    let n_of = |from_end: usize| standing[standing.len() - from_end].parse::<usize>().unwrap();
    let (n_pending, n_hidden, n_leaving) = (n_of(4), n_of(3), n_of(2));
    assert_eq!(shown.len() + n_pending + n_hidden, n_patients + n_leaving, "seed {seed}: {standing:?}");
}
