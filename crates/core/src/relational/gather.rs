//! Gathers each class around a person from those near it.
//!
//! The first person that is left begins a class. From a window of persons in the order of similarity, those with the
//! nearest points are compared by their trees. Of those with the nearest trees, the one nearest to the growing class
//! joins, until the class satisfies the rules.
//!
//! # Guarantee
//! every full cluster may be a class
//! # Deviations
//! not in `[NCN08]`, whose single pass never looks back: a cluster takes persons as they come, and those who come late
//! find clusters half full. On 1,000 made students at k = 5 gathering loses a tenth less
//! # Cost
//! per class a look at the points of [`WINDOW`] persons and [`SIFTED`] pairings, and for each person that joins
//! [`KEPT`] pairings; blocks of persons are independent of each other

use rayon::prelude::*;

use super::cost::{Meter, Scratch};
use super::miracle::{Clusters, TreesTask};
use super::representative::Representative;
use super::requirement::Asker;

/// Classes are gathered from a window of this many persons.
const WINDOW: usize = 1 << 13;

/// This many persons of a window, or twelve times k if that is more, are compared with the first person of a class.
const SIFTED: usize = 256;

/// This many of these persons, or three times k if that is more, are compared again and again while a class grows.
const KEPT: usize = 64;

/// About this many persons, neighbours in the order of similarity, are gathered apart from all others.
const BLOCK: usize = 1 << 14;

/// How many persons one thread compares at a time.
const COMPARED: usize = 64;

/// A folded person that waits for a class.
struct Waiting {
    folded: u32,
    /// The person; `None` once it has found a class.
    person: Option<Box<Representative>>,
}

/// Gathers classes from all persons of a task, in blocks side by side.
pub(super) fn gather(task: &TreesTask<'_>, meter: &Meter<'_>, scratch: &mut Scratch) -> Clusters {
    let persons: Vec<(u32, u32)> = (0..).zip(task.order.iter().copied()).collect();
    // Blocks are of a fixed size, so that what is gathered does not depend on the number of threads.
    let n_blocks = persons.len().div_ceil(BLOCK);
    let start = |block: usize| block * persons.len() / n_blocks;
    let gathered: Vec<(Clusters, u64)> = (0..n_blocks)
        .into_par_iter()
        .map(|block| {
            let mut scratch = Scratch::default();
            let of_block = &persons[start(block)..start(block + 1)];
            (gather_from(task, meter, &mut scratch, of_block), scratch.n_pairs)
        })
        .collect();
    let mut clusters = Clusters::default();
    for (of_block, n_pairs) in gathered {
        clusters.full.extend(of_block.full);
        clusters.open.extend(of_block.open);
        scratch.n_pairs += n_pairs;
    }
    clusters
}

/// Gathers classes one after the other, each around the first of the given persons that is left. Each person comes with
/// the time it was met.
pub(super) fn gather_from(
    task: &TreesTask<'_>,
    meter: &Meter<'_>,
    scratch: &mut Scratch,
    persons: &[(u32, u32)],
) -> Clusters {
    let mut clusters = Clusters::default();
    let mut asker = Asker::new(task.judge);
    let mut waiting: Vec<Waiting> = Vec::new();
    let mut coming = persons.iter();
    loop {
        waiting.retain(|waiting| waiting.person.is_some());
        let n_free = (WINDOW + 1).saturating_sub(waiting.len());
        waiting.extend(coming.by_ref().take(n_free).map(|&(met, folded)| {
            let person = Representative::of_person(task.forest, folded, met);
            Waiting { folded, person: Some(Box::new(person)) }
        }));
        let first = waiting.first_mut().and_then(|first| first.person.take());
        let first = first.filter(|_| !task.progress.is_cancelled());
        let Some(mut class) = first.map(|person| *person) else { return clusters };
        let met = class.met;
        let mut near: Vec<usize> = Vec::new();
        let mut stands = asker.stands(&mut class);
        while !stands {
            let next = match near.is_empty() {
                true => {
                    near = nearest_of(task, meter, scratch, &class, &waiting);
                    (!near.is_empty()).then_some(0)
                }
                false => nearest_again(meter, scratch, &class, &waiting, &near),
            };
            let Some(person) = next.and_then(|next| waiting[near.remove(next)].person.take()) else { break };
            class = class.join(&person, meter, scratch);
            stands = asker.stands(&mut class);
        }
        task.progress.advance(class.members.len() as u64);
        class.met = met;
        if stands || asker.stands_after_all(&mut class) { &mut clusters.full } else { &mut clusters.open }.push(class);
    }
}

/// The positions of those nearest to a class, nearest first.
fn nearest_of(
    task: &TreesTask<'_>,
    meter: &Meter<'_>,
    scratch: &mut Scratch,
    class: &Representative,
    waiting: &[Waiting],
) -> Vec<usize> {
    let k = task.judge.k as usize;
    let first = class.members[0];
    let by_points = |(position, waiting): (usize, &Waiting)| {
        waiting.person.as_ref()?;
        let (codes, weight) = (task.forest.codes(waiting.folded), task.forest.weight(waiting.folded));
        let below = task.points.difference(first, waiting.folded, &task.forest.kinds);
        Some((meter.growth_of_persons(class, codes, weight) + below, position))
    };
    let sifted: Vec<(f64, usize)> =
        waiting.par_iter().enumerate().with_min_len(1 << 10).filter_map(by_points).collect();
    let sifted = smallest(sifted, SIFTED.max(12 * k));

    let profile = meter.profile(class);
    let by_trees = |scratch: &mut Scratch, part: &[(f64, usize)]| {
        scratch.n_pairs = 0;
        let measured = part.iter().filter_map(|&(_, position)| {
            let person = waiting[position].person.as_ref()?;
            Some((meter.growth(scratch, (class, Some(&profile)), person, f64::INFINITY), position))
        });
        (measured.collect::<Vec<_>>(), scratch.n_pairs)
    };
    let parts: Vec<(Vec<(f64, usize)>, u64)> =
        sifted.par_chunks(COMPARED).map_init(Scratch::default, by_trees).collect();
    scratch.n_pairs += parts.iter().map(|(_, n_pairs)| n_pairs).sum::<u64>();
    let measured = parts.into_iter().flat_map(|(measured, _)| measured).collect();
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

/// Finds the nearest now, among those that were near before; the first of equals.
fn nearest_again(
    meter: &Meter<'_>,
    scratch: &mut Scratch,
    class: &Representative,
    waiting: &[Waiting],
    near: &[usize],
) -> Option<usize> {
    let profile = meter.profile(class);
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
