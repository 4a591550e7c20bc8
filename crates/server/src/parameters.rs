//! Parameters of prepared statements: a client's values become literals of the statement.
//!
//! A value replaces its `$1` in the parsed statement, never in a text. Afterwards the statement is treated as if the
//! value had been written there: the checks and the comparison of labels are the same. The log has the text with `$1`.

use std::ops::ControlFlow;

use bytes::{Buf, Bytes};
use chrono::{DateTime, Days, NaiveDate, NaiveTime};
use datafusion::sql::parser::Statement as DFStatement;
use datafusion::sql::sqlparser::ast::{
    Array, CastKind, DataType, ExactNumberInfo, Expr, LimitClause, Statement as SqlStatement, TimezoneInfo, Value,
    visit_expressions, visit_expressions_mut,
};
use kohort_sql::parser::{MOST_ELEMENTS, Parsed, Statement, array_in_braces, spell_arrays_in};
use pgwire::api::Type;

use crate::error::{AnswerError, ErrorMessage};

/// The largest number of parameters.
const MOST: usize = 1000;

/// Bytes that an element of an array counts beside its text, because it becomes an expression of its own.
const PER_ELEMENT: usize = 64;

/// The number of parameters of a statement.
pub(crate) fn count(parsed: &Parsed) -> Result<usize, AnswerError> {
    let Some(statement) = sql(parsed) else { return Ok(0) };
    let mut largest = 0;
    let mut is_wrong = false;
    let _ = visit_expressions(statement, |expression| {
        if let Some(name) = placeholder(expression) {
            match position(name) {
                Some(position) => largest = largest.max(position + 1),
                None => is_wrong = true,
            }
        }
        ControlFlow::<()>::Continue(())
    });
    if is_wrong || largest > MOST {
        return Err(AnswerError::statement("42P02", format!("parameters must be named $1 to ${MOST}")));
    }
    Ok(largest)
}

/// Replaces parameters by literals. A value is copied each time its parameter is named, so the total size is limited.
///
/// # Errors
/// If a parameter has no literal, or the literals are too large together.
pub(crate) fn substitute(parsed: &mut Parsed, literals: &[Expr], most_bytes: usize) -> Result<(), AnswerError> {
    if n_bytes_with(parsed, literals) > most_bytes {
        let refusal =
            ErrorMessage::new("54000", format!("the statement's values would take more than {most_bytes} bytes"));
        return Err(refusal.hint("a value is copied each time its parameter is named: name it fewer times").into());
    }
    let Statement::Sql(sql) = &mut parsed.statement else { return Ok(()) };
    let statement = match sql.as_mut() {
        DFStatement::Statement(statement) => statement.as_mut(),
        DFStatement::Explain(explain) => match explain.statement.as_mut() {
            DFStatement::Statement(statement) => statement.as_mut(),
            _ => return Ok(()),
        },
        _ => return Ok(()),
    };
    substitute_limits(statement, literals);
    let mut missing = None;
    let _ = visit_expressions_mut(statement, |expression| {
        if let Some(name) = placeholder(expression) {
            match position(name).and_then(|position| literals.get(position)) {
                Some(literal) => *expression = literal.clone(),
                None => missing = Some(name.to_owned()),
            }
        }
        ControlFlow::<()>::Continue(())
    });
    match missing {
        Some(name) => Err(AnswerError::statement("42P02", format!("there is no parameter {name}"))),
        None => {
            spell_arrays_in(statement);
            Ok(())
        }
    }
}

/// The size of all values together, counting each one as often as it is named.
fn n_bytes_with(parsed: &Parsed, literals: &[Expr]) -> usize {
    let lengths: Vec<usize> = literals.iter().map(length).collect();
    let Some(statement) = sql(parsed) else { return 0 };
    let mut all = 0usize;
    let _ = visit_expressions(statement, |expression| {
        let length = placeholder(expression).and_then(position).and_then(|position| lengths.get(position));
        all = all.saturating_add(length.copied().unwrap_or(0));
        ControlFlow::<()>::Continue(())
    });
    all
}

/// The size of a literal.
fn length(literal: &Expr) -> usize {
    let of_value = |value: &Value| match value {
        Value::SingleQuotedString(text) | Value::Number(text, _) => text.len(),
        _ => 0,
    };
    match literal {
        Expr::Value(value) => of_value(&value.value),
        Expr::TypedString(typed) => of_value(&typed.value.value),
        Expr::Cast { expr, .. } | Expr::UnaryOp { expr, .. } | Expr::Nested(expr) => length(expr),
        Expr::Array(array) => array.elem.iter().map(|element| length(element) + PER_ELEMENT).sum(),
        _ => 0,
    }
}

/// Converts the literals of LIMIT and OFFSET to numbers, because clients may send them as text.
fn substitute_limits(statement: &mut SqlStatement, literals: &[Expr]) {
    let SqlStatement::Query(query) = statement else { return };
    let as_number = |expression: &mut Expr| {
        let literal = placeholder(expression).and_then(position).and_then(|position| literals.get(position));
        if let Some(Expr::Value(value)) = literal
            && let Value::SingleQuotedString(text) = &value.value
            && text.parse::<u64>().is_ok()
        {
            *expression = number(text.clone());
        }
    };
    match &mut query.limit_clause {
        Some(LimitClause::LimitOffset { limit, offset, .. }) => {
            limit.iter_mut().for_each(as_number);
            offset.iter_mut().for_each(|offset| as_number(&mut offset.value));
        }
        Some(LimitClause::OffsetCommaLimit { offset, limit }) => [offset, limit].into_iter().for_each(as_number),
        None => {}
    }
}

fn sql(parsed: &Parsed) -> Option<&SqlStatement> {
    match &parsed.statement {
        Statement::Sql(sql) => match sql.as_ref() {
            DFStatement::Statement(statement) => Some(statement),
            DFStatement::Explain(explain) => match explain.statement.as_ref() {
                DFStatement::Statement(statement) => Some(statement),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

fn placeholder(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::Value(value) => match &value.value {
            Value::Placeholder(name) => Some(name),
            _ => None,
        },
        _ => None,
    }
}

/// The position of a parameter: 0 for `$1`.
fn position(name: &str) -> Option<usize> {
    name.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)
}

/// The parameters that are compared with as arrays: those of `x = ANY ($1)`, by position.
pub(crate) fn arrays(parsed: &Parsed) -> Vec<usize> {
    let mut arrays = Vec::new();
    if let Some(statement) = sql(parsed) {
        let _ = visit_expressions(statement, |expression| {
            if let Expr::AnyOp { right, .. } | Expr::AllOp { right, .. } = expression {
                arrays.extend(placeholder(within(right)).and_then(position));
            }
            ControlFlow::<()>::Continue(())
        });
    }
    arrays
}

/// The expression inside parentheses.
fn within(expression: &Expr) -> &Expr {
    match expression {
        Expr::Nested(inner) => within(inner),
        expression => expression,
    }
}

/// The type of the elements of an array; `None` for other types.
fn element(of: &Type) -> Option<&'static Type> {
    static ARRAYS: [(Type, Type); 13] = [
        (Type::BOOL_ARRAY, Type::BOOL),
        (Type::INT2_ARRAY, Type::INT2),
        (Type::INT4_ARRAY, Type::INT4),
        (Type::INT8_ARRAY, Type::INT8),
        (Type::FLOAT4_ARRAY, Type::FLOAT4),
        (Type::FLOAT8_ARRAY, Type::FLOAT8),
        (Type::NUMERIC_ARRAY, Type::NUMERIC),
        (Type::TEXT_ARRAY, Type::TEXT),
        (Type::VARCHAR_ARRAY, Type::VARCHAR),
        (Type::BPCHAR_ARRAY, Type::BPCHAR),
        (Type::DATE_ARRAY, Type::DATE),
        (Type::TIMESTAMP_ARRAY, Type::TIMESTAMP),
        (Type::TIMESTAMPTZ_ARRAY, Type::TIMESTAMPTZ),
    ];
    ARRAYS.iter().find(|(array, _)| array == of).map(|(_, element)| element)
}

/// An array of these elements.
fn array(elem: Vec<Expr>) -> Expr {
    Expr::Array(Array { elem, named: true })
}

/// Reads PostgreSQL's binary array of one dimension.
fn binary_array(value: &mut Bytes, of: &Type) -> Option<Vec<Expr>> {
    let (n_dimensions, _has_nulls, _element) =
        (value.try_get_i32().ok()?, value.try_get_i32().ok()?, value.try_get_u32().ok()?);
    if n_dimensions == 0 {
        return Some(Vec::new());
    }
    let n_elements = usize::try_from(value.try_get_i32().ok()?).ok()?;
    let _first = value.try_get_i32().ok()?;
    // Each element has at least its length.
    if n_dimensions != 1 || n_elements > MOST_ELEMENTS.min(value.len() / 4) {
        return None;
    }
    let mut elements = Vec::with_capacity(n_elements);
    for _ in 0..n_elements {
        elements.push(match value.try_get_i32().ok()? {
            -1 => Expr::value(Value::Null),
            length => {
                let length = usize::try_from(length).ok().filter(|&length| length <= value.len())?;
                of_binary(value.split_to(length), of)?
            }
        });
    }
    Some(elements)
}

/// Converts a client's value to a literal.
///
/// # Errors
/// If the value does not fit its type, or the type is not supported.
pub(crate) fn literal(value: Option<&Bytes>, of: &Type, format: i16, position: usize) -> Result<Expr, AnswerError> {
    let Some(value) = value else { return Ok(Expr::value(Value::Null)) };
    let literal = match format {
        0 => std::str::from_utf8(value).ok().and_then(|text| of_text(text, of)),
        1 => of_binary(value.clone(), of),
        _ => return Err(AnswerError::statement("08P01", "the format of a value must be 0 or 1")),
    };
    // The message does not contain the value, because it may be private.
    let wrong =
        || format!("parameter ${} is not a value of type {}, or the type is not supported", position + 1, of.name());
    literal.ok_or_else(|| AnswerError::statement("22P02", wrong()))
}

/// A NULL of a type, to find out the columns of a statement.
pub(crate) fn null_of(of: &Type) -> Expr {
    if let Some(of) = element(of) {
        return array(vec![null_of(of)]);
    }
    let data_type = match *of {
        Type::BOOL => DataType::Boolean,
        Type::INT2 => DataType::SmallInt(None),
        Type::INT4 => DataType::Int(None),
        Type::INT8 | Type::OID => DataType::BigInt(None),
        Type::FLOAT4 => DataType::Real,
        Type::FLOAT8 | Type::NUMERIC => DataType::Double(ExactNumberInfo::None),
        Type::DATE => DataType::Date,
        Type::TIME => DataType::Time(None, TimezoneInfo::None),
        Type::TIMESTAMP => DataType::Timestamp(None, TimezoneInfo::None),
        Type::TIMESTAMPTZ => DataType::Timestamp(None, TimezoneInfo::WithTimeZone),
        _ => DataType::Text,
    };
    cast(Expr::value(Value::Null), data_type)
}

fn of_text(value: &str, of: &Type) -> Option<Expr> {
    if let Some(of) = element(of) {
        let element = |text: Option<String>| match text {
            Some(text) => of_text(&text, of),
            None => Some(Expr::value(Value::Null)),
        };
        return array_in_braces(value)?.into_iter().map(element).collect::<Option<_>>().map(array);
    }
    match *of {
        Type::BOOL => match value.trim().to_lowercase().as_str() {
            "t" | "true" | "on" | "yes" | "1" => Some(Expr::value(Value::Boolean(true))),
            "f" | "false" | "off" | "no" | "0" => Some(Expr::value(Value::Boolean(false))),
            _ => None,
        },
        Type::INT2 | Type::INT4 | Type::INT8 | Type::OID => {
            value.trim().parse::<i64>().ok().map(|n| number(n.to_string()))
        }
        Type::FLOAT4 | Type::FLOAT8 => value.trim().parse::<f64>().ok().map(float),
        Type::NUMERIC => is_decimal(value.trim()).then(|| number(value.trim().to_owned())),
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UNKNOWN | Type::CHAR => {
            Some(text(value.to_owned()))
        }
        Type::DATE => Some(typed(value.to_owned(), DataType::Date)),
        Type::TIME => Some(typed(value.to_owned(), DataType::Time(None, TimezoneInfo::None))),
        Type::TIMESTAMP => Some(typed(value.to_owned(), DataType::Timestamp(None, TimezoneInfo::None))),
        Type::TIMESTAMPTZ => Some(typed(value.to_owned(), DataType::Timestamp(None, TimezoneInfo::WithTimeZone))),
        _ => None,
    }
}

fn of_binary(mut value: Bytes, of: &Type) -> Option<Expr> {
    if let Some(of) = element(of) {
        let elements = binary_array(&mut value, of)?;
        return value.is_empty().then(|| array(elements));
    }
    let literal = match *of {
        Type::BOOL => Expr::value(Value::Boolean(value.try_get_u8().ok()? != 0)),
        Type::INT2 => number(value.try_get_i16().ok()?.to_string()),
        Type::INT4 => number(value.try_get_i32().ok()?.to_string()),
        Type::OID => number(value.try_get_u32().ok()?.to_string()),
        Type::INT8 => number(value.try_get_i64().ok()?.to_string()),
        Type::FLOAT4 => float(f64::from(value.try_get_f32().ok()?)),
        Type::FLOAT8 => float(value.try_get_f64().ok()?),
        Type::NUMERIC => number(decimal(&mut value)?),
        Type::DATE => {
            let days = value.try_get_i32().ok()?;
            let start = NaiveDate::from_ymd_opt(2000, 1, 1)?;
            let span = Days::new(u64::from(days.unsigned_abs()));
            let date = if days < 0 { start.checked_sub_days(span) } else { start.checked_add_days(span) };
            typed(date?.to_string(), DataType::Date)
        }
        Type::TIME => {
            let micros = u64::try_from(value.try_get_i64().ok()?).ok()?;
            let (seconds, rest) = (micros / 1_000_000, micros % 1_000_000);
            let time = NaiveTime::from_num_seconds_from_midnight_opt(u32::try_from(seconds).ok()?, rest as u32 * 1000);
            typed(time?.to_string(), DataType::Time(None, TimezoneInfo::None))
        }
        Type::TIMESTAMP | Type::TIMESTAMPTZ => {
            const TO_1970: i64 = 946_684_800_000_000;
            let micros = value.try_get_i64().ok()?.checked_add(TO_1970)?;
            let time = DateTime::from_timestamp_micros(micros)?;
            match *of {
                Type::TIMESTAMP => typed(time.naive_utc().to_string(), DataType::Timestamp(None, TimezoneInfo::None)),
                _ => typed(time.to_rfc3339(), DataType::Timestamp(None, TimezoneInfo::WithTimeZone)),
            }
        }
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UNKNOWN | Type::CHAR => {
            text(String::from_utf8(std::mem::take(&mut value).into()).ok()?)
        }
        _ => return None,
    };
    value.is_empty().then_some(literal)
}

/// Reads PostgreSQL's binary decimal: number of groups of four digits, weight of the first group, sign, digits after
/// the point, and the groups.
fn decimal(value: &mut Bytes) -> Option<String> {
    let n_groups = value.try_get_i16().ok()?;
    let power = value.try_get_i16().ok()?;
    let sign = match value.try_get_u16().ok()? {
        0 => "",
        0x4000 => "-",
        _ => return None,
    };
    let n_after = usize::from(value.try_get_u16().ok()?);
    if !(0..=100).contains(&n_groups) || !(-100..=100).contains(&power) || n_after > 400 {
        return None;
    }
    let groups: Option<Vec<u16>> =
        (0..n_groups).map(|_| value.try_get_u16().ok().filter(|group| *group < 10_000)).collect();
    let groups = groups?;
    let group = |at: i16| usize::try_from(power - at).ok().and_then(|index| groups.get(index)).copied().unwrap_or(0);
    let before: String = (0..=power.max(0)).rev().map(|at| format!("{:04}", group(at))).collect();
    let after: String = (1..=n_after.div_ceil(4) as i16).map(|at| format!("{:04}", group(-at))).collect();
    let before = before.trim_start_matches('0');
    let before = if before.is_empty() { "0" } else { before };
    Some(match n_after {
        0 => format!("{sign}{before}"),
        n_after => format!("{sign}{before}.{}", &after[..n_after]),
    })
}

fn is_decimal(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let n_digits = unsigned.chars().filter(char::is_ascii_digit).count();
    let n_points = unsigned.matches('.').count();
    n_digits > 0 && n_points <= 1 && n_digits + n_points == unsigned.len()
}

fn number(digits: String) -> Expr {
    Expr::value(Value::Number(digits, false))
}

fn float(value: f64) -> Expr {
    match value.is_finite() {
        // The exponent makes it a floating point literal instead of a decimal.
        true => number(format!("{value:e}")),
        false => typed(value.to_string(), DataType::Double(ExactNumberInfo::None)),
    }
}

fn text(text: String) -> Expr {
    Expr::value(Value::SingleQuotedString(text))
}

fn typed(value: String, data_type: DataType) -> Expr {
    cast(text(value), data_type)
}

fn cast(value: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(value), data_type, array: false, format: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binary(bytes: &'static [u8], of: &Type) -> Option<String> {
        of_binary(Bytes::from_static(bytes), of).map(|literal| literal.to_string())
    }

    #[test]
    fn values_are_read_in_text_and_in_binary() {
        let in_text = |value: &str, of| of_text(value, of).map(|literal| literal.to_string());
        assert_eq!(in_text("-5", &Type::INT4).as_deref(), Some("-5"));
        assert_eq!(in_text("it's", &Type::TEXT).as_deref(), Some("'it''s'"));
        assert_eq!(in_text("1;DROP", &Type::INT4), None);
        assert_eq!(in_text("1.5; --", &Type::NUMERIC), None);
        assert_eq!(in_text("{1,-2,NULL}", &Type::INT4_ARRAY).as_deref(), Some("ARRAY[1, -2, NULL]"));
        assert_eq!(in_text("{a,\"b,c\"}", &Type::TEXT_ARRAY).as_deref(), Some("ARRAY['a', 'b,c']"));
        assert_eq!(in_text("{1;DROP}", &Type::INT4_ARRAY), None);
        let texts = b"\0\0\0\x01\0\0\0\x01\0\0\0\x19\0\0\0\x02\0\0\0\x01\0\0\0\x01a\xff\xff\xff\xff";
        assert_eq!(binary(texts, &Type::TEXT_ARRAY).as_deref(), Some("ARRAY['a', NULL]"));
        assert_eq!(binary(&texts[..texts.len() - 1], &Type::TEXT_ARRAY), None);
        assert_eq!(binary(b"\0\0\0\x01\0\0\0\0\0\0\0\x19\x7f\xff\xff\xff\0\0\0\x01", &Type::TEXT_ARRAY), None);
        assert_eq!(binary(b"\xff\xff\xff\xfb", &Type::INT4).as_deref(), Some("-5"));
        assert_eq!(binary(b"\xff\xff\xff", &Type::INT4), None);
        assert_eq!(binary(b"\0\0\0\0\x01", &Type::INT4), None);
        assert_eq!(binary(b"\x01", &Type::BOOL).as_deref(), Some("true"));
        assert_eq!(binary(b"\0\0\x22\x3e", &Type::DATE).as_deref(), Some("CAST('2024-01-01' AS DATE)"));
        assert_eq!(binary(b"\xff\0", &Type::TEXT), None);
    }

    #[test]
    fn decimals_are_read_from_groups_of_digits() {
        // 12345.678 is 1, 2345 . 6780
        assert_eq!(
            binary(b"\0\x03\0\x01\0\0\0\x03\0\x01\x09\x29\x1a\x7c", &Type::NUMERIC).as_deref(),
            Some("12345.678")
        );
        assert_eq!(binary(b"\0\x01\xff\xff\x40\0\0\x02\x13\x88", &Type::NUMERIC).as_deref(), Some("-0.50"));
        assert_eq!(binary(b"\0\0\0\0\0\0\0\0", &Type::NUMERIC).as_deref(), Some("0"));
        assert_eq!(binary(b"\0\0\0\0\xc0\0\0\0", &Type::NUMERIC), None);
        assert_eq!(binary(b"\x7f\xff\0\0\0\0\0\0", &Type::NUMERIC), None);
    }

    #[test]
    fn a_value_is_a_literal_wherever_it_stands() {
        let read = |sql: &str| kohort_sql::parser::parse(sql).unwrap().remove(0);
        let mut parsed = read("SELECT * FROM t WHERE a = $1 AND b IN ($2, $1) LIMIT $3");
        assert_eq!(count(&parsed).ok(), Some(3));
        let literals = [text("' OR 1=1 --".to_owned()), number("2".to_owned()), text("7".to_owned())];
        substitute(&mut parsed, &literals, 1000).unwrap();
        let Statement::Sql(sql) = &parsed.statement else { panic!() };
        assert_eq!(sql.to_string(), "SELECT * FROM t WHERE a = ''' OR 1=1 --' AND b IN (2, ''' OR 1=1 --') LIMIT 7");
        assert!(substitute(&mut read("SELECT $2"), &literals[..1], 1000).is_err());
        assert!(count(&read("SELECT $0")).is_err());
        assert!(count(&read("SELECT $99999999")).is_err());
    }

    #[test]
    fn a_value_counts_as_often_as_it_is_named() {
        let literals = [text("x".repeat(100)), typed("2026-01-02".to_owned(), DataType::Date), number("1".repeat(50))];
        let length = |sql: &str| n_bytes_with(&kohort_sql::parser::parse(sql).unwrap().remove(0), &literals);
        assert_eq!(length("SELECT $1"), 100);
        assert_eq!(length("SELECT a IN ($1, $1, $2, $3) FROM t WHERE b = $1 LIMIT 3"), 360);
        let mut often =
            kohort_sql::parser::parse(&format!("SELECT 'a' IN ({})", vec!["$1"; 20_000].join(", "))).unwrap().remove(0);
        let failure = substitute(&mut often, &literals, 1_000_000).unwrap_err();
        assert!(matches!(failure, AnswerError::Statement(refusal) if refusal.state == "54000"));
    }
}
