//! [`Meeting`]: what the cells of one column in several releases say together.
//!
//! | cell | says that the value is |
//! | --- | --- |
//! | `*`, or the root of a hierarchy | anything |
//! | a value, `[lo,hi]` | from `lo` to `hi`, in columns of numbers and times without a hierarchy |
//! | a label of a hierarchy | one of the leaves below it |
//! | null, or any other text | not known: the text itself is kept, beside other such texts |
//!
//! Texts of the last row can't be read, so they contradict nothing. A person with two such texts looks different from a
//! person with only one of them.

use std::collections::{BTreeSet, HashMap};

use kohort_model::{Column, Hierarchy, NULL, Texts, Value};

use crate::reading::coverage::range_bounds;

/// Numbers the statements that cells of one column make. Equal statements have equal numbers.
pub(super) struct Meeting<'a> {
    columns: Vec<&'a Column>,
    /// The first leaf of each node of the hierarchy, and the number of its leaves.
    leaves: Vec<(u32, u32)>,
    numbers: HashMap<Said<'a>, u32>,
    said: Vec<Said<'a>>,
    /// Pairs of statements that were joined, with their joint statement.
    met: HashMap<(u32, u32), u32>,
}

/// A statement about a value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Said<'a> {
    /// The values that remain possible, as far as cells can be read.
    among: Among<'a>,
    /// The cells that can't be read, null included.
    beside: BTreeSet<Option<&'a str>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Among<'a> {
    #[default]
    Anything,
    /// The lower and the upper bound, as they are spelled.
    Range(&'a str, &'a str),
    /// The first leaf in depth-first order, and the number of leaves.
    Leaves(u32, u32),
    /// No value is possible: a contradiction.
    Nothing,
}

impl<'a> Meeting<'a> {
    /// The statement that any value is possible.
    pub(super) const ANYTHING: u32 = 0;

    /// A meeting of one column in several releases. Type and hierarchy must be the same in all of them.
    pub(super) fn new(columns: impl Iterator<Item = &'a Column>) -> Self {
        let columns: Vec<&Column> = columns.collect();
        let hierarchy = columns.first().and_then(|column| column.hierarchy.as_deref());
        let leaves = hierarchy.map(runs_of_leaves).unwrap_or_default();
        let numbers = HashMap::from([(Said::default(), Self::ANYTHING)]);
        Meeting { columns, leaves, numbers, said: vec![Said::default()], met: HashMap::new() }
    }

    /// The number of different statements.
    pub(super) fn n_numbers(&self) -> usize {
        self.said.len()
    }

    /// The statement of each row of a release. `position` counts only releases that have the column.
    pub(super) fn column(&mut self, position: usize) -> Vec<u32> {
        let column = self.columns[position];
        let texts: &'a Texts = &column.texts;
        let read = |text| self.read(text);
        let said: Vec<Said<'a>> = texts.iter().map(read).collect();
        let of_texts: Vec<u32> = said.into_iter().map(|said| self.number(said)).collect();
        let null = self.number(Said { among: Among::Anything, beside: BTreeSet::from([None]) });
        column.ids.iter().map(|&id| if id == NULL { null } else { of_texts[id as usize] }).collect()
    }

    /// The joint statement of two statements.
    pub(super) fn both(&mut self, a: u32, b: u32) -> u32 {
        if a == b || b == Self::ANYTHING {
            return a;
        }
        if a == Self::ANYTHING {
            return b;
        }
        let pair = (a.min(b), a.max(b));
        if let Some(&known) = self.met.get(&pair) {
            return known;
        }
        let (a, b) = (&self.said[a as usize], &self.said[b as usize]);
        let among = self.meet(a.among, b.among);
        let said = Said { among, beside: a.beside.union(&b.beside).copied().collect() };
        let number = self.number(said);
        self.met.insert(pair, number);
        number
    }

    /// Whether no value satisfies a statement.
    pub(super) fn is_contradiction(&self, number: u32) -> bool {
        self.said[number as usize].among == Among::Nothing
    }

    fn number(&mut self, said: Said<'a>) -> u32 {
        let next = self.said.len() as u32;
        let number = *self.numbers.entry(said.clone()).or_insert(next);
        if number == next {
            self.said.push(said);
        }
        number
    }

    fn read(&self, text: &'a str) -> Said<'a> {
        let among = |among| Said { among, beside: BTreeSet::new() };
        let column = self.columns[0];
        if let Some(hierarchy) = &column.hierarchy
            && let Some(node) = hierarchy.node(text)
        {
            if node == hierarchy.root() {
                return Said::default();
            }
            let (first, n_leaves) = self.leaves[node as usize];
            return among(Among::Leaves(first, n_leaves));
        }
        if text == "*" {
            return Said::default();
        }
        if column.hierarchy.is_none() && column.value_type.is_ordered() {
            let bounds = match self.value(text) {
                Some(_) => Some((text, text)),
                None => range_bounds(text, column).filter(|(low, high)| self.value(low) <= self.value(high)),
            };
            if let Some((low, high)) = bounds {
                return among(Among::Range(low, high));
            }
        }
        Said { among: Among::Anything, beside: BTreeSet::from([Some(text)]) }
    }

    fn meet(&self, a: Among<'a>, b: Among<'a>) -> Among<'a> {
        match (a, b) {
            (Among::Anything, other) | (other, Among::Anything) => other,
            (Among::Nothing, _) | (_, Among::Nothing) => Among::Nothing,
            (Among::Range(low, high), Among::Range(other_low, other_high)) => {
                // If a bound is spelled in two ways, the lesser text is kept, so that the order of releases does not
                // matter.
                let by_value = |a: &&str, b: &&str| self.value(a).cmp(&self.value(b));
                let low = std::cmp::max_by(low, other_low, |a, b| by_value(a, b).then(b.cmp(a)));
                let high = std::cmp::min_by(high, other_high, |a, b| by_value(a, b).then(a.cmp(b)));
                if self.value(low) <= self.value(high) { Among::Range(low, high) } else { Among::Nothing }
            }
            (Among::Leaves(first, n), Among::Leaves(other_first, other_n)) => {
                // Leaves below two nodes are nested or disjoint.
                let (start, end) = (first.max(other_first), (first + n).min(other_first + other_n));
                if start < end { Among::Leaves(start, end - start) } else { Among::Nothing }
            }
            // A column has ranges or a hierarchy, never both, so this does not occur.
            (Among::Range(..), Among::Leaves(..)) | (Among::Leaves(..), Among::Range(..)) => Among::Nothing,
        }
    }

    /// The value of a bound, by which bounds are compared.
    fn value<'t>(&self, text: &'t str) -> Option<Value<'t>> {
        let column = self.columns[0];
        Value::parse(text, column.value_type, &column.notation)
    }
}

/// The leaves of each node: the first in depth-first order, and their number.
fn runs_of_leaves(hierarchy: &Hierarchy) -> Vec<(u32, u32)> {
    let mut runs = vec![(u32::MAX, 0); hierarchy.n_nodes()];
    for (position, leaf) in (0..).zip(hierarchy.leaves()) {
        for node in hierarchy.path(leaf) {
            let (first, n_leaves) = &mut runs[node as usize];
            *first = (*first).min(position);
            *n_leaves += 1;
        }
    }
    runs
}
