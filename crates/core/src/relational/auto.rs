//! `auto` for several tables: the least loss within a reasonable wait.
//!
//! Gathers classes, and also runs MiRaCle and MiRaCleX with the settings of the spec or else their defaults. If the best
//! classes leave out more rows of a child table than the spec allows, rows of that table are made worth more (see `limits`)
//! until they do not. The classes with the least objective are taken: the loss (LM), and for each child table with a limit
//! the share of its rows that are left out beyond it. If there are many persons, all this is tried on a part of them, stretches of the order of
//! similarity, and the winner runs on all.
//!
//! # Guarantee
//! Never a higher objective than MiRaCle or MiRaCleX with the same settings, if there are at most [`TRIED`] different
//! persons and nothing but numbers of persons is asked.
//! # Cost
//! that of gathering, and up to [`TRIED`] persons the two passes, which stop as soon as they have lost more than that

use kohort_model::Silent;
use kohort_model::spec::Pairing;

use super::cost::{Basis, Counting, Meter, Scratch};
use super::gather::gather;
use super::leftovers::place;
use super::limits::Limits;
use super::miracle::{TreesTask, pass};
use super::representative::Representative;
use crate::encode::Encoded;

/// If there are more different persons than this, every way is tried on a part of them, and the best way runs on
/// all.
pub(super) const TRIED: usize = 1 << 13;

/// The part consists of this many stretches of neighbours.
const STRETCHES: usize = 8;

/// On a part, limits are kept with this share of what they allow to spare, because the whole may leave out a little more.
const ROOM: f64 = 0.05;

/// After this many steps that improve nothing, rows are made worth no more.
const IN_VAIN: usize = 3;

/// How classes are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
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

/// Classes, and how they were found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) way: Way,
    /// What a row that is left out was worth, by kind.
    pub(super) worths: Vec<f64>,
    pub(super) classes: Vec<Representative>,
}

pub(super) fn least_loss(task: &TreesTask<'_>, encoded: &[Encoded<'_>], limits: &Limits) -> Found {
    let n_persons = task.order.len();
    let stretches = stretches(task.order);
    let is_all = stretches.len() == n_persons;
    let part = TreesTask {
        order: &stretches,
        allowance: (task.allowance as f64 * stretches.len() as f64 / n_persons.max(1) as f64) as u64,
        progress: if is_all { task.progress } else { &Silent },
        ..*task
    };
    let trial = Trial { task: &part, limits, n_cells: part.n_cells(), room: if is_all { 0.0 } else { ROOM } };
    let asked = task.clustering.pairing;
    let fits = |way: &Way| !matches!(way, Way::Pass(_, pairing) if asked.is_some_and(|asked| asked != *pairing));
    let mut best: Option<(f64, Found)> = None;
    for way in WAYS.into_iter().filter(fits) {
        let least = best.as_ref().map_or(f64::INFINITY, |(least, _)| *least);
        let worths = limits.cells();
        let Some(classes) = find(&part, way, encoded, &worths, least) else { continue };
        let objective = trial.objective(&classes);
        if objective < least {
            best = Some((objective, Found { way, worths, classes }));
        }
    }
    let Some((mut least, mut best)) = best else {
        return Found { way: Way::Gather, worths: limits.cells(), classes: Vec::new() };
    };
    let (mut worths, mut excess) = (best.worths.clone(), trial.excess(&best.classes));
    let mut n_in_vain = 0;
    while n_in_vain < IN_VAIN {
        let Some(raised) = limits.raised(&worths, &excess) else { break };
        worths = raised;
        let Some(classes) = find(&part, best.way, encoded, &worths, f64::INFINITY) else { break };
        excess = trial.excess(&classes);
        let objective = trial.objective(&classes);
        if objective < least {
            (least, best) = (objective, Found { way: best.way, worths: worths.clone(), classes });
            n_in_vain = 0;
        } else {
            n_in_vain += 1;
        }
    }
    if !is_all {
        best.classes = find(task, best.way, encoded, &best.worths, f64::INFINITY).unwrap_or_default();
    }
    best
}

/// The persons on whom everything is tried: all, or stretches of neighbours all over the order.
fn stretches(order: &[u32]) -> Vec<u32> {
    if order.len() <= TRIED {
        return order.to_vec();
    }
    let length = TRIED / STRETCHES;
    let start = |stretch: usize| stretch * (order.len() - length) / (STRETCHES - 1);
    (0..STRETCHES).flat_map(|stretch| order[start(stretch)..][..length].iter().copied()).collect()
}

struct Trial<'t> {
    task: &'t TreesTask<'t>,
    limits: &'t Limits,
    n_cells: f64,
    room: f64,
}

impl Trial<'_> {
    fn excess(&self, classes: &[Representative]) -> Vec<f64> {
        self.limits.excess(self.task.forest, self.task.order, classes, self.room)
    }

    /// The loss of all persons together, and for each child table the share of rows left out beyond its limit, as if all
    /// cells of all persons lost that much. A person in no class loses everything.
    fn objective(&self, classes: &[Representative]) -> f64 {
        let kept: f64 = classes.iter().map(Representative::n_cells).sum();
        let loss = classes.iter().map(Representative::loss).sum::<f64>() + self.n_cells - kept;
        loss + self.n_cells * self.excess(classes).iter().sum::<f64>()
    }
}

/// The classes found one way if rows that are left out are worth this much; `None` as soon as it is certain that they lose
/// more than `most`.
pub(super) fn find(
    task: &TreesTask<'_>,
    way: Way,
    encoded: &[Encoded<'_>],
    worths: &[f64],
    most: f64,
) -> Option<Vec<Representative>> {
    let forest = task.forest.with_worths(worths);
    let is_plain = forest.kinds.iter().all(|kind| kind.beyond_cells() == 0.0);
    let order = if is_plain { task.order.to_vec() } else { task.points.by_similarity(task.order, &forest.kinds) };
    let task = &TreesTask { forest: &forest, order: &order, ..*task };
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
