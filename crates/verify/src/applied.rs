//! [`verify_applied`]: whether a release shows only classes of an earlier one, and what readers of both count.
//!
//! # Guarantee
//! The quasi columns are the same, in type and spelling. Every combination of quasi cells of the new release is one of the earlier
//! release. With the persons of both in the same classes, every requirement holds. Nothing here tells whether a person is in both
//! releases: whoever has the persons of both must compare them.
//!
//! Rows of the earlier release are persons; rows of the new one belong to the persons that its table names, if it does.

use std::collections::BTreeSet;

use kohort_model::{Column, Notation, Requirement, Role, Table, ValueType};

use crate::{Findings, Violation, Violations, measure};

/// The name of the column that tells the persons of both releases apart.
const PERSON: &str = "\u{0}person";

/// Counts a release, made by the classes of an earlier one, together with that release. Both are tables as readers see them.
///
/// # Errors
/// Every class that the earlier release does not have, and every requirement that fails in both together.
pub fn verify_applied(new: &Table, earlier: &Table, requirements: &[Requirement]) -> Result<Findings, Violations> {
    let mut violations: Vec<Violation> = Vec::new();
    let quasi: Vec<&Column> = earlier.columns.iter().filter(|column| column.role == Role::Quasi).collect();
    let mut pairs: Vec<(&Column, &Column)> = Vec::new();
    for known in &quasi {
        match new.column(&known.name) {
            Some(column) if is_alike(column, known) => pairs.push((column, known)),
            Some(_) | None => violations.push(Violation::OtherThanEarlier { column: known.name.clone() }),
        }
    }
    let is_more = |column: &&Column| column.role == Role::Quasi && quasi.iter().all(|known| known.name != column.name);
    let more = new.columns.iter().filter(is_more);
    violations.extend(more.map(|column| Violation::OtherThanEarlier { column: column.name.clone() }));
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    let known: BTreeSet<Vec<Option<&str>>> =
        (0..earlier.n_rows).map(|row| pairs.iter().map(|(_, known)| known.cell(row)).collect()).collect();
    let is_foreign = |row: &usize| {
        let cells: Vec<Option<&str>> = pairs.iter().map(|(column, _)| column.cell(*row)).collect();
        !known.contains(&cells)
    };
    let mut foreign = (0..new.n_rows).filter(is_foreign);
    if let Some(first) = foreign.next() {
        let (n, first_row) = (foreign.count() as u64 + 1, first as u64 + 1);
        return Err(Violation::ClassNotOfEarlier { n, first_row }.into());
    }
    let both = together(new, earlier, &pairs, requirements)?;
    let quasi: Vec<usize> = (0..pairs.len()).collect();
    let sensitive = both.with_role(Role::Sensitive);
    let findings = measure(&both, &quasi, &sensitive, requirements)?;
    if findings.unmet.is_empty() {
        return Ok(findings);
    }
    let unmet = findings.unmet.into_iter();
    Err(Violations(unmet.map(|violation| Violation::WithEarlier { violation: Box::new(violation) }).collect()))
}

/// Whether cells of two columns are read in the same way.
fn is_alike(new: &Column, earlier: &Column) -> bool {
    let spelling = |column: &Column| {
        let Notation { decimal_comma, date_format, codes } = column.notation.clone();
        // Only what matters for the type of the column.
        match column.value_type {
            ValueType::Decimal | ValueType::Float => (decimal_comma, None, codes),
            ValueType::Date | ValueType::Timestamp => (false, date_format, codes),
            ValueType::Integer | ValueType::Text | ValueType::Boolean => (false, None, codes),
        }
    };
    new.role == earlier.role && new.value_type == earlier.value_type && spelling(new) == spelling(earlier)
}

/// The rows of both releases in one table: the quasi columns, and the sensitive columns that are measured.
fn together(
    new: &Table,
    earlier: &Table,
    pairs: &[(&Column, &Column)],
    requirements: &[Requirement],
) -> Result<Table, Violations> {
    let mut columns: Vec<Column> = pairs.iter().map(|(column, known)| joined(column, known)).collect();
    let mut violations = Vec::new();
    let asked: BTreeSet<&str> = requirements.iter().filter_map(Requirement::sensitive_column).collect();
    for name in asked {
        match (new.column(name), earlier.column(name)) {
            (Some(column), Some(known)) => columns.push(joined(column, known)),
            _ => violations.push(Violation::UnknownColumn { column: name.to_owned() }),
        }
    }
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    // The number of a person of the new release, in decimals, can't be that of a row of the earlier one.
    let of_earlier = (0..earlier.n_rows).map(|row| format!("earlier {row}"));
    let of_new = (0..new.n_rows).map(|row| match new.person_column() {
        Some(person) => format!("new {}", person.ids[row]),
        None => format!("new {row}"),
    });
    let persons: Vec<String> = of_new.chain(of_earlier).collect();
    let person = columns.len();
    columns.push(Column::from_cells(PERSON, Role::Key, persons.iter().map(|person| Some(person.as_str()))));
    Ok(Table { name: new.name.clone(), columns, n_rows: new.n_rows + earlier.n_rows, person: Some(person) })
}

/// The cells of a column of the new release, then those of the earlier one.
fn joined(new: &Column, earlier: &Column) -> Column {
    let cells = |column: &'_ Column| -> Vec<Option<String>> {
        (0..column.ids.len()).map(|row| column.cell(row).map(str::to_owned)).collect()
    };
    let all: Vec<Option<String>> = cells(new).into_iter().chain(cells(earlier)).collect();
    Column {
        value_type: earlier.value_type,
        notation: earlier.notation.clone(),
        ..Column::from_cells(&earlier.name, earlier.role, all.iter().map(Option::as_deref))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[(&str, &str)]) -> Table {
        let column = |name: &str, role, cells: Vec<&str>| Column::from_cells(name, role, cells.into_iter().map(Some));
        let ages = column("age", Role::Quasi, rows.iter().map(|row| row.0).collect()).typed(ValueType::Integer);
        let values = column("disease", Role::Sensitive, rows.iter().map(|row| row.1).collect());
        Table { name: "t".to_owned(), columns: vec![ages, values], n_rows: rows.len(), person: None }
    }

    const EARLIER: [(&str, &str); 4] =
        [("[20,29]", "flu"), ("[20,29]", "gout"), ("[30,39]", "flu"), ("[30,39]", "gout")];

    #[test]
    fn classes_of_the_earlier_release_are_counted_with_both() {
        let new = table(&[("[20,29]", "flu"), ("[20,29]", "gout")]);
        let found = verify_applied(&new, &table(&EARLIER), &[Requirement::K(2)]).unwrap();
        assert_eq!((found.k, found.classes, found.persons), (2, 2, 6));
    }

    #[test]
    fn every_other_class_is_rejected() {
        for label in ["[20,28]", "[20,39]", "25", "*", "[30,39] "] {
            let new = table(&[("[20,29]", "flu"), (label, "gout")]);
            let found = verify_applied(&new, &table(&EARLIER), &[Requirement::K(1)]).unwrap_err();
            assert_eq!(found.0, [Violation::ClassNotOfEarlier { n: 1, first_row: 2 }], "{label}");
        }
    }

    #[test]
    fn a_column_of_another_type_or_name_is_rejected() {
        let mut new = table(&[("[20,29]", "flu")]);
        new.columns[0].value_type = ValueType::Decimal;
        let other = [Violation::OtherThanEarlier { column: "age".to_owned() }];
        assert_eq!(verify_applied(&new, &table(&EARLIER), &[]).unwrap_err().0, other);
        let mut new = table(&[("[20,29]", "flu")]);
        new.columns.push(Column::from_cells("sex", Role::Quasi, [Some("f")]));
        let other = [Violation::OtherThanEarlier { column: "sex".to_owned() }];
        assert_eq!(verify_applied(&new, &table(&EARLIER), &[]).unwrap_err().0, other);
    }

    #[test]
    fn a_distance_that_holds_in_each_release_can_fail_in_both_together() {
        // In each release every class has the shares of its release.
        let new = table(&[("[20,29]", "flu"), ("[20,29]", "flu"), ("[20,29]", "flu"), ("[20,29]", "flu")]);
        let t =
            Requirement::TCloseness { column: "disease".to_owned(), t: 0.1, distance: kohort_model::Distance::Equal };
        let asked = [Requirement::K(2), t];
        for release in [&new, &table(&EARLIER)] {
            assert!(measure(release, &[0], &[1], &asked).unwrap().unmet.is_empty());
        }
        let found = verify_applied(&new, &table(&EARLIER), &asked).unwrap_err().0;
        assert!(matches!(found[..], [Violation::WithEarlier { .. }]), "{found:?}");
    }

    #[test]
    fn rows_of_one_new_person_count_once() {
        let mut new = table(&[("[20,29]", "flu"), ("[20,29]", "flu")]);
        new.columns.push(Column::from_cells("id", Role::Identifier, [Some("7"), Some("7")]));
        new.person = Some(2);
        let found = verify_applied(&new, &table(&EARLIER), &[Requirement::K(2)]).unwrap();
        assert_eq!(found.persons, 5);
    }
}
