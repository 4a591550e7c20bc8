//! What a release with a register loses.
//!
//! Definitions are those of [`crate::loss`], over private rows and relative to the private table's own ranges, so that
//! releases with and without a register are measured on one scale. A cell that is wider than the range loses
//! everything. DM counts the private persons of a class. The average class and the k-deviation count everybody of a
//! class, because all of them look the same.

use kohort_model::{Loss, Persons, Table};

use super::JoinedClass;
use super::crowd::Crowd;
use crate::encode::Domain;
use crate::loss::{PersonLoss, TableLoss};

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
    let shares = (0..domains.len()).map(|column| in_column(column, Domain::leaf_share)).sum();
    // For all private persons of a class together, by how much the class is larger than the k of each.
    let deviation = |class: &JoinedClass| -> f64 {
        let k_of = |&row: &u32| f64::from(crowd.rules.k_of_row(row));
        class.microdata.iter().map(|row| class.n_persons() as f64 - k_of(row)).sum()
    };
    let persons = PersonLoss {
        dm: classes.iter().map(|class| n_private_rows(class).powi(2)).sum::<f64>()
            + persons.suppressed as f64 * persons.n_in as f64,
        n_released: classes.iter().map(|class| class.n_persons() as f64).sum(),
        n_classes: classes.len() as f64,
        deviation: classes.iter().map(deviation).sum(),
    };
    let columns = crowd.joined.rows.columns.iter().enumerate();
    let columns = columns.map(|(column, of_table)| (of_table.name.clone(), in_column(column, Domain::lm))).collect();
    TableLoss { n_rows, columns, shares, persons }.alone()
}
