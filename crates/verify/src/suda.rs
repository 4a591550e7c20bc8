//! [`suda`]: which few columns are enough to single a row out.
//!
//! A set of columns is a *minimal sample unique* of a row if no other row has the same cells in all of them, and if that is true of
//! no smaller part of the set. A row that is unique in one or two columns is more likely to be found than one that is unique only in
//! all columns together.
//!
//! # Papers
//! [EMF02] defines minimal sample uniques and their scores, and [EMM+05] the score that is used here: among `a` columns, a minimal
//! sample unique of `s` columns scores `(a - s) (a - s - 1) ... (a - m)`, where `m` is the largest size that is searched. The score of
//! a row is the sum over its minimal sample uniques.
//! # Cost
//! One grouping of all rows per set of up to `m` columns. One bit per row is kept for each set of the last two sizes.

use std::collections::HashMap;

use kohort_model::{Column, Progress, Table};
use rayon::prelude::*;

use crate::count::cells::CellIds;
use crate::count::grouping::Classes;
use crate::structure::{check_table, no_rows};
use crate::{Violation, Violations};

/// The scores of rows and columns.
#[derive(Clone, Debug, PartialEq)]
pub struct SudaFindings {
    /// The largest size of a set of columns that was searched. It is below the number of columns, because larger sets score nothing.
    pub largest: usize,
    /// The score of each row: 0 if it has no minimal sample unique of up to this size.
    pub scores: Vec<f64>,
    /// The number of minimal sample uniques of 1, 2, ... columns.
    pub found: Vec<u64>,
    /// For each column in the order given, the share of the sum of all scores that comes from sets with this column.
    pub shares: Vec<f64>,
}

/// The largest number of sets of columns that are searched.
pub const MOST_SETS: usize = 50_000;

/// The number of sets of one to `largest` of so many columns.
pub fn n_sets_of_columns(n_columns: usize, largest: usize) -> usize {
    let (mut sets, mut all) = (1usize, 0usize);
    for size in 1..=largest.min(n_columns) {
        sets = sets.saturating_mul(n_columns + 1 - size) / size;
        all = all.saturating_add(sets);
    }
    all
}

/// Searches each row for minimal sample uniques of up to `largest` of the columns. Cells are compared as they are, and null equals
/// null. Each row counts as a person.
///
/// # Errors
/// If the table has no rows or can't be counted.
///
/// # Panics
/// If there are fewer than 2 or more than 64 columns, or if a position is beyond the table's columns.
pub fn suda(
    table: &Table,
    columns: &[usize],
    largest: usize,
    progress: &dyn Progress,
) -> Result<SudaFindings, Violations> {
    assert!((2..=64).contains(&columns.len()), "callers refuse other numbers of columns");
    let violations: Vec<Violation> = check_table(table).into_iter().chain(no_rows(table)).collect();
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    let n_columns = columns.len();
    let largest = largest.clamp(1, n_columns - 1);
    let cells: Vec<CellIds<'_>> = columns
        .iter()
        .map(|&position| &table.columns[position])
        .map(|column: &Column| CellIds::by_id(column.ids.as_slice(), column.texts.len()))
        .collect();
    let mut found =
        SudaFindings { largest, scores: vec![0.0; table.n_rows], found: Vec::new(), shares: vec![0.0; n_columns] };
    progress.begin("searching unique sets", n_sets_of_columns(n_columns, largest) as u64);
    let mut smaller: HashMap<u64, Vec<u64>> = HashMap::new();
    for size in 1..=largest {
        let score: f64 = (size..=largest).map(|taken| (n_columns - taken) as f64).product();
        let sets = sets_of(n_columns, size);
        let unique_in = |&set: &u64| {
            let of_set: Vec<&CellIds<'_>> = members(set).map(|column| &cells[column]).collect();
            let unique = unique_rows(&of_set, table.n_rows);
            progress.advance(1);
            unique
        };
        let unique: Vec<Vec<u64>> = sets.par_iter().map(unique_in).collect();
        if progress.is_cancelled() {
            return Ok(found);
        }
        let mut n_found = 0;
        for (set, unique) in sets.iter().zip(&unique) {
            let parts: Vec<&Vec<u64>> =
                members(*set).filter_map(|column| smaller.get(&(set & !(1 << column)))).collect();
            let mut n_of_set = 0u64;
            for (word, bits) in unique.iter().enumerate() {
                // Whoever is unique in a part of the set is unique in all of it, so only rows that are unique in no part count.
                let mut minimal = parts.iter().fold(*bits, |left, part| left & !part[word]);
                n_of_set += u64::from(minimal.count_ones());
                while minimal != 0 {
                    found.scores[word * 64 + minimal.trailing_zeros() as usize] += score;
                    minimal &= minimal - 1;
                }
            }
            members(*set).for_each(|column| found.shares[column] += n_of_set as f64 * score);
            n_found += n_of_set;
        }
        found.found.push(n_found);
        smaller = sets.into_iter().zip(unique).collect();
    }
    let total: f64 = found.scores.iter().sum();
    if total > 0.0 {
        found.shares.iter_mut().for_each(|share| *share /= total);
    }
    Ok(found)
}

/// All sets of so many columns, as bits, ascending.
fn sets_of(n_columns: usize, size: usize) -> Vec<u64> {
    let mut sets: Vec<u64> = vec![0];
    for _ in 0..size {
        let with_higher = |set: &u64| {
            let (set, above) = (*set, 64 - set.leading_zeros() as usize);
            (above..n_columns).map(move |column| set | 1 << column)
        };
        sets = sets.iter().flat_map(with_higher).collect();
    }
    sets
}

fn members(set: u64) -> impl Iterator<Item = usize> {
    (0..64).filter(move |column| set >> column & 1 == 1)
}

/// One bit per row: whether no other row has the same cells.
fn unique_rows(cells: &[&CellIds<'_>], n_rows: usize) -> Vec<u64> {
    let classes = Classes::group(cells, n_rows);
    let mut unique = vec![0u64; n_rows.div_ceil(64)];
    for class in 0..classes.len() {
        if let [row] = classes.rows(class) {
            unique[*row as usize / 64] |= 1 << (row % 64);
        }
    }
    unique
}

#[cfg(test)]
mod tests {
    use kohort_model::{Role, Silent};
    use proptest::prelude::*;

    use super::*;

    fn table(rows: &[Vec<&str>]) -> Table {
        let column = |position: usize| {
            let cells = rows.iter().map(|row| Some(row[position]).filter(|cell| !cell.is_empty()));
            Column::from_cells(&format!("c{position}"), Role::Quasi, cells)
        };
        Table {
            name: "t".to_owned(),
            columns: (0..rows[0].len()).map(column).collect(),
            n_rows: rows.len(),
            person: None,
        }
    }

    #[test]
    fn a_published_example_has_the_published_scores() {
        // From the guide of the World Bank's sdcPractice, "Calculating SUDA scores".
        let rows = [
            "urban,female,secondary incomplete,employed",
            "urban,female,secondary incomplete,employed",
            "urban,female,primary incomplete,non-lf",
            "urban,male,secondary complete,employed",
            "rural,female,secondary complete,unemployed",
            "urban,male,secondary complete,employed",
            "urban,female,primary complete,non-lf",
            "urban,male,post-secondary,unemployed",
            "urban,female,secondary incomplete,non-lf",
            "urban,female,secondary incomplete,non-lf",
        ];
        let rows: Vec<Vec<&str>> = rows.iter().map(|row| row.split(',').collect()).collect();
        let found = suda(&table(&rows), &[0, 1, 2, 3], 3, &Silent).unwrap();
        assert_eq!(found.scores, [0.0, 0.0, 6.0, 0.0, 12.0, 0.0, 6.0, 10.0, 0.0, 0.0]);
        assert_eq!(found.found, [4, 5, 0]);
        // Of 34 in all: rural 6, urban and unemployed 2.
        assert!((found.shares[0] - 8.0 / 34.0).abs() < 1e-12, "{:?}", found.shares);
    }

    #[test]
    fn sets_are_counted() {
        assert_eq!((n_sets_of_columns(20, 3), n_sets_of_columns(4, 9)), (20 + 190 + 1140, 15));
        assert_eq!(sets_of(4, 2), [0b11, 0b101, 0b1001, 0b110, 0b1010, 0b1100]);
    }

    proptest! {
        #[test]
        fn scores_are_those_of_a_search_through_all_pairs_of_rows(
            cells in prop::collection::vec(prop::collection::vec(0u8..4, 5), 1..90),
            largest in 1usize..6,
        ) {
            const TEXTS: [&str; 4] = ["", "a", "b", "c"];
            let rows: Vec<Vec<&str>> =
                cells.iter().map(|row| row.iter().map(|cell| TEXTS[*cell as usize]).collect()).collect();
            let found = suda(&table(&rows), &[0, 1, 2, 3, 4], largest, &Silent).unwrap();
            let is_unique = |row: usize, set: u32| {
                let equals = |other: usize| (0..5).all(|c| set >> c & 1 == 0 || cells[row][c] == cells[other][c]);
                (0..cells.len()).all(|other| other == row || !equals(other))
            };
            for row in 0..cells.len() {
                let mut score = 0.0;
                for set in 1u32..32 {
                    let is_minimal = (0..5).all(|c| set >> c & 1 == 0 || !is_unique(row, set & !(1 << c)));
                    let size = set.count_ones();
                    if size as usize <= largest.min(4) && is_unique(row, set) && is_minimal {
                        score += (size..=largest.min(4) as u32).map(|taken| f64::from(5 - taken)).product::<f64>();
                    }
                }
                // A single row is unique in no columns at all, so nothing smaller is left to be minimal.
                if cells.len() > 1 {
                    prop_assert_eq!(found.scores[row], score, "row {}", row);
                }
            }
        }
    }
}
