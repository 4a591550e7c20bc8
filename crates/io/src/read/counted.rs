//! [`CountedTable`]: a table without a spec that is read piece by piece, and is never in memory as a whole.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kohort_model::{Progress, Table};

use super::columns::FileColumns;
use super::error::{ReadError, ReadErrors};
use super::open::{CheckOptions, OpenTable, plain_table, table_name};
use super::roles::check_names;
use super::streamed::{Counter, NumberedRows, RowsAgain};

/// Some columns of a table file, whose distinct texts are in memory and whose rows are not.
pub struct CountedTable {
    /// The columns that were read, with rows in which each distinct text of the file occurs, and a null where the file has one.
    pub table: Table,
    /// For each column the number of nulls, and then of rows that hold each text, by its id.
    pub counts: Vec<Vec<u64>>,
    /// The number of rows.
    pub n_rows: u64,
    /// For each column and text the first row that holds it, from 0.
    pub(super) first_rows: Vec<Vec<u64>>,
    /// Reads the rows again.
    pub rows: CountedRowsAgain,
}

/// Reads the rows of a [`CountedTable`] as often as needed.
pub struct CountedRowsAgain {
    rows: RowsAgain,
    path: PathBuf,
    options: CheckOptions,
}

impl CountedTable {
    /// Reads the columns with these names for the first time, as plain text. Distinct texts may take up to `most_bytes` of memory.
    ///
    /// # Errors
    /// Every problem of the names, or the first one of the rows.
    pub fn count(
        path: &Path,
        options: &CheckOptions,
        names: &BTreeSet<String>,
        most_bytes: u64,
        progress: &dyn Progress,
    ) -> Result<CountedTable, ReadErrors> {
        let fail = |problems| ReadErrors { file: path.to_owned(), problems };
        if path == Path::new("-") {
            return Err(fail(vec![ReadError::ReadOnce]));
        }
        let opened = OpenTable::open(path, options.format, &options.csv, progress);
        let open = opened.map_err(|problem| fail(vec![problem]))?;
        let of_file = open.names().to_vec();
        let bad_names = check_names(&of_file);
        if !bad_names.is_empty() {
            return Err(fail(bad_names));
        }
        let columns: Vec<String> = names.iter().filter(|name| !of_file.contains(name)).cloned().collect();
        if !columns.is_empty() {
            let known = FileColumns::of_file(&of_file, names.iter().map(String::as_str));
            return Err(fail(vec![ReadError::UnknownColumn { columns, known }]));
        }
        let kept: Vec<usize> = (0..of_file.len()).filter(|&position| names.contains(&of_file[position])).collect();
        let counted = Counter::of(open, &kept, (0, most_bytes), progress);
        let mut counter = counted.map_err(|problem| fail(vec![problem]))?;
        let counts = std::mem::take(&mut counter.counts);
        let raw = counter.columns.each_once(counts.iter().map(|counts| counts[0] > 0));
        let kept_names = kept.iter().map(|&position| of_file[position].clone()).collect();
        Ok(CountedTable {
            table: plain_table(table_name(path), kept_names, raw),
            counts,
            n_rows: counter.n_rows,
            first_rows: std::mem::take(&mut counter.first_rows),
            rows: CountedRowsAgain { rows: counter.rows_again(kept), path: path.to_owned(), options: options.clone() },
        })
    }

    /// The columns with other rows.
    pub fn with_rows(&self, ids: Vec<Vec<u32>>) -> Table {
        let n_rows = ids.first().map_or(0, Vec::len);
        let columns = self.table.columns.iter().zip(ids).map(|(column, ids)| column.with_ids(ids)).collect();
        Table { name: self.table.name.clone(), columns, n_rows, person: None }
    }
}

impl CountedRowsAgain {
    /// Reads the same columns once more, and hands their rows to `take`, piece by piece in their order.
    ///
    /// # Errors
    /// If the file can't be read or has changed, and the errors of `take`.
    pub fn for_each_piece<E: From<ReadErrors>>(
        &mut self,
        progress: &dyn Progress,
        mut take: impl FnMut(&NumberedRows) -> Result<(), E>,
    ) -> Result<(), E> {
        let fail = |problem| E::from(ReadErrors { file: self.path.clone(), problems: vec![problem] });
        let open = OpenTable::open(&self.path, self.options.format, &self.options.csv, progress).map_err(fail)?;
        self.rows.for_each_piece_of(open, progress, fail, |piece| take(piece.rows))
    }
}
