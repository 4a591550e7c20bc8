//! A spinner for statements that take long, on a terminal only.

use std::io::IsTerminal;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use kohort_model::Progress;
use parking_lot::Mutex;

/// How long a statement runs before the spinner appears.
pub(super) const PATIENCE: Duration = Duration::from_millis(500);

/// Waits for some work, and shows its name if it takes long.
pub(super) async fn wait_for<T>(name: &str, work: impl Future<Output = T>) -> T {
    let stage = ProgressStage::default();
    stage.begin(name, 0);
    let mut spinner = Spinner::new();
    let patience = tokio::time::sleep(PATIENCE);
    tokio::pin!(work, patience);
    loop {
        tokio::select! {
            done = &mut work => return done,
            () = &mut patience, if spinner.is_hidden() => spinner.show(&stage),
        }
    }
}

/// The progress of a statement, in words beside the spinner.
#[derive(Default)]
pub(super) struct ProgressStage {
    bar: OnceLock<ProgressBar>,
    name: Mutex<String>,
    total: AtomicU64,
    done: AtomicU64,
}

impl ProgressStage {
    fn show_on(&self, bar: &ProgressBar) {
        let bar = self.bar.get_or_init(|| bar.clone());
        bar.set_message(self.words(None));
    }

    fn words(&self, percent: Option<u64>) -> String {
        let name = self.name.lock();
        match percent {
            _ if name.is_empty() => "Ctrl-C cancels".to_owned(),
            Some(percent) => format!("{name} {percent} %, Ctrl-C cancels"),
            None => format!("{name}, Ctrl-C cancels"),
        }
    }
}

impl Progress for ProgressStage {
    fn begin(&self, stage: &str, total: u64) {
        stage.clone_into(&mut self.name.lock());
        self.total.store(total, Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
        if let Some(bar) = self.bar.get() {
            bar.set_message(self.words(None));
        }
    }

    fn advance(&self, amount: u64) {
        let total = self.total.load(Ordering::Relaxed);
        let before = self.done.fetch_add(amount, Ordering::Relaxed);
        let Some(bar) = self.bar.get().filter(|_| total > 0) else { return };
        let percent = |done: u64| (100 * done / total).min(100);
        if percent(before) != percent(before + amount) {
            bar.set_message(self.words(Some(percent(before + amount))));
        }
    }
}

/// A spinner on a terminal.
pub(super) struct Spinner {
    /// Whether it may still be shown.
    is_hidden: bool,
    bar: Option<ProgressBar>,
}

impl Spinner {
    pub(super) fn new() -> Self {
        Spinner { is_hidden: std::io::stderr().is_terminal(), bar: None }
    }

    pub(super) fn is_hidden(&self) -> bool {
        self.is_hidden
    }

    pub(super) fn show(&mut self, stage: &ProgressStage) {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg}") {
            bar.set_style(style);
        }
        stage.show_on(&bar);
        bar.enable_steady_tick(Duration::from_millis(100));
        (self.is_hidden, self.bar) = (false, Some(bar));
    }

    pub(super) fn clear(&mut self) {
        self.is_hidden = false;
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.clear();
    }
}
