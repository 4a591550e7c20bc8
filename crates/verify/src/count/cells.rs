//! [`CellIds`]: one number per row of a column. Two cells have the same number exactly if they count as equal.
//!
//! Quasi cells and persons are equal if their texts are. Sensitive cells are equal if their values are: `1.5` and
//! `1.50` are one decimal, so that spelling adds no diversity. With a hierarchy they are equal by text, because each
//! text is a node of its own. Null is equal only to null.

use std::borrow::Cow;
use std::collections::HashMap;

use kohort_model::{Column, NULL, Texts, ValueType};
use rayon::prelude::*;

/// One number per row.
#[derive(Clone)]
pub(crate) struct CellIds<'a> {
    ids: Cow<'a, [u32]>,
    /// The position in `ids` of each row, if the rows are a selection.
    rows: Option<&'a [u32]>,
    /// The number of each id, if ids are not the numbers.
    numbers: Option<Vec<u32>>,
    /// The number of null. All other numbers are below it.
    null: u32,
}

impl<'a> CellIds<'a> {
    /// Cells that are equal if their ids are. Ids are below `n_texts`.
    pub(crate) fn by_id(ids: impl Into<Cow<'a, [u32]>>, n_texts: usize) -> Self {
        CellIds { ids: ids.into(), rows: None, numbers: None, null: n_texts as u32 }
    }

    /// Cells that are equal if their texts are, even if the dictionary holds a text twice.
    pub(crate) fn by_text(ids: &'a [u32], texts: &Texts) -> Self {
        let (numbers, n_distinct) = number_texts(texts);
        CellIds { ids: Cow::Borrowed(ids), rows: None, numbers: Some(numbers), null: n_distinct as u32 }
    }

    /// A selection of these cells, by row.
    pub(crate) fn of_rows(mut self, rows: Option<&'a [u32]>) -> Self {
        self.rows = rows;
        self
    }

    /// The number of a row's cell.
    #[inline]
    pub(crate) fn get(&self, row: usize) -> u32 {
        let row = match self.rows {
            None => row,
            Some(rows) => rows[row] as usize,
        };
        let id = self.ids[row];
        match &self.numbers {
            _ if id == NULL => self.null,
            None => id,
            Some(numbers) => numbers[id as usize],
        }
    }

    /// The number that `get` gives cells with this id, which must not be null.
    pub(crate) fn number(&self, id: u32) -> u32 {
        self.numbers.as_ref().map_or(id, |numbers| numbers[id as usize])
    }

    /// All numbers, that of null included, are below this.
    pub(crate) fn n_numbers(&self) -> usize {
        self.null as usize + 1
    }

    /// The number of a null cell.
    pub(crate) fn null(&self) -> u32 {
        self.null
    }
}

/// The cells of a sensitive column, numbered by value.
#[derive(Clone)]
pub(crate) struct ValueIds<'a> {
    /// The number of the value in each row.
    pub(crate) cells: CellIds<'a>,
    /// For each value except null, the id of one of its texts.
    pub(crate) spellings: Vec<u32>,
}

impl<'a> ValueIds<'a> {
    /// The cells `ids` over `texts`, with the meaning that `column` gives them.
    pub(crate) fn new(ids: &'a [u32], texts: &Texts, column: &Column) -> Self {
        let n_texts = texts.len() as u32;
        if column.hierarchy.is_some() || column.value_type == ValueType::Text {
            return ValueIds { cells: CellIds::by_id(ids, texts.len()), spellings: (0..n_texts).collect() };
        }
        let order = in_order(texts, column, (0..n_texts).collect());
        let mut numbers = vec![0; texts.len()];
        let mut spellings: Vec<u32> = Vec::new();
        for id in order {
            let parse = |id| kohort_model::Value::parse(texts.get(id), column.value_type, &column.notation);
            let same =
                spellings.last().is_some_and(|&last| matches!((parse(last), parse(id)), (Some(a), Some(b)) if a == b));
            if !same {
                spellings.push(id);
            }
            numbers[id as usize] = spellings.len() as u32 - 1;
        }
        let null = spellings.len() as u32;
        ValueIds { cells: CellIds { ids: Cow::Borrowed(ids), rows: None, numbers: Some(numbers), null }, spellings }
    }
}

/// Texts in the order of their values. Texts that are not of the column's type come last. Ties are ordered by text.
pub(crate) fn in_order(texts: &Texts, column: &Column, ids: Vec<u32>) -> Vec<u32> {
    let mut keyed: Vec<_> = ids
        .into_par_iter()
        .with_min_len(1 << 10)
        .map(|id| {
            let text = texts.get(id);
            let value = kohort_model::Value::parse(text, column.value_type, &column.notation);
            (value.is_none(), value, text, id)
        })
        .collect();
    keyed.par_sort_unstable();
    keyed.into_iter().map(|(_, _, _, id)| id).collect()
}

/// A number for each text, equal for equal texts, and how many numbers there are.
fn number_texts(texts: &Texts) -> (Vec<u32>, usize) {
    let mut known: HashMap<&str, u32> = HashMap::with_capacity(texts.len());
    let numbers = texts
        .iter()
        .map(|text| {
            let next = known.len() as u32;
            *known.entry(text).or_insert(next)
        })
        .collect();
    (numbers, known.len())
}

#[cfg(test)]
mod tests {
    use kohort_model::Role;

    use super::*;

    #[test]
    fn a_repeated_text_is_the_same_cell() {
        let labels: Texts = ["a", "b", "a"].into_iter().collect();
        let cells = CellIds::by_text(&[0, 1, 2, NULL], &labels);
        assert_eq!((0..4).map(|row| cells.get(row)).collect::<Vec<_>>(), [0, 1, 0, 2]);
        assert_eq!(cells.n_numbers(), 3);
    }

    #[test]
    fn spelling_adds_no_value_unless_a_hierarchy_tells_texts_apart() {
        let cells = [Some("1.50"), Some("1.5"), None, Some("-2"), Some("x"), Some("y")];
        let column = Column::from_cells("dose", Role::Sensitive, cells).typed(ValueType::Decimal);
        let values = ValueIds::new(&column.ids, &column.texts, &column);
        assert_eq!((0..6).map(|row| values.cells.get(row)).collect::<Vec<_>>(), [1, 1, 4, 0, 2, 3]);
        let hierarchy = kohort_model::Hierarchy::flat("*", column.texts.iter());
        let column = column.with_hierarchy(hierarchy);
        let values = ValueIds::new(&column.ids, &column.texts, &column);
        assert_ne!(values.cells.get(0), values.cells.get(1));
    }
}
