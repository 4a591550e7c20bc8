//! Counting a table as each audience sees it, and as coalitions of them see it together.
//!
//! # Guarantee
//! Every audience is counted by itself: rows are grouped by their cells in its columns, whatever structure they were
//! made with. A release may satisfy all audiences without falling apart into (super) butterflies, for theorem 5 of
//! `[PTL+08]` holds in one direction only where there are more than two.

use std::collections::BTreeMap;

use kohort_model::Requirement;

use crate::asked::{View, Views, Whose};
use crate::count::cells::CellIds;
use crate::count::grouping::Classes;
use crate::count::learned::QuasiLabels;
use crate::count::roll::{OwnK, Roll};
use crate::count::{N_SMALLEST, count_classes};
use crate::{AudienceFindings, Findings, LearnedFindings, SensitiveFindings, Skipped, Violation, Violations};

impl View {
    /// Rows that look the same here.
    fn classes(&self, quasi: &[CellIds<'_>], n_rows: usize) -> Classes {
        Classes::group(&self.quasi.iter().map(|&position| &quasi[position]).collect::<Vec<_>>(), n_rows)
    }

    /// What was counted here; what is unmet goes to `unmet`.
    fn findings(&self, found: Findings, learned: Vec<LearnedFindings>, unmet: &mut Vec<Violation>) -> AudienceFindings {
        let Findings { classes, k, unique_persons, average_risk, sensitive, unmet: failed, .. } = found;
        unmet.extend(failed.into_iter().map(|violation| self.whose.blame(violation)));
        let audience = self.whose.name().to_owned();
        AudienceFindings { audience, classes, k, unique_persons, average_risk, sensitive, learned }
    }
}

impl Views {
    /// Counts everything. With audiences each figure is the worst of theirs, and classes are those on all columns.
    /// `labels` are what the labels of each quasi column mean, where that is known.
    ///
    /// # Errors
    /// Where a requirement can't be evaluated. A requirement that fails is a finding.
    ///
    /// # Panics
    /// Where the roll has no rows.
    pub(crate) fn count(&self, roll: &Roll<'_>, labels: &[QuasiLabels]) -> Result<Findings, Violations> {
        let of_view = |view: &View| -> Result<(Findings, Vec<LearnedFindings>), Violations> {
            let classes = view.classes(&roll.quasi, roll.n_rows);
            let mut found = count_classes(roll, &view.requirements, &classes)?;
            let mut learned = Vec::new();
            // Without audiences everybody may know everything.
            let unknown = (0..roll.quasi.len()).filter(|column| !view.quasi.contains(column));
            for column in unknown.filter(|_| view.whose != Whose::Anybody) {
                let asked = view.hidden.iter().filter(|hidden| hidden.column == column);
                let asked: Vec<&Requirement> = asked.map(|hidden| &hidden.requirement).collect();
                if let Some(told) = labels[column].told(&classes, &roll.quasi[column], roll) {
                    found.unmet.extend(told.unmet(&asked));
                    learned.push(told.findings());
                }
            }
            Ok((found, learned))
        };
        let mut each: Vec<(Findings, Vec<LearnedFindings>)> =
            self.each.iter().map(of_view).collect::<Result<_, _>>()?;
        if self.coalitions.is_empty() {
            return Ok(each.swap_remove(0).0);
        }
        let coalitions = self.coalitions.iter().map(of_view).collect::<Result<_, _>>()?;
        let mut findings = self.worst(each, coalitions);
        let is_kept_from_somebody = |column: &usize| self.all().any(|view| !view.quasi.contains(column));
        let labels = (0..labels.len()).filter(is_kept_from_somebody).map(|column| &labels[column]);
        let columns = labels.filter(|labels| labels.is_unknown()).map(QuasiLabels::column);
        findings.skipped = columns.map(|column| Skipped::Labels { column: column.to_owned() }).collect();
        Ok(findings)
    }

    /// The classes of every view, with what is asked of them.
    pub(crate) fn looks(&self, quasi: &[CellIds<'_>], n_rows: usize) -> Vec<(Classes, Vec<Requirement>)> {
        self.all().map(|view| (view.classes(quasi, n_rows), view.requirements.clone())).collect()
    }

    /// Per row the fewest rows that look the same as it to any audience that asks for persons' own k.
    pub(crate) fn sizes_for_own_k(&self, quasi: &[CellIds<'_>], n_rows: usize) -> Vec<u32> {
        let asks = |requirement: &Requirement| requirement.own_k_column().is_some();
        let mut smallest = vec![u32::MAX; n_rows];
        for view in self.all().filter(|view| view.requirements.iter().any(asks)) {
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

    /// The k that a person needs of classes in all quasi columns, by these columns of own k: 1 where nothing is asked.
    /// With audiences it is the largest k that any coalition is held to.
    pub(crate) fn needed(&self, own_k: &[OwnK], person: usize) -> u64 {
        let views = if self.coalitions.is_empty() { &self.each } else { &self.coalitions };
        let asked = views.iter().flat_map(|view| &view.requirements);
        let needed = asked.filter_map(|requirement| match requirement.own_k_column() {
            None => requirement.k().map(u64::from),
            Some(column) => own_k.iter().find(|own| own.column == *column).map(|own| own.of_person(person)),
        });
        needed.max().unwrap_or(0).max(1)
    }

    fn worst(
        &self,
        found: Vec<(Findings, Vec<LearnedFindings>)>,
        together: Vec<(Findings, Vec<LearnedFindings>)>,
    ) -> Findings {
        let mut smallest_classes: BTreeMap<u64, u64> = BTreeMap::new();
        let mut sensitive: Vec<SensitiveFindings> = Vec::new();
        let mut unmet = Vec::new();
        let mut audiences = Vec::with_capacity(found.len());
        for (view, (found, learned)) in self.each.iter().zip(found) {
            for &(size, n_classes) in &found.smallest_classes {
                *smallest_classes.entry(size).or_default() += n_classes;
            }
            // Every view measures the same columns in the same order.
            match sensitive.as_mut_slice() {
                [] => sensitive.clone_from(&found.sensitive),
                worst => worst.iter_mut().zip(&found.sensitive).for_each(|(worst, other)| worst.meet(other)),
            }
            audiences.push(view.findings(found, learned, &mut unmet));
        }
        let union = together[0].0.clone();
        let coalitions = self.coalitions.iter().zip(together);
        let coalitions = coalitions.map(|(view, (found, learned))| view.findings(found, learned, &mut unmet)).collect();
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
            coalitions,
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
