//! [`PgCatalog`]: the catalog of PostgreSQL as clients expect it, of what a session may see and nothing else.
//!
//! The tables and functions are those of `datafusion-pg-catalog`; they list what the session's own catalog holds.
//! Clients write queries of the catalog that DataFusion can't run as they are. They are rewritten, some roughly (a
//! subquery among the columns becomes NULL), so only queries that read nothing but the catalog ever are.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::error::DataFusionError;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::{ColumnarValue, ScalarUDF, Volatility, create_udf};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{Expr, ObjectName, Statement, visit_expressions, visit_relations};
use datafusion_pg_catalog::pg_catalog::context::EmptyContextProvider;
use datafusion_pg_catalog::pg_catalog::setup_pg_catalog;
use datafusion_pg_catalog::sql::PostgresCompatibilityParser;

use crate::settings::SERVER_VERSION;

const CATALOG: &str = "kohort";
const PG_CATALOG: &str = "pg_catalog";

/// Makes queries of PostgreSQL's catalog run.
pub(crate) struct PgCatalog {
    parser: PostgresCompatibilityParser,
}

impl PgCatalog {
    pub(crate) fn new() -> PgCatalog {
        PgCatalog { parser: PostgresCompatibilityParser::new() }
    }

    /// Adds the catalog to the session of a user.
    pub(crate) fn install(&self, context: &SessionContext, user: &str) -> Result<(), DataFusionError> {
        setup_pg_catalog(context, CATALOG, EmptyContextProvider).map_err(|error| *error)?;
        let version = format!("PostgreSQL {SERVER_VERSION} (kohort {})", env!("CARGO_PKG_VERSION"));
        context.register_udf(constant("version", version));
        context.register_udf(constant("session_user", user.to_owned()));
        context.register_udf(constant("current_user", user.to_owned()));
        // Sizes of what is under a view are nobody's business, and there are no types but PostgreSQL's own.
        let (text, oid) = (ScalarValue::Utf8, ScalarValue::Int32);
        context.register_udf(always("pg_size_pretty", DataType::Int64, text(Some("0 bytes".to_owned()))));
        context.register_udf(always("pg_table_size", DataType::Int32, ScalarValue::Int64(Some(0))));
        context.register_udf(always("to_regtype", DataType::Utf8, oid(None)));
        Ok(())
    }

    /// The query as it can be run, where it reads nothing but the catalog.
    pub(crate) fn rewrite(&self, statement: &Statement, text: &str) -> Option<Statement> {
        if !reads_catalog_only(statement) {
            return None;
        }
        let mut rewritten = self.parser.parse(text).ok()?;
        match (rewritten.pop(), rewritten.is_empty()) {
            (Some(statement @ Statement::Query(_)), true) => Some(statement),
            _ => None,
        }
    }

    /// A query of the catalog that only the rewriting parser can read.
    pub(crate) fn read(&self, text: &str) -> Option<Statement> {
        let mut statements = self.parser.parse(text).ok()?;
        match (statements.pop(), statements.is_empty()) {
            (Some(statement @ Statement::Query(_)), true) if reads_catalog_only(&statement) => Some(statement),
            _ => None,
        }
    }
}

/// Whether a query reads tables of the catalog and no others, or none and calls a function of the catalog.
fn reads_catalog_only(statement: &Statement) -> bool {
    let Statement::Query(query) = statement else { return false };
    let ctes: Vec<String> =
        query.with.iter().flat_map(|with| &with.cte_tables).map(|cte| cte.alias.name.value.to_lowercase()).collect();
    let (mut n_catalog, mut n_others) = (0, 0);
    let _ = visit_relations(statement, |name| {
        match is_of_catalog(name) {
            true => n_catalog += 1,
            false if name.0.len() == 1 && ctes.contains(&last(name)) => {}
            false if ["generate_series", "unnest", "information_schema"].contains(&first(name).as_str()) => {}
            false => n_others += 1,
        }
        ControlFlow::<()>::Continue(())
    });
    n_others == 0 && (n_catalog > 0 || calls_catalog(statement))
}

/// Whether a query without tables asks for something that PostgreSQL knows by its catalog. One with subqueries does
/// not: they would be rewritten too.
fn calls_catalog(statement: &Statement) -> bool {
    const FUNCTIONS: [&str; 10] = [
        "version",
        "current_schema",
        "current_schemas",
        "current_database",
        "current_catalog",
        "current_user",
        "session_user",
        "user",
        "format_type",
        "to_regtype",
    ];
    let mut calls = false;
    let mut has_subqueries = false;
    let _ = visit_expressions(statement, |expression| {
        match expression {
            Expr::Function(call) => {
                let name = last(&call.name);
                calls |= is_of_catalog(&call.name) || FUNCTIONS.contains(&name.as_str()) || name.starts_with("pg_");
            }
            Expr::Identifier(name) => calls |= FUNCTIONS.contains(&name.value.to_lowercase().as_str()),
            Expr::Cast { data_type, .. } => calls |= data_type.to_string().to_lowercase().contains("reg"),
            Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => has_subqueries = true,
            _ => {}
        }
        ControlFlow::<()>::Continue(())
    });
    calls && !has_subqueries
}

fn is_of_catalog(name: &ObjectName) -> bool {
    match name.0.len() {
        1 => last(name).starts_with("pg_"),
        _ => first(name) == PG_CATALOG,
    }
}

fn first(name: &ObjectName) -> String {
    name.0.first().and_then(|part| part.as_ident()).map(|part| part.value.to_lowercase()).unwrap_or_default()
}

fn last(name: &ObjectName) -> String {
    name.0.last().and_then(|part| part.as_ident()).map(|part| part.value.to_lowercase()).unwrap_or_default()
}

/// A function of one argument that always says the same.
fn always(name: &str, of: DataType, says: ScalarValue) -> ScalarUDF {
    let returns = says.data_type();
    let function = move |_: &[ColumnarValue]| Ok(ColumnarValue::Scalar(says.clone()));
    create_udf(name, vec![of], returns, Volatility::Stable, Arc::new(function))
}

/// A function without arguments that always says the same.
fn constant(name: &str, text: String) -> ScalarUDF {
    let says = ScalarValue::Utf8(Some(text));
    let function = move |_: &[ColumnarValue]| Ok(ColumnarValue::Scalar(says.clone()));
    create_udf(name, vec![], DataType::Utf8, Volatility::Stable, Arc::new(function))
}
