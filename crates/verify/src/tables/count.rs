//! Counting many tables: every requirement of every orbit.

use std::collections::BTreeMap;

use kohort_model::{NULL, Requirement};

use super::forest::Forest;
use super::shape::Shape;
use super::symmetry;
use crate::count::cells::CellIds;
use crate::count::roll::{Roll, Shares};
use crate::count::{N_SMALLEST, count_classes};
use crate::{Counted, Findings, ReferenceFindings, TableFindings, Violation, Violations};

/// The rows of one table, to be counted.
pub(crate) struct TableRoll<'a> {
    /// The table's name.
    pub(crate) name: &'a str,
    /// Its rows; who they are of follows from the forest.
    pub(crate) roll: Roll<'a>,
    /// What is asked of it; of a child table nothing but what its sensitive columns must satisfy.
    pub(crate) requirements: Vec<Requirement>,
    /// The names of its references, by column.
    pub(crate) references: Vec<String>,
}

/// The requirements of a table that are counted there: those on classes in person tables, those on values in all.
pub(crate) fn counted_here(requirements: &[Requirement], shape: &Shape, table: usize) -> Vec<Requirement> {
    let is_here = |requirement: &&Requirement| match requirement {
        Requirement::K(_) => shape.is_of_persons(table),
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

/// Counts everything.
///
/// # Errors
/// Where a requirement can't be evaluated. A requirement that fails is a finding.
///
/// # Panics
/// Where a person table has no rows.
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
            all.tables.push(nothing_in(name));
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

/// A roll of rows that are not told apart by person yet.
pub(crate) fn roll_of_rows<'a>(
    n_rows: usize,
    quasi: Vec<CellIds<'a>>,
    sensitive: Vec<crate::count::roll::Sensitive<'a>>,
) -> Roll<'a> {
    Roll { n_rows, quasi, persons: None, shares: Shares::Rows, sensitive, own_k: Vec::new() }
}

/// What was counted so far.
#[derive(Default)]
struct Whole {
    tables: Vec<TableFindings>,
    unmet: Vec<Violation>,
    persons: u64,
    classes: u64,
    unique_persons: u64,
    smallest_classes: BTreeMap<u64, u64>,
    /// The sum over persons.
    risk: f64,
}

impl Whole {
    /// Takes in a person table.
    fn take_persons(&mut self, name: &str, findings: Findings) {
        self.persons += findings.persons;
        self.classes += findings.classes;
        self.unique_persons += findings.unique_persons;
        for &(size, n_classes) in &findings.smallest_classes {
            *self.smallest_classes.entry(size).or_default() += n_classes;
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
        let k = self.smallest_classes.keys().next().copied().unwrap_or(0);
        Findings {
            counted: Counted::Persons,
            rows: self.tables.iter().map(|table| table.rows).sum(),
            persons: self.persons,
            classes: self.classes,
            k,
            unique_persons: self.unique_persons,
            smallest_classes: self.smallest_classes.into_iter().take(N_SMALLEST).collect(),
            highest_risk: 1.0 / k as f64,
            average_risk: self.risk / self.persons as f64,
            sensitive: Vec::new(),
            unmet: self.unmet,
            skipped: Vec::new(),
            suppressed: None,
            tables: self.tables,
            audiences: Vec::new(),
            coalitions: Vec::new(),
            collusion_k: None,
            joined: None,
            loss: None,
        }
    }
}

/// A child table of which every row is left out shows nothing.
fn nothing_in(name: &str) -> TableFindings {
    TableFindings {
        table: name.to_owned(),
        rows: 0,
        classes: 0,
        k: None,
        sensitive: Vec::new(),
        references: Vec::new(),
        suppressed: None,
        loss: None,
    }
}
