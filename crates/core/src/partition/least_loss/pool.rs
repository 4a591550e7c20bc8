//! Starting over with what costs most: expensive rows of all classes are taken out and cut anew, together.
//!
//! Cuts from the top part rows that are alike but rare: those outside the usual values of one column stay on one side
//! of the first cut and never meet those on the other. Taken out of their classes they do.

use super::outline::Outline;
use super::runs::Runs;
use super::slab::{Slab, slabs};
use super::split;
use crate::partition::Task;

/// Classes with their expensive rows cut anew: those whose absence saves more than so many times the mean loss per row.
pub(super) fn recut(task: &Task<'_>, classes: &[Vec<u32>], dear: f64, foresight: u64) -> Vec<Vec<u32>> {
    let price = dear * super::loss(task, classes) / task.rows.n_members() as f64;
    let mut runs = Runs::default();
    let (mut kept, mut pool) = (Vec::new(), Vec::new());
    for rows in classes {
        let stay = without_expensive_rows(task, &mut runs, rows.clone(), price, &mut pool);
        kept.extend(Some(stay).filter(|stay| !stay.is_empty()));
    }
    if pool.is_empty() || !super::stands(task, &pool) {
        return classes.to_vec();
    }
    pool.sort_unstable();
    kept.extend(split::split(task, vec![pool], foresight));
    kept
}

/// Takes the rows out of a class without which it loses most per row, as long as it stands without them; then the
/// whole class, if those that stayed are expensive still.
fn without_expensive_rows(
    task: &Task<'_>,
    runs: &mut Runs,
    mut rows: Vec<u32>,
    price: f64,
    pool: &mut Vec<u32>,
) -> Vec<u32> {
    let k = u64::from(task.rules.k());
    let mut outline = Outline::of(task, &rows);
    while let Some((column, slab)) = most_expensive(task, runs, &rows, &outline, price) {
        runs.find(task, &rows, column, outline.bounds[column]);
        let is_out = |row: &u32| slab.holds(runs.position(task.rows.cells(*row)[column]));
        let (out, stay): (Vec<u32>, Vec<u32>) = rows.iter().partition(|row| is_out(row));
        if task.rows.weight_of(&stay) < k || !super::stands(task, &stay) {
            break;
        }
        pool.extend(out);
        outline = Outline::of(task, &stay);
        rows = stay;
    }
    if outline.perimeter > price {
        pool.append(&mut rows);
    }
    rows
}

/// The slab without which a class loses most per row that leaves, if more than the price.
fn most_expensive(
    task: &Task<'_>,
    runs: &mut Runs,
    rows: &[u32],
    outline: &Outline,
    price: f64,
) -> Option<(usize, Slab)> {
    let spare = outline.weight.saturating_sub(u64::from(task.rules.k()));
    let mut best = None;
    let mut most = price;
    for (column, &bounds) in outline.bounds.iter().enumerate() {
        if bounds.0 == bounds.1 || spare == 0 {
            continue;
        }
        runs.find(task, rows, column, bounds);
        for slab in slabs(task, runs, column) {
            let weight = slab.weight(runs);
            if weight <= spare {
                let left = slab.perimeter_left(task, runs) * (outline.weight - weight) as f64;
                let saved = (outline.loss() - left) / weight as f64;
                if saved > most {
                    most = saved;
                    best = Some((column, slab));
                }
            }
        }
    }
    best
}
