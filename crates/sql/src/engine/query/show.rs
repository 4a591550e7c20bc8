//! Statements that list something: views, the drift of a view, DGHs, and columns that nobody allows to be used.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float64Array, TimestampMicrosecondArray, UInt64Array};

use kohort_store::Store;

use crate::SqlError;
use crate::engine::Session;
use crate::engine::change::stored::of_state;
use crate::engine::session::{Outcome, list, rounded, texts};
use crate::engine::views::create;
use crate::parser::Answers;
use crate::role::Role;
use crate::store::Reading;
use crate::view::{AView, Standing, State, Version};

/// Lists views and their states. An owner also sees figures about their rows.
pub(crate) fn show_views(session: &Session) -> Result<Outcome, SqlError> {
    let views = session.seen_views();
    let versions: Vec<Option<Arc<Version>>> = views.values().map(|view| view.version()).collect();
    let standings = standings(session, &views)?;
    let states: Result<Vec<String>, SqlError> = views.values().map(|view| state(view, session.role)).collect();
    let mut columns: Vec<(&str, ArrayRef)> = vec![("view", texts(views.keys())), ("state", texts(states?))];
    if session.role == Role::Owner {
        let both = |of: fn(&Version) -> u64, kept: fn(&Standing) -> Option<u64>| -> ArrayRef {
            let of_view = versions.iter().zip(&standings);
            let count = of_view.map(|(version, standing)| match (version, standing) {
                (Some(version), _) => Some(of(version)),
                (None, standing) => standing.as_ref().and_then(kept),
            });
            Arc::new(count.collect::<UInt64Array>())
        };
        let count = |of: fn(&Version) -> u64| both(of, |_| None);
        let ncp = versions.iter().zip(&standings).map(|(version, standing)| {
            let kept = standing.as_ref().map(|standing| standing.ncp);
            version.as_deref().map(|version| version.summary.ncp).or(kept).map(rounded)
        });
        columns.extend([
            ("version", both(|version| version.number, |standing| Some(standing.epoch))),
            ("k", count(|version| version.summary.k)),
            ("classes", both(|version| version.summary.n_classes, |standing| Some(standing.n_classes))),
            ("ncp", Arc::new(ncp.collect::<Float64Array>()) as ArrayRef),
            ("k_deviation", count(|version| version.summary.k_deviation)),
            ("rows", both(|version| version.summary.n_rows, |standing| Some(standing.n_shown))),
            ("rows_alone", count(|version| version.summary.n_alone)),
            ("rows_denied", count(|version| version.summary.n_denied)),
            ("rows_left_over", count(|version| version.summary.n_left_over)),
        ]);
    }
    if session.role == Role::Owner && session.shared.store.is_some() {
        let kept = |of: fn(&Standing) -> u64| -> ArrayRef {
            Arc::new(standings.iter().map(|standing| standing.as_ref().map(of)).collect::<UInt64Array>())
        };
        let made = standings.iter().map(|standing| Some(rounded(standing.as_ref()?.ncp_when_made?)));
        let since = standings.iter().map(|standing| standing.as_ref().and_then(|standing| standing.since));
        columns.extend([
            ("ncp_when_made", Arc::new(made.collect::<Float64Array>()) as ArrayRef),
            ("rows_pending", kept(|standing| standing.n_pending)),
            ("rows_hidden", kept(|standing| standing.n_hidden)),
            ("rows_leaving", kept(|standing| standing.n_leaving)),
            ("waiting_since", Arc::new(since.collect::<TimestampMicrosecondArray>())),
        ]);
    }
    list(columns)
}

/// Compares the loss of a view with the loss it would have after a REFRESH. Nothing is changed.
pub(crate) async fn show_drift(session: &Session, name: &str) -> Result<Outcome, SqlError> {
    let view = session.shared.known_view(name)?;
    let snapshot = session.shared.store.as_ref().map(Store::read).transpose()?;
    let standing = match (view.state(), &snapshot) {
        (State::Materialized { view, .. }, Some(snapshot)) => Some(view.standing(snapshot)?),
        _ => None,
    };
    let kept = standing.as_ref().map(|standing| standing.ncp);
    let now = view.version().map(|version| version.summary.ncp).or(kept);
    let planned = create::plan_anew(session, &view).await?;
    // Rows and choices are read from the same state of the store as the standing.
    let owner = match snapshot {
        Some(snapshot) => of_state(&session.shared.owner, Reading::Snapshot(snapshot)),
        None => session.shared.owner.clone(),
    };
    let fresh = create::version(session, &owner, &planned).await?.version.summary.ncp;
    let ncp = |ncp: Option<f64>| Arc::new(Float64Array::from(vec![ncp.map(rounded)])) as ArrayRef;
    let count = |of: fn(&Standing) -> u64| Arc::new(UInt64Array::from(vec![standing.as_ref().map(of)])) as ArrayRef;
    let since = TimestampMicrosecondArray::from(vec![standing.as_ref().and_then(|standing| standing.since)]);
    list([
        ("view", texts([name])),
        ("ncp", ncp(now)),
        ("ncp_if_refreshed", ncp(Some(fresh))),
        ("drift", ncp(now.map(|now| now - fresh))),
        ("rows_pending", count(|standing| standing.n_pending)),
        ("rows_hidden", count(|standing| standing.n_hidden)),
        ("rows_leaving", count(|standing| standing.n_leaving)),
        ("waiting_since", Arc::new(since)),
    ])
}

/// How many rows of each materialized view are shown, hidden and pending; `None` for other views.
fn standings(session: &Session, views: &BTreeMap<String, Arc<AView>>) -> Result<Vec<Option<Standing>>, SqlError> {
    let Some(store) = session.shared.store.as_ref().filter(|_| session.role == Role::Owner) else {
        return Ok(vec![None; views.len()]);
    };
    let snapshot = store.read()?;
    let standing = |view: &Arc<AView>| match view.state() {
        State::Materialized { view, .. } => Ok(Some(view.standing(&snapshot)?)),
        State::Usable { .. } | State::Unusable { .. } | State::Stale(_) => Ok(None),
    };
    views.values().map(standing).collect()
}

pub(crate) fn show_hierarchies(session: &Session) -> Result<Outcome, SqlError> {
    let mut summaries = session.shared.hierarchies.read().summaries();
    if session.login.is_some() && session.role == Role::Analyst {
        let views = session.seen_views();
        let columns = || views.values().flat_map(|view| &view.definition.columns);
        summaries.retain(|summary| columns().any(|column| column.hierarchy.as_ref() == Some(&summary.name)));
    }
    let number = |of: fn(&crate::hierarchies::HierarchySummary) -> Option<usize>| -> ArrayRef {
        Arc::new(summaries.iter().map(|summary| of(summary).map(|n| n as u64)).collect::<UInt64Array>())
    };
    list([
        ("dgh", texts(summaries.iter().map(|summary| &summary.name))),
        ("made_from", texts(summaries.iter().map(|summary| summary.kind))),
        ("values", number(|summary| summary.n_values)),
        ("height", number(|summary| summary.height)),
    ])
}

/// Lists the columns of a view, and whether a purpose may use each. A column that none may use need not be collected.
pub(crate) fn show_collection(session: &Session, name: &str) -> Result<Outcome, SqlError> {
    let view = session.shared.known_view(name)?;
    let today = session.shared.calendar.today();
    let version = view.version();
    let policies = version.as_deref().and_then(|version| version.policies.as_deref());
    let unused = policies.map(|policies| policies.unused_columns(today)).unwrap_or_default();
    let columns = &view.definition.columns;
    let used = |position: usize| if unused.contains(&position) { "no purpose may use it" } else { "used" };
    list([
        ("column", texts(columns.iter().map(|column| &column.name))),
        ("collected_for", texts((0..columns.len()).map(used))),
    ])
}

fn state(view: &AView, role: Role) -> Result<String, SqlError> {
    Ok(match view.state() {
        State::Unusable { reason, .. } if role == Role::Owner => format!("unusable: {reason}"),
        State::Unusable { .. } => "unusable".to_owned(),
        State::Stale(reason) if role == Role::Owner => format!("stale: {reason}, REFRESH it"),
        State::Stale(_) => "stale".to_owned(),
        State::Usable { .. } if view.is_stale()? => "stale: its tables changed, REFRESH it".to_owned(),
        State::Usable { version, .. } if !version.fingerprint.counts_all_changes() => {
            "usable: changes of its tables are noticed when it is read".to_owned()
        }
        State::Usable { .. } | State::Materialized { .. } if view.definition.clauses.answers == Answers::Aggregates => {
            "usable: answers counts, sums and averages".to_owned()
        }
        State::Usable { .. } | State::Materialized { .. } => "usable".to_owned(),
    })
}
