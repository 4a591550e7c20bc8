//! A load test: queries a server from many connections at once, and measures the time.
//!
//! ```text
//! load KOHORT_SERVE FOLDER CENSUS.parquet PERSONS CONNECTIONS SECONDS
//! ```
//!
//! The server is started on an empty data folder, with a materialized view of PERSONS persons. Three of four
//! connections belong to an analyst, who looks up persons by age, sex and zip, and sometimes counts all of them. The
//! fourth belongs to an owner, who adds, changes or removes a person. Prints one JSON object. If any statement fails,
//! the program fails.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

type AnswerError = Box<dyn Error + Send + Sync>;

const PASSWORD: &str = "load of a server";
/// One in this many reads counts all persons.
const N_READS_PER_COUNT: u64 = 100;

/// A person who can be looked up or added.
struct Person {
    age: String,
    sex: String,
    zip: String,
    edu: String,
}

/// A server that stops when this is dropped.
struct Served {
    child: Child,
    port: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        // The server may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::main]
async fn main() -> Result<(), AnswerError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [command, folder, census, n_persons, n_connections, seconds] = arguments.as_slice() else {
        return Err("load KOHORT_SERVE FOLDER CENSUS.parquet PERSONS CONNECTIONS SECONDS".into());
    };
    let (n_persons, n_connections): (i64, u64) = (n_persons.parse()?, n_connections.parse()?);
    let time = Duration::from_secs(seconds.parse()?);
    let served = start(command, folder)?;
    let owner = connect(&served.port, "olga").await?;
    let persons = Arc::new(set_up(&owner, census, n_persons).await?);

    let next_id = Arc::new(AtomicI64::new(n_persons));
    let end = Instant::now() + time;
    let mut tasks = Vec::new();
    for number in 0..n_connections {
        let user = if number % 4 == 0 { "olga" } else { "ann" };
        let client = connect(&served.port, user).await?;
        let (persons, next_id) = (Arc::clone(&persons), Arc::clone(&next_id));
        tasks.push(tokio::spawn(async move { ask(&client, number, &persons, &next_id, end).await }));
    }
    let (pid, mut memory) = (served.child.id(), Vec::new());
    while Instant::now() < end {
        tokio::time::sleep(Duration::from_secs(1)).await;
        memory.push(resident_megabytes(pid)?);
    }
    let mut times: BTreeMap<&'static str, Vec<Duration>> = BTreeMap::new();
    for task in tasks {
        for (what, time) in task.await?? {
            times.entry(what).or_default().push(time);
        }
    }
    print(&mut times, &memory);
    Ok(())
}

fn start(command: &str, folder: &str) -> Result<Served, AnswerError> {
    let log = Path::new(folder).join("asked.jsonl");
    let data = Path::new(folder).join("data");
    let mut child = Command::new(command)
        .args(["--listen", "127.0.0.1:0", "--create-owner", "olga", "--data"])
        .arg(data)
        .arg("--log")
        .arg(log)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    writeln!(child.stdin.take().ok_or("it has no stdin")?, "{PASSWORD}")?;
    let said = BufReader::new(child.stderr.take().ok_or("it has no stderr")?);
    let mut served = Served { child, port: String::new() };
    let mut lines = said.lines();
    for line in lines.by_ref() {
        let line = line?;
        if let Some(address) = line.strip_prefix("listening on ") {
            served.port = address.rsplit(':').next().unwrap_or_default().to_owned();
            // Keep reading, because a full pipe would block the server.
            std::thread::spawn(move || lines.for_each(drop));
            return Ok(served);
        }
        eprintln!("{line}");
    }
    Err("the server did not start".into())
}

async fn connect(port: &str, user: &str) -> Result<Client, AnswerError> {
    let url = format!("host=127.0.0.1 port={port} user={user} password='{PASSWORD}' dbname=kohort");
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
    // The task ends with the client.
    tokio::spawn(connection);
    Ok(client)
}

/// Creates the view, and returns some of its persons.
async fn set_up(owner: &Client, census: &str, n_persons: i64) -> Result<Vec<Person>, AnswerError> {
    for sql in [
        format!("CREATE EXTERNAL TABLE census STORED AS PARQUET LOCATION '{census}'"),
        "CREATE TABLE persons (id BIGINT PRIMARY KEY, age BIGINT, sex TEXT, zip TEXT, edu TEXT)".to_owned(),
        format!(
            "INSERT INTO persons SELECT row_number() OVER () - 1, age, sex, zip, edu \
             FROM (SELECT * FROM census LIMIT {n_persons})"
        ),
        "CREATE DGH age FROM STEPS (5, 20, 40)".to_owned(),
        "CREATE DGH zip FROM MASK RIGHT".to_owned(),
        "CREATE DGH sex FROM FLAT".to_owned(),
        "CREATE DGH edu FROM FLAT".to_owned(),
        "CREATE MATERIALIZED ANONYMIZATION_VIEW seen ON SELECT id, age, sex, zip, edu FROM persons \
         WITH ANONYMIZATION_ID id ANONYMIZATION_QUASI_ID (age DGH_NAME age, sex DGH_NAME sex, zip DGH_NAME zip) \
         ANONYMIZATION_SENSITIVE_ATTR (edu DGH_NAME edu) K 10"
            .to_owned(),
        format!("CREATE USER ann PASSWORD '{PASSWORD}'"),
        "GRANT SELECT ON seen TO ann".to_owned(),
    ] {
        owner.simple_query(&sql).await?;
    }
    let some = owner.simple_query("SELECT age, sex, zip, edu FROM persons WHERE id % 37 = 5 LIMIT 2000").await?;
    let persons = some.into_iter().filter_map(|message| {
        let SimpleQueryMessage::Row(row) = message else { return None };
        let cell = |place: usize| row.get(place).unwrap_or_default().replace('\'', "''");
        Some(Person { age: cell(0), sex: cell(1), zip: cell(2), edu: cell(3) })
    });
    Ok(persons.collect())
}

/// Runs one statement after the other.
async fn ask(
    client: &Client,
    number: u64,
    persons: &[Person],
    next_id: &AtomicI64,
    end: Instant,
) -> Result<Vec<(&'static str, Duration)>, AnswerError> {
    let (mut times, mut turn) = (Vec::new(), number * 7919);
    while Instant::now() < end {
        turn += 1;
        let person = &persons[(turn * 611_953 % persons.len() as u64) as usize];
        let (what, sql) = match number % 4 {
            0 => ("write", write(person, turn, next_id)),
            _ if turn.is_multiple_of(N_READS_PER_COUNT) => {
                ("count", "SELECT sex, count(*) FROM seen GROUP BY sex".to_owned())
            }
            _ => {
                let Person { age, sex, zip, .. } = person;
                ("read", format!("SELECT * FROM seen WHERE age = {age} AND sex = '{sex}' AND zip = '{zip}'"))
            }
        };
        let start = Instant::now();
        client.simple_query(&sql).await?;
        times.push((what, start.elapsed()));
    }
    Ok(times)
}

fn write(person: &Person, turn: u64, next_id: &AtomicI64) -> String {
    let Person { age, sex, zip, edu } = person;
    let some_id = turn as i64 * 7 % next_id.load(Ordering::Relaxed).max(1);
    match turn % 8 {
        0 => format!("DELETE FROM persons WHERE id = {some_id}"),
        1 => format!("UPDATE persons SET age = {age} WHERE id = {some_id}"),
        _ => {
            let id = next_id.fetch_add(1, Ordering::Relaxed);
            format!("INSERT INTO persons VALUES ({id}, {age}, '{sex}', '{zip}', '{edu}')")
        }
    }
}

fn resident_megabytes(pid: u32) -> Result<u64, AnswerError> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("the server has ended")?;
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").trim().parse()?;
    Ok(kilobytes / 1024)
}

fn print(times: &mut BTreeMap<&'static str, Vec<Duration>>, memory: &[u64]) {
    let mut parts = Vec::new();
    for (what, times) in times {
        times.sort_unstable();
        let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)].as_secs_f64();
        parts.push(format!(
            r#""{what}": {{"n": {}, "p50": {:.6}, "p99": {:.6}, "most": {:.6}}}"#,
            times.len(),
            at(50),
            at(99),
            at(100)
        ));
    }
    let at = |part: usize| memory.get(memory.len() * part / 6).or(memory.last()).copied().unwrap_or_default();
    let (early, late) = (at(1), memory.last().copied().unwrap_or_default());
    parts.push(format!(r#""megabytes_early": {early}, "megabytes_late": {late}"#));
    println!("{{{}}}", parts.join(", "));
}
