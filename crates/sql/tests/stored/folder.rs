//! Opens engines of data folders.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use chrono::{Days, TimeZone, Utc};
use kohort_sql::policy::ComplianceLog;
use kohort_sql::{Clock, Engine, Role, Session, SqlError};
use kohort_store::TableKind;

use crate::session::{rows, try_rows};

/// The engine of a folder, with a clock that shows 2 January 2026.
pub(crate) async fn try_open(folder: &Path) -> Result<Engine, SqlError> {
    let clock = Arc::new(|| Utc.with_ymd_and_hms(2026, 1, 2, 3, 4, 5).single().expect("there is such a moment"));
    Engine::open(folder, clock, ComplianceLog::new()).await
}

/// The same, for a folder that can be opened.
pub(crate) async fn open(folder: &Path) -> Engine {
    match try_open(folder).await {
        Ok(engine) => engine,
        Err(error) => panic!("{error}\nhint: {:?}", error.hint()),
    }
}

/// The engine of a folder, with a clock that shows noon of this day of 2026, counted from 0.
pub(crate) async fn open_by(folder: &Path, day: &Arc<AtomicU32>) -> Engine {
    let day = Arc::clone(day);
    let clock: Clock = Arc::new(move || {
        let noon = Utc.with_ymd_and_hms(2026, 1, 1, 12, 0, 0).single().expect("there is such a moment");
        noon + Days::new(day.load(Ordering::Relaxed).into())
    });
    Engine::open(folder, clock, ComplianceLog::new()).await.unwrap()
}

/// A session of an analyst.
pub(crate) fn analyst(engine: &Engine) -> Session {
    engine.session(Role::Analyst)
}

/// The rows of a query, sorted.
pub(crate) async fn sorted(session: &mut Session, sql: &str) -> Vec<Vec<String>> {
    let mut found = rows(session, sql).await;
    found.sort();
    found
}

/// What a folder holds: its DGHs, which of these names can be read, and whether there are hidden tables of views.
pub(crate) async fn known(engine: &Engine, names: &[&str]) -> Vec<String> {
    let mut session = engine.session(Role::Owner);
    let mut known: Vec<String> = sorted(&mut session, "SHOW DGHS").await.into_iter().map(|dgh| dgh.join(" ")).collect();
    for name in names {
        let n_rows = try_rows(&mut session, &format!("SELECT * FROM {name}")).await.map(|rows| rows.len());
        known.push(format!("{name}: {:?}", n_rows.ok()));
    }
    let tables = engine.store().unwrap().read().unwrap().tables().unwrap();
    known.extend(tables.into_iter().filter(|table| table.kind == TableKind::Hidden).map(|table| table.name));
    known
}
