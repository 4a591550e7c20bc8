//! [`Reading`]: what the cells of a generalized column stand for, according to the manifest alone.
//!
//! A manifest says which rule made the labels of a release. This module reads the labels back, and shares no code with
//! the rules of `kohort-model` that made them. So a label that means something else to readers than to the publisher is
//! found before the release is written.
//!
//! # Guarantee
//! A text is read in one way or refused. For example, if the rule has widths, a range of another width is not a label;
//! if the rule has months, a year is not a label.
//! # Deviations
//! The bounds of a range at the end of the 64-bit numbers can lie beyond them. Such a bound is read as the last number.

pub(crate) mod coverage;
pub(crate) mod listing;
pub(crate) mod meaning;

use std::borrow::Cow;
use std::cmp::{Ordering, Reverse};
use std::collections::HashSet;

use kohort_model::hierarchy::{DateLevel, MaskSide};
use kohort_model::{Column, Decimal, Hierarchy, LabelsManifest, Notation, Texts, Value, ValueType};
use rayon::prelude::*;

use crate::reading::coverage::range_bounds;
use crate::reading::listing::Listing;
use crate::reading::meaning::{DAY, day, number};

/// What a released text stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ShownLabel<'a> {
    /// Every value, and null.
    Everything,
    /// The value that the text spells.
    Value,
    /// The values of a range.
    Between {
        /// The lowest value.
        low: Value<'a>,
        /// The upper bound.
        high: Value<'a>,
        /// Whether the upper bound belongs to the range.
        end: RangeEnd,
    },
    /// Texts that begin or end with the characters that are shown, and have more characters.
    Masked {
        /// The characters that are shown.
        kept: &'a str,
        /// The side that is hidden.
        side: MaskSide,
        /// The largest number of characters that such a text has.
        width: usize,
    },
    /// The values that the released part of the hierarchy lists, ascending.
    Listed(&'a [String]),
    /// Not known, because the publisher withholds the hierarchy.
    Unknown,
}

/// Whether the upper bound of a range belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeEnd {
    /// As in `[20,24]`.
    Included,
    /// As in `[20,25)`.
    Excluded,
}

/// Reads the cells of one column.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'a> {
    value_type: ValueType,
    notation: &'a Notation,
    labels: &'a LabelsManifest,
    listing: Option<&'a Listing>,
    column: &'a Column,
}

impl<'a> Reading<'a> {
    /// Reads cells of the type and notation of `column` whose labels were made by the rule `labels`. `listing` is the
    /// released part of a hierarchy file.
    pub fn new(column: &'a Column, labels: &'a LabelsManifest, listing: Option<&'a Listing>) -> Self {
        Reading { value_type: column.value_type, notation: &column.notation, labels, listing, column }
    }

    /// What a text stands for; `None` if the rule can't have made it.
    pub fn read(&self, text: &'a str) -> Option<ShownLabel<'a>> {
        let value = || self.value(text).map(|_| ShownLabel::Value);
        match self.labels {
            LabelsManifest::Mask { side, width } => Some(read_mask(text, *side, *width)),
            LabelsManifest::Hierarchy { root, .. } if root.as_deref() == Some(text) => Some(ShownLabel::Everything),
            LabelsManifest::Hierarchy { .. } => match self.listing {
                Some(listing) => listing.values(text).map(ShownLabel::Listed),
                None => Some(ShownLabel::Unknown),
            },
            _ if text == "*" => Some(ShownLabel::Everything),
            LabelsManifest::Values | LabelsManifest::Flat => value(),
            LabelsManifest::Ranges => value().or_else(|| {
                let (low, high) = range_bounds(text, self.column)?;
                Some(ShownLabel::Between { low: self.value(low)?, high: self.value(high)?, end: RangeEnd::Included })
            }),
            LabelsManifest::Steps { steps } => value().or_else(|| self.read_step(text, steps)),
            LabelsManifest::Dates { levels } => self.read_period(text, levels).or_else(value),
        }
    }

    /// Whether a label, as readers understand it, may stand for a value of the column.
    pub fn covers(&self, label: &'a str, value: &str) -> bool {
        self.read(label).is_some_and(|read| self.holds(read, label, value))
    }

    /// The number of private values that are below a shown label in the hierarchy, but that readers would not expect
    /// there. It must be 0, because otherwise the release tells readers of its manifest something false.
    pub fn n_misread(&self, private: &Column, shown: &'a Texts) -> u64 {
        let Some(hierarchy) = private.hierarchy.as_deref() else { return 0 };
        let mut read: Vec<Option<(Option<ShownLabel<'a>>, &'a str)>> = vec![None; hierarchy.n_nodes()];
        for label in shown.iter() {
            if let Some(node) = hierarchy.node(label) {
                read[node as usize] = Some((self.read(label), label));
            }
        }
        let is_misread = |id: u32| {
            let text = private.texts.get(id);
            let Some(leaf) = hierarchy.leaf(text) else { return false };
            let mut above = hierarchy.path(leaf).filter_map(|node| read[node as usize]);
            above.any(|(read, label)| !read.is_some_and(|read| self.holds(read, label, text)))
        };
        (0..private.texts.len() as u32).into_par_iter().with_min_len(1 << 10).filter(|&id| is_misread(id)).count()
            as u64
    }

    fn holds(&self, read: ShownLabel<'_>, label: &str, value: &str) -> bool {
        match read {
            ShownLabel::Everything | ShownLabel::Unknown => true,
            ShownLabel::Listed(values) => values.binary_search_by(|listed| listed.as_str().cmp(value)).is_ok(),
            ShownLabel::Masked { kept, side, width } => {
                let shows = match side {
                    MaskSide::Right => value.starts_with(kept),
                    MaskSide::Left => value.ends_with(kept),
                };
                shows && value.len() > kept.len() && value.chars().count() <= width
            }
            ShownLabel::Value => {
                let parse = |text| Value::parse(text, self.value_type, self.notation);
                label == value || matches!((parse(label), parse(value)), (Some(a), Some(b)) if a == b)
            }
            ShownLabel::Between { low, high, end } => {
                let value = Value::parse(value, self.value_type, self.notation);
                value.is_some_and(|value| is_between(value, low, high, end))
            }
        }
    }

    /// The shown labels of a column as a tree, which shows which of them overlap. Its leaves are values, or stand for
    /// those values of a label that no other label shows. `None` if the labels are ranges, which do not form a tree, or
    /// if the hierarchy is not known.
    ///
    /// # Errors
    /// The id of the first text that is not a label.
    pub fn tree(&self, texts: &'a Texts) -> Result<Option<Hierarchy>, u32> {
        let mut read = Vec::with_capacity(texts.len());
        for (id, text) in (0u32..).zip(texts.iter()) {
            read.push((self.read(text).ok_or(id)?, text));
        }
        match (self.labels, self.listing) {
            (LabelsManifest::Ranges, _) | (LabelsManifest::Hierarchy { .. }, None) => Ok(None),
            (LabelsManifest::Hierarchy { root, .. }, Some(listing)) => Ok(Some(listing.tree(root.as_deref()))),
            _ => Ok(self.nest(read)),
        }
    }

    fn value(&self, text: &'a str) -> Option<Value<'a>> {
        Value::parse(text, self.value_type, self.notation)
    }

    /// Reads `[20,24]` in columns of whole numbers, and `[20,25)` in others.
    fn read_step(&self, text: &'a str, steps: &[f64]) -> Option<ShownLabel<'a>> {
        let is_whole = self.value_type == ValueType::Integer;
        let (inside, end) = match is_whole {
            true => (text.strip_prefix('[')?.strip_suffix(']')?, RangeEnd::Included),
            false => (text.strip_prefix('[')?.strip_suffix(')')?, RangeEnd::Excluded),
        };
        let (low, high) = inside.split_once(self.notation.range_separator(self.value_type))?;
        let decimal_comma = self.notation.decimal_comma && !is_whole;
        let bounds = (Decimal::parse(low, decimal_comma)?, Decimal::parse(high, decimal_comma)?);
        let is_step = |step: &f64| Decimal::parse(&step.to_string(), false).is_some_and(|step| fits(bounds, step, end));
        if !steps.iter().any(is_step) {
            return None;
        }
        let value = |text: &'a str, bound: Decimal| match self.value_type {
            ValueType::Integer => {
                let number = bound.mantissa.clamp(i128::from(i64::MIN), i128::from(i64::MAX));
                i64::try_from(number).ok().map(Value::Integer)
            }
            _ => self.value(text),
        };
        Some(ShownLabel::Between { low: value(low, bounds.0)?, high: value(high, bounds.1)?, end })
    }

    /// Reads `1984-03-17`, `1984-03`, `1984-Q1`, `1984` or `1980s`.
    fn read_period(&self, text: &str, levels: &[DateLevel]) -> Option<ShownLabel<'a>> {
        let is_instant = self.value_type == ValueType::Timestamp;
        let (first, behind) = levels.iter().find_map(|&level| match level {
            // In a column of dates, a day is a value and not a period.
            DateLevel::Day if !is_instant => None,
            level => period(text, level),
        })?;
        Some(if is_instant {
            let instant = |days: i64| Value::Timestamp(i128::from(days) * DAY);
            ShownLabel::Between { low: instant(first), high: instant(behind), end: RangeEnd::Excluded }
        } else {
            let date = |days: i64| i32::try_from(days).ok().map(Value::Date);
            ShownLabel::Between { low: date(first)?, high: date(behind - 1)?, end: RangeEnd::Included }
        })
    }

    /// The labels as a tree. Any two of them must be nested or disjoint.
    fn nest(&self, mut labels: Vec<(ShownLabel<'a>, &'a str)>) -> Option<Hierarchy> {
        let root = labels.iter().position(|(label, _)| *label == ShownLabel::Everything);
        let root = root.map(|root| labels.swap_remove(root).1);
        labels.sort_by(|one, other| self.order(one, other));
        let root = root.map_or_else(|| unused("*", &labels.iter().map(|(_, text)| *text).collect()), str::to_owned);
        let mut nodes: Vec<(Cow<'_, str>, u32)> = vec![(Cow::Owned(root), 0)];
        // The labels that may contain the next one, and their nodes.
        let mut open: Vec<((ShownLabel<'a>, &'a str), u32)> = Vec::new();
        for label in labels {
            while open.last().is_some_and(|(above, _)| !self.contains(above, &label)) {
                open.pop();
            }
            let node = nodes.len() as u32;
            nodes.push((Cow::Borrowed(label.1), open.last().map_or(0, |(_, node)| *node)));
            if label.0 != ShownLabel::Value {
                // A leaf for the values that no other label shows. Without it, the label itself would be a leaf, that
                // is, a value.
                nodes.push((Cow::Owned(format!("{}\u{0}", label.1)), node));
            }
            open.push((label, node));
        }
        Hierarchy::from_nodes(nodes.iter().map(|(label, parent)| (label.as_ref(), *parent)))
    }

    /// An order in which each label is directly followed by the labels inside of it.
    fn order(&self, one: &(ShownLabel<'a>, &'a str), other: &(ShownLabel<'a>, &'a str)) -> Ordering {
        match self.labels {
            LabelsManifest::Mask { side, .. } => {
                let kept = |&(label, text): &(ShownLabel<'a>, &'a str)| match label {
                    ShownLabel::Masked { kept, .. } => (kept, true),
                    _ => (text, false),
                };
                let ((one, one_masked), (other, other_masked)) = (kept(one), kept(other));
                let by_kept = match side {
                    MaskSide::Right => one.cmp(other),
                    MaskSide::Left => one.chars().rev().cmp(other.chars().rev()),
                };
                // The value `885` is not inside of `885**`, because values of the mask are longer than what it shows.
                by_kept.then(one_masked.cmp(&other_masked))
            }
            _ => {
                let key = |label: &(ShownLabel<'a>, &'a str)| {
                    let bounds = self.bounds(label);
                    (bounds.map(|(low, _)| low), Reverse(bounds.map(|(_, high)| high)))
                };
                let is_value = |label: &(ShownLabel<'a>, &'a str)| label.0 == ShownLabel::Value;
                key(one).cmp(&key(other)).then(is_value(one).cmp(&is_value(other))).then(one.1.cmp(other.1))
            }
        }
    }

    fn contains(&self, above: &(ShownLabel<'a>, &'a str), below: &(ShownLabel<'a>, &'a str)) -> bool {
        match (above.0, below.0) {
            (ShownLabel::Masked { kept, side, .. }, ShownLabel::Masked { kept: inner, .. }) => match side {
                MaskSide::Right => inner.starts_with(kept),
                MaskSide::Left => inner.ends_with(kept),
            },
            (ShownLabel::Masked { .. }, _) => self.covers(above.1, below.1),
            (ShownLabel::Between { low, high, .. }, ShownLabel::Between { low: first, high: last, .. }) => {
                low <= first && last <= high
            }
            (ShownLabel::Between { low, high, end }, ShownLabel::Value) => {
                self.value(below.1).is_some_and(|value| is_between(value, low, high, end))
            }
            _ => false,
        }
    }

    fn bounds(&self, (label, text): &(ShownLabel<'a>, &'a str)) -> Option<(Value<'a>, Value<'a>)> {
        match label {
            ShownLabel::Between { low, high, .. } => Some((*low, *high)),
            _ => self.value(text).map(|value| (value, value)),
        }
    }
}

/// The wanted text, with stars appended until it differs from all others.
pub(crate) fn unused(wanted: &str, others: &HashSet<&str>) -> String {
    let mut text = wanted.to_owned();
    while others.contains(text.as_str()) {
        text.push('*');
    }
    text
}

fn is_between(value: Value<'_>, low: Value<'_>, high: Value<'_>, end: RangeEnd) -> bool {
    low <= value
        && match end {
            RangeEnd::Included => value <= high,
            RangeEnd::Excluded => value < high,
        }
}

/// Whether a range begins at a multiple of the step and is as wide as the step.
fn fits((low, high): (Decimal, Decimal), step: Decimal, end: RangeEnd) -> bool {
    let scale = low.scale.max(high.scale).max(step.scale);
    let at_scale = |number: Decimal| number.mantissa.checked_mul(10_i128.checked_pow(scale - number.scale)?);
    let (Some(low), Some(high), Some(step)) = (at_scale(low), at_scale(high), at_scale(step)) else { return false };
    let last = match end {
        RangeEnd::Included => high.checked_add(1),
        RangeEnd::Excluded => Some(high),
    };
    step > 0 && low.rem_euclid(step) == 0 && low.checked_add(step) == last
}

fn read_mask(text: &str, side: MaskSide, width: Option<u32>) -> ShownLabel<'_> {
    let kept = match side {
        MaskSide::Right => text.trim_end_matches('*'),
        MaskSide::Left => text.trim_start_matches('*'),
    };
    let width = width.map_or(0, |width| width as usize);
    let is_mask = kept.len() < text.len() && text.chars().count() == width;
    match (is_mask, kept) {
        (false, _) => ShownLabel::Value,
        (true, "") => ShownLabel::Everything,
        (true, kept) => ShownLabel::Masked { kept, side, width },
    }
}

/// The first day of a period and the first day after it, counted from 1970.
fn period(text: &str, level: DateLevel) -> Option<(i64, i64)> {
    let (year, rest) = text.split_at_checked(4)?;
    let year = number(year)?;
    let month_of = |text: &str| (text.len() == 2).then(|| number(text))?;
    let next_month = |month: i64, n: i64| match month + n {
        later if later > 12 => (year + 1, later - 12),
        later => (year, later),
    };
    let (from, to) = match level {
        DateLevel::Day => {
            let (month, of_month) = rest.strip_prefix('-')?.split_once('-')?;
            let first = day(year, month_of(month)?, month_of(of_month)?)?;
            return Some((first, first + 1));
        }
        DateLevel::Month => {
            let month = month_of(rest.strip_prefix('-')?)?;
            ((year, month), next_month(month, 1))
        }
        DateLevel::Quarter => {
            let quarter = number(rest.strip_prefix("-Q")?).filter(|quarter| (1..=4).contains(quarter))?;
            let month = 3 * quarter - 2;
            ((year, month), next_month(month, 3))
        }
        DateLevel::Year if rest.is_empty() => ((year, 1), (year + 1, 1)),
        DateLevel::Decade if rest == "s" && year % 10 == 0 => ((year, 1), (year + 10, 1)),
        DateLevel::Year | DateLevel::Decade => return None,
    };
    let first_day = |(year, month): (i64, i64)| day(year, month, 1);
    Some((first_day(from)?, first_day(to)?))
}

#[cfg(test)]
mod tests;
