//! [`audit`]: how alone people are to somebody who reads several releases of the same persons together.
//!
//! Cell by cell the releases are intersected, person by person, and persons are counted anew whose intersections are
//! the same. Two releases that are each k-anonymous may single people out together: example 1 of `[PTL+08]`.
//!
//! # Guarantee
//! Persons are in one class only where the releases leave the same values open for them, so that knowing their values
//! does not tell them apart. What is not understood makes classes smaller, never larger. The result does not depend on
//! the order of the releases, nor on that of their rows where persons are named.
//! # Deviations
//! The paper shows the attack by example. Here a person's cells are understood as sets: ranges by their bounds, labels
//! by the leaves below them where there is a hierarchy. Persons who are in some of the releases only are known by those.
//! # Cost   each pair of texts that meet is intersected once; then as one table

mod meeting;
mod persons;

use kohort_model::Table;
use kohort_model::spec::Order;
use rayon::prelude::*;

use self::meeting::Meeting;
use self::persons::Persons;
use crate::count::cells::CellIds;
use crate::count::grouping::Classes;
use crate::count::smallest;
use crate::structure::check_table;
use crate::{Violation, Violations};

/// A release to be read beside others.
#[derive(Clone, Debug)]
pub struct AuditedRelease {
    /// Its rows.
    pub table: Table,
    /// The order of its rows, where its manifest says; `None` where nothing does.
    pub order: Option<Order>,
}

/// Somebody, and the columns they may know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knows {
    /// Whose name it is.
    pub audience: String,
    /// Columns by name; each is in one of the releases at least.
    pub columns: Vec<String>,
}

/// What was counted in releases of the same persons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditFindings {
    /// Persons in any release.
    pub persons: u64,
    /// Persons in every release.
    pub persons_in_all: u64,
    /// Rows of each release.
    pub rows: Vec<u64>,
    /// Per audience, in the order asked.
    pub audiences: Vec<AuditedAudience>,
    /// As all audiences together would see it, where there are several.
    pub union: Option<AuditedAudience>,
}

/// What was counted for one audience.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditedAudience {
    /// Each release by itself, in their order; `None` where it has none of the audience's columns.
    pub alone: Vec<Option<Hidden>>,
    /// All of them read together.
    pub together: Hidden,
}

/// Among how many persons people hide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// Groups of persons that look the same.
    pub classes: u64,
    /// Persons in the smallest.
    pub smallest: u64,
    /// Persons who hide among fewer than `k`, where a k was given.
    pub below_k: Option<u64>,
    /// Persons who are alone.
    pub unique_persons: u64,
    /// The ten smallest class sizes that occur, each with the number of classes of that size.
    pub smallest_classes: Vec<(u64, u64)>,
}

/// Reads releases of the same persons together, and counts them for each audience.
///
/// Persons are matched by the tables' person columns, or by the order of rows where they have none. Columns of the same
/// name must have the same type and hierarchy in all tables.
///
/// # Errors
/// Where rows can't be matched, or releases contradict each other. Rows of a sorted release are never matched by their
/// order: that would compare strangers, and strangers hide each other.
pub fn audit(releases: &[AuditedRelease], audiences: &[Knows], k: Option<u64>) -> Result<AuditFindings, Violations> {
    let orders: Vec<Option<Order>> = releases.iter().map(|release| release.order).collect();
    let releases: Vec<&Table> = releases.iter().map(|release| &release.table).collect();
    let releases = releases.as_slice();
    let mut violations: Vec<Violation> = releases
        .iter()
        .flat_map(|release| check_table(release).into_iter().map(|violation| violation.in_release(&release.name)))
        .collect();
    for release in releases.iter().filter(|release| release.n_rows == 0) {
        violations.push(Violation::NoRows { table: release.name.clone() });
    }
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
    let view = |names: &[String]| {
        let known: Vec<&MetColumn> = names.iter().map(|name| &met_columns[position(name)]).collect();
        AuditedAudience::new(&known, &persons, k)
    };
    let all: Vec<String> = columns.iter().map(|&column| column.to_owned()).collect();
    Ok(AuditFindings {
        persons: persons.n_persons() as u64,
        persons_in_all: persons.n_in_all() as u64,
        rows: releases.iter().map(|release| release.n_rows as u64).collect(),
        audiences: audiences.iter().map(|audience| view(&audience.columns)).collect(),
        union: (audiences.len() > 1).then(|| view(&all)),
    })
}

/// One column in all releases: what each says of each person, and what they say together.
struct MetColumn {
    /// Per release, in its rows' order, a number for what the cell says; `None` where it has no such column.
    alone: Vec<Option<Vec<u32>>>,
    /// Per person.
    together: Vec<u32>,
    /// All numbers are below.
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
            smallest_classes: smallest(&sizes),
        }
    }
}

#[cfg(test)]
mod tests;
