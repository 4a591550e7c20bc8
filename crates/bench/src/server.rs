//! A server under load: how long statements take if they come from many connections at once.

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::child;
use crate::report::{Grid, Section, count, seconds};

const EXPLANATION: &str = "\
`kohort-serve --data` with a log file. `crates/server/examples/load.rs` queries it on the same machine, without TLS,
over 64 connections, each of which sends its next statement as soon as the last one is answered. 48 connections belong
to an analyst, who reads quasi points of a materialized view (census_like: quasi age, sex and zip, sensitive edu, K 10)
and every 100th time counts all of it. 16 belong to an owner: of 8 statements, 6 add a person, one changes a person, and
one removes a person. Each is a transaction that is on the disk when it is answered. Any error would end the run.
Clients and server share the cores of the machine, so most of the time is spent waiting for a core.
";

const N_PERSONS: &str = "100000";
const N_CONNECTIONS: &str = "64";
const SECONDS: u64 = 60;

/// Runs the benchmark.
pub(crate) fn run(data: &Path) -> Result<Section, Box<dyn Error>> {
    let (command, load) = child::kohort_serve()?;
    let folder = tempfile::tempdir()?;
    eprintln!("server: {N_CONNECTIONS} connections for {SECONDS} s");
    let output = Command::new(load)
        .arg(command)
        .arg(folder.path())
        .arg(data.join("census_like/persons.parquet"))
        .args([N_PERSONS, N_CONNECTIONS, &SECONDS.to_string()])
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let said: Value = serde_json::from_slice(&output.stdout)?;
    let mut grid = Grid::new(["100,000 persons", "statements", "per second", "median", "p99", "longest"]);
    for (name, what) in [("quasi point", "read"), ("count of all", "count"), ("change of one person", "write")] {
        let figure = |key: &str| said[what][key].as_f64().unwrap_or_default();
        let n_statements = figure("n") as usize;
        let time = |key: &str| seconds(Duration::from_secs_f64(figure(key)));
        let per_second = count(n_statements / SECONDS as usize);
        grid.push([name.to_owned(), count(n_statements), per_second, time("p50"), time("p99"), time("most")]);
    }
    let memory = |key: &str| said[key].as_u64().unwrap_or_default();
    let body = format!(
        "{EXPLANATION}\n{}\nNo error. Memory of the server after 10 s {} MB, after 60 s {} MB.\n",
        grid.render(),
        memory("megabytes_early"),
        memory("megabytes_late"),
    );
    Ok(Section { name: "server", body, figures: Vec::new() })
}
