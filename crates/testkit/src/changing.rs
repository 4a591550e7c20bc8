//! Views over data that changes: random histories, and somebody who kept every snapshot of one.

pub mod attacker;
pub mod history;

use kohort_core::changing::{Closing, Departures};
use kohort_model::{Distance, Requirement};
use proptest::prelude::*;

use attacker::{Block, candidates, stands};
use history::{N_VALUES, Rule, Setting, Tuples};

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

/// The k and l that are asked of everybody.
fn k_and_l(setting: &Setting) -> (u32, Vec<(usize, u32)>) {
    let mut asked = (2, Vec::new());
    for requirement in &setting.requirements {
        match requirement {
            Requirement::K(k) => asked.0 = *k,
            Requirement::DistinctL { column, l } => asked.1.push((usize::from(column == "c1"), *l)),
            Requirement::PersonK { .. }
            | Requirement::EntropyL { .. }
            | Requirement::RecursiveCL { .. }
            | Requirement::TCloseness { .. }
            | Requirement::Alpha { .. }
            | Requirement::Beta { .. }
            | Requirement::EnhancedBeta { .. } => {}
        }
    }
    asked
}

/// Whose row, or whose values, the attacker makes out.
pub fn breached(setting: &Setting, blocks: &[Block]) -> Vec<u64> {
    let (k, l) = k_and_l(setting);
    let mut breached = Vec::new();
    for block in blocks {
        if !stands(&block.rows, &setting.requirements, N_VALUES) {
            breached.extend(block.persons());
            continue;
        }
        for row in block.rows.iter().filter(|_| setting.tuples == Tuples::Stay) {
            let possible = candidates(blocks, row.person);
            let n_like = block.rows.iter().filter(|other| possible.contains(&other.tuple)).count();
            let n_values = |column: usize| {
                let mut values: Vec<u32> = possible.iter().map(|tuple| tuple[column]).collect();
                values.sort_unstable();
                values.dedup();
                values.len()
            };
            if n_like < k.max(row.k) as usize || l.iter().any(|&(column, l)| n_values(column) < l as usize) {
                breached.push(row.person);
            }
        }
    }
    breached
}
