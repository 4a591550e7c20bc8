//! `auto` compared with every other partitioner on every kind of table, and on one that is too large to try everything.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Duration;

use kohort_core::anonymize;
use kohort_io::load;
use kohort_model::spec::Algorithm;
use kohort_model::{Manifest, Silent, Spec};

use crate::measure::{Cost, timed};
use crate::plot::{Dot, Dots, Figure, Kind};
use crate::report::{Grid, Section, count, megabytes, number, seconds};
use crate::{adult, child, excerpt};

const KS: [u32; 3] = [5, 10, 50];
const K_OF_FIGURE: u32 = 10;
/// The partitioners that are compared. The first one, `auto`, must not lose more than any of the others.
const ALGORITHMS: [(&str, Algorithm); 6] = [
    ("auto", Algorithm::Auto),
    ("top-down", Algorithm::TopDown),
    ("Mondrian", Algorithm::Mondrian),
    ("clustering", Algorithm::Cluster),
    ("Datafly", Algorithm::Datafly),
    ("full domain", Algorithm::FullDomain),
];

/// The most time that `auto` may take for a whole census.
const MOST_TIME: Duration = Duration::from_secs(60);
const MOST_MEMORY: u64 = 2_000_000_000;

const EXPLANATION: &str = "\
LM of every partitioner on tables of several kinds, with nobody suppressed and k as the only requirement. The tables are
Adult as in `adult`; `acs_ma` with AGEP and SCHL as numbers, SEX, RAC1P, MAR, CIT and RELP; Lahman's people with
birthYear, height and weight as numbers, birthCountry, birthState, bats and throws; `census_like` with age as a number,
sex, race, marital, state, edu, and either hispanic (the first 100,000 rows) or zip by its prefixes (the first 1,000,000
rows). Other text has no hierarchy, except in Adult: it is shown or not. Columns are in the order of the file, which
decides between columns that are equally good. *Least other* is the least loss of the other partitioners divided by the
loss of auto. If it is below 1, another partitioner loses less than auto, and the row is marked.
";

const TIMES: &str = "\
CPU seconds of encoding, partitioning and recoding in the same runs, all threads together, one run each.
";

const JOBS: &str = "\
All of `census_like`, k = 10: `kohort anonymize SPEC -o FOLDER` from Parquet to Parquet, measured once, from the start
of the process to its end. weekly_earn is released beside the quasi columns of the two `census_like` tables above. To
reach with auto on 2 cores: at most 60 s and 2,000 MB, and no more loss than Mondrian. Top-down is left out, because it
takes minutes on so many rows.
";

/// A table to anonymize.
struct Source {
    name: &'static str,
    /// The path below the data folder.
    file: &'static str,
    n_rows: usize,
    /// The columns as a spec describes them.
    columns: &'static [(&'static str, &'static str)],
}

const QUASI: &str = "\"quasi\"";
const TEXT: &str = "{ role = \"quasi\", type = \"text\" }";
const INTEGER: &str = "{ role = \"quasi\", type = \"integer\" }";
const PREFIXES: &str = "{ role = \"quasi\", hierarchy = { mask = \"right\" } }";

const ACS: Source = Source {
    name: "acs_ma",
    file: "acs_ma/acs_ma.parquet",
    n_rows: usize::MAX,
    columns: &[
        ("AGEP", QUASI),
        ("SCHL", INTEGER),
        ("SEX", TEXT),
        ("RAC1P", TEXT),
        ("MAR", TEXT),
        ("CIT", TEXT),
        ("RELP", TEXT),
    ],
};
const PEOPLE: Source = Source {
    name: "Lahman people",
    file: "lahman/People.parquet",
    n_rows: usize::MAX,
    columns: &[
        ("birthYear", QUASI),
        ("birthCountry", QUASI),
        ("birthState", QUASI),
        ("height", QUASI),
        ("weight", QUASI),
        ("bats", QUASI),
        ("throws", QUASI),
    ],
};
const CENSUS: Source = Source {
    name: "census_like",
    file: "census_like/persons.parquet",
    n_rows: 100_000,
    columns: &[
        ("sex", QUASI),
        ("age", QUASI),
        ("race", QUASI),
        ("marital", QUASI),
        ("state", QUASI),
        ("edu", QUASI),
        ("hispanic", QUASI),
    ],
};
const CENSUS_BY_ZIP: Source = Source {
    name: "census_like, zip",
    file: "census_like/persons.parquet",
    n_rows: 1_000_000,
    columns: &[
        ("sex", QUASI),
        ("age", QUASI),
        ("race", QUASI),
        ("marital", QUASI),
        ("state", QUASI),
        ("edu", QUASI),
        ("zip", PREFIXES),
    ],
};
/// A column that the release of a census copies unchanged.
const SENSITIVE: (&str, &str) = ("weekly_earn", "\"sensitive\"");

/// The results of all partitioners on a table at one k.
struct Outcome {
    table: String,
    k: u32,
    found: [(f64, Cost); ALGORITHMS.len()],
}

impl Outcome {
    /// The partitioner that loses least among all others, and its loss divided by that of `auto`.
    fn least_other(&self) -> (&'static str, f64) {
        let others = ALGORITHMS.iter().zip(&self.found).skip(1);
        let least = others.min_by(|(_, one), (_, other)| one.0.total_cmp(&other.0)).expect("there are others");
        (least.0.0, least.1.0 / self.found[0].0)
    }
}

/// Runs the benchmark.
pub(crate) fn run(data: &Path) -> Result<Section, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let mut outcomes = Vec::new();
    measure("Adult", &adult::spec_text(data, adult::AUTO, KS[0])?, data, &mut outcomes)?;
    for source in [ACS, PEOPLE, CENSUS, CENSUS_BY_ZIP] {
        let spec = spec_text(Algorithm::Auto, source.columns);
        write(&source, source.columns, data, folder.path())?;
        measure(source.name, &spec, folder.path(), &mut outcomes)?;
    }
    let figures = vec![figure(&outcomes)];
    let body = format!(
        "{EXPLANATION}\n{}\n{}\n{TIMES}\n{}\n{JOBS}\n{}",
        losses(&outcomes),
        figures[0].link(),
        times(&outcomes),
        jobs(data, folder.path())?,
    );
    Ok(Section { name: "auto", body, figures })
}

fn write(source: &Source, columns: &[(&str, &str)], data: &Path, folder: &Path) -> Result<(), Box<dyn Error>> {
    let names: Vec<&str> = columns.iter().map(|&(name, _)| name).collect();
    excerpt::write(&data.join(source.file), &names, source.n_rows, &folder.join("persons.parquet"))
}

fn spec_text(algorithm: Algorithm, columns: &[(&str, &str)]) -> String {
    let mut text = format!("k = 10\nalgorithm = \"{}\"\n[tables.persons]\n", algorithm.word());
    text += "file = \"persons.parquet\"\n[tables.persons.columns]\n";
    for (name, says) in columns {
        text += &format!("{name} = {says}\n");
    }
    text
}

fn measure(table: &str, spec: &str, folder: &Path, outcomes: &mut Vec<Outcome>) -> Result<(), Box<dyn Error>> {
    let mut spec = Spec::parse(spec)?;
    let original = load(folder, &spec, &spec.tables[0], &Silent)?;
    let table = format!("{table}, {} rows", count(original.table.n_rows));
    for k in KS {
        spec.k = k;
        let requirements = spec.requirements(&spec.tables[0]);
        let mut found = [(0.0, Cost::default()); ALGORITHMS.len()];
        for ((name, algorithm), found) in ALGORITHMS.into_iter().zip(&mut found) {
            eprintln!("auto: {table}, k = {k}, {name}");
            spec.algorithm = algorithm;
            let (anonymized, cost) = timed(|| anonymize(&original.table, &spec, &requirements, &Silent));
            *found = (anonymized?.loss.lm, cost);
        }
        outcomes.push(Outcome { table: table.clone(), k, found });
    }
    Ok(())
}

fn losses(outcomes: &[Outcome]) -> String {
    let [auto, top_down, mondrian, cluster, datafly, full_domain] = ALGORITHMS.map(|(name, _)| name);
    let mut grid =
        Grid::new(["LM", "k", auto, top_down, mondrian, cluster, datafly, full_domain, "least other over auto"]);
    for outcome in outcomes {
        let [auto, top_down, mondrian, cluster, datafly, full_domain] = outcome.found.map(|(lm, _)| format!("{lm:.4}"));
        let (name, over) = outcome.least_other();
        let least = if over < 1.0 { format!("**{name} loses less: {over:.4}**") } else { number(over) };
        let (table, k) = (outcome.table.clone(), outcome.k.to_string());
        grid.push([table, k, auto, top_down, mondrian, cluster, datafly, full_domain, least]);
    }
    grid.render()
}

fn times(outcomes: &[Outcome]) -> String {
    let [auto, top_down, mondrian, cluster, datafly, full_domain] = ALGORITHMS.map(|(name, _)| name);
    let mut grid = Grid::new(["CPU s", "k", auto, top_down, mondrian, cluster, datafly, full_domain]);
    for outcome in outcomes {
        let times = outcome.found.map(|(_, cost)| format!("{:.3}", cost.cpu.as_secs_f64()));
        let [auto, top_down, mondrian, cluster, datafly, full_domain] = times;
        let (table, k) = (outcome.table.clone(), outcome.k.to_string());
        grid.push([table, k, auto, top_down, mondrian, cluster, datafly, full_domain]);
    }
    grid.render()
}

/// Runs the command on a whole census.
fn jobs(data: &Path, folder: &Path) -> Result<String, Box<dyn Error>> {
    let kohort = child::kohort()?;
    let mut grid =
        Grid::new(["quasi columns", "", "rows", "wall", "CPU", "peak memory", "k", "classes", "LM", "reached"]);
    for source in [CENSUS, CENSUS_BY_ZIP] {
        let whole = Source { n_rows: usize::MAX, ..source };
        let columns = [whole.columns, &[SENSITIVE]].concat();
        write(&whole, &columns, data, folder)?;
        let names: Vec<&str> = whole.columns.iter().map(|&(name, _)| name).collect();
        let mut most_loss = f64::INFINITY;
        for algorithm in [Algorithm::Mondrian, Algorithm::Auto] {
            eprintln!("auto: all of {}, {}", whole.name, algorithm.word());
            let (spec, target) = (folder.join("release.toml"), folder.join("release"));
            fs::write(&spec, spec_text(algorithm, &columns))?;
            let arguments = [Path::new("anonymize"), &spec, Path::new("-o"), &target, Path::new("--json")];
            let run = child::run(&kohort, &arguments)?;
            fs::remove_dir_all(target)?;
            let manifest: Manifest = serde_json::from_str(&run.stdout)?;
            let is_within = run.cost.wall <= MOST_TIME && run.peak_memory <= MOST_MEMORY;
            let reached = match algorithm {
                Algorithm::Auto if is_within && manifest.loss.lm <= most_loss => "yes",
                Algorithm::Auto => "no",
                _ => "",
            };
            most_loss = manifest.loss.lm;
            grid.push([
                names.join(", "),
                algorithm.word().to_owned(),
                count(manifest.tables[0].rows_out as usize),
                seconds(run.cost.wall),
                seconds(run.cost.cpu),
                megabytes(run.peak_memory),
                manifest.achieved.k.to_string(),
                count(manifest.classes as usize),
                format!("{:.4}", manifest.loss.lm),
                reached.to_owned(),
            ]);
        }
    }
    Ok(grid.render())
}

fn figure(outcomes: &[Outcome]) -> Figure {
    let mut dots = Vec::new();
    for outcome in outcomes.iter().filter(|outcome| outcome.k == K_OF_FIGURE) {
        for ((name, _), (lm, _)) in ALGORITHMS.iter().zip(outcome.found) {
            let (name, kind) = if *name == ALGORITHMS[0].0 {
                (format!("{}: {name}", outcome.table), Kind::Highlighted)
            } else {
                ((*name).to_owned(), Kind::Ours)
            };
            dots.push(Dot { name, kind, value: lm, label: format!("{lm:.4}") });
        }
    }
    Dots {
        file: "auto-lm",
        title: format!("Loss of every partitioner by table, k = {K_OF_FIGURE}"),
        x: "LM, less is better".to_owned(),
        dots,
    }
    .draw()
}
