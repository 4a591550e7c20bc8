//! What a statement need not hold: a state of the store that it does not read.
//!
//! A state is a connection to the store's file, which keeps the log from being worked into the file for as long as it is
//! open. Rows of a cursor may be fetched for hours, so a query of something else must not hold one.

use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::LogicalPlan;

use crate::SqlError;
use crate::engine::Session;
use crate::parser::Access;
use crate::store::StoredTable;
use crate::view::AView;

/// The session that a plan runs in: the one it was planned in, without a state of the store where it reads none.
pub(in crate::engine) fn holding_what_is_read(
    session: &Session,
    planned_in: SessionContext,
    plan: &LogicalPlan,
    access: &Access,
) -> Result<SessionContext, SqlError> {
    // What is prepared is known once it runs; what is set stays with the session.
    let is_known = !matches!(plan, LogicalPlan::Statement(_) | LogicalPlan::Ddl(_));
    if session.transaction.is_none() && is_known && !reads_store(plan)? {
        return Ok(session.scoped_to(access, None));
    }
    Ok(planned_in)
}

/// Whether a plan may read the store: stored tables, views, which are made of them, and what is planned later.
fn reads_store(plan: &LogicalPlan) -> Result<bool, SqlError> {
    let mut reads = false;
    plan.apply_with_subqueries(|node| {
        let LogicalPlan::TableScan(scan) = node else { return Ok(TreeNodeRecursion::Continue) };
        let table = source_as_provider(&scan.source)?;
        reads |= table.downcast_ref::<StoredTable>().is_some()
            || table.downcast_ref::<AView>().is_some()
            || table.get_logical_plan().is_some();
        Ok(if reads { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(reads)
}
