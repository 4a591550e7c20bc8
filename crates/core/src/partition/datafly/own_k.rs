//! [`OwnK`]: Datafly for persons who ask for a k of their own.
//!
//! Persons who ask for a small k leave early, so persons who ask for more find fewer beside them. Usually that saves
//! more than it costs, but not always. So the classes are made a second time, with the largest k for all, and Datafly
//! then divides each of them as far as the k of its own persons allows. The partition that loses less stays.
//!
//! # Guarantee
//! that of [`Datafly`], and no higher loss than with the largest k for all, because parts of a class never show wider
//! cells
//! # Deviations
//! If persons may be left out, the first partition stays, because two partitions that leave out different persons can't
//! be compared.
//! # Cost
//! about twice that of [`Datafly`]

use rayon::prelude::*;

use super::super::{Classes, Partitioner, Task, Unreachable};
use super::{Datafly, close, leftover, levels};
use crate::lists::Lists;

/// Generalizes one column by one level at a time, persons asking for a k of their own.
#[derive(Clone, Debug, Default)]
pub struct OwnK(pub Datafly);

impl Partitioner for OwnK {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn partition(&self, task: &Task<'_>) -> Result<Classes, Unreachable> {
        let own = self.0.partition(task)?;
        let Some(rules) = task.rules.with_largest_k().filter(|_| task.allowance == 0) else { return Ok(own) };
        let Ok(alike) = self.0.partition(&Task { rules: &rules, ..*task }) else { return Ok(own) };
        let parted = parted(task, &alike)?;
        Ok(if task.loss(&parted.to_lists()) < task.loss(&own.to_lists()) { parted } else { own })
    }
}

/// Classes that satisfy the rules, each divided further by Datafly.
fn parted(task: &Task<'_>, classes: &Classes) -> Result<Classes, Unreachable> {
    let levels = levels(task);
    let parts: Result<Vec<Lists>, Unreachable> = (0..classes.len())
        .into_par_iter()
        .map(|class| {
            let mut rows = classes.rows(class).to_vec();
            // A single folded row can't be divided.
            if rows.len() == 1 {
                return Ok(Lists::from_iter([rows]));
            }
            rows.sort_unstable();
            let (closed, remaining) = close(task, &levels, &rows);
            leftover::place(task, closed, &remaining)
        })
        .collect();
    let mut parted = Lists::default();
    parts?.iter().for_each(|part| parted.append(part));
    Ok(Classes::new(parted))
}
