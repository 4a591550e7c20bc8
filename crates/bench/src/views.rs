//! A-views: the cost of reading one, compared with the same query without anonymization, both run by `kohort-sql`.
//!
//! SQL makes the data from `census_like`, and `kohort-testkit` makes the paper's PATIENT. Every figure is the time that
//! `--timing` prints for one statement, in a process that made the view before. With `KOHORT_BENCH_ROWS=50000` the
//! benchmark runs on that many rows instead of a million.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::child;
use crate::plot::{Axis, Kind, Line, Lines};
use crate::report::{Grid, Section, count, megabytes, number, ratio, seconds};

const EXPLANATION: &str = "\
`kohort-sql --timing`, one process per table row; statements run as `EXPLAIN ANALYZE`, which reads everything and prints
a plan. The data are census_like: quasi age (in steps of 5, 20 and 40), sex and zip (text, masked from the right),
sensitive edu, a k from 0 to 9 for each person, level 0 or 1. The peer reads the same columns without anonymization,
joined with the same policies and sorted by identifier. Rows are not sorted by identifier. Figures are medians of 3.
";

/// One process of the command.
struct Process<'a> {
    command: &'a Path,
    folder: &'a Path,
}

/// The output of a process.
struct Said {
    /// The time of each statement.
    times: Vec<Duration>,
    stdout: String,
    peak_memory: u64,
}

impl Process<'_> {
    fn run(&self, statements: &[String]) -> Result<Said, Box<dyn Error>> {
        let file = self.folder.join("statements.sql");
        fs::write(&file, statements.join(";\n"))?;
        let run = child::run(self.command, &[Path::new("--timing"), Path::new("--csv"), Path::new("-f"), &file])?;
        let time = |line: &str| line.strip_prefix("time: ")?.strip_suffix(" s")?.parse().ok();
        let times: Vec<Duration> = run.stderr.lines().filter_map(time).map(Duration::from_secs_f64).collect();
        if times.len() != statements.len() {
            return Err(format!("{} of {} statements were timed", times.len(), statements.len()).into());
        }
        Ok(Said { times, stdout: run.stdout, peak_memory: run.peak_memory })
    }
}

/// Tables of persons and of their choices.
#[derive(Clone)]
struct Data {
    n_rows: usize,
    persons: PathBuf,
    choices: PathBuf,
}

impl Data {
    fn setup(&self) -> Result<Vec<String>, Box<dyn Error>> {
        let external = |name: &str, path: &Path| -> Result<String, Box<dyn Error>> {
            Ok(format!("CREATE EXTERNAL TABLE {name} STORED AS PARQUET LOCATION '{}'", child::path(path)?))
        };
        Ok(vec![
            external("persons", &self.persons)?,
            external("choices", &self.choices)?,
            "CREATE DGH age FROM STEPS (5, 20, 40)".to_owned(),
            "CREATE DGH zip FROM MASK RIGHT".to_owned(),
            "CREATE DGH sex FROM FLAT".to_owned(),
            "CREATE DGH edu FROM FLAT".to_owned(),
        ])
    }
}

fn view(name: &str, quasi: &str, options: &str) -> String {
    format!(
        "CREATE ANONYMIZATION_VIEW {name} ON SELECT id, age, sex, zip, edu FROM persons WITH ANONYMIZATION_ID id \
         ANONYMIZATION_QUASI_ID ({quasi}) ANONYMIZATION_SENSITIVE_ATTR (edu DGH_NAME edu) {options}"
    )
}

const QUASI: &str = "age DGH_NAME age, sex DGH_NAME sex, zip DGH_NAME zip";
const BY_PERSON: &str = "id REFERENCES choices (k, sa_level)";
const PEER: &str =
    "EXPLAIN ANALYZE SELECT p.*, c.k, c.sa_level FROM persons p JOIN choices c ON p.id = c.id ORDER BY p.id";

/// Runs the benchmark.
pub(crate) fn run(data: &Path) -> Result<Section, Box<dyn Error>> {
    let command = child::kohort_sql()?;
    let folder = tempfile::tempdir()?;
    let process = Process { command: &command, folder: folder.path() };
    let census = data.join("census_like/persons.parquet");
    let make = |n_rows: usize, k: &str, name: &str| make_data(&process, &census, n_rows, k, name);
    let n_rows = n_rows()?;
    let all = make(n_rows, "id * 7919 % 10", "all")?;
    let (mut body, mut figures) = (EXPLANATION.to_owned(), Vec::new());

    eprintln!("views: reading {} rows", count(n_rows));
    body.push_str(&whole(&process, &all)?);
    eprintln!("views: blocks of 1,024, as the paper's");
    let smaller = make(n_rows / 10, "id * 7919 % 10", "smaller")?;
    body.push_str(&beside_the_paper(&process, &[&smaller, &all])?);
    eprintln!("views: many k against one");
    let tenth = make(n_rows, "CASE WHEN id % 10 = 0 THEN 50 ELSE 2 + id * 7919 % 3 END", "tenth")?;
    let hundredth = make(n_rows, "CASE WHEN id % 100 = 0 THEN 50 ELSE 2 + id * 7919 % 3 END", "hundredth")?;
    body.push_str(&many_k(&process, &[("10 % at 50", &tenth), ("1 % at 50", &hundredth)])?);
    eprintln!("views: blocks, selectivity, k");
    for lines in [blocks(&process, &smaller)?, selectivity(&process, &smaller)?, ks(&process, &smaller)?] {
        let figure = lines.draw();
        write!(body, "\n{}", figure.link())?;
        figures.push(figure);
    }
    eprintln!("views: joins");
    body.push_str(&joins(&process, &smaller)?);
    Ok(Section { name: "views", body, figures })
}

/// How many rows to read.
fn n_rows() -> Result<usize, Box<dyn Error>> {
    match std::env::var("KOHORT_BENCH_ROWS") {
        Ok(number) => number.parse().map_err(|_| "KOHORT_BENCH_ROWS must be a whole number".into()),
        Err(_) => Ok(1_000_000),
    }
}

/// Writes persons, not sorted by their identifiers, and their choices.
fn make_data(process: &Process<'_>, census: &Path, n_rows: usize, k: &str, name: &str) -> Result<Data, Box<dyn Error>> {
    let file = |kind: &str| process.folder.join(format!("{name}-{kind}.parquet"));
    let (persons, choices) = (file("persons"), file("choices"));
    let columns = "id, age, sex, zip, edu";
    process.run(&[
        format!("CREATE EXTERNAL TABLE census STORED AS PARQUET LOCATION '{}'", child::path(census)?),
        // The step shares no factor with the number of rows, so every identifier is visited once.
        format!(
            "COPY (SELECT (row_number() OVER () * 611953) % {n_rows} AS id, age, sex, zip, edu \
             FROM (SELECT * FROM census LIMIT {n_rows})) TO '{}' STORED AS PARQUET",
            child::path(&persons)?
        ),
        format!("CREATE EXTERNAL TABLE persons STORED AS PARQUET LOCATION '{}'", child::path(&persons)?),
        format!(
            "COPY (SELECT id, CAST({k} AS INT) AS k, CAST(id * 31 % 2 AS INT) AS sa_level FROM (SELECT {columns} FROM persons)) \
             TO '{}' STORED AS PARQUET",
            child::path(&choices)?
        ),
    ])?;
    Ok(Data { n_rows, persons, choices })
}

/// Runs statements after a setup, three times each, and returns the median of each and the memory of the process.
fn medians(
    process: &Process<'_>,
    setup: Vec<String>,
    asked: &[String],
) -> Result<(Vec<Duration>, Said), Box<dyn Error>> {
    let n_setup = setup.len();
    let mut statements = setup;
    statements.extend(asked.iter().flat_map(|statement| std::iter::repeat_n(statement.clone(), 3)));
    let said = process.run(&statements)?;
    let median = |times: &[Duration]| {
        let mut times = times.to_vec();
        times.sort_unstable();
        times[1]
    };
    Ok((said.times[n_setup..].chunks(3).map(median).collect(), said))
}

/// Reading a whole view compared with its peer, and reading one point of it.
fn whole(process: &Process<'_>, data: &Data) -> Result<String, Box<dyn Error>> {
    let mut grid =
        Grid::new([&format!("{} rows", count(data.n_rows)), "time", "of the peer", "of the whole view", "to reach"]);
    let mut setup = data.setup()?;
    setup.push(view("v", QUASI, BY_PERSON));
    let create = setup.len() - 1;
    let asked = [
        PEER.to_owned(),
        "EXPLAIN ANALYZE SELECT * FROM v".to_owned(),
        "EXPLAIN ANALYZE SELECT * FROM v WHERE age = 36 AND sex = 'male' AND zip = '77007'".to_owned(),
    ];
    let (times, said) = medians(process, setup.clone(), &asked)?;
    let [peer, all, point] = times[..] else { return Err("not all three statements were timed".into()) };
    let dash = || "-".to_owned();
    grid.push(["peer: policies joined, sorted".to_owned(), seconds(peer), "1".to_owned(), dash(), dash()]);
    grid.push([
        "making the view".to_owned(),
        seconds(said.times[create]),
        ratio(said.times[create], peer),
        dash(),
        dash(),
    ]);
    grid.push([
        "the whole view".to_owned(),
        seconds(all),
        ratio(all, peer),
        "1".to_owned(),
        "<= 5 of the peer".to_owned(),
    ]);
    let of_all = format!("1/{}", number(all.as_secs_f64() / point.as_secs_f64()));
    grid.push(["one point".to_owned(), seconds(point), ratio(point, peer), of_all, "<= 1/50 of the view".to_owned()]);

    let first = [vec!["SET kohort.plan = 'anonymize_first'".to_owned()], setup.clone()].concat();
    let (times, _) = medians(process, first, &["EXPLAIN ANALYZE SELECT * FROM v".to_owned()])?;
    grid.push([
        "the whole view, anonymized first".to_owned(),
        seconds(times[0]),
        ratio(times[0], peer),
        ratio(times[0], all),
        dash(),
    ]);

    let citizens = "age DGH_NAME age, sex DGH_NAME sex";
    let mut coarse = data.setup()?;
    coarse.push(format!(
        "CREATE ANONYMIZATION_VIEW v ON SELECT id, age, sex, edu FROM persons WITH ANONYMIZATION_ID id \
             ANONYMIZATION_QUASI_ID ({citizens}) ANONYMIZATION_SENSITIVE_ATTR (edu DGH_NAME edu) {BY_PERSON}"
    ));
    let (times, _) = medians(process, coarse, &["EXPLAIN ANALYZE SELECT * FROM v".to_owned()])?;
    grid.push(["age and sex only".to_owned(), seconds(times[0]), ratio(times[0], peer), ratio(times[0], all), dash()]);
    Ok(format!(
        "\n{}\nPeak memory of the process: {} (to reach: < 1,000 MB).\n",
        grid.render(),
        megabytes(said.peak_memory)
    ))
}

/// Reading views in blocks of 1,024 rows, with everything anonymized at each reading, as the paper measures it.
fn beside_the_paper(process: &Process<'_>, [smaller, all]: &[&Data; 2]) -> Result<String, Box<dyn Error>> {
    let mut grid = Grid::new(["anonymized first, BLOCK 1024", "rows", "time", "the paper's prototype"]);
    let read = vec!["EXPLAIN ANALYZE SELECT * FROM v".to_owned()];
    let plan = || "SET kohort.plan = 'anonymize_first'".to_owned();
    for (data, quoted) in [(smaller, "< 30 s for 100,000"), (all, "< 300 s for 1,000,000")] {
        let mut setup = data.setup()?;
        setup.extend([view("v", QUASI, &format!("{BY_PERSON} BLOCK 1024")), plan()]);
        let (times, _) = medians(process, setup, &read)?;
        grid.push(["census".to_owned(), count(data.n_rows), seconds(times[0]), quoted.to_owned()]);
    }
    let mut setup = patients(process, smaller.n_rows)?;
    setup.push(plan());
    let (times, _) = medians(process, setup, &read)?;
    let quoted = "< 75 s for 100,000".to_owned();
    grid.push(["synthetic PATIENT".to_owned(), count(smaller.n_rows), seconds(times[0]), quoted]);
    Ok(format!("\nThe paper's figure 11, on a machine of its time:\n\n{}", grid.render()))
}

/// The paper's PATIENT and a view of it.
fn patients(process: &Process<'_>, n_patients: usize) -> Result<Vec<String>, Box<dyn Error>> {
    let made = kohort_testkit::patients::generate(n_patients, 1);
    let write = |name: &str, text: &str| -> Result<String, Box<dyn Error>> {
        let path = process.folder.join(name);
        fs::write(&path, text)?;
        Ok(child::path(&path)?.to_owned())
    };
    let table = |name: &str, columns: &str, path: &str| {
        format!(
            "CREATE EXTERNAL TABLE {name} ({columns}) STORED AS CSV LOCATION '{path}' OPTIONS ('format.has_header' 'true')"
        )
    };
    Ok(vec![
        table("patient", "name TEXT, birthdate DATE, area TEXT, disease TEXT", &write("patient.csv", &made.patient)?),
        table("choices", "name TEXT, k INT, sa_level INT", &write("choices.csv", &made.choices)?),
        "CREATE DGH birthdate FROM DATES (month, year, decade)".to_owned(),
        format!("CREATE DGH area FROM '{}'", write("area.dgh.csv", &made.area_paths)?),
        format!("CREATE DGH disease FROM '{}'", write("disease.dgh.csv", &made.disease_paths)?),
        "CREATE ANONYMIZATION_VIEW v ON SELECT name, birthdate, area, disease FROM patient WITH ANONYMIZATION_ID name \
         ANONYMIZATION_QUASI_ID (birthdate DGH_NAME birthdate, area DGH_NAME area) \
         ANONYMIZATION_SENSITIVE_ATTR (disease DGH_NAME disease) name REFERENCES choices (k, sa_level) BLOCK 1024"
            .to_owned(),
    ])
}

/// Each person's own k compared with the largest k for everybody.
fn many_k(process: &Process<'_>, data: &[(&str, &Data)]) -> Result<String, Box<dyn Error>> {
    let mut grid = Grid::new(["k", "rows together", "k-deviation, own k", "one k", "NCP, own k", "one k"]);
    let n_rows = data.first().map_or(0, |(_, data)| data.n_rows);
    for (name, data) in data {
        for (together, option) in [("all", ""), ("1,024", "BLOCK 1024")] {
            let mut figures = Vec::new();
            for k in [BY_PERSON.to_owned(), "K 50".to_owned()] {
                let mut setup = data.setup()?;
                setup.push(view("v", QUASI, &format!("{k} {option}")));
                setup.push("SHOW ANONYMIZATION_VIEWS".to_owned());
                let said = process.run(&setup)?;
                let row = said.stdout.lines().last().unwrap_or_default().to_owned();
                let cell = |place: usize| {
                    row.split(',').nth(place).and_then(|cell| cell.parse::<f64>().ok()).unwrap_or(f64::NAN)
                };
                figures.push((cell(6), cell(5)));
            }
            let [(own_deviation, own_ncp), (one_deviation, one_ncp)] = figures[..] else { continue };
            grid.push([
                (*name).to_owned(),
                together.to_owned(),
                count(own_deviation as usize),
                count(one_deviation as usize),
                format!("{own_ncp:.5}"),
                format!("{one_ncp:.5}"),
            ]);
        }
    }
    Ok(format!(
        "\nEach person's own k compared with the largest k for everybody ({} rows):\n\n{}",
        count(n_rows),
        grid.render()
    ))
}

/// Time of making and of reading a view, by rows per block.
fn blocks(process: &Process<'_>, data: &Data) -> Result<Lines, Box<dyn Error>> {
    let (mut making, mut reading) = (Vec::new(), Vec::new());
    let sizes = [256, 1_024, 4_096, 16_384, 65_536];
    for size in sizes {
        let mut setup = data.setup()?;
        setup.push(view("v", QUASI, &format!("{BY_PERSON} BLOCK {size}")));
        let (times, said) = medians(process, setup.clone(), &["EXPLAIN ANALYZE SELECT * FROM v".to_owned()])?;
        making.push((f64::from(size), said.times[setup.len() - 1].as_secs_f64()));
        reading.push((f64::from(size), times[0].as_secs_f64()));
    }
    Ok(Lines {
        file: "views-blocks",
        title: format!("Time by rows per block, {} rows", count(data.n_rows)),
        x: ("rows per block", sizes.map(f64::from).to_vec()),
        y: ("seconds", Axis::Linear),
        lines: vec![
            Line { name: "making the view".to_owned(), kind: Kind::Ours, points: making },
            Line { name: "reading it".to_owned(), kind: Kind::Highlighted, points: reading },
        ],
    })
}

/// Time of both plans, by how many values of age are asked for.
fn selectivity(process: &Process<'_>, data: &Data) -> Result<Lines, Box<dyn Error>> {
    let mut lines = Vec::new();
    let widths = [1, 2, 5, 10, 20, 50];
    for (plan, kind) in [("anonymize_first", Kind::Ours), ("select_first", Kind::Highlighted)] {
        let mut setup = data.setup()?;
        setup.push(view("v", QUASI, BY_PERSON));
        setup.push(format!("SET kohort.plan = '{plan}'"));
        let asked: Vec<String> = widths
            .iter()
            .map(|width| {
                format!("EXPLAIN ANALYZE SELECT * FROM v WHERE zip LIKE '7%' AND age BETWEEN 30 AND {}", 29 + width)
            })
            .collect();
        let (times, _) = medians(process, setup, &asked)?;
        let points = widths.iter().zip(times).map(|(&width, time)| (f64::from(width), time.as_secs_f64())).collect();
        lines.push(Line { name: plan.replace('_', " "), kind, points });
    }
    Ok(Lines {
        file: "views-selectivity",
        title: format!("Time of both plans by years of age asked for, {} rows", count(data.n_rows)),
        x: ("years of age", widths.map(f64::from).to_vec()),
        y: ("seconds", Axis::Log),
        lines,
    })
}

/// Time of both plans, by k.
fn ks(process: &Process<'_>, data: &Data) -> Result<Lines, Box<dyn Error>> {
    let mut lines = Vec::new();
    let all_ks = [2, 10, 50, 200];
    for (plan, kind) in [("anonymize_first", Kind::Ours), ("select_first", Kind::Highlighted)] {
        let mut points = Vec::new();
        for k in all_ks {
            let mut setup = data.setup()?;
            setup.push(view("v", QUASI, &format!("K {k}")));
            setup.push(format!("SET kohort.plan = '{plan}'"));
            let asked = ["EXPLAIN ANALYZE SELECT * FROM v WHERE age = 36 AND zip = '77007'".to_owned()];
            let (times, _) = medians(process, setup, &asked)?;
            points.push((f64::from(k), times[0].as_secs_f64()));
        }
        lines.push(Line { name: plan.replace('_', " "), kind, points });
    }
    Ok(Lines {
        file: "views-k",
        title: format!("Time of a point by k, {} rows", count(data.n_rows)),
        x: ("k", all_ks.map(f64::from).to_vec()),
        y: ("seconds", Axis::Log),
        lines,
    })
}

/// Joins of a view with a table and with a view.
fn joins(process: &Process<'_>, data: &Data) -> Result<String, Box<dyn Error>> {
    let mut grid = Grid::new([&format!("join of {} rows with a tenth of them", count(data.n_rows)), "time"]);
    let mut setup = data.setup()?;
    setup.push(view("v", QUASI, BY_PERSON));
    setup.push("CREATE TABLE few AS SELECT id, zip, edu FROM persons WHERE id % 10 = 0".to_owned());
    setup.push(
        "CREATE ANONYMIZATION_VIEW w ON SELECT id, age, sex, zip, edu FROM persons WHERE id % 10 = 0 \
         WITH ANONYMIZATION_ID id ANONYMIZATION_QUASI_ID (age DGH_NAME age, sex DGH_NAME sex, zip DGH_NAME zip) \
         ANONYMIZATION_SENSITIVE_ATTR (edu DGH_NAME edu) K 5"
            .to_owned(),
    );
    let asked = [
        ("view and table on zip", "SELECT count(*) FROM v JOIN few ON v.zip = few.zip"),
        ("view and table on identifier", "SELECT count(*) FROM v JOIN few ON v.id = few.id"),
        ("view and table on edu", "SELECT count(*) FROM v JOIN (SELECT DISTINCT edu FROM few) few ON v.edu = few.edu"),
        ("view and view on zip", "SELECT count(*) FROM v JOIN w ON v.zip = w.zip"),
    ];
    let statements: Vec<String> = asked.iter().map(|(_, statement)| (*statement).to_owned()).collect();
    let (times, _) = medians(process, setup, &statements)?;
    for ((name, _), time) in asked.iter().zip(times) {
        grid.push([(*name).to_owned(), seconds(time)]);
    }
    Ok(format!("\n{}", grid.render()))
}
