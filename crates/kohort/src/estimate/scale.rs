//! [`Scale`]: what the labels of a column stand for, and which part of the column conditions ask for.

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;

use kohort_core::register::estimate::{AskedInterval, ShownCell, ValueRange};
use kohort_model::hierarchy::MaskSide;
use kohort_model::{Codes, Column, Hierarchy, LabelsManifest, Notation, Value, ValueType};
use kohort_verify::{Reading, ShownLabel};

use super::Widths;
use crate::error::Report;
use crate::expression::{Comparison, Condition, Test};

/// A column: what its cells show, and which part of it the conditions ask for.
pub(super) struct Scale {
    /// What each label stands for.
    pub(super) cells: Vec<ShownCell>,
    /// For each label, whether it stands for everything: for any value, also one that no other cell shows, and for none.
    pub(super) is_everything: Vec<bool>,
    /// What the conditions ask for, in disjoint parts.
    pub(super) asked: Vec<AskedInterval>,
}

impl Scale {
    /// `labels` is what the manifest says about the column, unless the user gave a hierarchy.
    pub(super) fn new(
        column: &Column,
        labels: Option<&LabelsManifest>,
        conditions: &[&Condition],
        widths: Widths,
    ) -> Result<Self, Report> {
        if conditions.is_empty() {
            let (cells, is_everything) = (vec![ShownCell::Null; column.texts.len()], vec![true; column.texts.len()]);
            return Ok(Scale { cells, is_everything, asked: vec![AskedInterval::Anything] });
        }
        match (labels, &column.hierarchy) {
            (Some(LabelsManifest::Hierarchy { .. }), Some(listed)) => {
                Self::of_tree(column, listed, conditions, Unlisted::NoRow)
            }
            (Some(LabelsManifest::Hierarchy { .. }), None) => Err(without_hierarchy(column)),
            (Some(LabelsManifest::Mask { side, width }), _) => Self::of_masks(column, (*side, *width), conditions),
            (Some(labels), _) if column.value_type.is_ordered() => Self::of_order(column, labels, conditions, widths),
            (Some(_), _) => Self::of_texts(column, conditions),
            (None, Some(hierarchy)) => Self::of_tree(column, hierarchy, conditions, Unlisted::Refused),
            (None, None) if column.value_type.is_ordered() => {
                Self::of_order(column, &LabelsManifest::Ranges, conditions, widths)
            }
            (None, None) => {
                check_masks(column)?;
                Self::of_texts(column, conditions)
            }
        }
    }

    /// The scale of a column of text, in which a cell shows a value or `*`.
    fn of_texts(column: &Column, conditions: &[&Condition]) -> Result<Self, Report> {
        let listed = conditions.iter().flat_map(|condition| match &condition.test {
            Test::In(values) => values.as_slice(),
            Test::Between(..) | Test::Compare(..) => &[],
        });
        let shown = column.texts.iter().filter(|&text| text != "*");
        let values: BTreeSet<&str> = shown.chain(listed.map(String::as_str)).collect();
        Self::of_tree(column, &Hierarchy::flat("*", values), conditions, Unlisted::Refused)
    }

    /// The scale of a column of digit codes, some of which are masked. Each of the ten digits is equally likely behind a
    /// mask, so a masked code stands for a run of whole numbers.
    fn of_masks(
        column: &Column,
        (side, width): (MaskSide, Option<u32>),
        conditions: &[&Condition],
    ) -> Result<Self, Report> {
        let Some(width) = width else { return Self::of_texts(column, conditions) };
        let run = |label: &str| code_run(label, side, width as usize);
        let mut shown = Vec::with_capacity(column.texts.len());
        for label in column.texts.iter() {
            shown.push(run(label).ok_or_else(|| without_hierarchy(column))?);
        }
        let mut ranges: Vec<ValueRange> = vec![(Bound::Unbounded, Bound::Unbounded)];
        for condition in conditions {
            let Test::In(values) = &condition.test else {
                return Err(
                    origin_of(&condition.test, column).map_or_else(|report| report, |_| without_hierarchy(column))
                );
            };
            let mut wanted = Vec::with_capacity(values.len());
            for value in values {
                wanted.push(run(value).ok_or_else(|| {
                    let message = format!("column '{}': '{value}' is not one of its codes", column.name);
                    Report::new(message).hint(format!("write all {width} digits, and * for those that don't matter"))
                })?);
            }
            // Two runs are either disjoint or one contains the other.
            wanted.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
            wanted.dedup_by(|inner, outer| inner.1 <= outer.1);
            let wanted = wanted.into_iter().map(|(lo, hi)| (Bound::Included(lo), Bound::Included(hi)));
            let wanted: Vec<ValueRange> = wanted.collect();
            ranges = ranges.iter().flat_map(|a| wanted.iter().filter_map(|b| meet(a, b))).collect();
        }
        let cells = shown.into_iter().map(|(lo, hi)| ShownCell::Range { lo, hi, step: 1.0 }).collect();
        let is_everything = column.texts.iter().map(|label| label.bytes().all(|byte| byte == b'*')).collect();
        Ok(Scale { cells, is_everything, asked: ranges.into_iter().map(AskedInterval::Range).collect() })
    }

    fn of_tree(
        column: &Column,
        hierarchy: &Hierarchy,
        conditions: &[&Condition],
        unlisted: Unlisted,
    ) -> Result<Self, Report> {
        let leaves = hierarchy.leaves();
        let numbers: HashMap<u32, u32> = (0..).zip(&leaves).map(|(number, &leaf)| (leaf, number)).collect();
        let run = |node: u32| -> (u32, u32) {
            let end = |last: bool| {
                let mut node = node;
                while !hierarchy.is_leaf(node) {
                    let children = hierarchy.children(node);
                    match if last { children.last() } else { children.first() } {
                        Some(&child) => node = child,
                        None => break,
                    }
                }
                numbers.get(&node).copied().unwrap_or(0)
            };
            (end(false), end(true))
        };
        let everything = (0, (leaves.len() as u32).max(1) - 1);
        let mut cells = Vec::with_capacity(column.texts.len());
        for label in column.texts.iter() {
            let (first, last) = match hierarchy.node(label) {
                Some(node) => run(node),
                None if label == "*" => everything,
                None => {
                    let message = format!("column '{}' shows labels that its hierarchy does not have", column.name);
                    return Err(Report::new(message).hint("give the hierarchy that the release was made with"));
                }
            };
            cells.push(ShownCell::Leaves { first, last });
        }
        let mut asked: BTreeSet<u32> = (0..leaves.len() as u32).collect();
        for condition in conditions {
            let wanted: BTreeSet<u32> = match &condition.test {
                Test::In(values) => {
                    let mut wanted = BTreeSet::new();
                    for value in values {
                        match (hierarchy.node(value), unlisted) {
                            (Some(node), _) => {
                                let (first, last) = run(node);
                                wanted.extend(first..=last);
                            }
                            (None, Unlisted::NoRow) => {}
                            (None, Unlisted::Refused) => {
                                let message =
                                    format!("column '{}' has no value '{value}' in its hierarchy", column.name);
                                return Err(Report::new(message).hint("ask for one of its leaves or labels"));
                            }
                        }
                    }
                    wanted
                }
                test => {
                    let range = range_of(test, column)?;
                    let origin = origin_of(test, column)?;
                    let is_within = |leaf: &&u32| {
                        let value = Value::parse(hierarchy.label(**leaf), column.value_type, &column.notation);
                        value.is_some_and(|value| contains(&range, value.distance_from(&origin)))
                    };
                    leaves.iter().filter(is_within).filter_map(|leaf| numbers.get(leaf)).copied().collect()
                }
            };
            asked.retain(|leaf| wanted.contains(leaf));
        }
        let is_root = |label: &str| hierarchy.node(label).is_none_or(|node| hierarchy.path(node).count() == 1);
        let is_everything = column.texts.iter().map(is_root).collect();
        Ok(Scale { cells, is_everything, asked: vec![AskedInterval::Leaves(asked.into_iter().collect())] })
    }

    fn of_order(
        column: &Column,
        labels: &LabelsManifest,
        conditions: &[&Condition],
        widths: Widths,
    ) -> Result<Self, Report> {
        let step = match (widths, column.value_type) {
            (Widths::Steps, ValueType::Integer | ValueType::Date) => 1.0,
            _ => 0.0,
        };
        let origin = origin_of(&conditions[0].test, column)?;
        let place = |text: &str| {
            let value = Value::parse(text, column.value_type, &column.notation)?;
            Some(value.distance_from(&origin))
        };
        let reading = Reading::new(column, labels, None);
        let mut shown = Vec::with_capacity(column.texts.len());
        for label in column.texts.iter() {
            let range = match reading.read(label) {
                Some(ShownLabel::Everything) => None,
                Some(ShownLabel::Value) => place(label).map(|value| (value, value)),
                Some(ShownLabel::Between { low, high, .. }) => {
                    Some((low.distance_from(&origin), high.distance_from(&origin)))
                }
                Some(ShownLabel::Masked { .. } | ShownLabel::Listed(_) | ShownLabel::Unknown) | None => {
                    return Err(without_hierarchy(column));
                }
            };
            shown.push(range);
        }
        let ends = shown.iter().flatten();
        let whole = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), range| (lo.min(range.0), hi.max(range.1)));
        let cell = |range: Option<(f64, f64)>| {
            let (lo, hi) = range.unwrap_or(whole);
            if lo <= hi { ShownCell::Range { lo, hi, step } } else { ShownCell::Null }
        };
        let mut ranges: Vec<ValueRange> = vec![(Bound::Unbounded, Bound::Unbounded)];
        for condition in conditions {
            let wanted: Vec<ValueRange> = match &condition.test {
                Test::In(values) => {
                    let mut places = Vec::with_capacity(values.len());
                    for value in values {
                        places.push(place(value).ok_or_else(|| not_of_type(column, value))?);
                    }
                    places.sort_by(f64::total_cmp);
                    places.dedup();
                    places.into_iter().map(|value| (Bound::Included(value), Bound::Included(value))).collect()
                }
                test => vec![range_from(test, column, &origin)?],
            };
            ranges = ranges.iter().flat_map(|a| wanted.iter().filter_map(|b| meet(a, b))).collect();
        }
        let asked = ranges.into_iter().map(AskedInterval::Range).collect();
        let is_everything = shown.iter().map(Option::is_none).collect();
        Ok(Scale { cells: shown.into_iter().map(cell).collect(), is_everything, asked })
    }
}

/// What to do with a value that a hierarchy lacks.
#[derive(Clone, Copy)]
enum Unlisted {
    /// No row has the value. The hierarchy comes from the release, so it has every value that some cell may stand for.
    NoRow,
    /// The value is an error. The user gave the hierarchy, which may be the wrong one, or the value is misspelled.
    Refused,
}

/// The lowest and the highest code of this width that a value or a masked code stands for, read from the side that masks
/// show. `None` for other texts, and for codes that are too wide for an exact number.
fn code_run(label: &str, side: MaskSide, width: usize) -> Option<(f64, f64)> {
    let letters: String = match side {
        MaskSide::Right => label.to_owned(),
        MaskSide::Left => label.chars().rev().collect(),
    };
    let kept = letters.trim_end_matches('*');
    let is_code = letters.len() == width && width <= 15 && kept.bytes().all(|byte| byte.is_ascii_digit());
    let filled = |digit: &str| format!("{kept}{}", digit.repeat(width - kept.len())).parse().ok();
    is_code.then(|| Some((filled("0")?, filled("9")?)))?
}

pub(super) fn without_hierarchy(column: &Column) -> Report {
    let name = &column.name;
    Report::new(format!("column '{name}' shows labels of a hierarchy, and nothing says which values they stand for"))
        .hint(format!("give the hierarchy that the release was made with: {{hierarchy={name}}}"))
}

/// Refuses labels such as `885**`, which are nodes of a hierarchy that is not given.
fn check_masks(column: &Column) -> Result<(), Report> {
    let is_mask = |text: &str| text != "*" && text.contains('*');
    if column.texts.iter().any(is_mask) { Err(without_hierarchy(column)) } else { Ok(()) }
}

fn not_of_type(column: &Column, value: &str) -> Report {
    let codes = &column.notation.codes;
    let hint = if !codes.are_none() {
        let top = codes.top.iter().map(|bound| format!("{bound} and more"));
        let coded: Vec<String> = top.chain(codes.bottom.iter().map(|bound| format!("{bound} and less"))).collect();
        format!("the release does not tell values of {} apart, so ask for all of them or none", coded.join(" or of "))
    } else if column.value_type.is_ordered() {
        format!("write a value of type {}, spelled as in the release", column.value_type)
    } else {
        "ask with = or in".to_owned()
    };
    Report::new(format!("column '{}': '{value}' can't be compared with its values", column.name)).hint(hint)
}

/// A value of the condition. Distances on the scale are counted from it.
fn origin_of<'c>(test: &'c Test, column: &Column) -> Result<Value<'c>, Report> {
    let (text, comparison) = match test {
        Test::In(values) => (&values[0], None),
        Test::Between(low, _) => (low, None),
        Test::Compare(comparison, value) => (value, Some(*comparison)),
    };
    if column.value_type.is_ordered() { value_of(text, comparison, column) } else { Err(not_of_type(column, text)) }
}

/// The value of a text in a condition. If values from 120 on are coded, `>= 120` and `< 120` ask for all of them or for none, so
/// the bound counts as the code.
fn value_of<'c>(text: &'c str, comparison: Option<Comparison>, column: &Column) -> Result<Value<'c>, Report> {
    let codes = &column.notation.codes;
    let bound = match comparison {
        Some(Comparison::AtLeast | Comparison::Less) => &codes.top,
        Some(Comparison::AtMost | Comparison::Greater) => &codes.bottom,
        None => &None,
    };
    let is_bound = bound.as_deref() == Some(text);
    let codes = if is_bound { Codes::default() } else { codes.clone() };
    let notation = Notation { codes, ..column.notation.clone() };
    Value::parse(text, column.value_type, &notation).ok_or_else(|| not_of_type(column, text))
}

fn range_of(test: &Test, column: &Column) -> Result<ValueRange, Report> {
    range_from(test, column, &origin_of(test, column)?)
}

fn range_from(test: &Test, column: &Column, origin: &Value<'_>) -> Result<ValueRange, Report> {
    let place = |text: &str, comparison| Ok(value_of(text, comparison, column)?.distance_from(origin));
    Ok(match test {
        Test::In(values) => (Bound::Included(place(&values[0], None)?), Bound::Included(place(&values[0], None)?)),
        Test::Between(low, high) => (Bound::Included(place(low, None)?), Bound::Included(place(high, None)?)),
        Test::Compare(comparison, value) => {
            let place = place(value, Some(*comparison))?;
            match comparison {
                Comparison::Less => (Bound::Unbounded, Bound::Excluded(place)),
                Comparison::AtMost => (Bound::Unbounded, Bound::Included(place)),
                Comparison::Greater => (Bound::Excluded(place), Bound::Unbounded),
                Comparison::AtLeast => (Bound::Included(place), Bound::Unbounded),
            }
        }
    })
}

fn contains(range: &ValueRange, value: f64) -> bool {
    std::ops::RangeBounds::contains(range, &value)
}

/// The intersection of two ranges, `None` if it is empty.
pub(super) fn meet(a: &ValueRange, b: &ValueRange) -> Option<ValueRange> {
    let tighter = |a: Bound<f64>, b: Bound<f64>, is_tighter: fn(f64, f64) -> bool| match (a, b) {
        (Bound::Unbounded, other) | (other, Bound::Unbounded) => other,
        (Bound::Included(x) | Bound::Excluded(x), Bound::Included(y) | Bound::Excluded(y)) => {
            match (x == y, is_tighter(x, y)) {
                (true, _) if matches!(a, Bound::Excluded(_)) => a,
                (true, _) => b,
                (false, true) => a,
                (false, false) => b,
            }
        }
    };
    let low = tighter(a.0, b.0, |x, y| x > y);
    let high = tighter(a.1, b.1, |x, y| x < y);
    let is_empty = match (low, high) {
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (Bound::Included(low) | Bound::Excluded(low), Bound::Included(high) | Bound::Excluded(high)) => low >= high,
        _ => false,
    };
    (!is_empty).then_some((low, high))
}
