//! `kohort check` compared with pycanon, on the same files.
//!
//! Our time is that of the whole command: starting, reading the file, all measures at once. pycanon's is that of one
//! call on a table in memory, without starting Python, imports and reading. So the ratios are lower than what a user
//! sees.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::census::{self, Census};
use crate::child::path;
use crate::measure::Cost;
use crate::python::Python;
use crate::report::{Grid, Section, count, ratio, seconds};
use crate::{adult, child};

const N_RUNS: usize = 3;
/// pycanon is given this long per table.
const LIMIT: Duration = Duration::from_secs(600);
const N_CENSUS: usize = 1_000_000;

const EXPLANATION: &str = "\
`kohort check` is the whole command: it starts, reads the file and computes all measures at once; medians of 3.
pycanon's time is that of one check on a DataFrame already in memory, without starting, importing and reading. Both must
find the same k, l and t, or the benchmark fails. The release is our own of Adult at k = 10.
";

/// A table and what is measured in it.
struct Case {
    name: String,
    file: PathBuf,
    quasi: String,
    sensitive: Option<&'static str>,
    /// The expected value of each measure.
    measures: &'static [(&'static str, &'static str)],
    /// How often pycanon runs.
    n_runs: usize,
}

#[derive(Deserialize)]
struct Pycanon {
    python: String,
    versions: String,
    checks: BTreeMap<String, Check>,
}

#[derive(Deserialize)]
struct Check {
    value: f64,
    wall: Vec<f64>,
    cpu: Vec<f64>,
}

impl Pycanon {
    /// The median cost of a check, which must have found the same value as ours.
    fn agreeing(&self, measure: &str, value: f64, case: &Case) -> Result<Cost, Box<dyn Error>> {
        let check = self.checks.get(measure).ok_or("pycanon did not measure everything")?;
        if (value - check.value).abs() > 1e-9 {
            return Err(format!("{}: {measure} is {value} here and {} in pycanon", case.name, check.value).into());
        }
        let runs = check
            .wall
            .iter()
            .zip(&check.cpu)
            .map(|(&wall, &cpu)| Cost { wall: Duration::from_secs_f64(wall), cpu: Duration::from_secs_f64(cpu) });
        Ok(Cost::median(&runs.collect::<Vec<_>>()))
    }
}

/// Runs the benchmark.
pub(crate) fn run(data: &Path) -> Result<Section, Box<dyn Error>> {
    let kohort = child::kohort()?;
    let python = Python::with("pycanon", &["pycanon", "pyarrow"])?;
    let folder = tempfile::tempdir()?;
    let mut grid = Grid::new([
        "table",
        "measure",
        "value",
        "kohort check",
        "its CPU",
        "pycanon",
        "its CPU",
        "ratio, wall",
        "ratio, CPU",
        "to reach",
    ]);
    let mut versions = String::new();
    for case in cases(data, folder.path(), &kohort)? {
        eprintln!("check: {}", case.name);
        let (found, ours) = check(&kohort, &case)?;
        let pycanon = pycanon(&python, &case)?;
        if let Some(pycanon) = &pycanon {
            versions = format!("Python {}, {}", pycanon.python, pycanon.versions);
        }
        for &(measure, to_reach) in case.measures {
            let value = value_of(&found, measure, &case)?;
            let theirs = match &pycanon {
                Some(pycanon) => {
                    let theirs = pycanon.agreeing(measure, value, &case)?;
                    let [wall, cpu] = [theirs.wall, theirs.cpu].map(seconds);
                    [wall, cpu, ratio(theirs.wall, ours.wall), ratio(theirs.cpu, ours.cpu)]
                }
                None => {
                    let [time, times] = [seconds(LIMIT), ratio(LIMIT, ours.wall)].map(|least| format!("over {least}"));
                    [time, String::new(), times, String::new()]
                }
            };
            let [wall, cpu, wall_ratio, cpu_ratio] = theirs;
            grid.push([
                case.name.clone(),
                measure.to_owned(),
                format!("{value:.4}").trim_end_matches('0').trim_end_matches('.').to_owned(),
                seconds(ours.wall),
                seconds(ours.cpu),
                wall,
                cpu,
                wall_ratio,
                cpu_ratio,
                to_reach.to_owned(),
            ]);
        }
    }
    Ok(Section { name: "check", body: format!("{EXPLANATION}\n{versions}.\n\n{}", grid.render()), figures: Vec::new() })
}

fn cases(data: &Path, folder: &Path, kohort: &Path) -> Result<Vec<Case>, Box<dyn Error>> {
    let adult = data.join("adult/adult.csv");
    let quasi = adult::QUASI.join(",");
    let release = folder.join("release");
    let arguments = ["anonymize", path(&adult)?, "--k", "10", "--quasi", &quasi];
    let more = ["--sensitive", adult::SENSITIVE, "--json", "-o", path(&release)?];
    child::run(kohort, &[arguments.as_slice(), more.as_slice()].concat())?;
    let census = folder.join("persons.parquet");
    Census::read(data, N_CENSUS)?.write_parquet(&census)?;
    let sensitive = Some(adult::SENSITIVE);
    Ok(vec![
        Case {
            name: "Adult".to_owned(),
            file: adult,
            quasi: quasi.clone(),
            sensitive,
            measures: &[("k", ""), ("l", ">= 20"), ("t", ">= 20")],
            n_runs: N_RUNS,
        },
        Case {
            name: "Adult, released".to_owned(),
            file: release.join("adult.csv"),
            quasi,
            sensitive,
            measures: &[("k", ""), ("l", ""), ("t", "")],
            n_runs: N_RUNS,
        },
        Case {
            name: format!("census, {} rows", count(N_CENSUS)),
            file: census,
            quasi: census::QUASI.join(","),
            sensitive: None,
            measures: &[("k", ">= 10")],
            n_runs: 1,
        },
    ])
}

/// The findings of our command, and its median cost.
fn check(kohort: &Path, case: &Case) -> Result<(Value, Cost), Box<dyn Error>> {
    let mut arguments = vec!["check", path(&case.file)?, "--quasi", &case.quasi, "--json"];
    if let Some(sensitive) = case.sensitive {
        arguments.extend(["--sensitive", sensitive]);
    }
    let mut costs = Vec::new();
    let mut found = Value::Null;
    for _ in 0..N_RUNS {
        let run = child::run(kohort, &arguments)?;
        found = serde_json::from_str(&run.stdout)?;
        costs.push(run.cost);
    }
    Ok((found, Cost::median(&costs)))
}

fn value_of(found: &Value, measure: &str, case: &Case) -> Result<f64, Box<dyn Error>> {
    let value = match case.sensitive {
        Some(sensitive) if measure != "k" => &found["sensitive"][sensitive][measure],
        _ => &found[measure],
    };
    value.as_f64().ok_or_else(|| format!("`kohort check` printed no {measure}").into())
}

/// The findings of pycanon; `None` if it took too long.
fn pycanon(python: &Python, case: &Case) -> Result<Option<Pycanon>, Box<dyn Error>> {
    let measures: Vec<&str> = case.measures.iter().map(|&(measure, _)| measure).collect();
    let (measures, n_runs, limit) = (measures.join(","), case.n_runs.to_string(), LIMIT.as_secs().to_string());
    let sensitive = case.sensitive.unwrap_or("-");
    python.run("pycanon_check.py", &[path(&case.file)?, &case.quasi, sensitive, &measures, &n_runs, &limit])
}
