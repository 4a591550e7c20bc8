//! [`Passes`]: tells those who wait how far a job in cells is as a whole, because each stage alone says little about the time left.

use std::sync::atomic::{AtomicUsize, Ordering};

use kohort_model::{Pass, Progress};

/// The stages that go over all rows, in their order, and about how much of the time each takes: with Mondrian and 10 million rows.
/// Other algorithms take longer for the third.
pub(super) const PASSES: [(&str, f64); 6] = [
    ("reading", 0.1),
    ("reading", 0.1),
    ("anonymizing cells", 0.5),
    ("writing", 0.13),
    ("reading what was written", 0.06),
    ("verifying what was written", 0.11),
];

/// Passes on what it is told, and in addition which pass begins.
pub(super) struct Passes<'a> {
    progress: &'a dyn Progress,
    n_begun: AtomicUsize,
}

impl<'a> Passes<'a> {
    pub(super) fn new(progress: &'a dyn Progress) -> Self {
        Passes { progress, n_begun: AtomicUsize::new(0) }
    }
}

impl Progress for Passes<'_> {
    fn begin(&self, stage: &str, total: u64) {
        let n_begun = self.n_begun.load(Ordering::Relaxed);
        if let Some((_, share)) = PASSES.get(n_begun).filter(|(of_pass, _)| *of_pass == stage) {
            self.n_begun.store(n_begun + 1, Ordering::Relaxed);
            let before = PASSES[..n_begun].iter().map(|(_, share)| share).sum();
            let of = PASSES.len() as u64;
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
