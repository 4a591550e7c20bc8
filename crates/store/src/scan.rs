//! [`ScanRequest`]: which rows and columns of a table to read; [`Rows`]: the result.

use std::fmt;

use rusqlite::types::Value as Stored;

use crate::StoreError;
use crate::catalog::Table;
use crate::encoding::{Bound, StoredType, decimal, float_to_stored};

mod rows;

pub use rows::Rows;
pub(crate) use rows::bind;

/// The number of the first parameter for values of conditions. The parameters before it are the bounds of a batch.
const FIRST_VALUE: usize = 3;

/// SQLite allows at most 32,766 parameters of a statement, and at most 1,000 nested expressions.
const MOST_VALUES: usize = 30_000;
const MOST_CONDITIONS: usize = 500;

/// Which rows and columns of a table to read.
#[derive(Debug, Clone)]
pub struct ScanRequest {
    /// The wanted columns in order; all of them if `None`.
    pub columns: Option<Vec<String>>,
    /// Whether the first column of the result is [`ROW_NUMBER`](crate::ROW_NUMBER), of type `Int64`.
    pub with_rowid: bool,
    /// Only rows with these numbers; missing ones are skipped. `None` means all rows. With numbers, `conditions` are
    /// ignored.
    pub numbers: Option<Vec<i64>>,
    /// Only rows that satisfy all of these.
    pub conditions: Vec<Condition>,
    /// At most this many rows, those with the smallest numbers.
    pub limit: Option<u64>,
    /// At most this many rows in a batch.
    pub batch_size: usize,
}

impl Default for ScanRequest {
    fn default() -> Self {
        Self { columns: None, with_rowid: false, numbers: None, conditions: Vec::new(), limit: None, batch_size: 8_192 }
    }
}

/// A condition on a row. As in SQL, a missing value satisfies no comparison.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// A comparison of the column with a value.
    Compare {
        /// The column.
        column: String,
        /// The comparison.
        comparison: Comparison,
        /// The value.
        value: Value,
    },
    /// The column has one of the values.
    In {
        /// The column.
        column: String,
        /// The values.
        values: Vec<Value>,
    },
    /// The column's value is missing.
    IsNull {
        /// The column.
        column: String,
    },
    /// The column's value is not missing.
    IsNotNull {
        /// The column.
        column: String,
    },
}

/// How a column compares with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// Equal.
    Eq,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
}

/// A value to compare a column with. It must have the column's type; `Integer` serves all integer types. `Debug` does
/// not print values.
#[derive(Clone, PartialEq)]
pub enum Value {
    /// For a `Boolean` column.
    Boolean(bool),
    /// For a column of integers.
    Integer(i64),
    /// For a `Float64` column. Floats are compared in IEEE total order, in which -0.0 is below 0.0.
    Float(f64),
    /// For a `Utf8` column.
    Text(String),
    /// For a `Binary` column.
    Binary(Vec<u8>),
    /// For a `Date32` column: days since 1970.
    Date(i32),
    /// For a `Timestamp` column: microseconds since 1970.
    Timestamp(i64),
    /// For a `Decimal128` column.
    Decimal {
        /// All digits.
        digits: i128,
        /// How many of them are after the point. Must be the scale of the column.
        scale: i8,
    },
}

impl fmt::Debug for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Boolean(_) => "Boolean(..)",
            Self::Integer(_) => "Integer(..)",
            Self::Float(_) => "Float(..)",
            Self::Text(_) => "Text(..)",
            Self::Binary(_) => "Binary(..)",
            Self::Date(_) => "Date(..)",
            Self::Timestamp(_) => "Timestamp(..)",
            Self::Decimal { .. } => "Decimal(..)",
        })
    }
}

impl Condition {
    /// As many of the conditions as a scan can take. The caller must apply all of them to the result again.
    pub fn that_fit(conditions: impl IntoIterator<Item = Condition>) -> Vec<Condition> {
        let (mut fitting, mut n_values) = (Vec::new(), 0);
        for condition in conditions {
            if fitting.len() == MOST_CONDITIONS {
                break;
            }
            if n_values + condition.n_values() <= MOST_VALUES {
                n_values += condition.n_values();
                fitting.push(condition);
            }
        }
        fitting
    }

    fn n_values(&self) -> usize {
        match self {
            Self::Compare { .. } => 1,
            Self::In { values, .. } => values.len(),
            Self::IsNull { .. } | Self::IsNotNull { .. } => 0,
        }
    }

    fn column(&self) -> &str {
        match self {
            Self::Compare { column, .. }
            | Self::In { column, .. }
            | Self::IsNull { column }
            | Self::IsNotNull { column } => column,
        }
    }
}

/// Conditions as SQL, and the values to bind.
pub(crate) struct Filter {
    /// The conditions, each after ` AND `. The first value is parameter [`FIRST_VALUE`].
    pub(crate) sql: String,
    pub(crate) values: Vec<Stored>,
    /// Whether an index can find the rows.
    pub(crate) by_index: bool,
}

impl Filter {
    /// Translates conditions on a table.
    pub(crate) fn new(table: &Table, conditions: &[Condition]) -> Result<Self, StoreError> {
        let mut filter = Self { sql: String::new(), values: Vec::new(), by_index: false };
        let too_many = |what, most| {
            let table = table.description.name.clone();
            Err(StoreError::TooManyConditions { table, what, most })
        };
        if conditions.len() > MOST_CONDITIONS {
            return too_many("conditions", MOST_CONDITIONS);
        }
        if conditions.iter().map(Condition::n_values).sum::<usize>() > MOST_VALUES {
            return too_many("values in its conditions", MOST_VALUES);
        }
        for condition in conditions {
            let position = table.description.position(condition.column())?;
            let mut bind = |value: &Value| -> Result<String, StoreError> {
                let stored = stored_value(value, &table.types[position]).ok_or_else(|| StoreError::OtherType {
                    column: condition.column().to_owned(),
                    data_type: table.types[position].data_type(),
                })?;
                filter.values.push(stored);
                Ok(format!("?{}", FIRST_VALUE + filter.values.len() - 1))
            };
            let sql = match condition {
                Condition::Compare { comparison, value, .. } => {
                    let operator = match comparison {
                        Comparison::Eq => "=",
                        Comparison::Lt => "<",
                        Comparison::Le => "<=",
                        Comparison::Gt => ">",
                        Comparison::Ge => ">=",
                    };
                    format!("{operator} {}", bind(value)?)
                }
                Condition::In { values, .. } => {
                    let bound: Result<Vec<String>, StoreError> = values.iter().map(bind).collect();
                    format!("IN ({})", bound?.join(","))
                }
                Condition::IsNull { .. } => "IS NULL".to_owned(),
                Condition::IsNotNull { .. } => "IS NOT NULL".to_owned(),
            };
            filter.sql.push_str(&format!(" AND c{position} {sql}"));
            filter.by_index |= table.leading.contains(&position) && !matches!(condition, Condition::IsNotNull { .. });
        }
        Ok(filter)
    }
}

/// The value as stored in a column of this type; `None` if it has another type.
fn stored_value(value: &Value, stored: &StoredType) -> Option<Stored> {
    use StoredType as T;
    Some(match (value, stored) {
        (Value::Boolean(value), T::Boolean) => Stored::Integer((*value).into()),
        (Value::Integer(value), T::Int8 | T::Int16 | T::Int32 | T::Int64 | T::UInt8 | T::UInt16 | T::UInt32) => {
            Stored::Integer(*value)
        }
        (Value::Float(value), T::Float64) => Stored::Integer(float_to_stored(*value)),
        (Value::Text(value), T::Utf8) => Stored::Text(value.clone()),
        (Value::Binary(value), T::Binary) => Stored::Blob(value.clone()),
        (Value::Date(value), T::Date32) => Stored::Integer((*value).into()),
        (Value::Timestamp(value), T::Timestamp(_)) => Stored::Integer(*value),
        (Value::Decimal { digits: value, scale }, T::Decimal { digits, scale: of_column }) if scale == of_column => {
            match decimal(*value, *digits)? {
                Bound::Wide(bytes) => Stored::Blob(bytes.to_vec()),
                Bound::Integer(value) => Stored::Integer(value),
                _ => return None,
            }
        }
        _ => return None,
    })
}
