//! [`Risks`]: where the risk of a table comes from: rows, columns, sets of few columns, and the population around it.
//!
//! # Guarantee
//! Nothing here holds a cell. Rows are named by their numbers, so the figures are for those who have the table.

use std::path::Path;

use kohort_io::{Batches, CheckOptions, read_batches_for_check, read_for_check};
use kohort_model::spec::CsvSpec;
use kohort_model::{Progress, Requirement, Table};
use kohort_verify::{
    Findings, MOST_SETS, PopulationRisk, SudaFindings, class_size_of_rows, measure, n_sets_of_columns, suda,
};

use super::{Check, Checked, positions};
use crate::error::{Error, violation_reports};
use crate::make::notation_of;

/// What is searched for beside the classes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RiskOptions {
    /// Minimal sample uniques of up to this many columns.
    pub suda: Option<usize>,
    /// The number of persons in the population that the table is a sample of.
    pub population: Option<u64>,
    /// How the file is read if it is CSV.
    pub csv: CsvSpec,
}

/// Where the risk of a table comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Risks {
    /// For each row, the persons who look the same.
    pub class_sizes: Vec<u32>,
    /// The quasi columns, the one that adds the most risk first.
    pub columns: Vec<ColumnRisk>,
    /// Scores by minimal sample uniques, if they were asked for. Columns are in the order of [`Check::quasi`].
    pub suda: Option<SudaFindings>,
    /// The risk in the population, if its size was given.
    pub population: Option<PopulationRisk>,
}

/// How much risk a column adds: what is left without it.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnRisk {
    /// The name of the column.
    pub column: String,
    /// By how much the average risk shrinks without the column.
    pub adds: f64,
    /// Persons in the smallest class without it.
    pub k_without: u64,
    /// Persons who are alone in a class without it.
    pub unique_without: u64,
    /// The average risk without it.
    pub average_without: f64,
    /// The share of all scores by minimal sample uniques that comes from sets with this column.
    pub suda_share: Option<f64>,
}

impl Check {
    /// Counts a file as [`Check::file`] does, and tells where the risk comes from.
    ///
    /// # Errors
    /// As [`Check::file`], and [`Error::Input`] for options that do not fit the table.
    pub fn risks_of_file(
        &self,
        path: impl AsRef<Path>,
        options: &RiskOptions,
        progress: &dyn Progress,
    ) -> Result<(Checked, Risks), Error> {
        let path = path.as_ref();
        self.refuse_options(options)?;
        let read_as = CheckOptions { csv: options.csv.clone(), ..CheckOptions::default() };
        self.risks_of(path, read_for_check(path, &read_as, progress)?, options, progress)
    }

    /// Does the same for rows in memory.
    ///
    /// # Errors
    /// As [`Check::risks_of_file`].
    pub fn risks_of_batches(
        &self,
        batches: &Batches,
        options: &RiskOptions,
        progress: &dyn Progress,
    ) -> Result<(Checked, Risks), Error> {
        self.refuse_options(options)?;
        let name = "table";
        self.risks_of(Path::new(name), read_batches_for_check(name, batches, progress)?, options, progress)
    }

    fn risks_of(
        &self,
        place: &Path,
        mut table: Table,
        options: &RiskOptions,
        progress: &dyn Progress,
    ) -> Result<(Checked, Risks), Error> {
        let quasi = positions(place, &table, &self.quasi)?;
        let checked = self.count_in(place, &mut table, &notation_of(&options.csv))?;
        let risks = self.risks(&table, &quasi, (&checked.findings, options), progress)?;
        Ok((checked, risks))
    }

    fn refuse_options(&self, options: &RiskOptions) -> Result<(), Error> {
        let Some(largest) = options.suda else { return Ok(()) };
        let n_columns = self.quasi.len();
        let (message, hint) = if let Some(person) = &self.person {
            let message =
                format!("rows can't be scored by unique sets of columns if persons, named by '{person}', have several");
            (message, "check a table with one row per person")
        } else if !(2..=64).contains(&n_columns) {
            (
                format!("unique sets of columns can't be searched in {n_columns} quasi columns"),
                "name 2 to 64 quasi columns",
            )
        } else if largest == 0 {
            ("unique sets of 0 columns can't be searched".to_owned(), "search sets of up to 3 columns")
        } else if n_sets_of_columns(n_columns, largest) > MOST_SETS {
            let n_sets = n_sets_of_columns(n_columns, largest);
            let message = format!(
                "there are {n_sets} sets of up to {largest} of {n_columns} columns, which are too many to search"
            );
            (message, "search smaller sets, or name fewer quasi columns")
        } else {
            return Ok(());
        };
        Err(Error::input(message, hint))
    }

    fn risks(
        &self,
        table: &Table,
        quasi: &[usize],
        (findings, options): (&Findings, &RiskOptions),
        progress: &dyn Progress,
    ) -> Result<Risks, Error> {
        let refused = |violations: kohort_verify::Violations| Error::Input(violation_reports(&violations.0));
        let scores = options.suda.map(|largest| suda(table, quasi, largest, progress)).transpose().map_err(refused)?;
        progress.begin("leaving out columns", quasi.len() as u64);
        let mut columns = Vec::with_capacity(quasi.len());
        for (position, name) in self.quasi.iter().enumerate() {
            if progress.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let others = quasi.iter().enumerate().filter(|(other, _)| *other != position).map(|(_, column)| *column);
            let without = measure(table, &others.collect::<Vec<_>>(), &[], &[] as &[Requirement]).map_err(refused)?;
            columns.push(ColumnRisk {
                column: name.clone(),
                // Rounding must not make a column lower the risk.
                adds: (findings.average_risk - without.average_risk).max(0.0),
                k_without: without.k,
                unique_without: without.unique_persons,
                average_without: without.average_risk,
                suda_share: scores.as_ref().map(|scores| scores.shares[position]),
            });
            progress.advance(1);
        }
        columns.sort_by(|one, other| other.adds.total_cmp(&one.adds));
        let population = options.population.map(|n_persons| {
            PopulationRisk::of(&findings.class_sizes, n_persons).ok_or_else(|| {
                let message =
                    format!("a population of {n_persons} persons is smaller than the table that is a sample of it");
                Error::input(message, "give the number of all persons who could be in the table")
            })
        });
        let class_sizes = class_size_of_rows(table, quasi).map_err(refused)?;
        Ok(Risks { class_sizes, columns, suda: scores, population: population.transpose()? })
    }
}
