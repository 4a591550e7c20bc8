//! A lower bound of what any release for these audiences loses, whatever finds it.
//!
//! # Guarantee
//! never more than the loss of a release that satisfies every ask. What a row shows in a column is an interval, and every
//! audience and coalition that knows the column finds at least k rows in it. So the row loses at least the width of the
//! narrowest such interval around its own code. A row that fewer than k rows equal in all columns of an audience shows
//! something wider than its code in at least one of these columns
//! # Paper
//! after `[PTL+08]` theorem 4, for the whole table
//! # Cost
//! one fold of the rows for each audience and coalition, and one sort of each column

use super::atoms::Atoms;
use super::bound::{narrowest, runs_of};
use super::plan::Ask;

/// The least loss of all rows together.
pub(super) fn least_loss(rows: &Atoms<'_>, asks: &[&Ask]) -> f64 {
    let n_columns = rows.domains.len();
    let all = rows.all();
    // For each column, the least that a code loses.
    let by_neighbours: Vec<Vec<f64>> = (0..n_columns)
        .map(|column| {
            let k = asks.iter().filter(|ask| ask.columns.contains(&column)).map(|ask| ask.k()).max().unwrap_or(1);
            by_code(rows, column, |runs| narrowest(&rows.domains[column], runs, u64::from(k)))
        })
        .collect();
    let by_others: Vec<Vec<f64>> = (0..n_columns)
        .map(|column| {
            let domain = &rows.domains[column];
            by_code(rows, column, |runs| {
                let gap = |pair: &[(u32, u64)]| domain.width(pair[0].0, pair[1].0);
                let gaps: Vec<f64> = runs.windows(2).map(gap).collect();
                let at =
                    |place: Option<usize>| place.and_then(|place| gaps.get(place)).copied().unwrap_or(f64::INFINITY);
                (0..runs.len()).map(|run| at(run.checked_sub(1)).min(at(Some(run)))).collect()
            })
        })
        .collect();
    let of_columns =
        |row: u32| by_neighbours.iter().zip(rows.rows.cells(row)).map(|(least, &code)| least[code as usize]);
    let mut least: Vec<f64> = all.iter().map(|&row| of_columns(row).sum()).collect();
    for ask in asks {
        let columns: Vec<usize> = ask.columns.iter().copied().collect();
        let projection = rows.project(&all, &columns);
        for class in 0..projection.rows.len() as u32 {
            if u64::from(projection.rows.weight(class)) >= u64::from(ask.k()) {
                continue;
            }
            for row in projection.atoms(&[class]) {
                let cells = rows.rows.cells(row);
                let known: f64 = columns.iter().map(|&column| by_neighbours[column][cells[column] as usize]).sum();
                let others = columns.iter().map(|&column| by_others[column][cells[column] as usize]);
                let one = others.fold(f64::INFINITY, f64::min);
                if one.is_finite() {
                    let sum = of_columns(row).sum::<f64>() - known + known.max(one);
                    least[row as usize] = least[row as usize].max(sum);
                }
            }
        }
    }
    least.iter().zip(all).map(|(least, row)| least * f64::from(rows.rows.weight(row))).sum()
}

/// Something of each code that occurs in a column, found from how often each occurs.
fn by_code(rows: &Atoms<'_>, column: usize, of_runs: impl Fn(&[(u32, u64)]) -> Vec<f64>) -> Vec<f64> {
    let runs = runs_of(rows, &rows.all(), column);
    let mut by_code = vec![0.0; rows.domains[column].n_codes() as usize];
    for (value, (code, _)) in of_runs(&runs).into_iter().zip(&runs) {
        by_code[*code as usize] = value;
    }
    by_code
}
