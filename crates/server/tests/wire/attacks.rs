//! The attacks on A-views over the wire, by analysts to whom everything is granted that can be granted.
//!
//! The files are those of `kohort-sql`. [`DIFFERENT`] lists the statements whose answers differ over the wire, with the
//! reasons. A listed statement that does not differ fails the test.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kohort_sql::parser::{Statement, parse};
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType, Runner};

use crate::client::{Connected, connect};
use crate::fixture::{OWNER, Served, as_owner, serve, serve_folder};

/// Files, parts of statements that have other answers over the wire, and the reasons.
const DIFFERENT: [(&str, &str, &str); 17] = [
    ("before_and_after_insert", "DELETE FROM people", "the number of changed rows is sent as a command tag"),
    ("before_and_after_insert", "UPDATE people", "the number of changed rows is sent as a command tag"),
    ("errors", "FROM costs", "a second view of the same persons is not granted"),
    ("information_schema", "FROM information_schema.tables", "PostgreSQL's own catalog is listed too"),
    ("information_schema", "FROM information_schema.views", "PostgreSQL's own catalog is listed too"),
    ("information_schema", "SHOW TABLES", "PostgreSQL's own catalog is listed too"),
    ("per_purpose", "JOIN apart", "the view is not granted to a login with several purposes"),
    ("per_purpose", "EXECUTE both", "the view is not granted to a login with several purposes"),
    ("prepared_statements", "SHOW COMPLIANCE LOG", "the log also names logins and their grants"),
    ("side_effects", "BEGIN", "accepted without effect, because drivers send it"),
    ("time_zone_and_collation", "SET TIME ZONE", "refused as a setting of PostgreSQL"),
    ("time_zone_and_collation", "arrived_on WHERE", "a second view of the same persons is not granted"),
    ("time_zone_and_collation", "FROM arrived_on", "a second view of the same persons is not granted"),
    ("two_recipients", "RECIPIENT ''", "refused as a pair that is not granted"),
    ("two_views", "JOIN again", "a second view of the same persons is not granted"),
    ("view_on_view", "FROM north_seen", "a second view of the same persons is not granted"),
    ("withdrawn_view", "EXECUTE kept_again", "dropping a view also drops its grants"),
];

/// One analyst for each connection of a file.
const ANALYSTS: [&str; 4] = ["ann", "bob", "cem", "dan"];

struct Wired {
    connected: Connected,
    served: std::sync::Arc<Served>,
    is_owner: bool,
}

#[derive(Debug)]
struct Failed(String);

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failed {}

#[async_trait::async_trait]
impl AsyncDB for Wired {
    type Error = Failed;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Failed> {
        let answer = self.connected.rows(sql).await.map_err(|error| match error.as_db_error() {
            Some(error) => Failed(match error.hint() {
                Some(hint) => format!("{}\nhint: {hint}", error.message()),
                None => error.message().to_owned(),
            }),
            None => Failed(error.to_string()),
        });
        if self.is_owner {
            grant_new(&self.served, sql).await;
        }
        let rows = answer?;
        let n_columns = rows.first().map_or(0, Vec::len);
        Ok(DBOutput::Rows { types: vec![DefaultColumnType::Any; n_columns], rows })
    }

    async fn shutdown(&mut self) {}
}

/// Grants the views that a statement created to every analyst, as far as that is allowed.
async fn grant_new(served: &Served, sql: &str) {
    let mut owner = served.engine.session(kohort_sql::Role::Owner);
    for made in parse(sql).unwrap_or_default() {
        let Statement::CreateView(view) = made.statement else { continue };
        for analyst in ANALYSTS {
            for parsed in parse(&format!("GRANT SELECT ON \"{}\" TO {analyst}", view.name)).unwrap() {
                // Views that reveal more together with another one are not granted.
                let _ = owner.run(parsed).await;
            }
        }
    }
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sql/tests/attacks");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Runs one file, and returns the statements with other answers and the differences.
async fn run_file(file: &Path) -> Vec<(String, String)> {
    let folder = tempfile::tempdir().unwrap();
    let is_stored = file.file_stem().is_some_and(|name| name.to_string_lossy().starts_with("stored_"));
    let served = std::sync::Arc::new(match is_stored {
        true => serve_folder(folder.path(), |_| {}).await,
        false => serve("").await,
    });
    let mut setup = String::new();
    for analyst in ANALYSTS {
        if analyst != "ann" {
            setup += &format!("CREATE USER {analyst} PASSWORD 'correct horse';");
        }
        for pair in [
            "care RECIPIENT nurse",
            "study RECIPIENT lab",
            "marketing RECIPIENT lab",
            "care RECIPIENT lab",
            "study RECIPIENT nurse",
        ] {
            setup += &format!("GRANT PURPOSE {pair} TO {analyst};");
        }
    }
    as_owner(&served.engine, &setup).await;
    let mut users = std::iter::once(OWNER).chain(ANALYSTS);
    let mut runner = Runner::new(|| {
        let (user, served) = (users.next().expect("a file has few connections"), std::sync::Arc::clone(&served));
        async move { Ok(Wired { connected: connect(&served, user).await, served, is_owner: user == OWNER }) }
    });
    let mut differences = Vec::new();
    for record in sqllogictest::parse_file::<DefaultColumnType>(file).unwrap() {
        let sql = match &record {
            sqllogictest::Record::Statement { sql, .. } | sqllogictest::Record::Query { sql, .. } => sql.clone(),
            _ => String::new(),
        };
        if let Err(failure) = runner.run_async(record).await {
            differences.push((sql, failure.display(false).to_string()));
        }
    }
    differences
}

#[tokio::test(flavor = "multi_thread")]
async fn every_attack_fails_over_the_wire() {
    let mut failures = Vec::new();
    let mut seen: BTreeSet<usize> = BTreeSet::new();
    for file in files() {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        for (sql, difference) in run_file(&file).await {
            let known = DIFFERENT.iter().position(|(of, part, _)| *of == name && sql.contains(part));
            match known {
                Some(known) => drop(seen.insert(known)),
                None => failures.push(format!("{name}: {sql}\n{}", difference.chars().take(700).collect::<String>())),
            }
        }
    }
    assert!(failures.is_empty(), "{} differences\n{}", failures.len(), failures.join("\n\n"));
    assert_eq!(seen.len(), DIFFERENT.len(), "some statements of DIFFERENT now have the same answer");
}
