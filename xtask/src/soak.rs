//! `cargo xtask soak`: repeats the tests of a crate with new random cases until the time is up.
//!
//! `cargo xtask test` draws the same random cases on every run, so that its outcome depends on the commit alone. New
//! cases come from here.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::compile::SEED;
use crate::test::{package, run_with_seed};

/// Repeats the tests of a crate for this many minutes, each time with another seed. Stops at the first failure and names
/// the seed that repeats it.
pub(crate) fn run(minutes: &str, name: &str, rest: &[&str]) -> Result<(), String> {
    let minutes: u64 = minutes.parse().map_err(|_| format!("'{minutes}' is not a whole number of minutes"))?;
    let package = package(name)?;
    let (start, limit) = (Instant::now(), Duration::from_secs(minutes * 60));
    let first = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let mut n_runs = 0;
    while n_runs == 0 || start.elapsed() < limit {
        let seed = (first + n_runs).to_string();
        println!("==> run {}, {SEED}={seed}", n_runs + 1);
        run_with_seed(package, rest, &seed).map_err(|message| {
            let words = [&["cargo", "xtask", "test", name], rest].concat().join(" ");
            format!("{message}\nhint: `{SEED}={seed} {words}` repeats it")
        })?;
        n_runs += 1;
    }
    println!("{n_runs} runs passed, each with other random cases.");
    Ok(())
}
