//! An engine that is killed loses nothing that it acknowledged, and its views agree with their tables.
//!
//! Processes are killed while they make, change, refresh and drop tables, DGHs and views, and while they open and close the
//! folder. [`crate::crashes`] checks what is left. `KOHORT_CRASHES` is the number of processes.

use std::path::Path;
use std::process::Command;

use kohort_crashkit::{Chance, acknowledge, work_until_killed};

use crate::crashes::{History, Running, check};

const N_HISTORIES: u64 = 60;
const N_THREADS: u64 = 2;
const THIS: &str = "killed::a_killed_engine_loses_nothing_that_it_acknowledged";
const FOLDER: &str = "KOHORT_CRASH_FOLDER";
const SEED: &str = "KOHORT_CRASH_SEED";

#[test]
fn a_killed_engine_loses_nothing_that_it_acknowledged() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let seed = std::env::var(SEED).unwrap().parse().unwrap();
        block_on(work(Path::new(&folder), seed));
    }
    let asked = std::env::var("KOHORT_CRASHES").ok();
    let n_histories = asked.map_or(N_HISTORIES, |n| n.parse().unwrap());
    std::thread::scope(|scope| {
        for thread in 0..N_THREADS {
            scope.spawn(move || (thread..n_histories).step_by(N_THREADS as usize).for_each(kill_and_check));
        }
    });
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Runs the history of a seed until the process is killed.
async fn work(folder: &Path, seed: u64) -> ! {
    let mut running = Running::open(folder).await.unwrap();
    acknowledge(0);
    let mut history = History::new(seed);
    for n_acts in 1.. {
        running = running.take(&history.next_act()).await.unwrap();
        acknowledge(n_acts);
    }
    unreachable!("the numbers do not end")
}

fn kill_and_check(seed: u64) {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("data");
    let mut chance = Chance::new(seed);
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", THIS, "--nocapture"]).env(FOLDER, &folder).env(SEED, seed.to_string());
    let until = chance.below(40);
    let acknowledged = work_until_killed(&mut command, until, chance.below(3_000_000)).unwrap();
    block_on(async {
        let mut history = History::new(seed);
        (0..acknowledged).for_each(|_| drop(history.next_act()));
        let sure = history.world.clone();
        let under_way = history.next_act();
        let said = format!("seed {seed}, killed in {under_way:?}, {acknowledged} acknowledged");
        let mut running = Running::open(&folder).await.unwrap_or_else(|error| panic!("{said}: {error}"));
        let (which, _) = check(&running.engine, &[sure, history.world.clone()], &said).await;

        // The next engine goes on where this one stopped.
        let next = if which == 0 { under_way } else { history.next_act() };
        running = running.take(&next).await.unwrap_or_else(|error| panic!("{said}, then {next:?}: {error}"));
        check(&running.engine, &[history.world.clone()], &format!("{said}, then {next:?}")).await;
    });
}
