//! Runs statements and returns their rows as texts.

use std::path::Path;
use std::sync::Arc;

use chrono::{TimeZone, Utc};
use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use futures::TryStreamExt;
use kohort_sql::parser::parse;
use kohort_sql::policy::ComplianceLog;
use kohort_sql::{Clock, Engine, Outcome, Role, Session, SqlError};

/// An engine whose clock shows 2 January 2026.
pub(crate) fn engine() -> Engine {
    Engine::new(clock())
}

/// The same engine with a data folder.
pub(crate) async fn engine_in(folder: &Path) -> Engine {
    Engine::open(folder, clock(), ComplianceLog::new()).await.unwrap()
}

fn clock() -> Clock {
    Arc::new(|| Utc.with_ymd_and_hms(2026, 1, 2, 3, 4, 5).single().expect("there is such a moment"))
}

/// Runs statements, and returns the answer of the last one as rows of texts. A null is `NULL`.
pub(crate) async fn try_rows(session: &mut Session, sql: &str) -> Result<Vec<Vec<String>>, SqlError> {
    let mut answer = Vec::new();
    for parsed in parse(sql)? {
        answer = match session.run(parsed).await? {
            Outcome::Done(message) => vec![vec![message]],
            Outcome::Rows(stream) => {
                let mut rows = Vec::new();
                for batch in stream.try_collect::<Vec<_>>().await? {
                    let texts: Vec<_> =
                        batch.columns().iter().map(|column| cast(column, &DataType::Utf8).unwrap()).collect();
                    for row in 0..batch.num_rows() {
                        let cell = |column: &Arc<dyn Array>| match column.is_null(row) {
                            true => "NULL".to_owned(),
                            false => column.as_string::<i32>().value(row).to_owned(),
                        };
                        rows.push(texts.iter().map(cell).collect());
                    }
                }
                rows
            }
        };
    }
    Ok(answer)
}

/// Runs statements that must succeed.
pub(crate) async fn rows(session: &mut Session, sql: &str) -> Vec<Vec<String>> {
    match try_rows(session, sql).await {
        Ok(rows) => rows,
        Err(error) => panic!("{error}\nhint: {:?}\nin {sql}", error.hint()),
    }
}

/// A session of the owner.
pub(crate) fn owner(engine: &Engine) -> Session {
    engine.session(Role::Owner)
}
