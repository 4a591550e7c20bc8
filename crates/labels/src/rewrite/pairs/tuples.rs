//! [`Tuples`]: the rows of one side of a join, found by what the rows of the other side show.
//!
//! Rows that show the same in all compared columns are one tuple, and the rows of a view's class always are. Tuples are
//! compared instead of rows: each distinct cell of the other side is looked up once per column, the sets of tuples that
//! its cells could be equal to are intersected, and rows are named last.
//!
//! # Guarantee
//! The rows that comparing every row would find. A row with a null in a compared column is found by nothing.
//! # Cost
//! Some words per row. A set of tuples is a list if it is small, and else a bit per tuple.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{Array, RecordBatch, StringArray};
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryReservation;

use super::{external, texts};
use crate::meaning::{PairFinder, Side};

/// The tuple of a row that has none.
const NONE: u32 = u32::MAX;

/// A set with fewer than one in this many tuples is kept as a list.
const SPARSE: usize = 32;

/// The most bytes of sets that are remembered.
const MOST_KNOWN: usize = 64 << 20;

/// The rows of one side, by tuples.
pub(super) struct Tuples {
    pub(super) rows: RecordBatch,
    columns: Vec<TupleColumn>,
    rows_of: Lists,
}

/// A compared column.
struct TupleColumn {
    /// Finds the distinct cells that could be equal to a cell of the other side.
    finder: PairFinder,
    /// For each distinct cell, the tuples that hold it.
    tuples_of: Lists,
}

impl Tuples {
    /// The tuples of rows, which are compared in these columns. Beside each column stand the kinds of its cells and of
    /// those that it is compared with.
    pub(super) fn new(rows: RecordBatch, compared: Vec<(usize, Side, Side)>) -> Result<Tuples> {
        let mut tuple_of = vec![0u32; rows.num_rows()];
        let mut n_tuples = 0;
        let mut cells = Vec::with_capacity(compared.len());
        for &(column, ..) in &compared {
            let of_column = Cells::of(&texts(&rows, column)?);
            let mut numbers: HashMap<u64, u32> = HashMap::new();
            for (tuple, &cell) in tuple_of.iter_mut().zip(&of_column.ids) {
                if *tuple == NONE || cell == NONE {
                    *tuple = NONE;
                    continue;
                }
                let next = numbers.len() as u32;
                *tuple = *numbers.entry(u64::from(*tuple) << 32 | u64::from(cell)).or_insert(next);
            }
            n_tuples = numbers.len();
            cells.push(of_column);
        }
        let in_tuples = tuple_of.into_iter().zip(0..).filter(|&(tuple, _)| tuple != NONE);
        let rows_of = Lists::new(n_tuples, &in_tuples.collect::<Vec<(u32, u32)>>());
        let mut columns = Vec::with_capacity(compared.len());
        for (Cells { ids, distinct }, (_, kind, asked)) in cells.into_iter().zip(compared) {
            let cell_of_tuple = (0..n_tuples as u32).map(|tuple| (ids[rows_of.of(tuple)[0] as usize], tuple));
            let tuples_of = Lists::new(distinct.len(), &cell_of_tuple.collect::<Vec<_>>());
            columns.push(TupleColumn { finder: PairFinder::new(distinct, kind, asked).map_err(external)?, tuples_of });
        }
        Ok(Tuples { rows, columns, rows_of })
    }

    /// The rows of a tuple, ascending.
    pub(super) fn rows_of(&self, tuple: u32) -> &[u32] {
        self.rows_of.of(tuple)
    }

    fn n_tuples(&self) -> usize {
        self.rows_of.ends.len()
    }

    /// The tuples whose cell in a column could be equal to this one.
    fn with_cell(&self, column: usize, cell: &str) -> Result<TupleSet> {
        let TupleColumn { finder, tuples_of } = &self.columns[column];
        let mut cells = Vec::new();
        finder.find(cell, &mut cells).map_err(external)?;
        let found = cells.iter().flat_map(|&cell| tuples_of.of(cell)).copied();
        let n_found: usize = cells.iter().map(|&cell| tuples_of.of(cell).len()).sum();
        Ok(if n_found * SPARSE < self.n_tuples() {
            let mut few: Vec<u32> = found.collect();
            few.sort_unstable();
            TupleSet::Few(few)
        } else {
            let mut bits = vec![0u64; self.n_tuples().div_ceil(64)];
            found.for_each(|tuple| bits[tuple as usize / 64] |= 1 << (tuple % 64));
            TupleSet::Many(bits)
        })
    }
}

/// The cells of a column as numbers, in the order in which they first occur.
struct Cells {
    /// For each row, the number of its cell, or [`NONE`] for a null.
    ids: Vec<u32>,
    distinct: StringArray,
}

impl Cells {
    fn of(texts: &StringArray) -> Cells {
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        let mut distinct = Vec::new();
        let mut ids = Vec::with_capacity(texts.len());
        for text in texts {
            let Some(text) = text else {
                ids.push(NONE);
                continue;
            };
            let next = numbers.len() as u32;
            let id = *numbers.entry(text).or_insert(next);
            if id == next {
                distinct.push(text);
            }
            ids.push(id);
        }
        let distinct = StringArray::from(distinct);
        Cells { ids, distinct }
    }
}

/// A list of numbers for each of some owners.
struct Lists {
    numbers: Vec<u32>,
    /// Where the list of each owner ends.
    ends: Vec<usize>,
}

impl Lists {
    /// From pairs of an owner and a number. Each list keeps the order of its pairs.
    fn new(n_owners: usize, pairs: &[(u32, u32)]) -> Lists {
        let mut ends = vec![0usize; n_owners];
        pairs.iter().for_each(|&(owner, _)| ends[owner as usize] += 1);
        let mut start = 0;
        for end in &mut ends {
            start += std::mem::replace(end, start);
        }
        let mut numbers = vec![0; pairs.len()];
        for &(owner, number) in pairs {
            let end = &mut ends[owner as usize];
            numbers[*end] = number;
            *end += 1;
        }
        Lists { numbers, ends }
    }

    fn of(&self, owner: u32) -> &[u32] {
        let owner = owner as usize;
        let start = if owner == 0 { 0 } else { self.ends[owner - 1] };
        &self.numbers[start..self.ends[owner]]
    }
}

/// A set of tuples.
enum TupleSet {
    /// Their numbers, ascending.
    Few(Vec<u32>),
    /// A bit for each tuple.
    Many(Vec<u64>),
}

impl TupleSet {
    fn holds(&self, tuple: u32) -> bool {
        match self {
            TupleSet::Few(few) => few.binary_search(&tuple).is_ok(),
            TupleSet::Many(bits) => bits[tuple as usize / 64] >> (tuple % 64) & 1 == 1,
        }
    }

    fn n_bytes(&self) -> usize {
        match self {
            TupleSet::Few(few) => few.len() * size_of::<u32>(),
            TupleSet::Many(bits) => bits.len() * size_of::<u64>(),
        }
    }

    /// The tuples that are in all sets, ascending.
    fn in_all(sets: &[Arc<TupleSet>]) -> Vec<u32> {
        let fewest = sets.iter().filter_map(|set| match set.as_ref() {
            TupleSet::Few(few) => Some(few),
            TupleSet::Many(_) => None,
        });
        if let Some(fewest) = fewest.min_by_key(|few| few.len()) {
            return fewest.iter().copied().filter(|&tuple| sets.iter().all(|set| set.holds(tuple))).collect();
        }
        let words = sets.iter().filter_map(|set| match set.as_ref() {
            TupleSet::Many(bits) => Some(bits.as_slice()),
            TupleSet::Few(_) => None,
        });
        let words: Vec<&[u64]> = words.collect();
        let n_words = words.first().map_or(0, |bits| bits.len());
        let mut tuples = Vec::new();
        for place in 0..n_words {
            let mut word = words.iter().fold(u64::MAX, |all, bits| all & bits[place]);
            while word != 0 {
                tuples.push(place as u32 * 64 + word.trailing_zeros());
                word &= word - 1;
            }
        }
        tuples
    }
}

/// Looks up tuples for rows of the other side, and remembers what it found for their cells.
pub(super) struct TupleLookup {
    /// For each column, the tuples of the cells that were looked up.
    known: Vec<HashMap<String, Arc<TupleSet>>>,
    /// The memory of these sets.
    memory: MemoryReservation,
    /// The cells of the row that was looked up last.
    last: Vec<String>,
    /// The tuples that were found for it.
    pub(super) tuples: Vec<u32>,
    /// How many rows these tuples have.
    pub(super) n_rows: usize,
}

impl TupleLookup {
    pub(super) fn new(n_columns: usize, memory: MemoryReservation) -> TupleLookup {
        let known = (0..n_columns).map(|_| HashMap::new()).collect();
        TupleLookup { known, memory, last: Vec::new(), tuples: Vec::new(), n_rows: 0 }
    }

    /// Finds the tuples that a row with these cells could be equal to in every column.
    pub(super) fn find(&mut self, tuples: &Tuples, cells: &[Option<&str>]) -> Result<()> {
        let cells: Option<Vec<&str>> = cells.iter().copied().collect();
        let Some(cells) = cells else {
            self.last.clear();
            self.tuples.clear();
            self.n_rows = 0;
            return Ok(());
        };
        // Rows of a view are sorted by what they show, so the same cells come again and again.
        if self.last == cells {
            return Ok(());
        }
        let mut sets = Vec::with_capacity(cells.len());
        for (column, cell) in cells.iter().enumerate() {
            sets.push(self.set(tuples, column, cell)?);
        }
        self.tuples = TupleSet::in_all(&sets);
        self.n_rows = self.tuples.iter().map(|&tuple| tuples.rows_of(tuple).len()).sum();
        self.last = cells.into_iter().map(str::to_owned).collect();
        Ok(())
    }

    fn set(&mut self, tuples: &Tuples, column: usize, cell: &str) -> Result<Arc<TupleSet>> {
        if let Some(known) = self.known[column].get(cell) {
            return Ok(Arc::clone(known));
        }
        let set = Arc::new(tuples.with_cell(column, cell)?);
        let n_bytes = set.n_bytes() + cell.len() + size_of::<(String, Arc<TupleSet>)>();
        if self.memory.size() + n_bytes > MOST_KNOWN || self.memory.try_grow(n_bytes).is_err() {
            // What was found is only remembered to save time.
            self.known.iter_mut().for_each(HashMap::clear);
            self.memory.try_resize(n_bytes)?;
        }
        self.known[column].insert(cell.to_owned(), Arc::clone(&set));
        Ok(set)
    }
}
