//! A-views: what one is, the version it is pinned to, and the operator that reads it.
//!
//! ```text
//! definition --(query, policies, DGHs)--> version: partition verified once, class directory kept
//!                                            |
//! SELECT ... FROM view --> provider: picks plan and classes from the directory --> AnonymizeExec --> VerifiedRows --> rows
//! ```
//!
//! A view is opaque: to the query around it, it is a table whose rows come from nowhere. No filter, limit, projection,
//! statistic or metric reaches what is below, because there is nothing below that an optimizer could see.

mod consent;
mod definition;
mod error;
mod materialized;
mod provider;
mod read;
mod together;
mod version;

pub use consent::Reader;
pub use definition::{Definition, DefinitionError, ViewColumn};
pub use error::ViewError;
pub(crate) use error::kind_of;
pub(crate) use materialized::EVERYBODY;
pub use materialized::{
    Changed, Making, Materialized, MaterializedError, Origin, PolicyRows, Remade, Standing, Told, check,
};
pub use provider::{AView, Owner, State};
pub use read::exec::AnonymizeExec;
pub use read::labels::ShownLabels;
pub use read::plan::{Plan, PlanWish};
pub use read::point::Point;
pub use read::trace::{TRACE, Traced};
pub use together::{Comparison, fewer_by_changes, fewer_together, share_nobody, told_together};
pub use version::build::{Sources, Trees, build};
pub use version::digest::Digest;
pub use version::directory::Directory;
pub use version::fingerprint::{Fingerprint, Generations};
pub use version::{Summary, Version};
