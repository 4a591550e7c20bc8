//! [`Looks`]: classes numbered by a hash of what their rows show.
//!
//! # Guarantee
//! Numbers are given in the order in which hashes are first asked for, so nothing depends on how hashes are stored.
//! # Deviations
//! two classes with the same hash of 64 bits have the same number

/// What a row shows in a column.
pub(super) type Interval = (u32, u32);

/// A place that holds no number.
const FREE: u32 = u32::MAX;

/// Numbers of hashes.
#[derive(Default)]
pub(super) struct Looks {
    /// A power of two places, at most half of them taken. A hash is at the first place from its last bits on that is free.
    places: Vec<(u64, u32)>,
    n: u32,
}

/// The hash of an interval in a column. The hash of several columns is the sum.
pub(super) fn look_of(column: usize, (lo, hi): Interval) -> u64 {
    let salt = (column as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = ((u64::from(lo) << 32) | u64::from(hi)).wrapping_add(salt);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

impl Looks {
    /// Without any number, and with room for so many.
    pub(super) fn with_room(n: usize) -> Looks {
        Looks { places: vec![(0, FREE); (2 * n).next_power_of_two().max(16)], n: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.n as usize
    }

    /// The number of a hash, if it has one.
    pub(super) fn get(&self, look: u64) -> Option<u32> {
        if self.places.is_empty() {
            return None;
        }
        let (_, number) = self.places[self.place(look)];
        (number != FREE).then_some(number)
    }

    /// The number of a hash; the next one if it has none yet.
    pub(super) fn number(&mut self, look: u64) -> u32 {
        if 2 * (self.len() + 1) > self.places.len() {
            self.grow();
        }
        let place = self.place(look);
        if self.places[place].1 == FREE {
            self.places[place] = (look, self.n);
            self.n += 1;
        }
        self.places[place].1
    }

    /// All hashes with their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u32)> {
        self.places.iter().copied().filter(|&(_, number)| number != FREE)
    }

    fn place(&self, look: u64) -> usize {
        let mask = self.places.len() - 1;
        let mut place = look as usize & mask;
        while self.places[place].1 != FREE && self.places[place].0 != look {
            place = (place + 1) & mask;
        }
        place
    }

    fn grow(&mut self) {
        let mut larger = Looks { n: self.n, ..Looks::with_room(2 * self.len() + 1) };
        for (look, number) in self.iter() {
            let place = larger.place(look);
            larger.places[place] = (look, number);
        }
        *self = larger;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_hash_has_the_number_of_its_first_request(asked in prop::collection::vec(0u64..50, 0..200), room in 0usize..40) {
            let mut looks = if room == 0 { Looks::default() } else { Looks::with_room(room) };
            let mut expected: BTreeMap<u64, u32> = BTreeMap::new();
            for look in asked {
                // Hashes with equal last bits.
                let look = (look << 60) | (look % 3);
                prop_assert_eq!(looks.get(look), expected.get(&look).copied());
                let next = expected.len() as u32;
                prop_assert_eq!(looks.number(look), *expected.entry(look).or_insert(next));
            }
            prop_assert_eq!(looks.len(), expected.len());
            let mut all: Vec<(u64, u32)> = looks.iter().collect();
            all.sort_unstable();
            prop_assert_eq!(all, expected.into_iter().collect::<Vec<_>>());
        }
    }
}
