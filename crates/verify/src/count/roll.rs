//! [`Roll`]: the rows to be counted.
//!
//! A table, a release in memory and a file read back keep their cells in different places. A roll hides the difference,
//! so that one function counts all of them.

use std::sync::atomic::{AtomicU64, Ordering};

use kohort_model::{Column, NULL, Requirement, Role, Table, Texts, Value, ValueType};
use rayon::prelude::*;

use crate::Violation;
use crate::count::cells::{CellIds, ValueIds};
use crate::structure::place;

/// The rows to be counted.
#[derive(Clone)]
pub(crate) struct Roll<'a> {
    /// The number of rows.
    pub(crate) n_rows: usize,
    /// The cells by which rows are grouped to classes.
    pub(crate) quasi: Vec<CellIds<'a>>,
    /// The person of each row; if absent, each row is a person.
    pub(crate) persons: Option<CellIds<'a>>,
    /// How shares of sensitive values are counted.
    pub(crate) shares: Shares,
    /// Sensitive columns.
    pub(crate) sensitive: Vec<Sensitive<'a>>,
    /// Columns with persons' own k.
    pub(crate) own_k: Vec<OwnK>,
}

/// How the shares of sensitive values in a class are counted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shares {
    /// In pairs of a person and a value: a person who holds a value twice counts once.
    Pairs,
    /// In rows, several of which may belong to one person. Readers who can't tell a person's rows apart still learn a
    /// value that every person holds in one of them, so diversity also bounds the number of persons who hold a value.
    Rows,
    /// In rows, where nothing tells which rows belong to the same person. Only the distinct values are certain, so a
    /// requirement fails only if it fails whichever rows belong together.
    Hidden,
}

/// A sensitive column.
#[derive(Clone)]
pub(crate) struct Sensitive<'a> {
    /// The column whose type, notation and hierarchy say what the texts mean.
    pub(crate) column: &'a Column,
    /// The texts of the cells.
    pub(crate) texts: &'a Texts,
    /// The cells, numbered by value.
    pub(crate) values: ValueIds<'a>,
    /// The number of nulls and then of rows that hold each text, where the rows are a part of a table and shares are those of
    /// the whole.
    pub(crate) whole: Option<&'a [u64]>,
}

impl<'a> Sensitive<'a> {
    /// The column `cells` in the given rows, with the meaning that `column` gives its texts.
    pub(crate) fn new(cells: &'a Column, column: &'a Column, rows: Option<&'a [u32]>) -> Self {
        let mut values = ValueIds::new(&cells.ids, &cells.texts, column);
        values.cells = values.cells.of_rows(rows);
        Sensitive { column, texts: &cells.texts, values, whole: None }
    }

    /// The columns to be measured, out of those that are released unchanged (pairs of the released and the private
    /// column): columns of role sensitive, and columns that requirements name. A requirement on any other column is a
    /// violation.
    pub(crate) fn measured(
        copied: &[(&'a Column, &'a Column)],
        rows: Option<&'a [u32]>,
        requirements: &[Requirement],
        violations: &mut Vec<Violation>,
    ) -> Vec<Self> {
        let names = sensitive_names(requirements);
        for &name in &names {
            if !copied.iter().any(|(_, private)| private.name == name) {
                violations.push(Violation::UnknownColumn { column: name.to_owned() });
            }
        }
        let is_measured = |column: &Column| column.role == Role::Sensitive || names.contains(&column.name.as_str());
        let measured = copied.iter().filter(|(_, private)| is_measured(private));
        measured.map(|&(cells, private)| Sensitive::new(cells, private, rows)).collect()
    }
}

/// Each person's own k: the largest over all rows of the person.
#[derive(Clone)]
pub(crate) struct OwnK {
    /// The name of the column.
    pub(crate) column: String,
    /// The k of each person, or of each row if each row is a person.
    of_person: Vec<u64>,
}

impl OwnK {
    /// Reads the column of persons' own k. A null asks for nothing.
    pub(crate) fn read(
        column: &Column,
        rows: Option<&[u32]>,
        n_rows: usize,
        persons: Option<&CellIds<'_>>,
    ) -> Result<Self, Violation> {
        let asked: Vec<Option<u64>> = column.texts.iter().map(|text| whole(text, column)).collect();
        let ids = CellIds::by_id(column.ids.as_slice(), column.texts.len()).of_rows(rows);
        let wish = |row: usize| match ids.get(row) {
            id if id == ids.null() => Some(0),
            id => asked[id as usize],
        };
        if let Some((n, first_row)) = place(n_rows, |row| wish(row).is_none()) {
            return Err(Violation::OwnKUnreadable { column: column.name.clone(), n, first_row });
        }
        let of_person: Vec<AtomicU64> =
            (0..persons.map_or(n_rows, CellIds::n_numbers)).map(|_| AtomicU64::new(0)).collect();
        (0..n_rows).into_par_iter().with_min_len(1 << 12).for_each(|row| {
            let person = persons.map_or(row, |persons| persons.get(row) as usize);
            of_person[person].fetch_max(wish(row).unwrap_or(u64::MAX), Ordering::Relaxed);
        });
        let of_person = of_person.into_iter().map(AtomicU64::into_inner).collect();
        Ok(OwnK { column: column.name.clone(), of_person })
    }

    /// Own k that is already known for each person.
    pub(crate) fn new(column: String, of_person: Vec<u64>) -> Self {
        OwnK { column, of_person }
    }

    /// The own k of a person.
    pub(crate) fn of_person(&self, person: usize) -> u64 {
        self.of_person[person]
    }

    /// The own k of the person to whom a row belongs.
    pub(crate) fn get(&self, row: usize, persons: Option<&CellIds<'_>>) -> u64 {
        self.of_person[persons.map_or(row, |persons| persons.get(row) as usize)]
    }
}

/// A whole number. A negative number requires nothing, so it becomes 0.
fn whole(text: &str, column: &Column) -> Option<u64> {
    match Value::parse(text, ValueType::Integer, &column.notation)? {
        Value::Integer(k) => Some(k.max(0).unsigned_abs()),
        _ => None,
    }
}

/// The person of each row of a table; `None` if the table has no person column.
///
/// # Errors
/// If a row does not say to whom it belongs.
pub(crate) fn persons_of<'a>(table: &'a Table, rows: Option<&'a [u32]>) -> Result<Option<CellIds<'a>>, Violation> {
    let Some(column) = table.person_column() else {
        return Ok(None);
    };
    if let Some((n, first_row)) = place(table.n_rows, |row| column.ids[row] == NULL) {
        return Err(Violation::PersonMissing { column: column.name.clone(), n, first_row });
    }
    Ok(Some(CellIds::by_id(column.ids.as_slice(), column.texts.len()).of_rows(rows)))
}

/// The columns that requirements on sensitive values name, each once.
pub(crate) fn sensitive_names(requirements: &[Requirement]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for name in requirements.iter().filter_map(Requirement::sensitive_column) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Persons' own k from the columns that requirements name, each once. Adds a violation for each column that can't be
/// read.
pub(crate) fn own_ks(
    table: &Table,
    rows: Option<&[u32]>,
    persons: Option<&CellIds<'_>>,
    requirements: &[Requirement],
    violations: &mut Vec<Violation>,
) -> Vec<OwnK> {
    let n_rows = rows.map_or(table.n_rows, <[u32]>::len);
    let mut own_ks: Vec<OwnK> = Vec::new();
    for name in requirements.iter().filter_map(Requirement::own_k_column) {
        if own_ks.iter().any(|own_k| own_k.column == *name) {
            continue;
        }
        match table.column(name).map(|column| OwnK::read(column, rows, n_rows, persons)) {
            Some(Ok(own_k)) => own_ks.push(own_k),
            Some(Err(violation)) => violations.push(violation),
            None => violations.push(Violation::UnknownColumn { column: name.to_owned() }),
        }
    }
    own_ks
}
