//! [`setting`]: random settings of views over data that changes.

use kohort_core::changing::{Closing, Departures};
use kohort_model::{Distance, Requirement};
use proptest::prelude::*;

use crate::attacks::snapshots::{Rule, Setting, Tuples};

fn l(column: &str, l: u32) -> Requirement {
    Requirement::DistinctL { column: column.to_owned(), l }
}

fn requirements() -> Vec<(usize, Vec<Requirement>)> {
    let column = || "c0".to_owned();
    let t = Requirement::TCloseness { column: column(), t: 0.35, distance: Distance::Equal };
    vec![
        (0, vec![Requirement::K(3)]),
        (1, vec![Requirement::K(2)]),
        (1, vec![Requirement::K(2), l("c0", 2)]),
        (1, vec![Requirement::K(3), l("c0", 3)]),
        (2, vec![Requirement::K(2), l("c0", 2), l("c1", 2)]),
        (1, vec![Requirement::K(2), Requirement::EntropyL { column: column(), l: 1.8 }]),
        (1, vec![Requirement::K(2), Requirement::RecursiveCL { column: column(), c: 2.0, l: 2 }]),
        (1, vec![Requirement::K(3), t]),
        (1, vec![Requirement::K(2), Requirement::Alpha { column: column(), alpha: 0.6 }]),
        (1, vec![Requirement::K(2), Requirement::Beta { column: column(), beta: 1.0 }]),
        (1, vec![Requirement::K(2), Requirement::EnhancedBeta { column: column(), beta: 1.0 }]),
    ]
}

/// Random settings.
pub fn setting() -> impl Strategy<Value = Setting> {
    let own_k = prop::sample::select(vec![vec![2], vec![2, 3, 4], vec![0, 1, 2, 2, 5]]);
    let departures = prop::sample::select(vec![Departures::Batch, Departures::Withdraw]);
    let closing = prop::sample::select(vec![Closing::Earliest, Closing::BySize(2), Closing::BySize(5)]);
    let tuples = prop::sample::select(vec![Tuples::Stay, Tuples::Change]);
    (prop::sample::select(requirements()), own_k, departures, closing, tuples).prop_map(
        |((n_columns, requirements), own_k, departures, closing, tuples)| {
            let rule = Rule::Epochs(departures, closing);
            Setting { requirements, n_columns, own_k, rule, tuples }
        },
    )
}
