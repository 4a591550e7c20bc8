//! [`LazyColumns`]: a table in memory whose columns are handed over one at a time.
//!
//! Some programs must convert their columns before they can be read. If every column is read and dropped before the next one is
//! converted, the converted table is never in memory as a whole. Threads ask for columns independently of each other, so as
//! many columns are in memory at once as there are threads.

use std::fmt;
use std::sync::Arc;

use kohort_model::Progress;
use rayon::prelude::*;

use super::arrow::read_column;
use super::error::ReadError;
use super::{Batches, Keep, Kept, RawColumn};

/// Why a column can't be handed over, in the words of the program that holds it. They never quote a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotHandedOver {
    /// What is wrong, as it follows the name of the column.
    pub fault: String,
    /// What to do about it.
    pub hint: String,
}

/// Hands over the column at a position, as batches of one column.
type HandOver = dyn Fn(usize) -> Result<Batches, NotHandedOver> + Send + Sync;

/// Columns in memory that are handed over one at a time, each when it is read.
#[derive(Clone)]
pub struct LazyColumns {
    names: Arc<[String]>,
    hand_over: Arc<HandOver>,
}

impl LazyColumns {
    /// Columns of these names. `hand_over` is called with the position of a column and gives batches of this column alone; it
    /// may be called several times, and by several threads.
    pub fn new(
        names: impl IntoIterator<Item = String>,
        hand_over: impl Fn(usize) -> Result<Batches, NotHandedOver> + Send + Sync + 'static,
    ) -> Self {
        LazyColumns { names: names.into_iter().collect(), hand_over: Arc::new(hand_over) }
    }

    pub(crate) fn open<'a>(&self, progress: &'a dyn Progress) -> OpenColumns<'a> {
        OpenColumns { columns: self.clone(), progress }
    }
}

impl fmt::Debug for LazyColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazyColumns").field("names", &self.names).finish_non_exhaustive()
    }
}

/// Columns that are about to be read.
pub(crate) struct OpenColumns<'a> {
    columns: LazyColumns,
    progress: &'a dyn Progress,
}

impl OpenColumns<'_> {
    pub(crate) fn names(&self) -> &[String] {
        &self.columns.names
    }

    /// Reads the columns at these positions. Reports the problems of all of them.
    pub(crate) fn read(self, wanted: &[(usize, Keep<'_>)]) -> Result<Vec<Kept>, Vec<ReadError>> {
        let columns = self.read_any(wanted)?;
        let n_rows = |kept: &Kept| match kept {
            Kept::Texts(RawColumn { ids, .. }) => ids.len(),
            Kept::Persons(persons) => persons.len(),
        };
        let n_rows_of_all: Vec<usize> = columns.iter().map(n_rows).collect();
        if n_rows_of_all.iter().any(|&n_rows| n_rows != n_rows_of_all[0]) {
            return Err(vec![ReadError::Damaged { format: "Arrow", fault: "its columns differ in length" }]);
        }
        if n_rows_of_all.first() == Some(&0) {
            return Err(vec![ReadError::NoRows]);
        }
        Ok(columns)
    }

    /// The same for columns that may have no rows.
    pub(crate) fn read_any(self, wanted: &[(usize, Keep<'_>)]) -> Result<Vec<Kept>, Vec<ReadError>> {
        self.progress.begin("reading", wanted.len() as u64);
        let read = |&(position, keep): &(usize, Keep<'_>)| {
            if self.progress.is_cancelled() {
                return Err(ReadError::Io { source: std::io::Error::other("the work was cancelled") });
            }
            let column = (self.columns.hand_over)(position).map_err(|NotHandedOver { fault, hint }| {
                ReadError::NotHandedOver { column: self.columns.names[position].clone(), fault, hint }
            })?;
            let kept = read_column(&column, keep);
            self.progress.advance(1);
            kept
        };
        let columns: Vec<Result<Kept, ReadError>> = wanted.par_iter().map(read).collect();
        let (mut kept, mut problems) = (Vec::with_capacity(columns.len()), Vec::new());
        for column in columns {
            match column {
                Ok(column) => kept.push(column),
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() { Ok(kept) } else { Err(problems) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    use kohort_model::Silent;

    use super::*;
    use crate::read::OpenTable;

    fn batch() -> RecordBatch {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(2)]));
        let words: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "a"]));
        RecordBatch::try_from_iter_with_nullable([("n", numbers, true), ("w", words, true)]).unwrap()
    }

    fn one_column(batch: &RecordBatch, position: usize) -> Batches {
        let batch = batch.project(&[position]).unwrap();
        Batches::new(batch.schema(), vec![batch]).unwrap()
    }

    /// The columns of a batch, and how often one of them was handed over.
    fn lazy(batch: &RecordBatch) -> (LazyColumns, Arc<AtomicUsize>) {
        let n_handed_over = Arc::new(AtomicUsize::new(0));
        let (batch, counter) = (batch.clone(), Arc::clone(&n_handed_over));
        let hand_over = move |position| {
            counter.fetch_add(1, Ordering::Relaxed);
            Ok(one_column(&batch, position))
        };
        (LazyColumns::new(["n".to_owned(), "w".to_owned()], hand_over), n_handed_over)
    }

    #[test]
    fn columns_are_read_as_batches_are_and_others_are_not_handed_over() {
        let batch = batch();
        let whole = Batches::new(batch.schema(), vec![batch.clone()]).unwrap().open(&Silent).read(&[0, 1]).unwrap();
        let (columns, n_handed_over) = lazy(&batch);
        let one_by_one = OpenTable::Lazy(columns.open(&Silent)).read(&[0, 1]).unwrap();
        for (column, expected) in one_by_one.iter().zip(&whole) {
            assert_eq!((&column.texts, &column.ids, &column.field), (&expected.texts, &expected.ids, &expected.field));
        }
        assert_eq!(n_handed_over.load(Ordering::Relaxed), 2);
        let words = OpenTable::Lazy(columns.open(&Silent)).read(&[1]).unwrap();
        assert_eq!((words.len(), n_handed_over.load(Ordering::Relaxed)), (1, 3));
    }

    #[test]
    fn every_column_that_can_not_be_handed_over_is_reported() {
        let refuse = |_| Err(NotHandedOver { fault: "is not there".to_owned(), hint: "bring it".to_owned() });
        let columns = LazyColumns::new(["n".to_owned(), "w".to_owned()], refuse);
        let problems = OpenTable::Lazy(columns.open(&Silent)).read(&[0, 1]).err().unwrap();
        let messages: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(messages, ["column 'n' is not there", "column 'w' is not there"]);
    }

    #[test]
    fn columns_without_rows_or_of_different_lengths_are_no_table() {
        let (columns, _) = lazy(&batch().slice(0, 0));
        assert!(
            matches!(columns.open(&Silent).read(&[(0, Keep::Texts)]), Err(found) if matches!(found[..], [ReadError::NoRows]))
        );
        let batch = batch();
        let uneven = LazyColumns::new(["n".to_owned(), "w".to_owned()], move |position| {
            Ok(one_column(&batch.slice(0, position + 1), position))
        });
        let problems = uneven.open(&Silent).read(&[(0, Keep::Texts), (1, Keep::Texts)]).err().unwrap();
        assert!(matches!(problems[..], [ReadError::Damaged { .. }]));
    }
}
