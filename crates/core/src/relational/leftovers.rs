//! Places the clusters that are not full when the pass ends.
//!
//! There are two ways to begin: the clusters dissolve and classes are gathered from their persons, as far as possible;
//! or the clusters stay as they are, if that loses much less in the end. Then the heaviest remaining cluster goes
//! first: it takes in the nearest of the others, as in the paper, or joins the full ones, whichever loses less. If only
//! k is asked, its persons may separate, each going to the nearest full cluster. Otherwise they stay together and go to
//! the nearest full cluster that satisfies the rules with them. A cluster that finds neither takes in full clusters,
//! the nearest first, until it satisfies the rules. If the task allows it, persons who lose less by being left out are
//! left out, those that gain most first.
//!
//! # Guarantee
//! Every class satisfies the rules, unless all persons together do not.
//! # Paper
//! algorithm 2 of `[NCN08]`, lines 13 to 22
//! # Deviations
//! The paper joins open clusters only with each other, as they are, and suppresses the last few. But half of its
//! clusters are still open after 1000 persons, and two of them together are larger than a class needs to be.

use kohort_model::Silent;
use kohort_model::spec::Leftovers;

use super::cost::{Meter, Scratch};
use super::gather::gather_from;
use super::miracle::{Clusters, Near, TreesTask, nearest};
use super::representative::Representative;
use super::requirement::Asker;
use crate::suppress;

/// A person looks for a full cluster among this many that became full before the person was met, and as many after.
/// Persons come in an order of similarity, so these clusters are similar to it.
const WINDOW: usize = 1 << 8;

/// With at most this many full clusters, both ways to begin are tried.
const FEW: usize = 1 << 10;

/// Clusters stay as they are only if that loses less than this share of what gathering loses. Gathering is preferred
/// because its classes have no more than k persons.
const MUCH_LESS: f64 = 0.95;

/// This many of the nearest full clusters are checked: may the group join them?
const ASKED: usize = 8;

/// What happens first to clusters that are not full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    /// The clusters dissolve, and classes are gathered from their persons.
    Gather,
    /// The clusters stay as they are.
    Keep,
}

/// The classes, once every cluster that is not full has found its place.
pub(super) fn place(
    task: &TreesTask<'_>,
    meter: &Meter<'_>,
    scratch: &mut Scratch,
    clusters: Clusters,
) -> Vec<Representative> {
    if clusters.open.is_empty() {
        return clusters.full;
    }
    let worth: f64 = clusters.full.iter().chain(&clusters.open).map(Representative::worth).sum();
    let kept = (clusters.full.len() <= FEW).then(|| place_by(First::Keep, task, meter, scratch, clusters.clone()));
    let gathered = place_by(First::Gather, task, meter, scratch, clusters);
    // A person who is left out costs everything.
    let cost =
        |classes: &[Representative]| worth - classes.iter().map(|class| class.worth() - class.cost()).sum::<f64>();
    match kept {
        Some(kept) if cost(&kept) < MUCH_LESS * cost(&gathered) => kept,
        _ => gathered,
    }
}

fn place_by(
    first: First,
    task: &TreesTask<'_>,
    meter: &Meter<'_>,
    scratch: &mut Scratch,
    Clusters { full, open }: Clusters,
) -> Vec<Representative> {
    let mut places = Placement { task, meter, scratch, asker: Asker::new(task.judge), full };
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

/// Joins a class that may not satisfy the rules to the nearest other classes until it does.
pub(super) fn merge(
    task: &TreesTask<'_>,
    meter: &Meter<'_>,
    scratch: &mut Scratch,
    class: Representative,
    others: &mut Vec<Representative>,
) {
    let full = std::mem::take(others);
    let mut places = Placement { task, meter, scratch, asker: Asker::new(task.judge), full };
    let mut class = class;
    places.take_in(&mut class);
    places.add(class);
    *others = places.full;
}

struct Placement<'p, 'f> {
    task: &'p TreesTask<'f>,
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
    /// The full cluster that takes the whole group; `None` if each person goes to its own nearest cluster.
    whole: Option<usize>,
}

impl Placement<'_, '_> {
    /// Takes persons out if they lose less by being left out, as far as the task allows.
    fn leave_out(&mut self, open: Vec<Representative>) -> Vec<Representative> {
        let task = self.task;
        let forbidden = task.judge.measures_against_release();
        if task.leftovers == Leftovers::Merge || task.allowance == 0 || forbidden || self.full.is_empty() {
            return open;
        }
        let mut gaining: Vec<(f64, u32)> = Vec::new();
        for cluster in &open {
            for &member in &cluster.members {
                let alone = Representative::of_person(self.task.forest, member, cluster.met);
                let growth = self.nearest_full(&alone).map_or(f64::INFINITY, |near| near.growth);
                if growth > alone.worth() {
                    gaining.push(((growth - alone.worth()) / alone.weight as f64, member));
                }
            }
        }
        let left_out = suppress::leaving(gaining, task.allowance, |member| task.forest.weight(member));
        let stays = |member: &&u32| left_out.binary_search(member).is_err();
        let mut rest = Vec::new();
        for cluster in open {
            if cluster.members.iter().all(|member| stays(&member)) {
                rest.push(cluster);
                continue;
            }
            let members = cluster
                .members
                .iter()
                .filter(stays)
                .map(|&member| Representative::of_person(task.forest, member, cluster.met));
            let joined = members.reduce(|joined, alone| joined.join(&alone, self.meter, self.scratch));
            rest.extend(joined);
        }
        rest
    }

    /// Dissolves clusters, and gathers full ones from their persons as far as possible.
    fn gather_again(&mut self, open: &[Representative]) -> Vec<Representative> {
        let mut persons: Vec<(u32, u32)> = Vec::new();
        for cluster in open {
            persons.extend(cluster.members.iter().map(|&member| (cluster.met, member)));
        }
        persons.sort_unstable();
        let task = TreesTask { progress: &Silent, ..*self.task };
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
            let mut growth = -group.cost();
            for &member in &group.members {
                let alone = Representative::of_person(self.task.forest, member, group.met);
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
            let alone = Representative::of_person(self.task.forest, member, group.met);
            // Search again, because the person before may have widened a box.
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

    /// Lets a group take in full clusters until it satisfies the rules, or no cluster is left.
    fn take_in(&mut self, group: &mut Representative) {
        while !self.asker.stands_after_all(group) {
            let near = nearest(self.meter, self.scratch, &self.full, |full| (full, None), group);
            let Some(near) = near else { return };
            let other = self.full.remove(near.position);
            *group = group.join(&other, self.meter, self.scratch);
        }
    }
}
