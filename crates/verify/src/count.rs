//! Counting: classes, risk, and every requirement of every class.
//!
//! # Guarantee
//! The result does not depend on the number of threads: all that threads merge are sums of whole numbers,
//! minima and maxima.
//! # Cost        O(n log n) for grouping, then each class in its own size

pub(crate) mod audiences;
pub(crate) mod cells;
pub(crate) mod distance;
pub(crate) mod grouping;
pub(crate) mod learned;
pub(crate) mod loss;
pub(crate) mod requirement;
pub(crate) mod roll;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use kohort_model::{Distance, Requirement};
use rayon::prelude::*;

use crate::count::cells::CellIds;
use crate::count::distance::{Held, HierarchicalDistance, OrderedDistance, Reference, equal_distance};
use crate::count::grouping::Classes;
use crate::count::requirement::{
    ClassView, Distances, SensitiveView, Worst, diversity, entropy, gains_stay_below_surprise, judge, largest_gain,
    largest_share, recursive,
};
use crate::count::roll::{Roll, Sensitive, Shares};
use crate::{Counted, Findings, SensitiveFindings, Violation, Violations};

/// How many of the smallest class sizes are listed.
pub(crate) const N_SMALLEST: usize = 10;

/// Counts everything.
///
/// # Errors
/// Where a requirement can't be evaluated. A requirement that fails is a finding.
///
/// # Panics
/// Where the roll has no rows.
pub(crate) fn count(roll: &Roll<'_>, requirements: &[Requirement]) -> Result<Findings, Violations> {
    let classes = Classes::group(&roll.quasi.iter().collect::<Vec<_>>(), roll.n_rows);
    count_classes(roll, requirements, &classes)
}

/// Counts everything in classes that are known.
///
/// # Errors
/// Where a requirement can't be evaluated. A requirement that fails is a finding.
///
/// # Panics
/// Where the roll has no rows.
pub(crate) fn count_classes(
    roll: &Roll<'_>,
    requirements: &[Requirement],
    classes: &Classes,
) -> Result<Findings, Violations> {
    assert!(roll.n_rows > 0, "callers refuse tables without rows");
    let distances = distances(roll, roll.persons.as_ref(), requirements)?;
    let targets = targets(roll, requirements)?;
    let sizes = class_sizes(classes, roll.persons.as_ref());
    let tally = tally(roll, requirements, &targets, &distances, classes, &sizes);
    let risk = Risk::of(classes, &sizes, roll);
    let k = sizes.iter().copied().min().map_or(0, u64::from);
    Ok(Findings {
        counted: if roll.persons.is_some() { Counted::Persons } else { Counted::Rows },
        rows: roll.n_rows as u64,
        persons: risk.n_persons,
        classes: classes.len() as u64,
        k,
        unique_persons: risk.n_unique,
        smallest_classes: smallest(&sizes),
        highest_risk: 1.0 / k as f64,
        average_risk: risk.average,
        sensitive: tally.sensitive(roll, requirements),
        unmet: tally.unmet(requirements),
        skipped: Vec::new(),
        suppressed: None,
        tables: Vec::new(),
        audiences: Vec::new(),
        coalitions: Vec::new(),
        collusion_k: None,
        joined: None,
        loss: None,
    })
}

/// Per sensitive column the whole table's distribution, counted in these persons or else in rows, and the distances that
/// requirements ask for.
pub(crate) fn distances<'a>(
    roll: &'a Roll<'a>,
    persons: Option<&CellIds<'_>>,
    requirements: &[Requirement],
) -> Result<Vec<Distances<'a>>, Violations> {
    let mut violations = Vec::new();
    let mut all = Vec::with_capacity(roll.sensitive.len());
    for sensitive in &roll.sensitive {
        let Sensitive { column, texts, values } = sensitive;
        let counted_once = match roll.shares {
            Shares::Pairs => persons,
            Shares::Rows | Shares::Hidden => None,
        };
        let reference = reference(&values.cells, counted_once, roll.n_rows);
        let asks = |asked: Distance| {
            let of_column = |requirement: &&Requirement| requirement.sensitive_column() == Some(&column.name);
            requirements.iter().filter(of_column).any(|requirement| requirement.distance() == Some(asked))
        };
        let ordered = asks(Distance::Ordered).then(|| OrderedDistance::new(values, texts, column, &reference));
        let hierarchical = asks(Distance::Hierarchical)
            .then(|| HierarchicalDistance::new(values, texts, column, &reference))
            .transpose();
        match hierarchical {
            Ok(hierarchical) => all.push(Distances { reference, ordered, hierarchical }),
            Err(violation) => violations.push(violation),
        }
    }
    if violations.is_empty() { Ok(all) } else { Err(Violations(violations)) }
}

/// How many persons hold each value, each pair of person and value counting once.
fn reference(values: &CellIds<'_>, persons: Option<&CellIds<'_>>, n_rows: usize) -> Reference {
    let mut counts = vec![0u64; values.n_numbers()];
    match persons {
        None => (0..n_rows).for_each(|row| counts[values.get(row) as usize] += 1),
        Some(persons) => {
            let mut pairs: Vec<(u32, u32)> = (0..n_rows)
                .into_par_iter()
                .with_min_len(1 << 12)
                .map(|row| (persons.get(row), values.get(row)))
                .collect();
            pairs.par_sort_unstable();
            pairs.dedup();
            pairs.iter().for_each(|&(_, value)| counts[value as usize] += 1);
        }
    }
    let total = counts.iter().sum();
    Reference { counts, total }
}

/// Per requirement the position of what it speaks of, in the roll's sensitive columns or own k.
pub(crate) fn targets(roll: &Roll<'_>, requirements: &[Requirement]) -> Result<Vec<usize>, Violations> {
    let mut violations = Vec::new();
    let mut targets = Vec::with_capacity(requirements.len());
    for requirement in requirements {
        let found = match requirement {
            Requirement::K(_) => Some(0),
            Requirement::PersonK { column } => roll.own_k.iter().position(|own_k| own_k.column == *column),
            Requirement::DistinctL { column, .. }
            | Requirement::EntropyL { column, .. }
            | Requirement::RecursiveCL { column, .. }
            | Requirement::TCloseness { column, .. }
            | Requirement::Alpha { column, .. }
            | Requirement::Beta { column, .. }
            | Requirement::EnhancedBeta { column, .. } => {
                roll.sensitive.iter().position(|sensitive| sensitive.column.name == *column)
            }
        };
        match (found, requirement.column()) {
            (Some(target), _) => targets.push(target),
            (None, column) => {
                let column = column.unwrap_or_default().to_owned();
                violations.push(Violation::UnknownColumn { column });
            }
        }
    }
    if violations.is_empty() { Ok(targets) } else { Err(Violations(violations)) }
}

/// Persons per class.
fn class_sizes(classes: &Classes, persons: Option<&CellIds<'_>>) -> Vec<u32> {
    let n_persons = |members: &mut Vec<u32>, class: usize| {
        let rows = classes.rows(class);
        let Some(persons) = persons else {
            return rows.len() as u32;
        };
        members.clear();
        members.extend(rows.iter().map(|&row| persons.get(row as usize)));
        members.sort_unstable();
        members.dedup();
        members.len() as u32
    };
    (0..classes.len()).into_par_iter().with_min_len(256).map_init(Vec::new, n_persons).collect()
}

/// The smallest sizes that occur, with how many classes have them.
pub(crate) fn smallest(sizes: &[u32]) -> Vec<(u64, u64)> {
    let mut n_classes: BTreeMap<u32, u64> = BTreeMap::new();
    for &size in sizes {
        *n_classes.entry(size).or_default() += 1;
    }
    n_classes.into_iter().take(N_SMALLEST).map(|(size, n)| (u64::from(size), n)).collect()
}

/// Risk per person.
struct Risk {
    n_persons: u64,
    n_unique: u64,
    average: f64,
}

impl Risk {
    fn of(classes: &Classes, sizes: &[u32], roll: &Roll<'_>) -> Self {
        let Some(persons) = &roll.persons else {
            let n_unique = sizes.iter().filter(|&&size| size == 1).count() as u64;
            let average = classes.len() as f64 / roll.n_rows as f64;
            return Risk { n_persons: roll.n_rows as u64, n_unique, average };
        };
        let smallest: Vec<AtomicU32> = (0..persons.n_numbers()).map(|_| AtomicU32::new(u32::MAX)).collect();
        (0..classes.len()).into_par_iter().with_min_len(256).for_each(|class| {
            for &row in classes.rows(class) {
                smallest[persons.get(row as usize) as usize].fetch_min(sizes[class], Ordering::Relaxed);
            }
        });
        let (mut n_persons, mut n_unique, mut sum) = (0, 0, 0.0);
        for size in smallest.into_iter().map(AtomicU32::into_inner).filter(|&size| size != u32::MAX) {
            n_persons += 1;
            n_unique += u64::from(size == 1);
            sum += 1.0 / f64::from(size);
        }
        Risk { n_persons, n_unique, average: sum / n_persons as f64 }
    }
}

/// The worst over classes, and what fails.
struct Tally {
    columns: Vec<ColumnTally>,
    requirements: Vec<Option<Failure>>,
}

struct ColumnTally {
    l: u64,
    entropy: f64,
    recursive_c: f64,
    t: f64,
    t_ordered: f64,
    t_hierarchical: f64,
    alpha: f64,
    beta: f64,
    n_beyond_surprise: u64,
}

/// Classes that fail one requirement.
#[derive(Clone, Copy)]
struct Failure {
    n_classes: u64,
    reached: f64,
    first_row: u32,
    class_size: u32,
}

/// Lists that a thread fills anew for each class.
pub(crate) struct Scratch {
    pairs: Vec<(u32, u32)>,
    values: Vec<Values>,
}

/// The values of one column in one class.
#[derive(Default)]
struct Values {
    /// Those whose shares count.
    held: Held,
    /// Each with the persons who hold it.
    holders: Held,
}

fn tally(
    roll: &Roll<'_>,
    requirements: &[Requirement],
    targets: &[usize],
    distances: &[Distances<'_>],
    classes: &Classes,
    sizes: &[u32],
) -> Tally {
    let n_columns = roll.sensitive.len();
    let recursive_ls: Vec<Option<u32>> =
        roll.sensitive.iter().map(|sensitive| recursive_l(&sensitive.column.name, requirements)).collect();
    let start = || (Tally::new(n_columns, requirements.len()), Scratch::new(n_columns));
    let person_of = |row: u32| roll.persons.as_ref().map_or(row, |persons| persons.get(row as usize));
    let step = |(mut tally, mut scratch): (Tally, Scratch), class: usize| {
        let rows = classes.rows(class);
        for (column, sensitive) in roll.sensitive.iter().enumerate() {
            scratch.count_values(column, &sensitive.values.cells, roll.shares, rows, person_of);
            let view = scratch.view(column, roll.shares, &distances[column]);
            tally.columns[column].meet(&view, recursive_ls[column], u64::from(sizes[class]));
        }
        for (position, requirement) in requirements.iter().enumerate() {
            let target = targets[position];
            let own_k = match requirement.own_k_column() {
                Some(_) => {
                    let own_k = &roll.own_k[target];
                    rows.iter().map(|&row| own_k.get(row as usize, roll.persons.as_ref())).max().unwrap_or(0)
                }
                None => 0,
            };
            let sensitive = (target < n_columns).then(|| scratch.view(target, roll.shares, &distances[target]));
            let verdict = judge(requirement, &ClassView { n_persons: u64::from(sizes[class]), own_k, sensitive });
            if !verdict.holds {
                let failure =
                    Failure { n_classes: 1, reached: verdict.reached, first_row: rows[0], class_size: sizes[class] };
                tally.requirements[position] =
                    merge(tally.requirements[position], Some(failure), Worst::of(requirement));
            }
        }
        (tally, scratch)
    };
    (0..classes.len())
        .into_par_iter()
        .with_min_len(64)
        .fold(start, step)
        .map(|(tally, _)| tally)
        .reduce(|| Tally::new(n_columns, requirements.len()), |a, b| a.merge(&b, requirements))
}

/// The `l` of the first recursive requirement on a column.
fn recursive_l(name: &str, requirements: &[Requirement]) -> Option<u32> {
    requirements.iter().find_map(|requirement| {
        let asked = match requirement {
            Requirement::RecursiveCL { l, .. } => Some(*l),
            Requirement::K(_)
            | Requirement::PersonK { .. }
            | Requirement::DistinctL { .. }
            | Requirement::EntropyL { .. }
            | Requirement::TCloseness { .. }
            | Requirement::Alpha { .. }
            | Requirement::Beta { .. }
            | Requirement::EnhancedBeta { .. } => None,
        };
        asked.filter(|_| requirement.sensitive_column() == Some(name))
    })
}

impl Scratch {
    /// For so many sensitive columns.
    pub(crate) fn new(n_columns: usize) -> Self {
        Scratch { pairs: Vec::new(), values: (0..n_columns).map(|_| Values::default()).collect() }
    }

    /// Counts the values of one column in the rows of one class.
    pub(crate) fn count_values(
        &mut self,
        column: usize,
        values: &CellIds<'_>,
        shares: Shares,
        rows: &[u32],
        person_of: impl Fn(u32) -> u32,
    ) {
        let Values { held, holders } = &mut self.values[column];
        self.pairs.clear();
        self.pairs.extend(rows.iter().map(|&row| (values.get(row as usize), person_of(row))));
        self.pairs.sort_unstable();
        if shares == Shares::Rows {
            held.refill(self.pairs.iter().map(|&(value, _)| value));
        }
        self.pairs.dedup();
        holders.refill(self.pairs.iter().map(|&(value, _)| value));
    }

    /// What was counted last of a column.
    pub(crate) fn view<'a>(&'a self, column: usize, shares: Shares, distances: &'a Distances<'a>) -> SensitiveView<'a> {
        let Values { held, holders } = &self.values[column];
        let held = match shares {
            Shares::Pairs | Shares::Hidden => holders,
            Shares::Rows => held,
        };
        SensitiveView { held, holders, shares, distances }
    }
}

impl ColumnTally {
    /// Takes in one class.
    fn meet(&mut self, view: &SensitiveView<'_>, recursive_l: Option<u32>, n_persons: u64) {
        let SensitiveView { held, holders, distances, .. } = *view;
        self.l = self.l.min(diversity(view, n_persons));
        self.entropy = self.entropy.min(entropy(held));
        if let Some(l) = recursive_l {
            let (first, rest) = recursive(held, l);
            self.recursive_c = self.recursive_c.max(first as f64 / rest as f64);
        }
        self.t = self.t.max(equal_distance(held, &distances.reference));
        if let Some(ordered) = &distances.ordered {
            self.t_ordered = self.t_ordered.max(ordered.of(held));
        }
        if let Some(hierarchical) = &distances.hierarchical {
            self.t_hierarchical = self.t_hierarchical.max(hierarchical.of(held));
        }
        self.alpha = self.alpha.max(largest_share(holders, n_persons));
        self.beta = self.beta.max(largest_gain(held, &distances.reference));
        self.n_beyond_surprise += u64::from(!gains_stay_below_surprise(held, &distances.reference));
    }

    fn merge(&mut self, other: &ColumnTally) {
        self.l = self.l.min(other.l);
        self.entropy = self.entropy.min(other.entropy);
        self.recursive_c = self.recursive_c.max(other.recursive_c);
        self.t = self.t.max(other.t);
        self.t_ordered = self.t_ordered.max(other.t_ordered);
        self.t_hierarchical = self.t_hierarchical.max(other.t_hierarchical);
        self.alpha = self.alpha.max(other.alpha);
        self.beta = self.beta.max(other.beta);
        self.n_beyond_surprise += other.n_beyond_surprise;
    }
}

fn merge(a: Option<Failure>, b: Option<Failure>, worst: Worst) -> Option<Failure> {
    let (Some(a), Some(b)) = (a, b) else {
        return a.or(b);
    };
    let first = if a.first_row <= b.first_row { a } else { b };
    Some(Failure { n_classes: a.n_classes + b.n_classes, reached: worst.pick(a.reached, b.reached), ..first })
}

impl Tally {
    fn new(n_columns: usize, n_requirements: usize) -> Self {
        let column = || ColumnTally {
            l: u64::MAX,
            entropy: f64::INFINITY,
            recursive_c: 0.0,
            t: 0.0,
            t_ordered: 0.0,
            t_hierarchical: 0.0,
            alpha: 0.0,
            beta: 0.0,
            n_beyond_surprise: 0,
        };
        Tally { columns: (0..n_columns).map(|_| column()).collect(), requirements: vec![None; n_requirements] }
    }

    fn merge(mut self, other: &Tally, requirements: &[Requirement]) -> Self {
        for (mine, others) in self.columns.iter_mut().zip(&other.columns) {
            mine.merge(others);
        }
        for (position, requirement) in requirements.iter().enumerate() {
            let merged = merge(self.requirements[position], other.requirements[position], Worst::of(requirement));
            self.requirements[position] = merged;
        }
        self
    }

    fn sensitive(&self, roll: &Roll<'_>, requirements: &[Requirement]) -> Vec<SensitiveFindings> {
        let asked = |name: &str, asked: Distance| {
            let of_column = |requirement: &&Requirement| requirement.sensitive_column() == Some(name);
            requirements.iter().filter(of_column).any(|requirement| requirement.distance() == Some(asked))
        };
        let findings = |(sensitive, tally): (&Sensitive<'_>, &ColumnTally)| {
            let name = &sensitive.column.name;
            SensitiveFindings {
                column: name.clone(),
                l: tally.l,
                entropy_l: tally.entropy.exp(),
                recursive_c: recursive_l(name, requirements).map(|_| tally.recursive_c),
                t: tally.t,
                t_ordered: asked(name, Distance::Ordered).then_some(tally.t_ordered),
                t_hierarchical: asked(name, Distance::Hierarchical).then_some(tally.t_hierarchical),
                alpha: tally.alpha,
                beta: tally.beta,
                enhanced_beta: (tally.n_beyond_surprise == 0).then_some(tally.beta),
            }
        };
        roll.sensitive.iter().zip(&self.columns).map(findings).collect()
    }

    fn unmet(&self, requirements: &[Requirement]) -> Vec<Violation> {
        let unmet = |(requirement, failure): (&Requirement, &Option<Failure>)| {
            failure.map(|failure| Violation::Unmet {
                requirement: requirement.clone(),
                n_classes: failure.n_classes,
                reached: failure.reached,
                first_row: u64::from(failure.first_row) + 1,
                class_size: u64::from(failure.class_size),
            })
        };
        requirements.iter().zip(&self.requirements).filter_map(unmet).collect()
    }
}
