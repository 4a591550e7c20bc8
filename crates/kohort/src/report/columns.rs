//! [`column_report`], [`common_report`]: what a released column shows, and which combinations of cells many persons share.
//!
//! # Guarantee
//! A cell is named only if at least k persons of the release hold it. Where persons have several rows and nothing tells which,
//! only generalized cells are named: each is shown for a whole class, and the publisher's verifier counted k persons in it.

use kohort_model::report::{CellsReport, ColumnReport, CommonReport, OthersReport, Unnamed, ValueReport};
use kohort_model::{Column, ColumnManifest, LabelsManifest, NULL, Role, Table, TableManifest};
use kohort_verify::{Look, Reading, ShownLabel};

/// How many cells are named per column.
const MOST_VALUES: usize = 12;

/// Whose the rows of a table are.
pub(super) enum Holders {
    /// Each row is a person of its own.
    RowsEach,
    /// For each row a number of its person.
    Named(Vec<u32>),
    /// Persons have several rows, and nothing tells which. But the rows of whole classes are held by k persons.
    WholeClasses,
    /// Persons have several rows, and nothing tells which.
    Unknown,
}

impl Holders {
    /// Whether at least `k` persons hold these rows. Where only whole classes tell, the rows must be theirs.
    fn are_at_least(&self, k: u64, rows: impl ExactSizeIterator<Item = u32>) -> bool {
        match self {
            Holders::RowsEach | Holders::WholeClasses => rows.len() as u64 >= k,
            Holders::Unknown => false,
            Holders::Named(persons) => {
                let mut persons: Vec<u32> = rows.map(|row| persons[row as usize]).collect();
                persons.sort_unstable();
                persons.dedup();
                persons.len() as u64 >= k
            }
        }
    }
}

/// The cells of a column, counted.
pub(super) struct CountedCells {
    /// The rows that hold each text, by its id.
    of_texts: Vec<u64>,
    nulls: u64,
}

impl CountedCells {
    /// Counts the cells of a column that is in memory.
    pub(super) fn of(column: &Column) -> Self {
        let mut counted = CountedCells { of_texts: vec![0u64; column.texts.len()], nulls: 0 };
        for &id in &column.ids {
            match counted.of_texts.get_mut(id as usize) {
                Some(count) => *count += 1,
                None => counted.nulls += 1,
            }
        }
        counted
    }

    /// From the number of nulls, and then of rows that hold each text.
    pub(super) fn known(counts: &[u64]) -> Self {
        let (nulls, of_texts) = counts.split_first().map_or((0, &[][..]), |(nulls, of_texts)| (*nulls, of_texts));
        CountedCells { of_texts: of_texts.to_vec(), nulls }
    }
}

pub(super) fn column_report(
    entry: &TableManifest,
    column: &Column,
    counted: CountedCells,
    holders: &Holders,
    k: u64,
) -> ColumnReport {
    let CountedCells { of_texts: counts, nulls } = counted;
    let known = entry.columns.get(&column.name);
    let value_type = match known.map(|known| known.value_type.as_str()) {
        Some(ColumnManifest::OTHER_TYPE) => ColumnManifest::OTHER_TYPE,
        _ => column.value_type.word(),
    };
    let is_quasi = column.role == Role::Quasi;
    let unnamed = match holders {
        _ if column.role == Role::Key => Some(Unnamed::Keys),
        Holders::WholeClasses if !is_quasi => Some(Unnamed::Persons),
        Holders::Unknown => Some(Unnamed::Persons),
        _ => None,
    };
    let mut order: Vec<u32> = (0..column.texts.len() as u32).filter(|&id| counts[id as usize] >= k.max(1)).collect();
    order.sort_unstable_by(|&a, &b| {
        let by_count = counts[b as usize].cmp(&counts[a as usize]);
        by_count.then_with(|| column.texts.get(a).cmp(column.texts.get(b)))
    });
    if unnamed.is_some() {
        order.clear();
    }
    let mut values = Vec::new();
    for id in order {
        if values.len() == MOST_VALUES {
            break;
        }
        let is_shared = match holders {
            // The rows were counted already.
            Holders::RowsEach | Holders::WholeClasses | Holders::Unknown => true,
            Holders::Named(_) => {
                let of_value = column.ids.iter().zip(0u32..).filter(|(other, _)| **other == id);
                let rows: Vec<u32> = of_value.map(|(_, row)| row).collect();
                holders.are_at_least(k, rows.into_iter())
            }
        };
        if is_shared {
            values.push(ValueReport { value: column.texts.get(id).to_owned(), rows: counts[id as usize] });
        }
    }
    let n_named: u64 = values.iter().map(|value| value.rows).sum();
    let n_held = counts.iter().filter(|&&count| count > 0).count() as u64;
    let others = OthersReport { values: n_held - values.len() as u64, rows: counts.iter().sum::<u64>() - n_named };
    let role = known.map_or(column.role.word(), |known| match known.role.as_str() {
        ColumnManifest::LOWER_BOUND | ColumnManifest::UPPER_BOUND => column.role.word(),
        word => word,
    });
    ColumnReport {
        name: column.name.clone(),
        role: role.to_owned(),
        value_type: value_type.to_owned(),
        nulls,
        cells: is_quasi.then(|| cells_report(known, column, &counts, nulls)),
        values,
        others,
        unnamed,
    }
}

/// What the cells of a quasi column tell. Columns of bounds have no entry in the manifest: their labels are ranges.
fn cells_report(known: Option<&ColumnManifest>, column: &Column, counts: &[u64], nulls: u64) -> CellsReport {
    let mut cells = CellsReport { exact: nulls, ..CellsReport::default() };
    let ranges = LabelsManifest::Ranges;
    let labels = known.map_or(Some(&ranges), |known| known.labels.as_ref());
    let tree = column.hierarchy.as_deref();
    for (text, &count) in column.texts.iter().zip(counts) {
        let read = match labels {
            Some(LabelsManifest::Hierarchy { root, .. }) => {
                match tree.and_then(|tree| Some((tree, tree.node(text)?))) {
                    _ if root.as_deref() == Some(text) => ShownLabel::Everything,
                    Some((tree, node)) if tree.is_leaf(node) => ShownLabel::Value,
                    _ => ShownLabel::Unknown,
                }
            }
            Some(labels) => Reading::new(column, labels, None).read(text).unwrap_or(ShownLabel::Unknown),
            None if text == "*" => ShownLabel::Everything,
            None => ShownLabel::Unknown,
        };
        *match read {
            ShownLabel::Value => &mut cells.exact,
            ShownLabel::Everything => &mut cells.nothing,
            ShownLabel::Between { .. } | ShownLabel::Masked { .. } | ShownLabel::Listed(_) | ShownLabel::Unknown => {
                &mut cells.wider
            }
        } += count;
    }
    cells
}

/// A combination of cells that so many rows share, if at least `k` persons do. Persons must not be named by row.
pub(super) fn common_look(look: &Look, holders: &Holders, k: u64) -> Option<CommonReport> {
    let is_shared = match holders {
        Holders::RowsEach | Holders::WholeClasses => look.n_rows >= k,
        Holders::Unknown | Holders::Named(_) => false,
    };
    is_shared.then(|| CommonReport { cells: look.cells.clone(), rows: look.n_rows })
}

/// A combination of cells, if at least `k` persons share it.
pub(super) fn common_report(
    table: &Table,
    quasi: &[usize],
    rows: &[u32],
    holders: &Holders,
    k: u64,
) -> Option<CommonReport> {
    let &first = rows.first()?;
    if !holders.are_at_least(k, rows.iter().copied()) {
        return None;
    }
    let cell = |&position: &usize| {
        let column = &table.columns[position];
        match column.ids[first as usize] {
            NULL => None,
            id => Some(column.texts.get(id).to_owned()),
        }
    };
    Some(CommonReport { cells: quasi.iter().map(cell).collect(), rows: rows.len() as u64 })
}
