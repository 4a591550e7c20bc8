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
//! Everything a view is made of is in hidden tables of the store ([`layout`]) and changes in the same transaction as the
//! view's table. What is in memory beside them only makes finding things faster. It is made from the hidden tables when a
//! folder is opened.
//!
//! | module | its job |
//! | --- | --- |
//! | [`make`], [`remake`] | write a new view, or a refreshed one |
//! | [`load`] | open a view: fill [`memory`] and [`classes`] from the hidden tables |
//! | [`follow`], [`members`], [`policies`] | what a transaction changed, as rows and choices of the view |
//! | [`ledger`], [`step`], [`crowds`], [`write`] | let `kohort_core::changing` decide, verify the step, write it |
//! | [`memory`] | what changes of the view need in memory |
//! | [`classes`], [`cells`] | what readers have in memory: labels of classes, and rows |
//! | [`read`] | choose classes, read their rows, make a [`Version`](super::Version) of them |
//!
//! # Guarantee
//! `kohort_core::changing` argues what readers of all snapshots can combine. The crowd of a row is written only from the
//! `Verified<Step>` of `verify_step`, or from the `Verified<Refresh>` of `verify_refresh`, which also looks at what was
//! shown before. Each block is counted by `verify_block` before it leaves. A row is shown as it was when it was admitted,
//! with the choices its person had made then.
//! # Paper
//! `[EPS+12]` section 7
//! # Deviations
//! Rows come and go in crowds instead of one by one. The paper's rule shows a newcomer at once, so a reader who kept the
//! previous answer has the newcomer's values by difference. No such step can be verified, so there is no such view.

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
mod write;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use kohort_core::loss::NcpOfLabels;
use kohort_labels::rewrite::Meanings;
use kohort_model::Hierarchy;
use kohort_store::{ScanRequest, State};

use super::{Definition, ViewError};
use crate::hierarchies::Hierarchies;

use classes::ClassTable;
pub(crate) use error::MaterializedError;
pub(crate) use follow::Changed;
use layout::Layout;
use load::HeldMemory;
pub(crate) use make::{Making, check};
use memory::Made;
pub(crate) use policies::PolicyRows;
pub(super) use read::{StoredRead, Unread};
pub(crate) use remake::{Remade, Told};

/// A materialized view of a store.
pub(crate) struct Materialized {
    layout: Layout,
    /// The tables it is made from.
    pub origin: Origin,
    /// Everything that was fixed when it was made.
    made: Made,
    /// Only the one connection that may change the store uses it.
    memory: Mutex<HeldMemory>,
    /// The classes, as readers find them.
    classes: RwLock<ClassTable>,
    meanings: Meanings,
    /// The DGHs as they were when the view was made.
    hierarchies: Arc<Hierarchies>,
    /// For each column, a tree over the values that were known when the view was opened.
    trees: Vec<Option<Arc<Hierarchy>>>,
}

/// The tables a materialized view is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The table its query reads.
    pub table: String,
    /// The column of that table that identifies persons.
    pub identifier: String,
    /// The table of choices, and its column that identifies persons.
    pub policy: Option<(String, String)>,
}

/// Figures about a materialized view, for its owner.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Standing {
    /// Rows that are shown.
    pub n_shown: u64,
    /// Rows that wait until enough others wait with them.
    pub n_pending: u64,
    /// Rows that stay hidden until a refresh.
    pub n_hidden: u64,
    /// Rows that are still shown, but gone from the table.
    pub n_leaving: u64,
    /// Since when the oldest waiting or hidden row has waited, in microseconds from 1970.
    pub since: Option<i64>,
    /// Classes that show somebody.
    pub n_classes: u64,
    /// NCP of rows whose persons ask for a class. A row that is not shown counts as lost.
    pub ncp: f64,
    /// The NCP when the view was made.
    pub ncp_when_made: Option<f64>,
    /// Steps since it was made.
    pub epoch: u64,
}

impl Materialized {
    fn memory(&self) -> MutexGuard<'_, HeldMemory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn definition(&self) -> &Arc<Definition> {
        &self.layout.definition
    }

    /// What the labels of its columns can stand for.
    pub(super) fn meanings(&self) -> Meanings {
        Arc::clone(&self.meanings)
    }

    /// Lets readers see what was committed.
    pub(crate) fn publish(&self) {
        let mut held = self.memory();
        let HeldMemory { memory: Some(memory), table } = &mut *held else { return };
        let mut classes = self.classes.write().unwrap_or_else(PoisonError::into_inner);
        table.take().into_iter().for_each(|table| *classes = table);
        for (number, is_alone, labels) in memory.founded.drain(..) {
            classes.put(number, is_alone, &labels, 0);
        }
        for number in std::mem::take(&mut memory.changed) {
            classes.change(number, memory.n_members(number));
        }
        for number in memory.newly_restricted.drain(..) {
            classes.restrict(number);
        }
        classes.counters = memory.counters;
        classes.settle(&self.meanings);
    }

    /// Drops what is in memory for changes, because a change that it took part in was rolled back.
    pub(crate) fn forget(&self) {
        self.memory().forget();
    }

    /// Figures for the owner.
    pub(crate) fn standing(&self, state: &State) -> Result<Standing, ViewError> {
        use datafusion::arrow::array::{Array, AsArray};
        use datafusion::arrow::datatypes::{Int64Type, TimestampMicrosecondType};
        let counters = self.counters(state)?;
        let mut standing = Standing { epoch: counters.epoch, ..Standing::default() };
        let columns = [layout::PLACE, layout::CLASS, layout::LEAVES, layout::SINCE, layout::OWN_K];
        let columns = columns.map(str::to_owned).to_vec();
        let request = ScanRequest { columns: Some(columns), ..ScanRequest::default() };
        let mut n_suppressed = 0;
        let mut n_shown: std::collections::BTreeMap<i64, u64> = std::collections::BTreeMap::new();
        for batch in state.scan(&self.layout.rows, &request)? {
            let batch = batch?;
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
        let held = self.memory();
        let loaded;
        let memory = match &held.memory {
            Some(memory) if memory.counters == counters => memory,
            // The memory is of another state of the store.
            _ => {
                (loaded, _) = load::load(&self.layout, state)?;
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
