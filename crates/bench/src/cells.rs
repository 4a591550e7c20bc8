//! Tables that are larger than memory: what it costs to anonymize, check and verify them in cells, per row and in memory.
//!
//! Every run is a process of its own. The first job of each algorithm is small and runs in memory; later ones are compared with
//! it row by row.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Duration;

use kohort_model::Manifest;
use kohort_model::spec::Algorithm;

use crate::census::{Census, IDENTIFIER, QUASI, SENSITIVE};
use crate::child;
use crate::measure::Cost;
use crate::report::{Grid, Section, count, megabytes, number, seconds};

const EXPLANATION: &str = "\
`kohort anonymize SPEC -o FOLDER --memory SIZE` on `census_like` as in `job` (Parquet; sex, age, race, zip, marital and edu,
k = 10, one sensitive column that is released), repeated with the same noise. Without a size the job runs in memory. Each job is
compared with the first one of its algorithm, per row of the table: wall time and CPU time of whole processes. `check` counts the
private table and `verify` the release of the last Mondrian job. KOHORT_CELLS_ROWS leaves out tables with more rows.
";

/// The variable that names the number of rows of the largest table.
const MOST_ROWS: &str = "KOHORT_CELLS_ROWS";

/// How much memory `check` and `verify` get.
const MEMORY_TO_COUNT: &str = "1GB";

struct Setting {
    algorithm: Algorithm,
    n_rows: usize,
    memory: Option<&'static str>,
    /// What the ratio of times per row, the peak of memory, and the loss must not exceed.
    goal: &'static str,
}

const SETTINGS: [Setting; 6] = [
    Setting { algorithm: Algorithm::Auto, n_rows: 1_000_000, memory: Some("2GB"), goal: "" },
    Setting { algorithm: Algorithm::Auto, n_rows: 10_000_000, memory: Some("2GB"), goal: "CPU <= 1.2" },
    Setting { algorithm: Algorithm::Mondrian, n_rows: 2_500_000, memory: None, goal: "" },
    Setting {
        algorithm: Algorithm::Mondrian,
        n_rows: 2_500_000,
        memory: Some("256MB"),
        goal: "LM <= 1.03 times the first",
    },
    Setting {
        algorithm: Algorithm::Mondrian,
        n_rows: 10_000_000,
        memory: Some("2GB"),
        goal: "wall <= 2.5, <= 2,000 MB",
    },
    Setting {
        algorithm: Algorithm::Mondrian,
        n_rows: 100_000_000,
        memory: Some("2GB"),
        goal: "wall <= 2.5, <= 2,000 MB",
    },
];

/// Runs the benchmark.
pub(crate) fn run(data: &Path) -> Result<Section, Box<dyn Error>> {
    let kohort = child::kohort()?;
    let folder = tempfile::tempdir()?;
    let (table, spec, release) =
        (folder.path().join("persons.parquet"), folder.path().join("release.toml"), folder.path().join("release"));
    let mut jobs = Grid::new([
        "job",
        "rows",
        "memory",
        "cells",
        "wall",
        "CPU",
        "peak memory",
        "wall per row",
        "CPU per row",
        "LM",
        "to reach",
    ]);
    let mut first: Option<(Algorithm, usize, Cost)> = None;
    let mut n_written = 0;
    let most_rows: usize = match std::env::var(MOST_ROWS) {
        Ok(number) => number.parse()?,
        Err(_) => usize::MAX,
    };
    for Setting { algorithm, n_rows, memory, goal } in
        SETTINGS.into_iter().filter(|setting| setting.n_rows <= most_rows)
    {
        eprintln!("cells: {}, {} rows", algorithm.word(), count(n_rows));
        first = first.filter(|(of, ..)| *of == algorithm);
        if n_rows != n_written {
            Census::write_many(data, n_rows, &table)?;
            n_written = n_rows;
        }
        fs::write(&spec, spec_text(algorithm))?;
        let mut arguments = vec!["anonymize", child::path(&spec)?, "-o", child::path(&release)?, "--json", "--force"];
        arguments.extend(memory.iter().flat_map(|size| ["--memory", size]));
        let run = child::run(&kohort, &arguments)?;
        let manifest: Manifest = serde_json::from_str(&run.stdout)?;
        let (_, n_first, of_first) = *first.get_or_insert((algorithm, n_rows, run.cost));
        let per_row = |time: Duration, of: Duration| {
            number(time.as_secs_f64() / n_rows as f64 / (of.as_secs_f64() / n_first as f64))
        };
        jobs.push([
            algorithm.word().to_owned(),
            count(n_rows),
            memory.unwrap_or("").to_owned(),
            n_cells(&manifest),
            seconds(run.cost.wall),
            seconds(run.cost.cpu),
            megabytes(run.peak_memory),
            per_row(run.cost.wall, of_first.wall),
            per_row(run.cost.cpu, of_first.cpu),
            format!("{:.4}", manifest.loss.lm),
            goal.to_owned(),
        ]);
    }
    let mut counts = Grid::new(["command", "rows", "memory", "wall", "CPU", "peak memory", "to reach"]);
    let quasi = QUASI.join(",");
    let (table, spec, release) = (child::path(&table)?, child::path(&spec)?, child::path(&release)?);
    let commands = [
        ("check", vec!["check", table, "--quasi", &quasi, "--k", "1"]),
        ("verify", vec!["verify", release]),
        ("verify --against", vec!["verify", release, "--against", spec]),
    ];
    for (name, mut arguments) in commands {
        eprintln!("cells: {name}");
        arguments.extend(["--memory", MEMORY_TO_COUNT]);
        let run = child::run(&kohort, &arguments)?;
        counts.push([
            name.to_owned(),
            count(n_written),
            MEMORY_TO_COUNT.to_owned(),
            seconds(run.cost.wall),
            seconds(run.cost.cpu),
            megabytes(run.peak_memory),
            "<= 1,000 MB".to_owned(),
        ]);
    }
    let body = format!("{EXPLANATION}\n{}\n{}", jobs.render(), counts.render());
    Ok(Section { name: "cells", body, figures: Vec::new() })
}

/// The number of cells, which a note in the manifest tells.
fn n_cells(manifest: &Manifest) -> String {
    let note = manifest.notes.iter().find(|note| note.code == "in_cells");
    let number = note.and_then(|note| note.message.split_whitespace().find(|word| word.parse::<u64>().is_ok()));
    number.unwrap_or("1").to_owned()
}

fn spec_text(algorithm: Algorithm) -> String {
    let mut text = format!("k = 10\nalgorithm = \"{}\"\n[tables.persons]\n", algorithm.word());
    text += "file = \"persons.parquet\"\n[tables.persons.columns]\n";
    text += &format!("{IDENTIFIER} = \"identifier\"\n{SENSITIVE} = \"sensitive\"\n");
    for column in QUASI {
        text += &format!("{column} = \"quasi\"\n");
    }
    text
}
