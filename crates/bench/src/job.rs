//! The whole job: from a Parquet file to a folder with a verified release, as the command does it.
//!
//! The command runs once in a process of its own, which gives its time and peak memory. Its stages are then timed in
//! another process that makes the same calls.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use kohort_core::anonymize;
use kohort_io::{Existing, Private, WriteOptions, load, stage};
use kohort_model::{Manifest, Role, Silent, Spec};
use kohort_verify::{SuppressionLimit, measure, verify_release};
use serde::{Deserialize, Serialize};

use crate::census::{Census, IDENTIFIER, QUASI, SENSITIVE};
use crate::child;
use crate::measure::timed;
use crate::report::{Grid, Section, count, megabytes, seconds};

/// The hidden argument that makes this program time the stages of one job.
pub(crate) const STAGES: &str = "job-stages";

const EXPLANATION: &str = "\
`kohort anonymize SPEC -o FOLDER`, measured from the start of the process to its end: read, anonymize, verify, write,
read back, verify again. The census jobs read and write Parquet: sex, age, race, zip, marital and edu as in `partition`,
k = 10, Mondrian, one sensitive column that is released and an identifier that is not; beyond 2.5 M rows with the same
noise. The clinic is `examples/clinic` (CSV, k = 5, l = 3, t = 0.6, auto). Stages are wall times of a second run.
";

struct Job {
    name: String,
    spec: PathBuf,
    limit: &'static str,
}

#[derive(Serialize, Deserialize)]
struct Stages {
    read: std::time::Duration,
    anonymize: std::time::Duration,
    verify: std::time::Duration,
    write: std::time::Duration,
}

/// Runs the benchmark.
pub(crate) fn run(data: &Path) -> Result<Section, Box<dyn Error>> {
    let kohort = child::kohort()?;
    let mut totals = Grid::new(["job", "rows", "wall", "CPU", "peak memory", "to reach", "k", "classes", "LM"]);
    let mut stages = Grid::new(["job", "read", "anonymize", "verify", "write and read back"]);
    let folder = tempfile::tempdir()?;
    let clinic = Job { name: "clinic".to_owned(), spec: crate::root().join("examples/clinic/release.toml"), limit: "" };
    let mut finish = |job: &Job| -> Result<(), Box<dyn Error>> {
        eprintln!("job: {}", job.name);
        let (first, second) = (folder.path().join("first"), folder.path().join("second"));
        let arguments = [Path::new("anonymize"), &job.spec, Path::new("-o"), &first, Path::new("--json")];
        let run = child::run(&kohort, &arguments)?;
        let manifest: Manifest = serde_json::from_str(&run.stdout)?;
        totals.push([
            job.name.clone(),
            count(manifest.tables[0].rows_out as usize),
            seconds(run.cost.wall),
            seconds(run.cost.cpu),
            megabytes(run.peak_memory),
            job.limit.to_owned(),
            manifest.achieved.k.to_string(),
            count(manifest.classes as usize),
            format!("{:.4}", manifest.loss.lm),
        ]);
        let run = child::run(&std::env::current_exe()?, &[Path::new(STAGES), &job.spec, &first, &second])?;
        let times: Stages = serde_json::from_str(&run.stdout)?;
        let times = [times.read, times.anonymize, times.verify, times.write].map(seconds);
        let [read, anonymize, verify, write] = times;
        stages.push([job.name.clone(), read, anonymize, verify, write]);
        fs::remove_dir_all(first)?;
        fs::remove_dir_all(second)?;
        Ok(())
    };
    finish(&clinic)?;
    for (n_rows, limit) in [(2_500_000, "<= 1,500 MB"), (10_000_000, "<= 4,000 MB")] {
        eprintln!("job: writing {} rows", count(n_rows));
        Census::read(data, n_rows)?.write_parquet(&folder.path().join("persons.parquet"))?;
        let spec = folder.path().join("release.toml");
        fs::write(&spec, spec_text())?;
        finish(&Job { name: format!("census, {} M", n_rows as f64 / 1e6), spec, limit })?;
    }
    Ok(Section {
        name: "job",
        body: format!("{EXPLANATION}\n{}\n{}", totals.render(), stages.render()),
        figures: Vec::new(),
    })
}

fn spec_text() -> String {
    let mut text = String::from(
        "k = 10\nalgorithm = \"mondrian\"\n[tables.persons]\nfile = \"persons.parquet\"\n[tables.persons.columns]\n",
    );
    text += &format!("{IDENTIFIER} = \"identifier\"\n{SENSITIVE} = \"sensitive\"\n");
    for column in QUASI {
        text += &format!("{column} = \"quasi\"\n");
    }
    text
}

/// Does a job once more, stage by stage, and prints their times. The manifest is taken from the first run, in
/// `release`.
pub(crate) fn time_stages(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let [spec_file, release, target] = arguments else {
        return Err("the arguments must be a spec and two folders".into());
    };
    let manifest: Manifest = serde_json::from_str(&fs::read_to_string(Path::new(release).join("manifest.json"))?)?;
    let spec = Spec::parse(&fs::read_to_string(spec_file)?)?;
    let spec_folder = Path::new(spec_file).parent().ok_or("the spec's path has no folder")?;
    let table = &spec.tables[0];
    let requirements = spec.requirements(table);

    let (original, read) = timed(|| load(spec_folder, &spec, table, &Silent));
    let original = original?;
    let (anonymized, anonymize) = timed(|| anonymize(&original.table, &spec, &requirements, &Silent));
    let release = anonymized?.release;
    let (verified, verify) = timed(|| {
        // The command also measures the risk before anonymizing.
        measure(&original.table, &original.table.with_role(Role::Quasi), &[], &[])?;
        verify_release(release, &original.table, &requirements, SuppressionLimit::share(spec.max_suppressed))
    });
    let verified = verified?;
    let options = WriteOptions { format: None, existing: Existing::Refuse };
    let private = Private::one(spec.clone(), original);
    let (written, write) = timed(|| {
        stage(&verified, &private, Path::new(target), options, &Silent).and_then(|staged| staged.publish(&manifest))
    });
    written?;
    let stages = Stages { read: read.wall, anonymize: anonymize.wall, verify: verify.wall, write: write.wall };
    println!("{}", serde_json::to_string(&stages)?);
    Ok(())
}
