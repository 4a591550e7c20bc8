//! Making a materialized view from a verified version, and making it anew.
//!
//! A refresh starts from the rows as they are, with a fresh partition. Rows that did not change keep their keys, so that
//! it can be told what readers of the old and the new could combine; where that is a set of persons that does not
//! satisfy what is asked, the owner has to say `FORCE`.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, RwLock};

use datafusion::arrow::array::RecordBatch;
use kohort_core::changing::{
    AtomMember, Ledger, Member, MemberKey, Past, Place, ReferenceColumn, Shown, Standard, Standing, refresh,
};
use kohort_model::Role;
use kohort_store::{Change, State, TableDescription};

use super::cells::KeptCells;
use super::classes::Span;
use super::follow::{Arrival, COUNTERS, Changed, RowState};
use super::layout::Layout;
use super::ledger::{ALONE, CORE, HIDDEN, IN_ATOM, KeptRow, Persons, RIDER, StoredLedger};
use super::load::{Held, load};
use super::members::{NewRow, new_rows, tuple_columns};
use super::memory::{Counters, Made, Memory, pairs_of, requirements};
use super::policies::PolicyRows;
use super::problem::MaterializedProblem;
use super::trees::KnownTrees;
use super::write::{Fate, Writing, class_batch};
use super::{ClassTable, Materialized, Origin};
use crate::hierarchies::Hierarchies;
use crate::parser::{Answers, Purposes};
use crate::view::{Definition, Version, ViewProblem};

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

/// Whether readers of the old and the new view may tell persons apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// They may not.
    No,
    /// The owner takes it.
    Yes,
}

/// What a definition must be to be materialized.
///
/// # Errors
/// What it is not.
pub fn check(definition: &Definition) -> Result<(), MaterializedProblem> {
    let quasi = definition.with_role(Role::Quasi).into_iter().map(|position| &definition.columns[position]);
    let bare: Vec<String> =
        quasi.filter(|column| column.hierarchy.is_none()).map(|column| column.name.clone()).collect();
    if !bare.is_empty() {
        return Err(MaterializedProblem::NoHierarchy { columns: bare });
    }
    if definition.policy_key.is_some_and(|key| key != definition.identifier) {
        return Err(MaterializedProblem::PolicyKey);
    }
    let what = match definition {
        Definition { purposes: Purposes::Apart, .. } => "PER PURPOSE",
        Definition { answers: Answers::Matching, .. } => "ANSWERS MATCHING",
        _ => return Ok(()),
    };
    Err(MaterializedProblem::Option { what })
}

impl Materialized {
    /// Makes a view within a change.
    ///
    /// # Errors
    /// Where the rows are not what a materialized view takes.
    pub fn make(change: &Change, making: &Making<'_>) -> Result<Materialized, ViewProblem> {
        let definition = Arc::clone(&making.version.definition);
        let layout = Layout::of(&definition);
        let schema = making.policies.as_ref().map(PolicyRows::schema);
        let (tables, store) = (layout.tables(&definition, schema.as_ref()), MaterializedProblem::Store);
        for table in &tables {
            if change.table(&table.name).map_err(store)?.is_some() {
                change.drop_table(&table.name).map_err(store)?;
            }
            let without_indexes = TableDescription { indexes: Vec::new(), ..table.clone() };
            change.create_table(&without_indexes).map_err(store)?;
        }
        let made = made(&definition, making)?;
        let memory =
            Memory::new(&definition, made, Counters { next_class: 1, next_atom: 1, epoch: 1, made: making.now })?;
        let made = Maker { definition, layout, change, making, memory, old: Old::default() }.make(Force::No)?;
        // An index over rows that are there is sorted once, instead of searched for each of them.
        for table in &tables {
            for index in &table.indexes {
                change.create_index(&table.name, &index.columns, index.uniqueness).map_err(store)?;
            }
        }
        Ok(made)
    }

    /// Makes it anew within a change.
    ///
    /// # Errors
    /// Where readers of the old and the new could tell persons apart, unless that is forced.
    pub fn remake(&self, change: &Change, making: &Making<'_>, force: Force) -> Result<Materialized, ViewProblem> {
        let (definition, layout) = (Arc::clone(&making.version.definition), self.layout.clone());
        let (old_memory, _) = load(&self.definition, &layout, change)?;
        let persons = Persons::default();
        let rows = self.ledger(&old_memory, change, &persons).rows(Vec::new())?;
        let mut memory = Memory::new(&definition, made(&definition, making)?, old_memory.counters)?;
        let is_comparable = tuple_columns(&definition, &memory.pairs) == tuple_columns(&definition, &old_memory.pairs);
        if !is_comparable && force == Force::No {
            let (view, n_exposed) = (definition.name.clone(), rows.len() as u64);
            return Err(MaterializedProblem::Exposes { view, n_exposed, others: 0 }.into());
        }
        if is_comparable {
            memory.values = old_memory.values;
        }
        // What is known of these choices is known for the pairs of then.
        (memory.choices, memory.restricting) = (old_memory.choices, old_memory.restricting);
        memory.made.marked = old_memory.made.marked;
        memory.counters.epoch += 1;
        let old = Old { rows, persons };
        Maker { definition, layout, change, making, memory, old }.make(force)
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
    ) -> Result<Materialized, ViewProblem> {
        let layout = Layout::of(&definition);
        let (mut memory, classes) = load(&definition, &layout, state)?;
        memory.kept = KeptCells::read(&layout, &definition, state, most_kept_bytes)?.map(Arc::new);
        Materialized::with(definition, origin, layout, memory, classes)
    }

    /// Whether one of this name is kept.
    ///
    /// # Errors
    /// Where the store can't be read.
    pub fn is_kept(name: &str, state: &State) -> Result<bool, MaterializedProblem> {
        Ok(state.record(MADE, name)?.is_some())
    }

    /// Forgets everything that is kept of a view, within a change.
    ///
    /// # Errors
    /// Where the store refuses.
    pub fn drop_kept(definition: &Definition, change: &Change) -> Result<(), MaterializedProblem> {
        let layout = Layout::of(definition);
        for table in [&layout.rows, &layout.classes, &layout.values, &layout.choices, &layout.past] {
            if change.table(table)?.is_some() {
                change.drop_table(table)?;
            }
        }
        change.remove_record(MADE, &definition.name)?;
        change.remove_record(COUNTERS, &definition.name)?;
        Ok(())
    }

    fn with(
        definition: Arc<Definition>,
        origin: Origin,
        layout: Layout,
        memory: Memory,
        mut classes: ClassTable,
    ) -> Result<Materialized, ViewProblem> {
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
fn made(definition: &Definition, making: &Making<'_>) -> Result<Made, ViewProblem> {
    let mut hierarchies = BTreeMap::new();
    for column in &definition.columns {
        let Some(name) = &column.hierarchy else { continue };
        let fault = |fault| ViewProblem::Hierarchy { column: column.name.clone(), fault };
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

/// What was kept before.
#[derive(Default)]
struct Old {
    rows: Vec<KeptRow>,
    persons: Persons,
}

struct Maker<'a> {
    definition: Arc<Definition>,
    layout: Layout,
    change: &'a Change,
    making: &'a Making<'a>,
    memory: Memory,
    old: Old,
}

/// Rows that are new to the tables.
type Arrivals<'r> = BTreeMap<MemberKey, Arrival<'r>>;

/// Per row its member, where it is one.
type Members = Vec<Option<Arc<Member>>>;

/// A class that is to be shown.
struct NewClass {
    is_alone: bool,
    labels: Vec<Option<String>>,
    members: Vec<MemberKey>,
}

impl Maker<'_> {
    fn make(mut self, force: Force) -> Result<Materialized, ViewProblem> {
        let definition = Arc::clone(&self.definition);
        let n_values: Vec<usize> = self.memory.values.iter().map(super::memory::Values::len).collect();
        let policies = self.making.policies.as_ref();
        let mut rows = new_rows(&definition, &self.memory, &self.making.rows, policies.map(|rows| &rows.policies))?;
        self.sort_by_class(&mut rows);
        let view = self.shell()?;
        let (members, arrivals) = self.members(&view, &rows)?;
        let classes = self.classes(&rows, &members);
        self.fix_shares(&classes, &members)?;
        let states = self.states(&classes, &members, force)?;
        self.write(&view, &classes, states, arrivals)?;
        view.write_values(&self.memory, self.change, &n_values)?;
        self.finish(&classes)
    }

    /// A view without anything in memory, to write through.
    fn shell(&self) -> Result<Materialized, ViewProblem> {
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

    /// Rows of a class get numbers beside each other, so that whoever reads the class finds them in one place.
    fn sort_by_class(&self, rows: &mut [NewRow]) {
        let directory = self.making.version.directory(None);
        let mut class_of_place = vec![u32::MAX; self.making.rows.num_rows()];
        for class in 0..directory.n_classes() as u32 {
            directory.rows(&[class]).into_iter().for_each(|place| class_of_place[place as usize] = class);
        }
        rows.sort_by_key(|row| class_of_place[row.place]);
    }

    /// Rows as members, those that did not change under their old keys, and those that are new to the tables.
    fn members<'r>(&mut self, view: &Materialized, rows: &'r [NewRow]) -> Result<(Members, Arrivals<'r>), ViewProblem> {
        let current: HashMap<&str, &KeptRow> =
            self.old.rows.iter().filter(|row| row.shown == Shown::Stays).map(|row| (row.name.as_str(), row)).collect();
        let mut next = self.change.next_row(&self.layout.rows).map_err(MaterializedProblem::Store)?;
        let (mut members, mut arrivals) = (Vec::with_capacity(rows.len()), BTreeMap::new());
        for row in rows {
            let choice = view.choice(&mut self.memory, self.change, row, self.making.policies.as_ref())?;
            let key = MemberKey(next.cast_unsigned());
            let mut member = self.memory.member(row, choice, key, self.old.persons.shared_key(&row.name));
            let leaves =
                |member: &Member| serde_json::to_string(&self.memory.labels(&member.nodes)).unwrap_or_default();
            let known = current.get(row.name.as_ref()).copied().zip(member.as_mut());
            let is_known = match known {
                Some((was, member))
                    if was.member.k == member.k && was.nodes == leaves(member) && was.member.tuple == member.tuple =>
                {
                    member.key = was.member.key;
                    true
                }
                _ => false,
            };
            let member = member.map(Arc::new);
            if !is_known {
                next += 1;
                arrivals.insert(key, Arrival { row, choice, member: member.clone(), state: RowState::HIDDEN });
            }
            members.push(member);
        }
        Ok((members, arrivals))
    }

    /// The classes of the version, with the keys of their members.
    fn classes(&self, rows: &[NewRow], members: &[Option<Arc<Member>>]) -> Vec<NewClass> {
        let directory = self.making.version.directory(None);
        let mut key_of_place: HashMap<u32, MemberKey> = HashMap::new();
        for (row, member) in rows.iter().zip(members) {
            key_of_place.extend(member.as_ref().map(|member| (row.place as u32, member.key)));
        }
        let class = |class: u32| NewClass {
            is_alone: directory.class(class).is_alone,
            labels: (0..directory.quasi().len())
                .map(|quasi| directory.label(quasi, class).map(str::to_owned))
                .collect(),
            members: directory.rows(&[class]).iter().filter_map(|row| key_of_place.get(row).copied()).collect(),
        };
        (0..directory.n_classes() as u32).map(class).collect()
    }

    /// Shares that are compared with are those of now, until the next refresh.
    fn fix_shares(&mut self, classes: &[NewClass], members: &[Option<Arc<Member>>]) -> Result<(), MaterializedProblem> {
        let in_classes: BTreeSet<MemberKey> =
            classes.iter().filter(|class| !class.is_alone).flat_map(|class| class.members.iter().copied()).collect();
        let names = tuple_columns(&self.definition, &self.memory.pairs);
        let mut counts: Vec<Vec<u64>> = self.memory.values.iter().map(|values| vec![0; values.len()]).collect();
        for member in members.iter().flatten().filter(|member| in_classes.contains(&member.key)) {
            for (counts, &number) in counts.iter_mut().zip(&member.tuple) {
                counts[number as usize] += 1;
            }
        }
        let columns: Vec<ReferenceColumn> = names
            .into_iter()
            .zip(&counts)
            .map(|(name, counts)| ReferenceColumn { name, counts: counts.clone() })
            .collect();
        self.memory.standard = Standard::compile(&requirements(&self.definition, &self.memory.pairs), &columns)?;
        if self.definition.t.is_some() {
            self.memory.made.counts = counts;
        }
        Ok(())
    }

    /// Where each member is from now on.
    fn states(
        &mut self,
        classes: &[NewClass],
        members: &[Option<Arc<Member>>],
        force: Force,
    ) -> Result<BTreeMap<MemberKey, RowState>, ViewProblem> {
        let by_key: HashMap<MemberKey, &Member> =
            members.iter().flatten().map(|member| (member.key, member.as_ref())).collect();
        let mut atoms: BTreeMap<u64, Vec<AtomMember>> = BTreeMap::new();
        for row in &self.old.rows {
            if let Place::Atom { atom, .. } = row.place {
                let (member, standing, shown) = (row.member.clone(), row.standing, row.shown);
                atoms.entry(atom.0).or_default().push(AtomMember { member, standing, shown });
            }
        }
        let old: Vec<Vec<AtomMember>> = atoms.into_values().collect();
        let crowds: Vec<usize> = (0..classes.len()).filter(|&class| !classes[class].is_alone).collect();
        let new: Vec<Vec<&Member>> =
            crowds.iter().map(|&class| classes[class].members.iter().map(|key| by_key[key]).collect()).collect();
        let ledger = StoredLedger {
            state: self.change,
            layout: &self.layout,
            memory: &self.memory,
            view: &self.definition.name,
            persons: &self.old.persons,
        };
        let is_first = self.old.rows.is_empty();
        let past = |person| if is_first { Ok(Past::Nothing) } else { ledger.past(person) };
        let refreshed = refresh(&self.memory.standard, &old, &new, past)?;
        if refreshed.combined.n_exposed > 0 && force == Force::No {
            let (view, n_exposed) = (self.definition.name.clone(), refreshed.combined.n_exposed);
            let others = refreshed.combined.fewest.unwrap_or(1) - 1;
            return Err(MaterializedProblem::Exposes { view, n_exposed, others }.into());
        }
        let first_class = self.memory.counters.next_class;
        let number = |class: usize| (first_class + class as u64).cast_signed();
        let mut states = BTreeMap::new();
        let mut next_atom = self.memory.counters.next_atom;
        for (&class, atoms) in crowds.iter().zip(&refreshed.atoms) {
            for members in atoms {
                let atom = Some(next_atom.cast_signed());
                next_atom += 1;
                for (key, standing) in members {
                    let standing = if *standing == Standing::Core { CORE } else { RIDER };
                    let state = RowState { place: IN_ATOM, class: Some(number(class)), atom, standing };
                    states.insert(*key, state);
                }
            }
        }
        let in_atoms: BTreeSet<MemberKey> = old.iter().flatten().map(|member| member.member.key).collect();
        for (class, alone) in classes.iter().enumerate().filter(|(_, class)| class.is_alone) {
            for key in &alone.members {
                // Who was shown in a crowd and is shown alone would be known in the crowd.
                let was_in_crowd = in_atoms.contains(key) || matches!(past(by_key[key].person)?, Past::Among(_));
                let state = match was_in_crowd && force == Force::No {
                    true => RowState { place: HIDDEN, class: None, atom: None, standing: CORE },
                    false => RowState { place: ALONE, class: Some(number(class)), atom: None, standing: CORE },
                };
                states.insert(*key, state);
            }
        }
        self.memory.counters.next_atom = next_atom;
        self.memory.counters.next_class += classes.len() as u64;
        Ok(states)
    }

    fn write(
        &mut self,
        view: &Materialized,
        classes: &[NewClass],
        mut states: BTreeMap<MemberKey, RowState>,
        mut arrivals: BTreeMap<MemberKey, Arrival<'_>>,
    ) -> Result<(), ViewProblem> {
        let first_class = (self.memory.counters.next_class - classes.len() as u64).cast_signed();
        let numbered: Vec<(i64, bool, Vec<Option<String>>)> = (first_class..)
            .zip(classes)
            .map(|(number, class)| (number, class.is_alone, class.labels.clone()))
            .collect();
        let store = MaterializedProblem::Store;
        let known = self.change.table(&self.layout.classes).map_err(store)?;
        if let Some(table) = known.filter(|_| !self.old.rows.is_empty()) {
            self.change.drop_table(&self.layout.classes).map_err(store)?;
            self.change.create_table(&table).map_err(store)?;
        }
        self.memory.restricted = self.restricted(&states, &arrivals);
        self.change
            .insert(&self.layout.classes, &class_batch(&self.layout, &numbered, &self.memory.restricted))
            .map_err(store)?;
        for (number, is_alone, labels) in numbered {
            if is_alone {
                self.memory.alone.insert(labels, number);
            }
        }
        let mut pasts: BTreeMap<String, Past> = BTreeMap::new();
        for (key, arrival) in &mut arrivals {
            if let Some(state) = states.remove(key) {
                arrival.state = state;
                if state.place == ALONE {
                    pasts.insert(arrival.row.name.to_string(), Past::Alone);
                }
            }
        }
        let mut fates: BTreeMap<MemberKey, Fate> = BTreeMap::new();
        for row in &self.old.rows {
            fates.insert(row.member.key, states.remove(&row.member.key).map_or(Fate::Gone, Fate::At));
        }
        let changed =
            Changed { names: Vec::new(), rows: self.making.rows.clone(), policies: None, now: self.making.now };
        let (memory, change, persons) = (&mut self.memory, self.change, &self.old.persons);
        let writing = Writing { view, memory, change, persons, changed: &changed };
        writing.insert_rows(&arrivals)?;
        writing.move_rows(&fates)?;
        writing.remember(&pasts)?;
        Ok(())
    }

    /// The classes in which somebody may refuse a quasi column. Of rows that were there before it is not looked up.
    fn restricted(
        &self,
        states: &BTreeMap<MemberKey, RowState>,
        arrivals: &BTreeMap<MemberKey, Arrival<'_>>,
    ) -> HashSet<i64> {
        let restricting = &self.memory.restricting;
        let is_free = |key: &MemberKey| {
            let choice = arrivals.get(key).and_then(|arrival| arrival.choice);
            restricting.is_empty() || choice.is_some_and(|choice| !restricting.contains(&choice))
        };
        states.iter().filter(|(key, _)| !is_free(key)).filter_map(|(_, state)| state.class).collect()
    }

    fn finish(mut self, classes: &[NewClass]) -> Result<Materialized, ViewProblem> {
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
            let damaged = || MaterializedProblem::Damaged { view: self.definition.name.clone() };
            let nodes = self.memory.nodes(&class.labels).ok_or_else(damaged)?;
            let class_id = kohort_core::changing::ClassId(number.cast_unsigned());
            self.memory.put_class(class_id, &nodes, class.members.len() as u64);
        }
        self.memory.made.ncp_when_made = Some(self.making.version.summary.ncp);
        table.counters = self.memory.counters;
        self.memory.touched.clear();
        let (name, store) = (&self.definition.name, MaterializedProblem::Store);
        let made = serde_json::to_string(&self.memory.made).expect("texts and numbers are JSON");
        let counters = serde_json::to_string(&self.memory.counters).expect("numbers are JSON");
        self.change.put_record(MADE, name, &made).map_err(store)?;
        self.change.put_record(COUNTERS, name, &counters).map_err(store)?;
        let (origin, most_bytes) = (self.making.origin.clone(), self.making.most_kept_bytes);
        self.memory.kept = KeptCells::read(&self.layout, &self.definition, self.change, most_bytes)?.map(Arc::new);
        Materialized::with(self.definition, origin, self.layout, self.memory, table)
    }
}
