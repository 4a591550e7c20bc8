//! [`Job::plan_in_cells`]: how a table is cut into cells, by its first reading.

use kohort_core::cells::{CellPlan, Whole};
use kohort_core::encode::Encoded;
use kohort_io::{LoadedTable, RowsAgain, StreamedTable};
use kohort_model::{Column, Progress, Requirement, Role, Table};

use super::passes::n_passes;
use super::persons::PersonCells;
use crate::error::Error;
use crate::job::Job;
use crate::memory::{Memory, Together};

/// How a table would be cut into cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedCells {
    /// The rows of the table.
    pub n_rows: u64,
    /// The number of cells. Cells in which the requirement can't be reached are joined later.
    pub n_cells: u64,
    /// The rows that the largest cell is expected to have.
    pub rows_of_largest_cell: u64,
    /// What the work may take on the disk at most, the release included.
    pub n_bytes_on_disk: u64,
    /// How often all rows are read: the table to be counted and to be sent to its cells, once more in between if it names persons,
    /// the cells, and the release to be merged, to be verified in two readings, and to be counted for its documents.
    pub n_passes: u64,
}

/// A table that was read, and how it is cut.
pub(super) struct Planned {
    pub(super) loaded: LoadedTable,
    pub(super) counts: Vec<Vec<u64>>,
    pub(super) n_rows: u64,
    pub(super) rows: RowsAgain,
    pub(super) plan: CellPlan,
    /// Where persons go, if the table names them.
    pub(super) persons: Option<PersonCells>,
    largest_cell: u64,
}

impl Job {
    /// How the table would be cut into cells. The table is read once, or twice if it names persons, and nothing is written.
    ///
    /// # Errors
    /// As [`Job::write_in_cells`], as far as they show in the first reading.
    pub fn plan_in_cells(&self, memory: Memory, progress: &dyn Progress) -> Result<PlannedCells, Error> {
        self.refuse_in_cells()?;
        let requirements = self.spec.requirements(&self.spec.tables[0]);
        let planned = self.planned(&requirements, memory, progress);
        if progress.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let Planned { loaded, counts, n_rows, plan, persons, largest_cell, .. } = planned?;
        Ok(PlannedCells {
            n_rows,
            n_cells: plan.n_cells() as u64,
            rows_of_largest_cell: largest_cell,
            n_bytes_on_disk: bytes_on_disk(&loaded.table, &counts, n_rows),
            n_passes: n_passes(persons.is_some()),
        })
    }

    /// Reads the table, and cuts it into cells.
    pub(super) fn planned(
        &self,
        requirements: &[Requirement],
        memory: Memory,
        progress: &dyn Progress,
    ) -> Result<Planned, Error> {
        let (spec, table_spec) = (&self.spec, &self.spec.tables[0]);
        let streamed = StreamedTable::count(self.sources(), spec, table_spec, memory.of_texts(), progress)?;
        let StreamedTable { loaded, counts, n_rows, sample, mut rows } = streamed;
        let loaded = loaded.released_as(self.form())?;
        let n_columns = loaded.table.columns.len();
        let encoded = Whole { table: &loaded.table, counts: &counts }.encoded()?;
        let sample = codes_of(&encoded, sample);
        let plan = CellPlan::from_sample(&encoded.domains, &sample, n_rows, memory.planned_rows(n_columns));
        let mut largest_cell = plan.largest_cell(&sample, n_rows);
        let mut together = persons_together(&loaded.table, requirements, n_rows);
        if loaded.table.person.is_none() {
            together.push(Together { n_rows: largest_cell, why: "some equal persons" });
        }
        memory.check(&together, n_rows, n_columns)?;
        let mut persons = None;
        if let Some(person) = loaded.table.person {
            let file = (self.sources(), table_spec);
            let found = PersonCells::find(person, (&plan, &encoded), &mut rows, file, progress)?;
            found.check(memory, n_columns)?;
            largest_cell = found.largest_cell();
            persons = Some(found);
        }
        drop(encoded);
        Ok(Planned { loaded, counts, n_rows, rows, plan, persons, largest_cell })
    }
}

/// A sample as codes of the quasi columns.
fn codes_of(encoded: &Encoded<'_>, sample: Vec<(Vec<u32>, u64)>) -> Vec<(Vec<u32>, u64)> {
    let codes = |ids: Vec<u32>| {
        encoded.columns.iter().enumerate().map(|(column, &source)| encoded.code_of(column, ids[source])).collect()
    };
    sample.into_iter().map(|(ids, n)| (codes(ids), n)).collect()
}

/// Persons who must be in one cell because somebody asks for a class of so many.
fn persons_together(table: &Table, requirements: &[Requirement], n_rows_of_all: u64) -> Vec<Together> {
    // Persons have several rows, on average so many.
    let n_persons = table.person_column().map_or(n_rows_of_all, |column| column.texts.len() as u64);
    let rows_each = n_rows_of_all.div_ceil(n_persons.max(1));
    let own_k = requirements.iter().filter_map(Requirement::own_k_column).filter_map(|name| table.column(name));
    let largest_own_k = own_k.flat_map(|column| column.texts.iter().filter_map(|text| text.parse::<u64>().ok())).max();
    let k = requirements.iter().filter_map(Requirement::k).max().map(u64::from);
    let rows_of = |k: u64| k.saturating_mul(rows_each);
    let own_k = largest_own_k.map(|k| Together { n_rows: rows_of(k), why: "the largest own k" });
    own_k.into_iter().chain(k.map(|k| Together { n_rows: rows_of(k), why: "a class of k persons" })).collect()
}

/// What the work may take on the disk at most: rows of all cells and released rows first, then released rows and the file.
pub(super) fn bytes_on_disk(table: &Table, counts: &[Vec<u64>], n_rows: u64) -> u64 {
    let n_quasi = table.with_role(Role::Quasi).len() as u64;
    let is_copied = |role: Role| matches!(role, Role::Sensitive | Role::Plain);
    let n_copied = table.columns.iter().filter(|column| is_copied(column.role)).count() as u64;
    let (cells, released) = (4 * table.columns.len() as u64 * n_rows, 4 * (2 * n_quasi + n_copied) * n_rows);
    let texts = |(column, counts): (&Column, &Vec<u64>)| -> u64 {
        // A range shows two values, brackets, a comma and quotes; every cell is followed by a separator.
        let of_all: u64 = column.texts.iter().zip(counts).map(|(text, &count)| text.len() as u64 * count).sum();
        match column.role {
            Role::Quasi => 2 * of_all + 6 * n_rows,
            role if is_copied(role) => of_all + 3 * n_rows,
            _ => 0,
        }
    };
    let file: u64 = table.columns.iter().zip(counts).map(texts).sum();
    // If the table names persons, each released row has its person twice, and quasi cells are counted with persons before.
    let of_persons = if table.person.is_some() { 4 * (n_quasi + 3) * n_rows } else { 0 };
    // Frames and encryption take a little more than the numbers.
    (cells.max(file) + released + of_persons).saturating_mul(9) / 8
}
