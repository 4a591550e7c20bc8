//! What a release with a register loses.
//!
//! Definitions are those of [`crate::loss`], over private rows and on the private table's own ranges, so that a release
//! with a register and one without are measured on one scale; what is wider than the range loses all. DM counts the
//! private persons of a class. The average class and the k-deviation count everybody of a class, because so many look
//! the same.

use kohort_model::{Loss, Persons, Table};

use super::JoinedClass;
use super::crowd::Crowd;
use crate::encode::Domain;

/// Measures classes; `table` is the private one.
pub(super) fn measure(crowd: &Crowd<'_>, table: &Table, classes: &[JoinedClass], persons: Persons) -> Loss {
    let domains = crowd.domains();
    let n_private_rows = |class: &JoinedClass| class.microdata.len() as f64;
    let released: f64 = classes.iter().map(n_private_rows).sum();
    let n_rows = table.n_rows as f64;
    let suppressed = n_rows - released;
    let in_column = |column: usize, measure: fn(&Domain, u32, u32) -> f64| {
        let of_class = |class: &JoinedClass| crowd.lost(column, measure, class.cells[column]) * n_private_rows(class);
        classes.iter().map(of_class).sum::<f64>() + suppressed
    };
    let n_cells = (n_rows * domains.len() as f64).max(1.0);
    let widths: Vec<f64> = (0..domains.len()).map(|column| in_column(column, Domain::width)).collect();
    let shares: f64 = (0..domains.len()).map(|column| in_column(column, Domain::leaf_share)).sum();
    let names = crowd.column_names();
    Loss {
        lm: widths.iter().sum::<f64>() / n_cells,
        ncp: shares / n_cells,
        dm: classes.iter().map(|class| (class.n_private as f64).powi(2)).sum::<f64>()
            + persons.suppressed as f64 * persons.n_in as f64,
        average_class: classes.iter().map(|class| class.n_persons as f64).sum::<f64>() / classes.len().max(1) as f64,
        uncertainty_penalty: widths.iter().sum(),
        k_deviation: classes.iter().map(|class| crowd.deviation(class)).sum(),
        columns: names.zip(&widths).map(|(name, width)| (name.to_owned(), width / n_rows.max(1.0))).collect(),
    }
}
