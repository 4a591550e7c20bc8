//! [`ClassTable`]: the classes of a materialized view in memory, so that a query finds those that could match.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use kohort_labels::rewrite::Meanings;

use super::cells::KeptCells;
use super::memory::Counters;
use crate::view::Definition;
use crate::view::class_labels::ClassLabels;
use crate::view::read::choose::LabelComparison;

/// The number of a class, whether its rows are shown by themselves, and its labels.
pub(super) type Labelled = (i64, bool, Vec<Option<String>>);

/// The classes of a view, as of a state of the store. A class is addressed by its place, the order in which it came.
#[derive(Default)]
pub(in crate::view) struct ClassTable {
    /// The state it is of.
    pub(super) counters: Counters,
    labels: ClassLabels,
    entries: Vec<Entry>,
    /// The places of classes in which somebody may refuse something.
    restricted: Vec<u32>,
    /// Places by the numbers that classes have in the store.
    places: HashMap<i64, u32>,
    /// The rows of the classes that did not change since they were read.
    pub(super) kept: Option<Arc<KeptCells>>,
}

struct Entry {
    /// The class's number in the store.
    number: i64,
    /// Whether its rows are shown by themselves.
    is_alone: bool,
    /// Whether somebody in it may refuse something.
    is_restricted: bool,
    /// Whether a row joined or left since rows were kept in memory.
    is_changed: bool,
    /// How many rows it shows; `None` if only the store knows.
    n_shown: Option<u64>,
}

/// Classes that are to be read.
pub(super) struct Wanted {
    pub(super) classes: Vec<Labelled>,
    /// The numbers of the classes whose rows are in memory.
    pub(super) in_memory: Vec<i64>,
    /// The numbers of the others.
    pub(super) stored: Vec<i64>,
    pub(super) kept: Option<Arc<KeptCells>>,
}

impl ClassTable {
    pub(super) fn new(quasi: Vec<usize>) -> ClassTable {
        ClassTable { labels: ClassLabels::new(quasi), ..ClassTable::default() }
    }

    /// Adds a class that shows this many rows. Labels of a class never change.
    pub(super) fn put(&mut self, number: i64, is_alone: bool, labels: &[Option<String>], n_shown: u64) {
        let place = self.entries.len() as u32;
        if *self.places.entry(number).or_insert(place) == place {
            let (is_restricted, is_changed, n_shown) = (false, false, Some(n_shown));
            self.entries.push(Entry { number, is_alone, is_restricted, is_changed, n_shown });
            self.labels.push(labels);
        }
    }

    /// Notes that somebody in a class may refuse something.
    pub(super) fn restrict(&mut self, number: i64) {
        let Some(&place) = self.places.get(&number) else { return };
        if !std::mem::replace(&mut self.entries[place as usize].is_restricted, true) {
            self.restricted.push(place);
        }
    }

    /// Notes that a row joined or left a class, which now has this many members. Rows that are shown by themselves are not
    /// counted as members.
    pub(super) fn change(&mut self, number: i64, n_members: u64) {
        let Some(&place) = self.places.get(&number) else { return };
        let entry = &mut self.entries[place as usize];
        entry.is_changed = true;
        entry.n_shown = (!entry.is_alone).then_some(n_members);
    }

    /// Whether the class at a place may show somebody. Readers must not learn of a class at which somebody only waits,
    /// because its labels are that person's own.
    fn may_show(&self, place: u32) -> bool {
        self.entries[place as usize].n_shown != Some(0)
    }

    /// How many classes may show somebody.
    pub(super) fn n_classes(&self) -> usize {
        (0..self.entries.len() as u32).filter(|&place| self.may_show(place)).count()
    }

    /// The labels that every reader finds in a quasi column, and the places of the classes whose rows must be read to
    /// tell: somebody in them may refuse something, or nobody may be there any more.
    pub(super) fn shown_labels(&self, position: usize) -> (BTreeSet<String>, Vec<u32>) {
        let quasi = self.labels.quasi().iter().position(|&quasi| quasi == position).expect("it is a quasi column");
        let mut is_shown = vec![false; self.labels.labels(quasi).len()];
        let mut unsure = Vec::new();
        for ((place, entry), &id) in (0..).zip(&self.entries).zip(self.labels.ids(quasi)) {
            match entry.n_shown {
                Some(0) => {}
                Some(_) if !entry.is_restricted => {
                    is_shown.get_mut(id as usize).into_iter().for_each(|is_shown| *is_shown = true);
                }
                Some(_) | None => unsure.push(place),
            }
        }
        let shown = self.labels.labels(quasi).iter().zip(is_shown).filter(|(_, is_shown)| *is_shown);
        (shown.map(|(label, _)| label.to_owned()).collect(), unsure)
    }

    /// The places of the classes that could satisfy comparisons.
    pub(super) fn choose(&self, definition: &Definition, comparisons: &[LabelComparison]) -> Option<Vec<u32>> {
        let refused = self.restricted.iter().copied();
        let mut places = self.labels.choose(definition, comparisons, refused, |_, _| true).ok()?;
        places.retain(|&place| self.may_show(place));
        Some(places)
    }

    /// What is needed to read the classes at these places.
    pub(super) fn wanted(&self, places: &[u32]) -> Wanted {
        let (mut in_memory, mut stored) = (Vec::new(), Vec::new());
        let mut classes = Vec::with_capacity(places.len());
        for &place in places {
            let &Entry { number, is_alone, is_changed, .. } = &self.entries[place as usize];
            let labels = self.labels.of(place).into_iter().map(|label| label.map(str::to_owned)).collect();
            classes.push((number, is_alone, labels));
            if is_changed || self.kept.is_none() { stored.push(number) } else { in_memory.push(number) }
        }
        Wanted { classes, in_memory, stored, kept: self.kept.clone() }
    }

    /// Lets labels be found by values, if many came since this was last done.
    pub(super) fn settle(&mut self, meanings: &Meanings) {
        self.labels.settle(meanings);
    }
}
