//! [`Edges`]: the box of a class without any one of its rows.

use crate::encode::bounds::{Bounds, EMPTY};
use crate::partition::Task;

/// The two outermost codes at both ends of each column: what the bounds are without any one row.
pub(super) struct Edges {
    of_columns: Vec<[u32; 4]>,
}

impl Edges {
    pub(super) fn of(task: &Task<'_>, rows: &[u32]) -> Edges {
        let mut of_columns = vec![[u32::MAX, u32::MAX, 0, 0]; task.rows.n_columns()];
        for &row in rows {
            for ([lo, next_lo, next_hi, hi], &code) in of_columns.iter_mut().zip(task.rows.cells(row)) {
                if code < *lo {
                    (*next_lo, *lo) = (*lo, code);
                } else if code < *next_lo {
                    *next_lo = code;
                }
                if code > *hi {
                    (*next_hi, *hi) = (*hi, code);
                } else if code > *next_hi {
                    *next_hi = code;
                }
            }
        }
        // A code that several rows have stays at the end without one of them, so the rows at each end are counted.
        let mut times = vec![(0u32, 0u32); of_columns.len()];
        for &row in rows {
            for ((at_ends, [lo, _, _, hi]), code) in times.iter_mut().zip(&of_columns).zip(task.rows.cells(row)) {
                at_ends.0 += u32::from(code == lo);
                at_ends.1 += u32::from(code == hi);
            }
        }
        for ([lo, next_lo, next_hi, hi], (at_lo, at_hi)) in of_columns.iter_mut().zip(times) {
            *next_lo = if at_lo > 1 { *lo } else { *next_lo };
            *next_hi = if at_hi > 1 { *hi } else { *next_hi };
        }
        Edges { of_columns }
    }

    pub(super) fn without(&self, cells: &[u32]) -> Bounds {
        let bound = |(&[lo, next_lo, next_hi, hi], &code): (&[u32; 4], &u32)| {
            let bound = (if code == lo { next_lo } else { lo }, if code == hi { next_hi } else { hi });
            // One row alone leaves nothing behind.
            if bound.0 > bound.1 { EMPTY } else { bound }
        };
        self.of_columns.iter().zip(cells).map(bound).collect()
    }
}
