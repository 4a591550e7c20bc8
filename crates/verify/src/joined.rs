//! Releases beside a public register: [`verify_joined`], and the same for files.
//!
//! # Guarantee
//! - The join matches the persons of the private table with those of the register, see `join`.
//! - Every released row is a truthful recoding of a row of the join, and no row of the join is released twice.
//!   Everybody of the private table is released once or counted as left out, and no more persons are left out than the
//!   limit allows.
//! - A class consists of rows with the same quasi cells and the same sensitive group. It holds somebody of the private
//!   table, and at least k persons of the join count in it. A register person counts. A private person counts unless
//!   the register gives values for the person that the cells of the class don't cover.
//! - Without a key, private persons whom no register row matches may be register persons under other values. Then only
//!   the larger of these two groups counts, unless the publisher vouches that they are different persons.
//! - The sensitive table lists exactly the values of the private persons of each group, in an order that says nothing.
//!   Every requirement holds for the private persons of each group.
//!
//! If there are earlier releases, the verifier also counts what readers of all of them learn, see `together`.
//!
//! If only private rows are released, all persons whose values the cells of a class cover count in it, even if they are
//! also covered by other classes. These persons are the crowd of the class.
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

use crate::count::cells::CellIds;
use crate::count::grouping::Classes;
use crate::reading::coverage::Coverage;
use crate::structure::check_table;
use crate::{Suppressed, SuppressionLimit, Verified, Violations};

pub use against::verify_joined_against;
pub use alone::verify_joined_alone;
pub use written::verify_joined_written;

/// What a release beside a register must satisfy.
#[derive(Clone, Copy, Debug)]
pub struct AskedOfJoin<'a> {
    /// The requirements. Classes must satisfy k and persons' own k; sensitive groups must satisfy all.
    pub requirements: &'a [Requirement],
    /// The least and the largest share of private rows in a class.
    pub delta_presence: Option<(f64, f64)>,
    /// Whether register rows are released, too.
    pub rows: RegisterRows,
    /// How private persons and register persons are told apart.
    pub told_apart: ToldApart,
    /// Earlier releases that readers may have, too.
    pub previous: &'a [PreviousRelease],
    /// How many private persons may be left out.
    pub limit: SuppressionLimit,
}

/// How private persons and register persons are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToldApart {
    /// By their key: persons with different keys are different persons.
    ByKey,
    /// By their values. These say nothing about a private person whom no register row equals.
    ByValues(Unmatched),
}

/// The numbers of persons to whom some rows can belong.
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
    /// The least number of different persons. Without a key, each unmatched private person may be an unmatched register
    /// person under other values, so only the larger of the two numbers is certain.
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
/// Everything that is wrong with the release.
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
    // The checks below look cells up by position, so no cell may be missing.
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
    let found = JoinedRows::of_release(&release, original).count(original, joined, asked);
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

/// The private persons who are not released. Each has one row.
fn suppressed(rows: &[u32], n_microdata: usize) -> Suppressed {
    let released = rows.iter().filter(|&&row| (row as usize) < n_microdata).count();
    let left_out = (n_microdata - released) as u64;
    Suppressed { rows: left_out, persons: left_out }
}

/// The cells of a release in memory or of files, and the rows of the join that they come from.
struct JoinedRows<'a> {
    /// The row of the join that each released row comes from.
    rows: &'a [u32],
    /// For each quasi column, its labels and the id of the label in each row.
    quasi: Vec<(&'a Texts, &'a [u32])>,
    /// The sensitive group of each row; all the same if there are no groups.
    groups: Vec<u32>,
    values: Option<SensitiveRows<'a>>,
}

/// The rows of the sensitive table.
struct SensitiveRows<'a> {
    /// The private row that each row comes from.
    rows: &'a [u32],
    groups: Vec<u32>,
    /// Pairs of a column with the released cells and the private column.
    copied: Vec<(&'a kohort_model::Column, &'a kohort_model::Column)>,
    /// Where the released cells are.
    cells: CellsOf,
}

/// Where the released cells of a sensitive table are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CellsOf {
    /// In the private rows.
    PrivateRows,
    /// In the rows of the table itself.
    ShownRows,
}

impl<'a> JoinedRows<'a> {
    /// The cells of a release whose tables and columns were checked.
    fn of_release(release: &'a Release, original: &'a Table) -> Self {
        let table = &release.tables[0];
        let quasi = table.columns.iter().filter_map(|column| match &column.cells {
            Cells::Recoded { labels, ids } => Some((labels, ids.as_slice())),
            Cells::Copied | Cells::Surrogate { .. } => None,
        });
        let values = release.tables.get(1).map(|values| {
            let sources = values.columns.iter().filter(|column| column.name != SENSITIVE_GROUP);
            let copied = sources.map(|column| (&original.columns[column.source], &original.columns[column.source]));
            SensitiveRows {
                rows: &values.rows,
                groups: groups_of(&values.columns, values.rows.len()),
                copied: copied.collect(),
                cells: CellsOf::PrivateRows,
            }
        });
        JoinedRows {
            rows: &table.rows,
            quasi: quasi.collect(),
            groups: groups_of(&table.columns, table.rows.len()),
            values,
        }
    }
}

/// Classes: rows with the same quasi cells and the same sensitive group.
fn classes_of<'a>(quasi: impl Iterator<Item = CellIds<'a>>, groups: &'a [u32]) -> Classes {
    let most = groups.iter().copied().max().unwrap_or(0);
    let cells: Vec<CellIds<'_>> = quasi.chain([CellIds::by_id(groups, most as usize + 1)]).collect();
    Classes::group(&cells.iter().collect::<Vec<_>>(), groups.len())
}

/// The sensitive group of each row of a released table; all the same if the table has no such column.
fn groups_of(columns: &[kohort_model::ReleasedColumn], n_rows: usize) -> Vec<u32> {
    let groups = columns.iter().find_map(|column| match &column.cells {
        Cells::Surrogate { ids } if column.name == SENSITIVE_GROUP => Some(ids.clone()),
        _ => None,
    });
    groups.unwrap_or_else(|| vec![1; n_rows])
}
