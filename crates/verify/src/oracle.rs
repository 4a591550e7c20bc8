//! A second verifier for tests, as naive as possible: it compares every pair of rows and spells out every definition.

use std::collections::{BTreeMap, BTreeSet};

use kohort_model::{Column, Distance, Hierarchy, Requirement, Table, ValueType};

/// Counts a small table by brute force.
pub(crate) struct Naive<'a> {
    table: &'a Table,
    quasi: &'a [usize],
}

/// A sensitive value: its text, or its number if the column holds numbers.
type Held = Option<String>;

impl<'a> Naive<'a> {
    pub(crate) fn new(table: &'a Table, quasi: &'a [usize]) -> Self {
        Naive { table, quasi }
    }

    fn person(&self, row: usize) -> String {
        match self.table.person_column() {
            Some(column) => column.cell(row).unwrap().to_owned(),
            None => format!("row {row}"),
        }
    }

    fn look_alike(&self, a: usize, b: usize) -> bool {
        self.quasi.iter().all(|&column| self.table.columns[column].cell(a) == self.table.columns[column].cell(b))
    }

    fn class(&self, row: usize) -> Vec<usize> {
        (0..self.table.n_rows).filter(|&other| self.look_alike(row, other)).collect()
    }

    fn persons(&self, rows: &[usize]) -> BTreeSet<String> {
        rows.iter().map(|&row| self.person(row)).collect()
    }

    fn all(&self) -> Vec<usize> {
        (0..self.table.n_rows).collect()
    }

    pub(crate) fn size(&self, row: usize) -> usize {
        self.persons(&self.class(row)).len()
    }

    pub(crate) fn n_persons(&self) -> usize {
        self.persons(&self.all()).len()
    }

    pub(crate) fn n_classes(&self) -> usize {
        self.all().iter().filter(|&&row| self.class(row)[0] == row).count()
    }

    pub(crate) fn k(&self) -> usize {
        self.all().iter().map(|&row| self.size(row)).min().unwrap()
    }

    fn worst_size_of(&self, person: &str) -> usize {
        self.all().iter().filter(|&&row| self.person(row) == person).map(|&row| self.size(row)).min().unwrap()
    }

    pub(crate) fn n_unique(&self) -> usize {
        self.persons(&self.all()).iter().filter(|person| self.worst_size_of(person) == 1).count()
    }

    pub(crate) fn average_risk(&self) -> f64 {
        let persons = self.persons(&self.all());
        persons.iter().map(|person| 1.0 / self.worst_size_of(person) as f64).sum::<f64>() / persons.len() as f64
    }

    fn value(column: &Column, row: usize) -> Held {
        let text = column.cell(row)?;
        match column.value_type {
            ValueType::Integer if column.hierarchy.is_none() => Some(text.parse::<i64>().unwrap().to_string()),
            _ => Some(text.to_owned()),
        }
    }

    fn shares(&self, column: &Column, rows: &[usize]) -> (BTreeMap<Held, usize>, BTreeMap<Held, f64>) {
        let pairs: BTreeSet<(String, Held)> =
            rows.iter().map(|&row| (self.person(row), Self::value(column, row))).collect();
        let mut counts = BTreeMap::new();
        for (_, value) in &pairs {
            *counts.entry(value.clone()).or_insert(0) += 1;
        }
        let shares = counts.iter().map(|(value, &n)| (value.clone(), n as f64 / pairs.len() as f64)).collect();
        (counts, shares)
    }

    pub(crate) fn t(&self, column: &Column, row: usize, distance: Distance) -> f64 {
        let (_, whole) = self.shares(column, &self.all());
        let (_, class) = self.shares(column, &self.class(row));
        let mut values: Vec<Held> = whole.keys().cloned().collect();
        values.sort_by_key(|value| {
            let number = match column.value_type {
                ValueType::Integer => value.as_ref().map_or(0, |text| text.parse::<i64>().unwrap()),
                _ => 0,
            };
            (value.is_none(), number, value.clone())
        });
        let class: Vec<f64> = values.iter().map(|value| class.get(value).copied().unwrap_or(0.0)).collect();
        let target: Vec<f64> = values.iter().map(|value| whole[value]).collect();
        transport(&class, &target, |a, b| match distance {
            _ if a == b => 0.0,
            Distance::Equal => 1.0,
            Distance::Ordered => a.abs_diff(b) as f64 / (values.len() - 1) as f64,
            Distance::Hierarchical => match (&values[a], &values[b]) {
                (Some(a), Some(b)) => tree_distance(column.hierarchy.as_ref().unwrap(), a, b),
                _ => 1.0,
            },
        })
    }

    /// Whether the class of this row satisfies a requirement.
    pub(crate) fn holds(&self, requirement: &Requirement, row: usize) -> bool {
        let n = self.size(row) as f64;
        let near = 1e-9;
        let column = requirement.column().map(|name| self.table.column(name).unwrap());
        let counted = |row: usize| self.shares(column.unwrap(), &self.class(row));
        let gains = || {
            let (_, whole) = self.shares(column.unwrap(), &self.all());
            let (_, class) = counted(row);
            let gain = |(value, p): (&Held, &f64)| (*p, (class.get(value).copied().unwrap_or(0.0) - p) / p);
            whole.iter().map(gain).collect::<Vec<_>>()
        };
        match requirement {
            Requirement::K(k) => n >= f64::from(*k),
            Requirement::PersonK { .. } => {
                let members = self.persons(&self.class(row));
                let rows = self.all().into_iter().filter(|&row| members.contains(&self.person(row)));
                rows.filter_map(|row| column.unwrap().cell(row)).all(|k| n >= k.parse::<f64>().unwrap())
            }
            Requirement::DistinctL { l, .. } => counted(row).0.len() >= *l as usize,
            Requirement::EntropyL { l, .. } => {
                counted(row).1.values().map(|q| -q * q.ln()).sum::<f64>() >= l.ln() - near
            }
            Requirement::RecursiveCL { c, l, .. } => {
                let mut counts: Vec<usize> = counted(row).0.into_values().collect();
                counts.sort_unstable();
                counts.reverse();
                let rest: usize = counts.iter().skip(*l as usize - 1).sum();
                (counts[0] as f64) < c * rest as f64
            }
            Requirement::TCloseness { t, distance, .. } => self.t(column.unwrap(), row, *distance) <= t + near,
            Requirement::Alpha { alpha, .. } => counted(row).0.values().all(|&c| c as f64 / n <= alpha + near),
            Requirement::Beta { beta, .. } => gains().into_iter().all(|(_, gain)| gain <= beta + near),
            Requirement::EnhancedBeta { beta, .. } => {
                gains().into_iter().all(|(p, gain)| gain <= beta.min(-p.ln()) + near)
            }
        }
    }

    /// The first rows of the classes that do not satisfy a requirement.
    pub(crate) fn failing(&self, requirement: &Requirement) -> Vec<usize> {
        let first = |&row: &usize| self.class(row)[0] == row;
        self.all().into_iter().filter(first).filter(|&row| !self.holds(requirement, row)).collect()
    }
}

/// The height of the lowest common ancestor, divided by the height of the root.
fn tree_distance(hierarchy: &Hierarchy, a: &str, b: &str) -> f64 {
    let path = |label: &str| hierarchy.path(hierarchy.leaf(label).unwrap()).collect::<Vec<_>>();
    let common = path(a).into_iter().find(|node| path(b).contains(node)).unwrap();
    height(hierarchy, common) as f64 / height(hierarchy, hierarchy.root()) as f64
}

fn height(hierarchy: &Hierarchy, node: u32) -> usize {
    hierarchy.children(node).iter().map(|&child| height(hierarchy, child) + 1).max().unwrap_or(0)
}

/// The least work that turns one distribution into another, by successive shortest paths.
#[allow(clippy::needless_range_loop, reason = "sources and targets are numbers in several lists at once")]
pub(crate) fn transport(from: &[f64], to: &[f64], ground: impl Fn(usize, usize) -> f64) -> f64 {
    let n = from.len();
    let mut flow = vec![vec![0.0f64; n]; n];
    let (mut left, mut open) = (from.to_vec(), to.to_vec());
    let nothing = 1e-13;
    for start in 0..n {
        while left[start] > nothing {
            // The shortest way from `start` to each target. A way may lead over targets that send back what they
            // received.
            let mut way = vec![(f64::INFINITY, usize::MAX, usize::MAX); n];
            for (target, way) in way.iter_mut().enumerate() {
                *way = (ground(start, target), start, usize::MAX);
            }
            for _ in 0..n {
                for via in 0..n {
                    for source in (0..n).filter(|&source| flow[source][via] > nothing) {
                        for target in 0..n {
                            let length = way[via].0 - ground(source, via) + ground(source, target);
                            if length < way[target].0 - 1e-12 {
                                way[target] = (length, source, via);
                            }
                        }
                    }
                }
            }
            let Some(end) =
                (0..n).filter(|&target| open[target] > nothing).min_by(|&a, &b| way[a].0.total_cmp(&way[b].0))
            else {
                break;
            };
            let mut amount = left[start].min(open[end]);
            let mut at = end;
            while way[at].2 != usize::MAX {
                amount = amount.min(flow[way[at].1][way[at].2]);
                at = way[at].2;
            }
            let mut at = end;
            loop {
                let (_, source, via) = way[at];
                flow[source][at] += amount;
                if via == usize::MAX {
                    break;
                }
                flow[source][via] -= amount;
                at = via;
            }
            left[start] -= amount;
            open[end] -= amount;
        }
    }
    (0..n).flat_map(|a| (0..n).map(move |b| (a, b))).map(|(a, b)| flow[a][b] * ground(a, b)).sum()
}
