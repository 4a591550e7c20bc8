//! How much functions make values grow, and how many steps they take.
//!
//! This is a list of what is known. Analysts may not use a function that makes texts or lists and is not listed here.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;

use super::pattern::states;
use super::{OF_CELL, OF_NUMBER, OF_WRITTEN, too_large};
use crate::SqlError;

/// A call of a function, and how large its arguments can be.
pub(super) struct Call<'a> {
    pub(super) name: &'a str,
    pub(super) arguments: &'a [Expr],
    pub(super) sizes: &'a [u64],
}

impl Call<'_> {
    fn size(&self, position: usize) -> u64 {
        self.sizes.get(position).copied().unwrap_or(OF_NUMBER)
    }

    /// The size of all arguments together.
    pub(super) fn all(&self) -> u64 {
        self.sizes.iter().fold(OF_NUMBER, |all, size| all.saturating_add(*size))
    }

    /// An argument that says how much is made. It must be a constant.
    fn times(&self, position: usize) -> Result<u64, SqlError> {
        match self.arguments.get(position) {
            Some(number) => constant(number).ok_or_else(too_large),
            None => Ok(1),
        }
    }

    fn is_one_of(&self, names: &str) -> bool {
        names.split_ascii_whitespace().any(|name| name == self.name)
    }

    /// Whether the result is about as large as the arguments, however large they are.
    pub(super) fn keeps_gathered(&self) -> bool {
        match self.name {
            "array_to_string" => self.size(1) <= OF_NUMBER && self.arguments.len() == 2,
            _ => self.is_one_of(KEEP) || self.is_one_of(EITHER),
        }
    }
}

/// Functions whose result is no longer than their arguments together.
const KEEP: &str = "
    array_any_value array_append array_compact array_concat array_distinct array_element array_except array_intersect array_max
    array_min array_pop_back array_pop_front array_prepend array_remove array_remove_all array_remove_n array_reverse
    array_slice array_sort array_union btrim concat decode flatten get_field left ltrim make_array named_struct overlay reverse
    right rtrim split_part string_to_array struct substr substr_index";

/// Functions whose result is one of their arguments.
const EITHER: &str = "coalesce greatest least nullif nvl nvl2";

/// Functions of maps, whose keys and values are lists.
const OF_MAPS: &str = "map map_entries map_extract map_keys map_values";

/// Functions whose result is short, whatever their arguments are.
const SHORT: &str = "
    arrow_typeof chr current_catalog current_database current_schema current_schemas current_setting current_user md5
    session_user to_hex union_tag user uuid version";

/// Functions that describe what PostgreSQL's catalog holds.
const OF_CATALOG: &str = "col_description format_type obj_description parse_ident quote_ident shobj_description";

/// Bytes of the text or list that a call makes.
pub(super) fn grown(call: &Call<'_>) -> Result<u64, SqlError> {
    let size = |position: usize| call.size(position);
    Ok(match call.name {
        _ if call.is_one_of(KEEP) => call.all(),
        _ if call.is_one_of(EITHER) => call.sizes.iter().copied().max().unwrap_or(OF_NUMBER),
        _ if call.is_one_of(SHORT) => OF_CELL,
        _ if call.is_one_of(OF_MAPS) => call.all().saturating_mul(2),
        name if call.is_one_of(OF_CATALOG) || name.starts_with("pg_") => {
            call.all().saturating_mul(2).saturating_add(OF_CELL)
        }
        "repeat" | "array_repeat" => size(0).saturating_mul(call.times(1)?),
        "lpad" | "rpad" => size(0).max(call.times(1)?.saturating_mul(4)),
        "array_resize" => size(0).saturating_add(call.times(1)?.saturating_mul(size(2).max(OF_NUMBER))),
        "space" => call.times(0)?,
        "range" | "generate_series" => {
            let ends = (0..call.arguments.len()).map(|end| call.times(end)).collect::<Result<Vec<u64>, _>>()?;
            // The numbers go from one end to the other, in steps of at least one.
            ends.into_iter().fold(0, u64::saturating_add).saturating_mul(2 * OF_NUMBER)
        }
        // One letter of some alphabets becomes three.
        "lower" | "upper" | "initcap" => size(0).saturating_mul(3),
        "replace" | "translate" => (size(0) + 1).saturating_mul(size(2) + 1),
        // The replacement may name the match, and so hold it several times.
        "regexp_replace" => (size(0) + 1).saturating_mul(size(2) + 1).saturating_mul(2),
        // Each group of the pattern may match the same letters again.
        "regexp_match" => size(0).saturating_mul(size(1)),
        "array_to_string" => size(0).saturating_mul(size(1).saturating_add(size(2)).saturating_add(1)),
        "concat_ws" => size(0).saturating_mul(call.sizes.len() as u64).saturating_add(call.all()),
        "array_replace" | "array_replace_n" | "array_replace_all" => size(0).saturating_mul(size(2).saturating_add(1)),
        "array_positions" | "arrays_zip" => call.all().saturating_mul(8),
        "encode" => call.all().saturating_mul(2),
        "digest" | "sha224" | "sha256" | "sha384" | "sha512" => OF_WRITTEN,
        // Names of days and months are longer than the letters that stand for them.
        "to_char" => size(1).saturating_mul(OF_NUMBER).saturating_add(OF_WRITTEN),
        // The second argument names a type, and a type can say how long its values are.
        "arrow_cast" | "arrow_try_cast" if is_plain_type(call.arguments.get(1)) => size(0).max(OF_WRITTEN),
        "arrow_cast" | "arrow_try_cast" => return Err(too_large()),
        name => return Err(SqlError::UnknownGrowth { function: name.to_owned() }),
    })
}

/// Steps of a call that takes more of them than its arguments have bytes.
pub(super) fn steps_of(call: &Call<'_>) -> Result<u64, SqlError> {
    let product = call.size(0).saturating_mul(call.size(1));
    Ok(match call.name {
        "levenshtein" => product,
        "regexp_like" | "regexp_match" | "regexp_replace" | "regexp_count" | "regexp_instr" => {
            let pattern = call.arguments.get(1).and_then(states).ok_or_else(too_large)?;
            call.size(0).saturating_mul(pattern)
        }
        "array_has_any" | "array_has_all" => product / OF_NUMBER,
        _ => 0,
    })
}

/// A number that is written out, without its sign.
pub(super) fn constant(expression: &Expr) -> Option<u64> {
    match expression {
        Expr::Literal(value, _) => match value.cast_to(&DataType::Float64).ok()? {
            ScalarValue::Float64(Some(number)) => Some(number.abs().ceil() as u64),
            ScalarValue::Float64(None) => Some(0),
            _ => None,
        },
        Expr::Negative(inner) => constant(inner),
        Expr::Cast(cast) => constant(&cast.expr),
        Expr::Alias(alias) => constant(&alias.expr),
        _ => None,
    }
}

fn is_plain_type(name: Option<&Expr>) -> bool {
    matches!(name, Some(Expr::Literal(ScalarValue::Utf8(Some(name)), _)) if !name.contains("Fixed") && !name.contains("List"))
}
