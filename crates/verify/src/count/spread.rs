//! Rank and entropy: how many private rows have a value that a label stands for, counted from texts.
//!
//! # Definitions
//! A value loses nothing by rank; another label loses the share of the private rows that it covers. By entropy, a row loses the
//! logarithm of the rows that its label covers over the rows that have its value; a column's sum is divided by that of a release in
//! which every cell covers everything. Rows that are left out stand for everything.
//!
//! # Cost   a sort of the column's values, and a binary search per label

use std::collections::HashMap;

use kohort_model::{Column, Hierarchy, Texts, Value};

use crate::reading::coverage::Label;

/// What one column loses, relative to all its rows.
#[derive(Clone, Copy)]
pub(super) struct ColumnSpread {
    rank: f64,
    entropy: f64,
}

/// The sums over columns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SpreadSums {
    rank: f64,
    entropy: f64,
    n_columns: u32,
}

impl SpreadSums {
    pub(super) fn add(&mut self, column: ColumnSpread) {
        self.rank += column.rank;
        self.entropy += column.entropy;
        self.n_columns += 1;
    }

    /// Rank and entropy, as means over columns.
    pub(super) fn mean(&self) -> Option<(f64, f64)> {
        let n = f64::from(self.n_columns.max(1));
        Some((self.rank / n, self.entropy / n))
    }
}

/// What lies below a node of a hierarchy.
#[derive(Clone, Copy, Default)]
struct Below {
    n_rows: u64,
    n_leaves: u64,
}

/// How the values of a private column are spread over its rows.
pub(super) struct Spread<'a> {
    private: &'a Column,
    n_rows: u64,
    n_nulls: u64,
    of_text: HashMap<&'a str, u64>,
    /// In a column with a hierarchy, the rows and the leaves below each node.
    hierarchy: Option<(&'a Hierarchy, Vec<Below>)>,
    /// In other columns, the distinct values, ascending, each with the rows that have it or a smaller one.
    values: Vec<(Value<'a>, u64)>,
    /// For each distinct value, how many rows have it.
    of_values: Vec<u64>,
}

impl<'a> Spread<'a> {
    /// The spread of a column, given by how many of its rows have each text.
    pub(super) fn of(private: &'a Column, n_of_text: &[u64], n_rows: u64) -> Spread<'a> {
        let n_nulls = n_rows.saturating_sub(n_of_text.iter().sum());
        let texts = || (0u32..).zip(n_of_text).map(|(id, &n)| (private.texts.get(id), n));
        let mut spread = Spread {
            private,
            n_rows,
            n_nulls,
            of_text: texts().collect(),
            hierarchy: None,
            values: Vec::new(),
            of_values: Vec::new(),
        };
        if let Some(hierarchy) = private.hierarchy.as_deref() {
            let mut below = vec![Below::default(); hierarchy.n_nodes()];
            for (text, n) in texts() {
                let path = hierarchy.leaf(text).into_iter().flat_map(|leaf| hierarchy.path(leaf));
                path.for_each(|node| below[node as usize].n_rows += n);
            }
            for leaf in hierarchy.leaves() {
                hierarchy.path(leaf).for_each(|node| below[node as usize].n_leaves += 1);
            }
            spread.hierarchy = Some((hierarchy, below));
            spread.of_values = n_of_text.to_vec();
        } else {
            let values = (0u32..).zip(n_of_text).map(|(id, &n)| (private.value(id), n));
            let (known, unknown): (Vec<_>, Vec<_>) = values.partition(|(value, _)| value.is_some());
            let mut known: Vec<(Value<'a>, u64)> =
                known.into_iter().filter_map(|(value, n)| Some((value?, n))).collect();
            known.sort_by(|a, b| a.0.cmp(&b.0));
            spread.of_values = unknown.into_iter().map(|(_, n)| n).collect();
            let mut sum = 0;
            for same in known.chunk_by(|a, b| a.0 == b.0) {
                let n = same.iter().map(|(_, n)| n).sum::<u64>();
                sum += n;
                spread.of_values.push(n);
                spread.values.push((same[0].0, sum));
            }
        }
        spread.of_values.push(n_nulls);
        spread
    }

    /// What the column loses if `n_of_label` rows show each label, all other released rows show null, and the rest is left out.
    pub(super) fn loss(&self, labels: &Texts, n_of_label: &[u64], n_released: u64) -> ColumnSpread {
        let logarithm = |n: u64| (n.max(1) as f64).ln();
        let left_out = self.n_rows.saturating_sub(n_released) as f64;
        let n_null_cells = n_released.saturating_sub(n_of_label.iter().sum::<u64>()) as f64;
        let (mut shares, mut logarithms) = (left_out, left_out * logarithm(self.n_rows));
        logarithms += n_null_cells * logarithm(self.n_nulls);
        for (id, &n) in (0u32..).zip(n_of_label) {
            let (covered, is_value) = self.covered(&Label::read(labels.get(id), self.private), labels.get(id));
            if !is_value {
                shares += n as f64 * covered as f64 / self.n_rows as f64;
            }
            logarithms += n as f64 * logarithm(covered);
        }
        let of_values: f64 = self.of_values.iter().map(|&n| n as f64 * logarithm(n)).sum();
        let most = self.n_rows as f64 * logarithm(self.n_rows) - of_values;
        ColumnSpread {
            rank: shares / (self.n_rows as f64).max(1.0),
            entropy: if most > 0.0 { ((logarithms - of_values) / most).max(0.0) } else { 0.0 },
        }
    }

    /// How many private rows a label covers, and whether it is a value.
    fn covered(&self, label: &Label<'_>, text: &str) -> (u64, bool) {
        if label.everything {
            return (self.n_rows, false);
        }
        if let (Some((hierarchy, below)), Some(node)) = (&self.hierarchy, label.node) {
            let nulls = if node == hierarchy.root() { self.n_nulls } else { 0 };
            let Below { n_rows, n_leaves } = below[node as usize];
            // A node above a single leaf tells as much as the leaf.
            return (n_rows + nulls, n_leaves == 1 && nulls == 0);
        }
        match &label.range {
            Some((low, high)) => {
                let up_to = |place: usize| if place == 0 { 0 } else { self.values[place - 1].1 };
                let first = self.values.partition_point(|(value, _)| value < low);
                let end = self.values.partition_point(|(value, _)| value <= high);
                (up_to(end.max(first)) - up_to(first), low >= high)
            }
            None => (self.of_text.get(text).copied().unwrap_or(0), true),
        }
    }
}

#[cfg(test)]
mod tests {
    use kohort_model::{Role, ValueType};

    use super::*;
    use crate::count::loss::rows_of_texts;

    fn loss(private: &Column, shown: &[(&str, u64)], n_released: u64) -> (f64, f64) {
        let (mut labels, mut n_of_label) = (Texts::new(), Vec::new());
        for (label, n) in shown {
            labels.push(label);
            n_of_label.push(*n);
        }
        let ColumnSpread { rank, entropy } = Spread::of(private, &rows_of_texts(private), private.ids.len() as u64)
            .loss(&labels, &n_of_label, n_released);
        (rank, entropy)
    }

    #[test]
    fn a_range_loses_the_share_of_rows_in_it_however_wide_it_is() {
        let cells = ["1", "2", "3", "10000000"].map(Some);
        let ages = Column::from_cells("age", Role::Quasi, cells).typed(ValueType::Integer);
        let (rank, entropy) = loss(&ages, &[("[1,2]", 2), ("[3,10000000]", 2)], 4);
        assert!((rank - 0.5).abs() < 1e-12 && (entropy - 0.5).abs() < 1e-12, "{rank} {entropy}");
        let everything = loss(&ages, &[("*", 3)], 3);
        assert!((everything.0 - 1.0).abs() < 1e-12 && (everything.1 - 1.0).abs() < 1e-12, "{everything:?}");
        assert_eq!(loss(&ages, &[("1", 1), ("2", 1), ("3", 1), ("10000000", 1)], 4), (0.0, 0.0));
    }

    #[test]
    fn a_node_loses_the_share_of_rows_below_it_and_null_is_below_the_root() {
        let tree = Hierarchy::from_paths("a;x;*\nb;x;*\nc;y;*\nd;y;*\n").unwrap();
        let cells = [Some("a"), Some("a"), Some("b"), None];
        let zips = Column::from_cells("zip", Role::Quasi, cells).with_hierarchy(tree);
        let (rank, entropy) = loss(&zips, &[("x", 3)], 4);
        assert!((rank - 0.75 * 0.75).abs() < 1e-12);
        let most = 4.0 * 4f64.ln() - 2.0 * 2f64.ln();
        assert!((entropy - (3.0 * 3f64.ln() - 2.0 * 2f64.ln()) / most).abs() < 1e-12);
    }
}
