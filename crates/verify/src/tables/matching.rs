//! [`Matching`]: assigns private persons to released ones, and compares only the pairs that it needs.
//!
//! # Guarantee   as many released persons as possible get a private person of their own
//! # Paper       augmenting paths (Berge 1957); a pair is compared when a path first needs it
//! # Cost
//! Released looks with few candidates choose first and take the first that fit, so only few of the pairs that would fit
//! are compared. A look that gets too few searches for an augmenting path. Looks that a search reached in vain can't
//! help another search either, so they are not visited again.

use super::index::Candidates;

/// Stands for no look.
const NONE: u32 = u32::MAX;

/// The released and private looks of one person table.
pub(crate) struct Matching {
    candidates: Vec<Candidates>,
    /// How many persons of each released look still need an origin.
    needs: Vec<u32>,
    /// How many persons of each private look are still free.
    supplies: Vec<u32>,
    /// For each private look, the released looks that took persons of it, each with how many.
    holders: Vec<Vec<(u32, u32)>>,
    /// The private looks that a search has reached, as bits.
    reached: Vec<u64>,
    /// For each private look, the released look from which it was reached.
    reached_from: Vec<u32>,
    /// For each released look, the private look that it holds and through which it was reached.
    freed_by: Vec<u32>,
    is_searched: Vec<bool>,
}

impl Matching {
    pub(crate) fn new(candidates: Vec<Candidates>, needs: Vec<u32>, supplies: Vec<u32>) -> Self {
        Matching {
            holders: vec![Vec::new(); supplies.len()],
            reached: vec![0; supplies.len().div_ceil(64)],
            reached_from: vec![NONE; supplies.len()],
            freed_by: vec![NONE; needs.len()],
            is_searched: vec![false; needs.len()],
            candidates,
            needs,
            supplies,
        }
    }

    /// How many persons of each released look get no origin; `None` if more than `most` pairs would have to be
    /// compared.
    pub(crate) fn lacking(mut self, mut fits: impl FnMut(u32, u32) -> bool, most: u64) -> Option<Vec<u32>> {
        let mut n_compared = 0u64;
        let mut order: Vec<(usize, u32)> = (0..).zip(&self.candidates).map(|(look, own)| (own.len(), look)).collect();
        order.sort_unstable();
        // Private looks of which nobody is free, as bits.
        let mut is_taken: Vec<u64> = vec![0; self.reached.len()];
        for (other, _) in self.supplies.iter().enumerate().filter(|(_, supply)| **supply == 0) {
            is_taken[other / 64] |= 1 << (other % 64);
        }
        for &(_, look) in &order {
            let mut newly_taken = Vec::new();
            for other in self.candidates[look as usize].without(&is_taken) {
                let need = &mut self.needs[look as usize];
                let supply = &mut self.supplies[other as usize];
                if *need == 0 {
                    break;
                }
                n_compared += 1;
                if !fits(look, other) {
                    continue;
                }
                let amount = (*need).min(*supply);
                *need -= amount;
                *supply -= amount;
                if *supply == 0 {
                    newly_taken.push(other);
                }
                self.holders[other as usize].push((look, amount));
            }
            newly_taken.iter().for_each(|&other| is_taken[other as usize / 64] |= 1 << (other % 64));
            if n_compared > most {
                return None;
            }
        }
        for (_, look) in order {
            while self.needs[look as usize] > 0 {
                match self.search(look, &mut fits, &mut n_compared, most) {
                    SearchEnd::Found(end) => self.shift(look, end),
                    SearchEnd::InVain => break,
                    SearchEnd::TooLong => return None,
                }
            }
        }
        Some(self.needs)
    }

    /// Searches for a path to a free private person, along persons whom other looks could give back.
    fn search(&mut self, start: u32, fits: &mut impl FnMut(u32, u32) -> bool, n: &mut u64, most: u64) -> SearchEnd {
        let mut queue = vec![start];
        let mut touched: Vec<u32> = Vec::new();
        self.is_searched[start as usize] = true;
        let mut next = 0;
        while let Some(&look) = queue.get(next) {
            next += 1;
            let unreached: Vec<u32> = self.candidates[look as usize].without(&self.reached).collect();
            for other in unreached {
                *n += 1;
                if *n > most {
                    return SearchEnd::TooLong;
                }
                if !fits(look, other) {
                    continue;
                }
                self.reached[other as usize / 64] |= 1 << (other % 64);
                self.reached_from[other as usize] = look;
                touched.push(other);
                if self.supplies[other as usize] > 0 {
                    // A search that succeeds changes who holds whom, so the next one may visit these again.
                    touched.iter().for_each(|&other| self.reached[other as usize / 64] &= !(1 << (other % 64)));
                    queue.iter().for_each(|&look| self.is_searched[look as usize] = false);
                    return SearchEnd::Found(other);
                }
                for &(holder, amount) in &self.holders[other as usize] {
                    if amount > 0 && !self.is_searched[holder as usize] {
                        self.is_searched[holder as usize] = true;
                        self.freed_by[holder as usize] = other;
                        queue.push(holder);
                    }
                }
            }
        }
        SearchEnd::InVain
    }

    /// Passes one person on along the path of a search, from its end back to its start.
    fn shift(&mut self, start: u32, end: u32) {
        self.supplies[end as usize] -= 1;
        self.needs[start as usize] -= 1;
        let mut other = end;
        loop {
            let look = self.reached_from[other as usize];
            match self.holders[other as usize].iter_mut().find(|(holder, _)| *holder == look) {
                Some((_, amount)) => *amount += 1,
                None => self.holders[other as usize].push((look, 1)),
            }
            if look == start {
                return;
            }
            other = self.freed_by[look as usize];
            if let Some((_, amount)) = self.holders[other as usize].iter_mut().find(|(holder, _)| *holder == look) {
                *amount -= 1;
            }
        }
    }
}

/// How a search ends.
enum SearchEnd {
    /// At a private look with a free person.
    Found(u32),
    InVain,
    TooLong,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_more_is_lacking_than_hall_s_theorem_demands(
            fits in proptest::collection::vec(proptest::collection::btree_set(0u32..7, 0..6), 7),
            more in proptest::collection::vec(proptest::collection::btree_set(0u32..7, 0..3), 7),
            needs in proptest::collection::vec(0u32..6, 7),
            supplies in proptest::collection::vec(0u32..6, 7),
        ) {
            // The candidates include some that do not fit.
            let candidates = fits.iter().zip(&more).enumerate().map(|(look, (fits, more))| {
                let list: Vec<u32> = fits.union(more).copied().collect();
                let bits = list.iter().fold(0u64, |bits, other| bits | 1 << other);
                if look % 2 == 0 { Candidates::List(list) } else { Candidates::Bits(vec![bits]) }
            });
            let matching = Matching::new(candidates.collect(), needs.clone(), supplies.clone());
            let lacking = matching.lacking(|look, other| fits[look as usize].contains(&other), u64::MAX).unwrap();
            let excess = (0u32..1 << 7).map(|subset| {
                let chosen = || (0..7usize).filter(move |look| subset >> look & 1 == 1);
                let need: u32 = chosen().map(|look| needs[look]).sum();
                let reached = |other: u32| chosen().any(|look| fits[look].contains(&other));
                let supply: u32 = (0..7).filter(|&other| reached(other)).map(|other| supplies[other as usize]).sum();
                need.saturating_sub(supply)
            });
            prop_assert_eq!(lacking.iter().sum::<u32>(), excess.max().unwrap());
        }
    }
}
