//! A table in cells: boxes of codes, each of which is anonymized by itself, so that a table can be larger than memory.
//!
//! # Guarantee
//! Every row belongs to exactly one cell. If each row is a person, its quasi cells alone decide to which, so equal rows are never
//! parted. A person with several rows goes to one cell with all of them: the cell of one row, which does not depend on their order.
//! The same plan gives the same classes wherever and in whatever order cells are anonymized. Codes, widths and shares are those
//! of the whole table, and no requirement depends on the sample from which the cuts were taken.
//! # Deviations
//! A class never reaches beyond its cell, so the loss is a little higher than that of the whole table in memory. Each cell
//! may leave out the share of its persons that the spec allows for all.

mod holders;
mod plan;

pub use holders::Holders;
pub use plan::CellPlan;

use std::collections::BTreeMap;

use kohort_model::{Loss, Note, Persons, Progress, Requirement, Role, Spec, Table};

use crate::encode::{Domain, Encoded};
use crate::partition::Unreachable;
use crate::recode::Recoding;
use crate::requirement::{Rules, Tally};
use crate::suppress::rows_that_can_stand;
use crate::{AnonymizeError, Anonymized, Classified, classify, loss};

/// The whole table, where only some of its rows are at hand.
#[derive(Clone, Copy, Debug)]
pub struct Whole<'a> {
    /// A table with the same columns, in which each text of the whole occurs, and a null where the whole has one.
    pub table: &'a Table,
    /// For each column, the number of rows of the whole that hold each text, by its id, and at the end the number of nulls. If
    /// persons have several rows, [`Holders::counts`] counts persons instead in sensitive columns.
    pub counts: &'a [Vec<u64>],
}

impl<'a> Whole<'a> {
    /// The quasi columns of the whole, encoded.
    ///
    /// # Errors
    /// If there is no quasi column, or one with values that have no place in its domain.
    pub fn encoded(&self) -> Result<Encoded<'a>, AnonymizeError> {
        Ok(Encoded::new(self.table, &self.quasi()?)?)
    }

    fn quasi(&self) -> Result<Vec<usize>, AnonymizeError> {
        let quasi = self.table.with_role(Role::Quasi);
        if quasi.is_empty() { Err(AnonymizeError::NoQuasiColumn) } else { Ok(quasi) }
    }
}

/// Whether the rows of a cell satisfy the requirement together, so that they can be anonymized by themselves.
///
/// # Errors
/// If a column is missing or unfit.
pub fn can_stand(
    cell: &Table,
    whole: &Whole<'_>,
    spec: &Spec,
    requirements: &[Requirement],
) -> Result<bool, AnonymizeError> {
    let encoded = Encoded::of_part(cell, *whole, &whole.quasi()?)?;
    let kept = match rows_that_can_stand(cell, &encoded, requirements, spec.max_suppressed, &[]) {
        Ok(kept) => kept,
        Err(error) if error.is_unreachable() => return Ok(false),
        Err(error) => return Err(error),
    };
    let rules = Rules::compile_within(cell, requirements, whole)?;
    let mut tally = Tally::new(&rules);
    kept.iter().for_each(|&row| tally.add(row));
    Ok(tally.stands())
}

/// What all cells lose together.
#[derive(Debug, Default)]
pub struct JoinedLoss {
    n_rows: f64,
    /// Sums over rows of the loss of each column, and of NCP.
    columns: BTreeMap<String, f64>,
    ncp: f64,
    widths: f64,
    /// The sum over persons of the k they need.
    needed: f64,
    persons: Persons,
}

impl JoinedLoss {
    /// Adds a cell of so many rows.
    pub fn add(&mut self, loss: &Loss, n_rows: u64, persons: Persons) {
        let n_rows = n_rows as f64;
        self.n_rows += n_rows;
        for (name, lm) in &loss.columns {
            *self.columns.entry(name.clone()).or_default() += lm * n_rows;
        }
        self.ncp += loss.ncp * n_rows;
        self.widths += loss.uncertainty_penalty;
        // DM sums the squares of class sizes, and k-deviation the same squares less the k of each member. So their
        // difference is the sum of these k.
        self.needed += loss.dm - persons.suppressed as f64 * persons.n_in as f64 - loss.k_deviation;
        self.persons.n_in += persons.n_in;
        self.persons.n_out += persons.n_out;
        self.persons.suppressed += persons.suppressed;
    }

    /// The loss of the release, given the number of its classes, the sum of their sizes in persons, and that of the squares of
    /// these.
    pub fn loss(&self, n_classes: u64, members: u64, squares: f64) -> Loss {
        let n_rows = self.n_rows.max(1.0);
        let n_columns = self.columns.len().max(1) as f64;
        Loss {
            lm: self.columns.values().sum::<f64>() / (n_rows * n_columns),
            ncp: self.ncp / n_rows,
            dm: squares + self.persons.suppressed as f64 * self.persons.n_in as f64,
            average_class: members as f64 / n_classes.max(1) as f64,
            uncertainty_penalty: self.widths,
            k_deviation: squares - self.needed,
            columns: self.columns.iter().map(|(name, sum)| (name.clone(), sum / n_rows)).collect(),
            // A cell does not know how values are spread in the whole table.
            rank: None,
            entropy: None,
        }
    }
}

/// The release of one cell, not yet verified.
#[derive(Debug)]
pub struct AnonymizedCell {
    /// The release, its loss within the cell, and its persons.
    pub anonymized: Anonymized,
    /// For each quasi column, the interval of codes that each label stands for, in the order of the labels. Rows of several
    /// cells are in the order of a release if they are in the order of these intervals.
    pub intervals: Vec<Vec<(u32, u32)>>,
}

/// Anonymizes one cell. The ids of its cells are those of the whole table.
///
/// # Errors
/// If the requirement can't be reached within the cell: [`AnonymizeError::is_unreachable`] tells so. The cell can then be
/// joined with another one.
pub fn anonymize_cell(
    cell: &Table,
    whole: &Whole<'_>,
    spec: &Spec,
    requirements: &[Requirement],
    progress: &dyn Progress,
) -> Result<AnonymizedCell, AnonymizeError> {
    let encoded = Encoded::of_part(cell, *whole, &whole.quasi()?)?;
    let classified = classify(cell, &encoded, spec, requirements, &[], progress)?;
    let Classified { rows, rules, classes, shown, persons, algorithm, mut notes } = classified;
    if spec.has_objective() {
        notes.push(Note::ObjectiveInCells);
    }
    let recoding = Recoding { table: cell, encoded: &encoded, rows: &rows, classes: &classes, shown: &shown };
    let labelled = |(column, domain): (usize, &Domain)| {
        let mut intervals: Vec<(u32, u32)> = (0..shown.len()).map(|class| shown.interval(class, column)).collect();
        intervals.sort_unstable();
        intervals.dedup();
        intervals.retain(|&(lo, hi)| lo < hi || Some(lo) != domain.null());
        intervals
    };
    let intervals = encoded.domains.iter().enumerate().map(labelled).collect();
    let (loss, release) = (loss::measure(&recoding, &rules, persons), recoding.release(spec.order));
    Ok(AnonymizedCell { anonymized: Anonymized { release, loss, persons, algorithm, notes }, intervals })
}

impl AnonymizeError {
    /// Whether more persons could help: the requirement can't be reached with those who are there.
    pub fn is_unreachable(&self) -> bool {
        matches!(
            self,
            AnonymizeError::TooFewPersons { .. }
                | AnonymizeError::OwnKTooLarge { .. }
                | AnonymizeError::TooFrequent { .. }
                | AnonymizeError::Unreachable(Unreachable)
        )
    }
}
