//! [`read_back`]: reads the file of all cells, so that the verifier can count it.

use std::path::Path;

use kohort_model::spec::CsvSpec;
use kohort_model::{Cells, Column, Progress, ReleasedTable, Role, Silent, Table, Texts};
use kohort_verify::{FileVerifier, Violation};

use super::persons::PersonsOfRows;
use crate::bounds::{ComposedLabels, bound_names};
use crate::read::{NumberedColumns, OpenTable, Original, Pieces, ReadError};
use crate::write::{Form, SpelledLabels};
use crate::{Format, ReadErrors, WriteError};

/// A file that was written.
pub(super) struct WrittenRows<'a> {
    pub(super) path: &'a Path,
    pub(super) format: Format,
    pub(super) n_rows: u64,
    /// About how many rows the verifier is given at once.
    pub(super) per_count: usize,
    /// The persons of the rows, if rows are not persons.
    pub(super) persons: Option<&'a PersonsOfRows<'a>>,
}

/// Reads a file twice and has it verified. Bounds become labels again. Gives the verifier's counts, and the columns with their
/// distinct texts but without rows.
pub(super) fn read_back(
    written: &WrittenRows<'_>,
    original: Original<'_>,
    released: &ReleasedTable,
    mut verifier: FileVerifier,
    progress: &dyn Progress,
) -> Result<(kohort_verify::Findings, Table), WriteError> {
    let &WrittenRows { path, format, n_rows, per_count, persons } = written;
    let fail = |problem| WriteError::ReadBack(ReadErrors { file: path.to_owned(), problems: vec![problem] });
    let csv = CsvSpec { separator: Some(char::from(original.origin.separator)), ..CsvSpec::default() };
    let open = || -> Result<Pieces<'_>, ReadError> {
        let open = OpenTable::open(path, Some(format.into()), &csv, &Silent)?;
        let every: Vec<usize> = (0..open.names().len()).collect();
        Pieces::of(open, &every)
    };
    let schema = open().map_err(fail)?.schema();
    let of_file: Vec<String> = schema.iter().map(|(field, _)| field.name().clone()).collect();
    let form = match format {
        Format::Csv(_) => Form::Texts,
        Format::Parquet | Format::ArrowFile | Format::ArrowStream => Form::Arrow,
    };
    let mut shown = ShownColumns::new(&of_file, released, original, form);
    let names: Vec<String> = shown.names();
    let is_quasi = |name: &String| {
        let column = released.columns.iter().find(|column| &column.name == name);
        column.is_some_and(|column| matches!(column.cells, Cells::Recoded { .. }))
    };
    let quasi: Vec<bool> = names.iter().map(is_quasi).collect();
    let mut columns = NumberedColumns::new(&schema).map_err(fail)?;
    let table = |columns: &NumberedColumns, shown: &ShownColumns<'_>, rows: Vec<Vec<u32>>| {
        let n_rows = rows.first().map_or(0, Vec::len);
        let column = |((name, texts), ids): ((&String, Texts), Vec<u32>)| Column {
            texts,
            ids,
            ..Column::from_cells(name, Role::Plain, [])
        };
        let columns = names.iter().zip(shown.texts(columns.texts())).zip(rows).map(column).collect();
        Table { name: released.name.clone(), columns, n_rows, person: None }
    };
    for reading in [Reading::Values, Reading::Classes] {
        progress.begin(reading.stage(), n_rows);
        let mut waiting: Vec<Vec<u32>> = vec![Vec::new(); names.len()];
        shown.n_before = 0;
        let mut persons = persons.map(PersonsOfRows::read);
        let mut count = |verifier: &mut FileVerifier, rows: &Table| -> Result<(), WriteError> {
            let persons = persons.as_mut().map(|persons| persons.next(rows.n_rows)).transpose()?;
            reading.count(verifier, rows, persons.as_deref())
        };
        for batch in open().map_err(fail)? {
            let rows = columns.number(&batch.map_err(fail)?, progress).map_err(fail)?;
            let rows = shown.labels(rows, &columns)?;
            progress.advance(rows.first().map_or(0, Vec::len) as u64);
            waiting.iter_mut().zip(rows).for_each(|(waiting, more)| waiting.extend(more));
            let n_rows = waiting.first().map_or(0, Vec::len);
            if n_rows < per_count {
                continue;
            }
            let n_whole = match reading {
                Reading::Values => n_rows,
                Reading::Classes => last_class(&waiting, &quasi),
            };
            if n_whole > 0 {
                let rest = waiting.iter_mut().map(|column| column.split_off(n_whole)).collect();
                let whole = std::mem::replace(&mut waiting, rest);
                count(&mut verifier, &table(&columns, &shown, whole))?;
            }
        }
        if waiting.first().is_some_and(|column| !column.is_empty()) {
            count(&mut verifier, &table(&columns, &shown, waiting))?;
        }
    }
    let findings = verifier.finish().map_err(WriteError::Changed)?;
    Ok((findings, table(&columns, &shown, vec![Vec::new(); names.len()])))
}

/// Why the file is read.
#[derive(Clone, Copy)]
enum Reading {
    Values,
    Classes,
}

impl Reading {
    fn stage(self) -> &'static str {
        match self {
            Reading::Values => "reading what was written",
            Reading::Classes => "verifying what was written",
        }
    }

    fn count(self, verifier: &mut FileVerifier, rows: &Table, persons: Option<&[u32]>) -> Result<(), WriteError> {
        match self {
            Reading::Values => verifier.count_values(rows, persons),
            Reading::Classes => verifier.count_classes(rows, persons),
        }
        .map_err(WriteError::Changed)
    }
}

/// Where the last class begins: rows before are whole classes.
fn last_class(columns: &[Vec<u32>], is_quasi: &[bool]) -> usize {
    let quasi = || columns.iter().zip(is_quasi).filter(|&(_, &is_quasi)| is_quasi).map(|(column, _)| column);
    let n_rows = columns.first().map_or(0, Vec::len);
    let is_last = |row: usize| quasi().all(|column| column[row] == column[n_rows - 1]);
    (0..n_rows).rev().find(|&row| !is_last(row)).map_or(0, |row| row + 1)
}

/// The columns of a file, in which two columns of bounds become one of labels.
struct ShownColumns<'a> {
    columns: Vec<ShownColumn<'a>>,
    /// The rows that came before.
    n_before: u64,
}

/// A released column as the file shows it.
struct ShownColumn<'a> {
    name: String,
    /// Absent if it is one column of the file.
    bounds: Option<Box<BoundColumns<'a>>>,
}

/// Two columns of a file, which hold the bounds of one.
struct BoundColumns<'a> {
    spelled: SpelledLabels<'a>,
    labels: ComposedLabels,
    /// The texts of both columns that were met.
    texts: [Texts; 2],
}

impl<'a> ShownColumns<'a> {
    /// Columns with other names than those of bounds are left as they are, so that the verifier finds the difference.
    fn new(of_file: &[String], released: &'a ReleasedTable, original: Original<'a>, form: Form) -> Self {
        let mut columns = Vec::new();
        let mut next = 0;
        while let Some(name) = of_file.get(next) {
            let bounded = released.columns.iter().find(|column| {
                original.shows_bounds(column) && of_file[next..].iter().take(2).eq(&bound_names(&column.name))
            });
            let column = bounded.and_then(|column| match &column.cells {
                Cells::Recoded { labels, .. } => Some((column, labels)),
                Cells::Copied | Cells::Surrogate { .. } => None,
            });
            columns.push(match column {
                None => ShownColumn { name: name.clone(), bounds: None },
                Some((column, labels)) => {
                    let (source, field) =
                        (&original.table.columns[column.source], original.origin.fields[column.source].as_ref());
                    let spelled = SpelledLabels::new(labels, source, form, field);
                    let bounds = BoundColumns { spelled, labels: ComposedLabels::default(), texts: Default::default() };
                    ShownColumn { name: column.name.clone(), bounds: Some(Box::new(bounds)) }
                }
            });
            next += if column.is_some() { 2 } else { 1 };
        }
        ShownColumns { columns, n_before: 0 }
    }

    fn names(&self) -> Vec<String> {
        self.columns.iter().map(|column| column.name.clone()).collect()
    }

    /// Rows of the file as rows of the release.
    fn labels(&mut self, rows: Vec<Vec<u32>>, columns: &NumberedColumns) -> Result<Vec<Vec<u32>>, WriteError> {
        if self.columns.len() == rows.len() {
            return Ok(rows);
        }
        let (n_rows, n_before) = (rows.first().map_or(0, Vec::len), self.n_before);
        let mut of_file = (0..).zip(rows);
        let mut shown = Vec::with_capacity(self.columns.len());
        for column in &mut self.columns {
            let Some((position, ids)) = of_file.next() else { break };
            let Some(bounds) = &mut column.bounds else {
                shown.push(ids);
                continue;
            };
            let Some((_, highs)) = of_file.next() else { break };
            let BoundColumns { spelled, labels, texts } = bounds.as_mut();
            for (texts, position) in texts.iter_mut().zip(position..) {
                for text in columns.texts_from(position, texts.len()).iter() {
                    texts.push(text);
                }
            }
            let [low_texts, high_texts] = &*texts;
            let label = |low: &str, high: &str| spelled.label(low, high);
            let ids = labels.ids((&ids, low_texts), (&highs, high_texts), label).map_err(|row| {
                let first_row = n_before + row;
                WriteError::Changed(Violation::WrittenCells { column: column.name.clone(), n: 1, first_row }.into())
            })?;
            shown.push(ids);
        }
        self.n_before += n_rows as u64;
        Ok(shown)
    }

    /// The texts of the columns of the release, given those of the file.
    fn texts(&self, of_file: Vec<Texts>) -> Vec<Texts> {
        let mut of_file = of_file.into_iter();
        let texts = |column: &ShownColumn<'_>| match &column.bounds {
            None => of_file.next().unwrap_or_default(),
            Some(bounds) => {
                let _bounds = (of_file.next(), of_file.next());
                bounds.labels.texts().clone()
            }
        };
        self.columns.iter().map(texts).collect()
    }
}
