//! A small seeded generator, so that the example's data never change by themselves.

/// Splitmix64: a counter whose steps are scrambled.
pub(super) struct Random {
    state: u64,
}

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Random { state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `bound - 1`. The bias of the multiplication does not matter for an example.
    pub(super) fn below(&mut self, bound: u32) -> u32 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u32
    }

    /// One of these items.
    pub(super) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u32) as usize]
    }

    /// One of these items, each with a probability in proportion to its weight. At least one weight must not be 0.
    pub(super) fn weighted<'a, T>(&mut self, items: &'a [T], weight: impl Fn(&T) -> u32) -> &'a T {
        let total = items.iter().map(&weight).sum();
        let mut left = self.below(total);
        for item in items {
            match left.checked_sub(weight(item)) {
                Some(rest) => left = rest,
                None => return item,
            }
        }
        unreachable!("the draw is below the sum of all weights")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_stay_below_their_bound_and_reach_it() {
        let mut random = Random::new(1);
        let draws: std::collections::BTreeSet<u32> = (0..200).map(|_| random.below(7)).collect();
        assert!(draws.into_iter().eq(0..7));
    }

    #[test]
    fn an_item_of_weight_0_is_never_drawn() {
        let mut random = Random::new(1);
        assert!((0..200).all(|_| *random.weighted(&[0, 1, 3], |&weight| weight) > 0));
    }
}
