//! [`Packing`]: classes that are improved by opening boxes.
//!
//! Opening a box takes rows from the classes in which they lose more. A class that would no longer satisfy the rules
//! gives only what it can spare, or it is dissolved: the box takes its rows as well, and each of the rest joins the
//! cheapest class that shows a box around it. If the box lacks rows, classes that can spare some lend theirs although
//! these then lose more. All of that is tried out, and undone unless the loss is less.
//!
//! # Guarantee
//! the loss never grows, and classes that satisfy the rules go on satisfying them

use super::covering::Covering;
use crate::encode::bounds::{self, Bounds};
use crate::partition::Task;
use crate::requirement::Tally;

/// Gains below this are rounding.
const LEAST_GAIN: f64 = 1e-7;

/// The number of classes in which a row is tried, where the cheapest one does not satisfy the rules with it.
const PLACES_TRIED: usize = 16;

/// No class.
const NONE: u32 = u32::MAX;

#[derive(Clone, Default)]
struct Class {
    rows: Vec<u32>,
    bounds: Bounds,
    weight: u64,
    /// What each row loses.
    cost: f64,
}

/// What becomes of a class when a box takes rows from it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It stays without the rows, or is taken as a whole.
    Gives,
    /// It gives rows up to this weight.
    Spares(u64),
    /// Rows that are not taken find other classes.
    Dissolves,
}

/// Classes, each at a place of its own.
pub(super) struct Packing<'t> {
    task: &'t Task<'t>,
    k: u64,
    classes: Vec<Class>,
    class_of_row: Vec<u32>,
    /// Places without a class.
    free: Vec<u32>,
    covering: Covering<'t>,
    tally: Tally<'t>,
    loss: f64,
    /// The number of the current attempt, and for each class and row the attempt in which it was last met.
    attempt: u32,
    class_met: Vec<u32>,
    row_met: Vec<u32>,
    /// For each class that was met, what the box would take from it.
    taken: Vec<u64>,
    fates: Vec<(u32, Fate)>,
    /// Rows that could be lent, with what they would lose more.
    lenders: Vec<(f64, u32)>,
}

/// Everything that an attempt has changed.
#[derive(Default)]
struct Changes {
    closed: Vec<(u32, Class)>,
    opened: Vec<u32>,
}

impl<'t> Packing<'t> {
    pub(super) fn new(task: &'t Task<'t>, classes: Vec<Vec<u32>>) -> Packing<'t> {
        let k = u64::from(task.rules.k()).max(1);
        // Every class has at least one row, and rows of weight k.
        let n_most = task.rows.len().min((task.rows.n_members() as u64 / k) as usize);
        let n_places = n_most.max(classes.len()) + 1;
        let mut packing = Packing {
            task,
            k,
            classes: Vec::new(),
            class_of_row: vec![NONE; task.rows.len()],
            free: Vec::new(),
            covering: Covering::new(task, n_places),
            tally: Tally::new(task.rules),
            loss: 0.0,
            attempt: 0,
            class_met: vec![0; n_places],
            row_met: vec![0; task.rows.len()],
            taken: vec![0; n_places],
            fates: Vec::new(),
            lenders: Vec::new(),
        };
        for class in classes {
            packing.open(class);
        }
        packing
    }

    pub(super) fn loss(&self) -> f64 {
        self.loss
    }

    pub(super) fn into_classes(self) -> Vec<Vec<u32>> {
        self.classes.into_iter().map(|class| class.rows).filter(|rows| !rows.is_empty()).collect()
    }

    fn open(&mut self, rows: Vec<u32>) -> u32 {
        let bounds = self.task.rows.bounds(&rows);
        let weight = self.task.rows.weight_of(&rows);
        let cost = bounds::width(self.task.domains, &bounds);
        self.open_class(Class { rows, bounds, weight, cost })
    }

    fn open_class(&mut self, class: Class) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.classes.push(Class::default());
            self.classes.len() as u32 - 1
        });
        self.put(place, class);
        place
    }

    /// Adds a row to a class.
    fn join(&mut self, place: u32, row: u32, changes: &mut Changes) {
        let mut class = self.take_out(place, changes);
        bounds::include(&mut class.bounds, self.task.rows.cells(row));
        class.rows.push(row);
        class.weight += self.weight(row);
        class.cost = bounds::width(self.task.domains, &class.bounds);
        changes.opened.push(self.open_class(class));
    }

    fn put(&mut self, place: u32, class: Class) {
        class.rows.iter().for_each(|&row| self.class_of_row[row as usize] = place);
        self.loss += class.cost * class.weight as f64;
        self.covering.add(place, &class.bounds);
        self.classes[place as usize] = class;
    }

    fn close(&mut self, place: u32) -> Class {
        let class = std::mem::take(&mut self.classes[place as usize]);
        self.loss -= class.cost * class.weight as f64;
        self.covering.remove(place);
        self.free.push(place);
        class
    }

    /// The cheapest class that shows a box around a row and is allowed; the first of equals.
    fn cheapest(&self, row: u32, is_allowed: impl Fn(u32) -> bool) -> Option<(f64, u32)> {
        let mut best: Option<(f64, u32)> = None;
        self.covering.each(self.task.rows.cells(row), self.classes.len(), |class| {
            let cost = self.classes[class as usize].cost;
            if best.is_none_or(|(least, _)| cost < least) && is_allowed(class) {
                best = Some((cost, class));
            }
        });
        best
    }

    fn weight(&self, row: u32) -> u64 {
        u64::from(self.task.rows.weight(row))
    }

    /// Puts a row that has no class into the cheapest class around it that satisfies the rules with it, or else into the
    /// class whose loss grows least. If there is no class at all, the row becomes one.
    pub(super) fn place(&mut self, row: u32) {
        let around = self.cheapest(row, |_| true).map(|(_, place)| place);
        let around = match around {
            Some(place) if !self.stands_with(place, row) => self.next_that_stands(row),
            around => around,
        };
        let to = around.or_else(|| self.least_growth(row));
        let mut rows = to.map(|to| self.close(to).rows).unwrap_or_default();
        rows.push(row);
        self.open(rows);
    }

    fn stands_with(&mut self, place: u32, row: u32) -> bool {
        let rows = self.classes[place as usize].rows.iter().copied().chain([row]);
        self.task.rules.weight_suffices() || self.task.stands(&mut self.tally, rows)
    }

    /// Of the cheapest few classes around a row, the first that satisfies the rules with it.
    fn next_that_stands(&mut self, row: u32) -> Option<u32> {
        let mut around = Vec::new();
        let classes = &self.classes;
        let cells = self.task.rows.cells(row);
        self.covering.each(cells, classes.len(), |place| around.push((classes[place as usize].cost, place)));
        around.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        around.into_iter().take(PLACES_TRIED).map(|(_, place)| place).find(|&place| self.stands_with(place, row))
    }

    fn least_growth(&self, row: u32) -> Option<u32> {
        let weight = self.weight(row) as f64;
        let growth = |place: &u32| {
            let class = &self.classes[*place as usize];
            let cells = self.task.rows.cells(row).iter().copied();
            let cost = bounds::width_with(self.task.domains, &class.bounds, cells);
            cost * (class.weight as f64 + weight) - class.cost * class.weight as f64
        };
        let places = (0..self.classes.len() as u32).filter(|&place| !self.classes[place as usize].rows.is_empty());
        places.min_by(|a, b| growth(a).total_cmp(&growth(b)))
    }

    /// Moves every row that its class can spare to the cheapest class around it.
    pub(super) fn shift(&mut self) {
        for row in 0..self.task.rows.len() as u32 {
            let from = self.class_of_row[row as usize];
            let class = &self.classes[from as usize];
            if class.cost <= 0.0 || class.weight < self.k + self.weight(row) {
                continue;
            }
            let Some((cost, to)) = self.cheapest(row, |class| class != from) else { continue };
            if cost >= class.cost - LEAST_GAIN {
                continue;
            }
            let before = self.loss;
            let mut changes = Changes::default();
            self.join(to, row, &mut changes);
            let mut stay = self.take_out(from, &mut changes).rows;
            stay.retain(|&other| other != row);
            changes.opened.push(self.open(stay));
            self.keep_if_less(before, changes);
        }
    }

    /// Opens a box that holds these rows and costs this much, if the loss is less then.
    pub(super) fn try_box(&mut self, rows: &[u32], cost: f64) -> bool {
        self.attempt += 1;
        self.lenders.clear();
        self.fates.clear();
        let mut weight_held = 0;
        for &row in rows {
            self.row_met[row as usize] = self.attempt;
            let place = self.class_of_row[row as usize];
            let (class, weight) = (&self.classes[place as usize], self.weight(row));
            weight_held += weight;
            if class.cost > cost + LEAST_GAIN {
                if self.class_met[place as usize] != self.attempt {
                    self.class_met[place as usize] = self.attempt;
                    self.taken[place as usize] = 0;
                    self.fates.push((place, Fate::Gives));
                }
                self.taken[place as usize] += weight;
            } else if class.weight >= self.k + weight {
                self.lenders.push((cost - class.cost, row));
            }
        }
        if weight_held < self.k || self.fates.is_empty() {
            return false;
        }
        let mut fates = std::mem::take(&mut self.fates);
        let is_promising = self.decide(cost, &mut fates);
        let is_open = is_promising && self.try_out(&fates);
        self.fates = fates;
        is_open
    }

    /// Chooses the fate of each class that was met. Returns whether all of that gains anything, as far as can be told.
    fn decide(&mut self, cost: f64, fates: &mut Vec<(u32, Fate)>) -> bool {
        let (mut gain, mut weight) = (0.0, 0);
        fates.retain_mut(|(place, fate)| {
            let class = &self.classes[*place as usize];
            let (taken, saved) = (self.taken[*place as usize], class.cost - cost);
            if class.weight - taken >= self.k || class.weight == taken {
                gain += taken as f64 * saved;
                weight += taken;
                return true;
            }
            let spare = class.weight - self.k;
            let mut gain_dissolved = taken as f64 * saved;
            for &row in class.rows.iter().filter(|row| self.row_met[**row as usize] != self.attempt) {
                match self.cheapest(row, |class| self.class_met[class as usize] != self.attempt) {
                    Some((elsewhere, _)) => gain_dissolved -= self.weight(row) as f64 * (elsewhere - class.cost),
                    None => gain_dissolved = f64::NEG_INFINITY,
                }
            }
            let gain_spared = spare as f64 * saved;
            if gain_dissolved > gain_spared {
                *fate = Fate::Dissolves;
                gain += gain_dissolved;
                weight += taken;
                return true;
            }
            *fate = Fate::Spares(spare);
            gain += gain_spared;
            weight += spare;
            spare > 0
        });
        if weight < self.k {
            self.lenders.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            for &(growth, row) in &self.lenders {
                if weight >= self.k || gain <= LEAST_GAIN {
                    break;
                }
                gain -= growth * self.weight(row) as f64;
                weight += self.weight(row);
            }
        }
        weight >= self.k && gain > LEAST_GAIN
    }

    fn try_out(&mut self, fates: &[(u32, Fate)]) -> bool {
        let before = self.loss;
        let mut changes = Changes::default();
        let (mut joined, mut homeless, mut remainders) = (Vec::new(), Vec::new(), Vec::new());
        let mut weight = 0;
        for &(place, fate) in fates {
            let rows = self.take_out(place, &mut changes).rows;
            let (mut leaving, mut stay): (Vec<u32>, Vec<u32>) =
                rows.iter().partition(|row| self.row_met[**row as usize] == self.attempt);
            if let Fate::Spares(mut spare) = fate {
                leaving.sort_unstable_by_key(|&row| (self.weight(row), row));
                leaving.retain(|&row| {
                    let leaves = self.weight(row) <= spare;
                    if leaves {
                        spare -= self.weight(row);
                    } else {
                        stay.push(row);
                    }
                    leaves
                });
            }
            weight += self.task.rows.weight_of(&leaving);
            joined.append(&mut leaving);
            if fate == Fate::Dissolves || !self.task.stands(&mut self.tally, stay.iter().copied()) {
                homeless.append(&mut stay);
            } else {
                remainders.push(stay);
            }
        }
        self.borrow(&mut joined, weight, &mut remainders, &mut changes);
        if !self.task.stands(&mut self.tally, joined.iter().copied()) {
            self.undo(before, changes);
            return false;
        }
        for rows in std::iter::once(joined).chain(remainders) {
            changes.opened.push(self.open(rows));
        }
        for row in homeless {
            let Some((_, place)) = self.cheapest(row, |_| true) else {
                self.undo(before, changes);
                return false;
            };
            self.join(place, row, &mut changes);
        }
        self.keep_if_less(before, changes)
    }

    /// Adds lent rows until the joined ones are a class, or no more can be lent.
    fn borrow(
        &mut self,
        joined: &mut Vec<u32>,
        mut weight: u64,
        remainders: &mut Vec<Vec<u32>>,
        changes: &mut Changes,
    ) {
        let rows = &self.task.rows;
        let counts_values = !self.task.rules.weight_suffices();
        if weight >= self.k && !counts_values {
            return;
        }
        if counts_values {
            self.tally.recount(joined.iter().flat_map(|&row| rows.members(row)).copied());
        }
        let mut lent: Vec<(u32, u32)> = Vec::new();
        let lenders = std::mem::take(&mut self.lenders);
        let mut shortfall = if counts_values { self.tally.shortfall() } else { 0.0 };
        for &(_, row) in &lenders {
            if weight >= self.k && shortfall <= 0.0 {
                break;
            }
            let place = self.class_of_row[row as usize];
            let class = &self.classes[place as usize];
            let already: u64 = lent.iter().filter(|(of, _)| *of == place).map(|(_, row)| self.weight(*row)).sum();
            // A class that was closed in this attempt has no weight here, and lends nothing.
            if class.weight < self.k + already + self.weight(row) {
                continue;
            }
            if counts_values {
                rows.members(row).iter().for_each(|&member| self.tally.add(member));
                let with = self.tally.shortfall();
                if weight >= self.k && with >= shortfall {
                    rows.members(row).iter().for_each(|&member| self.tally.remove(member));
                    continue;
                }
                shortfall = with;
            }
            weight += self.weight(row);
            lent.push((place, row));
        }
        self.lenders = lenders;
        lent.sort_unstable();
        for lent in lent.chunk_by(|a, b| a.0 == b.0) {
            let mut stay = self.take_out(lent[0].0, changes).rows;
            stay.retain(|row| lent.iter().all(|(_, of)| of != row));
            joined.extend(lent.iter().map(|(_, row)| row));
            remainders.push(stay);
        }
    }

    /// Closes a class. It is remembered unless it was opened in the same attempt.
    fn take_out(&mut self, place: u32, changes: &mut Changes) -> Class {
        let class = self.close(place);
        match changes.opened.iter().position(|&opened| opened == place) {
            Some(position) => {
                changes.opened.swap_remove(position);
            }
            None => changes.closed.push((place, class.clone())),
        }
        class
    }

    fn keep_if_less(&mut self, before: f64, changes: Changes) -> bool {
        let is_kept = self.loss < before - LEAST_GAIN
            && changes
                .opened
                .iter()
                .all(|&place| self.task.stands(&mut self.tally, self.classes[place as usize].rows.iter().copied()));
        if !is_kept {
            self.undo(before, changes);
        }
        is_kept
    }

    fn undo(&mut self, before: f64, changes: Changes) {
        for place in changes.opened {
            self.close(place);
        }
        // Places may have been used by several classes in turn; each of the closed ones finds its own free again.
        for (place, class) in changes.closed {
            if let Some(position) = self.free.iter().rposition(|&free| free == place) {
                self.free.swap_remove(position);
            }
            self.put(place, class);
        }
        self.loss = before;
    }
}
