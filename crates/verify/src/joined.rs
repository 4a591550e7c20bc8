//! Releases beside a public register: [`verify_joined`], and the same of files.
//!
//! # Guarantee
//! The join of private table and register is one of persons, see `join`. Every released row is a truthful recoding of a
//! row of the join of private table and register, each of these is released at most once, and everybody of the private
//! table once, or is counted as left out, of whom there are no more than is asked. A class is rows with the
//! same quasi cells and sensitive group. It holds somebody of the private table, and at least k persons of the join
//! count in it: register persons, and private ones unless the register says something of them that the cells don't hold.
//! Without a key private persons whom no register row matches may be register persons under other values, so of the two
//! only the more numerous count, unless the publisher vouches for them.
//! The sensitive table lists the values of exactly the private persons of each group, in an order that says nothing, and
//! every requirement holds for the private persons of each group.
//!
//! Beside earlier releases also what readers of all of them learn is counted, see `together`.
//!
//! Where private rows alone are released, as many persons count as the cells of a class hold, whoever is in other
//! classes too.
//!
//! # Paper   `[SMP10]` definitions 5 and 6, properties 1 and 2 of section 3.2

mod against;
mod alone;
mod count;
mod crowd;
mod faces;
mod join;
mod presence;
mod shape;
#[cfg(test)]
mod tests;
mod together;
mod written;

use kohort_model::register::SENSITIVE_GROUP;
use kohort_model::spec::{RegisterRows, Unmatched};
use kohort_model::{Cells, InRegister, JoinedRegister, PreviousRelease, Release, Requirement, Table, Texts};
use rayon::prelude::*;

use crate::reading::coverage::Coverage;
use crate::structure::check_table;
use crate::{Suppressed, SuppressionLimit, Verified, Violations};

pub use against::verify_joined_against;
pub use alone::verify_joined_alone;
pub use written::verify_joined_written;

/// What is asked of a release beside a register.
#[derive(Clone, Copy, Debug)]
pub struct AskedOfJoin<'a> {
    /// Of classes: k and persons' own k. Of sensitive groups: all.
    pub requirements: &'a [Requirement],
    /// The least and the largest share of private rows in a class.
    pub delta_presence: Option<(f64, f64)>,
    /// Whose rows are released.
    pub rows: RegisterRows,
    /// How private persons and register persons are told apart.
    pub told_apart: ToldApart,
    /// Earlier releases that may be read beside it.
    pub previous: &'a [PreviousRelease],
    /// How many private persons may be left out.
    pub limit: SuppressionLimit,
}

/// How private persons and register persons are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToldApart {
    /// By their key: whoever has another key is another person.
    ByKey,
    /// By their values, which say nothing of a private person whom no register row equals.
    ByValues(Unmatched),
}

/// Persons that rows can be of.
#[derive(Clone, Copy, Debug, Default)]
struct Heads {
    /// Private persons who are in the register.
    matched: u64,
    /// Private persons whom no register row matches.
    unmatched: u64,
    /// Register persons whom no private row matches.
    register: u64,
}

impl Heads {
    /// The fewest persons they can be. Without a key each unmatched private person may be an unmatched register person
    /// under other values, so only the more numerous of the two are certain to be different persons.
    fn count(self, told_apart: ToldApart) -> u64 {
        let Heads { matched, unmatched, register } = self;
        match told_apart {
            ToldApart::ByKey | ToldApart::ByValues(Unmatched::Count) => matched + unmatched + register,
            ToldApart::ByValues(Unmatched::Doubt) => matched + unmatched.max(register),
        }
    }

    /// Adds the person of a joined row.
    fn add(&mut self, joined: &JoinedRegister, row: u32) {
        match joined.persons.get(row as usize) {
            None => self.register += 1,
            Some(InRegister::Absent) => self.unmatched += 1,
            Some(InRegister::Same(_) | InRegister::Differs(_)) => self.matched += 1,
        }
    }
}

impl std::ops::AddAssign for Heads {
    fn add_assign(&mut self, more: Heads) {
        self.matched += more.matched;
        self.unmatched += more.unmatched;
        self.register += more.register;
    }
}

/// Verifies a release of one table beside a register.
///
/// # Errors
/// Everything that is wrong with it.
pub fn verify_joined(
    release: Release,
    original: &Table,
    joined: &JoinedRegister,
    asked: AskedOfJoin<'_>,
) -> Result<Verified<Release>, Violations> {
    let mut violations = check_table(original);
    violations.extend(check_table(&joined.rows));
    violations.extend(join::check_join(original, joined, asked.told_apart));
    if violations.is_empty() {
        violations.extend(shape::check_release(&release, original, joined, asked.rows));
    }
    // Beyond this point cells are looked up, so everything must point somewhere.
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    let table = &release.tables[0];
    let covered = table.columns.par_iter().filter_map(|column| match &column.cells {
        Cells::Recoded { labels, ids } => {
            Coverage::new(&joined.rows.columns[column.source], labels).violation(ids, &table.rows)
        }
        Cells::Copied | Cells::Surrogate { .. } => None,
    });
    violations.extend(covered.collect::<Vec<_>>());
    let suppressed = suppressed(&table.rows, joined.n_microdata);
    violations.extend(asked.limit.exceeded(suppressed.persons, joined.n_microdata as u64));
    let found = Shown::of_release(&release, original).count(original, joined, asked);
    match found {
        Err(Violations(more)) => violations.extend(more),
        Ok(mut findings) if violations.is_empty() => {
            findings.suppressed = Some(suppressed);
            return Ok(Verified::attest(release, findings));
        }
        Ok(_) => {}
    }
    Err(Violations(violations))
}

/// Private persons that are not released; each has one row.
fn suppressed(rows: &[u32], n_microdata: usize) -> Suppressed {
    let released = rows.iter().filter(|&&row| (row as usize) < n_microdata).count();
    let left_out = (n_microdata - released) as u64;
    Suppressed { rows: left_out, persons: left_out }
}

/// The cells of a release, wherever they are kept, and where its rows come from.
struct Shown<'a> {
    /// Joined rows.
    rows: &'a [u32],
    /// Per quasi column its labels and, per row, the id of one.
    quasi: Vec<(&'a Texts, &'a [u32])>,
    /// Per row its sensitive group; where there are none all are one.
    groups: Vec<u32>,
    values: Option<Values<'a>>,
}

/// The sensitive table.
struct Values<'a> {
    /// Private rows.
    rows: &'a [u32],
    groups: Vec<u32>,
    /// Shown and private columns.
    copied: Vec<(&'a kohort_model::Column, &'a kohort_model::Column)>,
    /// Where the cells of the shown columns are.
    cells: CellsOf,
}

/// Where the cells of a shown column are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CellsOf {
    /// In the private rows.
    PrivateRows,
    /// One per shown row.
    ShownRows,
}

impl<'a> Shown<'a> {
    /// Of a release whose shape was checked.
    fn of_release(release: &'a Release, original: &'a Table) -> Self {
        let table = &release.tables[0];
        let quasi = table.columns.iter().filter_map(|column| match &column.cells {
            Cells::Recoded { labels, ids } => Some((labels, ids.as_slice())),
            Cells::Copied | Cells::Surrogate { .. } => None,
        });
        let values = release.tables.get(1).map(|values| {
            let sources = values.columns.iter().filter(|column| column.name != SENSITIVE_GROUP);
            let copied = sources.map(|column| (&original.columns[column.source], &original.columns[column.source]));
            Values {
                rows: &values.rows,
                groups: groups_of(&values.columns, values.rows.len()),
                copied: copied.collect(),
                cells: CellsOf::PrivateRows,
            }
        });
        Shown { rows: &table.rows, quasi: quasi.collect(), groups: groups_of(&table.columns, table.rows.len()), values }
    }
}

/// The groups of a released table's rows; one for all where it has no such column.
fn groups_of(columns: &[kohort_model::ReleasedColumn], n_rows: usize) -> Vec<u32> {
    let groups = columns.iter().find_map(|column| match &column.cells {
        Cells::Surrogate { ids } if column.name == SENSITIVE_GROUP => Some(ids.clone()),
        _ => None,
    });
    groups.unwrap_or_else(|| vec![1; n_rows])
}
