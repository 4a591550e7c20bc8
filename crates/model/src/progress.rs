//! [`Progress`]: reports the progress of long work.

/// One of several passes, which together are the whole work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pass {
    /// The place of the pass, from 1.
    pub number: u64,
    /// The number of passes.
    pub of: u64,
    /// About which share of the time all passes before it take together.
    pub before: f64,
    /// About which share of the time it takes itself.
    pub share: f64,
}

/// Receives the progress of long work. Called from several threads.
pub trait Progress: Sync {
    /// The stage that begins next is a pass.
    fn pass(&self, _pass: Pass) {}
    /// A new stage begins. `total` is the number of its steps, or 0 if that is not known.
    fn begin(&self, stage: &str, total: u64);
    /// `steps` more steps of the current stage are done.
    fn advance(&self, steps: u64);
    /// Whether the work was cancelled. If so, it stops soon and ends with an error.
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Reports nothing, but passes cancellation on. For parts of a stage that would report stages of their own.
pub struct Quiet<'a>(pub &'a dyn Progress);

impl Progress for Quiet<'_> {
    fn begin(&self, _stage: &str, _total: u64) {}
    fn advance(&self, _steps: u64) {}
    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }
}

/// Reports nothing.
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _stage: &str, _total: u64) {}
    fn advance(&self, _steps: u64) {}
}
