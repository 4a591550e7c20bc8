//! [`Version::pieces`]: a view leaves in pieces of whole classes, so that memory holds one of them.
//!
//! A version that keeps its rows knows which rows each class has. So any classes can be built and verified together, no row
//! waits for others, and a reader who wants only the first rows gets them at once.
//!
//! # Guarantee
//! Classes come in the order of what they show the reader, and classes that show the same are in one piece. So the place of
//! a row tells nothing but its labels. Where a refusal hides a cell of single rows, the class of a row would tell what is
//! hidden, and everything leaves together.
//! # Paper
//! `[EPS+12]` section 5.1: a block leaves when it is complete
//! # Deviations
//! The paper's blocks are ranges of identifiers, so their order tells where in the list of persons a row stands.
//! # Cost
//! One sort of the classes. A piece has about [`MOST_ROWS`] rows, or those of one class.

use kohort_model::{Disclosure, NULL, Role, Texts};

use super::assemble::Chosen;
use crate::view::{Reader, Version};

/// About how many rows are shown together.
const MOST_ROWS: u64 = 1 << 16;

impl Version {
    /// The chosen classes, in pieces.
    pub(in crate::view) fn pieces(&self, reader: Reader, chosen: &Chosen) -> Vec<Chosen> {
        let directory = self.directory(reader.pair);
        let classes: Vec<u32> = match chosen {
            Chosen::All => (0..directory.n_classes() as u32).collect(),
            Chosen::Classes(classes) => classes.clone(),
        };
        let n_rows = |class: u32| u64::from(directory.class(class).n_rows);
        let all_rows: u64 = classes.iter().map(|&class| n_rows(class)).sum();
        if all_rows <= MOST_ROWS {
            return vec![chosen.clone()];
        }
        let Some(mut shown) = self.shown_by_classes(reader, classes) else { return vec![chosen.clone()] };
        shown.sort_unstable();
        let sizes: Vec<u64> = shown.iter().map(|(_, class)| n_rows(*class)).collect();
        let piece = |range: std::ops::Range<usize>| {
            let mut classes: Vec<u32> = shown[range].iter().map(|(_, class)| *class).collect();
            classes.sort_unstable();
            Chosen::Classes(classes)
        };
        cut(&sizes, |place| shown[place - 1].0 == shown[place].0, MOST_ROWS).into_iter().map(piece).collect()
    }

    /// What classes show in the quasi columns, as ranks of labels; `None` if that is not the same for all of their rows.
    fn shown_by_classes(&self, reader: Reader, classes: Vec<u32>) -> Option<Vec<(Vec<u32>, u32)>> {
        let (directory, refusals) = (self.directory(reader.pair), self.refusals(reader));
        let labels = directory.labels();
        let quasi = self.definition.with_role(Role::Quasi);
        let of_quasi = quasi.iter().fold(0u64, |all, position| all | 1 << position);
        let by_row = self.definition.clauses.disclosure == Disclosure::Row;
        let hides_single_rows =
            |&class: &u32| refusals[class as usize] & of_quasi != 0 && (by_row || directory.class(class).is_alone);
        if classes.iter().any(hides_single_rows) {
            return None;
        }
        let columns = labels.quasi().iter().enumerate().map(|(quasi, &position)| {
            let (ranks, of_everything) = ranks(labels.labels(quasi), self.everything(position));
            (position, labels.ids(quasi), ranks, of_everything)
        });
        let columns: Vec<_> = columns.collect();
        let shown = |class: u32| {
            let rank = |(position, ids, ranks, of_everything): &(usize, &[u32], Vec<u32>, u32)| match (
                refusals[class as usize] >> position & 1,
                ids[class as usize],
            ) {
                (1, _) => *of_everything,
                (_, NULL) => 0,
                (_, id) => ranks[id as usize],
            };
            (columns.iter().map(rank).collect::<Vec<u32>>(), class)
        };
        Some(classes.into_iter().map(shown).collect())
    }
}

/// For each label, its rank among all, from 1; and the rank of the label of everything.
fn ranks(labels: &Texts, everything: &str) -> (Vec<u32>, u32) {
    let mut order: Vec<&str> = labels.iter().chain([everything]).collect();
    order.sort_unstable();
    order.dedup();
    let rank = |label: &str| order.partition_point(|other| *other < label) as u32 + 1;
    (labels.iter().map(rank).collect(), rank(everything))
}

/// Cuts things of these sizes into ranges of at most this size together, but never before a thing that belongs to the one
/// before it. A thing that is larger has a range of its own.
fn cut(sizes: &[u64], belongs: impl Fn(usize) -> bool, most: u64) -> Vec<std::ops::Range<usize>> {
    let mut ranges = Vec::new();
    let (mut start, mut size) = (0, 0);
    let mut place = 0;
    while place < sizes.len() {
        let end = (place + 1..sizes.len()).find(|&next| !belongs(next)).unwrap_or(sizes.len());
        let of_group: u64 = sizes[place..end].iter().sum();
        if size > 0 && size + of_group > most {
            ranges.push(start..place);
            (start, size) = (place, 0);
        }
        size += of_group;
        place = end;
    }
    if start < sizes.len() {
        ranges.push(start..sizes.len());
    }
    ranges
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_are_all_classes_and_part_none_that_show_the_same(
            classes in vec((1u64..20, prop::bool::weighted(0.3)), 0..60), most in 1u64..50,
        ) {
            let sizes: Vec<u64> = classes.iter().map(|(size, _)| *size).collect();
            let belongs = |place: usize| classes[place].1;
            let ranges = cut(&sizes, belongs, most);
            prop_assert_eq!(ranges.iter().cloned().flatten().collect::<Vec<_>>(), (0..sizes.len()).collect::<Vec<_>>());
            for range in &ranges {
                prop_assert!(range.start == 0 || !belongs(range.start));
                let is_one_group = (range.start + 1..range.end).all(belongs);
                prop_assert!(is_one_group || sizes[range.clone()].iter().sum::<u64>() <= most);
            }
        }
    }

    #[test]
    fn ranks_follow_the_texts_of_labels() {
        let mut labels = Texts::new();
        for label in ["b", "*", "a"] {
            labels.push(label);
        }
        assert_eq!(ranks(&labels, "*"), (vec![3, 1, 2], 1));
        assert_eq!(ranks(&labels, "zz"), (vec![3, 1, 2], 4));
    }
}
