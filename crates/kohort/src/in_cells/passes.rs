//! [`Passes`]: tells those who wait how far a job in cells is as a whole, because each stage alone says little about the time left.

use std::sync::atomic::{AtomicUsize, Ordering};

use kohort_model::{Pass, Progress};

/// The stages that go over all rows, in their order, and about how much of the time each takes: with Mondrian and 10 million rows.
/// Other algorithms take longer for the third.
const PASSES: [(&str, f64); 7] = [
    ("reading", 0.09),
    ("reading", 0.09),
    ("anonymizing cells", 0.43),
    ("writing", 0.12),
    ("reading what was written", 0.05),
    ("verifying what was written", 0.1),
    (COUNTING_FOR_REPORT, 0.12),
];

/// The stage in which the release is counted by itself, as its documents show it.
pub(super) const COUNTING_FOR_REPORT: &str = "counting for the report";

/// What another reading takes that finds out in which cell each person is. The other passes take less of the whole then.
const READING_OF_PERSONS: (&str, f64) = ("reading", 0.09);

/// How often all rows are read.
pub(super) fn n_passes(names_persons: bool) -> u64 {
    passes(names_persons).len() as u64
}

fn passes(names_persons: bool) -> Vec<(&'static str, f64)> {
    if !names_persons {
        return PASSES.to_vec();
    }
    let shorter = PASSES.map(|(stage, share)| (stage, share * (1.0 - READING_OF_PERSONS.1)));
    std::iter::once(READING_OF_PERSONS).chain(shorter).collect()
}

/// Passes on what it is told, and in addition which pass begins.
pub(super) struct Passes<'a> {
    progress: &'a dyn Progress,
    passes: Vec<(&'static str, f64)>,
    n_begun: AtomicUsize,
}

impl<'a> Passes<'a> {
    pub(super) fn new(progress: &'a dyn Progress, names_persons: bool) -> Self {
        Passes { progress, passes: passes(names_persons), n_begun: AtomicUsize::new(0) }
    }
}

impl Progress for Passes<'_> {
    fn begin(&self, stage: &str, total: u64) {
        let n_begun = self.n_begun.load(Ordering::Relaxed);
        if let Some((_, share)) = self.passes.get(n_begun).filter(|(of_pass, _)| *of_pass == stage) {
            self.n_begun.store(n_begun + 1, Ordering::Relaxed);
            let before = self.passes[..n_begun].iter().map(|(_, share)| share).sum();
            let of = self.passes.len() as u64;
            self.progress.pass(Pass { number: n_begun as u64 + 1, of, before, share: *share });
        }
        self.progress.begin(stage, total);
    }

    fn advance(&self, steps: u64) {
        self.progress.advance(steps);
    }

    fn is_cancelled(&self) -> bool {
        self.progress.is_cancelled()
    }
}
