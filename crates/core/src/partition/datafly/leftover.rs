//! Places the rows that don't satisfy the rules even with everything generalized.
//!
//! # Guarantee
//! the class that takes them in satisfies the rules, or `Unreachable`
//! # Cost
//! every class is measured once; how many must join is found by doubling and halving

use kohort_model::spec::Leftovers;

use super::super::{Task, Unreachable};
use crate::lists::Lists;
use crate::requirement::Tally;

/// The classes with the leftover rows among them, unless these may be left out.
pub(super) fn place(task: &Task<'_>, closed: Lists, leftover: &[u32]) -> Result<Lists, Unreachable> {
    if leftover.is_empty() || may_be_left_out(task, leftover) {
        return Ok(closed);
    }
    let growths = task.growths(closed.iter(), leftover);
    let mut nearest: Vec<usize> = (0..closed.len()).collect();
    nearest.sort_unstable_by(|&a, &b| growths[a].total_cmp(&growths[b]).then(a.cmp(&b)));
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
    let others = (0..closed.len()).filter(|&class| !joins[class]).map(|class| closed.get(class));
    Ok(others.chain([host.as_slice()]).map(|class| class.iter().copied()).collect())
}

/// Nobody is left out if persons have several rows, because a person can't leave with only some of them; nor if leaving
/// would change what the other classes are measured against.
fn may_be_left_out(task: &Task<'_>, leftover: &[u32]) -> bool {
    task.leftovers == Leftovers::Suppress
        && task.rows.weight_of(leftover) <= task.allowance
        && task.rules.person_of_row().is_none()
        && !task.rules.measures_against_release()
}
