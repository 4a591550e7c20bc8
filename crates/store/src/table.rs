//! [`TableDescription`]: what a table of the store looks like.

use std::collections::HashSet;

use arrow_schema::{DataType, Field};

use crate::StoreError;
use crate::encoding::StoredType;

/// SQLite's own limit is 2,000 columns; the store adds one for the number of the row.
const MOST_COLUMNS: usize = 1_999;

/// The column in which rows carry their numbers, where they are asked for. No column of a table has this name.
pub const ROW_NUMBER: &str = "kohort row number";

/// A table's name, columns, keys and indexes. Names are compared by their bytes: `Zip` and `zip` differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableDescription {
    /// Any text but the empty one.
    pub name: String,
    /// The columns in their order.
    pub columns: Vec<ColumnDescription>,
    /// Columns that no two rows agree in, and that always have a value. Empty: no primary key.
    pub primary_key: Vec<String>,
    /// Indexes besides that of the primary key.
    pub indexes: Vec<IndexDescription>,
    /// Who the table is for.
    pub kind: TableKind,
}

/// One column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDescription {
    /// Any text but the empty one and [`ROW_NUMBER`].
    pub name: String,
    /// One of the types that the store keeps: booleans, integers of up to 64 bits with a sign or up to 32 without,
    /// `Float64`, `Utf8`, `Binary`, `Date32`, `Timestamp` in microseconds, `Decimal128`.
    pub data_type: DataType,
    /// Whether values may be missing.
    pub nullable: bool,
}

impl ColumnDescription {
    /// The column as Arrow describes it.
    pub fn field(&self) -> Field {
        Field::new(&self.name, self.data_type.clone(), self.nullable)
    }
}

/// An index over columns of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexDescription {
    /// The columns in the order of the index.
    pub columns: Vec<String>,
    /// Whether rows may agree in them.
    pub uniqueness: Uniqueness,
}

/// Whether rows may agree in the columns of an index. Rows with a missing value agree with none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uniqueness {
    /// Rows may agree.
    Plain,
    /// No two rows agree.
    Unique,
}

/// Who a table is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableKind {
    /// A table that a user made.
    Base,
    /// A table that keeps what a view is made of; users are not shown it.
    Hidden,
}

impl TableDescription {
    /// The position of a column.
    pub(crate) fn position(&self, column: &str) -> Result<usize, StoreError> {
        let unknown = || StoreError::UnknownColumn { table: self.name.clone(), column: column.to_owned() };
        self.columns.iter().position(|described| described.name == column).ok_or_else(unknown)
    }

    /// The positions of columns.
    pub(crate) fn positions(&self, columns: &[String]) -> Result<Vec<usize>, StoreError> {
        columns.iter().map(|column| self.position(column)).collect()
    }

    /// Whether such a table can be made.
    pub(crate) fn validate(&self) -> Result<(), StoreError> {
        let bad = |why: &str| Err(StoreError::BadDescription { table: self.name.clone(), why: why.to_owned() });
        if self.name.is_empty() || self.columns.iter().any(|column| column.name.is_empty()) {
            return bad("a name is empty");
        }
        if self.columns.is_empty() {
            return bad("it has no columns");
        }
        if self.columns.len() > MOST_COLUMNS {
            return bad("it has more than 1,999 columns");
        }
        let names: HashSet<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
        if names.len() < self.columns.len() {
            return bad("two columns have the same name");
        }
        if names.contains(ROW_NUMBER) {
            return bad("a column is named 'kohort row number', as the numbers of rows are");
        }
        for column in &self.columns {
            StoredType::of(column)?;
        }
        for position in self.positions(&self.primary_key)? {
            if self.columns[position].nullable {
                return bad("a column of the primary key may be missing");
            }
        }
        for index in &self.indexes {
            self.validate_index(&index.columns)?;
        }
        if self.primary_key.is_empty() { Ok(()) } else { self.validate_index(&self.primary_key) }
    }

    /// Whether an index over these columns can be made.
    pub(crate) fn validate_index(&self, columns: &[String]) -> Result<(), StoreError> {
        let positions = self.positions(columns)?;
        let distinct: HashSet<usize> = positions.iter().copied().collect();
        if positions.is_empty() || distinct.len() < positions.len() {
            let why = "an index needs one column or more, each named once".to_owned();
            return Err(StoreError::BadDescription { table: self.name.clone(), why });
        }
        Ok(())
    }
}
