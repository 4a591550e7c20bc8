//! [`KnownTrees`]: trees over the values of columns, kept from one read to the next.
//!
//! A read shows few rows, and to make trees of their values would take as long as to find them. Where values are few,
//! most reads see only such as were seen before.

use std::sync::{Arc, PoisonError, RwLock};

use kohort_model::hierarchy::Rule;
use kohort_model::{Column, Hierarchy, Texts};

use crate::hierarchies::{Hierarchies, HierarchyFault};

/// Of columns that have more values no tree is kept: each new value would make it anew.
const MOST_VALUES: usize = 512;

/// Per column the tree of values that were read.
pub(super) struct KnownTrees {
    /// The DGHs as they were when the view was made.
    hierarchies: Hierarchies,
    of_column: Vec<RwLock<Known>>,
}

/// What is known of a column.
#[derive(Clone, Default)]
enum Known {
    #[default]
    Nothing,
    Tree(Arc<Hierarchy>),
    /// It has too many values.
    TooMuch,
}

impl KnownTrees {
    /// Of columns that have so many values, as far as that is known.
    pub(super) fn new(hierarchies: Hierarchies, n_values: impl Iterator<Item = usize>) -> KnownTrees {
        let known = |n_values: usize| if n_values > MOST_VALUES { Known::TooMuch } else { Known::Nothing };
        KnownTrees { hierarchies, of_column: n_values.map(|n_values| RwLock::new(known(n_values))).collect() }
    }

    /// A tree of a DGH that has all values of the column at a position as leaves; the root is the label of everything,
    /// where that is fixed.
    ///
    /// # Errors
    /// Where the DGH does not take them.
    pub(super) fn of(
        &self,
        position: usize,
        name: &str,
        column: &Column,
        root: Option<&str>,
    ) -> Result<Arc<Hierarchy>, HierarchyFault> {
        let make = |values: &Texts| self.hierarchies.tree_for(name, root, values, column.value_type, &column.notation);
        // How long masks are without a root depends on which values are looked at.
        if root.is_none() && matches!(self.hierarchies.rule(name), Some(Rule::Mask(_))) {
            return make(&column.texts);
        }
        let known = match self.of_column[position].read().unwrap_or_else(PoisonError::into_inner).clone() {
            Known::TooMuch => return make(&column.texts),
            Known::Tree(known) if column.texts.iter().all(|value| known.leaf(value).is_some()) => return Ok(known),
            Known::Tree(known) => Some(known),
            Known::Nothing => None,
        };
        let own = make(&column.texts)?;
        let mut values = column.texts.clone();
        if let (Some(_), Some(known)) = (self.hierarchies.rule(name), &known) {
            for value in known.leaves().into_iter().map(|leaf| known.label(leaf)) {
                if own.leaf(value).is_none() {
                    values.push(value);
                }
            }
        }
        let known = if values.len() <= MOST_VALUES {
            Known::Tree(make(&values).unwrap_or_else(|_| Arc::clone(&own)))
        } else {
            Known::TooMuch
        };
        *self.of_column[position].write().unwrap_or_else(PoisonError::into_inner) = known;
        Ok(own)
    }
}
