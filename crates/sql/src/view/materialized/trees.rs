//! [`KnownTrees`]: trees over the values of columns, kept from one read to the next.
//!
//! A read shows few rows, and to make trees of their values would take as long as to find them. Most reads see only values
//! that were there when the view was made or opened, or were read since.

use std::sync::{Arc, PoisonError, RwLock};

use kohort_core::changing::GrowingTree;
use kohort_model::hierarchy::Rule;
use kohort_model::{Column, Hierarchy, Role, Texts};

use super::load::empty_columns;
use super::members::MISSING;
use super::memory::Memory;
use crate::hierarchies::{DghError, Hierarchies};
use crate::view::{Definition, ViewError};

/// Trees of more values are not kept.
const MOST_VALUES: usize = 1 << 16;

/// Trees of more values do not grow by what is read: each new value makes them anew.
const MOST_GROWING: usize = 512;

/// Per column the tree of values that are known.
pub(super) struct KnownTrees {
    /// The DGHs as they were when the view was made.
    hierarchies: Hierarchies,
    of_column: Vec<RwLock<Option<Arc<Hierarchy>>>>,
}

impl KnownTrees {
    /// Knows nothing.
    pub(super) fn none() -> KnownTrees {
        KnownTrees { hierarchies: Hierarchies::new(), of_column: Vec::new() }
    }

    /// Knows the values of quasi columns.
    ///
    /// # Errors
    /// Where a column can't have its role.
    pub(super) fn of_values(
        hierarchies: Hierarchies,
        definition: &Definition,
        memory: &Memory,
    ) -> Result<KnownTrees, ViewError> {
        let quasi = definition.with_role(Role::Quasi);
        let known = |(position, mut column): (usize, Column)| {
            let place = quasi.iter().position(|&quasi| quasi == position)?;
            let name = definition.columns[position].hierarchy.as_deref()?;
            column.texts = values_of(&memory.trees[place]);
            let root = memory.made.root(definition, position);
            let tree = || hierarchies.tree_for(name, root, &column.texts, column.value_type, &column.notation).ok();
            if column.texts.len() <= MOST_VALUES { tree() } else { None }
        };
        let columns = empty_columns(definition)?.into_iter().enumerate();
        let of_column = columns.map(known).map(RwLock::new).collect();
        Ok(KnownTrees { hierarchies, of_column })
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
    ) -> Result<Arc<Hierarchy>, DghError> {
        let make = |values: &Texts| self.hierarchies.tree_for(name, root, values, column.value_type, &column.notation);
        // How long masks are without a root depends on which values are looked at.
        if root.is_none() && matches!(self.hierarchies.rule(name), Some(Rule::Mask(_))) {
            return make(&column.texts);
        }
        let known = self.of_column[position].read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = &known
            && column.texts.iter().all(|value| known.leaf(value).is_some())
        {
            return Ok(Arc::clone(known));
        }
        let own = make(&column.texts)?;
        let mut values = column.texts.clone();
        if let (Some(_), Some(known)) = (self.hierarchies.rule(name), &known) {
            for value in known.leaves().into_iter().map(|leaf| known.label(leaf)).take(MOST_GROWING) {
                if own.leaf(value).is_none() {
                    values.push(value);
                }
            }
        }
        if values.len() <= MOST_GROWING {
            let both = make(&values).unwrap_or_else(|_| Arc::clone(&own));
            *self.of_column[position].write().unwrap_or_else(PoisonError::into_inner) = Some(both);
        }
        Ok(own)
    }
}

/// The values below a tree's root.
fn values_of(tree: &GrowingTree) -> Texts {
    let mut is_inner = vec![false; tree.n_nodes()];
    let nodes = || 0..tree.n_nodes() as u32;
    nodes().filter_map(|node| tree.parent(node)).for_each(|parent| is_inner[parent as usize] = true);
    let is_value = |&node: &u32| !is_inner[node as usize] && node != 0 && tree.label(node) != MISSING;
    nodes().filter(is_value).map(|node| tree.label(node)).collect()
}
