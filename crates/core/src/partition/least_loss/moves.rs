//! Moving from the bottom: every class offers rows it would rather send away, and offers that pay are granted.
//!
//! All classes make their offers in parallel, before any row moves. Then offers are granted one after the other, the
//! most promising first, each only if it still pays and every class it touches still satisfies the rules. So the result
//! does not depend on threads. A class that gave away more rows than it could spare gets others from the classes that
//! took them.

use rayon::prelude::*;

use super::index::ClassTree;
use super::offers::{Answer, LEAST_GAIN, Offer, Offers};
use super::split;
use crate::partition::Task;
use crate::partition::outline::Outline;
use crate::requirement::Tally;

/// Classes that can be asked and changed.
pub(super) struct State<'t> {
    pub(super) task: &'t Task<'t>,
    pub(super) classes: Vec<Vec<u32>>,
    pub(super) outlines: Vec<Outline>,
    index: ClassTree<'t>,
    visits: usize,
    /// For each row, the class in which it cost least when it was last asked.
    exits: Vec<u32>,
    /// For each class, whether it has changed since it was last asked.
    changed: Vec<bool>,
    tally: Tally<'t>,
}

/// Classes as they were before an offer was tried.
type Touched = Vec<(usize, Outline, Vec<u32>)>;

impl<'t> State<'t> {
    pub(super) fn new(task: &'t Task<'t>, classes: Vec<Vec<u32>>, visits: usize) -> Self {
        let outlines: Vec<Outline> = classes.par_iter().map(|rows| Outline::of(task, rows)).collect();
        let index = ClassTree::new(task, &outlines, visits);
        let (exits, changed) = (vec![u32::MAX; task.rows.len()], vec![true; classes.len()]);
        State { task, classes, outlines, index, visits, exits, changed, tally: Tally::new(task.rules) }
    }

    /// The classes, without those that were dissolved.
    pub(super) fn into_classes(self) -> Vec<Vec<u32>> {
        self.classes.into_iter().filter(|rows| !rows.is_empty()).collect()
    }

    /// Asks every class that has changed since it was last asked. Returns how much loss was gained.
    pub(super) fn improve(&mut self) -> f64 {
        self.index = ClassTree::new(self.task, &self.outlines, self.visits);
        let asked: Vec<usize> = (0..self.classes.len()).filter(|&class| self.changed[class]).collect();
        self.changed.fill(false);
        let of_class = |offers: &mut Offers, &class: &usize| offers.of_class(self, class);
        let answers: Vec<Answer> = asked.par_iter().map_init(Offers::default, of_class).collect();
        let mut offers = Vec::new();
        for (class, answer) in asked.into_iter().zip(answers) {
            for (&row, exit) in self.classes[class].iter().zip(answer.exits) {
                self.exits[row as usize] = exit;
            }
            offers.extend(answer.offers);
        }
        offers.sort_by(|a, b| b.gain.total_cmp(&a.gain).then(a.rows[0].cmp(&b.rows[0])));
        offers.iter().map(|offer| self.grant(offer)).sum()
    }

    /// Cuts classes that have grown to two.
    pub(super) fn cut(&mut self, foresight: u64) {
        let least = 2 * u64::from(self.task.rules.k());
        let mut grown = Vec::new();
        for (rows, outline) in self.classes.iter_mut().zip(&mut self.outlines) {
            if outline.weight >= least && outline.perimeter > 0.0 {
                grown.push(std::mem::take(rows));
                *outline = Outline::of(self.task, &[]);
            }
        }
        let cut = split::split(self.task, grown, foresight);
        self.outlines.extend(cut.iter().map(|rows| Outline::of(self.task, rows)));
        self.classes.extend(cut);
        self.changed.resize(self.classes.len(), true);
    }

    /// The class other than `own` in which a row costs least, by less than `limit`.
    pub(super) fn cheapest(&self, row: u32, own: usize, limit: f64) -> Option<(f64, usize)> {
        let guess = self.exits[row as usize] as usize;
        self.index.cheapest(&self.outlines, row, own, guess, limit)
    }

    /// Grants an offer if it still pays and all classes still satisfy the rules. Returns the gain.
    fn grant(&mut self, offer: &Offer) -> f64 {
        // Classes keep the order of their rows, so the leaving rows come in the same order here, unless the class has
        // changed.
        let mut leaving = offer.rows.iter().peekable();
        let stays = |row: &u32| leaving.next_if(|next| *next == row).is_none();
        let stay: Vec<u32> = self.classes[offer.from].iter().copied().filter(stays).collect();
        if stay.len() + offer.rows.len() != self.classes[offer.from].len() {
            return 0.0;
        }
        let mut touched = Touched::new();
        let gain = self.try_out(offer, stay, &mut touched);
        if gain > LEAST_GAIN && touched.iter().all(|(class, ..)| self.stands(*class)) {
            touched.iter().for_each(|(class, ..)| self.changed[*class] = true);
            return gain;
        }
        for (class, outline, rows) in touched {
            self.outlines[class] = outline;
            self.classes[class] = rows;
        }
        0.0
    }

    fn try_out(&mut self, offer: &Offer, stay: Vec<u32>, touched: &mut Touched) -> f64 {
        let k = u64::from(self.task.rules.k());
        let (before, after) = (self.outlines[offer.from].loss(), Outline::of(self.task, &stay));
        let mut gain = before - after.loss();
        let needs_rows = !stay.is_empty() && after.weight < k;
        for &row in &offer.rows {
            // A row may cost more than the gain if the class will get rows in return, because these may regain some of
            // the loss.
            let limit = if needs_rows { before } else { gain };
            let Some((cost, to)) = self.cheapest(row, offer.from, limit) else { return 0.0 };
            self.keep(touched, to);
            gain -= cost;
            self.join(row, to);
        }
        self.keep(touched, offer.from);
        self.index.changed(offer.from, &after);
        (self.classes[offer.from], self.outlines[offer.from]) = (stay, after);
        if needs_rows { gain + self.give_in_return(offer, touched) } else { gain }
    }

    /// Gives rows to a class below k, from the classes that took its own. Returns the gain, which may be negative.
    fn give_in_return(&mut self, offer: &Offer, touched: &Touched) -> f64 {
        let k = u64::from(self.task.rules.k());
        let mut candidates: Vec<(f64, usize, u32)> = Vec::new();
        let wanting = &self.outlines[offer.from];
        for (giver, _, rows_before) in touched.iter().filter(|(class, ..)| *class != offer.from) {
            for &row in rows_before {
                let weight = f64::from(self.task.rows.weight(row));
                let cost = wanting.growth(self.task, row) / weight - self.outlines[*giver].perimeter;
                candidates.push((cost, *giver, row));
            }
        }
        candidates.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.2.cmp(&b.2)));
        let mut gain = 0.0;
        for (_, giver, row) in candidates {
            if self.outlines[offer.from].weight >= k {
                break;
            }
            if self.outlines[giver].weight < k + u64::from(self.task.rows.weight(row)) {
                continue;
            }
            let before = self.outlines[giver].loss();
            self.classes[giver].retain(|&other| other != row);
            self.outlines[giver] = Outline::of(self.task, &self.classes[giver]);
            self.index.changed(giver, &self.outlines[giver]);
            gain += before - self.outlines[giver].loss() - self.outlines[offer.from].growth(self.task, row);
            self.join(row, offer.from);
        }
        gain
    }

    /// Keeps a class as it is, unless it was kept before.
    fn keep(&self, touched: &mut Touched, class: usize) {
        if touched.iter().all(|(kept, ..)| *kept != class) {
            touched.push((class, self.outlines[class].clone(), self.classes[class].clone()));
        }
    }

    fn join(&mut self, row: u32, to: usize) {
        self.classes[to].push(row);
        self.outlines[to].include(self.task, row);
        self.index.changed(to, &self.outlines[to]);
    }

    fn stands(&mut self, class: usize) -> bool {
        let rows = &self.classes[class];
        rows.is_empty() || self.task.stands(&mut self.tally, rows.iter().copied())
    }
}
