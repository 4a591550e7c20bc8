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
use kohort_model::spec::Leftovers;

use super::crowd::{Bounds, Crowd, Draft};
use crate::encode::Rows;
use crate::partition::{Partitioner, Task, Unreachable};
use crate::requirement::Rules;

/// Puts every class into a group: all classes of one region into the same. `regions` says where each class is, `rules`
/// are those of the private table.
pub(super) fn group(
    crowd: &Crowd<'_>,
    drafts: &mut [Draft],
    regions: &[usize],
    rules: &Rules,
    partitioner: &dyn Partitioner,
) -> Result<(), Unreachable> {
    let mut of_regions: BTreeMap<usize, (Bounds, Vec<usize>)> = BTreeMap::new();
    for (class, (draft, &region)) in drafts.iter().zip(regions).enumerate() {
        let bounds = crowd.bounds(draft);
        let (united, classes) = of_regions.entry(region).or_insert_with(|| (bounds.clone(), Vec::new()));
        united.iter_mut().zip(&bounds).for_each(|(a, b)| *a = (a.0.min(b.0), a.1.max(b.1)));
        classes.push(class);
    }
    let middle = |bounds: &Bounds| bounds.iter().map(|&(lo, hi)| lo + (hi - lo) / 2).collect::<Vec<u32>>();
    let mut order: Vec<(Vec<u32>, Vec<usize>)> =
        of_regions.into_values().map(|(bounds, classes)| (middle(&bounds), classes)).collect();
    order.sort_unstable();
    let mut cells = Vec::with_capacity(order.len() * crowd.rows.n_columns());
    let mut starts = vec![0];
    let mut members = Vec::new();
    for (middle, classes) in &order {
        cells.extend_from_slice(middle);
        classes.iter().for_each(|&class| members.extend_from_slice(&drafts[class].microdata));
        starts.push(members.len() as u32);
    }
    let rows = Rows::from_parts(crowd.rows.n_columns(), cells, starts, members);
    let task = Task {
        rows: &rows,
        domains: crowd.domains(),
        rules,
        allowance: 0,
        leftovers: Leftovers::Merge,
        progress: &Silent,
    };
    let groups = partitioner.partition(&task)?;
    for group in 0..groups.len() {
        for &row in groups.rows(group) {
            order[row as usize].1.iter().for_each(|&class| drafts[class].group = group as u32);
        }
    }
    Ok(())
}
