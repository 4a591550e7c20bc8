//! Earlier releases that may be read beside the new one: their classes on the new codes.
//!
//! An earlier release does not say who was in it, so somebody can have been in every class whose cells hold them, or in
//! none (see `past`). A reader who knows that a person was in several releases looks for them among the persons whom a
//! class of each release contains, and for their values among the values that all their groups have.
//!
//! # Guarantee
//! Take a private person and any way they can have been in earlier releases. By the registers of each time, k persons
//! are in every class of that way, and by the current registers these are also in the cells of the person's class. The
//! sensitive groups of the class and of the way have no value in common, or as many as asked. No group equals an
//! earlier one except for a few values. Persons for whom that can't be achieved are left out. If presence is hidden,
//! all of this is decided for everybody of a class alike, so that it does not tell who is private.
//! # Cost
//! a range query per earlier class, and per new class a look at the persons of each way of its members

mod past;
mod values;
mod widen;

use std::collections::BTreeMap;

use kohort_model::register::SENSITIVE_GROUP;
use kohort_model::{Column, NULL, PreviousRelease, ReadBeside, Role, Table, Texts, Value};

use crate::AnonymizeError;
use crate::encode::Domain;
use crate::encode::bounds::Bounds;

pub(super) use past::{LookedAt, Past};
pub(super) use values::merge_groups;
pub(super) use widen::widen;

/// How often each value occurs, null included.
type ValueCounts<'a> = BTreeMap<Option<Value<'a>>, u64>;

/// One class of each earlier release, [`NULL`] if no class can contain the person.
type Way = Vec<u32>;

/// The persons of a class.
pub(super) struct ClassPersons {
    /// Everybody who may be private, as far as a reader can tell. The class must be right for all of them.
    pub(super) members: Vec<u32>,
    /// The persons whose rows the class shows.
    pub(super) released: Vec<u32>,
}

/// An earlier release on the codes of the new one.
pub(super) struct Earlier<'a> {
    /// The boxes of its classes, of those that hold anybody.
    boxes: Vec<Bounds>,
    /// For each class, how many rows it shows.
    n_rows: Vec<u64>,
    /// For each class, its sensitive group.
    groups: Vec<u32>,
    /// For each sensitive column of the private table, the values of each group, if the release shows them.
    values: Vec<Option<Vec<ValueCounts<'a>>>>,
    /// For each person, past or present, the joined row of how the registers described them at the time of that
    /// release; [`NULL`] if they did not.
    places: &'a [u32],
    /// The verified claim about this release and still earlier ones.
    beside: Option<&'a ReadBeside>,
}

impl<'a> Earlier<'a> {
    pub(super) fn read(
        previous: &'a PreviousRelease,
        joined: &Table,
        domains: &[Domain],
        private: &Table,
    ) -> Result<Earlier<'a>, AnonymizeError> {
        let rows = &previous.tables[0];
        let is_unknown = |column: &&Column| column.role == Role::Quasi && joined.column(&column.name).is_none();
        if let Some(column) = rows.columns.iter().find(is_unknown) {
            return Err(AnonymizeError::PreviousColumn { column: column.name.clone() });
        }
        let mut quasi = Vec::new();
        for (known, domain) in joined.columns.iter().zip(domains) {
            let shown = rows.columns.iter().find(|column| column.role == Role::Quasi && column.name == known.name);
            let intervals = shown.map(|shown| Labels { column: known, domain }.intervals(&shown.texts)).transpose()?;
            quasi.push((shown.zip(intervals), domain));
        }
        let group_column = rows.column(SENSITIVE_GROUP);
        let group_names: Vec<&str> = group_column.map_or_else(Vec::new, |column| column.texts.iter().collect());
        let shown = |row: usize| -> Vec<u32> {
            let columns = quasi.iter().filter_map(|(shown, _)| shown.as_ref()).map(|(column, _)| *column);
            columns.chain(group_column).map(|column| column.ids[row]).collect()
        };
        // Classes by what they show, and per row its class.
        let mut numbers: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
        let mut first_rows = Vec::new();
        let mut class_of_row = Vec::with_capacity(rows.n_rows);
        for row in 0..rows.n_rows {
            let next = numbers.len() as u32;
            let class = *numbers.entry(shown(row)).or_insert(next);
            if class == next {
                first_rows.push(row);
            }
            class_of_row.push(class);
        }
        let group_of_class = |class: u32| group_column.map_or(class, |column| column.ids[first_rows[class as usize]]);
        let n_groups = if group_column.is_some() { group_names.len() } else { first_rows.len() };
        let mut rows_of_class = vec![0; first_rows.len()];
        class_of_row.iter().for_each(|&class| rows_of_class[class as usize] += 1);
        let (mut boxes, mut groups, mut n_rows) = (Vec::new(), Vec::new(), Vec::new());
        for (class, &row) in (0..).zip(&first_rows) {
            let interval = |(shown, domain): &(Option<(&Column, Intervals)>, &Domain)| match shown {
                None => Some((0, domain.n_codes() - 1)),
                Some((column, intervals)) => match column.ids[row] {
                    NULL => domain.null().map(|null| (null, null)),
                    id => intervals[id as usize],
                },
            };
            if let Some(bounds) = quasi.iter().map(interval).collect() {
                boxes.push(bounds);
                groups.push(group_of_class(class));
                n_rows.push(rows_of_class[class as usize]);
            }
        }
        let values = private.with_role(Role::Sensitive).into_iter().map(|column| {
            let private = &private.columns[column];
            let table = previous.tables.get(1).unwrap_or(rows);
            let column = table.column(&private.name)?;
            let names = previous.tables.get(1).and_then(|table| table.column(SENSITIVE_GROUP));
            let by_name: Vec<Option<usize>> = names.map_or_else(Vec::new, |names| {
                names.texts.iter().map(|text| group_names.iter().position(|&name| name == text)).collect()
            });
            let group_of_row = |row: usize| match names {
                None => Some(group_of_class(class_of_row[row]) as usize),
                Some(names) => *by_name.get(names.ids[row] as usize)?,
            };
            let mut counts: Vec<ValueCounts<'a>> = vec![ValueCounts::new(); n_groups];
            for row in 0..table.n_rows {
                *counts[group_of_row(row)?].entry(value_of(private, column.cell(row))).or_default() += 1;
            }
            Some(counts)
        });
        let PreviousRelease { places, beside, .. } = previous;
        Ok(Earlier { values: values.collect(), boxes, n_rows, groups, places, beside: beside.as_ref() })
    }
}

/// A sensitive cell; spellings of one value are one.
fn value_of<'t>(column: &Column, cell: Option<&'t str>) -> Option<Value<'t>> {
    let parse = |text| Value::parse(text, column.value_type, &column.notation).unwrap_or(Value::Text(text));
    cell.map(|text| if column.hierarchy.is_some() { Value::Text(text) } else { parse(text) })
}

/// The codes of each label; `None` if nobody has them.
type Intervals = Vec<Option<(u32, u32)>>;

/// Reads labels of an earlier release.
struct Labels<'a> {
    column: &'a Column,
    domain: &'a Domain,
}

impl Labels<'_> {
    fn intervals(&self, labels: &Texts) -> Result<Intervals, AnonymizeError> {
        let read: Vec<Option<Option<(u32, u32)>>> = match (&self.column.hierarchy, self.domain.tree()) {
            (Some(hierarchy), Some(tree)) => {
                labels.iter().map(|label| hierarchy.node(label).map(|node| Some(tree.interval(node)))).collect()
            }
            _ if self.column.value_type.is_ordered() => {
                let values: Vec<Value<'_>> = self.domain.texts().filter_map(|text| self.value(text)).collect();
                labels.iter().map(|label| self.range(label, &values)).collect()
            }
            _ => {
                let codes: BTreeMap<&str, u32> = self.domain.texts().zip(0..).collect();
                let read = |label| match codes.get(label) {
                    Some(&code) => Some(Some((code, code))),
                    None => (label != "*").then_some(None),
                };
                labels.iter().map(read).collect()
            }
        };
        let everything = Some((0, self.domain.n_codes() - 1));
        let read = labels.iter().zip(read).map(|(label, read)| read.or((label == "*").then_some(everything)));
        let n = read.clone().filter(Option::is_none).count() as u64;
        let column = || self.column.name.clone();
        read.collect::<Option<Intervals>>().ok_or_else(|| AnonymizeError::PreviousLabels { column: column(), n })
    }

    fn value<'t>(&self, text: &'t str) -> Option<Value<'t>> {
        Value::parse(text, self.column.value_type, &self.column.notation)
    }

    /// The codes of a value or a range; `None` if the label is neither.
    fn range(&self, label: &str, values: &[Value<'_>]) -> Option<Option<(u32, u32)>> {
        let (low, high) = match self.value(label) {
            Some(value) => (value, value),
            None => {
                let inside = label.strip_prefix('[')?.strip_suffix(']')?;
                let separator = self.column.notation.range_separator(self.column.value_type);
                let mut readings = inside.match_indices(separator).filter_map(|(at, found)| {
                    Some((self.value(&inside[..at])?, self.value(&inside[at + found.len()..])?))
                });
                let first = readings.next()?;
                if readings.next().is_some() {
                    return None;
                }
                first
            }
        };
        let from = values.partition_point(|value| *value < low) as u32;
        let to = values.partition_point(|value| *value <= high) as u32;
        Some((from < to).then(|| (from, to - 1)))
    }
}
