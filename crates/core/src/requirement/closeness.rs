//! Earth mover's distance between a class and the release, in time that depends on the values of the class alone.
//!
//! # Paper
//! `[LLV07]`
//! # Cost
//! equal: the class's distinct values; ordered: those times log of all values, by prefix sums; hierarchical: those
//! times the height, because nodes without a value of the class cost nothing

use kohort_model::Hierarchy;

/// The ground distance between sensitive values, prepared for one distribution of the release.
#[derive(Clone, Debug)]
pub(crate) enum Ground {
    Equal,
    Ordered(OrderedGround),
    Hierarchical(HierarchicalGround),
}

#[derive(Clone, Debug)]
pub(crate) struct OrderedGround {
    /// `below[i]` is the share of the values with rank `<= i`, only values that occur.
    below: Vec<f64>,
    /// `sums[i]` is `below[0] + ... + below[i - 1]`.
    sums: Vec<f64>,
    /// Rank among the values that occur, by code.
    ranks: Vec<u32>,
}

#[derive(Clone, Debug)]
pub(crate) struct HierarchicalGround {
    /// For each node, its parent, its height over the tree's, and the release's share below it. One node more than the
    /// hierarchy's for NULL.
    parents: Vec<u32>,
    heights: Vec<f64>,
    shares: Vec<f64>,
    node_of_code: Vec<u32>,
}

impl Ground {
    pub(super) fn ordered(shares: &[f64]) -> Ground {
        let (mut below, mut sums, mut ranks) = (Vec::new(), vec![0.0], Vec::with_capacity(shares.len()));
        let (mut share_below, mut sum) = (0.0, 0.0);
        for &share in shares {
            ranks.push(below.len() as u32);
            if share > 0.0 {
                share_below += share;
                sum += share_below;
                below.push(share_below);
                sums.push(sum);
            }
        }
        Ground::Ordered(OrderedGround { below, sums, ranks })
    }

    pub(super) fn hierarchical(hierarchy: &Hierarchy, shares: &[f64]) -> Ground {
        // Codes are leaves, depth first; one more is NULL's.
        let null_node = hierarchy.n_nodes() as u32;
        let mut node_of_code = hierarchy.leaves();
        node_of_code.resize(shares.len(), null_node);
        let mut parents: Vec<u32> = (0..null_node).map(|node| hierarchy.parent(node).unwrap_or(0)).collect();
        parents.push(0);
        let mut heights = vec![0u32; parents.len()];
        let mut node_shares = vec![0.0; parents.len()];
        for (code, &node) in node_of_code.iter().enumerate() {
            node_shares[node as usize] = shares[code];
        }
        for node in (1..parents.len()).rev() {
            let parent = parents[node] as usize;
            heights[parent] = heights[parent].max(heights[node] + 1);
            node_shares[parent] += node_shares[node];
        }
        let height = f64::from(heights[0].max(1));
        let heights = heights.iter().map(|&steps| f64::from(steps) / height).collect();
        Ground::Hierarchical(HierarchicalGround { parents, heights, shares: node_shares, node_of_code })
    }

    /// The distance of a class with these `(code, share)` pairs, shares positive, codes ascending and distinct.
    pub(super) fn distance(&self, class: &[(u32, f64)], release: &[f64]) -> f64 {
        match self {
            // The surplus of the class must move. Its lack is as large, so counting the surplus suffices.
            Ground::Equal => class.iter().map(|&(code, share)| (share - release[code as usize]).max(0.0)).sum(),
            Ground::Ordered(ground) => ground.distance(class),
            Ground::Hierarchical(ground) => ground.distance(class),
        }
    }
}

impl OrderedGround {
    fn distance(&self, class: &[(u32, f64)]) -> f64 {
        let n_values = self.below.len();
        if n_values < 2 {
            return 0.0;
        }
        // Between two values of the class its cumulative share is constant and the release's rises, so that a run of
        // absolute differences is two prefix sums apart.
        let run = |from: usize, to: usize, level: f64| {
            let crossing = from + self.below[from..to].partition_point(|&below| below < level);
            let sum = |from: usize, to: usize| self.sums[to] - self.sums[from];
            level * (crossing - from) as f64 - sum(from, crossing) + sum(crossing, to) - level * (to - crossing) as f64
        };
        let (mut moved, mut from, mut level) = (0.0, 0, 0.0);
        for &(code, share) in class {
            let rank = self.ranks[code as usize] as usize;
            moved += run(from, rank, level);
            (from, level) = (rank, level + share);
        }
        (moved + run(from, n_values, level)) / (n_values - 1) as f64
    }
}

impl HierarchicalGround {
    fn distance(&self, class: &[(u32, f64)]) -> f64 {
        // Visits the leaves of the class and their ancestors, children before parents: numbers descend.
        let mut open: std::collections::BTreeMap<u32, (f64, f64)> = std::collections::BTreeMap::new();
        for &(code, share) in class {
            // (share of the class below, surplus of its children)
            open.entry(self.node_of_code[code as usize]).or_default().0 += share;
        }
        let mut moved = 0.0;
        while let Some((node, (share, surplus_of_children))) = open.pop_last() {
            let extra = share - self.shares[node as usize];
            // The children's surplus and lack differ by the node's own extra. The smaller of the two moves through the
            // node.
            let through = surplus_of_children.min(surplus_of_children - extra);
            moved += self.heights[node as usize] * through.max(0.0);
            if node != 0 {
                let above = open.entry(self.parents[node as usize]).or_default();
                above.0 += share;
                above.1 += extra.max(0.0);
            }
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uniform(codes: &[u32]) -> Vec<(u32, f64)> {
        codes.iter().map(|&code| (code, 1.0 / codes.len() as f64)).collect()
    }

    #[test]
    fn the_salary_example_of_the_paper() {
        let shares = vec![1.0 / 9.0; 9];
        let ground = Ground::ordered(&shares);
        assert!((ground.distance(&uniform(&[0, 1, 2]), &shares) - 0.375).abs() < 1e-12);
        assert!((ground.distance(&uniform(&[3, 5, 8]), &shares) - 1.0 / 6.0).abs() < 1e-12);
    }

    #[test]
    fn equal_distance_is_half_the_sum_of_differences() {
        let shares = [0.5, 0.25, 0.25];
        assert_eq!(Ground::Equal.distance(&[(1, 1.0)], &shares), 0.75);
        assert_eq!(Ground::Equal.distance(&[(0, 0.5), (1, 0.25), (2, 0.25)], &shares), 0.0);
    }

    #[test]
    fn moving_below_a_common_parent_costs_its_height() {
        let hierarchy = Hierarchy::from_paths("a;x;*\nb;x;*\nc;y;*\nd;y;*\n").unwrap();
        let shares = [0.25; 4];
        let ground = Ground::hierarchical(&hierarchy, &shares);
        // a holds all: 1/4 moves to b at height 1/2, 1/2 moves to the other branch at height 1.
        assert!((ground.distance(&[(0, 1.0)], &shares) - (0.25 * 0.5 + 0.5)).abs() < 1e-12);
        assert!((ground.distance(&[(0, 0.5), (2, 0.5)], &shares) - 0.25).abs() < 1e-12);
    }
}
