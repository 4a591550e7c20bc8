//! [`LossFindings`]: the loss of a release, recounted from its labels and the private columns.
//!
//! # Definitions
//! [`kohort_model::Loss`] defines the measures. A cell that shows a node loses (leaves - 1) / (all leaves - 1), or for
//! NCP leaves / all leaves. A cell that shows a range loses the width of the range over the width of the private
//! column, but never more than 1. `*` loses 1; a value and null lose 0. If a column contains nulls, null counts as one
//! more leaf below the root. Every cell of a row that is left out loses 1.
//!
//! # Cost   one pass over the released cells of each quasi column, and one over the leaves of its hierarchy

use kohort_model::{Column, Hierarchy, NULL, Texts, Value};
use rayon::prelude::*;

use super::spread::{Spread, SpreadSums};
use crate::reading::coverage::Label;

/// The loss of a release.
#[derive(Clone, Debug, PartialEq)]
pub struct LossFindings {
    /// Mean LM over all quasi cells of the private rows.
    pub lm: f64,
    /// Mean NCP over the same cells.
    pub ncp: f64,
    /// Sum of LM over the same cells.
    pub uncertainty_penalty: f64,
    /// Mean LM of each quasi column.
    pub columns: Vec<(String, f64)>,
    /// Mean over quasi cells of the share of the private rows that lie in the cell; absent with several tables.
    pub rank: Option<f64>,
    /// Mean over quasi columns of non-uniform entropy over the most it can be; absent with several tables.
    pub entropy: Option<f64>,
    /// The measures that are counted in persons; absent if nothing tells who is in which class.
    pub persons: Option<PersonLoss>,
}

/// The measures of loss that are counted in persons.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PersonLoss {
    /// Sum of squared class sizes, plus the number of all persons for each person who is left out.
    pub dm: f64,
    /// Mean number of persons in a class.
    pub average_class: f64,
    /// Sum over persons of the size of their class minus the k they need; absent if that k is not known.
    pub k_deviation: Option<f64>,
}

/// A quasi column of which the rows were counted. Nothing but the texts of the private column is looked at.
pub(crate) struct CountedColumn<'a> {
    /// What the released cells show.
    pub(crate) labels: &'a Texts,
    /// How many rows show each label.
    pub(crate) n_of_label: &'a [u64],
    /// The private column.
    pub(crate) private: &'a Column,
    /// How many private rows have each of its texts.
    pub(crate) n_of_text: &'a [u64],
}

/// How many rows have each text of a column.
pub(super) fn rows_of_texts(column: &Column) -> Vec<u64> {
    let mut counts = vec![0u64; column.texts.len()];
    column.ids.iter().filter(|&&id| id != NULL).for_each(|&id| counts[id as usize] += 1);
    counts
}

/// The sums from which the loss of one table is computed. The sums of several tables can be added.
#[derive(Clone, Debug, Default)]
pub(crate) struct LossSums {
    n_rows: f64,
    /// The name of each quasi column, and the sum of its LM over all private rows.
    columns: Vec<(String, f64)>,
    /// The sum of NCP over all quasi cells of all private rows.
    ncp: f64,
    /// Rank and entropy, summed over columns.
    spread: SpreadSums,
}

impl LossSums {
    /// The sums of a table, given as pairs of a released and a private quasi column.
    pub(crate) fn of(quasi: &[(&Column, &Column)], n_released: usize, n_private: usize) -> Self {
        let counts: Vec<[Vec<u64>; 2]> =
            quasi.iter().map(|(public, private)| [rows_of_texts(public), rows_of_texts(private)]).collect();
        let columns = quasi.iter().zip(&counts);
        let columns = columns.map(|(&(public, private), [n_of_label, n_of_text])| CountedColumn {
            labels: &public.texts,
            n_of_label,
            private,
            n_of_text,
        });
        Self::of_counts(columns, n_released as u64, n_private as u64)
    }

    /// The sums of a table, given by the counts of its quasi columns.
    pub(crate) fn of_counts<'a>(
        quasi: impl Iterator<Item = CountedColumn<'a>>,
        n_released: u64,
        n_private: u64,
    ) -> Self {
        let left_out = n_private.saturating_sub(n_released) as f64;
        let mut sums = LossSums { n_rows: n_private as f64, ..LossSums::default() };
        for CountedColumn { labels, n_of_label, private, n_of_text } in quasi {
            let (lm, ncp) = sum_of_cells(labels, n_of_label, private);
            sums.columns.push((private.name.clone(), lm + left_out));
            sums.ncp += ncp + left_out;
            sums.spread.add(Spread::of(private, n_of_text, n_private).loss(labels, n_of_label, n_released));
        }
        sums
    }

    /// The loss of this table.
    pub(crate) fn alone(&self, persons: Option<PersonLoss>) -> LossFindings {
        let columns = self.columns.iter().map(|(name, sum)| (name.clone(), sum / self.n_rows.max(1.0)));
        finish(&[self], columns.collect(), persons)
    }

    /// The loss of all tables, given with their names. A column name that occurs in several tables becomes
    /// `table.column`.
    pub(crate) fn together(tables: &[(&str, &LossSums)], persons: Option<PersonLoss>) -> LossFindings {
        let names = || tables.iter().flat_map(|(_, sums)| &sums.columns).map(|(name, _)| name);
        let mut columns = Vec::new();
        for (table, sums) in tables {
            for (name, sum) in &sums.columns {
                let shown = if names().filter(|other| *other == name).count() > 1 {
                    format!("{table}.{name}")
                } else {
                    name.clone()
                };
                columns.push((shown, sum / sums.n_rows.max(1.0)));
            }
        }
        finish(&tables.iter().map(|(_, sums)| *sums).collect::<Vec<_>>(), columns, persons)
    }
}

fn finish(tables: &[&LossSums], columns: Vec<(String, f64)>, persons: Option<PersonLoss>) -> LossFindings {
    let n_cells: f64 = tables.iter().map(|sums| sums.n_rows * sums.columns.len() as f64).sum();
    let lm: f64 = tables.iter().flat_map(|sums| &sums.columns).map(|(_, sum)| sum).sum();
    let ncp: f64 = tables.iter().map(|sums| sums.ncp).sum();
    let spread = match tables {
        [alone] => alone.spread.mean(),
        _ => None,
    };
    LossFindings {
        lm: lm / n_cells.max(1.0),
        ncp: ncp / n_cells.max(1.0),
        uncertainty_penalty: lm,
        columns,
        rank: spread.map(|(rank, _)| rank),
        entropy: spread.map(|(_, entropy)| entropy),
        persons,
    }
}

/// The sums from which the [`PersonLoss`] of one table is computed. The sums of several tables can be added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PersonSums {
    dm: f64,
    members: u64,
    n_classes: u64,
    k_deviation: Option<f64>,
}

impl PersonSums {
    /// The sums for classes of these sizes. `n_persons` includes those who are left out. `needed` is the sum, over
    /// released persons and their classes, of the k that each person needs, if it is known.
    pub(crate) fn of(sizes: impl Iterator<Item = u64>, left_out: u64, n_persons: u64, needed: Option<u64>) -> Self {
        let (mut squares, mut members, mut n_classes) = (0u128, 0, 0);
        for size in sizes {
            squares += u128::from(size) * u128::from(size);
            members += size;
            n_classes += 1;
        }
        PersonSums {
            dm: squares as f64 + left_out as f64 * n_persons as f64,
            members,
            n_classes,
            k_deviation: needed.map(|needed| squares as f64 - needed as f64),
        }
    }

    /// The loss of all these tables together.
    pub(crate) fn together(tables: &[PersonSums]) -> PersonLoss {
        let members: u64 = tables.iter().map(|sums| sums.members).sum();
        let n_classes: u64 = tables.iter().map(|sums| sums.n_classes).sum();
        PersonLoss {
            dm: tables.iter().map(|sums| sums.dm).sum(),
            average_class: members as f64 / n_classes.max(1) as f64,
            k_deviation: tables.iter().map(|sums| sums.k_deviation).sum(),
        }
    }
}

/// The sums of LM and NCP over the cells of a column; `n_of_label` says how many cells show each label.
fn sum_of_cells(labels: &Texts, n_of_label: &[u64], private: &Column) -> (f64, f64) {
    let scale = Scale::of(private);
    let of_label = |id: usize| {
        let (lm, ncp) = scale.loss(&Label::read(labels.get(id as u32), private));
        (lm * n_of_label[id] as f64, ncp * n_of_label[id] as f64)
    };
    // Collecting before summing keeps rounding independent of the threads.
    let losses: Vec<(f64, f64)> = (0..labels.len()).into_par_iter().with_min_len(1 << 10).map(of_label).collect();
    losses.into_iter().fold((0.0, 0.0), |sum, loss| (sum.0 + loss.0, sum.1 + loss.1))
}

/// The width of a private column, by which its labels are measured.
struct Scale<'a> {
    /// The hierarchy, and the number of leaves below each node.
    hierarchy: Option<(&'a Hierarchy, Vec<u64>)>,
    /// The lowest and the highest value, if there is no hierarchy.
    range: Option<(Value<'a>, Value<'a>)>,
    n_nulls: u64,
}

impl<'a> Scale<'a> {
    fn of(private: &'a Column) -> Self {
        let hierarchy = private.hierarchy.as_deref().map(|hierarchy| {
            let mut below = vec![0; hierarchy.n_nodes()];
            for leaf in hierarchy.leaves() {
                hierarchy.path(leaf).for_each(|node| below[node as usize] += 1);
            }
            (hierarchy, below)
        });
        let values = || (0..private.texts.len() as u32).filter_map(|id| private.value(id));
        let range = match hierarchy {
            Some(_) => None,
            None => values().min().zip(values().max()),
        };
        Scale { hierarchy, range, n_nulls: u64::from(private.has_nulls()) }
    }

    /// LM and NCP of a label.
    fn loss(&self, label: &Label<'_>) -> (f64, f64) {
        if label.everything {
            return (1.0, 1.0);
        }
        if let (Some((hierarchy, below)), Some(node)) = (&self.hierarchy, label.node) {
            if hierarchy.is_leaf(node) {
                return (0.0, 0.0);
            }
            let nulls = if node == hierarchy.root() { self.n_nulls } else { 0 };
            let all = below[hierarchy.root() as usize] + self.n_nulls;
            let here = below[node as usize] + nulls;
            return ((here - 1) as f64 / (all.max(2) - 1) as f64, here as f64 / all as f64);
        }
        match (label.range, self.range) {
            (Some((low, high)), Some((first, last))) if low < high => {
                let width = high.distance_from(&low) / last.distance_from(&first);
                let width = if width.is_finite() { width.min(1.0) } else { 1.0 };
                (width, width)
            }
            _ => (0.0, 0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use kohort_model::{Role, ValueType};

    use super::*;

    fn sums(private: &Column, labels: &[Option<&str>], n_private: usize) -> LossFindings {
        let public = Column::from_cells(&private.name, Role::Quasi, labels.iter().copied());
        LossSums::of(&[(&public, private)], labels.len(), n_private).alone(None)
    }

    #[test]
    fn a_range_loses_its_width_and_whoever_is_left_out_everything() {
        let ages = Column::from_cells("age", Role::Quasi, ["20", "30", "40", "60"].map(Some)).typed(ValueType::Integer);
        let loss = sums(&ages, &[Some("[20,30]"), Some("[20,30]"), Some("40")], 4);
        assert_eq!((loss.lm, loss.ncp, loss.uncertainty_penalty), (0.375, 0.375, 1.5));
        assert_eq!(loss.columns, [("age".to_owned(), 0.375)]);
        assert_eq!(sums(&ages, &[Some("[0,90]"), Some("*"), None, None], 4).uncertainty_penalty, 2.0);
    }

    #[test]
    fn a_node_loses_its_leaves_and_null_is_a_leaf_below_the_root() {
        let tree = || Hierarchy::from_paths("a;x;*\nb;x;*\nc;y;*\nd;y;*\n").unwrap();
        let zips = Column::from_cells("zip", Role::Quasi, ["a", "b", "c", "d"].map(Some)).with_hierarchy(tree());
        let loss = sums(&zips, &[Some("x"), Some("x"), Some("c"), Some("*")], 4);
        assert!((loss.lm - (1.0 / 3.0 + 1.0 / 3.0 + 1.0) / 4.0).abs() < 1e-12);
        assert_eq!(loss.ncp, (0.5 + 0.5 + 1.0) / 4.0);
        let with_null = Column::from_cells("zip", Role::Quasi, [Some("a"), None]).with_hierarchy(tree());
        assert_eq!(sums(&with_null, &[Some("x"), None], 2).uncertainty_penalty, 0.25);
    }

    #[test]
    fn classes_lose_their_squares_and_each_person_left_out_all() {
        let two = PersonSums::of([2, 3].into_iter(), 1, 6, Some(10));
        let loss = PersonSums::together(&[two]);
        assert_eq!((loss.dm, loss.average_class, loss.k_deviation), (19.0, 2.5, Some(3.0)));
        let one = PersonSums::of([2].into_iter(), 0, 2, None);
        let loss = PersonSums::together(&[two, one]);
        assert_eq!((loss.dm, loss.average_class, loss.k_deviation), (23.0, 7.0 / 3.0, None));
    }

    #[test]
    fn a_column_of_two_tables_is_named_with_its_table() {
        let column = Column::from_cells("x", Role::Quasi, [Some("1"), Some("3")]).typed(ValueType::Integer);
        let public = Column::from_cells("x", Role::Quasi, [Some("[1,3]"), Some("1")]);
        let of = LossSums::of(&[(&public, &column)], 2, 2);
        let both = LossSums::together(&[("a", &of), ("b", &of)], None);
        assert_eq!(both.columns, [("a.x".to_owned(), 0.5), ("b.x".to_owned(), 0.5)]);
        assert_eq!((both.lm, both.uncertainty_penalty), (0.5, 2.0));
    }
}
