//! What a release of several tables loses.
//!
//! LM is definition 8 of `[NCN08]`: every quasi cell of every row of every table counts once, and those of rows that are
//! left out count 1. DM is definition 9: over persons, the size of the class each is in; a person who is left out
//! counts as everybody. In every table below a table of persons, measures of persons (DM, average class, k-deviation)
//! are those of the table of persons. They are added if there are several tables of persons.

use kohort_model::{NULL, Table};

use super::forest::Grove;
use super::shown::Shown;
use crate::encode::Domain;
use crate::loss::{PersonLoss, TableLoss};

/// Measures all tables of one grove, each with its position in the schema; `k_of` is the k a person needs.
pub(super) fn measure(
    tables: &[Table],
    grove: &Grove<'_>,
    shown: &Shown,
    k_of: impl Fn(u32) -> u32,
) -> Vec<(usize, TableLoss)> {
    let persons = measure_persons(shown, k_of);
    let of_kind = |kind: usize| {
        let table = &tables[grove.kinds[kind].table];
        let encoded = &grove.encoded[kind];
        let layer = &shown.layers[kind];
        let n_rows = table.n_rows as f64;
        let suppressed = n_rows - layer.n_rows.iter().sum::<u64>() as f64;
        let n_quasi = encoded.domains.len();
        let sum = |column: usize, measure: fn(&Domain, u32, u32) -> f64| {
            let nodes = layer.n_rows.iter().enumerate().map(|(node, &n_rows)| {
                let (lo, hi) = layer.bounds[node * n_quasi + column];
                measure(&encoded.domains[column], lo, hi) * n_rows as f64
            });
            nodes.sum::<f64>() + suppressed
        };
        let name = |column: usize| table.columns[encoded.columns[column]].name.clone();
        let columns = (0..n_quasi).map(|column| (name(column), sum(column, Domain::lm))).collect();
        let shares = (0..n_quasi).map(|column| sum(column, Domain::leaf_share)).sum();
        (grove.kinds[kind].table, TableLoss { n_rows, columns, shares, persons })
    };
    (0..grove.kinds.len()).map(of_kind).collect()
}

fn measure_persons(shown: &Shown, k_of: impl Fn(u32) -> u32) -> PersonLoss {
    let n_in = shown.class_of_person.len() as f64;
    let mut sum = PersonLoss { n_classes: shown.class_sizes.len() as f64, ..PersonLoss::default() };
    for (person, &class) in (0..).zip(&shown.class_of_person) {
        if class == NULL {
            sum.dm += n_in;
            continue;
        }
        let size = shown.class_sizes[class as usize] as f64;
        sum.dm += size;
        sum.n_released += 1.0;
        sum.deviation += size - f64::from(k_of(person));
    }
    sum
}
