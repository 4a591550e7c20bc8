//! [`Random`]: a small generator with a seed. It is our own, so that generated data never change with a library.

/// Splitmix64: a counter whose steps are scrambled.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator that gives the same numbers for the same seed.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `bound - 1`. The bias of the multiplication does not matter for tests.
    ///
    /// # Panics
    /// If the bound is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "there is no number below 0");
        ((u128::from(self.number()) * bound as u128) >> 64) as usize
    }

    /// `true` about once in this many calls.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of these items.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// At most `n` of these items, each at most once, in a random order.
    pub fn choose<T: Clone>(&mut self, items: &[T], n: usize) -> Vec<T> {
        let mut left = items.to_vec();
        (0..n.min(items.len())).map(|_| left.swap_remove(self.below(left.len()))).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_generator_gives_the_published_numbers() {
        let mut random = Random::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| random.number()).collect();
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn draws_stay_below_their_bound_and_reach_it() {
        let mut random = Random::new(1);
        let draws: BTreeSet<usize> = (0..200).map(|_| random.below(7)).collect();
        assert!(draws.into_iter().eq(0..7));
    }

    #[test]
    fn nothing_is_chosen_twice() {
        let mut random = Random::new(1);
        for n in 0..5 {
            let chosen = random.choose(&[1, 2, 3], n);
            assert_eq!(chosen.len(), n.min(3));
            assert_eq!(chosen.iter().collect::<BTreeSet<_>>().len(), chosen.len());
        }
    }
}
