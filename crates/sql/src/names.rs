//! [`Names`]: numbers distinct texts without allocating a `String` for each.

use std::hash::BuildHasher;

use foldhash::quality::RandomState;
use hashbrown::HashTable;
use kohort_model::Texts;

/// Distinct texts, numbered in the order of their first use.
#[derive(Default)]
pub(crate) struct Names {
    texts: Texts,
    numbers: HashTable<u32>,
    /// Its seed is random, so nobody can craft texts that collide.
    hasher: RandomState,
}

impl Names {
    pub(crate) fn find(&self, text: &str) -> Option<u32> {
        self.numbers.find(self.hasher.hash_one(text), |&number| self.texts.get(number) == text).copied()
    }

    /// The text's number. A new text gets the next number.
    pub(crate) fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.find(text) {
            return number;
        }
        let number = self.texts.push(text);
        self.insert(number);
        number
    }

    /// All texts, by their numbers.
    pub(crate) fn texts(&self) -> &Texts {
        &self.texts
    }

    pub(crate) fn into_texts(self) -> Texts {
        self.texts
    }

    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    /// Adds a new text to the table in which texts are found.
    fn insert(&mut self, number: u32) {
        let hash = |&number: &u32| self.hasher.hash_one(self.texts.get(number));
        self.numbers.insert_unique(hash(&number), number, hash);
    }
}

/// Texts that are distinct already keep their numbers.
impl From<Texts> for Names {
    fn from(texts: Texts) -> Names {
        let n_texts = texts.len();
        let mut names = Names { texts, numbers: HashTable::with_capacity(n_texts), hasher: RandomState::default() };
        (0..n_texts as u32).for_each(|number| names.insert(number));
        names
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
        let again = Names::from(names.into_texts());
        assert_eq!((again.find("name 7000"), again.find("nobody")), (Some(7000), None));
    }
}
