//! Optimal pairing: the least total cost of all pairs and of all that are left out.
//!
//! A transport of counts from the smaller side to the larger: each entry in turn sends what it has along cheapest
//! augmenting paths, found by Dijkstra's algorithm on costs reduced by potentials. With counts of one that is the
//! Hungarian method in Jonker and Volgenant's form.
//!
//! # Guarantee
//! the total cost is the least there is
//! # Cost
//! entries of the smaller side times the square of all entries, and more only if counts must be split

const NONE: u32 = u32::MAX;

/// Memory that is reused.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// What each pair costs beyond leaving both out, smaller side first.
    costs: Vec<f64>,
    flow: Vec<u32>,
    left: Vec<u32>,
    row_potentials: Vec<f64>,
    column_potentials: Vec<f64>,
    row_distances: Vec<f64>,
    column_distances: Vec<f64>,
    /// The row a column was reached from, and the column a row was reached from.
    from_row: Vec<u32>,
    from_column: Vec<u32>,
    column_done: Vec<bool>,
}

impl Room {
    /// Sends all of `rows` to `columns`, which have room for them, and tells how much went where. `cost` is what a pair costs
    /// beyond leaving both out.
    pub(super) fn find(
        &mut self,
        rows: &[u32],
        columns: &[u32],
        cost: impl Fn(usize, usize) -> f64,
        mut matched: impl FnMut(usize, usize, u32),
    ) {
        let n_columns = columns.len();
        self.costs.clear();
        for row in 0..rows.len() {
            self.costs.extend((0..n_columns).map(|column| cost(row, column)));
        }
        self.transport(rows, columns);
        for (position, &count) in self.flow.iter().enumerate().filter(|&(_, &count)| count > 0) {
            matched(position / n_columns, position % n_columns, count);
        }
    }

    fn transport(&mut self, rows: &[u32], columns: &[u32]) {
        let (n_rows, n_columns) = (rows.len(), columns.len());
        reset(&mut self.flow, n_rows * n_columns, 0);
        reset(&mut self.row_potentials, n_rows, 0.0);
        reset(&mut self.column_potentials, n_columns, 0.0);
        self.left.clear();
        self.left.extend_from_slice(columns);
        for (row, &count) in rows.iter().enumerate() {
            let mut waiting = count;
            while waiting > 0 {
                let Some(end) = self.search(row, n_rows, n_columns) else { return };
                waiting -= self.send(row, end, waiting, n_columns);
            }
        }
    }

    /// The nearest column with room left; potentials are moved so that all reduced costs stay at least 0.
    fn search(&mut self, start: usize, n_rows: usize, n_columns: usize) -> Option<usize> {
        reset(&mut self.row_distances, n_rows, f64::INFINITY);
        reset(&mut self.column_distances, n_columns, f64::INFINITY);
        reset(&mut self.from_row, n_columns, NONE);
        reset(&mut self.from_column, n_rows, NONE);
        reset(&mut self.column_done, n_columns, false);
        self.row_distances[start] = 0.0;
        self.relax(start, n_columns);
        loop {
            let mut nearest: Option<usize> = None;
            for column in (0..n_columns).filter(|&column| !self.column_done[column]) {
                if nearest.is_none_or(|best| self.column_distances[column] < self.column_distances[best]) {
                    nearest = Some(column);
                }
            }
            let column = nearest?;
            self.column_done[column] = true;
            if self.left[column] > 0 {
                self.move_potentials(self.column_distances[column], n_rows, n_columns);
                return Some(column);
            }
            // Going back along what was sent costs nothing on reduced costs.
            for row in 0..n_rows {
                if self.flow[row * n_columns + column] > 0 && self.row_distances[row] == f64::INFINITY {
                    self.row_distances[row] = self.column_distances[column];
                    self.from_column[row] = column as u32;
                    self.relax(row, n_columns);
                }
            }
        }
    }

    fn relax(&mut self, row: usize, n_columns: usize) {
        let base = self.row_distances[row] - self.row_potentials[row];
        for column in 0..n_columns {
            let distance = base + self.costs[row * n_columns + column] - self.column_potentials[column];
            if distance < self.column_distances[column] && !self.column_done[column] {
                self.column_distances[column] = distance;
                self.from_row[column] = row as u32;
            }
        }
    }

    fn move_potentials(&mut self, reached: f64, n_rows: usize, n_columns: usize) {
        for row in (0..n_rows).filter(|&row| self.row_distances[row].is_finite()) {
            self.row_potentials[row] += reached - self.row_distances[row];
        }
        for column in (0..n_columns).filter(|&column| self.column_done[column]) {
            self.column_potentials[column] -= reached - self.column_distances[column];
        }
    }

    /// Sends as much as the path to `end` takes, at most `most`.
    fn send(&mut self, start: usize, end: usize, most: u32, n_columns: usize) -> u32 {
        let mut count = most.min(self.left[end]);
        let mut column = end;
        loop {
            let row = self.from_row[column] as usize;
            if row == start {
                break;
            }
            column = self.from_column[row] as usize;
            count = count.min(self.flow[row * n_columns + column]);
        }
        self.left[end] -= count;
        let mut column = end;
        loop {
            let row = self.from_row[column] as usize;
            self.flow[row * n_columns + column] += count;
            if row == start {
                return count;
            }
            column = self.from_column[row] as usize;
            self.flow[row * n_columns + column] -= count;
        }
    }
}

fn reset<T: Clone>(list: &mut Vec<T>, len: usize, value: T) {
    list.clear();
    list.resize(len, value);
}
