//! Places the clusters that are not full when the pass ends.
//!
//! The heaviest goes first: it either takes in the nearest of the others, as in the paper, or joins the full ones,
//! whichever loses less. If nothing but k rows is asked, its rows part, each to the full cluster nearest to it;
//! otherwise they stay together and go to the nearest full cluster that satisfies the rules with them. A group that
//! finds neither takes in full clusters, the nearest first, each time twice as many, until it satisfies the rules.
//! If the task allows it, rows that lose less by being left out are left out, those that gain most first.
//!
//! # Guarantee
//! every class satisfies the rules if all rows together do
//! # Cost
//! at most `cluster_limit` clusters are placed, each row or cluster compared with twice `WINDOW` full ones; only a
//! group that takes in full clusters looks at all of them, and sorts them, at most log2 of their number times

use kohort_model::spec::Leftovers;

use super::super::{Classes, Task};
use super::group::{Group, Judge, Nearest};
use crate::suppress;

/// A row looks for a full cluster among this many that became full before the row was met, and as many after. Rows come
/// sorted, so these clusters are similar to it.
const WINDOW: usize = 1 << 11;

/// This many of the nearest full clusters are checked: may the group join them?
const ASKED: usize = 16;

/// The classes, once every group that is not full has found its place. The full ones are in the order in which they
/// became so; `met` says when each folded row came up in the pass.
pub(super) fn place<'a>(
    task: &Task<'a>,
    judge: Judge<'a>,
    met: &[u32],
    (full, open): (Vec<Group<'a>>, Vec<Group<'a>>),
) -> Classes {
    let mut places = Placement { task, judge, met, full };
    let mut open = places.leave_out(open);
    let heaviest = |open: &[Group<'_>]| {
        (0..open.len()).max_by_key(|&position| (open[position].weight, std::cmp::Reverse(open[position].met)))
    };
    while let Some(position) = heaviest(&open) {
        let mut group = open.swap_remove(position);
        let other = places.judge.nearest(&open, &group);
        let homes = places.homes(&group);
        match (homes, other) {
            (Some(homes), other) if other.is_none_or(|other| homes.growth <= other.growth) => {
                places.join(group, &homes);
            }
            (_, Some(other)) => {
                open[other.position].absorb(task, group, other.width);
                if places.judge.stands_after_all(&mut open[other.position]) {
                    let group = open.swap_remove(other.position);
                    places.add(group);
                }
            }
            (_, None) => {
                if !places.take_in(&mut group) {
                    // The rows that were left out are needed after all.
                    return Classes::from_lists(vec![(0..task.rows.len() as u32).collect()]);
                }
                places.add(group);
            }
        }
    }
    Classes::from_lists(places.full.into_iter().map(|group| group.rows).collect())
}

struct Placement<'p, 'a> {
    task: &'p Task<'a>,
    judge: Judge<'a>,
    met: &'p [u32],
    full: Vec<Group<'a>>,
}

/// Where a group may go, and by how much the loss of all rows grows.
struct Homes {
    growth: f64,
    /// The full cluster that takes the whole group; `None` if each row goes to its own nearest cluster.
    whole: Option<Nearest>,
}

impl<'a> Placement<'_, 'a> {
    fn alone(&self, row: u32) -> Group<'a> {
        Group::of_row(self.task, row, self.met[row as usize])
    }

    /// Takes rows out of the groups if they lose less by being left out, as far as the task allows.
    fn leave_out(&self, open: Vec<Group<'a>>) -> Vec<Group<'a>> {
        let task = self.task;
        let forbidden = task.rules.measures_against_release() || task.rules.person_of_row().is_some();
        if task.leftovers == Leftovers::Merge || task.allowance == 0 || forbidden || self.full.is_empty() {
            return open;
        }
        let n_columns = task.domains.len() as f64;
        let mut gaining: Vec<(f64, u32)> = Vec::new();
        for group in &open {
            for &row in &group.rows {
                let alone = self.alone(row);
                let growth = self.nearest_full(&alone).map_or(f64::INFINITY, |nearest| nearest.growth);
                let per_person = growth / alone.weight as f64;
                if per_person > n_columns {
                    gaining.push((per_person, row));
                }
            }
        }
        let left_out = suppress::leaving(gaining, task.allowance, |row| task.rows.weight(row));
        let stays = |row: &u32| left_out.binary_search(row).is_err();
        let without = |group: Group<'a>| {
            if group.rows.iter().all(stays) {
                return Some(group);
            }
            let mut rows = group.rows.iter().filter(|row| stays(row));
            let mut rest = self.alone(*rows.next()?);
            for &row in rows {
                let alone = self.alone(row);
                let width = self.judge.width_together(&rest, &alone);
                rest.absorb(task, alone, width);
            }
            rest.met = group.met;
            Some(rest)
        };
        open.into_iter().filter_map(without).collect()
    }

    /// The full clusters that a group looks at.
    fn window(&self, group: &Group<'_>) -> std::ops::Range<usize> {
        let middle = self.full.partition_point(|full| full.met < group.met);
        middle.saturating_sub(WINDOW)..(middle + WINDOW).min(self.full.len())
    }

    fn nearest_full(&self, group: &Group<'_>) -> Option<Nearest> {
        let window = self.window(group);
        let nearest = self.judge.nearest(&self.full[window.clone()], group)?;
        Some(Nearest { position: window.start + nearest.position, ..nearest })
    }

    fn homes(&mut self, group: &Group<'a>) -> Option<Homes> {
        if self.task.rules.weight_suffices() {
            let mut growth = -group.loss();
            for &row in &group.rows {
                growth += self.nearest_full(&self.alone(row))?.growth;
            }
            return Some(Homes { growth, whole: None });
        }
        let window = self.window(group);
        let mut nearest: Vec<Nearest> = window.map(|position| self.judge.join(&self.full, position, group)).collect();
        nearest.sort_by(|a, b| a.growth.total_cmp(&b.growth));
        let mut asked = nearest.into_iter().take(ASKED);
        let home = asked.find(|home| self.judge.stand_together(&self.full[home.position], group))?;
        Some(Homes { growth: home.growth, whole: Some(home) })
    }

    fn join(&mut self, group: Group<'a>, homes: &Homes) {
        if let Some(home) = homes.whole {
            self.full[home.position].absorb(self.task, group, home.width);
            return;
        }
        for &row in &group.rows {
            let alone = self.alone(row);
            // Search again, because the row before may have widened a box.
            if let Some(home) = self.nearest_full(&alone) {
                self.full[home.position].absorb(self.task, alone, home.width);
            }
        }
    }

    /// Adds a full cluster where its last row belongs.
    fn add(&mut self, group: Group<'a>) {
        let position = self.full.partition_point(|full| full.met < group.met);
        self.full.insert(position, group.closed());
    }

    /// Lets a group take in full clusters until it satisfies the rules. Returns false if it took all of them and still
    /// does not.
    fn take_in(&mut self, group: &mut Group<'a>) -> bool {
        let mut n_taken = 1;
        while !self.judge.stands_after_all(group) {
            if self.full.is_empty() {
                return false;
            }
            let mut nearest: Vec<Nearest> =
                (0..self.full.len()).map(|position| self.judge.join(&self.full, position, group)).collect();
            nearest.sort_by(|a, b| a.growth.total_cmp(&b.growth));
            let mut taken = vec![false; self.full.len()];
            nearest.iter().take(n_taken).for_each(|nearest| taken[nearest.position] = true);
            for (other, taken) in std::mem::take(&mut self.full).into_iter().zip(taken) {
                if taken {
                    let width = self.judge.width_together(group, &other);
                    group.absorb(self.task, other, width);
                } else {
                    self.full.push(other);
                }
            }
            n_taken *= 2;
        }
        true
    }
}
