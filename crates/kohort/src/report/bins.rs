//! [`bins`]: the values of a private column, counted together so that each bin stands for at least k persons.

use std::collections::{BTreeMap, HashSet};

use kohort_model::{Column, NULL, Table, Value};

use crate::expression::{Comparison, Test};

/// A column has about so many bins at most.
const MOST_BINS: usize = 12;

/// Values of a column that are counted together.
pub(super) struct Bin {
    pub(super) label: String,
    /// What a reader asks to count the bin; `None` for everything that is in no other bin.
    pub(super) test: Option<Test>,
    /// The private rows.
    pub(super) rows: Vec<u32>,
}

/// Bins of a column in each of which at least `k` persons hold a value. Values that no such bin can take are in none.
pub(super) fn bins(column: &Column, table: &Table, k: u64) -> Vec<Bin> {
    let mut rows_of: Vec<Vec<u32>> = vec![Vec::new(); column.texts.len()];
    for (row, &id) in (0u32..).zip(&column.ids) {
        if id != NULL {
            rows_of[id as usize].push(row);
        }
    }
    let n_persons = |rows: &[u32]| match table.person_column() {
        None => rows.len() as u64,
        Some(persons) => rows.iter().map(|&row| persons.ids[row as usize]).collect::<HashSet<u32>>().len() as u64,
    };
    let is_held = |id: &u32| !rows_of[*id as usize].is_empty();
    let mut ids: Vec<u32> = (0..column.texts.len() as u32).filter(is_held).collect();
    if !column.value_type.is_ordered() {
        ids.retain(|id| n_persons(&rows_of[*id as usize]) >= k);
        ids.sort_by_key(|id| (std::cmp::Reverse(rows_of[*id as usize].len()), column.texts.get(*id).to_owned()));
        ids.truncate(MOST_BINS);
        let bin = |id: u32| {
            let text = column.texts.get(id).to_owned();
            let rows = std::mem::take(&mut rows_of[id as usize]);
            Bin { label: text.clone(), test: Some(Test::In(vec![text])), rows }
        };
        let mut bins: Vec<Bin> = ids.into_iter().map(bin).collect();
        let rows = rows_of.concat();
        if n_persons(&rows) >= k {
            bins.push(Bin { label: "all others".to_owned(), test: None, rows });
        }
        return bins;
    }
    // Spellings of one value are counted together.
    let mut by_value: BTreeMap<OrderedText<'_>, Vec<u32>> = BTreeMap::new();
    for id in ids {
        let text = column.texts.get(id);
        if let Some(value) = Value::parse(text, column.value_type, &column.notation) {
            by_value.entry(OrderedText { value, text }).or_default().append(&mut rows_of[id as usize]);
        }
    }
    let wanted = (column.ids.len() / MOST_BINS).max(1);
    let mut bins: Vec<(&str, &str, Vec<u32>)> = Vec::new();
    let mut is_open = false;
    for (value, rows) in by_value {
        match bins.last_mut().filter(|_| is_open) {
            Some((_, high, all)) => {
                *high = value.text;
                all.extend(rows);
            }
            None => bins.push((value.text, value.text, rows)),
        }
        let (_, _, rows) = bins.last().expect("a bin was just added or extended");
        is_open = rows.len() < wanted || n_persons(rows) < k;
    }
    // The last bin may have too few persons.
    if is_open && let Some((low, high, rows)) = bins.pop() {
        match bins.last_mut() {
            Some((_, last, all)) => {
                *last = high;
                all.extend(rows);
            }
            None if n_persons(&rows) >= k => bins.push((low, high, rows)),
            None => {}
        }
    }
    // The lowest and the highest value may be one person's, so the bins at the ends do not name them.
    let n_bins = bins.len();
    let bin = |(position, (low, high, rows)): (usize, (&str, &str, Vec<u32>))| {
        let (label, test) = match (position == 0, position + 1 == n_bins) {
            (true, true) => {
                return Bin {
                    label: "all values".to_owned(),
                    test: Some(Test::Between(low.to_owned(), high.to_owned())),
                    rows,
                };
            }
            (true, false) => (format!("up to {high}"), Test::Compare(Comparison::AtMost, high.to_owned())),
            (false, true) => (format!("from {low}"), Test::Compare(Comparison::AtLeast, low.to_owned())),
            (false, false) if low == high => (low.to_owned(), Test::In(vec![low.to_owned()])),
            (false, false) => (format!("{low} to {high}"), Test::Between(low.to_owned(), high.to_owned())),
        };
        Bin { label, test: Some(test), rows }
    };
    bins.into_iter().enumerate().map(bin).collect()
}

/// A text by the order of its value. Spellings of one value are equal.
struct OrderedText<'a> {
    value: Value<'a>,
    text: &'a str,
}

impl Ord for OrderedText<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.value.cmp(&other.value)
    }
}

impl PartialOrd for OrderedText<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for OrderedText<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for OrderedText<'_> {}
