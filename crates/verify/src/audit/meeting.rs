//! [`Meeting`]: what the cells of one column say together.
//!
//! | cell | says that the value is |
//! | --- | --- |
//! | `*`, or a hierarchy's root | anything |
//! | a value, `[lo,hi]` | from `lo` to `hi`, in columns of numbers and times without a hierarchy |
//! | a hierarchy's label | one of the leaves below |
//! | null, or any other text | what a reader makes of it: two of them are kept side by side |
//!
//! Other texts are not understood, so they contradict nothing, and a person of whom two are said looks like nobody of
//! whom only one is.

use std::collections::{BTreeSet, HashMap};

use kohort_model::{Column, Hierarchy, NULL, Texts, Value};

use crate::reading::coverage::range_bounds;

/// What cells of one column say, by number; equal numbers say the same.
pub(super) struct Meeting<'a> {
    columns: Vec<&'a Column>,
    /// Per node of the hierarchy its first leaf and how many it has.
    leaves: Vec<(u32, u32)>,
    numbers: HashMap<Said<'a>, u32>,
    said: Vec<Said<'a>>,
    /// Numbers that met, and what they say together.
    met: HashMap<(u32, u32), u32>,
}

/// What is known of a value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Said<'a> {
    /// What all cells that are understood leave open.
    among: Among<'a>,
    /// What the others show, null included.
    beside: BTreeSet<Option<&'a str>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Among<'a> {
    #[default]
    Anything,
    /// From the first to the second, as they are spelled.
    Range(&'a str, &'a str),
    /// So many leaves from this one on, depth first.
    Leaves(u32, u32),
    /// Nothing is left: a contradiction.
    Nothing,
}

impl<'a> Meeting<'a> {
    /// Says nothing.
    pub(super) const ANYTHING: u32 = 0;

    /// Of a column in several releases, alike in type and hierarchy.
    pub(super) fn new(columns: impl Iterator<Item = &'a Column>) -> Self {
        let columns: Vec<&Column> = columns.collect();
        let hierarchy = columns.first().and_then(|column| column.hierarchy.as_deref());
        let leaves = hierarchy.map(runs_of_leaves).unwrap_or_default();
        let numbers = HashMap::from([(Said::default(), Self::ANYTHING)]);
        Meeting { columns, leaves, numbers, said: vec![Said::default()], met: HashMap::new() }
    }

    /// How many numbers there are.
    pub(super) fn n_numbers(&self) -> usize {
        self.said.len()
    }

    /// Per row of a release, by its position among those that have the column, what the cell says.
    pub(super) fn column(&mut self, position: usize) -> Vec<u32> {
        let column = self.columns[position];
        let texts: &'a Texts = &column.texts;
        let read = |text| self.read(text);
        let said: Vec<Said<'a>> = texts.iter().map(read).collect();
        let of_texts: Vec<u32> = said.into_iter().map(|said| self.number(said)).collect();
        let null = self.number(Said { among: Among::Anything, beside: BTreeSet::from([None]) });
        column.ids.iter().map(|&id| if id == NULL { null } else { of_texts[id as usize] }).collect()
    }

    /// What two say together.
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

    /// Whether nothing can be what this says.
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
                // Of two spellings of one value the lesser text is kept, whichever release it is in.
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
            // One column has ranges or a hierarchy, never both.
            (Among::Range(..), Among::Leaves(..)) | (Among::Leaves(..), Among::Range(..)) => Among::Nothing,
        }
    }

    /// What a bound means, by which bounds are ordered.
    fn value<'t>(&self, text: &'t str) -> Option<Value<'t>> {
        let column = self.columns[0];
        Value::parse(text, column.value_type, &column.notation)
    }
}

/// Per node its leaves: the first in depth-first order, and how many.
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
