//! A server inside the test process, with an owner and an analyst.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::Duration;

use chrono::{TimeZone, Utc};
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{ColumnarValue, Volatility, create_udf};
use kohort_server::{Configuration, Server};
use kohort_sql::access::{Accounts, UNASKED};
use kohort_sql::parser::parse;
use kohort_sql::policy::ComplianceLog;
use kohort_sql::worker::Workers;
use kohort_sql::{Engine, Outcome, Role};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) const OWNER: &str = "olga";
pub(crate) const ANALYST: &str = "ann";
pub(crate) const PASSWORD: &str = "correct horse";

/// Eight persons with an illness each, and a view of them for two purposes.
pub(crate) const PEOPLE: &str = "
CREATE TABLE people (name TEXT, age INT, zip TEXT, ward TEXT, illness TEXT) AS VALUES
  ('Ann', 31, '1001', 'north', 'flu'), ('Bea', 34, '1002', 'north', 'ulcer'), ('Cem', 36, '1001', 'south', 'flu'),
  ('Dan', 52, '2001', 'south', 'cold'), ('Eva', 55, '2002', 'north', 'ulcer'), ('Fay', 58, '2002', 'south', 'cold'),
  ('Gus', 41, '1002', 'south', 'cold'), ('Hal', 47, '2001', 'north', 'flu');
CREATE TABLE choices (name TEXT, k INT, level INT, purpose TEXT, recipient TEXT) AS VALUES
  ('*', 2, 0, 'care', 'nurse'), ('*', 2, 1, 'study', 'lab');
CREATE DGH zip FROM MASK RIGHT;
CREATE DGH illness;
INSERT INTO DGH illness VALUES ('flu', 'infection'), ('cold', 'infection'), ('ulcer', 'stomach'),
  ('infection', 'any'), ('stomach', 'any');
CREATE ANONYMIZATION_VIEW seen ON SELECT name, age, zip, ward, illness FROM people
  WITH ANONYMIZATION_ID name ANONYMIZATION_QUASI_ID (age, zip DGH_NAME zip)
  ANONYMIZATION_SENSITIVE_ATTR (illness DGH_NAME illness) ANONYMIZATION_OTHER (ward)
  name REFERENCES choices (k, level);
GRANT SELECT ON seen TO ann;
GRANT PURPOSE care RECIPIENT nurse TO ann;
";

/// A server that stops when it is dropped.
pub(crate) struct Served {
    pub(crate) port: u16,
    pub(crate) server: Arc<Server>,
    pub(crate) engine: Engine,
    pub(crate) workers: Arc<Workers>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

/// An engine on the second of January 2026, with an owner and an analyst.
pub(crate) fn engine() -> Engine {
    let now = Utc.with_ymd_and_hms(2026, 1, 2, 3, 4, 5).single().unwrap();
    with_accounts(Engine::new(Arc::new(move || now)))
}

/// The engine, with an owner and an analyst.
pub(crate) fn with_accounts(engine: Engine) -> Engine {
    let accounts = Accounts::in_memory().unwrap();
    accounts.create_user(OWNER, Role::Owner, PASSWORD, UNASKED).unwrap();
    accounts.create_user(ANALYST, Role::Analyst, PASSWORD, UNASKED).unwrap();
    engine.keep_accounts(accounts);
    engine
}

/// Runs statements as the owner, without the wire.
pub(crate) async fn as_owner(engine: &Engine, sql: &str) {
    let mut owner = engine.session(Role::Owner);
    for parsed in parse(sql).unwrap() {
        if let Outcome::Rows(stream) = owner.run(parsed).await.unwrap_or_else(|error| panic!("{error}\n{sql}")) {
            futures::TryStreamExt::try_for_each(stream, |_| async { Ok(()) }).await.unwrap();
        }
    }
}

/// Serves the tables and views that these statements create.
pub(crate) async fn serve(sql: &str) -> Served {
    serve_as(sql, |_| {}).await
}

/// Serves the tables and views that these statements create, with another configuration.
pub(crate) async fn serve_as(sql: &str, configure: impl FnOnce(&mut Configuration)) -> Served {
    let engine = engine();
    as_owner(&engine, sql).await;
    let mut configuration = Configuration::default();
    configure(&mut configuration);
    serve_engine(engine, configuration).await
}

/// Serves an engine.
pub(crate) async fn serve_engine(engine: Engine, configuration: Configuration) -> Served {
    let tls = configuration.check().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let workers = Workers::start(PathBuf::from(env!("CARGO_BIN_EXE_kohort-serve")), 1).unwrap();
    let server = Server::new(engine.clone(), configuration, tls, Arc::clone(&workers)).unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = Arc::clone(&server);
    let task = tokio::spawn(async move { serving.serve(listener, async { drop(stopped.await) }).await });
    Served { port, server, engine, workers, stop: Some(stop), task }
}

/// Serves a data folder, whose users are in memory.
pub(crate) async fn serve_folder(folder: &Path, configure: impl FnOnce(&mut Configuration)) -> Served {
    let engine = Engine::open(folder, Arc::new(Utc::now), ComplianceLog::new()).await.unwrap();
    let mut configuration = Configuration::default();
    configure(&mut configuration);
    serve_engine(with_accounts(engine), configuration).await
}

/// Waits until a condition holds, and fails the test after a minute.
pub(crate) async fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let looks = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(60), looks).await;
    assert!(waited.is_ok(), "waited a minute in vain until {what}");
}

/// An SQL function that computes until it is released. Nothing can stop it before.
pub(crate) struct Held {
    state: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Default)]
struct State {
    n_held: usize,
    is_let_go: bool,
}

impl Held {
    /// Adds the function `held(x)` for owners who connect from now on.
    pub(crate) fn register(engine: &Engine) -> Held {
        let state: Arc<(Mutex<State>, Condvar)> = Arc::default();
        let held = Arc::clone(&state);
        let function = move |arguments: &[ColumnarValue]| {
            let (state, changed) = held.as_ref();
            let mut state = state.lock().unwrap();
            state.n_held += 1;
            drop(changed.wait_while(state, |state| !state.is_let_go).unwrap());
            Ok(arguments[0].clone())
        };
        let of = DataType::Int64;
        let function = create_udf("held", vec![of.clone()], of, Volatility::Volatile, Arc::new(function));
        engine.owner_context().register_udf(function);
        Held { state }
    }

    /// The number of threads that compute the function now.
    pub(crate) fn n_held(&self) -> usize {
        self.state.0.lock().unwrap().n_held
    }

    pub(crate) fn let_go(&self) {
        self.state.0.lock().unwrap().is_let_go = true;
        self.state.1.notify_all();
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.let_go();
    }
}

impl Served {
    /// Stops the server, and waits until it has stopped.
    pub(crate) async fn stop(mut self) {
        drop(self.stop.take());
        self.task.await.unwrap();
    }

    pub(crate) fn url(&self, user: &str) -> String {
        format!("host=127.0.0.1 port={} user={user} dbname=kohort", self.port)
    }
}

/// The folder of programs that tests need.
pub(crate) fn clients() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("clients")
}

/// Runs a program to its end, on a thread that the server does not need.
pub(crate) async fn run(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

/// A program or file that the tests need.
pub(crate) fn needed(path: Option<PathBuf>, what: &str) -> PathBuf {
    path.unwrap_or_else(|| panic!("{what} is missing: `cargo xtask test` installs it"))
}

/// A program on the path.
pub(crate) fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// A Python with drivers and pandas. A folder of an earlier run may lack some, or contain another version of SQLAlchemy.
pub(crate) fn python() -> &'static Path {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let folder = clients();
        let python = folder.join("bin/python");
        let is_there = |python: &Path| {
            let mut command = Command::new(python);
            command
                .args([
                    "-c",
                    "import asyncpg, pandas, psycopg, sqlalchemy; assert sqlalchemy.__version__.startswith('2.1.')",
                ])
                .output()
                .is_ok_and(|output| output.status.success())
        };
        if !is_there(&python) {
            let step = |program: &Path, arguments: &[&str]| {
                let output = Command::new(program).args(arguments).output().unwrap();
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            };
            let system = needed(on_path("python3"), "python3");
            step(&system, &["-m", "venv", folder.to_str().unwrap()]);
            let packages = ["psycopg[binary]==3.2.*", "SQLAlchemy==2.1.*", "asyncpg==0.32.*", "pandas==3.1.*"];
            step(&python, &[["-m", "pip", "install", "--quiet"].as_slice(), &packages].concat());
        }
        python
    })
}

/// Runs psql as this user, and returns its output.
pub(crate) async fn psql(served: &Served, user: &str, options: &[&str]) -> Output {
    psql_with(&served.url(user), PASSWORD, options).await
}

/// Runs psql with a connection string.
pub(crate) async fn psql_with(url: &str, password: &str, options: &[&str]) -> Output {
    let mut command = Command::new(needed(on_path("psql"), "psql"));
    command.args(["--no-psqlrc", "--no-align", "--dbname", url]).args(options);
    command.env("PGPASSWORD", password).env("PSQL_PAGER", "").env("LC_ALL", "C");
    run(command).await
}

pub(crate) fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

pub(crate) fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}
