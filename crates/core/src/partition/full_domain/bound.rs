//! The loss of a vector of levels, and a lower bound of the loss of all vectors that agree with it on some columns.
//!
//! A [`Partial`] stands for many vectors: its first columns have a fixed level, and the level of every other column is at
//! least the one that the partial names. Rows that are equal in the fixed columns are a group of the partial. Each such
//! group is a union of groups of every vector that the partial stands for. Therefore:
//! - A group with fewer than k rows is left out by all these vectors.
//! - If rules that hold for two groups hold for their union, then each vector leaves out a part of every group for which
//!   the rules don't hold.
//! - If too many persons are left out in this way, none of the vectors is allowed. If too many are left out with some
//!   level of another column, that level is too fine for all vectors, so the least level of the column rises.
//!
//! So LM is at least that of the named levels, where cells of rows that all vectors leave out count 1. For DM, rows are
//! also grouped by the named levels: no class is smaller than such a group, and a person who is left out counts more than
//! a person in a class.

use std::sync::Arc;

use rayon::prelude::*;

use super::lattice::{Grouping, Lattice};
use super::{LevelVector, Objective};
use crate::partition::{Classes, Task};
use crate::ranks::ranks;
use crate::requirement::Tally;

/// All vectors of levels that have these levels in the first columns, and at least these levels in the others.
#[derive(Clone, Debug)]
pub(super) struct Partial {
    /// For each decided column its level, for each other column the least level that it can have.
    pub(super) levels: Vec<usize>,
    /// A lower bound of the loss of all vectors that begin with these levels.
    pub(super) bound: f64,
    /// How many columns are decided, in the order of the search.
    n_decided: usize,
    /// Rows grouped by all decided columns except the last.
    before: Arc<Grouping>,
}

impl Partial {
    pub(super) fn is_whole(&self) -> bool {
        self.n_decided == self.levels.len()
    }
}

/// The groups that can't be classes, and how many persons are left out because of that.
struct Failing {
    groups: Vec<bool>,
    /// For each folded row whether it is left out. `None` if exactly the rows of failing groups are left out.
    rows: Option<Vec<bool>>,
    n_left_out: u64,
}

impl Failing {
    /// Whether a folded row of a group is left out.
    fn is_left_out(&self, row: usize, group: u32) -> bool {
        match &self.rows {
            Some(rows) => rows[row],
            None => self.groups[group as usize],
        }
    }
}

/// The persons of the folded rows.
struct PersonRows {
    /// The person of each folded row, numbered from 0.
    of_row: Vec<u32>,
    n_persons: usize,
}

impl PersonRows {
    /// `None` if persons have one row each, or a folded row belongs to two of them.
    fn of(task: &Task<'_>) -> Option<PersonRows> {
        task.rules.person_of_row()?;
        let person = |row: u32| {
            let members = task.rows.members(row);
            let first = task.rules.person(*members.first()?);
            members.iter().all(|&member| task.rules.person(member) == first).then_some(first)
        };
        let persons: Vec<u32> = (0..task.rows.len() as u32).map(person).collect::<Option<_>>()?;
        let (of_row, n_persons) = ranks(&persons);
        Some(PersonRows { of_row, n_persons })
    }
}

/// Which groups are checked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Groups {
    /// The groups that would be released.
    Final,
    /// Groups that further columns may divide.
    Unions,
}

/// Measures vectors of levels.
pub(super) struct Evaluator<'a> {
    pub(super) task: &'a Task<'a>,
    lattice: &'a Lattice,
    objective: Objective,
    allowance: u64,
    /// Per folded row.
    weights: Vec<u32>,
    /// The persons, if they have several rows and may leave with all of them.
    persons: Option<PersonRows>,
    /// Columns in the order in which they are decided: those with most values first, which leave most out.
    order: Vec<usize>,
}

impl<'a> Evaluator<'a> {
    pub(super) fn new(task: &'a Task<'a>, lattice: &'a Lattice, objective: Objective) -> Evaluator<'a> {
        let persons = PersonRows::of(task);
        let leave_by_halves = task.rules.person_of_row().is_some() && persons.is_none();
        let all_stay = task.rules.measures_against_release() || leave_by_halves;
        let mut order: Vec<usize> = (0..lattice.columns.len()).collect();
        order.sort_by_key(|&column| std::cmp::Reverse(lattice.columns[column].levels[0].n_cells));
        Evaluator {
            task,
            lattice,
            objective,
            allowance: if all_stay { 0 } else { task.allowance },
            weights: (0..task.rows.len() as u32).map(|row| task.rows.weight(row)).collect(),
            persons,
            order,
        }
    }

    /// The loss of a vector; `None` if it leaves out too many persons.
    pub(super) fn evaluate(&self, levels: &[usize]) -> Option<LevelVector> {
        let grouping = self.group(Grouping::one(self.weights.len()), &self.order, levels);
        let failing = self.failing(&grouping, Groups::Final);
        if failing.n_left_out > self.allowance {
            return None;
        }
        let loss = match self.objective {
            Objective::Lm => self.lm(levels, &grouping, &failing),
            Objective::Dm => {
                let sizes = self.sizes(&grouping, &failing);
                let kept = sizes.iter().zip(&failing.groups).filter(|(_, failing)| !**failing);
                let squares: f64 = kept.map(|(&size, _)| (size as f64).powi(2)).sum();
                squares + failing.n_left_out as f64 * self.n_persons() as f64
            }
        };
        Some(LevelVector { loss, n_left_out: failing.n_left_out, levels: levels.to_vec() })
    }

    /// The partial in which no column is decided; `None` if every vector loses more than `most`.
    pub(super) fn root(&self, most: f64) -> Option<Partial> {
        let one = Arc::new(Grouping::one(self.weights.len()));
        let nothing = Partial { levels: vec![0; self.order.len()], bound: 0.0, n_decided: 0, before: one.clone() };
        self.bounded(nothing, &one, most)
    }

    /// The partials with one more column decided, except those that certainly lose more than `most`.
    pub(super) fn extend(&self, partial: &Partial, most: f64) -> Vec<Partial> {
        let grouping = match partial.n_decided {
            0 => partial.before.clone(),
            n_decided => Arc::new(self.refined(&partial.before, self.order[n_decided - 1], &partial.levels)),
        };
        let column = self.order[partial.n_decided];
        let levels: Vec<usize> = (partial.levels[column]..=self.lattice.columns[column].top()).collect();
        let further: Vec<Option<Partial>> = levels
            .into_par_iter()
            .map(|level| {
                let mut decided =
                    Partial { n_decided: partial.n_decided + 1, before: grouping.clone(), ..partial.clone() };
                decided.levels[column] = level;
                let grouping = self.refined(&grouping, column, &decided.levels);
                self.bounded(decided, &grouping, most)
            })
            .collect();
        further.into_iter().flatten().collect()
    }

    /// The partial with the least levels of undecided columns and its bound; `grouping` is that of its decided columns.
    /// `None` if it stands for no vector that may be released and lose at most `most`.
    fn bounded(&self, mut partial: Partial, grouping: &Grouping, most: f64) -> Option<Partial> {
        let failing = self.failing(grouping, Groups::Unions);
        if failing.n_left_out > self.allowance {
            return None;
        }
        // First a cheap test: with the least levels that are known so far, the partial may lose too much already.
        if self.objective == Objective::Lm && self.lm(&partial.levels, grouping, &failing) > most {
            return None;
        }
        let undecided = &self.order[partial.n_decided..];
        let least: Vec<usize> = undecided
            .par_iter()
            .map(|&column| {
                let mut levels = partial.levels.clone();
                let top = self.lattice.columns[column].top();
                while levels[column] < top {
                    let refined = self.refined(grouping, column, &levels);
                    if self.failing(&refined, Groups::Unions).n_left_out <= self.allowance {
                        break;
                    }
                    levels[column] += 1;
                }
                levels[column]
            })
            .collect();
        for (&column, level) in undecided.iter().zip(least) {
            partial.levels[column] = level;
        }
        partial.bound = match self.objective {
            Objective::Lm => self.lm(&partial.levels, grouping, &failing),
            Objective::Dm => self.least_dm(&partial, grouping, &failing),
        };
        (partial.bound <= most).then_some(partial)
    }

    fn refined(&self, grouping: &Grouping, column: usize, levels: &[usize]) -> Grouping {
        let lattice_column = &self.lattice.columns[column];
        match levels[column] {
            level if level == lattice_column.top() => grouping.clone(),
            level => grouping.refined(lattice_column, &lattice_column.levels[level]),
        }
    }

    /// Refines by several columns, the one with fewest cells first so that groups stay few for long.
    fn group(&self, mut grouping: Grouping, columns: &[usize], levels: &[usize]) -> Grouping {
        for &column in columns.iter().rev() {
            if levels[column] < self.lattice.columns[column].top() {
                grouping = self.refined(&grouping, column, levels);
            }
        }
        grouping
    }

    /// How many persons there are, of whom some may be left out.
    fn n_persons(&self) -> usize {
        self.persons.as_ref().map_or(self.task.rows.n_members(), |persons| persons.n_persons)
    }

    fn failing(&self, grouping: &Grouping, asked: Groups) -> Failing {
        if let Some(persons) = self.persons.as_ref().filter(|_| self.allowance > 0) {
            return self.failing_with_persons(grouping, persons, asked);
        }
        let rules = self.task.rules;
        let weights = grouping.weights(&self.weights);
        let mut groups: Vec<bool> = weights.iter().map(|&weight| weight < u64::from(rules.k())).collect();
        let weight_of = |groups: &[bool]| -> u64 {
            weights.iter().zip(groups).filter(|(_, failing)| **failing).map(|(weight, _)| weight).sum()
        };
        let mut n_left_out = weight_of(&groups);
        // Groups that share persons may satisfy the rules apart and fail together, so a union is judged only by its
        // weight.
        let all_told = rules.weight_suffices() || (asked == Groups::Unions && rules.person_of_row().is_some());
        if all_told || n_left_out > self.allowance {
            return Failing { groups, rows: None, n_left_out };
        }
        let stands: Vec<bool> = grouping
            .lists()
            .into_par_iter()
            .map_init(|| Tally::new(rules), |tally, rows| self.task.stands(tally, rows.iter().copied()))
            .collect();
        match asked {
            Groups::Final => {
                groups = stands.iter().map(|stands| !stands).collect();
                n_left_out = weight_of(&groups);
            }
            Groups::Unions => {
                let fails = stands.iter().zip(&groups).filter(|(stands, counted)| !**stands && !**counted);
                n_left_out += fails.count() as u64;
            }
        }
        Failing { groups, rows: None, n_left_out }
    }

    /// Everybody in a group that fails leaves with all their rows, which may make further groups fail.
    ///
    /// A group of fewer than k persons has no part of k persons, so its persons leave in every vector whose groups are
    /// parts of it.
    fn failing_with_persons(&self, grouping: &Grouping, persons: &PersonRows, asked: Groups) -> Failing {
        let lists = grouping.lists();
        let mut is_left = vec![false; persons.n_persons];
        let mut groups = vec![false; grouping.n_groups];
        let mut n_left_out = 0;
        loop {
            let stays = |row: &u32| !is_left[persons.of_row[*row as usize] as usize];
            let fails = |tally: &mut Tally<'_>, group: usize| {
                let rows = || lists[group].iter().copied().filter(stays);
                match asked {
                    Groups::Final => rows().next().is_some() && !self.task.stands(tally, rows()),
                    Groups::Unions => {
                        let mut members: Vec<u32> = rows().map(|row| persons.of_row[row as usize]).collect();
                        members.sort_unstable();
                        members.dedup();
                        !members.is_empty() && (members.len() as u64) < u64::from(self.task.rules.k())
                    }
                }
            };
            let newly: Vec<usize> = (0..grouping.n_groups)
                .into_par_iter()
                .map_init(|| Tally::new(self.task.rules), |tally, group| fails(tally, group).then_some(group))
                .flatten()
                .collect();
            if newly.is_empty() || n_left_out > self.allowance {
                break;
            }
            for group in newly {
                groups[group] = true;
                for &row in &lists[group] {
                    let is_left = &mut is_left[persons.of_row[row as usize] as usize];
                    n_left_out += u64::from(!*is_left);
                    *is_left = true;
                }
            }
        }
        let rows = persons.of_row.iter().map(|&person| is_left[person as usize]).collect();
        Failing { groups, rows: Some(rows), n_left_out }
    }

    /// LM times the number of cells, if rows of failing groups are left out.
    fn lm(&self, levels: &[usize], grouping: &Grouping, failing: &Failing) -> f64 {
        let columns = || self.lattice.columns.iter().zip(levels);
        let mut loss: f64 = columns().map(|(column, &level)| column.levels[level].loss).sum();
        if failing.n_left_out > 0 {
            for (row, &group) in grouping.of_row.iter().enumerate() {
                if failing.is_left_out(row, group) {
                    let gained = columns()
                        .map(|(column, &level)| 1.0 - column.levels[level].width_of_code[column.codes[row] as usize]);
                    loss += gained.sum::<f64>() * f64::from(self.weights[row]);
                }
            }
        }
        loss
    }

    fn least_dm(&self, partial: &Partial, grouping: &Grouping, failing: &Failing) -> f64 {
        // The persons of a union can be fewer than those of its parts taken together.
        if self.task.rules.person_of_row().is_some() {
            return 0.0;
        }
        let finest = self.group(grouping.clone(), &self.order[partial.n_decided..], &partial.levels);
        let sizes = finest.weights(&self.weights);
        let n_all = self.task.rows.n_members() as f64;
        let rows = grouping.of_row.iter().zip(&finest.of_row).zip(&self.weights);
        rows.map(|((&group, &part), &weight)| {
            let per_person = if failing.groups[group as usize] { n_all } else { sizes[part as usize] as f64 };
            f64::from(weight) * per_person
        })
        .sum()
    }

    /// How many persons each group has who are not left out.
    fn sizes(&self, grouping: &Grouping, failing: &Failing) -> Vec<u64> {
        if self.task.rules.person_of_row().is_none() {
            return grouping.weights(&self.weights);
        }
        let count = |tally: &mut Tally<'_>, rows: Vec<u32>| {
            let kept = rows.iter().filter(|&&row| failing.rows.as_ref().is_none_or(|left| !left[row as usize]));
            tally.recount(kept.flat_map(|&row| self.task.rows.members(row)).copied());
            tally.n_persons()
        };
        grouping.lists().into_par_iter().map_init(|| Tally::new(self.task.rules), count).collect()
    }

    /// The classes of a vector, with what they show.
    pub(super) fn classes(&self, levels: &[usize]) -> Classes {
        let grouping = self.group(Grouping::one(self.weights.len()), &self.order, levels);
        let failing = self.failing(&grouping, Groups::Final);
        let mut lists: Vec<Vec<u32>> = grouping
            .lists()
            .into_iter()
            .zip(0..)
            .map(|(mut rows, group)| {
                rows.retain(|&row| !failing.is_left_out(row as usize, group));
                rows
            })
            .filter(|rows| !rows.is_empty())
            .collect();
        lists.sort_unstable_by_key(|rows| rows[0]);
        let boxes = lists.iter().flat_map(|rows| self.lattice.shown(levels, rows[0])).collect();
        Classes { boxes: Some(boxes), ..Classes::from_lists(lists) }
    }
}
