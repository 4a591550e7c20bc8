//! [`Materialized::follow`]: what a transaction changed, in the view.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use kohort_core::changing::{Edit, Member, MemberKey, Shown};
use kohort_store::Change;

use super::Materialized;
use super::error::MaterializedError;
use super::layout::{NUMBER, POSITION, TEXT};
use super::ledger::{HIDDEN, KeptRow, Persons, StoredLedger};
use super::members::{NewRow, is_restricted, new_rows};
use super::memory::{Memory, pairs_of};
use super::policies::PolicyRows;
use super::write::{Writing, batch};
use crate::view::ViewError;

/// Kinds of records that the store keeps of views.
pub(super) const COUNTERS: &str = "view counters";

/// Rows of persons whose rows, or choices, a transaction changed.
pub struct Changed {
    /// All these persons, as texts.
    pub names: Vec<String>,
    /// Names that rows had not before: whose row it was is not known, so they may be anybody's who was shown.
    pub renamed: BTreeSet<String>,
    /// Their rows as the view's query now has them.
    pub rows: RecordBatch,
    /// What they allow.
    pub policies: Option<PolicyRows>,
    /// When, in microseconds from 1970.
    pub now: i64,
}

impl Changed {
    /// Rows that are written all at once, when a view is made.
    pub(super) fn of_nobody(rows: &RecordBatch, now: i64) -> Changed {
        Changed { names: Vec::new(), renamed: BTreeSet::new(), rows: rows.clone(), policies: None, now }
    }
}

/// Where a row is.
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
    /// `None` where no DGH takes it.
    pub(super) member: Option<Arc<Member>>,
    pub(super) state: RowState,
}

impl Materialized {
    /// Follows what a transaction changed, within it. What is in memory follows when it is published.
    ///
    /// # Errors
    /// Where rows are not what the view takes, or the step does not hold.
    pub fn follow(&self, change: &Change, changed: &Changed) -> Result<(), ViewError> {
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
        let rows = new_rows(&self.definition, memory, &changed.rows, policies.map(|rows| &rows.policies))?;
        let n_values: Vec<usize> = memory.values.iter().map(super::memory::Values::len).collect();
        let counted = memory.counters;
        let persons = Persons::default();
        let old = {
            let ledger = self.ledger(memory, change, &persons);
            ledger.look_up_pasts(&changed.names)?;
            ledger.rows_of(&changed.names)?
        };
        let mut current: HashMap<&str, &KeptRow> = HashMap::new();
        for row in old.iter().filter(|row| row.shown == Shown::Stays) {
            current.insert(&row.name, row);
        }
        let mut arrivals: BTreeMap<MemberKey, Arrival<'_>> = BTreeMap::new();
        let mut edits: Vec<Edit> = Vec::new();
        let mut next = change.next_row(&self.layout.rows).map_err(MaterializedError::Store)?;
        let mut stays: BTreeSet<&str> = BTreeSet::new();
        for row in &rows {
            let choice = self.choice(memory, change, row, policies)?;
            let key = MemberKey(next.cast_unsigned());
            let member = memory.member(row, choice, key, persons.shared_key(&row.name));
            let was = current.get(row.name.as_ref());
            if let (Some(member), Some(was)) = (&member, was)
                && was.member.k == member.k
                && was.member.nodes == member.nodes
                && was.member.tuple == member.tuple
            {
                stays.insert(&row.name);
                continue;
            }
            next += 1;
            stays.insert(&row.name);
            let old = was.map(|was| was.member.key);
            match (&member, old) {
                (Some(new), Some(old)) => edits.push(Edit::Update { old, new: new.clone() }),
                (Some(new), None) => edits.push(Edit::Insert(new.clone())),
                (None, Some(old)) => edits.push(Edit::Delete(old)),
                (None, None) => {}
            }
            arrivals.insert(key, Arrival { row, choice, member: member.map(Arc::new), state: RowState::HIDDEN });
        }
        let gone = current.values().filter(|row| !stays.contains(row.name.as_str()));
        let mut departures: Vec<Edit> = gone.map(|row| Edit::Delete(row.member.key)).collect();
        departures.sort_unstable_by_key(|edit| match edit {
            Edit::Delete(key) | Edit::Update { old: key, .. } => *key,
            Edit::Insert(member) => member.key,
        });
        let renamed: Vec<&str> =
            rows.iter().map(|row| row.name.as_ref()).filter(|&name| changed.renamed.contains(name)).collect();
        let mut step = Writing { view: self, memory, change, persons: &persons, changed };
        step.remember_renamed(renamed.into_iter().filter(|name| !current.contains_key(name)))?;
        departures.extend(edits);
        step.epoch(departures, arrivals)?;
        self.write_values(memory, change, &n_values)?;
        if memory.counters == counted {
            return Ok(());
        }
        let counters = serde_json::to_string(&memory.counters).expect("numbers are JSON");
        change.put_record(COUNTERS, &self.definition.name, &counters).map_err(MaterializedError::Store)?;
        Ok(())
    }

    pub(super) fn ledger<'a>(
        &'a self,
        memory: &'a Memory,
        change: &'a Change,
        persons: &'a Persons,
    ) -> StoredLedger<'a> {
        StoredLedger { state: change, layout: &self.layout, memory, view: &self.definition.name, persons }
    }

    /// Keeps values that were numbered since there were so many.
    pub(super) fn write_values(
        &self,
        memory: &Memory,
        change: &Change,
        n_known: &[usize],
    ) -> Result<(), MaterializedError> {
        let (mut positions, mut numbers, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        for (position, (values, &n_known)) in memory.values.iter().zip(n_known).enumerate() {
            for number in n_known..values.len() {
                positions.push(position as i64);
                numbers.push(number as i64);
                texts.push(values.text(number as u32).cloned().flatten());
            }
        }
        if positions.is_empty() {
            return Ok(());
        }
        let columns: [(&str, ArrayRef); 3] = [
            (POSITION, Arc::new(Int64Array::from(positions))),
            (NUMBER, Arc::new(Int64Array::from(numbers))),
            (TEXT, Arc::new(StringArray::from(texts))),
        ];
        change.insert(&self.layout.values, &batch(columns))?;
        Ok(())
    }

    /// The number of what a row's person allows, kept where it is new.
    pub(super) fn choice(
        &self,
        memory: &mut Memory,
        change: &Change,
        row: &NewRow,
        policies: Option<&PolicyRows>,
    ) -> Result<Option<i64>, MaterializedError> {
        let (Some(rows), Some(policy)) = (policies, row.policy) else { return Ok(None) };
        let content = rows.content(&row.name);
        if let Some(&(number, _)) = memory.choices.get(&content) {
            return Ok(Some(number));
        }
        let number = memory.choices.len() as i64;
        let is_restricted = is_restricted(&self.definition, &pairs_of(&memory.made.marked), &rows.policies, policy);
        let kept = rows.numbered(&row.name, number, is_restricted);
        change.insert(&self.layout.choices, &kept)?;
        memory.choices.insert(content, (number, is_restricted));
        memory.restricting.extend(is_restricted.then_some(number));
        Ok(Some(number))
    }
}
