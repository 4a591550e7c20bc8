//! The number of the file's format, and the steps that upgrade each format to the next.
//!
//! # Guarantee
//!
//! All steps that a file needs run in one transaction, so after a failure the file still has the old format. A file
//! with a newer format, or of another program, is refused before anything is written to it.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use crate::StoreError;

/// Marks an SQLite file as a store (`PRAGMA application_id`): "koho".
const APPLICATION: i64 = 0x6b6f_686f;

/// The SQL of each step. The first turns an empty file into format 1, the second would turn format 1 into format 2.
const STEPS: &[&str] = &[
    // `next_row` is the smallest number that no row of the table ever had.
    "CREATE TABLE tables (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, kind TEXT NOT NULL,
         next_row INTEGER NOT NULL) STRICT;
     CREATE TABLE columns (table_id INTEGER NOT NULL, position INTEGER NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL,
         nullable INTEGER NOT NULL, PRIMARY KEY (table_id, position)) STRICT, WITHOUT ROWID;
     CREATE TABLE indexes (id INTEGER PRIMARY KEY, table_id INTEGER NOT NULL, role TEXT NOT NULL,
         positions TEXT NOT NULL) STRICT;
     CREATE TABLE records (kind TEXT NOT NULL, name TEXT NOT NULL, text TEXT NOT NULL, PRIMARY KEY (kind, name))
         STRICT, WITHOUT ROWID;",
];

/// Checks that the file is empty or a store of a known format, without writing to it.
pub(crate) fn check(connection: &Connection, file: &Path) -> Result<Content, StoreError> {
    let n_steps_done = n_steps_done(connection, file, STEPS)?;
    Ok(if n_steps_done == 0 { Content::Nothing } else { Content::Store })
}

/// Checks that the file is a store and not empty.
pub(crate) fn is_store(connection: &Connection, file: &Path) -> Result<(), StoreError> {
    match check(connection, file)? {
        Content::Store => Ok(()),
        Content::Nothing => Err(StoreError::Foreign { file: file.to_owned() }),
    }
}

/// What is in a file that can be opened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    Nothing,
    Store,
}

/// Upgrades the file to the newest format.
pub(crate) fn upgrade(connection: &mut Connection, file: &Path) -> Result<(), StoreError> {
    upgrade_by(connection, file, STEPS)
}

/// How many of the steps have already been applied to the file.
fn n_steps_done(connection: &Connection, file: &Path, steps: &[&str]) -> Result<usize, StoreError> {
    let foreign = || StoreError::Foreign { file: file.to_owned() };
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let application = number("application_id")?;
    let found = number("user_version")?;
    let n_entries: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let is_new = application == 0 && found == 0 && n_entries == 0;
    if application != APPLICATION && !is_new {
        return Err(foreign());
    }
    if found > number_of(steps) {
        return Err(StoreError::NewerFormat { found, known: number_of(steps) });
    }
    usize::try_from(found).map_err(|_| foreign())
}

/// The format that all steps lead to.
fn number_of(steps: &[&str]) -> i64 {
    i64::try_from(steps.len()).expect("there are few steps")
}

fn upgrade_by(connection: &mut Connection, file: &Path, steps: &[&str]) -> Result<(), StoreError> {
    let done = n_steps_done(connection, file, steps)?;
    if done == steps.len() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for step in &steps[done..] {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", number_of(steps))?;
    Ok(transaction.commit()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upgraded(connection: &mut Connection, steps: &[&str]) -> Result<(), StoreError> {
        upgrade_by(connection, Path::new("kohort.db"), steps)
    }

    fn version(connection: &Connection) -> i64 {
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    }

    #[test]
    fn an_older_file_is_upgraded_by_the_steps_it_lacks_and_keeps_its_records() {
        let mut connection = Connection::open_in_memory().unwrap();
        upgraded(&mut connection, STEPS).unwrap();
        connection.execute("INSERT INTO records VALUES ('view', 'v', 'text')", []).unwrap();
        let newer =
            [STEPS, &["ALTER TABLE records ADD COLUMN author TEXT", "UPDATE records SET author = 'x'"]].concat();

        upgraded(&mut connection, &newer).unwrap();
        assert_eq!(version(&connection), 3);
        let record: (String, String) =
            connection.query_row("SELECT text, author FROM records", [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        assert_eq!(record, ("text".to_owned(), "x".to_owned()));
        upgraded(&mut connection, &newer).unwrap();
    }

    #[test]
    fn a_step_that_fails_leaves_the_older_format_whole() {
        let mut connection = Connection::open_in_memory().unwrap();
        upgraded(&mut connection, STEPS).unwrap();
        let broken =
            [STEPS, &["ALTER TABLE records ADD COLUMN author TEXT", "INSERT INTO records (kind) VALUES (NULL)"]]
                .concat();
        assert!(matches!(upgraded(&mut connection, &broken), Err(StoreError::Sqlite { .. })));
        assert_eq!(version(&connection), 1);
        assert!(connection.prepare("SELECT author FROM records").is_err());
    }

    #[test]
    fn a_newer_file_is_refused_by_its_number() {
        let mut connection = Connection::open_in_memory().unwrap();
        upgraded(&mut connection, STEPS).unwrap();
        connection.pragma_update(None, "user_version", 7).unwrap();
        assert!(matches!(upgraded(&mut connection, STEPS), Err(StoreError::NewerFormat { found: 7, known: 1 })));
    }

    #[test]
    fn a_file_of_another_program_is_refused_and_left_alone() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE theirs (x)").unwrap();
        assert!(matches!(upgraded(&mut connection, STEPS), Err(StoreError::Foreign { .. })));
        assert!(connection.prepare("SELECT * FROM records").is_err());
    }
}
