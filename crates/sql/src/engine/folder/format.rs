//! The format of the records (statements, DGHs, policies, users and grants) and of the hidden tables of materialized views in a
//! data folder.
//!
//! `kohort-store` has a number for the format of its file. This format has a number of its own, in a record. A folder without
//! the record has format 1. To change the format, add to [`STEPS`] the step from the format before, and add a folder of that
//! format to `tests/stored/folders`.
//!
//! # Guarantee
//! All steps that a folder needs run in one transaction, so a failure leaves the old format. A folder of a newer format is
//! refused before anything is written to it.

use std::path::Path;

use kohort_store::{Change, State, Store, record_of};

use crate::SqlError;

const KIND: &str = "format";
const NAME: &str = "records and hidden tables";

/// Brings a folder from one format to the next. A new folder takes all steps, too.
type Step = fn(&Change) -> Result<(), SqlError>;

/// The first will lead from format 1 to format 2.
const STEPS: &[Step] = &[];

/// Brings a folder to the newest format, and refuses a folder of a newer one.
pub(crate) fn upgrade(store: &Store) -> Result<(), SqlError> {
    upgrade_by(store, STEPS)
}

/// Checks that this kohort knows the format of a data folder or a backup, without opening it.
///
/// # Errors
/// The format is newer, the path is no data folder, or it can't be read.
pub fn check_format(folder: &Path) -> Result<(), SqlError> {
    let noted = record_of(folder, KIND, NAME)?.as_deref().map(read).transpose()?;
    is_known(noted.unwrap_or(1), STEPS)
}

fn is_known(found: u64, steps: &[Step]) -> Result<(), SqlError> {
    let known = newest(steps);
    if found > known { Err(SqlError::NewerFormat { found, known }) } else { Ok(()) }
}

/// The format that all steps lead to.
fn newest(steps: &[Step]) -> u64 {
    steps.len() as u64 + 1
}

fn upgrade_by(store: &Store, steps: &[Step]) -> Result<(), SqlError> {
    let known = newest(steps);
    let state = store.read()?;
    let noted = number(&state)?;
    drop(state);
    let found = noted.unwrap_or(1);
    is_known(found, steps)?;
    if noted == Some(known) {
        return Ok(());
    }
    let change = store.write()?;
    for step in &steps[found as usize - 1..] {
        step(&change)?;
    }
    change.put_record(KIND, NAME, &known.to_string())?;
    Ok(change.commit()?)
}

/// The number in the record of a folder.
fn number(state: &State) -> Result<Option<u64>, SqlError> {
    state.record(KIND, NAME)?.as_deref().map(read).transpose()
}

fn read(record: &str) -> Result<u64, SqlError> {
    match record.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(SqlError::Damaged { what: "the number of its format".to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HIDDEN: &str = "hidden";

    fn put(change: &Change, text: &str) -> Result<(), SqlError> {
        let before = change.record(HIDDEN, "steps")?.unwrap_or_default();
        Ok(change.put_record(HIDDEN, "steps", &(before + text))?)
    }

    fn steps_of(store: &Store) -> Option<String> {
        store.read().unwrap().record(HIDDEN, "steps").unwrap()
    }

    const FIRST: Step = |change| put(change, "first ");
    const SECOND: Step = |change| put(change, "second ");
    const FAILING: Step = |change| {
        put(change, "half ")?;
        Err(SqlError::NoDataFolder)
    };

    #[test]
    fn a_folder_takes_each_step_once() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        upgrade_by(&store, &[]).unwrap();
        assert_eq!(number(&store.read().unwrap()).unwrap(), Some(1));
        upgrade_by(&store, &[FIRST]).unwrap();
        upgrade_by(&store, &[FIRST]).unwrap();
        assert_eq!(steps_of(&store).as_deref(), Some("first "));
        upgrade_by(&store, &[FIRST, SECOND]).unwrap();
        assert_eq!(steps_of(&store).as_deref(), Some("first second "));
        assert_eq!(number(&store.read().unwrap()).unwrap(), Some(3));
    }

    #[test]
    fn a_folder_without_a_number_is_of_the_first_format() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        upgrade_by(&store, &[FIRST]).unwrap();
        assert_eq!(steps_of(&store).as_deref(), Some("first "));
    }

    #[test]
    fn a_step_that_fails_leaves_the_older_format_whole() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        upgrade_by(&store, &[FIRST]).unwrap();
        assert!(upgrade_by(&store, &[FIRST, SECOND, FAILING]).is_err());
        assert_eq!(steps_of(&store).as_deref(), Some("first "));
        assert_eq!(number(&store.read().unwrap()).unwrap(), Some(2));
    }

    #[test]
    fn a_newer_folder_is_refused_by_its_number_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        upgrade_by(&store, &[FIRST, SECOND]).unwrap();
        let refused = upgrade_by(&store, &[FIRST]);
        assert!(matches!(refused, Err(SqlError::NewerFormat { found: 3, known: 2 })), "{refused:?}");
        assert_eq!(number(&store.read().unwrap()).unwrap(), Some(3));
    }
}
