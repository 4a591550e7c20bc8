//! [`Layout`]: the hidden tables of a materialized view.
//!
//! | table | a row of it |
//! | --- | --- |
//! | rows | a row of the view: where it is, and its cells |
//! | classes | a class and its labels |
//! | values | a value of a column and its number |
//! | choices | what persons allow, each different choice once |
//! | past | what readers have seen of a person |

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use kohort_model::Role;
use kohort_store::{ColumnDescription, IndexDescription, TableDescription, TableKind, Uniqueness};

use super::error::MaterializedError;
use crate::view::Definition;

/// Columns of the table of rows before its cells.
pub(super) const NAME: &str = "name";
pub(super) const PLACE: &str = "place";
pub(super) const CLASS: &str = "class";
pub(super) const ATOM: &str = "atom";
pub(super) const LEAVES: &str = "leaves";
pub(super) const SINCE: &str = "since";
pub(super) const OWN_K: &str = "k";
pub(super) const NODES: &str = "nodes";
pub(super) const TUPLE: &str = "tuple";
pub(super) const CHOICE: &str = "choice";
/// Columns of the table of classes before its labels.
pub(super) const IS_ALONE: &str = "alone";
pub(super) const IS_RESTRICTED: &str = "restricted";
/// Columns of other tables.
pub(super) const POSITION: &str = "position";
pub(super) const NUMBER: &str = "number";
pub(super) const TEXT: &str = "text";

/// Stands between the name of a view and the name of a hidden table. Names of users' tables can't contain it.
const SEPARATOR: char = '\u{1f}';

/// The names of the hidden tables of a view, and of their columns.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) definition: Arc<Definition>,
    pub(super) rows: String,
    pub(super) classes: String,
    pub(super) values: String,
    pub(super) choices: String,
    pub(super) past: String,
    /// Names of the columns of cells in the table of rows, per column of the view.
    pub(super) cells: Vec<String>,
    /// Names of the columns of labels in the table of classes, per quasi column.
    pub(super) labels: Vec<String>,
}

impl Layout {
    pub(super) fn of(definition: Arc<Definition>) -> Layout {
        let [rows, classes, values, choices, past] = Layout::names(&definition.name);
        let of_columns = |n: usize| (0..n).map(|position| format!("c{position}")).collect();
        Layout {
            rows,
            classes,
            values,
            choices,
            past,
            cells: of_columns(definition.columns.len()),
            labels: of_columns(definition.with_role(Role::Quasi).len()),
            definition,
        }
    }

    /// The error for tables that do not hold what kohort writes to them.
    pub(super) fn damaged(&self) -> MaterializedError {
        MaterializedError::Damaged { view: self.definition.name.clone() }
    }

    /// The names of the hidden tables of a view, in the order of the list above.
    pub(super) fn names(view: &str) -> [String; 5] {
        ["rows", "classes", "values", "choices", "past"].map(|what| format!("view {view}{SEPARATOR}{what}"))
    }

    /// All hidden tables; the table of choices has the columns of the policies.
    pub(super) fn tables(&self, policies: Option<&Schema>) -> Vec<TableDescription> {
        let mut rows = vec![
            column(NAME, DataType::Utf8),
            column(PLACE, DataType::Int64),
            maybe(CLASS, DataType::Int64),
            maybe(ATOM, DataType::Int64),
            column(LEAVES, DataType::Boolean),
            column(SINCE, DataType::Timestamp(TimeUnit::Microsecond, None)),
            column(OWN_K, DataType::Int64),
            column(NODES, DataType::Utf8),
            column(TUPLE, DataType::Utf8),
            maybe(CHOICE, DataType::Int64),
        ];
        let cells = self.cells.iter().zip(&self.definition.columns);
        rows.extend(cells.map(|(name, shown)| maybe(name, shown.data_type.clone())));
        let mut classes = vec![
            column(CLASS, DataType::Int64),
            column(IS_ALONE, DataType::Boolean),
            column(IS_RESTRICTED, DataType::Boolean),
        ];
        classes.extend(self.labels.iter().map(|name| maybe(name, DataType::Utf8)));
        let values =
            vec![column(POSITION, DataType::Int64), column(NUMBER, DataType::Int64), maybe(TEXT, DataType::Utf8)];
        let mut choices = vec![column(NUMBER, DataType::Int64), column(IS_RESTRICTED, DataType::Boolean)];
        let of_policies = policies.into_iter().flat_map(|schema| schema.fields().iter());
        choices.extend(
            of_policies.enumerate().map(|(position, field): (usize, &Arc<Field>)| {
                maybe(&format!("p{position}"), field.data_type().clone())
            }),
        );
        let past = vec![column(NAME, DataType::Utf8), column(TEXT, DataType::Utf8)];
        vec![
            table(&self.rows, rows, vec![index(&[NAME]), index(&[CLASS, PLACE]), index(&[ATOM])]),
            table(&self.classes, classes, vec![index(&[CLASS])]),
            table(&self.values, values, Vec::new()),
            table(&self.choices, choices, Vec::new()),
            table(&self.past, past, vec![index(&[NAME])]),
        ]
    }
}

fn column(name: &str, data_type: DataType) -> ColumnDescription {
    ColumnDescription { name: name.to_owned(), data_type, nullable: false }
}

fn maybe(name: &str, data_type: DataType) -> ColumnDescription {
    ColumnDescription { name: name.to_owned(), data_type, nullable: true }
}

fn index(columns: &[&str]) -> IndexDescription {
    let columns = columns.iter().map(|&name| name.to_owned()).collect();
    IndexDescription { columns, uniqueness: Uniqueness::Plain }
}

fn table(name: &str, columns: Vec<ColumnDescription>, indexes: Vec<IndexDescription>) -> TableDescription {
    TableDescription { name: name.to_owned(), columns, primary_key: Vec::new(), indexes, kind: TableKind::Hidden }
}

/// Columns as a batch. All are nullable here; the store checks which may be null.
pub(super) fn batch<'n>(columns: impl IntoIterator<Item = (&'n str, ArrayRef)>) -> RecordBatch {
    let columns = columns.into_iter().map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(columns).expect("columns are of one length")
}

pub(super) fn integers(cells: impl Iterator<Item = impl Into<Option<i64>>>) -> ArrayRef {
    Arc::new(cells.map(Into::into).collect::<Int64Array>())
}

pub(super) fn texts<T: AsRef<str>>(cells: impl Iterator<Item = Option<T>>) -> ArrayRef {
    Arc::new(cells.collect::<StringArray>())
}

pub(super) fn truths(cells: impl Iterator<Item = bool>) -> ArrayRef {
    Arc::new(cells.map(Some).collect::<BooleanArray>())
}

/// The same time in all rows.
pub(super) fn times(now: i64, n_rows: usize) -> ArrayRef {
    Arc::new(TimestampMicrosecondArray::from(vec![now; n_rows]))
}
