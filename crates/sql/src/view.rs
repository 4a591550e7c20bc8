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

mod assemble;
mod assign;
mod build;
mod choose;
mod consent;
mod definition;
mod digest;
mod directory;
mod error;
mod exec;
mod fingerprint;
mod kept;
mod labels;
mod materialized;
mod partition;
mod plan;
mod point;
mod provider;
mod raise;
mod shown;
mod source;
mod together;
mod trace;
mod version;

pub use build::{Sources, Trees, build};
pub use consent::Reader;
pub use definition::{Definition, DefinitionError, ViewColumn};
pub use digest::Digest;
pub use directory::Directory;
pub use error::ViewError;
pub(crate) use error::kind_of;
pub use exec::AnonymizeExec;
pub use fingerprint::{Fingerprint, Generations};
pub use labels::ShownLabels;
pub(crate) use materialized::EVERYBODY;
pub use materialized::{
    Changed, Making, Materialized, MaterializedError, Origin, PolicyRows, Remade, Standing, Told, check,
};
pub use plan::{Plan, PlanWish};
pub use point::Point;
pub use provider::{AView, Owner, State};
pub use together::{Comparison, fewer_by_changes, fewer_together, share_nobody, told_together};
pub use trace::{TRACE, Traced};
pub use version::{Summary, Version};
