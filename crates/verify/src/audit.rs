//! [`audit`]: among how few people somebody hides from a reader of several releases of the same persons.
//!
//! For each person, the cells of all releases are intersected, column by column. Persons with the same intersections
//! form a class. Two releases that are each k-anonymous may single people out together: see example 1 of `[PTL+08]`.
//!
//! # Guarantee
//! Two persons are in one class only if the releases leave the same values possible for both, so that knowing their
//! values does not tell them apart. Cells that can't be read make classes smaller, never larger. The result does not
//! depend on the order of the releases, nor on the order of rows if a column names the persons.
//! # Deviations
//! The paper shows the attack by example. Here a cell stands for a set of values: a range for the values between its
//! bounds, a label of a hierarchy for the leaves below it. If a person is missing from some releases, only the cells of
//! the other releases are intersected.
//! # Cost   each pair of texts that occurs is intersected once; then the same as for one table

mod meeting;
mod persons;

use kohort_model::Table;
use kohort_model::spec::Order;
use rayon::prelude::*;

use self::meeting::Meeting;
use self::persons::Persons;
use crate::count::cells::CellIds;
use crate::count::grouping::Classes;
use crate::count::{N_SMALLEST, all_sizes};
use crate::structure::{check_table, no_rows};
use crate::{Violation, Violations};

/// A release to be read together with others.
#[derive(Clone, Debug)]
pub struct AuditedRelease {
    /// The released rows.
    pub table: Table,
    /// The order of the rows according to the manifest; `None` if there is no manifest.
    pub order: Option<Order>,
}

/// An audience, and the columns it may know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knows {
    /// The name of the audience.
    pub audience: String,
    /// The names of the columns. At least one release must have each of them.
    pub columns: Vec<String>,
}

/// The counts of releases of the same persons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditFindings {
    /// Persons in any release.
    pub persons: u64,
    /// Persons in every release.
    pub persons_in_all: u64,
    /// Rows of each release.
    pub rows: Vec<u64>,
    /// One entry per audience, in the order asked.
    pub audiences: Vec<AuditedAudience>,
    /// The counts for all audiences together, if there are several.
    pub union: Option<AuditedAudience>,
}

/// The counts for one audience.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditedAudience {
    /// One entry per release, read by itself; `None` if the release has none of the audience's columns.
    pub alone: Vec<Option<Hidden>>,
    /// All releases read together.
    pub together: Hidden,
}

/// Among how many persons people hide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// Groups of persons who look the same.
    pub classes: u64,
    /// Persons in the smallest class.
    pub smallest: u64,
    /// Persons who hide among fewer than `k`, if a k was given.
    pub below_k: Option<u64>,
    /// Persons who are alone.
    pub unique_persons: u64,
    /// The ten smallest class sizes that occur, each with the number of classes of that size.
    pub smallest_classes: Vec<(u64, u64)>,
}

/// Reads releases of the same persons together, and counts them for each audience.
///
/// Persons are matched by the person columns of the tables, or by the order of rows if no table has one. Columns of the
/// same name must have the same type and hierarchy in all tables.
///
/// # Errors
/// If rows can't be matched, or releases contradict each other. Rows of a sorted release are never matched by their
/// order, because that would intersect the cells of different persons, and could make everybody seem to hide among
/// many.
pub fn audit(releases: &[AuditedRelease], audiences: &[Knows], k: Option<u64>) -> Result<AuditFindings, Violations> {
    let orders: Vec<Option<Order>> = releases.iter().map(|release| release.order).collect();
    let releases: Vec<&Table> = releases.iter().map(|release| &release.table).collect();
    let releases = releases.as_slice();
    let mut violations: Vec<Violation> = releases
        .iter()
        .flat_map(|release| check_table(release).into_iter().map(|violation| violation.in_release(&release.name)))
        .collect();
    violations.extend(releases.iter().copied().filter_map(no_rows));
    if releases.len() > 1 && releases.iter().all(|release| release.person.is_none()) {
        let sorted = releases.iter().zip(orders).filter(|(_, order)| *order == Some(Order::Sorted));
        violations.extend(sorted.map(|(release, _)| Violation::RowsSorted { release: release.name.clone() }));
    }
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    let persons = Persons::match_up(releases)?;
    let mut columns: Vec<&str> = Vec::new();
    for column in audiences.iter().flat_map(|audience| &audience.columns) {
        if !columns.contains(&column.as_str()) {
            columns.push(column);
        }
    }
    let met: Vec<Result<MetColumn, Violation>> =
        columns.par_iter().map(|column| MetColumn::new(column, releases, &persons)).collect();
    let mut met_columns = Vec::with_capacity(met.len());
    for met in met {
        match met {
            Ok(met) => met_columns.push(met),
            Err(violation) => violations.push(violation),
        }
    }
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    let position = |name: &String| columns.iter().position(|column| column == name).expect("it was collected above");
    let count = |names: &[String]| {
        let known: Vec<&MetColumn> = names.iter().map(|name| &met_columns[position(name)]).collect();
        AuditedAudience::new(&known, &persons, k)
    };
    let all: Vec<String> = columns.iter().map(|&column| column.to_owned()).collect();
    Ok(AuditFindings {
        persons: persons.n_persons() as u64,
        persons_in_all: persons.n_in_all() as u64,
        rows: releases.iter().map(|release| release.n_rows as u64).collect(),
        audiences: audiences.iter().map(|audience| count(&audience.columns)).collect(),
        union: (audiences.len() > 1).then(|| count(&all)),
    })
}

/// One column in all releases: what each release says about each person, and what all say together. Statements are
/// numbered by a [`Meeting`].
struct MetColumn {
    /// For each release, the statement of each row; `None` if the release has no such column.
    alone: Vec<Option<Vec<u32>>>,
    /// The joint statement about each person.
    together: Vec<u32>,
    /// All numbers of statements are below this.
    n_numbers: usize,
}

impl MetColumn {
    fn new(name: &str, releases: &[&Table], persons: &Persons) -> Result<Self, Violation> {
        let mut meeting = Meeting::new(releases.iter().filter_map(|release| release.column(name)));
        let mut alone = Vec::with_capacity(releases.len());
        let mut together = vec![Meeting::ANYTHING; persons.n_persons()];
        let mut n_columns = 0;
        for (release, table) in releases.iter().enumerate() {
            if table.position(name).is_none() {
                alone.push(None);
                continue;
            }
            let said = meeting.column(n_columns);
            n_columns += 1;
            for (row, &said) in said.iter().enumerate() {
                let known = &mut together[persons.of_row(release, row)];
                *known = meeting.both(*known, said);
            }
            alone.push(Some(said));
        }
        let contradicted = |person: &usize| meeting.is_contradiction(together[*person]);
        let n = (0..together.len()).filter(contradicted).count() as u64;
        if let Some(first) = (0..together.len()).find(contradicted) {
            let (release, row) = persons.first_row(first);
            let (release, first_row) = (releases[release].name.clone(), row as u64 + 1);
            return Err(Violation::ReleasesContradict { column: name.to_owned(), n, release, first_row });
        }
        Ok(MetColumn { alone, together, n_numbers: meeting.n_numbers() })
    }
}

impl AuditedAudience {
    fn new(columns: &[&MetColumn], persons: &Persons, k: Option<u64>) -> Self {
        let alone = (0..persons.n_releases()).map(|release| {
            let shown: Vec<CellIds<'_>> = columns
                .iter()
                .filter_map(|column| Some(CellIds::by_id(column.alone[release].as_deref()?, column.n_numbers)))
                .collect();
            (!shown.is_empty()).then(|| Hidden::count(&shown, persons.n_rows(release), k))
        });
        let together: Vec<CellIds<'_>> =
            columns.iter().map(|column| CellIds::by_id(column.together.as_slice(), column.n_numbers)).collect();
        AuditedAudience { alone: alone.collect(), together: Hidden::count(&together, persons.n_persons(), k) }
    }
}

impl Hidden {
    fn count(columns: &[CellIds<'_>], n_persons: usize, k: Option<u64>) -> Self {
        let classes = Classes::group(&columns.iter().collect::<Vec<_>>(), n_persons);
        let sizes: Vec<u32> = (0..classes.len()).map(|class| classes.rows(class).len() as u32).collect();
        let persons_in = |is_counted: &dyn Fn(u64) -> bool| {
            sizes.iter().map(|&size| u64::from(size)).filter(|&size| is_counted(size)).sum::<u64>()
        };
        Hidden {
            classes: classes.len() as u64,
            smallest: sizes.iter().copied().min().map_or(0, u64::from),
            below_k: k.map(|k| persons_in(&|size| size < k)),
            unique_persons: persons_in(&|size| size == 1),
            smallest_classes: all_sizes(&sizes).into_iter().take(N_SMALLEST).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
