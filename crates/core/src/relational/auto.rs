//! `auto` for several tables: the least loss within a reasonable wait.
//!
//! Gathers each class around the next person: of a window of persons in the order of similarity those are kept whose
//! points are nearest to it, of these the ones whose trees are, and of these the nearest to the growing class joins,
//! until it stands. Beside that, MiRaCle and MiRaCleX run with what the spec says or else their defaults, and whichever
//! loses least is taken.
//!
//! # Guarantee
//! never a higher loss than MiRaCle or MiRaCleX with the same settings, where nothing but numbers of persons is asked
//! # Deviations
//! gathering is not in `[NCN08]`, whose single pass never looks back: a cluster waits for whoever comes, and whoever
//! comes late finds clusters half full. On 10,000 made students at k = 5 gathering loses a sixth less, on 10,000 persons of
//! the American Time Use Survey a fifth
//! # Cost
//! per class a look at the points of [`WINDOW`] persons and [`SIFTED`] pairings, and for each person that joins
//! [`KEPT`] pairings; MiRaCle and MiRaCleX stop as soon as they have lost more than that

use kohort_model::spec::{ClusteringSpec, Pairing};
use rayon::prelude::*;

use super::cost::{Basis, Counting, Meter, Scratch};
use super::forest::Forest;
use super::leftovers::place;
use super::miracle::{Clusters, Task, pass};
use super::representative::Representative;
use super::requirement::Asker;
use crate::encode::Encoded;

/// Classes are gathered from so many persons.
const WINDOW: usize = 1 << 13;

/// So many of a window are compared with the first person of a class, and twelve times k where that is more.
const SIFTED: usize = 256;

/// So many of these are compared again and again while a class grows, and three times k where that is more.
const KEPT: usize = 64;

/// How many persons one thread compares at a time.
const COMPARED: usize = 64;

/// The classes that lose least.
pub(super) fn least_loss(task: &Task<'_>, encoded: &[Encoded<'_>], k: u32) -> Vec<Representative> {
    let ClusteringSpec { pairing, .. } = task.clustering;
    let meter = |basis, pairing| Meter::new(task.forest, encoded, basis, pairing, Counting::No);
    let mut scratch = Scratch::default();
    let gathering = meter(Basis::Subtree, pairing.unwrap_or(Pairing::Optimal));
    let clusters = gather(task, &gathering, k as usize);
    let mut best = place(task, &gathering, &mut scratch, clusters);
    let mut least = loss(task.forest, &best);
    for basis in [Basis::Subtree, Basis::Node] {
        let meter = meter(basis, pairing.unwrap_or(Pairing::Greedy));
        let Some(clusters) = pass(task, &meter, &mut scratch, least) else { continue };
        let classes = place(task, &meter, &mut scratch, clusters);
        let loss = loss(task.forest, &classes);
        if loss < least {
            (best, least) = (classes, loss);
        }
    }
    best
}

/// What everybody loses; who is in no class loses everything.
fn loss(forest: &Forest, classes: &[Representative]) -> f64 {
    let kept: f64 = classes.iter().map(Representative::n_cells).sum();
    classes.iter().map(Representative::loss).sum::<f64>() + forest.n_cells() - kept
}

/// A folded person that waits for a class.
struct Waiting {
    folded: u32,
    /// `None` once it has found one.
    person: Option<Box<Representative>>,
}

/// Gathers classes one after the other, each around the first person that is left.
fn gather(task: &Task<'_>, meter: &Meter<'_>, k: usize) -> Clusters {
    let mut clusters = Clusters::default();
    let mut asker = Asker::new(task.judge);
    let mut scratch = Scratch::default();
    let mut waiting: Vec<Waiting> = Vec::new();
    let mut coming = (0..).zip(task.order);
    loop {
        waiting.retain(|waiting| waiting.person.is_some());
        let n_free = (WINDOW + 1).saturating_sub(waiting.len());
        waiting.extend(coming.by_ref().take(n_free).map(|(met, &folded)| {
            let mut person = Representative::of_person(task.forest, folded);
            person.met = met;
            Waiting { folded, person: Some(Box::new(person)) }
        }));
        let first = waiting.first_mut().and_then(|first| first.person.take());
        let Some(mut class) = first.map(|person| *person) else { return clusters };
        let met = class.met;
        let mut near: Vec<usize> = Vec::new();
        let mut stands = asker.stands(&mut class);
        while !stands {
            let next = match near.is_empty() {
                true => {
                    near = nearest_of(task, meter, &class, &waiting, k);
                    (!near.is_empty()).then_some(0)
                }
                false => nearest_again(meter, &mut scratch, &class, &waiting, &near),
            };
            let Some(person) = next.and_then(|next| waiting[near.remove(next)].person.take()) else { break };
            class = class.join(&person, meter, &mut scratch);
            stands = asker.stands(&mut class);
        }
        task.progress.advance(class.members.len() as u64);
        class.met = met;
        if stands || asker.stands_after_all(&mut class) { &mut clusters.full } else { &mut clusters.open }.push(class);
    }
}

/// The positions of those nearest to a class, nearest first.
fn nearest_of(task: &Task<'_>, meter: &Meter<'_>, class: &Representative, waiting: &[Waiting], k: usize) -> Vec<usize> {
    let first = class.members[0];
    let by_points = |(position, waiting): (usize, &Waiting)| {
        waiting.person.as_ref()?;
        let (codes, weight) = (task.forest.codes(waiting.folded), task.forest.weight(waiting.folded));
        let below = task.points.difference(first, waiting.folded);
        Some((meter.growth_of_persons(class, codes, weight) + below, position))
    };
    let sifted: Vec<(f64, usize)> =
        waiting.par_iter().enumerate().with_min_len(1 << 10).filter_map(by_points).collect();
    let sifted = smallest(sifted, SIFTED.max(12 * k));

    let profile = meter.profile(&mut Scratch::default(), class);
    let by_trees = |scratch: &mut Scratch, part: &[(f64, usize)]| {
        let measured = part.iter().filter_map(|&(_, position)| {
            let person = waiting[position].person.as_ref()?;
            Some((meter.growth(scratch, (class, Some(&profile)), person, f64::INFINITY), position))
        });
        measured.collect::<Vec<_>>()
    };
    let measured: Vec<(f64, usize)> =
        sifted.par_chunks(COMPARED).map_init(Scratch::default, by_trees).flatten_iter().collect();
    smallest(measured, KEPT.max(3 * k)).into_iter().map(|(_, position)| position).collect()
}

/// The smallest few, ascending; of equals those that come first.
fn smallest(mut measured: Vec<(f64, usize)>, n_kept: usize) -> Vec<(f64, usize)> {
    let compare = |a: &(f64, usize), b: &(f64, usize)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
    if measured.len() > n_kept {
        measured.select_nth_unstable_by(n_kept, compare);
        measured.truncate(n_kept);
    }
    measured.sort_unstable_by(compare);
    measured
}

/// Which of those that were near is nearest now; the first of equals.
fn nearest_again(
    meter: &Meter<'_>,
    scratch: &mut Scratch,
    class: &Representative,
    waiting: &[Waiting],
    near: &[usize],
) -> Option<usize> {
    let profile = meter.profile(scratch, class);
    let mut nearest: Option<(f64, usize)> = None;
    for (place, &position) in near.iter().enumerate() {
        let Some(person) = &waiting[position].person else { continue };
        let least = nearest.map_or(f64::INFINITY, |(least, _)| least);
        let growth = meter.growth(scratch, (class, Some(&profile)), person, least);
        if growth < least {
            nearest = Some((growth, place));
        }
    }
    nearest.map(|(_, place)| place)
}
