//! [`CellPlan`]: which cell each row belongs to.
//!
//! # Guarantee
//! Cells are disjoint boxes of codes that cover everything, also codes that the sample lacks.
//! # Cost
//! looking up a row: the depth of the cuts, about the logarithm of the number of cells

use rayon::prelude::*;

use crate::encode::{Domain, Encoded};

/// A side of a cut with less than this share of the rows is avoided, because small cells make wide classes.
const SMALLEST_SIDE: f64 = 0.125;

/// Cuts of a table into cells. Neighbouring cells have neighbouring numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellPlan {
    cuts: Vec<Cut>,
    n_cells: u32,
}

/// One cut: codes below `bound` are on the first side.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cut {
    column: u32,
    bound: u32,
    sides: [Side; 2],
}

/// What is on a side of a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Cut(u32),
    Cell(u32),
}

/// A row of a sample: a code for each column, and how many rows of the sample are equal to it.
#[derive(Clone, Copy)]
struct SampledRow<'a> {
    codes: &'a [u32],
    weight: u64,
}

impl CellPlan {
    /// Cuts until no cell is expected to hold more than `most_rows` of `n_rows` rows. Each entry of the sample has the codes of
    /// a row, and its weight in the sample. A cell whose rows are all equal stays as large as it is.
    pub fn from_sample(domains: &[Domain], sample: &[(Vec<u32>, u64)], n_rows: u64, most_rows: u64) -> CellPlan {
        let mut plan = CellPlan { cuts: Vec::new(), n_cells: 0 };
        let total: u64 = sample.iter().map(|(_, weight)| weight).sum();
        let rows: Vec<SampledRow<'_>> =
            sample.iter().map(|(codes, weight)| SampledRow { codes, weight: *weight }).collect();
        let most = most_rows.max(1) as f64 * total as f64 / n_rows.max(1) as f64;
        // The second side of a cut waits while the first is cut, so that cells are numbered in order.
        let mut open = vec![(rows, None)];
        while let Some((rows, place)) = open.pop() {
            let weight: u64 = rows.iter().map(|row| row.weight).sum();
            let cut = if weight as f64 > most { best_cut(domains, &rows) } else { None };
            let side = match cut {
                None => {
                    plan.n_cells += 1;
                    Side::Cell(plan.n_cells - 1)
                }
                Some((column, bound)) => {
                    let number = plan.cuts.len() as u32;
                    let sides = [Side::Cell(0), Side::Cell(0)];
                    plan.cuts.push(Cut { column: column as u32, bound, sides });
                    let (first, second) = rows.iter().partition(|row| row.codes[column] < bound);
                    open.push((second, Some((number, 1))));
                    open.push((first, Some((number, 0))));
                    Side::Cut(number)
                }
            };
            if let Some((cut, which)) = place {
                plan.cuts[cut as usize].sides[which as usize] = side;
            }
        }
        plan
    }

    /// The number of rows that the largest cell is expected to hold, by the sample from which the plan was made.
    pub fn largest_cell(&self, sample: &[(Vec<u32>, u64)], n_rows: u64) -> u64 {
        let mut of_cells = vec![0u64; self.n_cells()];
        sample.iter().for_each(|(codes, weight)| of_cells[self.cell(|column| codes[column])] += weight);
        let (total, largest) = (of_cells.iter().sum::<u64>(), of_cells.into_iter().max().unwrap_or(0));
        (largest as f64 / total.max(1) as f64 * n_rows as f64) as u64
    }

    /// The number of cells.
    pub fn n_cells(&self) -> usize {
        self.n_cells as usize
    }

    /// The cell of each row of a table, given column by column as ids of the texts of the whole table.
    pub fn cells_of(&self, encoded: &Encoded<'_>, rows: &[Vec<u32>]) -> Vec<u32> {
        let n_rows = rows.first().map_or(0, Vec::len);
        let cell = |row: usize| self.cell(|column| encoded.code_of(column, rows[encoded.columns[column]][row]));
        (0..n_rows).into_par_iter().with_min_len(1 << 12).map(cell).map(|cell| cell as u32).collect()
    }

    /// The cell of a row, by its codes.
    #[inline]
    pub fn cell(&self, code: impl Fn(usize) -> u32) -> usize {
        let mut side = if self.cuts.is_empty() { Side::Cell(0) } else { Side::Cut(0) };
        loop {
            match side {
                Side::Cell(cell) => return cell as usize,
                Side::Cut(cut) => {
                    let Cut { column, bound, sides } = &self.cuts[cut as usize];
                    side = sides[usize::from(code(*column as usize) >= *bound)];
                }
            }
        }
    }
}

/// The column and the first code of the second side, `None` if all rows are equal. Wide columns are tried first.
fn best_cut(domains: &[Domain], rows: &[SampledRow<'_>]) -> Option<(usize, u32)> {
    let bounds = |column: usize| {
        let codes = rows.iter().map(|row| row.codes[column]);
        codes.fold((u32::MAX, 0), |(lo, hi), code| (lo.min(code), hi.max(code)))
    };
    let mut columns: Vec<(usize, (u32, u32))> = (0..domains.len()).map(|column| (column, bounds(column))).collect();
    columns.retain(|&(_, (lo, hi))| lo < hi);
    let width = |&(column, (lo, hi)): &(usize, (u32, u32))| domains[column].width(lo, hi);
    columns.sort_by(|a, b| width(b).total_cmp(&width(a)).then(a.0.cmp(&b.0)));
    let mut best: Option<(f64, usize, u32)> = None;
    for (column, (lo, hi)) in columns {
        let Some((bound, smaller)) = most_even(&domains[column], rows, column, (lo, hi)) else { continue };
        if smaller >= SMALLEST_SIDE {
            return Some((column, bound));
        }
        if best.is_none_or(|(share, ..)| smaller > share) {
            best = Some((smaller, column, bound));
        }
    }
    best.map(|(_, column, bound)| (column, bound))
}

/// The bound that parts the rows most evenly in a column, and the share of the smaller side. A tree is cut between the children
/// of the lowest node that holds all rows, because a cut elsewhere would leave classes on both sides that show the same node.
fn most_even(domain: &Domain, rows: &[SampledRow<'_>], column: usize, (lo, hi): (u32, u32)) -> Option<(u32, f64)> {
    let mut codes: Vec<(u32, u64)> = rows.iter().map(|row| (row.codes[column], row.weight)).collect();
    codes.sort_unstable();
    let total: u64 = codes.iter().map(|(_, weight)| weight).sum();
    let children: Option<&[u32]> = domain.tree().map(|tree| tree.child_firsts(tree.common_ancestor(lo, hi)));
    let (mut below, mut best) = (0, None::<(u32, u64)>);
    for pair in codes.windows(2) {
        below += pair[0].1;
        let (before, code) = (pair[0].0, pair[1].0);
        // The first bound of a child after `before`; without a tree every code begins a side of its own.
        let bound = match children {
            None => Some(code),
            Some(children) => children.get(children.partition_point(|&first| first <= before)).copied(),
        };
        let Some(bound) = bound.filter(|&bound| before < bound && bound <= code) else { continue };
        let smaller = below.min(total - below);
        if best.is_none_or(|(_, most)| smaller > most) {
            best = Some((bound, smaller));
        }
    }
    best.map(|(bound, smaller)| (bound, smaller as f64 / total as f64))
}

#[cfg(test)]
mod tests {
    use kohort_model::{Column, Role, ValueType};
    use proptest::prelude::*;

    use super::*;

    fn numbers(n: u32) -> Domain {
        let texts: Vec<String> = (0..n).map(|number| number.to_string()).collect();
        let column = Column::from_cells("n", Role::Quasi, texts.iter().map(|text| Some(text.as_str())));
        Domain::of(&column.typed(ValueType::Integer)).unwrap().0
    }

    proptest! {
        #[test]
        fn cells_hold_no_more_of_the_sample_than_asked_unless_all_rows_are_equal(
            rows in prop::collection::vec((0u32..20, 0u32..7), 1..200),
            most in 1u64..50,
        ) {
            let domains = [numbers(20), numbers(7)];
            let sample: Vec<(Vec<u32>, u64)> = rows.iter().map(|&(a, b)| (vec![a, b], 1)).collect();
            let plan = CellPlan::from_sample(&domains, &sample, rows.len() as u64, most);
            let mut of_cells: Vec<Vec<(u32, u32)>> = vec![Vec::new(); plan.n_cells()];
            for &(a, b) in &rows {
                of_cells[plan.cell(|column| [a, b][column])].push((a, b));
            }
            for cell in &of_cells {
                prop_assert!(!cell.is_empty());
                prop_assert!(cell.len() as u64 <= most || cell.iter().all(|row| *row == cell[0]));
            }
        }
    }

    #[test]
    fn the_plan_does_not_depend_on_the_order_of_the_sample() {
        let domains = [numbers(50)];
        let mut sample: Vec<(Vec<u32>, u64)> = (0..50).map(|code| (vec![code], u64::from(code % 3) + 1)).collect();
        let plan = CellPlan::from_sample(&domains, &sample, 1000, 90);
        sample.reverse();
        assert!(plan.n_cells() > 10);
        assert_eq!(plan, CellPlan::from_sample(&domains, &sample, 1000, 90));
    }
}
