//! [`GroupBy`]: one estimate for each value of a column, or for each range of its numbers or dates.

use kohort_model::{Codes, Column, Decimal, LabelsManifest, Notation, Value, ValueType};
use kohort_verify::{Reading, ShownLabel};

use super::scale::without_hierarchy;
use crate::error::Report;
use crate::expression::{Comparison, Condition, Test};

/// More groups are refused, because nobody reads them.
const MOST_GROUPS: usize = 1000;

/// A column, and how its values are grouped.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupBy {
    column: String,
    width: Option<Width>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Width {
    Number(Decimal),
    Calendar(Period),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Period {
    Month,
    Year,
    Decade,
}

/// A group: its name, and the conditions that its rows satisfy.
pub(super) struct Asked {
    pub(super) name: String,
    pub(super) conditions: Vec<Condition>,
}

impl GroupBy {
    /// Reads `sex`, `age:10`, `birth:month`, `birth:year` or `birth:decade`.
    ///
    /// # Errors
    /// The problem, if what follows the colon is neither a number above 0 nor one of these words.
    pub fn parse(text: &str) -> Result<GroupBy, Report> {
        let Some((column, width)) = text.rsplit_once(':') else {
            return Ok(GroupBy { column: text.to_owned(), width: None });
        };
        let width = match width {
            "month" => Some(Width::Calendar(Period::Month)),
            "year" => Some(Width::Calendar(Period::Year)),
            "decade" => Some(Width::Calendar(Period::Decade)),
            number => Decimal::parse(number, false).filter(|number| number.mantissa > 0).map(Width::Number),
        };
        match width {
            Some(width) => Ok(GroupBy { column: column.to_owned(), width: Some(width) }),
            None => Err(Report::new(format!("'{text}' does not say how wide groups are")).hint(
                "write a column, or a column with a width: age:10 for numbers, birth:month, birth:year or birth:decade for dates",
            )),
        }
    }

    /// The column.
    pub fn column(&self) -> &str {
        &self.column
    }

    /// The groups, in the order of their values.
    pub(super) fn groups(&self, column: &Column, labels: Option<&LabelsManifest>) -> Result<Vec<Asked>, Report> {
        let groups = match (self.width, column.value_type) {
            (None, value_type) if !value_type.is_ordered() => self.values(column, labels)?,
            (Some(Width::Number(width)), ValueType::Integer) if width.shortest().scale > 0 => {
                let message =
                    format!("column '{}' has whole numbers, which a width of {width} would divide", self.column);
                return Err(Report::new(message).hint("give a whole number as the width"));
            }
            (Some(Width::Number(width)), ValueType::Integer | ValueType::Decimal | ValueType::Float) => {
                self.ranges(column, labels, Ranges::Numbers(width))?
            }
            (Some(Width::Calendar(period)), ValueType::Date) => self.ranges(column, labels, Ranges::Dates(period))?,
            (_, value_type) => {
                let name = &self.column;
                let hint = match value_type {
                    ValueType::Integer | ValueType::Decimal | ValueType::Float => {
                        format!("group by {name}:10, for example")
                    }
                    ValueType::Date => format!("group by {name}:month, {name}:year or {name}:decade"),
                    ValueType::Timestamp => "group by another column".to_owned(),
                    ValueType::Text | ValueType::Boolean => format!("group by {name} alone"),
                };
                let message =
                    format!("column '{name}' has values of type {value_type}, which can't be grouped in this way");
                return Err(Report::new(message).hint(hint));
            }
        };
        if groups.len() > MOST_GROUPS {
            let message = format!("column '{}' makes {} groups, more than {MOST_GROUPS}", self.column, groups.len());
            return Err(Report::new(message).hint("make groups wider, or group by another column"));
        }
        Ok(groups)
    }

    /// One group for each value that a cell may stand for.
    fn values(&self, column: &Column, labels: Option<&LabelsManifest>) -> Result<Vec<Asked>, Report> {
        if matches!(labels, Some(LabelsManifest::Mask { .. })) {
            let message =
                format!("column '{}' shows masked codes, which have too many values to group by", self.column);
            return Err(Report::new(message).hint("ask for one prefix at a time, for example = '885**'"));
        }
        let mut values: Vec<String> = match (labels, &column.hierarchy) {
            (Some(LabelsManifest::Hierarchy { .. }), None) => return Err(without_hierarchy(column)),
            (_, Some(hierarchy)) => {
                hierarchy.leaves().into_iter().map(|leaf| hierarchy.label(leaf).to_owned()).collect()
            }
            (_, None) => column.texts.iter().filter(|&text| text != "*").map(str::to_owned).collect(),
        };
        values.sort_unstable();
        let group = |value: String| Asked {
            conditions: vec![Condition { column: self.column.clone(), test: Test::In(vec![value.clone()]) }],
            name: value,
        };
        Ok(values.into_iter().map(group).collect())
    }

    /// One group for each range from the least to the largest value that is shown. Values beyond a code can't be told apart, so
    /// they are one group.
    fn ranges(&self, column: &Column, labels: Option<&LabelsManifest>, ranges: Ranges) -> Result<Vec<Asked>, Report> {
        let Codes { top, bottom } = &column.notation.codes;
        let notation = Notation { codes: Codes::default(), ..column.notation.clone() };
        let place_of = |bound: &Option<String>| {
            bound.as_deref().and_then(|text| Value::parse(text, column.value_type, &notation)).as_ref().and_then(place)
        };
        let (top_place, bottom_place) = (place_of(top), place_of(bottom));
        let Some((least, most)) = shown_range(column, labels) else { return Ok(Vec::new()) };
        let least = bottom_place.map_or(least, |bound| least.max(bound));
        let most = top_place.map_or(most, |bound| most.min(bound));
        let (first, last) = (ranges.number(least), ranges.number(most));
        if last.saturating_sub(first) >= MOST_GROUPS as i64 {
            let message = format!("column '{}' makes more than {MOST_GROUPS} groups", self.column);
            return Err(Report::new(message).hint("make groups wider, or group by another column"));
        }
        let compare = |comparison, text: &str| Condition {
            column: self.column.clone(),
            test: Test::Compare(comparison, text.to_owned()),
        };
        let mut groups = Vec::new();
        if let Some(bound) = bottom {
            groups.push(Asked { name: Codes::at_most(bound), conditions: vec![compare(Comparison::AtMost, bound)] });
        }
        for number in first..=last {
            let (Some(low), Some(high)) = (ranges.start(number), ranges.start(number + 1)) else { continue };
            let (Some(low_text), Some(high_text)) = (low.spell(&notation), high.spell(&notation)) else { continue };
            if top_place.is_some_and(|top| place(&low).is_some_and(|low| top <= low)) {
                break;
            }
            let is_inside = |bound: f64, end: &Value<'_>, is_beyond: fn(&f64, &f64) -> bool| {
                place(end).is_some_and(|end| is_beyond(&bound, &end))
            };
            let from = match (bottom, bottom_place) {
                (Some(text), Some(bound)) if is_inside(bound, &low, f64::ge) => compare(Comparison::Greater, text),
                _ => compare(Comparison::AtLeast, &low_text),
            };
            let below = match (top, top_place) {
                (Some(text), Some(bound)) if is_inside(bound, &high, f64::le) => compare(Comparison::Less, text),
                _ => compare(Comparison::Less, &high_text),
            };
            groups.push(Asked { name: ranges.name(number, &low_text, &high_text), conditions: vec![from, below] });
        }
        if let Some(bound) = top {
            groups.push(Asked { name: Codes::at_least(bound), conditions: vec![compare(Comparison::AtLeast, bound)] });
        }
        Ok(groups)
    }
}

/// The least and the largest value that cells of the column may stand for, `None` if no cell says.
fn shown_range(column: &Column, labels: Option<&LabelsManifest>) -> Option<(f64, f64)> {
    let reading = Reading::new(column, labels.unwrap_or(&LabelsManifest::Ranges), None);
    let ends = column.texts.iter().flat_map(|label| match reading.read(label) {
        Some(ShownLabel::Between { low, high, .. }) => [place(&low), place(&high)],
        Some(ShownLabel::Value) => {
            [Value::parse(label, column.value_type, &column.notation).as_ref().and_then(place), None]
        }
        _ => [None, None],
    });
    ends.flatten().fold(None, |range, place| match range {
        None => Some((place, place)),
        Some((least, most)) => Some((place.min(least), place.max(most))),
    })
}

/// Where a number or a day lies on its scale.
fn place(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Integer(_) => Some(value.distance_from(&Value::Integer(0))),
        Value::Decimal(_) => Some(value.distance_from(&Value::Decimal(Decimal { mantissa: 0, scale: 0 }))),
        Value::Float(_) => Some(value.distance_from(&Value::Float(0.0))),
        Value::Date(_) => Some(value.distance_from(&Value::Date(0))),
        Value::Timestamp(_) | Value::Text(_) | Value::Boolean(_) => None,
    }
}

/// Ranges that are numbered from 0, or from the year 0.
#[derive(Clone, Copy)]
enum Ranges {
    Numbers(Decimal),
    Dates(Period),
}

impl Ranges {
    /// The number of the range that holds a place.
    fn number(self, of: f64) -> i64 {
        let guess = match self {
            Ranges::Numbers(width) => (of / (width.mantissa as f64 / 10f64.powi(width.scale as i32))).floor() as i64,
            Ranges::Dates(period) => {
                let spelled = Value::Date(of as i32).spell(&Notation::default()).unwrap_or_default();
                let mut parts = spelled.splitn(3, '-').map(|part| part.parse().unwrap_or(0));
                period.number(parts.next().unwrap_or(0), parts.next().unwrap_or(1))
            }
        };
        // Dividing may round a value at the start of a range down to the range before it.
        let next = self.start(guess.saturating_add(1));
        if next.as_ref().and_then(place).is_some_and(|start| start <= of) { guess + 1 } else { guess }
    }

    /// The first value of a range, `None` if there is no such value.
    fn start(self, number: i64) -> Option<Value<'static>> {
        match self {
            Ranges::Numbers(Decimal { mantissa, scale }) => {
                Some(Value::Decimal(Decimal { mantissa: mantissa.checked_mul(number.into())?, scale }))
            }
            Ranges::Dates(period) => {
                match Value::parse(&period.first_day(number), ValueType::Date, &Notation::default()) {
                    Some(Value::Date(day)) => Some(Value::Date(day)),
                    _ => None,
                }
            }
        }
    }

    fn name(self, number: i64, low: &str, high: &str) -> String {
        match self {
            Ranges::Numbers(_) => format!("{low} to below {high}"),
            Ranges::Dates(Period::Month) => format!("{:04}-{:02}", number.div_euclid(12), number.rem_euclid(12) + 1),
            Ranges::Dates(Period::Year) => format!("{number:04}"),
            Ranges::Dates(Period::Decade) => format!("{:04}s", number * 10),
        }
    }
}

impl Period {
    fn number(self, year: i64, month: i64) -> i64 {
        match self {
            Period::Month => year * 12 + month - 1,
            Period::Year => year,
            Period::Decade => year.div_euclid(10),
        }
    }

    fn first_day(self, number: i64) -> String {
        let (year, month) = match self {
            Period::Month => (number.div_euclid(12), number.rem_euclid(12) + 1),
            Period::Year => (number, 1),
            Period::Decade => (number * 10, 1),
        };
        format!("{year:04}-{month:02}-01")
    }
}

#[cfg(test)]
mod tests {
    use kohort_model::Role;

    use super::*;

    fn names(by: &str, cells: &[&str], value_type: ValueType, codes: Codes) -> Vec<String> {
        let mut column = Column::from_cells("c", Role::Quasi, cells.iter().map(|cell| Some(*cell))).typed(value_type);
        column.notation.codes = codes;
        let groups = GroupBy::parse(by).unwrap().groups(&column, None).unwrap();
        groups.into_iter().map(|group| group.name).collect()
    }

    #[test]
    fn groups_cover_everything_that_is_shown() {
        let none = Codes::default;
        assert_eq!(names("c", &["b", "a", "*"], ValueType::Text, none()), ["a", "b"]);
        let tens = ["0 to below 10", "10 to below 20", "20 to below 30"];
        assert_eq!(names("c:10", &["[3,19]", "20", "*"], ValueType::Integer, none()), tens);
        assert_eq!(names("c:0.1", &["0.1", "0.3"], ValueType::Decimal, none()).len(), 3);
        assert_eq!(names("c:10", &["-1", "1"], ValueType::Integer, none()), ["-10 to below 0", "0 to below 10"]);
        assert_eq!(names("c:decade", &["1999-12-31", "2000-01-01"], ValueType::Date, none()), ["1990s", "2000s"]);
        assert_eq!(names("c:month", &["[2025-12-31,2026-01-01]"], ValueType::Date, none()), ["2025-12", "2026-01"]);
        assert_eq!(names("c:10", &["*"], ValueType::Integer, none()), [""; 0]);
    }

    #[test]
    fn what_lies_beyond_a_code_is_one_group() {
        let codes = Codes { top: Some("25".to_owned()), bottom: Some("5".to_owned()) };
        let names = names("c:10", &["<= 5", "7", ">= 25"], ValueType::Integer, codes);
        assert_eq!(names, ["<= 5", "0 to below 10", "10 to below 20", "20 to below 30", ">= 25"]);
    }

    #[test]
    fn widths_that_fit_no_type_are_refused() {
        for text in ["age:0", "age:-5", "age:wide", "age:"] {
            assert!(GroupBy::parse(text).is_err(), "{text}");
        }
        let text = Column::from_cells("c", Role::Quasi, [Some("a")]);
        assert!(GroupBy::parse("c:10").unwrap().groups(&text, None).is_err());
        let number = text.typed(ValueType::Integer);
        assert!(GroupBy::parse("c").unwrap().groups(&number, None).is_err());
    }
}
