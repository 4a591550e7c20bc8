//! [`check_join`]: whether a private table and a register were joined person by person, judged by their texts.
//!
//! # Guarantee
//! - Register persons who count beside the private ones are different persons. With a key, no two of them have keys of
//!   the same value, and no private person has such a key, either. Without a key, none of their rows equals, in all
//!   quasi values, a private row that was found in no register.
//! - For every private person who is said to be in the register, a register row was read: one with the same key, and
//!   with the same values if the join says so.
//! - A text of the register that was replaced by another spelling still means the same value.
//!
//! Values are read by [`meaning`], which is independent of the reader. Rows that the join leaves out are not checked:
//! rows of a second register that equal rows of the first, contradicting rows, and incomplete rows. A mistake there
//! counts too many persons only if a row without a key should have been left out and was not.
//!
//! # Cost
//! One pass over the register persons and the private persons; with a key, also a sorted copy of 8 bytes per register
//! person.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};

use kohort_model::{Column, InRegister, JoinedRegister, NULL, Role, Table};
use rayon::prelude::*;

use super::ToldApart;
use crate::Violation;
use crate::reading::meaning::{key_print, meaning};
use crate::structure::{Places, place};

/// Everything that is wrong with a join of this private table.
pub(super) fn check_join(original: &Table, joined: &JoinedRegister, told_apart: ToldApart) -> Vec<Violation> {
    if !has_its_rows(original, joined) {
        return vec![Violation::JoinOfAnother];
    }
    let mut violations = Vec::new();
    let values: Vec<Vec<u32>> = joined.rows.columns.par_iter().map(value_numbers).collect();
    let alike = Alike { joined, values };
    let respelled = joined.respelled.iter().map(|respelled| {
        let column = &joined.rows.columns[respelled.column];
        let pairs = respelled.as_read.iter().zip(&respelled.texts);
        let wrong = pairs.filter(|&(as_read, &text)| {
            let stands_for = meaning(column.texts.get(text), column.value_type, &column.notation);
            stands_for.is_none() || stands_for != meaning(as_read, column.value_type, &respelled.notation)
        });
        (column, wrong.count() as u64)
    });
    violations.extend(
        respelled.filter(|&(_, n)| n > 0).map(|(column, n)| Violation::OtherValue { column: column.name.clone(), n }),
    );
    violations.extend(alike.misread());
    violations.extend(match told_apart {
        ToldApart::ByKey => check_keys(original, joined),
        ToldApart::ByValues(_) => alike.not_found().into_iter().collect(),
    });
    if let Some(person) = original.person_column() {
        violations.extend(person_twice(person));
    }
    violations
}

/// Whether the join has the quasi cells of the private table, and every row and text that it refers to.
fn has_its_rows(original: &Table, joined: &JoinedRegister) -> bool {
    let n_persons = joined.n_microdata + joined.n_register;
    let counts = [joined.n_microdata, joined.persons.len()].iter().all(|&n| n == original.n_rows);
    if !counts || joined.rows.n_rows < n_persons {
        return false;
    }
    let mut is_said = vec![false; joined.rows.n_rows - n_persons];
    let is_said_once = joined.persons.iter().filter_map(|person| person.row()).all(|row| {
        let said = (row as usize).checked_sub(n_persons).and_then(|at| is_said.get_mut(at));
        said.is_some_and(|said| !std::mem::replace(said, true))
    });
    let are_texts = joined.respelled.iter().all(|respelled| {
        let n_texts = joined.rows.columns.get(respelled.column).map_or(0, |column| column.texts.len());
        respelled.texts.len() == respelled.as_read.len() && respelled.texts.iter().all(|&id| (id as usize) < n_texts)
    });
    let quasi = original.with_role(Role::Quasi);
    let names = quasi.iter().map(|&position| &original.columns[position].name);
    is_said_once
        && are_texts
        && names.eq(joined.rows.columns.iter().map(|column| &column.name))
        && quasi.iter().zip(&joined.rows.columns).all(|(&position, column)| {
            let private = &original.columns[position];
            place(original.n_rows, |row| private.cell(row) != column.cell(row)).is_none()
        })
}

/// A number for each text of a column, the same for texts that mean the same. A text without a meaning equals no other.
fn value_numbers(column: &Column) -> Vec<u32> {
    let mut numbers = HashMap::with_capacity(column.texts.len());
    let number = |(id, text)| match meaning(text, column.value_type, &column.notation) {
        None => id,
        Some(meaning) => *numbers.entry(meaning).or_insert(id),
    };
    (0..).zip(column.texts.iter()).map(number).collect()
}

/// Compares rows of the join by their values.
struct Alike<'a> {
    joined: &'a JoinedRegister,
    /// The number of the value of each text of each column.
    values: Vec<Vec<u32>>,
}

impl Alike<'_> {
    fn cells(&self, row: usize) -> impl Iterator<Item = u32> {
        let columns = self.values.iter().zip(&self.joined.rows.columns);
        columns.map(move |(numbers, column)| match column.ids[row] {
            NULL => NULL,
            id => numbers[id as usize],
        })
    }

    fn are(&self, a: usize, b: usize) -> bool {
        self.cells(a).eq(self.cells(b))
    }

    fn hash(&self, row: usize) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.cells(row).for_each(|value| hasher.write_u32(value));
        hasher.finish()
    }

    /// Private rows for which the join says that the register has the same values although it has others, or the
    /// reverse.
    fn misread(&self) -> Option<Violation> {
        let persons = &self.joined.persons;
        let (n, first_row) = place(persons.len(), |row| match persons[row] {
            InRegister::Absent => false,
            InRegister::Same(said) => !self.are(row, said as usize),
            InRegister::Differs(said) => self.are(row, said as usize),
        })?;
        Some(Violation::RegisterMisread { n, first_row })
    }

    /// Private rows that were found in no register, although a register person has their values.
    fn not_found(&self) -> Option<Violation> {
        let absent = (0..).zip(&self.joined.persons).filter(|(_, person)| **person == InRegister::Absent);
        let mut rows: Vec<(u64, u32)> = absent.map(|(row, _)| (self.hash(row as usize), row)).collect();
        rows.sort_unstable();
        // A Bloom filter: for most register persons, one bit shows that they equal none of these rows.
        let n_bits = (rows.len() * 16).next_power_of_two().max(64);
        let mut bits = vec![0u64; n_bits / 64];
        let bit = |hash: u64| hash as usize & (n_bits - 1);
        rows.iter().for_each(|&(hash, _)| bits[bit(hash) / 64] |= 1 << (bit(hash) % 64));
        let like = |person: u32| {
            let hash = self.hash(person as usize);
            let may_be = bits[bit(hash) / 64] & (1 << (bit(hash) % 64)) != 0;
            let found = if may_be { rows.partition_point(|&(other, _)| other < hash) } else { rows.len() };
            let same_hash = rows[found..].iter().take_while(move |&&(other, _)| other == hash);
            same_hash
                .map(|&(_, row)| row)
                .filter(move |&row| self.are(row as usize, person as usize))
                .collect::<Vec<_>>()
        };
        let mut missed: Vec<u32> =
            self.joined.register_rows().into_par_iter().with_min_len(1 << 12).flat_map_iter(like).collect();
        missed.sort_unstable();
        missed.dedup();
        let first_row = u64::from(*missed.first()?) + 1;
        Some(Violation::NotMatched { n: missed.len() as u64, first_row })
    }
}

/// Persons who are counted several times although they have one key.
fn check_keys(original: &Table, joined: &JoinedRegister) -> Vec<Violation> {
    let n_behind = joined.rows.n_rows - joined.n_microdata;
    let Some(person) = original.person_column().filter(|_| joined.key_prints.len() <= n_behind) else {
        return vec![Violation::JoinOfAnother];
    };
    let n_said = joined.persons.iter().filter(|person| person.row().is_some()).count();
    if joined.key_prints.len() < joined.n_register + n_said {
        return vec![Violation::JoinOfAnother];
    }
    let of_texts: Vec<u64> = person.texts.iter().map(key_print).collect();
    let private = |row: usize| match person.ids[row] {
        NULL => None,
        id => Some(of_texts[id as usize]),
    };
    let mut violations = Vec::new();
    let others = |row: usize| {
        let said = joined.persons[row].row()?;
        let at = said as usize - joined.n_microdata;
        Some(joined.key_prints.get(at).copied() != private(row))
    };
    if let Some((n, first_row)) = place(original.n_rows, |row| others(row) == Some(true)) {
        violations.push(Violation::RegisterMisread { n, first_row });
    }
    let mut rows: Vec<(u64, u32)> =
        (0..original.n_rows as u32).filter_map(|row| Some((private(row as usize)?, row))).collect();
    rows.sort_unstable();
    let mut prints: Vec<u64> = joined.key_prints[..joined.n_register].to_vec();
    prints.par_sort_unstable();
    let mut missed: Vec<u32> =
        rows.iter().filter(|&&(print, _)| prints.binary_search(&print).is_ok()).map(|&(_, row)| row).collect();
    missed.sort_unstable();
    if let Some(&first) = missed.first() {
        violations.push(Violation::NotMatched { n: missed.len() as u64, first_row: u64::from(first) + 1 });
    }
    let twice = prints.par_windows(2).filter(|pair| pair[0] == pair[1]).count() as u64;
    if twice > 0 {
        violations.push(Violation::RegisterPersonTwice { n: twice });
    }
    violations
}

/// Private persons with several rows, that is, with several keys of the same value.
fn person_twice(person: &Column) -> Option<Violation> {
    let mut met = HashMap::with_capacity(person.texts.len());
    let of_texts: Vec<u64> = person.texts.iter().map(key_print).collect();
    let mut repeated = Places::default();
    for (row, &id) in (1..).zip(&person.ids) {
        if id == NULL || met.insert(of_texts[id as usize], ()).is_some() {
            repeated.add(row);
        }
    }
    let (n, first_row) = repeated.found()?;
    Some(Violation::PersonTwice { column: person.name.clone(), n, first_row })
}
