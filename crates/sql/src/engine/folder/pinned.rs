//! What a data folder remembers of views that are computed, so that none becomes another while nobody looks.
//!
//! A view that is not materialized is made again when its folder is opened. It is the one that readers know only if it
//! shows the same, which its digest tells; elsewhere it is stale, as it would be had the engine never stopped, until its
//! owner says REFRESH.

use serde::{Deserialize, Serialize};

use crate::view::{Digest, State};

const UNKNOWN: &str = "the data folder does not tell whether it is what it was";

/// What a view was when its folder last heard of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::engine) enum Pinned {
    /// A version that was verified.
    Version {
        /// Its number.
        number: u64,
        /// What it shows; `None` where that has no digest.
        digest: Option<Digest>,
    },
    /// It could not be built.
    Unusable {
        /// Why.
        reason: String,
        /// Whether it was shown before; perhaps it was, where that was not noted.
        #[serde(default = "perhaps")]
        was_shown: bool,
    },
}

fn perhaps() -> bool {
    true
}

impl Pinned {
    /// What is kept of a view; `None` where its rows are.
    pub(in crate::engine) fn of(state: &State) -> Option<Pinned> {
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
    pub(in crate::engine) fn number(&self) -> Option<u64> {
        match self {
            Pinned::Version { number, .. } => Some(*number),
            Pinned::Unusable { .. } => None,
        }
    }
}

/// The state of a view that was made again, by what it was.
pub(in crate::engine) fn restored(kept: Option<Pinned>, made: State) -> State {
    match (kept, made) {
        (_, made @ State::Materialized { .. }) => made,
        (Some(Pinned::Unusable { reason, was_shown }), _) => State::Unusable { reason, was_shown },
        (_, State::Unusable { reason, .. }) => State::Stale(format!("it can't be made again ({reason})")),
        (Some(Pinned::Version { digest: Some(earlier), .. }), State::Usable { version, query, policies, digest }) => {
            match digest.as_ref().map_or(Some(UNKNOWN), |now| now.difference(&earlier)) {
                None => State::Usable { version, query, policies, digest },
                Some(difference) => State::Stale(difference.to_owned()),
            }
        }
        (_, State::Usable { .. } | State::Stale(_)) => State::Stale(UNKNOWN.to_owned()),
    }
}
