//! The names of the views that a plan reads, and of the table that it changes.

use datafusion::catalog::TableProvider;
use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;

use crate::SqlError;
use crate::parser::Answers;
use crate::policy::UsedView;
use crate::view::AView;

/// The views a plan reads.
///
/// # Errors
/// A view with ANSWERS MATCHING is joined with something.
pub(crate) fn views_of(plan: &LogicalPlan) -> Result<Vec<UsedView>, SqlError> {
    let mut views: Vec<UsedView> = Vec::new();
    let (mut n_scans, mut is_joined, mut matching) = (0, false, None);
    plan.apply_with_subqueries(|node| {
        is_joined |= matches!(node, LogicalPlan::Join(_));
        let LogicalPlan::TableScan(scan) = node else { return Ok(TreeNodeRecursion::Continue) };
        n_scans += 1;
        if let Some(view) = source_as_provider(&scan.source)?.downcast_ref::<AView>() {
            let name = view.definition.name.clone();
            if view.definition.clauses.answers == Answers::Matching {
                matching = Some(name.clone());
            }
            let used = UsedView { name, version: view.version().map_or(0, |version| version.number) };
            if !views.contains(&used) {
                views.push(used);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    match matching {
        Some(name) if is_joined || n_scans > 1 => Err(SqlError::MatchingJoined { name }),
        _ => Ok(views),
    }
}

/// Whether a plan reads a table of some kind.
pub(crate) fn reads_any(plan: &LogicalPlan, is_it: impl Fn(&dyn TableProvider) -> bool) -> Result<bool, SqlError> {
    let mut reads = false;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            reads |= is_it(source_as_provider(&scan.source)?.as_ref());
        }
        Ok(if reads { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(reads)
}

/// Whether a plan changes rows or writes files.
pub(crate) fn writes(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Analyze(analyzed) => writes(&analyzed.input),
        LogicalPlan::Dml(_) | LogicalPlan::Copy(_) => true,
        _ => false,
    }
}

/// The table whose rows a plan changes.
pub(crate) fn changed_table(plan: &LogicalPlan) -> Option<String> {
    match plan {
        LogicalPlan::Analyze(analyzed) => changed_table(&analyzed.input),
        LogicalPlan::Dml(change) => Some(change.table_name.table().to_owned()),
        _ => None,
    }
}
