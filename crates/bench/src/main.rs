//! `cargo xtask bench [NAME...]`: what kohort costs, as ratios that also hold on other machines, and loss beside time.
//!
//! The data are not part of the project: `KOHORT_DATA` names their folder. Results go to `bench/RESULTS.md`.

mod adult;
mod audiences;
mod auto;
mod categories;
mod cells;
mod census;
mod check;
mod child;
mod excerpt;
mod job;
mod measure;
mod partition;
mod peers;
mod plot;
mod python;
mod register;
mod report;
mod server;
mod store;
mod tables;
mod utility;
mod views;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use report::Section;

type Benchmark = fn(&Path) -> Result<Section, Box<dyn Error>>;

const BENCHMARKS: [(&str, Benchmark); 16] = [
    ("partition", partition::run),
    ("job", job::run),
    ("cells", cells::run),
    ("check", check::run),
    ("adult", adult::run),
    ("auto", auto::run),
    ("utility", utility::run),
    ("peers", peers::run),
    ("tables", tables::run),
    ("tables-scale", tables::scale::run),
    ("audiences", audiences::run),
    ("audiences-real", audiences::real::run),
    ("register", register::run),
    ("views", views::run),
    ("store", store::run),
    ("server", server::run),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((first, rest)) if first == child::MEASURE => child::measure(rest),
        Some((first, rest)) if first == job::STAGES => job::time_stages(rest),
        Some((first, _)) if first == register::RELEASE => register::release(),
        Some((first, rest)) if first == register::RELEASE_OF_FILES => register::release_of_files(rest),
        Some((first, rest)) if first == tables::scale::RELEASE => tables::scale::release(rest),
        _ => run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(names: &[String]) -> Result<(), Box<dyn Error>> {
    let all_names = BENCHMARKS.map(|(name, _)| name);
    if let Some(unknown) = names.iter().find(|name| !all_names.contains(&name.as_str())) {
        return Err(format!("there is no benchmark '{unknown}'; the benchmarks are {}", all_names.join(", ")).into());
    }
    let data = data_folder()?;
    child::build_kohort()?;
    for (name, benchmark) in BENCHMARKS {
        if names.is_empty() || names.iter().any(|wanted| wanted == name) {
            report::publish(root(), &benchmark(&data)?, &all_names)?;
        }
    }
    Ok(())
}

/// The folder of the workspace.
fn root() -> &'static Path {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    crates.and_then(Path::parent).expect("this crate sits two folders below the workspace")
}

fn data_folder() -> Result<PathBuf, Box<dyn Error>> {
    let folder = std::env::var_os("KOHORT_DATA").map_or_else(|| root().join("../shared/data"), PathBuf::from);
    if folder.join("census_like").is_dir() && folder.join("adult").is_dir() {
        return Ok(folder);
    }
    let shown = folder.display();
    Err(format!("there is no benchmark data in {shown}; set KOHORT_DATA to a folder with adult/ and census_like/")
        .into())
}
