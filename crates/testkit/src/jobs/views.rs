//! Judges views over data that changes: after every change, an attacker who kept every snapshot is asked.

use proptest::prelude::*;

use super::{FaultKind, Judged};
use crate::attacks::snapshots::{Setting, View, breached};
use crate::generate::history::setting;

/// A view and what happens to its base.
#[derive(Clone, Debug)]
pub(super) struct History {
    setting: Setting,
    n_persons: u64,
    n_steps: usize,
    /// The base is partitioned anew after this many changes.
    refresh_after: usize,
    seed: u64,
}

pub(super) fn history() -> impl Strategy<Value = History> {
    (setting(), 0u64..40, 1usize..40, 2usize..20, any::<u64>()).prop_map(
        |(setting, n_persons, n_steps, refresh_after, seed)| History {
            setting,
            n_persons,
            n_steps,
            refresh_after,
            seed,
        },
    )
}

pub(super) fn judge(history: &History) -> Judged {
    let History { setting, n_persons, n_steps, refresh_after, seed } = history;
    let mut judged = Judged::released();
    let mut view = View::new(setting, *n_persons, *seed);
    for step in 1..=*n_steps {
        view.change();
        if step % refresh_after == 0 {
            view.refresh();
        }
    }
    for problems in &view.rejected {
        judged.fault(FaultKind::Rejected, problems);
    }
    let blocks = view.attacker.blocks();
    judged.classes = blocks.len() as u64;
    let breached = breached(setting, &blocks);
    if !breached.is_empty() {
        judged
            .fault(FaultKind::UnderRequirement, format!("the attacker finds out something about persons {breached:?}"));
    }
    judged
}
