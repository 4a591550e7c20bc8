//! Makes hierarchies by rule, from the values of a column.
//!
//! # Guarantee
//! Every value is a leaf, no label names two nodes, and every range covers exactly the values below it. Bounds are
//! computed in decimals, never in binary fractions.
//! # Deviations
//! Leaves are in the order of their values (for masks from the left, of their endings), not in the order of the file.
//! So the order of input rows changes nothing. Timestamps with an offset belong to their day in UTC.
//! # Cost
//! O(n log n) in the distinct values, one node per value and level.

use chrono::{Datelike, NaiveDate};
use serde::{Deserialize, Serialize};

use super::Hierarchy;
use crate::{Decimal, Notation, Texts, Value, ValueType};

/// A rule that makes a hierarchy from the values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// Numbers into ranges of these widths, each a multiple of the one before: `23 -> [20,24] -> [20,29] -> *`.
    Steps(Vec<f64>),
    /// Characters replaced by `*` from one side: `88512 -> 8851* -> 885** -> ... -> *****`.
    Mask(MaskSide),
    /// Dates into these levels, finest first.
    Dates(Vec<DateLevel>),
    /// The values and a root.
    Flat,
}

/// The side from which characters are masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum MaskSide {
    /// The last characters first: prefixes stay.
    Right,
    /// The first characters first: suffixes stay.
    Left,
}

/// A level of dates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum DateLevel {
    /// `1984-03-17`, for timestamps; a date is its own day.
    Day,
    /// `1984-03`.
    Month,
    /// `1984-Q1`.
    Quarter,
    /// `1984`.
    Year,
    /// `1980s`.
    Decade,
}

/// Why a rule does not fit the values of a column. Messages say how many values are concerned, never which.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum MakeError {
    /// Steps without a width.
    #[error("the steps are empty")]
    NoSteps,
    /// A width that is not above zero, or not finite.
    #[error("step {position} is not a number above 0")]
    BadStep { position: usize },
    /// A width that is not a multiple of the width before it.
    #[error("step {position} is not a multiple of the step before it")]
    StepNotMultiple { position: usize },
    /// A fractional width for whole numbers.
    #[error("step {position} is not a whole number, but the column's values are")]
    StepNotWhole { position: usize },
    /// Dates without a level.
    #[error("the date levels are empty")]
    NoDateLevels,
    /// Levels that do not nest.
    #[error("the date levels are not in the order day, month, quarter, year, decade")]
    DateLevelsOutOfOrder,
    /// A rule for another type.
    #[error("{rule} need {needed}, but the column's values are of type {value_type}")]
    WrongType { rule: &'static str, needed: &'static str, value_type: ValueType },
    /// Values that are not of the column's type.
    #[error("values that are not of the column's type {value_type}: {n_values} distinct")]
    NotOfType { n_values: usize, value_type: ValueType },
    /// Numbers whose ranges need more than 38 digits.
    #[error("values with too many digits for steps: {n_values} distinct")]
    TooManyDigits { n_values: usize },
    /// Years that no label can show.
    #[error("values outside the years 0000 to 9999: {n_values} distinct")]
    YearOutOfRange { n_values: usize },
    /// Values that look like labels that the rule makes.
    #[error("values that are spelled like a label the rule makes: {n_values} distinct")]
    ValueIsLabel { n_values: usize },
    /// Labels that name two nodes.
    #[error("labels that would stand for two groups, because values already contain '*': {n_labels}")]
    LabelsClash { n_labels: usize },
}

impl MakeError {
    /// What to do about the fault.
    pub fn hint(&self) -> &'static str {
        match self {
            MakeError::NoSteps | MakeError::BadStep { .. } | MakeError::StepNotMultiple { .. } => {
                "give widths that nest, the smallest first, such as 5, 10, 50"
            }
            MakeError::StepNotWhole { .. } => "give whole steps, or type = \"decimal\"",
            MakeError::NoDateLevels | MakeError::DateLevelsOutOfOrder => {
                "name levels from fine to coarse, such as \"month\", \"year\""
            }
            MakeError::WrongType { .. } | MakeError::NotOfType { .. } => {
                "say what the values are with type, or choose another rule: steps, mask, dates or flat"
            }
            MakeError::TooManyDigits { .. } => {
                "give the column a hierarchy file, or no hierarchy, so that it shows ranges"
            }
            MakeError::YearOutOfRange { .. } => {
                "correct the dates, or give date_format if they are written another way"
            }
            MakeError::ValueIsLabel { .. } | MakeError::LabelsClash { .. } => {
                "the column seems to hold generalized values already: clean it, or give it a hierarchy file"
            }
        }
    }
}

impl Rule {
    /// Checks the rule itself, before values are known.
    ///
    /// # Errors
    /// If steps or date levels do not nest.
    pub fn check(&self) -> Result<(), MakeError> {
        match self {
            Rule::Steps(steps) => nested_steps(steps).map(|_| ()),
            Rule::Dates(levels) if levels.is_empty() => Err(MakeError::NoDateLevels),
            Rule::Dates(levels) if !levels.is_sorted_by(|fine, coarse| fine < coarse) => {
                Err(MakeError::DateLevelsOutOfOrder)
            }
            Rule::Dates(_) | Rule::Mask(_) | Rule::Flat => Ok(()),
        }
    }

    /// Makes the hierarchy of these distinct values, with leaves in the order of the values.
    ///
    /// # Errors
    /// If the rule does not fit the type of the values, or a label that it makes is itself a value.
    pub fn make(&self, values: &Texts, value_type: ValueType, notation: &Notation) -> Result<Hierarchy, MakeError> {
        let longest = values.iter().map(|text| text.chars().count()).max().unwrap_or(0);
        self.make_below(&"*".repeat(longest.max(1)), values, value_type, notation)
    }

    /// Makes the part of a hierarchy with these values, if the root of the whole hierarchy is known. Masks are as long
    /// as the root, even if these values are shorter. A value that is longer than the root keeps at most one character
    /// less than the root.
    ///
    /// # Errors
    /// The same as [`Rule::make`].
    pub fn make_below(
        &self,
        root: &str,
        values: &Texts,
        value_type: ValueType,
        notation: &Notation,
    ) -> Result<Hierarchy, MakeError> {
        self.check()?;
        match self {
            Rule::Steps(steps) => make_steps(steps, values, value_type, notation),
            Rule::Mask(side) => make_mask(*side, root, values),
            Rule::Dates(levels) => make_dates(levels, values, value_type, notation),
            Rule::Flat => {
                let sorted = sort_by_value(values, value_type, notation)?;
                build("*", sorted.into_iter().map(|(_, text)| Leaf { text, n_shared: 0, ancestors: Vec::new() }))
            }
        }
    }
}

fn make_steps(
    steps: &[f64],
    values: &Texts,
    value_type: ValueType,
    notation: &Notation,
) -> Result<Hierarchy, MakeError> {
    let is_integer = match value_type {
        ValueType::Integer => true,
        ValueType::Decimal | ValueType::Float => false,
        ValueType::Date | ValueType::Timestamp | ValueType::Text | ValueType::Boolean => {
            return Err(MakeError::WrongType { rule: "steps", needed: "numbers", value_type });
        }
    };
    let steps = nested_steps(steps)?;
    if let Some(index) = steps.iter().position(|step| is_integer && step.scale > 0) {
        return Err(MakeError::StepNotWhole { position: index + 1 });
    }
    let sorted = sort_by_value(values, value_type, notation)?;
    let mut too_long = 0;
    let mut paths = Vec::with_capacity(sorted.len());
    for (value, text) in sorted {
        let ranges = exact(value).and_then(|number| {
            let coarsest_first = steps.iter().rev();
            coarsest_first.map(|&step| render_range(number, step, is_integer, value_type, notation)).collect()
        });
        match ranges {
            Some(ranges) => paths.push((text, ranges)),
            None => too_long += 1,
        }
    }
    if too_long > 0 {
        return Err(MakeError::TooManyDigits { n_values: too_long });
    }
    build("*", sharing(paths))
}

fn nested_steps(steps: &[f64]) -> Result<Vec<Decimal>, MakeError> {
    if steps.is_empty() {
        return Err(MakeError::NoSteps);
    }
    let mut exact_steps: Vec<Decimal> = Vec::with_capacity(steps.len());
    for (index, &step) in steps.iter().enumerate() {
        let position = index + 1;
        let step = exact(Value::Float(step)).filter(|step| step.mantissa > 0).ok_or(MakeError::BadStep { position })?;
        if let Some(&before) = exact_steps.last() {
            let (fine, coarse, _) = align(before, step).ok_or(MakeError::BadStep { position })?;
            if coarse <= fine || coarse % fine != 0 {
                return Err(MakeError::StepNotMultiple { position });
            }
        }
        exact_steps.push(step);
    }
    Ok(exact_steps)
}

/// The number as a decimal. A float becomes the shortest decimal that is read back as the same float.
fn exact(value: Value<'_>) -> Option<Decimal> {
    match value {
        Value::Integer(number) => Some(Decimal { mantissa: i128::from(number), scale: 0 }),
        Value::Decimal(number) => Some(number),
        Value::Float(number) => Decimal::parse(&(number + 0.0).to_string(), false),
        Value::Date(_) | Value::Timestamp(_) | Value::Text(_) | Value::Boolean(_) => None,
    }
}

/// Both mantissas at the larger of the two scales; `None` if that takes more digits than fit.
fn align(a: Decimal, b: Decimal) -> Option<(i128, i128, u32)> {
    let scale = a.scale.max(b.scale);
    let at_scale = |number: Decimal| number.mantissa.checked_mul(10_i128.checked_pow(scale - number.scale)?);
    Some((at_scale(a)?, at_scale(b)?, scale))
}

/// The label of a range: `[20,24]` for integers, with both bounds included, or `[20,25)` for fractions, without the
/// upper one.
fn render_range(
    number: Decimal,
    step: Decimal,
    is_integer: bool,
    value_type: ValueType,
    notation: &Notation,
) -> Option<String> {
    let (number, step, scale) = align(number, step)?;
    let low = number.div_euclid(step).checked_mul(step)?;
    let high = low.checked_add(step)?;
    let separator = notation.range_separator(value_type);
    if is_integer {
        return Some(format!("[{low}{separator}{}]", high - 1));
    }
    let low = render_decimal(low, scale, notation);
    let high = render_decimal(high, scale, notation);
    Some(format!("[{low}{separator}{high})"))
}

fn render_decimal(mantissa: i128, scale: u32, notation: &Notation) -> String {
    let sign = if mantissa < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", mantissa.unsigned_abs(), width = scale as usize + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale as usize);
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() {
        format!("{sign}{whole}")
    } else {
        let point = if notation.decimal_comma { ',' } else { '.' };
        format!("{sign}{whole}{point}{fraction}")
    }
}

fn make_mask(side: MaskSide, root: &str, values: &Texts) -> Result<Hierarchy, MakeError> {
    let width = root.chars().count();
    let mut sorted: Vec<&str> = values.iter().collect();
    match side {
        MaskSide::Right => sorted.sort_unstable(),
        MaskSide::Left => sorted.sort_unstable_by(|one, other| one.chars().rev().cmp(other.chars().rev())),
    }
    let mut before = "";
    let leaves = sorted.into_iter().map(|text| {
        let n_characters = text.chars().count().min(width);
        let most = before.chars().count().min(n_characters).saturating_sub(1);
        let n_shared = match side {
            MaskSide::Right => n_equal(before.chars(), text.chars()).min(most),
            MaskSide::Left => n_equal(before.chars().rev(), text.chars().rev()).min(most),
        };
        before = text;
        let ancestors = (n_shared + 1..n_characters).map(|n_kept| mask(side, text, n_kept, width)).collect();
        Leaf { text, n_shared, ancestors }
    });
    build(root, leaves)
}

/// The text with this many characters kept and the rest replaced by stars.
fn mask(side: MaskSide, text: &str, n_kept: usize, width: usize) -> String {
    let mut masked = String::with_capacity(text.len().max(width));
    let n_stars = width - n_kept;
    match side {
        MaskSide::Right => {
            masked.extend(text.chars().take(n_kept));
            masked.extend(std::iter::repeat_n('*', n_stars));
        }
        MaskSide::Left => {
            masked.extend(std::iter::repeat_n('*', n_stars));
            masked.extend(text.chars().skip(text.chars().count() - n_kept));
        }
    }
    masked
}

/// The number of characters that two texts have in common at their beginning.
fn n_equal(one: impl Iterator<Item = char>, other: impl Iterator<Item = char>) -> usize {
    one.zip(other).take_while(|(one, other)| one == other).count()
}

fn make_dates(
    levels: &[DateLevel],
    values: &Texts,
    value_type: ValueType,
    notation: &Notation,
) -> Result<Hierarchy, MakeError> {
    if !matches!(value_type, ValueType::Date | ValueType::Timestamp) {
        return Err(MakeError::WrongType { rule: "date levels", needed: "dates", value_type });
    }
    let sorted = sort_by_value(values, value_type, notation)?;
    let mut out_of_range = 0;
    let mut paths = Vec::with_capacity(sorted.len());
    for (value, text) in sorted {
        match day(value).filter(|day| (0..=9999).contains(&day.year())) {
            Some(day) => {
                let coarsest_first = levels.iter().rev();
                let shown = coarsest_first.filter(|&&level| level != DateLevel::Day || value_type != ValueType::Date);
                paths.push((text, shown.map(|&level| render_level(day, level)).collect()));
            }
            None => out_of_range += 1,
        }
    }
    if out_of_range > 0 {
        return Err(MakeError::YearOutOfRange { n_values: out_of_range });
    }
    build("*", sharing(paths))
}

fn day(value: Value<'_>) -> Option<NaiveDate> {
    const NANOSECONDS: i128 = 86_400_000_000_000;
    match value {
        Value::Date(days) => NaiveDate::from_epoch_days(days),
        Value::Timestamp(time) => NaiveDate::from_epoch_days(i32::try_from(time.div_euclid(NANOSECONDS)).ok()?),
        Value::Integer(_) | Value::Decimal(_) | Value::Float(_) | Value::Text(_) | Value::Boolean(_) => None,
    }
}

fn render_level(day: NaiveDate, level: DateLevel) -> String {
    let (year, month) = (day.year(), day.month());
    match level {
        DateLevel::Day => format!("{year:04}-{month:02}-{:02}", day.day()),
        DateLevel::Month => format!("{year:04}-{month:02}"),
        DateLevel::Quarter => format!("{year:04}-Q{}", (month - 1) / 3 + 1),
        DateLevel::Year => format!("{year:04}"),
        DateLevel::Decade => format!("{:04}s", year / 10 * 10),
    }
}

/// Values with their texts, in the order of values. Equal values are in the order of their texts.
fn sort_by_value<'a>(
    values: &'a Texts,
    value_type: ValueType,
    notation: &Notation,
) -> Result<Vec<(Value<'a>, &'a str)>, MakeError> {
    let mut sorted: Vec<(Value<'a>, &'a str)> =
        values.iter().filter_map(|text| Value::parse(text, value_type, notation).map(|value| (value, text))).collect();
    if sorted.len() < values.len() {
        return Err(MakeError::NotOfType { n_values: values.len() - sorted.len(), value_type });
    }
    sorted.sort_unstable();
    Ok(sorted)
}

/// A leaf with its ancestors. Leaves that share an ancestor follow each other.
struct Leaf<'a> {
    text: &'a str,
    /// The number of ancestors below the root that the leaf shares with the leaf before.
    n_shared: usize,
    /// The other ancestors, coarsest first.
    ancestors: Vec<String>,
}

/// Leaves of values with all their ancestors below the root, coarsest first.
fn sharing<'a>(paths: Vec<(&'a str, Vec<String>)>) -> impl Iterator<Item = Leaf<'a>> {
    let mut before: Vec<String> = Vec::new();
    paths.into_iter().map(move |(text, path)| {
        let n_shared = before.iter().zip(&path).take_while(|(one, other)| one == other).count();
        let ancestors = path[n_shared..].to_vec();
        before = path;
        Leaf { text, n_shared, ancestors }
    })
}

/// The tree of these leaves.
fn build<'a>(root: &str, leaves: impl IntoIterator<Item = Leaf<'a>>) -> Result<Hierarchy, MakeError> {
    let mut labels = Texts::new();
    let mut parents = vec![0];
    let mut is_value = vec![false];
    labels.push(root);
    let mut open: Vec<u32> = Vec::new();
    for Leaf { text, n_shared, ancestors } in leaves {
        open.truncate(n_shared);
        for ancestor in ancestors {
            parents.push(open.last().copied().unwrap_or(0));
            is_value.push(false);
            open.push(labels.push(&ancestor));
        }
        labels.push(text);
        parents.push(open.last().copied().unwrap_or(0));
        is_value.push(true);
    }
    let tree = Hierarchy::from_parents(labels, parents);
    let (mut n_values, mut n_labels) = (0, 0);
    let mut by_label: Vec<u32> = (0..tree.n_nodes() as u32).collect();
    by_label.sort_unstable_by_key(|&node| tree.label(node));
    for same in by_label.chunk_by(|&one, &other| tree.label(one) == tree.label(other)) {
        let n_of_values = same.iter().filter(|&&node| is_value[node as usize]).count();
        let n_made = same.len() - n_of_values;
        n_values += if n_made > 0 { n_of_values } else { 0 };
        n_labels += n_made.saturating_sub(1);
    }
    if n_values > 0 {
        return Err(MakeError::ValueIsLabel { n_values });
    }
    if n_labels > 0 {
        return Err(MakeError::LabelsClash { n_labels });
    }
    Ok(tree)
}

#[cfg(test)]
mod tests;
