//! Random jobs of every system, each released, verified in every way there is, and recounted by independent code.
//!
//! A system and a number always name the same job, so they are all that is needed to repeat a failure. [`run`] judges a
//! range of numbers and adds up the outcomes; [`shrunk`] makes a failing job smaller until nothing can be taken away.
//!
//! # Oracle
//! Classes are found and counted by [`crate::oracle`], which uses neither the partitioners' counts nor the verifier's.
//! A refusal is compared with brute force where the job is small enough to try everything.

mod audiences;
mod judged;
mod one_table;
mod register;
mod tables;
mod town;
mod views;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

pub use judged::{Ending, Fault, FaultKind, Judged, Tally};
pub use tables::{FoundEveryWay, judge_refused_tables, verify_tables_every_way};

use crate::generate::Size;
use crate::generate::audiences::audiences_job;
use crate::generate::references::references_job;
use crate::generate::register::{RegisterSize, register_job};
use crate::generate::snowflake::{Asks, TablesSize, tables_job};
use crate::generate::town::{TownSize, town};
use crate::generate::{job, job_of_several_rows};
use crate::random::Random;

/// The number of a system that only another crate knows, for drawing random numbers per system.
const UNKNOWN_SYSTEM: u8 = u8::MAX;

/// Steps after which shrinking gives up.
const MOST_STEPS: usize = 2000;

/// A kind of release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// A release of one table.
    Table,
    /// A release of several tables that keys connect.
    Tables,
    /// A release of one table for recipients who know different columns.
    Audiences,
    /// A release of one table beside public registers.
    Register,
    /// A view over data that changes.
    Views,
    /// Releases of one table beside a register, again and again, which must be safe to read together.
    Town,
}

impl System {
    /// Every system.
    pub const ALL: [System; 6] =
        [System::Table, System::Tables, System::Audiences, System::Register, System::Views, System::Town];

    /// The system's name on a command line.
    pub fn word(self) -> &'static str {
        match self {
            System::Table => "table",
            System::Tables => "tables",
            System::Audiences => "audiences",
            System::Register => "register",
            System::Views => "views",
            System::Town => "town",
        }
    }

    /// The system of a name.
    pub fn from_word(word: &str) -> Option<System> {
        System::ALL.into_iter().find(|system| system.word() == word)
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// Judges a system's jobs with these numbers and adds up the outcomes; `report` is told of each job that failed.
pub fn run(system: System, numbers: Range<u64>, mut report: impl FnMut(u64, &Judged)) -> Tally {
    let mut tally = Tally::default();
    for number in numbers {
        let judged = judge(system, number);
        if !judged.faults.is_empty() {
            report(number, &judged);
        }
        tally.add(&judged);
    }
    tally
}

/// Judges one job.
pub fn judge(system: System, number: u64) -> Judged {
    with_job(system, number, &mut JudgeOnce)
}

/// The smallest job that shrinking a failing one leads to, with its faults; `None` if the job does not fail.
pub fn shrunk(system: System, number: u64) -> Option<String> {
    with_job(system, number, &mut Shrink)
}

/// The files of a job by name, the spec as `release.toml`; `None` for views, which are not made from files.
pub fn files(system: System, number: u64) -> Option<BTreeMap<String, String>> {
    Some(match system {
        System::Table => tree(job(Size::SMALL), system, number).current().files(),
        System::Tables => tree(tables_job(TablesSize::SMALL, Asks::More), system, number).current().files(),
        System::Audiences => tree(audiences_job(Size::SMALL), system, number).current().files(),
        System::Register => tree(register_job(RegisterSize::SMALL), system, number).current().files(),
        System::Views => return None,
        System::Town => tree(town(TownSize::SMALL), system, number).current().files(),
    })
}

/// Judges a job of a system that only another crate knows: the job that a strategy makes of a number.
pub fn judge_drawn<S: Strategy>(strategy: S, number: u64, judge: fn(&S::Value) -> Judged) -> Judged {
    JudgeOnce.with(drawn(strategy, UNKNOWN_SYSTEM, number), judge)
}

/// The smallest job that shrinking the job of [`judge_drawn`] leads to, with its faults; `None` if the job does not
/// fail.
pub fn shrunk_drawn<S: Strategy>(strategy: S, number: u64, judge: fn(&S::Value) -> Judged) -> Option<String> {
    Shrink.with(drawn(strategy, UNKNOWN_SYSTEM, number), judge)
}

/// Something to do with a random job of any system.
trait WithJob {
    type Output;

    fn with<T: ValueTree>(&mut self, tree: T, judge: fn(&T::Value) -> Judged) -> Self::Output;
}

struct JudgeOnce;

impl WithJob for JudgeOnce {
    type Output = Judged;

    fn with<T: ValueTree>(&mut self, tree: T, judge: fn(&T::Value) -> Judged) -> Judged {
        caught(&tree.current(), judge)
    }
}

struct Shrink;

impl WithJob for Shrink {
    type Output = Option<String>;

    fn with<T: ValueTree>(&mut self, mut tree: T, judge: fn(&T::Value) -> Judged) -> Option<String> {
        let kind = caught(&tree.current(), judge).faults.first()?.kind;
        let fails = |tree: &T| caught(&tree.current(), judge).faults.iter().any(|fault| fault.kind == kind);
        let mut smallest = tree.current();
        let mut steps = 0;
        // Shrink as proptest does: simplify while the job still fails, and step back where it does not.
        while steps < MOST_STEPS && tree.simplify() {
            steps += 1;
            while !fails(&tree) && steps < MOST_STEPS {
                steps += 1;
                if !tree.complicate() {
                    break;
                }
            }
            if fails(&tree) {
                smallest = tree.current();
            }
        }
        let faults: Vec<String> = caught(&smallest, judge).faults.iter().map(ToString::to_string).collect();
        Some(format!("{}\n{smallest:?}", faults.join("\n")))
    }
}

/// Judges a job; a panic counts as a failure.
fn caught<V: fmt::Debug>(job: &V, judge: fn(&V) -> Judged) -> Judged {
    catch_unwind(AssertUnwindSafe(|| judge(job))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Judged::panicked(text.unwrap_or_default())
    })
}

fn with_job<W: WithJob>(system: System, number: u64, what: &mut W) -> W::Output {
    // The kind of job is drawn apart from the job, so that jobs of one kind stay the same when another kind is added.
    let mut kind = Random::new(number);
    let size = match kind.below(100) {
        0..30 => Size::TINY,
        30..85 => Size::SMALL,
        85..98 => Size::MEDIUM,
        _ => Size::LARGE,
    };
    match system {
        System::Table if kind.once_in(3) => {
            what.with(tree(job_of_several_rows(size), system, number), one_table::judge)
        }
        System::Table => what.with(tree(job(size), system, number), one_table::judge),
        System::Tables => {
            let asks = if kind.once_in(2) { Asks::K } else { Asks::More };
            match kind.below(20) {
                0..5 => what.with(tree(references_job(), system, number), tables::judge_with_references),
                5..9 => what.with(tree(tables_job(TablesSize::TINY, asks), system, number), tables::judge),
                9..19 => what.with(tree(tables_job(TablesSize::SMALL, asks), system, number), tables::judge),
                _ => what.with(tree(tables_job(TablesSize::MEDIUM, asks), system, number), tables::judge),
            }
        }
        System::Audiences => {
            // The oracle tries every choice of labels, and larger tables have too many.
            let size = if size.rows > Size::SMALL.rows { Size::SMALL } else { size };
            what.with(tree(audiences_job(size), system, number), audiences::judge)
        }
        System::Register => {
            let size = match kind.below(20) {
                0..5 => RegisterSize::TINY,
                5..18 => RegisterSize::SMALL,
                _ => RegisterSize::MEDIUM,
            };
            what.with(tree(register_job(size), system, number), register::judge)
        }
        System::Views => what.with(tree(views::history(), system, number), views::judge),
        System::Town => {
            let size = match kind.below(20) {
                0..8 => TownSize::TINY,
                8..19 => TownSize::SMALL,
                _ => TownSize::MEDIUM,
            };
            what.with(tree(town(size), system, number), town::judge)
        }
    }
}

/// The job of a number, with ways to make it smaller.
fn tree<S: Strategy>(strategy: S, system: System, number: u64) -> S::Tree {
    drawn(strategy, system as u8, number)
}

fn drawn<S: Strategy>(strategy: S, system: u8, number: u64) -> S::Tree {
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&number.to_le_bytes());
    seed[8] = system;
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(Config { failure_persistence: None, ..Config::default() }, rng);
    strategy.new_tree(&mut runner).expect("jobs are drawn without conditions")
}
