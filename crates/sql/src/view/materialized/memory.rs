//! [`Memory`]: what changes of a view need in memory, because searching the hidden tables would be slower. It is made from
//! the hidden tables when a folder is opened.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use indexmap::IndexSet;
use kohort_core::changing::{
    ClassId, ClassIndex, GrowingTree, Member, MemberKey, PersonKey, ReferenceColumn, Standard,
};
use kohort_labels::meaning::Meaning;
use kohort_labels::rewrite::Meanings;
use kohort_model::{Column, Hierarchy, Requirement, Role, Texts};
use kohort_store::Change;
use serde::{Deserialize, Serialize};

use super::classes::Labelled;
use super::error::MaterializedError;
use super::follow::COUNTERS;
use super::layout::Layout;
use super::load::empty_columns;
use super::make::MADE;
use super::members::{MISSING, NewRow, asks_of_values, tuple_columns};
use crate::hierarchies::Hierarchies;
use crate::policy::Pair;
use crate::view::version::raise::raised_name;
use crate::view::{Definition, ViewError};

/// The text for the nodes of a row with values that are in no DGH.
pub(super) const NO_NODES: &str = "[]";

/// Trees of more values are not kept.
const MOST_VALUES: usize = 1 << 16;

/// What changes of a materialized view need in memory.
pub(super) struct Memory {
    /// The DGHs as they were when the view was made.
    pub(super) hierarchies: Arc<Hierarchies>,
    /// Per quasi column.
    pub(super) trees: Vec<GrowingTree>,
    pub(super) index: ClassIndex,
    /// Per position of tuples.
    pub(super) values: Vec<Values>,
    pub(super) standard: Standard,
    /// Numbers of classes of rows that are shown by themselves, by their labels.
    pub(super) alone: HashMap<Vec<Option<String>>, i64>,
    /// Numbers of choices by their content, and whether they refuse anything.
    pub(super) choices: HashMap<Vec<u8>, (i64, bool)>,
    /// The numbers of the choices that refuse something.
    pub(super) restricting: HashSet<i64>,
    /// Classes in which somebody may refuse something.
    pub(super) restricted: HashSet<i64>,
    /// Restricted classes that are not published yet.
    pub(super) newly_restricted: Vec<i64>,
    /// Classes that are new and not published yet.
    pub(super) founded: Vec<Labelled>,
    /// Classes that a row joined or left, which is not published yet.
    pub(super) changed: BTreeSet<i64>,
    pub(super) counters: Counters,
    pub(super) made: Made,
}

/// Numbers that only increase. Two states of a view with the same counters show the same rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counters {
    pub(super) next_class: u64,
    pub(super) next_atom: u64,
    pub(super) epoch: u64,
    /// When the view was made, in microseconds from 1970, because an earlier view of the same name had other classes.
    pub(super) made: i64,
}

/// Everything that is fixed when a view is made.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Made {
    /// DGHs by name, as texts.
    pub(super) hierarchies: BTreeMap<String, String>,
    /// Purposes and recipients.
    pub(super) pairs: Vec<Pair>,
    /// The pairs for which every class is marked as restricted if somebody in it may refuse a quasi column.
    pub(super) marked: Vec<Pair>,
    /// For each position of tuples, how many persons held each value number, if shares are asked for.
    pub(super) counts: Vec<Vec<u64>>,
    /// For each quasi column, the label of everything.
    pub(super) roots: Vec<String>,
    /// The same per sensitive column.
    pub(super) sensitive_roots: Vec<String>,
    /// The columns of the table of choices, and which of them names the person.
    pub(super) policy_columns: Vec<String>,
    pub(super) person_column: Option<usize>,
    /// The NCP when the view was made; `None` while it is being made.
    pub(super) ncp_when_made: Option<f64>,
}

impl Made {
    /// The label of everything in a quasi or sensitive column.
    pub(super) fn root(&self, definition: &Definition, position: usize) -> Option<&str> {
        let role = definition.columns[position].role;
        let roots = match role {
            Role::Quasi => &self.roots,
            Role::Sensitive => &self.sensitive_roots,
            Role::Identifier | Role::Key | Role::Plain | Role::PersonK | Role::Drop => return None,
        };
        let place = definition.with_role(role).into_iter().position(|other| other == position)?;
        roots.get(place).map(String::as_str)
    }
}

/// The values of a column, by their numbers.
pub(super) type Values = IndexSet<Option<String>>;

/// The number of a value, a new one if the value is new.
pub(super) fn number(values: &mut Values, text: &Option<String>) -> u32 {
    values.get_index_of(text).unwrap_or_else(|| values.insert_full(text.clone()).0) as u32
}

impl Memory {
    /// An empty view over these DGHs.
    pub(super) fn new(definition: &Definition, made: Made, counters: Counters) -> Result<Memory, ViewError> {
        let damaged = || MaterializedError::Damaged { view: definition.name.clone() };
        let mut hierarchies = Hierarchies::default();
        for (name, record) in &made.hierarchies {
            hierarchies.restore(name, record).ok_or_else(damaged)?;
        }
        let quasi = definition.with_role(Role::Quasi);
        let tree = |(&position, root): (&usize, &String)| {
            let name = definition.columns[position].hierarchy.as_deref().unwrap_or_default();
            hierarchies.tree(name).map_or_else(|| GrowingTree::new(root), |tree| GrowingTree::of(&tree))
        };
        let trees: Vec<GrowingTree> = quasi.iter().zip(&made.roots).map(tree).collect();
        if trees.len() != quasi.len() {
            return Err(damaged().into());
        }
        let names = tuple_columns(definition, &made.pairs);
        let columns = names.iter().enumerate().map(|(position, name)| ReferenceColumn {
            name: name.clone(),
            counts: made.counts.get(position).cloned().unwrap_or_default(),
        });
        let standard = Standard::compile(&requirements(definition, &made.pairs), &columns.collect::<Vec<_>>())
            .map_err(MaterializedError::Standard)?;
        Ok(Memory {
            index: ClassIndex::new(quasi.len()),
            values: names.iter().map(|_| Values::default()).collect(),
            alone: HashMap::new(),
            choices: HashMap::new(),
            restricting: HashSet::new(),
            restricted: HashSet::new(),
            newly_restricted: Vec::new(),
            founded: Vec::new(),
            changed: BTreeSet::new(),
            hierarchies: Arc::new(hierarchies),
            trees,
            standard,
            counters,
            made,
        })
    }

    /// A value and its ancestors in the DGH of a column; `None` if the DGH does not have the value.
    pub(super) fn path(
        &self,
        definition: &Definition,
        position: usize,
        text: &str,
        column: &Column,
    ) -> Option<Vec<String>> {
        let name = definition.columns[position].hierarchy.as_deref()?;
        let mut values = Texts::new();
        values.push(text);
        let root = self.made.root(definition, position);
        let tree = self.hierarchies.tree_for(name, root, &values, column.value_type, &column.notation).ok()?;
        Some(tree.path(tree.leaf(text)?).map(|node| tree.label(node).to_owned()).collect())
    }

    /// The path of a missing value, which is a child of the root.
    pub(super) fn missing_path(&self, definition: &Definition, position: usize) -> Option<Vec<String>> {
        Some(vec![MISSING.to_owned(), self.made.root(definition, position)?.to_owned()])
    }

    /// The row as a member; `None` if a DGH does not have its values. New values are added to the trees and numbered.
    pub(super) fn member(
        &mut self,
        row: &NewRow,
        choice: Option<i64>,
        key: MemberKey,
        person: PersonKey,
    ) -> Option<Member> {
        let mut nodes = Vec::with_capacity(self.trees.len());
        for (tree, path) in self.trees.iter_mut().zip(row.paths.as_ref()?) {
            let node = match path.node.get() {
                Some(&node) => node,
                None => {
                    let labels: Vec<&str> = path.labels.iter().map(String::as_str).collect();
                    let node = tree.add_path(&labels).ok()?;
                    *path.node.get_or_init(|| node)
                }
            };
            nodes.push(node);
        }
        let mut values = row.values.clone();
        values.extend(choice.map(|choice| Some(choice.to_string())));
        let tuple = self.values.iter_mut().zip(&values).map(|(known, value)| number(known, value)).collect();
        Some(Member { key, person, k: row.k, nodes, tuple })
    }

    /// The labels of nodes; `None` for the label of a missing value.
    pub(super) fn labels(&self, nodes: &[u32]) -> Vec<Option<String>> {
        let label = |(tree, &node): (&GrowingTree, &u32)| Some(tree.label(node).to_owned()).filter(|l| l != MISSING);
        self.trees.iter().zip(nodes).map(label).collect()
    }

    /// The labels of nodes as text, as the table of rows keeps them.
    pub(super) fn nodes_text(&self, nodes: &[u32]) -> String {
        serde_json::to_string(&self.labels(nodes)).expect("texts are JSON")
    }

    /// The nodes of labels.
    pub(super) fn nodes<T: AsRef<str>>(&self, labels: &[Option<T>]) -> Option<Vec<u32>> {
        let node = |(tree, label): (&GrowingTree, &Option<T>)| tree.node(label.as_ref().map_or(MISSING, AsRef::as_ref));
        self.trees.iter().zip(labels).map(node).collect()
    }

    /// How many rows a class shows as a crowd.
    pub(super) fn n_members(&self, number: i64) -> u64 {
        self.index.get(ClassId(number.cast_unsigned())).map_or(0, |(_, n_members)| n_members)
    }

    /// Keeps the counters, within a change.
    pub(super) fn put_counters(&self, layout: &Layout, change: &Change) -> Result<(), MaterializedError> {
        let counters = serde_json::to_string(&self.counters).expect("numbers are JSON");
        Ok(change.put_record(COUNTERS, &layout.definition.name, &counters)?)
    }

    /// Keeps what is fixed when a view is made, within a change.
    pub(super) fn put_made(&self, layout: &Layout, change: &Change) -> Result<(), MaterializedError> {
        let made = serde_json::to_string(&self.made).expect("texts and numbers are JSON");
        Ok(change.put_record(MADE, &layout.definition.name, &made)?)
    }

    /// For each column, a tree over the values that are known now, `None` without a DGH or with too many values. Reads
    /// that show no other values use it, because making a tree of the values of a few rows takes as long as finding the
    /// rows.
    pub(super) fn known_trees(&self, definition: &Definition) -> Result<Vec<Option<Arc<Hierarchy>>>, ViewError> {
        let tree = |(position, column): (usize, Column)| {
            let (role, name) = (column.role, definition.columns[position].hierarchy.as_deref()?);
            let place = definition.with_role(role).into_iter().position(|other| other == position)?;
            let values: Texts = match role {
                Role::Quasi => values_of(&self.trees[place]),
                // Tuples begin with the sensitive columns.
                Role::Sensitive => self.values[place].iter().flatten().collect(),
                _ => return None,
            };
            let root = self.made.root(definition, position);
            let tree = || self.hierarchies.tree_for(name, root, &values, column.value_type, &column.notation).ok();
            if values.len() <= MOST_VALUES { tree() } else { None }
        };
        Ok(empty_columns(definition)?.into_iter().enumerate().map(tree).collect())
    }

    /// What the labels of the view's columns can stand for.
    pub(super) fn meanings(&self, definition: &Definition) -> Result<Meanings, ViewError> {
        let columns = empty_columns(definition)?;
        let meaning = |position: usize| {
            let (view, said) = (definition.name.as_str(), &definition.columns[position]);
            let value_type = columns[position].value_type;
            let name = said.hierarchy.as_deref().unwrap_or_default();
            definition.is_labelled(position).then(|| match self.hierarchies.rule(name) {
                Some(rule) => {
                    let root = Hierarchy::flat(self.made.root(definition, position).unwrap_or("*"), []);
                    let meaning = Meaning::by_rule(view, &said.name, value_type, (rule, &root), true);
                    Ok(Arc::new(meaning.with_longer_values()))
                }
                None => Meaning::new(view, &said.name, value_type, self.hierarchies.tree(name), true).map(Arc::new),
            })
        };
        let meanings: Result<Vec<_>, _> =
            (0..definition.columns.len()).map(|position| meaning(position).transpose()).collect();
        Ok(meanings.map_err(ViewError::Meaning)?.into())
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

/// What every atom must satisfy: the view's requirements, on sensitive values as they are and as readers see them raised.
pub(super) fn requirements(definition: &Definition, pairs: &[Pair]) -> Vec<Requirement> {
    let mut requirements = definition.requirements();
    if asks_of_values(definition) {
        for position in definition.with_role(Role::Sensitive) {
            for number in 1..=pairs.len() {
                let name = raised_name(&definition.columns[position].name, number);
                requirements.extend(definition.sensitive_requirements(&name));
            }
        }
    }
    requirements
}
