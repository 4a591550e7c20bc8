//! Attacks on the order of rows: people were admitted in an order that others know.

use super::people::{LIST, N_PERSONS, town_job};
use super::published::Published;
use super::{Attack, Count, Promise, Side, System};

pub(super) const ATTACKS: &[Attack] = &[Attack {
    name: "order of rows",
    system: System::Tables,
    knows: "age, postcode and sex of everybody, in the order of the private file",
    does: "takes the first row of a class for the first person whom it fits, the second for the second",
    success: "persons whose illness is told correctly",
    run: order_of_rows,
}];

/// Gives the rows of each class to its persons in the order of the list, and counts whose illness is then right.
fn told(published: &Published<'_>, truth: impl Fn(usize) -> String) -> Count {
    let seen = published.seen_with(&LIST);
    let mut count = Count::default();
    for look in &seen.looks {
        let persons: Vec<usize> = (0..N_PERSONS).filter(|&person| seen.fits(look, person)).collect();
        let n_rows = look.rows.len() as f64;
        for (&row, &person) in look.rows.iter().zip(&persons) {
            let illness = truth(person);
            let n_like = look.rows.iter().filter(|&&row| published.cell(row, "illness") == illness).count() as f64;
            count.add(published.cell(row, "illness") == illness, n_like / n_rows);
        }
    }
    count
}

fn order_of_rows() -> Vec<Side> {
    let run = |settings: &str| {
        let job = town_job(settings, "\"sensitive\"");
        let illness = job.loaded.table.column("illness").expect("the town has illnesses");
        told(&Published::of(&job), |person| illness.cell(person).unwrap_or_default().to_owned())
    };
    vec![
        Side::naive("`order = \"input\"`", run("k = 10\norder = \"input\"")),
        Side::kohort("by default", Promise::Chance, run("k = 10")),
    ]
}
