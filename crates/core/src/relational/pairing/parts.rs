//! Divides two large sets of siblings into parts, so that only siblings of one part are compared.
//!
//! Both sides are cut at the same place of the column in which they spread most, so that siblings near each other stay
//! together, and their parts are cut again. In each part the smaller side keeps having fewer siblings than the other, so
//! that nobody is left out who would not be left out anyway.
//!
//! # Guarantee
//! every sibling is in one part; in every part the side that is smaller on the whole has at most as many siblings as the other
//! # Deviations
//! not in `[NCN08]`, which compares all pairs. A pair of siblings in different parts is never found, even if it costs least
//! # Cost
//! siblings times the logarithm of their number, and the memory of one part's pairs

use super::super::cost::Spread;

/// Parts with at most this many pairs are not cut further.
const MOST_PAIRS: usize = 1 << 8;

/// Runs of siblings, and how many of each.
pub(crate) type Runs = Vec<(u32, u32)>;

/// The parts of two sides, of which the first has at most as many siblings as the second.
pub(super) fn parts(smaller: Runs, larger: Runs, spread: &Spread<'_>) -> Vec<(Runs, Runs)> {
    let mut parts = Vec::new();
    let mut waiting = vec![(smaller, larger)];
    while let Some((smaller, larger)) = waiting.pop() {
        // A single run is compared with everything it could be paired with.
        if smaller.len() * larger.len() <= MOST_PAIRS || smaller.len() == 1 {
            parts.push((smaller, larger));
            continue;
        }
        let (left, right) = halve(smaller, larger, spread);
        waiting.push(right);
        waiting.push(left);
    }
    parts
}

fn halve(mut smaller: Runs, mut larger: Runs, spread: &Spread<'_>) -> ((Runs, Runs), (Runs, Runs)) {
    let column = spread.widest(&smaller, &larger);
    smaller.sort_by_key(|&(run, _)| (spread.of_smaller(column, run), run));
    larger.sort_by_key(|&(run, _)| (spread.of_larger(column, run), run));
    let cut = middle(&smaller);
    let rest = smaller.split_off(cut);
    let (n_left, n_right) = (n_siblings(&smaller), n_siblings(&rest));
    // Siblings of the larger side go where they are near, unless the smaller side needs them elsewhere.
    let border = (spread.of_smaller(column, smaller[cut - 1].0) + spread.of_smaller(column, rest[0].0)).div_ceil(2);
    let near = larger.iter().filter(|&&(run, _)| spread.of_larger(column, run) < border);
    let near: u64 = near.map(|&(_, count)| u64::from(count)).sum();
    let taken = near.clamp(n_left, n_siblings(&larger) - n_right);
    let far = split_off(&mut larger, taken);
    ((smaller, larger), (rest, far))
}

/// Where to cut runs, so that both sides have a run and about half of the siblings.
fn middle(runs: &Runs) -> usize {
    let half = n_siblings(runs).div_ceil(2);
    let mut before = 0;
    let is_within = |&(_, count): &(u32, u32)| {
        before += u64::from(count);
        before <= half
    };
    runs.iter().copied().take_while(is_within).count().clamp(1, runs.len() - 1)
}

/// Leaves the first `n` siblings, and returns all others. A run may be cut in two.
fn split_off(runs: &mut Runs, n: u64) -> Runs {
    let mut before = 0;
    for position in 0..runs.len() {
        let (run, count) = runs[position];
        if before + u64::from(count) > n {
            let mut rest = runs.split_off(position);
            let kept = (n - before) as u32;
            if kept > 0 {
                runs.push((run, kept));
                rest[0].1 -= kept;
            }
            return rest;
        }
        before += u64::from(count);
    }
    Vec::new()
}

fn n_siblings(runs: &Runs) -> u64 {
    runs.iter().map(|&(_, count)| u64::from(count)).sum()
}
