//! [`numbered`] and [`numbers_and`]: plans that find the rows to change.

use std::sync::Arc;

use datafusion::catalog::default_table_source::{provider_as_source, source_as_provider};
use datafusion::common::Column;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use kohort_store::ROW_NUMBER;

use super::StoredTable;

/// The plan of the rows that DELETE or UPDATE reads, with the row number as the last column.
///
/// # Errors
/// If the statement reads other tables than the one that it changes.
pub(crate) fn numbered(plan: &LogicalPlan) -> Result<LogicalPlan> {
    let below = |input: &Arc<LogicalPlan>| numbered(input).map(LogicalPlanBuilder::from);
    match plan {
        LogicalPlan::TableScan(scan) => {
            let provider = source_as_provider(&scan.source)?;
            let Some(table) = provider.downcast_ref::<StoredTable>() else { return Err(other_tables()) };
            let source = provider_as_source(Arc::new(table.with_row_numbers()));
            LogicalPlanBuilder::scan(scan.table_name.clone(), source, None)?.build()
        }
        LogicalPlan::Filter(filter) => below(&filter.input)?.filter(filter.predicate.clone())?.build(),
        LogicalPlan::Limit(limit) => {
            let literal = |bound: &Option<Box<Expr>>| bound.as_ref().map(|bound| bound.as_ref().clone());
            below(&limit.input)?.limit_by_expr(literal(&limit.skip), literal(&limit.fetch))?.build()
        }
        LogicalPlan::SubqueryAlias(alias) => below(&alias.input)?.alias(alias.alias.clone())?.build(),
        LogicalPlan::Projection(projection) => {
            let number = Expr::Column(Column::new_unqualified(ROW_NUMBER));
            below(&projection.input)?.project(projection.expr.iter().cloned().chain([number]))?.build()
        }
        _ => Err(other_tables()),
    }
}

/// The same plan with only these columns and the row numbers.
///
/// # Errors
/// As [`numbered`].
pub(crate) fn numbers_and(columns: &[String], plan: &LogicalPlan) -> Result<LogicalPlan> {
    let numbered = numbered(plan)?;
    let is_read = |name: &String| name == ROW_NUMBER || columns.contains(name);
    let read = numbered.schema().iter().filter(|(_, field)| is_read(field.name()));
    let read: Vec<Expr> = read.map(|shown| Expr::Column(Column::from(shown))).collect();
    LogicalPlanBuilder::from(numbered).project(read)?.build()
}

fn other_tables() -> DataFusionError {
    DataFusionError::Plan(
        "UPDATE and DELETE can't join or use other tables in FROM; put other tables into subqueries of WHERE"
            .to_owned(),
    )
}
