//! Random requirements on a sensitive column. Most of them are loose.

use kohort_model::{Column, Distance, Requirement};
use proptest::prelude::*;

/// A requirement without its column.
#[derive(Clone, Copy, Debug)]
pub(super) enum RequirementDraft {
    DistinctL(u32),
    EntropyL(f64),
    RecursiveCL(f64, u32),
    TCloseness(f64, Distance),
    Alpha(f64),
    Beta(f64),
    EnhancedBeta(f64),
}

pub(super) fn requirement_draft() -> impl Strategy<Value = RequirementDraft> {
    let distance = prop_oneof![Just(Distance::Equal), Just(Distance::Ordered), Just(Distance::Hierarchical)];
    prop_oneof![
        (1u32..4).prop_map(RequirementDraft::DistinctL),
        (1.0f64..3.0).prop_map(RequirementDraft::EntropyL),
        (0.7f64..5.0, 1u32..4).prop_map(|(c, l)| RequirementDraft::RecursiveCL(c, l)),
        (0.05f64..0.7, distance).prop_map(|(t, distance)| RequirementDraft::TCloseness(t, distance)),
        (0.3f64..1.0).prop_map(RequirementDraft::Alpha),
        (0.3f64..5.0).prop_map(RequirementDraft::Beta),
        (0.3f64..5.0).prop_map(RequirementDraft::EnhancedBeta),
    ]
}

impl RequirementDraft {
    /// The requirement on this column. A hierarchical distance becomes an ordered one if there is no hierarchy.
    pub(super) fn on(self, on: &Column) -> Requirement {
        let column = on.name.clone();
        match self {
            RequirementDraft::DistinctL(l) => Requirement::DistinctL { column, l },
            RequirementDraft::EntropyL(l) => Requirement::EntropyL { column, l },
            RequirementDraft::RecursiveCL(c, l) => Requirement::RecursiveCL { column, c, l },
            RequirementDraft::TCloseness(t, Distance::Hierarchical) if on.hierarchy.is_none() => {
                Requirement::TCloseness { column, t, distance: Distance::Ordered }
            }
            RequirementDraft::TCloseness(t, distance) => Requirement::TCloseness { column, t, distance },
            RequirementDraft::Alpha(alpha) => Requirement::Alpha { column, alpha },
            RequirementDraft::Beta(beta) => Requirement::Beta { column, beta },
            RequirementDraft::EnhancedBeta(beta) => Requirement::EnhancedBeta { column, beta },
        }
    }
}
