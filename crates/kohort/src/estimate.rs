//! Estimates, as a reader of a release can, how many private rows match conditions, and which sensitive values they have.
//!
//! Only released files are read. The manifest says which rule made the labels of a column, and so what each of them stands
//! for: a range of numbers or days, the values that a released hierarchy lists, or `*`, which may be anything that some cell
//! of the column shows. If the user gives a hierarchy, it is used instead.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::path::Path;

use kohort_core::register::estimate::{AskedInterval, Estimator, ShownCell, ShownClass, ShownGroup, ValueRange};
use kohort_io::read_release_with;
use kohort_model::hierarchy::MaskSide;
use kohort_model::register::SENSITIVE_GROUP;
use kohort_model::spec::HierarchySource;
use kohort_model::{
    Codes, Column, Hierarchy, LabelsManifest, Manifest, NULL, Notation, Progress, Role, Table, Value, ValueType,
};
use kohort_verify::{Reading, ShownLabel};

use crate::error::{Error, Report};
use crate::expression::{self, Comparison, Condition, Test};

/// How wide a range of whole numbers or days is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Widths {
    /// The number of values: `[20,29]` is ten wide.
    #[default]
    Steps,
    /// The distance between the ends: `[20,29]` is nine wide.
    Continuous,
}

/// What the reader knows beyond the released files.
#[derive(Clone, Debug, Default)]
pub struct EstimateOptions {
    /// How wide ranges are.
    pub widths: Widths,
    /// Hierarchies by column. They tell which values labels stand for, where the release does not.
    pub hierarchies: BTreeMap<String, HierarchySource>,
}

/// An estimate.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The number of private rows that match.
    pub count: f64,
    /// The number of all private rows.
    pub of: f64,
    /// For each sensitive column, its values and how many matching rows have each of them.
    pub sensitive: Vec<(String, Vec<ValueCount>)>,
}

/// A value, `None` for null, and how many rows have it.
pub type ValueCount = (Option<String>, f64);

/// The largest number of combinations of listed values that are counted one by one.
const MOST_QUERIES: usize = 10_000;

/// Estimates how many rows of the private table match conditions, and which sensitive values they have, from the released
/// files alone.
///
/// Conditions are joined by `and`: `=`, `<`, `<=`, `>`, `>=`, `between .. and ..`, `in (.., ..)`.
///
/// ```no_run
/// # fn main() -> Result<(), kohort::Error> {
/// let found = kohort::estimate("out", "age between 20 and 40 and zip = '88512'", &Default::default(), &kohort::Silent)?;
/// println!("{} of {}", found.count, found.of);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Input`] if conditions can't be read or can't be asked of this release.
pub fn estimate(
    release: impl AsRef<Path>,
    conditions: &str,
    options: &EstimateOptions,
    progress: &dyn Progress,
) -> Result<Estimate, Error> {
    let conditions = expression::parse(conditions).map_err(|misread| {
        let message = format!("the conditions can't be read: {misread}");
        Error::input(message, "for example \"age between 20 and 40 and zip = '88512'\"")
    })?;
    let (manifest, tables) = read_release_with(release.as_ref(), &options.hierarchies, progress)?;
    estimate_from(&manifest, &tables, &conditions, options)
}

/// Estimates from the tables of a release.
pub(crate) fn estimate_from(
    manifest: &Manifest,
    tables: &[Table],
    conditions: &[Condition],
    options: &EstimateOptions,
) -> Result<Estimate, Error> {
    let is_joined = manifest.register.is_some();
    let hangs = |table: &Table| manifest.links.iter().any(|link| link.table == table.name);
    let asked = tables.iter().find(|table| !hangs(table));
    let table = asked.ok_or_else(|| Error::input("the release has no table of persons", "write the release again"))?;
    check_columns(table, tables, conditions, is_joined)?;
    let quasi: Vec<&Column> = table.columns.iter().filter(|column| column.role == Role::Quasi).collect();
    let mut problems = Vec::new();
    let mut scales = Vec::with_capacity(quasi.len());
    for column in &quasi {
        let of_column: Vec<&Condition> =
            conditions.iter().filter(|condition| condition.column == column.name).collect();
        let told = manifest.tables.iter().find(|entry| entry.name == table.name);
        let told = told.and_then(|entry| entry.columns.get(&column.name)).and_then(|known| known.labels.as_ref());
        let told = told.filter(|_| !options.hierarchies.contains_key(&column.name));
        match Scale::new(column, told, &of_column, options.widths) {
            Ok(scale) => scales.push(scale),
            Err(report) => problems.push(report),
        }
    }
    if !problems.is_empty() {
        return Err(Error::Input(problems));
    }
    let queries = queries(&scales)?;
    let classes = classes(table, &quasi, &scales);
    let holders = Holders::new(manifest, tables, table);
    let counted = holders.estimator(&classes, None);
    let count = queries.iter().map(|query| counted.count(query)).sum();
    let sensitive = holders.values.columns.iter().filter(|column| column.role == Role::Sensitive).map(|column| {
        let estimator = holders.estimator(&classes, Some(column));
        let mut found: Vec<f64> = vec![0.0; column.texts.len() + 1];
        for query in &queries {
            estimator.values(query).into_iter().zip(&mut found).for_each(|(n, found)| *found += n);
        }
        let text = |id: usize| (id < column.texts.len()).then(|| column.texts.get(id as u32).to_owned());
        let is_held = |id: &usize| if *id < column.texts.len() { true } else { column.has_nulls() };
        let values: Vec<_> = (0..found.len()).filter(is_held).map(|id| (text(id), found[id])).collect();
        (column.name.clone(), by_text(values))
    });
    Ok(Estimate { count, of: holders.n_private, sensitive: sensitive.collect() })
}

/// Values by their text, null last.
fn by_text(mut values: Vec<ValueCount>) -> Vec<ValueCount> {
    values.sort_by(|(a, _), (b, _)| a.is_none().cmp(&b.is_none()).then_with(|| a.cmp(b)));
    values
}

/// Refuses conditions on columns that can't be estimated.
fn check_columns(table: &Table, tables: &[Table], conditions: &[Condition], is_joined: bool) -> Result<(), Error> {
    let quasi: Vec<&str> =
        table.columns.iter().filter(|column| column.role == Role::Quasi).map(|column| column.name.as_str()).collect();
    let can_ask = match quasi.as_slice() {
        [] => format!("table '{}' has no quasi column, so there is nothing to estimate", table.name),
        _ => format!("conditions can be on {}", quasi.join(", ")),
    };
    let mut problems = Vec::new();
    for condition in conditions {
        let name = &condition.column;
        if quasi.contains(&name.as_str()) {
            continue;
        }
        let elsewhere = tables.iter().find(|other| other.name != table.name && other.column(name).is_some());
        let message = match (table.column(name), elsewhere) {
            (Some(column), _) if column.role == Role::Sensitive => {
                format!("column '{name}' is sensitive, so it can't be in a condition: the estimate shows its values")
            }
            (Some(_), _) => {
                format!("column '{name}' is not quasi, so its cells are unchanged and can be counted in the file")
            }
            (None, Some(_)) if is_joined => {
                format!("column '{name}' is sensitive, so it can't be in a condition: the estimate shows its values")
            }
            (None, Some(other)) => {
                format!(
                    "column '{name}' is in table '{}', but only persons in '{}' are estimated",
                    other.name, table.name
                )
            }
            (None, None) => format!("the release has no column '{name}'"),
        };
        problems.push(Report::new(message).hint(can_ask.clone()));
    }
    if problems.is_empty() { Ok(()) } else { Err(Error::Input(problems)) }
}

/// A column: what its cells show, and which part of it the conditions ask for.
struct Scale {
    /// What each label stands for.
    cells: Vec<ShownCell>,
    /// What the conditions ask for, in disjoint parts.
    asked: Vec<AskedInterval>,
}

impl Scale {
    /// `labels` is what the manifest says about the column, unless the user gave a hierarchy.
    fn new(
        column: &Column,
        labels: Option<&LabelsManifest>,
        conditions: &[&Condition],
        widths: Widths,
    ) -> Result<Self, Report> {
        if conditions.is_empty() {
            let cells = vec![ShownCell::Null; column.texts.len()];
            return Ok(Scale { cells, asked: vec![AskedInterval::Anything] });
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
        let cells = shown.into_iter().map(|(lo, hi)| ShownCell::Range { lo, hi, step: 1.0 });
        Ok(Scale { cells: cells.collect(), asked: ranges.into_iter().map(AskedInterval::Range).collect() })
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
        Ok(Scale { cells, asked: vec![AskedInterval::Leaves(asked.into_iter().collect())] })
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
        Ok(Scale { cells: shown.into_iter().map(cell).collect(), asked })
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

fn without_hierarchy(column: &Column) -> Report {
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
fn meet(a: &ValueRange, b: &ValueRange) -> Option<ValueRange> {
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

/// One query for each combination of parts. The parts are disjoint, so the counts add up.
fn queries(scales: &[Scale]) -> Result<Vec<Vec<AskedInterval>>, Error> {
    let mut queries: Vec<Vec<AskedInterval>> = vec![Vec::new()];
    for scale in scales {
        if queries.len() * scale.asked.len() > MOST_QUERIES {
            let message = format!("more than {MOST_QUERIES} combinations of values are listed");
            return Err(Error::input(message, "ask for ranges with between"));
        }
        let longer = |query: &Vec<AskedInterval>| {
            let with = |asked: &AskedInterval| query.iter().chain([asked]).cloned().collect::<Vec<AskedInterval>>();
            scale.asked.iter().map(with).collect::<Vec<_>>()
        };
        queries = queries.iter().flat_map(longer).collect();
    }
    Ok(queries)
}

/// Rows that are equal in their quasi columns and group.
struct ClassOfRows {
    cells: Vec<ShownCell>,
    rows: Vec<u32>,
}

fn classes(table: &Table, quasi: &[&Column], scales: &[Scale]) -> Vec<ClassOfRows> {
    let group = table.column(SENSITIVE_GROUP);
    let mut by_cells: BTreeMap<Vec<u32>, Vec<u32>> = BTreeMap::new();
    for row in 0..table.n_rows {
        let cells = quasi.iter().copied().chain(group).map(|column| column.ids[row]).collect();
        by_cells.entry(cells).or_default().push(row as u32);
    }
    let cell = |(scale, &id): (&Scale, &u32)| if id == NULL { ShownCell::Null } else { scale.cells[id as usize] };
    let class = |(cells, rows): (Vec<u32>, Vec<u32>)| ClassOfRows {
        cells: scales.iter().zip(&cells).map(cell).collect(),
        rows,
    };
    by_cells.into_iter().map(class).collect()
}

/// Where the sensitive values of released rows are, and the number of private rows.
struct Holders<'a> {
    rows: &'a Table,
    values: &'a Table,
    /// If rows have a group: the rows of sensitive values for each group. Otherwise the released rows have the values
    /// themselves.
    groups: Option<BTreeMap<&'a str, Vec<u32>>>,
    /// Whether private rows are spread evenly over all classes, because nothing tells how many of them a class has.
    is_one_group: bool,
    n_private: f64,
}

impl<'a> Holders<'a> {
    fn new(manifest: &Manifest, tables: &'a [Table], rows: &'a Table) -> Self {
        let n_out = manifest.persons.n_out as f64;
        let groups = rows.column(SENSITIVE_GROUP).and_then(|_| tables.get(1)).and_then(|values| {
            let column = values.column(SENSITIVE_GROUP)?;
            let mut groups: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
            for row in 0..values.n_rows {
                groups.entry(column.cell(row).unwrap_or_default()).or_default().push(row as u32);
            }
            Some((values, groups))
        });
        match groups {
            Some((values, groups)) => {
                let n_private = values.n_rows as f64;
                Holders { rows, values, groups: Some(groups), is_one_group: false, n_private }
            }
            None => {
                let is_one_group = manifest.register.is_some();
                let n_private = if is_one_group { n_out } else { rows.n_rows as f64 };
                Holders { rows, values: rows, groups: None, is_one_group, n_private }
            }
        }
    }

    fn estimator(&self, classes: &[ClassOfRows], column: Option<&Column>) -> Estimator {
        let group_of = |rows: &[u32]| ShownGroup {
            n_rows: rows.len() as u64,
            values: column.map_or_else(Vec::new, |column| {
                let mut counts = vec![0; column.texts.len() + 1];
                rows.iter().for_each(|&row| counts[(column.ids[row as usize] as usize).min(column.texts.len())] += 1);
                counts
            }),
        };
        let shown = |(class, group): (&ClassOfRows, usize)| ShownClass {
            cells: class.cells.clone(),
            n_rows: class.rows.len() as u64,
            group,
        };
        match (&self.groups, self.rows.column(SENSITIVE_GROUP)) {
            (Some(groups), Some(names)) => {
                let position: BTreeMap<&str, usize> = groups.keys().copied().zip(0..).collect();
                let of_class = |class: &ClassOfRows| {
                    names.cell(class.rows[0] as usize).and_then(|name| position.get(name)).copied()
                };
                let classes = classes.iter().filter_map(|class| Some(shown((class, of_class(class)?))));
                Estimator::new(classes.collect(), groups.values().map(|rows| group_of(rows)).collect())
            }
            _ if self.is_one_group => {
                let group = ShownGroup { n_rows: self.n_private as u64, values: Vec::new() };
                Estimator::new(classes.iter().map(|class| shown((class, 0))).collect(), vec![group])
            }
            _ => {
                let groups = classes.iter().map(|class| group_of(&class.rows)).collect();
                Estimator::new(classes.iter().zip(0..).map(shown).collect(), groups)
            }
        }
    }
}
