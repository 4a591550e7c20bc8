//! Dictionaries under construction: ids by value, in the order of first appearance.
//!
//! Hash tables hold ids and half of each hash, so that they grow without looking at the values again. The seed of the hasher
//! is random, so that nobody can craft a file that is slow to read. Results never depend on it.

use std::hash::{BuildHasher, Hash, Hasher};

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use kohort_model::Texts;

/// Distinct texts and their ids.
#[derive(Default)]
pub(crate) struct TextDictionary {
    texts: Texts,
    slots: HashTable<Slot>,
    hasher: RandomState,
}

impl TextDictionary {
    /// The id of a text, which is new if the text was not met before.
    pub(crate) fn id(&mut self, text: &str) -> u32 {
        let mut state = self.hasher.build_hasher();
        state.write(text.as_bytes());
        let hash = state.finish() as u32;
        let texts = &mut self.texts;
        let is_same = |slot: &Slot| slot.hash == hash && texts.get(slot.id) == text;
        match self.slots.entry(spread(hash), is_same, |slot| spread(slot.hash)) {
            Entry::Occupied(entry) => entry.get().id,
            Entry::Vacant(entry) => {
                let id = texts.push(text);
                entry.insert(Slot { hash, id });
                id
            }
        }
    }

    /// The texts in the order of their ids.
    pub(crate) fn texts(&self) -> &Texts {
        &self.texts
    }

    /// The text of an id.
    pub(crate) fn get(&self, id: u32) -> &str {
        self.texts.get(id)
    }

    /// The texts in the order of their ids.
    pub(crate) fn into_texts(self) -> Texts {
        self.texts
    }
}

/// Distinct plain values and their ids.
#[derive(Default)]
pub(crate) struct ValueDictionary<T> {
    values: Vec<T>,
    slots: HashTable<Slot>,
    hasher: RandomState,
}

impl<T: Copy + Eq + Hash> ValueDictionary<T> {
    /// The id of a value, which is new if the value was not met before.
    pub(crate) fn id(&mut self, value: T) -> u32 {
        let hash = self.hasher.hash_one(value) as u32;
        let values = &mut self.values;
        let is_same = |slot: &Slot| slot.hash == hash && values[slot.id as usize] == value;
        match self.slots.entry(spread(hash), is_same, |slot| spread(slot.hash)) {
            Entry::Occupied(entry) => entry.get().id,
            Entry::Vacant(entry) => {
                let id = u32::try_from(values.len()).expect("rows are fewer than ids");
                values.push(value);
                entry.insert(Slot { hash, id });
                id
            }
        }
    }

    /// The values in the order of their ids.
    pub(crate) fn values(&self) -> &[T] {
        &self.values
    }

    /// The values in the order of their ids.
    pub(crate) fn into_values(self) -> Vec<T> {
        self.values
    }
}

/// An id, and half the hash of its text or value.
struct Slot {
    hash: u32,
    id: u32,
}

/// Makes a whole hash of half a one, because the table looks at the highest bits as well as at the lowest.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_given_in_the_order_of_first_appearance() {
        let mut dictionary = TextDictionary::default();
        let ids: Vec<u32> = ["b", "", "a", "b", ""].into_iter().map(|text| dictionary.id(text)).collect();
        assert_eq!(ids, [0, 1, 2, 0, 1]);
        assert_eq!(dictionary.into_texts().iter().collect::<Vec<_>>(), ["b", "", "a"]);
        let mut dictionary = ValueDictionary::default();
        let ids: Vec<u32> = (0..1000u64).map(|value| dictionary.id(value * 7 % 101)).collect();
        assert_eq!(ids[..101], (0..101).collect::<Vec<u32>>());
        assert_eq!(ids[101], 0);
        assert_eq!(dictionary.into_values().len(), 101);
    }
}
