//! Checks the requirements again when it is known which rows are released.
//!
//! Requirements that compare a class with the release depend on which rows are released, and so on rows without a
//! partner, which are known only at the end. So classes are checked once more. If an orbit of a child table fails, its
//! rows are left out. If persons fail, their class joins the nearest. This is repeated until all requirements hold.
//!
//! # Guarantee
//! every class satisfies what is asked, measured against the released rows
//! # Cost
//! one look at every class, repeated as long as something changes; nothing if only numbers of persons are asked

use kohort_model::{Requirement, Table};

use super::cost::{Meter, Scratch};
use super::forest::Grove;
use super::leftovers::merge;
use super::miracle::TreesTask;
use super::representative::Representative;
use super::requirement::{Asker, TreesJudge};
use crate::AnonymizeError;
use crate::partition::Unreachable;

/// The classes, changed until each satisfies what is asked.
///
/// # Errors
/// If not even all persons together do.
pub(super) fn settle<'m>(
    tables: &[Table],
    grove: &Grove<'_>,
    requirements: &[Vec<Requirement>],
    task: &TreesTask<'_>,
    meter: impl FnOnce() -> Meter<'m>,
    mut classes: Vec<Representative>,
) -> Result<Vec<Representative>, AnonymizeError> {
    if task.judge.weight_suffices() {
        return Ok(classes);
    }
    let (meter, mut scratch) = (&meter(), Scratch::default());
    loop {
        let mut is_released: Vec<Vec<bool>> = grove.parents.iter().map(|rows| vec![false; rows.len()]).collect();
        for class in &classes {
            for (kind, is_released) in is_released.iter_mut().enumerate() {
                for node in 0..class.layers[kind].len() {
                    class.rows_at(task.forest, kind, node).for_each(|row| is_released[row as usize] = true);
                }
            }
        }
        let judge =
            TreesJudge::new(tables, grove, task.forest, requirements, |kind, row| is_released[kind][row as usize])?;
        let mut asker = Asker::new(&judge);
        let mut refused = None;
        let mut is_changed = false;
        for (position, class) in classes.iter_mut().enumerate() {
            let unmet = asker.unmet(class);
            if unmet.persons {
                refused = refused.or(Some(position));
            } else if !unmet.holds() {
                *class = class.without(&unmet.nodes, meter);
                is_changed = true;
            }
        }
        if let Some(position) = refused {
            if classes.len() == 1 {
                return Err(Unreachable.into());
            }
            let class = classes.remove(position);
            let task = TreesTask { judge: &judge, ..*task };
            merge(&task, meter, &mut scratch, class, &mut classes);
        } else if !is_changed {
            return Ok(classes);
        }
    }
}
