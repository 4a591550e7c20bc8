//! [`StoredLedger`]: the hidden tables of a view, as the rules of changing data read them.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use indexmap::IndexSet;
use kohort_core::changing::{AtomId, AtomMember, ClassId, Ledger, Member, MemberKey, Past, PersonKey, Place, Shown};
use kohort_store::{Comparison, Condition, ScanRequest, State, Value};

use super::error::MaterializedError;
use super::layout::{ATOM, CLASS, LEAVES, Layout, NAME, NODES, OWN_K, PLACE, TEXT, TUPLE};
use super::memory::Memory;

/// How many persons one query asks for.
const ASKED_AT_ONCE: usize = 10_000;

/// The values of the column [`PLACE`].
pub(super) const WAITING: i64 = 0;
pub(super) const IN_ATOM: i64 = 1;
pub(super) const ALONE: i64 = 2;
pub(super) const HIDDEN: i64 = 3;

/// Reads the hidden tables of a view.
pub(super) struct StoredLedger<'a> {
    pub(super) state: &'a State,
    pub(super) layout: &'a Layout,
    pub(super) memory: &'a Memory,
    pub(super) persons: &'a Persons,
}

/// The numbers that persons have during one change, and what readers have seen of them.
#[derive(Default)]
pub(super) struct Persons {
    names: RefCell<IndexSet<Arc<str>>>,
    /// What readers have seen of the persons for whom it was looked up, with the number of the row that keeps it; `None`
    /// if they have seen nothing.
    pasts: RefCell<HashMap<PersonKey, Option<(i64, Past)>>>,
    /// Whether everybody who is not in `pasts` was never seen.
    are_all_known: Cell<bool>,
}

impl Persons {
    /// Persons of a view that is new, of whom nobody was ever seen.
    pub(super) fn never_seen() -> Persons {
        Persons { are_all_known: Cell::new(true), ..Persons::default() }
    }

    pub(super) fn key(&self, name: &str) -> PersonKey {
        let known = self.names.borrow().get_index_of(name);
        known.map_or_else(|| self.shared_key(&Arc::from(name)), |number| PersonKey(number as u64))
    }

    /// The number of the person with this name. The name is kept without copying it.
    pub(super) fn shared_key(&self, name: &Arc<str>) -> PersonKey {
        PersonKey(self.names.borrow_mut().insert_full(Arc::clone(name)).0 as u64)
    }

    pub(super) fn name(&self, person: PersonKey) -> String {
        self.names.borrow()[person.0 as usize].to_string()
    }

    /// What readers have seen of a person, with the number of the row that keeps it. It must have been looked up.
    pub(super) fn past(&self, person: PersonKey) -> Option<(i64, Past)> {
        self.pasts.borrow().get(&person).copied().flatten()
    }

    pub(super) fn note_past(&self, person: PersonKey, row: i64, past: Past) {
        self.pasts.borrow_mut().insert(person, Some((row, past)));
    }
}

/// Texts in the table of what readers have seen of persons.
const SEEN_IN_CROWD: &str = "in a crowd";
const SEEN_ALONE: &str = "alone";

/// The text for what readers have seen of a person; `None` for nothing.
pub(super) fn past_text(past: Past) -> Option<&'static str> {
    match past {
        Past::Nothing => None,
        Past::InCrowd => Some(SEEN_IN_CROWD),
        Past::Alone => Some(SEEN_ALONE),
    }
}

fn past_of(text: &str) -> Option<Past> {
    match text {
        SEEN_IN_CROWD => Some(Past::InCrowd),
        SEEN_ALONE => Some(Past::Alone),
        _ => None,
    }
}

/// A row of the table of rows.
pub(super) struct KeptRow {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) shown: Shown,
    pub(super) member: Member,
    /// The labels of `member.nodes` as the table has them, to be compared.
    pub(super) nodes: String,
}

pub(super) fn is(column: &str, value: i64) -> Condition {
    Condition::Compare { column: column.to_owned(), comparison: Comparison::Eq, value: Value::Integer(value) }
}

impl StoredLedger<'_> {
    /// The rows that satisfy conditions, in the order of their keys.
    pub(super) fn rows(&self, conditions: Vec<Condition>) -> Result<Vec<KeptRow>, MaterializedError> {
        self.scan(ScanRequest { conditions, ..ScanRequest::default() })
    }

    fn scan(&self, request: ScanRequest) -> Result<Vec<KeptRow>, MaterializedError> {
        let columns = [NAME, PLACE, CLASS, ATOM, LEAVES, OWN_K, NODES, TUPLE].map(str::to_owned).to_vec();
        let request = ScanRequest { columns: Some(columns), with_rowid: true, ..request };
        let mut found = Vec::new();
        for batch in self.state.scan(&self.layout.rows, &request)? {
            self.read(&batch?, &mut found)?;
        }
        found.sort_unstable_by_key(|row| row.member.key);
        Ok(found)
    }

    /// Members by their keys, who are newcomers or have waited.
    pub(super) fn waiting_members(
        &self,
        keys: impl Iterator<Item = MemberKey>,
        newcomers: &BTreeMap<MemberKey, Member>,
    ) -> Result<Vec<Member>, MaterializedError> {
        let keys: Vec<MemberKey> = keys.collect();
        let waited = keys.iter().filter(|key| !newcomers.contains_key(key)).map(|key| key.0.cast_signed()).collect();
        let rows = self.scan(ScanRequest { numbers: Some(waited), ..ScanRequest::default() })?;
        let waited: HashMap<MemberKey, Member> = rows.into_iter().map(|row| (row.member.key, row.member)).collect();
        let member = |key: &MemberKey| newcomers.get(key).or_else(|| waited.get(key)).cloned();
        keys.iter().map(|key| member(key).ok_or_else(|| self.layout.damaged())).collect()
    }

    /// The rows of some persons.
    pub(super) fn rows_of(&self, names: &[String]) -> Result<Vec<KeptRow>, MaterializedError> {
        let mut found = Vec::new();
        for names in names.chunks(ASKED_AT_ONCE) {
            let values = names.iter().cloned().map(Value::Text).collect();
            found.extend(self.rows(vec![Condition::In { column: NAME.to_owned(), values }])?);
        }
        Ok(found)
    }

    /// Looks up what readers have seen of persons, with few queries.
    pub(super) fn look_up_pasts(&self, persons: impl Iterator<Item = PersonKey>) -> Result<(), MaterializedError> {
        if self.persons.are_all_known.get() {
            return Ok(());
        }
        let unknown: Vec<PersonKey> =
            persons.filter(|person| !self.persons.pasts.borrow().contains_key(person)).collect();
        for persons in unknown.chunks(ASKED_AT_ONCE) {
            self.persons.pasts.borrow_mut().extend(persons.iter().map(|&person| (person, None)));
            let values = persons.iter().map(|&person| Value::Text(self.persons.name(person))).collect();
            self.note_pasts(vec![Condition::In { column: NAME.to_owned(), values }])?;
        }
        Ok(())
    }

    /// Looks up what readers have seen of everybody.
    pub(super) fn look_up_all_pasts(&self) -> Result<(), MaterializedError> {
        self.note_pasts(Vec::new())?;
        self.persons.are_all_known.set(true);
        Ok(())
    }

    fn note_pasts(&self, conditions: Vec<Condition>) -> Result<(), MaterializedError> {
        let columns = Some(vec![NAME.to_owned(), TEXT.to_owned()]);
        let request = ScanRequest { columns, with_rowid: true, conditions, ..ScanRequest::default() };
        for batch in self.state.scan(&self.layout.past, &request)? {
            let batch = batch?;
            let numbers = batch.column(0).as_primitive::<Int64Type>();
            let (names, texts) = (batch.column(1).as_string::<i32>(), batch.column(2).as_string::<i32>());
            for row in 0..batch.num_rows() {
                let past = past_of(texts.value(row)).ok_or_else(|| self.layout.damaged())?;
                self.persons.note_past(self.persons.key(names.value(row)), numbers.value(row), past);
            }
        }
        Ok(())
    }

    fn read(&self, batch: &RecordBatch, found: &mut Vec<KeptRow>) -> Result<(), MaterializedError> {
        let number = |position: usize| batch.column(position).as_primitive::<Int64Type>();
        let text = |position: usize| batch.column(position).as_string::<i32>();
        let (keys, names, places, classes, atoms) = (number(0), text(1), number(2), number(3), number(4));
        let (leaves, k, nodes, tuples) = (batch.column(5).as_boolean(), number(6), text(7), text(8));
        for row in 0..batch.num_rows() {
            let class = ClassId(if classes.is_valid(row) { classes.value(row) } else { 0 }.cast_unsigned());
            let place = match places.value(row) {
                WAITING => Place::Waiting(class),
                IN_ATOM => Place::Atom { class, atom: AtomId(atoms.value(row).cast_unsigned()) },
                ALONE => Place::Alone,
                HIDDEN => Place::Hidden,
                _ => return Err(self.layout.damaged()),
            };
            let labels: Vec<Option<String>> =
                serde_json::from_str(nodes.value(row)).map_err(|_| self.layout.damaged())?;
            // A row with values that are in no DGH is hidden and has no nodes.
            let of_labels = if labels.is_empty() { Some(Vec::new()) } else { self.memory.nodes(&labels) };
            let tuple = serde_json::from_str(tuples.value(row)).map_err(|_| self.layout.damaged())?;
            found.push(KeptRow {
                name: names.value(row).to_owned(),
                place,
                shown: if leaves.value(row) { Shown::Leaves } else { Shown::Stays },
                member: Member {
                    key: MemberKey(keys.value(row).cast_unsigned()),
                    person: self.persons.key(names.value(row)),
                    k: u32::try_from(k.value(row)).map_err(|_| self.layout.damaged())?,
                    nodes: of_labels.ok_or_else(|| self.layout.damaged())?,
                    tuple,
                },
                nodes: nodes.value(row).to_owned(),
            });
        }
        Ok(())
    }
}

impl Ledger for StoredLedger<'_> {
    type Error = MaterializedError;

    fn place(&self, member: MemberKey) -> Result<Option<Place>, MaterializedError> {
        let numbers = Some(vec![member.0.cast_signed()]);
        let found = self.scan(ScanRequest { numbers, ..ScanRequest::default() })?;
        Ok(found.first().map(|row| row.place))
    }

    fn atom(&self, atom: AtomId) -> Result<Vec<AtomMember>, MaterializedError> {
        let rows = self.rows(vec![is(ATOM, atom.0.cast_signed())])?;
        let member = |row: KeptRow| AtomMember { member: row.member, shown: row.shown };
        Ok(rows.into_iter().map(member).collect())
    }

    fn waiting(&self, class: ClassId) -> Result<Vec<Member>, MaterializedError> {
        let rows = self.rows(vec![is(CLASS, class.0.cast_signed()), is(PLACE, WAITING)])?;
        Ok(rows.into_iter().map(|row| row.member).collect())
    }

    fn n_waiting(&self, class: ClassId) -> Result<usize, MaterializedError> {
        let conditions = [is(CLASS, class.0.cast_signed()), is(PLACE, WAITING)];
        Ok(self.state.count_of(&self.layout.rows, &conditions)? as usize)
    }

    fn past(&self, person: PersonKey) -> Result<Past, MaterializedError> {
        self.look_up_pasts(std::iter::once(person))?;
        Ok(self.persons.past(person).map_or(Past::Nothing, |(_, past)| past))
    }

    fn unused(&self) -> Result<(ClassId, AtomId), MaterializedError> {
        let counters = self.memory.counters;
        Ok((ClassId(counters.next_class), AtomId(counters.next_atom)))
    }
}
