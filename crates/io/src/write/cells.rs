//! [`FileColumn`]: a column of the file to be written, and the text of each of its cells.

use std::borrow::Cow;
use std::ops::Range;

use arrow_schema::DataType;
use kohort_model::{Cells, Column, NULL, ReleasedTable, Texts};

use super::error::WriteError;
use crate::bounds::{bound_names, split};
use crate::read::{Original, TextDictionary};

/// A column of the file to be written.
pub(crate) struct FileColumn<'a> {
    pub(crate) name: Cow<'a, str>,
    /// The position of the private column that the cells come from.
    pub(crate) source: usize,
    pub(crate) kind: Kind,
    pub(crate) ids: CellIds<'a>,
    /// The texts that the ids stand for. `None` if the ids are numbers that are written themselves.
    pub(crate) texts: Option<Cow<'a, Texts>>,
}

/// What a column of the file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Labels of generalized cells.
    Labels,
    /// The lower or the upper ends of generalized cells.
    Bounds,
    /// Private cells as they are.
    Copied,
    /// Renumbered keys.
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
                for ShownBounds { name, numbers, texts } in ShownBounds::both(&column.name, labels, source)? {
                    let cells = CellIds::Renumbered { ids: CellsOf::Released(ids), numbers };
                    add(name.into(), Kind::Bounds, cells, Some(Cow::Owned(texts)));
                }
            }
            Cells::Recoded { labels, ids } => {
                let (ids, texts) = shown_alone(CellsOf::Released(ids), labels, released.rows.len(), Sorted::AsLabels);
                add(name, Kind::Labels, ids, Some(Cow::Owned(texts)));
            }
            Cells::Copied => {
                let cells = CellsOf::Private { ids: &source.ids, rows: &released.rows };
                let field = original.origin.fields[column.source].as_ref();
                let is_dictionary = field.is_some_and(|field| matches!(field.data_type(), DataType::Dictionary(..)));
                if is_dictionary {
                    let (ids, texts) = shown_alone(cells, &source.texts, released.rows.len(), Sorted::ByText);
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

/// The lower or the upper bounds of a column's labels.
pub(crate) struct ShownBounds {
    /// The name of their column in the file.
    pub(crate) name: String,
    /// For each label the number of its bound, [`NULL`] for a label that stands for anything.
    pub(crate) numbers: Vec<u32>,
    pub(crate) texts: Texts,
}

impl ShownBounds {
    /// The lower bounds and the upper ones. `source` is the private column.
    pub(crate) fn both(name: &str, labels: &Texts, source: &Column) -> Result<[ShownBounds; 2], WriteError> {
        let bounds: Option<Vec<_>> = labels.iter().map(|label| split(label, source)).collect();
        let bounds = bounds.ok_or_else(|| WriteError::NoBounds { column: name.to_owned() })?;
        let [low, high] = bound_names(name);
        let of = |name: String, (numbers, texts): (Vec<u32>, Texts)| ShownBounds { name, numbers, texts };
        Ok([
            of(low, numbered(bounds.iter().map(|bounds| bounds.map(|(low, _)| low)))),
            of(high, numbered(bounds.iter().map(|bounds| bounds.map(|(_, high)| high)))),
        ])
    }
}

/// The distinct texts, and for each given text its number among them.
fn numbered<'a>(texts: impl Iterator<Item = Option<&'a str>>) -> (Vec<u32>, Texts) {
    let mut dictionary = TextDictionary::default();
    let ids = texts.map(|text| text.map_or(NULL, |text| dictionary.id(text))).collect();
    (ids, dictionary.into_texts())
}

/// The texts that released cells show, in the order that `sorted` gives them, and the cells as ids of these texts. An Arrow file
/// stores its whole dictionary, so texts of rows that were left out must not be in it, and its order must not tell the order of
/// private rows.
fn shown_alone<'a>(cells: CellsOf<'a>, texts: &Texts, n_rows: usize, sorted: Sorted) -> (CellIds<'a>, Texts) {
    let mut is_shown = vec![false; texts.len()];
    for id in (0..n_rows).map(|row| cells.id(row)).filter(is_value) {
        is_shown[id as usize] = true;
    }
    let mut ids: Vec<u32> = (0..texts.len() as u32).filter(|&id| is_shown[id as usize]).collect();
    if sorted == Sorted::ByText {
        ids.sort_unstable_by_key(|&id| texts.get(id));
    }
    let (mut numbers, mut shown) = (vec![NULL; texts.len()], Texts::new());
    ids.into_iter().for_each(|id| numbers[id as usize] = shown.push(texts.get(id)));
    (CellIds::Renumbered { ids: cells, numbers }, shown)
}

/// The order of the texts in a dictionary.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sorted {
    /// As the labels of a release are, which have the order of their values.
    AsLabels,
    /// By their bytes.
    ByText,
}

/// Where the ids of a column's cells are.
#[derive(Clone, Copy)]
pub(crate) enum CellsOf<'a> {
    /// One id for each released row.
    Released(&'a [u32]),
    /// One id for each private row, and for each released row the private row that it comes from.
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
pub(crate) enum CellIds<'a> {
    /// The ids as they are.
    Plain(CellsOf<'a>),
    /// Each id is replaced by another number.
    Renumbered { ids: CellsOf<'a>, numbers: Vec<u32> },
}

impl CellIds<'_> {
    /// The id in a released row, [`NULL`] for a null.
    pub(crate) fn id(&self, row: usize) -> u32 {
        match self {
            CellIds::Plain(cells) => cells.id(row),
            CellIds::Renumbered { ids, numbers } => match ids.id(row) {
                NULL => NULL,
                id => numbers[id as usize],
            },
        }
    }

    /// The ids of a range of released rows.
    pub(crate) fn of_rows(&self, rows: Range<usize>) -> Vec<u32> {
        rows.map(|row| self.id(row)).collect()
    }
}

/// Whether an id stands for a value.
pub(super) fn is_value(id: &u32) -> bool {
    *id != NULL
}
