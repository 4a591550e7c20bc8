//! [`TableDescription`]: the columns, keys and indexes of a table.

use std::collections::HashSet;

use arrow_schema::{DataType, Field};

use crate::StoreError;
use crate::encoding::StoredType;

/// SQLite allows 2,000 columns, and the store adds one for the row number.
const MOST_COLUMNS: usize = 1_999;

/// The column of row numbers in a scan that asks for them. No column of a table may have this name.
pub const ROW_NUMBER: &str = "kohort row number";

/// A table's name, columns, keys and indexes. Names are compared by their bytes: `Zip` and `zip` differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableDescription {
    /// Any text except the empty one.
    pub name: String,
    /// The columns in their order.
    pub columns: Vec<ColumnDescription>,
    /// Columns that always have a value and in which no two rows are equal. Empty if there is no primary key.
    pub primary_key: Vec<String>,
    /// Indexes except the one of the primary key.
    pub indexes: Vec<IndexDescription>,
    /// Whether users see the table.
    pub kind: TableKind,
}

/// One column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDescription {
    /// Any text except the empty one and [`ROW_NUMBER`].
    pub name: String,
    /// One of the supported types: booleans, signed integers of up to 64 bits, unsigned ones of up to 32 bits,
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
    /// Whether rows may be equal in these columns.
    pub uniqueness: Uniqueness,
}

/// Whether rows may be equal in the columns of an index. A row with a missing value equals no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uniqueness {
    /// Rows may be equal.
    Plain,
    /// No two rows may be equal.
    Unique,
}

/// Whether users see a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableKind {
    /// A table that a user created.
    Base,
    /// A table with data of a view, which users do not see.
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

    /// Checks that such a table can be created.
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
            return bad("the column name 'kohort row number' is reserved");
        }
        for column in &self.columns {
            StoredType::of(column)?;
        }
        for position in self.positions(&self.primary_key)? {
            if self.columns[position].nullable {
                return bad("a column of the primary key is nullable");
            }
        }
        for index in &self.indexes {
            self.validate_index(&index.columns)?;
        }
        if self.primary_key.is_empty() { Ok(()) } else { self.validate_index(&self.primary_key) }
    }

    /// Checks that an index over these columns can be created.
    pub(crate) fn validate_index(&self, columns: &[String]) -> Result<(), StoreError> {
        let positions = self.positions(columns)?;
        let distinct: HashSet<usize> = positions.iter().copied().collect();
        if positions.is_empty() || distinct.len() < positions.len() {
            let why = "an index needs at least one column, and each only once".to_owned();
            return Err(StoreError::BadDescription { table: self.name.clone(), why });
        }
        Ok(())
    }
}
