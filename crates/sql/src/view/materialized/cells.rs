//! [`KeptCells`]: the rows that a view showed when it was made or opened, packed in memory.
//!
//! The cells of a row never change: a person whose cells change gets a new row, with a new number. So the rows of a class
//! in here are right until a row joins or leaves the class. Every change notes such classes in
//! [`Memory::changed`](super::memory::Memory), and [`ClassTable::change`](super::ClassTable::change) then has them read
//! from the store. This is the only rule of invalidation.
//!
//! Rows are kept if the owner grants the memory (`kohort.keep_mb`). Otherwise all rows are read from the store.
//!
//! # Cost
//! One pass over the rows of a view; about 25 bytes per row if columns have few values.

use std::collections::{BTreeMap, HashMap};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{filter_record_batch, take};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::arrow::error::ArrowError;
use foldhash::fast::RandomState;
use kohort_store::{ScanRequest, State};

use super::error::MaterializedError;
use super::layout::{CHOICE, CLASS, Layout, PLACE};
use super::ledger::{ALONE, IN_ATOM};
use crate::view::version::kept::pack;

/// How many rows are packed together.
const ROWS_TOGETHER: usize = 1 << 16;

/// Shown rows by their classes.
pub(super) struct KeptCells {
    /// The columns of [`ShownRows`], packed.
    parts: Vec<Vec<ArrayRef>>,
    /// For each class, its rows: the part, and the place in the part.
    rows: HashMap<i64, Vec<(u32, u32)>, RandomState>,
}

/// Rows that are shown, as the store has them.
pub(super) struct ShownRows {
    /// Per row its class.
    pub(super) classes: Vec<i64>,
    /// The number of what each row's person allows, if there are policies; then the cells.
    pub(super) columns: Vec<ArrayRef>,
}

impl ShownRows {
    /// The shown rows that a scan of the table of rows finds, batch by batch.
    pub(super) fn scan(
        layout: &Layout,
        state: &State,
        request: ScanRequest,
    ) -> Result<impl Iterator<Item = Result<ShownRows, MaterializedError>>, MaterializedError> {
        let fixed = [CLASS, PLACE].into_iter().chain(layout.definition.clauses.policy.iter().map(|_| CHOICE));
        let columns = fixed.map(str::to_owned).chain(layout.cells.iter().cloned()).collect();
        let batches = state.scan(&layout.rows, &ScanRequest { columns: Some(columns), ..request })?;
        Ok(batches.map(|batch| ShownRows::of(&batch?).map_err(|_| layout.damaged())))
    }

    fn of(batch: &RecordBatch) -> Result<ShownRows, ArrowError> {
        let places = batch.column(1).as_primitive::<Int64Type>().iter();
        let is_shown = places.map(|place| Some(matches!(place, Some(IN_ATOM | ALONE)))).collect();
        let shown = filter_record_batch(batch, &is_shown)?;
        let classes = shown.column(0).as_primitive::<Int64Type>().values().to_vec();
        Ok(ShownRows { classes, columns: shown.columns()[2..].to_vec() })
    }
}

impl KeptCells {
    /// Reads and packs all rows that are shown; `None` if they take more bytes than allowed.
    pub(super) fn read(
        layout: &Layout,
        state: &State,
        most_bytes: usize,
    ) -> Result<Option<KeptCells>, MaterializedError> {
        if most_bytes == 0 {
            return Ok(None);
        }
        let mut kept = KeptCells { parts: Vec::new(), rows: HashMap::default() };
        let mut n_bytes = 0;
        let request = ScanRequest { batch_size: ROWS_TOGETHER, ..ScanRequest::default() };
        for shown in ShownRows::scan(layout, state, request)? {
            let (shown, part) = (shown?, kept.parts.len() as u32);
            let columns: Vec<ArrayRef> = shown.columns.iter().map(pack).collect();
            n_bytes += columns.iter().map(Array::get_array_memory_size).sum::<usize>();
            n_bytes += shown.classes.len() * size_of::<(u32, u32)>();
            if n_bytes > most_bytes {
                return Ok(None);
            }
            for (place, class) in (0..).zip(shown.classes) {
                kept.rows.entry(class).or_default().push((part, place));
            }
            kept.parts.push(columns);
        }
        Ok(Some(kept))
    }

    /// The rows of these classes.
    pub(super) fn rows(&self, classes: &[i64]) -> Result<Vec<ShownRows>, ArrowError> {
        let mut of_parts: BTreeMap<u32, (Vec<u32>, Vec<i64>)> = BTreeMap::new();
        for class in classes {
            for (part, place) in self.rows.get(class).into_iter().flatten() {
                let (places, classes) = of_parts.entry(*part).or_default();
                places.push(*place);
                classes.push(*class);
            }
        }
        let unpacked = |(part, (places, classes)): (u32, (Vec<u32>, Vec<i64>))| {
            let places = UInt32Array::from(places);
            let unpack = |column: &ArrayRef| match column.as_any_dictionary_opt() {
                Some(numbered) => take(numbered.values(), &take(numbered.keys(), &places, None)?, None),
                None => take(column, &places, None),
            };
            let columns = self.parts[part as usize].iter().map(unpack).collect::<Result<_, _>>()?;
            Ok(ShownRows { classes, columns })
        };
        of_parts.into_iter().map(unpacked).collect()
    }
}
