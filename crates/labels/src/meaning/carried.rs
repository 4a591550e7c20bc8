//! [`Carried`]: a function of labels as it is sent to the process that executes a plan.
//!
//! Hierarchies are large and shared by functions, so they are sent beside them, and a function has the number of its
//! hierarchy.

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use kohort_model::{Hierarchy, ValueType};
use serde::{Deserialize, Serialize};

use super::tree::Tree;
use super::{Comparison, Condition, CouldBe, CouldMatch, Labels, Meaning, Side};

/// A function of labels.
#[derive(Serialize, Deserialize)]
pub enum Carried {
    /// [`CouldBe`].
    CouldBe {
        /// The meaning of the labels.
        meaning: CarriedMeaning,
        /// The condition.
        condition: Condition,
    },
    /// [`CouldMatch`].
    CouldMatch {
        /// The first argument.
        left: CarriedSide,
        /// The comparison.
        comparison: Comparison,
        /// The second argument.
        right: CarriedSide,
    },
}

/// A [`Side`].
#[derive(Serialize, Deserialize)]
pub enum CarriedSide {
    /// Labels.
    Protected(CarriedMeaning),
    /// Values of the type with this word.
    Raw(String),
}

/// A [`Meaning`].
#[derive(Serialize, Deserialize)]
pub struct CarriedMeaning {
    view: String,
    column: String,
    value_type: String,
    labels: Labels<usize>,
    may_be_null: bool,
}

impl Carried {
    /// A function of labels, whose hierarchies are added to the list; `None` for other functions.
    pub fn of(function: &ScalarUDF, hierarchies: &mut Vec<Arc<Hierarchy>>) -> Option<Carried> {
        if let Some(function) = function.inner().downcast_ref::<CouldBe>() {
            let meaning = CarriedMeaning::of(function.meaning(), hierarchies);
            return Some(Carried::CouldBe { meaning, condition: function.condition().clone() });
        }
        let function = function.inner().downcast_ref::<CouldMatch>()?;
        let (left, right) = function.sides();
        let (left, right) = (CarriedSide::of(left, hierarchies), CarriedSide::of(right, hierarchies));
        Some(Carried::CouldMatch { left, comparison: function.comparison(), right })
    }

    /// The function; `None` if it was not written by [`Carried::of`].
    pub fn function(self, hierarchies: &[Arc<Hierarchy>]) -> Option<ScalarUDF> {
        Some(match self {
            Carried::CouldBe { meaning, condition } => {
                ScalarUDF::from(CouldBe::new(Arc::new(meaning.meaning(hierarchies)?), condition))
            }
            Carried::CouldMatch { left, comparison, right } => {
                ScalarUDF::from(CouldMatch::new(left.side(hierarchies)?, comparison, right.side(hierarchies)?))
            }
        })
    }
}

impl CarriedSide {
    fn of(side: &Side, hierarchies: &mut Vec<Arc<Hierarchy>>) -> CarriedSide {
        match side {
            Side::Protected(meaning) => CarriedSide::Protected(CarriedMeaning::of(meaning, hierarchies)),
            Side::Raw(value_type) => CarriedSide::Raw(value_type.word().to_owned()),
        }
    }

    fn side(self, hierarchies: &[Arc<Hierarchy>]) -> Option<Side> {
        Some(match self {
            CarriedSide::Protected(meaning) => Side::Protected(Arc::new(meaning.meaning(hierarchies)?)),
            CarriedSide::Raw(word) => Side::Raw(ValueType::from_word(&word)?),
        })
    }
}

impl<T> Labels<T> {
    /// The same labels with another form of their hierarchy; `None` if there is none.
    fn with<U>(&self, hierarchy: impl FnOnce(&T) -> Option<U>) -> Option<Labels<U>> {
        Some(match self {
            Labels::Nodes(own) => Labels::Nodes(hierarchy(own)?),
            Labels::Ranges => Labels::Ranges,
            Labels::Dates => Labels::Dates,
            Labels::Masks { side, width, hides } => Labels::Masks { side: *side, width: *width, hides: *hides },
        })
    }
}

impl CarriedMeaning {
    fn of(meaning: &Meaning, hierarchies: &mut Vec<Arc<Hierarchy>>) -> CarriedMeaning {
        let mut number = |tree: &Tree| {
            let own = tree.hierarchy();
            let known = hierarchies.iter().position(|known| Arc::ptr_eq(known, own));
            known.unwrap_or_else(|| {
                hierarchies.push(Arc::clone(own));
                hierarchies.len() - 1
            })
        };
        CarriedMeaning {
            view: meaning.view.clone(),
            column: meaning.column.clone(),
            value_type: meaning.value_type.word().to_owned(),
            labels: meaning.labels.with(|tree| Some(number(tree))).expect("every hierarchy gets a number"),
            may_be_null: meaning.may_be_null,
        }
    }

    fn meaning(self, hierarchies: &[Arc<Hierarchy>]) -> Option<Meaning> {
        let value_type = ValueType::from_word(&self.value_type)?;
        let labels = self.labels.with(|&number| Tree::new(Arc::clone(hierarchies.get(number)?), value_type).ok())?;
        let CarriedMeaning { view, column, may_be_null, .. } = self;
        Some(Meaning { view, column, value_type, labels, may_be_null })
    }
}

#[cfg(test)]
mod tests {
    use kohort_model::hierarchy::MaskSide;

    use super::super::mask::Hides;
    use super::super::{LetterCase, Pattern};
    use super::*;

    fn there_and_back(function: &ScalarUDF) -> ScalarUDF {
        let mut hierarchies = Vec::new();
        let carried = Carried::of(function, &mut hierarchies).unwrap();
        let sent = serde_json::to_string(&carried).unwrap();
        let hierarchies: Vec<Arc<Hierarchy>> =
            hierarchies.iter().map(|tree| Arc::new(Hierarchy::from_nodes(tree.nodes()).unwrap())).collect();
        serde_json::from_str::<Carried>(&sent).unwrap().function(&hierarchies).unwrap()
    }

    #[test]
    fn a_function_of_labels_is_the_same_after_it_was_sent() {
        let tree = Hierarchy::from_edges("21;young\n22;young\n60;old\nyoung;*\nold;*\n").unwrap();
        let nodes = Arc::new(Meaning::new("v", "age", ValueType::Integer, Some(Arc::new(tree)), true).unwrap());
        let ranges = Arc::new(Meaning::new("v", "born", ValueType::Date, None, false).unwrap());
        let masks = Labels::Masks { side: MaskSide::Left, width: 5, hides: Hides::AnyNumber };
        let (view, column) = ("v".to_owned(), "zip".to_owned());
        let masks = Meaning { view, column, value_type: ValueType::Text, labels: masks, may_be_null: false };
        let point = |meaning: &Meaning, text: &str| meaning.point(text).unwrap();
        let like = |case| Pattern::new("8!%_", Some('!'), case);
        for (meaning, condition) in [
            (&nodes, Condition::Compare(Comparison::GreaterOrEqual, point(&nodes, "22"))),
            (&nodes, Condition::In(vec![point(&nodes, "21"), point(&nodes, "022")])),
            (&nodes, Condition::Null),
            (&ranges, Condition::NotBetween(point(&ranges, "1984-03-17"), point(&ranges, "1990-01-01"))),
            (&Arc::new(masks), Condition::NotLike(like(LetterCase::Ignored))),
            (&nodes, Condition::Like(like(LetterCase::Matters))),
        ] {
            let function = ScalarUDF::from(CouldBe::new(Arc::clone(meaning), condition));
            assert_eq!(there_and_back(&function), function);
        }
        for right in [Side::Raw(ValueType::Integer), Side::Protected(Arc::clone(&nodes))] {
            let match_ = CouldMatch::new(Side::Protected(Arc::clone(&nodes)), Comparison::Less, right);
            let function = ScalarUDF::from(match_);
            assert_eq!(there_and_back(&function), function);
        }
    }
}
