//! [`Trials`]: tries every way to trace a few rows back.

use super::persons::{CandidateGraph, NONE, Puzzle};
use super::trial::Trial;
use crate::Violations;

/// The largest number of rows that are tried in every way.
const MOST_ROWS: usize = 40;

/// The largest number of steps of any search.
pub(super) const MOST_STEPS: u64 = 1 << 19;

/// The largest number of steps before another method is tried, which may be faster.
pub(super) const FEW_STEPS: u64 = 1 << 14;

/// The result of trying every way.
pub(super) enum Found {
    /// A way that satisfies every requirement: the person of each released row.
    Way(Vec<u32>),
    /// No way satisfies every requirement.
    Nothing,
    /// There are too many ways to try them all.
    CutShort,
}

/// Rows of one point and one person. No requirement tells them apart, so only their number matters.
struct Token {
    point: u32,
    person: u32,
    n: u32,
}

/// Ways to trace the rows of some boxes.
pub(super) struct Trials<'a> {
    puzzle: &'a Puzzle<'a>,
    graph: &'a CandidateGraph,
    /// The released rows to be traced, those of one box next to each other.
    slots: Vec<u32>,
    tokens: Vec<Token>,
    /// The token that each slot was given.
    given: Vec<usize>,
    /// How many more persons are left out, if it is not decided who.
    n_more: Option<u64>,
    n_steps: u64,
    /// Judges classes. Kept as long as the same persons are left out.
    trial: Option<Trial<'a>>,
}

impl<'a> Trials<'a> {
    /// Trials for the rows of these boxes. `kept` says which persons are not certain to be left out.
    pub(super) fn new(
        puzzle: &'a Puzzle<'a>,
        graph: &'a CandidateGraph,
        kept: &[bool],
        boxes: &[u32],
        n_more: Option<u64>,
    ) -> Self {
        let slots = boxes.iter().flat_map(|&of| puzzle.origins.boxes.rows(of as usize)).copied().collect();
        let mut rows: Vec<(u32, u32)> =
            graph.point_of_row.iter().copied().zip(graph.person_of_row.iter().copied()).collect();
        // If it is decided who is left out, only points that one of these boxes may take matter, because all of their
        // rows go to these boxes.
        let mut is_open = vec![n_more.is_some(); graph.degrees.len()];
        boxes.iter().flat_map(|&of| graph.candidates(of)).for_each(|&point| is_open[point as usize] = true);
        rows.retain(|&(point, person)| kept[person as usize] && is_open[point as usize]);
        rows.sort_unstable();
        let tokens = rows.chunk_by(|a, b| a == b);
        let tokens = tokens.map(|rows| Token { point: rows[0].0, person: rows[0].1, n: rows.len() as u32 });
        Trials { puzzle, graph, slots, tokens: tokens.collect(), given: Vec::new(), n_more, n_steps: 0, trial: None }
    }

    /// Tries every way. `persons` gives the person of each row that is not to be traced; other entries are overwritten.
    ///
    /// # Errors
    /// If a requirement can't be evaluated.
    pub(super) fn run(mut self, mut persons: Vec<u32>, most_steps: u64) -> Result<Found, Violations> {
        if self.slots.len() > MOST_ROWS {
            return Ok(Found::CutShort);
        }
        persons.resize(self.puzzle.roll.n_rows, NONE);
        // Depth-first search without recursion: `next` holds, for each slot, the next token to try.
        let mut next: Vec<usize> = vec![0];
        while let Some(&token) = next.last() {
            self.n_steps += 1;
            if self.n_steps > most_steps {
                return Ok(Found::CutShort);
            }
            let at = next.len() - 1;
            if at == self.slots.len() {
                if self.holds(&mut persons)? {
                    return Ok(Found::Way(persons));
                }
                next.pop();
                self.take_back();
                continue;
            }
            let of = self.graph.box_of_slot[self.slots[at] as usize];
            let usable = |token: &Token| token.n > 0 && self.graph.fits(of, token.point);
            match (token..self.tokens.len()).find(|&token| usable(&self.tokens[token])) {
                Some(token) => {
                    self.tokens[token].n -= 1;
                    self.given.push(token);
                    next[at] = token + 1;
                    // The rows of one box are interchangeable, so it is enough to try ascending tokens.
                    let same_box = |slot: &u32| self.graph.box_of_slot[*slot as usize] == of;
                    next.push(if self.slots.get(at + 1).is_some_and(same_box) { token } else { 0 });
                }
                None => {
                    next.pop();
                    self.take_back();
                }
            }
        }
        Ok(Found::Nothing)
    }

    fn take_back(&mut self) {
        if let Some(token) = self.given.pop() {
            self.tokens[token].n += 1;
        }
    }

    /// Whether the current way leaves out whole persons and satisfies every requirement.
    fn holds(&mut self, persons: &mut [u32]) -> Result<bool, Violations> {
        if let Some(n_more) = self.n_more {
            let mut left: Vec<u32> = self.tokens.iter().filter(|token| token.n > 0).map(|token| token.person).collect();
            left.dedup();
            left.sort_unstable();
            left.dedup();
            let is_left = |person: &u32| left.binary_search(person).is_ok();
            if left.len() as u64 != n_more || self.given.iter().any(|&token| is_left(&self.tokens[token].person)) {
                return Ok(false);
            }
        }
        for (&slot, &token) in self.slots.iter().zip(&self.given) {
            persons[slot as usize] = self.tokens[token].person;
        }
        self.n_steps += self.slots.len() as u64;
        let mut trial = match self.trial.take() {
            Some(trial) => trial,
            None => Trial::new(self.puzzle.roll, self.puzzle.perspectives, persons, self.puzzle.persons.n_numbers())?,
        };
        let mut holds = true;
        for perspective in 0..trial.perspectives.len() {
            let mut classes: Vec<u32> =
                self.slots.iter().map(|&slot| trial.perspectives[perspective].class_of_row[slot as usize]).collect();
            classes.sort_unstable();
            classes.dedup();
            holds = holds && classes.into_iter().all(|class| trial.gap(perspective, class, persons) == 0.0);
        }
        if self.n_more.is_none() {
            self.trial = Some(trial);
        }
        Ok(holds)
    }
}
