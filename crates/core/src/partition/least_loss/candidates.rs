//! [`Candidates`]: boxes that classes may show, each with the rows it holds.
//!
//! Every row has a price, roughly what it loses in the best release known. A box is worth considering if the rows of
//! highest price in it, as many as a class needs, have a mean price of almost what the box costs each of them. Boxes are
//! enumerated column by column, each column at all of its levels. A set of rows is not divided any further where even
//! the levels chosen so far cost more than its rows would pay, because narrower sets pay no more and further columns only
//! add to the cost.
//!
//! # Guarantee
//! No two candidates hold the same rows for different levels: only the narrowest levels that hold a set are kept.
//! # Paper
//! the order of `[BR99]`, which divides sets by one column after the other and drops small ones
//! # Deviations
//! sets are also dropped by what their rows would pay
//! # Cost
//! at most `visits` per row, shared among the sets of the first two columns by their rows. Memory: [`HELD`] numbers per row

use rayon::prelude::*;

use crate::encode::bounds;
use crate::lists::Lists;
use crate::partition::{Levels, Task};
use crate::requirement::Tally;

/// Rows whose price is below this share of what a box costs so far are no members of it.
const LEAST_PRICE: f64 = 0.3;

/// The best class of a box is sought among its rows of highest price, up to this many times k, and all rows that lose more
/// than the box costs.
const BEST: u64 = 4;

/// All candidates together hold at most this many rows for each row of the table.
const HELD: usize = 500;

/// The boxes among which classes are chosen, with the rows that lie in each box.
#[derive(Default)]
pub(super) struct Candidates {
    /// What each row loses in the box.
    pub(super) costs: Vec<f64>,
    /// For each box, the rows that it holds, in descending order of the prices by which the box was found.
    rows: Lists,
    /// For each box, how many rows at the start of its list may be in the best class of it.
    n_best: Vec<u32>,
}

impl Candidates {
    pub(super) fn len(&self) -> usize {
        self.costs.len()
    }

    /// The rows that a box holds.
    pub(super) fn rows(&self, candidate: usize) -> &[u32] {
        self.rows.get(candidate)
    }

    /// The rows that may be in the best class of a box.
    pub(super) fn best_rows(&self, candidate: usize) -> &[u32] {
        &self.rows.get(candidate)[..self.n_best[candidate] as usize]
    }

    fn push(&mut self, cost: f64, rows: &[u32], n_best: usize) {
        self.costs.push(cost);
        self.rows.push(rows.iter().copied());
        self.n_best.push(n_best as u32);
    }

    fn append(&mut self, other: &Candidates) {
        self.costs.extend_from_slice(&other.costs);
        self.rows.append(&other.rows);
        self.n_best.extend_from_slice(&other.n_best);
    }

    /// Adds the boxes of given classes.
    pub(super) fn add_classes(&mut self, task: &Task<'_>, classes: &[Vec<u32>]) {
        for class in classes {
            self.push(bounds::width(task.domains, &task.rows.bounds(class)), class, class.len());
        }
    }

    /// The candidates at these prices, with a mean price of at least `least_share` of their cost.
    pub(super) fn find(task: &Task<'_>, prices: &[f64], least_share: f64, visits: usize) -> Candidates {
        let grid = Grid::new(task);
        let mut all: Vec<u32> = (0..task.rows.len() as u32).collect();
        all.sort_unstable_by(|&a, &b| prices[b as usize].total_cmp(&prices[a as usize]).then(a.cmp(&b)));
        let finder = || Finder::new(task, &grid, prices, least_share);
        let whole = Set { rows: all, cost: 0.0, levels: Vec::new() };
        let mut sets = vec![whole];
        // Sets of the first two columns are shared among threads.
        for _ in 0..2.min(grid.order.len()) {
            let divided = sets.par_iter().map_init(finder, Finder::divided);
            sets = divided.flatten_iter().collect();
        }
        let n_in_sets = sets.iter().map(|set| set.rows.len()).sum::<usize>().max(1);
        let share = |per_row: usize, set: &Set| per_row * task.rows.len() / n_in_sets * set.rows.len();
        let found: Vec<Candidates> = sets
            .par_iter()
            .map_init(finder, |finder, set| {
                (finder.visits, finder.room) = (share(visits, set), share(HELD, set));
                finder.levels.clone_from(&set.levels);
                finder.search(&set.rows, set.cost);
                std::mem::take(&mut finder.found)
            })
            .collect();
        let mut all = Candidates::default();
        found.iter().for_each(|found| all.append(found));
        all
    }
}

/// The cell of every row at every level of every column.
struct Grid {
    /// Columns with more codes are divided earlier.
    order: Vec<usize>,
    /// By position in the order, then by level.
    levels: Vec<Vec<Level>>,
}

struct Level {
    cell_of_row: Vec<u32>,
    /// The width of each cell.
    widths: Vec<f64>,
}

impl Grid {
    fn new(task: &Task<'_>) -> Grid {
        let mut order: Vec<usize> = (0..task.domains.len()).collect();
        order.sort_by_key(|&column| std::cmp::Reverse(task.domains[column].n_codes()));
        let levels = order.par_iter().map(|&column| Self::levels(task, column)).collect();
        Grid { order, levels }
    }

    fn levels(task: &Task<'_>, column: usize) -> Vec<Level> {
        let domain = &task.domains[column];
        let levels = Levels::of(domain);
        let level = |level: usize| {
            let (mut cell_of_code, mut widths) = (Vec::with_capacity(domain.n_codes() as usize), Vec::new());
            let mut code = 0;
            while code < domain.n_codes() {
                let (lo, hi) = levels.cell(level, code);
                cell_of_code.resize(hi as usize + 1, widths.len() as u32);
                widths.push(domain.width(lo, hi));
                code = hi + 1;
            }
            let rows = 0..task.rows.len() as u32;
            Level { cell_of_row: rows.map(|row| cell_of_code[task.rows.cells(row)[column] as usize]).collect(), widths }
        };
        (0..levels.n_levels()).map(level).collect()
    }
}

/// Rows in one cell of each of the first columns.
struct Set {
    /// In descending order of their prices.
    rows: Vec<u32>,
    /// The widths of the cells.
    cost: f64,
    /// The level of each cell.
    levels: Vec<usize>,
}

/// Rows by their cell.
#[derive(Clone, Default)]
struct Divided {
    rows: Vec<u32>,
    /// The cells, with the ends of their rows.
    cells: Vec<(u32, u32)>,
}

/// Finds candidates, in memory that one thread reuses from set to set.
struct Finder<'g> {
    task: &'g Task<'g>,
    grid: &'g Grid,
    prices: &'g [f64],
    least_share: f64,
    k: u64,
    /// How many more times the search may look at a row, and how many more numbers of rows may be kept.
    visits: usize,
    room: usize,
    levels: Vec<usize>,
    /// For each cell of the level being divided, how many rows it has.
    counts: Vec<u32>,
    /// For each depth, the rows that were divided last.
    divided: Vec<Divided>,
    tally: Tally<'g>,
    found: Candidates,
}

impl<'g> Finder<'g> {
    fn new(task: &'g Task<'g>, grid: &'g Grid, prices: &'g [f64], least_share: f64) -> Finder<'g> {
        let n_cells = grid.levels.iter().flatten().map(|level| level.widths.len()).max().unwrap_or(0);
        Finder {
            task,
            grid,
            prices,
            least_share,
            k: u64::from(task.rules.k()),
            visits: 0,
            room: 0,
            levels: Vec::new(),
            counts: vec![0; n_cells],
            divided: vec![Divided::default(); grid.order.len()],
            tally: Tally::new(task.rules),
            found: Candidates::default(),
        }
    }

    /// The sets that come out when the next column of a set is divided.
    fn divided(&mut self, set: &Set) -> Vec<Set> {
        let mut sets = Vec::new();
        for level in 0..self.grid.levels[set.levels.len()].len() {
            self.each_part(&set.rows, set.cost, set.levels.len(), level, |_, rows, cost| {
                let levels = set.levels.iter().copied().chain([level]).collect();
                sets.push(Set { rows: rows.to_vec(), cost, levels });
            });
        }
        sets
    }

    /// Divides the remaining columns of a set.
    fn search(&mut self, rows: &[u32], cost: f64) {
        let depth = self.levels.len();
        if depth == self.grid.order.len() {
            self.keep(rows);
            return;
        }
        for level in 0..self.grid.levels[depth].len() {
            if self.visits < rows.len() || self.task.progress.is_cancelled() {
                return;
            }
            self.visits -= rows.len();
            self.each_part(rows, cost, depth, level, |finder, rows, cost| {
                finder.levels.push(level);
                finder.search(rows, cost);
                finder.levels.pop();
            });
        }
    }

    /// Calls `with` for each part of a set at a level of the next column that may still hold candidates.
    fn each_part(
        &mut self,
        rows: &[u32],
        cost: f64,
        depth: usize,
        level: usize,
        mut with: impl FnMut(&mut Self, &[u32], f64),
    ) {
        let levels = &self.grid.levels[depth];
        let Level { cell_of_row, widths } = &levels[level];
        let Divided { rows: mut sorted, mut cells } = std::mem::take(&mut self.divided[depth]);
        cells.clear();
        for &row in rows {
            let cell = cell_of_row[row as usize];
            if self.counts[cell as usize] == 0 {
                cells.push((cell, 0));
            }
            self.counts[cell as usize] += 1;
        }
        let mut start = 0;
        for (cell, end) in &mut cells {
            let count = &mut self.counts[*cell as usize];
            *end = start;
            start += *count;
            *count = *end;
        }
        sorted.resize(rows.len(), 0);
        for &row in rows {
            let next = &mut self.counts[cell_of_row[row as usize] as usize];
            sorted[*next as usize] = row;
            *next += 1;
        }
        for (cell, end) in &mut cells {
            *end = std::mem::take(&mut self.counts[*cell as usize]);
        }
        let mut start = 0;
        for &(cell, end) in &cells {
            let part = &sorted[start as usize..end as usize];
            start = end;
            let cost = cost + widths[cell as usize];
            let n_members = part.partition_point(|&row| self.prices[row as usize] >= LEAST_PRICE * cost);
            let part = &part[..n_members];
            if self.pays(part, cost) && !(level > 0 && is_one_cell(&levels[level - 1], part)) {
                with(self, part, cost);
            }
        }
        self.divided[depth] = Divided { rows: sorted, cells };
    }

    /// Whether the rows of highest price pay almost what a box costs them.
    fn pays(&self, rows: &[u32], cost: f64) -> bool {
        let (mut weight, mut paid) = (0, 0.0);
        for &row in rows {
            let of_row = u64::from(self.task.rows.weight(row));
            weight += of_row;
            paid += of_row as f64 * self.prices[row as usize];
            if weight >= self.k {
                return paid >= self.least_share * cost * weight as f64;
            }
        }
        false
    }

    fn keep(&mut self, rows: &[u32]) {
        let is_narrowest =
            |(levels, &level): (&Vec<Level>, &usize)| level == 0 || !is_one_cell(&levels[level - 1], rows);
        if !self.grid.levels.iter().zip(&self.levels).all(is_narrowest) {
            return;
        }
        if self.room < rows.len() || !self.task.stands(&mut self.tally, rows.iter().copied()) {
            return;
        }
        let cost = bounds::width(self.task.domains, &self.task.rows.bounds(rows));
        let mut weight = 0;
        let is_best = |&&row: &&u32| {
            let is_best = weight < BEST * self.k || self.prices[row as usize] > cost;
            weight += u64::from(self.task.rows.weight(row));
            is_best
        };
        let n_best = rows.iter().take_while(is_best).count();
        self.room -= rows.len();
        self.found.push(cost, rows, n_best);
    }
}

/// Whether all rows are in one cell.
fn is_one_cell(level: &Level, rows: &[u32]) -> bool {
    let cell = |row: &u32| level.cell_of_row[*row as usize];
    rows.first().is_none_or(|first| rows.iter().all(|row| cell(row) == cell(first)))
}
