//! What a recoding loses, one definition each.
//!
//! | measure | definition |
//! | --- | --- |
//! | LM `[Iye02]` | mean over all quasi cells of (leaves of the cell - 1) / (all leaves - 1), or width over the column's range |
//! | NCP `[XWP+06]` | the same with leaves of the cell / all leaves, 0 for a value |
//! | DM `[BA05]` | sum of squared class sizes, plus the table's size for each suppressed person |
//! | average class | persons over classes |
//! | uncertainty penalty `[PTL+08]` | sum over rows and columns of the cell's width over the column's range, categories in their order |
//! | rank | mean over all quasi cells of the share of all rows whose value lies in the cell, 0 for a value |
//! | entropy `[GT09]` | mean over columns of the sum of log(rows that the cell may stand for / rows with the value), over the most it can be |
//! | k-deviation `[EPS+12]` | sum over persons of the size of their class less the k they need |
//!
//! Suppressed cells lose 1 each. Sizes are persons; LM, NCP and the uncertainty penalty count rows.

mod labels;
mod spread;

use std::collections::BTreeMap;

pub use labels::NcpOfLabels;

use kohort_model::{Loss, Persons};
use rayon::prelude::*;

use crate::recode::Recoding;
use crate::requirement::Rules;

/// One thread adds up this many classes, in their order, so that rounding does not depend on the number of threads.
const CLASSES_AT_ONCE: usize = 64;

/// What some classes lose.
#[derive(Default)]
struct Part {
    /// The loss of each quasi column, multiplied by the number of rows.
    lm: Vec<f64>,
    ncp: f64,
    n_rows: u64,
    n_persons: u64,
    squares: f64,
    deviation: f64,
}

/// Measures a recoding.
pub fn measure(recoding: &Recoding<'_>, rules: &Rules, persons: Persons) -> Loss {
    let Recoding { table, encoded, shown, .. } = *recoding;
    let n_columns = encoded.domains.len();
    let all: Vec<usize> = (0..shown.len()).collect();
    let parts: Vec<Part> = all
        .par_chunks(CLASSES_AT_ONCE)
        .map_init(Vec::new, |members, some| {
            let mut part = Part { lm: vec![0.0; n_columns], ..Part::default() };
            for &class in some {
                members.clear();
                members.extend(recoding.members(class));
                let n_rows = members.len() as f64;
                for (column, domain) in encoded.domains.iter().enumerate() {
                    let (lo, hi) = shown.interval(class, column);
                    part.lm[column] += domain.lm(lo, hi) * n_rows;
                    part.ncp += domain.leaf_share(lo, hi) * n_rows;
                }
                part.n_rows += members.len() as u64;
                // A person with several rows counts, and needs k, once.
                members.sort_unstable_by_key(|&row| rules.person(row));
                members.dedup_by_key(|row| rules.person(*row));
                let n_persons = members.len() as u64;
                let needed: f64 = members.iter().map(|&row| f64::from(rules.k_of_row(row))).sum();
                part.n_persons += n_persons;
                part.squares += (n_persons as f64).powi(2);
                part.deviation += (n_persons as f64).powi(2) - needed;
            }
            part
        })
        .collect();

    let n_rows = table.n_rows as f64;
    let suppressed = n_rows - parts.iter().map(|part| part.n_rows).sum::<u64>() as f64;
    let sum = |of: fn(&Part) -> f64| parts.iter().map(of).sum::<f64>();
    let column = |column: usize| {
        let sum = parts.iter().map(|part| part.lm[column]).sum::<f64>() + suppressed;
        (table.columns[encoded.columns[column]].name.clone(), sum)
    };
    let persons = PersonLoss {
        dm: sum(|part| part.squares) + persons.suppressed as f64 * persons.n_in as f64,
        n_released: sum(|part| part.n_persons as f64),
        n_classes: shown.len() as f64,
        deviation: sum(|part| part.deviation),
    };
    let shares = sum(|part| part.ncp) + suppressed * n_columns as f64;
    let loss = TableLoss { n_rows, columns: (0..n_columns).map(column).collect(), shares, persons }.alone();
    let spread = spread::measure(recoding);
    Loss { rank: Some(spread.rank), entropy: Some(spread.entropy), ..loss }
}

/// What one table loses, as sums that can be added.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableLoss {
    pub(crate) n_rows: f64,
    /// For each quasi column, its name and what all its cells lose by LM.
    pub(crate) columns: Vec<(String, f64)>,
    /// What all cells lose by NCP.
    pub(crate) shares: f64,
    pub(crate) persons: PersonLoss,
}

/// What one table of persons loses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PersonLoss {
    pub(crate) dm: f64,
    pub(crate) n_released: f64,
    pub(crate) n_classes: f64,
    pub(crate) deviation: f64,
}

impl TableLoss {
    /// The loss of this table.
    pub(crate) fn alone(&self) -> Loss {
        let columns = self.columns.iter().map(|(name, sum)| (name.clone(), sum / self.n_rows.max(1.0))).collect();
        finish(&[self], &[self.persons], columns)
    }

    /// The loss of all tables, given with their names; `roots` are the positions of tables of persons. If two tables
    /// have a column of the same name, columns are named `table.column`.
    pub(crate) fn together(losses: &[TableLoss], names: &[&str], roots: &[usize]) -> Loss {
        let mut columns = BTreeMap::new();
        let is_shared = |column: &String| losses.iter().filter(|loss| loss.has(column)).count() > 1;
        for (loss, table) in losses.iter().zip(names) {
            for (column, sum) in &loss.columns {
                let name = if is_shared(column) { format!("{table}.{column}") } else { column.clone() };
                columns.insert(name, sum / loss.n_rows.max(1.0));
            }
        }
        let persons: Vec<PersonLoss> = roots.iter().map(|&root| losses[root].persons).collect();
        finish(&losses.iter().collect::<Vec<_>>(), &persons, columns)
    }

    fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|(name, _)| name == column)
    }
}

fn finish(losses: &[&TableLoss], persons: &[PersonLoss], columns: BTreeMap<String, f64>) -> Loss {
    let n_cells = losses.iter().map(|loss| loss.n_rows * loss.columns.len() as f64).sum::<f64>().max(1.0);
    // An empty sum is -0.
    let widths = losses.iter().flat_map(|loss| &loss.columns).map(|(_, sum)| sum).sum::<f64>() + 0.0;
    let of_persons = |of: fn(&PersonLoss) -> f64| persons.iter().map(of).sum::<f64>();
    Loss {
        lm: widths / n_cells,
        ncp: (losses.iter().map(|loss| loss.shares).sum::<f64>() + 0.0) / n_cells,
        dm: of_persons(|sum| sum.dm),
        average_class: of_persons(|sum| sum.n_released) / of_persons(|sum| sum.n_classes).max(1.0),
        uncertainty_penalty: widths,
        k_deviation: of_persons(|sum| sum.deviation),
        columns,
        rank: None,
        entropy: None,
    }
}
