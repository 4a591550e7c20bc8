//! Progress bars on a terminal, and Ctrl-C.

use std::fmt;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use kohort::{Pass, Progress};
use signal_hook::consts::SIGINT;
use signal_hook::flag;

use crate::failure::{Failure, Report, Status};

/// One bar for each stage, which replaces the bar before it. Nothing is drawn if stderr is no terminal.
pub(crate) struct Bars {
    current: Mutex<Option<ProgressBar>>,
    /// The pass that began last, if there are several.
    pass: Mutex<Option<Pass>>,
    started: Instant,
    is_shown: bool,
    is_cancelled: Arc<AtomicBool>,
}

impl Bars {
    pub(crate) fn new() -> Self {
        let is_shown = std::io::stderr().is_terminal();
        Bars {
            current: Mutex::new(None),
            pass: Mutex::new(None),
            started: Instant::now(),
            is_shown,
            is_cancelled: Arc::default(),
        }
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
        let template = if total == 0 { "{msg:12} {spinner}" } else { "{msg:12} [{bar:40}] {percent:>3} %{left}" };
        let pass = *self.pass.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Ok(style) = ProgressStyle::with_template(template) {
            let started = self.started;
            let left = move |state: &ProgressState, text: &mut dyn fmt::Write| {
                let done = pass.map(|pass| pass.before + pass.share * f64::from(state.fraction()));
                if let Some(left) = done.and_then(|done| time_left(started.elapsed(), done)) {
                    let _ = write!(text, ", {}", in_words(left));
                }
            };
            bar.set_style(style.with_key("left", left).progress_chars("=> "));
        }
        bar.set_message(match pass {
            None => stage.to_owned(),
            Some(Pass { number, of, .. }) => format!("pass {number} of {of}, {stage}"),
        });
        bar.enable_steady_tick(Duration::from_millis(100));
        *self.lock() = Some(bar);
    }

    fn pass(&self, pass: Pass) {
        *self.pass.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(pass);
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

/// The time that is left when this share of the work took so long. `None` as long as too little is done to tell.
fn time_left(elapsed: Duration, done: f64) -> Option<Duration> {
    const ENOUGH: f64 = 0.01;
    (ENOUGH..=1.0).contains(&done).then(|| elapsed.mul_f64((1.0 - done) / done))
}

/// A time as people say it, because it is no more than an estimate.
fn in_words(left: Duration) -> String {
    match left.as_secs() {
        0..60 => "less than a minute left".to_owned(),
        seconds @ 60..5400 => format!("about {} min left", seconds.div_ceil(60)),
        seconds => format!("about {:.1} hours left", seconds as f64 / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_time_is_left_as_the_rest_takes_at_the_same_pace() {
        let minutes = |n: u64| Duration::from_secs(60 * n);
        assert_eq!(time_left(minutes(10), 0.25), Some(minutes(30)));
        assert_eq!(time_left(minutes(10), 1.0), Some(minutes(0)));
        assert_eq!(time_left(minutes(10), 0.001), None);
        let words: Vec<String> = [Duration::from_secs(3), minutes(30), minutes(150)].map(in_words).into();
        assert_eq!(words, ["less than a minute left", "about 30 min left", "about 2.5 hours left"]);
    }
}
