//! Makes a release from a spec file and shows progress; then counts the release again, as its readers can, and against the
//! private table.
//!
//!     cargo run --package kohort --example spec_file -- examples/clinic/release.toml

use std::error::Error;
use std::path::PathBuf;

use kohort::{Job, Progress, WriteOptions};

/// Prints the name of each stage when it begins. A program with a user interface would also answer `is_cancelled`.
struct Stages;

impl Progress for Stages {
    fn begin(&self, stage: &str, _total: u64) {
        eprintln!("{stage} ...");
    }

    fn advance(&self, _steps: u64) {}
}

fn main() -> Result<(), Box<dyn Error>> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/clinic/release.toml");
    let spec = std::env::args_os().nth(1).map_or_else(|| PathBuf::from(default), PathBuf::from);
    let job = Job::read(spec)?;
    let release = job.anonymize_with(&Stages)?;

    let folder = std::env::temp_dir().join(format!("kohort-example-{}", std::process::id()));
    release.write_with(&folder, WriteOptions::default(), &Stages)?;
    let by_readers = kohort::verify(&folder)?;
    let by_publisher = kohort::verify_against(&folder, &job)?;
    std::fs::remove_dir_all(&folder)?;

    println!("k = {} reached", by_readers.findings.k);
    println!("from the files alone: {}", by_readers.verdict.word());
    println!("against the private table: {}", by_publisher.verdict.word());
    Ok(())
}
