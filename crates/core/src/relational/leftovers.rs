//! What becomes of clusters that are not full when the pass ends.
//!
//! Their persons part and classes are gathered from them as far as they go, or they stay as they are where that loses much
//! less in the end. Of what is left the heaviest goes first: it takes the nearest of the others in, as in the paper, or joins
//! the full ones, whichever loses less. Where k is all that is asked its persons part, each to the full cluster nearest
//! to it; else they stay together and go to the nearest full cluster that stands with them. What finds neither takes in
//! full clusters, the nearest first, until it stands. Where the task says so, those persons are left out that lose less
//! that way, the ones that gain most first.
//!
//! # Guarantee
//! every class stands, unless all persons together do not
//! # Paper
//! algorithm 2 of `[NCN08]`, lines 13 to 22
//! # Deviations
//! the paper joins open clusters as they are, among themselves alone, and suppresses the last few; but half of its
//! clusters are still open when 1000 persons have come, and two of them joined are more than a class needs

use kohort_model::Silent;
use kohort_model::spec::Leftovers;

use super::cost::{Meter, Scratch};
use super::gather::gather_from;
use super::miracle::{Clusters, Near, Task, nearest};
use super::representative::Representative;
use super::requirement::Asker;

/// A person looks for a full cluster among so many that became full before it was met, and as many after: persons come
/// in an order of similarity, so these are the ones like it.
const WINDOW: usize = 1 << 8;

/// Beside at most so many full clusters both ways to begin are tried.
const FEW: usize = 1 << 10;

/// Clusters stay as they are where that loses less than this share: classes that are gathered have no more than k.
const MUCH_LESS: f64 = 0.95;

/// So many of the nearest full clusters are asked whether a group may join them.
const ASKED: usize = 8;

/// What becomes of clusters that are not full, at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    /// Their persons part, and classes are gathered from them.
    Gather,
    /// They stay as they are.
    Keep,
}

/// The classes, once every cluster that is not full has found its place.
pub(super) fn place(
    task: &Task<'_>,
    meter: &Meter<'_>,
    scratch: &mut Scratch,
    clusters: Clusters,
) -> Vec<Representative> {
    if clusters.open.is_empty() {
        return clusters.full;
    }
    let n_cells: f64 = clusters.full.iter().chain(&clusters.open).map(Representative::n_cells).sum();
    let kept = (clusters.full.len() <= FEW).then(|| place_by(First::Keep, task, meter, scratch, clusters.clone()));
    let gathered = place_by(First::Gather, task, meter, scratch, clusters);
    // Who is left out loses all cells.
    let loss =
        |classes: &[Representative]| n_cells - classes.iter().map(|class| class.n_cells() - class.loss()).sum::<f64>();
    match kept {
        Some(kept) if loss(&kept) < MUCH_LESS * loss(&gathered) => kept,
        _ => gathered,
    }
}

fn place_by(
    first: First,
    task: &Task<'_>,
    meter: &Meter<'_>,
    scratch: &mut Scratch,
    Clusters { full, open }: Clusters,
) -> Vec<Representative> {
    let mut places = Places { task, meter, scratch, asker: Asker::new(task.judge), full };
    let mut open = places.leave_out(open);
    if first == First::Gather {
        open = places.gather_again(&open);
    }
    let heaviest = |open: &[Representative]| {
        (0..open.len()).max_by_key(|&position| (open[position].weight, std::cmp::Reverse(position)))
    };
    while let Some(position) = heaviest(&open) {
        let mut group = open.swap_remove(position);
        let other = nearest(meter, places.scratch, &open, |other| (other, None), &group);
        let home = places.home(&group);
        match (home, other) {
            (Some(home), other) if other.is_none_or(|other| home.growth <= other.growth) => places.join(&group, home),
            (_, Some(other)) => {
                let joined = &mut open[other.position];
                *joined = joined.join(&group, meter, places.scratch);
                if places.asker.stands_after_all(joined) {
                    let full = open.swap_remove(other.position);
                    places.add(full);
                }
            }
            (_, None) => {
                places.take_in(&mut group);
                places.add(group);
            }
        }
    }
    places.full
}

/// Joins a class that may not stand by itself to the nearest of the others until it does.
pub(super) fn merge(
    task: &Task<'_>,
    meter: &Meter<'_>,
    scratch: &mut Scratch,
    class: Representative,
    others: &mut Vec<Representative>,
) {
    let full = std::mem::take(others);
    let mut places = Places { task, meter, scratch, asker: Asker::new(task.judge), full };
    let mut class = class;
    places.take_in(&mut class);
    places.add(class);
    *others = places.full;
}

struct Places<'p, 'f> {
    task: &'p Task<'f>,
    meter: &'p Meter<'p>,
    scratch: &'p mut Scratch,
    asker: Asker<'p>,
    /// In the order in which they became full.
    full: Vec<Representative>,
}

/// Where a group may go, and by how much the loss of all grows.
#[derive(Clone, Copy)]
struct Home {
    growth: f64,
    /// The full cluster that takes the whole group; `None` where each person goes to its own.
    whole: Option<usize>,
}

impl Places<'_, '_> {
    /// Takes those persons out that lose less by being left out, as far as the task allows.
    fn leave_out(&mut self, open: Vec<Representative>) -> Vec<Representative> {
        let task = self.task;
        let forbidden = self.task.judge.measures_against_release();
        if self.task.leftovers == Leftovers::Merge || self.task.allowance == 0 || forbidden || self.full.is_empty() {
            return open;
        }
        let mut leaving: Vec<(f64, u32)> = Vec::new();
        for cluster in &open {
            for &member in &cluster.members {
                let alone = person(self.task, member, cluster.met);
                let growth = self.nearest_full(&alone).map_or(f64::INFINITY, |near| near.growth);
                if growth > alone.n_cells() {
                    leaving.push(((growth - alone.n_cells()) / alone.weight as f64, member));
                }
            }
        }
        leaving.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut allowance = self.task.allowance;
        let mut left_out: Vec<u32> = Vec::new();
        for (_, member) in leaving {
            let weight = u64::from(self.task.forest.weight(member));
            if weight <= allowance {
                allowance -= weight;
                left_out.push(member);
            }
        }
        left_out.sort_unstable();
        let stays = |member: &&u32| left_out.binary_search(member).is_err();
        let mut rest = Vec::new();
        for cluster in open {
            if cluster.members.iter().all(|member| stays(&member)) {
                rest.push(cluster);
                continue;
            }
            let members = cluster.members.iter().filter(stays).map(|&member| person(task, member, cluster.met));
            let joined = members.reduce(|joined, alone| joined.join(&alone, self.meter, self.scratch));
            rest.extend(joined);
        }
        rest
    }

    /// Parts clusters, and gathers their persons to full ones as far as they go.
    fn gather_again(&mut self, open: &[Representative]) -> Vec<Representative> {
        let mut persons: Vec<(u32, u32)> = Vec::new();
        for cluster in open {
            persons.extend(cluster.members.iter().map(|&member| (cluster.met, member)));
        }
        persons.sort_unstable();
        let task = Task { progress: &Silent, ..*self.task };
        let Clusters { full, open } = gather_from(&task, self.meter, self.scratch, &persons);
        full.into_iter().for_each(|class| self.add(class));
        open
    }

    fn window(&self, group: &Representative) -> std::ops::Range<usize> {
        let middle = self.full.partition_point(|full| full.met < group.met);
        middle.saturating_sub(WINDOW)..(middle + WINDOW).min(self.full.len())
    }

    fn nearest_full(&mut self, group: &Representative) -> Option<Near> {
        let window = self.window(group);
        let near = nearest(self.meter, self.scratch, &self.full[window.clone()], |full| (full, None), group)?;
        Some(Near { position: window.start + near.position, ..near })
    }

    fn home(&mut self, group: &Representative) -> Option<Home> {
        if self.task.judge.all_ask_alike() {
            let mut growth = -group.loss();
            for &member in &group.members {
                let alone = person(self.task, member, group.met);
                growth += self.nearest_full(&alone)?.growth;
            }
            return Some(Home { growth, whole: None });
        }
        let mut near: Vec<Near> = self
            .window(group)
            .map(|position| Near {
                growth: self.meter.growth(self.scratch, (&self.full[position], None), group, f64::INFINITY),
                position,
            })
            .collect();
        near.sort_by(|a, b| a.growth.total_cmp(&b.growth));
        let mut asked = near.into_iter().take(ASKED);
        let home = asked.find(|near| {
            let mut joined = self.full[near.position].join(group, self.meter, self.scratch);
            self.asker.stands_after_all(&mut joined)
        })?;
        Some(Home { growth: home.growth, whole: Some(home.position) })
    }

    fn join(&mut self, group: &Representative, home: Home) {
        if let Some(position) = home.whole {
            return self.join_at(position, group);
        }
        for &member in &group.members {
            let alone = person(self.task, member, group.met);
            // Looked for once more: the person before has made a box wider.
            if let Some(near) = self.nearest_full(&alone) {
                self.join_at(near.position, &alone);
            }
        }
    }

    fn join_at(&mut self, position: usize, group: &Representative) {
        let full = &mut self.full[position];
        let met = full.met;
        *full = full.join(group, self.meter, self.scratch);
        full.met = met;
    }

    /// Adds a full cluster where its last person belongs.
    fn add(&mut self, group: Representative) {
        let position = self.full.partition_point(|full| full.met < group.met);
        self.full.insert(position, group);
    }

    /// Lets a group take in full clusters until it stands, or there are no more.
    fn take_in(&mut self, group: &mut Representative) {
        while !self.asker.stands_after_all(group) {
            let near = nearest(self.meter, self.scratch, &self.full, |full| (full, None), group);
            let Some(near) = near else { return };
            let other = self.full.remove(near.position);
            *group = group.join(&other, self.meter, self.scratch);
        }
    }
}

fn person(task: &Task<'_>, folded: u32, met: u32) -> Representative {
    let mut person = Representative::of_person(task.forest, folded);
    person.met = met;
    person
}
