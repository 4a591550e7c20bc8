//! Opening a materialized view: everything that is kept in memory is read from the hidden tables.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use kohort_core::changing::ClassId;
use kohort_io::PlainCells;
use kohort_model::{Column, Role};
use kohort_store::{ScanRequest, State};

use super::cells::KeptCells;
use super::classes::Labelled;
use super::error::MaterializedError;
use super::follow::COUNTERS;
use super::layout::{CLASS, IS_ALONE, IS_RESTRICTED, Layout, NODES, NUMBER, PLACE, POSITION, TEXT};
use super::ledger::{ALONE, IN_ATOM};
use super::make::MADE;
use super::members::MISSING;
use super::memory::{Counters, Made, Memory, number};
use super::policies::kept_content;
use super::{ClassTable, Materialized, Origin};
use crate::view::{Definition, ViewError};

/// The memory for changes, unless it must be read again.
pub(super) struct HeldMemory {
    pub(super) memory: Option<Memory>,
    /// The table that replaces the readers' table with the next commit, because theirs is not of the state that was read.
    pub(super) table: Option<ClassTable>,
}

impl HeldMemory {
    /// The memory, which is read first if it is not there.
    pub(super) fn loaded(&mut self, view: &Materialized, state: &State) -> Result<&mut Memory, ViewError> {
        if self.memory.is_none() {
            let (memory, table) = load(&view.layout, state)?;
            let known = view.classes.read().unwrap_or_else(PoisonError::into_inner);
            self.table = (known.counters != memory.counters).then_some(table);
            self.memory = Some(memory);
        }
        Ok(self.memory.as_mut().expect("it was read"))
    }

    /// Drops the memory, because the store may differ from it.
    pub(super) fn forget(&mut self) {
        (self.memory, self.table) = (None, None);
    }
}

impl Materialized {
    /// Opens a view that the store keeps.
    pub(crate) fn open(
        definition: Arc<Definition>,
        origin: Origin,
        state: &State,
        most_kept_bytes: usize,
    ) -> Result<Materialized, ViewError> {
        let layout = Layout::of(definition);
        let (memory, mut classes) = load(&layout, state)?;
        classes.kept = KeptCells::read(&layout, state, most_kept_bytes)?.map(Arc::new);
        let meanings = memory.meanings(&layout.definition)?;
        classes.settle(&meanings);
        Ok(Materialized {
            origin,
            classes: RwLock::new(classes),
            meanings,
            hierarchies: Arc::clone(&memory.hierarchies),
            trees: memory.known_trees(&layout.definition)?,
            made: memory.made.clone(),
            memory: Mutex::new(HeldMemory { memory: Some(memory), table: None }),
            layout,
        })
    }
}

/// Reads everything that is kept in memory.
pub(super) fn load(layout: &Layout, state: &State) -> Result<(Memory, ClassTable), ViewError> {
    let definition = &layout.definition;
    let record = |kind: &str| -> Result<String, MaterializedError> {
        state.record(kind, &definition.name)?.ok_or_else(|| layout.damaged())
    };
    let made: Made = serde_json::from_str(&record(MADE)?).map_err(|_| layout.damaged())?;
    let counters: Counters = serde_json::from_str(&record(COUNTERS)?).map_err(|_| layout.damaged())?;
    let mut memory = Memory::new(definition, made, counters)?;
    load_values(&mut memory, layout, state)?;
    load_choices(&mut memory, layout, state)?;
    let n_shown = load_trees(&mut memory, layout, state)?;
    let classes = load_classes(&mut memory, layout, state, &n_shown)?;
    Ok((memory, classes))
}

fn scan(state: &State, table: &str, columns: &[&str]) -> Result<kohort_store::Rows, MaterializedError> {
    let columns = Some(columns.iter().map(|&name| name.to_owned()).collect());
    Ok(state.scan(table, &ScanRequest { columns, ..ScanRequest::default() })?)
}

fn load_values(memory: &mut Memory, layout: &Layout, state: &State) -> Result<(), MaterializedError> {
    for batch in scan(state, &layout.values, &[POSITION, NUMBER, TEXT])? {
        let batch = batch?;
        let positions = batch.column(0).as_primitive::<Int64Type>();
        let texts = batch.column(2).as_string::<i32>();
        for row in 0..batch.num_rows() {
            // Values of a column are numbered in the order in which they were written.
            let text = texts.is_valid(row).then(|| texts.value(row).to_owned());
            if let Some(values) = memory.values.get_mut(positions.value(row) as usize) {
                number(values, &text);
            }
        }
    }
    Ok(())
}

fn load_choices(memory: &mut Memory, layout: &Layout, state: &State) -> Result<(), MaterializedError> {
    let batches = state.scan(&layout.choices, &ScanRequest::default())?.collect::<Result<Vec<_>, _>>()?;
    for (number, is_restricted, content) in kept_content(&batches, memory.made.person_column) {
        memory.choices.insert(content, (number, is_restricted));
        memory.restricting.extend(is_restricted.then_some(number));
    }
    Ok(())
}

/// Grows the trees by the values of all rows, and counts the rows that each class shows.
fn load_trees(memory: &mut Memory, layout: &Layout, state: &State) -> Result<HashMap<i64, u64>, ViewError> {
    let definition = &layout.definition;
    let quasi = definition.with_role(Role::Quasi);
    let columns = empty_columns(definition)?;
    let mut known: Vec<HashSet<String>> = vec![HashSet::new(); quasi.len()];
    let mut read: HashSet<String, foldhash::quality::RandomState> = HashSet::default();
    let mut n_shown: HashMap<i64, u64> = HashMap::new();
    for batch in scan(state, &layout.rows, &[CLASS, PLACE, NODES])? {
        let batch = batch?;
        let integers = |column: usize| batch.column(column).as_primitive::<Int64Type>();
        let (classes, places, nodes) = (integers(0), integers(1), batch.column(2).as_string::<i32>());
        for row in 0..batch.num_rows() {
            if matches!(places.value(row), IN_ATOM | ALONE) {
                *n_shown.entry(classes.value(row)).or_default() += 1;
            }
            // Many rows have the same values.
            if read.contains(nodes.value(row)) {
                continue;
            }
            read.insert(nodes.value(row).to_owned());
            let labels: Vec<Option<String>> = serde_json::from_str(nodes.value(row)).map_err(|_| layout.damaged())?;
            for (column, label) in labels.into_iter().enumerate() {
                let label = label.unwrap_or_else(|| MISSING.to_owned());
                if known[column].contains(&label) {
                    continue;
                }
                let position = quasi[column];
                let path = match label.as_str() {
                    MISSING => memory.missing_path(definition, position),
                    text => memory.path(definition, position, text, &columns[position]),
                };
                let path = path.ok_or_else(|| layout.damaged())?;
                let path: Vec<&str> = path.iter().map(String::as_str).collect();
                memory.trees[column].add_path(&path).map_err(|_| layout.damaged())?;
                known[column].insert(label);
            }
        }
    }
    Ok(n_shown)
}

fn load_classes(
    memory: &mut Memory,
    layout: &Layout,
    state: &State,
    n_shown: &HashMap<i64, u64>,
) -> Result<ClassTable, MaterializedError> {
    let mut table = ClassTable::new(layout.definition.with_role(Role::Quasi));
    table.counters = memory.counters;
    for ((number, is_alone, labels), is_restricted) in classes(layout, state)? {
        let n_shown = n_shown.get(&number).copied().unwrap_or(0);
        table.put(number, is_alone, &labels, n_shown);
        if is_restricted {
            table.restrict(number);
            memory.restricted.insert(number);
        }
        if is_alone {
            memory.alone.insert(labels, number);
        } else if let Some(nodes) = memory.nodes(&labels) {
            memory.index.put(&memory.trees, ClassId(number.cast_unsigned()), &nodes, n_shown);
        }
    }
    Ok(table)
}

/// All classes, each with whether somebody in it may refuse something.
pub(super) fn classes(layout: &Layout, state: &State) -> Result<Vec<(Labelled, bool)>, MaterializedError> {
    let fixed = [CLASS, IS_ALONE, IS_RESTRICTED].into_iter();
    let columns: Vec<&str> = fixed.chain(layout.labels.iter().map(String::as_str)).collect();
    let mut classes = Vec::new();
    for batch in scan(state, &layout.classes, &columns)? {
        let batch = batch?;
        let numbers = batch.column(0).as_primitive::<Int64Type>();
        let (alone, restricted) = (batch.column(1).as_boolean(), batch.column(2).as_boolean());
        let label = |column: usize, row: usize| {
            let labels = batch.column(column).as_string::<i32>();
            labels.is_valid(row).then(|| labels.value(row).to_owned())
        };
        for row in 0..batch.num_rows() {
            let labels = (3..batch.num_columns()).map(|column| label(column, row)).collect();
            classes.push(((numbers.value(row), alone.value(row), labels), restricted.value(row)));
        }
    }
    Ok(classes)
}

/// The columns of the view without cells, for the types of their values.
pub(super) fn empty_columns(definition: &Definition) -> Result<Vec<Column>, ViewError> {
    let empty = RecordBatch::new_empty(definition.private_schema());
    Ok(definition.private_rows(&empty, PlainCells::Skipped)?.into_table().columns)
}
