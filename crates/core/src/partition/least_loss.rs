//! [`LeastLoss`]: the partitioner that runs if the spec names none.
//!
//! First the table is cut into classes. Every set of rows gets the cut that saves most loss for the rows it uses up, over all
//! columns and all boundaries, so the cut need not be in the widest column. Expensive rows are then taken out of all classes and cut again,
//! together, and classes send away rows that cost less elsewhere: one row, a slab at the edge of their box, or all. Other
//! partitioners run too. If one of them loses less than the cuts, the improvements start from its classes.
//!
//! Then rows get prices, and classes are chosen anew among all boxes that rows would pay for (`repack`). In tables that are
//! too large for that, it is done region by region, where a region is a run of neighbouring classes.
//!
//! # Guarantee
//! every class satisfies the rules, or `Unreachable`; no more loss than Mondrian, and on small tables than top-down,
//! clustering and Datafly
//! # Paper
//! the top-down half is `[LDR06]` with another choice of cuts; `repack` names its own; the rest is ours
//! # Deviations
//! If persons have several rows, nothing moves: a person in two classes counts in both, and moving a row can break
//! either class in ways that only a new count of both would show. The more distinct rows there are, the less is tried.
//! # Cost
//! O(d² n log n) for the cuts, times the log of what a node can be cut into if nodes look ahead; each round of moves
//! asks an index over boxes once per row of the classes that have changed; regions bound the memory of what follows

mod candidates;
mod covering;
mod edges;
mod index;
mod moves;
mod offers;
mod packing;
mod pick;
mod pool;
mod prices;
mod repack;
mod round;
mod runs;
mod split;

use kohort_model::Note;
use kohort_model::spec::MondrianSpec;
use rayon::prelude::*;
use repack::Search;

use super::{Classes, Cluster, Datafly, KeepTree, Mondrian, Partitioner, Task, TopDown, Unreachable};

/// How much is tried: less for larger tables, where there is less to gain per row and the wait is longer.
#[derive(Clone, Copy, Debug)]
struct Effort {
    /// Nodes that weigh at most this many times k look ahead before they are cut.
    foresight: u64,
    /// How often expensive rows are taken out and cut anew.
    attempts: usize,
    /// Rounds of moves: the first gains most by far.
    rounds: usize,
    /// The number of index nodes that a search looks at.
    visits: usize,
}

/// Everything is tried for tables of at most this many distinct rows; larger ones are repacked in regions of as many.
const ALL_TRIED: usize = 1 << 15;

/// Tables of more distinct rows than this are repacked one time less, which is usually not at all, and fewer moves are tried.
const MUCH_TRIED: usize = 300_000;

/// Very little is tried for tables of more distinct rows than this.
const LITTLE_TRIED: usize = 4_000_000;

/// Partitioners whose time grows faster than the table run only on tables of at most this many distinct rows.
const SMALL: usize = 2_000;

/// Rows are cut anew if their absence saves more than this multiple of the mean loss per row, one factor per attempt.
/// Later attempts take fewer rows, so that they repair what the first have spoiled.
const DEAR: [f64; 5] = [1.5, 1.2, 2.0, 3.0, 4.0];

/// The search for boxes may look at rows this many times, multiplied by the number of rows. Tables of few columns need far
/// fewer looks.
const VISITS: usize = 20_000;

/// Moves that gain a smaller share of the loss than this are not worth another round.
const WORTH_A_ROUND: f64 = 0.001;

/// When moves no longer help, grown classes are cut and moves begin again. That is repeated this many times.
const CUTS: usize = 2;

impl Effort {
    fn of(task: &Task<'_>) -> Effort {
        // The larger k is, the more there is to improve after the cuts.
        let attempts = (task.rules.k() as usize / 10).clamp(1, DEAR.len());
        let n_rows = task.rows.len();
        if n_rows <= MUCH_TRIED {
            Effort { foresight: 256, attempts, rounds: 8, visits: 400 }
        } else if n_rows <= LITTLE_TRIED {
            Effort { foresight: 16, attempts: 1, rounds: 3, visits: 200 }
        } else {
            Effort { foresight: 0, attempts: 1, rounds: 1, visits: 200 }
        }
    }
}

/// Least loss: cuts from the top, moves from the bottom, and classes chosen anew by prices.
#[derive(Clone, Copy, Debug)]
pub struct LeastLoss {
    /// How often classes are chosen anew by the prices of their rows, as long as that helps. If 0, they stay as cuts and moves
    /// made them.
    pub repacks: u32,
}

impl Partitioner for LeastLoss {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn partition(&self, task: &Task<'_>) -> Result<Classes, Unreachable> {
        let effort = Effort::of(task);
        let mut notes = Vec::new();
        if task.rows.len() > ALL_TRIED {
            notes.push(Note::LessTried { n_distinct: task.rows.len() as u64, limit: ALL_TRIED as u64 });
        }
        let mut classes = first_classes(task, effort)?;
        if task.rules.person_of_row().is_some() {
            notes.push(Note::OnlyCut);
            return Ok(Classes { notes, ..Classes::from_lists(classes) });
        }
        let mut least = task.loss(&classes);
        for (attempt, dear) in DEAR.into_iter().take(effort.attempts).enumerate() {
            if task.progress.is_cancelled() {
                break;
            }
            task.progress.begin(&format!("improve {}/{}", attempt + 1, effort.attempts), 0);
            let tried = mend(task, pool::recut(task, &classes, dear, effort.foresight), effort);
            let loses = task.loss(&tried);
            if loses < least {
                (classes, least) = (tried, loses);
            }
        }
        // Classes of a search that was cancelled may lack rows, and repacking needs them all. Nobody gets these classes.
        let repacks = if task.rows.len() > MUCH_TRIED { self.repacks.saturating_sub(1) } else { self.repacks };
        for round in 1..=repacks {
            if task.progress.is_cancelled() {
                break;
            }
            task.progress.begin(&format!("repack {round}/{repacks}"), 0);
            let tried = repacked(task, classes.clone(), search(task), effort);
            let loses = task.loss(&tried);
            if loses >= least {
                break;
            }
            (classes, least) = (tried, loses);
        }
        Ok(Classes { notes, ..Classes::from_lists(classes) })
    }
}

/// How much is tried when classes are repacked.
fn search(task: &Task<'_>) -> Search {
    if task.rows.len() > ALL_TRIED {
        Search { steps: 12, starts: 1, visits: VISITS / 10 }
    } else if task.rules.weight_suffices() {
        Search { steps: 35, starts: 6, visits: VISITS }
    } else {
        // Asking whether rows may be a class takes much longer than weighing them.
        Search { steps: 15, starts: 1, visits: VISITS }
    }
}

/// The classes after repacking, region by region if the table is large.
fn repacked(task: &Task<'_>, classes: Vec<Vec<u32>>, search: Search, effort: Effort) -> Vec<Vec<u32>> {
    if task.rows.len() <= ALL_TRIED {
        return repacked_region(task, classes, search, effort);
    }
    let mut regions: Vec<Vec<Vec<u32>>> = Vec::new();
    let mut n_rows = usize::MAX;
    for class in classes {
        if n_rows.saturating_add(class.len()) > ALL_TRIED {
            regions.push(Vec::new());
            n_rows = 0;
        }
        n_rows += class.len();
        regions.last_mut().expect("a region was just begun").push(class);
    }
    let repacked = regions.into_par_iter().flat_map_iter(|classes| {
        let mut rows = classes.concat();
        rows.sort_unstable();
        let part = task.rows.part(&rows);
        let position = |row: &u32| rows.partition_point(|other| other < row) as u32;
        let classes = classes.iter().map(|class| class.iter().map(position).collect()).collect();
        let repacked = repacked_region(&Task { rows: &part, ..*task }, classes, search, effort);
        repacked.into_iter().map(move |class| class.into_iter().map(|row| rows[row as usize]).collect())
    });
    repacked.collect()
}

/// Repacks classes, moves rows between the new ones, and exchanges boxes once more.
fn repacked_region(task: &Task<'_>, classes: Vec<Vec<u32>>, search: Search, effort: Effort) -> Vec<Vec<u32>> {
    let (packed, candidates) = repack::repack(task, classes, search);
    let moved = mend(task, packed.clone(), effort);
    if task.progress.is_cancelled() {
        return packed;
    }
    let moved = repack::exchange(task, moved, &candidates);
    if task.loss(&moved) < task.loss(&packed) { moved } else { packed }
}

/// The classes to start from: those of the partitioner that loses least.
fn first_classes(task: &Task<'_>, effort: Effort) -> Result<Vec<Vec<u32>>, Unreachable> {
    let mut others: Vec<Box<dyn Partitioner>> =
        vec![Box::new(Mondrian { spec: MondrianSpec::default(), keep_tree: KeepTree::No })];
    if task.rows.len() <= SMALL {
        others.push(Box::new(TopDown));
        others.push(Box::new(Cluster::default()));
        others.push(Box::new(Datafly::default()));
    }
    // Other partitioners may leave persons out if the task allows it. Here everybody must stay.
    let everybody = Task { allowance: 0, ..*task };
    let mut starts = Vec::new();
    for other in others {
        starts.push(other.partition(&everybody)?.to_lists());
    }
    task.progress.begin("cut", task.rows.len() as u64);
    starts.push(split::split(task, vec![(0..task.rows.len() as u32).collect()], effort.foresight));
    let losses: Vec<f64> = starts.iter().map(|classes| task.loss(classes)).collect();
    // Among equals take the last, which is our own cuts.
    let least = (0..starts.len()).rev().min_by(|&a, &b| losses[a].total_cmp(&losses[b])).unwrap_or(0);
    Ok(starts.swap_remove(least))
}

/// Moves rows while that helps, and cuts classes that have grown to the size of two.
fn mend(task: &Task<'_>, classes: Vec<Vec<u32>>, effort: Effort) -> Vec<Vec<u32>> {
    let worth = WORTH_A_ROUND * task.loss(&classes);
    let mut state = moves::State::new(task, classes, effort.visits);
    let mut n_cuts = 0;
    for round in 1..=effort.rounds {
        if task.progress.is_cancelled() {
            break;
        }
        if state.improve() <= worth || round == effort.rounds {
            state.cut(effort.foresight);
            n_cuts += 1;
            if n_cuts == CUTS {
                break;
            }
        }
    }
    state.into_classes()
}

#[cfg(test)]
mod tests;
