//! [`NewRow`]: a row of a view's query, as a materialized view sees it.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use chrono::NaiveDate;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use kohort_io::PlainCells;
use kohort_model::{Column, NULL, Role};

use super::error::MaterializedError;
use super::memory::Memory;
use crate::policy::{Pair, PairId, Policies};
use crate::view::consent::{Wishes, refused_columns};
use crate::view::version::raise::raised_name;
use crate::view::{Definition, ViewError};

/// The leaf of a missing value. No value has this text.
pub(super) const MISSING: &str = "\u{0}";

/// A row of the view's query.
pub(super) struct NewRow {
    /// The person's identifier, as text.
    pub(super) name: Arc<str>,
    /// The person's own k.
    pub(super) k: u32,
    /// For each quasi column, the value and its ancestors; `None` if a DGH does not have the value, or the row can't be
    /// judged.
    pub(super) paths: Option<Vec<Arc<ValuePath>>>,
    /// What the row shows beside quasi labels, in the order of [`tuple_columns`].
    pub(super) values: Vec<Option<String>>,
    /// The place of the row's policy, if there are policies.
    pub(super) policy: Option<u32>,
    /// The row's place in the batch.
    pub(super) place: usize,
}

/// A value and its ancestors, the root last. Rows with the same value share it.
pub(super) struct ValuePath {
    pub(super) labels: Vec<String>,
    /// The node of the value, once it is known.
    pub(super) node: OnceLock<u32>,
}

impl ValuePath {
    fn new(labels: Vec<String>) -> Arc<ValuePath> {
        Arc::new(ValuePath { labels, node: OnceLock::new() })
    }
}

/// The names of the columns of tuples. A tuple is what a row shows beside quasi labels: sensitive and plain columns, then, if
/// there are requirements on them, sensitive columns as the readers of each pair see them raised, then the choice.
pub(super) fn tuple_columns(definition: &Definition, pairs: &[Pair]) -> Vec<String> {
    let of =
        |role: Role| definition.with_role(role).into_iter().map(|position| definition.columns[position].name.clone());
    let mut names: Vec<String> = of(Role::Sensitive).chain(of(Role::Plain)).collect();
    if asks_of_values(definition) {
        for number in 1..=pairs.len() {
            names.extend(of(Role::Sensitive).map(|name| raised_name(&name, number)));
        }
    }
    if definition.clauses.policy.is_some() {
        names.push(String::new());
    }
    names
}

/// Whether there are policies and requirements on sensitive values, so these are also judged as readers see them raised.
pub(super) fn asks_of_values(definition: &Definition) -> bool {
    definition.clauses.policy.is_some() && definition.clauses.asks_of_values()
}

/// The rows of a batch, without those of persons who have no policy.
///
/// # Errors
/// If a column can't have its role, or a person has several rows.
pub(super) fn new_rows(
    definition: &Definition,
    memory: &Memory,
    rows: &RecordBatch,
    policies: Option<&Policies>,
) -> Result<Vec<NewRow>, ViewError> {
    let table = definition.private_rows(rows, PlainCells::Skipped)?.into_table();
    definition.check_identifiers(rows)?;
    let wishes = Wishes::of(definition, policies, rows);
    let k = wishes.k(definition, policies, None, rows.num_rows());
    let (quasi, sensitive) = (definition.with_role(Role::Quasi), definition.with_role(Role::Sensitive));
    let paths: Vec<Vec<Option<Arc<ValuePath>>>> =
        quasi.iter().map(|&position| paths_of(&table.columns[position], definition, position, memory)).collect();
    let raised = Raised::of(definition, memory, policies, &wishes);
    let is_unjudged = unjudged(definition, memory, policies, &wishes, rows.num_rows());
    let plain = definition.with_role(Role::Plain).into_iter();
    let plain: Result<Vec<StringArray>, _> = plain.map(|position| text_of(definition, rows.column(position))).collect();
    let plain = plain?;

    let names = text_of(definition, rows.column(definition.identifier))?;
    let mut found = Vec::with_capacity(rows.num_rows());
    for (place, k) in k.into_iter().enumerate() {
        let Some(k) = k else { continue };
        let own = |position: &usize| table.columns[*position].cell(place).map(str::to_owned);
        let mut values: Vec<Option<String>> = sensitive.iter().map(own).collect();
        values.extend(plain.iter().map(|texts| texts.is_valid(place).then(|| texts.value(place).to_owned())));
        values.extend(raised.cells(&table.columns, place));
        let of_quasi = quasi.iter().zip(&paths).map(|(&position, paths)| match table.columns[position].ids[place] {
            NULL => memory.missing_path(definition, position).map(ValuePath::new),
            id => paths[id as usize].clone(),
        });
        found.push(NewRow {
            name: names.value(place).into(),
            k,
            paths: if is_unjudged[place] { None } else { of_quasi.collect() },
            values,
            policy: wishes.policy_of_row.get(place).copied().flatten(),
            place,
        });
    }
    check_one_row_each(definition, &found)?;
    Ok(found)
}

/// For each row, whether it must be hidden until the view is made again: its person lets readers of a new pair see
/// raised sensitive values. Crowds were only judged for pairs that were known when the view was made.
fn unjudged(
    definition: &Definition,
    memory: &Memory,
    policies: Option<&Policies>,
    wishes: &Wishes,
    n_rows: usize,
) -> Vec<bool> {
    let mut is_unjudged = vec![false; n_rows];
    let Some(policies) = policies.filter(|_| asks_of_values(definition)) else { return is_unjudged };
    for (number, _) in policies.pairs().iter().enumerate().filter(|(_, pair)| !memory.made.pairs.contains(pair)) {
        let levels = wishes.levels(policies, PairId(number));
        is_unjudged.iter_mut().zip(levels).for_each(|(is_unjudged, level)| *is_unjudged |= level > 0);
    }
    is_unjudged
}

fn check_one_row_each(definition: &Definition, rows: &[NewRow]) -> Result<(), ViewError> {
    let mut n_rows: HashMap<&str, usize> = HashMap::new();
    rows.iter().for_each(|row| *n_rows.entry(&row.name).or_default() += 1);
    let n_persons = n_rows.values().filter(|&&n| n > 1).count();
    if n_persons == 0 {
        return Ok(());
    }
    Err(MaterializedError::SeveralRows { view: definition.name.clone(), n_persons }.into())
}

/// For each id of a column's texts, the value and its ancestors.
fn paths_of(column: &Column, definition: &Definition, position: usize, memory: &Memory) -> Vec<Option<Arc<ValuePath>>> {
    let path = |text: &str| memory.path(definition, position, text, column).map(ValuePath::new);
    column.texts.iter().map(path).collect()
}

/// Cells as the texts by which persons and values are compared everywhere.
fn text_of(definition: &Definition, column: &ArrayRef) -> Result<StringArray, ViewError> {
    let texts = cast(column, &DataType::Utf8);
    let failed =
        |_| ViewError::Query { view: definition.name.clone(), kind: "a column is of a type whose values have no text" };
    texts.map(|texts| texts.as_string::<i32>().clone()).map_err(failed)
}

/// Sensitive cells as the readers of each pair see them.
struct Raised<'a> {
    definition: &'a Definition,
    memory: &'a Memory,
    /// For each pair and row, the level; empty if there are no requirements on values.
    levels: Vec<Vec<u8>>,
}

impl<'a> Raised<'a> {
    fn of(definition: &'a Definition, memory: &'a Memory, policies: Option<&Policies>, wishes: &Wishes) -> Raised<'a> {
        let Some(policies) = policies.filter(|_| asks_of_values(definition)) else {
            return Raised { definition, memory, levels: Vec::new() };
        };
        let n_rows = wishes.policy_of_row.len();
        let levels = memory
            .made
            .pairs
            .iter()
            .map(|pair| policies.pair(pair).map_or_else(|_| vec![0; n_rows], |pair| wishes.levels(policies, pair)));
        Raised { definition, memory, levels: levels.collect() }
    }

    fn cells(&self, columns: &[Column], place: usize) -> Vec<Option<String>> {
        let sensitive = self.definition.with_role(Role::Sensitive);
        let raised = |level: u8, position: usize| {
            let column = &columns[position];
            let text = column.cell(place)?;
            match (level, &self.definition.columns[position].hierarchy) {
                (0, _) => Some(text.to_owned()),
                (_, None) => None,
                (level, Some(_)) => {
                    let path = self.memory.path(self.definition, position, text, column)?;
                    path.get(usize::from(level)).or(path.last()).cloned()
                }
            }
        };
        let of_pair = |levels: &Vec<u8>| sensitive.iter().map(|&at| raised(levels[place], at)).collect::<Vec<_>>();
        self.levels.iter().flat_map(of_pair).collect()
    }
}

/// Whether a policy refuses a quasi column to readers of one of these pairs, now or at a later date. A class of such a
/// person may show them another label than it has.
pub(super) fn is_restricted(definition: &Definition, pairs: &[Pair], policies: &Policies, policy: u32) -> bool {
    let quasi = definition.with_role(Role::Quasi).into_iter().fold(0u64, |columns, position| columns | 1 << position);
    pairs.iter().any(|pair| {
        // A policy that does not name the pair refuses everything.
        let known = policies.pairs().iter().position(|known| known == pair).map(PairId);
        let refused = |pair| refused_columns(definition, policies, policy, pair, NaiveDate::MAX);
        known.is_none_or(|pair| refused(pair) & quasi != 0)
    })
}
