//! Which column of a file has which role. There is no default: columns nobody spoke of are listed as a problem.

use std::collections::BTreeMap;

use kohort_model::spec::TableSpec;
use kohort_model::{Role, Spec};

use super::problem::ReadProblem;

/// The role of each column, `None` where it has none, and what does not fit.
pub(super) fn roles_of(names: &[String], spec: &Spec, table: &TableSpec) -> (Vec<Option<Role>>, Vec<ReadProblem>) {
    let roles: Vec<Option<Role>> = names.iter().map(|name| role_of(name, spec, table)).collect();
    let mut problems = Vec::new();
    let without_role: Vec<String> =
        names.iter().zip(&roles).filter(|(_, role)| role.is_none()).map(|(name, _)| name.clone()).collect();
    if !without_role.is_empty() {
        problems.push(ReadProblem::NoRole { columns: without_role });
    }
    let mut unknown: Vec<String> = Vec::new();
    for name in table.columns.iter().map(|column| column.name.as_str()).chain(key_names(table)) {
        if !names.iter().any(|known| known == name) && !unknown.iter().any(|known| known == name) {
            unknown.push(name.to_owned());
        }
    }
    if !unknown.is_empty() {
        problems.push(ReadProblem::UnknownColumn { columns: unknown, known: names.to_vec() });
    }
    (roles, problems)
}

/// Names that occur twice or are empty.
pub(super) fn check_names(names: &[String]) -> Vec<ReadProblem> {
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for name in names {
        *times.entry(name).or_default() += 1;
    }
    let mut problems = Vec::new();
    for (position, name) in names.iter().enumerate() {
        if name.is_empty() {
            problems.push(ReadProblem::EmptyColumnName { position: position + 1 });
        } else if let Some(times @ 2..) = times.remove(name.as_str()) {
            problems.push(ReadProblem::DuplicateColumn { column: name.clone(), times });
        }
    }
    problems
}

fn role_of(name: &str, spec: &Spec, table: &TableSpec) -> Option<Role> {
    let given = table.columns.iter().find(|column| column.name == name).map(|column| column.role);
    let is_key = key_names(table).any(|key| key == name);
    // An audience's columns are quasi without being said so again.
    let is_known_to_an_audience =
        || spec.audiences.values().any(|audience| audience.quasi.iter().any(|quasi| quasi == name));
    given.or(is_key.then_some(Role::Key)).or_else(|| is_known_to_an_audience().then_some(Role::Quasi))
}

fn key_names(table: &TableSpec) -> impl Iterator<Item = &str> {
    let foreign_key = table.parent.as_ref().map(|parent| parent.foreign_key.as_str());
    [table.person.as_deref(), table.key.as_deref(), foreign_key].into_iter().flatten()
}

#[cfg(test)]
mod tests {
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
    fn names_must_be_there_and_differ() {
        let messages: Vec<String> =
            check_names(&names(&["a", "", "b", "a", "a"])).iter().map(ToString::to_string).collect();
        assert_eq!(messages, ["column 'a' occurs 3 times", "column 2 has no name"]);
    }
}
