//! [`Meaning`]: what the texts of a protected column can stand for.
//!
//! A protected column of an A-view shows labels: a value, a closed range `[20,29]`, a node of the column's hierarchy,
//! or `*`. A comparison with such a column asks whether the value behind the label *could* satisfy it. So every
//! condition means "there is a value that the label can stand for and that satisfies it", for each comparison by itself.
//!
//! # Guarantee
//! - No false "no": if a label was made from a value that satisfies a condition, the label could satisfy it.
//! - No false "yes": if a label could satisfy a condition, one of the values it can stand for does.
//! - The values a label can stand for follow from the label and from what the owner wrote down, never from the rows. A tree
//!   that a rule made from the rows is not used, because a reader who tries all values would learn which of them occur.
//! # Paper
//! `[EPS+12]` section 5.1, step 4: AVLIKE, there for `=` and hierarchies only
//! # Deviations
//! - A cell that is NULL is hidden and matches nothing but IS NULL.
//! - `*` can also stand for null if the column may hold nulls.
//! - A literal is a value, never a label: `zipcode = '885**'` matches nothing.
//! - Numbers, dates and truth values under MASK are compared by order as if their labels were `*`.
//! # Cost
//! Per distinct label and batch, a search in the hierarchy or the parsing of a range.

mod carried;
mod condition;
mod dates;
mod function;
mod like;
mod mask;
mod pairs;
mod point;
mod possible;
mod tree;

pub use carried::{Carried, CarriedMeaning, CarriedSide};
pub use condition::{Comparison, Condition};
pub use function::{CouldBe, CouldMatch, Side, avlike, is_avlike};
pub use like::{LetterCase, Pattern};
pub use pairs::PairFinder;
pub use point::Point;
pub use possible::Possible;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use kohort_model::hierarchy::{MaskSide, Rule};
use kohort_model::{Hierarchy, Notation, Value, ValueType};
use serde::{Deserialize, Serialize};

use mask::{Hides, Mask};
use possible::{End, Values};
use tree::Tree;

const ANYTHING: &str = "*";

/// The values that the labels of one protected column can stand for.
pub struct Meaning {
    view: String,
    column: String,
    value_type: ValueType,
    labels: Labels,
    may_be_null: bool,
}

/// The kind of labels in a column. `T` is a hierarchy, or its number while it is sent to another process.
#[derive(PartialEq, Serialize, Deserialize)]
enum Labels<T = Tree> {
    /// Nodes of a hierarchy whose values its owner listed.
    Nodes(T),
    /// Values and ranges.
    Ranges,
    /// Values and levels of dates.
    Dates,
    /// Values, and texts with stars at one end.
    Masks { side: MaskSide, width: usize, hides: Hides },
}

/// Why labels or literals can't be read as values of a column.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the variants and fields are")]
pub enum MeaningError {
    /// A leaf of the hierarchy is not of the column's type.
    #[error("column '{column}' of '{view}': {n} leaves of its hierarchy are not values of type {value_type}")]
    ForeignLeaves { view: String, column: String, value_type: ValueType, n: usize },
    #[error("column '{column}' of '{view}' is compared with a value that is not of type {value_type}")]
    NotOfType { view: String, column: String, value_type: ValueType },
    #[error("column '{column}' of '{view}' shows a label that is not a value, range or node of its hierarchy")]
    UnreadableLabel { view: String, column: String },
}

impl MeaningError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            MeaningError::ForeignLeaves { .. } => Some("give the column a hierarchy over its own values".to_owned()),
            MeaningError::NotOfType { value_type, .. } => {
                Some(format!("labels stand for values of the base column: compare with a value of type {value_type}"))
            }
            MeaningError::UnreadableLabel { .. } => Some("refresh the view".to_owned()),
        }
    }
}

impl Meaning {
    /// The meaning of `column` of `view`, whose values have this type. With a hierarchy a label is one of its nodes,
    /// otherwise a value or a range. `may_be_null` says whether `*` and the root can stand for null as well.
    ///
    /// # Errors
    /// If leaves of the hierarchy are not of the type.
    pub fn new(
        view: &str,
        column: &str,
        value_type: ValueType,
        hierarchy: Option<Arc<Hierarchy>>,
        may_be_null: bool,
    ) -> Result<Meaning, MeaningError> {
        let tree = hierarchy.map(|hierarchy| Tree::new(hierarchy, value_type)).transpose().map_err(|n| {
            MeaningError::ForeignLeaves { view: view.to_owned(), column: column.to_owned(), value_type, n }
        })?;
        let labels = tree.map_or(Labels::Ranges, Labels::Nodes);
        Ok(Meaning { view: view.to_owned(), column: column.to_owned(), value_type, labels, may_be_null })
    }

    /// The meaning of a column whose hierarchy a rule made from the column's values.
    pub fn by_rule(
        view: &str,
        column: &str,
        value_type: ValueType,
        (rule, made): (&Rule, &Hierarchy),
        may_be_null: bool,
    ) -> Meaning {
        let labels = match rule {
            Rule::Steps(_) | Rule::Flat => Labels::Ranges,
            Rule::Dates(_) => Labels::Dates,
            Rule::Mask(side) => {
                let width = made.label(made.root()).chars().count();
                Labels::Masks { side: *side, width, hides: Hides::AsManyAsStars }
            }
        };
        Meaning { view: view.to_owned(), column: column.to_owned(), value_type, labels, may_be_null }
    }

    /// The same meaning for a column that may get longer values than the rule has seen.
    pub fn with_longer_values(mut self) -> Meaning {
        if let Labels::Masks { hides, .. } = &mut self.labels {
            *hides = Hides::AnyNumber;
        }
        self
    }

    /// The view the column belongs to.
    pub fn view(&self) -> &str {
        &self.view
    }

    /// The column's name in the view.
    pub fn column(&self) -> &str {
        &self.column
    }

    /// The type of the values behind the labels.
    pub fn value_type(&self) -> ValueType {
        self.value_type
    }

    /// Whether LIKE has a meaning, because the texts of the values are known: for text, and for values under a listed
    /// hierarchy or a mask.
    pub fn has_texts(&self) -> bool {
        matches!(self.labels, Labels::Nodes(_) | Labels::Masks { .. }) || self.value_type == ValueType::Text
    }

    /// A literal as a value of the column.
    ///
    /// # Errors
    /// If the literal is not of the column's type.
    pub fn point(&self, text: &str) -> Result<Point, MeaningError> {
        Point::parse(text, self.value_type).ok_or_else(|| MeaningError::NotOfType {
            view: self.view.clone(),
            column: self.column.clone(),
            value_type: self.value_type,
        })
    }

    /// The values that a label can stand for.
    ///
    /// # Errors
    /// If the label can't be read.
    pub fn possible<'a>(&'a self, label: &'a str) -> Result<Possible<'a>, MeaningError> {
        let value = || Value::parse(label, self.value_type, &Notation::default()).map(Values::one);
        let everything = || (label == ANYTHING).then(|| Values::everything(self.value_type));
        let values = match &self.labels {
            Labels::Nodes(tree) => tree.node(label).map(|node| Values::Leaves { tree, node }),
            Labels::Ranges => everything().or_else(|| self.range(label)).or_else(value),
            Labels::Dates => everything().or_else(|| dates::range(label, self.value_type)).or_else(value),
            Labels::Masks { side, width, hides } => {
                Mask::read(label, *side, *width, *hides, self.value_type).map(Values::Masked).or_else(value)
            }
        };
        let values = values
            .ok_or_else(|| MeaningError::UnreadableLabel { view: self.view.clone(), column: self.column.clone() })?;
        let is_everything = match &values {
            Values::Leaves { node, .. } => *node == 0,
            Values::Range { .. } => label == ANYTHING,
            Values::Masked(mask) => mask.is_everything(),
        };
        Ok(Possible { values, null: self.may_be_null && is_everything })
    }

    fn range<'a>(&self, label: &'a str) -> Option<Values<'a>> {
        if !self.value_type.is_ordered() {
            return None;
        }
        let bounds = label.strip_prefix('[')?;
        let (bounds, end) = match bounds.strip_suffix(']') {
            Some(bounds) => (bounds, End::Included),
            None => (bounds.strip_suffix(')')?, End::Excluded),
        };
        let (low, high) = bounds.split_once(',')?;
        let bound = |text: &'a str| Value::parse(text, self.value_type, &Notation::default());
        let (low, high) = (bound(low)?, bound(high)?);
        (low <= high).then_some(Values::Range { low: Some(low), high: Some(high), end })
    }

    #[cfg(test)]
    fn hierarchy(&self) -> Option<Arc<Hierarchy>> {
        match &self.labels {
            Labels::Nodes(tree) => Some(Arc::clone(tree.hierarchy())),
            Labels::Ranges | Labels::Dates | Labels::Masks { .. } => None,
        }
    }
}

impl fmt::Debug for Meaning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Meaning({}.{})", self.view, self.column)
    }
}

impl PartialEq for Meaning {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
            || (self.view == other.view
                && self.column == other.column
                && self.value_type == other.value_type
                && self.may_be_null == other.may_be_null
                && self.labels == other.labels)
    }
}

impl Eq for Meaning {}

impl Hash for Meaning {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.view, &self.column, self.value_type, self.may_be_null).hash(state);
    }
}

#[cfg(test)]
mod tests;
