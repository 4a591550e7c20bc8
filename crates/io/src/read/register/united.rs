//! [`United`]: the persons of several registers, each of them once, and their join with the private rows.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash, Hasher};
use std::ops::Range;

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use kohort_model::{InRegister, NULL};

use super::JoinedBy;
use crate::read::persons::{NamedPerson, private_row};

/// Persons of the registers so far.
pub(super) struct United {
    by: JoinedBy,
    rows: RegisterRows,
    /// How many rows there were after each register.
    ends: Vec<usize>,
    /// Persons about whom registers contradict each other.
    contradicting: HashSet<u64>,
}

/// Rows of registers: for each column ids in a dictionary that all registers share, and for each row its person.
pub(super) struct RegisterRows {
    pub(super) columns: Vec<Vec<u32>>,
    pub(super) persons: Option<Vec<NamedPerson>>,
}

/// The full outer join of private rows and registers.
pub(super) struct Joined {
    /// For each column the cells of these rows: first the private rows; then register persons who are not in the private
    /// table; then what registers say about private persons, whether it agrees or not; then what earlier registers said
    /// about anybody, unless the row of the person says the same.
    pub(super) columns: Vec<Vec<u32>>,
    pub(super) n_register: usize,
    pub(super) persons: Vec<InRegister>,
    /// If there is a key: for each row after the private ones the number that the verifier has for its key.
    pub(super) key_prints: Vec<u64>,
    /// The joined rows of each register.
    pub(super) of_registers: Vec<Range<u32>>,
    /// For each earlier register and person the joined row that shows how the register described them, [`NULL`] if it did
    /// not.
    pub(super) places: Vec<Vec<u32>>,
}

impl United {
    pub(super) fn new(n_columns: usize, by: JoinedBy) -> Self {
        let persons = (by == JoinedBy::Key).then(Vec::new);
        let rows = RegisterRows { columns: vec![Vec::new(); n_columns], persons };
        United { by, rows, ends: Vec::new(), contradicting: HashSet::new() }
    }

    /// Adds the persons of a register that are not there yet. `same` gives for each column and text the first text of the
    /// same value.
    pub(super) fn add(&mut self, mut added: RegisterRows, same: &[&[u32]]) {
        let is_new = match (&self.rows.persons, &added.persons) {
            (Some(known), Some(persons)) => {
                let (is_new, contradicting) = new_persons((&self.rows.columns, known), (&added.columns, persons), same);
                self.contradicting.extend(contradicting);
                is_new
            }
            _ => {
                let known: Vec<&[u32]> = self.rows.columns.iter().map(Vec::as_slice).collect();
                let met = equal_rows((&known, self.rows.len()), (&added.columns, added.len()), same);
                met.into_iter().map(|met| met.is_none()).collect()
            }
        };
        added.retain(&is_new);
        self.rows.append(added);
        self.ends.push(self.rows.len());
    }

    /// Joins the persons with the private rows, and compares them with `earlier` registers. Also returns the number of
    /// persons about whom the registers contradict each other.
    pub(super) fn join(
        mut self,
        private: &[&[u32]],
        n_private: usize,
        earlier: &[RegisterRows],
        same: &[&[u32]],
    ) -> (Joined, u64) {
        let contradicting = self.contradicting.len() as u64;
        let mut in_register = vec![InRegister::Absent; n_private];
        // For each register row, whether its person is outside of the private table; and for each private person who is
        // in a register, the private row and the register row.
        let mut is_other = vec![true; self.rows.len()];
        let mut said: Vec<(usize, usize)> = Vec::new();
        match (self.by, &self.rows.persons) {
            (JoinedBy::Key, Some(persons)) => {
                for (row, person) in persons.iter().enumerate() {
                    let is_believed = !self.contradicting.contains(&person.number);
                    let private_row = private_row(person.number);
                    is_other[row] = is_believed && private_row.is_none();
                    said.extend(private_row.filter(|_| is_believed).map(|private_row| (private_row, row)));
                }
            }
            _ => {
                let found = equal_rows((private, n_private), (&self.rows.columns, self.rows.len()), same);
                for (row, private_row) in found.into_iter().enumerate() {
                    is_other[row] = private_row.is_none();
                    said.extend(private_row.map(|private_row| (private_row as usize, row)));
                }
            }
        }
        said.sort_unstable();
        let n_register = is_other.iter().filter(|&&other| other).count();
        for (position, &(private_row, row)) in said.iter().enumerate() {
            let mut columns = self.rows.columns.iter().zip(private).zip(same);
            let is_same = columns.all(|((ids, private), same)| is_same_value(ids[row], private[private_row], same));
            let joined = (n_private + n_register + position) as u32;
            in_register[private_row] = if is_same { InRegister::Same(joined) } else { InRegister::Differs(joined) };
        }
        let of_registers = self.ranges(&is_other, n_private);
        // Without a key nothing tells who is who, so there are no numbers of keys and no places in earlier registers.
        let others = self.rows.persons.iter().flatten().zip(&is_other).enumerate().filter(|(_, (_, other))| **other);
        let mut register_persons: HashMap<u64, (u32, usize)> = HashMap::new();
        if !earlier.is_empty() {
            let numbered = (n_private as u32..).zip(others);
            register_persons.extend(numbered.map(|(joined, (row, (person, _)))| (person.number, (joined, row))));
        }
        let mut said_before: Vec<(usize, usize)> = Vec::new();
        let mut gone: HashMap<u64, u32> = HashMap::new();
        let mut places: Vec<Vec<u32>> = Vec::with_capacity(earlier.len());
        for (position, register) in earlier.iter().enumerate() {
            let rows_of_persons = register.said(same);
            let mut of_register = vec![NULL; n_private + n_register];
            for (then, person) in register.persons.iter().flatten().enumerate() {
                if rows_of_persons.get(&person.number) != Some(&Some(then)) {
                    continue;
                }
                let is_same = |cell: &dyn Fn(usize) -> u32| {
                    (0..private.len())
                        .all(|column| is_same_value(register.columns[column][then], cell(column), same[column]))
                };
                let (who, is_same) = match (private_row(person.number), register_persons.get(&person.number)) {
                    (Some(row), _) => (row as u32, is_same(&|column| private[column][row])),
                    (None, Some(&(joined, row))) => (joined, is_same(&|column| self.rows.columns[column][row])),
                    (None, None) => {
                        let next = (n_private + n_register + gone.len()) as u32;
                        (*gone.entry(person.number).or_insert(next), false)
                    }
                };
                if who as usize >= of_register.len() {
                    of_register.resize(who as usize + 1, NULL);
                }
                of_register[who as usize] = if is_same {
                    who
                } else {
                    said_before.push((position, then));
                    (n_private + n_register + said.len() + said_before.len() - 1) as u32
                };
            }
            places.push(of_register);
        }
        places.iter_mut().for_each(|places| places.resize(n_private + n_register + gone.len(), NULL));
        let key_prints = match self.rows.persons.take() {
            None => Vec::new(),
            Some(persons) => {
                let others = persons.iter().zip(&is_other).filter(|(_, other)| **other).map(|(person, _)| person.print);
                others.chain(said.iter().map(|&(_, row)| persons[row].print)).collect()
            }
        };
        let columns = self.rows.columns.into_iter().zip(private).enumerate().map(|(column, (ids, private))| {
            let mut joined = Vec::with_capacity(n_private + n_register + said.len() + said_before.len());
            joined.extend_from_slice(private);
            joined.extend(ids.iter().zip(&is_other).filter(|&(_, &other)| other).map(|(&id, _)| id));
            joined.extend(said.iter().map(|&(_, row)| ids[row]));
            joined.extend(said_before.iter().map(|&(position, row)| earlier[position].columns[column][row]));
            joined
        });
        (
            Joined { columns: columns.collect(), n_register, persons: in_register, key_prints, of_registers, places },
            contradicting,
        )
    }

    fn ranges(&self, is_other: &[bool], n_private: usize) -> Vec<Range<u32>> {
        let mut start = n_private as u32;
        let mut first = 0;
        let mut ranges = Vec::with_capacity(self.ends.len());
        for &end in &self.ends {
            let n = is_other[first..end].iter().filter(|&&other| other).count() as u32;
            ranges.push(start..start + n);
            (start, first) = (start + n, end);
        }
        ranges
    }
}

impl RegisterRows {
    fn len(&self) -> usize {
        self.columns.first().map_or(0, Vec::len)
    }

    /// The row of each person; `None` if there are several rows that differ.
    fn said(&self, same: &[&[u32]]) -> HashMap<u64, Option<usize>> {
        let mut said: HashMap<u64, Option<usize>> = HashMap::new();
        for (row, person) in self.persons.iter().flatten().enumerate() {
            let first = *said.entry(person.number).or_insert(Some(row));
            let mut columns = self.columns.iter().zip(same);
            if first.is_none_or(|first| columns.any(|(ids, same)| !is_same_value(ids[first], ids[row], same))) {
                said.insert(person.number, None);
            }
        }
        said
    }

    fn retain(&mut self, kept: &[bool]) {
        self.columns.iter_mut().for_each(|column| retain(column, kept));
        if let Some(persons) = &mut self.persons {
            retain(persons, kept);
        }
    }

    fn append(&mut self, more: RegisterRows) {
        for (column, more) in self.columns.iter_mut().zip(more.columns) {
            if column.is_empty() { *column = more } else { column.extend(more) }
        }
        if let (Some(persons), Some(more)) = (&mut self.persons, more.persons) {
            if persons.is_empty() { *persons = more } else { persons.extend(more) }
        }
    }
}

/// Keeps the entries that are marked in `kept`.
pub(super) fn retain<T>(entries: &mut Vec<T>, kept: &[bool]) {
    let mut kept = kept.iter();
    entries.retain(|_| kept.next().is_some_and(|&kept| kept));
}

/// Whether two cells of a column have the same value.
fn is_same_value(a: u32, b: u32, same: &[u32]) -> bool {
    a == b || (a != NULL && b != NULL && same[a as usize] == same[b as usize])
}

/// Rows of several columns, and the person of each.
type OfPersons<'r> = (&'r [Vec<u32>], &'r [NamedPerson]);

/// For each added row whether its person is new; and the persons who were met before with other values.
fn new_persons(
    (known_columns, known): OfPersons<'_>,
    (added_columns, added): OfPersons<'_>,
    same: &[&[u32]],
) -> (Vec<bool>, HashSet<u64>) {
    let n_known = known.len();
    let person = |row: u32| known.get(row as usize).unwrap_or_else(|| &added[row as usize - n_known]).number;
    let mut first_rows: HashTable<u32> = HashTable::with_capacity(n_known + added.len());
    for row in 0..n_known as u32 {
        first_rows.insert_unique(spread(person(row)), row, |&row| spread(person(row)));
    }
    let cell = |column: usize, row: usize| match row.checked_sub(n_known) {
        None => known_columns[column][row],
        Some(row) => added_columns[column][row],
    };
    let mut contradicting = HashSet::new();
    let mut is_new = Vec::with_capacity(added.len());
    for (row, who) in (n_known..).zip(added.iter().map(|person| person.number)) {
        match first_rows.entry(spread(who), |&other| person(other) == who, |&other| spread(person(other))) {
            Entry::Vacant(entry) => {
                entry.insert(row as u32);
                is_new.push(true);
            }
            Entry::Occupied(entry) => {
                let other = *entry.get() as usize;
                let differs = |column: usize| !is_same_value(cell(column, row), cell(column, other), same[column]);
                if (0..added_columns.len()).any(differs) {
                    contradicting.insert(who);
                }
                is_new.push(false);
            }
        }
    }
    (is_new, contradicting)
}

/// For each row of `others` a row of `known` with the same values. Each known row is given only once.
fn equal_rows(
    (known, n_known): (&[&[u32]], usize),
    (others, n_others): (&[Vec<u32>], usize),
    same: &[&[u32]],
) -> Vec<Option<u32>> {
    let value = |column: usize, id: u32| if id == NULL { NULL } else { same[column][id as usize] };
    let known = |column: usize, row: u32| value(column, known[column][row as usize]);
    let other = |column: usize, row: usize| value(column, others[column][row]);
    let n_columns = others.len();
    let hasher = FixedState::with_seed(0);
    let hash = |cells: &mut dyn Iterator<Item = u32>| {
        let mut state = hasher.build_hasher();
        cells.for_each(|id| id.hash(&mut state));
        state.finish()
    };
    let hash_known = |row: u32| hash(&mut (0..n_columns).map(|column| known(column, row)));
    // The last row of each combination of values, and for each row the one before it with the same values.
    let mut last: HashTable<u32> = HashTable::new();
    let mut before = vec![NULL; n_known];
    let are_same = |a: u32, b: u32| (0..n_columns).all(|column| known(column, a) == known(column, b));
    for row in 0..n_known as u32 {
        match last.entry(hash_known(row), |&other| are_same(row, other), |&other| hash_known(other)) {
            Entry::Vacant(entry) => drop(entry.insert(row)),
            Entry::Occupied(mut entry) => before[row as usize] = std::mem::replace(entry.get_mut(), row),
        }
    }
    let mut given = Vec::with_capacity(n_others);
    for row in 0..n_others {
        let is_same = |&known_row: &u32| (0..n_columns).all(|column| known(column, known_row) == other(column, row));
        match last.find_entry(hash(&mut (0..n_columns).map(|column| other(column, row))), is_same) {
            Err(_) => given.push(None),
            Ok(mut entry) => {
                let known_row = *entry.get();
                given.push(Some(known_row));
                match before[known_row as usize] {
                    NULL => drop(entry.remove()),
                    next => *entry.get_mut() = next,
                }
            }
        }
    }
    given
}

/// The number of a person as a hash. The numbers of private rows are small, so they have to be spread.
fn spread(person: u64) -> u64 {
    person.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
