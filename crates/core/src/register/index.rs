//! [`RowTree`]: folded rows found by where they lie; those that are in no class yet are free.
//!
//! A balanced k-d tree: every node halves its rows along its widest column and knows the box of all below and how many
//! of them are free. Rows are taken and given back, never moved.
//!
//! # Cost
//! building: O(n log n), in parallel; two words per row and a box per [`LEAF`] rows. A range query visits the nodes
//! that its box cuts

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use rayon::prelude::*;

use super::crowd::{Crowd, Draft};
use crate::encode::bounds::{self, Bounds};
use crate::encode::{Domain, Rows};
use crate::ranks::Total;

/// Rows that are looked at one by one.
const LEAF: usize = 32;

/// Folded rows by where they lie.
pub(super) struct RowTree<'a> {
    rows: &'a Rows,
    domains: &'a [Domain],
    /// Folded rows in the order of the tree.
    order: Vec<u32>,
    /// For each folded row, its place in the order, one past the end if it has no register persons.
    places: Vec<u32>,
    is_free: Vec<bool>,
    depth: u32,
    /// Per node: the root is 1, children of `i` are `2 i` and `2 i + 1`.
    boxes: Vec<(u32, u32)>,
    n_free: Vec<u32>,
}

impl<'a> RowTree<'a> {
    /// All register rows, none taken.
    pub(super) fn new(crowd: &'a Crowd<'a>) -> RowTree<'a> {
        let of_register = (0..crowd.rows.len() as u32).filter(|&row| crowd.n_register(row) > 0);
        RowTree::over(&crowd.rows, crowd.domains(), of_register.collect())
    }

    /// These folded rows, none taken.
    pub(super) fn over(rows: &'a Rows, domains: &'a [Domain], mut order: Vec<u32>) -> RowTree<'a> {
        let mut depth = 0;
        while order.len() >> depth > LEAF {
            depth += 1;
        }
        let n_columns = rows.n_columns();
        let mut parts: Vec<&mut [u32]> = vec![&mut order];
        let mut boxes = vec![bounds::EMPTY; n_columns];
        let mut n_free = vec![0];
        for level in 0..=depth {
            let found: Vec<Bounds> = parts.par_iter().map(|part| rows.bounds(part)).collect();
            n_free.extend(parts.iter().map(|part| part.len() as u32));
            if level < depth {
                parts = parts
                    .into_par_iter()
                    .zip(&found)
                    .flat_map_iter(|(part, bounds)| halve(rows, domains, part, bounds))
                    .collect();
            }
            boxes.extend(found.into_iter().flatten());
        }
        let mut places = vec![order.len() as u32; rows.len()];
        for (place, &row) in order.iter().enumerate() {
            places[row as usize] = place as u32;
        }
        let is_free = vec![true; order.len()];
        RowTree { rows, domains, order, places, is_free, depth, boxes, n_free }
    }

    /// All register rows but those of classes.
    pub(super) fn beside(crowd: &'a Crowd<'a>, drafts: &[Draft]) -> RowTree<'a> {
        let mut free = RowTree::new(crowd);
        drafts.iter().flat_map(|draft| &draft.register).for_each(|&row| free.take(row));
        free
    }

    /// The free rows that lie in a box, ascending.
    pub(super) fn within(&self, shown: &[(u32, u32)]) -> Vec<u32> {
        let mut found = Vec::new();
        let mut open = vec![(1, 0..self.order.len())];
        while let Some((node, places)) = open.pop() {
            let meets = self.of_node(node).iter().zip(shown).all(|(a, b)| a.0 <= b.1 && b.0 <= a.1);
            if self.n_free[node] == 0 || !meets {
                continue;
            }
            if self.is_leaf(node) {
                let free = places.filter(|&place| self.is_free[place]).map(|place| self.order[place]);
                found.extend(free.filter(|&row| bounds::holds(shown, self.rows.cells(row))));
            } else {
                let middle = places.start + places.len() / 2;
                open.push((2 * node, places.start..middle));
                open.push((2 * node + 1, middle..places.end));
            }
        }
        found.sort_unstable();
        found
    }

    /// The free row that makes a box grow least; the first of equals.
    pub(super) fn nearest(&self, bounds: &[(u32, u32)]) -> Option<u32> {
        let mut open = BinaryHeap::new();
        let wait = |open: &mut BinaryHeap<Reverse<(Total, Found)>>, node: usize, places: Range<usize>| {
            if self.n_free[node] > 0 {
                // No row below costs less than one at the corner next to the box would.
                let corner = bounds
                    .iter()
                    .zip(self.of_node(node))
                    .map(|(&(lo, hi), &(first, last))| if last < lo { last } else { first.max(hi.min(last)) });
                let cost = bounds::width_with(self.domains, bounds, corner);
                open.push(Reverse((Total(cost), Found::Node(node, places.start, places.end))));
            }
        };
        wait(&mut open, 1, 0..self.order.len());
        while let Some(Reverse((_, found))) = open.pop() {
            match found {
                Found::Row(row) => return Some(row),
                Found::Node(node, start, end) if self.is_leaf(node) => {
                    for row in (start..end).filter(|&place| self.is_free[place]).map(|place| self.order[place]) {
                        let cost = bounds::width_with(self.domains, bounds, self.rows.cells(row).iter().copied());
                        open.push(Reverse((Total(cost), Found::Row(row))));
                    }
                }
                Found::Node(node, start, end) => {
                    let middle = start + (end - start) / 2;
                    wait(&mut open, 2 * node, start..middle);
                    wait(&mut open, 2 * node + 1, middle..end);
                }
            }
        }
        None
    }

    /// Whether a row is free.
    pub(super) fn has(&self, row: u32) -> bool {
        self.is_free[self.places[row as usize] as usize]
    }

    pub(super) fn take(&mut self, row: u32) {
        self.set(row, false);
    }

    /// Gives a row back that was taken.
    pub(super) fn give_back(&mut self, row: u32) {
        self.set(row, true);
    }

    fn set(&mut self, row: u32, free: bool) {
        let place = self.places[row as usize] as usize;
        if self.is_free[place] == free {
            return;
        }
        self.is_free[place] = free;
        let (mut node, mut places) = (1, 0..self.order.len());
        loop {
            self.n_free[node] = if free { self.n_free[node] + 1 } else { self.n_free[node] - 1 };
            if self.is_leaf(node) {
                return;
            }
            let middle = places.start + places.len() / 2;
            (node, places) =
                if place < middle { (2 * node, places.start..middle) } else { (2 * node + 1, middle..places.end) };
        }
    }

    fn of_node(&self, node: usize) -> &[(u32, u32)] {
        let n_columns = self.rows.n_columns();
        &self.boxes[node * n_columns..][..n_columns]
    }

    fn is_leaf(&self, node: usize) -> bool {
        node >> self.depth > 0
    }
}

/// Halves rows along the column in which they are widest.
fn halve<'p>(rows: &Rows, domains: &[Domain], part: &'p mut [u32], bounds: &[(u32, u32)]) -> [&'p mut [u32]; 2] {
    let widths = bounds.iter().zip(domains).map(|(&(lo, hi), domain)| domain.width(lo, hi));
    let widest = widths.enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(column, _)| column);
    let middle = part.len() / 2;
    if middle > 0 {
        part.select_nth_unstable_by_key(middle, |&row| (rows.cells(row)[widest], row));
    }
    let (first, second) = part.split_at_mut(middle);
    [first, second]
}

/// A row, or a node with its places. Rows before nodes, so that a search ends as soon as it may.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    Row(u32),
    Node(usize, usize, usize),
}
