//! What holds for every random table and its audiences, and what an attacker of one release for all of them can do.

use std::collections::BTreeMap;

use kohort_core::AnonymizeError;
use kohort_core::audiences::{AnonymizedForAudiences, anonymize_audiences};
use kohort_model::spec::{Algorithm, Order};
use kohort_model::{Audience, Audiences, Column, Requirement, Role, Silent, Table, ValueType};
use kohort_testkit::generate::{Job, Size, config, job};
use kohort_testkit::oracle::{self, Verdict};
use kohort_testkit::random::Random;
use kohort_verify::verify_release;
use proptest::prelude::*;

/// Bits of columns, and how much each audience's k differs from the release's.
type AudienceDraft = (u8, u32);

/// Audiences that together know every quasi column.
fn audiences(job: &Job, drafts: &[AudienceDraft], collusion_k: Option<u32>) -> Audiences {
    let quasi = job.table.with_role(Role::Quasi);
    let mut each: Vec<Audience> = Vec::new();
    for (number, &(bits, more)) in drafts.iter().enumerate() {
        let is_last = number + 1 == drafts.len();
        let knows = |place: usize, name: &String| {
            let is_known = each.iter().any(|audience| audience.quasi.contains(name));
            bits >> (place % 8) & 1 == 1 || (is_last && !is_known)
        };
        let names = quasi.iter().map(|&column| job.table.columns[column].name.clone());
        let mut columns: Vec<String> =
            names.enumerate().filter(|(place, name)| knows(*place, name)).map(|(_, name)| name).collect();
        if columns.is_empty() {
            columns.push(job.table.columns[quasi[number % quasi.len()]].name.clone());
        }
        let mut requirements = job.requirements.clone();
        for requirement in &mut requirements {
            if let Requirement::K(k) = requirement {
                *k += more;
            }
        }
        each.push(Audience { name: format!("audience {number}"), quasi: columns, requirements });
    }
    Audiences { each, collusion_k }
}

fn drafts() -> impl Strategy<Value = Vec<AudienceDraft>> {
    prop::collection::vec((any::<u8>(), 0u32..3), 1..5)
}

/// A job that audiences can have: full-domain recoding is refused for them.
fn for_audiences(mut job: Job) -> Job {
    if job.spec.algorithm == Algorithm::FullDomain {
        job.spec.algorithm = Algorithm::Mondrian;
    }
    job
}

fn run(job: &Job, audiences: &Audiences) -> Result<AnonymizedForAudiences, AnonymizeError> {
    anonymize_audiences(&job.table, &job.spec, audiences, &Silent)
}

/// Released rows, as rows of the private table, that look the same in some columns.
fn classes(table: &Table, done: &AnonymizedForAudiences, columns: &[String]) -> Vec<Vec<u32>> {
    let release = &done.anonymized.release;
    let released = &release.tables[0];
    let known: Vec<usize> =
        (0..released.columns.len()).filter(|&column| columns.contains(&released.columns[column].name)).collect();
    let mut classes: BTreeMap<Vec<Option<String>>, Vec<u32>> = BTreeMap::new();
    for (cells, &row) in oracle::released_cells(table, release).iter().zip(&released.rows) {
        classes.entry(known.iter().map(|&column| cells[column].clone()).collect()).or_default().push(row);
    }
    classes.into_values().collect()
}

fn is_unreachable(error: &AnonymizeError) -> bool {
    matches!(
        error,
        AnonymizeError::TooFewPersons { .. } | AnonymizeError::OwnKTooLarge { .. } | AnonymizeError::TooFrequent { .. }
    )
}

proptest! {
    #![proptest_config(config(96))]

    #[test]
    fn every_audience_is_satisfied_by_one_release(
        job in job(Size::SMALL),
        drafts in drafts(),
        collusion_k in prop::option::of(2u32..4),
    ) {
        let job = for_audiences(job);
        let audiences = audiences(&job, &drafts, collusion_k);
        let done = match run(&job, &audiences) {
            Ok(done) => done,
            Err(error) => {
                prop_assert!(is_unreachable(&error), "{}", error);
                return Ok(());
            }
        };
        let released = &done.anonymized.release.tables[0].rows;
        for audience in &audiences.each {
            for class in classes(&job.table, &done, &audience.quasi) {
                for requirement in &audience.requirements {
                    let verdict = oracle::judge(&job.table, requirement, &class, released);
                    prop_assert_ne!(verdict, Verdict::Fails, "{:?} of {} in {:?}", requirement, &audience.name, class);
                }
            }
        }
        if let Some(k) = collusion_k {
            let union: Vec<String> = audiences.union().into_iter().map(str::to_owned).collect();
            for class in classes(&job.table, &done, &union) {
                prop_assert!(oracle::persons(&job.table, &class).len() >= k as usize);
            }
        }
        let verified = verify_release(done.anonymized.release, &job.table, &audiences);
        prop_assert!(verified.is_ok(), "{}", verified.unwrap_err());
    }

    #[test]
    fn the_order_of_rows_changes_nothing_for_audiences(
        job in job(Size::SMALL),
        drafts in drafts(),
        seed in any::<u64>(),
    ) {
        let mut job = for_audiences(job);
        job.spec.order = Order::Sorted;
        let mut order: Vec<usize> = (0..job.table.n_rows).collect();
        let mut random = Random::new(seed);
        for last in (1..order.len()).rev() {
            order.swap(last, random.below(last + 1));
        }
        let audiences = audiences(&job, &drafts, None);
        let shown = |job: &Job| {
            run(job, &audiences).ok().map(|done| oracle::released_cells(&job.table, &done.anonymized.release))
        };
        prop_assert_eq!(shown(&job), shown(&job.with_rows(&order)));
    }
}

fn table(columns: &[(&str, Role)], rows: &[&str]) -> Table {
    let column = |(place, &(name, role)): (usize, &(&str, Role))| {
        let value_type = if role == Role::Quasi { ValueType::Integer } else { ValueType::Text };
        Column::from_cells(name, role, rows.iter().map(|row| row.split(',').nth(place))).typed(value_type)
    };
    let columns = columns.iter().enumerate().map(column).collect();
    Table { name: "t".to_owned(), columns, n_rows: rows.len(), person: None }
}

/// Somebody who knows the cells of one person in some columns, and looks for rows of the release that may be theirs.
fn candidates(table: &Table, done: &AnonymizedForAudiences, person: usize, columns: &[&str]) -> usize {
    let release = &done.anonymized.release;
    let released = &release.tables[0];
    let fits = |cells: &&Vec<Option<String>>| {
        released.columns.iter().zip(*cells).filter(|(column, _)| columns.contains(&column.name.as_str())).all(
            |(column, cell)| {
                let original = &table.columns[column.source];
                oracle::covers(original, cell.as_deref(), original.cell(person))
            },
        )
    };
    oracle::released_cells(table, release).iter().filter(fits).count()
}

#[test]
fn who_knows_the_columns_of_one_audience_finds_k_candidates_and_who_knows_all_may_find_one() {
    let columns = [("job", Role::Quasi), ("age", Role::Quasi), ("car", Role::Quasi), ("faulty", Role::Sensitive)];
    // Codes of jobs and of cars: alike jobs have cars that differ.
    let rows = ["1,30,1,no", "2,30,8,yes", "8,30,2,no", "9,30,9,no"];
    let table = table(&columns, &rows);
    let audience = |columns: &[&str]| Audience {
        name: columns.join(" "),
        quasi: columns.iter().map(|&column| column.to_owned()).collect(),
        requirements: vec![Requirement::K(2)],
    };
    let asked =
        |collusion_k| Audiences { each: vec![audience(&["job", "age"]), audience(&["age", "car"])], collusion_k };
    let spec =
        kohort_model::Spec::parse("k = 2\n[tables.t]\nfile = \"t.csv\"\ncolumns = { job = \"quasi\" }\n").unwrap();
    let release = |collusion_k| anonymize_audiences(&table, &spec, &asked(collusion_k), &Silent).unwrap();
    let (alone, together) = (release(None), release(Some(2)));
    let mut someone_is_found = false;
    for person in 0..rows.len() {
        for done in [&alone, &together] {
            assert!(candidates(&table, done, person, &["job", "age"]) >= 2);
            assert!(candidates(&table, done, person, &["age", "car"]) >= 2);
        }
        // Two audiences that put together what they know are what `collusion` is for.
        assert!(candidates(&table, &together, person, &["job", "age", "car"]) >= 2);
        someone_is_found |= candidates(&table, &alone, person, &["job", "age", "car"]) < 2;
    }
    assert!(someone_is_found, "nothing is asked of both audiences together");
}
