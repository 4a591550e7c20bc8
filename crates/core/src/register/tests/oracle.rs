//! Cases of a private table beside a register, and an oracle that knows nothing of codes, boxes or drafts: it reads
//! released texts, and counts persons by their names.

use std::collections::{BTreeMap, BTreeSet};

use kohort_model::spec::{Algorithm, RegisterMethod, Unmatched};
use kohort_model::{
    Cells, Column, Hierarchy, InRegister, JoinedRegister, Release, Requirement, Role, Silent, Spec, Table, ValueType,
};
use proptest::prelude::*;

use crate::AnonymizeError;
use crate::register::{AnonymizedWithRegister, anonymize_with_register};

/// A private person: a name, a number per quasi column, and a sensitive value.
pub(super) type Private = (String, Vec<i32>, String);
/// A register person: a name and a number per quasi column.
pub(super) type Registered = (String, Vec<i32>);

/// All numbers are below this.
pub(super) const N_VALUES: i32 = 12;

/// A private table and a register: their persons, and the join of both.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) private: Vec<Private>,
    pub(super) register: Vec<Registered>,
    pub(super) table: Table,
    pub(super) joined: JoinedRegister,
    /// The register persons who are not in the private table, in the order of the joined rows.
    only: Vec<Registered>,
}

/// Columns of numbers, except the third one, which has words of a hierarchy.
pub(super) fn quasi(rows: &[&Vec<i32>]) -> Vec<Column> {
    let paths: String = (0..N_VALUES).map(|value| format!("{value};g{};*\n", value / 4)).collect();
    let column = |column: usize| {
        let texts: Vec<String> = rows.iter().map(|row| row[column].to_string()).collect();
        let cells = texts.iter().map(|text| Some(text.as_str()));
        let numbers = Column::from_cells(&format!("qi{}", column + 1), Role::Quasi, cells);
        match column {
            2 => numbers.with_hierarchy(Hierarchy::from_paths(&paths).unwrap()),
            _ => numbers.typed(ValueType::Integer),
        }
    };
    (0..rows[0].len()).map(column).collect()
}

/// Joins persons by their names.
pub(super) fn case(private: Vec<Private>, register: Vec<Registered>) -> Case {
    let is_private = |name: &String| private.iter().any(|person| person.0 == *name);
    let only: Vec<Registered> = register.iter().filter(|person| !is_private(&person.0)).cloned().collect();
    let mut rows: Vec<&Vec<i32>> = private.iter().map(|person| &person.1).collect();
    rows.extend(only.iter().map(|person| &person.1));
    let mut persons = Vec::new();
    for (name, numbers, _) in &private {
        persons.push(match register.iter().find(|person| person.0 == *name) {
            None => InRegister::Absent,
            Some((_, other)) => {
                rows.push(other);
                let said = rows.len() as u32 - 1;
                if other == numbers { InRegister::Same(said) } else { InRegister::Differs(said) }
            }
        });
    }
    let named = |name: &str, role, cells: &mut dyn Iterator<Item = &String>| {
        Column::from_cells(name, role, cells.map(|text| Some(text.as_str())))
    };
    let mut columns = vec![named("id", Role::Key, &mut private.iter().map(|person| &person.0))];
    columns.extend(quasi(&rows[..private.len()]));
    columns.push(named("sa", Role::Sensitive, &mut private.iter().map(|person| &person.2)));
    let table = Table { name: "t".to_owned(), columns, n_rows: private.len(), person: Some(0) };
    let joined = Table { name: "t".to_owned(), columns: quasi(&rows), n_rows: rows.len(), person: None };
    let joined = JoinedRegister {
        rows: joined,
        n_microdata: private.len(),
        n_register: only.len(),
        persons,
        key_prints: Vec::new(),
        respelled: Vec::new(),
    };
    Case { private, register, table, joined, only }
}

/// The same private table with a register of nobody else, so that losses have the same scale.
pub(super) fn without_register(case: &Case) -> JoinedRegister {
    JoinedRegister { n_register: 0, ..case.joined.clone() }
}

/// A spec with this k.
pub(super) fn spec(k: u32, algorithm: Algorithm, method: RegisterMethod) -> Spec {
    let mut spec = Spec::new(k);
    spec.algorithm = algorithm;
    spec.register.method = method;
    // Cases are joined by name.
    spec.register.unmatched = Unmatched::Count;
    spec
}

/// The requirements: k persons, and l distinct values.
pub(super) fn asked(k: u32, l: u32) -> Vec<Requirement> {
    vec![Requirement::K(k), Requirement::DistinctL { column: "sa".to_owned(), l }]
}

/// Anonymizes a case.
pub(super) fn run(case: &Case, spec: &Spec, l: u32) -> Result<AnonymizedWithRegister, AnonymizeError> {
    anonymize_with_register(&case.table, &case.joined, &[], spec, &asked(spec.k, l), &Silent)
}

/// Whether everybody in one class and one sensitive group would be a release. If not, there is no release at all, because
/// requirements that hold for each class and group of a release also hold for all of them together. Cases are joined by
/// name, so everybody counts once.
pub(super) fn can_be_released(case: &Case, k: u32, l: u32) -> bool {
    let names: BTreeSet<&str> = case.private.iter().map(|person| person.0.as_str()).collect();
    let values: BTreeSet<&str> = case.private.iter().map(|person| person.2.as_str()).collect();
    let everybody = case.only.len() + names.len();
    names.len() >= k as usize && values.len() >= l as usize && everybody >= k as usize
}

/// Released cells of a table, row by row.
pub(super) fn released(case: &Case, release: &Release, table: usize) -> Vec<Vec<String>> {
    let released = &release.tables[table];
    let cell = |column: &kohort_model::ReleasedColumn, row: usize| match &column.cells {
        Cells::Recoded { labels, ids } => labels.get(ids[row]).to_owned(),
        Cells::Copied => {
            case.table.columns[column.source].cell(released.rows[row] as usize).unwrap_or_default().to_owned()
        }
        Cells::Surrogate { ids } => ids[row].to_string(),
    };
    (0..released.rows.len()).map(|row| released.columns.iter().map(|column| cell(column, row)).collect()).collect()
}

/// The lowest and the highest number of a released range.
pub(super) fn range(text: &str) -> (f64, f64) {
    let number = |text: &str| text.parse::<f64>().unwrap();
    match text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).and_then(|text| text.split_once(',')) {
        Some((lo, hi)) => (number(lo), number(hi)),
        None => (number(text), number(text)),
    }
}

/// Whether released cells cover a person's numbers.
pub(super) fn holds(cells: &[String], numbers: &[i32]) -> bool {
    cells.iter().zip(numbers).enumerate().all(|(column, (cell, &number))| match column {
        2 => *cell == number.to_string() || *cell == format!("g{}", number / 4) || cell == "*",
        _ => range(cell).0 <= f64::from(number) && f64::from(number) <= range(cell).1,
    })
}

/// Checks everything that a release with a register promises.
pub(super) fn check(case: &Case, found: &AnonymizedWithRegister, k: usize, l: usize) -> Result<(), TestCaseError> {
    let release = &found.anonymized.release;
    let rows = released(case, release, 0);
    let sources = &release.tables[0].rows;
    let n_private = case.private.len();
    let distinct: BTreeSet<u32> = sources.iter().copied().collect();
    prop_assert_eq!(distinct.len(), sources.len(), "a joined row is used twice");
    prop_assert!((0..n_private as u32).all(|row| distinct.contains(&row)), "somebody is missing");
    prop_assert!(sources.iter().all(|&row| (row as usize) < n_private + case.only.len()), "a row is made up");

    let mut classes: BTreeMap<&Vec<String>, Vec<usize>> = BTreeMap::new();
    rows.iter().zip(sources).for_each(|(cells, &row)| classes.entry(cells).or_default().push(row as usize));
    for (cells, members) in classes {
        let quasi = &cells[..cells.len() - 1];
        let mut counted: BTreeSet<&str> = BTreeSet::new();
        for &row in &members {
            let (name, numbers) = match case.private.get(row) {
                Some((name, numbers, _)) => (name, numbers),
                None => (&case.only[row - n_private].0, &case.only[row - n_private].1),
            };
            prop_assert!(holds(quasi, numbers), "a cell does not cover its row");
            let known = case.register.iter().find(|person| person.0 == *name);
            if known.is_none_or(|(_, numbers)| holds(quasi, numbers)) {
                counted.insert(name);
            }
        }
        prop_assert!(counted.len() >= k, "{} persons count", counted.len());
        prop_assert!(members.iter().any(|&row| row < n_private), "a class has no private row");
    }

    let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut persons: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (cells, &row) in rows.iter().zip(sources).filter(|(_, row)| (**row as usize) < n_private) {
        let group = cells[cells.len() - 1].clone();
        values.entry(group.clone()).or_default().push(case.private[row as usize].2.clone());
        persons.entry(group).or_default().insert(&case.private[row as usize].0);
    }
    values.values_mut().for_each(|values| values.sort());
    let mut listed: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for cells in released(case, release, 1) {
        listed.entry(cells[0].clone()).or_default().push(cells[1].clone());
    }
    prop_assert_eq!(&listed, &values, "the sensitive table and the groups differ");
    for (group, values) in &values {
        prop_assert!(persons[group].len() >= k, "a sensitive group is too small");
        prop_assert!(values.iter().collect::<BTreeSet<_>>().len() >= l, "a sensitive group has too few values");
    }
    Ok(())
}
