//! Tables that change: the cost of a materialized A-view, compared with a plain SQLite table with one index.
//!
//! Both sides keep the same rows in files of their own, with the same settings (write-ahead log, every commit on the
//! disk), and get the same rows and queries. `kohort-sql --timing` prints the time of each statement; SQLite runs in
//! this process. Both get queries for points as texts, in alternating turns, and both write the same CSV to a file.
//! With `KOHORT_BENCH_ROWS=50000` the benchmark runs on that many rows instead of a million.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use crate::child;
use crate::report::{Grid, Section, count, megabytes, ratio, seconds};

const EXPLANATION: &str = "\
A materialized view of census_like (quasi age, sex and zip, sensitive edu, K 10; age in steps of 5, 20 and 40, zip
masked from the right) follows its table: an insert writes both, in one transaction that is on the disk when it is
answered. SQLite has one table of the same rows with an index over zip, age and sex, WAL and synchronous=FULL. The time
of an insert begins when its text has been parsed; SQLite gets the values without a text. A point of the view returns
every row of every class that could be meant, verified. Its time is that from its text to the last line of its answer,
CSV in a file, and so is SQLite's, in three turns of 1,000 points each. *The same answer*: another plain table in SQLite
holds the rows as the view shows them, with an index over the same columns, and is asked for every label that could be
meant (zip IN ('88512', '8851*', ...)); it must answer with the same lines. *The same question*: SQLite's table of
persons, which answers with the person's own row or two. Figures are medians.
";

const N_SINGLE: usize = 1_000;
const N_BATCHES: usize = 30;
const BATCH: usize = 1_000;
const N_POINTS: usize = 1_000;
/// How many turns each side gets to answer points. Turns alternate, so that a machine that is slow for a while is slow
/// for both.
const N_TURNS: usize = 3;
/// Inserted persons are like this many of the existing persons.
const N_LIKE: usize = 3_001;
const N_SCANS: usize = 5;
const AGE_STEPS: [i64; 3] = [5, 20, 40];
const CREATE: &str = "CREATE TABLE persons (id BIGINT PRIMARY KEY, age BIGINT, sex TEXT, zip TEXT, edu TEXT)";

/// A row of persons.
struct Person {
    id: i64,
    age: i64,
    sex: String,
    zip: String,
    edu: String,
}

impl Person {
    fn literals(&self, id: i64) -> String {
        format!("({id}, {}, '{}', '{}', '{}')", self.age, self.sex, self.zip, self.edu.replace('\'', "''"))
    }

    fn point(&self, table: &str) -> String {
        let Person { age, sex, zip, .. } = self;
        format!("SELECT * FROM {table} WHERE age = {age} AND sex = '{sex}' AND zip = '{zip}'")
    }

    /// The same query for a plain table that holds the labels which the view shows.
    fn point_of_labels(&self, table: &str) -> String {
        let Person { age, sex, zip, .. } = self;
        let step = |width: &i64| format!("'[{},{}]'", age / width * width, age / width * width + width - 1);
        let ages: Vec<String> = AGE_STEPS.iter().map(step).collect();
        let masked = |n_kept: usize| format!("'{}{}'", &zip[..n_kept], "*".repeat(zip.len() - n_kept));
        let zips: Vec<String> = (0..=zip.len()).map(masked).collect();
        format!(
            "SELECT * FROM {table} WHERE age IN ('{age}', {}, '*') AND sex IN ('{sex}', '*') AND zip IN ({})",
            ages.join(", "),
            zips.join(", ")
        )
    }
}

/// The times of everything that is compared.
struct Times {
    single: Duration,
    batch: Duration,
    scan: Duration,
}

/// Runs the benchmark.
pub(crate) fn run(data: &Path) -> Result<Section, Box<dyn Error>> {
    let command = child::kohort_sql()?;
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    let n_rows = match std::env::var("KOHORT_BENCH_ROWS") {
        Ok(number) => number.parse().map_err(|_| "KOHORT_BENCH_ROWS must be a whole number")?,
        Err(_) => 1_000_000,
    };
    let rows = folder.join("rows.csv");
    let store = folder.join("data");
    let run = |statements: &[String]| run_statements(&command, folder, &store, statements);

    eprintln!("store: {} rows", count(n_rows));
    run(&[
        format!(
            "CREATE EXTERNAL TABLE census STORED AS PARQUET LOCATION '{}'",
            child::path(&data.join("census_like/persons.parquet"))?
        ),
        format!(
            "COPY (SELECT (row_number() OVER () * 611953) % {n_rows} AS id, age, sex, zip, edu \
             FROM (SELECT * FROM census LIMIT {n_rows})) TO '{}' STORED AS CSV",
            child::path(&rows)?
        ),
        "DROP TABLE census".to_owned(),
    ])?;
    let persons = read_persons(&rows)?;

    eprintln!("store: making the view");
    let show = || "SHOW ANONYMIZATION_VIEWS".to_owned();
    let made = run(&[
        CREATE.to_owned(),
        format!("COPY persons FROM '{}'", child::path(&rows)?),
        format!("CREATE DGH age FROM STEPS ({})", AGE_STEPS.map(|step| step.to_string()).join(", ")),
        "CREATE DGH zip FROM MASK RIGHT".to_owned(),
        "CREATE DGH sex FROM FLAT".to_owned(),
        "CREATE DGH edu FROM FLAT".to_owned(),
        "CREATE MATERIALIZED ANONYMIZATION_VIEW v ON SELECT id, age, sex, zip, edu FROM persons \
         WITH ANONYMIZATION_ID id ANONYMIZATION_QUASI_ID (age DGH_NAME age, sex DGH_NAME sex, zip DGH_NAME zip) \
         ANONYMIZATION_SENSITIVE_ATTR (edu DGH_NAME edu) K 10"
            .to_owned(),
        show(),
    ])?;

    eprintln!("store: points");
    let plain_file = folder.join("plain.db");
    let (plain, plain_copy) = plain_table(&plain_file, &persons)?;
    let labels = labels_table(&folder.join("labels.db"), &run(&["SELECT * FROM v".to_owned()])?.stdout)?;
    let answers = folder.join("answers.csv");
    let (mut ours_points, mut same_answer, mut same_question) = <(Points, Points, Points)>::default();
    for turn in 0..N_TURNS {
        let asked: Vec<&Person> = asked(&persons, turn).collect();
        let queries = |query: &dyn Fn(&Person) -> String| asked.iter().map(|person| query(person)).collect::<Vec<_>>();
        let theirs = plain_points(&labels, &queries(&|person| person.point_of_labels("labels")), &answers)?;
        let ours = our_points(&command, &store, &queries(&|person| person.point("v")))?;
        if sorted_lines(&ours.answers) != sorted_lines(&theirs.answers) {
            return Err("the view and the plain table of its labels give different answers".into());
        }
        same_answer.add(theirs);
        ours_points.add(ours);
        same_question.add(plain_points(&plain, &queries(&|person| person.point("persons")), &answers)?);
    }
    drop(labels);

    eprintln!("store: writing");
    let theirs = plain_times(&plain, &persons)?;
    drop(plain);
    let (ours, changed) = our_times(run, &persons)?;

    let mut body = EXPLANATION.to_owned();
    let mut grid = Grid::new([&format!("{} rows", count(n_rows)), "kohort", "SQLite", "ratio", "to reach"]);
    let mut compare = |what: &str, ours: Duration, theirs: Duration, most: &str| {
        grid.push([what.to_owned(), seconds(ours), seconds(theirs), ratio(ours, theirs), most.to_owned()]);
    };
    compare("insert of one row", ours.single, theirs.single, "<= 5");
    compare("insert of 1,000 rows", ours.batch, theirs.batch, "<= 5");
    let point = ours_points.median();
    compare("a quasi point of the view: the same answer", point, same_answer.median(), "<= 3");
    compare("a quasi point of the view: the same question", point, same_question.median(), "<= 3");
    compare("scan of the table", ours.scan, theirs.scan, "<= 2");
    compare("all rows copied in", made.times[1], plain_copy, "-");
    body.push_str(&format!("\n{}", grid.render()));

    let size = |path: &Path| -> Result<u64, Box<dyn Error>> {
        let files = fs::read_dir(path)?.collect::<Result<Vec<_>, _>>()?;
        Ok(files.iter().map(|file| file.metadata().map_or(0, |known| known.len())).sum())
    };
    body.push_str(&format!(
        "\nMaking the view took {}, at most {} of memory; the folder has {}, the plain file {}. Statements after that \
         took at most {}, with opening the folder.\n",
        seconds(made.times[6]),
        megabytes(made.peak_memory),
        megabytes(size(&store)?),
        megabytes(fs::metadata(&plain_file)?.len()),
        megabytes(changed.peak_memory),
    ));
    let shown = |said: &Said| {
        let line = said.stdout.lines().last().unwrap_or_default().to_owned();
        let cell = |place: usize| line.split(',').nth(place).unwrap_or_default().to_owned();
        (cell(5), cell(7).parse::<usize>().unwrap_or_default())
    };
    body.push_str(&format!(
        "\nA point returns {:.1} rows of the view, or {:.1} rows of the table of persons.\n",
        ours_points.rows_each(),
        same_question.rows_each(),
    ));
    let ((loss, n_shown), (loss_after, n_shown_after)) = (shown(&made), shown(&changed));
    let n_inserted = N_SINGLE + N_BATCHES * BATCH;
    body.push_str(&format!(
        "\nLoss (NCP) when it was made: {loss}, with {} rows shown; after {} inserts: {loss_after}, with {} shown and the \
         others, who wait, counted as lost.\n",
        count(n_shown),
        count(n_inserted),
        count(n_shown_after),
    ));
    Ok(Section { name: "store", body, figures: Vec::new() })
}

/// The output of a process.
struct Said {
    times: Vec<Duration>,
    stdout: String,
    peak_memory: u64,
}

fn run_statements(command: &Path, folder: &Path, store: &Path, statements: &[String]) -> Result<Said, Box<dyn Error>> {
    let file = folder.join("statements.sql");
    fs::write(&file, statements.join(";\n"))?;
    run_timed(command, store, &[Path::new("-f"), &file], statements.len())
}

/// Runs this many statements and reads their times.
fn run_timed(command: &Path, store: &Path, said: &[&Path], n_statements: usize) -> Result<Said, Box<dyn Error>> {
    let flag = Path::new;
    let arguments = [&[flag("--data"), store, flag("--timing"), flag("--csv")], said].concat();
    let run = child::run(command, &arguments)?;
    let time = |line: &str| line.strip_prefix("time: ")?.strip_suffix(" s")?.parse().ok();
    let times: Vec<Duration> = run.stderr.lines().filter_map(time).map(Duration::from_secs_f64).collect();
    if times.len() != n_statements {
        return Err(format!("{} of {n_statements} statements were timed", times.len()).into());
    }
    Ok(Said { times, stdout: run.stdout, peak_memory: run.peak_memory })
}

/// How long queries took, and their answers as lines of CSV, each with a header.
#[derive(Default)]
struct Points {
    times: Vec<Duration>,
    answers: String,
}

impl Points {
    fn add(&mut self, other: Points) {
        self.times.extend(other.times);
        self.answers.push_str(&other.answers);
    }

    fn median(&self) -> Duration {
        median(&self.times)
    }

    fn rows_each(&self) -> f64 {
        let n_points = self.times.len();
        (self.answers.lines().count() - n_points) as f64 / n_points as f64
    }
}

fn our_points(command: &Path, store: &Path, queries: &[String]) -> Result<Points, Box<dyn Error>> {
    // Each query is a text of its own, so that its time includes parsing.
    let arguments: Vec<&Path> = queries.iter().flat_map(|query| [Path::new("-c"), Path::new(query)]).collect();
    let said = run_timed(command, store, &arguments, queries.len())?;
    Ok(Points { times: said.times, answers: said.stdout })
}

fn plain_points(plain: &Connection, queries: &[String], file: &Path) -> Result<Points, Box<dyn Error>> {
    let mut out = fs::File::create(file)?;
    let mut times = Vec::with_capacity(queries.len());
    let mut lines = String::new();
    for query in queries {
        let start = Instant::now();
        lines.clear();
        lines.push_str("id,age,sex,zip,edu\n");
        push_answer(&mut lines, plain, query)?;
        out.write_all(lines.as_bytes())?;
        times.push(start.elapsed());
    }
    Ok(Points { times, answers: fs::read_to_string(file)? })
}

/// Adds SQLite's answer as CSV.
fn push_answer(lines: &mut String, plain: &Connection, query: &str) -> Result<(), Box<dyn Error>> {
    let mut statement = plain.prepare(query)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        for column in 0..5 {
            if column > 0 {
                lines.push(',');
            }
            match row.get_ref(column)? {
                ValueRef::Text(text) => match std::str::from_utf8(text)? {
                    text if text.contains(',') => write!(lines, "\"{text}\"")?,
                    text => lines.push_str(text),
                },
                ValueRef::Integer(number) => write!(lines, "{number}")?,
                _ => {}
            }
        }
        lines.push('\n');
    }
    Ok(())
}

fn sorted_lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

fn read_persons(rows: &Path) -> Result<Vec<Person>, Box<dyn Error>> {
    let text = fs::read_to_string(rows)?;
    let person = |line: &str| -> Result<Person, Box<dyn Error>> {
        let [id, age, sex, zip, edu] = line.split(',').collect::<Vec<_>>()[..] else {
            return Err("a row of census_like does not have five cells without commas".into());
        };
        let own = str::to_owned;
        Ok(Person { id: id.parse()?, age: age.parse()?, sex: own(sex), zip: own(zip), edu: own(edu) })
    };
    text.lines().skip(1).map(person).collect()
}

/// Persons from all parts of the table, whose points are asked for in a turn.
fn asked(persons: &[Person], turn: usize) -> impl Iterator<Item = &Person> {
    (turn * N_POINTS..(turn + 1) * N_POINTS).map(|number| &persons[number * 7_919 % persons.len()])
}

/// The rows to insert, grouped by commit. They resemble a few thousand existing rows, in no order, so that crowds fill
/// up and are admitted.
fn inserts(persons: &[Person]) -> (Vec<Vec<&Person>>, Vec<Vec<&Person>>) {
    let person = |number: usize| &persons[number * (number + 7_919) % N_LIKE * 313 % persons.len()];
    let single = (0..N_SINGLE).map(|number| vec![person(number)]).collect();
    let batch = |number: usize| (0..BATCH).map(|row| person(N_SINGLE + number * BATCH + row)).collect();
    (single, (0..N_BATCHES).map(batch).collect())
}

fn our_times(
    run: impl Fn(&[String]) -> Result<Said, Box<dyn Error>>,
    persons: &[Person],
) -> Result<(Times, Said), Box<dyn Error>> {
    let mut statements = Vec::new();
    let mut next = persons.len() as i64;
    let (single, batches) = inserts(persons);
    for rows in single.iter().chain(&batches) {
        let rows: Vec<String> = rows.iter().zip(next..).map(|(person, id)| person.literals(id)).collect();
        next += rows.len() as i64;
        statements.push(format!("INSERT INTO persons VALUES {}", rows.join(", ")));
    }
    let scan = "EXPLAIN ANALYZE SELECT id, age, sex, zip, edu FROM persons".to_owned();
    statements.extend(std::iter::repeat_n(scan, N_SCANS));
    statements.push("SHOW ANONYMIZATION_VIEWS".to_owned());
    let said = run(&statements)?;
    let (single, rest) = said.times.split_at(N_SINGLE);
    let (batches, rest) = rest.split_at(N_BATCHES);
    let (scans, _) = rest.split_at(N_SCANS);
    let times = Times { single: median(single), batch: median(batches), scan: median(scans) };
    Ok((times, said))
}

fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times[times.len() / 2]
}

/// The plain table with all rows, and how long they took to insert.
fn plain_table(file: &Path, persons: &[Person]) -> Result<(Connection, Duration), Box<dyn Error>> {
    let plain = Connection::open(file)?;
    plain.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         CREATE TABLE persons (id INTEGER PRIMARY KEY, age INTEGER, sex TEXT, zip TEXT, edu TEXT);
         CREATE INDEX quasi ON persons (zip, age, sex);",
    )?;
    let start = Instant::now();
    plain.execute_batch("BEGIN")?;
    persons.iter().try_for_each(|person| insert(&plain, person, person.id))?;
    plain.execute_batch("COMMIT")?;
    Ok((plain, start.elapsed()))
}

fn insert(plain: &Connection, person: &Person, id: i64) -> Result<(), rusqlite::Error> {
    let mut statement = plain.prepare_cached("INSERT INTO persons VALUES (?, ?, ?, ?, ?)")?;
    statement.execute((id, person.age, &person.sex, &person.zip, &person.edu)).map(drop)
}

fn plain_times(plain: &Connection, persons: &[Person]) -> Result<Times, Box<dyn Error>> {
    let mut next = persons.len() as i64;
    let (single, batches) = inserts(persons);
    let mut commit = |rows: &[&Person]| -> Result<Duration, Box<dyn Error>> {
        let start = Instant::now();
        plain.execute_batch("BEGIN")?;
        for person in rows {
            insert(plain, person, next)?;
            next += 1;
        }
        plain.execute_batch("COMMIT")?;
        Ok(start.elapsed())
    };
    let single: Vec<Duration> = single.iter().map(|rows| commit(rows)).collect::<Result<_, _>>()?;
    let batches: Vec<Duration> = batches.iter().map(|rows| commit(rows)).collect::<Result<_, _>>()?;
    let mut scans = Vec::with_capacity(N_SCANS);
    for _ in 0..N_SCANS {
        let start = Instant::now();
        read_all(plain, "SELECT id, age, sex, zip, edu FROM persons")?;
        scans.push(start.elapsed());
    }
    Ok(Times { single: median(&single), batch: median(&batches), scan: median(&scans) })
}

/// A plain table with the rows that a view shows, from CSV. Only ranges of ages are quoted there.
fn labels_table(file: &Path, shown: &str) -> Result<Connection, Box<dyn Error>> {
    let plain = Connection::open(file)?;
    plain.execute_batch(
        "PRAGMA journal_mode = WAL;
         CREATE TABLE labels (id INTEGER, age TEXT, sex TEXT, zip TEXT, edu TEXT);
         CREATE INDEX quasi ON labels (zip, age, sex);
         BEGIN",
    )?;
    let mut insert = plain.prepare("INSERT INTO labels VALUES (NULL, ?, ?, ?, ?)")?;
    for line in shown.lines().skip(1) {
        let unknown = || "a row of the view does not begin with an age";
        let line = line.strip_prefix(',').ok_or_else(unknown)?;
        let (age, rest) = match line.strip_prefix('"') {
            Some(quoted) => quoted.split_once("\",").ok_or_else(unknown)?,
            None => line.split_once(',').ok_or_else(unknown)?,
        };
        let [sex, zip, edu] = rest.split(',').collect::<Vec<_>>()[..] else {
            return Err("a row of the view does not have five cells".into());
        };
        insert.execute([age, sex, zip, edu])?;
    }
    drop(insert);
    plain.execute_batch("COMMIT")?;
    Ok(plain)
}

/// Reads as fast as SQLite can: steps to each row, asks for each column, and keeps nothing.
fn read_all(plain: &Connection, sql: &str) -> Result<(), Box<dyn Error>> {
    let mut statement = plain.prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut n_bytes = 0;
    while let Some(row) = rows.next()? {
        for column in 0..5 {
            n_bytes += match row.get_ref(column)? {
                ValueRef::Text(text) => text.len(),
                _ => 1,
            };
        }
    }
    if n_bytes > 0 { Ok(()) } else { Err("a query found nothing".into()) }
}
