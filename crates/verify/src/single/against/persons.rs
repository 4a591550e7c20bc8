//! [`trace`]: a way to trace released rows back to persons who have several rows.
//!
//! # Guarantee
//! A [`Tracing`] gives every released row an origin, uses all rows of a person or none, and leaves out as many persons
//! as stated. With [`Answer::Shown`] it satisfies every requirement, counted in persons. The search says that no such
//! tracing exists only if the rows of a failing class can't be traced otherwise, or if all tracings were tried. If it
//! can show neither, the answer is [`Answer::Open`].
//!
//! # Method
//! The search goes in steps, the cheap ones first:
//! 1. Every released row must have an origin if rows are assigned regardless of persons.
//! 2. The counts of rows decide for some persons whether they are left out. If more persons must be left out, they are
//!    chosen by chance from the others.
//! 3. Private rows with equal quasi cells are kept in one class if possible, because most partitioners do so.
//! 4. Rows are exchanged between classes that fail.
//! 5. If few rows are undecided, every way to trace them is tried.
//! # Cost
//! At most about [`MOST_WORK`] rows are looked at. The random numbers are seeded, so the answer is always the same.

use super::exhaustive::{FEW_STEPS, Found, MOST_STEPS, Trials};
use super::gather::gather;
use super::leaving::Leaving;
use super::origins::Origins;
use super::trial::Trial;
use crate::asked::Perspectives;
use crate::count::cells::CellIds;
use crate::count::roll::Roll;
use crate::origins::assignment::{Assignment, Network};
use crate::{Violation, Violations};

/// How many possible origins are kept in memory, if persons have several rows.
const MAX_CANDIDATES: u64 = 1 << 27;

/// How many rows the search may look at.
const MOST_WORK: u64 = 1 << 27;

/// How many rows one attempt to mend failing classes may look at, for each released row.
const MOST_WORK_PER_ROW: u64 = 1 << 14;

/// How many choices of persons who are left out are tried.
const MOST_SETS: usize = 24;

/// Stands for no row, no bucket and so on.
pub(super) const NONE: u32 = u32::MAX;

/// The rows to be traced, and the requirements on the result.
pub(crate) struct Puzzle<'a> {
    pub(crate) origins: &'a Origins<'a>,
    /// The released rows without their persons. Own k is given by person.
    pub(crate) roll: &'a Roll<'a>,
    pub(crate) perspectives: &'a Perspectives,
    /// The person of each private row.
    pub(crate) persons: &'a CellIds<'a>,
    /// The private quasi cells.
    pub(crate) quasi: Vec<CellIds<'a>>,
    pub(crate) n_original: usize,
    /// The number of persons left out that the release states.
    pub(crate) n_left_out: u64,
}

/// A way to trace rows back.
pub(crate) struct Tracing {
    /// The person of each released row.
    pub(crate) persons: Vec<u32>,
    pub(crate) answer: Answer,
}

/// What the search knows about the tracing that it returns, and about all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Every tracing gives every class the same persons.
    Only,
    /// This tracing satisfies every requirement. Others may not, or may reach other figures.
    Shown,
    /// This tracing fails in a class in which every tracing fails.
    Fails,
    /// Every tracing fails in some class.
    AllFail,
    /// This tracing fails, but another may not.
    Open,
}

/// Which points each box may take, for all buckets together. See [`Origins`] for these words. A slot is a released row
/// that waits for an origin.
pub(super) struct CandidateGraph {
    /// Where the candidates of each box begin in `points`, and finally the end.
    pub(super) starts: Vec<usize>,
    /// The candidates of all boxes, box after box, ascending within each.
    pub(super) points: Vec<u32>,
    /// The number of slots in each box.
    pub(super) needs: Vec<u32>,
    /// The number of boxes that may take each point.
    pub(super) degrees: Vec<u32>,
    /// The bucket of each point, [`NONE`] if no released row has the same copied cells.
    pub(super) bucket_of_point: Vec<u32>,
    pub(super) bucket_of_box: Vec<u32>,
    /// The box of each slot.
    pub(super) box_of_slot: Vec<u32>,
    /// The point of each private row.
    pub(super) point_of_row: Vec<u32>,
    pub(super) person_of_row: Vec<u32>,
}

impl CandidateGraph {
    fn new(puzzle: &Puzzle<'_>) -> Result<Self, Violation> {
        let Origins { boxes, points, buckets, .. } = puzzle.origins;
        let mut graph = CandidateGraph {
            starts: vec![0],
            points: Vec::new(),
            needs: (0..boxes.len()).map(|of| boxes.rows(of).len() as u32).collect(),
            degrees: vec![0; points.len()],
            bucket_of_point: vec![NONE; points.len()],
            bucket_of_box: Vec::with_capacity(boxes.len()),
            box_of_slot: boxes.class_of_rows(),
            point_of_row: points.class_of_rows(),
            person_of_row: (0..puzzle.n_original).map(|row| puzzle.persons.get(row)).collect(),
        };
        for (number, bucket) in (0..).zip(buckets) {
            let most = MAX_CANDIDATES - graph.points.len() as u64;
            let network = puzzle.origins.network(bucket, most)?;
            let before = graph.points.len();
            graph.points.extend(network.points.iter().map(|&point| point + bucket.points.0 as u32));
            graph.starts.extend(network.starts[1..].iter().map(|&end| before + end));
            graph.bucket_of_point[bucket.points.0..bucket.points.1].fill(number);
            graph.bucket_of_box.resize(bucket.boxes.1, number);
        }
        for &point in &graph.points {
            graph.degrees[point as usize] += 1;
        }
        Ok(graph)
    }

    pub(super) fn candidates(&self, of: u32) -> &[u32] {
        &self.points[self.starts[of as usize]..self.starts[of as usize + 1]]
    }

    pub(super) fn fits(&self, of: u32, point: u32) -> bool {
        self.candidates(of).binary_search(&point).is_ok()
    }

    fn solve(&self, supplies: Vec<u32>) -> Assignment {
        let (starts, points, needs) = (self.starts.clone(), self.points.clone(), self.needs.clone());
        Network { starts, points, needs, supplies }.solve()
    }
}

/// The persons who are left out.
struct Left {
    is_left: Vec<bool>,
    /// Whether nobody else could be left out instead.
    is_certain: bool,
}

/// Looks for a way to trace released rows back to persons.
///
/// # Errors
/// If no way leaves out whole persons, or none was found.
pub(crate) fn trace(puzzle: &Puzzle<'_>) -> Result<Tracing, Violations> {
    let graph = CandidateGraph::new(puzzle)?;
    let supplies = |is_left: &[bool]| -> Vec<u32> {
        let mut supplies = vec![0; graph.degrees.len()];
        let kept =
            graph.point_of_row.iter().zip(&graph.person_of_row).filter(|(_, person)| !is_left[**person as usize]);
        kept.for_each(|(&point, _)| supplies[point as usize] += 1);
        supplies
    };
    let assignment = graph.solve(supplies(&vec![false; puzzle.persons.n_numbers()]));
    if let Some(violation) = puzzle.origins.lacking(assignment.lacking().iter().copied().enumerate()) {
        return Err(violation.into());
    }
    drop(assignment);

    let leaving = Leaving::new(puzzle, &graph)?;
    let is_left = leaving.certain();
    let mut search = Search { puzzle, graph: &graph, random: Random(0x9E37_79B9_7F4A_7C15), work: 0 };
    if leaving.is_certain() {
        let supplies = supplies(&is_left);
        if graph.solve(supplies.clone()).lacking().iter().any(|&lacking| lacking > 0) {
            return Err(Violation::SuppressedPersons { admitted: puzzle.n_left_out }.into());
        }
        let (state, answer) = search.mend(&Left { is_left, is_certain: true }, &supplies)?;
        return Ok(Tracing { persons: state.persons, answer });
    }
    let mut nearest: Option<State> = None;
    for _ in 0..MOST_SETS {
        let Some(more) = leaving.some_set(&mut search.random, &mut search.work) else { continue };
        let mut left = Left { is_left: is_left.clone(), is_certain: false };
        more.into_iter().for_each(|person| left.is_left[person as usize] = true);
        let supplies = supplies(&left.is_left);
        search.work += graph.points.len() as u64;
        if graph.solve(supplies.clone()).lacking().iter().any(|&lacking| lacking > 0) {
            continue;
        }
        let (state, answer) = search.mend(&left, &supplies)?;
        if answer == Answer::Shown {
            return Ok(Tracing { persons: state.persons, answer });
        }
        if nearest.as_ref().is_none_or(|nearest| state.gap < nearest.gap) {
            nearest = Some(state);
        }
        if search.work > MOST_WORK {
            break;
        }
    }
    let all_boxes: Vec<u32> = (0..graph.needs.len() as u32).collect();
    let kept: Vec<bool> = is_left.iter().map(|is_left| !is_left).collect();
    let found =
        Trials::new(puzzle, &graph, &kept, &all_boxes, Some(leaving.n_open() as u64)).run(Vec::new(), MOST_STEPS)?;
    let unshown = || Violation::SuppressedPersons { admitted: puzzle.n_left_out };
    match (found, nearest) {
        (Found::Way(persons), _) => Ok(Tracing { persons, answer: Answer::Shown }),
        (Found::Nothing, Some(state)) => Ok(Tracing { persons: state.persons, answer: Answer::AllFail }),
        (Found::Nothing, None) => Err(unshown().into()),
        (Found::CutShort, Some(state)) => Ok(Tracing { persons: state.persons, answer: Answer::Open }),
        (Found::CutShort, None) => Err(unshown().undecided().into()),
    }
}

/// A way to trace rows back that the search still changes.
struct State {
    /// The private row of each slot.
    origins: Vec<u32>,
    /// The slot of each private row, or [`NONE`].
    slots: Vec<u32>,
    /// The person of each slot.
    persons: Vec<u32>,
    /// How far all classes together are from satisfying the requirements; 0 if they do.
    gap: f64,
}

struct Search<'a> {
    puzzle: &'a Puzzle<'a>,
    graph: &'a CandidateGraph,
    random: Random,
    work: u64,
}

impl Search<'_> {
    /// Looks for a way that leaves out these persons and satisfies every requirement. Returns the best one that was
    /// found.
    fn mend(&mut self, left: &Left, supplies: &[u32]) -> Result<(State, Answer), Violations> {
        let graph = self.graph;
        let handed = gather(self.puzzle, graph, supplies, &mut self.random).unwrap_or_else(|| {
            let assignment = graph.solve(supplies.to_vec());
            let boxes = 0..graph.needs.len();
            boxes
                .flat_map(|of| assignment.handed(of).map(move |(point, n)| (of as u32, point, n)).collect::<Vec<_>>())
                .collect()
        });
        let mut state = self.state(left, &handed);
        let mut trial =
            Trial::new(self.puzzle.roll, self.puzzle.perspectives, &state.persons, self.puzzle.persons.n_numbers())?;
        let mut gaps: Vec<Vec<f64>> = Vec::with_capacity(trial.perspectives.len());
        for perspective in 0..trial.perspectives.len() {
            let classes = 0..trial.perspectives[perspective].classes.len() as u32;
            gaps.push(classes.map(|class| trial.gap(perspective, class, &state.persons)).collect());
        }
        state.gap = gaps.iter().flatten().sum();
        let is_open = self.open_boxes(supplies);
        if left.is_certain && !is_open.contains(&true) {
            return Ok((state, Answer::Only));
        }
        if state.gap == 0.0 {
            return Ok((state, Answer::Shown));
        }
        // If no row of a failing class can be traced otherwise, it fails in every way that leaves out these persons.
        let fails_anyway = (0..trial.perspectives.len()).any(|perspective| {
            let classes = &trial.perspectives[perspective].classes;
            let is_settled = |row: &u32| !is_open[graph.box_of_slot[*row as usize] as usize];
            let failing = gaps[perspective].iter().enumerate().filter(|(_, gap)| **gap > 0.0);
            failing.into_iter().any(|(class, _)| classes.rows(class).iter().all(is_settled))
        });
        if fails_anyway {
            return Ok((state, if left.is_certain { Answer::Fails } else { Answer::Open }));
        }
        // First try every way for a few steps, then exchange rows by chance, and at last try every way for many steps.
        let unsettled: Vec<u32> = (0..graph.needs.len() as u32).filter(|&of| is_open[of as usize]).collect();
        let kept: Vec<bool> = left.is_left.iter().map(|is_left| !is_left).collect();
        for most_steps in [FEW_STEPS, MOST_STEPS] {
            let trials = Trials::new(self.puzzle, graph, &kept, &unsettled, None);
            match trials.run(state.persons.clone(), most_steps)? {
                Found::Way(persons) => return Ok((State { persons, gap: 0.0, ..state }, Answer::Shown)),
                Found::Nothing => return Ok((state, if left.is_certain { Answer::AllFail } else { Answer::Open })),
                Found::CutShort if most_steps == FEW_STEPS => {
                    self.exchange(&mut state, &mut trial, &mut gaps);
                    if state.gap == 0.0 {
                        return Ok((state, Answer::Shown));
                    }
                }
                Found::CutShort => {}
            }
            if !left.is_certain {
                break;
            }
        }
        Ok((state, Answer::Open))
    }

    /// The state in which rows are assigned as `handed` says: triples of a box, a point, and a number of rows.
    fn state(&self, left: &Left, handed: &[(u32, u32, u32)]) -> State {
        let graph = self.graph;
        let points = &self.puzzle.origins.points;
        let mut next_row = vec![0usize; points.len()];
        let mut next_slot = vec![0usize; graph.needs.len()];
        let mut state = State {
            origins: vec![NONE; graph.box_of_slot.len()],
            slots: vec![NONE; graph.person_of_row.len()],
            persons: vec![NONE; graph.box_of_slot.len()],
            gap: f64::INFINITY,
        };
        for &(of, point, n) in handed {
            for _ in 0..n {
                let rows = points.rows(point as usize);
                let next = &mut next_row[point as usize];
                while left.is_left[graph.person_of_row[rows[*next] as usize] as usize] {
                    *next += 1;
                }
                let row = rows[*next];
                *next += 1;
                let slot = self.puzzle.origins.boxes.rows(of as usize)[next_slot[of as usize]];
                next_slot[of as usize] += 1;
                state.origins[slot as usize] = row;
                state.slots[row as usize] = slot;
                state.persons[slot as usize] = graph.person_of_row[row as usize];
            }
        }
        state
    }

    /// For each box, whether it shares a point with another box. Only the rows of such boxes can be traced in several
    /// ways.
    fn open_boxes(&self, supplies: &[u32]) -> Vec<bool> {
        let graph = self.graph;
        let mut holder = vec![NONE; graph.degrees.len()];
        let mut is_open = vec![false; graph.needs.len()];
        for of in 0..graph.needs.len() as u32 {
            for &point in graph.candidates(of).iter().filter(|&&point| supplies[point as usize] > 0) {
                match holder[point as usize] {
                    NONE => holder[point as usize] = of,
                    other => {
                        is_open[of as usize] = true;
                        is_open[other as usize] = true;
                    }
                }
            }
        }
        is_open
    }

    /// Exchanges rows between classes until every requirement holds or the limit on work is reached.
    fn exchange(&mut self, state: &mut State, trial: &mut Trial<'_>, gaps: &mut [Vec<f64>]) {
        let graph = self.graph;
        let mut failing = Failing::new(gaps);
        let end = self.work + (MOST_WORK / 8).min(graph.box_of_slot.len() as u64 * MOST_WORK_PER_ROW);
        while !failing.classes.is_empty() && self.work < end {
            self.work += 4;
            let (perspective, class) = failing.classes[self.random.below(failing.classes.len() as u64) as usize];
            let rows = trial.perspectives[perspective].classes.rows(class as usize);
            let first = rows[self.random.below(rows.len() as u64) as usize];
            let Some(cycle) = self.cycle(state, first) else { continue };
            let mut touched: Vec<(usize, u32)> = Vec::new();
            for (perspective, classes) in trial.perspectives.iter().enumerate() {
                touched.extend(cycle.iter().map(|&slot| (perspective, classes.class_of_row[slot as usize])));
            }
            touched.sort_unstable();
            touched.dedup();
            let before: f64 = touched.iter().map(|&(perspective, class)| gaps[perspective][class as usize]).sum();
            rotate(state, &cycle, &graph.person_of_row);
            let mut after = 0.0;
            let mut reached = Vec::with_capacity(touched.len());
            for &(perspective, class) in &touched {
                self.work += trial.perspectives[perspective].classes.rows(class as usize).len() as u64;
                let gap = trial.gap(perspective, class, &state.persons);
                reached.push(gap);
                after += gap;
            }
            // Now and then a step that makes things worse is taken, to get out of a local optimum.
            if after <= before || self.random.below(1000) < (8.0 * (-(after - before) * 2.0).exp()) as u64 {
                for (&(perspective, class), gap) in touched.iter().zip(reached) {
                    gaps[perspective][class as usize] = gap;
                    failing.set(perspective, class, gap > 0.0);
                }
            } else {
                let backwards: Vec<u32> = cycle.iter().rev().copied().collect();
                rotate(state, &backwards, &graph.person_of_row);
            }
        }
        state.gap = gaps.iter().flatten().sum();
    }

    /// Two or three slots that can pass on their origins in a circle, each to the one before it.
    fn cycle(&mut self, state: &State, first: u32) -> Option<Vec<u32>> {
        let graph = self.graph;
        let point_of = |slot: u32| graph.point_of_row[state.origins[slot as usize] as usize];
        let box_of = |slot: u32| graph.box_of_slot[slot as usize];
        let mut cycle = vec![first];
        let n = 2 + usize::from(self.random.below(4) == 0);
        while cycle.len() < n {
            let last = *cycle.last()?;
            let candidates = graph.candidates(box_of(last));
            let point = candidates[self.random.below(candidates.len() as u64) as usize];
            let rows = self.puzzle.origins.points.rows(point as usize);
            let slot = state.slots[rows[self.random.below(rows.len() as u64) as usize] as usize];
            if slot == NONE || cycle.contains(&slot) || box_of(slot) == box_of(last) {
                return None;
            }
            cycle.push(slot);
        }
        let last = *cycle.last()?;
        (box_of(last) != box_of(first) && graph.fits(box_of(last), point_of(first))).then_some(cycle)
    }
}

/// The classes that fail, as a list from which one can be chosen by chance.
struct Failing {
    /// Pairs of a perspective and a class.
    classes: Vec<(usize, u32)>,
    /// For each perspective and class, its position in the list, or [`NONE`].
    places: Vec<Vec<u32>>,
}

impl Failing {
    fn new(gaps: &[Vec<f64>]) -> Self {
        let places = gaps.iter().map(|gaps| vec![NONE; gaps.len()]).collect();
        let mut failing = Failing { classes: Vec::new(), places };
        for (perspective, gaps) in gaps.iter().enumerate() {
            (0..).zip(gaps).for_each(|(class, &gap)| failing.set(perspective, class, gap > 0.0));
        }
        failing
    }

    fn set(&mut self, perspective: usize, class: u32, fails: bool) {
        let place = self.places[perspective][class as usize];
        if fails && place == NONE {
            self.places[perspective][class as usize] = self.classes.len() as u32;
            self.classes.push((perspective, class));
        } else if !fails && place != NONE {
            self.classes.swap_remove(place as usize);
            if let Some(&(perspective, class)) = self.classes.get(place as usize) {
                self.places[perspective][class as usize] = place;
            }
            self.places[perspective][class as usize] = NONE;
        }
    }
}

/// Every slot takes the origin of the next one, and the last takes that of the first.
fn rotate(state: &mut State, cycle: &[u32], person_of_row: &[u32]) {
    let origins: Vec<u32> = cycle.iter().map(|&slot| state.origins[slot as usize]).collect();
    for (at, &slot) in cycle.iter().enumerate() {
        let row = origins[(at + 1) % origins.len()];
        state.origins[slot as usize] = row;
        state.slots[row as usize] = slot;
        state.persons[slot as usize] = person_of_row[row as usize];
    }
}

/// Random numbers that are the same in each run.
pub(super) struct Random(u64);

impl Random {
    /// A number below `n`.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32) % n
    }
}
