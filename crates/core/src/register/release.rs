//! From classes of the join to a release of two tables, in which nothing tells private rows from register persons.
//!
//! The first table holds the quasi cells and the sensitive group of everybody; its rows are joined rows, and its
//! columns' sources are those of the joined table, one past the last for the group. The second lists, per private row,
//! the group and the copied cells; its rows and sources are those of the private table, one past the last for the group.
//! Without any sensitive or plain column there is no group, and one table.
//!
//! # Guarantee
//! Rows of the first table are sorted by what they show, and rows of one class all show the same. Groups are numbered
//! in that order, and rows of the second table are sorted by group and text. Nothing depends on which persons are
//! private, nor on the order of the input.
//! # Deviations
//! Plain columns are in the second table, like sensitive ones, because register persons have none. Keys are left out.

use std::cmp::Ordering;

use kohort_model::register::{SENSITIVE_GROUP, SENSITIVE_TABLE};
use kohort_model::spec::RegisterRows;
use kohort_model::{Cells, Release, ReleasedColumn, ReleasedTable, Table};

use super::JoinedClass;
use crate::encode::Encoded;
use crate::ranks::places;
use crate::recode::{is_copied, label};

/// Positions of the columns whose cells are in the second table.
pub(super) fn copied_columns(table: &Table) -> Vec<usize> {
    (0..table.columns.len()).filter(|&column| is_copied(&table.columns[column])).collect()
}

/// What a reader sees of a class: its cells and how many rows show them.
type Seen<'c> = (&'c [(u32, u32)], u64);

/// Puts classes into their released order and numbers their groups from 1 in it.
pub(super) fn put_in_order(table: &Table, classes: &mut Vec<JoinedClass>) {
    let copied = copied_columns(table);
    let n_groups = classes.iter().map(|class| class.group as usize + 1).max().unwrap_or(0);
    // Groups are ordered by what a reader sees of them and by nothing else.
    let mut shown: Vec<Vec<Seen<'_>>> = vec![Vec::new(); n_groups];
    let mut private: Vec<Vec<u32>> = vec![Vec::new(); n_groups];
    for class in classes.iter() {
        shown[class.group as usize].push((&class.cells, class.n_persons()));
        private[class.group as usize].extend_from_slice(&class.microdata);
    }
    shown.iter_mut().for_each(|classes| classes.sort_unstable());
    private.iter_mut().for_each(|rows| rows.sort_unstable_by(|&a, &b| compare(table, &copied, a, b)));
    let mut order: Vec<u32> = (0..n_groups as u32).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (a as usize, b as usize);
        let values = || {
            let pairs = private[a].iter().zip(&private[b]);
            pairs.map(|(&a, &b)| compare(table, &copied, a, b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        };
        shown[a].cmp(&shown[b]).then_with(values)
    });
    let rank = places(&order);
    classes.sort_by(|a, b| a.cells.cmp(&b.cells).then(rank[a.group as usize].cmp(&rank[b.group as usize])));
    let mut numbers = vec![0; n_groups];
    let mut last = 0;
    for class in classes {
        let number = &mut numbers[class.group as usize];
        if *number == 0 {
            last += 1;
            *number = last;
        }
        class.group = *number;
    }
}

pub(super) fn render(
    table: &Table,
    joined: &Table,
    encoded: &Encoded<'_>,
    classes: &[JoinedClass],
    released: RegisterRows,
) -> Release {
    let rows_of = |class: &JoinedClass| match released {
        RegisterRows::All => class.microdata.len() + class.register.len(),
        RegisterRows::Microdata => class.microdata.len(),
    };
    let per_row = |of_classes: &mut dyn Iterator<Item = u32>| -> Vec<u32> {
        classes.iter().zip(of_classes).flat_map(|(class, id)| std::iter::repeat_n(id, rows_of(class))).collect()
    };
    let mut rows = Vec::with_capacity(classes.iter().map(rows_of).sum());
    for class in classes {
        rows.extend_from_slice(&class.microdata);
        if released == RegisterRows::All {
            rows.extend_from_slice(&class.register);
        }
    }
    let mut columns: Vec<ReleasedColumn> = (0..joined.columns.len())
        .map(|column| {
            let intervals: Vec<(u32, u32)> = classes.iter().map(|class| class.cells[column]).collect();
            let (labels, of_classes) = label(&encoded.domains[column], &intervals);
            let ids = per_row(&mut of_classes.into_iter());
            let cells = Cells::Recoded { labels, ids };
            ReleasedColumn { name: joined.columns[column].name.clone(), source: column, cells }
        })
        .collect();
    let copied = copied_columns(table);
    if copied.is_empty() {
        return Release { tables: vec![ReleasedTable { name: table.name.clone(), rows, columns }] };
    }
    columns.push(group_column(joined, per_row(&mut classes.iter().map(|class| class.group))));

    let mut values: Vec<(u32, u32)> =
        classes.iter().flat_map(|class| class.microdata.iter().map(|&row| (class.group, row))).collect();
    values.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| compare(table, &copied, a.1, b.1)).then(a.1.cmp(&b.1)));
    let groups = group_column(table, values.iter().map(|&(group, _)| group).collect());
    let copy =
        |&source: &usize| ReleasedColumn { name: table.columns[source].name.clone(), source, cells: Cells::Copied };
    let sensitive = ReleasedTable {
        name: SENSITIVE_TABLE.to_owned(),
        rows: values.into_iter().map(|(_, row)| row).collect(),
        columns: std::iter::once(groups).chain(copied.iter().map(copy)).collect(),
    };
    Release { tables: vec![ReleasedTable { name: table.name.clone(), rows, columns }, sensitive] }
}

fn group_column(source: &Table, ids: Vec<u32>) -> ReleasedColumn {
    ReleasedColumn { name: SENSITIVE_GROUP.to_owned(), source: source.columns.len(), cells: Cells::Surrogate { ids } }
}

/// Two private rows by the texts of their copied cells; null comes first.
fn compare(table: &Table, copied: &[usize], a: u32, b: u32) -> Ordering {
    let cells = copied.iter().map(|&column| {
        let column = &table.columns[column];
        column.cell(a as usize).cmp(&column.cell(b as usize))
    });
    cells.fold(Ordering::Equal, Ordering::then)
}
