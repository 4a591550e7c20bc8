//! Groups that don't satisfy the rules take rows of a neighbour or join one, whichever costs less.
//!
//! # Guarantee
//! The resulting groups satisfy the rules if all rows together do: with every step one more group satisfies them, or
//! there is one group fewer.
//! # Deviations
//! only the [`N_NEIGHBOURS`] groups that would be joined at least cost are asked for rows
//! # Cost
//! per group a search in the index and a look at the rows of its neighbours. If a group joins one that satisfied the
//! rules and the result does not, it joins more groups until it has doubled, so that it is counted O(log n) times

use rayon::prelude::*;

use super::super::Task;
use super::group::{Group, Growing};
use super::nearest::{GroupTree, Near};
use crate::requirement::Tally;

/// How many neighbours a small group looks at.
const N_NEIGHBOURS: usize = 16;

/// How many groups look for their neighbours at the same time, before any of them moves.
const AT_ONCE: usize = 64;

/// If more than k is asked, rows are taken one by one and all requirements are checked each time. That is too slow for
/// givers with more rows than this, so none are taken from them.
const LARGEST_GIVER: usize = 1 << 12;

/// The classes, after every small group has found its place.
pub(super) fn join_small(task: &Task<'_>, groups: Vec<Group>) -> Vec<Vec<u32>> {
    let index = GroupTree::new(task, &groups);
    let changed = vec![0; groups.len()];
    let mut joiner = Joiner { task, tally: Tally::new(task.rules), groups, index, changed, round: 0 };
    loop {
        let is_small = |&group: &u32| !joiner.groups[group as usize].stands;
        let small: Vec<u32> = (0..joiner.groups.len() as u32).filter(is_small).collect();
        if small.is_empty() {
            break;
        }
        small.chunks(AT_ONCE).for_each(|some| joiner.place(some));
    }
    joiner.groups.into_iter().map(|group| group.rows).filter(|rows| !rows.is_empty()).collect()
}

struct Joiner<'a> {
    task: &'a Task<'a>,
    tally: Tally<'a>,
    groups: Vec<Group>,
    index: GroupTree<'a>,
    /// For each group the round in which it last changed.
    changed: Vec<u32>,
    round: u32,
}

impl Joiner<'_> {
    /// Finds a place for these groups, one after the other.
    fn place(&mut self, small: &[u32]) {
        self.round += 1;
        let found: Vec<Vec<Near>> =
            small.par_iter().map(|&group| self.index.nearest(&self.groups, group, N_NEIGHBOURS)).collect();
        for (&group, mut near) in small.iter().zip(found) {
            if self.groups[group as usize].stands {
                continue;
            }
            let is_old = |group: u32| self.changed[group as usize] == self.round;
            if is_old(group) || near.iter().any(|near| is_old(near.group)) {
                near = self.index.nearest(&self.groups, group, N_NEIGHBOURS);
            }
            self.place_one(group, &near);
        }
    }

    fn place_one(&mut self, small: u32, near: &[Near]) {
        let mut cheapest: Option<(f64, u32, [Group; 2])> = None;
        for giver in near.iter().map(|near| near.group) {
            let Some(changed) = self.take_rows(small, giver) else { continue };
            let [taker, rest] = changed.each_ref().map(|group| group.outline.loss());
            let cost = taker + rest - self.groups[giver as usize].outline.loss();
            if cheapest.as_ref().is_none_or(|(least, ..)| cost < *least) {
                cheapest = Some((cost, giver, changed));
            }
        }
        let Some(host) = self.host(small, near) else { return };
        match cheapest {
            Some((cost, from, [taker, giver])) if cost < host.cost => {
                self.groups[small as usize] = taker;
                self.groups[from as usize] = giver;
                self.note(small);
                self.note(from);
            }
            _ => self.join(small, host.group),
        }
    }

    /// The neighbour to join: the cheapest one that still satisfies the rules afterwards, or else the cheapest.
    fn host(&mut self, small: u32, near: &[Near]) -> Option<Near> {
        let joining = &self.groups[small as usize];
        let harmless = near.iter().find(|near| {
            let host = &self.groups[near.group as usize];
            !host.stands || self.task.stands(&mut self.tally, host.rows.iter().chain(&joining.rows).copied())
        });
        harmless.or(near.first()).copied()
    }

    /// Joins a small group to another. If the other satisfied the rules and the two together don't, their neighbours
    /// join too, until the small group has doubled.
    fn join(&mut self, small: u32, host: u32) {
        let stood = self.groups[host as usize].stands;
        let enough = 2 * self.groups[small as usize].outline.weight;
        self.absorb(host, small);
        self.ask(host);
        if !stood || self.groups[host as usize].stands {
            return;
        }
        while self.groups[host as usize].outline.weight < enough {
            let Some(next) = self.index.nearest(&self.groups, host, 1).first().copied() else { break };
            self.absorb(host, next.group);
        }
        self.ask(host);
    }

    fn absorb(&mut self, host: u32, small: u32) {
        if let Ok([host, small]) = self.groups.get_disjoint_mut([host as usize, small as usize]) {
            host.absorb(self.task, small);
            small.stands = true;
        }
        self.note(small);
        self.note(host);
    }

    /// Checks whether a group satisfies the rules.
    fn ask(&mut self, group: u32) {
        let group = &mut self.groups[group as usize];
        group.stands = self.task.stands(&mut self.tally, group.rows.iter().copied());
    }

    /// Updates the index after a change.
    fn note(&mut self, group: u32) {
        self.index.update(group, &self.groups[group as usize]);
        self.changed[group as usize] = self.round;
    }

    /// Gives the small group as many rows of the giver as it needs to satisfy the rules. Returns both groups, or `None`
    /// if the rest of the giver would not satisfy them.
    fn take_rows(&mut self, small: u32, giver: u32) -> Option<[Group; 2]> {
        let (small, giver) = (&self.groups[small as usize], &self.groups[giver as usize]);
        let rules = self.task.rules;
        let k = u64::from(rules.k());
        let too_large = !rules.weight_suffices() && giver.rows.len() > LARGEST_GIVER;
        let weight = small.outline.weight + giver.outline.weight;
        if !giver.stands || weight < 2 * k || giver.rows.len() < 2 || too_large {
            return None;
        }
        let mut taker = Growing::new(self.task, small.outline.bounds.iter().copied(), small.outline.weight);
        let mut rows = small.rows.clone();
        let mut ranked: Vec<(f64, u32)> = giver.rows.iter().map(|&row| (0.0, row)).collect();
        let members = |row: u32| self.task.rows.members(row);
        if !rules.weight_suffices() {
            self.tally.recount(rows.iter().flat_map(|&row| members(row)).copied());
        }
        let mut n_taken = 0;
        // The box has grown since the other rows were ranked, most by the first rows. So rank again after 1, 2, 4, ...
        // rows.
        while !(taker.weight >= k && (rules.weight_suffices() || self.tally.stands())) {
            if n_taken == ranked.len() {
                return None;
            }
            if n_taken == 0 || n_taken.is_power_of_two() {
                let rest = &mut ranked[n_taken..];
                rest.iter_mut()
                    .for_each(|(width, row)| *width = taker.width_with(self.task, self.task.rows.cells(*row)));
                rest.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            }
            let row = ranked[n_taken].1;
            taker.add(self.task, self.task.rows.cells(row), self.task.rows.weight(row));
            rows.push(row);
            if !rules.weight_suffices() {
                members(row).iter().for_each(|&member| self.tally.add(member));
            }
            n_taken += 1;
        }
        let rest: Vec<u32> = ranked[n_taken..].iter().map(|&(_, row)| row).collect();
        let rest_stands = self.task.stands(&mut self.tally, rest.iter().copied());
        rest_stands.then(|| [Group::new(self.task, rows, true), Group::new(self.task, rest, true)])
    }
}
