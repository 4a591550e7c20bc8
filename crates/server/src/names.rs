//! Names for unnamed columns of a query, as in PostgreSQL: `count(*)` is `count`, `1 + 1` is `?column?`. Clients look
//! up values by these names.
//!
//! DataFusion names such a column by its whole expression. Plans keep these names, because a client may get two columns
//! `count`, but a plan may not have two columns of the same name.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::sql::sqlparser::ast::{
    DataType, Expr, Query, SelectItem, SetExpr, Statement as SqlStatement, TimezoneInfo, Value,
};
use kohort_sql::parser::{Parsed, spelled};

const NAMELESS: &str = "?column?";

/// The names of a query's columns that differ between PostgreSQL and DataFusion.
#[derive(Default)]
pub(crate) struct ColumnNames {
    /// The names before `*`, or all names if there is no `*`.
    first: Vec<Option<String>>,
    /// The names after `*`.
    last: Vec<Option<String>>,
}

impl ColumnNames {
    pub(crate) fn of(parsed: &Parsed) -> ColumnNames {
        let Some(SqlStatement::Query(query)) = parsed.sql() else { return ColumnNames::default() };
        projection(&query.body).map(ColumnNames::of_projection).unwrap_or_default()
    }

    fn of_projection(items: &[SelectItem]) -> ColumnNames {
        let is_many = |item: &SelectItem| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
        let names = |items: &[SelectItem]| items.iter().map(name_of_item).collect();
        match items.iter().position(is_many) {
            None => ColumnNames { first: names(items), last: Vec::new() },
            Some(place) if items[place + 1..].iter().any(is_many) => ColumnNames::default(),
            Some(place) => ColumnNames { first: names(&items[..place]), last: names(&items[place + 1..]) },
        }
    }

    /// The columns with the names that a client expects.
    pub(crate) fn give(&self, schema: SchemaRef) -> SchemaRef {
        let n_columns = schema.fields().len();
        if self.first.len() + self.last.len() > n_columns || self.first.iter().chain(&self.last).all(Option::is_none) {
            return schema;
        }
        let name = |column: usize| match column.checked_sub(n_columns - self.last.len()) {
            Some(place) => self.last[place].as_ref(),
            None => self.first.get(column).and_then(Option::as_ref),
        };
        let fields = schema.fields().iter().enumerate().map(|(column, field)| match name(column) {
            Some(name) => Arc::new(field.as_ref().clone().with_name(name)),
            None => Arc::clone(field),
        });
        Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
    }
}

/// The selected items of a query. In a UNION the first query names the columns.
fn projection(body: &SetExpr) -> Option<&[SelectItem]> {
    match body {
        SetExpr::Select(select) => Some(&select.projection),
        SetExpr::Query(query) => projection(&query.body),
        SetExpr::SetOperation { left, .. } => projection(left),
        _ => None,
    }
}

/// The name of an item; `None` if the query names it, or DataFusion's name is the same.
fn name_of_item(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::UnnamedExpr(Expr::Identifier(_) | Expr::CompoundIdentifier(_)) => None,
        SelectItem::UnnamedExpr(expression) => Some(match Name::of(expression) {
            Some(Name::Own(name) | Name::OfKind(name)) => name,
            None => NAMELESS.to_owned(),
        }),
        _ => None,
    }
}

/// The origin of an expression's name.
enum Name {
    /// The name of a column or function.
    Own(String),
    /// A name for the kind of expression, such as `case`.
    OfKind(String),
}

impl Name {
    fn of(expression: &Expr) -> Option<Name> {
        let own = |name: &str| Some(Name::Own(name.to_owned()));
        match expression {
            Expr::Identifier(name) => own(&spelled(name)),
            Expr::CompoundIdentifier(path) => own(&spelled(path.last()?)),
            Expr::Function(call) => own(&spelled(call.name.0.last()?.as_ident()?)),
            Expr::Nested(within) | Expr::Collate { expr: within, .. } => Name::of(within),
            Expr::AtTimeZone { .. } => own("timezone"),
            Expr::Extract { .. } => own("extract"),
            Expr::Ceil { .. } => own("ceil"),
            Expr::Floor { .. } => own("floor"),
            Expr::Position { .. } => own("position"),
            Expr::Substring { .. } => own("substring"),
            Expr::Trim { .. } => own("btrim"),
            Expr::Overlay { .. } => own("overlay"),
            Expr::Exists { negated: false, .. } => own("exists"),
            Expr::Array(_) => own("array"),
            Expr::Subquery(query) => Name::of_subquery(query),
            Expr::Cast { expr, data_type, .. } => Some(match Name::of(expr) {
                Some(Name::Own(name)) => Name::Own(name),
                _ => Name::OfKind(type_name(data_type)),
            }),
            Expr::TypedString(typed) => Some(Name::OfKind(type_name(&typed.data_type))),
            Expr::Interval(_) => Some(Name::OfKind("interval".to_owned())),
            Expr::Value(value) if matches!(value.value, Value::Boolean(_)) => Some(Name::OfKind("bool".to_owned())),
            Expr::Case { else_result, .. } => match else_result.as_deref().and_then(Name::of) {
                Some(Name::Own(name)) => Some(Name::Own(name)),
                _ => Some(Name::OfKind("case".to_owned())),
            },
            _ => None,
        }
    }

    fn of_subquery(query: &Query) -> Option<Name> {
        match projection(&query.body)?.first()? {
            SelectItem::ExprWithAlias { alias, .. } => Some(Name::Own(spelled(alias))),
            SelectItem::UnnamedExpr(expression) => Name::of(expression),
            _ => None,
        }
    }
}

/// PostgreSQL's name of a type.
fn type_name(data_type: &DataType) -> String {
    let name = match data_type {
        DataType::SmallInt(_) | DataType::Int2(_) => "int2",
        DataType::Int(_) | DataType::Integer(_) | DataType::Int4(_) => "int4",
        DataType::BigInt(_) | DataType::Int8(_) => "int8",
        DataType::Real | DataType::Float4 => "float4",
        DataType::Double(_) | DataType::DoublePrecision | DataType::Float(_) | DataType::Float8 => "float8",
        DataType::Decimal(_) | DataType::Numeric(_) | DataType::Dec(_) => "numeric",
        DataType::Boolean | DataType::Bool => "bool",
        DataType::Varchar(_) | DataType::CharacterVarying(_) => "varchar",
        DataType::Char(_) | DataType::Character(_) => "bpchar",
        DataType::Timestamp(_, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => "timestamptz",
        DataType::Timestamp(..) => "timestamp",
        other => {
            let name = other.to_string().to_lowercase();
            return name.split('(').next().unwrap_or_default().trim().to_owned();
        }
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field};
    use kohort_sql::parser::parse;

    use super::*;

    /// The names of columns that DataFusion calls 0, 1, 2 and so on.
    fn names(query: &str, n_columns: usize) -> Vec<String> {
        let fields: Vec<Field> =
            (0..n_columns).map(|column| Field::new(column.to_string(), DataType::Utf8, true)).collect();
        let parsed = parse(query).unwrap().remove(0);
        let named = ColumnNames::of(&parsed).give(Arc::new(Schema::new(fields)));
        named.fields().iter().map(|field| field.name().clone()).collect()
    }

    #[test]
    fn columns_have_the_names_that_postgresql_gives_them() {
        for (expression, name) in [
            ("1", "?column?"),
            ("'a'", "?column?"),
            ("NULL", "?column?"),
            ("true", "bool"),
            ("1 + age", "?column?"),
            ("age > 1", "?column?"),
            ("-age", "?column?"),
            ("NOT EXISTS (SELECT 1)", "?column?"),
            ("count(*)", "count"),
            ("COUNT(DISTINCT zip)", "count"),
            ("(avg(age))", "avg"),
            ("sum(age) OVER ()", "sum"),
            ("coalesce(zip, 'x')", "coalesce"),
            ("CAST(age AS TEXT)", "age"),
            ("p.age::float8", "age"),
            ("count(*)::int", "count"),
            ("'1'::int", "int4"),
            ("(1 + 1)::bigint", "int8"),
            ("DATE '2020-01-01'", "date"),
            ("'x'::varchar(3)", "varchar"),
            ("CASE WHEN age > 1 THEN 'a' END", "case"),
            ("CASE WHEN age > 1 THEN 'a' ELSE zip END", "zip"),
            ("extract(year FROM born)", "extract"),
            ("trim(zip)", "btrim"),
            ("EXISTS (SELECT 1)", "exists"),
            ("(SELECT max(age) FROM p)", "max"),
            ("(SELECT 1 AS one)", "one"),
            ("\"Weird\"(age)", "Weird"),
            ("age AS \"Age\"", "0"),
            ("age", "0"),
            ("p.age", "0"),
        ] {
            assert_eq!(names(&format!("SELECT {expression} FROM p"), 1), [name], "{expression}");
        }
    }

    #[test]
    fn columns_beside_a_star_are_told_by_their_places() {
        assert_eq!(names("SELECT count(*), *, 1, age FROM p", 6), ["count", "1", "2", "3", "?column?", "5"]);
        assert_eq!(names("SELECT p.*, now() FROM p", 3), ["0", "1", "now"]);
        assert_eq!(
            names("SELECT *, 1, p.* FROM p", 5),
            ["0", "1", "2", "3", "4"],
            "the number of columns of each * is not known"
        );
        assert_eq!(names("SELECT 1 UNION SELECT count(*) FROM p", 1), ["?column?"]);
        assert_eq!(names("(SELECT count(*) FROM p) ORDER BY 1", 1), ["count"]);
        assert_eq!(names("VALUES (1, 2)", 2), ["0", "1"]);
        assert_eq!(names("EXPLAIN SELECT 1", 2), ["0", "1"]);
    }
}
