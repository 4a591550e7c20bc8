//! Rows under one box, what joining two of them loses, and whether one may be a class.

use super::super::Task;
use crate::encode::{Domain, Rows};
use crate::requirement::{Rules, Tally};

/// Columns with at most this many codes have the width of every interval in a table, which then fits into a cache.
const TABLE_CODES: u32 = 256;

/// After a refusal a group is asked about again when it has grown by this share, so that asking about a group that
/// grows row by row does not cost the square of its size.
const ASKED_AGAIN: u64 = 16;

/// Rows under one box.
#[derive(Debug)]
pub(super) struct Group<'r> {
    bounds: Vec<(u32, u32)>,
    /// What each of its rows loses, added over columns.
    width: f64,
    /// How many rows of the table it has.
    pub(super) weight: u64,
    /// Its folded rows.
    pub(super) rows: Vec<u32>,
    /// When the pass met it, or its last row.
    pub(super) met: u32,
    /// Counts its rows, once it has been asked about.
    tally: Option<Tally<'r>>,
    /// It is not asked about under this weight.
    asked_from: u64,
}

/// Another group, and what joining it would mean.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nearest {
    /// Where it stands in the slice that was searched.
    pub(super) position: usize,
    /// By how much the loss of all rows of both together grows.
    pub(super) growth: f64,
    /// What each row loses afterwards.
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

    /// Takes in another group; `width` is what each row loses then.
    pub(super) fn absorb(&mut self, task: &Task<'_>, other: Group<'_>, width: f64) {
        for (bound, (lo, hi)) in self.bounds.iter_mut().zip(other.bounds) {
            *bound = (bound.0.min(lo), bound.1.max(hi));
        }
        self.width = width;
        self.weight += other.weight;
        if let Some(tally) = &mut self.tally {
            other.rows.iter().flat_map(|&row| task.rows.members(row)).for_each(|&member| tally.add(member));
        }
        self.rows.extend(other.rows);
    }

    /// What all its rows lose together.
    pub(super) fn loss(&self) -> f64 {
        self.weight as f64 * self.width
    }
}

/// Measures boxes.
#[derive(Debug)]
pub(super) struct Space<'d> {
    columns: Vec<Widths<'d>>,
}

#[derive(Debug)]
enum Widths<'d> {
    /// The width of `lo..=hi` is at `lo * n_codes + hi`.
    Table {
        n_codes: usize,
        widths: Vec<f32>,
    },
    Domain(&'d Domain),
}

impl Widths<'_> {
    #[inline]
    fn of(&self, lo: u32, hi: u32) -> f64 {
        match self {
            Widths::Table { n_codes, widths } => f64::from(widths[lo as usize * n_codes + hi as usize]),
            Widths::Domain(domain) => domain.width(lo, hi),
        }
    }
}

impl<'d> Space<'d> {
    pub(super) fn new(task: &Task<'d>) -> Space<'d> {
        let widths = |domain: &'d Domain| match domain.n_codes() {
            n_codes @ 0..=TABLE_CODES => {
                let width = |lo: u32, hi: u32| if lo <= hi { domain.width(lo, hi) as f32 } else { 0.0 };
                let widths = (0..n_codes).flat_map(|lo| (0..n_codes).map(move |hi| width(lo, hi))).collect();
                Widths::Table { n_codes: n_codes as usize, widths }
            }
            _ => Widths::Domain(domain),
        };
        Space { columns: task.domains.iter().map(widths).collect() }
    }

    /// What each row of two groups would lose in one.
    pub(super) fn width_together(&self, a: &Group<'_>, b: &Group<'_>) -> f64 {
        self.width_up_to(a, b, f64::INFINITY).unwrap_or(f64::INFINITY)
    }

    /// What each row of two groups would lose in one, `None` where it is more than `most`.
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

    /// What joining `group` to one of `others` would mean.
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
}

/// Decides whether groups may be classes.
#[derive(Debug)]
pub(super) struct Judge<'r> {
    rules: &'r Rules,
    rows: &'r Rows,
    /// Counters of groups that are no longer asked about.
    spare: Vec<Tally<'r>>,
}

impl<'r> Judge<'r> {
    pub(super) fn new(task: &Task<'r>) -> Judge<'r> {
        Judge { rules: task.rules, rows: task.rows, spare: Vec::new() }
    }

    /// Whether a group satisfies the rules. After a refusal it may be refused until it has grown by a share.
    pub(super) fn stands(&mut self, group: &mut Group<'r>) -> bool {
        if group.weight < group.asked_from.max(u64::from(self.rules.k())) {
            return false;
        }
        if self.rules.weight_suffices() {
            return true;
        }
        let tally = group.tally.get_or_insert_with(|| {
            let mut tally = self.spare.pop().unwrap_or_else(|| Tally::new(self.rules));
            group.rows.iter().flat_map(|&row| self.rows.members(row)).for_each(|&member| tally.add(member));
            tally
        });
        if tally.stands() {
            return true;
        }
        group.asked_from = group.weight + group.weight / ASKED_AGAIN + 1;
        false
    }

    /// Whether two groups together satisfy the rules.
    pub(super) fn stand_together(&mut self, a: &Group<'_>, b: &Group<'_>) -> bool {
        if self.rules.weight_suffices() {
            return a.weight + b.weight >= u64::from(self.rules.k());
        }
        let mut tally = self.spare.pop().unwrap_or_else(|| Tally::new(self.rules));
        let rows = a.rows.iter().chain(&b.rows);
        rows.flat_map(|&row| self.rows.members(row)).for_each(|&member| tally.add(member));
        let stands = tally.stands();
        tally.clear();
        self.spare.push(tally);
        stands
    }

    /// The same group, about which nothing more is asked.
    pub(super) fn close(&mut self, mut group: Group<'r>) -> Group<'r> {
        if let Some(mut tally) = group.tally.take() {
            tally.clear();
            self.spare.push(tally);
        }
        group
    }

    /// Whether a group satisfies the rules, however often it was asked about.
    pub(super) fn stands_after_all(&mut self, group: &mut Group<'r>) -> bool {
        group.asked_from = 0;
        self.stands(group)
    }
}
