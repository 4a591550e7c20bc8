//! Power is cut at every call that writes, while a store is made, changed, closed, opened again and changed further.
//!
//! Each history changes two tables, and a hidden one with the number of people of each group, in the same transactions.
//! After the crash the three tables must have the effect of whole transactions: all acknowledged ones, and at most the
//! one that was under way.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[path = "crash/subject.rs"]
mod subject;

use std::path::Path;

use kohort_crashkit::{Disk, Fault, History, Survivors};
use kohort_store::{Store, StoreError};

const N_TRANSACTIONS: u64 = 10;

/// Which unflushed writes survive a cut. Each cut is tried with all of these.
const SURVIVORS: [Survivors; 5] =
    [Survivors::None, Survivors::All, Survivors::Some(1), Survivors::Some(2), Survivors::Some(3)];

/// Runs the history of a seed until a call fails, and returns how many transactions were acknowledged.
fn run(folder: &Path, seed: u64) -> (u64, Result<(), StoreError>) {
    let mut n_acknowledged = 0;
    let mut history = History::new(seed);
    let mut work = || {
        // Closing moves the log into the file, so the second half of the history begins with a new log.
        for _ in 0..2 {
            let store = Store::open(folder)?;
            subject::prepare(&store)?;
            for _ in 0..N_TRANSACTIONS / 2 {
                subject::run(&store, &history.next_transaction())?;
                n_acknowledged += 1;
            }
        }
        Ok(())
    };
    let outcome = work();
    (n_acknowledged, outcome)
}

/// How many calls write in the history of a seed.
fn n_calls(seed: u64) -> u64 {
    let folder = subject::folder();
    let disk = Disk::at(folder.path());
    let (n_acknowledged, outcome) = run(folder.path(), seed);
    outcome.unwrap();
    assert_eq!(n_acknowledged, N_TRANSACTIONS);
    disk.n_calls()
}

#[test]
fn power_that_is_cut_at_any_write_loses_nothing_that_was_acknowledged() {
    for seed in 0..2 {
        let n_calls = n_calls(seed);
        assert!(n_calls > 50, "the history makes enough writing calls");
        for call in 0..n_calls {
            let folder = subject::folder();
            let disk = Disk::at(folder.path());
            disk.fail_at(call, Fault::PowerCut);
            let (n_acknowledged, _) = run(folder.path(), seed);
            let image = disk.image();
            for survivors in SURVIVORS {
                disk.restart(&image, survivors);
                let store = Store::open(folder.path())
                    .unwrap_or_else(|error| panic!("seed {seed}, call {call}, {survivors:?}: {error}"));
                subject::check(&store, seed, n_acknowledged);
            }
        }
    }
}

#[test]
fn power_that_is_cut_again_while_the_store_recovers_loses_nothing_either() {
    let seed = 4;
    let n_calls = n_calls(seed);
    for call in (0..n_calls).step_by(7) {
        let folder = subject::folder();
        let disk = Disk::at(folder.path());
        disk.fail_at(call, Fault::PowerCut);
        let (n_acknowledged, _) = run(folder.path(), seed);
        let first_cut = disk.image();
        for second_call in 0.. {
            disk.restart(&first_cut, Survivors::Some(call));
            disk.fail_at(second_call, Fault::PowerCut);
            // Opening recovers the log, closing moves it into the file.
            drop(Store::open(folder.path()));
            let is_over = disk.n_calls() <= second_call;
            let second_cut = disk.image();
            disk.restart(&second_cut, Survivors::Some(second_call));
            subject::check(&Store::open(folder.path()).unwrap(), seed, n_acknowledged);
            if is_over {
                break;
            }
        }
    }
}

#[test]
fn a_write_that_fails_or_finds_the_disk_full_undoes_its_transaction_and_nothing_else() {
    let seed = 5;
    let n_calls = n_calls(seed);
    for (call, fault) in (0..n_calls).flat_map(|call| [(call, Fault::Full), (call, Fault::Error)]) {
        let folder = subject::folder();
        let disk = Disk::at(folder.path());
        disk.fail_at(call, fault);
        let (n_acknowledged, outcome) = run(folder.path(), seed);
        match outcome {
            // Moving the log into the file may fail and be repeated later.
            Ok(()) => assert_eq!(n_acknowledged, N_TRANSACTIONS),
            Err(StoreError::Full) => assert_eq!(fault, Fault::Full),
            Err(StoreError::Sqlite { .. }) => assert_eq!(fault, Fault::Error),
            Err(error) => panic!("call {call}, {fault:?}: {error}"),
        }
        subject::check(&Store::open(folder.path()).unwrap(), seed, n_acknowledged);
    }
}

#[test]
fn nothing_is_written_outside_the_folder() {
    // The disk refuses every file outside its folder, including SQLite's temporary files.
    let folder = subject::folder();
    let _disk = Disk::at(folder.path());
    let (_, outcome) = run(folder.path(), 6);
    outcome.unwrap();
    let other = subject::folder();
    assert!(Store::open(other.path()).is_err());
}
