//! Classes show more where that is what it takes to hold k persons of an earlier class, too.
//!
//! Nobody joins a class for it: its cells reach as far as the nearest of those persons. A reader who sees that can tell
//! that somebody of the class is one of the k.

use std::collections::BTreeMap;

use kohort_model::NULL;
use rayon::prelude::*;

use super::{Earlier, Way, ways};
use crate::AnonymizeError;
use crate::register::crowd::{Bounds, Crowd, Draft, include};
use crate::register::index::Index;

/// Widens classes.
///
/// # Errors
/// Where an earlier class holds too few persons whom registers still describe as they did.
pub(in crate::register) fn widen(
    crowd: &Crowd<'_>,
    earlier: &[Earlier<'_>],
    drafts: &mut [Draft],
) -> Result<(), AnonymizeError> {
    let is_known = |&row: &u32| crowd.rows.members(row).iter().any(|&person| was_known(earlier, person));
    let known: Vec<u32> = (0..crowd.rows.len() as u32).filter(is_known).collect();
    let index = Index::over(&crowd.rows, crowd.domains(), known);
    let persons: u64 = drafts.par_iter_mut().map(|draft| Widening { crowd, earlier, index: &index }.widen(draft)).sum();
    if persons == 0 { Ok(()) } else { Err(AnonymizeError::PreviousCrowd { persons, k: crowd.k() }) }
}

fn was_known(earlier: &[Earlier<'_>], person: u32) -> bool {
    earlier.iter().any(|release| release.known[person as usize])
}

struct Widening<'a> {
    crowd: &'a Crowd<'a>,
    earlier: &'a [Earlier<'a>],
    index: &'a Index<'a>,
}

impl Widening<'_> {
    /// Widens a class; tells how many of its private persons stay among too few.
    fn widen(&self, draft: &mut Draft) -> u64 {
        // Per way how many others its persons need, and how many persons can have gone it.
        let mut needed: BTreeMap<Way, (u64, u64)> = BTreeMap::new();
        for &row in &draft.microdata {
            for way in ways(self.crowd, self.earlier, row) {
                let own = u64::from(!self.is_known(&way, row));
                let entry = needed.entry(way).or_default();
                *entry = (entry.0.max(u64::from(self.crowd.k_of_row(row)) - own), entry.1 + 1);
            }
        }
        let mut bounds = self.crowd.bounds(draft);
        let mut n_short = 0;
        for (way, (needed, persons)) in needed {
            let mut inside: Vec<(u32, u64)> =
                self.index.within(&self.common(&way)).into_iter().map(|row| (row, self.n_known(&way, row))).collect();
            inside.retain(|&(_, n)| n > 0);
            if inside.iter().map(|&(_, n)| n).sum::<u64>() < needed {
                n_short += persons;
                continue;
            }
            let width_with = |row: u32| {
                let mut grown = bounds.clone();
                include(&mut grown, self.crowd.rows.cells(row));
                self.crowd.width(&grown)
            };
            inside.sort_by_cached_key(|&(row, _)| (width_with(row).to_bits(), row));
            for &(row, _) in &inside {
                let shown = self.crowd.hull(&bounds);
                let lies_inside = |row: u32| {
                    self.crowd.rows.cells(row).iter().zip(&shown).all(|(code, &(lo, hi))| (lo..=hi).contains(code))
                };
                if inside.iter().filter(|(row, _)| lies_inside(*row)).map(|&(_, n)| n).sum::<u64>() >= needed {
                    break;
                }
                include(&mut bounds, self.crowd.rows.cells(row));
            }
        }
        draft.reach = bounds;
        n_short
    }

    /// What all classes of a way show.
    fn common(&self, way: &Way) -> Bounds {
        let mut common: Bounds = self.crowd.domains().iter().map(|domain| (0, domain.n_codes() - 1)).collect();
        for (release, &class) in self.earlier.iter().zip(way).filter(|(_, class)| **class != NULL) {
            for (bound, &(lo, hi)) in common.iter_mut().zip(&release.boxes[class as usize]) {
                *bound = (bound.0.max(lo), bound.1.min(hi));
            }
        }
        common
    }

    /// How many of a folded row's persons registers described alike all the way.
    fn n_known(&self, way: &Way, folded: u32) -> u64 {
        self.crowd.rows.members(folded).iter().filter(|&&person| self.is_known(way, person)).count() as u64
    }

    fn is_known(&self, way: &Way, person: u32) -> bool {
        let releases = self.earlier.iter().zip(way).filter(|(_, class)| **class != NULL);
        releases.into_iter().all(|(release, _)| release.known[person as usize])
    }
}
