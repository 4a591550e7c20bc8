//! Which crate may depend on which, compared with what `cargo metadata` finds.
//!
//! The architecture rests on these edges: the verifier can't lean on the code it checks, the core can't reach a file.
//! The same table is in `ARCHITECTURE.md`; a test keeps the two equal.

use std::collections::BTreeSet;

use serde_json::Value;

/// What one crate of the workspace may depend on.
struct Allowed {
    package: &'static str,
    /// The crates of the workspace that it may use.
    uses: &'static [&'static str],
    /// Further crates of the workspace that its tests may use.
    tests_use: &'static [&'static str],
}

const ALLOWED: [Allowed; 16] = [
    Allowed { package: "kohort-model", uses: &[], tests_use: &[] },
    Allowed { package: "kohort-core", uses: &["kohort-model"], tests_use: &["kohort-testkit"] },
    Allowed { package: "kohort-verify", uses: &["kohort-model"], tests_use: &["kohort-testkit"] },
    Allowed { package: "kohort-io", uses: &["kohort-model", "kohort-verify"], tests_use: &["kohort-testkit"] },
    Allowed { package: "kohort-labels", uses: &["kohort-model"], tests_use: &[] },
    Allowed { package: "kohort-store", uses: &[], tests_use: &["kohort-crashkit"] },
    Allowed {
        package: "kohort",
        uses: &["kohort-model", "kohort-core", "kohort-verify", "kohort-io", "kohort-plots"],
        tests_use: &["kohort-testkit"],
    },
    Allowed { package: "kohort-cli", uses: &["kohort", "kohort-plots"], tests_use: &["kohort-testkit"] },
    Allowed {
        package: "kohort-sql",
        uses: &["kohort-model", "kohort-core", "kohort-verify", "kohort-io", "kohort-store", "kohort-labels"],
        tests_use: &["kohort-testkit", "kohort-crashkit"],
    },
    Allowed { package: "kohort-server", uses: &["kohort-sql"], tests_use: &[] },
    Allowed { package: "kohort-plots", uses: &[], tests_use: &[] },
    Allowed { package: "kohort-python", uses: &["kohort", "kohort-plots"], tests_use: &[] },
    Allowed { package: "kohort-crashkit", uses: &[], tests_use: &[] },
    Allowed {
        package: "kohort-testkit",
        uses: &["kohort-model", "kohort-core", "kohort-verify", "kohort-io"],
        tests_use: &[],
    },
    Allowed {
        package: "kohort-bench",
        uses: &["kohort-model", "kohort-core", "kohort-verify", "kohort-io", "kohort-testkit"],
        tests_use: &[],
    },
    Allowed { package: "xtask", uses: &[], tests_use: &[] },
];

/// Families of outside crates that only some of ours may name.
const FENCED: [(&str, &[&str]); 2] = [
    (
        "arrow",
        &["kohort", "kohort-io", "kohort-store", "kohort-server", "kohort-python", "kohort-bench", "kohort-testkit"],
    ),
    ("parquet", &["kohort-io", "kohort-bench", "kohort-testkit"]),
];

/// Families of outside crates on which only [`ENGINE_USERS`] may depend, directly or indirectly. So the command, which
/// is built without them, builds in minutes.
const ENGINE: [&str; 3] = ["tokio", "datafusion", "ballista"];

/// Crates that are built on a query engine.
const ENGINE_USERS: [&str; 3] = ["kohort-labels", "kohort-sql", "kohort-server"];

/// Every crate of the workspace.
pub(crate) fn packages() -> impl Iterator<Item = &'static str> {
    ALLOWED.iter().map(|allowed| allowed.package)
}

/// The crates that must be built without a query engine.
pub(crate) fn without_engine() -> impl Iterator<Item = &'static str> {
    packages().filter(|package| !ENGINE_USERS.contains(package))
}

/// Crates of a query engine that some crate [`without_engine`] is built from, although it must not be.
pub(crate) fn engine_complaints(built_from: &[String]) -> Vec<String> {
    let is_of_engine = |name: &&String| ENGINE.iter().any(|family| is_of_family(name, family));
    let found: BTreeSet<&String> = built_from.iter().filter(is_of_engine).collect();
    let users = ENGINE_USERS.join(", ");
    found
        .iter()
        .map(|name| format!("only {users} may be built with '{name}', but others are too: see `cargo tree -i {name}`"))
        .collect()
}

/// Everything in the metadata that the tables above do not allow.
pub(crate) fn complaints(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let member_ids: BTreeSet<&str> = texts(&metadata["workspace_members"]).collect();
    let members: Vec<&Value> = packages.iter().filter(|package| member_ids.contains(text(&package["id"]))).collect();
    let member_names: BTreeSet<&str> = members.iter().map(|package| text(&package["name"])).collect();

    let mut complaints = Vec::new();
    for package in &members {
        let name = text(&package["name"]);
        let Some(allowed) = ALLOWED.iter().find(|allowed| allowed.package == name) else {
            complaints.push(format!("crate '{name}' is not in the table of xtask/src/edges.rs: add what it may use"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let used = text(&dependency["name"]);
            let only_tests = text(&dependency["kind"]) == "dev";
            let manner = if only_tests { "in its tests" } else { "itself" };
            let may = allowed.uses.contains(&used) || (only_tests && allowed.tests_use.contains(&used));
            if member_names.contains(used) && !may {
                complaints.push(format!("'{name}' must not use '{used}' {manner}"));
            }
            for (family, users) in FENCED {
                if is_of_family(used, family) && !users.contains(&name) {
                    complaints.push(format!("'{name}' must not use '{used}': only {} may", users.join(", ")));
                }
            }
        }
    }
    for allowed in &ALLOWED {
        if !member_names.contains(allowed.package) {
            complaints.push(format!("the table names '{}', which is not in the workspace", allowed.package));
        }
    }
    complaints
}

fn is_of_family(package: &str, family: &str) -> bool {
    package.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().map(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::command;

    /// Metadata of a workspace that holds every crate of the table and uses every edge.
    fn full_workspace() -> Value {
        let packages: Vec<Value> = ALLOWED
            .iter()
            .map(|allowed| {
                let uses = allowed.uses.iter().map(|used| json!({ "name": used, "kind": null }));
                let tests_use = allowed.tests_use.iter().map(|used| json!({ "name": used, "kind": "dev" }));
                let dependencies: Vec<Value> = uses.chain(tests_use).collect();
                json!({ "id": allowed.package, "name": allowed.package, "dependencies": dependencies })
            })
            .collect();
        let members: Vec<&str> = ALLOWED.iter().map(|allowed| allowed.package).collect();
        json!({ "packages": packages, "workspace_members": members })
    }

    fn add_dependency(metadata: &mut Value, package: &str, dependency: Value) {
        let packages = metadata["packages"].as_array_mut().unwrap();
        let package = packages.iter_mut().find(|found| found["name"] == package).unwrap();
        package["dependencies"].as_array_mut().unwrap().push(dependency);
    }

    #[test]
    fn a_workspace_that_uses_every_edge_of_the_table_passes() {
        assert_eq!(complaints(&full_workspace()), Vec::<String>::new());
    }

    #[test]
    fn an_edge_that_is_not_in_the_table_fails() {
        let mut metadata = full_workspace();
        add_dependency(&mut metadata, "kohort-verify", json!({ "name": "kohort-core", "kind": null }));
        assert_eq!(complaints(&metadata), ["'kohort-verify' must not use 'kohort-core' itself"]);
    }

    #[test]
    fn crates_that_only_tests_may_use_are_refused_elsewhere() {
        let mut metadata = full_workspace();
        add_dependency(&mut metadata, "kohort-core", json!({ "name": "kohort-testkit", "kind": null }));
        assert_eq!(complaints(&metadata), ["'kohort-core' must not use 'kohort-testkit' itself"]);
    }

    #[test]
    fn tests_of_the_model_use_no_other_crate() {
        let mut metadata = full_workspace();
        add_dependency(&mut metadata, "kohort-model", json!({ "name": "kohort-testkit", "kind": "dev" }));
        assert_eq!(complaints(&metadata), ["'kohort-model' must not use 'kohort-testkit' in its tests"]);
    }

    #[test]
    fn a_crate_that_is_not_in_the_table_fails() {
        let mut metadata = full_workspace();
        let stranger = json!({ "id": "kohort-new", "name": "kohort-new", "dependencies": [] });
        metadata["packages"].as_array_mut().unwrap().push(stranger);
        metadata["workspace_members"].as_array_mut().unwrap().push(json!("kohort-new"));
        assert_eq!(complaints(&metadata).len(), 1);
    }

    #[test]
    fn a_row_of_the_table_without_a_crate_fails() {
        let mut metadata = full_workspace();
        metadata["workspace_members"].as_array_mut().unwrap().retain(|id| id != "kohort-bench");
        assert_eq!(complaints(&metadata), ["the table names 'kohort-bench', which is not in the workspace"]);
    }

    #[test]
    fn only_some_crates_name_arrow() {
        let mut metadata = full_workspace();
        add_dependency(&mut metadata, "kohort-io", json!({ "name": "arrow-array", "kind": null }));
        add_dependency(&mut metadata, "kohort-core", json!({ "name": "arrow", "kind": "dev" }));
        add_dependency(&mut metadata, "kohort-core", json!({ "name": "arrowhead", "kind": null }));
        let found = complaints(&metadata);
        assert_eq!(
            found,
            [
                "'kohort-core' must not use 'arrow': only kohort, kohort-io, kohort-store, kohort-server, kohort-python, kohort-bench, kohort-testkit may"
            ]
        );
    }

    #[test]
    fn a_query_engine_is_refused_wherever_it_comes_from() {
        let built_from = ["serde", "datafusion-common", "tokio", "tokio", "tokiot"].map(str::to_owned);
        assert_eq!(engine_complaints(&built_from).len(), 2);
    }

    #[test]
    fn the_command_must_be_built_without_a_query_engine() {
        assert!(without_engine().any(|package| package == "kohort"));
        assert!(without_engine().all(|package| package != "kohort-sql"));
    }

    #[test]
    fn the_architecture_document_shows_the_same_table() {
        let document = std::fs::read_to_string(command::root().join("ARCHITECTURE.md")).unwrap();
        for allowed in &ALLOWED {
            let list = |names: &[&str]| {
                let short: Vec<&str> = names.iter().map(|name| name.strip_prefix("kohort-").unwrap_or(name)).collect();
                if short.is_empty() { "nothing".to_owned() } else { short.join(", ") }
            };
            let row = format!("| `{}` | {} | {} |", allowed.package, list(allowed.uses), list(allowed.tests_use));
            assert!(document.contains(&row), "ARCHITECTURE.md lacks the row {row}");
        }
    }
}
