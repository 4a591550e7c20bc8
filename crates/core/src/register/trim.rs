//! Register persons that a class does not need leave it if that makes its box narrower.
//!
//! The box of the private rows stays. In one column, the register persons beyond a number at one end leave together, or
//! those outside of a node that holds the private rows; of all such slabs the one that gains most per person goes first,
//! as long as enough persons remain.
//!
//! # Paper
//! `[SMP10]` section 4: external rows are ignored so as to minimize the perimeter
//! # Deviations
//! Greedy, slab by slab. Persons who count only if the box covers what the register says about them are not relied on.
//! # Cost
//! per class a sort of its rows by each column, then per slab a look at all rows

use super::crowd::{Crowd, Draft};
use crate::encode::Tree;
use crate::encode::bounds::include;

/// Less than this is rounding, not gain.
const LEAST_GAIN: f64 = 1e-12;

/// Rows whose code in a column lies outside of an interval.
struct Slab {
    gain_per_person: f64,
    column: usize,
    kept: (u32, u32),
    n_persons: u64,
}

/// Takes superfluous register rows out of a class; they are returned.
pub(super) fn trim(crowd: &Crowd<'_>, draft: &mut Draft) -> Vec<u32> {
    let mut spare = crowd.n_sure(draft).saturating_sub(crowd.needed(draft));
    let core = crowd.private_bounds(draft);
    let mut bounds = crowd.bounds(draft);
    if spare == 0 || bounds == core {
        return Vec::new();
    }
    let cells = |row: u32| crowd.rows.cells(row);
    // For each column, the rows that stay outside of the private rows' interval, in its order.
    let mut outside: Vec<Vec<u32>> = (0..core.len())
        .map(|column| {
            let is_outside = |row: &u32| !(core[column].0..=core[column].1).contains(&cells(*row)[column]);
            let mut order: Vec<u32> = draft.register.iter().copied().filter(is_outside).collect();
            order.sort_by_key(|&row| cells(row)[column]);
            order
        })
        .collect();
    let mut freed = Vec::new();
    loop {
        let mut best: Option<Slab> = None;
        for (column, order) in outside.iter().enumerate() {
            let offers = ColumnSlabs { crowd, column, core: core[column], bounds: bounds[column], spare };
            offers.improve(order, &mut best);
        }
        let Some(Slab { column, kept, n_persons, .. }) = best else { break };
        let stays = |row: &u32| (kept.0..=kept.1).contains(&cells(*row)[column]);
        freed.extend(draft.register.extract_if(.., |row| !stays(row)));
        outside.iter_mut().for_each(|order| order.retain(stays));
        spare -= n_persons;
        bounds.clone_from(&core);
        draft.register.iter().for_each(|&row| include(&mut bounds, cells(row)));
    }
    freed
}

/// The slabs of one column.
struct ColumnSlabs<'a> {
    crowd: &'a Crowd<'a>,
    column: usize,
    /// The interval of the private rows.
    core: (u32, u32),
    /// The interval of all.
    bounds: (u32, u32),
    /// How many persons may leave.
    spare: u64,
}

impl ColumnSlabs<'_> {
    /// Replaces the best slab if one of this column is better. `outside` ascends.
    fn improve(&self, outside: &[u32], best: &mut Option<Slab>) {
        match self.crowd.domains()[self.column].tree() {
            None => {
                let n_low = outside.partition_point(|&row| self.code(row) < self.core.0);
                let (low, high) = outside.split_at(n_low);
                let ascending = low.iter().map(|&row| (self.code(row), row));
                self.along(ascending, self.core.0, |first| (first, self.bounds.1), best);
                let descending = high.iter().rev().map(|&row| (self.code(row), row));
                self.along(descending, self.core.1, |last| (self.bounds.0, last), best);
            }
            Some(tree) => {
                let mut node = tree.hull(self.core.0, self.core.1);
                while node.0 > self.bounds.0 || node.1 < self.bounds.1 {
                    let leaving = outside.iter().filter(|&&row| !(node.0..=node.1).contains(&self.code(row)));
                    let n_persons = leaving.map(|&row| self.crowd.n_register(row)).sum();
                    self.offer(node, n_persons, best);
                    let Some(next) = node_above(tree, node) else { break };
                    node = next;
                }
            }
        }
    }

    /// Slabs from one end of an ordered column towards the private rows, which begin at `core`.
    fn along(
        &self,
        rows: impl Iterator<Item = (u32, u32)>,
        core: u32,
        kept: impl Fn(u32) -> (u32, u32),
        best: &mut Option<Slab>,
    ) {
        let mut n_persons = 0;
        let mut rows = rows.peekable();
        while let Some((code, row)) = rows.next() {
            n_persons += self.crowd.n_register(row);
            if n_persons > self.spare {
                return;
            }
            let next = rows.peek().map_or(core, |&(next, _)| next);
            if next != code {
                self.offer(kept(next), n_persons, best);
            }
        }
    }

    fn offer(&self, kept: (u32, u32), n_persons: u64, best: &mut Option<Slab>) {
        if n_persons == 0 || n_persons > self.spare {
            return;
        }
        let domain = &self.crowd.domains()[self.column];
        let gain = domain.width(self.bounds.0, self.bounds.1) - domain.width(kept.0, kept.1);
        let gain_per_person = gain / n_persons as f64;
        if gain > LEAST_GAIN && best.as_ref().is_none_or(|best| gain_per_person > best.gain_per_person) {
            *best = Some(Slab { gain_per_person, column: self.column, kept, n_persons });
        }
    }

    fn code(&self, row: u32) -> u32 {
        self.crowd.rows.cells(row)[self.column]
    }
}

/// The smallest node that holds more than the codes of this one.
fn node_above(tree: &Tree, (lo, hi): (u32, u32)) -> Option<(u32, u32)> {
    let before = (lo > 0).then(|| tree.hull(lo - 1, hi));
    let after = (hi + 1 < tree.n_codes()).then(|| tree.hull(lo, hi + 1));
    before.into_iter().chain(after).min_by_key(|&(lo, hi)| hi - lo)
}
