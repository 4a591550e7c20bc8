//! Lists: views and how far they have drifted, DGHs, what is collected and never used.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use datafusion::arrow::array::{
    ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray, UInt64Array,
};

use crate::SqlError;
use crate::engine::Session;
use crate::engine::change::stored::of_state;
use crate::engine::session::{Outcome, rounded, rows};
use crate::engine::views::create;
use crate::role::Role;
use crate::store::Reading;
use crate::view::{AView, Standing, State, Version};

/// Views and their states; to the owner also what they hold.
pub(in crate::engine) fn show_views(session: &Session) -> Result<Outcome, SqlError> {
    let views = session.seen_views();
    let versions: Vec<Option<Arc<Version>>> = views.values().map(|view| view.version()).collect();
    let standings = standings(session, &views)?;
    let states: Result<Vec<String>, SqlError> = views.values().map(|view| state(view, session.role)).collect();
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        ("view", Arc::new(views.keys().map(Some).collect::<StringArray>())),
        ("state", Arc::new(states?.into_iter().map(Some).collect::<StringArray>())),
    ];
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
    if session.role == Role::Owner && session.shared.data.is_some() {
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
    rows(
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
            .map_err(datafusion::error::DataFusionError::from)?,
    )
}

/// What a view loses now, and what it would lose if it were made anew; nothing is changed by asking.
pub(in crate::engine) async fn show_drift(session: &Session, name: &str) -> Result<Outcome, SqlError> {
    let view = session.shared.view(name).ok_or_else(|| SqlError::UnknownView { name: name.to_owned() })?;
    let snapshot = session.shared.data.as_ref().map(|data| data.store.read()).transpose()?;
    let standing = match (view.state(), &snapshot) {
        (State::Materialized { view, .. }, Some(snapshot)) => Some(view.standing(snapshot)?),
        _ => None,
    };
    let kept = standing.as_ref().map(|standing| standing.ncp);
    let now = view.version().map(|version| version.summary.ncp).or(kept);
    let planned = create::plan_anew(session, &view).await?;
    // Rows, choices and what is kept of both are of one state.
    let owner = match snapshot {
        Some(snapshot) => of_state(&session.shared.owner, Reading::Snapshot(snapshot)),
        None => session.shared.owner.clone(),
    };
    let fresh = create::version_in(session, &owner, &planned).await?.version.summary.ncp;
    let ncp = |ncp: Option<f64>| Arc::new(Float64Array::from(vec![ncp.map(rounded)])) as ArrayRef;
    let count = |of: fn(&Standing) -> u64| Arc::new(UInt64Array::from(vec![standing.as_ref().map(of)])) as ArrayRef;
    let since = TimestampMicrosecondArray::from(vec![standing.as_ref().and_then(|standing| standing.since)]);
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("view", Arc::new(StringArray::from(vec![name])), true),
        ("ncp", ncp(now), true),
        ("ncp_if_refreshed", ncp(Some(fresh)), true),
        ("drift", ncp(now.map(|now| now - fresh)), true),
        ("rows_pending", count(|standing| standing.n_pending), true),
        ("rows_hidden", count(|standing| standing.n_hidden), true),
        ("rows_leaving", count(|standing| standing.n_leaving), true),
        ("waiting_since", Arc::new(since), true),
    ];
    rows(RecordBatch::try_from_iter_with_nullable(columns).map_err(datafusion::error::DataFusionError::from)?)
}

/// How materialized views stand, `None` for others.
fn standings(session: &Session, views: &BTreeMap<String, Arc<AView>>) -> Result<Vec<Option<Standing>>, SqlError> {
    let Some(data) = session.shared.data.as_ref().filter(|_| session.role == Role::Owner) else {
        return Ok(vec![None; views.len()]);
    };
    let snapshot = data.store.read()?;
    let standing = |view: &Arc<AView>| match view.state() {
        State::Materialized { view, .. } => Ok(Some(view.standing(&snapshot)?)),
        State::Usable { .. } | State::Unusable { .. } | State::Stale(_) => Ok(None),
    };
    views.values().map(standing).collect()
}

pub(in crate::engine) fn show_hierarchies(session: &Session) -> Result<Outcome, SqlError> {
    let hierarchies = session.shared.hierarchies.read().unwrap_or_else(PoisonError::into_inner);
    let mut summaries = hierarchies.summaries();
    if session.login.is_some() && session.role == Role::Analyst {
        let views = session.seen_views();
        let columns = || views.values().flat_map(|view| &view.definition.columns);
        summaries.retain(|summary| columns().any(|column| column.hierarchy.as_ref() == Some(&summary.name)));
    }
    let number = |of: fn(&crate::hierarchies::HierarchySummary) -> Option<usize>| -> ArrayRef {
        Arc::new(summaries.iter().map(|summary| of(summary).map(|n| n as u64)).collect::<UInt64Array>())
    };
    let name = summaries.iter().map(|summary| Some(summary.name.as_str())).collect::<StringArray>();
    let kind = summaries.iter().map(|summary| Some(summary.kind)).collect::<StringArray>();
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("dgh", Arc::new(name), true),
        ("made_from", Arc::new(kind), true),
        ("values", number(|summary| summary.n_values), true),
        ("height", number(|summary| summary.height), true),
    ];
    rows(RecordBatch::try_from_iter_with_nullable(columns).map_err(datafusion::error::DataFusionError::from)?)
}

/// Columns of a view that nobody allows for any purpose: they need not be collected.
pub(in crate::engine) fn show_collection(session: &Session, name: &str) -> Result<Outcome, SqlError> {
    let view = session.shared.view(name).ok_or_else(|| SqlError::UnknownView { name: name.to_owned() })?;
    let today = session.shared.calendar.today();
    let version = view.version();
    let policies = version.as_deref().and_then(|version| version.policies.as_deref());
    let unused = policies.map(|policies| policies.unused_columns(today)).unwrap_or_default();
    let columns = &view.definition.columns;
    let names = columns.iter().map(|column| Some(column.name.as_str())).collect::<StringArray>();
    let used = |position: usize| if unused.contains(&position) { "no purpose may use it" } else { "used" };
    let used = (0..columns.len()).map(|position| Some(used(position))).collect::<StringArray>();
    let columns: Vec<(&str, ArrayRef, bool)> =
        vec![("column", Arc::new(names), true), ("collected_for", Arc::new(used), true)];
    rows(RecordBatch::try_from_iter_with_nullable(columns).map_err(datafusion::error::DataFusionError::from)?)
}

fn state(view: &AView, role: Role) -> Result<String, SqlError> {
    Ok(match view.state() {
        State::Unusable { reason, .. } if role == Role::Owner => format!("unusable: {reason}"),
        State::Unusable { .. } => "unusable".to_owned(),
        State::Stale(reason) if role == Role::Owner => format!("stale: {reason}, REFRESH it"),
        State::Stale(_) => "stale".to_owned(),
        State::Usable { .. } if view.is_stale()? => "stale: its tables changed, REFRESH it".to_owned(),
        State::Usable { version, .. } if !version.fingerprint.counts_all_changes() => {
            "usable: whether its tables changed shows when it is read".to_owned()
        }
        State::Usable { .. } | State::Materialized { .. } => "usable".to_owned(),
    })
}
