//! The tools that an agent has: list views, describe one, and query.

use datafusion::sql::sqlparser::ast::Statement as SqlStatement;
use kohort_sql::parser::parse;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::database::{Database, DatabaseError, Table};

/// The number of rows that are shown if the call names none, and the largest number.
const ROWS: u64 = 100;
const MOST_ROWS: u64 = 1000;

/// The size in bytes to which the cells of an answer are cut, in whole rows. An agent reads all of it.
const MOST_BYTES: usize = 100_000;

pub(super) const INSTRUCTIONS: &str = "\
These are anonymization views: tables of persons in which everybody looks the same as several others. Quasi columns hold labels in \
place of values: ranges such as [30,39], masks such as 100*, or names of groups. A comparison with a label asks whether the value \
could match: age = 31 finds rows labelled [30,39]. So rows are candidates, counts are counts of rows that could match, and counts of \
questions that exclude each other may add up to more than all rows. Compare with values, not with labels; labels can be shown, \
grouped and counted. NULL in place of a name means that it is not shown. No question narrows an answer down to one person, so do \
not try to; say that figures are of groups. Some views answer only count(*), sum(column) and avg(column), with conditions \
and groups on columns of labels. Where persons choose what may be seen, a query can end with PURPOSE name RECIPIENT name, if these are \
granted. Errors say what to do instead.";

/// The list of tools.
pub(super) fn list() -> Value {
    let reads = json!({"readOnlyHint": true, "openWorldHint": false});
    let tool = |name: &str, description: &str, properties: Value, required: Value| {
        json!({
            "name": name,
            "description": description,
            "inputSchema":
                {"type": "object", "properties": properties, "required": required, "additionalProperties": false},
            "annotations": reads,
        })
    };
    let sql = "One SELECT statement in PostgreSQL's SQL. It may end with PURPOSE name RECIPIENT name.";
    let rows = format!("How many rows to show at most, up to {MOST_ROWS}. {ROWS} if absent.");
    json!({"tools": [
        tool("list_views", "Lists the views that this login may read, and whether each can be read.", json!({}), json!([])),
        tool(
            "describe_view",
            "Lists the columns of a view with their types.",
            json!({"view": {"type": "string", "description": "The name of the view."}}),
            json!(["view"]),
        ),
        tool(
            "query",
            "Runs a SELECT on the views. The answer has columns, rows as texts, and whether there are more rows.",
            json!({
                "sql": {"type": "string", "description": sql},
                "max_rows": {"type": "integer", "minimum": 1, "maximum": MOST_ROWS, "description": rows},
            }),
            json!(["sql"]),
        ),
    ]})
}

/// A call of a tool.
#[derive(Debug, PartialEq)]
pub(super) enum ToolCall {
    ListViews,
    DescribeView { view: String },
    Query { sql: String, max_rows: u64 },
}

impl ToolCall {
    /// Reads the parameters of `tools/call`.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(super) fn read(parameters: &Value) -> Result<ToolCall, String> {
        let name = parameters.get("name").and_then(Value::as_str).ok_or("the call names no tool")?;
        let none = json!({});
        let arguments = parameters.get("arguments").filter(|arguments| !arguments.is_null()).unwrap_or(&none);
        let arguments = arguments.as_object().ok_or("the arguments must be an object")?;
        let known: &[&str] = match name {
            "list_views" => &[],
            "describe_view" => &["view"],
            "query" => &["sql", "max_rows"],
            other => return Err(format!("there is no tool {other}")),
        };
        if let Some(unknown) = arguments.keys().find(|argument| !known.contains(&argument.as_str())) {
            return Err(format!("{name} has no argument {unknown}"));
        }
        let text = |argument: &str| {
            let text = arguments.get(argument).and_then(Value::as_str).map(str::to_owned);
            text.ok_or_else(|| format!("{name} needs the text '{argument}'"))
        };
        Ok(match name {
            "list_views" => ToolCall::ListViews,
            "describe_view" => ToolCall::DescribeView { view: text("view")? },
            _ => {
                let max_rows = match arguments.get("max_rows") {
                    None => ROWS,
                    Some(given) => {
                        let given = given.as_u64().filter(|rows| (1..=MOST_ROWS).contains(rows));
                        given.ok_or_else(|| format!("max_rows must be a whole number from 1 to {MOST_ROWS}"))?
                    }
                };
                ToolCall::Query { sql: text("sql")?, max_rows }
            }
        })
    }

    /// Runs the call, unless it is cancelled. A failed question is a result too, so that the agent reads why.
    pub(super) async fn run(self, database: &Database, cancelled: &Notify) -> Value {
        let answer = match self {
            ToolCall::ListViews => {
                database.ask("SHOW ANONYMIZATION_VIEWS", cancelled).await.map(|table| shown(table, usize::MAX))
            }
            ToolCall::DescribeView { view } => describe(database, &view, cancelled).await,
            ToolCall::Query { sql, max_rows } => query(database, &sql, max_rows, cancelled).await,
        };
        match answer {
            Ok(text) => json!({"content": [{"type": "text", "text": text}], "isError": false}),
            Err(problem) => {
                let hint = problem.hint().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
                json!({"content": [{"type": "text", "text": format!("error: {problem}{hint}")}], "isError": true})
            }
        }
    }
}

async fn describe(database: &Database, view: &str, cancelled: &Notify) -> Result<String, DatabaseError> {
    let sql = format!(
        "SELECT column_name AS name, data_type AS type FROM information_schema.columns
         WHERE table_schema = 'public' AND table_name = '{}' ORDER BY ordinal_position",
        view.replace('\'', "''")
    );
    let mut table = database.ask(&sql, cancelled).await?;
    for data_type in table.rows.iter_mut().filter_map(|row| row.last_mut()?.as_mut()) {
        *data_type = in_words(data_type).to_owned();
    }
    match table.rows.is_empty() {
        true => Err(DatabaseError::UnknownView { name: view.to_owned() }),
        false => Ok(shown(table, usize::MAX)),
    }
}

/// A type of the query engine in the words of SQL, if SQL has some.
fn in_words(data_type: &str) -> &str {
    match data_type {
        "Utf8" | "LargeUtf8" | "Utf8View" => "text",
        "Int8" | "Int16" | "Int32" | "Int64" | "UInt8" | "UInt16" | "UInt32" | "UInt64" => "integer",
        "Float16" | "Float32" | "Float64" => "double precision",
        "Date32" | "Date64" => "date",
        other => other,
    }
}

async fn query(database: &Database, sql: &str, max_rows: u64, cancelled: &Notify) -> Result<String, DatabaseError> {
    let parsed = parse(sql).map_err(|problem| DatabaseError::Statement(Box::new(problem.into())))?;
    let [one] = parsed.as_slice() else { return Err(DatabaseError::NotOneQuery) };
    if !matches!(one.sql(), Some(SqlStatement::Query(_))) {
        return Err(DatabaseError::NotOneQuery);
    }
    // The text was read as one statement, so it can't end this one and begin another. It may end with a comment.
    let (asked, n_fetched) = (&one.text.written, max_rows + 1);
    let statement = format!("DECLARE answer CURSOR FOR {asked}\n; FETCH {n_fetched} FROM answer; CLOSE answer");
    let table = database.ask(&statement, cancelled).await?;
    Ok(shown(table, usize::try_from(max_rows).unwrap_or(usize::MAX)))
}

/// A table as the agent reads it.
fn shown(table: Table, max_rows: usize) -> String {
    let Table { columns, rows } = table;
    let (n_rows, mut n_bytes) = (rows.len(), 0);
    let fits = |row: &Vec<Option<String>>| {
        n_bytes += row.iter().flatten().map(String::len).sum::<usize>();
        n_bytes <= MOST_BYTES
    };
    let rows: Vec<Vec<Option<String>>> = rows.into_iter().take(max_rows).take_while(fits).collect();
    let has_more = rows.len() < n_rows;
    json!({"columns": columns, "rows": rows, "more_rows": has_more}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, arguments: &Value) -> Result<ToolCall, String> {
        ToolCall::read(&json!({"name": name, "arguments": arguments}))
    }

    #[test]
    fn arguments_are_checked_by_name_and_range() {
        assert_eq!(ToolCall::read(&json!({"name": "list_views"})), Ok(ToolCall::ListViews));
        let query = ToolCall::Query { sql: "SELECT 1".to_owned(), max_rows: 7 };
        assert_eq!(read("query", &json!({"sql": "SELECT 1", "max_rows": 7})), Ok(query));
        for (name, arguments) in [
            ("drop_view", json!({})),
            ("list_views", json!({"all": true})),
            ("list_views", json!([1])),
            ("describe_view", json!({})),
            ("query", json!({"sql": 1})),
            ("query", json!({"sql": "SELECT 1", "max_rows": 0})),
            ("query", json!({"sql": "SELECT 1", "max_rows": 1001})),
            ("query", json!({"sql": "SELECT 1", "max_rows": "7"})),
        ] {
            assert!(read(name, &arguments).is_err(), "{name} {arguments}");
        }
    }

    #[test]
    fn an_answer_is_cut_to_whole_rows() {
        let row = |cell: &str| vec![Some(cell.to_owned()), None];
        let table = |rows| Table { columns: vec!["a".to_owned(), "b".to_owned()], rows };
        let of_three = shown(table(vec![row("x"), row("y"), row("z")]), 2);
        assert_eq!(of_three, r#"{"columns":["a","b"],"more_rows":true,"rows":[["x",null],["y",null]]}"#);
        let long = "l".repeat(MOST_BYTES);
        let of_long = shown(table(vec![row("x"), row(&long)]), 9);
        assert_eq!(of_long, r#"{"columns":["a","b"],"more_rows":true,"rows":[["x",null]]}"#);
    }
}
