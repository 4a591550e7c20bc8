//! [`join_unreachable`]: cells in which the requirement can't be reached are joined before anything is anonymized.

use kohort_core::cells::{Whole, can_stand};
use kohort_io::CellStore;
use kohort_model::{Progress, Requirement, Spec};

use crate::error::Error;
use crate::memory::{Memory, Together};

/// Groups of neighbouring cells, in each of which the requirement can be reached. A group may need more memory than a cell was
/// planned for, but never much more. `n_persons` are the persons of a cell, who have no rows elsewhere.
pub(super) fn join_unreachable(
    (store, n_cells, n_persons): (&CellStore<'_>, usize, &dyn Fn(usize) -> u64),
    whole: &Whole<'_>,
    (spec, requirements): (&Spec, &[Requirement]),
    memory: Memory,
    progress: &dyn Progress,
) -> Result<Vec<Vec<usize>>, Error> {
    let asks_for_k_alone = requirements.iter().all(|requirement| requirement.k().is_some());
    let n_rows_of = |cells: &[usize]| cells.iter().map(|&cell| store.n_rows(cell)).sum::<u64>();
    let n_rows_of_all: u64 = (0..n_cells).map(|cell| store.n_rows(cell)).sum();
    let stands = |cells: &[usize]| -> Result<bool, Error> {
        if progress.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let n_rows = n_rows_of(cells);
        let together = Together { n_rows: n_rows / 3 * 2, why: "cells in which the requirement can't be reached" };
        memory.check(&[together], n_rows_of_all, whole.table.columns.len())?;
        let n_persons: u64 = cells.iter().map(|&cell| n_persons(cell)).sum();
        if n_persons < u64::from(spec.k) || asks_for_k_alone {
            return Ok(n_persons >= u64::from(spec.k));
        }
        Ok(can_stand(&store.table(cells, whole.table)?, whole, spec, requirements)?)
    };
    progress.begin("checking cells", n_cells as u64);
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut open = Vec::new();
    for cell in 0..n_cells {
        open.push(cell);
        if stands(&open)? {
            groups.push(std::mem::take(&mut open));
        }
        progress.advance(1);
    }
    while !open.is_empty() {
        let Some(mut last) = groups.pop() else {
            // The requirement can't be reached even in all cells together. The partitioner will say why.
            groups.push(std::mem::take(&mut open));
            break;
        };
        last.append(&mut open);
        if stands(&last)? {
            groups.push(last);
        } else {
            open = last;
        }
    }
    Ok(groups)
}
