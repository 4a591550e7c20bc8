//! What a data folder remembers of a computed view, so that a view does not change unnoticed while the engine is closed.
//!
//! A view that is not materialized is made again when its folder is opened. If its digest shows that it still shows the same
//! rows, readers go on with it. Otherwise the view is stale until the owner runs REFRESH, as if the engine had never stopped.

use serde::{Deserialize, Serialize};

use crate::view::{Digest, State};

const UNKNOWN: &str = "the data folder does not say whether it still shows the same rows";

/// The state of a view when it was last written to its folder.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Pinned {
    /// A version that was verified.
    Version {
        number: u64,
        /// The digest of what it shows, if there is one.
        digest: Option<Digest>,
    },
    /// It could not be built.
    Unusable {
        /// Why.
        reason: String,
        /// Whether an earlier version was shown. If that was not written, assume that it was.
        #[serde(default = "perhaps")]
        was_shown: bool,
    },
}

fn perhaps() -> bool {
    true
}

impl Pinned {
    /// What is kept of a computed view; `None` for a materialized one, whose rows are kept.
    pub(crate) fn of(state: &State) -> Option<Pinned> {
        match state {
            State::Usable { version, digest, .. } => {
                Some(Pinned::Version { number: version.number, digest: digest.clone() })
            }
            State::Unusable { reason, was_shown } => {
                Some(Pinned::Unusable { reason: reason.clone(), was_shown: *was_shown })
            }
            State::Materialized { .. } | State::Stale(_) => None,
        }
    }

    /// The number of its version.
    pub(crate) fn number(&self) -> Option<u64> {
        match self {
            Pinned::Version { number, .. } => Some(*number),
            Pinned::Unusable { .. } => None,
        }
    }
}

/// The state of a view that was made again, compared with its earlier state.
pub(crate) fn restored(kept: Option<Pinned>, made: State) -> State {
    match (kept, made) {
        (_, made @ State::Materialized { .. }) => made,
        (Some(Pinned::Unusable { reason, was_shown }), _) => State::Unusable { reason, was_shown },
        (_, State::Unusable { reason, .. }) => State::Stale(format!("it can't be made again ({reason})")),
        (Some(Pinned::Version { digest: Some(earlier), .. }), State::Usable { version, plans, digest }) => {
            match digest.as_ref().map_or(Some(UNKNOWN), |now| now.difference(&earlier)) {
                None => State::Usable { version, plans, digest },
                Some(difference) => State::Stale(difference.to_owned()),
            }
        }
        (_, State::Usable { .. } | State::Stale(_)) => State::Stale(UNKNOWN.to_owned()),
    }
}
