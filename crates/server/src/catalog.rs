//! [`PgCatalog`]: PostgreSQL's catalog as clients expect it, with only what a session may see.
//!
//! The tables and functions come from `datafusion-pg-catalog` and list the content of the session's own catalog.
//! DataFusion can't run some catalog queries of clients, so they are rewritten, some of them roughly: a subquery among
//! the columns becomes NULL. Therefore only queries that read nothing but the catalog are rewritten.

mod completed;
mod listed;
mod privileges;

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use datafusion::arrow::datatypes::DataType;
use datafusion::error::DataFusionError;
use datafusion::execution::context::SessionContext;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::{
    ColumnarValue, ScalarUDF, Signature, SimpleScalarUDF, TypeSignature, Volatility, create_udf,
};
use datafusion::prelude::SessionConfig;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, Join,
    JoinOperator, ObjectName, Select, SelectItem, SetExpr, Statement, TableFactor, Value, VisitMut, VisitorMut,
    visit_expressions, visit_expressions_mut, visit_relations,
};
use datafusion_pg_catalog::pg_catalog::context::EmptyContextProvider;
use datafusion_pg_catalog::pg_catalog::generate_series_arg_coercion::CoerceIntArgsToBigInt;
use datafusion_pg_catalog::pg_catalog::oid_type_planner::PgOidTypePlanner;
use datafusion_pg_catalog::pg_catalog::{
    PG_CATALOG_TABLES, PgCatalogSchemaProvider, PgCatalogStaticTables, setup_pg_catalog,
};
use datafusion_pg_catalog::sql::PostgresCompatibilityParser;
use kohort_sql::Role;
use kohort_sql::parser::{Parsed, parse};
use kohort_sql::worker::{Asker, Functions};

use crate::settings::SERVER_VERSION;
use completed::Completed;
use listed::Listed;
use privileges::Holder;

const CATALOG: &str = "kohort";
const PG_CATALOG: &str = "pg_catalog";
const KEYWORDS: &str = "pg_get_keywords";

/// Provides PostgreSQL's catalog, and rewrites queries of it.
pub(crate) struct PgCatalog {
    parser: PostgresCompatibilityParser,
    /// The tables that are the same for all sessions: 5 MB of PostgreSQL's own types, functions and operators.
    tables: Arc<PgCatalogStaticTables>,
    /// The functions of the catalog.
    functions: Vec<Arc<ScalarUDF>>,
}

impl PgCatalog {
    pub(crate) fn new() -> PgCatalog {
        PgCatalog::load().expect("PostgreSQL's own tables are part of the program")
    }

    fn load() -> Result<PgCatalog, DataFusionError> {
        Ok(PgCatalog {
            parser: PostgresCompatibilityParser::new(),
            tables: Arc::new(PgCatalogStaticTables::try_new()?),
            functions: functions()?.into_values().collect(),
        })
    }

    /// Adds the catalog to a user's session.
    pub(crate) fn install(&self, context: &SessionContext, user: &str, role: Role) -> Result<(), DataFusionError> {
        let listed = Listed::new(context.state().catalog_list());
        let tables = PgCatalogSchemaProvider::try_new(listed, Arc::clone(&self.tables), EmptyContextProvider)?;
        let catalog =
            context.catalog(CATALOG).ok_or_else(|| DataFusionError::Plan("there is no catalog".to_owned()))?;
        catalog.register_schema(PG_CATALOG, Arc::new(Completed(tables)))?;
        for function in &self.functions {
            context.register_udf(function.as_ref().clone());
        }
        context.register_udtf(KEYWORDS, Arc::clone(&self.tables.pg_get_keywords) as _);
        let state = context.state_ref();
        let with_types = SessionStateBuilder::new_from_existing(context.state())
            .with_type_planner(Arc::new(PgOidTypePlanner))
            .build();
        *state.write() = with_types;
        CoerceIntArgsToBigInt::widen(context);
        let holder = Holder::of_session(user, role, context.state().catalog_list());
        for function in functions_of(user).into_iter().chain(privileges::functions(&holder)) {
            context.register_udf(function);
        }
        Ok(())
    }

    /// Rewrites a query that reads nothing but the catalog; `None` for other queries.
    pub(crate) fn rewrite(&self, statement: &Statement, text: &str) -> Option<Statement> {
        if !reads_catalog_only(statement) {
            return None;
        }
        let mut rewritten = self.parser.parse(text).ok()?;
        match (rewritten.pop(), rewritten.is_empty()) {
            (Some(rewritten @ Statement::Query(_)), true) => Some(named_as(statement, adapted(rewritten))),
            _ => None,
        }
    }

    /// Replaces a query for keys, constraints, indexes, enumerations or user-defined functions by an empty answer,
    /// because there are none and DataFusion can't plan some clients' queries for them; `None` for other queries.
    pub(crate) fn nothing_for(parsed: &Parsed) -> Option<Parsed> {
        let statement = parsed.sql()?;
        let mut asks_for_none = false;
        let _ = visit_relations(statement, |name| {
            asks_for_none |= ["pg_constraint", "pg_enum", "pg_index", "pg_proc"].contains(&last(name).as_str());
            ControlFlow::<()>::Continue(())
        });
        let projection = projection(statement)?;
        if !asks_for_none || !reads_catalog_only(statement) {
            return None;
        }
        let column = |(position, item): (usize, &SelectItem)| match item {
            SelectItem::ExprWithAlias { alias, .. } => alias.value.clone(),
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(path)) => {
                path.last().map(|name| name.value.clone()).unwrap_or_default()
            }
            SelectItem::UnnamedExpr(Expr::Identifier(name)) => name.value.clone(),
            _ => format!("column{position}"),
        };
        let columns = projection.iter().enumerate().map(column);
        let columns: Vec<String> =
            columns.map(|name| format!("CAST(NULL AS TEXT) AS \"{}\"", name.replace('"', "\"\""))).collect();
        let empty = parse(&format!("SELECT {} WHERE false", columns.join(", "))).ok()?.pop()?;
        Some(Parsed { text: parsed.text.clone(), ..empty })
    }

    /// Parses a catalog query that only the rewriting parser understands.
    pub(crate) fn read(&self, text: &str) -> Option<Statement> {
        let mut statements = self.parser.parse(text).ok()?;
        match (statements.pop(), statements.is_empty()) {
            (Some(statement @ Statement::Query(_)), true) if reads_catalog_only(&statement) => Some(statement),
            _ => None,
        }
    }
}

/// The functions of the catalog, for worker processes.
pub(crate) const FUNCTIONS: Functions = Functions { own: functions_of_asker, others: function };

fn functions_of_asker(asker: &Asker) -> Vec<ScalarUDF> {
    let mut functions = functions_of(&asker.user);
    functions.extend(privileges::functions(&Holder::of_asker(asker)));
    functions
}

/// A function of `datafusion-pg-catalog`.
fn function(name: &str) -> Option<Arc<ScalarUDF>> {
    static KNOWN: OnceLock<HashMap<String, Arc<ScalarUDF>>> = OnceLock::new();
    KNOWN.get_or_init(|| functions().unwrap_or_default()).get(name).cloned()
}

/// The functions of `datafusion-pg-catalog`, by name.
fn functions() -> Result<HashMap<String, Arc<ScalarUDF>>, DataFusionError> {
    let config = SessionConfig::new().with_default_catalog_and_schema(CATALOG, "public");
    let template = SessionContext::new_with_config(config);
    let known: HashSet<String> = template.state().scalar_functions().keys().cloned().collect();
    setup_pg_catalog(&template, CATALOG, EmptyContextProvider).map_err(|error| *error)?;
    let functions = template.state().scalar_functions().clone();
    Ok(functions.into_iter().filter(|(name, _)| !known.contains(name)).collect())
}

/// Functions that replace those of DataFusion or `datafusion-pg-catalog`.
fn functions_of(user: &str) -> Vec<ScalarUDF> {
    let version = format!("PostgreSQL {SERVER_VERSION} (kohort {})", env!("CARGO_PKG_VERSION"));
    let mut functions = vec![
        constant("version", version),
        constant("session_user", user.to_owned()),
        constant("current_user", user.to_owned()),
        current_setting(),
    ];
    // Definitions of views are not shown, there are no comments, and there are only PostgreSQL's own types.
    let (oid, int, text, truth) = (DataType::Int32, DataType::Int64, DataType::Utf8, DataType::Boolean);
    let no_text = ScalarValue::Utf8(None);
    let unsized_text = ScalarValue::Utf8(Some("0 bytes".to_owned()));
    for (name, of, says) in [
        ("pg_size_pretty", vec![int.clone()], unsized_text),
        ("pg_table_size", vec![oid.clone()], ScalarValue::Int64(Some(0))),
        ("to_regtype", vec![text.clone()], ScalarValue::Int32(None)),
        ("obj_description", vec![oid.clone(), text.clone()], no_text.clone()),
        ("shobj_description", vec![oid.clone(), text], no_text.clone()),
        ("col_description", vec![oid.clone(), int], no_text.clone()),
        ("pg_type_is_visible", vec![oid.clone()], ScalarValue::Boolean(Some(true))),
        ("pg_function_is_visible", vec![oid.clone()], ScalarValue::Boolean(Some(true))),
    ] {
        functions.push(always(name, TypeSignature::Exact(of), says));
    }
    // There are no such locks, so there is nothing to unlock. Connection pools of asyncpg call it.
    functions.push(always("pg_advisory_unlock_all", TypeSignature::Nullary, ScalarValue::Utf8(Some(String::new()))));
    let plain_or_pretty = [vec![oid.clone()], vec![oid, truth]].map(TypeSignature::Exact).to_vec();
    functions.push(always("pg_get_viewdef", TypeSignature::OneOf(plain_or_pretty), no_text));
    functions
}

/// Rewrites what the rewriting parser leaves: `LIKE ... ESCAPE '/'` gets a backslash as its escape, and unknown parts
/// of a column and aggregates of empty tables become NULL. The parser has already done this for subqueries that are a
/// whole column.
fn adapted(mut statement: Statement) -> Statement {
    if let Statement::Query(query) = &mut statement
        && let SetExpr::Select(select) = query.body.as_mut()
    {
        let _ = visit_expressions_mut(&mut select.projection, |expression| {
            if is_unknown(expression) {
                *expression = Expr::value(Value::Null);
            }
            ControlFlow::<()>::Continue(())
        });
    }
    let _ = VisitMut::visit(&mut statement, &mut GathersNothing);
    let _ = visit_expressions_mut(&mut statement, |expression| {
        if let Expr::Like { pattern, escape_char, .. } | Expr::ILike { pattern, escape_char, .. } = expression
            && let Some(escape) = escape_char.take()
        {
            let text = |text: &str| Expr::value(Value::SingleQuotedString(text.to_owned()));
            let Some(escape) = escape.into_string() else { return ControlFlow::<()>::Continue(()) };
            let arguments = [pattern.as_ref().clone(), text(&escape), text("\\")];
            let arguments = arguments.map(|argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)));
            **pattern = Expr::Function(Function {
                name: ObjectName::from(vec![Ident::new("replace")]),
                uses_odbc_syntax: false,
                parameters: FunctionArguments::None,
                args: FunctionArguments::List(FunctionArgumentList {
                    duplicate_treatment: None,
                    args: arguments.to_vec(),
                    clauses: Vec::new(),
                }),
                filter: None,
                null_treatment: None,
                over: None,
                within_group: Vec::new(),
            });
        }
        ControlFlow::<()>::Continue(())
    });
    statement
}

/// Replaces lists of parent tables by NULL. SQLAlchemy joins `SELECT inhrelid, array_agg(...) FROM pg_inherits ...` to
/// each table, which is refused because lists can't be joined. No table inherits, so the lists are empty anyway.
struct GathersNothing;

impl VisitorMut for GathersNothing {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        if has_no_rows(select) {
            for item in &mut select.projection {
                if let SelectItem::ExprWithAlias { expr, .. } = item
                    && matches!(expr, Expr::Function(call) if last(&call.name) == "array_agg")
                {
                    *expr = Expr::value(Value::Null);
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// Whether all rows come from `pg_inherits`, which is empty.
fn has_no_rows(select: &Select) -> bool {
    let [from] = select.from.as_slice() else { return false };
    let is_inherits = matches!(&from.relation, TableFactor::Table { name, .. }
        if is_table_of_catalog(name) && last(name) == "pg_inherits");
    let adds_none = |join: &Join| matches!(join.join_operator, JoinOperator::Join(_) | JoinOperator::Inner(_));
    is_inherits && from.joins.iter().all(adds_none)
}

/// Keeps the names of columns: `current_user` is rewritten to `session_user()`, but the column is still `current_user`.
fn named_as(asked: &Statement, mut rewritten: Statement) -> Statement {
    let (Some(asked), Statement::Query(query)) = (projection(asked), &mut rewritten) else { return rewritten };
    if let SetExpr::Select(select) = query.body.as_mut()
        && select.projection.len() == asked.len()
    {
        for (asked, item) in asked.iter().zip(&mut select.projection) {
            if let SelectItem::UnnamedExpr(Expr::Function(call)) = asked
                && matches!(call.args, FunctionArguments::None)
                && let SelectItem::UnnamedExpr(expr) = item
            {
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::new(last(&call.name)) };
            }
        }
    }
    rewritten
}

fn projection(statement: &Statement) -> Option<&[SelectItem]> {
    let Statement::Query(query) = statement else { return None };
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    Some(&select.projection)
}

/// Whether an expression becomes NULL: `(SELECT ...)`, `ARRAY(SELECT ...)`, and functions that list privileges or
/// policies, which are not in this catalog but in `SHOW GRANTS`.
fn is_unknown(expression: &Expr) -> bool {
    match expression {
        Expr::Subquery(_) => true,
        Expr::Function(call) => match &call.args {
            FunctionArguments::Subquery(_) => true,
            FunctionArguments::List(list) => {
                last(&call.name) == "array_to_string" && list.args.iter().filter_map(expression_of).any(is_of_rows)
            }
            FunctionArguments::None => false,
        },
        _ => false,
    }
}

fn expression_of(argument: &FunctionArg) -> Option<&Expr> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) => Some(expression),
        _ => None,
    }
}

/// Whether an argument is a column, a former subquery, or a concatenation of these.
fn is_of_rows(argument: &Expr) -> bool {
    match argument {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => true,
        Expr::Value(value) => value.value == Value::Null,
        Expr::BinaryOp { left, op: BinaryOperator::StringConcat, right } => is_of_rows(left) && is_of_rows(right),
        _ => is_unknown(argument),
    }
}

/// Whether a query reads only tables of the catalog, or reads no table and calls a function of the catalog.
fn reads_catalog_only(statement: &Statement) -> bool {
    let Statement::Query(query) = statement else { return false };
    let ctes: Vec<String> =
        query.with.iter().flat_map(|with| &with.cte_tables).map(|cte| cte.alias.name.value.to_lowercase()).collect();
    let (mut n_catalog, mut n_others) = (0, 0);
    let _ = visit_relations(statement, |name| {
        match is_table_of_catalog(name) {
            true => n_catalog += 1,
            false if name.0.len() == 1 && ctes.contains(&last(name)) => {}
            false if ["generate_series", "unnest", "information_schema"].contains(&first(name).as_str()) => {}
            false => n_others += 1,
        }
        ControlFlow::<()>::Continue(())
    });
    n_others == 0 && (n_catalog > 0 || calls_catalog(statement))
}

/// Whether a query without tables calls a function of the catalog. Queries with subqueries do not count, because the
/// subqueries would be rewritten too.
fn calls_catalog(statement: &Statement) -> bool {
    const ASKED: [&str; 10] = [
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
                calls |= first(&call.name) == PG_CATALOG || ASKED.contains(&name.as_str()) || name.starts_with("pg_");
            }
            Expr::Identifier(name) => calls |= ASKED.contains(&name.value.to_lowercase().as_str()),
            Expr::Cast { data_type, .. } => calls |= data_type.to_string().to_lowercase().contains("reg"),
            Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => has_subqueries = true,
            _ => {}
        }
        ControlFlow::<()>::Continue(())
    });
    calls && !has_subqueries
}

/// Whether this is a table or table function of the catalog. A view whose name begins with `pg_` is not.
fn is_table_of_catalog(name: &ObjectName) -> bool {
    match name.0.len() {
        1 => PG_CATALOG_TABLES.contains(&last(name).as_str()) || last(name) == KEYWORDS,
        _ => first(name) == PG_CATALOG,
    }
}

fn first(name: &ObjectName) -> String {
    name.0.first().and_then(|part| part.as_ident()).map(|part| part.value.to_lowercase()).unwrap_or_default()
}

fn last(name: &ObjectName) -> String {
    name.0.last().and_then(|part| part.as_ident()).map(|part| part.value.to_lowercase()).unwrap_or_default()
}

/// A function with a constant result.
fn always(name: &str, of: TypeSignature, says: ScalarValue) -> ScalarUDF {
    let returns = says.data_type();
    let function = move |_: &[ColumnarValue]| Ok(ColumnarValue::Scalar(says.clone()));
    let of = Signature::new(of, Volatility::Stable);
    ScalarUDF::from(SimpleScalarUDF::new_with_signature(name, of, returns, Arc::new(function)))
}

/// `current_setting('default_table_access_method')`, which SQLAlchemy compares with that of a table. Other settings are
/// NULL, because a function, unlike SHOW, does not know its connection, and a function that fails for some rows would
/// reveal them.
fn current_setting() -> ScalarUDF {
    let function = |arguments: &[ColumnarValue]| {
        let is_known = matches!(arguments, [ColumnarValue::Scalar(ScalarValue::Utf8(Some(name)))]
            if name.eq_ignore_ascii_case("default_table_access_method"));
        Ok(ColumnarValue::Scalar(ScalarValue::Utf8(is_known.then(|| "heap".to_owned()))))
    };
    create_udf("current_setting", vec![DataType::Utf8], DataType::Utf8, Volatility::Stable, Arc::new(function))
}

/// A function without arguments and with a constant result.
fn constant(name: &str, text: String) -> ScalarUDF {
    let says = ScalarValue::Utf8(Some(text));
    let function = move |_: &[ColumnarValue]| Ok(ColumnarValue::Scalar(says.clone()));
    create_udf(name, vec![], DataType::Utf8, Volatility::Stable, Arc::new(function))
}
