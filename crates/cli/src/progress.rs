//! Progress bars, on a terminal only.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use kohort::Progress;

/// A bar per stage, the one before it cleared. Draws nothing where stderr is no terminal.
pub(crate) struct Bars {
    current: Mutex<Option<ProgressBar>>,
    is_shown: bool,
}

impl Bars {
    pub(crate) fn new() -> Self {
        Bars { current: Mutex::new(None), is_shown: std::io::stderr().is_terminal() }
    }

    /// Removes the bar, so that words can be said.
    pub(crate) fn clear(&self) {
        if let Some(bar) = self.lock().take() {
            bar.finish_and_clear();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<ProgressBar>> {
        // A bar has no state worth protecting from a panic elsewhere.
        self.current.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Progress for Bars {
    fn begin(&self, stage: &str, total: u64) {
        if !self.is_shown {
            return;
        }
        self.clear();
        let bar = if total == 0 { ProgressBar::new_spinner() } else { ProgressBar::new(total) };
        let template = if total == 0 { "{msg:12} {spinner}" } else { "{msg:12} [{bar:40}] {percent:>3} %" };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(stage.to_owned());
        bar.enable_steady_tick(Duration::from_millis(100));
        *self.lock() = Some(bar);
    }

    fn advance(&self, steps: u64) {
        if self.is_shown
            && let Some(bar) = &*self.lock()
        {
            bar.inc(steps);
        }
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        self.clear();
    }
}
