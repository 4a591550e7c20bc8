//! Whether a tiny table has a release at all, and the smallest LM that any release of it can have, by trying every
//! partition of its rows.
//!
//! # Cost
//! The number of partitions of the rows, their Bell number; if persons may be left out, that of each set of rows. So there may
//! be at most seven rows.

use kohort_model::{Column, Hierarchy, Requirement, Role, Table, Value};

use super::spread::{NaiveSpread, spread};
use super::{Verdict, cell_loss, person, persons, stands};

/// The smallest LM of all partitions whose classes satisfy the requirements; `None` if there is no such partition. At
/// most the given share of persons may be left out. Partitions that only rounding might allow are allowed.
///
/// # Panics
/// If the table has more than seven rows.
pub fn least_lm(table: &Table, requirements: &[Requirement], max_suppressed: f64) -> Option<f64> {
    assert!(table.n_rows <= 7, "there are too many partitions of more than seven rows");
    let quasi: Vec<&Column> = table.columns.iter().filter(|column| column.role == Role::Quasi).collect();
    let mut least: Option<f64> = None;
    for (gone, kept) in ways_to_leave_out(table, max_suppressed) {
        for classes in partitions(&kept) {
            if classes.iter().any(|class| stands(table, requirements, class, &kept) == Verdict::Fails) {
                continue;
            }
            let mut lost = (gone.len() * quasi.len()) as f64;
            for class in &classes {
                lost += quasi.iter().map(|column| class_loss(column, class)).sum::<f64>() * class.len() as f64;
            }
            let lm = lost / (table.n_rows * quasi.len()) as f64;
            least = Some(least.map_or(lm, |least| least.min(lm)));
        }
    }
    least
}

/// The smallest rank and the smallest entropy of all partitions whose classes satisfy the requirements, each by itself; `None` if
/// there is no such partition.
///
/// # Panics
/// If the table has more than seven rows.
pub fn least_spread(table: &Table, requirements: &[Requirement], max_suppressed: f64) -> Option<NaiveSpread> {
    assert!(table.n_rows <= 7, "there are too many partitions of more than seven rows");
    let quasi: Vec<&Column> = table.columns.iter().filter(|column| column.role == Role::Quasi).collect();
    let mut least: Option<NaiveSpread> = None;
    for (_, kept) in ways_to_leave_out(table, max_suppressed) {
        for classes in partitions(&kept) {
            if classes.iter().any(|class| stands(table, requirements, class, &kept) == Verdict::Fails) {
                continue;
            }
            let shown = |position: usize| {
                let label = |class: &Vec<u32>| (class.clone(), class_label(quasi[position], class));
                classes.iter().map(label).collect()
            };
            let found = spread(table, shown);
            least = Some(least.map_or(found, |least| NaiveSpread {
                rank: least.rank.min(found.rank),
                entropy: least.entropy.min(found.entropy),
            }));
        }
    }
    least
}

/// Whether some partition of the rows satisfies the requirements, if at most the given share of persons is left out.
///
/// # Panics
/// If the table has more than seven rows.
pub fn can_be_released(table: &Table, requirements: &[Requirement], max_suppressed: f64) -> Verdict {
    assert!(table.n_rows <= 7, "there are too many partitions of more than seven rows");
    best(ways_to_leave_out(table, max_suppressed).flat_map(|(_, kept)| {
        let all_stand =
            |classes: Vec<Vec<u32>>| worst(classes.iter().map(|class| stands(table, requirements, class, &kept)));
        partitions(&kept).into_iter().map(all_stand).collect::<Vec<_>>()
    }))
}

/// Whether everybody, except at most the given share of persons, may be one class. If each person has one row, this
/// decides whether there is a release at all, because what holds for two classes holds for their union.
///
/// # Panics
/// If the table has more than twelve persons.
pub fn can_be_one_class(table: &Table, requirements: &[Requirement], max_suppressed: f64) -> Verdict {
    best(ways_to_leave_out(table, max_suppressed).map(|(_, kept)| stands(table, requirements, &kept, &kept)))
}

/// For every set of at most the given share of persons, the rows that are left out and the rows that stay; somebody
/// always stays.
fn ways_to_leave_out(table: &Table, max_suppressed: f64) -> impl Iterator<Item = (Vec<u32>, Vec<u32>)> {
    let all: Vec<u32> = (0..table.n_rows as u32).collect();
    let names: Vec<String> = persons(table, &all).into_iter().collect();
    assert!(names.len() <= 12, "there are too many sets of more than twelve persons");
    let person_of_row: Vec<usize> =
        all.iter().map(|&row| names.binary_search(&person(table, row)).expect("it is the name of a person")).collect();
    let allowed = (max_suppressed * names.len() as f64 + 1e-9).floor() as u32;
    let sets = (0u32..(1 << names.len()) - 1).filter(move |left_out| left_out.count_ones() <= allowed);
    sets.map(move |left_out| all.iter().partition(|&&row| left_out >> person_of_row[row as usize] & 1 == 1))
}

fn best(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    let mut best = Verdict::Fails;
    for verdict in verdicts {
        match verdict {
            Verdict::Holds => return Verdict::Holds,
            Verdict::TooClose => best = Verdict::TooClose,
            Verdict::Fails => {}
        }
    }
    best
}

fn worst(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    let mut worst = Verdict::Holds;
    for verdict in verdicts {
        match verdict {
            Verdict::Fails => return Verdict::Fails,
            Verdict::TooClose => worst = Verdict::TooClose,
            Verdict::Holds => {}
        }
    }
    worst
}

/// Every way to put rows into classes.
fn partitions(rows: &[u32]) -> Vec<Vec<Vec<u32>>> {
    let mut found: Vec<Vec<Vec<u32>>> = vec![Vec::new()];
    for &row in rows {
        let mut more = Vec::new();
        for classes in found {
            for position in 0..classes.len() {
                let mut joined = classes.clone();
                joined[position].push(row);
                more.push(joined);
            }
            let mut alone = classes;
            alone.push(vec![row]);
            more.push(alone);
        }
        found = more;
    }
    found
}

/// LM of the smallest cell that covers a class.
fn class_loss(column: &Column, class: &[u32]) -> f64 {
    cell_loss(column, class_label(column, class).as_deref()).0
}

/// The label of the smallest cell that covers a class; `None` is null.
fn class_label(column: &Column, class: &[u32]) -> Option<String> {
    let cells: Vec<Option<&str>> = class.iter().map(|&row| column.cell(row as usize)).collect();
    if cells.iter().all(|cell| *cell == cells[0]) {
        return cells[0].map(str::to_owned);
    }
    Some(match &column.hierarchy {
        Some(hierarchy) => covering_label(hierarchy, &cells).to_owned(),
        None if column.value_type.is_ordered() && cells.iter().all(Option::is_some) => {
            let parse =
                |text| Value::parse(text, column.value_type, &column.notation).expect("values are of their type");
            let mut values: Vec<(Value<'_>, &str)> = cells.iter().flatten().map(|&text| (parse(text), text)).collect();
            values.sort_unstable();
            let ((low_value, low), (high_value, high)) = (values[0], values[values.len() - 1]);
            if low_value == high_value { low.to_owned() } else { format!("[{low},{high}]") }
        }
        None => "*".to_owned(),
    })
}

/// The label of the lowest node above all cells; only the root is above null.
fn covering_label<'h>(hierarchy: &'h Hierarchy, cells: &[Option<&str>]) -> &'h str {
    let leaves: Option<Vec<u32>> = cells.iter().map(|cell| cell.and_then(|text| hierarchy.leaf(text))).collect();
    let Some(leaves) = leaves else { return hierarchy.label(hierarchy.root()) };
    let covers = |node: u32| leaves.iter().all(|&leaf| hierarchy.path(leaf).any(|ancestor| ancestor == node));
    let lowest = hierarchy.path(leaves[0]).find(|&node| covers(node)).unwrap_or(hierarchy.root());
    hierarchy.label(lowest)
}
