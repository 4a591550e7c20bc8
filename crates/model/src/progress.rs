//! [`Progress`]: how long work tells whoever waits for it.

/// Receives the progress of long work. Called from several threads.
pub trait Progress: Sync {
    /// A new stage begins; `total` is how many steps it has, 0 where that is not known.
    fn begin(&self, stage: &str, total: u64);
    /// So many more steps of the current stage are done.
    fn advance(&self, steps: u64);
    /// Whether nobody wants the result any more. Work then stops soon, and ends with an error.
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Tells nobody, but hears when work is cancelled: for parts of a stage that would tell of stages of their own.
pub struct Quiet<'a>(pub &'a dyn Progress);

impl Progress for Quiet<'_> {
    fn begin(&self, _stage: &str, _total: u64) {}
    fn advance(&self, _steps: u64) {}
    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }
}

/// Tells nobody.
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _stage: &str, _total: u64) {}
    fn advance(&self, _steps: u64) {}
}
