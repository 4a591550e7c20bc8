//! Opening a materialized view: what is kept in memory, from the hidden tables.

use std::collections::{HashMap, HashSet};
use std::sync::PoisonError;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use kohort_core::changing::ClassId;
use kohort_io::{PlainCells, read_rows};
use kohort_model::{Column, Role};
use kohort_store::{ScanRequest, State};

use super::classes::Span;
use super::error::MaterializedError;
use super::follow::COUNTERS;
use super::layout::{CLASS, IS_ALONE, IS_RESTRICTED, Layout, NODES, NUMBER, PLACE, POSITION, TEXT};
use super::ledger::{ALONE, IN_ATOM};
use super::make::MADE;
use super::members::MISSING;
use super::memory::{Counters, Made, Memory};
use super::policies::kept_content;
use super::{ClassTable, Materialized};
use crate::view::{Definition, ViewError};

/// What is in memory, or is to be read anew.
pub(super) struct Held {
    memory: Option<Memory>,
    /// What readers find classes by from the next commit on, where what they have is not of the state that was read.
    table: Option<ClassTable>,
}

impl Held {
    pub(super) fn new(memory: Option<Memory>) -> Held {
        Held { memory, table: None }
    }

    /// What is in memory, read where it is not.
    pub(super) fn loaded(&mut self, view: &Materialized, state: &State) -> Result<&mut Memory, ViewError> {
        if self.memory.is_none() {
            let (mut memory, table) = load(&view.definition, &view.layout, state)?;
            let known = view.classes.read().unwrap_or_else(PoisonError::into_inner);
            if known.counters == memory.counters {
                memory.kept = known.kept.clone();
            } else {
                self.table = Some(table);
            }
            self.memory = Some(memory);
        }
        Ok(self.memory.as_mut().expect("it was read"))
    }

    /// Whatever is in memory may not be what is kept.
    pub(super) fn forget(&mut self) {
        (self.memory, self.table) = (None, None);
    }

    pub(super) fn known(&mut self) -> Option<&mut Memory> {
        self.memory.as_mut()
    }

    /// What readers are to find classes by instead of what they have.
    pub(super) fn take_table(&mut self) -> Option<ClassTable> {
        self.table.take()
    }
}

/// Reads everything that is kept in memory.
pub(super) fn load(definition: &Definition, layout: &Layout, state: &State) -> Result<(Memory, ClassTable), ViewError> {
    let damaged = || MaterializedError::Damaged { view: definition.name.clone() };
    let record =
        |kind: &str| -> Result<String, MaterializedError> { state.record(kind, &definition.name)?.ok_or_else(damaged) };
    let made: Made = serde_json::from_str(&record(MADE)?).map_err(|_| damaged())?;
    let counters: Counters = serde_json::from_str(&record(COUNTERS)?).map_err(|_| damaged())?;
    let mut memory = Memory::new(definition, made, counters)?;
    load_values(&mut memory, layout, state)?;
    load_choices(&mut memory, layout, state)?;
    let shown = load_trees(&mut memory, definition, layout, state)?;
    let classes = load_classes(&mut memory, definition, layout, state, &shown)?;
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
                values.number(&text);
            }
        }
    }
    Ok(())
}

fn load_choices(memory: &mut Memory, layout: &Layout, state: &State) -> Result<(), MaterializedError> {
    let mut batches = Vec::new();
    for batch in state.scan(&layout.choices, &ScanRequest::default())? {
        batches.push(batch?);
    }
    for (number, is_restricted, content) in kept_content(&batches, memory.made.person_column) {
        memory.choices.insert(content, (number, is_restricted));
        memory.restricting.extend(is_restricted.then_some(number));
    }
    Ok(())
}

/// Trees grow by the values of all rows. Says where the rows lie that each class shows.
fn load_trees(
    memory: &mut Memory,
    definition: &Definition,
    layout: &Layout,
    state: &State,
) -> Result<HashMap<i64, Span>, ViewError> {
    let quasi = definition.with_role(Role::Quasi);
    let columns = empty_columns(definition)?;
    let mut known: Vec<HashSet<String>> = vec![HashSet::new(); quasi.len()];
    let mut read: HashSet<String, foldhash::quality::RandomState> = HashSet::default();
    let mut shown: HashMap<i64, Span> = HashMap::new();
    let damaged = || MaterializedError::Damaged { view: definition.name.clone() };
    let columns_read = Some([CLASS, PLACE, NODES].map(str::to_owned).to_vec());
    let request = ScanRequest { columns: columns_read, with_rowid: true, ..ScanRequest::default() };
    for batch in state.scan(&layout.rows, &request).map_err(MaterializedError::Store)? {
        let batch = batch.map_err(MaterializedError::Store)?;
        let integers = |column: usize| batch.column(column).as_primitive::<Int64Type>();
        let (numbers, classes, places) = (integers(0), integers(1), integers(2));
        let nodes = batch.column(3).as_string::<i32>();
        for row in 0..batch.num_rows() {
            if matches!(places.value(row), IN_ATOM | ALONE) {
                let number = numbers.value(row);
                let span = shown.entry(classes.value(row));
                span.and_modify(|span| span.add(number)).or_insert_with(|| Span::of(number));
            }
            // Many rows hold the same.
            if read.contains(nodes.value(row)) {
                continue;
            }
            read.insert(nodes.value(row).to_owned());
            let labels: Vec<Option<String>> = serde_json::from_str(nodes.value(row)).map_err(|_| damaged())?;
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
                let path = path.ok_or_else(damaged)?;
                let path: Vec<&str> = path.iter().map(String::as_str).collect();
                memory.trees[column].add_path(&path).map_err(|_| damaged())?;
                known[column].insert(label);
            }
        }
    }
    Ok(shown)
}

fn load_classes(
    memory: &mut Memory,
    definition: &Definition,
    layout: &Layout,
    state: &State,
    shown: &HashMap<i64, Span>,
) -> Result<ClassTable, MaterializedError> {
    let mut table = ClassTable::new(definition.with_role(Role::Quasi));
    table.counters = memory.counters;
    let names: Vec<&str> =
        [CLASS, IS_ALONE, IS_RESTRICTED].into_iter().chain(layout.labels.iter().map(String::as_str)).collect();
    for batch in scan(state, &layout.classes, &names)? {
        let batch = batch?;
        for (number, is_alone, is_restricted, labels) in classes_of(&batch) {
            let borrowed: Vec<Option<&str>> = labels.iter().map(Option::as_deref).collect();
            table.put(number, is_alone, &borrowed);
            table.lie(number, shown.get(&number).copied());
            table.count(number, shown.get(&number).map_or(0, |span| span.n_rows));
            if is_restricted {
                table.restrict(number);
                memory.restricted.insert(number);
            }
            if is_alone {
                memory.alone.insert(labels, number);
            } else if let Some(nodes) = memory.nodes(&labels) {
                let n_members = shown.get(&number).map_or(0, |span| span.n_rows);
                memory.put_class(ClassId(number.cast_unsigned()), &nodes, n_members);
            }
        }
    }
    Ok(table)
}

/// Rows of the table of classes: number, whether it is of rows shown by themselves, whether somebody in it may refuse
/// something, and labels.
pub(super) fn classes_of(batch: &RecordBatch) -> Vec<(i64, bool, bool, Vec<Option<String>>)> {
    let numbers = batch.column(0).as_primitive::<Int64Type>();
    let (alone, restricted) = (batch.column(1).as_boolean(), batch.column(2).as_boolean());
    let label = |column: usize, row: usize| {
        let labels = batch.column(column).as_string::<i32>();
        labels.is_valid(row).then(|| labels.value(row).to_owned())
    };
    let class = |row: usize| {
        let labels = (3..batch.num_columns()).map(|column| label(column, row)).collect();
        (numbers.value(row), alone.value(row), restricted.value(row), labels)
    };
    (0..batch.num_rows()).map(class).collect()
}

/// The columns of the view without a cell, for the types of their values.
pub(super) fn empty_columns(definition: &Definition) -> Result<Vec<Column>, ViewError> {
    let fields = definition
        .columns
        .iter()
        .map(|column| datafusion::arrow::datatypes::Field::new(&column.name, column.data_type.clone(), true));
    let schema = datafusion::arrow::datatypes::Schema::new(fields.collect::<Vec<_>>());
    let empty = RecordBatch::new_empty(schema.into());
    let (roles, person) = (definition.roles(), Some(definition.identifier));
    let private = read_rows(&empty, &definition.name, &roles, person, PlainCells::Skipped);
    Ok(private.map_err(ViewError::Columns)?.into_table().columns)
}
