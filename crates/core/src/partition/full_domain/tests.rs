//! The search against brute force over all vectors of levels, on random tables.

use std::collections::{BTreeMap, BTreeSet};

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
/// Everybody with a row in a class that fails leaves with all rows, again and again until no class fails.
fn least_by_brute_force(task: &Task<'_>, objective: Objective) -> f64 {
    let levels: Vec<Levels> = task.domains.iter().map(Levels::of).collect();
    let mut vectors: Vec<Vec<usize>> = vec![Vec::new()];
    for levels in &levels {
        let longer = |vector: &Vec<usize>| {
            (0..levels.n_levels()).map(|level| [vector.as_slice(), &[level]].concat()).collect::<Vec<_>>()
        };
        vectors = vectors.iter().flat_map(longer).collect();
    }
    let all: BTreeSet<u32> =
        (0..task.rows.len() as u32).flat_map(|row| task.rows.members(row)).map(|&row| task.rules.person(row)).collect();
    let losses = vectors.iter().filter_map(|vector| {
        let mut classes: BTreeMap<Vec<(u32, u32)>, Vec<u32>> = BTreeMap::new();
        for row in 0..task.rows.len() as u32 {
            let cells = task.rows.cells(row).iter().zip(&levels).zip(vector);
            let shown = cells.map(|((&code, levels), &level)| levels.cell(level, code)).collect();
            classes.entry(shown).or_default().extend(task.rows.members(row));
        }
        let mut gone: BTreeSet<u32> = BTreeSet::new();
        loop {
            let fails = |members: &&Vec<u32>| {
                let mut tally = Tally::new(task.rules);
                let here = members.iter().filter(|&&row| !gone.contains(&task.rules.person(row)));
                here.clone().for_each(|&member| tally.add(member));
                here.count() > 0 && !tally.stands()
            };
            let failing = classes.values().filter(fails).flatten();
            let leaving: Vec<u32> = failing.map(|&row| task.rules.person(row)).collect();
            if leaving.is_empty() {
                break;
            }
            gone.extend(leaving);
        }
        let (mut loss, mut n_gone) = (0.0, 0);
        for (shown, members) in &classes {
            let here: Vec<u32> =
                members.iter().copied().filter(|&row| !gone.contains(&task.rules.person(row))).collect();
            n_gone += members.len() - here.len();
            let persons: BTreeSet<u32> = here.iter().map(|&row| task.rules.person(row)).collect();
            let width: f64 = shown.iter().zip(task.domains).map(|(&(lo, hi), domain)| domain.width(lo, hi)).sum();
            loss += match objective {
                Objective::Lm => here.len() as f64 * width,
                Objective::Dm => (persons.len() as f64).powi(2),
            };
        }
        loss += match objective {
            Objective::Lm => (n_gone * task.domains.len()) as f64,
            Objective::Dm => (gone.len() * all.len()) as f64,
        };
        (gone.len() as u64 <= task.allowance).then_some(loss)
    });
    losses.fold(f64::INFINITY, f64::min)
}

/// What classes lose, from their boxes, and how many persons are left out.
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
    let person = |row: u32| task.rules.person(row);
    let all: BTreeSet<u32> =
        (0..task.rows.len() as u32).flat_map(|row| task.rows.members(row)).map(|&row| person(row)).collect();
    let here: BTreeSet<u32> =
        classes.all_rows().iter().flat_map(|&row| task.rows.members(row)).map(|&row| person(row)).collect();
    let n_left_out = (all.len() - here.len()) as f64;
    let n_rows_left_out = (task.rows.n_members() - placed) as f64;
    let more = match objective {
        Objective::Lm => n_rows_left_out * n_columns as f64,
        Objective::Dm => n_left_out * all.len() as f64,
    };
    (loss + more, n_left_out as u64)
}

fn check(task: &Task<'_>, objective: Objective) -> Result<(), TestCaseError> {
    let Ok(classes) = (FullDomain { objective }).partition(task) else {
        prop_assert!(task.check().is_err());
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
    fn nobody_is_left_out_where_the_others_are_measured_against_them(
        cells in prop::collection::vec(any::<[u8; 4]>(), 1..60), k in 1u32..6, t in 0.1..0.6, rows_per_person in 1usize..3, allowance in 1u64..12,
    ) {
        let table = table(&cells, rows_per_person);
        let encoded = Encoded::new(&table, &[0, 1, 2]).unwrap();
        let kept: Vec<u32> = (0..cells.len() as u32).collect();
        let further = Requirement::TCloseness { column: "disease".to_owned(), t, distance: kohort_model::Distance::Equal };
        let rules = Rules::compile(&table, &[Requirement::K(k), further], &kept).unwrap();
        let rows = encoded.fold(&kept).parted(|row| rules.person(row));
        let (domains, leftovers) = (&encoded.domains, Leftovers::Suppress);
        let task = Task { rows: &rows, domains, rules: &rules, allowance, leftovers, progress: &Silent };
        let strict = Task { allowance: 0, ..task };
        let objective = Objective::Lm;
        prop_assert_eq!(FullDomain { objective }.partition(&task), FullDomain { objective }.partition(&strict));
        check(&strict, objective)?;
        check(&strict, Objective::Dm)?;
    }

    #[test]
    fn persons_leave_with_all_their_rows_or_not_at_all(
        cells in prop::collection::vec(any::<[u8; 4]>(), 1..60), k in 1u32..6, further in random_further(), rows_per_person in 2usize..4, allowance in 0u64..12,
    ) {
        let table = table(&cells, rows_per_person);
        let encoded = Encoded::new(&table, &[0, 1, 2]).unwrap();
        let kept: Vec<u32> = (0..cells.len() as u32).collect();
        let requirements: Vec<Requirement> = [Requirement::K(k)].into_iter().chain(further).collect();
        let rules = Rules::compile(&table, &requirements, &kept).unwrap();
        let folded = encoded.fold(&kept);
        let parted = folded.parted(|row| rules.person(row));
        let (domains, leftovers) = (&encoded.domains, Leftovers::Merge);
        let task = Task { rows: &parted, domains, rules: &rules, allowance, leftovers, progress: &Silent };
        for objective in [Objective::Lm, Objective::Dm] {
            check(&task, objective)?;
            let Ok(classes) = (FullDomain { objective }).partition(&task) else { continue };
            let placed: BTreeSet<u32> = classes.all_rows().iter().flat_map(|&row| parted.members(row)).copied().collect();
            let is_whole = |row: &u32| kept.iter().all(|other| rules.person(*other) != rules.person(*row) || placed.contains(other));
            prop_assert!(placed.iter().all(is_whole), "somebody is left out in part");
            // If a folded row belongs to several persons, nobody can leave.
            if rules.person_of_row().is_some() && folded.len() < parted.len() {
                let shared = Task { rows: &folded, ..task };
                let strict = Task { allowance: 0, ..shared };
                prop_assert_eq!(FullDomain { objective }.partition(&shared), FullDomain { objective }.partition(&strict));
            }
        }
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
