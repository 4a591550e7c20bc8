//! Reading a materialized view: the classes whose labels could match, and their rows, from one state of the store.
//!
//! What comes of it is a version of its own, small or large, whose directory holds the classes that were read. So
//! everything above, from labels to `verify_block`, is as it is for views that are not materialized.
//!
//! Until rows are wanted there is an [`Unread`], which knows the state and whom it is read for. Which classes could match
//! is found in memory, and once more when rows are wanted, for by then a join may have said more. Where what is in memory
//! is of another state than the one that is read, everything is read.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, new_empty_array};
use datafusion::arrow::compute::{concat, filter_record_batch};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use foldhash::fast::RandomState;
use kohort_io::{PlainCells, PrivateRows, read_rows};
use kohort_labels::meaning::CouldBe;
use kohort_model::{Column, NULL, Role, Texts};
use kohort_store::{Condition, ScanRequest, State, Value};

use super::cells::{KeptCells, ShownRows, shown_columns};
use super::classes::{Labelled, Span};
use super::error::MaterializedError;
use super::follow::COUNTERS;
use super::layout::{CLASS, IS_ALONE, IS_RESTRICTED, PLACE};
use super::ledger::{ALONE, IN_ATOM};
use super::load::{classes_of, empty_columns};
use super::memory::Counters;
use super::policies::kept_policies;
use super::{ClassTable, Materialized};
use crate::options::ViewOptions;
use crate::policy::Policies;
use crate::store::Reading;
use crate::view::read::assemble::Chosen;
use crate::view::read::choose::{Comparison, satisfying};
use crate::view::version::directory::{Assigned, Directory, PolicyKey};
use crate::view::{Fingerprint, Reader, Summary, Version, ViewError};

/// Up to so many classes are looked up one by one; beyond, everything is read.
const MOST_CLASSES: usize = 10_000;

/// So many classes at most are read for a point: more are not read while others wait.
const MOST_POINT_CLASSES: usize = 256;

/// Classes that are to be read.
struct Wanted {
    classes: Vec<Labelled>,
    /// Those of which it is known where their rows lie.
    near: Vec<(i64, Span)>,
    /// The numbers of the others.
    far: Vec<i64>,
    /// The rows of the former, where they are in memory.
    kept: Option<Arc<KeptCells>>,
}

impl Wanted {
    fn of(classes: &ClassTable, places: &[u32]) -> Wanted {
        let (near, far) = classes.lying(places);
        Wanted { classes: classes.described(places), near, far, kept: classes.kept.clone() }
    }
}

/// What a look for a few classes found.
pub(in crate::view) enum PointRead {
    Found(StoredRead),
    /// They are many, or which they are can't be told.
    Many,
    /// What is in memory is of another state: somebody has just committed, or is about to say so.
    OtherState,
}

/// Classes of a materialized view, as they are kept.
pub(in crate::view) struct StoredRead {
    pub(in crate::view) version: Arc<Version>,
    /// The rows, as the version sees them.
    pub(in crate::view) private: Arc<PrivateRows>,
    /// Per row its class in the version's directory.
    pub(in crate::view) class_of_row: Vec<u32>,
    /// Per row the place of what its person allowed; empty without policies.
    pub(in crate::view) policy_of_row: Vec<Option<u32>>,
}

/// A materialized view of which no row was read yet.
#[derive(Clone)]
pub(in crate::view) struct Unread {
    view: Arc<Materialized>,
    /// What it is read from.
    reading: Arc<Reading>,
    options: ViewOptions,
    /// Its number, and what persons allow; it has no classes.
    pub(in crate::view) version: Arc<Version>,
    /// The classes that could match, as far as that can be told.
    pub(in crate::view) chosen: Chosen,
    /// How many there are to choose from.
    pub(in crate::view) n_classes: usize,
}

impl Unread {
    /// Looks which classes could satisfy comparisons.
    ///
    /// # Errors
    /// Where what is kept can't be read.
    pub(in crate::view) fn of(
        view: Arc<Materialized>,
        reading: Arc<Reading>,
        options: ViewOptions,
        comparisons: &[Comparison],
    ) -> Result<Unread, ViewError> {
        let state = reading.state();
        let (counters, policies) = (view.counters(state)?, view.policies(state)?);
        let (chosen, n_classes) = {
            let classes = view.classes.read().unwrap_or_else(PoisonError::into_inner);
            let places = view.places(&classes, counters, policies.as_ref(), &options, comparisons);
            let n_classes = classes.n_classes();
            let some = places.filter(|places| places.len() < n_classes);
            (some.map_or(Chosen::All, Chosen::Classes), n_classes)
        };
        let version = Arc::new(view.version_without_classes(policies, counters.epoch)?);
        Ok(Unread { view, reading, options, version, chosen, n_classes })
    }

    /// Reads the classes whose labels could satisfy comparisons.
    ///
    /// # Errors
    /// Where what is kept can't be read.
    pub(in crate::view) fn read(&self, comparisons: &[Comparison]) -> Result<StoredRead, ViewError> {
        let (view, state) = (&self.view, self.reading.state());
        let (counters, policies) = (view.counters(state)?, view.policies(state)?);
        let wanted = {
            let classes = view.classes.read().unwrap_or_else(PoisonError::into_inner);
            let places = view.places(&classes, counters, policies.as_ref(), &self.options, comparisons);
            places.map(|places| Wanted::of(&classes, &places))
        };
        view.read_classes(state, wanted, policies, counters.epoch)
    }

    /// The labels that a reader finds in a quasi column. Rows are read only of classes in which somebody may refuse
    /// something, or of which it is not known whether they still show somebody.
    ///
    /// # Errors
    /// Where what is kept can't be read.
    pub(in crate::view) fn shown_labels(&self, reader: Reader, position: usize) -> Result<BTreeSet<String>, ViewError> {
        let (view, state) = (&self.view, self.reading.state());
        let (counters, policies) = (view.counters(state)?, view.policies(state)?);
        let (mut labels, wanted) = {
            let classes = view.classes.read().unwrap_or_else(PoisonError::into_inner);
            match view.knows(&classes, counters, policies.as_ref(), &self.options) {
                false => (BTreeSet::new(), None),
                true => {
                    let (labels, unsure) = classes.shown_labels(position);
                    if unsure.is_empty() {
                        return Ok(labels);
                    }
                    (labels, (unsure.len() <= MOST_CLASSES).then(|| Wanted::of(&classes, &unsure)))
                }
            }
        };
        let read = view.read_classes(state, wanted, policies, counters.epoch)?;
        labels.extend(read.version.shown_labels(reader, position).into_iter().map(str::to_owned));
        Ok(labels)
    }
}

impl Materialized {
    /// Whether what is in memory is of a state, and tells what a reader finds there.
    fn knows(
        &self,
        classes: &ClassTable,
        counters: Counters,
        policies: Option<&Policies>,
        options: &ViewOptions,
    ) -> bool {
        classes.counters == counters && self.is_marked(policies, options)
    }

    /// The places of the classes that could satisfy comparisons; `None` where that can't be told, or they are so many that
    /// everything is read.
    fn places(
        &self,
        classes: &ClassTable,
        counters: Counters,
        policies: Option<&Policies>,
        options: &ViewOptions,
        comparisons: &[Comparison],
    ) -> Option<Vec<u32>> {
        let is_known = self.knows(classes, counters, policies, options);
        let chosen = if is_known { self.choose(classes, comparisons) } else { None };
        chosen.map(|chosen| classes.marked(&chosen)).filter(|places| places.len() <= MOST_CLASSES)
    }

    /// Reads the classes whose labels could satisfy questions of quasi columns, where they are few.
    ///
    /// # Errors
    /// Where what is kept can't be read.
    pub(in crate::view) fn read_point(
        &self,
        state: &State,
        options: &ViewOptions,
        asked: &[(usize, &CouldBe)],
    ) -> Result<PointRead, ViewError> {
        let (counters, policies) = (self.counters(state)?, self.policies(state)?);
        if !self.is_marked(policies.as_ref(), options) {
            return Ok(PointRead::Many);
        }
        let wanted = {
            let classes = self.classes.read().unwrap_or_else(PoisonError::into_inner);
            if classes.counters != counters {
                return Ok(PointRead::OtherState);
            }
            let Some(places) = classes.find(asked, MOST_POINT_CLASSES) else { return Ok(PointRead::Many) };
            Wanted::of(&classes, &places)
        };
        self.read_classes(state, Some(wanted), policies, counters.epoch).map(PointRead::Found)
    }

    /// Whether it is known which classes may show a reader another label than they have. Purposes that nobody spoke of
    /// when the view was made are refused by all others.
    fn is_marked(&self, policies: Option<&Policies>, options: &ViewOptions) -> bool {
        policies.is_none_or(|policies| {
            let pair = policies.pair(options.purpose.as_deref(), options.recipient.as_deref());
            pair.is_ok_and(|pair| self.marked.contains(&policies.pairs()[pair.0]))
        })
    }

    pub(super) fn counters(&self, state: &State) -> Result<Counters, MaterializedError> {
        let damaged = || MaterializedError::Damaged { view: self.definition.name.clone() };
        let counters = state.record(COUNTERS, &self.definition.name)?.ok_or_else(damaged)?;
        serde_json::from_str(&counters).map_err(|_| damaged())
    }

    /// Reads these classes, or all.
    fn read_classes(
        &self,
        state: &State,
        wanted: Option<Wanted>,
        policies: Option<Policies>,
        epoch: u64,
    ) -> Result<StoredRead, ViewError> {
        let (classes, mut columns) = self.rows(state, wanted.as_ref())?;
        let policy_of_row = match &policies {
            None => Vec::new(),
            Some(policies) => {
                let choices = columns.remove(0);
                let choices = choices.as_primitive::<Int64Type>().iter();
                choices.map(|choice| policies.person(&choice?.to_string())).collect()
            }
        };
        let rows = RecordBatch::try_new(self.schema(), columns).map_err(|error| self.failed(error))?;
        let labels = match wanted {
            Some(wanted) => wanted.classes,
            None => self.labels(state)?,
        };
        self.version(&classes, &rows, labels, policies, policy_of_row, epoch)
    }

    /// Per class whether its labels could satisfy all comparisons; `None` where that can't be told.
    fn choose(&self, classes: &ClassTable, comparisons: &[Comparison]) -> Option<Vec<bool>> {
        let mut chosen: Option<Vec<bool>> = None;
        for comparison in comparisons {
            let found = satisfying(&self.definition, classes, comparison).ok().flatten()?;
            chosen = Some(match chosen {
                None => found,
                Some(chosen) => chosen.into_iter().zip(found).map(|(chosen, found)| chosen && found).collect(),
            });
        }
        chosen
    }

    /// The rows that are shown: their classes, what their persons allow, if there are policies, and their cells.
    fn rows(&self, state: &State, wanted: Option<&Wanted>) -> Result<(Vec<i64>, Vec<ArrayRef>), ViewError> {
        let mut parts = Vec::new();
        match wanted {
            None => self.scan(state, ScanRequest::default(), None, &mut parts)?,
            Some(Wanted { near, far, kept: Some(kept), .. }) => {
                parts = kept.rows(near).map_err(|error| self.failed(error))?;
                if !far.is_empty() {
                    self.scan(state, of_classes(far.iter().copied()), None, &mut parts)?;
                }
            }
            Some(Wanted { classes, near, far, kept: None }) => {
                let numbers = || near.iter().flat_map(|(_, span)| span.first..=span.last).collect();
                let request = match far.is_empty() {
                    true => ScanRequest { numbers: Some(numbers()), ..ScanRequest::default() },
                    false => of_classes(classes.iter().map(|(number, ..)| *number)),
                };
                let classes = classes.iter().map(|(number, ..)| *number).collect();
                self.scan(state, request, Some(&classes), &mut parts)?;
            }
        }
        let classes = parts.iter().flat_map(|part| part.classes.iter().copied()).collect();
        let types = self.definition.clauses.policy.iter().map(|_| DataType::Int64);
        let types = types.chain(self.definition.columns.iter().map(|column| column.data_type.clone()));
        let column = |(position, data_type): (usize, DataType)| match parts.as_slice() {
            [] => Ok(new_empty_array(&data_type)),
            [part] => Ok(Arc::clone(&part.columns[position])),
            parts => concat(&parts.iter().map(|part| part.columns[position].as_ref()).collect::<Vec<&dyn Array>>()),
        };
        let columns: Result<Vec<ArrayRef>, ArrowError> = types.enumerate().map(column).collect();
        Ok((classes, columns.map_err(|error| self.failed(error))?))
    }

    /// Adds what a scan finds of rows that are shown, in these classes if they are named.
    fn scan(
        &self,
        state: &State,
        request: ScanRequest,
        classes: Option<&HashSet<i64>>,
        parts: &mut Vec<ShownRows>,
    ) -> Result<(), ViewError> {
        let fixed = [CLASS, PLACE].map(str::to_owned).into_iter();
        let columns = Some(fixed.chain(shown_columns(&self.layout, &self.definition)).collect());
        let scan = state.scan(&self.layout.rows, &ScanRequest { columns, ..request });
        for batch in scan.map_err(MaterializedError::Store)? {
            let batch = batch.map_err(MaterializedError::Store)?;
            let integers = |column: usize| batch.column(column).as_primitive::<Int64Type>().iter();
            let is_shown = |(class, place): (Option<i64>, Option<i64>)| {
                let is_wanted = |classes: &HashSet<i64>| class.is_some_and(|class| classes.contains(&class));
                Some(matches!(place, Some(IN_ATOM | ALONE)) && classes.is_none_or(is_wanted))
            };
            let is_shown = integers(0).zip(integers(1)).map(is_shown).collect();
            let shown = filter_record_batch(&batch, &is_shown).map_err(|error| self.failed(error))?;
            let classes = shown.column(0).as_primitive::<Int64Type>().values().to_vec();
            parts.push(ShownRows { classes, columns: shown.columns()[2..].to_vec() });
        }
        Ok(())
    }

    fn failed(&self, error: ArrowError) -> ViewError {
        ViewError::of_query(&self.definition.name, &error.into())
    }

    fn schema(&self) -> SchemaRef {
        let field = |column: &crate::view::ViewColumn| Field::new(&column.name, column.data_type.clone(), true);
        Schema::new(self.definition.columns.iter().map(field).collect::<Vec<_>>()).into()
    }

    /// What persons allowed when their rows were admitted, by number.
    fn policies(&self, state: &State) -> Result<Option<Policies>, ViewError> {
        let Some(reference) = &self.definition.clauses.policy else { return Ok(None) };
        let mut batches = Vec::new();
        for batch in state.scan(&self.layout.choices, &ScanRequest::default()).map_err(MaterializedError::Store)? {
            batches.push(batch.map_err(MaterializedError::Store)?);
        }
        let columns: Vec<String> = self.definition.columns.iter().map(|column| column.name.clone()).collect();
        let names = self.policy_columns.clone();
        kept_policies(&batches, &names, reference, &columns).map(Some).map_err(ViewError::Policy)
    }

    /// All classes with their labels.
    pub(super) fn labels(&self, state: &State) -> Result<Vec<Labelled>, ViewError> {
        let fixed = [CLASS, IS_ALONE, IS_RESTRICTED].map(str::to_owned).into_iter();
        let columns = Some(fixed.chain(self.layout.labels.clone()).collect());
        let request = ScanRequest { columns, ..ScanRequest::default() };
        let mut classes = Vec::new();
        for batch in state.scan(&self.layout.classes, &request).map_err(MaterializedError::Store)? {
            let batch = batch.map_err(MaterializedError::Store)?;
            classes.extend(classes_of(&batch).into_iter().map(|(number, alone, _, labels)| (number, alone, labels)));
        }
        Ok(classes)
    }

    /// Gives columns trees over the values that were read, with the labels of the view.
    fn attach(&self, private: &mut PrivateRows) -> Result<(), ViewError> {
        for (position, said) in self.definition.columns.iter().enumerate() {
            let Some(name) = &said.hierarchy else { continue };
            let column = &private.table().columns[position];
            let tree = self.trees.of(position, name, column, self.roots[position].as_deref());
            let fault = |fault| ViewError::Hierarchy { column: said.name.clone(), fault };
            private.set_hierarchy(position, tree.map_err(fault)?);
        }
        Ok(())
    }

    /// A version that nobody is in.
    fn version_without_classes(&self, policies: Option<Policies>, epoch: u64) -> Result<Version, ViewError> {
        let quasi = self.definition.with_role(Role::Quasi);
        let assigned = Assigned {
            labels: vec![Texts::new(); quasi.len()],
            label_of_class: vec![Vec::new(); quasi.len()],
            is_alone: Vec::new(),
            class_of_row: Vec::new(),
            policy_of_row: Vec::new(),
            policy_key: PolicyKey::Other,
            k_of_row: Vec::new(),
        };
        let directory = Directory::of_classes(quasi, assigned);
        Ok(self.version_of(directory, &empty_columns(&self.definition)?, policies, epoch))
    }

    fn version_of(&self, directory: Directory, columns: &[Column], policies: Option<Policies>, epoch: u64) -> Version {
        Version {
            number: epoch,
            definition: Arc::clone(&self.definition),
            fingerprint: Fingerprint::default(),
            policies: policies.map(Arc::new),
            hierarchies: columns.iter().map(|column| column.hierarchy.clone()).collect(),
            value_types: columns.iter().map(|column| column.value_type).collect(),
            meanings: self.meanings(),
            directories: vec![directory],
            shown: None,
            kept: None,
            refusals: Mutex::default(),
            summary: Summary::default(),
        }
    }

    fn version(
        &self,
        numbers: &[i64],
        rows: &RecordBatch,
        mut classes: Vec<Labelled>,
        policies: Option<Policies>,
        policy_of_row: Vec<Option<u32>>,
        epoch: u64,
    ) -> Result<StoredRead, ViewError> {
        let definition = &self.definition;
        let quasi = definition.with_role(Role::Quasi);
        let (roles, identifier) = (definition.roles(), Some(definition.identifier));
        let mut private =
            read_rows(rows, &definition.name, &roles, identifier, PlainCells::Skipped).map_err(ViewError::Columns)?;
        self.attach(&mut private)?;

        // Labels of a class that shows nobody are of those who wait there.
        let shown: HashSet<i64, RandomState> = numbers.iter().copied().collect();
        classes.retain(|(number, ..)| shown.contains(number));
        let mut labels = vec![(Texts::new(), HashMap::<String, u32, RandomState>::default()); quasi.len()];
        let mut label_of_class = vec![Vec::with_capacity(classes.len()); quasi.len()];
        let mut places: HashMap<i64, u32, RandomState> = HashMap::default();
        let mut is_alone = Vec::with_capacity(classes.len());
        for (place, (number, alone, of_class)) in (0..).zip(classes) {
            places.insert(number, place);
            is_alone.push(alone);
            for (column, label) in of_class.into_iter().enumerate() {
                let (texts, ids) = &mut labels[column];
                let id = match label {
                    None => NULL,
                    Some(label) => *ids.entry(label).or_insert_with_key(|label| texts.push(label)),
                };
                label_of_class[column].push(id);
            }
        }
        let class_of_row: Option<Vec<u32>> = numbers.iter().map(|number| places.get(number).copied()).collect();
        let class_of_row = class_of_row.ok_or_else(|| MaterializedError::Damaged { view: definition.name.clone() })?;
        let assigned = Assigned {
            labels: labels.into_iter().map(|(texts, _)| texts).collect(),
            label_of_class,
            is_alone,
            class_of_row: class_of_row.clone(),
            policy_of_row: policy_of_row.clone(),
            policy_key: PolicyKey::Other,
            k_of_row: Vec::new(),
        };
        let directory = Directory::of_classes(quasi, assigned);
        let version = self.version_of(directory, &private.table().columns, policies, epoch);
        let (version, private) = (Arc::new(version), Arc::new(private));
        Ok(StoredRead { version, private, class_of_row, policy_of_row })
    }
}

/// What asks for the rows of classes.
fn of_classes(numbers: impl Iterator<Item = i64>) -> ScanRequest {
    let condition = Condition::In { column: CLASS.to_owned(), values: numbers.map(Value::Integer).collect() };
    ScanRequest { conditions: vec![condition], ..ScanRequest::default() }
}
