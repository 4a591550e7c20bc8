//! Sensitive groups for classes that have none: whole classes are put together until their private rows satisfy what is
//! asked of sensitive values, and k private persons share every group.
//!
//! A class of the join may hold a single private row, whose values its rows must not give away. Regions of classes, or
//! classes by themselves, become rows at the middle of their boxes, which the partitioner turns into groups as it would
//! turn rows into classes.
//!
//! # Deviations
//! the paper has no sensitive groups for direct

use std::collections::BTreeMap;

use kohort_model::Silent;

use super::crowd::{Crowd, Draft};
use crate::encode::Rows;
use crate::encode::bounds::{self, Bounds};
use crate::partition::{Partitioner, Task, Unreachable};

/// Puts every class into a group: all classes of one region into the same. `regions` says where each class is.
pub(super) fn group(
    crowd: &Crowd<'_>,
    drafts: &mut [Draft],
    regions: &[usize],
    partitioner: &dyn Partitioner,
) -> Result<(), Unreachable> {
    let mut of_regions: BTreeMap<usize, (Bounds, Vec<usize>)> = BTreeMap::new();
    for (class, (draft, &region)) in drafts.iter().zip(regions).enumerate() {
        let bounds = crowd.bounds(draft);
        let (united, classes) = of_regions.entry(region).or_insert_with(|| (bounds.clone(), Vec::new()));
        bounds::unite(united, &bounds);
        classes.push(class);
    }
    let mut order: Vec<(Vec<u32>, Vec<usize>)> =
        of_regions.into_values().map(|(bounds, classes)| (bounds::middle(&bounds), classes)).collect();
    order.sort_unstable();
    let private = |classes: &[usize]| -> Vec<u32> {
        classes.iter().flat_map(|&class| &drafts[class].microdata).copied().collect()
    };
    let rows = Rows::given(crowd.rows.n_columns(), order.iter().map(|(middle, classes)| (middle, private(classes))));
    let task = Task::of_everybody(&rows, crowd.domains(), crowd.rules, &Silent);
    let groups = partitioner.partition(&task)?;
    for group in 0..groups.len() {
        for &row in groups.rows(group) {
            order[row as usize].1.iter().for_each(|&class| drafts[class].group = group as u32);
        }
    }
    Ok(())
}
