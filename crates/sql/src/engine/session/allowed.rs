//! What analysts may run: queries, their plans, options of their own, and lists of views.
//!
//! An allow-list on what was parsed. What analysts can name is bounded by their catalog in any case.

use std::ops::ControlFlow;

use datafusion::sql::parser::{ResetStatement, Statement as DFStatement};
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Query, Set, SetExpr, Statement as SqlStatement, TableFactor, Visit, Visitor,
};

use crate::SqlError;
use crate::parser::{AccessStatement, Statement};

/// Refuses a statement that is not for analysts.
///
/// # Errors
/// Says what it is.
pub(in crate::engine) fn check(statement: &Statement) -> Result<(), SqlError> {
    let what = match statement {
        Statement::Sql(statement) => return check_sql(statement),
        Statement::ShowViews | Statement::ShowHierarchies => return Ok(()),
        Statement::CreateHierarchy { .. } | Statement::InsertHierarchy { .. } | Statement::DropHierarchy { .. } => {
            "it changes a DGH"
        }
        Statement::CreateView(_) | Statement::DropView { .. } | Statement::RefreshView { .. } => "it changes a view",
        Statement::ShowDrift { .. } => "what a view loses is the owner's to know",
        Statement::ShowLog => "the compliance log is the owner's",
        Statement::ShowCollection { .. } => "what is collected is the owner's to know",
        Statement::ExplainUtility(_) => "it compares a view with what is under it",
        Statement::ImportPolicy { .. } => "it changes policies",
        Statement::Access(AccessStatement::ShowGrants) => return Ok(()),
        Statement::Access(AccessStatement::ShowUsers) => "users are the owner's to know",
        Statement::Access(_) => "it changes users or grants",
        Statement::CopyFrom { .. } => "COPY reads or writes files",
        Statement::Backup { .. } => "it copies everything",
    };
    Err(SqlError::NotAllowed { what })
}

fn check_sql(statement: &DFStatement) -> Result<(), SqlError> {
    let what = match statement {
        DFStatement::Statement(statement) => match statement.as_ref() {
            SqlStatement::Query(query) => return check_query(query),
            SqlStatement::Set(_) | SqlStatement::ShowVariable { .. } | SqlStatement::ShowTables { .. } => return Ok(()),
            SqlStatement::ShowColumns { .. } | SqlStatement::ExplainTable { .. } => return Ok(()),
            SqlStatement::Prepare { statement, .. } => {
                return check_sql(&DFStatement::Statement(statement.clone()));
            }
            SqlStatement::Execute { .. } | SqlStatement::Deallocate { .. } => return Ok(()),
            SqlStatement::Explain { statement, .. } => {
                return check_sql(&DFStatement::Statement(statement.clone()));
            }
            SqlStatement::Insert(_) | SqlStatement::Update(_) | SqlStatement::Delete(_) => "it changes a table",
            SqlStatement::Copy { .. } => "COPY reads or writes files",
            _ => "it is no query",
        },
        DFStatement::Explain(explain) => return check_sql(&explain.statement),
        DFStatement::Reset(_) => return Ok(()),
        DFStatement::CreateExternalTable(_) => "it opens files",
        DFStatement::CopyTo(_) => "COPY writes files",
    };
    Err(SqlError::NotAllowed { what })
}

/// Refuses options that are not of views: they could change how plans are made.
///
/// # Errors
/// Where a statement sets one.
pub(in crate::engine) fn check_options(statement: &DFStatement) -> Result<(), SqlError> {
    let is_ours = |name: &str| name.to_lowercase().starts_with("kohort.");
    let allowed = match statement {
        DFStatement::Statement(statement) => match statement.as_ref() {
            SqlStatement::Set(Set::SingleAssignment { variable, .. }) => is_ours(&variable.to_string()),
            SqlStatement::Set(_) => false,
            SqlStatement::Prepare { statement, .. } | SqlStatement::Explain { statement, .. } => {
                return check_options(&DFStatement::Statement(statement.clone()));
            }
            _ => true,
        },
        DFStatement::Explain(explain) => return check_options(&explain.statement),
        DFStatement::Reset(reset) => matches!(reset, ResetStatement::Variable(name) if is_ours(&name.to_string())),
        _ => true,
    };
    if allowed { Ok(()) } else { Err(SqlError::NotAllowed { what: "it sets an option that is not of views" }) }
}

/// A query may hold statements that write.
fn check_query(query: &Query) -> Result<(), SqlError> {
    let only_reads = |body: &SetExpr| {
        let mut open = vec![body];
        while let Some(body) = open.pop() {
            match body {
                SetExpr::Select(select) if select.into.is_some() => return false,
                SetExpr::Select(_) | SetExpr::Values(_) | SetExpr::Table(_) => {}
                SetExpr::Query(query) => open.push(&query.body),
                SetExpr::SetOperation { left, right, .. } => open.extend([left.as_ref(), right.as_ref()]),
                _ => return false,
            }
        }
        true
    };
    let mut bodies = vec![query.body.as_ref()];
    bodies.extend(query.with.iter().flat_map(|with| &with.cte_tables).map(|cte| cte.query.body.as_ref()));
    if !bodies.into_iter().all(only_reads) {
        return Err(SqlError::NotAllowed { what: "it changes a table" });
    }
    match query.visit(&mut TableFunctions) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(SqlError::NotAllowed { what: "a function in FROM takes constants alone" }),
    }
}

/// Finds functions in FROM whose arguments would be computed while the query is planned, before it is known how large what
/// they give can be.
struct TableFunctions;

impl Visitor for TableFunctions {
    type Break = ();

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
        let arguments = match table {
            TableFactor::Table { args: Some(arguments), .. } => &arguments.args,
            TableFactor::Function { args, .. } => args,
            TableFactor::TableFunction { .. } => return ControlFlow::Break(()),
            _ => return ControlFlow::Continue(()),
        };
        let is_constant = |argument: &FunctionArg| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => is_constant(value),
            _ => false,
        };
        if arguments.iter().all(is_constant) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

fn is_constant(value: &Expr) -> bool {
    match value {
        Expr::Value(_) | Expr::TypedString(_) => true,
        Expr::Interval(interval) => is_constant(&interval.value),
        Expr::UnaryOp { expr, .. } | Expr::Nested(expr) | Expr::Cast { expr, .. } => is_constant(expr),
        _ => false,
    }
}
