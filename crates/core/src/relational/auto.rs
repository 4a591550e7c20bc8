//! `auto` for several tables: the least loss within a reasonable wait.
//!
//! Gathers classes, and also runs MiRaCle and MiRaCleX with the settings of the spec or else their defaults; the
//! classes that lose least are taken. If there are many persons, the three compete on a part of them, neighbours in
//! the order of similarity, and the winner runs on all.
//!
//! # Guarantee
//! Never a higher loss than MiRaCle or MiRaCleX with the same settings, if there are at most [`TRIED`] different
//! persons and nothing but numbers of persons is asked.
//! # Cost
//! that of gathering, and up to [`TRIED`] persons the two passes, which stop as soon as they have lost more than that

use kohort_model::Silent;
use kohort_model::spec::Pairing;

use super::cost::{Basis, Counting, Meter, Scratch};
use super::gather::gather;
use super::leftovers::place;
use super::miracle::{TreesTask, pass};
use super::representative::Representative;
use crate::encode::Encoded;

/// If there are more different persons than this, every way is tried on a part of them, and the best way runs on
/// all.
pub(super) const TRIED: usize = 1 << 13;

/// How classes are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Each class around a person.
    Gather,
    /// The single pass of the paper.
    Pass(Basis, Pairing),
}

const WAYS: [Way; 4] = [
    Way::Gather,
    Way::Pass(Basis::Subtree, Pairing::Optimal),
    Way::Pass(Basis::Subtree, Pairing::Greedy),
    Way::Pass(Basis::Node, Pairing::Greedy),
];

pub(super) fn least_loss(task: &TreesTask<'_>, encoded: &[Encoded<'_>]) -> Vec<Representative> {
    let n_persons = task.order.len();
    let n_tried = n_persons.min(TRIED);
    let mut best: Option<(f64, Way, Vec<Representative>)> = None;
    let part = TreesTask {
        order: &task.order[(n_persons - n_tried) / 2..][..n_tried],
        allowance: (task.allowance as f64 * n_tried as f64 / n_persons.max(1) as f64) as u64,
        progress: if n_tried < n_persons { &Silent } else { task.progress },
        ..*task
    };
    let n_cells = part.n_cells();
    let asked = task.clustering.pairing;
    let fits = |way: &Way| !matches!(way, Way::Pass(_, pairing) if asked.is_some_and(|asked| asked != *pairing));
    for way in WAYS.into_iter().filter(fits) {
        let least = best.as_ref().map_or(f64::INFINITY, |(least, ..)| *least);
        let Some(classes) = find(&part, way, encoded, least) else { continue };
        let loss = loss(&classes, n_cells);
        if loss < least {
            best = Some((loss, way, classes));
        }
    }
    match best {
        Some((_, _, classes)) if n_tried == n_persons => classes,
        Some((_, way, _)) => find(task, way, encoded, f64::INFINITY).unwrap_or_default(),
        None => Vec::new(),
    }
}

/// The classes found one way; `None` as soon as it is certain that they lose more than `most`.
fn find(task: &TreesTask<'_>, way: Way, encoded: &[Encoded<'_>], most: f64) -> Option<Vec<Representative>> {
    let pairing = task.clustering.pairing;
    let meter = |basis, pairing| Meter::new(task.forest, encoded, basis, pairing, Counting::No);
    let mut scratch = Scratch::default();
    let (meter, clusters) = match way {
        Way::Gather => {
            let meter = meter(Basis::Subtree, pairing.unwrap_or(Pairing::Optimal));
            let clusters = gather(task, &meter, &mut scratch);
            (meter, clusters)
        }
        Way::Pass(basis, pairing) => {
            let meter = meter(basis, pairing);
            let clusters = pass(task, &meter, &mut scratch, most)?;
            (meter, clusters)
        }
    };
    Some(place(task, &meter, &mut scratch, clusters))
}

/// The loss of all persons together. A person in no class loses everything.
fn loss(classes: &[Representative], n_cells: f64) -> f64 {
    let kept: f64 = classes.iter().map(Representative::n_cells).sum();
    classes.iter().map(Representative::loss).sum::<f64>() + n_cells - kept
}
