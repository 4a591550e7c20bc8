//! [`trace`]: a way to trace released rows back to persons who have several.
//!
//! # Guarantee
//! A [`Tracing`] that is found gives every released row a private row of its own that it may have come from, uses all
//! rows of a person or none, leaves out as many persons as admitted, and satisfies every requirement, counted in
//! persons. A tracing that is refused as impossible does not exist: either nothing that fails could be traced otherwise,
//! or all tracings were tried. Where neither is shown, the answer is [`Answer::Open`].
//!
//! # Method
//! Whether a tracing exists is decided in steps, the cheap ones first. An assignment of rows regardless of persons must
//! exist. Persons are left out whom the counts of rows decide, and of others as many as are missing. Then rows with equal quasi cells are kept together where that is possible,
//! because most partitioners do, and classes that fail are mended by exchanging rows. What remains is tried exhaustively
//! where it is small.
//! # Cost
//! Bounded by [`MOST_WORK`] looked-at cells; the chance in the search is seeded, so the answer is always the same.

use super::exhaustive::{FEW_STEPS, Found, MOST_STEPS, Trials};
use super::gather::gather;
use super::leaving::Leaving;
use super::origins::Origins;
use super::trial::Trial;
use crate::asked::Views;
use crate::count::cells::CellIds;
use crate::count::roll::Roll;
use crate::origins::assignment::{Assignment, Network};
use crate::{Violation, Violations};

/// How many candidates of origins are kept in memory, where persons have several rows.
const MAX_CANDIDATES: u64 = 1 << 27;

/// How many rows the search may look at.
const MOST_WORK: u64 = 1 << 27;

/// How many rows one attempt to mend classes may look at, for each released row.
const MOST_WORK_PER_ROW: u64 = 1 << 14;

/// How many sets of persons left out are tried.
const MOST_SETS: usize = 24;

/// No slot, no row.
pub(super) const NONE: u32 = u32::MAX;

/// What is to be traced.
pub(crate) struct Puzzle<'a> {
    pub(crate) origins: &'a Origins<'a>,
    /// Released rows, without their persons; own k by person.
    pub(crate) roll: &'a Roll<'a>,
    pub(crate) views: &'a Views,
    /// Whose a private row is.
    pub(crate) persons: &'a CellIds<'a>,
    /// The private quasi cells.
    pub(crate) quasi: Vec<CellIds<'a>>,
    pub(crate) n_original: usize,
    /// Persons said to be left out.
    pub(crate) n_left_out: u64,
}

/// A way to trace rows back.
pub(crate) struct Tracing {
    /// Per released row its person.
    pub(crate) persons: Vec<u32>,
    pub(crate) answer: Answer,
}

/// What a search for the origins of released rows has found out about all ways to trace them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Every way gives every class the same persons.
    Only,
    /// It satisfies everything; other ways may not, or reach other figures.
    Shown,
    /// It fails where every way does.
    Fails,
    /// Every way fails somewhere.
    AllFail,
    /// It fails, and others may not.
    Open,
}

/// Which box may have which point, all buckets together.
pub(super) struct Graph {
    /// Where each box's candidates begin in `points`, and the end.
    pub(super) starts: Vec<usize>,
    /// Candidates, box by box, ascending.
    pub(super) points: Vec<u32>,
    /// Per box its rows.
    pub(super) needs: Vec<u32>,
    /// Per point how many boxes may have it.
    pub(super) degrees: Vec<u32>,
    /// Per point its bucket, [`NONE`] where no released row has its copied cells.
    pub(super) bucket_of_point: Vec<u32>,
    pub(super) bucket_of_box: Vec<u32>,
    /// Per released row its box.
    pub(super) box_of_slot: Vec<u32>,
    /// Per private row its point.
    pub(super) point_of_row: Vec<u32>,
    pub(super) person_of_row: Vec<u32>,
}

impl Graph {
    fn new(puzzle: &Puzzle<'_>) -> Result<Self, Violation> {
        let Origins { boxes, points, buckets, .. } = puzzle.origins;
        let mut graph = Graph {
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

/// Persons left out.
struct Left {
    is_left: Vec<bool>,
    /// Whether no others could be.
    is_certain: bool,
}

/// Looks for a way to trace released rows back to persons.
///
/// # Errors
/// What is wrong or can't be told, where there is no way at all that leaves out whole persons.
pub(crate) fn trace(puzzle: &Puzzle<'_>) -> Result<Tracing, Violations> {
    let graph = Graph::new(puzzle)?;
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

/// One way to trace rows back, in work.
struct State {
    /// Per released row its private row.
    origins: Vec<u32>,
    /// Per private row its released row, or [`NONE`].
    slots: Vec<u32>,
    /// Per released row its person.
    persons: Vec<u32>,
    /// How far it is from what is asked, over all classes.
    gap: f64,
}

struct Search<'a> {
    puzzle: &'a Puzzle<'a>,
    graph: &'a Graph,
    random: Random,
    work: u64,
}

impl Search<'_> {
    /// A way that leaves out these persons, as near to what is asked as was found.
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
            Trial::new(self.puzzle.roll, self.puzzle.views, &state.persons, self.puzzle.persons.n_numbers())?;
        let mut gaps: Vec<Vec<f64>> = Vec::with_capacity(trial.views.len());
        for view in 0..trial.views.len() {
            let classes = 0..trial.views[view].classes.len() as u32;
            gaps.push(classes.map(|class| trial.gap(view, class, &state.persons)).collect());
        }
        state.gap = gaps.iter().flatten().sum();
        let groups = self.groups(supplies);
        if left.is_certain && !groups.is_open.contains(&true) {
            return Ok((state, Answer::Only));
        }
        if state.gap == 0.0 {
            return Ok((state, Answer::Shown));
        }
        // A class of which no row can be traced otherwise fails for certain once it is certain who is left out.
        let fails_anyway = (0..trial.views.len()).any(|view| {
            let classes = &trial.views[view].classes;
            let is_settled = |row: &u32| !groups.is_open[graph.box_of_slot[*row as usize] as usize];
            let failing = gaps[view].iter().enumerate().filter(|(_, gap)| **gap > 0.0);
            failing.into_iter().any(|(class, _)| classes.rows(class).iter().all(is_settled))
        });
        if fails_anyway {
            return Ok((state, if left.is_certain { Answer::Fails } else { Answer::Open }));
        }
        // What is small is tried in every way before rows are exchanged by chance, and with more patience after.
        let unsettled: Vec<u32> = (0..graph.needs.len() as u32).filter(|&of| groups.is_open[of as usize]).collect();
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

    /// Rows as they were handed out: boxes, points, and how many rows of each.
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

    /// Which boxes share a point with another, directly or over others: only they can be traced in several ways.
    fn groups(&self, supplies: &[u32]) -> Groups {
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
        Groups { is_open }
    }

    /// Exchanges rows between classes until everything holds or there was work enough.
    fn exchange(&mut self, state: &mut State, trial: &mut Trial<'_>, gaps: &mut [Vec<f64>]) {
        let graph = self.graph;
        let mut failing = Failing::new(gaps);
        let end = self.work + (MOST_WORK / 8).min(graph.box_of_slot.len() as u64 * MOST_WORK_PER_ROW);
        while !failing.classes.is_empty() && self.work < end {
            self.work += 4;
            let (view, class) = failing.classes[self.random.below(failing.classes.len() as u64) as usize];
            let rows = trial.views[view].classes.rows(class as usize);
            let first = rows[self.random.below(rows.len() as u64) as usize];
            let Some(cycle) = self.cycle(state, first) else { continue };
            let mut touched: Vec<(usize, u32)> = Vec::new();
            for (view, classes) in trial.views.iter().enumerate() {
                touched.extend(cycle.iter().map(|&slot| (view, classes.class_of_row[slot as usize])));
            }
            touched.sort_unstable();
            touched.dedup();
            let before: f64 = touched.iter().map(|&(view, class)| gaps[view][class as usize]).sum();
            rotate(state, &cycle, &graph.person_of_row);
            let mut after = 0.0;
            let mut reached = Vec::with_capacity(touched.len());
            for &(view, class) in &touched {
                self.work += trial.views[view].classes.rows(class as usize).len() as u64;
                let gap = trial.gap(view, class, &state.persons);
                reached.push(gap);
                after += gap;
            }
            // A step back is taken now and then, for a way out of places that no single exchange betters.
            if after <= before || self.random.below(1000) < (8.0 * (-(after - before) * 2.0).exp()) as u64 {
                for (&(view, class), gap) in touched.iter().zip(reached) {
                    gaps[view][class as usize] = gap;
                    failing.set(view, class, gap > 0.0);
                }
            } else {
                let backwards: Vec<u32> = cycle.iter().rev().copied().collect();
                rotate(state, &backwards, &graph.person_of_row);
            }
        }
        state.gap = gaps.iter().flatten().sum();
    }

    /// Two or three released rows that can pass on their origins in a circle, each to the one before it.
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

/// Classes that fail, to choose from.
struct Failing {
    classes: Vec<(usize, u32)>,
    /// Per view and class where it stands in the list, or [`NONE`].
    places: Vec<Vec<u32>>,
}

impl Failing {
    fn new(gaps: &[Vec<f64>]) -> Self {
        let places = gaps.iter().map(|gaps| vec![NONE; gaps.len()]).collect();
        let mut failing = Failing { classes: Vec::new(), places };
        for (view, gaps) in gaps.iter().enumerate() {
            (0..).zip(gaps).for_each(|(class, &gap)| failing.set(view, class, gap > 0.0));
        }
        failing
    }

    fn set(&mut self, view: usize, class: u32, fails: bool) {
        let place = self.places[view][class as usize];
        if fails && place == NONE {
            self.places[view][class as usize] = self.classes.len() as u32;
            self.classes.push((view, class));
        } else if !fails && place != NONE {
            self.classes.swap_remove(place as usize);
            if let Some(&(view, class)) = self.classes.get(place as usize) {
                self.places[view][class as usize] = place;
            }
            self.places[view][class as usize] = NONE;
        }
    }
}

/// Boxes that can be traced in several ways.
struct Groups {
    is_open: Vec<bool>,
}

/// Every released row takes the origin of the next, the last that of the first.
fn rotate(state: &mut State, cycle: &[u32], person_of_row: &[u32]) {
    let origins: Vec<u32> = cycle.iter().map(|&slot| state.origins[slot as usize]).collect();
    for (at, &slot) in cycle.iter().enumerate() {
        let row = origins[(at + 1) % origins.len()];
        state.origins[slot as usize] = row;
        state.slots[row as usize] = slot;
        state.persons[slot as usize] = person_of_row[row as usize];
    }
}

/// Chance that is the same each time.
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
