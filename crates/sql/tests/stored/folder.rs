//! Engines of data folders.

use std::path::Path;
use std::sync::Arc;

use chrono::{TimeZone, Utc};
use kohort_sql::policy::ComplianceLog;
use kohort_sql::{Engine, Role, Session, SqlError};

use crate::session::rows;

/// The engine of a folder, on the second of January 2026.
pub(crate) async fn try_open(folder: &Path) -> Result<Engine, SqlError> {
    let clock = Arc::new(|| Utc.with_ymd_and_hms(2026, 1, 2, 3, 4, 5).single().expect("there is such a moment"));
    Engine::open(folder, clock, ComplianceLog::new()).await
}

/// The same, where nothing is in the way.
pub(crate) async fn open(folder: &Path) -> Engine {
    match try_open(folder).await {
        Ok(engine) => engine,
        Err(error) => panic!("{error}\nhint: {:?}", error.hint()),
    }
}

/// A session of an analyst.
pub(crate) fn analyst(engine: &Engine) -> Session {
    engine.session(Role::Analyst)
}

/// Rows without an order, sorted.
pub(crate) async fn sorted(session: &mut Session, sql: &str) -> Vec<Vec<String>> {
    let mut found = rows(session, sql).await;
    found.sort();
    found
}
