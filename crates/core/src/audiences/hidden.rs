//! What the cells of a quasi column tell an audience that does not know the column, and how to tell less.
//!
//! Definitions are those of [`kohort_model::Requirement`] for quasi columns that only others know. Cells show intervals
//! of codes here: two are disjoint where their intervals are, and one that is the whole domain tells nothing.
//!
//! # Guarantee
//! mending always ends, at the latest where no cell of the column tells anything
//! # Deviations
//! the verifier also takes a range that holds every cell of the release for one that tells nothing. Where that is less
//! than the domain, because somebody was left out, it finds no more told than is found here
//! # Cost
//! one fold of the atoms per demand and round

use kohort_model::{Distance, Requirement, Table};

use super::atoms::Atoms;
use super::butterfly::Piece;
use super::settle::Outcome;
use super::shown::ShownBoxes;
use crate::AnonymizeError;
use crate::encode::{Domain, Encoded};
use crate::requirement::{UnfitColumn, shared_persons};

/// Less than the verifier allows, so that rounding in another order there never refuses what stood here.
const TOLERANCE: f64 = 1e-10;

/// A requirement on a column that those who ask do not know, columns by their place among the quasi columns.
pub(super) struct HiddenAsk {
    /// What they know.
    pub(super) columns: Vec<usize>,
    /// What must be kept from them.
    pub(super) column: usize,
    pub(super) requirement: Requirement,
}

/// The same, to be counted.
pub(super) struct HiddenDemand {
    columns: Vec<usize>,
    column: usize,
    bound: HiddenBound,
    /// Per row of the table its person, where some person has several.
    person_of_row: Option<Vec<u32>>,
}

#[derive(Clone, Copy)]
enum HiddenBound {
    Disjoint(u64),
    Closeness(f64),
}

/// How often atoms show each interval: pairs of a person and an interval.
type Counts = Vec<((u32, u32), u64)>;

impl HiddenDemand {
    /// Compiles what is asked.
    ///
    /// # Errors
    /// Where a requirement is not defined for generalized cells, or a column tells the same whatever it shows.
    pub(super) fn compile(
        asks: &[HiddenAsk],
        table: &Table,
        encoded: &Encoded<'_>,
    ) -> Result<Vec<HiddenDemand>, AnonymizeError> {
        let demand = |ask: &HiddenAsk| {
            let name = || ask.requirement.column().unwrap_or_default().to_owned();
            let bound = match ask.requirement {
                Requirement::DistinctL { l, .. } => HiddenBound::Disjoint(u64::from(l)),
                Requirement::TCloseness { t, distance: Distance::Equal, .. } => HiddenBound::Closeness(t),
                Requirement::TCloseness { distance: Distance::Ordered | Distance::Hierarchical, .. }
                | Requirement::K(_)
                | Requirement::PersonK { .. }
                | Requirement::EntropyL { .. }
                | Requirement::RecursiveCL { .. }
                | Requirement::Alpha { .. }
                | Requirement::Beta { .. }
                | Requirement::EnhancedBeta { .. } => return Err(UnfitColumn { column: name() }.into()),
            };
            let says_one_thing = encoded.domains[ask.column].n_codes() < 2;
            if says_one_thing && matches!(bound, HiddenBound::Disjoint(l) if l > 1) {
                return Err(AnonymizeError::OneValue { column: name() });
            }
            let (columns, column) = (ask.columns.clone(), ask.column);
            if columns.contains(&column) {
                return Err(UnfitColumn { column: name() }.into());
            }
            Ok(HiddenDemand { columns, column, bound, person_of_row: shared_persons(table) })
        };
        asks.iter().map(demand).collect()
    }

    /// The atoms whose class is told too much.
    pub(super) fn unmet(&self, atoms: &Atoms<'_>, shown: &ShownBoxes) -> Vec<u32> {
        let of_release = self.counts(atoms, &atoms.all(), shown);
        let groups = shown.groups(&self.columns);
        let is_unmet =
            |&group: &u32| !self.holds(&self.counts(atoms, groups.members(group), shown), &of_release, atoms);
        (0..groups.len() as u32).filter(is_unmet).flat_map(|group| groups.members(group)).copied().collect()
    }

    /// What some atoms show, by interval.
    fn counts(&self, atoms: &Atoms<'_>, members: &[u32], shown: &ShownBoxes) -> Counts {
        let interval = |atom: u32| shown.interval(atom, self.column);
        let mut counts: Counts = match &self.person_of_row {
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

    /// Whether a class that shows this is told little enough.
    fn holds(&self, class: &Counts, of_release: &Counts, atoms: &Atoms<'_>) -> bool {
        let domain = &atoms.domains[self.column];
        let told = |counts: &Counts| -> Counts {
            counts.iter().filter(|(interval, _)| tells(domain, *interval)).copied().collect()
        };
        let total = |counts: &Counts| counts.iter().map(|(_, count)| *count as f64).sum::<f64>();
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
fn n_disjoint(told: &Counts) -> u64 {
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
    /// Lets bodies with rows whose class is told too much tell less, and says whether there were any.
    ///
    /// Either all rows of the body look the same to those who are told too much, where that suffices and loses less, or
    /// the column shows its whole domain in the body. The second always suffices: a class of such rows alone is told
    /// nothing, and whatever else is in the class is mended in the same round or the next. Nothing is ever narrowed.
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
                // From what is shown, not from what is there: what was hidden from others stays so.
                let bounds = |&column: &usize| {
                    let intervals = body.iter().map(|&atom| shown.interval(atom, column));
                    intervals.fold((u32::MAX, 0), |(lo, hi), interval| (lo.min(interval.0), hi.max(interval.1)))
                };
                let bounds = demand.columns.iter().map(bounds).collect();
                let alike = Piece { columns: &demand.columns, atoms: body.clone(), bounds };
                let grows = |piece: &Piece<'_>| {
                    let width = atoms.perimeter(&piece.bounds, piece.columns) * atoms.rows.weight_of(body) as f64;
                    width - shown.loss_of(atoms, body, piece.columns)
                };
                let all_alike = body.iter().all(|&atom| shown.groups_alike(atom, body[0], &demand.columns));
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
