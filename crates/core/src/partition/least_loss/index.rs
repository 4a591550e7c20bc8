//! [`ClassTree`]: finds the class in which a row costs least, without looking at them all.
//!
//! Classes are the leaves of a binary tree. Every node holds the bounds of everything below, and for each column the width
//! of the widest class there. A search begins at the row's own class and walks up, because the best class is usually near; a branch
//! is skipped where even the best class that its bounds allow would cost more than the best found. The tree is built anew for
//! each round of moves: each set of classes is cut in the column where it is widest, next to the median.
//!
//! # Cost
//! building: O(d n log² n); a search looks at no more nodes than the effort allows

use crate::encode::Domain;
use crate::encode::bounds::unite;
use crate::partition::Task;
use crate::partition::outline::Outline;

/// No node, or no class.
const NONE: u32 = u32::MAX;

/// Each side of a node has at least this share of its classes, so that the depth of the tree is limited.
const SMALLEST_SIDE: usize = 4;

/// A binary tree of bounds over classes.
pub(super) struct ClassTree<'t> {
    task: &'t Task<'t>,
    n_columns: usize,
    /// Whether the widths of neighbouring intervals of a column add up to that of both.
    adds_up: Vec<bool>,
    /// In pre-order: the first child of a node comes right after it.
    nodes: Vec<Node>,
    /// For each node and column, what lies below.
    spans: Vec<Span>,
    leaf_of_class: Vec<u32>,
    /// How many nodes a search looks at. In many columns bounds prune little, and classes found late are seldom better,
    /// because the search goes to the nearest first.
    visits: usize,
}

struct Node {
    /// The least perimeter of a class below.
    least_perimeter: f64,
    parent: u32,
    /// The second child; none for a leaf.
    second: u32,
    /// The class of a leaf.
    class: u32,
}

/// What lies below a node in one column.
#[derive(Clone, Copy)]
struct Span {
    bounds: (u32, u32),
    /// The width of the widest class.
    widest: f64,
}

impl<'t> ClassTree<'t> {
    pub(super) fn new(task: &'t Task<'t>, outlines: &[Outline], visits: usize) -> ClassTree<'t> {
        let mut tree = ClassTree {
            task,
            n_columns: task.rows.n_columns(),
            adds_up: task.domains.iter().map(Domain::widths_add_up).collect(),
            nodes: Vec::new(),
            spans: Vec::new(),
            leaf_of_class: vec![NONE; outlines.len()],
            visits,
        };
        let mut classes: Vec<u32> =
            (0..outlines.len() as u32).filter(|&class| outlines[class as usize].weight > 0).collect();
        if !classes.is_empty() {
            tree.build(outlines, &mut classes, NONE, &mut Vec::new());
        }
        tree
    }

    /// Adds a node over some classes, and all nodes below. The depth of recursion grows with the logarithm of their number.
    fn build(&mut self, outlines: &[Outline], classes: &mut [u32], parent: u32, keys: &mut Vec<u64>) -> u32 {
        let node = self.nodes.len() as u32;
        let first = &outlines[classes[0] as usize];
        self.nodes.push(Node { least_perimeter: first.perimeter, parent, second: NONE, class: NONE });
        let mut bounds = first.bounds.clone();
        for &class in &classes[1..] {
            unite(&mut bounds, &outlines[class as usize].bounds);
        }
        self.spans.extend(bounds.iter().map(|&bounds| Span { bounds, widest: 0.0 }));
        if let &mut [class] = classes {
            self.nodes[node as usize].class = class;
            self.leaf_of_class[class as usize] = node;
            self.measure_leaf(node as usize);
            return node;
        }
        let widths = bounds.iter().zip(self.task.domains).map(|(&(lo, hi), domain)| domain.width(lo, hi));
        let widest = widths.enumerate().reduce(|widest, other| if other.1 > widest.1 { other } else { widest });
        let column = widest.map_or(0, |(column, _)| column);
        keys.clear();
        keys.extend(classes.iter().map(|&class| {
            let (lo, hi) = outlines[class as usize].bounds[column];
            u64::from(lo + (hi - lo) / 2) << 32 | u64::from(class)
        }));
        keys.sort_unstable();
        classes.iter_mut().zip(keys.iter()).for_each(|(class, &key)| *class = key as u32);
        let middle = boundary(keys);
        let (below, above) = classes.split_at_mut(middle);
        self.build(outlines, below, node, keys);
        self.nodes[node as usize].second = self.build(outlines, above, node, keys);
        self.unite_children(node as usize);
        node
    }

    /// The spans of a leaf are those of its class.
    fn measure_leaf(&mut self, node: usize) {
        for (span, domain) in self.spans[node * self.n_columns..][..self.n_columns].iter_mut().zip(self.task.domains) {
            span.widest = domain.width(span.bounds.0, span.bounds.1);
        }
    }

    fn unite_children(&mut self, node: usize) {
        let n_columns = self.n_columns;
        let (first, second) = (node + 1, self.nodes[node].second as usize);
        for column in 0..n_columns {
            let widest =
                self.spans[first * n_columns + column].widest.max(self.spans[second * n_columns + column].widest);
            self.spans[node * n_columns + column].widest = widest;
        }
        self.nodes[node].least_perimeter = self.nodes[first].least_perimeter.min(self.nodes[second].least_perimeter);
    }

    /// Notes that a class has changed. Bounds above a class that has shrunk stay as they are: too wide, never too
    /// narrow; perimeters above one that has grown are too small, never too large.
    pub(super) fn changed(&mut self, class: usize, outline: &Outline) {
        // A class without rows is skipped, and the bounds above it need not become narrower.
        let mut node = if outline.weight > 0 { self.leaf_of_class[class] } else { NONE };
        while node != NONE {
            let place = node as usize;
            let spans = &mut self.spans[place * self.n_columns..][..self.n_columns];
            let mut is_held = self.nodes[place].least_perimeter <= outline.perimeter;
            for ((span, &(lo, hi)), domain) in spans.iter_mut().zip(&outline.bounds).zip(self.task.domains) {
                if lo < span.bounds.0 || hi > span.bounds.1 {
                    span.bounds = (span.bounds.0.min(lo), span.bounds.1.max(hi));
                    is_held = false;
                }
                let width = domain.width(lo, hi);
                if width > span.widest {
                    span.widest = width;
                    is_held = false;
                }
            }
            if is_held {
                // Everything above holds it, too.
                break;
            }
            self.nodes[place].least_perimeter = self.nodes[place].least_perimeter.min(outline.perimeter);
            node = self.nodes[place].parent;
        }
    }

    /// The class other than `own` whose loss grows least when the row joins it, by less than `limit`; the first of
    /// equals. A good `guess` saves most of the search.
    pub(super) fn cheapest(
        &self,
        outlines: &[Outline],
        row: u32,
        own: usize,
        guess: usize,
        mut limit: f64,
    ) -> Option<(f64, usize)> {
        let task = self.task;
        let wanted = Wanted {
            cells: task.rows.cells(row),
            weight: f64::from(task.rows.weight(row)),
            k: f64::from(task.rules.k()),
        };
        let mut best: Option<(f64, usize)> = None;
        if guess != own && outlines.get(guess).is_some_and(|outline| outline.weight > 0) {
            let growth = outlines[guess].growth(task, row);
            if growth < limit {
                best = Some((growth, guess));
                limit = growth;
            }
        }
        let mut open: Vec<(u32, f64)> = Vec::with_capacity(64);
        let mut n_visited = 0;
        // The nodes from the own class up to the root: at each, the side that was not looked at is next.
        let mut path = self.leaf_of_class.get(own).copied().unwrap_or(NONE);
        if path == NONE && !self.nodes.is_empty() {
            open.push((0, 0.0));
        }
        loop {
            let Some((node, least)) = open.pop() else {
                let parent = self.nodes.get(path as usize).map_or(NONE, |node| node.parent);
                if parent == NONE {
                    break;
                }
                let above = &self.nodes[parent as usize];
                let other = if above.second == path { parent + 1 } else { above.second };
                path = parent;
                let least = self.least_cost(other as usize, &wanted, limit);
                if least < limit {
                    open.push((other, least));
                }
                continue;
            };
            if least >= limit {
                continue;
            }
            n_visited += 1;
            if n_visited > self.visits {
                break;
            }
            let Node { second, class, .. } = self.nodes[node as usize];
            if second == NONE {
                let class = class as usize;
                if class != own && outlines[class].weight > 0 {
                    let growth = outlines[class].growth(task, row);
                    // Classes are met out of order, and ties must not depend on it.
                    if growth < limit || best.is_some_and(|(least, first)| growth == least && class < first) {
                        best = Some((growth, class));
                        limit = growth;
                    }
                }
                continue;
            }
            let first = (node + 1, self.least_cost(node as usize + 1, &wanted, limit));
            let second = (second, self.least_cost(second as usize, &wanted, limit));
            // The nearer side is opened first, so that it is pushed last.
            let (near, far) = if second.1 < first.1 { (second, first) } else { (first, second) };
            open.extend([far, near].into_iter().filter(|side| side.1 < limit));
        }
        best
    }

    /// What joining any class below a node costs at least; infinite if that is `limit` or more.
    ///
    /// Where the row lies outside of the bounds, a class that takes it becomes as wide as from the bounds to the row, if it is not
    /// wider already. The row itself loses that much, and at least k rows of the class lose what it is wider than before.
    #[inline]
    fn least_cost(&self, node: usize, wanted: &Wanted<'_>, limit: f64) -> f64 {
        let Wanted { cells, weight, k } = *wanted;
        let mut perimeter = self.nodes[node].least_perimeter;
        let (mut outside, mut wider) = (0.0, 0.0);
        let mut cost = perimeter * weight;
        if cost >= limit {
            return f64::INFINITY;
        }
        let spans = &self.spans[node * self.n_columns..][..self.n_columns];
        for (column, (span, &code)) in spans.iter().zip(cells).enumerate() {
            let (lo, hi) = span.bounds;
            if lo <= code && code <= hi {
                continue;
            }
            let domain = &self.task.domains[column];
            let reach = if code < lo { domain.width(code, lo) } else { domain.width(hi, code) };
            outside += reach;
            if self.adds_up[column] {
                perimeter += reach;
                wider += reach;
            } else {
                wider += (reach - span.widest).max(0.0);
            }
            cost = perimeter.max(outside) * weight + wider * k;
            if cost >= limit {
                return f64::INFINITY;
            }
        }
        cost
    }
}

/// The row that looks for a class.
struct Wanted<'r> {
    cells: &'r [u32],
    weight: f64,
    k: f64,
}

/// Where a set of classes is cut: the place nearest to the middle at which the codes differ, if it leaves enough on both sides,
/// else the middle. Keys have the code in their upper half and ascend.
fn boundary(keys: &[u64]) -> usize {
    let (middle, least) = (keys.len() / 2, keys.len().div_ceil(SMALLEST_SIDE));
    let code = |place: usize| keys[place] >> 32;
    let of_middle = code(middle);
    let start = keys.partition_point(|&key| key >> 32 < of_middle);
    let end = keys.partition_point(|&key| key >> 32 <= of_middle);
    let nearest = if middle - start <= end - middle { [start, end] } else { [end, start] };
    nearest.into_iter().find(|&place| place >= least && place + least <= keys.len()).unwrap_or(middle)
}

#[cfg(test)]
mod tests {
    use kohort_model::Silent;
    use proptest::prelude::*;

    use super::*;
    use crate::partition::sample::{N_CODES, domains, fold};
    use crate::requirement::Rules;

    proptest! {
        #[test]
        fn a_search_without_limit_finds_the_class_that_grows_least(
            cells in (1usize..4).prop_flat_map(|n| prop::collection::vec(prop::collection::vec(0..N_CODES, n), 2..60)),
            n_classes in 1usize..12,
        ) {
            let rows = fold(&cells);
            let (domains, rules) = (domains(rows.n_columns()), Rules::k_only(1));
            let task = Task::of_everybody(&rows, &domains, &rules, &Silent);
            let mut classes = vec![Vec::new(); n_classes];
            (0..rows.len() as u32).for_each(|row| classes[row as usize % n_classes].push(row));
            let outlines: Vec<Outline> = classes.iter().map(|rows| Outline::of(&task, rows)).collect();
            let tree = ClassTree::new(&task, &outlines, usize::MAX);
            for row in 0..rows.len() as u32 {
                let own = row as usize % n_classes;
                let found = tree.cheapest(&outlines, row, own, usize::MAX, f64::INFINITY);
                let others = (0..n_classes).filter(|&class| class != own && outlines[class].weight > 0);
                let least = others.map(|class| outlines[class].growth(&task, row)).reduce(f64::min);
                // Sums of widths may be rounded in another order.
                let is_least = found.zip(least).is_none_or(|((growth, _), least)| (growth - least).abs() < 1e-9);
                prop_assert!(is_least && found.is_some() == least.is_some(), "{:?} is not {:?}", found, least);
            }
        }
    }
}
