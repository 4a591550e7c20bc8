//! The distance between the distribution of values in a class and in the whole table: the earth mover's distance, for
//! three distances between values.
//!
//! # Paper       Li, Li, Venkatasubramanian: t-Closeness (2007), section 5
//! # Deviations
//! - Ordered: `m` counts the values that occur in the whole table; with one value the distance is 0. Texts that are
//!   not of the column's type come after the values, and null comes last.
//! - Hierarchical: the height of a node is the number of steps to its deepest leaf, even if its leaves have unequal
//!   depths. Two values are `height(lowest common ancestor) / height(root)` apart. Heights grow towards the root, so
//!   this is a tree metric in which the edge to a parent is half as long as the difference of the two heights. The
//!   paper's sum over inner nodes then equals the sum, over edges, of the length times the mass that crosses the edge.
//!   Null is one more leaf below the root.
//! # Cost
//! Proportional to the number of values in the class, not in the table: the part of values that the class lacks is
//! summed once in advance.

use kohort_model::{Column, Hierarchy, Texts};

use crate::Violation;
use crate::count::cells::{ValueIds, in_order};

/// The distribution in the whole table: how many pairs of a person and a value there are.
pub(crate) struct Distribution {
    /// The number of pairs for each value.
    pub(crate) counts: Vec<u64>,
    /// The number of pairs for all values.
    pub(crate) total: u64,
}

impl Distribution {
    /// The share of a value.
    pub(crate) fn share(&self, value: u32) -> f64 {
        self.counts[value as usize] as f64 / self.total as f64
    }
}

/// The values of one class, ascending, each with its count.
#[derive(Default)]
pub(crate) struct Held {
    /// Values, each with the number of persons who hold it.
    pub(crate) counts: Vec<(u32, u32)>,
    /// The sum of the counts.
    pub(crate) total: u64,
}

impl Held {
    /// Counts a sorted list of values.
    pub(crate) fn refill(&mut self, sorted: impl Iterator<Item = u32>) {
        self.counts.clear();
        self.total = 0;
        for value in sorted {
            self.total += 1;
            match self.counts.last_mut() {
                Some((last, count)) if *last == value => *count += 1,
                _ => self.counts.push((value, 1)),
            }
        }
    }

    /// Values and their shares.
    pub(crate) fn shares(&self) -> impl Iterator<Item = (u32, f64)> + '_ {
        self.counts.iter().map(|&(value, count)| (value, f64::from(count) / self.total as f64))
    }
}

/// The distance if any two values are 1 apart: the share that has to move. Summing over values of the class is enough,
/// because no other value can have too large a share.
pub(crate) fn equal_distance(held: &Held, reference: &Distribution) -> f64 {
    held.shares().map(|(value, share)| (share - reference.share(value)).max(0.0)).sum()
}

/// The earth mover's distance over ordered values.
pub(crate) struct OrderedDistance {
    /// The rank of each value among those that occur.
    ranks: Vec<u32>,
    /// For each rank, the share of all values up to it.
    cumulative: Vec<f64>,
    /// For each rank, the sum of `cumulative` before it; finally the whole sum.
    sums: Vec<f64>,
}

impl OrderedDistance {
    pub(crate) fn new(values: &ValueIds<'_>, texts: &Texts, column: &Column, reference: &Distribution) -> Self {
        let mut value_of_text = std::collections::HashMap::new();
        let mut occurring = Vec::new();
        for (value, &text) in values.spellings.iter().enumerate() {
            if reference.counts[value] > 0 {
                value_of_text.insert(text, value as u32);
                occurring.push(text);
            }
        }
        let mut order: Vec<u32> = in_order(texts, column, occurring).iter().map(|text| value_of_text[text]).collect();
        let null = values.cells.null();
        if reference.counts[null as usize] > 0 {
            order.push(null);
        }
        Self::over(&order, reference)
    }

    /// The distance over the occurring values in this order.
    fn over(order: &[u32], reference: &Distribution) -> Self {
        let mut ranks = vec![0; reference.counts.len()];
        let (mut cumulative, mut sums) = (Vec::with_capacity(order.len()), vec![0.0]);
        let (mut count, mut sum) = (0, 0.0);
        for (rank, &value) in order.iter().enumerate() {
            ranks[value as usize] = rank as u32;
            count += reference.counts[value as usize];
            let share = count as f64 / reference.total as f64;
            cumulative.push(share);
            sum += share;
            sums.push(sum);
        }
        OrderedDistance { ranks, cumulative, sums }
    }

    pub(crate) fn of(&self, held: &Held) -> f64 {
        let n_values = self.cumulative.len();
        if n_values < 2 {
            return 0.0;
        }
        let mut by_rank: Vec<(usize, f64)> =
            held.shares().map(|(value, share)| (self.ranks[value as usize] as usize, share)).collect();
        by_rank.sort_unstable_by_key(|&(rank, _)| rank);
        let (mut work, mut share_so_far, mut from) = (0.0, 0.0, 0);
        for (rank, share) in by_rank {
            work += self.between(from, rank, share_so_far);
            share_so_far += share;
            from = rank;
        }
        work += self.between(from, n_values, share_so_far);
        work / (n_values - 1) as f64
    }

    /// The sum of `|share - cumulative|` over a range of ranks in which the class holds no value, so that `share` is
    /// constant.
    fn between(&self, from: usize, to: usize, share: f64) -> f64 {
        let crossing = from + self.cumulative[from..to].partition_point(|&reference| reference <= share);
        let below = share * (crossing - from) as f64 - (self.sums[crossing] - self.sums[from]);
        let above = (self.sums[to] - self.sums[crossing]) - share * (to - crossing) as f64;
        below + above
    }
}

/// The earth mover's distance over a tree.
pub(crate) struct HierarchicalDistance<'a> {
    hierarchy: &'a Hierarchy,
    /// The leaf of each value. Null has a node of its own behind all nodes of the hierarchy.
    nodes: Vec<u32>,
    /// The length of the edge from each node to its parent.
    lengths: Vec<f64>,
    /// The share in the whole table of the values below each node.
    shares: Vec<f64>,
    /// The sum of lengths times shares.
    all: f64,
}

impl<'a> HierarchicalDistance<'a> {
    pub(crate) fn new(
        values: &ValueIds<'_>,
        texts: &Texts,
        column: &'a Column,
        reference: &Distribution,
    ) -> Result<Self, Violation> {
        let Some(hierarchy) = column.hierarchy.as_deref() else {
            return Err(Violation::NoHierarchy { column: column.name.clone() });
        };
        let null_node = hierarchy.n_nodes() as u32;
        let mut nodes = vec![null_node; reference.counts.len()];
        let mut n_missing = 0;
        for (value, &text) in values.spellings.iter().enumerate() {
            if reference.counts[value] > 0 {
                match hierarchy.leaf(texts.get(text)) {
                    Some(leaf) => nodes[value] = leaf,
                    None => n_missing += 1,
                }
            }
        }
        if n_missing > 0 {
            return Err(Violation::NotInHierarchy { column: column.name.clone(), n: n_missing });
        }
        let lengths = edge_lengths(hierarchy);
        let mut shares = vec![0.0; lengths.len()];
        for (value, &node) in nodes.iter().enumerate() {
            for node in path(hierarchy, node) {
                shares[node as usize] += reference.share(value as u32);
            }
        }
        let all = lengths.iter().zip(&shares).map(|(length, share)| length * share).sum();
        Ok(HierarchicalDistance { hierarchy, nodes, lengths, shares, all })
    }

    pub(crate) fn of(&self, held: &Held) -> f64 {
        let mut touched: Vec<(u32, f64)> = Vec::new();
        for (value, share) in held.shares() {
            touched.extend(path(self.hierarchy, self.nodes[value as usize]).map(|node| (node, share)));
        }
        touched.sort_unstable_by_key(|&(node, _)| node);
        let mut work = self.all;
        for below in touched.chunk_by(|a, b| a.0 == b.0) {
            let node = below[0].0 as usize;
            let share: f64 = below.iter().map(|(_, share)| share).sum();
            work += self.lengths[node] * ((share - self.shares[node]).abs() - self.shares[node]);
        }
        work.max(0.0)
    }
}

/// A node and its ancestors without the root. The node of null has no ancestors.
fn path(hierarchy: &Hierarchy, node: u32) -> impl Iterator<Item = u32> + '_ {
    std::iter::successors(
        Some(node),
        |&node| if node < hierarchy.n_nodes() as u32 { hierarchy.parent(node) } else { None },
    )
    .filter(|&node| node != hierarchy.root())
}

/// The length of the edge from each node, that of null included, to its parent. Two leaves are at most 1 apart.
fn edge_lengths(hierarchy: &Hierarchy) -> Vec<f64> {
    let n_nodes = hierarchy.n_nodes();
    let mut heights = vec![0u32; n_nodes];
    // Parents have lower numbers than their children, so in this order each height is final before its parent uses it.
    for node in (0..n_nodes as u32).rev() {
        if let Some(parent) = hierarchy.parent(node) {
            heights[parent as usize] = heights[parent as usize].max(heights[node as usize] + 1);
        }
    }
    let whole = f64::from(heights[hierarchy.root() as usize].max(1));
    let mut lengths: Vec<f64> = (0..n_nodes as u32)
        .map(|node| match hierarchy.parent(node) {
            Some(parent) => f64::from(heights[parent as usize] - heights[node as usize]) / whole / 2.0,
            None => 0.0,
        })
        .collect();
    lengths.push(0.5);
    lengths
}

#[cfg(test)]
mod tests {
    use kohort_model::{Role, ValueType};
    use proptest::prelude::*;

    use super::*;
    use crate::oracle::transport;

    fn held(values: &[u32]) -> Held {
        let mut values = values.to_vec();
        values.sort_unstable();
        let mut held = Held::default();
        held.refill(values.into_iter());
        held
    }

    fn reference(counts: &[u64]) -> Distribution {
        Distribution { counts: counts.to_vec(), total: counts.iter().sum() }
    }

    #[test]
    fn salaries_of_the_paper() {
        let cells = ["3000", "4000", "5000", "6000", "7000", "8000", "9000", "10000", "11000"];
        let column = Column::from_cells("salary", Role::Sensitive, cells.map(Some)).typed(ValueType::Integer);
        let values = ValueIds::new(&column.ids, &column.texts, &column);
        let reference = reference(&[1, 1, 1, 1, 1, 1, 1, 1, 1, 0]);
        let distance = OrderedDistance::new(&values, &column.texts, &column, &reference);
        assert!((distance.of(&held(&[0, 1, 2])) - 0.375).abs() < 1e-12);
        assert!((distance.of(&held(&[3, 5, 8])) - 1.0 / 6.0).abs() < 1e-12);
        assert!((equal_distance(&held(&[0, 1, 2]), &reference) - 2.0 / 3.0).abs() < 1e-12);
    }

    const DISEASES: &str = "flu;respiratory infection;respiratory;all
pneumonia;respiratory infection;respiratory;all
bronchitis;respiratory infection;respiratory;all
pulmonary edema;vascular lung;respiratory;all
pulmonary embolism;vascular lung;respiratory;all
gastric ulcer;stomach;digestive;all
stomach cancer;stomach;digestive;all
gastritis;stomach;digestive;all
colitis;colon;digestive;all
colon cancer;colon;digestive;all";

    #[test]
    fn diseases_of_the_paper() {
        let cells = ["gastric ulcer", "gastritis", "stomach cancer", "flu", "bronchitis", "pneumonia"];
        let column = Column::from_cells("disease", Role::Sensitive, cells.map(Some))
            .with_hierarchy(Hierarchy::from_paths(DISEASES).unwrap());
        let values = ValueIds::new(&column.ids, &column.texts, &column);
        let reference = reference(&[1, 1, 1, 1, 1, 1, 0]);
        let distance = HierarchicalDistance::new(&values, &column.texts, &column, &reference).unwrap();
        assert!((distance.of(&held(&[0, 1, 2])) - 0.5).abs() < 1e-12);
        assert!((distance.of(&held(&[0, 2, 5])) - 5.0 / 18.0).abs() < 1e-12);
    }

    #[test]
    fn a_distance_by_hierarchy_needs_one_that_knows_the_values() {
        let column = Column::from_cells("disease", Role::Sensitive, [Some("flu"), Some("cold")]);
        let values = ValueIds::new(&column.ids, &column.texts, &column);
        let counts = reference(&[1, 1, 0]);
        let name = "disease".to_owned();
        let error = HierarchicalDistance::new(&values, &column.texts, &column, &counts).err();
        assert_eq!(error, Some(Violation::NoHierarchy { column: name.clone() }));
        let column = column.clone().with_hierarchy(Hierarchy::from_paths(DISEASES).unwrap());
        let error = HierarchicalDistance::new(&values, &column.texts, &column, &counts).err();
        assert_eq!(error, Some(Violation::NotInHierarchy { column: name, n: 1 }));
    }

    /// Leaves of unequal depth.
    const RAGGED: &str = "a;x;r;all\nb;x;r;all\nc;r;all\nd;all\ne;y;all\nf;y;all";

    /// Height of the lowest common ancestor over 3, for the leaves a to f and null.
    fn ragged_ground(a: usize, b: usize) -> f64 {
        match (a.min(b), a.max(b)) {
            (a, b) if a == b => 0.0,
            (0, 1) | (4, 5) => 1.0 / 3.0,
            (0 | 1, 2) => 2.0 / 3.0,
            _ => 1.0,
        }
    }

    proptest! {
        #[test]
        fn both_distances_are_the_least_work_of_any_transport(
            counts in proptest::collection::vec(0u64..5, 7),
            class in proptest::collection::vec(0u32..7, 1..9),
        ) {
            let mut counts = counts;
            for &value in &class {
                counts[value as usize] += 1;
            }
            let reference = reference(&counts);
            let held = held(&class);
            let mut shares = [0.0; 7];
            for (value, share) in held.shares() {
                shares[value as usize] = share;
            }
            let target: Vec<f64> = (0..7).map(|value| reference.share(value)).collect();

            let cells = ["a", "b", "c", "d", "e", "f"].map(Some);
            let column = Column::from_cells("s", Role::Sensitive, cells).with_hierarchy(Hierarchy::from_paths(RAGGED).unwrap());
            let values = ValueIds::new(&column.ids, &column.texts, &column);
            let distance = HierarchicalDistance::new(&values, &column.texts, &column, &reference).unwrap();
            let work = transport(&shares, &target, ragged_ground);
            prop_assert!((distance.of(&held) - work).abs() < 1e-9);

            let distance = OrderedDistance::new(&values, &column.texts, &column, &reference);
            let occurring: Vec<usize> = (0..7).filter(|&value| counts[value] > 0).collect();
            let rank = |value: usize| occurring.iter().filter(|&&other| other < value).count() as f64;
            let steps = (occurring.len() as f64 - 1.0).max(1.0);
            let work = transport(&shares, &target, |a, b| (rank(a) - rank(b)).abs() / steps);
            prop_assert!((distance.of(&held) - work).abs() < 1e-9);

            let work = transport(&shares, &target, |a, b| if a == b { 0.0 } else { 1.0 });
            prop_assert!((equal_distance(&held, &reference) - work).abs() < 1e-9);
        }
    }
}
