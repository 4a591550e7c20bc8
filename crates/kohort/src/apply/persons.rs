//! Refuses new persons who are in the earlier release, which only its publisher can tell.
//!
//! A reader who knows that somebody is in both releases keeps the values that both of the person's classes have, and these may be
//! fewer than the requirement allows.

use std::collections::BTreeSet;
use std::path::Path;

use kohort_io::{CheckOptions, RowNumbers, read_for_check};
use kohort_model::{NULL, Progress, Table};

use super::earlier::Earlier;
use crate::error::{Error, Report};

/// Compares the persons of a new table with those of the private table that the earlier release was made from.
pub(super) fn refuse_persons_in_both(
    new: &Table,
    (file, person): (&Path, &str),
    earlier: &Earlier,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let known = read_for_check(file, &CheckOptions::default(), progress)?;
    let Some(column) = known.column(person) else {
        let message = format!("{}: there is no column '{person}', so persons can't be compared", file.display());
        return Err(Error::input(message, "name persons in the same column of both tables"));
    };
    let persons: BTreeSet<&str> = column.ids.iter().filter(|&&id| id != NULL).map(|&id| column.texts.get(id)).collect();
    let (entry, manifest) = (earlier.entry(), &earlier.manifest);
    if known.n_rows as u64 != entry.rows_in || persons.len() as u64 != manifest.persons.n_in {
        let message = format!(
            "{}: has {} rows and {} persons, but the earlier release was made from {} rows and {} persons",
            file.display(),
            known.n_rows,
            persons.len(),
            entry.rows_in,
            manifest.persons.n_in
        );
        return Err(Error::input(message, "name the table that the earlier release was made from"));
    }
    let Some(column) = new.person_column() else { return Ok(()) };
    let is_known: Vec<bool> = column.texts.iter().map(|text| persons.contains(text)).collect();
    let rows = RowNumbers::with_ids(&column.ids, |id| id != NULL && is_known[id as usize]);
    if rows.total == 0 {
        return Ok(());
    }
    let message = format!("persons of the earlier release are in the new table, too, in {rows}");
    let hint =
        "take these rows out: a reader of both releases learns which values the two classes of a person have in common";
    Err(Error::Input(vec![Report::new(message).hint(hint)]))
}
