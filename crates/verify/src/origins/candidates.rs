//! [`PointTree`]: which private rows lie in a released box.
//!
//! # Cost
//! A k-d tree takes O(n log^2 n) to build. A query visits the nodes that its box cuts, which are few if boxes follow
//! median cuts, as with most partitioners.

/// A k-d tree: each node halves its points.
pub(crate) struct PointTree {
    n_columns: usize,
    /// Points in the order of the tree.
    order: Vec<u32>,
    nodes: Vec<Node>,
    /// The smallest and largest coordinate of each node in each column.
    bounds: Vec<(u32, u32)>,
    coordinates: Vec<u32>,
}

struct Node {
    /// Where the points of the node begin and end in `order`.
    start: u32,
    end: u32,
    /// The node of the first half, which the second one follows; 0 if there are none.
    children: u32,
}

/// Nodes with at most this many points are not halved.
const LEAF: u32 = 8;

impl PointTree {
    /// A tree over points that are given by `n_columns` coordinates each.
    pub(crate) fn new(n_columns: usize, coordinates: Vec<u32>, n_points: usize) -> Self {
        let order = (0..n_points as u32).collect();
        let mut tree = PointTree { n_columns, order, nodes: Vec::new(), bounds: Vec::new(), coordinates };
        tree.add(0, n_points as u32);
        let mut next = 0;
        while next < tree.nodes.len() {
            tree.halve(next);
            next += 1;
        }
        tree
    }

    fn coordinate(&self, point: u32, column: usize) -> u32 {
        self.coordinates[point as usize * self.n_columns + column]
    }

    fn add(&mut self, start: u32, end: u32) {
        for column in 0..self.n_columns {
            let points = &self.order[start as usize..end as usize];
            let values = points.iter().map(|&point| self.coordinate(point, column));
            let bound = values.fold((u32::MAX, 0), |(low, high), value| (low.min(value), high.max(value)));
            self.bounds.push(bound);
        }
        self.nodes.push(Node { start, end, children: 0 });
    }

    /// Gives a node two children, unless its points are few or all equal.
    fn halve(&mut self, node: usize) {
        let Node { start, end, .. } = self.nodes[node];
        // Widths are relative to the whole column, because most partitioners choose the column to cut in this way.
        let span = |node: usize, column: usize| {
            let (low, high) = self.bounds[node * self.n_columns + column];
            f64::from(high.saturating_sub(low))
        };
        let width = |&column: &usize| if span(0, column) > 0.0 { span(node, column) / span(0, column) } else { 0.0 };
        let Some(widest) =
            (0..self.n_columns).max_by(|a, b| width(a).total_cmp(&width(b))).filter(|column| width(column) > 0.0)
        else {
            return;
        };
        if end - start <= LEAF {
            return;
        }
        let middle = (end - start) / 2;
        let (coordinates, n_columns) = (&self.coordinates, self.n_columns);
        self.order[start as usize..end as usize]
            .select_nth_unstable_by_key(middle as usize, |&point| coordinates[point as usize * n_columns + widest]);
        self.nodes[node].children = self.nodes.len() as u32;
        self.add(start, start + middle);
        self.add(start + middle, end);
    }

    /// The points in a box, ascending. Each side of the box is a range of coordinates (the end excluded).
    pub(crate) fn within(&self, sides: &[(u32, u32)]) -> Vec<u32> {
        let mut found = Vec::new();
        self.visit(sides, |points| found.extend_from_slice(points));
        found.sort_unstable();
        found
    }

    /// The number of points in a box.
    pub(crate) fn count(&self, sides: &[(u32, u32)]) -> usize {
        let mut n = 0;
        self.visit(sides, |points| n += points.len());
        n
    }

    /// Calls `found` with the points in a box, in no particular order.
    pub(crate) fn visit(&self, sides: &[(u32, u32)], mut found: impl FnMut(&[u32])) {
        let mut open = vec![0u32];
        while let Some(node) = open.pop() {
            let bounds = &self.bounds[node as usize * self.n_columns..][..self.n_columns];
            let pairs = || bounds.iter().zip(sides);
            if pairs().any(|(&(low, high), &(from, to))| high < from || low >= to) {
                continue;
            }
            let Node { start, end, children } = self.nodes[node as usize];
            let points = &self.order[start as usize..end as usize];
            if pairs().all(|(&(low, high), &(from, to))| from <= low && high < to) {
                found(points);
            } else if children != 0 {
                open.extend([children, children + 1]);
            } else {
                let inside = |point: &u32| {
                    let value = |column| self.coordinate(*point, column);
                    sides.iter().enumerate().all(|(column, &(from, to))| from <= value(column) && value(column) < to)
                };
                points.iter().filter(|point| inside(point)).for_each(|&point| found(&[point]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_box_finds_its_points_and_no_others(
            points in proptest::collection::vec((0u32..9, 0u32..9, 0u32..3), 1..120),
            sides in (0u32..9, 0u32..10, 0u32..9, 0u32..10, 0u32..3, 0u32..4),
        ) {
            let sides = [(sides.0, sides.1), (sides.2, sides.3), (sides.4, sides.5)];
            let coordinates: Vec<u32> = points.iter().flat_map(|&(a, b, c)| [a, b, c]).collect();
            let tree = PointTree::new(3, coordinates.clone(), points.len());
            let inside = |point: &u32| {
                let own = &coordinates[*point as usize * 3..][..3];
                own.iter().zip(&sides).all(|(value, (from, to))| from <= value && value < to)
            };
            let expected: Vec<u32> = (0..points.len() as u32).filter(inside).collect();
            prop_assert_eq!(tree.count(&sides), expected.len());
            prop_assert_eq!(tree.within(&sides), expected);
        }
    }

    #[test]
    fn without_columns_every_point_is_inside() {
        assert_eq!(PointTree::new(0, Vec::new(), 3).within(&[]), [0, 1, 2]);
    }
}
