//! The role of each column of a file. There is no default role: columns that the spec does not mention are reported as a
//! problem.

use std::collections::BTreeMap;

use kohort_model::spec::{Keys, TableSpec};
use kohort_model::{Role, Spec};

use super::columns::FileColumns;
use super::error::ReadError;

/// The role of each column, `None` if it has none, and the problems.
pub(super) fn roles_of(names: &[String], spec: &Spec, table: &TableSpec) -> (Vec<Option<Role>>, Vec<ReadError>) {
    let roles: Vec<Option<Role>> = names.iter().map(|name| role_of(name, spec, table)).collect();
    let mut problems = Vec::new();
    let asked = || {
        let of_audiences = spec.audiences.values().flat_map(|audience| &audience.quasi);
        let given = table.columns.iter().map(|column| &column.name).chain(of_audiences);
        given.map(String::as_str).chain(key_names(table))
    };
    let known = FileColumns::of_file(names, asked());
    if roles.contains(&None) {
        problems.push(ReadError::NoRole { columns: known.only(|position| roles[position].is_none()) });
    }
    let mut unknown: Vec<String> = Vec::new();
    for name in table.columns.iter().map(|column| column.name.as_str()).chain(key_names(table)) {
        if !names.iter().any(|known| known == name) && !unknown.iter().any(|known| known == name) {
            unknown.push(name.to_owned());
        }
    }
    if !unknown.is_empty() {
        problems.push(ReadError::UnknownColumn { columns: unknown, known });
    }
    for (name, role) in names.iter().zip(&roles) {
        if *role == Some(Role::Identifier) && joins_tables(name, spec, table) {
            problems.push(ReadError::IdentifierKept { column: name.clone() });
        }
    }
    (roles, problems)
}

/// Names that occur twice or are empty.
pub(super) fn check_names(names: &[String]) -> Vec<ReadError> {
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (position, name) in names.iter().enumerate() {
        places.entry(name).or_default().push(position);
    }
    let mut problems = Vec::new();
    for (position, name) in names.iter().enumerate() {
        if name.is_empty() {
            problems.push(ReadError::EmptyColumnName { position: position + 1 });
        } else if let Some(places) = places.remove(name.as_str()).filter(|places| places.len() > 1) {
            let columns = FileColumns::by_position(places);
            problems.push(ReadError::DuplicateColumn { columns });
        }
    }
    problems
}

fn role_of(name: &str, spec: &Spec, table: &TableSpec) -> Option<Role> {
    let given = table.columns.iter().find(|column| column.name == name).map(|column| column.role);
    let is_key = key_names(table).any(|key| key == name);
    // The columns that an audience may know are quasi, and the spec need not repeat it.
    let is_known_to_an_audience =
        || spec.audiences.values().any(|audience| audience.quasi.iter().any(|quasi| quasi == name));
    match given {
        // The identifier itself is not released: it is a key, so new numbers take its place.
        Some(Role::Identifier) if spec.keys == Keys::Surrogate && joins_tables(name, spec, table) => Some(Role::Key),
        given => given.or(is_key.then_some(Role::Key)).or_else(|| is_known_to_an_audience().then_some(Role::Quasi)),
    }
}

/// Whether a column holds the parent's key, or the key that another table points to.
fn joins_tables(name: &str, spec: &Spec, table: &TableSpec) -> bool {
    let is_foreign_key = table.parent.as_ref().is_some_and(|parent| parent.foreign_key == name);
    let key = table.key.as_deref().or(table.person.as_deref());
    let is_pointed_to = || {
        let mut parents = spec.tables.iter().filter_map(|other| other.parent.as_ref());
        let mut columns = spec.tables.iter().flat_map(|other| &other.columns);
        parents.any(|parent| parent.table == table.name)
            || columns.any(|column| column.references.as_ref() == Some(&table.name))
    };
    is_foreign_key || (key == Some(name) && is_pointed_to())
}

/// Columns that tell rows apart or join tables.
pub(super) fn key_names(table: &TableSpec) -> impl Iterator<Item = &str> {
    let foreign_key = table.parent.as_ref().map(|parent| parent.foreign_key.as_str());
    [table.person.as_deref(), table.key.as_deref(), foreign_key].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use kohort_model::spec::ParentSpec;

    use super::*;
    use crate::read::load::tests::{column, table_spec};

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn every_column_without_a_role_is_listed() {
        let spec = Spec::new(2);
        let table = table_spec("t.csv", vec![column("age", Role::Quasi), column("zipp", Role::Quasi)]);
        let (roles, problems) = roles_of(&names(&["age", "zip", "ward"]), &spec, &table);
        assert_eq!(roles, [Some(Role::Quasi), None, None]);
        let messages: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(messages, ["columns have no role: 'zip', 'ward'", "no such column: 'zipp'"]);
        assert_eq!(problems[1].hint().unwrap(), "did you mean 'zip'?");
    }

    #[test]
    fn the_person_column_is_a_key_unless_said_otherwise() {
        let mut table = table_spec("t.csv", vec![]);
        table.person = Some("id".to_owned());
        let (roles, problems) = roles_of(&names(&["id"]), &Spec::new(2), &table);
        assert_eq!(roles, [Some(Role::Key)]);
        assert!(problems.is_empty());
        let (_, problems) = roles_of(&names(&["ID"]), &Spec::new(2), &table);
        assert_eq!(problems.len(), 2);
    }

    #[test]
    fn an_identifier_that_joins_tables_is_a_key_unless_keys_are_kept() {
        let parent = ParentSpec { table: "patient".to_owned(), foreign_key: "id".to_owned() };
        let mut patient = table_spec("p.csv", vec![column("id", Role::Identifier), column("name", Role::Identifier)]);
        patient.person = Some("id".to_owned());
        let mut visit = table_spec("v.csv", vec![column("id", Role::Identifier)]);
        (visit.name, visit.parent) = ("visit".to_owned(), Some(parent));
        let mut spec = Spec::new(2);
        let alone = roles_of(&names(&["id", "name"]), &spec, &patient);
        assert_eq!((alone.0, alone.1.len()), (vec![Some(Role::Identifier); 2], 0));
        spec.tables = vec![patient, visit];
        let of_patient = roles_of(&names(&["id", "name"]), &spec, &spec.tables[0]);
        assert_eq!((of_patient.0, of_patient.1.len()), (vec![Some(Role::Key), Some(Role::Identifier)], 0));
        assert_eq!(roles_of(&names(&["id"]), &spec, &spec.tables[1]).0, [Some(Role::Key)]);
        spec.keys = Keys::Keep;
        for table in &spec.tables {
            let (_, problems) = roles_of(&names(&["id", "name"]), &spec, table);
            assert!(problems.iter().any(|problem| matches!(problem, ReadError::IdentifierKept { .. })));
        }
    }

    #[test]
    fn names_must_be_there_and_differ() {
        let messages: Vec<String> =
            check_names(&names(&["a", "", "b", "a", "a"])).iter().map(ToString::to_string).collect();
        assert_eq!(messages, ["3 columns have the same name: column 1, column 4, column 5", "column 2 has no name"]);
    }
}
