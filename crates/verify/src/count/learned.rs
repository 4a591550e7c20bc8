//! What the cells of a quasi column tell an audience that does not know the column.
//!
//! Cells may be generalized, so labels may overlap. [`kohort_model::Requirement`] defines the measures for quasi
//! columns that only others know.
//!
//! # Guarantee
//! Parsed bounds and hierarchy paths decide which labels overlap. A column for which neither is known is not counted,
//! and is reported as skipped.
//! # Cost   the same as for a sensitive column, plus one sort of the hierarchy's nodes

use std::collections::BTreeSet;

use kohort_model::{Column, Hierarchy, Requirement, Texts, Value, ValueType};
use rayon::prelude::*;

use crate::count::cells::CellIds;
use crate::count::grouping::Classes;
use crate::count::requirement::TOLERANCE;
use crate::count::roll::Roll;
use crate::reading::coverage::Label;
use crate::{LearnedFindings, Violation};

/// The span of a label that covers all values.
const EVERYTHING: (u64, u64) = (0, u64::MAX);

/// The labels of one quasi column, and what they mean if that is known.
pub(crate) struct QuasiLabels {
    column: String,
    meanings: Option<Meanings>,
}

/// Where the description of a column comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The private column: its type is known, and its hierarchy if it has one.
    Private,
    /// The released column: a text may be a node of a hierarchy that was not given.
    Released,
}

/// For each label, the places where it begins and ends in an order of the column's values, and whether it tells
/// something.
struct Meanings {
    spans: Vec<(u64, u64)>,
    tells: Vec<bool>,
}

/// The labels of one column in one class.
struct ClassLabels {
    first_row: u32,
    n_persons: u64,
    /// The largest number of pairwise disjoint labels that tell something; `None` if no cell does.
    disjoint: Option<u64>,
    t: f64,
    /// Whether all cells show one label that tells something.
    is_certain: bool,
}

/// What a column tells one audience.
pub(crate) struct Told {
    column: String,
    classes: Vec<ClassLabels>,
    certain: u64,
}

impl QuasiLabels {
    /// The labels of the given cells over `texts`, with the meaning that `column` gives them.
    pub(crate) fn new(cells: &CellIds<'_>, n_rows: usize, texts: &Texts, column: &Column, source: Source) -> Self {
        let meanings = Meanings::read(cells, n_rows, texts, column, source);
        QuasiLabels { column: column.name.clone(), meanings }
    }

    pub(crate) fn column(&self) -> &str {
        &self.column
    }

    pub(crate) fn is_unknown(&self) -> bool {
        self.meanings.is_none()
    }

    /// What the column's cells tell about the persons of each class; `None` if the meaning of the labels is not known.
    pub(crate) fn told(&self, classes: &Classes, cells: &CellIds<'_>, roll: &Roll<'_>) -> Option<Told> {
        let meanings = self.meanings.as_ref()?;
        let person = |row: u32| roll.persons.as_ref().map_or(row, |persons| persons.get(row as usize));
        let all: Vec<u32> = (0..roll.n_rows as u32).collect();
        let of_release = pairs(&all, cells, person);
        let shares = meanings.shares(&of_release);
        let of_class = |class: usize| {
            let rows = classes.rows(class);
            meanings.class(rows[0], &pairs(rows, cells, person), &shares)
        };
        let counted: Vec<ClassLabels> = (0..classes.len()).into_par_iter().with_min_len(64).map(of_class).collect();
        let certain: BTreeSet<u32> = counted
            .iter()
            .enumerate()
            .filter(|(_, class)| class.is_certain)
            .flat_map(|(class, _)| classes.rows(class).iter().map(|&row| person(row)))
            .collect();
        Some(Told { column: self.column.clone(), classes: counted, certain: certain.len() as u64 })
    }
}

/// Pairs of a label and a person, each once, sorted by label.
fn pairs(rows: &[u32], cells: &CellIds<'_>, person: impl Fn(u32) -> u32) -> Vec<(u32, u32)> {
    let mut pairs: Vec<(u32, u32)> = rows.iter().map(|&row| (cells.get(row as usize), person(row))).collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

/// The labels of sorted pairs, each with its number of persons.
fn counts(pairs: &[(u32, u32)]) -> impl Iterator<Item = (u32, u64)> {
    pairs.chunk_by(|a, b| a.0 == b.0).map(|run| (run[0].0, run.len() as u64))
}

impl Told {
    /// The worst over all classes.
    pub(crate) fn findings(&self) -> LearnedFindings {
        LearnedFindings {
            column: self.column.clone(),
            l: self.classes.iter().filter_map(|class| class.disjoint).min(),
            t: self.classes.iter().map(|class| class.t).fold(0.0, f64::max),
            certain: self.certain,
        }
    }

    /// The requirements that some class does not satisfy.
    pub(crate) fn unmet(&self, asked: &[&Requirement]) -> Vec<Violation> {
        asked.iter().filter_map(|requirement| self.failure(requirement)).collect()
    }

    fn failure(&self, requirement: &Requirement) -> Option<Violation> {
        let fails = |class: &&ClassLabels| match requirement {
            Requirement::DistinctL { l, .. } => class.disjoint.is_some_and(|disjoint| disjoint < u64::from(*l)),
            Requirement::TCloseness { t, .. } => class.t > t + TOLERANCE,
            // `Perspective::new` refuses these.
            Requirement::K(_)
            | Requirement::PersonK { .. }
            | Requirement::EntropyL { .. }
            | Requirement::RecursiveCL { .. }
            | Requirement::Alpha { .. }
            | Requirement::Beta { .. }
            | Requirement::EnhancedBeta { .. } => true,
        };
        let failing: Vec<&ClassLabels> = self.classes.iter().filter(fails).collect();
        let first = failing.iter().min_by_key(|class| class.first_row)?;
        let reached = if requirement.distance().is_some() {
            failing.iter().map(|class| class.t).fold(0.0, f64::max)
        } else {
            failing.iter().filter_map(|class| class.disjoint).min().unwrap_or(0) as f64
        };
        Some(Violation::Unmet {
            requirement: requirement.clone(),
            n_classes: failing.len() as u64,
            reached,
            first_row: u64::from(first.first_row) + 1,
            class_size: first.n_persons,
        })
    }
}

impl Meanings {
    fn read(cells: &CellIds<'_>, n_rows: usize, texts: &Texts, column: &Column, source: Source) -> Option<Self> {
        let labels: Vec<Label<'_>> = texts.iter().map(|text| Label::read(text, column)).collect();
        let is_read = |label: &Label<'_>| label.everything || label.node.is_some() || label.range.is_some();
        let could_be_a_node = column.hierarchy.is_none() && column.value_type == ValueType::Text;
        if source == Source::Released && (could_be_a_node || !labels.iter().all(is_read)) {
            return None;
        }
        let shows_null = (0..n_rows).any(|row| cells.get(row) == cells.null());
        if source == Source::Released && column.hierarchy.as_deref().is_some_and(|tree| may_be_whole(tree, shows_null))
        {
            return None;
        }
        let mut spans = vec![EVERYTHING; cells.n_numbers()];
        let mut tells = vec![true; cells.n_numbers()];
        let places = match column.hierarchy.as_deref() {
            Some(hierarchy) => LabelPlaces::of_nodes(hierarchy, shows_null),
            None => LabelPlaces::of_values(&labels),
        };
        // Texts that mean no value, and null, get places of their own behind all values.
        let mut beyond = places.end();
        for (id, label) in (0..).zip(&labels) {
            let number = cells.number(id) as usize;
            let (span, tells_something) = match places.find(label) {
                Some(span) => (span, span != EVERYTHING),
                None => {
                    beyond += 1;
                    ((beyond, beyond), true)
                }
            };
            (spans[number], tells[number]) = (span, tells_something);
        }
        spans[cells.null() as usize] = (beyond + 1, beyond + 1);
        let mut meanings = Meanings { spans, tells };
        if column.hierarchy.is_none() {
            let has_blank = meanings.blank_whole_ranges(cells, n_rows);
            // Released numbers and ranges may be nodes of a hierarchy that was not given. In such a hierarchy, a range
            // that covers all shown cells may still tell something, two spellings of a number may be two values, and a
            // day may stand for all timestamps of that day.
            let is_day = |text: &str| {
                column.value_type == ValueType::Timestamp
                    && Value::parse(text, ValueType::Date, &column.notation).is_some()
            };
            let could_be_nodes = has_blank || places.has_respelled(&labels) || texts.iter().any(is_day);
            if source == Source::Released && could_be_nodes {
                return None;
            }
        }
        Some(meanings)
    }

    /// Marks ranges that cover all cells of the release as telling nothing, and returns whether there are any. A single
    /// value that everybody holds does tell something.
    fn blank_whole_ranges(&mut self, cells: &CellIds<'_>, n_rows: usize) -> bool {
        let shown = (0..n_rows).map(|row| self.spans[cells.get(row) as usize]).filter(|&span| span != EVERYTHING);
        let (low, high) = shown.fold((u64::MAX, 0), |hull, span| (hull.0.min(span.0), hull.1.max(span.1)));
        let mut has_blank = false;
        for (tells, span) in self.tells.iter_mut().zip(&self.spans) {
            if span.0 < span.1 && span.0 <= low && high <= span.1 {
                *tells = false;
                has_blank |= *span != EVERYTHING;
            }
        }
        has_blank
    }

    /// The share of each label among the cells that tell something.
    fn shares(&self, of_release: &[(u32, u32)]) -> Vec<f64> {
        let mut shares = vec![0.0; self.spans.len()];
        let mut total = 0;
        for (label, count) in counts(of_release).filter(|&(label, _)| self.tells[label as usize]) {
            shares[label as usize] = count as f64;
            total += count;
        }
        shares.iter_mut().for_each(|share| *share /= (total as f64).max(1.0));
        shares
    }

    fn class(&self, first_row: u32, pairs: &[(u32, u32)], shares: &[f64]) -> ClassLabels {
        let persons: BTreeSet<u32> = pairs.iter().map(|pair| pair.1).collect();
        let told: Vec<(u32, u64)> = counts(pairs).filter(|&(label, _)| self.tells[label as usize]).collect();
        let n_told: u64 = told.iter().map(|&(_, count)| count).sum();
        let all = pairs.len() as f64;
        let share_told = n_told as f64 / all;
        let too_much =
            |&(label, count): &(u32, u64)| (count as f64 / all - share_told * shares[label as usize]).max(0.0);
        ClassLabels {
            first_row,
            n_persons: persons.len() as u64,
            disjoint: (!told.is_empty())
                .then(|| most_disjoint(told.iter().map(|&(label, _)| self.spans[label as usize]))),
            t: told.iter().map(too_much).sum(),
            is_certain: told.len() == 1 && n_told as usize == pairs.len(),
        }
    }
}

/// The largest number of spans of which no two overlap. Always taking the span that ends first, among those that begin
/// behind the last one taken, gives the largest number.
fn most_disjoint(spans: impl Iterator<Item = (u64, u64)>) -> u64 {
    let mut by_end: Vec<(u64, u64)> = spans.map(|(low, high)| (high, low)).collect();
    by_end.sort_unstable();
    let (mut n, mut last) = (0, None);
    for (high, low) in by_end {
        if last.is_none_or(|last| low > last) {
            n += 1;
            last = Some(high);
        }
    }
    n
}

/// The places of labels among the values of a column.
enum LabelPlaces<'a> {
    /// The span of each node. Nodes that cover every value have the span [`EVERYTHING`].
    OfNodes(Vec<(u64, u64)>),
    /// The distinct values in order. The first has place 1.
    OfValues(Vec<Value<'a>>),
}

impl<'a> LabelPlaces<'a> {
    /// The spans of a hierarchy's nodes. An inner node above all leaves says as much as the root, unless some cells are
    /// null, because only the root covers null.
    fn of_nodes(hierarchy: &Hierarchy, shows_null: bool) -> Self {
        let mut spans = spans_of_nodes(hierarchy);
        let mut node = hierarchy.root();
        spans[node as usize] = EVERYTHING;
        while let [only] = hierarchy.children(node)
            && !shows_null
            && !hierarchy.is_leaf(*only)
        {
            spans[*only as usize] = EVERYTHING;
            node = *only;
        }
        LabelPlaces::OfNodes(spans)
    }

    fn of_values(labels: &[Label<'a>]) -> Self {
        let mut values: Vec<Value<'a>> =
            labels.iter().filter_map(|label| label.range).flat_map(|(low, high)| [low, high]).collect();
        values.sort_unstable();
        values.dedup();
        LabelPlaces::OfValues(values)
    }

    /// Whether two labels spell the same value in two ways.
    fn has_respelled(&self, labels: &[Label<'a>]) -> bool {
        let mut values: Vec<(u64, u64)> = labels.iter().filter_map(|label| self.find(label)).collect();
        values.retain(|span| span.0 == span.1);
        let n_labels = values.len();
        values.sort_unstable();
        values.dedup();
        values.len() < n_labels
    }

    /// The place behind which there are no values.
    fn end(&self) -> u64 {
        match self {
            LabelPlaces::OfNodes(spans) => spans.len() as u64,
            LabelPlaces::OfValues(values) => values.len() as u64,
        }
    }

    fn find(&self, label: &Label<'a>) -> Option<(u64, u64)> {
        if label.everything {
            return Some(EVERYTHING);
        }
        match self {
            LabelPlaces::OfNodes(spans) => label.node.map(|node| spans[node as usize]),
            LabelPlaces::OfValues(values) => {
                let place = |bound: Value<'a>| values.partition_point(|value| *value < bound) as u64 + 1;
                label.range.map(|(low, high)| (place(low), place(high)))
            }
        }
    }
}

/// Whether one node below the root covers all shown labels. In a private column that node covers everything if no value
/// is outside of it. In a released column this can't be known, because persons with values outside of it may have been
/// left out.
fn may_be_whole(tree: &Hierarchy, shows_null: bool) -> bool {
    match tree.children(tree.root()) {
        [only] => !shows_null && !tree.is_leaf(*only),
        _ => false,
    }
}

/// The span of each node: the places of the node and of all nodes below it, if nodes are ordered by their paths from
/// the root.
fn spans_of_nodes(hierarchy: &Hierarchy) -> Vec<(u64, u64)> {
    let n_nodes = hierarchy.n_nodes();
    let mut n_below = vec![0u64; n_nodes];
    let mut paths: Vec<(Vec<u32>, u32)> = Vec::with_capacity(n_nodes);
    for node in 0..n_nodes as u32 {
        let mut path: Vec<u32> = hierarchy.path(node).collect();
        path.iter().for_each(|&above| n_below[above as usize] += 1);
        path.reverse();
        paths.push((path, node));
    }
    paths.sort_unstable();
    let mut spans = vec![(0, 0); n_nodes];
    for (place, (_, node)) in (1..).zip(&paths) {
        spans[*node as usize] = (place, place + n_below[*node as usize] - 1);
    }
    spans
}
