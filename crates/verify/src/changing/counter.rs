//! [`Counter`]: whether a set of members satisfies the requirements of a view over changing data.

use std::collections::BTreeMap;

use kohort_model::{Distance, Requirement};

use crate::changing::{Part, StepColumn, StepError, StepMember};
use crate::count::distance::{Distribution, Held};
use crate::count::requirement::{CountedClass, CountedValues, Distances, judge};
use crate::count::roll::Shares;

/// Counts requirements in sets of members.
pub(super) struct Counter<'a> {
    pub(super) columns: &'a [StepColumn],
    pub(super) requirements: &'a [Requirement],
}

impl Counter<'_> {
    /// Requirements that name an unknown column, or need distances between values, which are not known here.
    pub(super) fn uncountable(&self) -> Vec<StepError> {
        let is_known = |name: &str| self.columns.iter().any(|column| column.name == name);
        let is_countable = |requirement: &Requirement| match requirement {
            Requirement::K(_) | Requirement::PersonK { .. } => true,
            Requirement::TCloseness { column, distance, .. } => *distance == Distance::Equal && is_known(column),
            Requirement::DistinctL { column, .. }
            | Requirement::EntropyL { column, .. }
            | Requirement::RecursiveCL { column, .. }
            | Requirement::Alpha { column, .. }
            | Requirement::Beta { column, .. }
            | Requirement::EnhancedBeta { column, .. } => is_known(column),
        };
        let uncountable = self.requirements.iter().filter(|requirement| !is_countable(requirement));
        uncountable.map(|requirement| StepError::Uncountable { requirement: requirement.clone() }).collect()
    }

    /// The requirements that these members of an atom do not satisfy, their own k included. An empty set of members
    /// satisfies everything.
    pub(super) fn unmet(&self, atom: usize, part: Part, members: &[&StepMember]) -> Vec<StepError> {
        if members.is_empty() {
            return Vec::new();
        }
        let n_persons = members.len();
        let own_k = Requirement::PersonK { column: "own k".to_owned() };
        let asked = self.requirements.iter().filter(|asked| asked.own_k_column().is_none());
        let unmet = asked.chain([&own_k]).filter(|requirement| !self.holds(requirement, members));
        unmet.map(|requirement| StepError::Unmet { atom, part, requirement: requirement.clone(), n_persons }).collect()
    }

    fn holds(&self, requirement: &Requirement, members: &[&StepMember]) -> bool {
        let n_persons = members.len() as u64;
        let own_k = members.iter().map(|member| u64::from(member.k)).max().unwrap_or(0);
        let Some(name) = requirement.sensitive_column() else {
            return judge(requirement, &CountedClass { n_persons, own_k, sensitive: None }).holds;
        };
        let Some(position) = self.columns.iter().position(|column| column.name == name) else {
            return false;
        };
        let mut ids: BTreeMap<Option<&str>, u32> = BTreeMap::new();
        let mut counts: Vec<u64> = Vec::new();
        for (value, &count) in &self.columns[position].reference {
            ids.insert(value.as_deref(), counts.len() as u32);
            counts.push(count);
        }
        let mut values: Vec<u32> = Vec::with_capacity(members.len());
        for member in members {
            let id = *ids.entry(member.values[position].as_deref()).or_insert(counts.len() as u32);
            if id as usize == counts.len() {
                counts.push(0);
            }
            values.push(id);
        }
        // Nobody held this value when the view was built, so there is no share to compare with, and the requirement
        // fails.
        if requirement.compares_with_release() && values.iter().any(|&value| counts[value as usize] == 0) {
            return false;
        }
        values.sort_unstable();
        let mut held = Held::default();
        held.refill(values.into_iter());
        let reference = Distribution { total: counts.iter().sum(), counts };
        let distances = Distances { reference, ordered: None, hierarchical: None };
        let sensitive = CountedValues { held: &held, holders: &held, shares: Shares::Pairs, distances: &distances };
        judge(requirement, &CountedClass { n_persons, own_k, sensitive: Some(sensitive) }).holds
    }
}
