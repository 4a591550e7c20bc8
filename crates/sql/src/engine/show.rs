//! Lists: views, DGHs, what is collected and never used.

use std::sync::{Arc, PoisonError};

use datafusion::arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};

use super::session::{Outcome, rounded, rows};
use super::{Role, Session};
use crate::SqlError;
use crate::view::{AView, Standing, State, Version};

impl Session {
    /// Views and their states; to the owner also what they hold.
    pub(super) fn show_views(&self) -> Result<Outcome, SqlError> {
        let views = self.shared.views.read().unwrap_or_else(PoisonError::into_inner);
        let versions: Vec<Option<Arc<Version>>> = views.values().map(|view| view.version()).collect();
        let states: Result<Vec<String>, SqlError> = views.values().map(|view| state(view, self.role)).collect();
        let mut columns: Vec<(&str, ArrayRef)> = vec![
            ("view", Arc::new(views.keys().map(Some).collect::<StringArray>())),
            ("state", Arc::new(states?.into_iter().map(Some).collect::<StringArray>())),
        ];
        if self.role == Role::Owner {
            let count = |of: fn(&Version) -> u64| -> ArrayRef {
                Arc::new(versions.iter().map(|version| version.as_deref().map(of)).collect::<UInt64Array>())
            };
            // Materialized views are counted as they now are.
            let kept = views.values().map(|view| self.standing(view)).collect::<Result<Vec<_>, _>>()?;
            let either = |of: fn(&Version) -> u64, of_kept: fn(&Standing) -> u64| -> ArrayRef {
                let known = versions.iter().zip(&kept);
                let number = known.map(|(version, kept)| version.as_deref().map(of).or(kept.as_ref().map(of_kept)));
                Arc::new(number.collect::<UInt64Array>())
            };
            let loss = versions.iter().zip(&kept).map(|(version, kept)| {
                let ncp = version.as_deref().map(|version| version.summary.ncp).or(kept.as_ref().map(|kept| kept.ncp));
                ncp.map(rounded)
            });
            columns.extend([
                ("version", either(|version| version.number, |kept| kept.epoch)),
                ("k", count(|version| version.summary.k)),
                ("classes", either(|version| version.summary.n_classes, |kept| kept.n_classes)),
                ("loss", Arc::new(loss.collect::<Float64Array>()) as ArrayRef),
                ("k_deviation", count(|version| version.summary.k_deviation)),
                ("rows", either(|version| version.summary.n_rows, |kept| kept.n_shown)),
                ("rows_alone", count(|version| version.summary.n_alone)),
                ("rows_denied", count(|version| version.summary.n_denied)),
                ("rows_left_over", count(|version| version.summary.n_left_over)),
            ]);
        }
        rows(
            RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
                .map_err(datafusion::error::DataFusionError::from)?,
        )
    }

    /// What is kept of a materialized view.
    fn standing(&self, view: &AView) -> Result<Option<Standing>, SqlError> {
        match (view.state(), &self.shared.data) {
            (State::Materialized { view, .. }, Some(data)) => {
                let snapshot = data.store.read()?;
                Ok(Some(view.standing(&snapshot)?))
            }
            _ => Ok(None),
        }
    }

    pub(super) fn show_hierarchies(&self) -> Result<Outcome, SqlError> {
        let hierarchies = self.shared.hierarchies.read().unwrap_or_else(PoisonError::into_inner);
        let summaries = hierarchies.summaries();
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
    pub(super) fn show_collection(&self, name: &str) -> Result<Outcome, SqlError> {
        let view = self.shared.view(name).ok_or_else(|| SqlError::UnknownView { name: name.to_owned() })?;
        let today = (self.shared.clock)().date_naive();
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
}

fn state(view: &AView, role: Role) -> Result<String, SqlError> {
    Ok(match view.state() {
        State::Unusable(reason) if role == Role::Owner => format!("unusable: {reason}"),
        State::Unusable(_) => "unusable".to_owned(),
        State::Usable { .. } if view.is_stale()? => "stale: its tables changed, REFRESH it".to_owned(),
        State::Usable { .. } | State::Materialized { .. } => "usable".to_owned(),
    })
}
