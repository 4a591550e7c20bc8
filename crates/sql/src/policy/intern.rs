//! [`Names`]: distinct texts and their numbers, without a `String` each.

use std::fmt;
use std::hash::{BuildHasher, RandomState};

use kohort_model::Texts;

const FREE: u32 = u32::MAX;

/// Numbers found by the hash of what they stand for; that itself is kept elsewhere.
#[derive(Default)]
pub(super) struct Buckets {
    /// A power of two of slots, of which at most three quarters are taken.
    slots: Vec<u32>,
    n_taken: usize,
}

impl Buckets {
    pub(super) fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let mut slot = self.first_slot(hash)?;
        loop {
            match self.slots[slot] {
                FREE => return None,
                number if is_it(number) => return Some(number),
                _ => slot = (slot + 1) % self.slots.len(),
            }
        }
    }

    /// Adds a number that is not there.
    pub(super) fn insert(&mut self, number: u32, hash_of: impl Fn(u32) -> u64) {
        if (self.n_taken + 1) * 4 > self.slots.len() * 3 {
            let larger = vec![FREE; (self.slots.len() * 2).max(16)];
            let numbers = std::mem::replace(&mut self.slots, larger);
            for number in numbers.into_iter().filter(|&number| number != FREE) {
                self.place(number, hash_of(number));
            }
        }
        self.place(number, hash_of(number));
        self.n_taken += 1;
    }

    fn place(&mut self, number: u32, hash: u64) {
        let mut slot = self.first_slot(hash).expect("slots were made before");
        while self.slots[slot] != FREE {
            slot = (slot + 1) % self.slots.len();
        }
        self.slots[slot] = number;
    }

    fn first_slot(&self, hash: u64) -> Option<usize> {
        (!self.slots.is_empty()).then(|| hash as usize & (self.slots.len() - 1))
    }
}

/// Distinct texts, numbered in the order they were met.
#[derive(Default)]
pub(super) struct Names {
    texts: Texts,
    buckets: Buckets,
    hasher: RandomState,
}

impl Names {
    pub(super) fn find(&self, text: &str) -> Option<u32> {
        self.buckets.find(self.hasher.hash_one(text), |number| self.texts.get(number) == text)
    }

    /// The text's number, a new one where it has none.
    pub(super) fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.find(text) {
            return number;
        }
        let number = self.texts.push(text);
        let (texts, hasher) = (&self.texts, &self.hasher);
        self.buckets.insert(number, |number| hasher.hash_one(texts.get(number)));
        number
    }

    pub(super) fn get(&self, number: u32) -> &str {
        self.texts.get(number)
    }

    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Names({})", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_again_however_many_there_are() {
        let mut names = Names::default();
        for number in 0..10_000_u32 {
            assert_eq!(names.number(&format!("name {number}")), number);
        }
        for number in 0..10_000_u32 {
            assert_eq!(names.number(&format!("name {number}")), number);
        }
        assert_eq!(names.find("nobody"), None);
        assert_eq!(names.len(), 10_000);
    }
}
