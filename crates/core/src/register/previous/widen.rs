//! Widens the cells of classes until they cover k persons of an earlier class, too.
//!
//! Nobody joins a class for that: its cells reach as far as the nearest of those persons. If presence is hidden, a
//! class is widened for all its members, private or not, so that its cells do not tell who is.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::ClassPersons;
use super::past::{Past, WayTogether};
use crate::encode::bounds::{self, Bounds, include};
use crate::register::crowd::{Crowd, Draft};

/// Widens classes. `needed` tells among how many persons each member must be. Returns the number of classes that can't
/// be made wide enough.
pub(in crate::register) fn widen(
    crowd: &Crowd<'_>,
    past: &Past<'_>,
    drafts: &mut [Draft],
    persons: &[ClassPersons],
    needed: impl Fn(u32) -> u32 + Sync,
) -> u64 {
    let widen_one = |(draft, persons): (&mut Draft, &ClassPersons)| {
        // In the order of their classes, which does not depend on who is private.
        let mut ways: BTreeMap<&[u32], (&WayTogether, u64)> = BTreeMap::new();
        for &member in &persons.members {
            for way in past.ways_of(member) {
                let others = u64::from(needed(member)) - way.n_own(member).min(u64::from(needed(member)));
                let entry = ways.entry(&way.classes).or_insert((way, 0));
                entry.1 = entry.1.max(others);
            }
        }
        let mut bounds = crowd.bounds(draft);
        let reaches = ways.into_values().all(|(way, needed)| reach(crowd, &mut bounds, &places(crowd, way), needed));
        draft.reach = bounds;
        u64::from(!reaches)
    };
    drafts.par_iter_mut().zip(persons).map(widen_one).sum()
}

/// Where the current registers describe the persons of a way.
fn places(crowd: &Crowd<'_>, way: &WayTogether) -> Vec<Vec<u32>> {
    way.persons.iter().filter_map(|&person| crowd.joined.public_place(person)).map(|row| crowd.codes(row)).collect()
}

/// Widens a box until it contains this many of these places, the nearest first. Returns `false` if there are fewer.
fn reach(crowd: &Crowd<'_>, bounds: &mut Bounds, places: &[Vec<u32>], needed: u64) -> bool {
    loop {
        let shown = crowd.hull(bounds);
        let is_shown = |place: &&Vec<u32>| bounds::holds(&shown, place);
        if places.iter().filter(is_shown).count() as u64 >= needed {
            return true;
        }
        let width_with = |place: &Vec<u32>| bounds::width_with(crowd.domains(), bounds, place.iter().copied());
        let outside = places.iter().filter(|place| !is_shown(place)).map(|place| (width_with(place), place));
        let Some((_, nearest)) = outside.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(b.1))) else { return false };
        include(bounds, nearest);
    }
}
