//! Views over data that changes, attacked by somebody who kept every snapshot.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use kohort_core::changing::{ClassId, ClassIndex, Closing, Departures, GrowingTree};
use kohort_testkit::attacks::snapshots::{Block, Happened, Row, Rule, View, breached, candidates, diverse, trees};
use kohort_testkit::generate::config;
use kohort_testkit::generate::history::setting;
use kohort_testkit::random::Random;
use proptest::prelude::*;

proptest! {
    #![proptest_config(config(96))]

    #[test]
    fn who_kept_every_snapshot_makes_out_nobody(setting in setting(), n_persons in 0u64..40, n_steps in 1usize..60, seed in any::<u64>()) {
        let mut view = View::new(&setting, n_persons, seed);
        for step in 0..n_steps {
            view.change();
            if step % 16 == 15 {
                view.refresh();
            }
        }
        prop_assert_eq!(&view.rejected, &Vec::<String>::new());
        prop_assert_eq!(breached(&setting, &view.attacker.blocks()), Vec::<u64>::new());
    }

    #[test]
    fn the_index_finds_what_a_scan_over_all_classes_finds(seed in any::<u64>(), n_classes in 1usize..300, n_changes in 0usize..300) {
        let mut random = Random::new(seed);
        let trees = trees();
        let mut index = ClassIndex::new(2);
        let mut all: Vec<Option<(Vec<u32>, u64)>> = vec![None; n_classes];
        for change in 0..n_classes + n_changes {
            let class = if change < n_classes { change } else { random.below(n_classes) };
            let nodes: Vec<u32> = trees.iter().map(|tree| random.below(tree.n_nodes()) as u32).collect();
            if change >= n_classes && random.once_in(3) {
                index.remove(&trees, ClassId(class as u64));
                all[class] = None;
            } else {
                let n_members = random.below(4) as u64;
                index.put(&trees, ClassId(class as u64), &nodes, n_members);
                all[class] = Some((nodes, n_members));
            }
            let row: Vec<u32> = trees.iter().map(|tree| random.below(tree.n_nodes()) as u32).collect();
            let present = (0..).zip(&all).filter_map(|(class, entry)| Some((class, entry.as_ref()?)));
            let nearest = present.map(|(class, (nodes, n))| (total_change(&trees, &row, nodes, *n), class)).min();
            let found = index.nearest(&trees, &row).map(|(class, change)| (change.0, class.0));
            prop_assert_eq!(found, nearest);
            prop_assert_eq!(index.len(), all.iter().flatten().count());
        }
    }
}

/// How much a class and a row would change if the row joined the class: the steps that the row and the members move up
/// in each tree. Both paths to the root are walked until they meet, unlike in the index under test.
fn total_change(trees: &[GrowingTree], row: &[u32], class: &[u32], n_members: u64) -> u64 {
    let path = |tree: &GrowingTree, node: u32| -> Vec<u32> {
        std::iter::successors(Some(node), |&node| tree.parent(node)).collect()
    };
    let columns = trees.iter().zip(row.iter().zip(class));
    let change = columns.map(|(tree, (&row, &class))| {
        let (from_row, from_class) = (path(tree, row), path(tree, class));
        let steps_of_row = from_row.iter().position(|node| from_class.contains(node)).unwrap() as u64;
        let steps_of_class = from_class.iter().position(|node| from_row.contains(node)).unwrap() as u64;
        (steps_of_row + n_members * steps_of_class) * (1_000_000 / u64::from(tree.diameter()))
    });
    change.sum()
}

#[test]
fn everything_that_can_happen_happens() {
    let mut total = Happened::default();
    for (seed, departures) in (0..60).zip([Departures::Batch, Departures::Withdraw].into_iter().cycle()) {
        for closing in [Closing::Earliest, Closing::BySize(2)] {
            let mut setting = diverse(Rule::Epochs(departures, closing));
            setting.own_k.extend((seed % 5 == 0).then_some(1));
            let mut view = View::new(&setting, 30, seed);
            for step in 0..40 {
                view.change();
                if step % 10 == 9 {
                    view.refresh();
                }
            }
            assert_eq!(view.rejected, Vec::<String>::new());
            assert_eq!(breached(&setting, &view.attacker.blocks()), Vec::<u64>::new());
            let Happened { admitted, removed, withdrawn, sealed, alone, kept, parted } = view.happened;
            total.admitted += admitted;
            total.removed += removed;
            total.withdrawn += withdrawn;
            total.sealed += sealed;
            total.alone += alone;
            total.kept += kept;
            total.parted += parted;
        }
    }
    let Happened { admitted, removed, withdrawn, sealed, alone, kept, parted } = total;
    let all = [admitted, removed, withdrawn, sealed, alone, kept, parted];
    assert!(all.iter().all(|&times| times > 0), "{total:?}");
}

fn row(person: u64, showing: u64, value: u32) -> Row {
    Row { showing: (person, showing), person, k: 2, tuple: vec![value] }
}

#[test]
fn the_same_values_again_give_away_who_was_erased() {
    // Person 3 is erased, and 1 and 2 come back with all values that the three persons had.
    let blocks = [
        Block { rows: vec![row(1, 0, 0), row(2, 0, 1), row(3, 0, 0)] },
        Block { rows: vec![row(1, 1, 0), row(2, 1, 1)] },
    ];
    assert_eq!(candidates(&blocks, 3).into_iter().collect::<Vec<_>>(), [[0]]);
}
