//! [`Roll`]: the rows to be counted, whatever table they stand in.
//!
//! A table, a release in memory and a file read back differ in where the cells are; here they no longer do.

use std::sync::atomic::{AtomicU64, Ordering};

use kohort_model::{Column, NULL, Requirement, Role, Table, Texts, Value, ValueType};
use rayon::prelude::*;

use crate::Violation;
use crate::count::cells::{CellIds, ValueIds};
use crate::structure::place;

/// The rows to be counted.
pub(crate) struct Roll<'a> {
    /// How many there are.
    pub(crate) n_rows: usize,
    /// The cells that make classes.
    pub(crate) quasi: Vec<CellIds<'a>>,
    /// Who the rows are of; without it each is a person.
    pub(crate) persons: Option<CellIds<'a>>,
    /// What shares of sensitive values are counted in.
    pub(crate) shares: Shares,
    /// Sensitive columns.
    pub(crate) sensitive: Vec<Sensitive<'a>>,
    /// Columns with persons' own k.
    pub(crate) own_k: Vec<OwnK>,
}

/// What the shares of sensitive values in a class are counted in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shares {
    /// Pairs of a person and a value: a person who holds a value twice counts once.
    Pairs,
    /// Rows, as many of a person as look the same. Who can't tell a person's rows apart learns a value that every
    /// person holds in one of them, so here diversity also bounds the persons who hold a value.
    Rows,
    /// Rows of which some may be of the same person, and nothing tells which. Only distinct values are certain, so a
    /// requirement fails only where it fails whichever rows share a person.
    Hidden,
}

/// A sensitive column.
#[derive(Clone)]
pub(crate) struct Sensitive<'a> {
    /// Says how texts are understood.
    pub(crate) column: &'a Column,
    /// The texts of the cells.
    pub(crate) texts: &'a Texts,
    /// The cells, by value.
    pub(crate) values: ValueIds<'a>,
}

impl<'a> Sensitive<'a> {
    /// The cells of one column, in the given rows, understood as another says.
    pub(crate) fn new(cells: &'a Column, column: &'a Column, rows: Option<&'a [u32]>) -> Self {
        let mut values = ValueIds::new(&cells.ids, &cells.texts, column);
        values.cells = values.cells.of_rows(rows);
        Sensitive { column, texts: &cells.texts, values }
    }

    /// Of columns that are released unchanged, as pairs of the released and the private column: those of role
    /// sensitive, and those that requirements name. A requirement on any other column is a violation.
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
    /// The column it comes from.
    pub(crate) column: String,
    /// Per person, or per row where each row is one.
    of_person: Vec<u64>,
}

impl OwnK {
    /// Reads a column. A null asks for nothing.
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

    /// Own k that is known per person.
    pub(crate) fn new(column: String, of_person: Vec<u64>) -> Self {
        OwnK { column, of_person }
    }

    /// The own k of a person.
    pub(crate) fn of_person(&self, person: usize) -> u64 {
        self.of_person[person]
    }

    /// The own k of the person of a row.
    pub(crate) fn get(&self, row: usize, persons: Option<&CellIds<'_>>) -> u64 {
        self.of_person[persons.map_or(row, |persons| persons.get(row) as usize)]
    }
}

/// A whole number; what is below 0 asks for nothing.
fn whole(text: &str, column: &Column) -> Option<u64> {
    match Value::parse(text, ValueType::Integer, &column.notation)? {
        Value::Integer(k) => Some(k.max(0).unsigned_abs()),
        _ => None,
    }
}

/// The persons of a table's rows.
///
/// # Errors
/// Where a row does not say whose it is.
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

/// Persons' own k from the columns that requirements name, each once. What can't be read is added to the violations.
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
