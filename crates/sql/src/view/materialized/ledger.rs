//! [`StoredLedger`]: what is kept of a view, as the rules of changing data read it.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use kohort_core::changing::{AtomId, AtomMember, ClassId, Ledger, Member, MemberKey, Past, PersonKey, Place, Shown};
use kohort_store::{Comparison, Condition, ScanRequest, State, Value};

use super::error::MaterializedError;
use super::layout::{ATOM, CLASS, LEAVES, Layout, NAME, NODES, OWN_K, PLACE, TEXT, TUPLE};
use super::memory::Memory;

/// Values of the column that says where a row is.
pub(super) const WAITING: i64 = 0;
pub(super) const IN_ATOM: i64 = 1;
pub(super) const ALONE: i64 = 2;
pub(super) const HIDDEN: i64 = 3;

/// The hidden tables of a view, read.
pub(super) struct StoredLedger<'a> {
    pub(super) state: &'a State,
    pub(super) layout: &'a Layout,
    pub(super) memory: &'a Memory,
    pub(super) view: &'a str,
    pub(super) persons: &'a Persons,
}

/// Numbers of persons for the time of one change.
#[derive(Default)]
pub(super) struct Persons {
    known: RefCell<Numbered>,
    /// What readers have seen of those of whom it was looked up.
    pasts: RefCell<HashMap<PersonKey, Past>>,
    /// Whether that is everybody of whom they have seen something.
    are_all_known: Cell<bool>,
}

/// Names and their numbers, both ways.
#[derive(Default)]
struct Numbered {
    numbers: HashMap<Arc<str>, u64>,
    names: Vec<Arc<str>>,
}

impl Persons {
    pub(super) fn key(&self, name: &str) -> PersonKey {
        let known = self.known.borrow().numbers.get(name).copied();
        known.map_or_else(|| self.shared_key(&Arc::from(name)), PersonKey)
    }

    /// The same of a name that is in memory anyway.
    pub(super) fn shared_key(&self, name: &Arc<str>) -> PersonKey {
        let mut known = self.known.borrow_mut();
        let Numbered { numbers, names } = &mut *known;
        let number = *numbers.entry(Arc::clone(name)).or_insert_with(|| {
            names.push(Arc::clone(name));
            names.len() as u64 - 1
        });
        PersonKey(number)
    }

    pub(super) fn note_past(&self, name: &str, past: Past) {
        self.pasts.borrow_mut().insert(self.key(name), past);
    }

    pub(super) fn name(&self, person: PersonKey) -> String {
        self.known.borrow().names[person.0 as usize].to_string()
    }
}

/// Texts of the table of what readers have seen of persons.
const SEEN_IN_CROWD: &str = "in a crowd";
const SEEN_ALONE: &str = "alone";

/// `None` where nothing is to be remembered.
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
    /// Labels as they are written, to be compared.
    pub(super) nodes: String,
}

pub(super) fn is(column: &str, value: i64) -> Condition {
    Condition::Compare { column: column.to_owned(), comparison: Comparison::Eq, value: Value::Integer(value) }
}

impl StoredLedger<'_> {
    fn damaged(&self) -> MaterializedError {
        MaterializedError::Damaged { view: self.view.to_owned() }
    }

    /// The rows that meet conditions, in the order of their keys.
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

    /// The row with this key.
    fn row(&self, key: MemberKey) -> Result<Option<KeptRow>, MaterializedError> {
        let numbers = Some(vec![key.0.cast_signed()]);
        Ok(self.scan(ScanRequest { numbers, ..ScanRequest::default() })?.pop())
    }

    /// Members by their keys: newcomers, or those who waited.
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
        keys.iter().map(|key| member(key).ok_or_else(|| self.damaged())).collect()
    }

    /// The rows of some persons.
    pub(super) fn rows_of(&self, names: &[String]) -> Result<Vec<KeptRow>, MaterializedError> {
        let mut found = Vec::new();
        for names in names.chunks(10_000) {
            let values = names.iter().cloned().map(Value::Text).collect();
            found.extend(self.rows(vec![Condition::In { column: NAME.to_owned(), values }])?);
        }
        Ok(found)
    }

    /// Looks up at once what readers have seen of some persons.
    pub(super) fn look_up_pasts(&self, names: &[String]) -> Result<(), MaterializedError> {
        for names in names.chunks(10_000) {
            names.iter().for_each(|name| self.persons.note_past(name, Past::Nothing));
            let values = names.iter().cloned().map(Value::Text).collect();
            self.note_pasts(vec![Condition::In { column: NAME.to_owned(), values }])?;
        }
        Ok(())
    }

    /// The same of those of whom it is not known yet.
    pub(super) fn look_up_pasts_of(&self, persons: impl Iterator<Item = PersonKey>) -> Result<(), MaterializedError> {
        if self.persons.are_all_known.get() {
            return Ok(());
        }
        let unknown = persons.filter(|person| !self.persons.pasts.borrow().contains_key(person));
        let names: Vec<String> = unknown.map(|person| self.persons.name(person)).collect();
        self.look_up_pasts(&names)
    }

    /// Looks up what readers have seen of everybody.
    pub(super) fn look_up_all_pasts(&self) -> Result<(), MaterializedError> {
        self.note_pasts(Vec::new())?;
        self.persons.are_all_known.set(true);
        Ok(())
    }

    fn note_pasts(&self, conditions: Vec<Condition>) -> Result<(), MaterializedError> {
        let columns = Some(vec![NAME.to_owned(), TEXT.to_owned()]);
        let request = ScanRequest { columns, conditions, ..ScanRequest::default() };
        for batch in self.state.scan(&self.layout.past, &request)? {
            let batch = batch?;
            let (names, texts) = (batch.column(0).as_string::<i32>(), batch.column(1).as_string::<i32>());
            for row in 0..batch.num_rows() {
                let past = past_of(texts.value(row)).ok_or_else(|| self.damaged())?;
                self.persons.note_past(names.value(row), past);
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
                _ => return Err(self.damaged()),
            };
            let labels: Vec<Option<String>> = serde_json::from_str(nodes.value(row)).map_err(|_| self.damaged())?;
            // A row that no DGH takes is hidden, and has no nodes.
            let of_labels = if labels.is_empty() { Some(Vec::new()) } else { self.memory.nodes(&labels) };
            let tuple = serde_json::from_str(tuples.value(row)).map_err(|_| self.damaged())?;
            found.push(KeptRow {
                name: names.value(row).to_owned(),
                place,
                shown: if leaves.value(row) { Shown::Leaves } else { Shown::Stays },
                member: Member {
                    key: MemberKey(keys.value(row).cast_unsigned()),
                    person: self.persons.key(names.value(row)),
                    k: u32::try_from(k.value(row)).map_err(|_| self.damaged())?,
                    nodes: of_labels.ok_or_else(|| self.damaged())?,
                    tuple,
                },
                nodes: nodes.value(row).to_owned(),
            });
        }
        Ok(())
    }

    /// Where what is remembered of a person stands, and what it is.
    pub(super) fn past_row(&self, name: &str) -> Result<Option<(i64, Past)>, MaterializedError> {
        let value = Value::Text(name.to_owned());
        let request = ScanRequest {
            columns: Some(vec![TEXT.to_owned()]),
            with_rowid: true,
            conditions: vec![Condition::Compare { column: NAME.to_owned(), comparison: Comparison::Eq, value }],
            ..ScanRequest::default()
        };
        for batch in self.state.scan(&self.layout.past, &request)? {
            let batch = batch?;
            if batch.num_rows() > 0 {
                let past = past_of(batch.column(1).as_string::<i32>().value(0)).ok_or_else(|| self.damaged())?;
                return Ok(Some((batch.column(0).as_primitive::<Int64Type>().value(0), past)));
            }
        }
        Ok(None)
    }
}

impl Ledger for StoredLedger<'_> {
    type Error = MaterializedError;

    fn place(&self, member: MemberKey) -> Result<Option<Place>, MaterializedError> {
        Ok(self.row(member)?.map(|row| row.place))
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

    fn atoms(&self, class: ClassId) -> Result<Vec<AtomId>, MaterializedError> {
        let rows = self.rows(vec![is(CLASS, class.0.cast_signed()), is(PLACE, IN_ATOM)])?;
        let atoms: BTreeSet<AtomId> = rows
            .iter()
            .filter_map(|row| match row.place {
                Place::Atom { atom, .. } => Some(atom),
                Place::Waiting(_) | Place::Alone | Place::Hidden => None,
            })
            .collect();
        Ok(atoms.into_iter().collect())
    }

    fn past(&self, person: PersonKey) -> Result<Past, MaterializedError> {
        if let Some(past) = self.persons.pasts.borrow().get(&person) {
            return Ok(*past);
        }
        if self.persons.are_all_known.get() {
            return Ok(Past::Nothing);
        }
        Ok(self.past_row(&self.persons.name(person))?.map_or(Past::Nothing, |(_, past)| past))
    }

    fn unused(&self) -> Result<(ClassId, AtomId), MaterializedError> {
        let counters = self.memory.counters;
        Ok((ClassId(counters.next_class), AtomId(counters.next_atom)))
    }
}
