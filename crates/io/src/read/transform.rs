//! Changes the cells of a column as its spec says, by the definitions of [`kohort_model::Transform`], and has the verifier
//! compare them with the private ones.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use arrow_schema::{DataType, Field};
use chrono::{Datelike, NaiveDate};
use kohort_model::hierarchy::DateLevel;
use kohort_model::{Bound, Codes, Column, Decimal, NULL, Notation, Texts, Transform, Value, ValueType, spelled_as};
use kohort_verify::{Transformed, verify_transformed};

use super::error::ReadError;

/// Who holds the values of a column, and how many must hold one that is shown as a bound.
#[derive(Clone, Copy)]
pub(super) struct Holders<'a> {
    pub(super) rows: HoldersOfRows<'a>,
    pub(super) k: u32,
}

/// The persons whose rows hold a value.
#[derive(Clone, Copy)]
pub(super) enum HoldersOfRows<'a> {
    /// Each row is a person.
    Each,
    /// For each row the number of its person.
    Named(&'a [u32]),
    /// Each text stands in one row, and so many persons with one row each hold it.
    Counted(&'a [u64]),
    /// Each text stands in one row, and persons have several rows, so nobody knows how many of them hold it.
    Unknown,
}

impl Holders<'_> {
    /// The person of a row.
    fn person(&self, row: u32) -> u32 {
        match self.rows {
            HoldersOfRows::Named(persons) => persons[row as usize],
            HoldersOfRows::Each | HoldersOfRows::Counted(_) | HoldersOfRows::Unknown => row,
        }
    }
}

/// The typed column with changed cells.
pub(super) fn changed(private: &Column, transform: &Transform, holders: Holders<'_>) -> Result<Column, Vec<ReadError>> {
    let column = || private.name.clone();
    let misfits = misfits(private, transform);
    if !misfits.is_empty() {
        return Err(misfits);
    }
    let Some(texts) = coarse(private, transform) else {
        return Err(vec![ReadError::NotRounded { column: column() }]);
    };
    let codes = codes(private, transform, &texts, holders)?;
    let coded = coded(private, &texts, &codes);
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let mut distinct = Texts::new();
    let new_ids: Vec<u32> =
        coded.iter().map(|text| *numbers.entry(text).or_insert_with(|| distinct.push(text))).collect();
    let ids = private.ids.iter().map(|&id| if id == NULL { NULL } else { new_ids[id as usize] });
    let changed = Column {
        name: column(),
        role: private.role,
        value_type: private.value_type,
        notation: Notation { codes, ..private.notation.clone() },
        hierarchy: None,
        ids: ids.collect(),
        texts: distinct,
    };
    let Holders { rows, k } = holders;
    let (persons, counts) = match rows {
        HoldersOfRows::Each | HoldersOfRows::Unknown => (None, None),
        HoldersOfRows::Named(persons) => (Some(persons), None),
        HoldersOfRows::Counted(counts) => (None, Some(counts)),
    };
    let compared = verify_transformed(&Transformed { private, changed: &changed, transform, persons, counts, k });
    match compared {
        Ok(()) => Ok(changed),
        Err(violation) => Err(vec![ReadError::Transform { violation }]),
    }
}

/// The Arrow field of a changed column: dates stay dates, rounded whole numbers are 64 bits wide so that none is too large,
/// and all others become text.
pub(super) fn changed_field(field: Field, column: &Column, transform: &Transform) -> Option<Field> {
    if !column.notation.codes.are_none() || transform.pseudonym_key.is_some() {
        return None;
    }
    match (&transform.round, column.value_type) {
        (None, _) => Some(field),
        (Some(_), ValueType::Integer) => Some(field.with_data_type(DataType::Int64)),
        (Some(_), _) => None,
    }
}

/// Keys that do not fit the type of the column.
fn misfits(private: &Column, transform: &Transform) -> Vec<ReadError> {
    let Transform { round, truncate, top, bottom, pseudonym_key: _ } = transform;
    let is_number = matches!(private.value_type, ValueType::Integer | ValueType::Decimal | ValueType::Float);
    let mut problems = Vec::new();
    let mut refuse = |key: &'static str, needs: &'static str| {
        let (column, value_type) = (private.name.clone(), private.value_type);
        problems.push(ReadError::TransformOnType { column, key, needs, value_type });
    };
    if round.is_some() && !is_number {
        refuse("round", "numbers");
    }
    if let Some(base) = round
        && private.value_type == ValueType::Integer
        && spelled_as(base, ValueType::Integer, &private.notation).is_none()
    {
        refuse("round", "decimals, unless its base is a whole number");
    }
    if truncate.is_some() && private.value_type != ValueType::Date {
        refuse("truncate", "dates");
    }
    for (key, bound) in [("top", top), ("bottom", bottom)] {
        if bound.is_some() && !private.value_type.is_ordered() {
            refuse(key, "numbers or dates");
        }
    }
    problems
}

/// The texts after rounding or truncating, by id; `None` if some can't be rounded in 38 digits.
fn coarse<'c>(private: &'c Column, transform: &Transform) -> Option<Vec<Cow<'c, str>>> {
    let base = transform.round.as_deref().and_then(|base| Decimal::parse(base, false));
    let notation = &private.notation;
    let decimal_comma = notation.decimal_comma && private.value_type != ValueType::Integer;
    let text = |text: &'c str| match (base, transform.truncate) {
        (Some(base), _) => {
            let rounded = rounded(Decimal::parse(text, decimal_comma)?, base)?;
            let value = match private.value_type {
                ValueType::Integer => Value::Integer(i64::try_from(rounded.shortest().mantissa).ok()?),
                _ => Value::Decimal(rounded),
            };
            value.spell(notation).map(Cow::Owned)
        }
        (None, Some(period)) => {
            let Some(Value::Date(days)) = Value::parse(text, ValueType::Date, notation) else { return None };
            Value::Date(truncated(NaiveDate::from_epoch_days(days)?, period)?.to_epoch_days())
                .spell(notation)
                .map(Cow::Owned)
        }
        (None, None) => Some(Cow::Borrowed(text)),
    };
    private.texts.iter().map(text).collect()
}

/// The nearest multiple of the base, halves away from 0.
fn rounded(number: Decimal, base: Decimal) -> Option<Decimal> {
    let scale = number.scale.max(base.scale);
    let units = |decimal: Decimal| decimal.mantissa.checked_mul(10_i128.checked_pow(scale - decimal.scale)?);
    let (number, base) = (units(number)?, units(base)?);
    let multiples = number.unsigned_abs().checked_mul(2)?.checked_add(base.unsigned_abs())? / (2 * base.unsigned_abs());
    let magnitude = i128::try_from(multiples.checked_mul(base.unsigned_abs())?).ok()?;
    Some(Decimal { mantissa: magnitude * number.signum(), scale })
}

fn truncated(date: NaiveDate, period: DateLevel) -> Option<NaiveDate> {
    let (year, month) = match period {
        DateLevel::Day => return Some(date),
        DateLevel::Month => (date.year(), date.month()),
        DateLevel::Quarter => (date.year(), date.month0() / 3 * 3 + 1),
        DateLevel::Year => (date.year(), 1),
        DateLevel::Decade => (date.year().div_euclid(10) * 10, 1),
    };
    NaiveDate::from_ymd_opt(year, month, 1)
}

/// The value of a text of the column before its ends are coded.
fn value<'t>(private: &Column, text: &'t str) -> Option<Value<'t>> {
    Value::parse(text, private.value_type, &private.notation)
}

/// The bounds of the codes, in the spelling of the column.
fn codes(
    private: &Column,
    transform: &Transform,
    texts: &[Cow<'_, str>],
    holders: Holders<'_>,
) -> Result<Codes, Vec<ReadError>> {
    let mut problems = Vec::new();
    let mut bound = |key: &'static str, bound: &Option<Bound>| -> Option<String> {
        let column = private.name.clone();
        let asked = bound.as_ref()?;
        let found = match asked {
            Bound::At(text) | Bound::OfEarlier(text) => spelled_as(text, private.value_type, &private.notation)
                .ok_or_else(|| ReadError::BoundNotOfType {
                    column: column.clone(),
                    key,
                    value_type: private.value_type,
                }),
            Bound::Quantile(_) if matches!(holders.rows, HoldersOfRows::Unknown) => {
                Err(ReadError::QuantileInCells { column: column.clone(), key })
            }
            Bound::Quantile(share) => near_quantile(private, texts, *share, key, holders)
                .ok_or(ReadError::QuantileHeldByFew { column: column.clone(), key, k: holders.k }),
        };
        let is_coded = |text: &Cow<'_, str>, bound: &str| match key {
            "top" => value(private, text) >= value(private, bound),
            _ => value(private, text) <= value(private, bound),
        };
        let found = found.and_then(|bound| {
            let n_coded = texts.iter().filter(|text| is_coded(text, &bound)).count();
            let is_inside = (n_coded > 0 && n_coded < texts.len()) || matches!(asked, Bound::OfEarlier(_));
            if is_inside { Ok(bound) } else { Err(ReadError::BoundOutside { column, key }) }
        });
        found.map_err(|problem| problems.push(problem)).ok()
    };
    let codes = Codes { top: bound("top", &transform.top), bottom: bound("bottom", &transform.bottom) };
    if let Codes { top: Some(top), bottom: Some(bottom) } = &codes
        && value(private, top) <= value(private, bottom)
    {
        problems.push(ReadError::BoundsCross { column: private.name.clone() });
    }
    if problems.is_empty() { Ok(codes) } else { Err(problems) }
}

/// The text of the value nearest to a quantile, from its inner side, that k persons hold. Values are counted, not sorted cell
/// by cell.
fn near_quantile(
    private: &Column,
    texts: &[Cow<'_, str>],
    share: f64,
    key: &str,
    holders: Holders<'_>,
) -> Option<String> {
    let value = |id: u32| value(private, &texts[id as usize]);
    let mut order: Vec<u32> = (0..texts.len() as u32).collect();
    order.sort_by_key(|&id| (value(id), texts[id as usize].len(), &texts[id as usize]));
    // The place of each text's value among the values.
    let mut place_of = vec![0; texts.len()];
    let mut firsts: Vec<u32> = Vec::new();
    for &id in &order {
        if firsts.last().is_none_or(|&first| value(first) != value(id)) {
            firsts.push(id);
        }
        place_of[id as usize] = firsts.len() - 1;
    }
    let mut n_cells = vec![0_u64; firsts.len()];
    let mut n_holders = vec![0_u64; firsts.len()];
    match holders.rows {
        HoldersOfRows::Counted(counts) => {
            for (&place, count) in place_of.iter().zip(counts) {
                n_cells[place] += count;
                n_holders[place] += count;
            }
        }
        HoldersOfRows::Each | HoldersOfRows::Named(_) | HoldersOfRows::Unknown => {
            let mut held: Vec<HashSet<u32>> = vec![HashSet::new(); firsts.len()];
            for (row, &id) in (0_u32..).zip(&private.ids) {
                if id != NULL {
                    let place = place_of[id as usize];
                    n_cells[place] += 1;
                    if held[place].len() < holders.k as usize {
                        held[place].insert(holders.person(row));
                    }
                }
            }
            n_holders = held.into_iter().map(|holders| holders.len() as u64).collect();
        }
    }
    let all: u64 = n_cells.iter().sum();
    let mut n_up_to = 0;
    let quantile = n_cells.iter().position(|n| {
        n_up_to += n;
        n_up_to > 0 && n_up_to as f64 >= share * all as f64
    })?;
    let is_held = |place: &usize| n_holders[*place] >= u64::from(holders.k);
    let place = match key {
        "top" => (0..=quantile).rev().find(is_held),
        _ => (quantile..firsts.len()).find(is_held),
    };
    place.map(|place| texts[firsts[place] as usize].clone().into_owned())
}

/// The texts with codes in place of outer values, by id.
fn coded(private: &Column, texts: &[Cow<'_, str>], codes: &Codes) -> Vec<String> {
    let top = codes.top.as_deref().and_then(|text| value(private, text));
    let bottom = codes.bottom.as_deref().and_then(|text| value(private, text));
    let code = |text: &Cow<'_, str>| match (&codes.top, &codes.bottom) {
        (Some(bound), _) if value(private, text) >= top => Codes::at_least(bound),
        (_, Some(bound)) if value(private, text) <= bottom => Codes::at_most(bound),
        _ => text.clone().into_owned(),
    };
    texts.iter().map(code).collect()
}

#[cfg(test)]
mod tests {
    use kohort_model::Role;
    use proptest::prelude::*;

    use super::*;

    /// A column, what is done to it, and who holds its cells.
    #[derive(Clone, Debug)]
    struct Case {
        column: Column,
        transform: Transform,
        persons: Option<Vec<u32>>,
        k: u32,
    }

    fn changed_column(
        column: &Column,
        transform: &Transform,
        rows: HoldersOfRows<'_>,
        k: u32,
    ) -> Result<Column, Vec<ReadError>> {
        changed(column, transform, Holders { rows, k })
    }

    fn number(value_type: ValueType, hundredths: i64) -> String {
        match value_type {
            ValueType::Integer => (hundredths / 10).to_string(),
            ValueType::Date => Value::Date(hundredths as i32 * 20).spell(&Notation::default()).unwrap(),
            // Trailing zeros, so that one value has several spellings.
            _ => {
                format!(
                    "{}{}.{:02}",
                    if hundredths < 0 { "-" } else { "" },
                    hundredths.abs() / 100,
                    hundredths.abs() % 100
                ) + if hundredths % 3 == 0 { "0" } else { "" }
            }
        }
    }

    fn any_bound(value_type: ValueType) -> impl Strategy<Value = Option<Bound>> {
        let at = (-800_i64..800).prop_map(move |value| Bound::At(number(value_type, value)));
        prop::option::of(prop_oneof![at, (0.01..0.99).prop_map(Bound::Quantile)])
    }

    fn any_case() -> impl Strategy<Value = Case> {
        let types = vec![ValueType::Integer, ValueType::Decimal, ValueType::Float, ValueType::Date];
        prop::sample::select(types).prop_flat_map(|value_type| {
            let cells = prop::collection::vec(prop::option::weighted(0.9, -1000_i64..1000), 1..40);
            let bases = if value_type == ValueType::Integer { vec!["1", "7", "50"] } else { vec!["0.5", "3", "12.25"] };
            let round = prop::option::of(prop::sample::select(bases));
            let levels = vec![DateLevel::Month, DateLevel::Quarter, DateLevel::Year, DateLevel::Decade];
            let truncate = prop::option::of(prop::sample::select(levels));
            let bounds = (any_bound(value_type), any_bound(value_type));
            let persons = prop::option::of(prop::collection::vec(0_u32..12, 40));
            (cells, round, truncate, bounds, persons, 1_u32..4).prop_map(
                move |(cells, round, truncate, (top, bottom), persons, k)| {
                    let texts: Vec<Option<String>> =
                        cells.iter().map(|cell| cell.map(|cell| number(value_type, cell))).collect();
                    let column =
                        Column::from_cells("c", Role::Quasi, texts.iter().map(Option::as_deref)).typed(value_type);
                    let is_date = value_type == ValueType::Date;
                    let round = round.filter(|_| !is_date).map(str::to_owned);
                    let transform = Transform {
                        round,
                        truncate: truncate.filter(|_| is_date),
                        top,
                        bottom,
                        ..Transform::default()
                    };
                    let persons = persons.map(|mut persons| {
                        persons.truncate(cells.len());
                        persons
                    });
                    Case { column, transform, persons, k }
                },
            )
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        /// The verifier finds multiples, days and quantiles in another way, so it would refuse what is wrong on one side.
        #[test]
        fn the_verifier_agrees_with_every_change(case in any_case()) {
            let rows = case.persons.as_deref().map_or(HoldersOfRows::Each, HoldersOfRows::Named);
            let found = changed(&case.column, &case.transform, Holders { rows, k: case.k });
            if case.persons.is_none() {
                // The same column, in which each text stands once and is counted.
                let texts = &case.column.texts;
                let counts: Vec<u64> = (0..texts.len() as u32)
                    .map(|id| case.column.ids.iter().filter(|&&other| other == id).count() as u64)
                    .collect();
                let once = case.column.with_ids((0..texts.len() as u32).collect());
                let counted = changed_column(&once, &case.transform, HoldersOfRows::Counted(&counts), case.k);
                let of_texts = |column: &Column| {
                    column.ids.iter().map(|&id| column.texts.get(id).to_owned()).collect::<Vec<String>>()
                };
                let of_rows = found.as_ref().ok().map(|changed| {
                    let cell = |id: u32| {
                        let row = case.column.ids.iter().position(|&other| other == id).unwrap();
                        changed.cell(row).unwrap().to_owned()
                    };
                    (0..texts.len() as u32).map(cell).collect::<Vec<String>>()
                });
                prop_assert_eq!(counted.as_ref().ok().map(of_texts), of_rows);
            }
            match found {
                Ok(changed) => {
                    for (&before, &after) in case.column.ids.iter().zip(&changed.ids) {
                        prop_assert_eq!(before == NULL, after == NULL);
                    }
                    // Every text of the changed column is a value of it, and order is kept.
                    let mut values: Vec<(Value<'_>, Value<'_>)> = case.column.ids.iter().zip(&changed.ids)
                        .filter(|(id, _)| **id != NULL)
                        .map(|(&before, &after)| (case.column.value(before).unwrap(), changed.value(after).unwrap()))
                        .collect();
                    values.sort();
                    prop_assert!(values.windows(2).all(|pair| pair[0].1 <= pair[1].1));
                }
                Err(problems) => {
                    let is_fault = |problem: &ReadError| {
                        matches!(problem, ReadError::Transform { .. } | ReadError::NotRounded { .. })
                    };
                    prop_assert!(!problems.iter().any(is_fault), "{:?}", problems);
                }
            }
        }
    }

    #[test]
    fn the_field_of_a_changed_column_can_hold_every_cell() {
        let column = |value_type| Column::from_cells("c", Role::Plain, [Some("100")]).typed(value_type);
        let field = |data_type| Field::new("c", data_type, true);
        let round = Transform { round: Some("50".to_owned()), ..Transform::default() };
        let narrow = changed_field(field(DataType::Int8), &column(ValueType::Integer), &round);
        assert_eq!(narrow.unwrap().data_type(), &DataType::Int64);
        assert!(changed_field(field(DataType::Float64), &column(ValueType::Float), &round).is_none());
        let mut coded = column(ValueType::Integer);
        coded.notation.codes.top = Some("90".to_owned());
        assert!(changed_field(field(DataType::Int8), &coded, &Transform::default()).is_none());
    }
}
