//! [`verify_transformed`]: whether the cells of a column are what the spec makes of the private cells.
//!
//! # Guarantee
//! Every cell is compared with its private cell by the definitions in [`kohort_model::Transform`]. A bound that was found in
//! the data is found again, and at least k persons hold it.
//! # Independence
//! Another crate changes the cells. Here multiples are found by division with remainder of signed numbers, first days by
//! counting days from year to year and from month to month, and quantiles by sorted cells instead of counted values.

use std::collections::{HashMap, HashSet};

use kohort_model::hierarchy::DateLevel;
use kohort_model::{Bound, Codes, Column, Decimal, NULL, Notation, Transform, Value, ValueType};

use crate::Violation;
use crate::reading::meaning::day;

/// A column before and after its cells were changed.
#[derive(Clone, Copy, Debug)]
pub struct Transformed<'a> {
    /// The private column, typed.
    pub private: &'a Column,
    /// The changed column, from which a release is made.
    pub changed: &'a Column,
    /// What the spec says about the column.
    pub transform: &'a Transform,
    /// For each row the number of its person; rows are persons without it.
    pub persons: Option<&'a [u32]>,
    /// If each text stands in one row only, how many persons hold it, each in one row.
    pub counts: Option<&'a [u64]>,
    /// The number of persons who must hold a bound that was found in the data.
    pub k: u32,
}

/// Verifies the changed cells of a column.
///
/// # Errors
/// The first thing that is wrong with them.
pub fn verify_transformed(of: &Transformed<'_>) -> Result<(), Violation> {
    let column = of.private.name.clone();
    let wrong = |n: u64, first_row: u64| Violation::WrongTransform { column: of.private.name.clone(), n, first_row };
    if of.changed.ids.len() != of.private.ids.len() {
        return Err(Violation::ColumnLength {
            column,
            n_cells: of.changed.ids.len() as u64,
            n_rows: of.private.ids.len() as u64,
        });
    }
    let ids = 0..of.private.texts.len() as u32;
    let middles: Option<Vec<Middle<'_>>> = ids.map(|id| of.middle(of.private.texts.get(id))).collect();
    let Some(middles) = middles else { return Err(Violation::NoTransform { column }) };
    let codes = &of.changed.notation.codes;
    let sides = [(&of.transform.top, &codes.top, Side::Top), (&of.transform.bottom, &codes.bottom, Side::Bottom)];
    for (asked, found, side) in sides {
        let fits = match (asked, found) {
            (None, None) => true,
            (Some(Bound::At(asked) | Bound::OfEarlier(asked)), Some(found)) => of.bound(found).is_some_and(|found| {
                kohort_model::spelled_as(asked, of.private.value_type, &of.private.notation)
                    .and_then(|asked| of.bound(&asked).map(|asked| asked == found))
                    .unwrap_or(false)
            }),
            (Some(Bound::Quantile(share)), Some(found)) => {
                of.bound(found).is_some_and(|found| of.held_by_k(&middles, *share, side) == Some(found))
            }
            _ => false,
        };
        if !fits {
            return Err(Violation::WrongBound { column });
        }
    }
    let mut known: HashMap<(u32, u32), bool> = HashMap::new();
    let (mut n_wrong, mut first_wrong) = (0, 0);
    for (row, (&private, &changed)) in (1..).zip(of.private.ids.iter().zip(&of.changed.ids)) {
        let is_right = *known.entry((private, changed)).or_insert_with(|| match (private, changed) {
            (NULL, changed) => changed == NULL,
            (_, NULL) => false,
            (private, changed) => of.stands_for(middles[private as usize], private, of.changed.texts.get(changed)),
        });
        if !is_right {
            n_wrong += 1;
            first_wrong = if n_wrong == 1 { row } else { first_wrong };
        }
    }
    if n_wrong == 0 { Ok(()) } else { Err(wrong(n_wrong, first_wrong)) }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Top,
    Bottom,
}

/// A private value after rounding or truncating, before it is compared with bounds.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Middle<'a> {
    Number(Decimal),
    Float(f64),
    Day(i64),
    Value(Value<'a>),
}

impl<'a> Transformed<'a> {
    fn middle(&self, text: &'a str) -> Option<Middle<'a>> {
        let Notation { decimal_comma, .. } = self.private.notation;
        let is_whole = self.private.value_type == ValueType::Integer;
        if let Some(base) = &self.transform.round {
            let number = Decimal::parse(text, decimal_comma && !is_whole)?;
            let nearest = nearest_multiple(number, Decimal::parse(base, false)?)?;
            return Some(match self.private.value_type {
                ValueType::Float => Middle::Float(nearest.to_string().parse().ok()?),
                _ => Middle::Number(nearest),
            });
        }
        let value = Value::parse(text, self.private.value_type, &self.private.notation)?;
        match (self.transform.truncate, value) {
            (None, value) => Some(Middle::Value(value)),
            (Some(period), Value::Date(days)) => Some(Middle::Day(first_day(i64::from(days), period)?)),
            (Some(_), _) => None,
        }
    }

    /// A bound, to be compared with values after rounding or truncating.
    fn bound<'b>(&self, text: &'b str) -> Option<Middle<'b>> {
        let notation = &self.private.notation;
        let value = Value::parse(text, self.private.value_type, notation)?;
        let is_whole = self.private.value_type == ValueType::Integer;
        Some(match (&self.transform.round, self.transform.truncate, value) {
            (Some(_), _, Value::Float(number)) => Middle::Float(number),
            (Some(_), ..) => Middle::Number(Decimal::parse(text, notation.decimal_comma && !is_whole)?),
            (None, Some(_), Value::Date(days)) => Middle::Day(i64::from(days)),
            (None, _, value) => Middle::Value(value),
        })
    }

    /// Whether a changed text is what must stand for a private one.
    fn stands_for(&self, middle: Middle<'_>, private: u32, changed: &str) -> bool {
        let Codes { top, bottom } = &self.changed.notation.codes;
        if let Some(top) = top
            && self.bound(top).is_none_or(|bound| middle >= bound)
        {
            return changed == format!(">= {top}");
        }
        if let Some(bottom) = bottom
            && self.bound(bottom).is_none_or(|bound| middle <= bound)
        {
            return changed == format!("<= {bottom}");
        }
        match middle {
            Middle::Value(_) => changed == self.private.texts.get(private),
            _ => self.bound(changed) == Some(middle),
        }
    }

    /// The value nearest to a quantile, from its inner side, that k persons hold.
    fn held_by_k<'b>(&self, middles: &[Middle<'b>], share: f64, side: Side) -> Option<Middle<'b>> {
        if let Some(counts) = self.counts {
            return self.counted_by_k(middles, counts, share, side);
        }
        let mut cells: Vec<(Middle<'b>, u32)> = Vec::new();
        for (row, &id) in (0..).zip(&self.private.ids) {
            if id != NULL {
                cells.push((middles[id as usize], self.persons.map_or(row, |persons| persons[row as usize])));
            }
        }
        cells.sort_by(|one, other| one.0.partial_cmp(&other.0).expect("values of one column have an order"));
        let n_cells = cells.len() as f64;
        let at_quantile = (1..=cells.len()).find(|&n| n as f64 >= share * n_cells)? - 1;
        let quantile = cells[at_quantile].0;
        let mut best = None;
        let mut groups = cells.chunk_by(|one, other| one.0 == other.0);
        let is_held = |group: &[(Middle<'b>, u32)]| {
            group.iter().map(|cell| cell.1).collect::<HashSet<u32>>().len() >= self.k as usize
        };
        match side {
            Side::Top => {
                for group in groups.filter(|group| group[0].0 <= quantile && is_held(group)) {
                    best = Some(group[0].0);
                }
            }
            Side::Bottom => {
                best = groups.find(|group| group[0].0 >= quantile && is_held(group)).map(|group| group[0].0);
            }
        }
        best
    }

    /// The same, where the persons who hold each text are counted.
    fn counted_by_k<'b>(&self, middles: &[Middle<'b>], counts: &[u64], share: f64, side: Side) -> Option<Middle<'b>> {
        let mut held: Vec<(Middle<'b>, u64)> = middles.iter().copied().zip(counts.iter().copied()).collect();
        held.sort_by(|one, other| one.0.partial_cmp(&other.0).expect("values of one column have an order"));
        let groups = held.chunk_by(|one, other| one.0 == other.0);
        let groups: Vec<(Middle<'b>, u64)> =
            groups.map(|group| (group[0].0, group.iter().map(|text| text.1).sum())).collect();
        let n_cells: u64 = counts.iter().sum();
        // From the largest value down, until too few cells are left below.
        let (mut n_below, mut quantile) = (n_cells, groups.len().checked_sub(1)?);
        for (place, (_, n)) in groups.iter().enumerate().rev() {
            if (n_below as f64) < share * n_cells as f64 {
                break;
            }
            (quantile, n_below) = (place, n_below - n);
        }
        let is_held = |group: &&(Middle<'b>, u64)| group.1 >= u64::from(self.k);
        let found = match side {
            Side::Top => groups[..=quantile].iter().rev().find(is_held),
            Side::Bottom => groups[quantile..].iter().find(is_held),
        };
        found.map(|group| group.0)
    }
}

/// The nearest multiple of a base; of two that are equally near, the one farther from 0.
fn nearest_multiple(number: Decimal, base: Decimal) -> Option<Decimal> {
    let scale = number.scale.max(base.scale);
    let at_scale = |decimal: Decimal| decimal.mantissa.checked_mul(10_i128.checked_pow(scale - decimal.scale)?);
    let (number, base) = (at_scale(number)?, at_scale(base)?);
    let below = number - number.rem_euclid(base);
    let above = below.checked_add(base)?;
    let (to_below, to_above) = (number - below, above - number);
    let takes_above = to_above < to_below || (to_above == to_below && number > 0);
    Some(Decimal { mantissa: if takes_above { above } else { below }, scale })
}

/// The first day of the period that holds a day, both in days since 1970.
fn first_day(days: i64, period: DateLevel) -> Option<i64> {
    let mut year = 1970 + days / 366;
    while day(year, 1, 1)? > days {
        year -= 1;
    }
    while day(year + 1, 1, 1)? <= days {
        year += 1;
    }
    let mut month = 1;
    while month < 12 && day(year, month + 1, 1)? <= days {
        month += 1;
    }
    match period {
        DateLevel::Day => Some(days),
        DateLevel::Month => day(year, month, 1),
        DateLevel::Quarter => day(year, [1, 1, 1, 4, 4, 4, 7, 7, 7, 10, 10, 10][month as usize - 1], 1),
        DateLevel::Year => day(year, 1, 1),
        DateLevel::Decade => day(year - year.rem_euclid(10), 1, 1),
    }
}

#[cfg(test)]
mod tests {
    use kohort_model::Role;

    use super::*;

    fn column(cells: &[Option<&str>], value_type: ValueType) -> Column {
        Column::from_cells("age", Role::Quasi, cells.iter().copied()).typed(value_type)
    }

    fn coded(cells: &[Option<&str>], top: Option<&str>, bottom: Option<&str>) -> Column {
        let mut column = column(cells, ValueType::Integer);
        column.notation.codes = Codes { top: top.map(str::to_owned), bottom: bottom.map(str::to_owned) };
        column
    }

    fn verified(private: &Column, changed: &Column, transform: &Transform) -> Result<(), Violation> {
        verify_transformed(&Transformed { private, changed, transform, persons: None, counts: None, k: 2 })
    }

    const AGES: [Option<&str>; 8] =
        [Some("3"), Some("5"), Some("5"), None, Some("40"), Some("80"), Some("80"), Some("99")];

    /// Each cell of the changed column replaced by each of these texts, which must be rejected wherever it differs.
    fn all_other_cells_are_rejected(private: &Column, cells: &[Option<&str>], transform: &Transform, codes: &Codes) {
        let texts = ["3", "5", "10", "40", "80", "99", "100", "<= 5", ">= 80", ">= 90", "*", "[5,40]"];
        let others = texts.iter().map(|text| Some(*text)).chain([None]);
        let build = |cells: &[Option<&str>]| {
            let mut changed = column(cells, private.value_type);
            changed.notation.codes = codes.clone();
            changed
        };
        assert_eq!(verified(private, &build(cells), transform), Ok(()));
        for other in others {
            for row in 0..cells.len() {
                let mut cells = cells.to_vec();
                if std::mem::replace(&mut cells[row], other) != other {
                    let found = verified(private, &build(&cells), transform);
                    let first_row = row as u64 + 1;
                    assert_eq!(found, Err(Violation::WrongTransform { column: "age".to_owned(), n: 1, first_row }));
                }
            }
        }
    }

    #[test]
    fn every_mutation_of_coded_cells_is_rejected() {
        let at = |bound: &str| Some(Bound::At(bound.to_owned()));
        let transform = Transform { top: at("80"), bottom: at("5"), ..Transform::default() };
        let codes = Codes { top: Some("80".to_owned()), bottom: Some("5".to_owned()) };
        let cells = ["<= 5", "<= 5", "<= 5", "", "40", ">= 80", ">= 80", ">= 80"].map(Some);
        let cells: Vec<Option<&str>> = cells.into_iter().map(|cell| cell.filter(|cell| !cell.is_empty())).collect();
        all_other_cells_are_rejected(&column(&AGES, ValueType::Integer), &cells, &transform, &codes);
    }

    #[test]
    fn every_mutation_of_rounded_cells_is_rejected() {
        let transform = Transform { round: Some("10".to_owned()), ..Transform::default() };
        let cells = [Some("0"), Some("10"), Some("10"), None, Some("40"), Some("80"), Some("80"), Some("100")];
        all_other_cells_are_rejected(&column(&AGES, ValueType::Integer), &cells, &transform, &Codes::default());
    }

    #[test]
    fn another_bound_than_the_asked_one_is_rejected() {
        let private = column(&AGES, ValueType::Integer);
        let top = |bound| Transform { top: Some(bound), ..Transform::default() };
        let with_top = |cells: [&'static str; 3], bound| {
            coded(
                &[Some("3"), Some("5"), Some("5"), None, Some("40"), Some(cells[0]), Some(cells[1]), Some(cells[2])],
                Some(bound),
                None,
            )
        };
        let (at_80, at_99) = (with_top([">= 80"; 3], "80"), with_top(["80", "80", ">= 99"], "99"));
        let wrong = Err(Violation::WrongBound { column: "age".to_owned() });
        assert_eq!(verified(&private, &at_80, &top(Bound::At("80".to_owned()))), Ok(()));
        assert_eq!(verified(&private, &at_99, &top(Bound::At("80".to_owned()))), wrong);
        // The quantile is 99, which one person holds.
        assert_eq!(verified(&private, &at_80, &top(Bound::Quantile(0.99))), Ok(()));
        assert_eq!(verified(&private, &at_99, &top(Bound::Quantile(0.99))), wrong);
        assert_eq!(verified(&private, &at_80, &Transform::default()), wrong);
        assert_eq!(verified(&private, &private, &top(Bound::At("80".to_owned()))), wrong);
    }

    #[test]
    fn k_rows_of_one_person_do_not_hold_a_bound() {
        let private = column(&AGES, ValueType::Integer);
        let cells = [Some("3"), Some("5"), Some("5"), None, Some("40"), Some(">= 80"), Some(">= 80"), Some(">= 80")];
        let changed = coded(&cells, Some("80"), None);
        let transform = Transform { top: Some(Bound::Quantile(0.99)), ..Transform::default() };
        let of = |persons| Transformed {
            private: &private,
            changed: &changed,
            transform: &transform,
            persons,
            counts: None,
            k: 2,
        };
        assert_eq!(verify_transformed(&of(Some(&[0, 1, 2, 3, 4, 5, 6, 7]))), Ok(()));
        let twice = verify_transformed(&of(Some(&[0, 1, 2, 3, 4, 5, 5, 7])));
        assert_eq!(twice, Err(Violation::WrongBound { column: "age".to_owned() }));
    }

    #[test]
    fn multiples_and_first_days_are_those_of_the_definition() {
        let nearest = |number: &str, base: &str| {
            let parse = |text| Decimal::parse(text, false).unwrap();
            nearest_multiple(parse(number), parse(base)).unwrap().to_string()
        };
        for (number, base, multiple) in
            [("12", "5", "10"), ("12.5", "5", "15"), ("-12.5", "5", "-15"), ("-12", "5", "-10"), ("0.07", "0.1", "0.1")]
        {
            assert_eq!(nearest(number, base), multiple, "{number} to {base}");
        }
        for (date, period, first) in [
            ((1984, 3, 17), DateLevel::Month, (1984, 3, 1)),
            ((1984, 12, 31), DateLevel::Quarter, (1984, 10, 1)),
            ((1969, 12, 31), DateLevel::Year, (1969, 1, 1)),
            ((1960, 1, 1), DateLevel::Decade, (1960, 1, 1)),
            ((2000, 2, 29), DateLevel::Decade, (2000, 1, 1)),
            ((1, 1, 1), DateLevel::Year, (1, 1, 1)),
        ] {
            let days = |(year, month, of_month)| day(year, month, of_month).unwrap();
            assert_eq!(first_day(days(date), period), Some(days(first)), "{date:?}");
        }
    }
}
