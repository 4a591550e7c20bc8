//! A process that is killed loses nothing that it acknowledged, and leaves nothing half done.
//!
//! Each history changes two tables, and a hidden one with the number of people of each group, in the same transactions.
//! After the crash the three tables must have the effect of whole transactions: all acknowledged ones, and at most the
//! one that was under way.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[path = "crash/subject.rs"]
mod subject;

use std::path::Path;
use std::process::Command;

use kohort_crashkit::{Chance, History, acknowledge, work_until_killed};
use kohort_store::Store;

const N_HISTORIES: u64 = 500;
const N_THREADS: u64 = 4;
const THIS: &str = "a_killed_process_loses_nothing_that_it_acknowledged";
const FOLDER: &str = "KOHORT_CRASH_FOLDER";
const SEED: &str = "KOHORT_CRASH_SEED";

#[test]
fn a_killed_process_loses_nothing_that_it_acknowledged() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let seed = std::env::var(SEED).unwrap().parse().unwrap();
        work(Path::new(&folder), seed);
    }
    std::thread::scope(|scope| {
        for thread in 0..N_THREADS {
            scope.spawn(move || (thread..N_HISTORIES).step_by(N_THREADS as usize).for_each(kill_and_check));
        }
    });
}

/// Runs the history of a seed until the process is killed.
fn work(folder: &Path, seed: u64) -> ! {
    let store = Store::open(folder).unwrap();
    subject::prepare(&store).unwrap();
    acknowledge(0);
    let mut history = History::new(seed);
    for n_transactions in 1.. {
        subject::run(&store, &history.next_transaction()).unwrap();
        acknowledge(n_transactions);
    }
    unreachable!("the numbers do not end")
}

fn kill_and_check(seed: u64) {
    let folder = subject::folder();
    let mut chance = Chance::new(seed);
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", THIS, "--nocapture"]).env(FOLDER, folder.path()).env(SEED, seed.to_string());
    let until = chance.below(25);
    let acknowledged = work_until_killed(&mut command, until, chance.below(300_000)).unwrap();
    let store = Store::open(folder.path()).unwrap();
    let found = subject::check(&store, seed, acknowledged);

    // The store goes on where it stopped.
    let mut history = History::new(seed);
    (0..found).for_each(|_| drop(history.next_transaction()));
    subject::run(&store, &history.next_transaction()).unwrap();
    assert_eq!(subject::check(&store, seed, found + 1), found + 1);
}
