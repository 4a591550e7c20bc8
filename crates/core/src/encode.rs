//! From dictionary columns to codes: each quasi column gets a [`Domain`], each row one code per column.

mod domain;
mod pack;
mod rows;
mod tree;

pub use domain::{Domain, ForeignValues};
pub use pack::{Layout, Packed};
pub use rows::Rows;
pub use tree::{Tree, WithNull};

use kohort_model::{NULL, Table};
use rayon::prelude::*;

/// The quasi columns of a table, encoded.
#[derive(Debug)]
pub struct Encoded<'t> {
    table: &'t Table,
    /// Positions of the quasi columns in the table.
    pub columns: Vec<usize>,
    /// Their domains.
    pub domains: Vec<Domain>,
    /// Per quasi column the code of each text of its dictionary.
    codes: Vec<Vec<u32>>,
}

impl<'t> Encoded<'t> {
    /// Encodes the given columns.
    ///
    /// # Errors
    /// Where a text is not of its column's type or not in its hierarchy.
    pub fn new(table: &'t Table, columns: &[usize]) -> Result<Encoded<'t>, ForeignValues> {
        let encoded: Result<Vec<_>, _> = columns.par_iter().map(|&column| Domain::of(&table.columns[column])).collect();
        let (domains, codes) = encoded?.into_iter().unzip();
        Ok(Encoded { table, columns: columns.to_vec(), domains, codes })
    }

    /// The code of a cell, by position among the quasi columns.
    #[inline]
    pub fn code(&self, column: usize, row: u32) -> u32 {
        match self.table.columns[self.columns[column]].ids[row as usize] {
            NULL => self.domains[column].n_codes() - 1,
            id => self.codes[column][id as usize],
        }
    }

    /// Folds the rows that take part.
    pub fn fold(&self, kept: &[u32]) -> Rows {
        let n_codes: Vec<u32> = self.domains.iter().map(Domain::n_codes).collect();
        Rows::fold(&n_codes, kept, |column, row| self.code(column, row))
    }
}
