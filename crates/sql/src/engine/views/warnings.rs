//! Warnings for the owner when a view is made or refreshed, about what is allowed but perhaps not meant.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;
use kohort_core::changing::Combined;
use kohort_model::Disclosure;

use super::create::Planned;
use crate::SqlError;
use crate::engine::Session;
use crate::engine::session::counted;
use crate::parser::{Answers, Purposes};
use crate::policy::unused_choices;
use crate::view::{
    AView, Definition, FromChanges, State, Told, Version, fewer_by_changes, fewer_together, share_nobody, told_together,
};

/// What readers learn who combine the answers of a materialized view from before and after a refresh.
pub(crate) fn told_of_refresh(told: Told) -> String {
    let sets = |combined: Combined| {
        let persons = counted(combined.n_exposed as usize, "person");
        let fewest = combined.fewest.unwrap_or(0);
        format!("find {persons} in sets that do not satisfy what is asked, the smallest of {fewest}")
    };
    match told {
        Told::Whole => String::new(),
        Told::Forced(Some(Combined { n_exposed: 0, .. })) => String::new(),
        Told::Forced(Some(combined)) => format!("\nwarning: somebody who kept earlier answers can {}", sets(combined)),
        Told::Forced(None) => "\nwarning: it is not known what somebody who kept earlier answers can tell".to_owned(),
        Told::Partial { n_kept, n_hidden, n_waiting, combined } => {
            let persons = |n: u64| counted(n as usize, "person");
            format!(
                "\nin part: {} as before, {} hidden, {} pending; if all were shown anew, somebody who kept earlier answers could {}",
                persons(n_kept),
                persons(n_hidden),
                persons(n_waiting),
                sets(combined)
            )
        }
    }
}

/// The warnings about a view, each in a line of its own. `before` is the view of the same name that it replaces.
pub(crate) fn warnings(
    session: &Session,
    planned: &Planned,
    state: &State,
    before: Option<&Arc<AView>>,
) -> Result<String, SqlError> {
    // Nobody reads warnings while a folder is opened.
    if session.is_restoring {
        return Ok(String::new());
    }
    let mut warnings = of_definition(&planned.definition);
    warnings.extend(of_choices(planned));
    if let (Some(before), State::Usable { version, .. }) = (before, state) {
        warnings.extend(of_earlier(&before.state(), version));
    }
    warnings.extend(of_others(session, planned, state)?);
    Ok(warnings.into_iter().map(|warning| format!("\nwarning: {warning}")).collect())
}

/// Warns of other views of the same persons that tell more, or may tell more, if both are read together.
fn of_others(session: &Session, planned: &Planned, state: &State) -> Result<Vec<String>, SqlError> {
    let views = session.shared.views.read().clone();
    let own_tables = tables_of(&planned.plans.query)?;
    let shares_table = |query: &LogicalPlan| tables_of(query).map(|tables| !tables.is_disjoint(&own_tables));
    let mut warnings = Vec::new();
    for (name, other) in views.iter().filter(|(name, _)| **name != planned.definition.name) {
        match (state, other.state()) {
            (State::Usable { version, .. }, State::Usable { version: of_other, plans, .. }) => {
                if let Some(n_persons) = fewer_together(&[version, &of_other]) {
                    let told = told_together(n_persons);
                    warnings.push(format!("somebody who also reads {name} {told}: let nobody read both"));
                } else if shares_table(&plans.query)? && share_nobody(version, &of_other) {
                    let unlike = "is of the same table, but names persons differently";
                    warnings.push(format!("{name} {unlike}: if they are the same persons, let nobody read both"));
                }
            }
            (
                State::Usable { .. } | State::Materialized { .. },
                State::Usable { plans, .. } | State::Materialized { plans, .. },
            ) if shares_table(&plans.query)? => {
                let moves = "is of the same table, and one of them is materialized";
                warnings.push(format!("{name} {moves}, so nobody knows what both tell together: let nobody read both"));
            }
            _ => {}
        }
    }
    Ok(warnings)
}

/// Warns of what readers learn who kept the answers of the version before.
fn of_earlier(before: &State, version: &Version) -> Option<String> {
    let may = "somebody who kept them may be able to single out some persons";
    match before {
        State::Usable { version: earlier, .. } => {
            let told = |n_persons| format!("somebody who kept its earlier answers {}", told_together(n_persons));
            match (fewer_together(&[earlier, version]), fewer_by_changes(earlier, version)) {
                (Some(n_persons), _) => Some(told(n_persons)),
                (None, FromChanges::Fewer(n_persons)) => Some(told(n_persons) + ", by comparing which values changed"),
                (None, FromChanges::Unknown) => Some(format!("its earlier values can't be compared: {may}")),
                (None, FromChanges::Nothing) => None,
            }
        }
        State::Stale(_) | State::Unusable { was_shown: true, .. } => {
            Some(format!("its earlier answers are not known any more: {may}"))
        }
        // A materialized view is compared with its old version when it is made anew.
        State::Unusable { was_shown: false, .. } | State::Materialized { .. } => None,
    }
}

/// Warns of clauses that protect less.
fn of_definition(definition: &Definition) -> Vec<String> {
    let mut warnings = Vec::new();
    if definition.clauses.policy.is_none() && definition.k_of(None) < 2 {
        warnings.push("K 1 hides nobody: everybody is shown as they are".to_owned());
    }
    if definition.clauses.disclosure == Disclosure::Row {
        warnings.push("DISCLOSURE ROW is safe only while nobody knows who refused what".to_owned());
    }
    if definition.clauses.answers == Answers::Matching {
        let learns = "a reader who tries all values learns each class's exact quasi values";
        warnings.push(format!("with ANSWERS MATCHING {learns}"));
    }
    if definition.clauses.purposes == Purposes::Apart {
        let readers = "is for readers who can never hold two purposes: two partitions can be intersected";
        warnings.push(format!("PER PURPOSE {readers}"));
    }
    warnings
}

/// Warns of choices that concern no column of the view, because a choice with a misspelt column would refuse nothing.
fn of_choices(planned: &Planned) -> Option<String> {
    let (policies, reference) = (planned.plans.policies.as_ref()?, planned.definition.clauses.policy.as_ref()?);
    let columns: Vec<&str> = planned.definition.columns.iter().map(|column| column.name.as_str()).collect();
    let fields = policies.schema().fields().iter().map(|field| field.name().as_str());
    let unused = unused_choices(fields, &columns);
    let table = &reference.table;
    (!unused.is_empty()).then(|| format!("{} of {table} is about none of the view's columns", unused.join(", ")))
}

/// The names of the tables that a query reads.
fn tables_of(query: &LogicalPlan) -> Result<BTreeSet<String>, SqlError> {
    let mut tables = BTreeSet::new();
    query.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            tables.insert(scan.table_name.table().to_owned());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(tables)
}
