//! [`Picker`]: the rows of a box that make the best class of it.

use crate::partition::Task;
use crate::requirement::Tally;

/// Picks rows, in memory that one thread reuses from box to box.
pub(super) struct Picker<'t> {
    task: &'t Task<'t>,
    k: u64,
    tally: Tally<'t>,
    /// Rows that pay less than the box costs, with their prices.
    rest: Vec<(f64, u32)>,
    /// What was picked last.
    pub(super) picked: Vec<u32>,
    pub(super) weight: u64,
}

impl<'t> Picker<'t> {
    pub(super) fn new(task: &'t Task<'t>) -> Picker<'t> {
        let (rest, picked) = (Vec::new(), Vec::new());
        Picker { task, k: u64::from(task.rules.k()), tally: Tally::new(task.rules), rest, picked, weight: 0 }
    }

    /// Picks the rows that pay most above the cost of the box, and returns how much; `None` if they can't be a class, or
    /// pay nothing above it.
    pub(super) fn pick_worthy(&mut self, rows: &[u32], prices: &[f64], cost: f64) -> Option<f64> {
        // Most boxes are refused here, before any row is picked.
        let surplus = |&row: &u32| (prices[row as usize] - cost).max(0.0) * f64::from(self.task.rows.weight(row));
        if rows.iter().map(surplus).sum::<f64>() <= 0.0 {
            return None;
        }
        self.pick(rows.iter().copied(), prices, cost, 0.0).filter(|&value| value > 0.0)
    }

    /// Picks all rows that pay more than the cost of the box, and as many others as a class needs, those of highest price
    /// first. Returns what they pay above the cost, which may be negative; `None` if there is no class, or if the others
    /// bring that below `least`.
    pub(super) fn pick(
        &mut self,
        rows: impl Iterator<Item = u32>,
        prices: &[f64],
        cost: f64,
        least: f64,
    ) -> Option<f64> {
        self.rest.clear();
        self.picked.clear();
        self.weight = 0;
        let mut value = 0.0;
        for row in rows {
            let surplus = prices[row as usize] - cost;
            if surplus > 0.0 {
                let weight = self.task.rows.weight(row);
                value += surplus * f64::from(weight);
                self.weight += u64::from(weight);
                self.picked.push(row);
            } else {
                self.rest.push((surplus, row));
            }
        }
        if self.weight >= self.k && self.task.rules.weight_suffices() {
            return Some(value);
        }
        // Each row weighs at least 1, so no more rows than that can be needed.
        let n_needed = self.k.saturating_sub(self.weight) as usize;
        let by_price = |a: &(f64, u32), b: &(f64, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        if self.task.rules.weight_suffices() && n_needed < self.rest.len() {
            self.rest.select_nth_unstable_by(n_needed, by_price);
            self.rest.truncate(n_needed);
        }
        self.rest.sort_unstable_by(by_price);
        let mut n_taken = 0;
        for &(surplus, row) in &self.rest {
            if self.weight >= self.k {
                break;
            }
            let weight = self.task.rows.weight(row);
            value += surplus * f64::from(weight);
            if value <= least {
                return None;
            }
            self.weight += u64::from(weight);
            self.picked.push(row);
            n_taken += 1;
        }
        if self.weight < self.k {
            return None;
        }
        if self.task.rules.weight_suffices() { Some(value) } else { self.make_stand(n_taken, value, least) }
    }

    /// Adds rows of the rest that bring the picked ones nearer to what is asked of a class, until they are one.
    fn make_stand(&mut self, n_taken: usize, mut value: f64, least: f64) -> Option<f64> {
        let Picker { task, tally, rest, picked, weight, .. } = self;
        let rows = task.rows;
        tally.recount(picked.iter().flat_map(|&row| rows.members(row)).copied());
        let mut shortfall = tally.shortfall();
        for &(surplus, row) in &rest[n_taken..] {
            if shortfall <= 0.0 {
                break;
            }
            rows.members(row).iter().for_each(|&member| tally.add(member));
            let with = tally.shortfall();
            if with < shortfall {
                shortfall = with;
                value += surplus * f64::from(rows.weight(row));
                if value <= least {
                    return None;
                }
                *weight += u64::from(rows.weight(row));
                picked.push(row);
            } else {
                rows.members(row).iter().for_each(|&member| tally.remove(member));
            }
        }
        (shortfall <= 0.0 && tally.stands()).then_some(value)
    }
}
