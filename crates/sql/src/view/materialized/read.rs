//! Reading a materialized view: the classes whose labels could match, and their rows, from one state of the store.
//!
//! The result is a version of its own, small or large, whose directory holds the classes that were read. So everything
//! above, from labels to `verify_block`, is the same as for computed views.
//!
//! Until rows are wanted there is an [`Unread`], which knows the state of the store and the reader. The classes that could
//! match are chosen in memory, and once more when rows are wanted, because a join may know more by then. If the classes in
//! memory are of another state than the one that is read, everything is read.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, RwLockReadGuard};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, new_empty_array};
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::arrow::error::ArrowError;
use foldhash::fast::RandomState;
use kohort_io::{PlainCells, PrivateRows};
use kohort_model::{Hierarchy, Role};
use kohort_store::{Condition, ScanRequest, State, Value};

use super::cells::ShownRows;
use super::classes::{Labelled, Wanted};
use super::error::MaterializedError;
use super::follow::COUNTERS;
use super::layout::CLASS;
use super::load::classes;
use super::memory::Counters;
use super::policies::kept_policies;
use super::{ClassTable, Materialized};
use crate::options::ViewOptions;
use crate::policy::Policies;
use crate::store::Reading;
use crate::view::class_labels::ClassLabels;
use crate::view::read::assemble::Chosen;
use crate::view::read::choose::LabelComparison;
use crate::view::version::directory::{Assigned, Directory};
use crate::view::{Fingerprint, Point, Reader, Summary, Version, ViewError};

/// Up to this many classes are looked up one by one. If more are wanted, everything is read.
const MOST_CLASSES: usize = 10_000;

/// A point reads at most this many classes, because it runs on the thread that calls it.
const MOST_POINT_CLASSES: usize = 256;

/// Classes of a materialized view, as the store keeps them.
pub(in crate::view) struct StoredRead {
    pub(in crate::view) version: Arc<Version>,
    /// The rows of the classes.
    pub(in crate::view) private: Arc<PrivateRows>,
    /// For each row, its class in the version's directory.
    pub(in crate::view) class_of_row: Vec<u32>,
    /// For each row, the place of the policy that its person had when the row was admitted; empty without policies.
    pub(in crate::view) policy_of_row: Vec<Option<u32>>,
}

/// A materialized view of which no row was read yet.
#[derive(Clone)]
pub(in crate::view) struct Unread {
    view: Arc<Materialized>,
    /// The state of the store that is read.
    reading: Arc<Reading>,
    asked: Asked,
    /// A version without classes. It has the number of the state and the policies.
    pub(in crate::view) version: Arc<Version>,
    /// The classes that could match, as far as is known.
    pub(in crate::view) chosen: Chosen,
    /// How many classes there are to choose from.
    pub(in crate::view) n_classes: usize,
}

/// What a reader finds in a state of the store.
#[derive(Clone)]
struct Asked {
    counters: Counters,
    /// The choices that persons had made when their rows were admitted, by number.
    policies: Option<Arc<Policies>>,
    /// Whether classes are marked as restricted for the reader's purpose and recipient. For pairs that came after the view
    /// was made they are not, and everybody who does not name such a pair refuses it.
    is_marked: bool,
}

impl Asked {
    /// Whether the classes in memory are of this state, and tell what the reader may not see.
    fn is_known_to(&self, classes: &ClassTable) -> bool {
        self.counters == classes.counters && self.is_marked
    }
}

impl Unread {
    /// Chooses the classes that could satisfy comparisons.
    pub(in crate::view) fn of(
        view: Arc<Materialized>,
        reading: Arc<Reading>,
        options: &ViewOptions,
        comparisons: &[LabelComparison],
    ) -> Result<Unread, ViewError> {
        let asked = view.asked(reading.state(), options)?;
        let (chosen, n_classes) = {
            let classes = view.class_table();
            let (places, n_classes) = (view.places(&classes, &asked, comparisons), classes.n_classes());
            let some = places.filter(|places| places.len() < n_classes);
            (some.map_or(Chosen::All, Chosen::Classes), n_classes)
        };
        let version = view.stored_read(&asked, Vec::new(), &[])?.version;
        Ok(Unread { view, reading, asked, version, chosen, n_classes })
    }

    /// Reads the classes whose labels could satisfy comparisons.
    pub(in crate::view) fn read(&self, comparisons: &[LabelComparison]) -> Result<StoredRead, ViewError> {
        let wanted = {
            let classes = self.view.class_table();
            self.view.places(&classes, &self.asked, comparisons).map(|places| classes.wanted(&places))
        };
        self.view.read_classes(self.reading.state(), &self.asked, wanted)
    }

    /// The labels that a reader finds in a quasi column. Rows are read only of classes in which somebody may refuse
    /// something, or that may show nobody any more.
    pub(in crate::view) fn shown_labels(&self, reader: Reader, position: usize) -> Result<BTreeSet<String>, ViewError> {
        let (mut labels, mut wanted) = (BTreeSet::new(), None);
        let classes = self.view.class_table();
        if self.asked.is_known_to(&classes) {
            let (sure, unsure) = classes.shown_labels(position);
            if unsure.is_empty() {
                return Ok(sure);
            }
            labels = sure;
            wanted = (unsure.len() <= MOST_CLASSES).then(|| classes.wanted(&unsure));
        }
        drop(classes);
        let read = self.view.read_classes(self.reading.state(), &self.asked, wanted)?;
        labels.extend(read.version.shown_labels(reader, position).into_iter().map(str::to_owned));
        Ok(labels)
    }
}

impl Materialized {
    fn class_table(&self) -> RwLockReadGuard<'_, ClassTable> {
        self.classes.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn asked(&self, state: &State, options: &ViewOptions) -> Result<Asked, ViewError> {
        let (counters, policies) = (self.counters(state)?, self.policies(state)?);
        let is_marked = policies.as_ref().is_none_or(|policies| {
            policies.pair(&options.pair).is_ok_and(|pair| self.made.marked.contains(&policies.pairs()[pair.0]))
        });
        Ok(Asked { counters, policies: policies.map(Arc::new), is_marked })
    }

    /// The places of the classes that could satisfy comparisons; `None` if everything is to be read.
    fn places(&self, classes: &ClassTable, asked: &Asked, comparisons: &[LabelComparison]) -> Option<Vec<u32>> {
        let is_asked = asked.is_known_to(classes) && !comparisons.is_empty();
        let places = if is_asked { classes.choose(&self.layout.definition, comparisons) } else { None };
        places.filter(|places| places.len() <= MOST_CLASSES)
    }

    /// Reads the classes whose labels could satisfy comparisons, if they are few.
    pub(in crate::view) fn read_point(
        &self,
        state: &State,
        options: &ViewOptions,
        comparisons: &[LabelComparison],
    ) -> Result<Point<StoredRead>, ViewError> {
        let asked = self.asked(state, options)?;
        let wanted = {
            let classes = self.class_table();
            if classes.counters != asked.counters {
                return Ok(Point::OtherState);
            }
            let places = self.places(&classes, &asked, comparisons);
            match places.filter(|places| places.len() <= MOST_POINT_CLASSES) {
                Some(places) => classes.wanted(&places),
                None => return Ok(Point::Planned),
            }
        };
        self.read_classes(state, &asked, Some(wanted)).map(Point::Rows)
    }

    pub(super) fn counters(&self, state: &State) -> Result<Counters, MaterializedError> {
        let counters = state.record(COUNTERS, &self.layout.definition.name)?;
        let counters = counters.and_then(|counters| serde_json::from_str(&counters).ok());
        counters.ok_or_else(|| self.layout.damaged())
    }

    /// The choices that persons had made when their rows were admitted, by number.
    fn policies(&self, state: &State) -> Result<Option<Policies>, ViewError> {
        let definition = &self.layout.definition;
        let Some(reference) = &definition.clauses.policy else { return Ok(None) };
        let batches = state.scan(&self.layout.choices, &ScanRequest::default())?;
        let batches = batches.collect::<Result<Vec<_>, _>>()?;
        let policies = kept_policies(&batches, &self.made.policy_columns, reference, &definition.names());
        Ok(Some(policies?))
    }

    /// Reads these classes, or all.
    fn read_classes(&self, state: &State, asked: &Asked, wanted: Option<Wanted>) -> Result<StoredRead, ViewError> {
        let layout = &self.layout;
        let Some(Wanted { classes: labels, in_memory, stored, kept }) = wanted else {
            let rows = ShownRows::scan(layout, state, ScanRequest::default())?.collect::<Result<Vec<_>, _>>()?;
            let labels = classes(layout, state)?.into_iter().map(|(class, _)| class);
            return self.stored_read(asked, labels, &rows);
        };
        let mut rows = match kept {
            Some(kept) => kept.rows(&in_memory).map_err(|error| self.failed(error))?,
            None => Vec::new(),
        };
        if !stored.is_empty() {
            let values = stored.into_iter().map(Value::Integer).collect();
            let conditions = vec![Condition::In { column: CLASS.to_owned(), values }];
            let stored = ShownRows::scan(layout, state, ScanRequest { conditions, ..ScanRequest::default() })?;
            rows.extend(stored.collect::<Result<Vec<_>, _>>()?);
        }
        self.stored_read(asked, labels, &rows)
    }

    fn failed(&self, error: ArrowError) -> ViewError {
        self.layout.definition.failed(error)
    }

    /// Rows of classes as a version.
    fn stored_read(
        &self,
        asked: &Asked,
        classes: impl IntoIterator<Item = Labelled>,
        rows: &[ShownRows],
    ) -> Result<StoredRead, ViewError> {
        let definition = &self.layout.definition;
        let Asked { counters, policies, .. } = asked;
        let numbers: Vec<i64> = rows.iter().flat_map(|part| part.classes.iter().copied()).collect();
        let types = policies.iter().map(|_| DataType::Int64);
        let types = types.chain(definition.columns.iter().map(|column| column.data_type.clone()));
        let column = |(position, data_type): (usize, DataType)| match rows {
            [] => Ok(new_empty_array(&data_type)),
            [part] => Ok(Arc::clone(&part.columns[position])),
            parts => concat(&parts.iter().map(|part| part.columns[position].as_ref()).collect::<Vec<&dyn Array>>()),
        };
        let columns: Result<Vec<ArrayRef>, ArrowError> = types.enumerate().map(column).collect();
        let mut columns = columns.map_err(|error| self.failed(error))?;
        let policy_of_row: Vec<Option<u32>> = match policies {
            None => Vec::new(),
            Some(policies) => {
                let choices = columns.remove(0);
                let choices = choices.as_primitive::<Int64Type>().iter();
                choices.map(|choice| policies.person(&choice?.to_string())).collect()
            }
        };
        let cells = RecordBatch::try_new(definition.private_schema(), columns).map_err(|error| self.failed(error))?;
        let mut private = definition.private_rows(&cells, PlainCells::Skipped)?;
        if private.table().n_rows > 0 {
            self.attach(&mut private)?;
        }

        let (mut labels, mut is_alone) = (ClassLabels::new(definition.with_role(Role::Quasi)), Vec::new());
        let shown: HashSet<i64, RandomState> = numbers.iter().copied().collect();
        let mut places: HashMap<i64, u32, RandomState> = HashMap::default();
        // The labels of a class that shows nobody are those of a person who waits there.
        for (number, alone, of_class) in classes.into_iter().filter(|(number, ..)| shown.contains(number)) {
            places.insert(number, labels.n_classes() as u32);
            labels.push(&of_class);
            is_alone.push(alone);
        }
        let class_of_row: Option<Vec<u32>> = numbers.iter().map(|number| places.get(number).copied()).collect();
        let class_of_row = class_of_row.ok_or_else(|| self.layout.damaged())?;
        let directory = Directory::of_classes(Assigned {
            labels,
            is_alone,
            class_of_row: class_of_row.clone(),
            policy_of_row: policy_of_row.clone(),
            ..Assigned::default()
        });
        let columns = &private.table().columns;
        let version = Version {
            number: counters.epoch,
            definition: Arc::clone(definition),
            fingerprint: Fingerprint::default(),
            policies: policies.clone(),
            hierarchies: columns.iter().map(|column| column.hierarchy.clone()).collect(),
            value_types: columns.iter().map(|column| column.value_type).collect(),
            meanings: self.meanings(),
            directories: vec![directory],
            shown: None,
            kept: None,
            refusals: Mutex::default(),
            summary: Summary::default(),
        };
        Ok(StoredRead { version: Arc::new(version), private: Arc::new(private), class_of_row, policy_of_row })
    }

    /// Gives columns trees over the values that were read, with the labels of the view.
    fn attach(&self, private: &mut PrivateRows) -> Result<(), ViewError> {
        let definition = &self.layout.definition;
        for (position, said) in definition.columns.iter().enumerate() {
            let Some(name) = &said.hierarchy else { continue };
            let column = &private.table().columns[position];
            let has_all = |tree: &Hierarchy| column.texts.iter().all(|text| tree.leaf(text).is_some());
            let tree = match self.trees[position].as_ref().filter(|tree| has_all(tree)) {
                Some(tree) => Ok(Arc::clone(tree)),
                None => {
                    let root = self.made.root(definition, position);
                    self.hierarchies.tree_for(name, root, &column.texts, column.value_type, &column.notation)
                }
            };
            let fault = |fault| ViewError::Hierarchy { column: said.name.clone(), fault };
            private.set_hierarchy(position, tree.map_err(fault)?);
        }
        Ok(())
    }
}
