//! [`FileColumn`]: a column of the file to be written, and what each of its cells shows, wherever that is kept.

use std::borrow::Cow;
use std::ops::Range;

use kohort_model::{Cells, NULL, ReleasedTable, Texts};

use super::problem::WriteProblem;
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
) -> Result<Vec<FileColumn<'a>>, WriteProblem> {
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
                let bounds = bounds.ok_or_else(|| WriteProblem::NoBounds { column: column.name.clone() })?;
                let [low, high] = bound_names(&column.name);
                let (lows, texts) = numbered(bounds.iter().map(|bounds| bounds.map(|(low, _)| low)));
                add(low.into(), Kind::Bounds, CellIds::Bounds { labels: ids, bounds: lows }, Some(Cow::Owned(texts)));
                let (highs, texts) = numbered(bounds.iter().map(|bounds| bounds.map(|(_, high)| high)));
                add(high.into(), Kind::Bounds, CellIds::Bounds { labels: ids, bounds: highs }, Some(Cow::Owned(texts)));
            }
            Cells::Recoded { labels, ids } => {
                add(name, Kind::Labels, CellIds::Released(ids), Some(Cow::Borrowed(labels)));
            }
            Cells::Copied => {
                let ids = CellIds::Private { ids: &source.ids, rows: &released.rows };
                add(name, Kind::Copied, ids, Some(Cow::Borrowed(&source.texts)));
            }
            Cells::Surrogate { ids } => add(name, Kind::Numbers, CellIds::Released(ids), None),
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

/// The ids of a column's cells.
pub(super) enum CellIds<'a> {
    /// Per released row.
    Released(&'a [u32]),
    /// Per released row a label, and per label its bound.
    Bounds { labels: &'a [u32], bounds: Vec<u32> },
    /// Per private row, and which private row each released one is.
    Private { ids: &'a [u32], rows: &'a [u32] },
}

impl CellIds<'_> {
    /// The id in a released row, [`NULL`] for a null.
    pub(super) fn id(&self, row: usize) -> u32 {
        match self {
            CellIds::Released(ids) => ids[row],
            CellIds::Bounds { labels, bounds } => match labels[row] {
                NULL => NULL,
                label => bounds[label as usize],
            },
            CellIds::Private { ids, rows } => ids[rows[row] as usize],
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
