//! Progress bars on a terminal, and Ctrl-C.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use kohort::Progress;
use signal_hook::consts::SIGINT;
use signal_hook::flag;

use crate::failure::{Failure, Report, Status};

/// One bar for each stage, which replaces the bar before it. Nothing is drawn if stderr is no terminal.
pub(crate) struct Bars {
    current: Mutex<Option<ProgressBar>>,
    is_shown: bool,
    is_cancelled: Arc<AtomicBool>,
}

impl Bars {
    pub(crate) fn new() -> Self {
        let is_shown = std::io::stderr().is_terminal();
        Bars { current: Mutex::new(None), is_shown, is_cancelled: Arc::default() }
    }

    /// Bars whose work is cancelled by Ctrl-C, so that a half-written release is removed. A second Ctrl-C ends the command at
    /// once, for work that does not notice soon.
    pub(crate) fn cancelled_by_interrupt() -> Result<Self, Failure> {
        let bars = Bars::new();
        // The order matters: on the first signal, the flag must still be unset when the shutdown looks at it.
        flag::register_conditional_shutdown(SIGINT, Status::Cancelled as i32, Arc::clone(&bars.is_cancelled))
            .and_then(|_| flag::register(SIGINT, Arc::clone(&bars.is_cancelled)))
            .map_err(|error| {
                Failure::new(Status::Fault, vec![Report::new(format!("can't listen for Ctrl-C: {error}"))])
            })?;
        Ok(bars)
    }

    /// Removes the bar, so that something can be printed.
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

    fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        self.clear();
    }
}
