//! [`Forest`]: released rows as trees, grouped by what they look like.
//!
//! # Guarantee
//! Two rows of a table have the same look exactly if their own cells are equal and, in each child table, the looks of
//! their children are equal as multisets. That is the canonical form of unordered trees. Two rows are in one orbit
//! exactly if they have the same look and their parents are in one orbit. The orbits of persons are their classes.
//! # Cost
//! O(n log n) over all rows, bottom up and then top down. There is no recursion, so depth costs no stack.

use std::collections::HashMap;

use rayon::prelude::*;

use super::shape::Shape;
use crate::count::cells::CellIds;
use crate::count::grouping::Classes;

/// The rows of many tables with their parents and references.
pub(crate) struct Forest {
    /// The number of rows of each table.
    pub(crate) n_rows: Vec<usize>,
    /// For each table and row, the row of the parent table, which always exists. Empty for person tables.
    pub(crate) parents: Vec<Vec<u32>>,
    /// For each table, reference and row, the row that is referenced; [`kohort_model::NULL`] if none is.
    pub(crate) targets: Vec<Vec<Vec<u32>>>,
}

impl Forest {
    /// The rows of each table, grouped by look. `cells` are those of each table that make a look.
    pub(crate) fn looks(&self, shape: &Shape, cells: &[Vec<&CellIds<'_>>]) -> Vec<Classes> {
        let mut looks: Vec<Option<Classes>> = (0..shape.n_tables()).map(|_| None).collect();
        for &table in shape.top_down.iter().rev() {
            let below: Vec<CellIds<'_>> = shape
                .children(table)
                .map(|child| {
                    let looks = looks[child].as_ref().expect("children come before their parents, bottom up");
                    let (lists, n_lists) = lists(&self.parents[child], &looks.class_of_rows(), self.n_rows[table]);
                    CellIds::by_id(lists, n_lists)
                })
                .collect();
            let columns: Vec<&CellIds<'_>> = cells[table].iter().copied().chain(&below).collect();
            looks[table] = Some(Classes::group(&columns, self.n_rows[table]));
        }
        looks.into_iter().map(|looks| looks.expect("every table is reached")).collect()
    }

    /// The rows of each table, grouped by orbit.
    pub(crate) fn orbits(&self, shape: &Shape, looks: Vec<Classes>) -> Vec<Classes> {
        let mut orbits: Vec<Option<Classes>> = looks.into_iter().map(Some).collect();
        for &table in &shape.top_down {
            let Some(link) = shape.link(table) else { continue };
            let above = orbits[link.parent].as_ref().expect("every table has looks");
            let of_parents = above.class_of_rows();
            let positions: Vec<u32> = self.parents[table].iter().map(|&parent| of_parents[parent as usize]).collect();
            let position = CellIds::by_id(positions, above.len());
            let own = orbits[table].as_ref().expect("every table has looks");
            let look = CellIds::by_id(own.class_of_rows(), own.len());
            orbits[table] = Some(Classes::group(&[&position, &look], self.n_rows[table]));
        }
        orbits.into_iter().map(|orbits| orbits.expect("every table has looks")).collect()
    }

    /// For each table and row, the row of the person table to which it belongs.
    pub(crate) fn persons(&self, shape: &Shape) -> Vec<Vec<u32>> {
        let mut persons: Vec<Vec<u32>> = vec![Vec::new(); shape.n_tables()];
        for &table in &shape.top_down {
            persons[table] = match shape.link(table) {
                None => (0..self.n_rows[table] as u32).collect(),
                Some(link) => self.parents[table].iter().map(|&parent| persons[link.parent][parent as usize]).collect(),
            };
        }
        persons
    }
}

/// A number for each row of the parent, the same if its children have the same multiset of looks; and how many numbers
/// there are.
fn lists(parents: &[u32], looks: &[u32], n_parents: usize) -> (Vec<u32>, usize) {
    let mut children: Vec<(u32, u32)> = parents.iter().copied().zip(looks.iter().copied()).collect();
    children.par_sort_unstable();
    let looks: Vec<u32> = children.iter().map(|&(_, look)| look).collect();
    let mut known: HashMap<&[u32], u32> = HashMap::new();
    let mut start = 0;
    let numbers = (0..n_parents as u32).map(|parent| {
        let n_children = children[start..].iter().take_while(|&&(of, _)| of == parent).count();
        let list = &looks[start..start + n_children];
        start += n_children;
        let next = known.len() as u32;
        *known.entry(list).or_insert(next)
    });
    let numbers = numbers.collect();
    (numbers, known.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_equal_as_multisets() {
        let parents = [2, 0, 0, 2, 3, 4, 4];
        let looks = [7, 5, 7, 5, 5, 5, 5];
        let (numbers, n) = lists(&parents, &looks, 6);
        assert_eq!(numbers, [0, 1, 0, 2, 3, 1]);
        assert_eq!(n, 4);
    }
}
