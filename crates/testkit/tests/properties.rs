//! What holds for every random table, hierarchy, requirement and spec.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use kohort_core::{AnonymizeError, Anonymized};
use kohort_model::spec::Order;
use kohort_model::{Loss, Persons, Requirement, Role};
use kohort_testkit::corpus::PARTITIONERS;
use kohort_testkit::generate::{Job, Size, config, job, plain_job};
use kohort_testkit::oracle::{self, Verdict};
use kohort_testkit::scenario::Scenario;
use kohort_verify::{SuppressionLimit, verify_release};
use proptest::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Whether an error says that the requirement can't be reached, and not that something is broken.
fn is_unreachable(error: &AnonymizeError) -> bool {
    matches!(
        error,
        AnonymizeError::TooFewPersons { .. } | AnonymizeError::OwnKTooLarge { .. } | AnonymizeError::TooFrequent { .. }
    )
}

/// Checks that a refusal is right: the error says that the requirement can't be reached and, if there are few enough
/// persons to try everything, brute force finds no release either.
fn check_refusal(job: &Job, error: &AnonymizeError) -> Result<(), TestCaseError> {
    prop_assert!(is_unreachable(error), "{}", error);
    if oracle::persons(&job.table, &all_rows(job)).len() <= 10 {
        let found = oracle::can_be_one_class(&job.table, &job.requirements, job.spec.max_suppressed);
        prop_assert_ne!(found, Verdict::Holds, "{}", error);
    }
    Ok(())
}

fn all_rows(job: &Job) -> Vec<u32> {
    (0..job.table.n_rows as u32).collect()
}

fn persons_allowed_to_leave(job: &Job) -> u64 {
    let n_persons = oracle::persons(&job.table, &all_rows(job)).len() as f64;
    (job.spec.max_suppressed * n_persons + 1e-9).floor() as u64
}

/// Everything that a run gives: the file, where its rows come from, and its loss.
#[derive(Debug, PartialEq)]
struct Outcome {
    cells: Vec<Vec<Option<String>>>,
    rows: Vec<u32>,
    loss: Loss,
    persons: Persons,
}

fn outcome(job: &Job) -> Result<Outcome, AnonymizeError> {
    let done = job.run()?;
    let cells = oracle::released_cells(&job.table, &done.release);
    Ok(Outcome { cells, rows: done.release.tables[0].rows.clone(), loss: done.loss, persons: done.persons })
}

fn threads(n: usize) -> &'static ThreadPool {
    static ONE: OnceLock<ThreadPool> = OnceLock::new();
    static EIGHT: OnceLock<ThreadPool> = OnceLock::new();
    let pool = if n == 1 { &ONE } else { &EIGHT };
    pool.get_or_init(|| ThreadPoolBuilder::new().num_threads(n).build().expect("threads can be started"))
}

/// The released rows in the order of the file, or sorted if the file keeps the order of the input.
fn shown(job: &Job, done: &Anonymized) -> Vec<Vec<Option<String>>> {
    let mut rows = oracle::released_cells(&job.table, &done.release);
    if job.spec.order == Order::Input {
        rows.sort_unstable();
    }
    rows
}

fn shuffled(n: usize, mut seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    for last in (1..n).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(last, (seed >> 33) as usize % (last + 1));
    }
    order
}

fn assert_close(name: &str, reported: f64, expected: f64) -> Result<(), TestCaseError> {
    let same = (reported - expected).abs() <= 1e-9 * expected.abs().max(1.0);
    prop_assert!(same, "{} is {} and not {}", name, expected, reported);
    Ok(())
}

fn check_release(job: &Job, done: &Anonymized) -> Result<(), TestCaseError> {
    let table = &job.table;
    let released = &done.release.tables[0];
    for class in oracle::classes(table, &done.release) {
        for requirement in &job.requirements {
            let verdict = oracle::judge(table, requirement, &class.rows, &released.rows);
            prop_assert_ne!(verdict, Verdict::Fails, "{:?} in the class of rows {:?}", requirement, class.rows);
        }
        let quasi = table.with_role(Role::Quasi);
        for (cell, &column) in class.cells.iter().zip(&quasi) {
            for &row in &class.rows {
                let column = &table.columns[column];
                let covered = oracle::covers(column, cell.as_deref(), column.cell(row as usize));
                prop_assert!(covered, "{} shows {:?} for row {}", column.name, cell, row);
            }
        }
    }
    let distinct: BTreeSet<u32> = released.rows.iter().copied().collect();
    prop_assert_eq!(distinct.len(), released.rows.len(), "a row is released twice");
    let left_out: Vec<u32> = all_rows(job).into_iter().filter(|row| !distinct.contains(row)).collect();
    let (gone, here) = (oracle::persons(table, &left_out), oracle::persons(table, &released.rows));
    prop_assert_eq!(gone.intersection(&here).count(), 0, "only some rows of a person are left out");
    prop_assert_eq!(done.persons.suppressed, gone.len() as u64);
    prop_assert_eq!(done.persons.n_out, here.len() as u64);
    prop_assert_eq!(done.persons.n_in, (here.len() + gone.len()) as u64);
    prop_assert!(done.persons.suppressed <= persons_allowed_to_leave(job));
    Ok(())
}

#[test]
fn a_suppressed_person_costs_as_many_as_there_are_persons() {
    // Persons 1, 2 and 3 are in the classes {1, 2} and {1, 3}, and person 4 can't be hidden: 4 + 4 + 1 * 4.
    let csv = "id,age,wish\n1,20,2\n2,20,2\n1,40,2\n3,40,2\n4,60,9\n";
    let spec = "k = 2\nmax_suppressed = 0.25\n[tables.t]\nfile = \"t.csv\"\nperson = \"id\"\n\
                [tables.t.columns]\nage = \"quasi\"\nwish = \"person_k\"\n";
    assert_eq!(Scenario::new(csv, spec).run().unwrap().loss.dm, 12.0);
}

#[test]
fn a_person_with_many_rows_deviates_from_their_k_once() {
    // A class of 3 persons who need 3, 1 and 1: 0 + 2 + 2.
    let csv = "id,age,wish\n1,20,3\n1,20,3\n1,20,3\n2,20,1\n3,20,1\n";
    let spec = "k = 1\n[tables.t]\nfile = \"t.csv\"\nperson = \"id\"\n\
                [tables.t.columns]\nage = \"quasi\"\nwish = \"person_k\"\n";
    assert_eq!(Scenario::new(csv, spec).run().unwrap().loss.k_deviation, 4.0);
}

#[test]
fn full_domain_leaves_out_persons_with_several_rows_within_the_limit() {
    // All but one person are in their twenties and thirties. Only the whole range would hide the other one.
    let mut csv = "id,age\n21,90\n21,20\n".to_owned();
    (0..20).for_each(|person| csv += &format!("{person},{}\n{person},{}\n", 20 + person % 5, 30 + person % 5));
    let spec = |max_suppressed: f64| {
        format!(
            "k = 2\nalgorithm = \"full-domain\"\nmax_suppressed = {max_suppressed:?}\n[tables.t]\nfile = \"t.csv\"\n\
             person = \"id\"\n[tables.t.columns]\nage = {{ role = \"quasi\", hierarchy = {{ steps = [5, 10] }} }}\n"
        )
    };
    let strict = Scenario::new(&csv, &spec(0.0)).run().unwrap();
    assert_eq!((strict.persons.suppressed, strict.loss.lm), (0, 1.0));
    let done = Scenario::new(&csv, &spec(0.05)).run().unwrap();
    assert_eq!(done.persons.suppressed, 1);
    assert!(done.loss.lm < 0.05, "{}", done.loss.lm);
}

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn a_release_is_true_and_satisfies_every_requirement_by_definition(job in job(Size::SMALL)) {
        match job.run() {
            Ok(done) => check_release(&job, &done)?,
            Err(error) => check_refusal(&job, &error)?,
        }
    }

    #[test]
    fn the_verifier_accepts_what_the_engine_makes(job in job(Size::SMALL)) {
        if let Ok(done) = job.run() {
            let n_persons = done.persons.n_out;
            match verify_release(done.release, &job.table, &job.requirements, SuppressionLimit::share(job.spec.max_suppressed)) {
                Ok(verified) => prop_assert_eq!(verified.findings().persons, n_persons),
                Err(violations) => prop_assert!(false, "{}", violations),
            }
        }
    }

    #[test]
    fn where_nobody_may_be_left_out_an_error_means_that_everybody_together_fails(mut job in job(Size::SMALL)) {
        job.spec.max_suppressed = 0.0;
        let rows = all_rows(&job);
        let together = oracle::stands(&job.table, &job.requirements, &rows, &rows);
        match job.run() {
            Ok(_) => prop_assert_ne!(together, Verdict::Fails),
            Err(error) => prop_assert_ne!(together, Verdict::Holds, "{}", error),
        }
    }

    #[test]
    fn reported_lm_ncp_and_uncertainty_are_those_of_the_released_cells(job in job(Size::SMALL)) {
        if let Ok(done) = job.run() {
            let naive = oracle::naive_loss(&job.table, &done.release, &job.requirements);
            assert_close("lm", done.loss.lm, naive.lm)?;
            assert_close("ncp", done.loss.ncp, naive.ncp)?;
            assert_close("uncertainty penalty", done.loss.uncertainty_penalty, naive.uncertainty_penalty)?;
            for (name, &lm) in &naive.columns {
                assert_close(name, done.loss.columns[name], lm)?;
            }
        }
    }

    #[test]
    fn reported_rank_and_entropy_count_the_rows_that_cells_cover(job in job(Size::SMALL)) {
        if let Ok(done) = job.run() {
            let naive = oracle::naive_spread(&job.table, &done.release);
            assert_close("rank", done.loss.rank.expect("one table"), naive.rank)?;
            assert_close("entropy", done.loss.entropy.expect("one table"), naive.entropy)?;
        }
    }

    #[test]
    fn reported_discernibility_and_class_size_are_those_of_the_released_classes(job in job(Size::SMALL)) {
        if let Ok(done) = job.run() {
            let naive = oracle::naive_loss(&job.table, &done.release, &job.requirements);
            assert_close("dm", done.loss.dm, naive.dm)?;
            assert_close("average class", done.loss.average_class, naive.average_class)?;
        }
    }

    #[test]
    fn reported_k_deviation_counts_each_person_of_a_class_once(job in job(Size::SMALL)) {
        if let Ok(done) = job.run() {
            let naive = oracle::naive_loss(&job.table, &done.release, &job.requirements);
            assert_close("k-deviation", done.loss.k_deviation, naive.k_deviation)?;
        }
    }
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn the_order_of_the_input_changes_nothing_whoever_partitions(mut job in job(Size::SMALL), seed in any::<u64>()) {
        for partitioner in PARTITIONERS {
            partitioner.set(&mut job.spec);
            let other = job.with_rows(&shuffled(job.table.n_rows, seed));
            match (job.run(), other.run()) {
                (Ok(done), Ok(again)) => {
                    prop_assert_eq!(shown(&job, &done), shown(&other, &again), "{}", partitioner.name);
                    prop_assert_eq!(done.loss, again.loss);
                    prop_assert_eq!(done.persons, again.persons);
                }
                (Err(_), Err(_)) => {}
                (one, other) => {
                    prop_assert!(false, "{}: {:?} and {:?}", partitioner.name, one.is_ok(), other.is_ok());
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn large_tables_are_released_truthfully_too(job in job(Size::LARGE)) {
        match job.run() {
            Ok(done) => {
                check_release(&job, &done)?;
                let verified = verify_release(done.release, &job.table, &job.requirements, SuppressionLimit::share(job.spec.max_suppressed));
                prop_assert!(verified.is_ok(), "{}", verified.unwrap_err());
            }
            Err(error) if persons_allowed_to_leave(&job) == 0 => {
                let rows = all_rows(&job);
                prop_assert!(is_unreachable(&error), "{}", error);
                prop_assert_ne!(oracle::stands(&job.table, &job.requirements, &rows, &rows), Verdict::Holds);
            }
            Err(error) => check_refusal(&job, &error)?,
        }
    }

    #[test]
    fn one_thread_and_eight_give_the_same_release(job in job(Size::LARGE)) {
        let one = threads(1).install(|| outcome(&job));
        let eight = threads(8).install(|| outcome(&job));
        prop_assert_eq!(one, eight);
    }
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn loss_is_never_under_the_optimum(job in job(Size::TINY)) {
        let least = oracle::least_lm(&job.table, &job.requirements, job.spec.max_suppressed);
        if let Ok(done) = job.run() {
            let least = least.expect("a partition that stands was found");
            prop_assert!(done.loss.lm >= least - 1e-9, "{} is less than {}", done.loss.lm, least);
            let least = oracle::least_spread(&job.table, &job.requirements, job.spec.max_suppressed);
            let least = least.expect("a partition that stands was found");
            let (rank, entropy) = (done.loss.rank.expect("one table"), done.loss.entropy.expect("one table"));
            prop_assert!(rank >= least.rank - 1e-9, "{} is less than {}", rank, least.rank);
            prop_assert!(entropy >= least.entropy - 1e-9, "{} is less than {}", entropy, least.entropy);
        }
    }

    #[test]
    fn what_is_refused_has_no_release_however_rows_are_parted(
        mut job in job(Size::TINY),
        partitioner in 0..PARTITIONERS.len(),
    ) {
        PARTITIONERS[partitioner].set(&mut job.spec);
        if let Err(error) = job.run() {
            prop_assert!(is_unreachable(&error), "{}", error);
            // If persons have several rows, classes that look the same count as one, so no partition is better than a
            // single class.
            let try_all = match job.table.person_column() {
                None => oracle::can_be_released,
                Some(_) => oracle::can_be_one_class,
            };
            let found = try_all(&job.table, &job.requirements, job.spec.max_suppressed);
            prop_assert_ne!(found, Verdict::Holds, "{}", error);
        }
    }

    #[test]
    fn with_k_alone_every_table_of_k_rows_is_released(job in plain_job(Size::TINY)) {
        let Requirement::K(k) = job.requirements[0] else { unreachable!("k comes first") };
        prop_assert_eq!(job.run().is_ok(), job.table.n_rows >= k as usize);
    }
}
