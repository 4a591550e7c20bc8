//! What top-down promises, on random rows.

use std::collections::{BTreeMap, BTreeSet};

use kohort_model::{Column, Distance, Requirement, Role, Silent, Table, ValueType};
use proptest::prelude::*;

use super::nearest::GroupTree;
use super::*;
use crate::encode::{Encoded, Rows};
use crate::requirement::Rules;

const N_CODES: u32 = 40;

/// Columns of numbers and of texts by turns, and a sensitive column of three values.
fn table(cells: &[Vec<u32>], sensitive: &[u32]) -> Table {
    let texts: Vec<String> = (0..N_CODES).map(|number| format!("{number:02}")).collect();
    let column = |name: &str, role: Role, codes: &mut dyn Iterator<Item = u32>| {
        Column::from_cells(name, role, codes.map(|code| Some(texts[code as usize].as_str())))
    };
    let quasi = (0..cells[0].len()).map(|position| {
        let value_type = if position % 2 == 0 { ValueType::Integer } else { ValueType::Text };
        column("quasi", Role::Quasi, &mut cells.iter().map(|row| row[position])).typed(value_type)
    });
    let sensitive = column("sensitive", Role::Sensitive, &mut sensitive.iter().copied());
    let own_k = column("own_k", Role::PersonK, &mut cells.iter().map(|row| row[0] % 9));
    let columns = quasi.chain([sensitive, own_k]).collect();
    Table { name: "t".to_owned(), columns, n_rows: cells.len(), person: None }
}

struct Case {
    rows: Rows,
    classes: Classes,
}

fn partition(table: &Table, requirements: &[Requirement]) -> Result<Case, Unreachable> {
    let encoded = Encoded::new(table, &table.with_role(Role::Quasi)).unwrap();
    let kept: Vec<u32> = (0..table.n_rows as u32).collect();
    let rules = Rules::compile(table, requirements, &kept).unwrap();
    let rows = encoded.fold(&kept);
    let task = Task::of_everybody(&rows, &encoded.domains, &rules, &Silent);
    let classes = TopDown.partition(&task)?;
    Ok(Case { rows, classes })
}

impl Case {
    /// The rows of the table, class by class.
    fn members(&self) -> Vec<Vec<u32>> {
        let members_of = |class: usize| {
            let rows = self.classes.rows(class).iter();
            rows.flat_map(|&row| self.rows.members(row)).copied().collect()
        };
        (0..self.classes.len()).map(members_of).collect()
    }
}

/// Classes of one column of numbers, as sorted lists of numbers.
fn classes_of_numbers(numbers: &[u32], k: u32) -> Vec<Vec<u32>> {
    let cells: Vec<Vec<u32>> = numbers.iter().map(|&number| vec![number]).collect();
    let case = partition(&table(&cells, &vec![0; numbers.len()]), &[Requirement::K(k)]).unwrap();
    let sorted = |class: &Vec<u32>| {
        let mut numbers: Vec<u32> = class.iter().map(|&row| numbers[row as usize]).collect();
        numbers.sort_unstable();
        numbers
    };
    let mut classes: Vec<Vec<u32>> = case.members().iter().map(sorted).collect();
    classes.sort_unstable();
    classes
}

fn random_rows() -> impl Strategy<Value = (Vec<Vec<u32>>, Vec<u32>)> {
    (1usize..4, 1usize..200).prop_flat_map(|(n_columns, n_rows)| {
        let cells = prop::collection::vec(prop::collection::vec(0..N_CODES, n_columns), n_rows);
        (cells, prop::collection::vec(0u32..3, n_rows))
    })
}

fn random_requirements() -> impl Strategy<Value = Vec<Requirement>> {
    let column = || "sensitive".to_owned();
    let t_closeness = Requirement::TCloseness { column: column(), t: 0.25, distance: Distance::Equal };
    let distinct = Requirement::DistinctL { column: column(), l: 2 };
    let own_k = Requirement::PersonK { column: "own_k".to_owned() };
    (1u32..20, prop::sample::subsequence(vec![t_closeness, distinct, own_k], 0..=3)).prop_map(|(k, mut others)| {
        others.push(Requirement::K(k));
        others
    })
}

/// Whether a class meets a requirement, counted from the table.
fn meets(requirement: &Requirement, class: &[u32], cells: &[Vec<u32>], sensitive: &[u32]) -> bool {
    let share = |value: u32, rows: &mut dyn Iterator<Item = u32>| {
        let (mut n, mut all) = (0.0, 0.0);
        rows.for_each(|row| {
            all += 1.0;
            n += f64::from(u8::from(sensitive[row as usize] == value));
        });
        n / all
    };
    match requirement {
        Requirement::K(k) => class.len() >= *k as usize,
        Requirement::PersonK { .. } => class.iter().all(|&row| class.len() >= cells[row as usize][0] as usize % 9),
        Requirement::DistinctL { l, .. } => {
            class.iter().map(|&row| sensitive[row as usize]).collect::<BTreeSet<u32>>().len() >= *l as usize
        }
        Requirement::TCloseness { t, .. } => {
            let difference =
                |value| share(value, &mut class.iter().copied()) - share(value, &mut (0..sensitive.len() as u32));
            (0..3).map(|value| f64::abs(difference(value))).sum::<f64>() / 2.0 <= t + 1e-9
        }
        _ => unreachable!("no case asks for it"),
    }
}

proptest! {
    #[test]
    fn every_row_is_in_one_class_and_every_class_stands(
        (cells, sensitive) in random_rows(),
        requirements in random_requirements(),
    ) {
        let everybody: Vec<u32> = (0..cells.len() as u32).collect();
        let Ok(case) = partition(&table(&cells, &sensitive), &requirements) else {
            prop_assert!(!requirements.iter().all(|requirement| meets(requirement, &everybody, &cells, &sensitive)));
            return Ok(());
        };
        let classes = case.members();
        for class in &classes {
            for requirement in &requirements {
                prop_assert!(meets(requirement, class, &cells, &sensitive), "{requirement:?} in {class:?}");
            }
        }
        let mut placed = classes.concat();
        placed.sort_unstable();
        prop_assert_eq!(placed, everybody);
    }

    #[test]
    fn the_index_finds_what_a_scan_of_all_groups_finds(
        (cells, sensitive) in random_rows(),
        size in 1usize..6,
        gone in any::<prop::sample::Index>(),
        joining in any::<prop::sample::Index>(),
    ) {
        let table = table(&cells, &sensitive);
        let encoded = Encoded::new(&table, &table.with_role(Role::Quasi)).unwrap();
        let rows = encoded.fold(&(0..table.n_rows as u32).collect::<Vec<u32>>());
        let rules = Rules::k_only(1);
        let task = Task::of_everybody(&rows, &encoded.domains, &rules, &Silent);
        let all: Vec<u32> = (0..rows.len() as u32).collect();
        let mut groups: Vec<Group> = all.chunks(size).map(|rows| Group::new(&task, rows.to_vec(), true)).collect();
        let mut index = GroupTree::new(&task, &groups);
        let (gone, joining) = (gone.index(groups.len()), joining.index(groups.len()));
        prop_assume!(gone != joining);
        groups[gone].rows.clear();
        index.update(gone as u32, &groups[gone]);

        let mut expected: Vec<f64> = Vec::new();
        for (position, group) in groups.iter().enumerate() {
            if position != gone && position != joining {
                let both = [group.rows.as_slice(), &groups[joining].rows].concat();
                expected.push(Group::new(&task, both, true).outline.loss() - group.outline.loss());
            }
        }
        expected.sort_unstable_by(f64::total_cmp);
        expected.truncate(4);
        let found: Vec<f64> = index.nearest(&groups, joining as u32, 4).iter().map(|near| near.cost).collect();
        prop_assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            prop_assert!((found - expected).abs() < 1e-9);
        }
    }

    #[test]
    fn a_forced_split_leaves_at_least_a_quarter_on_each_side((cells, sensitive) in random_rows()) {
        let table = table(&cells, &sensitive);
        let encoded = Encoded::new(&table, &table.with_role(Role::Quasi)).unwrap();
        let rows = encoded.fold(&(0..table.n_rows as u32).collect::<Vec<u32>>());
        let rules = Rules::k_only(1);
        let task = Task::of_everybody(&rows, &encoded.domains, &rules, &Silent);
        let mut order: Vec<u32> = (0..rows.len() as u32).collect();
        let split = Splitter::new(&task).split(&mut order, table.n_rows as u64, Balance::Forced);
        let Some([first, second]) = split else {
            prop_assert!(rows.len() < 2);
            return Ok(());
        };
        prop_assert!(4 * first.n_rows.min(second.n_rows) >= rows.len() / 4 * 4);
        prop_assert_eq!(first.n_rows + second.n_rows, rows.len());
        order.sort_unstable();
        prop_assert_eq!(order, (0..rows.len() as u32).collect::<Vec<u32>>());
    }
}

#[test]
fn rows_that_lie_apart_are_not_put_together() {
    assert_eq!(
        classes_of_numbers(&[0, 39, 1, 38, 19, 2, 37, 20, 21], 3),
        [vec![0, 1, 2], vec![19, 20, 21], vec![37, 38, 39]]
    );
}

#[test]
fn a_small_group_takes_rows_of_a_neighbour_that_can_spare_them() {
    assert_eq!(classes_of_numbers(&[0, 30, 31, 32, 33, 34], 3), [vec![0, 30, 31], vec![32, 33, 34]]);
}

#[test]
fn a_small_group_joins_a_neighbour_that_can_spare_nothing() {
    assert_eq!(classes_of_numbers(&[0, 1, 2, 9, 30, 31, 32], 3), [vec![0, 1, 2, 9], vec![30, 31, 32]]);
}

#[test]
fn fewer_rows_than_k_are_refused() {
    let cells = vec![vec![1], vec![2]];
    assert!(partition(&table(&cells, &[0, 0]), &[Requirement::K(3)]).is_err());
}

#[test]
fn threads_do_not_change_the_classes() {
    // Enough rows that groups are shared between threads.
    let mut state = 7u64;
    let mut next = |n: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32 % n
    };
    let cells: Vec<Vec<u32>> = (0..10_000).map(|_| (0..4).map(|_| next(N_CODES)).collect()).collect();
    let sensitive: Vec<u32> = (0..cells.len()).map(|_| next(3)).collect();
    let table = table(&cells, &sensitive);
    let distinct = Requirement::DistinctL { column: "sensitive".to_owned(), l: 3 };
    for requirements in [vec![Requirement::K(5)], vec![Requirement::K(3), distinct]] {
        let with_threads = |n: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
            pool.install(|| partition(&table, &requirements).unwrap())
        };
        let one = with_threads(1);
        assert!(one.rows.len() > 2 * SHARED_NODE);
        assert_eq!(one.classes, with_threads(8).classes);
    }
}

#[test]
fn the_order_of_the_input_does_not_change_the_classes() {
    let cells: Vec<Vec<u32>> = (0..300u32).map(|row| vec![row * row % 37, row * 7 % N_CODES]).collect();
    let reversed: Vec<Vec<u32>> = cells.iter().rev().cloned().collect();
    let boxes = |cells: &[Vec<u32>]| {
        let case = partition(&table(cells, &vec![0; cells.len()]), &[Requirement::K(4)]).unwrap();
        let mut sizes: BTreeMap<Vec<(u32, u32)>, usize> = BTreeMap::new();
        for class in 0..case.classes.len() {
            let rows = case.classes.rows(class);
            *sizes.entry(case.rows.bounds(rows)).or_default() +=
                rows.iter().map(|&row| case.rows.weight(row) as usize).sum::<usize>();
        }
        sizes
    };
    assert_eq!(boxes(&cells), boxes(&reversed));
}
