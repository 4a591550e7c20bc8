//! [`Materialized::follow`]: applies what a transaction changed to the view.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use indexmap::IndexSet;
use kohort_core::changing::{Edit, Member, MemberKey, Shown};
use kohort_store::Change;

use super::Materialized;
use super::ledger::{HIDDEN, KeptRow, Persons};
use super::members::{NewRow, new_rows};
use super::memory::Memory;
use super::policies::PolicyRows;
use super::write::Writing;
use crate::view::ViewError;

/// The kind of the record that keeps the counters of a view.
pub(super) const COUNTERS: &str = "view counters";

/// The persons whose rows or choices a transaction changed.
pub(crate) struct Changed {
    /// Their identifiers, as texts.
    pub names: Vec<String>,
    /// Identifiers that a row got by an update. The row may be that of somebody who was shown under another identifier.
    pub renamed: BTreeSet<String>,
    /// Their rows in the result of the view's query, as it is now.
    pub rows: RecordBatch,
    /// Their choices.
    pub policies: Option<PolicyRows>,
    /// The time, in microseconds from 1970.
    pub now: i64,
}

/// Where a row is, as its table has it.
#[derive(Clone, Copy)]
pub(super) struct RowState {
    pub(super) place: i64,
    pub(super) class: Option<i64>,
    pub(super) atom: Option<i64>,
}

impl RowState {
    pub(super) const HIDDEN: RowState = RowState { place: HIDDEN, class: None, atom: None };
}

/// A row that is new to the tables.
pub(super) struct Arrival<'a> {
    pub(super) row: &'a NewRow,
    pub(super) choice: Option<i64>,
    /// `None` if a DGH does not have its values.
    pub(super) member: Option<Arc<Member>>,
    pub(super) state: RowState,
}

/// A row of the view's query, with the key that it has in the tables.
pub(super) struct KeyedRow {
    /// The key, which is new unless the tables have the same row already.
    pub(super) key: MemberKey,
    /// The key of the row that the tables have of the person.
    pub(super) was: Option<MemberKey>,
    /// The number of the person's choices.
    pub(super) choice: Option<i64>,
    /// `None` if a DGH does not have its values.
    pub(super) member: Option<Arc<Member>>,
}

/// The row that the tables have of each person, except rows that are gone from the view's query already.
pub(super) fn current(kept: &[KeptRow]) -> HashMap<&str, &KeptRow> {
    let current = kept.iter().filter(|row| row.shown == Shown::Stays);
    current.map(|row| (row.name.as_str(), row)).collect()
}

impl Materialized {
    /// Applies what a transaction changed, within the transaction. Readers see it once it is published.
    ///
    /// # Errors
    /// If a materialized view can't have these rows, or the step can't be verified.
    pub(crate) fn follow(&self, change: &Change, changed: &Changed) -> Result<(), ViewError> {
        let mut held = self.memory();
        let memory = held.loaded(self, change)?;
        let done = self.follow_in(memory, change, changed);
        if done.is_err() {
            held.forget();
        }
        done
    }

    fn follow_in(&self, memory: &mut Memory, change: &Change, changed: &Changed) -> Result<(), ViewError> {
        let policies = changed.policies.as_ref();
        let layout = &self.layout;
        let rows = new_rows(&layout.definition, memory, &changed.rows, policies.map(|rows| &rows.policies))?;
        let n_values: Vec<usize> = memory.values.iter().map(IndexSet::len).collect();
        let counted = memory.counters;
        let persons = Persons::default();
        let mut step = Writing { layout, memory, change, persons: &persons, rows: &changed.rows, now: changed.now };
        step.ledger().look_up_pasts(changed.names.iter().map(|name| persons.key(name)))?;
        let old = step.ledger().rows_of(&changed.names)?;
        let mut gone: BTreeSet<MemberKey> = current(&old).values().map(|row| row.member.key).collect();
        let mut arrivals: BTreeMap<MemberKey, Arrival<'_>> = BTreeMap::new();
        let (mut edits, mut renamed): (Vec<Edit>, Vec<&str>) = (Vec::new(), Vec::new());
        for (row, KeyedRow { key, was, choice, member }) in rows.iter().zip(step.keyed(&rows, &old, policies)?) {
            if let Some(was) = was {
                gone.remove(&was);
            }
            if was == Some(key) {
                continue;
            }
            match (member.as_deref().cloned(), was) {
                (Some(new), Some(old)) => edits.push(Edit::Update { old, new }),
                (Some(new), None) => edits.push(Edit::Insert(new)),
                (None, Some(old)) => edits.push(Edit::Delete(old)),
                (None, None) => {}
            }
            if was.is_none() && changed.renamed.contains(row.name.as_ref()) {
                renamed.push(&row.name);
            }
            arrivals.insert(key, Arrival { row, choice, member, state: RowState::HIDDEN });
        }
        step.remember_renamed(renamed.into_iter())?;
        step.epoch(gone.into_iter().map(Edit::Delete).chain(edits).collect(), arrivals)?;
        step.write_values(&n_values)?;
        if memory.counters != counted {
            memory.put_counters(layout, change)?;
        }
        Ok(())
    }
}
