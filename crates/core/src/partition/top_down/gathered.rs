//! [`Gathered`]: the rows of one group side by side. Each split looks at all of them several times, and where they lie
//! scattered over the table every look waits for memory.

use super::group::Space;
use crate::encode::{Domain, Tree};

/// For fewer rows, finding the way up from a cell takes longer than it saves.
const FEW_ROWS: usize = 32;

/// The rows of one group with their cells.
pub(super) struct Gathered<'a> {
    space: Space<'a>,
    rows: Vec<u32>,
    /// Row by row, a code per column.
    cells: Vec<u32>,
    /// Column by column, what leads up from the cell that distances are taken from.
    ways: Vec<Way<'a>>,
}

/// How far other cells of a column are from one of them.
enum Way<'a> {
    /// In a tree: its node and the nodes above it, each with its interval and its width.
    Up(Vec<(u32, u32, f64)>),
    /// In any other domain, as the domain says.
    Along(&'a Domain, u32),
}

impl<'a> Gathered<'a> {
    /// None yet.
    pub(super) fn new(space: Space<'a>) -> Gathered<'a> {
        let way = |domain: &'a Domain| match domain.tree() {
            Some(_) => Way::Up(Vec::new()),
            None => Way::Along(domain, 0),
        };
        Gathered { space, rows: Vec::new(), cells: Vec::new(), ways: space.domains.iter().map(way).collect() }
    }

    /// Gathers these rows in place of those before.
    pub(super) fn gather(&mut self, rows: &[u32]) {
        self.rows.clear();
        self.rows.extend_from_slice(rows);
        self.cells.clear();
        rows.iter().for_each(|&row| self.cells.extend_from_slice(self.space.rows.cells(row)));
    }

    /// The row at a position.
    pub(super) fn row(&self, position: u32) -> u32 {
        self.rows[position as usize]
    }

    /// Its cells.
    pub(super) fn cells(&self, position: u32) -> &[u32] {
        let n_columns = self.space.domains.len();
        &self.cells[position as usize * n_columns..][..n_columns]
    }

    /// What each row loses in the smallest box that holds it and the row at this position.
    pub(super) fn distances_from(&mut self, position: u32, distances: &mut Vec<f64>) {
        let n_columns = self.space.domains.len();
        let from = position as usize * n_columns;
        distances.clear();
        if self.rows.len() < FEW_ROWS {
            let one = &self.cells[from..][..n_columns];
            distances.extend(self.cells.chunks_exact(n_columns).map(|other| self.space.distance(one, other)));
            return;
        }
        for ((way, domain), &code) in self.ways.iter_mut().zip(self.space.domains).zip(&self.cells[from..]) {
            match (way, domain.tree()) {
                (Way::Up(nodes), Some(tree)) => go_up(domain, tree, code, nodes),
                (Way::Along(_, from), _) => *from = code,
                (Way::Up(_), None) => unreachable!("only trees have a way up"),
            }
        }
        let distance = |cells: &[u32]| cells.iter().zip(&self.ways).map(|(&code, way)| way.width_to(code)).sum::<f64>();
        distances.extend(self.cells.chunks_exact(n_columns).map(distance));
    }
}

impl Way<'_> {
    fn width_to(&self, code: u32) -> f64 {
        match self {
            Way::Up(nodes) => {
                let holds = |&&(lo, hi, _): &&(u32, u32, f64)| lo <= code && code <= hi;
                nodes.iter().find(holds).map_or(1.0, |&(_, _, width)| width)
            }
            Way::Along(domain, from) => domain.width(code.min(*from), code.max(*from)),
        }
    }
}

/// The intervals of a code and of every node above it that holds more than the one below.
fn go_up(domain: &Domain, tree: &Tree, code: u32, nodes: &mut Vec<(u32, u32, f64)>) {
    nodes.clear();
    let last = tree.n_codes() - 1;
    let (mut lo, mut hi) = (code, code);
    loop {
        nodes.push((lo, hi, domain.width(lo, hi)));
        // The next node up holds a neighbour; where both are above, it is the smaller of the two nodes that do.
        let before = (lo > 0).then(|| tree.hull(lo - 1, hi));
        let after = (hi < last).then(|| tree.hull(lo, hi + 1));
        let Some(next) = before.into_iter().chain(after).min_by_key(|&(lo, hi)| hi - lo) else { break };
        (lo, hi) = next;
    }
}
