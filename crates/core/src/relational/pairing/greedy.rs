//! Greedy pairing: each sibling of the smaller side in turn takes the cheapest partner that is left.
//!
//! # Paper
//! algorithms 4 and 5 of `[NCN08]`
//! # Deviations
//! siblings come in canonical order and the first of equally cheap partners is taken, so that the order of rows does not
//! show; of two sides of equal size, the first goes through its siblings

use super::{Match, Side};

pub(super) fn find(a: &Side, b: &Side, costs: &[f64], left: &mut Vec<u32>, matches: &mut Vec<Match>) {
    let n_b = b.firsts.len();
    if a.n_nodes <= b.n_nodes {
        take_turns(a, b, |i, j| costs[i * n_b + j], left, |i, j, count| matches.push(Match { a: i, b: j, count }));
    } else {
        take_turns(b, a, |j, i| costs[i * n_b + j], left, |j, i, count| matches.push(Match { a: i, b: j, count }));
    }
}

fn take_turns(
    smaller: &Side,
    larger: &Side,
    cost: impl Fn(usize, usize) -> f64,
    left: &mut Vec<u32>,
    mut matched: impl FnMut(u32, u32, u32),
) {
    left.clone_from(&larger.counts);
    for (i, &count) in smaller.counts.iter().enumerate() {
        let mut waiting = count;
        while waiting > 0 {
            let mut cheapest: Option<(f64, usize)> = None;
            for (j, _) in left.iter().enumerate().filter(|&(_, &left)| left > 0) {
                let cost = cost(i, j);
                if cheapest.is_none_or(|(least, _)| cost < least) {
                    cheapest = Some((cost, j));
                }
            }
            let Some((_, j)) = cheapest else { return };
            let count = waiting.min(left[j]);
            waiting -= count;
            left[j] -= count;
            matched(i as u32, j as u32, count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(counts: &[u32]) -> Side {
        let firsts = counts.iter().scan(0, |next, &count| Some(std::mem::replace(next, *next + count)));
        Side {
            firsts: firsts.collect(),
            counts: counts.to_vec(),
            leave: vec![1.0; counts.len()],
            n_nodes: counts.iter().sum(),
        }
    }

    #[test]
    fn each_of_the_smaller_side_takes_the_cheapest_that_is_left() {
        let (a, b) = (side(&[1, 2]), side(&[1, 1, 1, 1]));
        let costs = [0.1, 0.0, 0.5, 0.5, 0.3, 0.0, 0.2, 0.2];
        let mut matches = Vec::new();
        find(&a, &b, &costs, &mut Vec::new(), &mut matches);
        let found: Vec<(u32, u32, u32)> = matches.iter().map(|found| (found.a, found.b, found.count)).collect();
        assert_eq!(found, [(0, 1, 1), (1, 2, 1), (1, 3, 1)]);
    }

    #[test]
    fn the_larger_side_waits_whichever_comes_first() {
        let (a, b) = (side(&[1, 1, 1]), side(&[2]));
        let mut matches = Vec::new();
        find(&a, &b, &[0.3, 0.1, 0.2], &mut Vec::new(), &mut matches);
        let found: Vec<(u32, u32, u32)> = matches.iter().map(|found| (found.a, found.b, found.count)).collect();
        assert_eq!(found, [(1, 0, 1), (2, 0, 1)]);
    }
}
