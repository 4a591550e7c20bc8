//! Reads what is done to the cells of a column: `round`, `truncate`, `top` and `bottom`.

use toml::de::DeValue;

use super::super::keys;
use super::super::{HierarchySource, SpecErrorKind};
use super::section::{Reader, Section, out_of_bounds, understand_number, wrong_kind};
use super::table::TableDraft;
use crate::hierarchy::Rule;
use crate::{Bound, Decimal, Role, Transform, ValueType};

/// The changes of a column's cells.
pub(super) fn read_transform(
    reader: &mut Reader<'_>,
    section: &Section<'_>,
    hierarchy: Option<&HierarchySource>,
    value_type: Option<ValueType>,
    role: Option<Role>,
) -> Transform {
    let transform = Transform {
        round: read_base(reader, section),
        truncate: reader.word(section, "truncate", keys::PERIODS),
        top: read_bound(reader, section, "top"),
        bottom: read_bound(reader, section, "bottom"),
        pseudonym_key: None,
    };
    if section.has("round") && section.has("truncate") {
        reader.note(&reader.place_of(section, "truncate"), SpecErrorKind::RoundAndTruncate);
    }
    for &key in keys::TRANSFORM.iter().filter(|key| section.has(key)) {
        let place = reader.place_of(section, key);
        match role {
            None | Some(Role::Quasi | Role::Sensitive | Role::Plain) => {}
            Some(role) => reader.note(&place, SpecErrorKind::TransformOnRole { role }),
        }
        if let Some(value_type) = value_type.filter(|value_type| !fits(key, *value_type)) {
            reader.note(&place, SpecErrorKind::TransformOnType { key, value_type });
        }
        // A label made by such a rule would stand for fewer values than the code.
        let makes_labels = matches!(hierarchy, Some(HierarchySource::Rule(rule)) if *rule != Rule::Flat);
        if makes_labels && matches!(key, "top" | "bottom") {
            reader.note(&place, SpecErrorKind::CodeWithRule { key });
        }
    }
    transform
}

fn fits(key: &str, value_type: ValueType) -> bool {
    match value_type {
        ValueType::Integer | ValueType::Decimal | ValueType::Float => key != "truncate",
        ValueType::Date => key != "round",
        ValueType::Timestamp => matches!(key, "top" | "bottom"),
        ValueType::Text | ValueType::Boolean => false,
    }
}

fn read_base(reader: &mut Reader<'_>, section: &Section<'_>) -> Option<String> {
    const EXPECTED: &str = "a number above 0 in plain digits";
    let entry = section.entry("round")?;
    let place = reader.place(section, entry);
    let value = entry.value.get_ref();
    let Some(digits) = digits(value) else {
        reader.note(&place, wrong_kind(EXPECTED, value));
        return None;
    };
    match Decimal::parse(&digits, false) {
        Some(base) if base.mantissa > 0 => Some(digits),
        _ => {
            reader.note(&place, SpecErrorKind::NotAllowed { expected: EXPECTED, found: digits });
            None
        }
    }
}

/// `top = 120`, `top = "2000-12-31"` or `top = { quantile = 0.99 }`.
fn read_bound(reader: &mut Reader<'_>, section: &Section<'_>, key: &str) -> Option<Bound> {
    const EXPECTED: &str = "a number, a date in quotes, or { quantile = 0.99 }";
    let entry = section.entry(key)?;
    let place = reader.place(section, entry);
    let value = entry.value.get_ref();
    match value {
        DeValue::String(text) => Some(Bound::At(text.to_string())),
        DeValue::Datetime(date) if date.time.is_none() => Some(Bound::At(date.to_string())),
        DeValue::Table(_) => {
            const SHARE: &str = "a number above 0 and below 1";
            let bound = reader.table(entry, place)?;
            reader.check_keys(&bound, keys::QUANTILE);
            let Some(quantile) = bound.entry("quantile") else {
                reader.note(&bound.place, SpecErrorKind::Missing { key: "quantile", example: "quantile = 0.99" });
                return None;
            };
            let place = reader.place(&bound, quantile);
            match understand_number(quantile.value.get_ref()) {
                Some(share) if share > 0.0 && share < 1.0 => Some(Bound::Quantile(share)),
                Some(share) => {
                    reader.note(&place, out_of_bounds(SHARE, share));
                    None
                }
                None => {
                    reader.note(&place, wrong_kind(SHARE, quantile.value.get_ref()));
                    None
                }
            }
        }
        value => match digits(value).filter(|digits| Decimal::parse(digits, false).is_some()) {
            Some(digits) => Some(Bound::At(digits)),
            None => {
                reader.note(&place, wrong_kind(EXPECTED, value));
                None
            }
        },
    }
}

/// The digits of a number, as the spec spells it.
fn digits(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::Integer(digits) if digits.radix() == 10 => Some(digits.as_str().to_owned()),
        DeValue::Float(digits) => Some(digits.as_str().to_owned()),
        _ => None,
    }
}

/// Notes changes of cells where this version has no definition for them.
pub(super) fn check_places(reader: &mut Reader<'_>, tables: &[TableDraft], has_registers: bool) {
    for table in tables {
        for column in &table.columns {
            if column.transform.is_nothing() {
                continue;
            }
            if has_registers {
                reader.note(&column.place, SpecErrorKind::TransformWithRegisters);
            }
            // Rows of other tables would have to find their persons by the same pseudonyms.
            if tables.len() > 1 && column.transform.pseudonym_key.is_some() {
                reader.note(&column.place, SpecErrorKind::PseudonymInTables);
            }
            let by_quantile = |bound: &Option<Bound>| matches!(bound, Some(Bound::Quantile(_)));
            // Only in a table of persons it is known whose cells the bound could show.
            if table.is_child && (by_quantile(&column.transform.top) || by_quantile(&column.transform.bottom)) {
                reader.note(&column.place, SpecErrorKind::QuantileInChild);
            }
        }
    }
}
