//! The last word on requirements, once it is known which rows are released.
//!
//! Requirements that compare a class with the release depend on who and what is released, and so on rows without a
//! partner, which are known only at the end. Classes are asked once more; where an orbit of a child table doesn't hold
//! its rows are left out, and where persons don't hold their class joins the nearest, until all hold.
//!
//! # Guarantee
//! every class satisfies what is asked, measured against the released rows
//! # Cost
//! one look at every class, repeated as long as something changes; nothing where only numbers of persons are asked

use kohort_model::{Requirement, Table};

use super::cost::{Meter, Scratch};
use super::forest::Grove;
use super::leftovers::merge;
use super::miracle::Task;
use super::representative::Representative;
use super::requirement::{Asker, Judge};
use crate::AnonymizeError;
use crate::partition::Unreachable;

/// The classes, changed until each satisfies what is asked.
///
/// # Errors
/// Where not even all persons together do.
pub(super) fn settle(
    tables: &[Table],
    grove: &Grove<'_>,
    requirements: &[Vec<Requirement>],
    task: &Task<'_>,
    meter: &Meter<'_>,
    mut classes: Vec<Representative>,
) -> Result<Vec<Representative>, AnonymizeError> {
    if task.judge.weight_suffices() {
        return Ok(classes);
    }
    let mut scratch = Scratch::default();
    loop {
        let mut is_released: Vec<Vec<bool>> = grove.parents.iter().map(|rows| vec![false; rows.len()]).collect();
        for class in &classes {
            for (kind, is_released) in is_released.iter_mut().enumerate() {
                for node in 0..class.layers[kind].len() {
                    class.rows_at(task.forest, kind, node, |row| is_released[row as usize] = true);
                }
            }
        }
        let judge = Judge::new(tables, grove, task.forest, requirements, |kind, row| is_released[kind][row as usize])?;
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
            let task = Task { judge: &judge, ..*task };
            merge(&task, meter, &mut scratch, class, &mut classes);
        } else if !is_changed {
            return Ok(classes);
        }
    }
}
