//! What holds for every random table and its audiences, and what an attacker of one release for all of them can do.

use std::collections::{BTreeMap, BTreeSet};

use kohort_core::AnonymizeError;
use kohort_core::audiences::{AnonymizedForAudiences, anonymize_audiences};
use kohort_model::spec::{Algorithm, Order};
use kohort_model::{Audience, Audiences, Coalition, Distance, Requirement, Role, Silent, Steer, Table};
use kohort_testkit::generate::{Job, Size, config, job};
use kohort_testkit::oracle::{self, Labels, Verdict};
use kohort_testkit::random::Random;
use kohort_verify::{SuppressionLimit, verify_release};
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
    Audiences::new(each).with_collusion_k(collusion_k)
}

/// Members by their bits, a k, and whether what is asked of sensitive columns is asked here, too.
type CoalitionDraft = (u8, u32, bool);

/// Coalitions of some of the audiences: what they ask of sensitive columns is what the job asks.
fn coalitions(job: &Job, audiences: &Audiences, drafts: &[CoalitionDraft]) -> Vec<Coalition> {
    let coalition = |(number, &(bits, k, all)): (usize, &CoalitionDraft)| {
        let names = audiences.each.iter().map(|audience| audience.name.clone()).enumerate();
        let members: Vec<String> =
            names.filter(|(place, _)| bits >> (place % 8) & 1 == 1).map(|(_, name)| name).collect();
        let asked = job.requirements.iter().filter(|asked| all && !matches!(asked, Requirement::K(_))).cloned();
        let requirements = std::iter::once(Requirement::K(k)).chain(asked).collect();
        (members.len() > 1).then(|| Coalition { name: Some(format!("coalition {number}")), members, requirements })
    };
    drafts.iter().enumerate().filter_map(coalition).collect()
}

/// An audience, a column it must not learn, how many disjoint labels and how close, where it does not know the column.
type HiddenDraft = (usize, usize, u32, Option<f64>);

fn hide(job: &Job, audiences: &mut Audiences, drafts: &[HiddenDraft]) {
    let quasi = job.table.with_role(Role::Quasi);
    let n_audiences = audiences.each.len();
    for &(audience, column, l, t) in drafts {
        let audience = &mut audiences.each[audience % n_audiences];
        let name = &job.table.columns[quasi[column % quasi.len()]].name;
        if !audience.quasi.contains(name) {
            audience.requirements.push(Requirement::DistinctL { column: name.clone(), l });
            let t = t.map(|t| Requirement::TCloseness { column: name.clone(), t, distance: Distance::Equal });
            audience.requirements.extend(t);
        }
    }
}

fn coalition_drafts() -> impl Strategy<Value = Vec<CoalitionDraft>> {
    prop::collection::vec((any::<u8>(), 1u32..5, any::<bool>()), 0..3)
}

fn hidden_drafts() -> impl Strategy<Value = Vec<HiddenDraft>> {
    prop::collection::vec((0usize..5, 0usize..9, 1u32..4, prop::option::of(0.2f64..1.0)), 0..3)
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

/// The places of rows of the private table in the release.
fn positions(released: &[u32], rows: &[u32]) -> Vec<usize> {
    rows.iter().filter_map(|row| released.iter().position(|other| other == row)).collect()
}

/// Coalitions that have a name.
fn named_coalitions(audiences: &Audiences) -> Vec<&Coalition> {
    audiences.coalitions.iter().filter(|coalition| coalition.name.is_some()).collect()
}

type View = (String, Vec<String>, Vec<Requirement>);

/// Audiences and coalitions with a name, each with the columns it knows and what it asks.
fn named(audiences: &Audiences) -> Vec<View> {
    let each = audiences.each.iter().map(|one| (one.name.clone(), one.quasi.clone(), one.requirements.clone()));
    each.chain(named_coalitions(audiences).into_iter().map(|coalition| view(audiences, coalition))).collect()
}

fn view(audiences: &Audiences, coalition: &Coalition) -> View {
    let known = audiences.known_to(coalition).into_iter().map(str::to_owned).collect();
    (coalition.word().to_owned(), known, coalition.requirements.clone())
}

/// The same with all audiences together.
fn views(audiences: &Audiences) -> Vec<View> {
    let of_all = audiences.coalitions.iter().filter(|coalition| coalition.name.is_none());
    named(audiences).into_iter().chain(of_all.map(|coalition| view(audiences, coalition))).collect()
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
    fn every_audience_is_satisfied_by_one_release(
        job in job(Size::SMALL),
        drafts in drafts(),
        collusion_k in prop::option::of(2u32..4),
        coalition_drafts in coalition_drafts(),
        hidden_drafts in hidden_drafts(),
        steer in prop::sample::select(vec![Steer::All, Steer::Common]),
    ) {
        let job = for_audiences(job);
        let mut audiences = audiences(&job, &drafts, collusion_k);
        audiences.coalitions.extend(coalitions(&job, &audiences, &coalition_drafts));
        hide(&job, &mut audiences, &hidden_drafts);
        audiences.steer = steer;
        let done = match run(&job, &audiences) {
            Ok(done) => done,
            Err(error) => {
                prop_assert!(is_unreachable(&error), "{}", error);
                // A release that shows everybody alike to everybody would have done, and says nothing of columns that
                // are known to others.
                let all: Vec<u32> = (0..job.table.n_rows as u32).collect();
                let has_one_value = matches!(error, AnonymizeError::OneValue { .. });
                if !has_one_value && oracle::persons(&job.table, &all).len() <= 10 {
                    let union = audiences.union();
                    let is_hidden = |asked: &Requirement| asked.column().is_some_and(|column| union.contains(&column));
                    let asked = views(&audiences).into_iter().flat_map(|(_, _, requirements)| requirements);
                    let asked: Vec<Requirement> = asked.filter(|asked| !is_hidden(asked)).collect();
                    let found = oracle::can_be_one_class(&job.table, &asked, job.spec.max_suppressed);
                    prop_assert_ne!(found, Verdict::Holds, "{}", error);
                }
                return Ok(());
            }
        };
        let release = &done.anonymized.release;
        let released = &release.tables[0].rows;
        let union = audiences.union();
        for (name, known, requirements) in views(&audiences) {
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
        let verified = verify_release(release.clone(), &job.table, &audiences, SuppressionLimit::share(job.spec.max_suppressed));
        prop_assert!(verified.is_ok(), "{}", verified.unwrap_err());
        let found = verified.unwrap().findings().clone();
        for (found, (name, known, _)) in found.audiences.iter().chain(&found.coalitions[1..]).zip(named(&audiences)) {
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
        // One more than was reached is refused, whoever asks for it.
        for (place, reached) in found.coalitions.iter().enumerate() {
            let mut more = audiences.clone();
            let requirements = vec![Requirement::K(reached.k as u32 + 1)];
            let members = match place {
                0 => audiences.each.iter().map(|audience| audience.name.clone()).collect(),
                _ => named_coalitions(&audiences)[place - 1].members.clone(),
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
    fn threads_change_nothing_for_audiences(
        job in job(Size::SMALL),
        drafts in drafts(),
        coalition_drafts in coalition_drafts(),
        hidden_drafts in hidden_drafts(),
        steer in prop::sample::select(vec![Steer::All, Steer::Common]),
    ) {
        let job = for_audiences(job);
        let mut audiences = audiences(&job, &drafts, None);
        audiences.coalitions = coalitions(&job, &audiences, &coalition_drafts);
        hide(&job, &mut audiences, &hidden_drafts);
        audiences.steer = steer;
        let shown = |n_threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            let done = pool.install(|| run(&job, &audiences)).ok()?;
            Some((oracle::released_cells(&job.table, &done.anonymized.release), done.saved))
        };
        prop_assert_eq!(shown(1), shown(8));
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
