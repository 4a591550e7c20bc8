//! Counting a table as each audience sees it, and as all of them see it together.
//!
//! # Guarantee
//! Every audience is counted by itself: rows are grouped by their cells in its columns, whatever structure they were
//! made with. A release may satisfy all audiences without falling apart into (super) butterflies, for theorem 5 of
//! `[PTL+08]` holds in one direction only where there are more than two.

use std::collections::BTreeMap;

use kohort_model::Requirement;

use crate::asked::{View, Views};
use crate::cells::CellIds;
use crate::count::{N_SMALLEST, count, count_classes};
use crate::grouping::Classes;
use crate::roll::Roll;
use crate::{AudienceFindings, Findings, SensitiveFindings, Violation, Violations};

impl View {
    /// Rows that look the same here.
    fn classes(&self, quasi: &[CellIds<'_>], n_rows: usize) -> Classes {
        Classes::group(&self.quasi.iter().map(|&position| &quasi[position]).collect::<Vec<_>>(), n_rows)
    }
}

impl Views {
    /// Counts everything. With audiences each figure is the worst of theirs, and classes are those on all columns.
    ///
    /// # Errors
    /// Where a requirement can't be evaluated. A requirement that fails is a finding.
    ///
    /// # Panics
    /// Where the roll has no rows.
    pub(crate) fn count(&self, roll: &Roll<'_>) -> Result<Findings, Violations> {
        let of_view = |view: &View| count_classes(roll, &view.requirements, &view.classes(&roll.quasi, roll.n_rows));
        let found: Vec<Findings> = self.each.iter().map(of_view).collect::<Result<_, _>>()?;
        match &self.together {
            None => Ok(found.into_iter().next().expect("without audiences there is one view")),
            Some(together) => Ok(self.worst(found, count(roll, together)?)),
        }
    }

    /// Per row the fewest rows that look the same as it to any audience that asks for persons' own k.
    pub(crate) fn sizes_for_own_k(&self, quasi: &[CellIds<'_>], n_rows: usize) -> Vec<u32> {
        let asks = |requirement: &Requirement| matches!(requirement, Requirement::PersonK { .. });
        let mut smallest = vec![u32::MAX; n_rows];
        for view in self.each.iter().filter(|view| view.requirements.iter().any(asks)) {
            let classes = view.classes(quasi, n_rows);
            for class in 0..classes.len() {
                let rows = classes.rows(class);
                for &row in rows {
                    let size = &mut smallest[row as usize];
                    *size = (*size).min(rows.len() as u32);
                }
            }
        }
        smallest
    }

    fn worst(&self, found: Vec<Findings>, union: Findings) -> Findings {
        let mut smallest_classes: BTreeMap<u64, u64> = BTreeMap::new();
        let mut sensitive: Vec<SensitiveFindings> = Vec::new();
        let mut unmet = Vec::new();
        let mut audiences = Vec::with_capacity(found.len());
        for (view, found) in self.each.iter().zip(found) {
            let audience = view.audience.clone().unwrap_or_default();
            unmet.extend(found.unmet.into_iter().map(|violation| violation.for_audience(&audience)));
            for (size, n_classes) in found.smallest_classes {
                *smallest_classes.entry(size).or_default() += n_classes;
            }
            // Every view measures the same columns in the same order.
            match sensitive.as_mut_slice() {
                [] => sensitive.clone_from(&found.sensitive),
                worst => worst.iter_mut().zip(&found.sensitive).for_each(|(worst, other)| worst.meet(other)),
            }
            let Findings { classes, k, unique_persons, average_risk, sensitive, .. } = found;
            audiences.push(AudienceFindings { audience, classes, k, unique_persons, average_risk, sensitive });
        }
        unmet.extend(union.unmet.into_iter().map(|violation| Violation::Together { violation: Box::new(violation) }));
        let k = audiences.iter().map(|audience| audience.k).min().unwrap_or(0);
        Findings {
            k,
            unique_persons: audiences.iter().map(|audience| audience.unique_persons).max().unwrap_or(0),
            smallest_classes: smallest_classes.into_iter().take(N_SMALLEST).collect(),
            highest_risk: 1.0 / k as f64,
            average_risk: audiences.iter().map(|audience| audience.average_risk).fold(0.0, f64::max),
            sensitive,
            unmet,
            audiences,
            collusion_k: Some(union.k),
            ..union
        }
    }
}

impl SensitiveFindings {
    /// Takes in the worst class of another audience.
    fn meet(&mut self, other: &SensitiveFindings) {
        let larger = |a: Option<f64>, b: Option<f64>| Some(a?.max(b?));
        self.l = self.l.min(other.l);
        self.entropy_l = self.entropy_l.min(other.entropy_l);
        self.recursive_c = larger(self.recursive_c, other.recursive_c);
        self.t = self.t.max(other.t);
        self.t_ordered = larger(self.t_ordered, other.t_ordered);
        self.t_hierarchical = larger(self.t_hierarchical, other.t_hierarchical);
        self.alpha = self.alpha.max(other.alpha);
        self.beta = self.beta.max(other.beta);
        self.enhanced_beta = larger(self.enhanced_beta, other.enhanced_beta);
    }
}

#[cfg(test)]
mod tests;
