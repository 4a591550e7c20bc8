//! What holds for every random table and its audiences, and what an attacker can do who has one release for all of
//! them.

use std::collections::{BTreeMap, BTreeSet};

use kohort_core::AnonymizeError;
use kohort_core::audiences::AnonymizedForAudiences;
use kohort_model::spec::Order;
use kohort_model::{Audience, Audiences, Coalition, Column, Requirement, Role, Table, ValueType};
use kohort_testkit::generate::audiences::{AudiencesJob, Onlooker, audiences_job};
use kohort_testkit::generate::{Size, config};
use kohort_testkit::oracle::{self, Labels, Verdict};
use kohort_testkit::random::Random;
use kohort_verify::{RowsOf, Skipped, SuppressionLimit, verify_alone, verify_release};
use proptest::prelude::*;

/// Sets of private rows whose released rows look the same in some columns.
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

/// The positions of private rows in the release.
fn positions(released: &[u32], rows: &[u32]) -> Vec<usize> {
    rows.iter().filter_map(|row| released.iter().position(|other| other == row)).collect()
}

fn is_unreachable(error: &AnonymizeError) -> bool {
    matches!(
        error,
        AnonymizeError::OneValue { .. }
            | AnonymizeError::TooFewPersons { .. }
            | AnonymizeError::OwnKTooLarge { .. }
            | AnonymizeError::TooFrequent { .. }
    )
}

proptest! {
    #![proptest_config(config(96))]

    #[test]
    fn every_audience_is_satisfied_by_one_release(asked in audiences_job(Size::SMALL)) {
        let AudiencesJob { job, audiences } = &asked;
        let done = match asked.run() {
            Ok(done) => done,
            Err(error) => {
                prop_assert!(is_unreachable(&error), "{}", error);
                // A release in which all rows look the same to every audience would have been enough, and it tells an
                // audience nothing about columns that it does not know.
                let all: Vec<u32> = (0..job.table.n_rows as u32).collect();
                let has_one_value = matches!(error, AnonymizeError::OneValue { .. });
                if !has_one_value && oracle::persons(&job.table, &all).len() <= 10 {
                    let union = audiences.union();
                    let is_hidden = |asked: &Requirement| asked.column().is_some_and(|column| union.contains(&column));
                    let requirements = asked.onlookers().into_iter().flat_map(|onlooker| onlooker.requirements);
                    let requirements: Vec<Requirement> = requirements.filter(|asked| !is_hidden(asked)).collect();
                    let found = oracle::can_be_one_class(&job.table, &requirements, job.spec.max_suppressed);
                    prop_assert_ne!(found, Verdict::Holds, "{}", error);
                }
                return Ok(());
            }
        };
        let release = &done.anonymized.release;
        let released = &release.tables[0].rows;
        let union = audiences.union();
        for Onlooker { name, known, requirements } in asked.onlookers() {
            for class in classes(&job.table, &done, &known) {
                for requirement in &requirements {
                    let hidden = requirement.column().filter(|column| union.contains(column));
                    if let Some(column) = hidden {
                        let labels = Labels::new(&job.table, release, column);
                        let holds = labels.satisfies(requirement, &positions(released, &class));
                        prop_assert!(holds, "{:?} of {} in {:?}", requirement, &name, class);
                    } else {
                        let verdict = oracle::judge(&job.table, requirement, &class, released);
                        prop_assert_ne!(verdict, Verdict::Fails, "{:?} of {} in {:?}", requirement, &name, class);
                    }
                }
            }
        }
        let verified = verify_release(release.clone(), &job.table, audiences, SuppressionLimit::share(job.spec.max_suppressed));
        prop_assert!(verified.is_ok(), "{}", verified.unwrap_err());
        let found = verified.unwrap().findings().clone();
        for (found, Onlooker { name, known, .. }) in found.audiences.iter().chain(&found.coalitions[1..]).zip(asked.named()) {
            prop_assert_eq!(&found.audience, &name);
            let classes = classes(&job.table, &done, &known);
            for learned in &found.learned {
                let labels = Labels::new(&job.table, release, &learned.column);
                let of_classes = || classes.iter().map(|class| positions(released, class));
                let disjoint = of_classes().filter_map(|class| labels.disjoint(&class)).min();
                prop_assert_eq!(learned.l, disjoint.map(|n| n as u64));
                let distance = of_classes().map(|class| labels.distance(&class)).fold(0.0, f64::max);
                prop_assert!((learned.t - distance).abs() < 1e-9);
                let classes: Vec<Vec<usize>> = of_classes().collect();
                let certain: BTreeSet<&str> = classes.iter().flat_map(|class| labels.certain(class)).collect();
                prop_assert_eq!(learned.certain, certain.len() as u64);
            }
        }
        // Asking for one more than was reached is refused, for every coalition.
        for (place, reached) in found.coalitions.iter().enumerate() {
            let mut more = audiences.clone();
            let requirements = vec![Requirement::K(reached.k as u32 + 1)];
            let members = match place {
                0 => audiences.each.iter().map(|audience| audience.name.clone()).collect(),
                _ => asked.named_coalitions()[place - 1].members.clone(),
            };
            let name = (place > 0).then(|| "zealous".to_owned());
            more.coalitions.push(Coalition { name, members, requirements });
            prop_assert!(verify_release(release.clone(), &job.table, &more, SuppressionLimit::share(job.spec.max_suppressed)).is_err());
        }
        for (place, learned) in found.audiences.iter().enumerate().flat_map(|(place, found)| found.learned.iter().map(move |learned| (place, learned))) {
            let Some(l) = learned.l else { continue };
            let mut more = audiences.clone();
            let column = learned.column.clone();
            more.each[place].requirements.push(Requirement::DistinctL { column, l: l as u32 + 1 });
            prop_assert!(verify_release(release.clone(), &job.table, &more, SuppressionLimit::share(job.spec.max_suppressed)).is_err());
        }
    }

    #[test]
    fn threads_change_nothing_for_audiences(job in audiences_job(Size::SMALL)) {
        let shown = |n_threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            let done = pool.install(|| job.run()).ok()?;
            Some((oracle::released_cells(&job.job.table, &done.anonymized.release), done.saved))
        };
        prop_assert_eq!(shown(1), shown(8));
    }

    #[test]
    fn the_order_of_rows_changes_nothing_for_audiences(mut job in audiences_job(Size::SMALL), seed in any::<u64>()) {
        job.job.spec.order = Order::Sorted;
        let mut order: Vec<usize> = (0..job.job.table.n_rows).collect();
        let mut random = Random::new(seed);
        for last in (1..order.len()).rev() {
            order.swap(last, random.below(last + 1));
        }
        let shown = |job: &AudiencesJob| {
            job.run().ok().map(|done| oracle::released_cells(&job.job.table, &done.anonymized.release))
        };
        let turned = AudiencesJob { job: job.job.with_rows(&order), audiences: job.audiences.clone() };
        prop_assert_eq!(shown(&job), shown(&turned));
    }
}

#[test]
fn released_numbers_that_may_be_nodes_of_a_hierarchy_are_not_counted_without_it() {
    let audience = |column: &str| Audience {
        name: column.to_owned(),
        quasi: vec![column.to_owned()],
        requirements: vec![Requirement::K(2)],
    };
    let audiences = Audiences::new(vec![audience("job"), audience("pay")]);
    // Every label is in two rows, so each label is a class of the audience that knows the column.
    let skipped = |value_type: ValueType, labels: &[&str]| {
        let cells = labels.iter().flat_map(|&label| [Some(label); 2]);
        let pay = Column::from_cells("pay", Role::Quasi, cells).typed(value_type);
        let n_rows = pay.ids.len();
        let job = Column::from_cells("job", Role::Quasi, vec![Some("cook"); n_rows]);
        let file = Table { name: "t".to_owned(), columns: vec![job, pay], n_rows, person: None };
        let found = verify_alone(&file, &[0, 1], &audiences, RowsOf::PersonsEach).unwrap();
        found.skipped.contains(&Skipped::Labels { column: "pay".to_owned() })
    };
    assert!(!skipped(ValueType::Decimal, &["1.5", "2.5", "[1,2]"]));
    // Two values of a hierarchy, or one value with two spellings.
    assert!(skipped(ValueType::Decimal, &["1.5", "1.50"]));
    // A range over everything tells nothing. A node of a hierarchy that happens to cover all others does tell
    // something.
    assert!(skipped(ValueType::Decimal, &["1.5", "2.5", "[1,3]"]));
    // A day stands for midnight, or for all timestamps of that day.
    assert!(skipped(ValueType::Timestamp, &["1964-01-01"]));
    assert!(!skipped(ValueType::Timestamp, &["1964-01-01T07:30:00"]));
}
