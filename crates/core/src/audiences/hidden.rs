//! What the cells of a quasi column tell an audience that does not know the column, and how to tell less.
//!
//! Definitions are those of [`kohort_model::Requirement`] for quasi columns that only others know. Cells show intervals
//! of codes here: two are disjoint where their intervals are, and one that is the whole domain tells nothing.
//!
//! # Guarantee
//! mending always ends, at the latest where no cell of the column tells anything
//! # Deviations
//! For the verifier, a range that holds every cell of the release tells nothing either. If that range is less than
//! the domain, because somebody was left out, the verifier finds no more told than is found here.
//! # Cost
//! one fold of the atoms per demand and round

use std::collections::BTreeSet;

use kohort_model::{Distance, Requirement, Table};

use super::atoms::Atoms;
use super::butterfly::Piece;
use super::settle::Outcome;
use super::shown::ShownBoxes;
use crate::AnonymizeError;
use crate::encode::{Domain, Encoded, bounds};
use crate::requirement::{UnfitColumn, shared_persons};

/// The tolerance for rounding. The verifier tolerates more, so it never refuses a class that was accepted here because
/// it adds up in another order.
const TOLERANCE: f64 = 1e-10;

/// A requirement on a column that the audience or coalition does not know. Columns are positions among the quasi
/// columns.
pub(super) struct HiddenDemand {
    /// What they know.
    columns: Vec<usize>,
    /// What must be kept from them.
    column: usize,
    bound: HiddenBound,
    /// The person of each row of the table, if some person has several rows.
    person_of_row: Option<Vec<u32>>,
}

#[derive(Clone, Copy)]
enum HiddenBound {
    Disjoint(u64),
    Closeness(f64),
}

/// Each interval, with the number of persons who show it in some atoms.
type IntervalCounts = Vec<((u32, u32), u64)>;

impl HiddenDemand {
    /// Compiles a requirement on a column for somebody who knows other columns.
    ///
    /// # Errors
    /// If the requirement is not defined for generalized cells, or the column tells the same whatever it shows.
    pub(super) fn new(
        table: &Table,
        encoded: &Encoded<'_>,
        known: &BTreeSet<usize>,
        column: usize,
        requirement: &Requirement,
    ) -> Result<HiddenDemand, AnonymizeError> {
        let name = || requirement.column().unwrap_or_default().to_owned();
        let bound = match requirement {
            Requirement::DistinctL { l, .. } => HiddenBound::Disjoint(u64::from(*l)),
            Requirement::TCloseness { t, distance: Distance::Equal, .. } => HiddenBound::Closeness(*t),
            Requirement::TCloseness { distance: Distance::Ordered | Distance::Hierarchical, .. }
            | Requirement::K(_)
            | Requirement::PersonK { .. }
            | Requirement::EntropyL { .. }
            | Requirement::RecursiveCL { .. }
            | Requirement::Alpha { .. }
            | Requirement::Beta { .. }
            | Requirement::EnhancedBeta { .. } => return Err(UnfitColumn { column: name() }.into()),
        };
        let says_one_thing = encoded.domains[column].n_codes() < 2;
        if says_one_thing && matches!(bound, HiddenBound::Disjoint(l) if l > 1) {
            return Err(AnonymizeError::OneValue { column: name() });
        }
        if known.contains(&column) {
            return Err(UnfitColumn { column: name() }.into());
        }
        let columns = known.iter().copied().collect();
        Ok(HiddenDemand { columns, column, bound, person_of_row: shared_persons(table) })
    }

    /// The atoms of classes whose cells tell too much.
    pub(super) fn unmet(&self, atoms: &Atoms<'_>, shown: &ShownBoxes) -> Vec<u32> {
        let of_release = self.counts(atoms, &atoms.all(), shown);
        let groups = shown.groups(&self.columns);
        let is_unmet =
            |&group: &u32| !self.holds(&self.counts(atoms, groups.members(group), shown), &of_release, atoms);
        (0..groups.len() as u32).filter(is_unmet).flat_map(|group| groups.members(group)).copied().collect()
    }

    /// What some atoms show, by interval.
    fn counts(&self, atoms: &Atoms<'_>, members: &[u32], shown: &ShownBoxes) -> IntervalCounts {
        let interval = |atom: u32| shown.interval(atom, self.column);
        let mut counts: IntervalCounts = match &self.person_of_row {
            None => members.iter().map(|&atom| (interval(atom), u64::from(atoms.rows.weight(atom)))).collect(),
            Some(person_of_row) => {
                let rows = members.iter().flat_map(|&atom| {
                    atoms.rows.members(atom).iter().map(move |&row| (interval(atom), person_of_row[row as usize]))
                });
                let mut pairs: Vec<((u32, u32), u32)> = rows.collect();
                pairs.sort_unstable();
                pairs.dedup();
                pairs.into_iter().map(|(interval, _)| (interval, 1)).collect()
            }
        };
        counts.sort_unstable();
        counts.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            earlier.1 += if same { later.1 } else { 0 };
            same
        });
        counts
    }

    /// Whether the cells of a class tell no more than the requirement allows.
    fn holds(&self, class: &IntervalCounts, of_release: &IntervalCounts, atoms: &Atoms<'_>) -> bool {
        let domain = &atoms.domains[self.column];
        let told = |counts: &IntervalCounts| -> IntervalCounts {
            counts.iter().filter(|(interval, _)| tells(domain, *interval)).copied().collect()
        };
        let total = |counts: &IntervalCounts| counts.iter().map(|(_, count)| *count as f64).sum::<f64>();
        let told_here = told(class);
        if told_here.is_empty() {
            return true;
        }
        match self.bound {
            HiddenBound::Disjoint(l) => n_disjoint(&told_here) >= l,
            HiddenBound::Closeness(t) => {
                let told_anywhere = told(of_release);
                let (all, anywhere) = (total(class), total(&told_anywhere));
                let share_told = total(&told_here) / all;
                let too_much = |(interval, count): &((u32, u32), u64)| {
                    let place = told_anywhere.binary_search_by_key(interval, |(interval, _)| *interval);
                    let share = place.map_or(0.0, |place| told_anywhere[place].1 as f64 / anywhere);
                    (*count as f64 / all - share_told * share).max(0.0)
                };
                told_here.iter().map(too_much).sum::<f64>() <= t + TOLERANCE
            }
        }
    }
}

/// Whether a cell that shows this interval tells something: all but the whole domain does.
fn tells(domain: &Domain, interval: (u32, u32)) -> bool {
    let n_codes = domain.n_codes();
    n_codes < 2 || interval != (0, n_codes - 1)
}

/// The largest number of intervals no two of which overlap.
fn n_disjoint(told: &IntervalCounts) -> u64 {
    let mut by_end: Vec<(u32, u32)> = told.iter().map(|((lo, hi), _)| (*hi, *lo)).collect();
    by_end.sort_unstable();
    let mut last_end = None;
    let mut n = 0;
    for (hi, lo) in by_end {
        if last_end.is_none_or(|end| lo > end) {
            last_end = Some(hi);
            n += 1;
        }
    }
    n
}

impl Outcome<'_> {
    /// Makes bodies tell less where the cells of a class tell too much. Returns whether there were any.
    ///
    /// Either all rows of the body become alike to those who are told too much, if that suffices and loses less, or
    /// the column shows its whole domain in the body. The second always suffices: a class of such rows alone is told
    /// nothing, and a class with other rows is mended in the same round or the next. Nothing is ever narrowed.
    pub(super) fn hide_unmet(&mut self, demands: &[HiddenDemand]) -> bool {
        let mut any = false;
        for demand in demands {
            let mut is_unmet = vec![false; self.atoms.len()];
            for atom in demand.unmet(&self.atoms, &self.shown) {
                is_unmet[atom as usize] = true;
            }
            let of_release = demand.counts(&self.atoms, &self.atoms.all(), &self.shown);
            for body in &self.bodies {
                if !body.iter().any(|&atom| is_unmet[atom as usize]) {
                    continue;
                }
                any = true;
                let Outcome { atoms, shown, .. } = self;
                let whole = (0, atoms.domains[demand.column].n_codes() - 1);
                let hidden =
                    Piece { columns: std::slice::from_ref(&demand.column), atoms: body.clone(), bounds: vec![whole] };
                // Start from the intervals that are shown, not from the values, so that something hidden from others
                // stays hidden.
                let bounds = |&column: &usize| {
                    body.iter().map(|&atom| shown.interval(atom, column)).fold(bounds::EMPTY, bounds::both)
                };
                let bounds = demand.columns.iter().map(bounds).collect();
                let alike = Piece { columns: &demand.columns, atoms: body.clone(), bounds };
                let grows = |piece: &Piece<'_>| {
                    let width = atoms.perimeter(&piece.bounds, piece.columns) * atoms.rows.weight_of(body) as f64;
                    width - shown.loss_of(atoms, body, piece.columns)
                };
                let all_alike = body.iter().all(|&atom| shown.alike(atom, body[0], demand.columns.iter().copied()));
                let suffices = !all_alike && demand.holds(&demand.counts(atoms, body, shown), &of_release, atoms);
                if suffices && grows(&alike) <= grows(&hidden) {
                    self.shown.show(&self.atoms, &alike);
                } else {
                    self.shown.show(&self.atoms, &hidden);
                }
            }
        }
        any
    }
}
