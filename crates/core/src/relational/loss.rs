//! What a release of several tables loses.
//!
//! LM is definition 8 of `[NCN08]`: every quasi cell of every row of every table counts once, and those of rows that are
//! left out count 1. DM is definition 9: over persons, the size of the class each is in; a person who is left out
//! counts as everybody. Measures of persons (DM, average class, k-deviation) are those of the table of persons in every
//! table that hangs off it, and added where there are several tables of persons.

use std::collections::BTreeMap;

use kohort_model::{Loss, NULL, Table};

use super::forest::Grove;
use super::shown::Shown;
use crate::encode::Domain;

/// What one table loses, as sums that can be added.
#[derive(Clone, Debug, Default)]
pub(super) struct TableLoss {
    n_rows: f64,
    columns: Vec<(String, f64)>,
    shares: f64,
    persons: PersonLoss,
}

/// What one table of persons loses.
#[derive(Clone, Copy, Debug, Default)]
struct PersonLoss {
    dm: f64,
    n_released: f64,
    n_classes: f64,
    deviation: f64,
}

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
        let columns = (0..n_quasi).map(|column| (name(column), sum(column, Domain::width))).collect();
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

impl TableLoss {
    /// The loss of this table.
    pub(super) fn alone(&self) -> Loss {
        let columns = self.columns.iter().map(|(name, sum)| (name.clone(), sum / self.n_rows.max(1.0))).collect();
        finish(&[self], &[self.persons], columns)
    }

    /// The loss of all tables, given with their names; `roots` are the positions of tables of persons. Where two tables have a
    /// column of the same name, columns are named `table.column`.
    pub(super) fn together(losses: &[TableLoss], names: &[&str], roots: &[usize]) -> Loss {
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
    }
}
