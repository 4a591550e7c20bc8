//! [`Memory`]: what finds things faster than the hidden tables do, made from them when a folder is opened.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use kohort_core::changing::{
    ClassId, ClassIndex, Effect, GrowingTree, Member, MemberKey, PersonKey, ReferenceColumn, Standard,
};
use kohort_labels::meaning::Meaning;
use kohort_labels::rewrite::Meanings;
use kohort_model::{Column, Hierarchy, Requirement, Role, Texts};
use serde::{Deserialize, Serialize};

use super::cells::KeptCells;
use super::classes::Labelled;
use super::error::MaterializedError;
use super::load::empty_columns;
use super::members::{MISSING, NewRow, asks_of_values, raised_name, tuple_columns};
use crate::hierarchies::Hierarchies;
use crate::policy::Pair;
use crate::view::{Definition, ViewError};

/// What is kept in memory of a materialized view.
pub(super) struct Memory {
    /// The DGHs as they were when the view was made.
    pub(super) hierarchies: Hierarchies,
    /// Purposes and recipients as they were when the view was made.
    pub(super) pairs: Vec<Pair>,
    /// Per quasi column.
    pub(super) trees: Vec<GrowingTree>,
    pub(super) index: ClassIndex,
    /// Per position of tuples.
    pub(super) values: Vec<Values>,
    pub(super) standard: Standard,
    /// Numbers of classes of rows that are shown by themselves, by their labels.
    pub(super) alone: HashMap<Vec<Option<String>>, i64>,
    /// Numbers of choices by what they say, and whether they refuse anything.
    pub(super) choices: HashMap<Vec<u8>, (i64, bool)>,
    /// Those of them that refuse something.
    pub(super) restricting: HashSet<i64>,
    /// Classes in which somebody may refuse something.
    pub(super) restricted: HashSet<i64>,
    /// Those of them that readers were not told of.
    pub(super) newly_restricted: Vec<i64>,
    /// Classes that are new, or have other labels, since what readers find classes by was last told.
    pub(super) touched: Vec<Labelled>,
    /// Classes that show other rows than they did when readers were last told.
    pub(super) joined: BTreeSet<i64>,
    /// Classes that show more or fewer rows than when readers were last told.
    pub(super) recounted: BTreeSet<i64>,
    /// The rows that readers have in memory.
    pub(super) kept: Option<Arc<KeptCells>>,
    pub(super) counters: Counters,
    pub(super) made: Made,
}

/// Numbers that only rise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counters {
    pub(super) next_class: u64,
    pub(super) next_atom: u64,
    pub(super) epoch: u64,
    /// When the view was made, in microseconds from 1970: a view of the same name that was made before had other classes.
    #[serde(default)]
    pub(super) made: i64,
}

/// What was fixed when a view was made.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Made {
    /// DGHs by name, as texts.
    pub(super) hierarchies: BTreeMap<String, String>,
    /// Purposes and recipients.
    pub(super) pairs: Vec<(Option<String>, Option<String>)>,
    /// Those of them for which it is known of every class whether somebody in it may refuse a quasi column.
    #[serde(default)]
    pub(super) marked: Vec<(Option<String>, Option<String>)>,
    /// Per position of tuples how many persons held each value number, where shares are asked for.
    pub(super) counts: Vec<Vec<u64>>,
    /// Per quasi column the label of everything.
    pub(super) roots: Vec<String>,
    /// The same per sensitive column; not known of views that were made when it was not kept.
    #[serde(default)]
    pub(super) sensitive_roots: Vec<String>,
    /// The columns of the table of choices, and which of them names the person.
    pub(super) policy_columns: Vec<String>,
    pub(super) person_column: Option<usize>,
    /// The NCP when it was made; not known of views for which another measure was kept.
    #[serde(default)]
    pub(super) ncp_when_made: Option<f64>,
}

impl Made {
    /// The label of everything in a column, where it is known.
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

/// The numbers of a column's values.
#[derive(Clone, Default)]
pub(super) struct Values {
    numbers: HashMap<Option<String>, u32>,
    texts: Vec<Option<String>>,
}

impl Values {
    /// The number of a value, a new one where it has none.
    pub(super) fn number(&mut self, text: &Option<String>) -> u32 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = self.texts.len() as u32;
        self.numbers.insert(text.clone(), number);
        self.texts.push(text.clone());
        number
    }

    pub(super) fn text(&self, number: u32) -> Option<&Option<String>> {
        self.texts.get(number as usize)
    }

    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }
}

impl Memory {
    /// An empty view over these DGHs.
    pub(super) fn new(definition: &Definition, made: Made, counters: Counters) -> Result<Memory, ViewError> {
        let damaged = || MaterializedError::Damaged { view: definition.name.clone() };
        let mut hierarchies = Hierarchies::new();
        for (name, record) in &made.hierarchies {
            hierarchies.restore(name, record).ok_or_else(damaged)?;
        }
        let pairs = pairs_of(&made.pairs);
        let quasi = definition.with_role(Role::Quasi);
        let tree = |(&position, root): (&usize, &String)| {
            let name = definition.columns[position].hierarchy.as_deref().unwrap_or_default();
            hierarchies.tree(name).map_or_else(|| GrowingTree::new(root), |tree| GrowingTree::of(&tree))
        };
        let trees: Vec<GrowingTree> = quasi.iter().zip(&made.roots).map(tree).collect();
        if trees.len() != quasi.len() {
            return Err(damaged().into());
        }
        let names = tuple_columns(definition, &pairs);
        let columns = names.iter().enumerate().map(|(position, name)| ReferenceColumn {
            name: name.clone(),
            counts: made.counts.get(position).cloned().unwrap_or_default(),
        });
        let standard = Standard::compile(&requirements(definition, &pairs), &columns.collect::<Vec<_>>())
            .map_err(MaterializedError::Standard)?;
        Ok(Memory {
            index: ClassIndex::new(quasi.len()),
            values: names.iter().map(|_| Values::default()).collect(),
            alone: HashMap::new(),
            choices: HashMap::new(),
            restricting: HashSet::new(),
            restricted: HashSet::new(),
            newly_restricted: Vec::new(),
            touched: Vec::new(),
            joined: BTreeSet::new(),
            recounted: BTreeSet::new(),
            kept: None,
            hierarchies,
            pairs,
            trees,
            standard,
            counters,
            made,
        })
    }

    /// A value and its ancestors in the DGH of a column; `None` where it has none.
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

    /// The path of a missing value: next to the root.
    pub(super) fn missing_path(&self, definition: &Definition, position: usize) -> Option<Vec<String>> {
        Some(vec![MISSING.to_owned(), self.made.root(definition, position)?.to_owned()])
    }

    /// The row as a member; `None` where a DGH does not take its values. Trees and numbers grow.
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
        let tuple = self.values.iter_mut().zip(&values).map(|(known, value)| known.number(value)).collect();
        Some(Member { key, person, k: row.k, nodes, tuple })
    }

    /// The labels of nodes, `None` where the label is that of a missing value.
    pub(super) fn labels(&self, nodes: &[u32]) -> Vec<Option<String>> {
        let label = |(tree, &node): (&GrowingTree, &u32)| Some(tree.label(node).to_owned()).filter(|l| l != MISSING);
        self.trees.iter().zip(nodes).map(label).collect()
    }

    /// The nodes of labels.
    pub(super) fn nodes(&self, labels: &[Option<String>]) -> Option<Vec<u32>> {
        let node = |(tree, label): (&GrowingTree, &Option<String>)| tree.node(label.as_deref().unwrap_or(MISSING));
        self.trees.iter().zip(labels).map(node).collect()
    }

    /// How many rows a class shows as a crowd.
    pub(super) fn n_members(&self, number: i64) -> u64 {
        self.index.get(ClassId(number.cast_unsigned())).map_or(0, |(_, n_members)| n_members)
    }

    /// Notes which classes show more or fewer rows by what a change does.
    pub(super) fn recount(&mut self, effects: &[Effect]) {
        let class = |effect: &Effect| match effect {
            Effect::Found { class, .. }
            | Effect::Admit { class, .. }
            | Effect::Remove { class, .. }
            | Effect::Withdraw { class, .. }
            | Effect::Dissolve { class } => Some(class.0.cast_signed()),
            _ => None,
        };
        self.recounted.extend(effects.iter().filter_map(class));
    }

    pub(super) fn put_class(&mut self, class: ClassId, nodes: &[u32], n_members: u64) {
        self.index.put(&self.trees, class, nodes, n_members);
    }
}

impl Memory {
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

/// Purposes and recipients as they are kept.
pub(super) fn pairs_of(kept: &[(Option<String>, Option<String>)]) -> Vec<Pair> {
    let pair = |(purpose, recipient): &(Option<String>, Option<String>)| Pair {
        purpose: purpose.clone(),
        recipient: recipient.clone(),
    };
    kept.iter().map(pair).collect()
}

/// What every atom must satisfy: the view's requirements, on sensitive values as they are and as readers see them.
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
