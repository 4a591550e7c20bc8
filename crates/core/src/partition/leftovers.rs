//! Classes that can't stand join their nearest.
//!
//! # Guarantee
//! the classes that come out satisfy the rules, or all rows are in one class
//! # Cost
//! each leftover is compared with all classes: meant for few leftovers

use super::{Classes, Task};

/// Joins every class for which `stands` is false to the class whose total loss grows least; the first of equals.
pub(crate) fn join_leftovers(task: &Task<'_>, mut classes: Vec<Vec<u32>>, stands: impl Fn(&[u32]) -> bool) -> Classes {
    while let Some(leftover) = classes.iter().position(|class| !stands(class)) {
        if classes.len() == 1 {
            break;
        }
        let mut joining = classes.swap_remove(leftover);
        let loss = |rows: &[u32]| {
            let widths = task.rows.bounds(rows);
            let width: f64 = widths.iter().zip(task.domains).map(|(&(lo, hi), domain)| domain.width(lo, hi)).sum();
            width * rows.iter().map(|&row| f64::from(task.rows.weight(row))).sum::<f64>()
        };
        let growth = |class: &Vec<u32>| loss(&[class.as_slice(), &joining].concat()) - loss(class);
        let growths: Vec<f64> = classes.iter().map(growth).collect();
        let nearest = (0..classes.len()).min_by(|&a, &b| growths[a].total_cmp(&growths[b])).unwrap_or(0);
        classes[nearest].append(&mut joining);
    }
    Classes::from_lists(classes)
}
