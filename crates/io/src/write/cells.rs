//! [`FileColumn`]: a column of the file to be written, and what each of its cells shows, wherever that is kept.

use std::borrow::Cow;
use std::ops::Range;

use arrow_schema::DataType;
use kohort_model::{Cells, NULL, ReleasedTable, Texts};

use super::error::WriteError;
use crate::bounds::{bound_names, split};
use crate::read::{Original, TextDictionary};

/// A column of the file to be written.
pub(super) struct FileColumn<'a> {
    pub(super) name: Cow<'a, str>,
    /// Position of the private column it comes from.
    pub(super) source: usize,
    pub(super) kind: Kind,
    pub(super) ids: CellIds<'a>,
    /// What the ids stand for; they are numbers themselves where it is `None`.
    pub(super) texts: Option<Cow<'a, Texts>>,
}

/// What a column of the file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Labels of generalized cells.
    Labels,
    /// The lower or the upper ends of generalized cells.
    Bounds,
    /// Private cells as they are.
    Copied,
    /// Keys renumbered.
    Numbers,
}

/// The columns of a released table's file.
pub(super) fn file_columns<'a>(
    released: &'a ReleasedTable,
    original: Original<'a>,
) -> Result<Vec<FileColumn<'a>>, WriteError> {
    let mut columns = Vec::new();
    for column in &released.columns {
        let source = &original.table.columns[column.source];
        let mut add = |name: Cow<'a, str>, kind, ids, texts| {
            columns.push(FileColumn { name, source: column.source, kind, ids, texts });
        };
        let name = Cow::Borrowed(column.name.as_str());
        match &column.cells {
            Cells::Recoded { labels, ids } if original.shows_bounds(column) => {
                let bounds: Option<Vec<_>> = labels.iter().map(|label| split(label, source)).collect();
                let bounds = bounds.ok_or_else(|| WriteError::NoBounds { column: column.name.clone() })?;
                let [low, high] = bound_names(&column.name);
                let (lows, texts) = numbered(bounds.iter().map(|bounds| bounds.map(|(low, _)| low)));
                let lows = CellIds::Renumbered { ids: CellsOf::Released(ids), numbers: lows };
                add(low.into(), Kind::Bounds, lows, Some(Cow::Owned(texts)));
                let (highs, texts) = numbered(bounds.iter().map(|bounds| bounds.map(|(_, high)| high)));
                let highs = CellIds::Renumbered { ids: CellsOf::Released(ids), numbers: highs };
                add(high.into(), Kind::Bounds, highs, Some(Cow::Owned(texts)));
            }
            Cells::Recoded { labels, ids } => {
                let (ids, texts) = shown_alone(CellsOf::Released(ids), labels, released.rows.len());
                add(name, Kind::Labels, ids, Some(Cow::Owned(texts)));
            }
            Cells::Copied => {
                let cells = CellsOf::Private { ids: &source.ids, rows: &released.rows };
                let field = original.origin.fields[column.source].as_ref();
                let is_dictionary = field.is_some_and(|field| matches!(field.data_type(), DataType::Dictionary(..)));
                if is_dictionary {
                    let (ids, texts) = shown_alone(cells, &source.texts, released.rows.len());
                    add(name, Kind::Copied, ids, Some(Cow::Owned(texts)));
                } else {
                    add(name, Kind::Copied, CellIds::Plain(cells), Some(Cow::Borrowed(&source.texts)));
                }
            }
            Cells::Surrogate { ids } => add(name, Kind::Numbers, CellIds::Plain(CellsOf::Released(ids)), None),
        }
    }
    Ok(columns)
}

/// Texts by number, each distinct one once.
fn numbered<'a>(texts: impl Iterator<Item = Option<&'a str>>) -> (Vec<u32>, Texts) {
    let mut dictionary = TextDictionary::default();
    let ids = texts.map(|text| text.map_or(NULL, |text| dictionary.id(text))).collect();
    (ids, dictionary.into_texts())
}

/// The texts that some released cell shows, in the order of released rows, and the cells by these. The dictionary of an
/// Arrow file has all texts it is given, so it must not be given those of rows that were left out.
fn shown_alone<'a>(cells: CellsOf<'a>, texts: &Texts, n_rows: usize) -> (CellIds<'a>, Texts) {
    let mut numbers = vec![NULL; texts.len()];
    let mut shown = Texts::new();
    for row in 0..n_rows {
        let id = cells.id(row);
        if id != NULL && numbers[id as usize] == NULL {
            numbers[id as usize] = shown.push(texts.get(id));
        }
    }
    (CellIds::Renumbered { ids: cells, numbers }, shown)
}

/// Where the ids of a column's cells are.
#[derive(Clone, Copy)]
pub(super) enum CellsOf<'a> {
    /// Per released row.
    Released(&'a [u32]),
    /// Per private row, and which private row each released one is.
    Private { ids: &'a [u32], rows: &'a [u32] },
}

impl CellsOf<'_> {
    fn id(&self, row: usize) -> u32 {
        match self {
            CellsOf::Released(ids) => ids[row],
            CellsOf::Private { ids, rows } => ids[rows[row] as usize],
        }
    }
}

/// The ids of a column's cells.
pub(super) enum CellIds<'a> {
    /// As they are.
    Plain(CellsOf<'a>),
    /// And per id another number.
    Renumbered { ids: CellsOf<'a>, numbers: Vec<u32> },
}

impl CellIds<'_> {
    /// The id in a released row, [`NULL`] for a null.
    pub(super) fn id(&self, row: usize) -> u32 {
        match self {
            CellIds::Plain(cells) => cells.id(row),
            CellIds::Renumbered { ids, numbers } => match ids.id(row) {
                NULL => NULL,
                id => numbers[id as usize],
            },
        }
    }

    /// The ids of a range of released rows.
    pub(super) fn of_rows(&self, rows: Range<usize>) -> Vec<u32> {
        rows.map(|row| self.id(row)).collect()
    }
}

/// Whether an id stands for a value.
pub(super) fn is_value(id: &u32) -> bool {
    *id != NULL
}
