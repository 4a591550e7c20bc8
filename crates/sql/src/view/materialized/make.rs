//! Making a materialized view from a verified version, as if nobody had read one before.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, RwLock};

use datafusion::arrow::array::RecordBatch;
use kohort_core::changing::{MemberKey, Past, ReferenceColumn, Standard};
use kohort_model::Role;
use kohort_store::{Change, State, TableDescription};

use super::cells::KeptCells;
use super::classes::Span;
use super::error::MaterializedError;
use super::follow::{Arrival, COUNTERS, Changed, RowState};
use super::layout::Layout;
use super::ledger::{ALONE, IN_ATOM, Persons};
use super::load::{Held, load};
use super::members::{NewRow, new_rows, tuple_columns};
use super::memory::{Counters, Made, Memory, pairs_of, requirements};
use super::policies::PolicyRows;
use super::trees::KnownTrees;
use super::write::{ROWS_AT_ONCE, Writing, class_batch};
use super::{ClassTable, Materialized, Origin};
use crate::hierarchies::Hierarchies;
use crate::parser::{Answers, Clauses, Purposes};
use crate::view::{Definition, Version, ViewError};

/// The kind of records in which it is kept what was fixed when a view was made.
pub(super) const MADE: &str = "view made";

/// What a materialized view is made from.
pub struct Making<'a> {
    /// A verified version of the view.
    pub version: &'a Version,
    /// The rows of its query.
    pub rows: RecordBatch,
    /// What persons allow.
    pub policies: Option<PolicyRows>,
    /// The DGHs.
    pub catalog: &'a Hierarchies,
    /// Where rows and choices come from.
    pub origin: Origin,
    /// When, in microseconds from 1970.
    pub now: i64,
    /// How many bytes its rows may take in memory.
    pub most_kept_bytes: usize,
}

/// What a definition must be to be materialized.
///
/// # Errors
/// What it is not.
pub fn check(definition: &Definition) -> Result<(), MaterializedError> {
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
    /// Where the rows are not what a materialized view takes.
    pub fn make(change: &Change, making: &Making<'_>) -> Result<Materialized, ViewError> {
        let counters = Counters { next_class: 1, next_atom: 1, epoch: 1, made: making.now };
        Materialized::make_from(change, making, counters)
    }

    /// The same, with numbers that were not used before; whatever is kept of the view goes.
    pub(super) fn make_from(
        change: &Change,
        making: &Making<'_>,
        counters: Counters,
    ) -> Result<Materialized, ViewError> {
        let definition = Arc::clone(&making.version.definition);
        let layout = Layout::of(&definition);
        let schema = making.policies.as_ref().map(PolicyRows::schema);
        let (tables, store) = (layout.tables(&definition, schema.as_ref()), MaterializedError::Store);
        for table in &tables {
            if change.table(&table.name).map_err(store)?.is_some() {
                change.drop_table(&table.name).map_err(store)?;
            }
            let without_indexes = TableDescription { indexes: Vec::new(), ..table.clone() };
            change.create_table(&without_indexes).map_err(store)?;
        }
        let memory = Memory::new(&definition, made(&definition, making)?, counters)?;
        let made = Maker { definition, layout, change, making, memory }.make()?;
        // An index over rows that are there is sorted once, instead of searched for each of them.
        for table in &tables {
            for index in &table.indexes {
                change.create_index(&table.name, &index.columns, index.uniqueness).map_err(store)?;
            }
        }
        Ok(made)
    }

    /// Opens a view that is kept.
    ///
    /// # Errors
    /// Where what is kept can't be read.
    pub fn open(
        definition: Arc<Definition>,
        origin: Origin,
        state: &State,
        most_kept_bytes: usize,
    ) -> Result<Materialized, ViewError> {
        let layout = Layout::of(&definition);
        let (mut memory, classes) = load(&definition, &layout, state)?;
        memory.kept = KeptCells::read(&layout, &definition, state, most_kept_bytes)?.map(Arc::new);
        Materialized::with(definition, origin, layout, memory, classes)
    }

    /// Whether one of this name is kept.
    ///
    /// # Errors
    /// Where the store can't be read.
    pub fn is_kept(name: &str, state: &State) -> Result<bool, MaterializedError> {
        Ok(state.record(MADE, name)?.is_some())
    }

    /// Forgets everything that is kept of a view, within a change.
    ///
    /// # Errors
    /// Where the store refuses.
    pub fn drop_kept(name: &str, change: &Change) -> Result<(), MaterializedError> {
        for table in Layout::names(name) {
            if change.table(&table)?.is_some() {
                change.drop_table(&table)?;
            }
        }
        change.remove_record(MADE, name)?;
        change.remove_record(COUNTERS, name)?;
        Ok(())
    }

    pub(super) fn with(
        definition: Arc<Definition>,
        origin: Origin,
        layout: Layout,
        memory: Memory,
        mut classes: ClassTable,
    ) -> Result<Materialized, ViewError> {
        let counts = memory.kept.as_deref().map(KeptCells::n_rows_by_class);
        for class in classes.numbers() {
            match &counts {
                Some(counts) => classes.count(class, counts.get(&class).copied().unwrap_or(0)),
                None => classes.count_crowd(class, memory.n_members(class)),
            }
        }
        classes.kept = memory.kept.clone();
        let meanings = memory.meanings(&definition)?;
        classes.settle(&meanings);
        let trees = KnownTrees::of_values(restored(&memory.made), &definition, &memory)?;
        let root = |position: usize| memory.made.root(&definition, position).map(str::to_owned);
        let roots = (0..definition.columns.len()).map(root).collect();
        let policy_columns = memory.made.policy_columns.clone();
        let marked = pairs_of(&memory.made.marked);
        Ok(Materialized {
            definition,
            origin,
            layout,
            memory: Mutex::new(Held::new(Some(memory))),
            classes: RwLock::new(classes),
            meanings,
            trees,
            roots,
            policy_columns,
            marked,
        })
    }
}

/// The DGHs a view was made with.
fn restored(made: &Made) -> Hierarchies {
    let mut hierarchies = Hierarchies::new();
    for (name, record) in &made.hierarchies {
        // They were restored before, or the view would not be here.
        let _ = hierarchies.restore(name, record);
    }
    hierarchies
}

/// What is fixed when a view is made.
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
    let pairs = policies.map(|rows| rows.policies.pairs()).unwrap_or_default().iter();
    let schema = policies.map(PolicyRows::schema);
    let pairs: Vec<_> = pairs.map(|pair| (pair.purpose.clone(), pair.recipient.clone())).collect();
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

struct Maker<'a> {
    definition: Arc<Definition>,
    layout: Layout,
    change: &'a Change,
    making: &'a Making<'a>,
    memory: Memory,
}

/// What is kept of rows that were written.
struct Written {
    /// Per row its key, where a DGH takes it.
    keys: Vec<Option<MemberKey>>,
    counts: ValueCounts,
}

/// A class of the version.
pub(super) struct ClassOfVersion {
    pub(super) is_alone: bool,
    pub(super) labels: Vec<Option<String>>,
    pub(super) members: Vec<MemberKey>,
}

impl Maker<'_> {
    fn make(mut self) -> Result<Materialized, ViewError> {
        let definition = Arc::clone(&self.definition);
        let policies = self.making.policies.as_ref();
        let mut rows = new_rows(&definition, &self.memory, &self.making.rows, policies.map(|rows| &rows.policies))?;
        let class_of_row = self.making.version.directory(None).class_of_rows(self.making.rows.num_rows());
        // Rows of a class get numbers beside each other, so that whoever reads the class finds them in one place.
        rows.sort_by_key(|row| class_of_row[row.place].unwrap_or(u32::MAX));
        let view = self.shell()?;
        let states = self.states_of_classes();
        let written =
            self.write_rows(&view, &rows, |row| class_of_row[row.place].map(|class| states[class as usize]))?;
        let keys = rows.iter().zip(&written.keys);
        let classes = classes_of_version(self.making.version, keys.filter_map(|(row, key)| Some((row.place, (*key)?))));
        drop(rows);
        fix_shares(&mut self.memory, &definition, written.counts)?;
        self.write_classes(&classes, &states)?;
        view.write_values(&self.memory, self.change, &vec![0; self.memory.values.len()])?;
        self.finish(&classes)
    }

    /// A view without anything in memory, to write through.
    fn shell(&self) -> Result<Materialized, ViewError> {
        let classes = ClassTable::new(self.definition.with_role(Role::Quasi));
        Ok(Materialized {
            definition: Arc::clone(&self.definition),
            origin: self.making.origin.clone(),
            layout: self.layout.clone(),
            memory: Mutex::new(Held::new(None)),
            classes: RwLock::new(classes),
            meanings: Arc::from(Vec::new()),
            trees: KnownTrees::none(),
            roots: Vec::new(),
            policy_columns: Vec::new(),
            marked: Vec::new(),
        })
    }

    /// Where members of each class of the version are: every class is one atom.
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

    /// Writes rows where they belong, some at a time: of each little is kept.
    fn write_rows(
        &mut self,
        view: &Materialized,
        rows: &[NewRow],
        state_of: impl Fn(&NewRow) -> Option<RowState>,
    ) -> Result<Written, ViewError> {
        let mut next = self.change.next_row(&self.layout.rows).map_err(MaterializedError::Store)?;
        let mut written = Written { keys: Vec::with_capacity(rows.len()), counts: ValueCounts::default() };
        let (mut refused, mut unknown) = (HashSet::new(), HashSet::new());
        let changed = Changed::of_nobody(&self.making.rows, self.making.now);
        for rows in rows.chunks(ROWS_AT_ONCE) {
            // Nobody is looked for by the numbers of persons.
            let (mut arrivals, persons) = (BTreeMap::new(), Persons::default());
            let mut pasts: BTreeMap<String, Past> = BTreeMap::new();
            for row in rows {
                let choice = view.choice(&mut self.memory, self.change, row, self.making.policies.as_ref())?;
                let key = MemberKey(next.cast_unsigned());
                next += 1;
                let member = self.memory.member(row, choice, key, persons.shared_key(&row.name));
                written.keys.push(member.as_ref().map(|_| key));
                let state = member.as_ref().and_then(|_| state_of(row)).unwrap_or(RowState::HIDDEN);
                match (state.class, choice) {
                    (Some(class), None) => drop(unknown.insert(class)),
                    (Some(class), Some(choice)) if self.memory.restricting.contains(&choice) => {
                        refused.insert(class);
                    }
                    _ => {}
                }
                match state.place {
                    IN_ATOM => member.iter().for_each(|member| written.counts.add(&member.tuple)),
                    ALONE => drop(pasts.insert(row.name.to_string(), Past::Alone)),
                    _ => {}
                }
                arrivals.insert(key, Arrival { row, choice, member: member.map(Arc::new), state });
            }
            let (memory, change) = (&mut self.memory, self.change);
            let writing = Writing { view, memory, change, persons: &persons, changed: &changed };
            writing.insert_rows(&arrivals)?;
            writing.remember(&pasts)?;
        }
        // The classes in which somebody may refuse a quasi column.
        if !self.memory.restricting.is_empty() {
            self.memory.restricted = refused.into_iter().chain(unknown).collect();
        }
        Ok(written)
    }

    fn write_classes(&mut self, classes: &[ClassOfVersion], states: &[RowState]) -> Result<(), ViewError> {
        let number = |state: &RowState| state.class.expect("a class has a number");
        let numbered: Vec<(i64, bool, Vec<Option<String>>)> = states
            .iter()
            .zip(classes)
            .map(|(state, class)| (number(state), class.is_alone, class.labels.clone()))
            .collect();
        self.change
            .insert(&self.layout.classes, &class_batch(&self.layout, &numbered, &self.memory.restricted))
            .map_err(MaterializedError::Store)?;
        for (number, is_alone, labels) in numbered {
            if is_alone {
                self.memory.alone.insert(labels, number);
            }
        }
        Ok(())
    }

    fn finish(mut self, classes: &[ClassOfVersion]) -> Result<Materialized, ViewError> {
        let first_class = (self.memory.counters.next_class - classes.len() as u64).cast_signed();
        let mut table = ClassTable::new(self.definition.with_role(Role::Quasi));
        for (number, class) in (first_class..).zip(classes) {
            let labels: Vec<Option<&str>> = class.labels.iter().map(Option::as_deref).collect();
            table.put(number, class.is_alone, &labels);
            let rows = class.members.iter().map(|key| key.0.cast_signed());
            table.lie(number, Span::over(rows));
            if self.memory.restricted.contains(&number) {
                table.restrict(number);
            }
            if class.is_alone {
                continue;
            }
            let damaged = || MaterializedError::Damaged { view: self.definition.name.clone() };
            let nodes = self.memory.nodes(&class.labels).ok_or_else(damaged)?;
            let class_id = kohort_core::changing::ClassId(number.cast_unsigned());
            self.memory.put_class(class_id, &nodes, class.members.len() as u64);
        }
        self.memory.made.ncp_when_made = Some(self.making.version.summary.ncp);
        table.counters = self.memory.counters;
        self.memory.touched.clear();
        let (name, store) = (&self.definition.name, MaterializedError::Store);
        let made = serde_json::to_string(&self.memory.made).expect("texts and numbers are JSON");
        let counters = serde_json::to_string(&self.memory.counters).expect("numbers are JSON");
        self.change.put_record(MADE, name, &made).map_err(store)?;
        self.change.put_record(COUNTERS, name, &counters).map_err(store)?;
        let (origin, most_bytes) = (self.making.origin.clone(), self.making.most_kept_bytes);
        self.memory.kept = KeptCells::read(&self.layout, &self.definition, self.change, most_bytes)?.map(Arc::new);
        Materialized::with(self.definition, origin, self.layout, self.memory, table)
    }
}

/// The classes of a version, with the keys of their members by the places of their rows.
pub(super) fn classes_of_version(
    version: &Version,
    keys: impl Iterator<Item = (usize, MemberKey)>,
) -> Vec<ClassOfVersion> {
    let directory = version.directory(None);
    let mut key_of_place: Vec<Option<MemberKey>> = Vec::new();
    for (place, key) in keys {
        if place >= key_of_place.len() {
            key_of_place.resize(place + 1, None);
        }
        key_of_place[place] = Some(key);
    }
    let key_of = |row: &u32| key_of_place.get(*row as usize).copied().flatten();
    let class = |class: u32| ClassOfVersion {
        is_alone: directory.class(class).is_alone,
        labels: (0..directory.quasi().len()).map(|quasi| directory.label(quasi, class).map(str::to_owned)).collect(),
        members: directory.rows(&[class]).iter().filter_map(key_of).collect(),
    };
    (0..directory.n_classes() as u32).map(class).collect()
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

    /// A count for each value that is known.
    fn of_all(mut self, memory: &Memory) -> Vec<Vec<u64>> {
        self.0.resize(memory.values.len(), Vec::new());
        self.0.iter_mut().zip(&memory.values).for_each(|(counts, values)| counts.resize(values.len(), 0));
        self.0
    }
}

/// Shares that are compared with are those of now, until the next refresh.
pub(super) fn fix_shares(
    memory: &mut Memory,
    definition: &Definition,
    counts: ValueCounts,
) -> Result<(), MaterializedError> {
    let names = tuple_columns(definition, &memory.pairs);
    let counts = counts.of_all(memory);
    let columns: Vec<ReferenceColumn> =
        names.into_iter().zip(&counts).map(|(name, counts)| ReferenceColumn { name, counts: counts.clone() }).collect();
    memory.standard = Standard::compile(&requirements(definition, &memory.pairs), &columns)?;
    if definition.clauses.t.is_some() {
        memory.made.counts = counts;
    }
    Ok(())
}
