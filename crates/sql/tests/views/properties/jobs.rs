//! Random computed views. Each is read by every plan for every purpose, and recounted by independent code. `cargo xtask jobs
//! --of computed` runs many of them. A number always names the same view.

use kohort_sql::SqlError;
use kohort_testkit::jobs::{FaultKind, Judged, Tally, judge_drawn, shrunk_drawn};
use kohort_testkit::oracle::Verdict;

use super::oracle::Released;
use super::people::{self, Order, People, Purposes};
use super::{PLANS, block_on};
use crate::session::{engine, owner, rows, try_rows};

/// The name of this kind of job in `cargo xtask jobs`.
const WORD: &str = "computed";

/// Jobs that the ordinary tests run.
const N_JOBS: u64 = 120;

fn judge(people: &People) -> Judged {
    block_on(judged(people))
}

async fn judged(people: &People) -> Judged {
    let engine = engine();
    let mut session = owner(&engine);
    rows(&mut session, &people.tables(Order::AsWritten)).await;
    match try_rows(&mut session, &people.view()).await {
        Ok(_) => {}
        Err(reason @ SqlError::View(_)) => {
            return Judged::refused(&reason, people.can_be_one_class().then_some(Verdict::Holds));
        }
        Err(reason) => panic!("{reason}\n{}", people.view()),
    }
    let mut judged = Judged::released();
    let purposes = match people.purposes {
        Purposes::Together => vec!["care"],
        Purposes::Apart => people.purposes(),
    };
    for plan in PLANS {
        rows(&mut session, &format!("SET kohort.plan = '{plan}'")).await;
        for purpose in &purposes {
            let shown = match try_rows(&mut session, &format!("SELECT * FROM v PURPOSE {purpose}")).await {
                Ok(shown) => shown,
                Err(refused) => {
                    judged.fault(FaultKind::Rejected, format!("{plan}, {purpose}: {refused}"));
                    continue;
                }
            };
            let released = Released::new(people, purpose, &shown);
            judged.classes += released.classes().len() as u64;
            if let Err(fault) = released.check() {
                judged.fault(fault.kind, format!("{plan}, {purpose}: {}", fault.what));
            }
        }
    }
    judged
}

#[test]
fn random_computed_views_are_what_they_claim() {
    if std::env::var("KOHORT_JOBS_OF").is_ok_and(|asked| asked != WORD) {
        return;
    }
    let number = |name: &str| {
        std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap_or_else(|_| panic!("{name} is no number")))
    };
    let first = number("KOHORT_JOBS_FROM").unwrap_or(0);
    let mut tally = Tally::default();
    for job in first..first + number("KOHORT_JOBS").unwrap_or(N_JOBS) {
        let judged = judge_drawn(people::any(), job, judge);
        if !judged.faults.is_empty() {
            eprintln!("{WORD} job {job} failed; again: cargo xtask jobs --of {WORD} --from {job} --count 1");
            eprintln!("{}", shrunk_drawn(people::any(), job, judge).unwrap_or_default());
        }
        tally.add(&judged);
    }
    println!("{WORD}: {tally}");
    assert!(tally.is_clean(), "{tally}");
    assert!(tally.jobs < N_JOBS || tally.released * 2 > tally.jobs, "most views can be made: {tally}");
}
