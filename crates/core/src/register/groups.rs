//! Sensitive groups for classes that have none: whole classes are put together until their private rows satisfy what is
//! asked of sensitive values, and k private persons share every group.
//!
//! A class of the join may hold a single private row, whose values its rows must not give away. Classes become rows at
//! the middle of their boxes, which the partitioner turns into groups as it would turn rows into classes.
//!
//! # Deviations
//! the paper has no sensitive groups for direct

use kohort_model::Silent;
use kohort_model::spec::Leftovers;

use super::crowd::{Crowd, Draft};
use crate::encode::Rows;
use crate::partition::{Partitioner, Task, Unreachable};
use crate::requirement::{Rules, Tally};

/// Puts every class into a group. `rules` are those of the private table.
pub(super) fn group(
    crowd: &Crowd<'_>,
    drafts: &mut [Draft],
    rules: &Rules,
    partitioner: &dyn Partitioner,
) -> Result<(), Unreachable> {
    let middle = |draft: &Draft| crowd.bounds(draft).iter().map(|&(lo, hi)| lo + (hi - lo) / 2).collect::<Vec<u32>>();
    let mut order: Vec<(Vec<u32>, usize)> = drafts.iter().map(middle).zip(0..).collect();
    order.sort_unstable();
    let mut cells = Vec::with_capacity(order.len() * crowd.rows.n_columns());
    let mut starts = vec![0];
    let mut members = Vec::new();
    for (middle, class) in &order {
        cells.extend_from_slice(middle);
        members.extend_from_slice(&drafts[*class].microdata);
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
            drafts[order[row as usize].1].group = group as u32;
        }
    }
    Ok(())
}

/// Unites groups that don't satisfy the rules with the next, until all do: persons with rows in two groups that became
/// one count once there, which can break what held before.
pub(super) fn settle(drafts: &mut [Draft], rules: &Rules) {
    let mut tally = Tally::new(rules);
    loop {
        let mut groups: Vec<u32> = drafts.iter().map(|draft| draft.group).collect();
        groups.sort_unstable();
        groups.dedup();
        let unmet = groups.iter().position(|&group| {
            tally.clear();
            let members = drafts.iter().filter(|draft| draft.group == group).flat_map(|draft| &draft.microdata);
            members.for_each(|&row| tally.add(row));
            !tally.stands()
        });
        let Some(unmet) = unmet.filter(|_| groups.len() > 1) else { return };
        let (from, into) = (groups[unmet], groups[(unmet + 1) % groups.len()]);
        drafts.iter_mut().filter(|draft| draft.group == from).for_each(|draft| draft.group = into);
    }
}
