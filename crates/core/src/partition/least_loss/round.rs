//! From prices to classes: boxes are opened one after the other, the one whose rows pay most above its cost first.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::candidates::Candidates;
use super::pick::Picker;
use crate::partition::Task;

/// A box that waits to be opened.
#[derive(PartialEq)]
struct Waiting {
    score: f64,
    candidate: u32,
}

impl Eq for Waiting {}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then(other.candidate.cmp(&self.candidate))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Classes of the rows that pay most, and the rows that no box took.
///
/// A box's score is what its rows pay above its cost, divided by their number and by the cost. `base` is added to the
/// cost, so that boxes that cost almost nothing are not opened before all others.
pub(super) fn open(task: &Task<'_>, candidates: &Candidates, prices: &[f64], base: f64) -> (Vec<Vec<u32>>, Vec<u32>) {
    let mut picker = Picker::new(task);
    let mut is_placed = vec![false; task.rows.len()];
    let mut pick = |candidate: u32, is_placed: &[bool]| {
        let (rows, cost) = (candidates.best_rows(candidate as usize), candidates.costs[candidate as usize]);
        let rows = rows.iter().copied().filter(|&row| !is_placed[row as usize]);
        let value = picker.pick(rows, prices, cost, f64::NEG_INFINITY)?;
        Some((value / (picker.weight as f64 * (cost + base)), picker.picked.clone()))
    };
    let mut waiting = BinaryHeap::new();
    for candidate in 0..candidates.len() as u32 {
        waiting.extend(pick(candidate, &is_placed).map(|(score, _)| Waiting { score, candidate }));
    }
    let mut classes = Vec::new();
    while let Some(Waiting { score, candidate }) = waiting.pop() {
        let Some((now, rows)) = pick(candidate, &is_placed) else { continue };
        if now < score {
            // Rows were taken from it since. It waits for its turn.
            waiting.push(Waiting { score: now, candidate });
            continue;
        }
        rows.iter().for_each(|&row| is_placed[row as usize] = true);
        classes.push(rows);
    }
    (classes, (0..task.rows.len() as u32).filter(|&row| !is_placed[row as usize]).collect())
}
