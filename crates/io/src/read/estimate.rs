//! [`EstimatedTable`]: about how many rows and texts a table file has, by its first rows and its size.

use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::RecordBatch;
use arrow_schema::Field;
use kohort_model::Progress;
use kohort_model::spec::TableSpec;

use super::Sources;
use super::open::OpenTable;
use super::streamed::{NumberedColumns, Pieces};

/// Rows from which the others are estimated.
const ENOUGH: u64 = 1 << 14;
/// Distinct texts are counted in at most this many rows, and their number is noted after every `STEP` rows to see how it grows.
const MOST_COUNTED: usize = 1 << 16;
const STEP: usize = 1 << 10;

/// What a table is expected to have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EstimatedTable {
    /// The rows.
    pub n_rows: u64,
    /// The distinct texts of all columns that were asked for.
    pub n_texts: u64,
    /// The bytes of these texts.
    pub n_bytes: u64,
}

impl EstimatedTable {
    /// Estimates the table of a spec, and the texts of the columns for which `is_kept` holds. Little of the file is read. `None` for
    /// standard input, for tables in memory, and for files that can't be read, of which the job itself tells why.
    pub fn of(sources: Sources<'_>, table_spec: &TableSpec, is_kept: impl Fn(&str) -> bool) -> Option<EstimatedTable> {
        let place = sources.place(&table_spec.file);
        let n_bytes_of_file = std::fs::metadata(&place).ok().filter(std::fs::Metadata::is_file)?.len();
        let share = Share::default();
        let (open, _) = sources.open(&table_spec.file, &table_spec.csv, &share).ok()?;
        if matches!(open, OpenTable::Lazy(_)) {
            return None;
        }
        let kept: Vec<usize> =
            open.names().iter().enumerate().filter(|(_, name)| is_kept(name)).map(|(position, _)| position).collect();
        let every: Vec<usize> = (0..open.names().len()).collect();
        let pieces = Pieces::of(open, &every).ok()?;
        let schema = pieces.schema();
        let mut texts = CountedTexts::new(&kept.iter().map(|&position| schema[position].clone()).collect::<Vec<_>>())?;
        let (mut n_rows, mut n_bytes) = (0, 0);
        for batch in pieces {
            let batch = batch.ok()?;
            n_rows += batch.num_rows() as u64;
            n_bytes += batch.get_array_memory_size() as u64;
            texts.add(&batch.project(&kept).ok()?)?;
            if n_rows >= ENOUGH {
                // A format that does not tell how much of the file was read has about the same size in memory.
                let (done, total) = match (share.done.load(Ordering::Relaxed), share.total.load(Ordering::Relaxed)) {
                    (_, 0) => (n_bytes, n_bytes_of_file),
                    read => read,
                };
                let factor = total as f64 / done.max(1) as f64;
                n_rows = (n_rows as f64 * factor.max(1.0)) as u64;
                break;
            }
        }
        Some(texts.among(n_rows))
    }
}

/// The distinct texts of the first rows.
struct CountedTexts {
    columns: NumberedColumns,
    n_rows: usize,
    /// The numbers of distinct texts after each step.
    steps: Vec<Vec<usize>>,
}

impl CountedTexts {
    fn new(schema: &[(Field, Option<Field>)]) -> Option<CountedTexts> {
        Some(CountedTexts { columns: NumberedColumns::new(schema).ok()?, n_rows: 0, steps: Vec::new() })
    }

    fn add(&mut self, batch: &RecordBatch) -> Option<()> {
        for first in (0..batch.num_rows()).step_by(STEP) {
            if self.n_rows >= MOST_COUNTED {
                break;
            }
            let rows = batch.slice(first, STEP.min(batch.num_rows() - first));
            self.columns.number(&rows, &kohort_model::Silent).ok()?;
            self.n_rows += rows.num_rows();
            self.steps.push(self.columns.lengths().collect());
        }
        Some(())
    }

    /// The texts among so many rows. The number of distinct texts grows like a power of the number of rows, and the exponent is taken
    /// from the second half of the rows that were counted: 1 if each row has another text, and 0 if no new text came.
    fn among(&self, n_rows: u64) -> EstimatedTable {
        let mut estimated = EstimatedTable { n_rows, ..EstimatedTable::default() };
        let Some(last) = self.steps.last() else { return estimated };
        let half = &self.steps[(self.steps.len() / 2).saturating_sub(1)];
        let factor = (n_rows as f64 / self.n_rows.max(1) as f64).max(1.0);
        for (column, (&n_texts, &n_half)) in last.iter().zip(half).enumerate() {
            let exponent = if self.steps.len() < 2 { 0.0 } else { (n_texts as f64 / n_half.max(1) as f64).log2() };
            let growth = factor.powf(exponent.clamp(0.0, 1.0));
            let n_bytes: usize = self.columns.texts_from(column, 0).iter().map(str::len).sum();
            estimated.n_texts += (n_texts as f64 * growth) as u64;
            estimated.n_bytes += (n_bytes as f64 * growth) as u64;
        }
        estimated
    }
}

/// How much of a file was read.
#[derive(Default)]
struct Share {
    done: AtomicU64,
    total: AtomicU64,
}

impl Progress for Share {
    fn begin(&self, _stage: &str, total: u64) {
        self.total.store(total, Ordering::Relaxed);
    }

    fn advance(&self, steps: u64) {
        self.done.fetch_add(steps, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::fs;

    use kohort_model::Spec;

    use super::*;

    #[test]
    fn texts_that_are_different_in_each_row_grow_with_the_table_and_others_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let mut text = "id,note,sex\n".to_owned();
        for row in 0..60_000 {
            writeln!(text, "{row},{row:0100},{}", if row % 2 == 0 { "f" } else { "m" }).unwrap();
        }
        fs::write(folder.path().join("t.csv"), text).unwrap();
        let spec = "k = 2\n[tables.t]\nfile = \"t.csv\"\n[tables.t.columns]\nid = \"drop\"\nnote = \"plain\"\nsex = \"quasi\"\n";
        let spec = Spec::parse(spec).unwrap();
        let of = |kept: &[&str]| {
            EstimatedTable::of(folder.path().into(), &spec.tables[0], |name| kept.contains(&name)).unwrap()
        };
        let notes = of(&["note", "sex"]);
        let near = |found: u64, expected: u64| found.abs_diff(expected) <= expected / 5;
        assert!(
            near(notes.n_rows, 60_000) && near(notes.n_texts, 60_000) && near(notes.n_bytes, 6_000_000),
            "{notes:?}"
        );
        let sex = of(&["sex"]);
        assert_eq!((sex.n_texts, sex.n_bytes), (2, 2));
    }
}
