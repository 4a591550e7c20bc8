//! [`Mixed`]: numbers of rows that follow from all private cells together, and look like chance.
//!
//! A rule must say which of two alike rows is left out. The order of the input must not decide, because others may know
//! it; nor the values, because the choice would tell something of them; nor the seed, which is public unless somebody
//! sets it. So a hash of all cells of all tables decides. Without all of these cells, those of the rows left out
//! included, nobody can tell which choice follows from which values.
//!
//! # Guarantee
//! numbers depend neither on the order of rows nor on that of tables
//! # Limits
//! Somebody who knows all private cells but one can try the values of that one. Then the choice tells as much as any
//! other rule.
//! # Cost   each distinct text is hashed once, each cell mixed once

use kohort_model::{NULL, Table};
use rayon::prelude::*;

/// For each table and row, a hash of its cells, and one of all tables.
pub(super) struct Mixed {
    of_rows: Vec<Vec<u64>>,
    of_all: u64,
}

impl Mixed {
    pub(super) fn of(tables: &[Table]) -> Mixed {
        let of_rows: Vec<Vec<u64>> = tables.iter().map(hashes).collect();
        let of_table = |hashes: &Vec<u64>| hashes.iter().fold(0, |sum: u64, &hash| sum.wrapping_add(hash));
        let of_all = tables.iter().zip(&of_rows).map(|(table, hashes)| mix(hash(&table.name), of_table(hashes)));
        let of_all = of_all.fold(0, u64::wrapping_add);
        Mixed { of_rows, of_all }
    }

    /// The number of a row, given its table, and that of its person.
    pub(super) fn number(&self, table: usize, row: usize, person: (usize, usize)) -> u32 {
        let of_person = mix(self.of_all, self.of_rows[person.0][person.1]);
        (mix(of_person, self.of_rows[table][row]) >> 32) as u32
    }
}

fn hashes(table: &Table) -> Vec<u64> {
    let columns: Vec<(u64, Vec<u64>, &[u32])> = table
        .columns
        .iter()
        .map(|column| (hash(&column.name), column.texts.iter().map(hash).collect(), column.ids.as_slice()))
        .collect();
    let of_row = |row: usize| {
        // Columns add up, so that their order does not matter either.
        let cells = columns.iter().map(|(name, texts, ids)| match ids[row] {
            NULL => *name,
            id => mix(*name, texts[id as usize]),
        });
        cells.fold(0, u64::wrapping_add)
    };
    (0..table.n_rows).into_par_iter().map(of_row).collect()
}

/// FNV-1a.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Splitmix64's last steps.
fn mix(one: u64, other: u64) -> u64 {
    let mut mixed = one.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(other);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use kohort_model::{Column, Role};

    use super::*;

    fn table(name: &str, rows: &[&str]) -> Table {
        let columns = vec![Column::from_cells("illness", Role::Sensitive, rows.iter().map(|&row| Some(row)))];
        Table { name: name.to_owned(), columns, n_rows: rows.len(), person: None }
    }

    #[test]
    fn the_order_of_rows_and_tables_changes_no_number() {
        let (people, visits) = (table("people", &["a", "b"]), table("visits", &["flu", "gout", "flu"]));
        let mixed = Mixed::of(&[people.clone(), visits]);
        let other = Mixed::of(&[table("visits", &["gout", "flu", "flu"]), people]);
        assert_eq!(mixed.number(1, 1, (0, 0)), other.number(0, 0, (1, 0)));
        assert_eq!(mixed.number(1, 0, (0, 1)), mixed.number(1, 2, (0, 1)));
    }

    #[test]
    fn any_other_cell_changes_every_number() {
        let numbers = |last: &str| {
            let mixed = Mixed::of(&[table("people", &["a", "b"]), table("visits", &["flu", "gout", last])]);
            [0, 1].map(|row| mixed.number(1, row, (0, 0)))
        };
        let (one, other) = (numbers("flu"), numbers("cold"));
        assert!(one[0] != other[0] && one[1] != other[1]);
    }
}
