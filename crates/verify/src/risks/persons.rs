//! Finds the column that names the person: in the rows of one person, most other columns hardly vary.
//!
//! The same is true of a postcode, which determines the town and the state. So two more things must hold: two of the
//! columns that hardly vary must be independent of each other, and together they must tell most of the groups apart.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use kohort_model::{Column, NULL, Table};

use super::formats::IdentifierKind;

/// A column with fewer groups than this is not considered.
const FEWEST_PERSONS: usize = 20;
/// A column whose groups have fewer rows on average is different in nearly every row.
const FEWEST_ROWS_EACH: f64 = 1.5;
/// Groups that are larger on average are wards, towns or years.
const MOST_ROWS_EACH: f64 = 1000.0;
/// The share of rows that may differ from the others of their group: typing errors, and persons who moved.
const SELDOM: f64 = 0.02;
/// The most frequent value of a column that varies has at most this share of its rows.
const VARIES: f64 = 0.95;
/// A column with at least this many distinct values per row varies within every group, so it is no evidence.
const DIFFERENT_EVERYWHERE: f64 = 0.9;
/// The share of groups that the columns which follow from a column must tell apart.
const TELLING: f64 = 0.5;

/// If check digits show that a column holds identifiers, it is enough if this share of the other columns follows from
/// it.
const FOLLOW_AN_IDENTIFIER: f64 = 0.3;

/// The share of columns that must follow from the column that names the person. A column follows from another if it
/// hardly varies within the groups of the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Followers(f64);

impl Followers {
    /// For a judgement that refuses a release.
    pub const MOST: Followers = Followers(0.6);
    /// For a suggestion that somebody will read.
    pub const MANY: Followers = Followers(0.4);
}

/// A column that names persons who have several rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PersonColumn {
    /// The position of the column in the table.
    pub position: usize,
    /// The number of the column's values.
    pub n_persons: usize,
}

/// Whether a column with so many distinct values and nulls can name persons with several rows.
pub(super) fn may_name_persons(n_distinct: u64, n_null: u64, n_rows: u64) -> bool {
    let rows_each = n_rows as f64 / n_distinct.max(1) as f64;
    n_distinct >= FEWEST_PERSONS as u64
        && n_null as f64 <= SELDOM * n_rows as f64
        && (FEWEST_ROWS_EACH..=MOST_ROWS_EACH).contains(&rows_each)
}

/// The column that names persons with several rows, if there is one. Every column is considered. Only columns for which
/// `looked_at` holds are expected to follow from it.
pub fn person_column(table: &Table, looked_at: impl Fn(&Column) -> bool, followers: Followers) -> Option<PersonColumn> {
    let columns = Columns::of(table, looked_at);
    let mut best: Option<(f64, usize, usize)> = None;
    for position in (0..table.columns.len()).filter(|&position| columns.may_name_persons(position)) {
        let Some(share) = columns.share_that_follows(position, followers) else { continue };
        let n_distinct = columns.counts[position].n_distinct;
        if best.is_none_or(|(least, n_persons, _)| (share, n_distinct) > (least, n_persons)) {
            best = Some((share, n_distinct, position));
        }
    }
    best.map(|(_, n_persons, position)| PersonColumn { position, n_persons })
}

/// Whether a column names persons with several rows. The table may have the rows of some persons only, but all rows of each.
pub(super) fn names_persons(
    table: &Table,
    position: usize,
    looked_at: impl Fn(&Column) -> bool,
    followers: Followers,
) -> bool {
    let columns = Columns::of(table, looked_at);
    columns.may_name_persons(position) && columns.share_that_follows(position, followers).is_some()
}

/// The columns of a table, counted.
struct Columns<'t> {
    table: &'t Table,
    counts: Vec<Counts>,
    /// Columns that are expected to follow from the one that names persons.
    others: Vec<usize>,
}

impl<'t> Columns<'t> {
    fn of(table: &'t Table, looked_at: impl Fn(&Column) -> bool) -> Self {
        let n_rows = table.n_rows as f64;
        let counts: Vec<Counts> = table.columns.iter().map(Counts::new).collect();
        let varies = |counts: &Counts| {
            counts.most_frequent as f64 <= VARIES * n_rows && (counts.n_distinct as f64) < DIFFERENT_EVERYWHERE * n_rows
        };
        let is_other = |&position: &usize| looked_at(&table.columns[position]) && varies(&counts[position]);
        let others = (0..table.columns.len()).filter(is_other).collect();
        Columns { table, counts, others }
    }

    fn may_name_persons(&self, position: usize) -> bool {
        let Counts { n_distinct, n_null, .. } = self.counts[position];
        may_name_persons(n_distinct as u64, n_null as u64, self.table.n_rows as u64)
    }

    /// The share of other columns that follow from a column; `None` if it names no persons.
    fn share_that_follows(&self, position: usize, followers: Followers) -> Option<f64> {
        let column = &self.table.columns[position];
        let of: Vec<usize> = self.others.iter().copied().filter(|&other| other != position).collect();
        let follows_it = |&other: &usize| follows(&self.table.columns[other], column);
        let steady: Vec<usize> = of.iter().copied().filter(follows_it).collect();
        let share = steady.len() as f64 / of.len().max(1) as f64;
        let least = if IdentifierKind::of(&column.texts).is_some() { FOLLOW_AN_IDENTIFIER } else { followers.0 };
        let names =
            share >= least && has_independent_pair(self.table, &steady) && is_telling(self.table, column, &steady);
        names.then_some(share)
    }
}

struct Counts {
    n_distinct: usize,
    n_null: usize,
    most_frequent: usize,
}

impl Counts {
    fn new(column: &Column) -> Self {
        let mut counts = vec![0usize; column.texts.len()];
        let mut n_null = 0;
        for &id in &column.ids {
            match id {
                NULL => n_null += 1,
                id => counts[id as usize] += 1,
            }
        }
        let n_distinct = counts.iter().filter(|&&count| count > 0).count();
        Counts { n_distinct, n_null, most_frequent: counts.into_iter().max().unwrap_or(0).max(n_null) }
    }
}

/// Whether a column hardly varies within the groups of another.
fn follows(column: &Column, from: &Column) -> bool {
    let most = (SELDOM * column.ids.len() as f64) as usize;
    let mut first: Vec<Option<u32>> = vec![None; from.texts.len()];
    let mut n_other = 0;
    for (&id, &group) in column.ids.iter().zip(&from.ids) {
        if group == NULL {
            continue;
        }
        if *first[group as usize].get_or_insert(id) != id {
            n_other += 1;
            if n_other > most {
                return false;
            }
        }
    }
    true
}

fn has_independent_pair(table: &Table, columns: &[usize]) -> bool {
    let column = |position: usize| &table.columns[position];
    let are_independent = |a: usize, b: usize| !follows(column(a), column(b)) && !follows(column(b), column(a));
    columns.iter().enumerate().any(|(place, &a)| columns[..place].iter().any(|&b| are_independent(a, b)))
}

/// Whether the columns together tell most groups of another column apart.
fn is_telling(table: &Table, groups: &Column, columns: &[usize]) -> bool {
    let hasher = RandomState::new();
    let mut seen = vec![false; groups.texts.len()];
    let mut hashes = HashSet::new();
    let mut n_groups = 0usize;
    for (row, &group) in groups.ids.iter().enumerate() {
        if group == NULL || std::mem::replace(&mut seen[group as usize], true) {
            continue;
        }
        n_groups += 1;
        let cells: Vec<u32> = columns.iter().map(|&column| table.columns[column].ids[row]).collect();
        hashes.insert(hasher.hash_one(cells));
    }
    hashes.len() as f64 >= TELLING * n_groups as f64
}

#[cfg(test)]
mod tests {
    use kohort_model::Role;

    use super::*;

    fn table(columns: &[(&str, Vec<String>)]) -> Table {
        let column = |(name, cells): &(&str, Vec<String>)| {
            Column::from_cells(name, Role::Quasi, cells.iter().map(|cell| Some(cell.as_str())))
        };
        let n_rows = columns[0].1.len();
        Table { name: "t".to_owned(), columns: columns.iter().map(column).collect(), n_rows, person: None }
    }

    fn cells(n_rows: usize, cell: impl Fn(usize) -> usize) -> Vec<String> {
        (0..n_rows).map(|row| cell(row).to_string()).collect()
    }

    #[test]
    fn persons_of_several_rows_are_found_without_a_name() {
        let table = table(&[
            ("day", cells(600, |row| row * 37 % 200)),
            ("x", cells(600, |row| row / 6)),
            ("born", cells(600, |row| row / 6 * 7919 % 20_000)),
            ("sex", cells(600, |row| row / 6 % 2)),
            ("place", cells(600, |row| row / 6 * 31 % 17)),
        ]);
        let found = person_column(&table, |_| true, Followers::MOST);
        assert_eq!(found, Some(PersonColumn { position: 1, n_persons: 100 }));
    }

    #[test]
    fn a_place_and_what_follows_from_it_is_no_person() {
        let table = table(&[
            ("postcode", cells(2000, |row| row * 7 % 400)),
            ("town", cells(2000, |row| row * 7 % 400 / 2)),
            ("state", cells(2000, |row| row * 7 % 400 / 40)),
            ("country", cells(2000, |row| row * 7 % 400 / 200)),
        ]);
        assert_eq!(person_column(&table, |_| true, Followers::MANY), None);
    }

    #[test]
    fn a_household_is_no_person() {
        let table = table(&[
            ("household", cells(2000, |row| row / 4)),
            ("place", cells(2000, |row| row / 4 * 31 % 97)),
            ("income", cells(2000, |row| row / 4 * 7919 % 1000)),
            ("age", cells(2000, |row| row * 7919 % 83)),
            ("sex", cells(2000, |row| row * 31 % 7 % 2)),
        ]);
        assert_eq!(person_column(&table, |_| true, Followers::MOST), None);
    }
}
