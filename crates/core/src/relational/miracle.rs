//! The single pass of MiRaCle and MiRaCleX: each person joins the nearest open cluster, or opens one.
//!
//! # Guarantee
//! every full cluster may be a class
//! # Paper
//! algorithm 2 of `[NCN08]`, lines 1 to 12
//! # Deviations
//! Persons come in an order of similarity, which the paper leaves open. Nearest is the cluster where the loss of all
//! its persons together grows least; the paper takes the least loss per person afterwards. A cluster leaves as soon as
//! it may be a class, not only with more than k persons. The threshold bounds the loss of a cell of the cluster, LM.
//! # Cost
//! persons times open clusters times what a pairing costs; costs with subtrees that many persons share are computed once per
//! change of a cluster

use kohort_model::Progress;
use kohort_model::spec::{ClusteringSpec, Leftovers};
use rayon::prelude::*;

use super::cost::{Meter, Profile, Scratch};
use super::forest::Forest;
use super::order::Points;
use super::representative::Representative;
use super::requirement::{Asker, TreesJudge};

/// The threshold if the spec gives none.
const DEFAULT_THRESHOLD: f64 = 0.15;

/// The limit if the spec gives none: that of the paper's experiments.
const DEFAULT_LIMIT: u32 = 150;

/// How many clusters one thread compares at a time.
const COMPARED: usize = 32;

/// Progress is reported after this many persons.
const TOLD_EVERY: usize = 1 << 10;

/// Persons that are to be put into classes.
#[derive(Clone, Copy)]
pub(super) struct TreesTask<'f> {
    pub(super) forest: &'f Forest,
    /// Folded persons, similar ones near each other.
    pub(super) order: &'f [u32],
    /// The same persons as points.
    pub(super) points: &'f Points,
    pub(super) judge: &'f TreesJudge<'f>,
    pub(super) clustering: ClusteringSpec,
    /// How many persons may still be left out.
    pub(super) allowance: u64,
    pub(super) leftovers: Leftovers,
    pub(super) progress: &'f dyn Progress,
}

impl TreesTask<'_> {
    /// The number of quasi cells of everybody's rows.
    pub(super) fn n_cells(&self) -> f64 {
        self.order.iter().map(|&folded| Representative::of_person(self.forest, folded, 0).n_cells()).sum()
    }
}

/// Clusters that may be classes, in the order in which they became so, and those that may not yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Clusters {
    pub(super) full: Vec<Representative>,
    pub(super) open: Vec<Representative>,
}

/// A cluster near another, and by how much the loss of both together would grow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Near {
    pub(super) growth: f64,
    pub(super) position: usize,
}

/// The pass over all persons; `None` as soon as it is certain to lose more than `most`.
pub(super) fn pass(task: &TreesTask<'_>, meter: &Meter<'_>, scratch: &mut Scratch, most: f64) -> Option<Clusters> {
    let threshold = task.clustering.threshold.unwrap_or(DEFAULT_THRESHOLD);
    let limit = task.clustering.cluster_limit.unwrap_or(DEFAULT_LIMIT).max(1) as usize;
    let mut asker = Asker::new(task.judge);
    let mut full = Vec::new();
    let mut loss_of_full = 0.0;
    let mut open: Vec<(Representative, Profile)> = Vec::new();
    for (met, &folded) in (0..).zip(task.order) {
        if met as usize % TOLD_EVERY == TOLD_EVERY - 1 {
            task.progress.advance(TOLD_EVERY as u64);
        }
        if task.progress.is_cancelled() {
            return None;
        }
        let mut person = Representative::of_person(task.forest, folded, met);
        if asker.stands(&mut person) {
            full.push(person);
            continue;
        }
        let nearest = nearest(meter, scratch, &open, |(cluster, profile)| (cluster, Some(profile)), &person);
        let joins = nearest.filter(|near| {
            let cluster = &open[near.position].0;
            let mean = (cluster.cost() + near.growth) / (cluster.worth() + person.worth()).max(1.0);
            mean <= threshold || open.len() >= limit
        });
        let Some(near) = joins else {
            let profile = meter.profile(&person);
            open.push((person, profile));
            continue;
        };
        let mut joined = open[near.position].0.join(&person, meter, scratch);
        if asker.stands(&mut joined) {
            loss_of_full += joined.loss();
            if loss_of_full > most {
                return None;
            }
            full.push(joined);
            open.swap_remove(near.position);
        } else {
            let profile = meter.profile(&joined);
            open[near.position] = (joined, profile);
        }
    }
    task.progress.advance((task.order.len() % TOLD_EVERY) as u64);
    Some(Clusters { full, open: open.into_iter().map(|(cluster, _)| cluster).collect() })
}

/// The one of `others` whose loss, together with that of `cluster`, grows least; the first of equals.
pub(super) fn nearest<T: Sync>(
    meter: &Meter<'_>,
    scratch: &mut Scratch,
    others: &[T],
    representative: impl Fn(&T) -> (&Representative, Option<&Profile>) + Sync,
    cluster: &Representative,
) -> Option<Near> {
    let search = |scratch: &mut Scratch, first: usize, others: &[T]| {
        let mut nearest: Option<Near> = None;
        for (position, other) in (first..).zip(others) {
            let least = nearest.map_or(f64::INFINITY, |near| near.growth);
            let growth = meter.growth(scratch, representative(other), cluster, least);
            if growth < least {
                nearest = Some(Near { growth, position });
            }
        }
        nearest
    };
    // Parts are of a fixed size, so that what is computed does not depend on the number of threads.
    if others.len() <= COMPARED {
        return search(scratch, 0, others);
    }
    let parts: Vec<(Option<Near>, u64)> = others
        .par_chunks(COMPARED)
        .enumerate()
        .map_init(Scratch::default, |scratch, (part, others)| {
            scratch.n_pairs = 0;
            (search(scratch, part * COMPARED, others), scratch.n_pairs)
        })
        .collect();
    scratch.n_pairs += parts.iter().map(|(_, n_pairs)| n_pairs).sum::<u64>();
    parts.into_iter().filter_map(|(near, _)| near).min_by(|a, b| a.growth.total_cmp(&b.growth))
}
