//! [`Memory`]: how much a job in cells may use, or the count of a table in parts, and what for.
//!
//! A quarter is for distinct texts, which are in memory all the time. The cell that is being anonymized gets half. What is left
//! holds rows on their way to their cells; when the last cell is done, rows on their way to the file have its half. Where a release is
//! compared with its table, the texts of both have a quarter each, rows that are traced a quarter, and their possible origins an eighth.

use kohort_io::EstimatedTable;

use crate::error::{Error, Report};

/// What a distinct text takes beside its bytes where a table is in memory, and how often its bytes are there: in the table, and in
/// the file that is written and read back.
const BYTES_PER_TEXT: u64 = 60;
const COPIES_OF_TEXTS: u64 = 3;

/// No plan has more cells, because the sample says little about smaller ones.
const MOST_CELLS: u64 = 1 << 10;

/// How much memory a job may use.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    n_bytes: u64,
    most_rows: Option<u64>,
    is_chosen: bool,
}

/// Rows that must be in memory together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Together {
    pub(crate) n_rows: u64,
    pub(crate) why: &'static str,
}

impl Memory {
    /// About this many bytes, beside the program itself.
    pub fn bytes(n_bytes: u64) -> Self {
        Memory { n_bytes, most_rows: None, is_chosen: false }
    }

    /// Cells of at most this many rows, although more would fit into memory. Smaller cells lose more.
    #[must_use]
    pub fn rows_per_cell(mut self, most_rows: u64) -> Self {
        self.most_rows = Some(most_rows);
        self
    }

    /// The same memory, which nobody asked for: it was chosen because the job would not have fitted.
    pub(crate) fn chosen(mut self) -> Self {
        self.is_chosen = true;
        self
    }

    pub(crate) fn is_chosen(self) -> bool {
        self.is_chosen
    }

    /// How much it is.
    pub fn n_bytes(self) -> u64 {
        self.n_bytes
    }

    /// About what a job needs if the whole table is in memory.
    pub(crate) fn needed(table: EstimatedTable, n_columns: usize) -> u64 {
        let EstimatedTable { n_rows, n_texts, n_bytes } = table;
        let of_rows = n_rows.saturating_mul(bytes_per_row(n_columns));
        let of_texts = n_texts.saturating_mul(BYTES_PER_TEXT).saturating_add(n_bytes.saturating_mul(COPIES_OF_TEXTS));
        of_rows.saturating_add(of_texts)
    }

    /// Distinct texts may take this much.
    pub(crate) fn of_texts(self) -> u64 {
        self.n_bytes / 4
    }

    /// The most rows of a part that is counted.
    pub(crate) fn rows_of_part(self, n_columns: usize) -> u64 {
        let fitting = (self.n_bytes / 2 / (48 + 8 * n_columns as u64)).max(1);
        self.most_rows.map_or(fitting, |most| most.clamp(1, fitting))
    }

    /// The most released and private rows that are traced at once. Less than half of the memory is theirs, because the texts of
    /// both tables are in memory.
    pub(crate) fn traced_rows(self, n_columns: usize) -> u64 {
        let fitting = (self.n_bytes / 4 / bytes_per_traced_row(n_columns)).max(1);
        self.most_rows.map_or(fitting, |most| most.clamp(1, fitting))
    }

    /// What possible origins of traced rows may take.
    pub(crate) fn of_origins(self) -> u64 {
        self.n_bytes / 8
    }

    /// Rows of numbers that may wait to be written, in all files together.
    pub(crate) fn waiting_rows(self, n_columns: usize) -> usize {
        let n_rows = self.n_bytes / 8 / (4 * n_columns.max(1) as u64);
        usize::try_from(n_rows).unwrap_or(usize::MAX).max(1)
    }

    /// Rows on their way to the file may take this much.
    pub(crate) fn of_writing(self) -> u64 {
        self.n_bytes / 2
    }

    /// The most rows of a cell.
    pub(crate) fn rows_of_cell(self, n_columns: usize) -> u64 {
        (self.n_bytes / 2 / bytes_per_row(n_columns)).max(1)
    }

    /// The rows for which a cell is planned: fewer, because a sample does not tell the exact number.
    pub(crate) fn planned_rows(self, n_columns: usize) -> u64 {
        let planned = (self.rows_of_cell(n_columns) / 5 * 4).max(1);
        self.most_rows.map_or(planned, |most| most.clamp(1, planned))
    }

    /// How many of the next cells can be anonymized at the same time: as many as fit into the memory of one cell, one per thread at
    /// most. Each has a copy of all texts.
    pub(crate) fn cells_at_once(
        self,
        sizes: impl Iterator<Item = u64>,
        n_columns: usize,
        bytes_of_texts: u64,
    ) -> usize {
        let fitting = Memory { most_rows: None, ..self }.rows_of_cell(n_columns);
        let copies = 1 + self.n_bytes / 8 / bytes_of_texts.max(1);
        let most = usize::try_from(copies).unwrap_or(usize::MAX).min(rayon::current_num_threads());
        let mut n_rows = 0u64;
        let fits = |size: &u64| {
            n_rows = n_rows.saturating_add(*size);
            n_rows <= fitting
        };
        sizes.take(most).take_while(fits).count().max(1)
    }

    /// Refuses rows that don't fit, with the least memory that would do.
    pub(crate) fn check(self, together: &[Together], n_rows: u64, n_columns: usize) -> Result<(), Error> {
        let fitting = self.rows_of_cell(n_columns);
        let of_plan = Together { n_rows: n_rows / MOST_CELLS, why: "a cell of a table of this size" };
        let too_large = together.iter().chain([&of_plan]).filter(|together| together.n_rows.min(n_rows) > fitting);
        let Some(largest) = too_large.max_by_key(|together| together.n_rows) else { return Ok(()) };
        let Together { n_rows: needed, why } = *largest;
        let least = needed.min(n_rows).saturating_mul(2 * bytes_per_row(n_columns));
        Err(too_little(why, least))
    }

    /// Refuses a part that does not fit, because its classes are too large.
    pub(crate) fn check_part(self, n_rows: u64, n_columns: usize) -> Result<(), Error> {
        let fitting = Memory { most_rows: None, ..self }.rows_of_part(n_columns);
        if n_rows <= fitting.saturating_mul(2) {
            return Ok(());
        }
        Err(too_little("the largest classes", n_rows.saturating_mul(48 + 8 * n_columns as u64)))
    }

    /// Refuses rows that have to be traced together and don't fit.
    pub(crate) fn check_traced(self, n_rows: u64, n_columns: usize) -> Result<(), Error> {
        let fitting = Memory { most_rows: None, ..self }.traced_rows(n_columns);
        if n_rows <= fitting.saturating_mul(2) {
            return Ok(());
        }
        let least = n_rows.saturating_mul(2 * bytes_per_traced_row(n_columns));
        Err(too_little("labels that overlap", least))
    }
}

/// What a released or private row takes while origins are searched for.
fn bytes_per_traced_row(n_columns: usize) -> u64 {
    96 + 16 * n_columns as u64
}

fn too_little(why: &str, least: u64) -> Error {
    let message = format!("the rows of {why} must be in memory together, and they don't fit into the given memory");
    let hint = format!("give at least {{memory={}MB}}", (least >> 20) + 1);
    Error::Input(vec![Report::new(message).hint(hint)])
}

/// What a row of a cell takes while the cell is anonymized and verified.
fn bytes_per_row(n_columns: usize) -> u64 {
    56 + 16 * n_columns as u64
}
