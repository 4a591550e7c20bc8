//! From dictionary columns to codes: each quasi column gets a [`Domain`], each row one code per column.

pub(crate) mod bounds;
mod costs;
mod domain;
mod pack;
mod rows;
mod tree;
mod widths;

pub use domain::{Domain, ForeignValues};
pub use pack::{Layout, Packed};
pub use rows::Rows;
pub use tree::{Tree, WithNull};
pub(crate) use widths::Widths;

use kohort_model::{NULL, Spec, Table};
use rayon::prelude::*;

use crate::cells::Whole;
use costs::Costs;

/// The quasi columns of a table, encoded.
#[derive(Debug)]
pub struct Encoded<'t> {
    table: &'t Table,
    /// Positions of the quasi columns in the table.
    pub columns: Vec<usize>,
    /// Their domains.
    pub domains: Vec<Domain>,
    /// For each quasi column, the code of each text of its dictionary.
    codes: Vec<Vec<u32>>,
    /// The table that this one is a part of.
    whole: Option<Whole<'t>>,
}

impl<'t> Encoded<'t> {
    /// Encodes the given columns.
    ///
    /// # Errors
    /// If a text is not of its column's type or not in its hierarchy.
    pub fn new(table: &'t Table, columns: &[usize]) -> Result<Encoded<'t>, ForeignValues> {
        let encoded: Result<Vec<_>, _> = columns.par_iter().map(|&column| Domain::of(&table.columns[column])).collect();
        let (domains, codes) = encoded?.into_iter().unzip();
        Ok(Encoded { table, columns: columns.to_vec(), domains, codes, whole: None })
    }

    /// The quasi columns of some rows of a whole table, with the domains and codes of the whole.
    ///
    /// # Errors
    /// If a text is not of its column's type or not in its hierarchy.
    pub(crate) fn of_part(part: &'t Table, whole: Whole<'t>, columns: &[usize]) -> Result<Encoded<'t>, ForeignValues> {
        Ok(Encoded { table: part, whole: Some(whole), ..Encoded::new(whole.table, columns)? })
    }

    /// The same columns, in which partitioners minimize the loss that the spec asks for.
    pub(crate) fn minimizing(mut self, spec: &Spec) -> Encoded<'t> {
        if spec.has_objective() {
            let costs = costs::asked(&self, self.table, spec);
            self.domains =
                self.domains.into_iter().zip(costs).map(|(domain, costs)| domain.with_costs(costs)).collect();
        }
        self
    }

    /// The same columns, in which cells of numbers and dates cost their width over this share of the column's range, but no more
    /// than 1.
    pub(crate) fn relative_to(mut self, shares: &[f64]) -> Encoded<'t> {
        let relative = |(domain, &share): (Domain, &f64)| match domain.tree() {
            None if share > 0.0 && share < 1.0 => domain.with_costs(Costs::relative_to(share)),
            _ => domain,
        };
        self.domains = self.domains.into_iter().zip(shares).map(relative).collect();
        self
    }

    /// For each code of a column, the number of rows with a smaller code, and at the end the number of all rows.
    pub(crate) fn rows_before(&self, column: usize) -> Vec<u64> {
        let mut before = vec![0; self.domains[column].n_codes() as usize + 1];
        for &id in &self.table.columns[self.columns[column]].ids {
            before[self.code_of(column, id) as usize + 1] += 1;
        }
        for code in 1..before.len() {
            before[code] += before[code - 1];
        }
        before
    }

    /// The table that this one is a part of, if it is.
    pub(crate) fn whole(&self) -> Option<&Whole<'t>> {
        self.whole.as_ref()
    }

    /// The code of a text's id, by position among the quasi columns.
    #[inline]
    pub fn code_of(&self, column: usize, id: u32) -> u32 {
        match id {
            NULL => self.domains[column].n_codes() - 1,
            id => self.codes[column][id as usize],
        }
    }

    /// The code of a cell, by position among the quasi columns.
    #[inline]
    pub fn code(&self, column: usize, row: u32) -> u32 {
        self.code_of(column, self.table.columns[self.columns[column]].ids[row as usize])
    }

    /// Folds the rows that take part.
    pub fn fold(&self, kept: &[u32]) -> Rows {
        let n_codes: Vec<u32> = self.domains.iter().map(Domain::n_codes).collect();
        Rows::fold(&n_codes, kept, |column, row| self.code(column, row))
    }
}
