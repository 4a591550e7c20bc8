//! Bounds: quasi cells as two columns of their own type, `age_lo` and `age_hi`, instead of labels such as `[20,29]`.
//!
//! The private table alone decides which columns have bounds: quasi columns of numbers and times without a hierarchy and
//! without nulls. A null bound stands for anything at all, `*`. In a column with nulls it could also stand for a null, so
//! such columns keep their labels.
//!
//! # Guarantee
//! Labels become bounds and bounds become the same labels again: no two labels share a pair of bounds, and no two pairs
//! share a label.

use std::collections::BTreeSet;

use arrow_schema::{DataType, Field};
use kohort_model::{Cells, Column, NULL, Notation, ReleasedColumn, Role, Table, Texts, Value, ValueType};

use crate::read::{Original, TextDictionary, ValueDictionary};
use crate::{LoadedTable, LoadedTables, WriteError};

/// The form of quasi cells in a released file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellForm {
    /// A value, a range such as `[20,29]`, a hierarchy's label or `*`.
    Labels,
    /// The lowest and the highest value in two columns, if a column can have bounds. Other columns have labels.
    Bounds,
}

impl LoadedTable {
    /// The same table, with quasi cells released in this form.
    ///
    /// # Errors
    /// If a column of bounds would have the name of another released column.
    pub fn released_as(mut self, cells: CellForm) -> Result<Self, WriteError> {
        self.origin.cells = cells;
        self.original().check_bound_names(|_| false)?;
        Ok(self)
    }
}

impl LoadedTables {
    /// The same tables, with quasi cells released in this form.
    ///
    /// # Errors
    /// If a column of bounds would have the name of another released column of its table.
    pub fn released_as(mut self, cells: CellForm) -> Result<Self, WriteError> {
        self.origins.iter_mut().for_each(|origin| origin.cells = cells);
        for (position, original) in self.originals().enumerate() {
            original.check_bound_names(|column| self.schema.joins_by(position, column))?;
        }
        Ok(self)
    }
}

impl Original<'_> {
    /// Checks that no column of bounds would have the name of another column. `is_key_released` tells whether the key column
    /// at a position is released.
    fn check_bound_names(&self, is_key_released: impl Fn(usize) -> bool) -> Result<(), WriteError> {
        let is_released = |position: &usize| match self.table.columns[*position].role {
            Role::Quasi | Role::Sensitive | Role::Plain => true,
            Role::Key => is_key_released(*position),
            Role::Identifier | Role::PersonK | Role::Drop => false,
        };
        let released: Vec<usize> = (0..self.table.columns.len()).filter(is_released).collect();
        let names: BTreeSet<&str> = released.iter().map(|&source| self.table.columns[source].name.as_str()).collect();
        for &source in released.iter().filter(|&&source| self.has_bounds(source)) {
            let column = &self.table.columns[source].name;
            if let Some(bound) = bound_names(column).into_iter().find(|bound| names.contains(bound.as_str())) {
                return Err(WriteError::BoundNameTaken { column: column.clone(), bound });
            }
        }
        Ok(())
    }

    /// Whether a released column is written as bounds.
    pub(crate) fn shows_bounds(&self, column: &ReleasedColumn) -> bool {
        matches!(column.cells, Cells::Recoded { .. }) && self.has_bounds(column.source)
    }

    fn has_bounds(&self, source: usize) -> bool {
        let column = &self.table.columns[source];
        self.origin.cells == CellForm::Bounds
            && column.role == Role::Quasi
            && column.hierarchy.is_none()
            && column.value_type.is_ordered()
            && column.notation.codes.are_none()
            && !column.has_nulls()
    }
}

/// The names of a column's bounds.
pub(crate) fn bound_names(column: &str) -> [String; 2] {
    [format!("{column}_lo"), format!("{column}_hi")]
}

/// The Arrow type of the bounds of a column: the type that the column was read with. A column from CSV gets the type of its
/// values, or text if the Arrow type would spell values in another way.
pub(crate) fn bound_type(column: &Column, field: Option<&Field>) -> DataType {
    match (field, column.value_type) {
        (Some(field), _) => field.data_type().clone(),
        (None, ValueType::Integer) => DataType::Int64,
        (None, ValueType::Float) if !column.notation.decimal_comma => DataType::Float64,
        (None, ValueType::Date) if column.notation.date_format.is_none() => DataType::Date32,
        (None, _) => DataType::Utf8,
    }
}

/// The bounds that a label names. The inner `None` stands for `*`, the outer one for a text that is no label of a column
/// with bounds.
pub(crate) fn split<'a>(label: &'a str, column: &Column) -> Option<Option<(&'a str, &'a str)>> {
    let is_value = |text: &str| Value::parse(text, column.value_type, &column.notation).is_some();
    if label == "*" {
        return Some(None);
    }
    if is_value(label) {
        return Some(Some((label, label)));
    }
    let range = label.strip_prefix('[')?.strip_suffix(']')?;
    let separator = column.notation.range_separator(column.value_type);
    let mut readings = range
        .match_indices(separator)
        .map(|(at, separator)| (&range[..at], &range[at + separator.len()..]))
        .filter(|&(low, high)| is_value(low) && is_value(high));
    let bounds = readings.next()?;
    readings.next().is_none().then_some(Some(bounds))
}

/// The label of the range between two bounds.
pub(crate) fn label(low: &str, high: &str, separator: char) -> String {
    if low == high { low.to_owned() } else { format!("[{low}{separator}{high}]") }
}

/// The character between two bounds. It is the separator of the private column's notation or, if that is not known, one that
/// occurs in no bound.
pub(crate) fn separator(low: &Column, high: &Column, notation: Option<&Notation>) -> char {
    match notation {
        Some(notation) => notation.range_separator(low.value_type),
        None if low.texts.iter().chain(high.texts.iter()).any(|text| text.contains(',')) => ';',
        None => ',',
    }
}

/// The labels of pairs of bounds, numbered in the order in which they are met.
#[derive(Default)]
pub(crate) struct ComposedLabels {
    pairs: ValueDictionary<(u32, u32)>,
    labels: TextDictionary,
    n_labels: u32,
}

impl ComposedLabels {
    /// The numbers of the labels of some rows, given by the ids of their bounds over these texts.
    ///
    /// # Errors
    /// The first of these rows, counted from 1, that has only one bound, or whose label could be taken for another row's.
    pub(crate) fn ids(
        &mut self,
        (lows, low_texts): (&[u32], &Texts),
        (highs, high_texts): (&[u32], &Texts),
        label: impl Fn(&str, &str) -> String,
    ) -> Result<Vec<u32>, u64> {
        let mut ids = Vec::with_capacity(lows.len());
        for (row, (&low, &high)) in lows.iter().zip(highs).enumerate() {
            let id = self.pairs.id((low, high));
            if id == self.n_labels {
                let text = match (low, high) {
                    (NULL, NULL) => "*".to_owned(),
                    (NULL, _) | (_, NULL) => return Err(row as u64 + 1),
                    (low, high) => label(low_texts.get(low), high_texts.get(high)),
                };
                if self.labels.id(&text) != self.n_labels {
                    return Err(row as u64 + 1);
                }
                self.n_labels += 1;
            }
            ids.push(id);
        }
        Ok(ids)
    }

    /// The labels by their numbers.
    pub(crate) fn texts(&self) -> &Texts {
        self.labels.texts()
    }
}

/// Replaces the column at `low` and the one after it by a single column of this name that holds their labels.
///
/// # Errors
/// The first row, counted from 1, that has only one bound, or whose label could be taken for another row's.
pub(crate) fn compose(
    table: &mut Table,
    low: usize,
    name: &str,
    label: impl Fn(&str, &str) -> String,
) -> Result<(), u64> {
    let mut labels = ComposedLabels::default();
    let of = |column: usize| (table.columns[column].ids.as_slice(), &table.columns[column].texts);
    let ids = labels.ids(of(low), of(low + 1), label)?;
    table.columns.remove(low + 1);
    let column = &mut table.columns[low];
    name.clone_into(&mut column.name);
    column.texts = labels.labels.into_texts();
    column.ids = ids;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(value_type: ValueType, notation: Notation) -> Column {
        Column { notation, ..Column::from_cells("x", Role::Quasi, []).typed(value_type) }
    }

    #[test]
    fn labels_are_split_where_they_can_be_read_in_one_way() {
        let ages = column(ValueType::Integer, Notation::default());
        assert_eq!(split("[-5,29]", &ages), Some(Some(("-5", "29"))));
        assert_eq!(split("29", &ages), Some(Some(("29", "29"))));
        assert_eq!(split("*", &ages), Some(None));
        for bad in ["", "[20]", "[20,]", "[20;29]", "[a,b]", "20,29", "[20,29,30]"] {
            assert_eq!(split(bad, &ages), None, "{bad}");
        }
        let comma =
            column(ValueType::Decimal, Notation { decimal_comma: true, date_format: None, ..Notation::default() });
        assert_eq!(split("[1,5;2]", &comma), Some(Some(("1,5", "2"))));
        let format = Some("%d %b, %Y".to_owned());
        let dates =
            column(ValueType::Date, Notation { decimal_comma: false, date_format: format, ..Notation::default() });
        assert_eq!(split("[01 May, 1990,02 May, 1990]", &dates), Some(Some(("01 May, 1990", "02 May, 1990"))));
    }

    fn composed(lows: &[Option<&str>], highs: &[Option<&str>]) -> Result<Vec<String>, u64> {
        let of = |name: &str, cells: &[Option<&str>]| Column::from_cells(name, Role::Quasi, cells.iter().copied());
        let columns = vec![of("ward", lows), of("age_lo", lows), of("age_hi", highs)];
        let mut table = Table { name: "t".to_owned(), columns, n_rows: lows.len(), person: None };
        compose(&mut table, 1, "age", |low, high| label(low, high, ','))?;
        assert_eq!(table.columns.len(), 2);
        assert_eq!(table.columns[1].name, "age");
        Ok((0..lows.len()).map(|row| table.columns[1].cell(row).unwrap_or("null").to_owned()).collect())
    }

    #[test]
    fn bounds_become_the_labels_they_were() {
        let cells = composed(&[Some("1"), Some("1"), None, Some("1")], &[Some("2"), Some("1"), None, Some("2")]);
        assert_eq!(cells.unwrap(), ["[1,2]", "1", "*", "[1,2]"]);
    }

    #[test]
    fn a_bound_without_its_partner_is_found() {
        assert_eq!(composed(&[Some("1"), Some("1")], &[Some("2"), None]), Err(2));
        assert_eq!(composed(&[None], &[Some("2")]), Err(1));
    }

    #[test]
    fn pairs_that_would_look_alike_are_found() {
        assert_eq!(composed(&[Some("1,2"), Some("1")], &[Some("3"), Some("2,3")]), Err(2));
        assert_eq!(composed(&[None, Some("*")], &[None, Some("*")]), Err(2));
    }
}
