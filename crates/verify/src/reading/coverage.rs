//! Whether a released cell covers the private cell it stands for.
//!
//! # Guarantee
//! Texts, parsed bounds and hierarchy paths decide. A text that means nothing here covers only itself.
//!
//! | released cell | covers |
//! | --- | --- |
//! | null | null |
//! | a value | the same value in the column's type; in columns of text or with a hierarchy, the same text |
//! | `[lo,hi]` | values from `lo` to `hi`, in columns of numbers and times without a hierarchy |
//! | a node's label | leaves that have the node on their path to the root; the root also covers null |
//! | `*` | everything, unless the hierarchy has a node of that name |
//!
//! # Cost   one sort of (label, value) pairs per column; each distinct pair is tested once

use std::collections::{HashMap, HashSet};

use kohort_model::{Column, Hierarchy, NULL, Texts, Value, ValueType};
use rayon::prelude::*;

use crate::Violation;
use crate::count::cells::in_order;
use crate::structure::place;

/// Decides which values the labels of one column cover.
pub(crate) struct Coverage<'a> {
    column: &'a Column,
    /// The leaf of each text of the column, or [`NULL`] if the hierarchy has none.
    leaves: Vec<u32>,
    labels: Vec<Label<'a>>,
}

/// A label and its meaning.
pub(crate) struct Label<'a> {
    text: &'a str,
    pub(crate) everything: bool,
    pub(crate) node: Option<u32>,
    /// The bounds of a range. A value is a range whose bounds are equal.
    pub(crate) range: Option<(Value<'a>, Value<'a>)>,
}

impl<'a> Coverage<'a> {
    /// Reads `labels` as generalizations of a private column.
    pub(crate) fn new(column: &'a Column, labels: &'a Texts) -> Self {
        let leaves = match &column.hierarchy {
            Some(hierarchy) => (0..column.texts.len() as u32)
                .into_par_iter()
                .with_min_len(1 << 10)
                .map(|id| hierarchy.leaf(column.texts.get(id)).unwrap_or(NULL))
                .collect(),
            None => Vec::new(),
        };
        let ids = (0..labels.len() as u32).into_par_iter().with_min_len(1 << 10);
        let labels = ids.map(|id| Label::read(labels.get(id), column)).collect();
        Coverage { column, leaves, labels }
    }

    /// Whether a released cell covers a private one, both given by id.
    pub(crate) fn covers(&self, label: u32, value: u32) -> bool {
        let label = match (label, value) {
            (NULL, value) => return value == NULL,
            (label, _) => &self.labels[label as usize],
        };
        if label.everything {
            return true;
        }
        let hierarchy = self.column.hierarchy.as_deref();
        if value == NULL {
            return hierarchy.is_some_and(|hierarchy| label.node == Some(hierarchy.root()));
        }
        let same_text = label.text == self.column.texts.get(value);
        if let Some(hierarchy) = hierarchy {
            return match (self.leaves[value as usize], label.node) {
                (NULL, node) => same_text && node.is_none(),
                (_, None) => false,
                (leaf, Some(node)) => hierarchy.path(leaf).any(|above| above == node),
            };
        }
        match self.column.value(value) {
            None => same_text,
            Some(value) => label.range.is_some_and(|(low, high)| low <= value && value <= high),
        }
    }

    /// Released cells that do not cover the private cells of their rows.
    pub(crate) fn violation(&self, ids: &[u32], rows: &[u32]) -> Option<Violation> {
        let pair = |row: usize| (ids[row], self.column.ids[rows[row] as usize]);
        let uncovered: HashSet<(u32, u32)> =
            distinct(rows.len(), pair).into_par_iter().filter(|&(label, value)| !self.covers(label, value)).collect();
        if uncovered.is_empty() {
            return None;
        }
        let (n, first_row) = place(rows.len(), |row| uncovered.contains(&pair(row)))?;
        Some(Violation::NotCovered { column: self.column.name.clone(), n, first_row })
    }
}

impl<'a> Label<'a> {
    pub(crate) fn read(text: &'a str, column: &'a Column) -> Self {
        let node = column.hierarchy.as_ref().and_then(|hierarchy| hierarchy.node(text));
        let value = || Value::parse(text, column.value_type, &column.notation).map(|value| (value, value));
        let range = if column.hierarchy.is_some() { None } else { value().or_else(|| read_range(text, column)) };
        Label { text, everything: text == "*" && node.is_none(), node, range }
    }
}

/// The bounds of `[lo,hi]` as values.
fn read_range<'a>(text: &'a str, column: &Column) -> Option<(Value<'a>, Value<'a>)> {
    let parse = |bound: &'a str| Value::parse(bound, column.value_type, &column.notation);
    let (low, high) = range_bounds(text, column)?;
    Some((parse(low)?, parse(high)?))
}

/// The bounds of `[lo,hi]` as texts. A text that can be read in two ways is not a range.
pub(crate) fn range_bounds<'a>(text: &'a str, column: &Column) -> Option<(&'a str, &'a str)> {
    match column.value_type {
        ValueType::Integer | ValueType::Decimal | ValueType::Float | ValueType::Date | ValueType::Timestamp => {}
        ValueType::Text | ValueType::Boolean => return None,
    }
    let bounds = text.strip_prefix('[')?.strip_suffix(']')?;
    let separator = column.notation.range_separator(column.value_type);
    let is_value = |bound: &str| Value::parse(bound, column.value_type, &column.notation).is_some();
    let mut readings = bounds
        .match_indices(separator)
        .map(|(at, separator)| (&bounds[..at], &bounds[at + separator.len()..]))
        .filter(|(low, high)| is_value(low) && is_value(high));
    let range = readings.next()?;
    readings.next().is_none().then_some(range)
}

/// The distinct pairs over all rows, sorted.
fn distinct(n_rows: usize, pair: impl Fn(usize) -> (u32, u32) + Sync) -> Vec<(u32, u32)> {
    const BLOCK: usize = 1 << 16;
    let mut pairs: Vec<(u32, u32)> = (0..n_rows.div_ceil(BLOCK))
        .into_par_iter()
        .flat_map_iter(|block| {
            let rows = block * BLOCK..((block + 1) * BLOCK).min(n_rows);
            let mut pairs: Vec<_> = rows.map(&pair).collect();
            pairs.sort_unstable();
            pairs.dedup();
            pairs
        })
        .collect();
    pairs.par_sort_unstable();
    pairs.dedup();
    pairs
}

/// The private values in an order in which each label covers a run of consecutive values. This is only an index: it
/// gives the same answers as [`Coverage::covers`], for all values at once.
pub(crate) struct Runs {
    /// The position of each value.
    positions: Vec<u32>,
    /// The position of null.
    null: u32,
    /// The positions that each label covers (the end excluded).
    labels: Vec<(u32, u32)>,
}

impl Runs {
    pub(crate) fn new(coverage: &Coverage<'_>) -> Self {
        match coverage.column.hierarchy.as_deref() {
            Some(hierarchy) => Self::by_path(coverage, hierarchy),
            None => Self::by_value(coverage),
        }
    }

    /// The same runs with as few positions as possible: values that are covered by the same labels share one.
    pub(crate) fn coarse(self) -> Self {
        let mut bounds: Vec<u32> = self.labels.iter().flat_map(|&(start, end)| [start, end]).collect();
        bounds.extend([0, self.null, self.null + 1]);
        bounds.sort_unstable();
        bounds.dedup();
        // The number of a position is that of the last bound at or before it.
        let number = |position: u32| bounds.partition_point(|&bound| bound <= position) as u32 - 1;
        let run = |&(start, end): &(u32, u32)| if start < end { (number(start), number(end)) } else { (0, 0) };
        Runs {
            positions: self.positions.iter().map(|&position| number(position)).collect(),
            null: number(self.null),
            labels: self.labels.iter().map(run).collect(),
        }
    }

    /// The position of a value.
    pub(crate) fn position(&self, value: u32) -> u32 {
        if value == NULL { self.null } else { self.positions[value as usize] }
    }

    /// The positions that a label covers (the end excluded).
    pub(crate) fn run(&self, label: u32) -> (u32, u32) {
        if label == NULL { (self.null, self.null + 1) } else { self.labels[label as usize] }
    }

    /// The order is: values of the column's type, other texts, null.
    fn by_value(coverage: &Coverage<'_>) -> Self {
        let column = coverage.column;
        let n_texts = column.texts.len() as u32;
        let order = in_order(&column.texts, column, (0..n_texts).collect());
        let positions = inverse(&order);
        let values: Vec<Value<'_>> = order.iter().map_while(|&id| column.value(id)).collect();
        let others = &order[values.len()..];
        let labels = coverage.labels.par_iter().map(|label| {
            if label.everything {
                (0, n_texts + 1)
            } else if let Some((low, high)) = label.range {
                let start = values.partition_point(|value| *value < low);
                (start as u32, values.partition_point(|value| *value <= high).max(start) as u32)
            } else {
                match others.binary_search_by_key(&label.text, |&id| column.texts.get(id)) {
                    Ok(found) => ((values.len() + found) as u32, (values.len() + found) as u32 + 1),
                    Err(_) => (0, 0),
                }
            }
        });
        Runs { positions, null: n_texts, labels: labels.collect() }
    }

    /// The order is: leaves by their path from the root, null, other texts.
    fn by_path(coverage: &Coverage<'_>, hierarchy: &Hierarchy) -> Self {
        let column = coverage.column;
        let n_texts = column.texts.len() as u32;
        let mut order: Vec<(bool, Vec<u32>, u32)> = (0..n_texts)
            .into_par_iter()
            .map(|id| match coverage.leaves[id as usize] {
                NULL => (true, Vec::new(), id),
                leaf => {
                    let mut path: Vec<u32> = hierarchy.path(leaf).collect();
                    path.reverse();
                    (false, path, id)
                }
            })
            .collect();
        order.par_sort_unstable();
        let null = order.iter().filter(|(other, ..)| !other).count() as u32;
        let mut nodes = vec![(0, 0); hierarchy.n_nodes()];
        let mut others: HashMap<&str, u32> = HashMap::new();
        let mut positions = vec![0; column.texts.len()];
        for (position, (other, path, id)) in (0..).zip(&order) {
            let position = position + u32::from(*other);
            positions[*id as usize] = position;
            for &node in path {
                let (start, end) = &mut nodes[node as usize];
                *start = if *end == 0 { position } else { *start };
                *end = position + 1;
            }
            if *other {
                others.insert(column.texts.get(*id), position);
            }
        }
        nodes[hierarchy.root() as usize] = (0, null + 1);
        let labels = coverage.labels.iter().map(|label| match (label.everything, label.node, others.get(label.text)) {
            (true, ..) => (0, n_texts + 1),
            (false, Some(node), _) => nodes[node as usize],
            (false, None, Some(&position)) => (position, position + 1),
            (false, None, None) => (0, 0),
        });
        Runs { labels: labels.collect(), positions, null }
    }
}

/// The position of each id.
fn inverse(order: &[u32]) -> Vec<u32> {
    let mut positions = vec![0; order.len()];
    for (position, &id) in (0..).zip(order) {
        positions[id as usize] = position;
    }
    positions
}

#[cfg(test)]
mod tests {
    use kohort_model::{Notation, Role};

    use super::*;

    /// Whether a label covers a value of a column.
    fn covers(column: &Column, label: Option<&str>, value: Option<&str>) -> bool {
        let labels: Texts = label.into_iter().collect();
        let id = match value {
            None => NULL,
            Some(value) => column.texts.iter().position(|text| text == value).unwrap() as u32,
        };
        Coverage::new(column, &labels).covers(if label.is_some() { 0 } else { NULL }, id)
    }

    #[test]
    fn a_range_covers_values_between_its_bounds_and_no_null() {
        let ages = Column::from_cells("age", Role::Quasi, [Some("20"), Some("-3"), Some("030"), None])
            .typed(ValueType::Integer);
        for label in ["20", "[20,20]", "[-5,30]", "*"] {
            assert!(covers(&ages, Some(label), Some("20")), "{label}");
        }
        for label in ["21", "[21,30]", "[30,20]", "[20,]", "20,30", "[20;30]", "[a,b]", "", "**", "[19,20,21]"] {
            assert!(!covers(&ages, Some(label), Some("20")), "{label}");
        }
        assert!(covers(&ages, Some("[-3,-3]"), Some("-3")));
        assert!(covers(&ages, Some("30"), Some("030")));
        assert!(covers(&ages, None, None) && covers(&ages, Some("*"), None));
        assert!(!covers(&ages, None, Some("20")) && !covers(&ages, Some("[-99,99]"), None));
    }

    #[test]
    fn ranges_follow_the_column_s_notation() {
        let mut weights = Column::from_cells("weight", Role::Quasi, [Some("3,5")]).typed(ValueType::Decimal);
        weights.notation = Notation { decimal_comma: true, date_format: None, ..Notation::default() };
        assert!(covers(&weights, Some("[3,4;3,6]"), Some("3,5")));
        assert!(!covers(&weights, Some("[3,6;3,7]"), Some("3,5")));
        assert!(!covers(&weights, Some("[3,4]"), Some("3,5")));

        let mut births = Column::from_cells("birth", Role::Quasi, [Some("17,03,1984")]).typed(ValueType::Date);
        births.notation =
            Notation { decimal_comma: false, date_format: Some("%d,%m,%Y".to_owned()), ..Notation::default() };
        assert!(covers(&births, Some("[01,01,1984,31,12,1984]"), Some("17,03,1984")));
        assert!(!covers(&births, Some("[01,01,1985,31,12,1985]"), Some("17,03,1984")));
    }

    #[test]
    fn a_label_covers_the_leaves_below_its_node() {
        let tree = "88512;885**;*****\n88513;885**;*****\n90210;902**;*****";
        let zip = Column::from_cells("zip", Role::Quasi, [Some("88512"), Some("90210"), None])
            .typed(ValueType::Integer)
            .with_hierarchy(Hierarchy::from_paths(tree).unwrap());
        for label in ["88512", "885**", "*****", "*"] {
            assert!(covers(&zip, Some(label), Some("88512")), "{label}");
        }
        for label in ["88513", "902**", "[0,99999]", "088512"] {
            assert!(!covers(&zip, Some(label), Some("88512")), "{label}");
        }
        assert!(covers(&zip, Some("*****"), None) && covers(&zip, Some("*"), None));
        assert!(!covers(&zip, Some("885**"), None));
    }

    #[test]
    fn a_star_that_is_an_inner_node_covers_only_its_leaves() {
        let tree = "a;*;all\nb;rest;all";
        let column = Column::from_cells("x", Role::Quasi, [Some("a"), Some("b"), None])
            .with_hierarchy(Hierarchy::from_paths(tree).unwrap());
        assert!(covers(&column, Some("*"), Some("a")));
        assert!(!covers(&column, Some("*"), Some("b")) && !covers(&column, Some("*"), None));
    }

    #[test]
    fn a_value_the_hierarchy_does_not_know_is_covered_by_itself_alone() {
        let column =
            Column::from_cells("x", Role::Quasi, [Some("b")]).with_hierarchy(Hierarchy::from_paths("a;all").unwrap());
        assert!(covers(&column, Some("b"), Some("b")) && covers(&column, Some("*"), Some("b")));
        assert!(!covers(&column, Some("all"), Some("b")));
    }

    #[test]
    fn text_and_truth_values_have_no_ranges() {
        let text = Column::from_cells("x", Role::Quasi, [Some("b"), Some("[a,c]")]);
        assert!(!covers(&text, Some("[a,c]"), Some("b")));
        assert!(covers(&text, Some("[a,c]"), Some("[a,c]")));
        let flags = Column::from_cells("x", Role::Quasi, [Some("true")]).typed(ValueType::Boolean);
        assert!(!covers(&flags, Some("[false,true]"), Some("true")) && covers(&flags, Some("TRUE"), Some("true")));
    }

    #[test]
    fn runs_say_what_coverage_says() {
        let numbers = ["3", "03", "-1", "17", "x", "y"];
        let labels = ["3", "[0,3]", "[4,2]", "[3,17]", "x", "z", "*", "[a,b]", "-1"];
        let tree = "3;low;all\n17;high;all\n03;low;all\n5;five;all\nx;all";
        let nodes = ["3", "low", "high", "five", "all", "*", "y", "-1", "x", "none"];
        let cells: Vec<_> = numbers.into_iter().map(Some).chain([None, Some("high")]).collect();
        let column = Column::from_cells("n", Role::Quasi, cells).typed(ValueType::Integer);
        let in_tree = column.clone().with_hierarchy(Hierarchy::from_paths(tree).unwrap());
        for (column, labels) in [(column, labels.to_vec()), (in_tree, nodes.to_vec())] {
            let labels: Texts = labels.into_iter().collect();
            let coverage = Coverage::new(&column, &labels);
            let runs = Runs::new(&coverage);
            let coarse = Runs::new(&coverage).coarse();
            for label in (0..labels.len() as u32).chain([NULL]) {
                for value in (0..column.texts.len() as u32).chain([NULL]) {
                    let (start, end) = runs.run(label);
                    let position = runs.position(value);
                    assert_eq!(start <= position && position < end, coverage.covers(label, value), "{label} {value}");
                    let (start, end) = coarse.run(label);
                    let position = coarse.position(value);
                    assert_eq!(start <= position && position < end, coverage.covers(label, value), "{label} {value}");
                }
            }
        }
    }

    #[test]
    fn uncovered_cells_are_counted_and_the_first_is_named() {
        let ages = Column::from_cells("age", Role::Quasi, [Some("20"), Some("30")]).typed(ValueType::Integer);
        let labels: Texts = ["[20,29]", "*"].into_iter().collect();
        let coverage = Coverage::new(&ages, &labels);
        assert_eq!(coverage.violation(&[0, 1], &[0, 1]), None);
        let expected = Violation::NotCovered { column: "age".to_owned(), n: 2, first_row: 2 };
        assert_eq!(coverage.violation(&[0, 0, 0], &[0, 1, 1]), Some(expected));
    }
}
