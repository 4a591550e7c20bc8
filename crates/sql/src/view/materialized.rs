//! Materialized A-views: classes and rows that are kept, and follow the table they are made from.
//!
//! ```text
//! rows that changed -> members -> core::changing (which rule) -> effects -> verify_step -> Verified<Step>
//!                                                                                                |
//!                                                                                  hidden tables of the store
//!                                                                                                |
//!                                       SELECT: classes whose labels could match -> their rows -> VerifiedRows
//! ```
//!
//! Everything a view is made of stands in hidden tables of the store and changes in the transaction that changes its
//! table. What is kept in memory beside them only finds things faster, and is made from them when a folder is opened.
//!
//! # Guarantee
//! What readers of all snapshots can combine is argued in `kohort_core::changing`. Who is in which crowd is written from
//! the `Verified<Step>` that `verify_step` gives, or from the `Verified<Refresh>` of `verify_refresh`, which also looks at
//! what was shown before, and from nothing else. Each block is counted by `verify_block` before it leaves. A row is shown as it was when it was admitted, with what its person allowed then.
//! # Paper
//! `[EPS+12]` section 7
//! # Deviations
//! Rows come and go in crowds instead of one by one: the paper's rule shows a newcomer at once, and whoever kept the
//! answer before has the newcomer's values by difference. No step of it can be verified, so there is no such view.

mod cells;
mod classes;
mod crowds;
mod error;
mod follow;
mod layout;
mod ledger;
mod load;
mod make;
mod members;
mod memory;
mod policies;
mod read;
mod remake;
mod step;
mod trees;
mod write;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use kohort_core::loss::NcpOfLabels;
use kohort_labels::rewrite::Meanings;
use kohort_store::{ScanRequest, State};

use super::{Definition, ViewError};
use crate::policy::Pair;

use classes::ClassTable;
pub use error::MaterializedError;
pub use follow::Changed;
use layout::Layout;
use load::Held;
pub use make::{Making, check};
pub(crate) use policies::EVERYBODY;
pub use policies::PolicyRows;
pub(super) use read::{PointRead, StoredRead, Unread};
pub use remake::{Remade, Told};
use trees::KnownTrees;

/// A materialized view of a store.
pub struct Materialized {
    pub(super) definition: Arc<Definition>,
    /// What it is made from.
    pub origin: Origin,
    layout: Layout,
    /// Only whoever changes the store changes it.
    memory: Mutex<Held>,
    /// Finds classes by their labels.
    classes: RwLock<ClassTable>,
    meanings: Meanings,
    trees: KnownTrees,
    /// Per column the label of everything, where it is known.
    roots: Vec<Option<String>>,
    /// The columns of the table of choices.
    policy_columns: Vec<String>,
    /// For whom classes are known that show another label than they have.
    marked: Vec<Pair>,
}

impl std::fmt::Debug for Materialized {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Materialized({})", self.definition.name)
    }
}

/// The tables a materialized view is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The table its query reads.
    pub table: String,
    /// The column of that table that names persons.
    pub identifier: String,
    /// The table of choices, and its column that names persons.
    pub policy: Option<(String, String)>,
}

/// What the owner is told of a materialized view.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Standing {
    /// Rows that are shown.
    pub n_shown: u64,
    /// Rows that wait for others.
    pub n_pending: u64,
    /// Rows that are not shown until a refresh.
    pub n_hidden: u64,
    /// Rows that are shown and gone from the table.
    pub n_leaving: u64,
    /// Since when the first of those that wait or are hidden do, in microseconds from 1970.
    pub since: Option<i64>,
    /// Classes that show somebody.
    pub n_classes: u64,
    /// NCP of rows whose persons ask for a class; those that are not shown lose everything.
    pub ncp: f64,
    /// The same when it was made, where it is known.
    pub ncp_when_made: Option<f64>,
    /// Steps since it was made.
    pub epoch: u64,
}

impl Materialized {
    fn memory(&self) -> MutexGuard<'_, Held> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it shows, and of whom.
    pub fn definition(&self) -> &Arc<Definition> {
        &self.definition
    }

    /// What the labels of its columns can stand for.
    pub(super) fn meanings(&self) -> Meanings {
        Arc::clone(&self.meanings)
    }

    /// Lets readers find classes by what was committed.
    pub fn publish(&self) {
        let mut held = self.memory();
        let table = held.take_table();
        let Some(memory) = held.known() else { return };
        let mut classes = self.classes.write().unwrap_or_else(PoisonError::into_inner);
        table.into_iter().for_each(|table| *classes = table);
        for (number, is_alone, labels) in memory.touched.drain(..) {
            classes.put(number, is_alone, &labels.iter().map(Option::as_deref).collect::<Vec<_>>());
        }
        for number in std::mem::take(&mut memory.joined) {
            classes.lie(number, None);
            memory.recounted.insert(number);
        }
        for number in std::mem::take(&mut memory.recounted) {
            classes.count_crowd(number, memory.n_members(number));
        }
        for number in memory.newly_restricted.drain(..) {
            classes.restrict(number);
        }
        classes.counters = memory.counters;
        classes.settle(&self.meanings);
    }

    /// What is in memory may have gone further than what is kept.
    pub fn forget(&self) {
        self.memory().forget();
    }

    /// What the owner is told of it.
    ///
    /// # Errors
    /// Where what is kept can't be read.
    pub fn standing(&self, state: &State) -> Result<Standing, ViewError> {
        use datafusion::arrow::array::{Array, AsArray};
        use datafusion::arrow::datatypes::{Int64Type, TimestampMicrosecondType};
        let counters = self.counters(state)?;
        let mut standing = Standing { epoch: counters.epoch, ..Standing::default() };
        let columns = [layout::PLACE, layout::CLASS, layout::LEAVES, layout::SINCE, layout::OWN_K];
        let columns = columns.map(str::to_owned).to_vec();
        let request = ScanRequest { columns: Some(columns), ..ScanRequest::default() };
        let mut n_suppressed = 0;
        let mut n_shown: std::collections::BTreeMap<i64, u64> = std::collections::BTreeMap::new();
        for batch in state.scan(&self.layout.rows, &request).map_err(MaterializedError::Store)? {
            let batch = batch.map_err(MaterializedError::Store)?;
            let number = |column: usize| batch.column(column).as_primitive::<Int64Type>();
            let (places, classes, leaves) = (number(0), number(1), batch.column(2).as_boolean());
            let (since, asked_k) = (batch.column(3).as_primitive::<TimestampMicrosecondType>(), number(4));
            for row in 0..batch.num_rows() {
                let is_out = matches!(places.value(row), ledger::WAITING | ledger::HIDDEN);
                if is_out {
                    n_suppressed += u64::from(asked_k.value(row) > 1);
                    standing.since = Some(standing.since.map_or(since.value(row), |first| first.min(since.value(row))));
                }
                match places.value(row) {
                    ledger::WAITING => standing.n_pending += 1,
                    ledger::HIDDEN => standing.n_hidden += 1,
                    _ => standing.n_shown += 1,
                }
                standing.n_leaving += u64::from(leaves.value(row));
                if places.value(row) == ledger::IN_ATOM && classes.is_valid(row) {
                    *n_shown.entry(classes.value(row)).or_default() += 1;
                }
            }
        }
        let mut held = self.memory();
        let loaded;
        let memory = match held.known() {
            Some(memory) if memory.counters == counters => &*memory,
            // What is in memory is of another state.
            _ => {
                (loaded, _) = load::load(&self.definition, &self.layout, state)?;
                &loaded
            }
        };
        standing.ncp_when_made = memory.made.ncp_when_made;
        let mut ncp = NcpOfLabels::new(&memory.trees);
        ncp.add_suppressed(n_suppressed);
        for (&class, &n_rows) in &n_shown {
            if let Some((nodes, _)) = memory.index.get(kohort_core::changing::ClassId(class.cast_unsigned())) {
                ncp.add(nodes, n_rows);
            }
        }
        (standing.n_classes, standing.ncp) = (n_shown.len() as u64, ncp.mean());
        Ok(standing)
    }
}
