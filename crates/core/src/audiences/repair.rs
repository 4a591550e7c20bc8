//! [`Repair`]: rows are placed one by one, and bodies are made only of those that can't be placed.
//!
//! # Guarantee
//! every class satisfies its rules, counted from what is shown
//! # Cost
//! bounded by how often rows are visited, so it is a multiple of the cost of one partition, plus that of the bodies

use super::atoms::Atoms;
use super::finder::Finder;
use super::layers::Layers;
use super::looks::Interval;
use super::settle::Outcome;
use super::shown::ShownBoxes;
use super::views::Views;
use crate::requirement::Tally;

/// If a round of narrowing leaves more than this share of the loss, another one is not worth its time.
const WORTH_A_ROUND: f64 = 0.995;

/// Which rows are placed before bodies are made of the rest.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Placed {
    /// Rows that satisfy everybody as they are.
    Untouched,
    /// Rows that satisfy everybody in some layer.
    ByLayers,
}

/// The ways to repair a table.
pub(super) struct Repair<'r, 'a> {
    pub(super) rows: &'r Atoms<'a>,
    pub(super) layers: &'r Layers<'r>,
    pub(super) finder: &'r Finder<'r>,
    /// How often rows may be visited by each of the ways.
    pub(super) most_visits: u64,
}

impl<'a> Repair<'_, 'a> {
    /// Places rows first and makes bodies of the rest. `None` if no row can be placed, or if it can't lose less than the
    /// limit.
    pub(super) fn around(&self, placed: Placed, limit: f64) -> Option<Outcome<'a>> {
        let mut views = Views::empty(self.rows, &self.finder.demands.visible);
        match placed {
            Placed::Untouched => {
                views.advance(&self.rows.all(), |row, shown| self.show_codes(row, shown));
            }
            Placed::ByLayers => self.layers.place(&mut views, self.most_visits, self.finder.progress),
        }
        let rest = self.rest(&mut views)?;
        if !rest.is_empty() {
            let part = Atoms::of_rows(self.rows.domains, self.rows.rows.part(&rest));
            let found = self.finder.bodies_of_some(&part, limit - views.total())?;
            views.place(&rest, &self.shown_in(&found, &rest));
        }
        Some(self.narrowed(views, placed))
    }

    /// Narrows what was found.
    pub(super) fn after(&self, found: &Outcome<'_>) -> Outcome<'a> {
        let mut views = Views::empty(self.rows, &self.finder.demands.visible);
        let all = self.rows.all();
        views.place(&all, &self.shown_in(found, &all));
        self.narrowed(views, Placed::Untouched)
    }

    /// What each of these rows shows in an outcome.
    fn shown_in(&self, found: &Outcome<'_>, rows: &[u32]) -> Vec<Interval> {
        let atom_of_row = found.atom_of_rows();
        let atom = |&row: &u32| atom_of_row[self.rows.rows.members(row)[0] as usize];
        let columns = 0..self.rows.domains.len();
        rows.iter()
            .map(atom)
            .flat_map(|atom| columns.clone().map(move |column| found.shown.interval(atom, column)))
            .collect()
    }

    fn show_codes(&self, row: u32, shown: &mut [Interval]) {
        for (shown, &code) in shown.iter_mut().zip(self.rows.rows.cells(row)) {
            *shown = (code, code);
        }
    }

    /// The rows that are not placed. If they can't be a class together, others join them, those nearest to them first.
    fn rest(&self, views: &mut Views<'_>) -> Option<Vec<u32>> {
        let columns: Vec<usize> = (0..self.rows.domains.len()).collect();
        let mut tally = Tally::new(self.finder.rules);
        loop {
            let rest = views.unplaced();
            if rest.len() == self.rows.len() {
                return None;
            }
            if rest.is_empty() || self.rows.stand(&mut tally, &rest, self.finder.rules) {
                return Some(rest);
            }
            let bounds = self.rows.bounds(&rest, &columns);
            let cost = |row: u32| {
                let cells = self.rows.rows.cells(row).iter().zip(&bounds).zip(self.rows.domains);
                let width: f64 =
                    cells.map(|((&code, &(lo, hi)), domain)| domain.width(lo.min(code), hi.max(code))).sum();
                width - views.loss(row)
            };
            let placed = self.rows.all().into_iter().filter(|&row| views.is_placed(row));
            let mut placed: Vec<(f64, u32)> = placed.map(|row| (cost(row), row)).collect();
            placed.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let joining: Vec<u32> = placed.iter().take(rest.len()).map(|&(_, row)| row).collect();
            views.take_out(&joining);
        }
    }

    /// Lets rows show narrower cells as far as possible, and then counts every class once more.
    fn narrowed(&self, mut views: Views<'_>, placed: Placed) -> Outcome<'a> {
        // Rows that were placed by layers have been through all of them.
        if placed == Placed::Untouched {
            self.layers.place(&mut views, self.most_visits, self.finder.progress);
        }
        let end = views.visits() + self.most_visits;
        loop {
            let before = views.total();
            let losing = views.losing();
            views.advance(&losing, |row, shown| self.show_codes(row, shown));
            for (column, domain) in self.rows.domains.iter().enumerate() {
                for level in 0..self.layers.n_levels(column) {
                    let losing = views.losing();
                    views.advance(&losing, |row, shown| {
                        let (lo, hi) = self.layers.cell(column, level, self.rows.rows.cells(row)[column]);
                        if domain.width(lo, hi) < domain.width(shown[column].0, shown[column].1) {
                            shown[column] = (lo, hi);
                        }
                    });
                }
            }
            let is_over = views.visits() > end || self.finder.progress.is_cancelled();
            if is_over || views.total() > WORTH_A_ROUND * before {
                break;
            }
        }
        let shown = ShownBoxes::of_intervals(self.rows, &views.into_shown());
        let mut outcome = Outcome::of_shown(self.rows.clone(), shown, self.finder.demands);
        outcome.settle(self.finder.demands);
        outcome
    }
}
