//! The statements that analysts may run: queries, EXPLAIN, options of views, and lists of views.
//!
//! This is an allow-list of parsed statements. Independently of it, an analyst's catalog holds only views.

use std::ops::ControlFlow;

use datafusion::sql::parser::{ResetStatement, Statement as DFStatement};
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Query, Set, SetExpr, Statement as SqlStatement, TableFactor, Visit, Visitor,
};

use crate::SqlError;
use crate::parser::{AccessStatement, Statement, bodies};

/// Refuses a statement that analysts may not run.
pub(crate) fn check(statement: &Statement) -> Result<(), SqlError> {
    let what = match statement {
        Statement::Sql(statement) => return check_sql(statement),
        Statement::ShowViews | Statement::ShowHierarchies => return Ok(()),
        Statement::CreateHierarchy { .. } | Statement::InsertHierarchy { .. } | Statement::DropHierarchy { .. } => {
            "it changes a DGH"
        }
        Statement::CreateView(_) | Statement::DropView { .. } | Statement::RefreshView { .. } => "it changes a view",
        Statement::ShowDrift { .. } => "only owners may see the loss of a view",
        Statement::ShowCreateView { .. } | Statement::ShowCreateHierarchy { .. } => {
            "only owners may see how it is made"
        }
        Statement::ShowLog => "only owners may read the compliance log",
        Statement::ShowCollection { .. } => "only owners may see what is collected",
        Statement::ExplainUtility(_) => "it compares a view with the rows under it",
        Statement::ImportPolicy { .. } => "it changes policies",
        Statement::Access(AccessStatement::ShowGrants) => return Ok(()),
        Statement::Access(AccessStatement::ShowUsers) => "only owners may list users",
        Statement::Access(_) => "it changes users or grants",
        Statement::Move { .. } => "it is not a query",
        Statement::CopyFrom { .. } => "COPY reads or writes files",
        Statement::Backup { .. } => "it copies the whole data folder",
    };
    Err(SqlError::NotAllowed { what })
}

fn check_sql(statement: &DFStatement) -> Result<(), SqlError> {
    let what = match statement {
        DFStatement::Statement(statement) => match statement.as_ref() {
            SqlStatement::Query(query) => return check_query(query),
            SqlStatement::Set(Set::SingleAssignment { variable, .. }) if is_of_views(&variable.to_string()) => {
                return Ok(());
            }
            SqlStatement::Set(_) => OTHER_OPTION,
            SqlStatement::ShowVariable { .. } | SqlStatement::ShowTables { .. } => return Ok(()),
            SqlStatement::ShowColumns { .. } | SqlStatement::ExplainTable { .. } => return Ok(()),
            SqlStatement::Execute { .. } | SqlStatement::Deallocate { .. } => return Ok(()),
            SqlStatement::Prepare { statement, .. } | SqlStatement::Explain { statement, .. } => {
                return check_sql(&DFStatement::Statement(statement.clone()));
            }
            SqlStatement::Insert(_) | SqlStatement::Update(_) | SqlStatement::Delete(_) => "it changes a table",
            SqlStatement::Copy { .. } => "COPY reads or writes files",
            _ => "it is not a query",
        },
        DFStatement::Explain(explain) => return check_sql(&explain.statement),
        DFStatement::Reset(ResetStatement::Variable(name)) if is_of_views(&name.to_string()) => return Ok(()),
        DFStatement::Reset(_) => OTHER_OPTION,
        DFStatement::CreateExternalTable(_) => "it opens files",
        DFStatement::CopyTo(_) => "COPY writes files",
    };
    Err(SqlError::NotAllowed { what })
}

/// Other options could change how queries are planned.
const OTHER_OPTION: &str = "it sets an option other than those of views";

fn is_of_views(option: &str) -> bool {
    option.to_lowercase().starts_with("kohort.")
}

/// Refuses a query that holds a statement that writes, or a table function whose arguments are not constants.
fn check_query(query: &Query) -> Result<(), SqlError> {
    match query.visit(&mut Refused) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(what) => Err(SqlError::NotAllowed { what }),
    }
}

struct Refused;

impl Visitor for Refused {
    type Break = &'static str;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<&'static str> {
        let only_reads = |body: &SetExpr| match body {
            SetExpr::Select(select) => select.into.is_none(),
            SetExpr::Values(_) | SetExpr::Table(_) | SetExpr::Query(_) | SetExpr::SetOperation { .. } => true,
            _ => false,
        };
        match bodies(&query.body).into_iter().all(only_reads) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break("it changes a table"),
        }
    }

    /// The planner computes arguments of functions in FROM before their size is checked.
    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<&'static str> {
        let arguments = match table {
            TableFactor::Table { args: Some(arguments), .. } => arguments.args.as_slice(),
            TableFactor::Function { args, .. } => args,
            TableFactor::TableFunction { .. } => return ControlFlow::Break(ONLY_CONSTANTS),
            _ => &[],
        };
        let is_constant = |argument: &FunctionArg| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => is_constant(value),
            _ => false,
        };
        if arguments.iter().all(is_constant) { ControlFlow::Continue(()) } else { ControlFlow::Break(ONLY_CONSTANTS) }
    }
}

const ONLY_CONSTANTS: &str = "a function in FROM takes only constants";

fn is_constant(value: &Expr) -> bool {
    match value {
        Expr::Value(_) | Expr::TypedString(_) => true,
        Expr::Interval(interval) => is_constant(&interval.value),
        Expr::UnaryOp { expr, .. } | Expr::Nested(expr) | Expr::Cast { expr, .. } => is_constant(expr),
        _ => false,
    }
}
