//! [`KeptCells`]: the rows that a view showed when it was made or opened, packed in memory.
//!
//! Cells of a row never change: whoever changes gets a new row, and numbers are not given twice. Only where a row is shown
//! changes. So what is here holds of a class for as long as none of its rows goes or moves, and none comes; whoever moves
//! rows notes their classes ([`Memory::joined`](super::memory::Memory)), and those are read from the store.
//!
//! They are kept where the owner grants the memory (`kohort.keep_mb`); elsewhere all rows are read from the store.
//!
//! # Cost
//! One pass over the rows of a view; some 30 bytes a row where columns have few values.

use std::collections::HashMap;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{filter, take};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::arrow::error::ArrowError;
use foldhash::fast::RandomState;
use kohort_store::{ScanRequest, State};

use super::classes::Span;
use super::error::MaterializedError;
use super::layout::{CHOICE, CLASS, Layout, PLACE};
use super::ledger::{ALONE, IN_ATOM};
use crate::view::Definition;
use crate::view::version::kept::pack;

/// Rows that are packed together.
const ROWS_TOGETHER: usize = 1 << 16;

/// Shown rows by their numbers.
pub(super) struct KeptCells {
    parts: Vec<Part>,
}

/// Rows that follow each other.
struct Part {
    /// Ascending.
    numbers: Vec<i64>,
    classes: Vec<i64>,
    /// The columns of [`shown_columns`], packed.
    columns: Vec<ArrayRef>,
}

/// Rows as the store has them.
pub(super) struct ShownRows {
    /// Per row its class.
    pub(super) classes: Vec<i64>,
    /// The columns of [`shown_columns`].
    pub(super) columns: Vec<ArrayRef>,
}

/// The columns of the table of rows that tell what a row shows: what its person allows, if there are policies, and cells.
pub(super) fn shown_columns(layout: &Layout, definition: &Definition) -> Vec<String> {
    let choice = definition.clauses.policy.iter().map(|_| CHOICE.to_owned());
    choice.chain(layout.cells.iter().cloned()).collect()
}

impl KeptCells {
    /// Reads and packs all rows that are shown; `None` where they take more than so many bytes.
    ///
    /// # Errors
    /// Where the store can't be read.
    pub(super) fn read(
        layout: &Layout,
        definition: &Definition,
        state: &State,
        most_bytes: usize,
    ) -> Result<Option<KeptCells>, MaterializedError> {
        if most_bytes == 0 {
            return Ok(None);
        }
        let fixed = [CLASS, PLACE].map(str::to_owned).into_iter();
        let columns = Some(fixed.chain(shown_columns(layout, definition)).collect());
        let request = ScanRequest { columns, with_rowid: true, batch_size: ROWS_TOGETHER, ..ScanRequest::default() };
        let (mut parts, mut n_bytes) = (Vec::new(), 0);
        for batch in state.scan(&layout.rows, &request)? {
            let Ok(part) = Part::of(&batch?) else { return Ok(None) };
            n_bytes += part.n_bytes();
            if n_bytes > most_bytes {
                return Ok(None);
            }
            parts.extend(Some(part).filter(|part| !part.numbers.is_empty()));
        }
        Ok(Some(KeptCells { parts }))
    }

    /// How many rows each class shows.
    pub(super) fn n_rows_by_class(&self) -> HashMap<i64, u64, RandomState> {
        let mut n_rows: HashMap<i64, u64, RandomState> = HashMap::default();
        let classes = self.parts.iter().flat_map(|part| &part.classes);
        classes.for_each(|&class| *n_rows.entry(class).or_default() += 1);
        n_rows
    }

    /// The class that a row was shown in; `None` where it was not.
    pub(super) fn class_of(&self, number: i64) -> Option<i64> {
        let is_before = |part: &Part| part.numbers.last().is_none_or(|&last| last < number);
        let part = self.parts.get(self.parts.partition_point(is_before))?;
        part.numbers.binary_search(&number).ok().map(|place| part.classes[place])
    }

    /// The rows of these classes, which lie there.
    ///
    /// # Errors
    /// Where a column can't be unpacked: a fault of ours.
    pub(super) fn rows(&self, classes: &[(i64, Span)]) -> Result<Vec<ShownRows>, ArrowError> {
        let mut found = Vec::new();
        for part in &self.parts {
            let (mut places, mut of_row): (Vec<u32>, Vec<i64>) = (Vec::new(), Vec::new());
            for &(class, span) in classes.iter().filter(|(_, span)| part.reaches(*span)) {
                let from = part.numbers.partition_point(|&number| number < span.first);
                let to = from + part.numbers[from..].partition_point(|&number| number <= span.last);
                let in_class = (from..to).filter(|&place| part.classes[place] == class);
                places.extend(in_class.map(|place| place as u32));
                of_row.resize(places.len(), class);
            }
            if !places.is_empty() {
                found.push(ShownRows { classes: of_row, columns: part.unpacked(&UInt32Array::from(places))? });
            }
        }
        Ok(found)
    }
}

impl Part {
    /// Packs those rows of a batch that are shown.
    fn of(batch: &RecordBatch) -> Result<Part, ArrowError> {
        let integers = |column: usize| batch.column(column).as_primitive::<Int64Type>();
        let is_shown = integers(2).iter().map(|place| Some(matches!(place, Some(IN_ATOM | ALONE)))).collect();
        let shown = |column: &ArrayRef| filter(column, &is_shown);
        let numbers = |column: usize| -> Result<Vec<i64>, ArrowError> {
            Ok(shown(batch.column(column))?.as_primitive::<Int64Type>().values().to_vec())
        };
        let columns = batch.columns()[3..].iter().map(|column| Ok(pack(&shown(column)?)));
        Ok(Part { numbers: numbers(0)?, classes: numbers(1)?, columns: columns.collect::<Result<_, ArrowError>>()? })
    }

    /// Whether rows may lie there.
    fn reaches(&self, span: Span) -> bool {
        let (first, last) = (self.numbers.first(), self.numbers.last());
        first.is_some_and(|&first| first <= span.last) && last.is_some_and(|&last| span.first <= last)
    }

    fn n_bytes(&self) -> usize {
        let columns: usize = self.columns.iter().map(Array::get_array_memory_size).sum();
        columns + 2 * self.numbers.len() * size_of::<i64>()
    }

    fn unpacked(&self, places: &UInt32Array) -> Result<Vec<ArrayRef>, ArrowError> {
        let unpack = |column: &ArrayRef| match column.as_any_dictionary_opt() {
            Some(numbered) => take(numbered.values(), &take(numbered.keys(), places, None)?, None),
            None => take(column, places, None),
        };
        self.columns.iter().map(unpack).collect()
    }
}
