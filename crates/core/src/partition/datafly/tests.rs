//! The paper's patients by hand, and what Datafly promises, on random tables.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use kohort_model::spec::Leftovers;
use kohort_model::{Column, Distance, Hierarchy, Requirement, Role, Silent, Table, ValueType};
use proptest::prelude::*;

use super::candidates::Step;
use super::*;
use crate::blocks;
use crate::encode::{Encoded, Rows};
use crate::requirement::{Rules, Tally};

/// A table, folded and with its rules compiled: what a task borrows from.
struct Case<'t> {
    table: &'t Table,
    encoded: Encoded<'t>,
    rows: Rows,
    rules: Rules,
    leftovers: Leftovers,
    allowance: u64,
}

impl<'t> Case<'t> {
    fn new(table: &'t Table, requirements: &[Requirement]) -> Case<'t> {
        let kept: Vec<u32> = (0..table.n_rows as u32).collect();
        let encoded = Encoded::new(table, &table.with_role(Role::Quasi)).unwrap();
        let rows = encoded.fold(&kept);
        let rules = Rules::compile(table, requirements, &kept).unwrap();
        Case { table, encoded, rows, rules, leftovers: Leftovers::Merge, allowance: 0 }
    }

    fn task(&self) -> Task<'_> {
        self.task_on(&self.rows)
    }

    fn task_on<'a>(&'a self, rows: &'a Rows) -> Task<'a> {
        let (domains, rules) = (&self.encoded.domains, &self.rules);
        Task { rows, domains, rules, allowance: self.allowance, leftovers: self.leftovers, progress: &Silent }
    }

    /// Rows of the table per class, all sorted.
    fn members(&self, rows: &Rows, classes: &Classes) -> Vec<Vec<u32>> {
        let class = |class: usize| {
            let mut members: Vec<u32> =
                classes.rows(class).iter().flat_map(|&row| rows.members(row)).copied().collect();
            members.sort_unstable();
            members
        };
        let mut members: Vec<Vec<u32>> = (0..classes.len()).map(class).collect();
        members.sort_unstable();
        members
    }

    fn stands(&self, members: &[u32]) -> bool {
        let mut tally = Tally::new(&self.rules);
        members.iter().for_each(|&member| tally.add(member));
        tally.stands()
    }
}

fn read_golden(text: &'static str, column: &str) -> Vec<Option<&'static str>> {
    let mut lines = text.lines();
    let position = lines.next().unwrap().split(',').position(|name| name == column).unwrap();
    lines.map(|line| line.split(',').nth(position)).collect()
}

fn patients() -> Table {
    let patient = include_str!("../../../../testkit/golden/patients/patient.csv");
    let choices = include_str!("../../../../testkit/golden/patients/choices.csv");
    let birth = include_str!("../../../../testkit/golden/patients/birth.dgh.csv");
    let zipcode = include_str!("../../../../testkit/golden/patients/zipcode.dgh.csv");
    let quasi = |name: &str, paths: &str| {
        let column = Column::from_cells(name, Role::Quasi, read_golden(patient, name));
        column.with_hierarchy(Hierarchy::from_paths(paths).unwrap())
    };
    let columns = vec![
        quasi("birth", birth),
        quasi("zipcode", zipcode),
        Column::from_cells("disease", Role::Sensitive, read_golden(patient, "disease")),
        Column::from_cells("k", Role::PersonK, read_golden(choices, "k")),
    ];
    Table { name: "patient".to_owned(), columns, n_rows: 5, person: None }
}

#[test]
fn the_patients_fall_into_the_papers_classes() {
    let table = patients();
    let case = Case::new(&table, &[Requirement::PersonK { column: "k".to_owned() }]);
    let classes = Datafly::default().partition(&case.task()).unwrap();
    // P3 asks for three and remains when {P1, P2} and {P4, P5} have closed; it is as near to either.
    assert_eq!(case.members(&case.rows, &classes), [vec![0, 1], vec![2, 3, 4]]);
    let steps = steps(&case.task());
    assert_eq!(steps[..2], [Step { column: 0, level: 1 }, Step { column: 1, level: 1 }]);
}

#[test]
fn a_leftover_patient_is_left_out_where_one_may_be() {
    let table = patients();
    let mut case = Case::new(&table, &[Requirement::PersonK { column: "k".to_owned() }]);
    case.leftovers = Leftovers::Suppress;
    case.allowance = 1;
    let classes = Datafly::default().partition(&case.task()).unwrap();
    assert_eq!(case.members(&case.rows, &classes), [vec![0, 1], vec![3, 4]]);
    case.allowance = 0;
    let classes = Datafly::default().partition(&case.task()).unwrap();
    assert_eq!(case.members(&case.rows, &classes), [vec![0, 1], vec![2, 3, 4]]);
}

#[test]
fn a_leftover_takes_in_as_many_classes_as_it_asks_for() {
    // Ten pairs that are alike, and one person who asks for nine.
    let numbers: Vec<String> = (0..21).map(|row| (row / 2 * 8).to_string()).collect();
    let own_k: Vec<&str> = (0..21).map(|row| if row == 20 { "9" } else { "2" }).collect();
    let columns = vec![
        Column::from_cells("n", Role::Quasi, numbers.iter().map(|n| Some(n.as_str()))).typed(ValueType::Integer),
        Column::from_cells("k", Role::PersonK, own_k.iter().map(|&k| Some(k))),
    ];
    let table = Table { name: "t".to_owned(), columns, n_rows: 21, person: None };
    let case = Case::new(&table, &[Requirement::PersonK { column: "k".to_owned() }]);
    let classes = Datafly::default().partition(&case.task()).unwrap();
    let members = case.members(&case.rows, &classes);
    assert_eq!(members.len(), 7);
    assert_eq!(members[6], [12, 13, 14, 15, 16, 17, 18, 19, 20]);
}

#[test]
fn persons_who_ask_for_nothing_stay_as_they_are() {
    let numbers: Vec<String> = (0..8).map(|row| row.to_string()).collect();
    let own_k = ["0", "1", "3", "3", "3", "0", "1", "1"];
    let columns = vec![
        Column::from_cells("n", Role::Quasi, numbers.iter().map(|n| Some(n.as_str()))).typed(ValueType::Integer),
        Column::from_cells("k", Role::PersonK, own_k.iter().map(|&k| Some(k))),
    ];
    let table = Table { name: "t".to_owned(), columns, n_rows: 8, person: None };
    let case = Case::new(&table, &[Requirement::PersonK { column: "k".to_owned() }]);
    let classes = Datafly::default().partition(&case.task()).unwrap();
    let expected = [vec![0], vec![1], vec![2, 3, 4], vec![5], vec![6], vec![7]];
    assert_eq!(case.members(&case.rows, &classes), expected);
}

#[test]
fn rows_that_cannot_stand_together_are_refused() {
    let table = patients();
    let case = Case::new(&table, &[Requirement::K(6)]);
    assert_eq!(Datafly::default().partition(&case.task()), Err(Unreachable));
}

/// Per row: a number, a leaf of a ragged tree, a text, an own k, a sensitive value and a person. The first value of the
/// number and of the tree is null.
type RandomRow = (u32, u32, u32, u32, u32, u32);

fn random_table(cells: &[RandomRow], persons: Persons) -> Table {
    let tree = "t1;a;x;*\nt2;a;x;*\nt3;b;x;*\nt4;x;*\nt5;c;y;*\nt6;c;y;*\nt7;*\nt8;y;*\n";
    let texts = |cell: &dyn Fn(&RandomRow) -> String| -> Vec<String> { cells.iter().map(cell).collect() };
    let column = |name: &str, role: Role, texts: &[String]| {
        Column::from_cells(name, role, texts.iter().map(|text| (!text.ends_with("null")).then_some(text.as_str())))
    };
    let or_null = |prefix: &str, code: u32| if code == 0 { "null".to_owned() } else { format!("{prefix}{code}") };
    let columns = vec![
        column("number", Role::Quasi, &texts(&|row| or_null("", row.0))).typed(ValueType::Integer),
        column("tree", Role::Quasi, &texts(&|row| or_null("t", row.1)))
            .with_hierarchy(Hierarchy::from_paths(tree).unwrap()),
        column("text", Role::Quasi, &texts(&|row| row.2.to_string())),
        column("k", Role::PersonK, &texts(&|row| row.3.to_string())),
        column("sensitive", Role::Sensitive, &texts(&|row| row.4.to_string())),
        column("person", Role::Key, &texts(&|row| row.5.to_string())),
    ];
    let person = (persons == Persons::WithSeveralRows).then_some(5);
    Table { name: "t".to_owned(), columns, n_rows: cells.len(), person }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Persons {
    WithOneRow,
    WithSeveralRows,
}

fn random_rows() -> impl Strategy<Value = Vec<RandomRow>> {
    prop::collection::vec((0u32..20, 0u32..9, 0u32..4, 0u32..7, 0u32..5, 0u32..60), 1..120)
}

fn random_requirements() -> impl Strategy<Value = (Vec<Requirement>, Persons)> {
    let sensitive = || "sensitive".to_owned();
    let beyond_k = prop_oneof![
        Just(None),
        (1u32..4).prop_map(move |l| Some(Requirement::DistinctL { column: sensitive(), l })),
        (0.1f64..0.8).prop_map(move |t| {
            Some(Requirement::TCloseness { column: sensitive(), t, distance: Distance::Ordered })
        }),
        (0.3f64..1.0).prop_map(move |alpha| Some(Requirement::Alpha { column: sensitive(), alpha })),
    ];
    let persons = prop_oneof![Just(Persons::WithOneRow), Just(Persons::WithSeveralRows)];
    (1u32..8, prop::bool::ANY, beyond_k, persons).prop_map(|(k, own_k, beyond_k, persons)| {
        let own_k = own_k.then(|| Requirement::PersonK { column: "k".to_owned() });
        let requirements = std::iter::once(Requirement::K(k)).chain(own_k).chain(beyond_k).collect();
        (requirements, persons)
    })
}

/// The steps that Datafly takes.
fn steps(task: &Task<'_>) -> Vec<Step> {
    let (levels, rows): (_, Vec<u32>) = (levels(task), (0..task.rows.len() as u32).collect());
    let mut candidates = Candidates::new(task, &levels, &rows);
    let mut steps = Vec::new();
    while candidates.len() > 1 {
        steps.push(candidates.most_distinct());
        candidates.generalize(steps[steps.len() - 1]);
    }
    steps
}

/// Blocks of so many rows, which are given person after person.
fn cut(case: &Case<'_>, size: usize) -> Vec<Vec<u32>> {
    let mut rows: Vec<u32> = (0..case.table.n_rows as u32).collect();
    rows.sort_by_key(|&row| case.rules.person(row));
    blocks::cut(&case.rules, &rows, NonZeroUsize::new(size).unwrap())
}

/// The definition, row by row: the closed classes and the leftover, in rows of the table.
fn by_definition(case: &Case<'_>, steps: &[Step]) -> (Vec<Vec<u32>>, Vec<u32>) {
    let levels = levels(&case.task());
    let mut reached = vec![0; levels.len()];
    let mut open: Vec<u32> = (0..case.table.n_rows as u32).collect();
    let mut classes = Vec::new();
    for step in std::iter::once(None).chain(steps.iter().map(Some)) {
        if let Some(step) = step {
            reached[step.column] = step.level;
        }
        let mut groups: BTreeMap<Vec<(u32, u32)>, Vec<u32>> = BTreeMap::new();
        for &row in &open {
            let cell = |column: usize| levels[column].cell(reached[column], case.encoded.code(column, row));
            groups.entry((0..levels.len()).map(cell).collect()).or_default().push(row);
        }
        let (standing, others): (Vec<Vec<u32>>, Vec<Vec<u32>>) =
            groups.into_values().partition(|group| case.stands(group));
        classes.extend(standing);
        open = others.concat();
        open.sort_unstable();
    }
    classes.sort_unstable();
    (classes, open)
}

proptest! {
    #[test]
    fn every_row_is_in_one_class_and_every_class_stands(cells in random_rows(), (requirements, persons) in random_requirements()) {
        let table = random_table(&cells, persons);
        let case = Case::new(&table, &requirements);
        let everybody: Vec<u32> = (0..table.n_rows as u32).collect();
        let Ok(classes) = Datafly::default().partition(&case.task()) else {
            prop_assert!(!case.stands(&everybody));
            return Ok(());
        };
        let members = case.members(&case.rows, &classes);
        prop_assert!(members.iter().all(|class| case.stands(class)));
        let mut placed = members.concat();
        placed.sort_unstable();
        prop_assert_eq!(placed, everybody);
    }

    #[test]
    fn own_k_loses_no_more_than_the_largest_k_for_all(cells in random_rows(), (requirements, persons) in random_requirements()) {
        let table = random_table(&cells, persons);
        let case = Case::new(&table, &requirements);
        let task = case.task();
        let Ok(classes) = OwnK::default().partition(&task) else {
            prop_assert!(!case.stands(&(0..table.n_rows as u32).collect::<Vec<_>>()));
            return Ok(());
        };
        let members = case.members(&case.rows, &classes);
        prop_assert!(members.iter().all(|class| case.stands(class)));
        let mut placed = members.concat();
        placed.sort_unstable();
        prop_assert_eq!(placed, (0..table.n_rows as u32).collect::<Vec<u32>>());
        let Some(rules) = case.rules.with_largest_k() else { return Ok(()) };
        let alike = Task { rules: &rules, ..task };
        if let Ok(of_all) = Datafly::default().partition(&alike) {
            prop_assert!(task.loss(&classes.to_lists()) <= task.loss(&of_all.to_lists()) + 1e-9);
        }
    }

    #[test]
    fn classes_close_as_defined(cells in random_rows(), (requirements, persons) in random_requirements()) {
        let table = random_table(&cells, persons);
        let case = Case::new(&table, &requirements);
        let task = case.task();
        let Ok(classes) = Datafly::default().partition(&task) else {
            prop_assert!(!case.stands(&(0..table.n_rows as u32).collect::<Vec<_>>()));
            return Ok(());
        };
        let (expected, leftover) = by_definition(&case, &steps(&task));
        let found = case.members(&case.rows, &classes);
        // All classes are as they closed, except the one that took in the leftover.
        let host: Vec<Vec<u32>> = found.iter().filter(|class| !expected.contains(class)).cloned().collect();
        prop_assert_eq!(host.len(), usize::from(!leftover.is_empty()));
        let joined: Vec<&Vec<u32>> = expected.iter().filter(|class| !found.contains(class)).collect();
        let mut together: Vec<u32> = joined.iter().flat_map(|class| class.iter()).chain(&leftover).copied().collect();
        together.sort_unstable();
        prop_assert_eq!(together, host.concat());
    }

    #[test]
    fn each_step_raises_the_column_with_most_distinct_cells(cells in random_rows(), k in 2u32..8) {
        let table = random_table(&cells, Persons::WithOneRow);
        let case = Case::new(&table, &[Requirement::K(k)]);
        let levels = levels(&case.task());
        let mut reached = vec![0; levels.len()];
        let steps = steps(&case.task());
        for (position, step) in steps.iter().enumerate() {
            let open = by_definition(&case, &steps[..position]).1;
            let distinct = |column: usize| {
                let mut cells: Vec<_> = open.iter().map(|&row| levels[column].cell(reached[column], case.encoded.code(column, row))).collect();
                cells.sort_unstable();
                cells.dedup();
                cells.len()
            };
            let of_columns: Vec<usize> = (0..levels.len()).map(distinct).collect();
            let most = of_columns.iter().copied().max().unwrap();
            if most > 1 {
                prop_assert_eq!(step.column, of_columns.iter().position(|&n| n == most).unwrap());
            }
            prop_assert_eq!(step.level, reached[step.column] + 1);
            reached[step.column] = step.level;
        }
    }

    #[test]
    fn no_more_persons_are_left_out_than_allowed(cells in random_rows(), (requirements, persons) in random_requirements(), allowance in 0u64..10) {
        let table = random_table(&cells, persons);
        let mut case = Case::new(&table, &requirements);
        case.leftovers = Leftovers::Suppress;
        case.allowance = allowance;
        let Ok(classes) = Datafly::default().partition(&case.task()) else {
            prop_assert!(!case.stands(&(0..table.n_rows as u32).collect::<Vec<_>>()));
            return Ok(());
        };
        let members = case.members(&case.rows, &classes);
        prop_assert!(members.iter().all(|class| case.stands(class)));
        let n_left_out = (table.n_rows - members.concat().len()) as u64;
        let leftover = by_definition(&case, &steps(&case.task())).1.len() as u64;
        let may_leave = leftover <= allowance && case.rules.person_of_row().is_none() && !case.rules.measures_against_release();
        prop_assert_eq!(n_left_out, if may_leave { leftover } else { 0 });
    }

    #[test]
    fn blocks_hold_all_rows_in_order_and_no_person_twice(cells in random_rows(), (_, persons) in random_requirements(), size in 1usize..50) {
        let table = random_table(&cells, persons);
        let case = Case::new(&table, &[Requirement::K(2)]);
        let all: Vec<u32> = (0..table.n_rows as u32).collect();
        let blocks = cut(&case, size);
        prop_assert!(blocks.len() == 1 || blocks.iter().all(|block| block.len() >= size));
        if persons == Persons::WithOneRow {
            prop_assert_eq!(blocks.concat(), all);
            prop_assert_eq!(blocks.len(), (table.n_rows / size).max(1));
            return Ok(());
        }
        let mut rows = blocks.concat();
        rows.sort_unstable();
        prop_assert_eq!(rows, all);
        let mut block_of_person = BTreeMap::new();
        for (number, block) in blocks.iter().enumerate() {
            for &row in block {
                prop_assert_eq!(*block_of_person.entry(cells[row as usize].5).or_insert(number), number);
            }
        }
    }

    #[test]
    fn blocks_that_are_joined_stand_if_all_rows_do(cells in random_rows(), (requirements, persons) in random_requirements(), size in 1usize..50) {
        let table = random_table(&cells, persons);
        let case = Case::new(&table, &requirements);
        let all: Vec<u32> = (0..table.n_rows as u32).collect();
        let blocks = blocks::join(&case.rules, cut(&case, size));
        if case.stands(&all) {
            prop_assert!(blocks.iter().all(|block| case.stands(block)));
        }
        let mut rows = blocks.concat();
        rows.sort_unstable();
        prop_assert_eq!(rows, all);
    }

    #[test]
    fn blocks_are_partitioned_by_themselves(
        cells in random_rows(), (requirements, persons) in random_requirements(), size in 1usize..50, allowance in 0u64..6,
    ) {
        let table = random_table(&cells, persons);
        let mut case = Case::new(&table, &requirements);
        let all: Vec<u32> = (0..table.n_rows as u32).collect();
        prop_assume!(case.stands(&all));
        (case.leftovers, case.allowance) = (Leftovers::Suppress, allowance);
        let blocks = blocks::join(&case.rules, cut(&case, size));
        let folded: Vec<Rows> = blocks.iter().map(|block| case.encoded.fold(block)).collect();
        let block_ends = (1..=folded.len()).map(|n| folded[..n].iter().map(|rows| rows.len() as u32).sum()).collect();
        let together = Rows::in_blocks(&folded);
        let found = Datafly { block_ends }.partition(&case.task_on(&together)).unwrap();
        let mut expected = Vec::new();
        for (block, rows) in blocks.iter().zip(&folded) {
            let task = Task { allowance: case.allowance, ..case.task_on(rows) };
            let classes = case.members(rows, &Datafly::default().partition(&task).unwrap());
            case.allowance -= (block.len() - classes.concat().len()) as u64;
            expected.extend(classes);
        }
        expected.sort_unstable();
        prop_assert_eq!(case.members(&together, &found), expected);
    }
}

#[test]
fn threads_do_not_change_the_classes() {
    let mut state = 11u64;
    let mut next = |n: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32 % n
    };
    let cells: Vec<RandomRow> = (0..20_000).map(|_| (next(400), next(9), next(4), next(7), next(5), 0)).collect();
    let table = random_table(&cells, Persons::WithOneRow);
    let case = Case::new(&table, &[Requirement::PersonK { column: "k".to_owned() }]);
    let with_threads = |n: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
        pool.install(|| OwnK::default().partition(&case.task()).unwrap())
    };
    assert!(case.rows.len() > 8_000, "enough rows that they are shared between threads");
    assert_eq!(with_threads(1), with_threads(8));
}
