//! Direct: the joined rows are partitioned, and classes without a private row are forgotten.
//!
//! # Paper
//! `[SMP10]` section 4
//! # Cost
//! that of the partitioner on all joined rows

use kohort_model::Progress;

use super::base::Base;
use super::crowd::{Crowd, Draft};
use crate::partition::Unreachable;

/// Classes of k joined rows with at least one private row each. Some may not stand: persons are not rows, and not
/// everybody counts in every box.
pub(super) fn direct(crowd: &Crowd<'_>, base: &Base<'_>, progress: &dyn Progress) -> Result<Vec<Draft>, Unreachable> {
    base.drafts(crowd, &crowd.rows, progress, |rows| crowd.draft(rows))
}
