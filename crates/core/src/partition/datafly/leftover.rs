//! What becomes of the rows that can't stand with everything generalized.
//!
//! # Guarantee
//! the class that takes them in satisfies the rules, or `Unreachable`
//! # Cost
//! every class is measured once; how many must join is found by doubling and halving

use kohort_model::spec::Leftovers;
use rayon::prelude::*;

use super::super::{Classes, Task, Unreachable};
use super::candidates::Closed;
use crate::requirement::Tally;

/// The classes with the leftover rows among them, unless these may be left out.
pub(super) fn place(task: &Task<'_>, closed: Closed, leftover: &[u32]) -> Result<Classes, Unreachable> {
    if leftover.is_empty() || may_be_left_out(task, leftover) {
        let (rows, ends) = closed.into_parts();
        return Ok(Classes::new(rows, std::iter::once(0).chain(ends).collect()));
    }
    let nearest = by_growth(task, &closed, leftover);
    let mut tally = Tally::new(task.rules);
    let joined = |n: usize| {
        let mut joined = leftover.to_vec();
        nearest[..n].iter().for_each(|&class| joined.extend_from_slice(closed.get(class)));
        joined
    };
    let mut enough = 1.min(nearest.len());
    while !task.stands(&mut tally, joined(enough).iter().copied()) {
        if enough == nearest.len() {
            return Err(Unreachable);
        }
        enough = (2 * enough).min(nearest.len());
    }
    let mut too_few = enough / 2;
    while enough - too_few > 1 {
        let middle = usize::midpoint(too_few, enough);
        if task.stands(&mut tally, joined(middle).iter().copied()) { enough = middle } else { too_few = middle }
    }
    let mut host = joined(enough);
    host.sort_unstable();
    task.progress.advance(leftover.len() as u64);
    let mut joins = vec![false; closed.len()];
    nearest[..enough].iter().for_each(|&class| joins[class] = true);
    let (mut rows, mut starts) = (Vec::with_capacity(task.rows.len()), vec![0]);
    let others = (0..closed.len()).filter(|&class| !joins[class]).map(|class| closed.get(class));
    for class in others.chain([host.as_slice()]) {
        rows.extend_from_slice(class);
        starts.push(rows.len() as u32);
    }
    Ok(Classes::new(rows, starts))
}

/// Nobody leaves by halves, nor where that would change what the other classes are measured against.
fn may_be_left_out(task: &Task<'_>, leftover: &[u32]) -> bool {
    let weight: u64 = leftover.iter().map(|&row| u64::from(task.rows.weight(row))).sum();
    task.leftovers == Leftovers::Suppress
        && weight <= task.allowance
        && task.rules.person_of_row().is_none()
        && !task.rules.measures_against_release()
}

/// The classes by how much their total loss grows where they take in the leftover rows, the first of equals first.
fn by_growth(task: &Task<'_>, closed: &Closed, leftover: &[u32]) -> Vec<usize> {
    let width = |bounds: &[(u32, u32)]| -> f64 {
        bounds.iter().zip(task.domains).map(|(&(lo, hi), domain)| domain.width(lo, hi)).sum()
    };
    let weight = |rows: &[u32]| rows.iter().map(|&row| f64::from(task.rows.weight(row))).sum::<f64>();
    let (bounds_joining, weight_joining) = (task.rows.bounds(leftover), weight(leftover));
    let growths: Vec<f64> = (0..closed.len())
        .into_par_iter()
        .map(|class| {
            let (bounds, weight) = (task.rows.bounds(closed.get(class)), weight(closed.get(class)));
            let ends = bounds.iter().zip(&bounds_joining);
            let joined: Vec<(u32, u32)> = ends.map(|(one, other)| (one.0.min(other.0), one.1.max(other.1))).collect();
            width(&joined) * (weight + weight_joining) - width(&bounds) * weight
        })
        .collect();
    let mut order: Vec<usize> = (0..closed.len()).collect();
    order.par_sort_unstable_by(|&a, &b| growths[a].total_cmp(&growths[b]).then(a.cmp(&b)));
    order
}
