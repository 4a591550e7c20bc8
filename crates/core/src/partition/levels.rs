//! [`Levels`]: how a domain is generalized one level at a time.
//!
//! Level 0 shows every code as it is, the last level shows the whole domain as one cell. Between them, the leaves of a
//! tree become their ancestors; numbers and dates, which have no tree, fall into runs of 2, 4, 8, ... neighbouring
//! codes, counted from the smallest. NULL stays NULL until the last level.
//!
//! # Guarantee
//! the cells of a level are runs of codes that cover the domain, every cell is made of whole cells of the level below,
//! and every level has fewer cells than the one below
//! # Deviations
//! Ragged trees are padded at the bottom: at one level all nodes are equally far from the root, and a leaf that is
//! nearer to it stays itself. Levels of a hierarchy that merge nothing (an inner node with one child, all over the
//! tree) are left out, because their codes are those of the level below.
//! # Cost
//! a number per cell of each level but the first; looking up a cell is a binary search

use crate::encode::{Domain, Tree};

/// The levels of one domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levels {
    n_codes: u32,
    /// For each level but level 0, the first code of each cell, ascending.
    firsts: Vec<Vec<u32>>,
}

impl Levels {
    /// The levels of a domain.
    pub fn of(domain: &Domain) -> Levels {
        let n_codes = domain.n_codes();
        let above: Vec<Vec<u32>> = match domain.tree() {
            Some(tree) => firsts_of_tree(tree),
            None => firsts_of_order(n_codes - u32::from(domain.null().is_some()), domain.null()),
        };
        let mut levels = Levels { n_codes, firsts: Vec::new() };
        for firsts in above {
            if firsts.len() < levels.n_cells(levels.top()) {
                levels.firsts.push(firsts);
            }
        }
        levels
    }

    /// How many levels there are: at least one.
    pub fn n_levels(&self) -> usize {
        self.firsts.len() + 1
    }

    /// The last level, where the whole domain is one cell.
    pub fn top(&self) -> usize {
        self.firsts.len()
    }

    /// How many cells a level has.
    pub fn n_cells(&self, level: usize) -> usize {
        if level == 0 { self.n_codes as usize } else { self.firsts[level - 1].len() }
    }

    /// The cell of a code at a level: its first and last code.
    pub fn cell(&self, level: usize, code: u32) -> (u32, u32) {
        if level == 0 {
            return (code, code);
        }
        let firsts = &self.firsts[level - 1];
        let next = firsts.partition_point(|&first| first <= code);
        (firsts[next - 1], firsts.get(next).map_or(self.n_codes, |&first| first) - 1)
    }
}

/// For each level above 0 of an ordered domain, the first code of every cell.
fn firsts_of_order(n_values: u32, null: Option<u32>) -> Vec<Vec<u32>> {
    let mut levels = Vec::new();
    let mut run = 1usize;
    while run < n_values as usize {
        run *= 2;
        levels.push((0..n_values).step_by(run).chain(null).collect());
    }
    levels.push(vec![0]);
    levels
}

/// For each level above 0 of a tree, the first code of every cell. Levels that merge nothing are not left out here.
fn firsts_of_tree(tree: &Tree) -> Vec<Vec<u32>> {
    let height = tree.firsts_and_depths().map(|(_, depth)| depth).max().unwrap_or(0);
    // NULL, which has no node, is above all depths but the root's.
    let leaf_depth = |code: u32| tree.leaf_depth(code).unwrap_or(0);
    (0..height)
        .rev()
        .map(|depth| {
            // The nodes at this depth, and the leaves above it.
            let nodes = tree.firsts_and_depths().filter(|&(_, of_node)| of_node == depth).map(|(first, _)| first);
            let shallow = (0..tree.n_codes()).filter(|&code| leaf_depth(code) < depth);
            let mut firsts: Vec<u32> = nodes.chain(shallow).collect();
            firsts.sort_unstable();
            firsts
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kohort_model::{Column, Hierarchy, Role, ValueType};
    use proptest::prelude::*;

    use super::*;

    fn numbers(n: u32, nulls: usize) -> Levels {
        let texts: Vec<String> = (0..n).map(|number| number.to_string()).collect();
        let cells = texts.iter().map(|text| Some(text.as_str())).chain(std::iter::repeat_n(None, nulls));
        let column = Column::from_cells("n", Role::Quasi, cells).typed(ValueType::Integer);
        Levels::of(&Domain::of(&column).unwrap().0)
    }

    fn tree(paths: &str, nulls: usize) -> Levels {
        let hierarchy = Hierarchy::from_paths(paths).unwrap();
        let leaves = hierarchy.leaves();
        let cells = leaves.iter().map(|&leaf| Some(hierarchy.label(leaf))).chain(std::iter::repeat_n(None, nulls));
        let mut column = Column::from_cells("c", Role::Quasi, cells);
        column.hierarchy = Some(Arc::new(hierarchy.clone()));
        Levels::of(&Domain::of(&column).unwrap().0)
    }

    fn cells(levels: &Levels, level: usize) -> Vec<(u32, u32)> {
        let mut cells: Vec<_> = (0..levels.n_codes).map(|code| levels.cell(level, code)).collect();
        cells.dedup();
        cells
    }

    #[test]
    fn numbers_fall_into_runs_that_double() {
        let levels = numbers(5, 0);
        assert_eq!(levels.n_levels(), 4);
        assert_eq!(cells(&levels, 0), [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)]);
        assert_eq!(cells(&levels, 1), [(0, 1), (2, 3), (4, 4)]);
        assert_eq!(cells(&levels, 2), [(0, 3), (4, 4)]);
        assert_eq!(cells(&levels, 3), [(0, 4)]);
    }

    #[test]
    fn null_stays_null_until_the_last_level() {
        let levels = numbers(3, 1);
        assert_eq!(cells(&levels, 2), [(0, 2), (3, 3)]);
        assert_eq!(cells(&levels, levels.top()), [(0, 3)]);
        let levels = tree("a;x;*\nb;x;*\nc;y;*\n", 1);
        assert_eq!(cells(&levels, 1), [(0, 1), (2, 2), (3, 3)]);
        assert_eq!(cells(&levels, levels.top()), [(0, 3)]);
    }

    #[test]
    fn a_shallow_leaf_stays_itself_until_its_depth_counts() {
        let levels = tree("a;x;p;*\nb;x;p;*\nc;p;*\nd;q;*\ne;q;*\nf;*\n", 0);
        assert_eq!(levels.n_levels(), 4);
        assert_eq!(cells(&levels, 1), [(0, 1), (2, 2), (3, 3), (4, 4), (5, 5)]);
        assert_eq!(cells(&levels, 2), [(0, 2), (3, 4), (5, 5)]);
        assert_eq!(cells(&levels, 3), [(0, 5)]);
    }

    #[test]
    fn a_level_that_merges_nothing_is_left_out() {
        let levels = tree("88512;885**;88***;*****\n88540;885**;88***;*****\n89321;893**;89***;*****\n", 0);
        assert_eq!(levels.n_levels(), 3);
        assert_eq!(cells(&levels, 1), [(0, 1), (2, 2)]);
    }

    #[test]
    fn one_value_or_none_has_one_level() {
        assert_eq!(numbers(1, 0).n_levels(), 1);
        assert_eq!(numbers(0, 1).n_levels(), 1);
        assert_eq!(numbers(0, 0).n_levels(), 1);
        assert_eq!(tree("a;x;*\n", 0).n_levels(), 1);
        assert_eq!(tree("a;x;*\n", 1).n_levels(), 2);
    }

    fn random_paths(shape: &[u8]) -> String {
        let path = |(leaf, byte): (usize, &u8)| match byte % 4 {
            0 => format!("v{leaf};a{};*\n", byte / 4 % 5),
            1 => format!("v{leaf};a{}b{};a{};*\n", byte / 4 % 5, byte / 20 % 3, byte / 4 % 5),
            2 => format!("v{leaf};u{leaf};a{}b{};a{};*\n", byte / 4 % 5, byte / 20 % 3, byte / 4 % 5),
            _ => format!("v{leaf};*\n"),
        };
        shape.iter().enumerate().map(path).collect()
    }

    fn nest(levels: &Levels) -> Result<(), TestCaseError> {
        for level in 0..levels.n_levels() {
            for code in 0..levels.n_codes {
                let (lo, hi) = levels.cell(level, code);
                prop_assert!(lo <= code && code <= hi && hi < levels.n_codes);
                if level > 0 {
                    let below = levels.cell(level - 1, code);
                    prop_assert!(lo <= below.0 && below.1 <= hi);
                    prop_assert!(levels.n_cells(level) < levels.n_cells(level - 1));
                }
            }
            prop_assert_eq!(cells(levels, level).len(), levels.n_cells(level));
        }
        prop_assert_eq!(levels.cell(levels.top(), 0), (0, levels.n_codes - 1));
        Ok(())
    }

    proptest! {
        #[test]
        fn levels_nest_and_end_with_everything(shape in prop::collection::vec(any::<u8>(), 1..60), nulls in 0usize..2, n in 1u32..100) {
            nest(&numbers(n, nulls))?;
            nest(&tree(&random_paths(&shape), nulls))?;
        }

        #[test]
        fn every_cell_of_a_tree_is_a_node(shape in prop::collection::vec(any::<u8>(), 1..60), nulls in 0usize..2) {
            let paths = random_paths(&shape);
            let levels = tree(&paths, nulls);
            let hierarchy = Hierarchy::from_paths(&paths).unwrap();
            let tree = Tree::new(&hierarchy, if nulls > 0 { crate::encode::WithNull::Yes } else { crate::encode::WithNull::No });
            for level in 0..levels.n_levels() {
                for cell in cells(&levels, level) {
                    prop_assert_eq!(tree.hull(cell.0, cell.1), cell);
                }
            }
            // The oracle walks up the paths of the hierarchy: at each distance from the root one level, unless equal.
            let mut expected: Vec<Vec<u32>> = (0..=hierarchy.height())
                .rev()
                .map(|depth| {
                    let node = |code: u32| match tree.leaf_node(code) {
                        None if depth == 0 => 0,
                        None => u32::MAX,
                        Some(leaf) => hierarchy.path(leaf).find(|&node| hierarchy.depth(node) <= depth).unwrap(),
                    };
                    (0..levels.n_codes).map(|code| (0..=code).find(|&first| node(first) == node(code)).unwrap()).collect()
                })
                .collect();
            expected.dedup();
            let found: Vec<Vec<u32>> = (0..levels.n_levels())
                .map(|level| (0..levels.n_codes).map(|code| levels.cell(level, code).0).collect())
                .collect();
            prop_assert_eq!(found, expected);
        }
    }
}
