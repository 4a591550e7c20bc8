//! [`Writing`]: writes the effects of a change to the hidden tables.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch, UInt32Array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::Int64Type;
use kohort_core::changing::{
    Closing, Departures as Rule, Edit, Effect, Epochs, Ledger, Member, MemberKey, Past, PersonKey,
};
use kohort_store::{Change, ScanRequest};

use super::classes::Labelled;
use super::crowds::Crowds;
use super::error::MaterializedError;
use super::follow::{Arrival, KeyedRow, RowState, current};
use super::layout::{
    ATOM, CHOICE, CLASS, IS_ALONE, IS_RESTRICTED, LEAVES, Layout, NAME, NODES, NUMBER, OWN_K, PLACE, POSITION, SINCE,
    TEXT, TUPLE, batch, integers, texts, times, truths,
};
use super::ledger::{ALONE, HIDDEN, IN_ATOM, KeptRow, Persons, StoredLedger, WAITING, is, past_text};
use super::members::{NewRow, is_restricted};
use super::memory::{Memory, NO_NODES};
use super::policies::PolicyRows;
use super::step;
use crate::parser::Departures;
use crate::view::{Definition, ViewError};

/// How many new rows are written at a time.
pub(super) const ROWS_AT_ONCE: usize = 1 << 16;

/// What is needed to write the effects of a change.
pub(super) struct Writing<'a> {
    pub(super) layout: &'a Layout,
    pub(super) memory: &'a mut Memory,
    pub(super) change: &'a Change,
    pub(super) persons: &'a Persons,
    /// The rows of the view's query from which new rows come.
    pub(super) rows: &'a RecordBatch,
    /// The time, in microseconds from 1970.
    pub(super) now: i64,
}

/// What becomes of a row.
#[derive(Clone, Copy)]
pub(super) enum Fate {
    At(RowState),
    Gone,
}

impl Writing<'_> {
    /// The hidden tables, as the rules of changing data read them.
    pub(super) fn ledger(&self) -> StoredLedger<'_> {
        StoredLedger { state: self.change, layout: self.layout, memory: self.memory, persons: self.persons }
    }

    /// Finds rows of the view's query among those that the tables have of the same persons. A row that did not change keeps
    /// its key.
    pub(super) fn keyed(
        &mut self,
        rows: &[NewRow],
        kept: &[KeptRow],
        policies: Option<&PolicyRows>,
    ) -> Result<Vec<KeyedRow>, MaterializedError> {
        let current = current(kept);
        let mut next = self.change.next_row(&self.layout.rows)?;
        let mut keyed = Vec::with_capacity(rows.len());
        for row in rows {
            let choice = self.choice(row, policies)?;
            let key = MemberKey(next.cast_unsigned());
            let mut member = self.memory.member(row, choice, key, self.persons.shared_key(&row.name));
            let was = current.get(row.name.as_ref());
            // A row with values that are in no DGH is no member, so nothing tells whether its cells or its person's choices
            // changed. It is written again. Nodes are compared by their labels, because a refresh may have other trees.
            let same = was.zip(member.as_ref()).filter(|(was, member)| {
                was.member.k == member.k
                    && was.member.tuple == member.tuple
                    && was.nodes == self.memory.nodes_text(&member.nodes)
            });
            let key = same.map_or(key, |(was, _)| was.member.key);
            next += i64::from(same.is_none());
            member.iter_mut().for_each(|member| member.key = key);
            keyed.push(KeyedRow { key, was: was.map(|was| was.member.key), choice, member: member.map(Arc::new) });
        }
        Ok(keyed)
    }

    /// Writes the values that got a number since this many were known.
    pub(super) fn write_values(&self, n_known: &[usize]) -> Result<(), MaterializedError> {
        let mut new: Vec<(usize, usize, Option<&String>)> = Vec::new();
        for (position, (values, &n_known)) in self.memory.values.iter().zip(n_known).enumerate() {
            let values = values.iter().enumerate().skip(n_known);
            new.extend(values.map(|(number, text)| (position, number, text.as_ref())));
        }
        if !new.is_empty() {
            let columns = [
                (POSITION, integers(new.iter().map(|(position, ..)| *position as i64))),
                (NUMBER, integers(new.iter().map(|(_, number, _)| *number as i64))),
                (TEXT, texts(new.iter().map(|(.., text)| *text))),
            ];
            self.change.insert(&self.layout.values, &batch(columns))?;
        }
        Ok(())
    }

    /// The number of the choices of a row's person. New choices are written.
    pub(super) fn choice(
        &mut self,
        row: &NewRow,
        policies: Option<&PolicyRows>,
    ) -> Result<Option<i64>, MaterializedError> {
        let (Some(rows), Some(policy)) = (policies, row.policy) else { return Ok(None) };
        let content = rows.content(&row.name);
        if let Some(&(number, _)) = self.memory.choices.get(&content) {
            return Ok(Some(number));
        }
        let number = self.memory.choices.len() as i64;
        let is_restricted = is_restricted(&self.layout.definition, &self.memory.made.marked, &rows.policies, policy);
        self.change.insert(&self.layout.choices, &rows.numbered(&row.name, number, is_restricted))?;
        self.memory.choices.insert(content, (number, is_restricted));
        self.memory.restricting.extend(is_restricted.then_some(number));
        Ok(Some(number))
    }

    /// Decides what all edits do together, has that verified, and writes it.
    pub(super) fn epoch(
        &mut self,
        edits: Vec<Edit>,
        arrivals: BTreeMap<MemberKey, Arrival<'_>>,
    ) -> Result<(), ViewError> {
        let definition = &self.layout.definition;
        let departures = match definition.clauses.departures.unwrap_or_default() {
            Departures::Batch => Rule::Batch,
            Departures::Withdraw => Rule::Withdraw,
        };
        let (step, effects) = {
            let (memory, ledger): (&Memory, _) = (self.memory, self.ledger());
            let (trees, index, standard) = (&memory.trees, &memory.index, &memory.standard);
            let rule = Epochs { trees, index, standard, departures, closing: closing(definition) };
            let effects = rule.apply(&ledger, edits)?;
            let members = arrivals.iter().filter_map(|(key, arrival)| Some((*key, arrival.member.as_deref()?.clone())));
            (step::verify(definition, &ledger, &effects, &members.collect())?, effects)
        };
        self.memory.index.follow(&self.memory.trees, &effects);
        self.write(&Crowds::of_step(&step), &effects, arrivals)
    }

    /// Writes effects and the rows that came. Crowds are written only as the verified `crowds` say. Effects decide about all
    /// other rows, and an effect that says more about a crowd than `crowds` is refused.
    pub(super) fn write(
        &mut self,
        crowds: &Crowds,
        effects: &[Effect],
        mut arrivals: BTreeMap<MemberKey, Arrival<'_>>,
    ) -> Result<(), ViewError> {
        let mut fates: BTreeMap<MemberKey, Fate> = BTreeMap::new();
        let mut leaving = Vec::new();
        let mut pasts: BTreeMap<PersonKey, Past> = BTreeMap::new();
        let mut restricted: BTreeSet<i64> = BTreeSet::new();
        let mut is_seen = false;
        let layout = self.layout;
        let proven = |is_proven: bool| if is_proven { Ok(()) } else { Err(layout.damaged()) };
        for effect in effects {
            is_seen |= !matches!(effect, Effect::Wait { .. } | Effect::Hide { .. } | Effect::Remember { .. });
            match effect {
                Effect::Found { class, nodes } => {
                    // A class that shows nobody yet was not verified, so `crowds` has no labels of it.
                    let labels = crowds.labels(*class).cloned().unwrap_or_else(|| self.memory.labels(nodes));
                    self.put_class(signed(class.0), false, labels)?;
                }
                Effect::Wait { class, member } => {
                    let state = RowState { place: WAITING, class: Some(signed(class.0)), atom: None };
                    fates.insert(member.key, Fate::At(state));
                }
                Effect::Hide { member } => drop(fates.insert(member.key, Fate::At(RowState::HIDDEN))),
                Effect::Seal { members } => {
                    fates.extend(members.iter().map(|key| (*key, Fate::At(RowState::HIDDEN))));
                }
                Effect::ShowAlone { member } => {
                    let class = self.alone_class(&member.nodes)?;
                    let choice = arrivals.get(&member.key).and_then(|arrival| arrival.choice);
                    restricted.extend(choice.filter(|choice| self.memory.restricting.contains(choice)).map(|_| class));
                    let state = RowState { place: ALONE, class: Some(class), atom: None };
                    fates.insert(member.key, Fate::At(state));
                }
                Effect::Admit { class, atom, members } => {
                    proven(crowds.admit_all(*class, *atom, members))?;
                    self.memory.counters.next_atom = self.memory.counters.next_atom.max(atom.0 + 1);
                    // We don't look up the choices of rows that waited, so the class counts as restricted.
                    if !self.memory.restricting.is_empty() {
                        restricted.insert(signed(class.0));
                    }
                }
                Effect::Leave { member } => leaving.push(signed(member.0)),
                Effect::Remove { members, .. } => {
                    proven(crowds.remove_all(members))?;
                    fates.extend(members.iter().map(|key| (*key, Fate::Gone)));
                }
                Effect::Withdraw { gone, survivors, .. } => {
                    proven(crowds.remove_all(gone) && crowds.remove_all(survivors))?;
                    fates.extend(gone.iter().map(|key| (*key, Fate::Gone)));
                    fates.extend(survivors.iter().map(|key| (*key, Fate::At(RowState::HIDDEN))));
                }
                Effect::Dissolve { class } => {
                    self.change.delete(&layout.classes, &self.class_rows(signed(class.0))?)?;
                }
                Effect::Forget { member } => drop(fates.insert(*member, Fate::Gone)),
                Effect::Remember { person, past } => drop(pasts.insert(*person, *past)),
            }
        }
        // A row that was verified to be out of its crowd must not stay in it.
        proven(crowds.removed().all(|key| fates.contains_key(&key)))?;
        fates.extend(crowds.admitted().map(|(key, state)| (key, Fate::At(state))));
        // Readers must not show the rows of these classes from memory any more.
        let old_rows = fates.keys().filter(|key| !arrivals.contains_key(key)).map(|key| signed(key.0)).collect();
        let shown_in = self.shown_in(old_rows)?;
        is_seen |= !shown_in.is_empty();
        self.memory.changed.extend(shown_in.values());
        self.memory.changed.extend(fates.values().filter_map(|fate| match fate {
            Fate::At(RowState { place: IN_ATOM | ALONE, class, .. }) => *class,
            Fate::At(_) | Fate::Gone => None,
        }));
        for (key, arrival) in &mut arrivals {
            if let Some(Fate::At(state)) = fates.remove(key) {
                arrival.state = state;
            }
        }
        self.insert_rows(&arrivals)?;
        self.move_rows(&fates, &shown_in)?;
        self.update_rows(
            &leaving,
            [(LEAVES, truths(leaving.iter().map(|_| true))), (SINCE, times(self.now, leaving.len()))],
        )?;
        self.remember(&pasts)?;
        for class in restricted {
            self.restrict(class)?;
        }
        self.memory.counters.epoch += u64::from(is_seen);
        Ok(())
    }

    pub(super) fn insert_rows(&self, arrivals: &BTreeMap<MemberKey, Arrival<'_>>) -> Result<(), ViewError> {
        let (Some((first, _)), layout) = (arrivals.first_key_value(), self.layout) else { return Ok(()) };
        let rows: Vec<&Arrival<'_>> = arrivals.values().collect();
        let mut next = signed(first.0);
        for rows in rows.chunks(ROWS_AT_ONCE) {
            let inserted = self.rows_batch(rows);
            let numbers = self.change.insert(&layout.rows, &inserted)?;
            // The key of a row was chosen as the number that the store would give it.
            if numbers != (next..next + rows.len() as i64) {
                return Err(layout.damaged().into());
            }
            next = numbers.end;
        }
        Ok(())
    }

    fn move_rows(
        &self,
        fates: &BTreeMap<MemberKey, Fate>,
        shown_in: &BTreeMap<i64, i64>,
    ) -> Result<(), MaterializedError> {
        let (mut gone, mut moved, mut states, mut hiding) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (key, fate) in fates {
            let number = signed(key.0);
            match fate {
                Fate::Gone => gone.push(number),
                Fate::At(state) => {
                    moved.push(number);
                    states.push(*state);
                    let is_out = matches!(state.place, WAITING | HIDDEN);
                    hiding.extend((is_out && shown_in.contains_key(&number)).then_some(number));
                }
            }
        }
        self.update_rows(&hiding, [(SINCE, times(self.now, hiding.len()))])?;
        if !gone.is_empty() {
            self.change.delete(&self.layout.rows, &gone)?;
        }
        self.update_rows(&moved, state_columns(&states))
    }

    fn update_rows<const N: usize>(
        &self,
        numbers: &[i64],
        columns: [(&str, ArrayRef); N],
    ) -> Result<(), MaterializedError> {
        if !numbers.is_empty() {
            self.change.update(&self.layout.rows, numbers, &batch(columns))?;
        }
        Ok(())
    }

    /// The classes of those of some rows that the table shows, by their numbers.
    fn shown_in(&self, numbers: Vec<i64>) -> Result<BTreeMap<i64, i64>, MaterializedError> {
        let mut shown = BTreeMap::new();
        if numbers.is_empty() {
            return Ok(shown);
        }
        let (columns, numbers) = (Some(vec![PLACE.to_owned(), CLASS.to_owned()]), Some(numbers));
        let request = ScanRequest { columns, with_rowid: true, numbers, ..ScanRequest::default() };
        for batch in self.change.scan(&self.layout.rows, &request)? {
            let batch = batch?;
            let integers = |column: usize| batch.column(column).as_primitive::<Int64Type>();
            let (numbers, places, classes) = (integers(0), integers(1), integers(2));
            let is_shown = |row: &usize| matches!(places.value(*row), IN_ATOM | ALONE);
            let rows = (0..batch.num_rows()).filter(is_shown);
            shown.extend(rows.map(|row| (numbers.value(row), classes.value(row))));
        }
        Ok(shown)
    }

    /// Keeps what readers have seen of persons.
    pub(super) fn remember(&self, pasts: &BTreeMap<PersonKey, Past>) -> Result<(), MaterializedError> {
        let (layout, persons) = (self.layout, self.persons);
        self.ledger().look_up_pasts(pasts.keys().copied())?;
        let mut new: Vec<(PersonKey, Past, &str)> = Vec::new();
        for (&person, &past) in pasts {
            let Some(text) = past_text(past) else { continue };
            let Some((row, _)) = persons.past(person) else {
                new.push((person, past, text));
                continue;
            };
            self.change.update(&layout.past, &[row], &batch([(TEXT, texts([Some(text)].into_iter()))]))?;
            persons.note_past(person, row, past);
        }
        if !new.is_empty() {
            let names = texts(new.iter().map(|(person, ..)| Some(persons.name(*person))));
            let texts = texts(new.iter().map(|(.., text)| Some(text)));
            let rows = self.change.insert(&layout.past, &batch([(NAME, names), (TEXT, texts)]))?;
            rows.zip(new).for_each(|(row, (person, past, _))| persons.note_past(person, row, past));
        }
        Ok(())
    }

    /// Treats persons with a new identifier as seen, because readers may know them by the old one.
    pub(super) fn remember_renamed<'n>(&self, names: impl Iterator<Item = &'n str>) -> Result<(), MaterializedError> {
        let mut pasts: BTreeMap<PersonKey, Past> = BTreeMap::new();
        let ledger = self.ledger();
        for person in names.map(|name| self.persons.key(name)) {
            if ledger.past(person)? == Past::Nothing {
                pasts.insert(person, Past::InCrowd);
            }
        }
        self.remember(&pasts)
    }

    /// Adds a class with these labels.
    fn put_class(&mut self, class: i64, is_alone: bool, labels: Vec<Option<String>>) -> Result<(), MaterializedError> {
        let next_class = &mut self.memory.counters.next_class;
        *next_class = (class.cast_unsigned() + 1).max(*next_class);
        let class = (class, is_alone, labels);
        let row = class_batch(self.layout, std::slice::from_ref(&class), &HashSet::new());
        self.change.insert(&self.layout.classes, &row)?;
        self.memory.founded.push(class);
        Ok(())
    }

    /// The class of rows that are shown by themselves with these labels.
    fn alone_class(&mut self, nodes: &[u32]) -> Result<i64, MaterializedError> {
        let labels = self.memory.labels(nodes);
        if let Some(&class) = self.memory.alone.get(&labels) {
            return Ok(class);
        }
        let class = signed(self.memory.counters.next_class);
        self.put_class(class, true, labels.clone())?;
        self.memory.alone.insert(labels, class);
        Ok(class)
    }

    fn restrict(&mut self, class: i64) -> Result<(), MaterializedError> {
        if !self.memory.restricted.insert(class) {
            return Ok(());
        }
        self.memory.newly_restricted.push(class);
        let numbers = self.class_rows(class)?;
        let restricted = truths(numbers.iter().map(|_| true));
        Ok(self.change.update(&self.layout.classes, &numbers, &batch([(IS_RESTRICTED, restricted)]))?)
    }

    fn class_rows(&self, class: i64) -> Result<Vec<i64>, MaterializedError> {
        let request = ScanRequest {
            columns: Some(Vec::new()),
            with_rowid: true,
            conditions: vec![is(CLASS, class)],
            ..ScanRequest::default()
        };
        let mut numbers = Vec::new();
        for batch in self.change.scan(&self.layout.classes, &request)? {
            numbers.extend(batch?.column(0).as_primitive::<Int64Type>().values());
        }
        Ok(numbers)
    }

    /// New rows as rows of their table.
    fn rows_batch(&self, rows: &[&Arrival<'_>]) -> RecordBatch {
        let states: Vec<RowState> = rows.iter().map(|row| row.state).collect();
        let json = |text: &dyn Fn(&Member) -> String| {
            texts(rows.iter().map(|row| Some(row.member.as_deref().map_or(NO_NODES.to_owned(), text))))
        };
        let nodes = |member: &Member| self.memory.nodes_text(&member.nodes);
        let tuple = |member: &Member| serde_json::to_string(&member.tuple).expect("numbers are JSON");
        let name = (NAME, texts(rows.iter().map(|row| Some(&row.row.name))));
        let fixed = [
            (LEAVES, truths(rows.iter().map(|_| false))),
            (SINCE, times(self.now, rows.len())),
            (OWN_K, integers(rows.iter().map(|row| i64::from(row.row.k)))),
            (NODES, json(&nodes)),
            (TUPLE, json(&tuple)),
            (CHOICE, integers(rows.iter().map(|row| row.choice))),
        ];
        let places = UInt32Array::from_iter_values(rows.iter().map(|row| row.row.place as u32));
        let cells = self.layout.cells.iter().zip(self.rows.columns()).map(|(name, column)| {
            let taken = take(column, &places, None).expect("places are of the batch");
            (name.as_str(), taken)
        });
        batch([name].into_iter().chain(state_columns(&states)).chain(fixed).chain(cells))
    }
}

/// When waiting members are checked for a new crowd. If there are requirements on values, that moment must not depend on the
/// values. So a crowd is tried only once twice as many members wait as are needed, which makes it likely to satisfy them.
fn closing(definition: &Definition) -> Closing {
    if !definition.clauses.asks_of_values() {
        return Closing::Earliest;
    }
    Closing::BySize(2 * definition.clauses.k.unwrap_or(0).max(definition.clauses.l.unwrap_or(0)).max(2))
}

fn signed(number: u64) -> i64 {
    number.cast_signed()
}

/// Classes as rows of their table.
pub(super) fn class_batch(layout: &Layout, classes: &[Labelled], are_restricted: &HashSet<i64>) -> RecordBatch {
    let fixed = [
        (CLASS, integers(classes.iter().map(|(number, ..)| *number))),
        (IS_ALONE, truths(classes.iter().map(|(_, is_alone, _)| *is_alone))),
        (IS_RESTRICTED, truths(classes.iter().map(|(number, ..)| are_restricted.contains(number)))),
    ];
    let labels = layout.labels.iter().enumerate().map(|(column, name)| {
        let labels = classes.iter().map(|(.., labels)| labels[column].as_deref());
        (name.as_str(), texts(labels))
    });
    batch(fixed.into_iter().chain(labels))
}

fn state_columns(states: &[RowState]) -> [(&'static str, ArrayRef); 3] {
    [
        (PLACE, integers(states.iter().map(|state| state.place))),
        (CLASS, integers(states.iter().map(|state| state.class))),
        (ATOM, integers(states.iter().map(|state| state.atom))),
    ]
}
