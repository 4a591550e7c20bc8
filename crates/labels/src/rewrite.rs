//! [`RewriteComparisons`]: comparisons with labels become "could be", before any other rule sees the plan.
//!
//! The rule follows every column from its scan to where it is compared: through projections, aliases, subqueries, CTEs,
//! joins, set operations and grouping. If a protected column is compared in WHERE, HAVING, ON or FILTER, the predicate is
//! brought to negation normal form and each comparison becomes a function of [`crate::meaning`]. Labels may be shown,
//! grouped, sorted and counted as texts. Any other use of a label is refused, with the name of its column.
//!
//! [`RefuseRawComparisons`] is a safety net. It runs last, finds labels in another way, and refuses a plan in which a plain
//! comparison still touches a label.
//!
//! # Guarantee
//! A plan that passes has no plain comparison with a label. Running the rule again changes nothing.
//! # Paper
//! `[EPS+12]` section 5.1, step 4, and section 6 for joins
//! # Deviations
//! The paper rewrites `=` only. Here every comparison is asked by itself, so `a = 1 AND a <> 1` can be true of a row.
//! `NOT IN (SELECT ...)` has no such meaning and is refused.
//! # Cost
//! One pass over the plan. Plans without protected columns are returned unchanged.

mod constant;
mod error;
mod join;
mod lineage;
mod net;
mod pairs;
mod plan;
mod predicate;
mod unknown;
mod value;

pub use error::RewriteError;
pub use join::JoinThroughPairs;
pub use net::RefuseRawComparisons;
pub use pairs::{CarriedPairs, FindPairs, PairsExec};
pub use unknown::KeepUnknown;

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DFSchemaRef, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan};
use datafusion::optimizer::AnalyzerRule;

use crate::meaning::Meaning;
use lineage::{Origin, Rewriter, Scope};
use predicate::Polarity;

/// For each column of a table's full schema, its meaning, `None` for plain columns.
pub type Meanings = Arc<[Option<Arc<Meaning>>]>;

type OfScan = dyn Fn(&TableScan) -> Option<Meanings> + Send + Sync;

/// Knows which columns of which scans are protected.
#[derive(Clone)]
pub struct ProtectedColumns {
    of_scan: Arc<OfScan>,
}

impl ProtectedColumns {
    /// Asks a function, which returns `None` for tables without protected columns.
    pub fn new(of_scan: impl Fn(&TableScan) -> Option<Meanings> + Send + Sync + 'static) -> ProtectedColumns {
        ProtectedColumns { of_scan: Arc::new(of_scan) }
    }

    fn of(&self, scan: &TableScan) -> Option<Meanings> {
        (self.of_scan)(scan)
    }

    /// A predicate over the columns of one table, which have these meanings, as the rule rewrites it in a plan.
    ///
    /// # Errors
    /// If a comparison has no meaning for labels.
    pub fn rewritten(&self, predicate: Expr, schema: &DFSchemaRef, meanings: &Meanings) -> Result<Expr> {
        let origin = |meaning: &Option<Arc<Meaning>>| meaning.clone().map_or(Origin::Raw, Origin::Protected);
        let origins: Vec<Origin> = meanings.iter().map(origin).collect();
        Rewriter::new(self).predicate(predicate, Polarity::Asserted, &Scope::of(schema, &origins))
    }

    fn any_in(&self, plan: &LogicalPlan) -> Result<bool> {
        let mut any = false;
        plan.apply_with_subqueries(|node| {
            any |= matches!(node, LogicalPlan::TableScan(scan) if self.of(scan).is_some());
            Ok(if any { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        Ok(any)
    }
}

impl fmt::Debug for ProtectedColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProtectedColumns")
    }
}

/// The analyzer rule that gives comparisons with labels their meaning. It must run before all others.
#[derive(Debug)]
pub struct RewriteComparisons {
    protected: ProtectedColumns,
}

impl RewriteComparisons {
    /// The rule for these protected columns.
    pub fn new(protected: ProtectedColumns) -> RewriteComparisons {
        RewriteComparisons { protected }
    }
}

impl AnalyzerRule for RewriteComparisons {
    fn name(&self) -> &str {
        "rewrite_comparisons"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        if !self.protected.any_in(&plan)? {
            return Ok(plan);
        }
        let (plan, _) = Rewriter::new(&self.protected).plan(plan)?;
        Ok(plan)
    }
}

#[cfg(test)]
mod tests;
