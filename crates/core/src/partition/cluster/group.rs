//! Rows under one box, what joining two of them loses, and whether one may be a class.

use super::super::Task;
use crate::encode::Widths;
use crate::encode::bounds::{self, Bounds};
use crate::requirement::Tally;

/// Columns with at most this many codes have the width of every interval in a table, which then fits into a cache.
const TABLE_CODES: u32 = 256;

/// A group that was refused is checked again when it has grown by one part in this many. Checking it after every row would
/// cost the square of its size.
const ASKED_AGAIN: u64 = 16;

/// Rows under one box.
#[derive(Debug)]
pub(super) struct Group<'r> {
    bounds: Bounds,
    /// The loss of each of the group's rows, summed over columns.
    width: f64,
    /// The number of rows of the table in the group.
    pub(super) weight: u64,
    /// Its folded rows.
    pub(super) rows: Vec<u32>,
    /// When the pass met the group's last row.
    pub(super) met: u32,
    /// The counts of the group's rows. They exist once the group was checked.
    tally: Option<Tally<'r>>,
    /// The group is not checked before it has this weight.
    asked_from: u64,
}

/// Another group, and what joining it would mean.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nearest {
    /// The group's position in the slice that was searched.
    pub(super) position: usize,
    /// By how much the loss of all rows of both together grows.
    pub(super) growth: f64,
    /// The loss of each row after joining.
    pub(super) width: f64,
}

impl Group<'_> {
    /// One folded row; `met` is when it came up in the pass.
    pub(super) fn of_row(task: &Task<'_>, row: u32, met: u32) -> Self {
        Group {
            bounds: task.rows.cells(row).iter().map(|&code| (code, code)).collect(),
            width: 0.0,
            weight: u64::from(task.rows.weight(row)),
            rows: vec![row],
            met,
            tally: None,
            asked_from: 0,
        }
    }

    /// Takes in another group; `width` is the loss of each row afterwards.
    pub(super) fn absorb(&mut self, task: &Task<'_>, other: Group<'_>, width: f64) {
        bounds::unite(&mut self.bounds, &other.bounds);
        self.width = width;
        self.weight += other.weight;
        if let Some(tally) = &mut self.tally {
            other.rows.iter().flat_map(|&row| task.rows.members(row)).for_each(|&member| tally.add(member));
        }
        self.rows.extend(other.rows);
    }

    pub(super) fn loss(&self) -> f64 {
        self.weight as f64 * self.width
    }

    /// The same group without its counts, because it will not be checked again.
    pub(super) fn closed(mut self) -> Self {
        self.tally = None;
        self
    }
}

/// Measures groups, and decides whether they may be classes.
pub(super) struct Judge<'r> {
    task: &'r Task<'r>,
    columns: Vec<Widths<'r>>,
    tally: Tally<'r>,
}

impl<'r> Judge<'r> {
    pub(super) fn new(task: &'r Task<'r>) -> Judge<'r> {
        let columns = task.domains.iter().map(|domain| Widths::new(domain, TABLE_CODES)).collect();
        Judge { task, columns, tally: Tally::new(task.rules) }
    }

    /// The loss of each row if the two groups were one.
    pub(super) fn width_together(&self, a: &Group<'_>, b: &Group<'_>) -> f64 {
        self.width_up_to(a, b, f64::INFINITY).unwrap_or(f64::INFINITY)
    }

    /// The loss of each row if the two groups were one; `None` if it is more than `most`.
    #[inline]
    fn width_up_to(&self, a: &Group<'_>, b: &Group<'_>, most: f64) -> Option<f64> {
        let mut width = 0.0;
        for (widths, (a, b)) in self.columns.iter().zip(a.bounds.iter().zip(&b.bounds)) {
            width += widths.of(a.0.min(b.0), a.1.max(b.1));
            if width > most {
                return None;
            }
        }
        Some(width)
    }

    /// The effect of joining `group` to one of `others`.
    pub(super) fn join(&self, others: &[Group<'_>], position: usize, group: &Group<'_>) -> Nearest {
        let other = &others[position];
        let width = self.width_together(other, group);
        let growth = (other.weight + group.weight) as f64 * width - other.loss() - group.loss();
        Nearest { position, growth, width }
    }

    /// The group whose loss grows least, together with that of `group`; the first of equals.
    pub(super) fn nearest(&self, others: &[Group<'_>], group: &Group<'_>) -> Option<Nearest> {
        let mut nearest: Option<Nearest> = None;
        for (position, other) in others.iter().enumerate() {
            let weight = (other.weight + group.weight) as f64;
            let least = nearest.map_or(f64::INFINITY, |nearest| nearest.growth);
            let before = other.loss() + group.loss();
            let Some(width) = self.width_up_to(other, group, (least + before) / weight) else { continue };
            let growth = weight * width - before;
            if growth < least {
                nearest = Some(Nearest { position, growth, width });
            }
        }
        nearest
    }

    /// Whether a group satisfies the rules. A group that was refused may be refused again, without counting, until it
    /// has grown by a share.
    pub(super) fn stands(&self, group: &mut Group<'r>) -> bool {
        let Task { rows, rules, .. } = *self.task;
        if group.weight < group.asked_from.max(u64::from(rules.k())) {
            return false;
        }
        if rules.weight_suffices() {
            return true;
        }
        let tally = group.tally.get_or_insert_with(|| {
            let mut tally = Tally::new(rules);
            tally.recount(group.rows.iter().flat_map(|&row| rows.members(row)).copied());
            tally
        });
        if tally.stands() {
            return true;
        }
        group.asked_from = group.weight + group.weight / ASKED_AGAIN + 1;
        false
    }

    /// Whether a group satisfies the rules, counted even if it was refused a moment ago.
    pub(super) fn stands_after_all(&self, group: &mut Group<'r>) -> bool {
        group.asked_from = 0;
        self.stands(group)
    }

    pub(super) fn stand_together(&mut self, a: &Group<'_>, b: &Group<'_>) -> bool {
        self.task.stands(&mut self.tally, a.rows.iter().chain(&b.rows).copied())
    }
}
