//! [`Domain`]: the ordered set of a column's values, with the width, the cost and the label of each interval.
//!
//! Numbers and dates are ordered by value, and an interval of them is a range. All other values are the leaves of a tree,
//! which is flat for text without a hierarchy. NULL always has the last code, and an interval that contains NULL and
//! something else counts as the whole domain.
//!
//! The width of an interval is what partitioners minimize. It is its LM, unless the domain has [`Costs`].

use kohort_model::{Column, Hierarchy, NULL, Texts, Value};
use rayon::prelude::*;

use super::costs::Costs;
use super::tree::{Tree, WithNull};

/// The label of a cell that could be anything, if no hierarchy names its root.
const ANYTHING: &str = "*";

/// The ordered set of a column's values.
#[derive(Clone, Debug)]
pub struct Domain {
    shape: Shape,
    n_codes: u32,
    null: Option<u32>,
    /// The text of each code but NULL's.
    texts: Texts,
    separator: char,
    /// What partitioners minimize instead of LM.
    costs: Option<Box<Costs>>,
}

#[derive(Clone, Debug)]
enum Shape {
    /// For each code but NULL's, where its value lies between the smallest value (0) and the largest (1).
    Ordered { places: Vec<f64> },
    /// `labels` has one entry per node of the tree. `widths` has one per pair of codes, if there are few codes.
    Tree { tree: Box<Tree>, labels: Texts, widths: Vec<f64> },
}

/// Trees with at most this many codes keep a table of widths, because partitioners ask for widths all the time.
const TABULATED: u32 = 128;

/// A text of the dictionary that has no place in its domain. Readers refuse such columns, so this is a fault of ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column '{column}' holds {n} distinct values that are not of its type or not in its hierarchy")]
pub struct ForeignValues {
    /// The column.
    pub column: String,
    /// How many distinct values.
    pub n: usize,
}

impl Domain {
    /// The domain of a column, and the code of each text of its dictionary.
    ///
    /// # Errors
    /// If a text is not of the column's type or not in its hierarchy.
    pub fn of(column: &Column) -> Result<(Domain, Vec<u32>), ForeignValues> {
        let with_null = WithNull::of(column);
        match &column.hierarchy {
            Some(hierarchy) => Self::from_hierarchy(column, hierarchy, with_null),
            None if column.value_type.is_ordered() => Self::from_order(column, with_null),
            None => {
                let mut values: Vec<&str> = column.texts.iter().collect();
                values.par_sort_unstable();
                Self::from_hierarchy(column, &Hierarchy::flat(ANYTHING, values), with_null)
            }
        }
    }

    fn from_hierarchy(
        column: &Column,
        hierarchy: &Hierarchy,
        with_null: WithNull,
    ) -> Result<(Domain, Vec<u32>), ForeignValues> {
        let tree = Tree::new(hierarchy, with_null);
        let n_leaves = tree.n_codes() - u32::from(with_null == WithNull::Yes);
        let codes = tree.codes_of(hierarchy, &column.texts);
        refuse_foreign(column, &codes)?;
        let n_codes = tree.n_codes();
        let n_tabulated = if n_codes <= TABULATED { n_codes } else { 0 };
        let pairs = (0..n_tabulated).flat_map(|lo| (0..n_tabulated).map(move |hi| (lo.min(hi), lo.max(hi))));
        let domain = Domain {
            n_codes,
            null: (with_null == WithNull::Yes).then_some(n_leaves),
            texts: (0..n_leaves).filter_map(|code| tree.leaf_node(code)).map(|leaf| hierarchy.label(leaf)).collect(),
            separator: ',',
            costs: None,
            shape: Shape::Tree {
                labels: (0..hierarchy.n_nodes() as u32).map(|node| hierarchy.label(node)).collect(),
                widths: pairs.map(|(lo, hi)| width_of_hull(&tree, lo, hi)).collect(),
                tree: Box::new(tree),
            },
        };
        Ok((domain, codes))
    }

    fn from_order(column: &Column, with_null: WithNull) -> Result<(Domain, Vec<u32>), ForeignValues> {
        let mut values: Vec<(Value<'_>, u32)> = Vec::with_capacity(column.texts.len());
        let mut codes = vec![NULL; column.texts.len()];
        for id in 0..column.texts.len() as u32 {
            if let Some(value) = column.value(id) {
                values.push((value, id));
            }
        }
        // If a value is spelled in several ways, the shortest spelling is used, so that the result does not depend on
        // the order of rows.
        values.par_sort_unstable_by(|(a, a_id), (b, b_id)| {
            let (a_text, b_text) = (column.texts.get(*a_id), column.texts.get(*b_id));
            a.cmp(b).then_with(|| a_text.len().cmp(&b_text.len())).then_with(|| a_text.cmp(b_text))
        });
        let mut texts = Texts::new();
        let mut places = Vec::new();
        for (position, (value, id)) in values.iter().enumerate() {
            if position == 0 || values[position - 1].0 != *value {
                texts.push(column.texts.get(*id));
                places.push(value.distance_from(&values[0].0));
            }
            codes[*id as usize] = texts.len() as u32 - 1;
        }
        refuse_foreign(column, &codes)?;
        let range = places.last().copied().unwrap_or(0.0);
        let n_values = places.len();
        for (rank, place) in places.iter_mut().enumerate() {
            // An infinite number has no distance to the others, so use ranks instead of distances.
            *place = if range.is_finite() {
                *place / range.max(f64::MIN_POSITIVE)
            } else {
                rank as f64 / (n_values - 1) as f64
            };
        }
        let domain = Domain {
            n_codes: n_values as u32 + u32::from(with_null == WithNull::Yes),
            null: (with_null == WithNull::Yes).then_some(n_values as u32),
            texts,
            separator: column.notation.range_separator(column.value_type),
            costs: None,
            shape: Shape::Ordered { places },
        };
        Ok((domain, codes))
    }

    /// How many codes there are, NULL included.
    pub fn n_codes(&self) -> u32 {
        self.n_codes
    }

    /// The text of each code but NULL's.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.iter()
    }

    /// The code of NULL, if the column has nulls.
    pub fn null(&self) -> Option<u32> {
        self.null
    }

    /// The tree of the domain, `None` for numbers and dates.
    pub fn tree(&self) -> Option<&Tree> {
        match &self.shape {
            Shape::Tree { tree, .. } => Some(tree),
            Shape::Ordered { .. } => None,
        }
    }

    #[inline]
    fn mixes_null(&self, lo: u32, hi: u32) -> bool {
        lo < hi && Some(hi) == self.null
    }

    /// The interval that a cell shows to cover these codes: the range itself, or that of the smallest node.
    pub fn hull(&self, lo: u32, hi: u32) -> (u32, u32) {
        match &self.shape {
            Shape::Tree { tree, .. } => tree.hull(lo, hi),
            Shape::Ordered { .. } if self.mixes_null(lo, hi) => (0, hi),
            Shape::Ordered { .. } => (lo, hi),
        }
    }

    /// The same domain, in which partitioners minimize these costs.
    pub(crate) fn with_costs(mut self, costs: Costs) -> Domain {
        self.costs = Some(Box::new(costs));
        self
    }

    /// What partitioners minimize: the cost of a cell that covers these codes. It never falls when an interval grows. Up to a
    /// constant for each value, it is the loss of the cell by the objective of the spec: LM if there is none.
    #[inline]
    pub fn width(&self, lo: u32, hi: u32) -> f64 {
        match &self.costs {
            None => self.lm(lo, hi),
            Some(costs) => costs.of(self, lo, hi),
        }
    }

    /// Whether the widths of two neighbouring intervals always add up to that of both.
    pub(crate) fn widths_add_up(&self) -> bool {
        let is_plain = self.costs.as_ref().is_none_or(|costs| costs.add_up());
        matches!(self.shape, Shape::Ordered { .. }) && self.null.is_none() && is_plain
    }

    /// LM of a cell that covers these codes, 0 to 1: its width over the column's range, or the leaves of its node less one over
    /// all leaves less one. NCP differs from LM for nodes only, see [`Domain::leaf_share`].
    #[inline]
    pub fn lm(&self, lo: u32, hi: u32) -> f64 {
        if lo == hi {
            return 0.0;
        }
        match &self.shape {
            Shape::Ordered { .. } if self.mixes_null(lo, hi) => 1.0,
            Shape::Ordered { places } => places[hi as usize] - places[lo as usize],
            Shape::Tree { tree, widths, .. } if widths.is_empty() => width_of_hull(tree, lo, hi),
            Shape::Tree { widths, .. } => widths[(lo * self.n_codes + hi) as usize],
        }
    }

    /// NCP's view of the same cell: for a node, its leaves over all leaves.
    pub fn leaf_share(&self, lo: u32, hi: u32) -> f64 {
        match &self.shape {
            Shape::Ordered { .. } => self.lm(lo, hi),
            Shape::Tree { .. } if lo == hi => 0.0,
            Shape::Tree { tree, .. } => {
                let (lo, hi) = tree.hull(lo, hi);
                f64::from(hi - lo + 1) / f64::from(self.n_codes)
            }
        }
    }

    /// The text of a cell that shows this hull, `None` for NULL.
    pub fn label(&self, (lo, hi): (u32, u32)) -> Option<String> {
        if lo == hi {
            return (Some(lo) != self.null).then(|| self.texts.get(lo).to_owned());
        }
        Some(match &self.shape {
            Shape::Ordered { .. } if self.mixes_null(lo, hi) => ANYTHING.to_owned(),
            Shape::Ordered { .. } => format!("[{}{}{}]", self.texts.get(lo), self.separator, self.texts.get(hi)),
            Shape::Tree { tree, labels, .. } => labels.get(tree.common_ancestor(lo, hi)).to_owned(),
        })
    }
}

fn width_of_hull(tree: &Tree, lo: u32, hi: u32) -> f64 {
    let (first, last) = tree.hull(lo, hi);
    f64::from(last - first) / f64::from((tree.n_codes() - 1).max(1))
}

fn refuse_foreign(column: &Column, codes: &[u32]) -> Result<(), ForeignValues> {
    match codes.iter().filter(|&&code| code == NULL).count() {
        0 => Ok(()),
        n => Err(ForeignValues { column: column.name.clone(), n }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kohort_model::{Role, ValueType};

    fn domain(cells: &[Option<&str>], value_type: ValueType) -> (Domain, Vec<u32>) {
        let column = Column::from_cells("c", Role::Quasi, cells.iter().copied()).typed(value_type);
        let (domain, codes) = Domain::of(&column).unwrap();
        let per_row = column.ids.iter().map(|&id| if id == NULL { domain.null().unwrap() } else { codes[id as usize] });
        let per_row = per_row.collect();
        (domain, per_row)
    }

    #[test]
    fn numbers_are_coded_by_value_and_null_comes_last() {
        let (domain, codes) = domain(&[Some("10"), Some("9"), None, Some("-3"), Some("10")], ValueType::Integer);
        assert_eq!(codes, [2, 1, 3, 0, 2]);
        assert_eq!(domain.label((0, 2)).as_deref(), Some("[-3,10]"));
        assert_eq!(domain.label((1, 1)).as_deref(), Some("9"));
        assert_eq!(domain.label((3, 3)), None);
        assert_eq!(domain.label(domain.hull(2, 3)).as_deref(), Some("*"));
        assert_eq!(domain.width(0, 1), 12.0 / 13.0);
        assert_eq!(domain.width(0, 3), 1.0);
    }

    #[test]
    fn one_value_spelled_in_two_ways_has_one_code() {
        let (domain, codes) = domain(&[Some("1.50"), Some("1.5"), Some("2.0")], ValueType::Decimal);
        assert_eq!(codes, [0, 0, 1]);
        assert_eq!(domain.label((0, 1)).as_deref(), Some("[1.5,2.0]"));
    }

    #[test]
    fn text_without_a_hierarchy_is_a_value_or_anything() {
        let (domain, codes) = domain(&[Some("b"), Some("a"), Some("c")], ValueType::Text);
        assert_eq!(codes, [1, 0, 2]);
        assert_eq!(domain.label(domain.hull(0, 1)).as_deref(), Some("*"));
        assert_eq!(domain.width(0, 1), 1.0);
        assert_eq!(domain.leaf_share(0, 1), 1.0);
    }

    #[test]
    fn infinite_numbers_do_not_poison_the_width() {
        let (domain, _) = domain(&[Some("1"), Some("inf"), Some("2")], ValueType::Float);
        assert_eq!(domain.width(0, 1), 0.5);
        assert_eq!(domain.width(0, 2), 1.0);
    }
}
