//! [`ColumnLayout`]: the columns of a table on a server, and their types here.
//!
//! | on the server | here |
//! | --- | --- |
//! | `boolean` | `Boolean` |
//! | `smallint`, `integer`, `bigint` | `Int16`, `Int32`, `Int64` |
//! | `real`, `double precision` | `Float32`, `Float64` |
//! | `numeric(p, s)`, p up to 38 | `Decimal128(p, s)` |
//! | `text`, `varchar`, `char(n)` without its padding, `name`, `uuid`, enums | `Utf8` |
//! | `bytea` | `Binary` |
//! | `date`, `timestamp`, `timestamptz` | `Date32`, `Timestamp(us)`, `Timestamp(us, UTC)` |
//!
//! Columns of other types are an error.

use datafusion::arrow::datatypes::{DataType, Field, TimeUnit};
use tokio_postgres::types::Type;

use super::PostgresError;
use super::address::{Address, quoted};
use super::connection::PostgresConnection;

/// The largest number of digits of a decimal here.
const MOST_DIGITS: u8 = 38;
/// The server adds this to the number into which it packs precision and scale.
const TYPMOD_OFFSET: i32 = 4;

/// The query for the columns of a table or view.
const COLUMNS: &str = "
    SELECT a.attname::text, a.attnotnull, a.atttypid, a.atttypmod, t.typtype::text, format_type(a.atttypid, a.atttypmod)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid
    WHERE n.nspname = $1::text AND c.relname = $2::text AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
      AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY a.attnum";

/// The columns of a table on a server.
#[derive(Clone, Debug)]
pub(super) struct ColumnLayout {
    pub(super) columns: Vec<Column>,
    pub(super) encoding: Encoding,
}

/// The encoding of texts on a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// The same encoding as here, so that the order of bytes is the same.
    Utf8,
    /// Another one, which may not have every character. ASCII is the same in all.
    Other,
}

/// A column of a table on a server.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) data_type: DataType,
    pub(super) nullable: bool,
    /// Whether its values are cast to text on the server.
    is_cast: bool,
}

impl Column {
    /// A column of texts.
    #[cfg(test)]
    pub(super) fn text(name: &str) -> Column {
        Column { name: name.to_owned(), data_type: DataType::Utf8, nullable: true, is_cast: false }
    }

    /// The column as Arrow describes it.
    pub(super) fn field(&self) -> Field {
        Field::new(&self.name, self.data_type.clone(), self.nullable)
    }

    /// The expression to select. Decimals are selected as texts, which are exact.
    pub(super) fn selected(&self) -> String {
        let own = self.compared();
        if matches!(self.data_type, DataType::Decimal128(..)) { format!("{own}::text") } else { own }
    }

    /// The expression to compare values with.
    pub(super) fn compared(&self) -> String {
        let name = quoted(&self.name);
        if self.is_cast { format!("{name}::text") } else { name }
    }

    /// The types in which the server may send the selected expression.
    pub(super) fn sent_as(&self) -> &'static [Type] {
        match self.data_type {
            DataType::Boolean => &[Type::BOOL],
            DataType::Int16 => &[Type::INT2],
            DataType::Int32 => &[Type::INT4],
            DataType::Int64 => &[Type::INT8],
            DataType::Float32 => &[Type::FLOAT4],
            DataType::Float64 => &[Type::FLOAT8],
            DataType::Decimal128(..) => &[Type::TEXT],
            DataType::Utf8 => &[Type::TEXT, Type::VARCHAR],
            DataType::Binary => &[Type::BYTEA],
            DataType::Date32 => &[Type::DATE],
            DataType::Timestamp(_, None) => &[Type::TIMESTAMP],
            DataType::Timestamp(_, Some(_)) => &[Type::TIMESTAMPTZ],
            // `type_here` returns no other type.
            _ => &[],
        }
    }
}

/// Asks the server for the columns of a table.
///
/// # Errors
/// If the server can't be asked, there is no such table, or the type of a column is not supported.
pub(super) async fn of_table(address: &Address) -> Result<ColumnLayout, PostgresError> {
    let connection = PostgresConnection::begin(address).await?;
    let names = [(&address.schema as _, Type::TEXT), (&address.table as _, Type::TEXT)];
    let rows = connection.client.query_typed(COLUMNS, &names).await.map_err(|error| address.problem(&error))?;
    if rows.is_empty() {
        let (schema, table) = (address.schema.clone(), address.table.clone());
        return Err(PostgresError::UnknownTable { schema, table });
    }
    let column = |row: tokio_postgres::Row| {
        let failed = |error| address.problem(&error);
        let name: String = row.try_get(0).map_err(failed)?;
        let (is_not_null, oid, modifier): (bool, u32, i32) =
            (row.try_get(1).map_err(failed)?, row.try_get(2).map_err(failed)?, row.try_get(3).map_err(failed)?);
        let is_enum = row.try_get::<_, String>(4).map_err(failed)? == "e";
        match type_here(oid, modifier, is_enum) {
            Some((data_type, is_cast)) => Ok(Column { name, data_type, nullable: !is_not_null, is_cast }),
            None => {
                let data_type = row.try_get(5).map_err(failed)?;
                Err(PostgresError::UnsupportedType { column: name, data_type })
            }
        }
    };
    let columns = rows.into_iter().map(column).collect::<Result<Vec<Column>, PostgresError>>()?;
    Ok(ColumnLayout { columns, encoding: connection.encoding })
}

/// The type here of a type on the server, and whether its values are cast to text; `None` if the type is not supported.
fn type_here(oid: u32, modifier: i32, is_enum: bool) -> Option<(DataType, bool)> {
    if is_enum {
        return Some((DataType::Utf8, true));
    }
    let own = |data_type| Some((data_type, false));
    let timestamp = |zone: Option<&str>| DataType::Timestamp(TimeUnit::Microsecond, zone.map(Into::into));
    match Type::from_oid(oid)? {
        Type::BOOL => own(DataType::Boolean),
        Type::INT2 => own(DataType::Int16),
        Type::INT4 => own(DataType::Int32),
        Type::INT8 => own(DataType::Int64),
        Type::FLOAT4 => own(DataType::Float32),
        Type::FLOAT8 => own(DataType::Float64),
        Type::TEXT | Type::VARCHAR => own(DataType::Utf8),
        Type::BPCHAR | Type::NAME | Type::UUID => Some((DataType::Utf8, true)),
        Type::BYTEA => own(DataType::Binary),
        Type::DATE => own(DataType::Date32),
        Type::TIMESTAMP => own(timestamp(None)),
        Type::TIMESTAMPTZ => own(timestamp(Some("UTC"))),
        Type::NUMERIC => own(decimal(modifier)?),
        _ => None,
    }
}

/// Precision and scale of a `numeric`; `None` if it has none, or more digits than a decimal here.
fn decimal(modifier: i32) -> Option<DataType> {
    let packed = modifier.checked_sub(TYPMOD_OFFSET).filter(|packed| *packed >= 0)?;
    let precision = u8::try_from(packed >> 16).ok().filter(|precision| (1..=MOST_DIGITS).contains(precision))?;
    // The scale has eleven bits. The highest one is set if the scale is negative.
    let scale = i8::try_from(packed & 0x7ff).ok().filter(|scale| scale.unsigned_abs() <= precision)?;
    Some(DataType::Decimal128(precision, scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precision_and_scale_are_read_from_what_the_server_packs() {
        let packed = |precision: i32, scale: i32| (precision << 16 | scale & 0x7ff) + TYPMOD_OFFSET;
        assert_eq!(decimal(packed(10, 2)), Some(DataType::Decimal128(10, 2)));
        assert_eq!(decimal(packed(38, 38)), Some(DataType::Decimal128(38, 38)));
        for (precision, scale) in [(39, 0), (3, 5), (3, -2)] {
            assert_eq!(decimal(packed(precision, scale)), None);
        }
        assert_eq!(decimal(-1), None);
    }
}
