//! [`ColumnLayout`]: the columns of a table on a server, and their types here.
//!
//! | there | here |
//! | --- | --- |
//! | `boolean` | `Boolean` |
//! | `smallint`, `integer`, `bigint` | `Int16`, `Int32`, `Int64` |
//! | `real`, `double precision` | `Float32`, `Float64` |
//! | `numeric(p, s)`, p up to 38 | `Decimal128(p, s)` |
//! | `text`, `varchar`, `char(n)` without its padding, `name`, `uuid`, enums | `Utf8` |
//! | `bytea` | `Binary` |
//! | `date`, `timestamp`, `timestamptz` | `Date32`, `Timestamp(us)`, `Timestamp(us, UTC)` |
//!
//! Anything else is refused by the name of its column.

use datafusion::arrow::datatypes::{DataType, Field, TimeUnit};
use tokio_postgres::types::Type;

use super::PostgresError;
use super::address::{Address, quoted};
use super::connection::PostgresConnection;

/// The most digits that a decimal has here.
const MOST_DIGITS: u8 = 38;
/// What the server adds to precision and scale where it packs them into one number.
const TYPMOD_OFFSET: i32 = 4;

/// The columns of a table or view, with what is needed to read them.
const COLUMNS: &str = "
    SELECT a.attname::text, a.attnotnull, a.atttypid, a.atttypmod, t.typtype::text, format_type(a.atttypid, a.atttypmod)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid
    WHERE n.nspname = $1::text AND c.relname = $2::text AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
      AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY a.attnum";

/// What a table on a server looks like.
#[derive(Clone, Debug)]
pub(super) struct ColumnLayout {
    pub(super) columns: Vec<Column>,
    pub(super) encoding: Encoding,
}

/// How a server keeps texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// As they are here, so that their bytes have the same order.
    Utf8,
    /// Otherwise, perhaps not every text; ASCII has the same meaning in all.
    Other,
}

/// A column of a table on a server.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: ColumnKind,
    pub(super) nullable: bool,
    /// Whether it is read as the text of its values.
    is_cast: bool,
}

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnKind {
    Boolean,
    Int16,
    Int32,
    Int64,
    Float32,
    Float64,
    Decimal { precision: u8, scale: i8 },
    Text,
    Bytes,
    Date,
    Timestamp,
    TimestampUtc,
}

impl ColumnKind {
    fn data_type(self) -> DataType {
        match self {
            ColumnKind::Boolean => DataType::Boolean,
            ColumnKind::Int16 => DataType::Int16,
            ColumnKind::Int32 => DataType::Int32,
            ColumnKind::Int64 => DataType::Int64,
            ColumnKind::Float32 => DataType::Float32,
            ColumnKind::Float64 => DataType::Float64,
            ColumnKind::Decimal { precision, scale } => DataType::Decimal128(precision, scale),
            ColumnKind::Text => DataType::Utf8,
            ColumnKind::Bytes => DataType::Binary,
            ColumnKind::Date => DataType::Date32,
            ColumnKind::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            ColumnKind::TimestampUtc => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        }
    }
}

impl Column {
    /// A column of texts.
    #[cfg(test)]
    pub(super) fn text(name: &str) -> Column {
        Column { name: name.to_owned(), kind: ColumnKind::Text, nullable: true, is_cast: false }
    }

    /// The column here.
    pub(super) fn field(&self) -> Field {
        Field::new(&self.name, self.kind.data_type(), self.nullable)
    }

    /// What is selected of it. Decimals come as texts, which are exact.
    pub(super) fn selected(&self) -> String {
        let own = self.compared();
        if matches!(self.kind, ColumnKind::Decimal { .. }) { format!("{own}::text") } else { own }
    }

    /// What values are compared with.
    pub(super) fn compared(&self) -> String {
        let name = quoted(&self.name);
        if self.is_cast { format!("{name}::text") } else { name }
    }

    /// The type in which the server sends what is selected.
    pub(super) fn sent_as(&self) -> &'static [Type] {
        match self.kind {
            ColumnKind::Boolean => &[Type::BOOL],
            ColumnKind::Int16 => &[Type::INT2],
            ColumnKind::Int32 => &[Type::INT4],
            ColumnKind::Int64 => &[Type::INT8],
            ColumnKind::Float32 => &[Type::FLOAT4],
            ColumnKind::Float64 => &[Type::FLOAT8],
            ColumnKind::Decimal { .. } => &[Type::TEXT],
            ColumnKind::Text => &[Type::TEXT, Type::VARCHAR],
            ColumnKind::Bytes => &[Type::BYTEA],
            ColumnKind::Date => &[Type::DATE],
            ColumnKind::Timestamp => &[Type::TIMESTAMP],
            ColumnKind::TimestampUtc => &[Type::TIMESTAMPTZ],
        }
    }
}

/// What a table looks like, as its server tells it.
///
/// # Errors
/// Where the server can't be asked, there is no such table, or a column is of a type that is not read.
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
        match kind(oid, modifier, is_enum) {
            Some((kind, is_cast)) => Ok(Column { name, kind, nullable: !is_not_null, is_cast }),
            None => {
                let data_type = row.try_get(5).map_err(failed)?;
                Err(PostgresError::UnsupportedType { column: name, data_type })
            }
        }
    };
    let columns = rows.into_iter().map(column).collect::<Result<Vec<Column>, PostgresError>>()?;
    Ok(ColumnLayout { columns, encoding: connection.encoding })
}

/// What the values of a type are, and whether they are read as texts.
fn kind(oid: u32, modifier: i32, is_enum: bool) -> Option<(ColumnKind, bool)> {
    if is_enum {
        return Some((ColumnKind::Text, true));
    }
    let own = |kind| Some((kind, false));
    match Type::from_oid(oid)? {
        Type::BOOL => own(ColumnKind::Boolean),
        Type::INT2 => own(ColumnKind::Int16),
        Type::INT4 => own(ColumnKind::Int32),
        Type::INT8 => own(ColumnKind::Int64),
        Type::FLOAT4 => own(ColumnKind::Float32),
        Type::FLOAT8 => own(ColumnKind::Float64),
        Type::TEXT | Type::VARCHAR => own(ColumnKind::Text),
        Type::BPCHAR | Type::NAME | Type::UUID => Some((ColumnKind::Text, true)),
        Type::BYTEA => own(ColumnKind::Bytes),
        Type::DATE => own(ColumnKind::Date),
        Type::TIMESTAMP => own(ColumnKind::Timestamp),
        Type::TIMESTAMPTZ => own(ColumnKind::TimestampUtc),
        Type::NUMERIC => own(decimal(modifier)?),
        _ => None,
    }
}

/// Precision and scale of a `numeric`; `None` where it has none, or has more digits than a decimal here.
fn decimal(modifier: i32) -> Option<ColumnKind> {
    let packed = modifier.checked_sub(TYPMOD_OFFSET).filter(|packed| *packed >= 0)?;
    let precision = u8::try_from(packed >> 16).ok().filter(|precision| (1..=MOST_DIGITS).contains(precision))?;
    // Eleven bits; a scale below 0 has the highest of them.
    let scale = i8::try_from(packed & 0x7ff).ok().filter(|scale| scale.unsigned_abs() <= precision)?;
    Some(ColumnKind::Decimal { precision, scale })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precision_and_scale_are_read_from_what_the_server_packs() {
        let packed = |precision: i32, scale: i32| (precision << 16 | scale & 0x7ff) + TYPMOD_OFFSET;
        assert_eq!(decimal(packed(10, 2)), Some(ColumnKind::Decimal { precision: 10, scale: 2 }));
        assert_eq!(decimal(packed(38, 38)), Some(ColumnKind::Decimal { precision: 38, scale: 38 }));
        for (precision, scale) in [(39, 0), (3, 5), (3, -2)] {
            assert_eq!(decimal(packed(precision, scale)), None);
        }
        assert_eq!(decimal(-1), None);
    }
}
