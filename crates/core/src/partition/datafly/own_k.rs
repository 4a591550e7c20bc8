//! [`OwnK`]: Datafly where persons ask for a k of their own.
//!
//! Whoever asks for little leaves early, and those who ask for more then find fewer beside them. Mostly that saves
//! more than it costs, but not always. So the classes are made a second time, with the largest k for all, and each of
//! those is then parted by Datafly as far as its own persons' k allow; the better of both partitions stays.
//!
//! # Guarantee
//! that of [`Datafly`], and no higher loss than with the largest k for all: whatever parts a class shows no wider cells
//! # Deviations
//! where persons may be left out, the first partition stays: two partitions that leave out others can't be compared
//! # Cost
//! about twice that of [`Datafly`]

use rayon::prelude::*;

use super::super::{Classes, Partitioner, Task, Unreachable};
use super::{Datafly, leftover, levels};

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
        Ok(if loss(task, &parted) < loss(task, &own) { parted } else { own })
    }
}

/// Classes that can stand, each parted by Datafly.
fn parted(task: &Task<'_>, classes: &Classes) -> Result<Classes, Unreachable> {
    let (datafly, levels) = (Datafly::default(), levels(task));
    let parts: Result<Vec<Vec<Vec<u32>>>, Unreachable> = (0..classes.len())
        .into_par_iter()
        .map(|class| {
            let mut rows = classes.rows(class).to_vec();
            // Rows with the same cells are one, and nothing parts it.
            if rows.len() == 1 {
                return Ok(vec![rows]);
            }
            rows.sort_unstable();
            let run = datafly.run(task, &levels, &rows);
            Ok(leftover::place(task, run.closed, &run.remaining)?.to_lists())
        })
        .collect();
    Ok(Classes::from_lists(parts?.into_iter().flatten().collect()))
}

/// What the smallest cells that hold the classes lose.
pub(super) fn loss(task: &Task<'_>, classes: &Classes) -> f64 {
    let of_class = |class: usize| {
        let rows = classes.rows(class);
        let bounds = task.rows.bounds(rows);
        let width: f64 = bounds.iter().zip(task.domains).map(|(&(lo, hi), domain)| domain.width(lo, hi)).sum();
        width * rows.iter().map(|&row| f64::from(task.rows.weight(row))).sum::<f64>()
    };
    // Summed in one order: threads must not decide which of two is smaller.
    (0..classes.len()).into_par_iter().map(of_class).collect::<Vec<f64>>().into_iter().sum()
}
