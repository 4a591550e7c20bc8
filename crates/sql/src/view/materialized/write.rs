//! What effects of a change do to the hidden tables.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray, UInt32Array,
};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::Int64Type;
use kohort_core::changing::{
    ClassId, Closing, Departures as Rule, Edit, Effect, Epochs, Ledger, Member, MemberKey, Past,
};
use kohort_store::{Change, ScanRequest};

use super::crowds::Crowds;
use super::error::MaterializedError;
use super::follow::{Arrival, Changed, RowState};
use super::layout::{
    ATOM, CHOICE, CLASS, IS_ALONE, IS_RESTRICTED, LEAVES, Layout, NAME, NODES, OWN_K, PLACE, SINCE, TEXT, TUPLE,
};
use super::ledger::{ALONE, HIDDEN, IN_ATOM, Persons, WAITING, is, past_text};
use super::memory::Memory;
use super::{Materialized, step};
use crate::parser::Departures;
use crate::view::{Definition, ViewError};

/// So many new rows are in memory as they are written.
pub(super) const ROWS_AT_ONCE: usize = 1 << 16;

/// Effects of one view on their way to its tables.
pub(super) struct Writing<'a> {
    pub(super) view: &'a Materialized,
    pub(super) memory: &'a mut Memory,
    pub(super) change: &'a Change,
    pub(super) persons: &'a Persons,
    pub(super) changed: &'a Changed,
}

/// What becomes of a row.
#[derive(Clone, Copy)]
pub(super) enum Fate {
    At(RowState),
    Gone,
}

impl Writing<'_> {
    /// All edits at once, verified.
    pub(super) fn epoch(
        &mut self,
        edits: Vec<Edit>,
        arrivals: BTreeMap<MemberKey, Arrival<'_>>,
    ) -> Result<(), ViewError> {
        let definition = &self.view.definition;
        let departures = match definition.clauses.departures.unwrap_or_default() {
            Departures::Batch => Rule::Batch,
            Departures::Withdraw => Rule::Withdraw,
        };
        let (step, effects) = {
            let memory: &Memory = self.memory;
            let ledger = self.view.ledger(memory, self.change, self.persons);
            let (trees, index, standard) = (&memory.trees, &memory.index, &memory.standard);
            let rule = Epochs { trees, index, standard, departures, closing: closing(definition) };
            let effects = rule.apply(&ledger, edits)?;
            let members = arrivals.iter().filter_map(|(key, arrival)| Some((*key, arrival.member.as_deref()?.clone())));
            (step::verify(definition, &ledger, &effects, &members.collect())?, effects)
        };
        self.memory.index.follow(&self.memory.trees, &effects);
        self.write(&Crowds::of_step(&step), &effects, arrivals)
    }

    /// Writes effects and the rows that came. Who is in which crowd is written as `crowds` have it; of the effects only
    /// what becomes of everybody else is taken, and whatever they say of crowds beside that is refused.
    pub(super) fn write(
        &mut self,
        crowds: &Crowds,
        effects: &[Effect],
        mut arrivals: BTreeMap<MemberKey, Arrival<'_>>,
    ) -> Result<(), ViewError> {
        let mut fates: BTreeMap<MemberKey, Fate> = BTreeMap::new();
        let mut leaving = Vec::new();
        let mut pasts: BTreeMap<String, Past> = BTreeMap::new();
        let mut restricted: BTreeSet<i64> = BTreeSet::new();
        let mut is_seen = false;
        let view = self.view;
        let unproven = || MaterializedError::Damaged { view: view.definition.name.clone() };
        self.memory.recount(effects);
        for effect in effects {
            is_seen |= !matches!(effect, Effect::Wait { .. } | Effect::Hide { .. } | Effect::Remember { .. });
            match effect {
                Effect::Found { class, nodes } => {
                    // A class that shows nobody yet has been verified with no labels.
                    let labels = crowds.labels(*class).cloned().unwrap_or_else(|| self.memory.labels(nodes));
                    self.put_class(*class, labels)?;
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
                Effect::Admit { class, atom, members } if !crowds.admit_all(*class, *atom, members) => {
                    return Err(unproven().into());
                }
                Effect::Admit { class, atom, .. } => {
                    self.memory.counters.next_atom = self.memory.counters.next_atom.max(atom.0 + 1);
                    // We don't look up the choices of rows that waited, so the class is taken for restricted.
                    if !self.memory.restricting.is_empty() {
                        restricted.insert(signed(class.0));
                    }
                }
                Effect::Leave { member } => leaving.push(*member),
                Effect::Remove { members, .. } if !crowds.remove_all(members) => return Err(unproven().into()),
                Effect::Remove { members, .. } => fates.extend(members.iter().map(|key| (*key, Fate::Gone))),
                Effect::Withdraw { gone, survivors, .. }
                    if !crowds.remove_all(gone) || !crowds.remove_all(survivors) =>
                {
                    return Err(unproven().into());
                }
                Effect::Withdraw { gone, survivors, .. } => {
                    fates.extend(gone.iter().map(|key| (*key, Fate::Gone)));
                    fates.extend(survivors.iter().map(|key| (*key, Fate::At(RowState::HIDDEN))));
                }
                Effect::Dissolve { class } => self.drop_class(signed(class.0))?,
                Effect::Forget { member } => drop(fates.insert(*member, Fate::Gone)),
                Effect::Remember { person, past } => drop(pasts.insert(self.persons.name(*person), *past)),
            }
        }
        // Whoever was verified to be out of a crowd must not stay in it.
        if crowds.removed().any(|key| !fates.contains_key(&key)) {
            return Err(unproven().into());
        }
        fates.extend(crowds.admitted().map(|(key, state)| (key, Fate::At(state))));
        for (key, fate) in &fates {
            if let Fate::At(RowState { place: IN_ATOM | ALONE, class: Some(class), .. }) = fate {
                self.memory.joined.insert(*class);
            }
            // Whatever becomes of a row that readers have in memory, they must not show it by that any more.
            if let Some(was) = self.memory.kept.as_ref().and_then(|kept| kept.class_of(signed(key.0))) {
                self.memory.joined.insert(was);
                is_seen = true;
            }
        }
        for (key, arrival) in &mut arrivals {
            if let Some(Fate::At(state)) = fates.remove(key) {
                arrival.state = state;
            }
        }
        self.insert_rows(&arrivals)?;
        self.move_rows(&fates)?;
        self.mark_leaving(&leaving)?;
        self.remember(&pasts)?;
        for class in restricted {
            self.restrict(class)?;
        }
        self.memory.counters.epoch += u64::from(is_seen);
        Ok(())
    }

    pub(super) fn insert_rows(&self, arrivals: &BTreeMap<MemberKey, Arrival<'_>>) -> Result<(), ViewError> {
        let (Some((first, _)), layout) = (arrivals.first_key_value(), &self.view.layout) else { return Ok(()) };
        let rows: Vec<&Arrival<'_>> = arrivals.values().collect();
        let mut next = signed(first.0);
        for rows in rows.chunks(ROWS_AT_ONCE) {
            let inserted = rows_batch(layout, self.memory, &self.changed.rows, rows, self.changed.now)?;
            let numbers = self.change.insert(&layout.rows, &inserted).map_err(MaterializedError::Store)?;
            // A row's key is the number it was going to get.
            if numbers != (next..next + rows.len() as i64) {
                return Err(MaterializedError::Damaged { view: self.view.definition.name.clone() }.into());
            }
            next = numbers.end;
        }
        Ok(())
    }

    pub(super) fn move_rows(&self, fates: &BTreeMap<MemberKey, Fate>) -> Result<(), MaterializedError> {
        let (mut gone, mut moved, mut states, mut out) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (key, fate) in fates {
            match fate {
                Fate::Gone => gone.push(signed(key.0)),
                Fate::At(state) => {
                    moved.push(signed(key.0));
                    states.push(*state);
                    out.extend(matches!(state.place, WAITING | HIDDEN).then_some(signed(key.0)));
                }
            }
        }
        let rows = &self.view.layout.rows;
        let hiding = self.shown_of(out)?;
        if !hiding.is_empty() {
            let since: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![self.changed.now; hiding.len()]));
            self.change.update(rows, &hiding, &batch([(SINCE, since)]))?;
        }
        if !gone.is_empty() {
            self.change.delete(rows, &gone)?;
        }
        if !moved.is_empty() {
            let [place, class, atom] = state_columns(&states);
            let columns = batch([(PLACE, place), (CLASS, class), (ATOM, atom)]);
            self.change.update(rows, &moved, &columns)?;
        }
        Ok(())
    }

    /// Those of some rows that are shown, as the table has it.
    fn shown_of(&self, numbers: Vec<i64>) -> Result<Vec<i64>, MaterializedError> {
        if numbers.is_empty() {
            return Ok(numbers);
        }
        let (columns, numbers) = (Some(vec![PLACE.to_owned()]), Some(numbers));
        let request = ScanRequest { columns, with_rowid: true, numbers, ..ScanRequest::default() };
        let mut shown = Vec::new();
        for batch in self.change.scan(&self.view.layout.rows, &request)? {
            let batch = batch?;
            let integers = |column: usize| batch.column(column).as_primitive::<Int64Type>().values().iter().copied();
            let is_shown = |place: i64| matches!(place, IN_ATOM | ALONE);
            shown.extend(integers(0).zip(integers(1)).filter(|(_, place)| is_shown(*place)).map(|(number, _)| number));
        }
        Ok(shown)
    }

    fn mark_leaving(&self, keys: &[MemberKey]) -> Result<(), MaterializedError> {
        if keys.is_empty() {
            return Ok(());
        }
        let numbers: Vec<i64> = keys.iter().map(|key| signed(key.0)).collect();
        let leaves: ArrayRef = Arc::new(BooleanArray::from(vec![true; keys.len()]));
        let since: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![self.changed.now; keys.len()]));
        Ok(self.change.update(&self.view.layout.rows, &numbers, &batch([(LEAVES, leaves), (SINCE, since)]))?)
    }

    pub(super) fn remember(&self, pasts: &BTreeMap<String, Past>) -> Result<(), MaterializedError> {
        let layout = &self.view.layout;
        let (mut names, mut texts) = (Vec::new(), Vec::new());
        let is_first = pasts.len() > 1 && self.change.count(&layout.past)? == 0;
        let ledger = self.view.ledger(self.memory, self.change, self.persons);
        for (name, past) in pasts {
            let Some(text) = past_text(*past) else { continue };
            self.persons.note_past(name, *past);
            match if is_first { None } else { ledger.past_row(name)? } {
                Some((number, _)) => {
                    let text: ArrayRef = Arc::new(StringArray::from(vec![text]));
                    self.change.update(&layout.past, &[number], &batch([(TEXT, text)]))?;
                }
                None => {
                    names.push(name.as_str());
                    texts.push(text);
                }
            }
        }
        if !names.is_empty() {
            let (names, texts): (ArrayRef, ArrayRef) =
                (Arc::new(StringArray::from(names)), Arc::new(StringArray::from(texts)));
            self.change.insert(&layout.past, &batch([(NAME, names), (TEXT, texts)]))?;
        }
        Ok(())
    }

    /// Takes whoever has another name now for somebody who was seen: readers may know whom they were shown as.
    pub(super) fn remember_renamed<'n>(&self, names: impl Iterator<Item = &'n str>) -> Result<(), MaterializedError> {
        let mut pasts: BTreeMap<String, Past> = BTreeMap::new();
        let ledger = self.view.ledger(self.memory, self.change, self.persons);
        for name in names {
            if ledger.past(self.persons.key(name))? == Past::Nothing {
                pasts.insert(name.to_owned(), Past::InCrowd);
            }
        }
        self.remember(&pasts)
    }

    /// A new class with these labels.
    fn put_class(&mut self, class: ClassId, labels: Vec<Option<String>>) -> Result<(), MaterializedError> {
        self.memory.counters.next_class = self.memory.counters.next_class.max(class.0 + 1);
        self.memory.touched.push((signed(class.0), false, labels.clone()));
        let layout = &self.view.layout;
        let founded = class_batch(layout, &[(signed(class.0), false, labels)], &HashSet::new());
        self.change.insert(&layout.classes, &founded)?;
        Ok(())
    }

    /// The class of rows that show these labels by themselves.
    fn alone_class(&mut self, nodes: &[u32]) -> Result<i64, MaterializedError> {
        let labels = self.memory.labels(nodes);
        if let Some(&class) = self.memory.alone.get(&labels) {
            return Ok(class);
        }
        let class = signed(self.memory.counters.next_class);
        self.memory.counters.next_class += 1;
        let layout = &self.view.layout;
        self.change.insert(&layout.classes, &class_batch(layout, &[(class, true, labels.clone())], &HashSet::new()))?;
        self.memory.touched.push((class, true, labels.clone()));
        self.memory.alone.insert(labels, class);
        Ok(class)
    }

    fn restrict(&mut self, class: i64) -> Result<(), MaterializedError> {
        if !self.memory.restricted.insert(class) {
            return Ok(());
        }
        self.memory.newly_restricted.push(class);
        let numbers = self.class_rows(class)?;
        let restricted: ArrayRef = Arc::new(BooleanArray::from(vec![true; numbers.len()]));
        Ok(self.change.update(&self.view.layout.classes, &numbers, &batch([(IS_RESTRICTED, restricted)]))?)
    }

    fn drop_class(&self, class: i64) -> Result<(), MaterializedError> {
        Ok(self.change.delete(&self.view.layout.classes, &self.class_rows(class)?)?)
    }

    fn class_rows(&self, class: i64) -> Result<Vec<i64>, MaterializedError> {
        let request = ScanRequest {
            columns: Some(Vec::new()),
            with_rowid: true,
            conditions: vec![is(CLASS, class)],
            ..ScanRequest::default()
        };
        let mut numbers = Vec::new();
        for batch in self.change.scan(&self.view.layout.classes, &request)? {
            numbers.extend(batch?.column(0).as_primitive::<Int64Type>().values());
        }
        Ok(numbers)
    }
}

/// When those who wait are counted. Where values are asked for, the moment at which a crowd is shown must not depend on
/// them; twice as many as are needed make it likely that their values suffice.
fn closing(definition: &Definition) -> Closing {
    if definition.clauses.l.is_none() && definition.clauses.t.is_none() {
        return Closing::Earliest;
    }
    Closing::BySize(2 * definition.clauses.k.unwrap_or(0).max(definition.clauses.l.unwrap_or(0)).max(2))
}

fn signed(number: u64) -> i64 {
    number.cast_signed()
}

/// Columns as a batch. Whether a value may be missing is the store's to say.
pub(super) fn batch<'n>(columns: impl IntoIterator<Item = (&'n str, ArrayRef)>) -> RecordBatch {
    let columns = columns.into_iter().map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(columns).expect("columns are of one length")
}

/// Classes as rows of their table.
pub(super) fn class_batch(
    layout: &Layout,
    classes: &[(i64, bool, Vec<Option<String>>)],
    are_restricted: &HashSet<i64>,
) -> RecordBatch {
    let numbers: ArrayRef = Arc::new(classes.iter().map(|(class, ..)| Some(*class)).collect::<Int64Array>());
    let alone: ArrayRef = Arc::new(classes.iter().map(|(_, alone, _)| Some(*alone)).collect::<BooleanArray>());
    let restricted: Vec<bool> = classes.iter().map(|(number, ..)| are_restricted.contains(number)).collect();
    let restricted: ArrayRef = Arc::new(BooleanArray::from(restricted));
    let labels = layout.labels.iter().enumerate().map(|(column, name)| {
        let labels = classes.iter().map(|(.., labels)| labels[column].as_deref());
        (name.as_str(), Arc::new(labels.collect::<StringArray>()) as ArrayRef)
    });
    let fixed = [(CLASS, numbers), (IS_ALONE, alone), (IS_RESTRICTED, restricted)];
    batch(fixed.into_iter().chain(labels))
}

fn state_columns(states: &[RowState]) -> [ArrayRef; 3] {
    [
        Arc::new(states.iter().map(|state| Some(state.place)).collect::<Int64Array>()),
        Arc::new(states.iter().map(|state| state.class).collect::<Int64Array>()),
        Arc::new(states.iter().map(|state| state.atom).collect::<Int64Array>()),
    ]
}

/// New rows as rows of their table.
pub(super) fn rows_batch(
    layout: &Layout,
    memory: &Memory,
    query: &RecordBatch,
    rows: &[&Arrival<'_>],
    now: i64,
) -> Result<RecordBatch, ViewError> {
    let states: Vec<RowState> = rows.iter().map(|row| row.state).collect();
    let [place, class, atom] = state_columns(&states);
    let names: ArrayRef = Arc::new(rows.iter().map(|row| Some(row.row.name.as_ref())).collect::<StringArray>());
    let leaves: ArrayRef = Arc::new(BooleanArray::from(vec![false; rows.len()]));
    let since: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![now; rows.len()]));
    let k: ArrayRef = Arc::new(rows.iter().map(|row| Some(i64::from(row.row.k))).collect::<Int64Array>());
    let json =
        |text: &dyn Fn(&Member) -> String, row: &Arrival<'_>| row.member.as_deref().map_or("[]".to_owned(), text);
    let nodes = |member: &Member| serde_json::to_string(&memory.labels(&member.nodes)).expect("texts are JSON");
    let tuple = |member: &Member| serde_json::to_string(&member.tuple).expect("numbers are JSON");
    let nodes: ArrayRef = Arc::new(rows.iter().map(|row| Some(json(&nodes, row))).collect::<StringArray>());
    let tuples: ArrayRef = Arc::new(rows.iter().map(|row| Some(json(&tuple, row))).collect::<StringArray>());
    let choice: ArrayRef = Arc::new(rows.iter().map(|row| row.choice).collect::<Int64Array>());
    let fixed = [
        (NAME, names),
        (PLACE, place),
        (CLASS, class),
        (ATOM, atom),
        (LEAVES, leaves),
        (SINCE, since),
        (OWN_K, k),
        (NODES, nodes),
        (TUPLE, tuples),
        (CHOICE, choice),
    ];
    let places: UInt32Array = rows.iter().map(|row| row.row.place as u32).collect::<Vec<_>>().into();
    let cells = layout.cells.iter().zip(query.columns()).map(|(name, column)| {
        let taken = take(column, &places, None).expect("places are of the batch");
        (name.as_str(), taken)
    });
    Ok(batch(fixed.into_iter().chain(cells)))
}
