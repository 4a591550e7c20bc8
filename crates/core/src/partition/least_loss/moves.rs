//! Moving from the bottom: rows to cheaper classes, and classes apart whose rows are all cheaper elsewhere.
//!
//! All rows are asked at once where they would like to go, in parallel and with everybody where they are; then they
//! go one after the other, each only if it still pays and both classes still stand. So threads change nothing.

use rayon::prelude::*;

use super::index::{Index, Outline};
use super::{EMPTY, perimeter};
use crate::partition::Task;
use crate::requirement::Tally;

/// Less than this is rounding, not gain.
const LEAST_GAIN: f64 = 1e-9;

/// Improves classes; whether anything moved. Dissolved classes are gone.
pub(super) fn improve(task: &Task<'_>, classes: &mut Vec<Vec<u32>>) -> bool {
    let mut state = State::new(task, std::mem::take(classes));
    let moved = state.move_rows() | state.dissolve_classes();
    *classes = state.classes.into_iter().filter(|rows| !rows.is_empty()).collect();
    moved
}

struct State<'t> {
    task: &'t Task<'t>,
    classes: Vec<Vec<u32>>,
    outlines: Vec<Outline>,
    index: Index,
    tally: Tally<'t>,
}

/// A row that would cost less in another class.
struct Wish {
    gain: f64,
    row: u32,
    from: usize,
    to: usize,
}

impl<'t> State<'t> {
    fn new(task: &'t Task<'t>, classes: Vec<Vec<u32>>) -> Self {
        let outlines: Vec<Outline> = classes.par_iter().map(|rows| Outline::of(task, rows)).collect();
        let index = Index::new(task.rows.n_columns(), &outlines);
        State { task, classes, outlines, index, tally: Tally::new(task.rules) }
    }

    fn move_rows(&mut self) -> bool {
        let mut wishes: Vec<Wish> =
            (0..self.classes.len()).into_par_iter().flat_map_iter(|from| self.wishes_of(from)).collect();
        wishes.sort_unstable_by(|a, b| b.gain.total_cmp(&a.gain).then(a.row.cmp(&b.row)));
        let mut moved = false;
        for wish in wishes {
            moved |= self.grant(&wish);
        }
        moved
    }

    /// Where the rows of a class would like to go.
    fn wishes_of(&self, from: usize) -> Vec<Wish> {
        let k = u64::from(self.task.rules.k());
        let (rows, outline) = (&self.classes[from], &self.outlines[from]);
        let edges = Edges::of(self.task, rows);
        let wish = |&row: &u32| {
            let weight = u64::from(self.task.rows.weight(row));
            if outline.weight < k + weight {
                return None;
            }
            let without = perimeter(self.task, &edges.without(self.task.rows.cells(row)));
            let saved = outline.loss() - without * (outline.weight - weight) as f64;
            if saved <= LEAST_GAIN {
                return None;
            }
            let (cost, to) = self.index.cheapest(self.task, &self.outlines, row, from, saved - LEAST_GAIN)?;
            Some(Wish { gain: saved - cost, row, from, to })
        };
        rows.iter().filter_map(wish).collect()
    }

    /// Moves a row if that still pays and both classes stand.
    fn grant(&mut self, wish: &Wish) -> bool {
        let rest: Vec<u32> = self.classes[wish.from].iter().copied().filter(|&row| row != wish.row).collect();
        let shrunk = Outline::of(self.task, &rest);
        if shrunk.weight < u64::from(self.task.rules.k()) {
            return false;
        }
        let saved = self.outlines[wish.from].loss() - shrunk.loss();
        let cost = self.outlines[wish.to].growth(self.task, wish.row);
        if cost >= saved - LEAST_GAIN
            || !self.stands(&rest, None)
            || !self.stands(&self.classes[wish.to].clone(), Some(wish.row))
        {
            return false;
        }
        self.classes[wish.from] = rest;
        self.outlines[wish.from] = shrunk;
        self.join(wish.row, wish.to);
        true
    }

    fn join(&mut self, row: u32, to: usize) {
        self.classes[to].push(row);
        self.outlines[to].include(self.task, row);
        self.index.grown(to, &self.outlines[to]);
    }

    fn stands(&mut self, rows: &[u32], and: Option<u32>) -> bool {
        if self.task.rules.weight_suffices() {
            return true;
        }
        self.tally.clear();
        for &row in rows.iter().chain(and.as_ref()) {
            self.task.rows.members(row).iter().for_each(|&member| self.tally.add(member));
        }
        self.tally.stands()
    }

    fn dissolve_classes(&mut self) -> bool {
        let mut gains: Vec<(f64, usize)> = (0..self.classes.len())
            .into_par_iter()
            .filter_map(|class| {
                let saved = self.outlines[class].loss();
                let mut cost = 0.0;
                for &row in &self.classes[class] {
                    cost += self.index.cheapest(self.task, &self.outlines, row, class, saved - cost)?.0;
                }
                Some((saved - cost, class)).filter(|(gain, _)| *gain > LEAST_GAIN)
            })
            .collect();
        gains.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut moved = false;
        for (_, class) in gains {
            moved |= self.dissolve(class);
        }
        moved
    }

    /// Sends every row of a class to its cheapest other one, if all together that still pays and all still stand.
    fn dissolve(&mut self, class: usize) -> bool {
        let rows = std::mem::take(&mut self.classes[class]);
        let saved = self.outlines[class].loss();
        let mut undo: Vec<(usize, Outline, usize)> = Vec::new();
        let mut cost = 0.0;
        let mut pays = true;
        for &row in &rows {
            let limit = saved - LEAST_GAIN - cost;
            let Some((growth, to)) = self.index.cheapest(self.task, &self.outlines, row, class, limit) else {
                pays = false;
                break;
            };
            if !self.stands(&self.classes[to].clone(), Some(row)) {
                pays = false;
                break;
            }
            undo.push((to, self.outlines[to].clone(), self.classes[to].len()));
            cost += growth;
            self.join(row, to);
        }
        if pays {
            self.outlines[class] = Outline::of(self.task, &[]);
            return true;
        }
        for (to, outline, n_rows) in undo.into_iter().rev() {
            self.outlines[to] = outline;
            self.classes[to].truncate(n_rows);
        }
        self.classes[class] = rows;
        false
    }
}

/// The two outermost codes at both ends of each column: what the bounds are without any one row.
struct Edges {
    of_columns: Vec<[u32; 4]>,
}

impl Edges {
    fn of(task: &Task<'_>, rows: &[u32]) -> Edges {
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
        // A code that is at an end twice stays there: counted by looking again.
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

    fn without(&self, cells: &[u32]) -> Vec<(u32, u32)> {
        let bound = |(&[lo, next_lo, next_hi, hi], &code): (&[u32; 4], &u32)| {
            let bound = (if code == lo { next_lo } else { lo }, if code == hi { next_hi } else { hi });
            // One row alone leaves nothing behind.
            if bound.0 > bound.1 { EMPTY } else { bound }
        };
        self.of_columns.iter().zip(cells).map(bound).collect()
    }
}
