//! Statements and their answers, written as `.slt` files.
//!
//! Each file has an engine of its own, those called `stored` with a data folder. Records are the owner's; those after a `connection` are an analyst's, each name
//! its own session. What a statement says it has done is its answer, one row per line. An error is its message, with
//! the hint below it. `UPDATE_SLT=1` writes into the files what came instead of comparing.

use std::path::{Path, PathBuf};

use kohort_sql::{Engine, Role, Session, SqlError};
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType, Runner};

use crate::session::{engine, engine_in, try_rows};

struct Connection {
    session: Session,
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
async fn connect(engine: Engine, is_first: bool) -> Result<Connection, Failure> {
    let role = if is_first { Role::Owner } else { Role::Analyst };
    Ok(Connection { session: engine.session(role) })
}

fn files_in(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "slt"));
    files.sort();
    files
}

async fn run_all(folder: &str) {
    let files = files_in(folder);
    assert!(!files.is_empty(), "{folder} has no suites");
    let mut failures = Vec::new();
    for file in files {
        let (folder, mut is_first) = (tempfile::tempdir().unwrap(), true);
        let is_stored = file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("stored"));
        let engine = if is_stored { engine_in(folder.path()).await } else { engine() };
        let mut runner = Runner::new(|| connect(engine.clone(), std::mem::replace(&mut is_first, false)));
        if std::env::var_os("UPDATE_SLT").is_some() {
            let normalize = sqllogictest::default_normalizer;
            let (validate, types) = (sqllogictest::default_validator, sqllogictest::default_column_validator);
            runner.update_test_file(&file, " ", validate, normalize, types).await.unwrap();
        } else if let Err(failure) = runner.run_file_async(&file).await {
            failures.push(failure.display(false).to_string());
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[tokio::test]
async fn every_suite_holds() {
    run_all("slt").await;
}

#[tokio::test]
async fn every_attack_fails() {
    run_all("attacks").await;
}

#[test]
fn every_attack_says_what_is_wanted_and_why_it_fails() {
    for file in files_in("attacks") {
        let text = std::fs::read_to_string(&file).unwrap();
        let comment: String = text.lines().take_while(|line| line.starts_with('#')).collect();
        let says = ["# Wanted: ", "# Fails: "].iter().all(|part| comment.contains(part));
        assert!(says, "{} does not start with what is wanted and why it fails", file.display());
    }
}
