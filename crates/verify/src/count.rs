//! Counting: classes, risk, and every requirement of every class.
//!
//! # Guarantee
//! The result does not depend on the number of threads, because threads merge only sums of whole numbers, minima and
//! maxima.
//! # Cost        O(n log n) for grouping, then time proportional to the size of each class

pub(crate) mod audiences;
pub(crate) mod cells;
pub(crate) mod distance;
pub(crate) mod grouping;
pub(crate) mod learned;
pub(crate) mod loss;
pub(crate) mod requirement;
pub(crate) mod roll;
mod spread;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use kohort_model::{Distance, Requirement};
use rayon::prelude::*;

use crate::count::cells::CellIds;
use crate::count::distance::{Distribution, Held, HierarchicalDistance, OrderedDistance, equal_distance};
use crate::count::grouping::Classes;
use crate::count::requirement::{
    CountedClass, CountedValues, Distances, Worst, diversity, entropy, gains_stay_below_surprise, judge, largest_gain,
    largest_share, recursive,
};
use crate::count::roll::{Roll, Sensitive, Shares};
use crate::{Counted, Findings, SensitiveFindings, Violation, Violations};

/// How many of the smallest class sizes are shown to people.
pub(crate) const N_SMALLEST: usize = 10;

/// Groups rows by their quasi cells, and counts the classes.
///
/// # Errors
/// If a requirement can't be evaluated. A requirement that fails is a finding.
///
/// # Panics
/// If the roll has no rows.
pub(crate) fn count(roll: &Roll<'_>, requirements: &[Requirement]) -> Result<Findings, Violations> {
    let classes = Classes::group(&roll.quasi.iter().collect::<Vec<_>>(), roll.n_rows);
    count_classes(roll, requirements, &classes)
}

/// Counts the given classes.
///
/// # Errors
/// If a requirement can't be evaluated. A requirement that fails is a finding.
///
/// # Panics
/// If the roll has no rows.
pub(crate) fn count_classes(
    roll: &Roll<'_>,
    requirements: &[Requirement],
    classes: &Classes,
) -> Result<Findings, Violations> {
    assert!(roll.n_rows > 0, "callers refuse tables without rows");
    let distances = distances(roll, roll.persons.as_ref(), requirements)?;
    let targets = targets(roll, requirements)?;
    let sizes = class_sizes(classes, roll.persons.as_ref());
    let tally = ClassCounter { roll, requirements, targets, distances, classes, sizes: &sizes }.tally();
    let risk = PersonRisk::of(classes, &sizes, roll);
    let k = sizes.iter().copied().min().map_or(0, u64::from);
    Ok(Findings {
        counted: if roll.persons.is_some() { Counted::Persons } else { Counted::Rows },
        persons: risk.n_persons,
        classes: classes.len() as u64,
        k,
        unique_persons: risk.n_unique,
        class_sizes: all_sizes(&sizes),
        highest_risk: 1.0 / k as f64,
        average_risk: risk.average,
        unmet: tally.unmet(requirements),
        sensitive: tally.columns,
        ..Findings::uncounted(roll.n_rows as u64)
    })
}

/// For each sensitive column, the distribution of values in the whole table and the distances that requirements ask
/// for. The distribution is counted in `persons`, or in rows if there are none.
pub(crate) fn distances<'a>(
    roll: &'a Roll<'a>,
    persons: Option<&CellIds<'_>>,
    requirements: &[Requirement],
) -> Result<Vec<Distances<'a>>, Violations> {
    let mut violations = Vec::new();
    let mut all = Vec::with_capacity(roll.sensitive.len());
    for sensitive in &roll.sensitive {
        let Sensitive { column, texts, values, whole } = sensitive;
        let counted_once = match roll.shares {
            Shares::Pairs => persons,
            Shares::Rows | Shares::Hidden => None,
        };
        let reference = match whole {
            None => reference(&values.cells, counted_once, roll.n_rows),
            Some(counts) => reference_of_whole(&values.cells, counts),
        };
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

/// How many rows of a whole table hold each value, by the number of nulls and then of rows that hold each text.
fn reference_of_whole(values: &CellIds<'_>, of_texts: &[u64]) -> Distribution {
    let mut counts = vec![0u64; values.n_numbers()];
    for (id, count) in of_texts.iter().enumerate() {
        let number = if id == 0 { values.null() } else { values.number(id as u32 - 1) };
        counts[number as usize] += count;
    }
    let total = counts.iter().sum();
    Distribution { counts, total }
}

/// How many persons hold each value. A person who holds a value in several rows counts once.
fn reference(values: &CellIds<'_>, persons: Option<&CellIds<'_>>, n_rows: usize) -> Distribution {
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
    Distribution { counts, total }
}

/// For each requirement, the position of its column among the sensitive columns of the roll, or among its columns of
/// own k.
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

/// The number of persons in each class.
pub(crate) fn class_sizes(classes: &Classes, persons: Option<&CellIds<'_>>) -> Vec<u32> {
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

/// The sizes that occur, ascending, each with the number of classes of that size.
pub(crate) fn all_sizes(sizes: &[u32]) -> Vec<(u64, u64)> {
    let mut n_classes: BTreeMap<u32, u64> = BTreeMap::new();
    for &size in sizes {
        *n_classes.entry(size).or_default() += 1;
    }
    n_classes.into_iter().map(|(size, n)| (u64::from(size), n)).collect()
}

/// The risk of all persons.
struct PersonRisk {
    n_persons: u64,
    n_unique: u64,
    average: f64,
}

impl PersonRisk {
    fn of(classes: &Classes, sizes: &[u32], roll: &Roll<'_>) -> Self {
        let Some(persons) = &roll.persons else {
            let n_unique = sizes.iter().filter(|&&size| size == 1).count() as u64;
            let average = classes.len() as f64 / roll.n_rows as f64;
            return PersonRisk { n_persons: roll.n_rows as u64, n_unique, average };
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
        PersonRisk { n_persons, n_unique, average: sum / n_persons as f64 }
    }
}

/// The worst figures over some classes, and the requirements that fail in them.
struct Tally {
    /// One entry per sensitive column; empty before the first class is counted.
    columns: Vec<SensitiveFindings>,
    /// One entry per requirement.
    failures: Vec<Option<Failure>>,
}

/// The classes that fail one requirement.
#[derive(Clone, Copy)]
struct Failure {
    n_classes: u64,
    reached: f64,
    first_row: u32,
    class_size: u32,
}

/// Buffers that a thread reuses for each class.
pub(crate) struct Scratch {
    pairs: Vec<(u32, u32)>,
    values: Vec<Values>,
}

/// The values of one column in one class.
#[derive(Default)]
struct Values {
    /// The values whose shares are compared.
    held: Held,
    /// Each value with the number of persons who hold it.
    holders: Held,
}

/// Everything that is needed to judge the classes of a roll.
struct ClassCounter<'a> {
    roll: &'a Roll<'a>,
    requirements: &'a [Requirement],
    /// The column of each requirement, see [`targets`].
    targets: Vec<usize>,
    /// One entry per sensitive column.
    distances: Vec<Distances<'a>>,
    classes: &'a Classes,
    /// The number of persons in each class.
    sizes: &'a [u32],
}

impl ClassCounter<'_> {
    fn tally(&self) -> Tally {
        let ClassCounter { roll, requirements, targets, distances, classes, sizes } = self;
        let n_columns = roll.sensitive.len();
        let recursive_ls: Vec<Option<u32>> =
            roll.sensitive.iter().map(|sensitive| recursive_l(&sensitive.column.name, requirements)).collect();
        let start = || (Tally::new(requirements.len()), Scratch::new(n_columns));
        let person_of = |row: u32| roll.persons.as_ref().map_or(row, |persons| persons.get(row as usize));
        let step = |(mut tally, mut scratch): (Tally, Scratch), class: usize| {
            let rows = classes.rows(class);
            let n_persons = u64::from(sizes[class]);
            for (column, sensitive) in roll.sensitive.iter().enumerate() {
                scratch.count_values(column, &sensitive.values.cells, roll.shares, rows, person_of);
                let values = scratch.counted(column, roll.shares, &distances[column]);
                let found = SensitiveFindings::of_class(&values, recursive_ls[column], n_persons);
                match tally.columns.get_mut(column) {
                    Some(worst) => worst.meet(&found),
                    None => tally.columns.push(found),
                }
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
                let sensitive = (target < n_columns).then(|| scratch.counted(target, roll.shares, &distances[target]));
                let verdict = judge(requirement, &CountedClass { n_persons, own_k, sensitive });
                if !verdict.holds {
                    let class_size = sizes[class];
                    let failure = Failure { n_classes: 1, reached: verdict.reached, first_row: rows[0], class_size };
                    let failures = &mut tally.failures[position];
                    *failures = merge(*failures, Some(failure), Worst::of(requirement));
                }
            }
            (tally, scratch)
        };
        let mut tally = (0..classes.len())
            .into_par_iter()
            .with_min_len(64)
            .fold(start, step)
            .map(|(tally, _)| tally)
            .reduce(|| Tally::new(requirements.len()), |a, b| a.merge(b, requirements));
        for (found, sensitive) in tally.columns.iter_mut().zip(&roll.sensitive) {
            found.column.clone_from(&sensitive.column.name);
        }
        tally
    }
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
    /// Buffers for `n_columns` sensitive columns.
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

    /// The values of a column in the class that was counted last.
    pub(crate) fn counted<'a>(
        &'a self,
        column: usize,
        shares: Shares,
        distances: &'a Distances<'a>,
    ) -> CountedValues<'a> {
        let Values { held, holders } = &self.values[column];
        let held = match shares {
            Shares::Pairs | Shares::Hidden => holders,
            Shares::Rows => held,
        };
        CountedValues { held, holders, shares, distances }
    }
}

impl SensitiveFindings {
    /// What one class reaches. The name of the column is left empty, because it would be allocated for each class.
    fn of_class(values: &CountedValues<'_>, recursive_l: Option<u32>, n_persons: u64) -> Self {
        let CountedValues { held, holders, distances, .. } = *values;
        let ratio = |l: u32| {
            let (first, rest) = recursive(held, l);
            first as f64 / rest as f64
        };
        let beta = largest_gain(held, &distances.reference).max(0.0);
        SensitiveFindings {
            column: String::new(),
            l: diversity(values, n_persons),
            entropy_l: entropy(held).exp(),
            recursive_c: recursive_l.map(ratio),
            t: equal_distance(held, &distances.reference),
            t_ordered: distances.ordered.as_ref().map(|ordered| ordered.of(held)),
            t_hierarchical: distances.hierarchical.as_ref().map(|hierarchical| hierarchical.of(held)),
            alpha: largest_share(holders, n_persons),
            beta,
            enhanced_beta: gains_stay_below_surprise(held, &distances.reference).then_some(beta),
        }
    }

    /// Keeps the worse of the two findings in each measure.
    fn meet(&mut self, other: &SensitiveFindings) {
        let larger = |a: Option<f64>, b: Option<f64>| Some(a?.max(b?));
        self.l = self.l.min(other.l);
        self.entropy_l = self.entropy_l.min(other.entropy_l);
        self.recursive_c = larger(self.recursive_c, other.recursive_c);
        self.t = self.t.max(other.t);
        self.t_ordered = larger(self.t_ordered, other.t_ordered);
        self.t_hierarchical = larger(self.t_hierarchical, other.t_hierarchical);
        self.alpha = self.alpha.max(other.alpha);
        self.beta = self.beta.max(other.beta);
        self.enhanced_beta = larger(self.enhanced_beta, other.enhanced_beta);
    }
}

/// Keeps the worse of two lists of findings on the same columns. An empty list has not counted anything yet.
fn meet_all(worst: &mut Vec<SensitiveFindings>, other: Vec<SensitiveFindings>) {
    if worst.is_empty() {
        *worst = other;
    } else {
        worst.iter_mut().zip(&other).for_each(|(worst, other)| worst.meet(other));
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
    fn new(n_requirements: usize) -> Self {
        Tally { columns: Vec::new(), failures: vec![None; n_requirements] }
    }

    fn merge(mut self, other: Tally, requirements: &[Requirement]) -> Self {
        meet_all(&mut self.columns, other.columns);
        for (position, requirement) in requirements.iter().enumerate() {
            let failures = &mut self.failures[position];
            *failures = merge(*failures, other.failures[position], Worst::of(requirement));
        }
        self
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
        requirements.iter().zip(&self.failures).filter_map(unmet).collect()
    }
}
