//! [`Views`]: what every audience and coalition sees while rows change what they show.
//!
//! Rows are moved together: all of them show other cells at once, and those are moved back that somebody's class does
//! not allow. So rows can form new classes, which none of them could form alone.
//!
//! # Guarantee
//! After every call each class of placed rows, in the columns of each audience and coalition, satisfies its rules. A row
//! moves only where it loses less, so the loss never grows
//! # Deviations
//! Classes are told apart by a hash of what they show. Two classes with the same hash would count as one; whoever calls
//! must count the cells once more in the end
//! # Cost
//! a hash of each moved row for each view, and a scan of the rows still in motion until none of them is moved back. Where
//! more than k is asked, also a scan of all rows for each of these scans

use super::atoms::Atoms;
use super::looks::{Interval, Looks, look_of};
use super::settle::Demand;
use crate::requirement::{Rules, Tally};

/// Less loss than this is rounding.
const ROUNDING: f64 = 1e-9;

/// Rows, what they show, and what is seen of them.
pub(super) struct Views<'a> {
    pub(super) rows: &'a Atoms<'a>,
    views: Vec<View<'a>>,
    /// What each row shows, one interval per column, row after row.
    shown: Vec<Interval>,
    /// What each row loses; infinite if it is not placed.
    losses: Vec<f64>,
    /// How many rows were considered so far, over all calls.
    visits: u64,
}

/// What an audience or coalition sees.
struct View<'a> {
    columns: &'a [usize],
    rules: &'a Rules,
    /// The hash of what each row shows here; only for placed rows.
    looks: Vec<u64>,
    /// The number of rows in each class that ever was.
    classes: Looks,
    weights: Vec<u64>,
}

/// Rows in motion, and what they would show.
struct Moves {
    /// Ascending by gain.
    rows: Vec<u32>,
    /// For each row in motion, what it would show.
    boxes: Vec<Interval>,
}

/// The classes of one view that rows in motion leave or reach.
struct Touched {
    numbers: Looks,
    /// The rows of each class, as if all rows in motion had moved.
    weights: Vec<u64>,
    /// Whether a class does not satisfy the rules; kept only where its number of rows does not decide that.
    unmet: Vec<bool>,
    /// For each row in motion, the classes that it leaves and reaches. `None` if it is not placed yet.
    of_moves: Vec<(Option<u32>, u32)>,
}

impl<'a> Views<'a> {
    /// No row is placed.
    pub(super) fn empty(rows: &'a Atoms<'a>, demands: &'a [Demand]) -> Views<'a> {
        let views = demands.iter().filter(|demand| demand.rules.asks_anything()).map(|demand| View {
            columns: &demand.columns,
            rules: &demand.rules,
            looks: vec![0; rows.len()],
            classes: Looks::default(),
            weights: Vec::new(),
        });
        Views {
            rows,
            views: views.collect(),
            shown: vec![(0, 0); rows.len() * rows.domains.len()],
            losses: vec![f64::INFINITY; rows.len()],
            visits: 0,
        }
    }

    /// Places rows, each with what it shows, without asking whether their classes satisfy anybody.
    pub(super) fn place(&mut self, rows: &[u32], boxes: &[Interval]) {
        let n_columns = self.rows.domains.len();
        for (&row, shown) in rows.iter().zip(boxes.chunks_exact(n_columns)) {
            self.put(row, shown);
            let weight = u64::from(self.rows.rows.weight(row));
            for view in &mut self.views {
                let look = view.look(shown);
                view.looks[row as usize] = look;
                let all = view.weight(look);
                view.set_weight(look, all + weight);
            }
        }
    }

    /// Takes rows out again, and all rows whose classes then no longer satisfy somebody.
    pub(super) fn take_out(&mut self, rows: &[u32]) {
        let mut leaving = rows.to_vec();
        while !leaving.is_empty() {
            for &row in &leaving {
                let weight = u64::from(self.rows.rows.weight(row));
                for view in &mut self.views {
                    let look = view.looks[row as usize];
                    let all = view.weight(look);
                    view.set_weight(look, all - weight);
                }
                self.losses[row as usize] = f64::INFINITY;
            }
            leaving = self.views.iter().flat_map(|view| view.unmet(self)).collect();
            leaving.sort_unstable();
            leaving.dedup();
        }
    }

    fn put(&mut self, row: u32, shown: &[Interval]) {
        let n_columns = self.rows.domains.len();
        self.shown[row as usize * n_columns..][..n_columns].copy_from_slice(shown);
        self.losses[row as usize] = self.loss_of(shown);
    }

    pub(super) fn shown(&self, row: u32) -> &[Interval] {
        let n_columns = self.rows.domains.len();
        &self.shown[row as usize * n_columns..][..n_columns]
    }

    pub(super) fn into_shown(self) -> Vec<Interval> {
        self.shown
    }

    /// What one of the table's rows loses that is folded to this one; infinite if it is not placed.
    pub(super) fn loss(&self, row: u32) -> f64 {
        self.losses[row as usize]
    }

    pub(super) fn is_placed(&self, row: u32) -> bool {
        self.losses[row as usize].is_finite()
    }

    /// The rows that lose something, or are not placed.
    pub(super) fn losing(&self) -> Vec<u32> {
        (0..self.rows.len() as u32).filter(|&row| self.loss(row) > ROUNDING).collect()
    }

    pub(super) fn unplaced(&self) -> Vec<u32> {
        (0..self.rows.len() as u32).filter(|&row| !self.is_placed(row)).collect()
    }

    /// The loss of all placed rows.
    pub(super) fn total(&self) -> f64 {
        let placed = (0..self.rows.len() as u32).filter(|&row| self.is_placed(row));
        placed.map(|row| self.loss(row) * f64::from(self.rows.rows.weight(row))).sum()
    }

    pub(super) fn visits(&self) -> u64 {
        self.visits
    }

    /// The columns and k of each view.
    pub(super) fn asked(&self) -> impl Iterator<Item = (&'a [usize], u64)> {
        self.views.iter().map(|view| (view.columns, u64::from(view.rules.k())))
    }

    fn loss_of(&self, shown: &[Interval]) -> f64 {
        shown.iter().zip(self.rows.domains).map(|(&(lo, hi), domain)| domain.width(lo, hi)).sum()
    }

    /// Moves those of the rows that lose less where `target` puts them, as far as nobody's classes forbid it. `target`
    /// gets the row and what it shows, and changes that. Returns how many rows of the table were moved.
    pub(super) fn advance(&mut self, rows: &[u32], target: impl Fn(u32, &mut [Interval])) -> u64 {
        self.visits += rows.len() as u64;
        let moves = self.moves(rows, target);
        if moves.rows.is_empty() {
            return 0;
        }
        self.visits += (moves.rows.len() * self.views.len()) as u64;
        let n_columns = self.rows.domains.len();
        let mut touched: Vec<Touched> =
            self.views.iter().map(|view| view.touched_by(&moves, n_columns, self)).collect();
        let mut in_motion: Vec<u32> = (0..moves.rows.len() as u32).collect();
        loop {
            let n_before = in_motion.len();
            for (view, touched) in self.views.iter().zip(&mut touched) {
                view.judge(touched, &moves, &in_motion, self);
            }
            in_motion.retain(|&number| {
                let is_bad = |(view, touched): (&View<'_>, &Touched)| touched.forbids(number, view.rules);
                let stays = self.views.iter().zip(&touched).any(is_bad);
                if stays {
                    let weight = u64::from(self.rows.rows.weight(moves.rows[number as usize]));
                    touched.iter_mut().for_each(|touched| touched.move_back(number, weight));
                }
                !stays
            });
            if in_motion.len() == n_before {
                break;
            }
        }
        let mut moved = 0;
        for &number in &in_motion {
            let row = moves.rows[number as usize];
            let shown = &moves.boxes[number as usize * n_columns..][..n_columns];
            self.put(row, shown);
            self.views.iter_mut().for_each(|view| view.looks[row as usize] = view.look(shown));
            moved += u64::from(self.rows.rows.weight(row));
        }
        for (view, touched) in self.views.iter_mut().zip(touched) {
            for (look, number) in touched.numbers.iter() {
                view.set_weight(look, touched.weights[number as usize]);
            }
        }
        moved
    }

    /// The moves that gain something, those that gain least first: they are the first to be moved back.
    fn moves(&self, rows: &[u32], target: impl Fn(u32, &mut [Interval])) -> Moves {
        let n_columns = self.rows.domains.len();
        let mut found: Vec<(f64, u32)> = Vec::new();
        let mut boxes: Vec<Interval> = Vec::new();
        for &row in rows {
            if self.loss(row) <= ROUNDING {
                continue;
            }
            let start = boxes.len();
            boxes.extend_from_slice(self.shown(row));
            target(row, &mut boxes[start..]);
            let gain = self.loss(row) - self.loss_of(&boxes[start..]);
            if gain <= ROUNDING {
                boxes.truncate(start);
                continue;
            }
            found.push((gain * f64::from(self.rows.rows.weight(row)), row));
        }
        let mut order: Vec<u32> = (0..found.len() as u32).collect();
        order.sort_by(|&a, &b| found[a as usize].0.total_cmp(&found[b as usize].0));
        let of = |&number: &u32| &boxes[number as usize * n_columns..][..n_columns];
        Moves {
            rows: order.iter().map(|&number| found[number as usize].1).collect(),
            boxes: order.iter().flat_map(of).copied().collect(),
        }
    }
}

impl View<'_> {
    fn look(&self, shown: &[Interval]) -> u64 {
        self.columns.iter().fold(0, |look: u64, &column| look.wrapping_add(look_of(column, shown[column])))
    }

    fn weight(&self, look: u64) -> u64 {
        self.classes.get(look).map_or(0, |number| self.weights[number as usize])
    }

    fn set_weight(&mut self, look: u64, weight: u64) {
        if weight > 0 || self.classes.get(look).is_some() {
            let number = self.classes.number(look) as usize;
            self.weights.resize(self.classes.len(), 0);
            self.weights[number] = weight;
        }
    }

    /// The classes that these moves leave and reach, with all of them moved.
    fn touched_by(&self, moves: &Moves, n_columns: usize, views: &Views<'_>) -> Touched {
        let mut touched = Touched {
            numbers: Looks::with_room(moves.rows.len()),
            weights: Vec::new(),
            unmet: Vec::new(),
            of_moves: Vec::with_capacity(moves.rows.len()),
        };
        let number = |touched: &mut Touched, look: u64| {
            let number = touched.numbers.number(look);
            if number as usize == touched.weights.len() {
                touched.weights.push(self.weight(look));
            }
            number
        };
        for (&row, shown) in moves.rows.iter().zip(moves.boxes.chunks_exact(n_columns)) {
            let weight = u64::from(views.rows.rows.weight(row));
            let left = views.is_placed(row).then(|| number(&mut touched, self.looks[row as usize]));
            let reached = number(&mut touched, self.look(shown));
            touched.weights[reached as usize] += weight;
            if let Some(left) = left {
                touched.weights[left as usize] -= weight;
            }
            touched.of_moves.push((left, reached));
        }
        touched
    }

    /// Finds the classes that don't satisfy the rules, if counting rows is not enough for that.
    fn judge(&self, touched: &mut Touched, moves: &Moves, in_motion: &[u32], views: &Views<'_>) {
        if self.rules.weight_suffices() {
            return;
        }
        let mut looks = self.looks.clone();
        let mut is_placed: Vec<bool> = (0..views.rows.len() as u32).map(|row| views.is_placed(row)).collect();
        let n_columns = views.rows.domains.len();
        for &number in in_motion {
            let row = moves.rows[number as usize] as usize;
            looks[row] = self.look(&moves.boxes[number as usize * n_columns..][..n_columns]);
            is_placed[row] = true;
        }
        let mut members: Vec<Vec<u32>> = vec![Vec::new(); touched.weights.len()];
        for row in (0..views.rows.len()).filter(|&row| is_placed[row]) {
            if let Some(number) = touched.numbers.get(looks[row]) {
                members[number as usize].push(row as u32);
            }
        }
        let mut tally = Tally::new(self.rules);
        let is_unmet = |members: &Vec<u32>| !members.is_empty() && !views.rows.stand(&mut tally, members, self.rules);
        touched.unmet = members.iter().map(is_unmet).collect();
    }

    /// The placed rows whose classes don't satisfy the rules.
    fn unmet(&self, views: &Views<'_>) -> Vec<u32> {
        let mut members: Vec<Vec<u32>> = vec![Vec::new(); self.classes.len()];
        for row in (0..views.rows.len() as u32).filter(|&row| views.is_placed(row)) {
            if let Some(class) = self.classes.get(self.looks[row as usize]) {
                members[class as usize].push(row);
            }
        }
        let mut tally = Tally::new(self.rules);
        let mut unmet = Vec::new();
        for class in members.into_iter().filter(|class| !class.is_empty()) {
            if !views.rows.stand(&mut tally, &class, self.rules) {
                unmet.extend(class);
            }
        }
        unmet
    }
}

impl Touched {
    /// Whether a row in motion leaves or reaches a class that does not satisfy the rules.
    fn forbids(&self, number: u32, rules: &Rules) -> bool {
        let (left, reached) = self.of_moves[number as usize];
        let is_unmet = |class: u32| {
            let weight = self.weights[class as usize];
            weight > 0 && (weight < u64::from(rules.k()) || self.unmet.get(class as usize) == Some(&true))
        };
        left != Some(reached) && (is_unmet(reached) || left.is_some_and(is_unmet))
    }

    fn move_back(&mut self, number: u32, weight: u64) {
        let (left, reached) = self.of_moves[number as usize];
        self.weights[reached as usize] -= weight;
        if let Some(left) = left {
            self.weights[left as usize] += weight;
        }
    }
}
