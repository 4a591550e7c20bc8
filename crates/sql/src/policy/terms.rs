//! [`Terms`]: what choices say, each distinct one once, for most persons choose alike.

use std::fmt;
use std::hash::{BuildHasher, RandomState};

use super::Choice;
use super::intern::Buckets;

/// No day: the column is refused.
pub(super) const NEVER: i32 = i32::MIN;
/// Every day.
pub(super) const FOREVER: i32 = i32::MAX;

/// Distinct terms, numbered in the order they were met.
pub(super) struct Terms {
    n_columns: usize,
    k: Vec<u32>,
    level: Vec<u8>,
    /// Per terms and column the last day on which it may be shown.
    until: Vec<i32>,
    buckets: Buckets,
    hasher: RandomState,
}

impl Terms {
    pub(super) fn new(n_columns: usize) -> Self {
        Terms {
            n_columns,
            k: Vec::new(),
            level: Vec::new(),
            until: Vec::new(),
            buckets: Buckets::default(),
            hasher: RandomState::new(),
        }
    }

    pub(super) fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// The number of these terms.
    pub(super) fn number(&mut self, k: u32, level: u8, until: &[i32]) -> u32 {
        let hash = self.hasher.hash_one((k, level, until));
        let is_it = |number: u32| {
            let known = self.choice(number);
            (known.k, known.level, known.until) == (k, level, until)
        };
        if let Some(number) = self.buckets.find(hash, is_it) {
            return number;
        }
        let number = self.k.len() as u32;
        self.k.push(k);
        self.level.push(level);
        self.until.extend_from_slice(until);
        let mut buckets = std::mem::take(&mut self.buckets);
        buckets.insert(number, |number| {
            let known = self.choice(number);
            self.hasher.hash_one((known.k, known.level, known.until))
        });
        self.buckets = buckets;
        number
    }

    pub(super) fn choice(&self, number: u32) -> Choice<'_> {
        let number = number as usize;
        let until = &self.until[number * self.n_columns..(number + 1) * self.n_columns];
        Choice { k: self.k[number], level: self.level[number], until }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = Choice<'_>> {
        (0..self.k.len() as u32).map(|number| self.choice(number))
    }
}

impl fmt::Debug for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Terms({})", self.k.len())
    }
}
