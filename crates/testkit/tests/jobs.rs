//! Random jobs of every system, recounted by independent code. `cargo xtask jobs` runs many more of them.

use std::ops::Range;

use kohort_testkit::jobs::{FaultKind, System, Tally, run, shrunk};

/// How many jobs of each system the ordinary tests run.
const N_JOBS: u64 = 120;

/// The number in an environment variable.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number")))
}

/// The numbers of the jobs: the first ones, or the range that the environment asks for.
fn numbers() -> Range<u64> {
    let first = number("KOHORT_JOBS_FROM").unwrap_or(0);
    first..first + number("KOHORT_JOBS").unwrap_or(N_JOBS)
}

/// Runs jobs of a system, prints failing ones as small as they get, and prints how many jobs had which outcome.
fn recounted(system: System) -> Option<Tally> {
    let is_asked = |word: String| word == system.word();
    if !std::env::var("KOHORT_JOBS_OF").map_or(true, is_asked) {
        return None;
    }
    let tally = run(system, numbers(), |job, judged| {
        eprintln!("{system} job {job} failed; again: cargo xtask jobs --of {system} --from {job} --count 1");
        judged.faults.iter().take(5).for_each(|fault| eprintln!("  {fault}"));
        if number("KOHORT_JOBS_SHRINK") != Some(0) {
            eprintln!("{}", shrunk(system, job).unwrap_or_default());
        }
    });
    println!("{system}: {tally}");
    assert_eq!(tally.with_fault(FaultKind::UnderRequirement), 0);
    assert_eq!(tally.with_fault(FaultKind::Rejected), 0);
    assert!(tally.is_clean(), "{tally}");
    Some(tally)
}

#[test]
fn random_jobs_of_one_table_are_what_they_claim() {
    recounted(System::Table);
}

#[test]
fn random_jobs_of_many_tables_are_what_they_claim() {
    recounted(System::Tables);
}

#[test]
fn random_jobs_for_audiences_are_what_they_claim() {
    recounted(System::Audiences);
}

#[test]
fn random_jobs_beside_registers_are_what_they_claim() {
    recounted(System::Register);
}

#[test]
fn random_histories_of_views_are_what_they_claim() {
    recounted(System::Views);
}

#[test]
fn random_towns_that_are_released_again_and_again_are_what_they_claim() {
    recounted(System::Town);
}
