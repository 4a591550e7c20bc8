//! [`Holders`]: how many persons hold each sensitive value, where persons have several rows.
//!
//! # Guarantee
//! A person who holds a value in several rows, or in several spellings, counts once. All rows of a person are in one cell, so what
//! is counted cell by cell adds up to the counts of the whole table.

use kohort_model::{Distance, NULL, Role, Table};

use super::Whole;
use crate::requirement::{UnfitColumn, sensitive_codes};

/// Counts persons who hold sensitive values, cell by cell.
#[derive(Debug)]
pub struct Holders {
    columns: Vec<HeldColumn>,
}

#[derive(Debug)]
struct HeldColumn {
    position: usize,
    code_of_id: Vec<u32>,
    n_persons: Vec<u64>,
}

impl Holders {
    /// Nobody is counted yet.
    ///
    /// # Errors
    /// If a sensitive column has values that are not of its type.
    pub fn new(whole: &Table) -> Result<Holders, UnfitColumn> {
        let column = |position: usize| {
            let (code_of_id, n_codes) = sensitive_codes(&whole.columns[position], Distance::Equal)?;
            Ok(HeldColumn { position, code_of_id, n_persons: vec![0; n_codes] })
        };
        Ok(Holders { columns: whole.with_role(Role::Sensitive).into_iter().map(column).collect::<Result<_, _>>()? })
    }

    /// Counts the persons of a cell.
    pub fn add(&mut self, cell: &Table) {
        let Some(persons) = cell.person_column() else { return };
        for HeldColumn { position, code_of_id, n_persons } in &mut self.columns {
            let null = n_persons.len() as u32 - 1;
            let code = |id: u32| if id == NULL { null } else { code_of_id[id as usize] };
            let ids = &cell.columns[*position].ids;
            let mut pairs: Vec<(u32, u32)> = persons.ids.iter().copied().zip(ids.iter().map(|&id| code(id))).collect();
            pairs.sort_unstable();
            pairs.dedup();
            pairs.into_iter().for_each(|(_, code)| n_persons[code as usize] += 1);
        }
    }

    /// The counts of a whole table in which the persons who hold a sensitive value are counted instead of its rows. All of them
    /// stand at the first text that spells the value.
    pub fn counts(&self, whole: &Whole<'_>) -> Vec<Vec<u64>> {
        let mut counts = whole.counts.to_vec();
        for HeldColumn { position, code_of_id, n_persons } in &self.columns {
            let counts = &mut counts[*position];
            let n_nulls = counts.last().copied().unwrap_or(0);
            let mut left = n_persons.clone();
            for (count, &code) in counts.iter_mut().zip(code_of_id) {
                *count = std::mem::take(&mut left[code as usize]);
            }
            if let Some(nulls) = counts.last_mut() {
                *nulls = if n_nulls > 0 { left.last().copied().unwrap_or(0) } else { 0 };
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use kohort_model::{Column, ValueType};

    use super::*;

    #[test]
    fn a_person_counts_once_for_each_value() {
        let cells = [Some("1.5"), Some("1.50"), Some("2"), None, None, Some("1.50")];
        let dose = Column::from_cells("dose", Role::Sensitive, cells).typed(ValueType::Decimal);
        let id = Column::from_cells("id", Role::Key, ["a", "a", "a", "b", "b", "b"].map(Some));
        let table = Table { name: "t".to_owned(), columns: vec![id, dose], n_rows: 6, person: Some(0) };
        let mut holders = Holders::new(&table).unwrap();
        holders.add(&table);
        let of_rows = vec![vec![3, 3, 0], vec![1, 2, 1, 2]];
        let counts = holders.counts(&Whole { table: &table, counts: &of_rows });
        assert_eq!(counts, [vec![3, 3, 0], vec![2, 0, 1, 1]]);
    }
}
