//! A-views: the definition of a view, the version it is pinned to, and the operator that reads it.
//!
//! ```text
//! definition --(query, policies, DGHs)--> version: partition verified once, class directory kept
//!                                            |
//! SELECT ... FROM view --> provider: chooses plan and classes --> AnonymizeExec --> VerifiedRows --> rows
//! ```
//!
//! A view is opaque: to the query around it, it is a table whose rows come from nowhere. No filter, limit, projection,
//! statistic or metric reaches the view's own query, because the optimizer sees nothing below the view.
//!
//! # The way of a SELECT
//!
//! | step | where |
//! | --- | --- |
//! | 1. The statement is parsed and planned by DataFusion. | `engine/query.rs` |
//! | 2. Comparisons with labels become "could be". | `kohort_labels::rewrite` |
//! | 3. DataFusion asks the view for a scan, with the filters that name only quasi columns. | `provider.rs`, `AView::scan` |
//! | 4. The view is opened: is it stale, who reads, for which purpose? | `provider.rs`, `AView::open` |
//! | 5. The filters become `LabelComparison`s, and the classes that could satisfy them are chosen. | `read/choose.rs`, `class_labels.rs` |
//! | 6. The plan is fixed, and where the private rows come from: memory, the store, or the view's query. | `read/plan.rs`, `read/source.rs` |
//! | 7. When the first row is wanted, the operator asks joins above for more comparisons and fetches the private rows. | `read/exec.rs` |
//! | 8. The rows get the labels of their classes and are verified as a block. | `read/assemble.rs`, `kohort_verify::verify_block` |
//! | 9. Rows that can't satisfy the comparisons are left out, and the others leave as batches. | `read/exec.rs`, `kohort_io::write_rows`; of a view with ANSWERS AGGREGATES, totals: `read/totals.rs` |
//!
//! A materialized view differs in steps 5 to 7: `materialized/read.rs` chooses among the classes in memory, and reads their
//! rows from memory or the store. A query that needs only a few of its classes skips steps 1 to 4 and goes through
//! `engine/query/point.rs` and `read/point.rs`, which call the same functions from step 5 on.

mod class_labels;
mod consent;
mod definition;
mod error;
mod materialized;
mod provider;
mod read;
mod together;
mod version;

pub(crate) use consent::Reader;
pub(crate) use definition::{Definition, DefinitionError};
pub use error::ViewError;
pub(crate) use error::kind_of;
pub(crate) use materialized::{
    Changed, Making, Materialized, MaterializedError, Origin, PolicyRows, Remade, Standing, Told, check,
};
pub(crate) use provider::{AView, Owner, State, ViewPlans};
pub(crate) use read::choose::LabelComparison;
pub(crate) use read::exec::AnonymizeExec;
pub(crate) use read::labels::ShownLabels;
pub(crate) use read::plan::PlanWish;
pub(crate) use read::point::Point;
pub(crate) use read::totals::has_totals;
pub(crate) use read::trace::{TRACE, Traced};
pub(crate) use together::{FromChanges, fewer_by_changes, fewer_together, share_nobody, told_together};
pub(crate) use version::build::{Sources, Trees, build};
pub(crate) use version::digest::Digest;
pub(crate) use version::directory::Directory;
pub(crate) use version::fingerprint::{Fingerprint, Generations};
pub(crate) use version::{Summary, Version};

pub(crate) use crate::policy::EVERYBODY;
