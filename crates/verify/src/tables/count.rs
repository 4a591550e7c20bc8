//! Counting many tables: every requirement in every orbit.

use std::collections::BTreeMap;

use kohort_model::{Column, NULL, Requirement, Table};

use super::forest::Forest;
use super::shape::{Shape, TableShape};
use super::symmetry;
use crate::count::cells::CellIds;
use crate::count::count_classes;
use crate::count::roll::{OwnK, Roll, Sensitive, Shares};
use crate::{Counted, Findings, ReferenceFindings, TableFindings, Violation, Violations};

/// The rows of one table, to be counted.
pub(crate) struct TableRoll<'a> {
    /// The name of the table.
    name: &'a str,
    /// The rows without their persons, which follow from the forest.
    roll: Roll<'a>,
    /// The requirements that are counted in this table.
    requirements: Vec<Requirement>,
    /// The names of the columns that hold references.
    references: Vec<String>,
}

/// The columns of one table that are counted.
pub(crate) struct CountedColumns<'a> {
    pub(crate) quasi: Vec<CellIds<'a>>,
    /// Unchanged columns: the one with the cells, and the private one.
    pub(crate) copied: Vec<(&'a Column, &'a Column)>,
    /// The rows of the copied cells, if these are a selection.
    pub(crate) rows: Option<&'a [u32]>,
}

impl<'a> CountedColumns<'a> {
    /// The rows of `table` to be counted. Adds a violation for each requirement that names an unknown column.
    pub(crate) fn roll(
        self,
        table: &'a Table,
        shape: &TableShape<'_>,
        requirements: &[Requirement],
        violations: &mut Vec<Violation>,
    ) -> TableRoll<'a> {
        let requirements = counted_here(requirements, shape.is_of_persons);
        let mut found = Vec::new();
        let sensitive = Sensitive::measured(&self.copied, self.rows, &requirements, &mut found);
        violations.extend(found.into_iter().map(|violation| violation.in_table(&table.name)));
        let n_rows = self.rows.map_or(table.n_rows, <[u32]>::len);
        let references = shape.references.iter().map(|to| table.columns[to.column].name.clone()).collect();
        let roll =
            Roll { n_rows, quasi: self.quasi, persons: None, shares: Shares::Rows, sensitive, own_k: Vec::new() };
        TableRoll { name: &table.name, roll, requirements, references }
    }
}

impl TableRoll<'_> {
    /// Adds the own k of the persons in these private rows, and the requirements on it.
    pub(crate) fn require_own_k(&mut self, own_ks: &[OwnK], rows: &[u32]) {
        for own_k in own_ks {
            let of_rows = rows.iter().map(|&row| own_k.of_person(row as usize)).collect();
            self.requirements.push(Requirement::PersonK { column: own_k.column.clone() });
            self.roll.own_k.push(OwnK::new(own_k.column.clone(), of_rows));
        }
    }
}

/// The requirements that are counted in a table: those on classes only in person tables, those on values in all tables.
/// Own k is added by [`TableRoll::require_own_k`].
fn counted_here(requirements: &[Requirement], is_of_persons: bool) -> Vec<Requirement> {
    let is_here = |requirement: &&Requirement| match requirement {
        Requirement::K(_) => is_of_persons,
        Requirement::PersonK { .. } => false,
        Requirement::DistinctL { .. }
        | Requirement::EntropyL { .. }
        | Requirement::RecursiveCL { .. }
        | Requirement::TCloseness { .. }
        | Requirement::Alpha { .. }
        | Requirement::Beta { .. }
        | Requirement::EnhancedBeta { .. } => true,
    };
    requirements.iter().filter(is_here).cloned().collect()
}

/// Counts all tables.
///
/// # Errors
/// If a requirement can't be evaluated. A requirement that fails is a finding.
///
/// # Panics
/// If a person table has no rows.
pub(crate) fn count_tables(
    shape: &Shape,
    forest: &Forest,
    mut rolls: Vec<TableRoll<'_>>,
) -> Result<Findings, Violations> {
    let cells: Vec<Vec<&CellIds<'_>>> = rolls.iter().map(|table| table.roll.quasi.iter().collect()).collect();
    let orbits = match shape.has_references() {
        false => forest.orbits(shape, forest.looks(shape, &cells)),
        true => {
            let name = |table: usize, reference: usize| {
                (rolls[table].name.to_owned(), rolls[table].references[reference].clone())
            };
            symmetry::orbits(shape, forest, &cells, name).map_err(Violations)?
        }
    };
    for (table, persons) in forest.persons(shape).into_iter().enumerate() {
        let n_persons = forest.n_rows[shape.root(table)];
        rolls[table].roll.persons = (!shape.is_of_persons(table)).then(|| CellIds::by_id(persons, n_persons));
    }
    let mut all = Whole::default();
    let mut violations = Vec::new();
    for (table, TableRoll { name, roll, requirements, .. }) in rolls.iter().enumerate() {
        if roll.n_rows == 0 && !shape.is_of_persons(table) {
            // A child table of which every row is left out shows nothing.
            all.take(name, Findings::uncounted(0), None);
            continue;
        }
        match count_classes(roll, requirements, &orbits[table]) {
            Ok(findings) if shape.is_of_persons(table) => all.take_persons(name, findings),
            Ok(findings) => all.take(name, findings, None),
            Err(Violations(more)) => violations.extend(more.into_iter().map(|violation| violation.in_table(name))),
        }
    }
    for (table, found) in all.tables.iter_mut().enumerate() {
        let references = rolls[table].references.iter().zip(&forest.targets[table]);
        found.references = references
            .map(|(column, targets)| ReferenceFindings {
                column: column.clone(),
                kept: targets.iter().filter(|&&target| target != NULL).count() as u64,
                removed: None,
            })
            .collect();
    }
    if violations.is_empty() { Ok(all.findings()) } else { Err(Violations(violations)) }
}

/// The counts of all tables so far.
#[derive(Default)]
struct Whole {
    tables: Vec<TableFindings>,
    unmet: Vec<Violation>,
    persons: u64,
    classes: u64,
    unique_persons: u64,
    class_sizes: BTreeMap<u64, u64>,
    /// The sum of the risk of all persons.
    risk: f64,
}

impl Whole {
    /// Adds a person table.
    fn take_persons(&mut self, name: &str, findings: Findings) {
        self.persons += findings.persons;
        self.classes += findings.classes;
        self.unique_persons += findings.unique_persons;
        for &(size, n_classes) in &findings.class_sizes {
            *self.class_sizes.entry(size).or_default() += n_classes;
        }
        self.risk += findings.average_risk * findings.persons as f64;
        let k = findings.k;
        self.take(name, findings, Some(k));
    }

    fn take(&mut self, name: &str, findings: Findings, k: Option<u64>) {
        self.unmet.extend(findings.unmet.into_iter().map(|violation| violation.in_table(name)));
        self.tables.push(TableFindings {
            table: name.to_owned(),
            rows: findings.rows,
            classes: findings.classes,
            k,
            sensitive: findings.sensitive,
            references: Vec::new(),
            suppressed: None,
            loss: None,
        });
    }

    fn findings(self) -> Findings {
        let rows = self.tables.iter().map(|table| table.rows).sum();
        let k = self.class_sizes.keys().next().copied().unwrap_or(0);
        Findings {
            counted: Counted::Persons,
            persons: self.persons,
            classes: self.classes,
            k,
            unique_persons: self.unique_persons,
            class_sizes: self.class_sizes.into_iter().collect(),
            highest_risk: 1.0 / k as f64,
            average_risk: self.risk / self.persons as f64,
            unmet: self.unmet,
            ..Findings { tables: self.tables, ..Findings::uncounted(rows) }
        }
    }
}
