//! Estimates in words, as JSON, and as comma-separated values.

use kohort::{Bounds, Estimate, Estimated, SensitiveEstimate, ValueEstimate};
use serde_json::{Map, Value, json};

use super::number;

/// A column with more values than this is summed up in words.
const MOST_VALUES: usize = 40;

/// What the quartiles are called.
const QUARTILES: [&str; 3] = ["lower quartile", "median", "upper quartile"];

/// One estimate in words.
pub(crate) fn words(found: &Estimate) -> String {
    let Bounds { least, most } = found.bounds;
    let mut text =
        format!("{:<16} {} of {} rows ({})\n", "expected", number(found.count), number(found.of), share(found));
    text += &format!("{:<16} at least {}, at most {}\n", "certain", number(least), number(most));
    for SensitiveEstimate { column, values, numbers } in &found.sensitive {
        let mut rows: Vec<[String; 4]> = Vec::new();
        if values.len() <= MOST_VALUES {
            rows.push([column.clone(), "rows".to_owned(), "at least".to_owned(), "at most".to_owned()]);
            rows.extend(values.iter().map(|value| {
                let ValueEstimate { value, count, bounds } = value;
                line(value.as_deref().unwrap_or("(null)"), *count, *bounds)
            }));
        } else {
            text += &format!("\n{column}: {} values, which --json and --csv list\n", values.len());
        }
        if let Some(numbers) = numbers {
            rows.push([column.clone(), "expected".to_owned(), "at least".to_owned(), "at most".to_owned()]);
            let quartiles = QUARTILES.into_iter().zip(numbers.quartiles);
            let figures = std::iter::once(("mean", numbers.mean)).chain(quartiles);
            rows.extend(figures.map(|(name, Estimated { expected, bounds })| line(name, expected, bounds)));
        }
        if !rows.is_empty() {
            text += "\n";
            text += &aligned(&rows);
        }
    }
    text
}

/// Estimates of groups in words: one line per group, with the means of sensitive numbers.
pub(crate) fn groups(by: &str, found: &[(String, Estimate)]) -> String {
    let mut header = [by, "rows", "share", "at least", "at most"].map(str::to_owned).to_vec();
    let has_mean = |position: usize| found.iter().any(|(_, found)| found.sensitive[position].numbers.is_some());
    let first = found.first().map_or(&[][..], |(_, found)| &found.sensitive);
    let means: Vec<usize> = (0..first.len()).filter(|&position| has_mean(position)).collect();
    header.extend(means.iter().map(|&position| format!("mean of {}", first[position].column)));
    let mut rows = vec![header];
    for (name, found) in found {
        let Bounds { least, most } = found.bounds;
        let mut row = vec![name.clone(), number(found.count), share(found), number(least), number(most)];
        row.extend(means.iter().map(|&position| {
            let numbers = found.sensitive[position].numbers.as_ref();
            numbers.map_or_else(|| "-".to_owned(), |numbers| number(numbers.mean.expected))
        }));
        rows.push(row);
    }
    aligned(&rows)
}

fn share(found: &Estimate) -> String {
    let share = if found.of > 0.0 { 100.0 * found.count / found.of } else { 0.0 };
    format!("{share:.1} %")
}

fn line(name: &str, expected: f64, Bounds { least, most }: Bounds) -> [String; 4] {
    [name.to_owned(), number(expected), number(least), number(most)]
}

/// The first column to the left, the others to the right.
fn aligned<R: AsRef<[String]>>(rows: &[R]) -> String {
    let n_columns = rows.first().map_or(0, |row| row.as_ref().len());
    let width = |column: usize| {
        let least = if column == 0 { 16 } else { 10 };
        rows.iter().map(|row| row.as_ref()[column].chars().count()).chain([least]).max().unwrap_or(least)
    };
    let widths: Vec<usize> = (0..n_columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        for (column, (cell, width)) in row.as_ref().iter().zip(&widths).enumerate() {
            text += &if column == 0 { format!("{cell:<width$}") } else { format!(" {cell:>width$}") };
        }
        text += "\n";
    }
    text
}

/// One estimate as JSON.
pub(crate) fn object(conditions: &str, found: &Estimate) -> String {
    let mut object = Map::from_iter([("conditions".to_owned(), json!(conditions))]);
    object.extend(found.to_object());
    format!("{:#}\n", Value::Object(object))
}

/// Estimates of groups as JSON.
pub(crate) fn object_of_groups(conditions: &str, by: &str, found: &[(String, Estimate)]) -> String {
    let group = |(name, found): &(String, Estimate)| {
        let mut object = Map::from_iter([("group".to_owned(), json!(name))]);
        object.extend(found.to_object());
        Value::Object(object)
    };
    let groups: Vec<Value> = found.iter().map(group).collect();
    format!("{:#}\n", json!({ "conditions": conditions, "by": by, "groups": groups }))
}

/// Estimates as comma-separated values, one line per figure. `by` is the column that makes groups.
pub(crate) fn lines(by: Option<&str>, found: &[(String, Estimate)]) -> String {
    let mut text = String::new();
    let mut push = |group: &str, [column, value, figure]: [&str; 3], expected: f64, bounds: Bounds| {
        if by.is_some() {
            text += &format!("{},", field(group));
        }
        let Bounds { least, most } = bounds;
        text += &format!("{},{},{figure},{expected},{least},{most}\n", field(column), field(value));
    };
    for (group, found) in found {
        push(group, ["", "", "rows"], found.count, found.bounds);
        for SensitiveEstimate { column, values, numbers } in &found.sensitive {
            for ValueEstimate { value, count, bounds } in values {
                let figure = if value.is_some() { "rows" } else { "rows without a value" };
                push(group, [column, value.as_deref().unwrap_or_default(), figure], *count, *bounds);
            }
            if let Some(numbers) = numbers {
                push(group, [column, "", "mean"], numbers.mean.expected, numbers.mean.bounds);
                for (name, quartile) in QUARTILES.into_iter().zip(numbers.quartiles) {
                    push(group, [column, "", name], quartile.expected, quartile.bounds);
                }
            }
        }
    }
    let by = by.map_or_else(String::new, |by| format!("{},", field(by)));
    format!("{by}column,value,figure,expected,least,most\n{text}")
}

/// A field in quotes where it needs them.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}
