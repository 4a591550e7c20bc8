//! Making a materialized view from a verified version, as if nobody had read one before.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use kohort_core::changing::{MemberKey, Past, PersonKey, ReferenceColumn, Standard};
use kohort_model::Role;
use kohort_store::{Change, State, TableDescription};

use super::classes::Labelled;
use super::error::MaterializedError;
use super::follow::{Arrival, COUNTERS, RowState};
use super::layout::Layout;
use super::ledger::{ALONE, IN_ATOM, Persons};
use super::members::{NewRow, new_rows, tuple_columns};
use super::memory::{Counters, Made, Memory, requirements};
use super::policies::PolicyRows;
use super::write::{ROWS_AT_ONCE, Writing, class_batch};
use super::{Materialized, Origin};
use crate::hierarchies::Hierarchies;
use crate::parser::{Answers, Clauses, Purposes};
use crate::view::{Definition, Version, ViewError};

/// The kind of the record that keeps what was fixed when a view was made.
pub(super) const MADE: &str = "view made";

/// What a materialized view is made from.
pub(crate) struct Making<'a> {
    /// A verified version of the view.
    pub version: &'a Version,
    /// The rows of its query.
    pub rows: RecordBatch,
    /// What persons allow.
    pub policies: Option<PolicyRows>,
    /// The DGHs.
    pub catalog: &'a Hierarchies,
    /// The tables that rows and choices come from.
    pub origin: Origin,
    /// The time, in microseconds from 1970.
    pub now: i64,
    /// How many bytes its rows may take in memory.
    pub most_kept_bytes: usize,
}

/// Checks that a definition can be materialized.
///
/// # Errors
/// The first clause or column that a materialized view can't have.
pub(crate) fn check(definition: &Definition) -> Result<(), MaterializedError> {
    let quasi = definition.with_role(Role::Quasi).into_iter().map(|position| &definition.columns[position]);
    let bare: Vec<String> =
        quasi.filter(|column| column.hierarchy.is_none()).map(|column| column.name.clone()).collect();
    if !bare.is_empty() {
        return Err(MaterializedError::NoHierarchy { columns: bare });
    }
    if definition.policy_key.is_some_and(|key| key != definition.identifier) {
        return Err(MaterializedError::PolicyKey);
    }
    let what = match &definition.clauses {
        Clauses { purposes: Purposes::Apart, .. } => "PER PURPOSE",
        Clauses { answers: Answers::Matching, .. } => "ANSWERS MATCHING",
        _ => return Ok(()),
    };
    Err(MaterializedError::Option { what })
}

impl Materialized {
    /// Makes a view within a change.
    ///
    /// # Errors
    /// If a materialized view can't have these rows.
    pub(crate) fn make(change: &Change, making: &Making<'_>) -> Result<Materialized, ViewError> {
        let counters = Counters { next_class: 1, next_atom: 1, epoch: 1, made: making.now };
        Materialized::make_from(change, making, counters)
    }

    /// The same with numbers that were not used before. Everything that was kept of the view is dropped.
    pub(super) fn make_from(
        change: &Change,
        making: &Making<'_>,
        counters: Counters,
    ) -> Result<Materialized, ViewError> {
        let definition = &making.version.definition;
        let layout = Layout::of(Arc::clone(definition));
        let schema = making.policies.as_ref().map(PolicyRows::schema);
        let tables = layout.tables(schema.as_ref());
        for table in &tables {
            if change.table(&table.name)?.is_some() {
                change.drop_table(&table.name)?;
            }
            let without_indexes = TableDescription { indexes: Vec::new(), ..table.clone() };
            change.create_table(&without_indexes)?;
        }
        let memory = Memory::new(definition, made(definition, making)?, counters)?;
        Maker { layout: &layout, change, making, memory }.write()?;
        // Indexes come last: sorting all rows once costs less than searching the index for each of them.
        for table in &tables {
            for index in &table.indexes {
                change.create_index(&table.name, &index.columns, index.uniqueness)?;
            }
        }
        Materialized::open(Arc::clone(definition), making.origin.clone(), change, making.most_kept_bytes)
    }

    /// Whether the store keeps a view of this name.
    pub(crate) fn is_kept(name: &str, state: &State) -> Result<bool, MaterializedError> {
        Ok(state.record(MADE, name)?.is_some())
    }

    /// Drops everything that is kept of a view, within a change.
    pub(crate) fn drop_kept(name: &str, change: &Change) -> Result<(), MaterializedError> {
        for table in Layout::names(name) {
            if change.table(&table)?.is_some() {
                change.drop_table(&table)?;
            }
        }
        change.remove_record(MADE, name)?;
        change.remove_record(COUNTERS, name)?;
        Ok(())
    }
}

/// Everything that is fixed when a view is made.
pub(super) fn made(definition: &Definition, making: &Making<'_>) -> Result<Made, ViewError> {
    let mut hierarchies = BTreeMap::new();
    for column in &definition.columns {
        let Some(name) = &column.hierarchy else { continue };
        let fault = |fault| ViewError::Hierarchy { column: column.name.clone(), fault };
        if let Some(record) = making.catalog.finished_record(name).map_err(fault)? {
            hierarchies.insert(name.to_lowercase(), record);
        }
    }
    let roots = |role| -> Vec<String> {
        let positions = definition.with_role(role).into_iter();
        positions.map(|position| making.version.everything(position).to_owned()).collect()
    };
    let policies = making.policies.as_ref();
    let pairs = policies.map(|rows| rows.policies.pairs().to_vec()).unwrap_or_default();
    let schema = policies.map(PolicyRows::schema);
    Ok(Made {
        hierarchies,
        marked: pairs.clone(),
        pairs,
        counts: Vec::new(),
        roots: roots(Role::Quasi),
        sensitive_roots: roots(Role::Sensitive),
        policy_columns: schema
            .iter()
            .flat_map(|schema| schema.fields().iter().map(|field| field.name().clone()))
            .collect(),
        person_column: policies.map(PolicyRows::person_column),
        ncp_when_made: None,
    })
}

/// Writes a new view to the hidden tables.
struct Maker<'a> {
    layout: &'a Layout,
    change: &'a Change,
    making: &'a Making<'a>,
    memory: Memory,
}

impl Maker<'_> {
    fn write(mut self) -> Result<(), ViewError> {
        let (layout, making) = (self.layout, self.making);
        let policies = making.policies.as_ref().map(|rows| &rows.policies);
        let mut rows = new_rows(&layout.definition, &self.memory, &making.rows, policies)?;
        let class_of_row = making.version.directory(None).class_of_rows(making.rows.num_rows());
        // Rows of a class get consecutive numbers, so the store finds them in one place.
        rows.sort_by_key(|row| class_of_row[row.place].unwrap_or(u32::MAX));
        let states = self.states_of_classes();
        let counts = self.write_rows(&rows, |row| class_of_row[row.place].map(|class| states[class as usize]))?;
        drop(rows);
        fix_shares(&mut self.memory, &layout.definition, counts)?;
        self.write_classes(&states)?;
        let n_known = vec![0; self.memory.values.len()];
        self.writing(&Persons::never_seen()).write_values(&n_known)?;
        self.memory.made.ncp_when_made = Some(making.version.summary.ncp);
        self.memory.put_made(layout, self.change)?;
        Ok(self.memory.put_counters(layout, self.change)?)
    }

    fn writing<'a>(&'a mut self, persons: &'a Persons) -> Writing<'a> {
        let Maker { layout, change, making, memory } = self;
        Writing { layout, memory, change, persons, rows: &making.rows, now: making.now }
    }

    /// The place of the members of each class of the version: every class becomes one atom.
    fn states_of_classes(&mut self) -> Vec<RowState> {
        let directory = self.making.version.directory(None);
        let Counters { next_class, next_atom, .. } = &mut self.memory.counters;
        let state = |class: u32| {
            let is_alone = directory.class(class).is_alone;
            let number = Some(next_class.cast_signed());
            *next_class += 1;
            if is_alone {
                return RowState { place: ALONE, class: number, atom: None };
            }
            *next_atom += 1;
            RowState { place: IN_ATOM, class: number, atom: Some(next_atom.cast_signed() - 1) }
        };
        (0..directory.n_classes() as u32).map(state).collect()
    }

    /// Writes rows where they belong, some at a time, so that few are in memory twice. Returns how often each value occurs
    /// in crowds.
    fn write_rows(
        &mut self,
        rows: &[NewRow],
        state_of: impl Fn(&NewRow) -> Option<RowState>,
    ) -> Result<ValueCounts, ViewError> {
        let policies = self.making.policies.as_ref();
        let mut next = self.change.next_row(&self.layout.rows)?;
        let mut counts = ValueCounts::default();
        let (mut refused, mut unknown) = (HashSet::new(), HashSet::new());
        for rows in rows.chunks(ROWS_AT_ONCE) {
            // The numbers of persons are not compared across chunks.
            let (mut arrivals, persons) = (BTreeMap::new(), Persons::never_seen());
            let mut pasts: BTreeMap<PersonKey, Past> = BTreeMap::new();
            let mut writing = self.writing(&persons);
            for row in rows {
                let choice = writing.choice(row, policies)?;
                let key = MemberKey(next.cast_unsigned());
                next += 1;
                let person = persons.shared_key(&row.name);
                let member = writing.memory.member(row, choice, key, person);
                let state = member.as_ref().and_then(|_| state_of(row)).unwrap_or(RowState::HIDDEN);
                match (state.class, choice) {
                    (Some(class), None) => drop(unknown.insert(class)),
                    (Some(class), Some(choice)) if writing.memory.restricting.contains(&choice) => {
                        refused.insert(class);
                    }
                    _ => {}
                }
                match state.place {
                    IN_ATOM => member.iter().for_each(|member| counts.add(&member.tuple)),
                    ALONE => drop(pasts.insert(person, Past::Alone)),
                    _ => {}
                }
                arrivals.insert(key, Arrival { row, choice, member: member.map(Arc::new), state });
            }
            writing.insert_rows(&arrivals)?;
            writing.remember(&pasts)?;
        }
        // The classes in which somebody may refuse a quasi column.
        if !self.memory.restricting.is_empty() {
            self.memory.restricted = refused.into_iter().chain(unknown).collect();
        }
        Ok(counts)
    }

    fn write_classes(&self, states: &[RowState]) -> Result<(), MaterializedError> {
        let directory = self.making.version.directory(None);
        let class = |(class, state): (u32, &RowState)| -> Labelled {
            let labels = directory.labels().of(class).into_iter().map(|label| label.map(str::to_owned)).collect();
            (state.class.expect("a class has a number"), directory.class(class).is_alone, labels)
        };
        let classes: Vec<Labelled> = (0..).zip(states).map(class).collect();
        if classes.iter().any(|(_, is_alone, labels)| !is_alone && self.memory.nodes(labels).is_none()) {
            return Err(self.layout.damaged());
        }
        let batch = class_batch(self.layout, &classes, &self.memory.restricted);
        self.change.insert(&self.layout.classes, &batch)?;
        Ok(())
    }
}

/// How many members of crowds have each value, by the columns of tuples.
#[derive(Default)]
pub(super) struct ValueCounts(Vec<Vec<u64>>);

impl ValueCounts {
    pub(super) fn add(&mut self, tuple: &[u32]) {
        self.0.resize(tuple.len().max(self.0.len()), Vec::new());
        for (counts, &number) in self.0.iter_mut().zip(tuple) {
            counts.resize(counts.len().max(number as usize + 1), 0);
            counts[number as usize] += 1;
        }
    }

    /// A count for each known value.
    fn of_all(mut self, memory: &Memory) -> Vec<Vec<u64>> {
        self.0.resize(memory.values.len(), Vec::new());
        self.0.iter_mut().zip(&memory.values).for_each(|(counts, values)| counts.resize(values.len(), 0));
        self.0
    }
}

/// Fixes the shares that t-closeness compares with, until the next refresh.
pub(super) fn fix_shares(
    memory: &mut Memory,
    definition: &Definition,
    counts: ValueCounts,
) -> Result<(), MaterializedError> {
    let names = tuple_columns(definition, &memory.made.pairs);
    let counts = counts.of_all(memory);
    let columns: Vec<ReferenceColumn> =
        names.into_iter().zip(&counts).map(|(name, counts)| ReferenceColumn { name, counts: counts.clone() }).collect();
    memory.standard = Standard::compile(&requirements(definition, &memory.made.pairs), &columns)?;
    if definition.clauses.t.is_some() {
        memory.made.counts = counts;
    }
    Ok(())
}
