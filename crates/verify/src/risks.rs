//! [`find_risks`]: blatant risks in a private table and its release that no requirement notices.
//!
//! k, l and t rely on the spec: it says which columns others know, and what a person is. If the data contradict the
//! spec, all counts are right and yet protect nobody. The checks look at the table and the release, not at the names of
//! columns, and their limits are generous: an ordinary release has none of these risks.
//!
//! # Guarantee
//! A risk is described by counts and names of columns, never by a value.
//! # Limits
//! Tables of fewer than [`FEWEST_PERSONS`] persons are not checked. The checks don't know what an attacker knows beyond
//! the quasi and plain columns.

mod cells;
mod formats;
mod persons;

use std::collections::HashMap;
use std::fmt;

use kohort_model::{Cells, Column, NULL, NoteManifest, ReleasedColumn, ReleasedTable, Requirement, Role, Table};

use crate::find_non_pseudonyms;
pub use cells::RisksInCells;
pub use formats::IdentifierKind;
use persons::names_persons;
pub use persons::{Followers, PersonColumn, person_column};

/// Tables of fewer persons are not checked, because shares of so few say little.
const FEWEST_PERSONS: usize = 20;
/// A column is nearly unique if at least this share of persons has a value that nobody else has.
const NEARLY_UNIQUE: f64 = 0.9;
/// Plain columns defeat the classes if they make at least this share of the persons unique.
const MANY_UNIQUE: f64 = 0.9;
/// A column of numbers is continuous if it has at least this many distinct values per row.
const CONTINUOUS: f64 = 0.5;
/// A column of texts never repeats if it has at least this many distinct values per row.
const NEVER_REPEATED: f64 = 0.9;
/// A value is nearly everywhere if at least this share of the rows holds it.
const NEARLY_EVERYWHERE: f64 = 0.95;

/// A risk that no requirement notices.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum BlatantRisk {
    /// A quasi column shows whole values that belong to one person each.
    IdentifierShown { column: String, n_shown: u64, kind: Option<&'static str> },
    /// Rows are counted as persons, but a column shows that persons have several rows.
    RowsAreNotPersons { column: String, n_persons: u64, n_rows: u64 },
    /// Plain columns tell persons of a class apart.
    PlainTellsApart { columns: Vec<String>, n_unique: u64, n_persons: u64 },
    /// Distinct values are required of a column that has nearly as many values as rows.
    DiversityOfContinuous { column: String, n_values: u64, n_rows: u64 },
    /// Distinct values are required of a column in which one value is nearly everywhere.
    DiversityOfOneValue { column: String, n_rows_with_it: u64, n_rows: u64 },
}

impl BlatantRisk {
    /// The name of the risk in manifests and specs.
    pub fn code(&self) -> &'static str {
        match self {
            BlatantRisk::IdentifierShown { .. } => "identifier_shown",
            BlatantRisk::RowsAreNotPersons { .. } => "rows_are_not_persons",
            BlatantRisk::PlainTellsApart { .. } => "plain_tells_apart",
            BlatantRisk::DiversityOfContinuous { .. } => "diversity_of_continuous",
            BlatantRisk::DiversityOfOneValue { .. } => "diversity_of_one_value",
        }
    }

    /// What to do about the risk.
    pub fn hint(&self) -> String {
        match self {
            BlatantRisk::IdentifierShown { column, .. } => {
                format!(
                    "give '{column}' the role identifier or drop, or name the person column if a person can have several rows"
                )
            }
            BlatantRisk::RowsAreNotPersons { column, .. } => {
                format!("say person = \"{column}\", so that each person counts once")
            }
            BlatantRisk::PlainTellsApart { .. } => {
                "give the role quasi to columns that others could know, and drop columns that nobody needs".to_owned()
            }
            BlatantRisk::DiversityOfContinuous { .. } => {
                "ask for t with distance = \"ordered\" instead of l, or release the values as ranges".to_owned()
            }
            BlatantRisk::DiversityOfOneValue { .. } => {
                "ask for t or beta, which limit what a class tells about the rare values".to_owned()
            }
        }
    }
}

impl fmt::Display for BlatantRisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlatantRisk::IdentifierShown { column, n_shown, kind } => {
                let values = if *n_shown == 1 { "value that belongs" } else { "values, each of which belongs" };
                write!(f, "quasi column '{column}' shows {n_shown} whole {values} to one person")?;
                kind.map_or(Ok(()), |kind| write!(f, "; it seems to hold {kind} per person"))
            }
            BlatantRisk::RowsAreNotPersons { column, n_persons, n_rows } => write!(
                f,
                "rows are counted as persons, but column '{column}' seems to name {n_persons} persons in {n_rows} rows: \
                 a class of k rows may be one person"
            ),
            BlatantRisk::PlainTellsApart { columns, n_unique, n_persons } => {
                let names: Vec<String> = columns.iter().map(|name| format!("'{name}'")).collect();
                let (noun, make) = if columns.len() == 1 { ("column", "makes") } else { ("columns", "make") };
                write!(
                    f,
                    "plain {noun} {} {make} {n_unique} of {n_persons} persons unique in the release again",
                    names.join(", ")
                )
            }
            BlatantRisk::DiversityOfContinuous { column, n_values, n_rows } => write!(
                f,
                "sensitive column '{column}' has {n_values} distinct values in {n_rows} rows, so any class has \
                 different values, and l says nothing about how near these are to each other"
            ),
            BlatantRisk::DiversityOfOneValue { column, n_rows_with_it, n_rows } => write!(
                f,
                "sensitive column '{column}' holds one value in {n_rows_with_it} of {n_rows} rows: l distinct values \
                 hide hardly anything about rows with another value"
            ),
        }
    }
}

impl From<&BlatantRisk> for NoteManifest {
    fn from(risk: &BlatantRisk) -> Self {
        NoteManifest { code: risk.code().to_owned(), message: risk.to_string() }
    }
}

/// Blatant risks of releasing a table, worst first. Without a released table, only risks that the private table shows
/// are looked for.
pub fn find_risks(table: &Table, requirements: &[Requirement], released: Option<&ReleasedTable>) -> Vec<BlatantRisk> {
    let mut risks = Vec::new();
    let persons = Persons::of(table);
    if persons.n >= FEWEST_PERSONS {
        if let Some(released) = released {
            risks.extend(identifiers_shown(table, released, &persons));
        }
        if let Some(PersonColumn { position, n_persons }) = persons.told_by {
            risks.push(BlatantRisk::RowsAreNotPersons {
                column: table.columns[position].name.clone(),
                n_persons: n_persons as u64,
                n_rows: table.n_rows as u64,
            });
        }
        if let Some(released) = released {
            risks.extend(told_apart_by_plain(table, released, &persons));
        }
    }
    risks.extend(find_diversity_risks(table, requirements));
    risks
}

/// Requirements of diversity that say nothing about their column.
pub fn find_diversity_risks(table: &Table, requirements: &[Requirement]) -> Vec<BlatantRisk> {
    if table.n_rows < FEWEST_PERSONS {
        return Vec::new();
    }
    let sensitive = table.columns.iter().filter(|column| column.role == Role::Sensitive);
    let counted = sensitive.filter(|column| only_counts_values(column, requirements));
    let risk = |column: &Column| {
        let mut counts = vec![0u64; column.texts.len()];
        column.ids.iter().filter(|&&id| id != NULL).for_each(|&id| counts[id as usize] += 1);
        diversity_risk(column, &counts, table.n_rows as u64)
    };
    counted.filter_map(risk).collect()
}

/// The persons of a table, named by the spec or found in the data.
struct Persons {
    /// The person of each row; `None` if each row is a person.
    of_row: Option<Vec<u32>>,
    n: usize,
    /// The column that seems to name persons, if the spec names none.
    told_by: Option<PersonColumn>,
}

impl Persons {
    fn of(table: &Table) -> Persons {
        if let Some(person) = table.person {
            let column = &table.columns[person];
            if column.texts.len() < table.n_rows {
                return Persons { of_row: Some(column.ids.clone()), n: column.texts.len(), told_by: None };
            }
        }
        let told_by = person_column(table, |column| column.role == Role::Quasi, Followers::MOST);
        match told_by {
            Some(found) => {
                let of_row = table.columns[found.position].ids.clone();
                Persons { of_row: Some(of_row), n: found.n_persons, told_by }
            }
            None => Persons { of_row: None, n: table.n_rows, told_by },
        }
    }

    fn of_row(&self, row: u32) -> u32 {
        self.of_row.as_ref().map_or(row, |of_row| of_row[row as usize])
    }
}

/// Who holds a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    Nobody,
    One(u32),
    Several,
}

impl Holder {
    fn add(&mut self, person: u32) {
        *self = match *self {
            Holder::Nobody => Holder::One(person),
            Holder::One(one) if one == person => Holder::One(one),
            Holder::One(_) | Holder::Several => Holder::Several,
        };
    }
}

/// Quasi columns in which the release shows whole values that belong to one person.
fn identifiers_shown(table: &Table, released: &ReleasedTable, persons: &Persons) -> Vec<BlatantRisk> {
    let risk = |released: &ReleasedColumn| {
        let column = &table.columns[released.source];
        let Cells::Recoded { labels, ids } = &released.cells else { return None };
        if column.role != Role::Quasi {
            return None;
        }
        let holders = holders(column, persons);
        let mut is_used = vec![false; labels.len()];
        ids.iter().filter(|&&id| id != NULL).for_each(|&id| is_used[id as usize] = true);
        let shown = labels.iter().zip(&is_used).filter(|&(_, &is_used)| is_used).map(|(label, _)| label);
        let is_of_one: Vec<bool> = holders.iter().map(|holder| matches!(holder, Holder::One(_))).collect();
        identifier_shown(column, shown, &is_of_one, is_nearly_unique(&holders, persons.n))
    };
    released.columns.iter().filter_map(risk).collect()
}

/// The risk of a quasi column that shows these labels. `is_of_one` tells of each text whether it belongs to one person.
fn identifier_shown<'t>(
    column: &Column,
    shown: impl Iterator<Item = &'t str>,
    is_of_one: &[bool],
    is_nearly_unique: bool,
) -> Option<BlatantRisk> {
    let kind = IdentifierKind::of(&column.texts);
    if kind.is_none() && !is_nearly_unique {
        return None;
    }
    let known: HashMap<&str, u32> = column.texts.iter().zip(0..).collect();
    let mut is_shown = vec![false; column.texts.len()];
    for label in shown {
        // The bounds of a range are values, too. A bound of ordinary numbers tells little, but an identifier tells all.
        let ends = label.strip_prefix('[').and_then(|label| label.strip_suffix([']', ')']));
        let ends = ends.filter(|_| kind.is_some()).into_iter().flat_map(|ends| ends.split([',', ';']));
        for id in std::iter::once(label).chain(ends).filter_map(|value| known.get(value)) {
            is_shown[*id as usize] |= kind.is_some() || is_of_one[*id as usize];
        }
    }
    let n_shown = is_shown.into_iter().filter(|&is_shown| is_shown).count() as u64;
    let (column, kind) = (column.name.clone(), kind.map(|kind| kind.name));
    (n_shown > 0).then_some(BlatantRisk::IdentifierShown { column, n_shown, kind })
}

fn holders(column: &Column, persons: &Persons) -> Vec<Holder> {
    let mut holders = vec![Holder::Nobody; column.texts.len()];
    for (&id, row) in column.ids.iter().zip(0..) {
        if id != NULL {
            holders[id as usize].add(persons.of_row(row));
        }
    }
    holders
}

fn is_nearly_unique(holders: &[Holder], n_persons: usize) -> bool {
    let mut known: Vec<u32> = holders
        .iter()
        .filter_map(|holder| match holder {
            Holder::One(person) => Some(*person),
            Holder::Nobody | Holder::Several => None,
        })
        .collect();
    known.sort_unstable();
    known.dedup();
    known.len() as f64 >= NEARLY_UNIQUE * n_persons as f64
}

/// Plain columns that make most persons unique in the release.
fn told_apart_by_plain(table: &Table, released: &ReleasedTable, persons: &Persons) -> Option<BlatantRisk> {
    let columns = plain_columns(table, released).map(|column| column.name.clone()).collect();
    unique_by_plain(table, released, persons).risk(columns, persons.n as u64)
}

/// The plain columns that a release shows. Pseudonyms tell everybody apart, but nothing about anybody.
fn plain_columns<'t>(table: &'t Table, released: &'t ReleasedTable) -> impl Iterator<Item = &'t Column> {
    let columns = released.columns.iter().map(|column| &table.columns[column.source]);
    columns.filter(|column| column.role == Role::Plain && find_non_pseudonyms(column).is_some())
}

/// How many persons are unique in a release.
#[derive(Clone, Copy, Debug, Default)]
struct Unique {
    by_quasi: u64,
    by_quasi_and_plain: u64,
}

impl Unique {
    /// The risk that these plain columns make most of so many persons unique.
    fn risk(self, columns: Vec<String>, n_persons: u64) -> Option<BlatantRisk> {
        let by_plain = self.by_quasi_and_plain.saturating_sub(self.by_quasi);
        let are_many = !columns.is_empty() && by_plain as f64 >= MANY_UNIQUE * n_persons as f64;
        let n_unique = self.by_quasi_and_plain;
        are_many.then_some(BlatantRisk::PlainTellsApart { columns, n_unique, n_persons })
    }
}

/// Counts persons who are unique in a release.
fn unique_by_plain(table: &Table, released: &ReleasedTable, persons: &Persons) -> Unique {
    let quasi: Vec<&[u32]> = released
        .columns
        .iter()
        .filter_map(|column| match &column.cells {
            Cells::Recoded { ids, .. } => Some(ids.as_slice()),
            Cells::Copied | Cells::Surrogate { .. } => None,
        })
        .collect();
    let plain: Vec<&Column> = plain_columns(table, released).collect();
    if plain.is_empty() {
        return Unique::default();
    }
    let hash_of_cells = |place: usize, with_plain: bool| {
        let row = released.rows[place] as usize;
        let copied = plain.iter().filter(|_| with_plain).map(|column| column.ids[row]);
        quasi.iter().map(|ids| ids[place]).chain(copied).fold(0xcbf2_9ce4_8422_2325_u64, |hash, id| {
            let mixed = (hash ^ u64::from(id)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed ^ (mixed >> 29)
        })
    };
    let n_unique = |with_plain: bool| {
        let mut hashes: Vec<(u64, u32)> = (0..released.rows.len())
            .map(|place| (hash_of_cells(place, with_plain), persons.of_row(released.rows[place])))
            .collect();
        hashes.sort_unstable();
        hashes.dedup();
        let alone = hashes.chunk_by(|a, b| a.0 == b.0).filter(|same| same.len() == 1).map(|same| same[0].1);
        let mut alone: Vec<u32> = alone.collect();
        alone.sort_unstable();
        alone.dedup();
        alone.len() as u64
    };
    Unique { by_quasi: n_unique(false), by_quasi_and_plain: n_unique(true) }
}

/// Whether the requirements on a column count its distinct values, but do not limit the shares of these.
fn only_counts_values(column: &Column, requirements: &[Requirement]) -> bool {
    let (mut is_counted, mut is_compared) = (false, false);
    for requirement in requirements {
        match requirement {
            Requirement::DistinctL { column: of, l } => is_counted |= *of == column.name && *l > 1,
            Requirement::EntropyL { column: of, .. } | Requirement::RecursiveCL { column: of, .. } => {
                is_counted |= *of == column.name;
            }
            Requirement::TCloseness { column: of, .. }
            | Requirement::Alpha { column: of, .. }
            | Requirement::Beta { column: of, .. }
            | Requirement::EnhancedBeta { column: of, .. } => is_compared |= *of == column.name,
            Requirement::K(_) | Requirement::PersonK { .. } => {}
        }
    }
    is_counted && !is_compared
}

/// The risk of a sensitive column whose texts are held by so many rows each.
fn diversity_risk(column: &Column, counts: &[u64], n_rows: u64) -> Option<BlatantRisk> {
    let n_values = counts.iter().filter(|&&count| count > 0).count();
    let largest = counts.iter().copied().max().unwrap_or(0);
    let share = |n: f64| n / n_rows as f64;
    let is_number = |text: &str| text.replace(',', ".").parse::<f64>().is_ok();
    let limit = if column.texts.iter().all(is_number) { CONTINUOUS } else { NEVER_REPEATED };
    let name = column.name.clone();
    if share(n_values as f64) >= limit {
        return Some(BlatantRisk::DiversityOfContinuous { column: name, n_values: n_values as u64, n_rows });
    }
    (share(largest as f64) >= NEARLY_EVERYWHERE).then_some(BlatantRisk::DiversityOfOneValue {
        column: name,
        n_rows_with_it: largest,
        n_rows,
    })
}
