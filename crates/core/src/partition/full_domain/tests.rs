//! The search against brute force over all vectors of levels, on random tables.

use std::collections::BTreeMap;

use kohort_model::spec::Leftovers;
use kohort_model::{Column, Hierarchy, Requirement, Role, Silent, Table, ValueType};
use proptest::prelude::*;

use super::*;
use crate::encode::{Domain, Encoded, Rows};
use crate::partition::Levels;
use crate::requirement::{Rules, Tally};

/// Three columns: a number, a text in a ragged tree and a flat text, with nulls in the first; then a sensitive one and
/// the person.
fn table(cells: &[[u8; 4]], rows_per_person: usize) -> Table {
    let tree = "a;x;p;*\nb;x;p;*\nc;p;*\nd;q;*\ne;q;*\nf;*\n";
    let texts = |of: &dyn Fn(&[u8; 4]) -> String| cells.iter().map(of).collect::<Vec<String>>();
    let numbers = texts(&|row| format!("{}", row[0] % 9));
    let leaves = texts(&|row| char::from(b'a' + row[1] % 6).to_string());
    let flat = texts(&|row| format!("v{}", row[2] % 3));
    let diseases = texts(&|row| format!("d{}", row[3] % 4));
    let persons: Vec<String> = (0..cells.len()).map(|row| format!("p{}", row / rows_per_person)).collect();
    let some = |texts: &[String], name: &str, role| {
        Column::from_cells(name, role, texts.iter().map(|text| Some(text.as_str())))
    };
    let with_nulls = numbers.iter().map(|text| Some(text.as_str()).filter(|text| *text != "8"));
    let columns = vec![
        Column::from_cells("number", Role::Quasi, with_nulls).typed(ValueType::Integer),
        some(&leaves, "leaf", Role::Quasi).with_hierarchy(Hierarchy::from_paths(tree).unwrap()),
        some(&flat, "flat", Role::Quasi),
        some(&diseases, "disease", Role::Sensitive),
        some(&persons, "person", Role::Key),
    ];
    Table { name: "t".to_owned(), columns, n_rows: cells.len(), person: Some(4) }
}

/// The least loss over all vectors of levels, LM or DM as [`crate::loss`] has them, LM times the number of cells.
fn least_by_brute_force(task: &Task<'_>, objective: Objective) -> f64 {
    let levels: Vec<Levels> = task.domains.iter().map(Levels::of).collect();
    let mut vectors: Vec<Vec<usize>> = vec![Vec::new()];
    for levels in &levels {
        let longer = |vector: &Vec<usize>| {
            (0..levels.n_levels()).map(|level| [vector.as_slice(), &[level]].concat()).collect::<Vec<_>>()
        };
        vectors = vectors.iter().flat_map(longer).collect();
    }
    let losses = vectors.iter().filter_map(|vector| {
        let mut classes: BTreeMap<Vec<(u32, u32)>, Vec<u32>> = BTreeMap::new();
        for row in 0..task.rows.len() as u32 {
            let cells = task.rows.cells(row).iter().zip(&levels).zip(vector);
            let shown = cells.map(|((&code, levels), &level)| levels.cell(level, code)).collect();
            classes.entry(shown).or_default().extend(task.rows.members(row));
        }
        let (mut loss, mut n_left_out) = (0.0, 0);
        for (shown, members) in &classes {
            let mut tally = Tally::new(task.rules);
            members.iter().for_each(|&member| tally.add(member));
            let n = members.len() as f64;
            let width: f64 = shown.iter().zip(task.domains).map(|(&(lo, hi), domain)| domain.width(lo, hi)).sum();
            let stands = tally.stands();
            n_left_out += if stands { 0 } else { members.len() as u64 };
            loss += match (objective, stands) {
                (Objective::Lm, true) => n * width,
                (Objective::Lm, false) => n * task.domains.len() as f64,
                (Objective::Dm, true) => (tally.n_persons() as f64).powi(2),
                (Objective::Dm, false) => n * task.rows.n_members() as f64,
            };
        }
        (n_left_out <= task.allowance).then_some(loss)
    });
    losses.fold(f64::INFINITY, f64::min)
}

/// What classes lose, from their boxes, and how many rows are left out.
fn measured(task: &Task<'_>, classes: &Classes, objective: Objective) -> (f64, u64) {
    let n_columns = task.domains.len();
    let (mut loss, mut placed) = (0.0, 0);
    for (class, shown) in (0..classes.len()).zip(classes.boxes.as_ref().unwrap().chunks(n_columns)) {
        let mut tally = Tally::new(task.rules);
        let members = || classes.rows(class).iter().flat_map(|&row| task.rows.members(row));
        members().for_each(|&member| tally.add(member));
        placed += members().count();
        let widths = shown.iter().zip(task.domains).map(|(&(lo, hi), domain)| domain.width(lo, hi));
        loss += match objective {
            Objective::Lm => widths.sum::<f64>() * members().count() as f64,
            Objective::Dm => (tally.n_persons() as f64).powi(2),
        };
    }
    let left_out = (task.rows.n_members() - placed) as f64;
    let each = if objective == Objective::Lm { n_columns } else { task.rows.n_members() };
    (loss + left_out * each as f64, left_out as u64)
}

fn check(task: &Task<'_>, objective: Objective) -> Result<(), TestCaseError> {
    let Ok(classes) = (FullDomain { objective }).partition(task) else {
        prop_assert!(!all_stand_together(task));
        return Ok(());
    };
    let levels: Vec<Levels> = task.domains.iter().map(Levels::of).collect();
    let n_columns = levels.len();
    let boxes = classes.boxes.as_ref().unwrap();
    prop_assert_eq!(boxes.len(), classes.len() * n_columns);
    let mut times = vec![0; task.rows.len()];
    for class in 0..classes.len() {
        let shown = &boxes[class * n_columns..][..n_columns];
        let mut tally = Tally::new(task.rules);
        for &row in classes.rows(class) {
            times[row as usize] += 1;
            task.rows.members(row).iter().for_each(|&member| tally.add(member));
            for (&code, &(lo, hi)) in task.rows.cells(row).iter().zip(shown) {
                prop_assert!(lo <= code && code <= hi, "a box does not hold its member");
            }
        }
        prop_assert!(tally.stands());
    }
    prop_assert!(times.iter().all(|&times| times <= 1));
    for (column, levels) in levels.iter().enumerate() {
        let at_level = |level: usize| {
            (0..classes.len()).all(|class| {
                let shown = boxes[class * n_columns + column];
                classes.rows(class).iter().all(|&row| levels.cell(level, task.rows.cells(row)[column]) == shown)
            })
        };
        prop_assert!((0..levels.n_levels()).any(at_level), "column {} shows cells of several levels", column);
    }
    let (loss, left_out) = measured(task, &classes, objective);
    prop_assert!(left_out <= task.allowance);
    let least = least_by_brute_force(task, objective);
    prop_assert!((loss - least).abs() < 1e-9, "{} is not the least loss, which is {}", loss, least);
    Ok(())
}

fn random_further() -> impl Strategy<Value = Option<Requirement>> {
    let column = || "disease".to_owned();
    prop_oneof![
        Just(None),
        (2u32..4).prop_map(move |l| Some(Requirement::DistinctL { column: column(), l })),
        (0.3..0.9).prop_map(move |alpha| Some(Requirement::Alpha { column: column(), alpha })),
        (1.5..3.0).prop_map(move |l| Some(Requirement::EntropyL { column: column(), l })),
    ]
}

proptest! {
    #[test]
    fn no_vector_of_levels_loses_less(
        cells in prop::collection::vec(any::<[u8; 4]>(), 1..60), k in 1u32..8, further in random_further(), allowance in 0u64..12,
    ) {
        let table = table(&cells, 1);
        let encoded = Encoded::new(&table, &[0, 1, 2]).unwrap();
        let kept: Vec<u32> = (0..cells.len() as u32).collect();
        let requirements: Vec<Requirement> = [Requirement::K(k)].into_iter().chain(further).collect();
        let (rules, rows) = (Rules::compile(&table, &requirements, &kept).unwrap(), encoded.fold(&kept));
        let (domains, leftovers) = (&encoded.domains, Leftovers::Merge);
        let task = Task { rows: &rows, domains, rules: &rules, allowance, leftovers, progress: &Silent };
        check(&task, Objective::Lm)?;
        check(&task, Objective::Dm)?;
    }

    #[test]
    fn nobody_is_left_out_by_halves_or_where_the_others_are_measured_against_them(
        cells in prop::collection::vec(any::<[u8; 4]>(), 1..60), k in 1u32..6, t in 0.1..0.6, rows_per_person in 1usize..3, allowance in 1u64..12,
    ) {
        let table = table(&cells, rows_per_person);
        let encoded = Encoded::new(&table, &[0, 1, 2]).unwrap();
        let kept: Vec<u32> = (0..cells.len() as u32).collect();
        let closeness = || Requirement::TCloseness { column: "disease".to_owned(), t, distance: kohort_model::Distance::Equal };
        let alpha = || Requirement::Alpha { column: "disease".to_owned(), alpha: 1.0 - t };
        let further = if rows_per_person == 1 { closeness() } else { alpha() };
        let rules = Rules::compile(&table, &[Requirement::K(k), further], &kept).unwrap();
        let (rows, domains, leftovers) = (encoded.fold(&kept), &encoded.domains, Leftovers::Suppress);
        let task = Task { rows: &rows, domains, rules: &rules, allowance, leftovers, progress: &Silent };
        let strict = Task { allowance: 0, ..task };
        let objective = Objective::Lm;
        prop_assume!(rules.measures_against_release() || rules.person_of_row().is_some());
        prop_assert_eq!(FullDomain { objective }.partition(&task), FullDomain { objective }.partition(&strict));
        check(&strict, objective)?;
        check(&strict, Objective::Dm)?;
    }
}

#[test]
fn threads_do_not_change_the_classes() {
    let mut state = 7u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    let cells: Vec<[u8; 4]> = (0..3_000).map(|_| [next(), next(), next(), next()]).collect();
    let table = table(&cells, 1);
    let encoded = Encoded::new(&table, &[0, 1, 2, 3]).unwrap();
    let rows: Rows = encoded.fold(&(0..cells.len() as u32).collect::<Vec<_>>());
    let (domains, rules): (&[Domain], _) = (&encoded.domains, Rules::k_only(20));
    let with_threads = |n: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
        let leftovers = Leftovers::Merge;
        let task = Task { rows: &rows, domains, rules: &rules, allowance: 100, leftovers, progress: &Silent };
        pool.install(|| FullDomain { objective: Objective::Lm }.partition(&task).unwrap())
    };
    assert_eq!(with_threads(1), with_threads(8));
}
