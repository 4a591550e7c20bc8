//! Statements and their answers, written as `.slt` files.
//!
//! Each file has an engine of its own; if its name begins with `stored`, the engine has a data folder. Records are run by the
//! owner, and records after a `connection` by an analyst; each name of a connection is a session. The answer of a statement
//! without rows is its message, one row per line. An error is its message, with the hint below it. With `UPDATE_SLT=1` the actual
//! answers are written into the files instead of being compared.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kohort_sql::{Engine, Role, Session, SqlError};
use kohort_testkit::attacks::statements::statements;
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType, Runner};

use crate::session::{engine, engine_in, try_rows};

struct Connection {
    session: Session,
    /// How many statements analysts sent, in all connections of a file; `None` for the owner's session.
    n_sent: Option<Arc<AtomicUsize>>,
}

#[derive(Debug)]
struct Failure(SqlError);

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        self.0.hint().map_or(Ok(()), |hint| write!(f, "\nhint: {hint}"))
    }
}

impl std::error::Error for Failure {}

#[async_trait::async_trait]
impl AsyncDB for Connection {
    type Error = Failure;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Failure> {
        if let Some(n_sent) = &self.n_sent {
            n_sent.fetch_add(1, Ordering::Relaxed);
        }
        let rows = try_rows(&mut self.session, sql).await.map_err(Failure)?;
        let n_columns = rows.first().map_or(0, Vec::len);
        let rows = match rows.as_slice() {
            [row] if n_columns == 1 => row[0].lines().map(|line| vec![line.to_owned()]).collect(),
            _ => rows,
        };
        Ok(DBOutput::Rows { types: vec![DefaultColumnType::Any; n_columns], rows })
    }

    async fn shutdown(&mut self) {}
}

/// The first session is the owner's.
async fn connect(engine: Engine, is_first: bool, n_sent: Arc<AtomicUsize>) -> Result<Connection, Failure> {
    let role = if is_first { Role::Owner } else { Role::Analyst };
    Ok(Connection { session: engine.session(role), n_sent: (!is_first).then_some(n_sent) })
}

fn files_in(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "slt"));
    files.sort();
    files
}

/// Runs all files of a folder. Returns the name of each file, and how many statements analysts sent.
async fn run_all(folder: &str) -> Vec<(String, usize)> {
    let files = files_in(folder);
    assert!(!files.is_empty(), "{folder} has no suites");
    let (mut failures, mut sent) = (Vec::new(), Vec::new());
    for file in files {
        let n_sent = Arc::new(AtomicUsize::new(0));
        let (folder, mut is_first) = (tempfile::tempdir().unwrap(), true);
        let is_stored = file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("stored"));
        let engine = if is_stored { engine_in(folder.path()).await } else { engine() };
        let mut runner =
            Runner::new(|| connect(engine.clone(), std::mem::replace(&mut is_first, false), Arc::clone(&n_sent)));
        if std::env::var_os("UPDATE_SLT").is_some() {
            let normalize = sqllogictest::default_normalizer;
            let (validate, types) = (sqllogictest::default_validator, sqllogictest::default_column_validator);
            runner.update_test_file(&file, " ", validate, normalize, types).await.unwrap();
        } else if let Err(failure) = runner.run_file_async(&file).await {
            failures.push(failure.display(false).to_string());
        }
        sent.push((file.file_stem().unwrap().to_string_lossy().into_owned(), n_sent.load(Ordering::Relaxed)));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    sent
}

#[tokio::test]
async fn every_suite_holds() {
    run_all("slt").await;
}

#[tokio::test]
async fn every_attack_fails_and_the_catalogue_says_how_many_statements_it_has() {
    let sent = run_all("attacks").await;
    let listed: Vec<(String, usize)> = statements().into_iter().map(|file| (file.name, file.n_sent)).collect();
    assert_eq!(sent, listed);
}
