//! ARX's exact results on Adult, reproduced on ARX's own recodings. Needs the real data.
//!
//! ARX cuts each column's loss off after ten decimals before it takes the mean, which changes the tenth digit of the
//! mean. So two means are compared: the exact one to nine digits, and one of columns that are cut off the same way to
//! the last digit.

use std::collections::BTreeMap;
use std::path::PathBuf;

use kohort_model::{Column, Hierarchy, Role, Table};
use kohort_testkit::data;
use kohort_verify::measure;

/// ARX suppresses the rows of smaller classes.
const K: usize = 5;

struct Adult {
    table: Table,
    hierarchies: Vec<Hierarchy>,
}

/// Adult with its hierarchies in the order of columns, or `None` if it is absent.
fn adult(without: &[&str]) -> Option<Adult> {
    let path: PathBuf = data::real("adult/adult.csv")?;
    let mut table = data::read(&path);
    table.columns.retain(|column| !without.contains(&column.name.as_str()));
    let file = |column: &Column| path.with_file_name(format!("adult_hierarchy_{}.csv", column.name));
    let hierarchies = table.columns.iter().map(|column| data::hierarchy(&file(column))).collect();
    Some(Adult { table, hierarchies })
}

impl Adult {
    /// The node of each distinct text at a level.
    fn nodes(&self, column: usize, level: usize) -> Vec<u32> {
        let hierarchy = &self.hierarchies[column];
        let node = |text: &str| {
            let leaf = hierarchy.leaf(text).expect("the hierarchy holds every value");
            hierarchy.path(leaf).nth(level).expect("the hierarchy has that many levels")
        };
        self.table.columns[column].texts.iter().map(node).collect()
    }

    /// The table with every column raised to its level.
    fn recoded(&self, levels: &[usize]) -> Table {
        let mut table = self.table.clone();
        for (position, column) in table.columns.iter_mut().enumerate() {
            let nodes = self.nodes(position, levels[position]);
            let label = |&id: &u32| Some(self.hierarchies[position].label(nodes[id as usize]));
            *column = Column::from_cells(&column.name, Role::Quasi, column.ids.iter().map(label));
        }
        table
    }

    /// The size of each row's class, by plain grouping; the verifier finds the same classes.
    fn class_sizes(recoded: &Table) -> Vec<usize> {
        let cells = |row: usize| -> Vec<u32> { recoded.columns.iter().map(|column| column.ids[row]).collect() };
        let mut sizes: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
        (0..recoded.n_rows).for_each(|row| *sizes.entry(cells(row)).or_default() += 1);
        let all: Vec<usize> = (0..recoded.columns.len()).collect();
        let findings = measure(recoded, &all, &[], &[]).expect("the table can be counted");
        assert_eq!(findings.classes as usize, sizes.len());
        assert_eq!(findings.k as usize, sizes.values().copied().min().unwrap_or(0));
        (0..recoded.n_rows).map(|row| sizes[&cells(row)]).collect()
    }

    /// For each column its number of leaves, and the sum of its cells' shares of them; a suppressed cell counts 1.
    fn shares(&self, levels: &[usize]) -> Vec<(u64, f64)> {
        let sizes = Self::class_sizes(&self.recoded(levels));
        let columns = self.table.columns.iter().enumerate().map(|(position, column)| {
            let hierarchy = &self.hierarchies[position];
            let leaves = hierarchy.leaves();
            let below = |node: u32| leaves.iter().filter(|&&leaf| hierarchy.path(leaf).any(|n| n == node)).count();
            let nodes = self.nodes(position, levels[position]);
            let shares: Vec<f64> = nodes.into_iter().map(|node| below(node) as f64 / leaves.len() as f64).collect();
            let share = |(&id, &size): (&u32, &usize)| if size < K { 1.0 } else { shares[id as usize] };
            (leaves.len() as u64, column.ids.iter().zip(&sizes).map(share).sum())
        });
        columns.collect()
    }

    fn assert_geometric_mean(&self, levels: &[usize], expected: f64) {
        let n_rows = self.table.n_rows as f64;
        let columns = self.shares(levels);
        assert_close(geometric_mean(&columns, self.table.n_rows as u64), expected, 1e-9);
        let cut_off = columns.into_iter().map(|(n_leaves, shares)| {
            let least = n_rows / n_leaves as f64;
            let loss = ((shares - least) / (n_rows - least) * 1e10).floor() / 1e10;
            (n_leaves, least + loss * (n_rows - least))
        });
        assert_close(geometric_mean(&cut_off.collect::<Vec<_>>(), self.table.n_rows as u64), expected, 1e-12);
    }
}

/// The loss measure of ARX: the geometric mean over columns of the mean share of leaves per cell, rescaled so that an
/// unchanged column counts 0.
///
/// `columns` holds per column its number of leaves and the sum over all rows of the cell's leaves over all leaves,
/// where a suppressed cell counts 1.
fn geometric_mean(columns: &[(u64, f64)], n_rows: u64) -> f64 {
    let n_rows = n_rows as f64;
    let factors = columns.iter().map(|&(n_leaves, shares)| {
        let least = n_rows / n_leaves as f64;
        (1.0 + (shares - least) / (n_rows - least)).powf(1.0 / columns.len() as f64)
    });
    factors.product::<f64>() - 1.0
}

fn assert_close(found: f64, expected: f64, within: f64) {
    assert!(((found - expected) / expected).abs() < within, "{found} is not {expected}");
}

#[test]
fn the_geometric_mean_loss_of_arx_is_reproduced() {
    let Some(adult) = adult(&[]) else { return };
    adult.assert_geometric_mean(&[0, 3, 0, 1, 1, 1, 1, 2, 0], 0.266_110_819_157_574_95);
    adult.assert_geometric_mean(&[0, 3, 0, 0, 2, 1, 1, 1, 0], 0.220_411_928_479_842_92);
}

#[test]
fn at_most_four_percent_are_suppressed_where_arx_says_so() {
    let Some(adult) = adult(&[]) else { return };
    let sizes = Adult::class_sizes(&adult.recoded(&[0, 3, 0, 1, 1, 1, 1, 2, 0]));
    let suppressed = sizes.iter().filter(|&&size| size < K).count();
    assert!(suppressed as f64 <= 0.04 * adult.table.n_rows as f64);
}

#[test]
fn the_discernibility_of_arx_is_reproduced() {
    let Some(adult) = adult(&["occupation"]) else { return };
    let sizes = Adult::class_sizes(&adult.recoded(&[0; 8]));
    let cost = |&size: &usize| if size < K { adult.table.n_rows } else { size };
    assert_eq!(sizes.iter().map(cost).sum::<usize>(), 463_536_157);
}

#[test]
fn the_average_class_size_of_arx_is_reproduced() {
    let Some(adult) = adult(&["occupation"]) else { return };
    let sizes = Adult::class_sizes(&adult.recoded(&[0, 3, 1, 0, 0, 1, 1, 0]));
    let kept = sizes.iter().filter(|&&size| size >= K);
    let n_classes = kept.map(|&size| 1.0 / size as f64).sum::<f64>().round() + 1.0;
    assert_close(adult.table.n_rows as f64 / n_classes, 53.384_070_796_460_18, 1e-12);
}
