//! Counting a table as each audience and each coalition of audiences sees it.
//!
//! # Guarantee
//! Every audience is counted by itself: rows are grouped by their cells in the columns that the audience knows, however
//! the release was made. A release may satisfy all audiences without consisting of (super) butterflies, because theorem
//! 5 of `[PTL+08]` holds in one direction only if there are more than two audiences.

use std::collections::BTreeMap;

use kohort_model::{Column, Requirement, Texts};

use crate::asked::{Perspective, Perspectives, Whose};
use crate::count::cells::CellIds;
use crate::count::grouping::Classes;
use crate::count::learned::{QuasiLabels, Source};
use crate::count::roll::{OwnK, Roll};
use crate::count::{count_classes, meet_all};
use crate::{AudienceFindings, Findings, LearnedFindings, SensitiveFindings, Skipped, Violation, Violations};

impl Perspective {
    /// Rows that look the same from this perspective.
    fn classes(&self, quasi: &[CellIds<'_>], n_rows: usize) -> Classes {
        Classes::group(&self.quasi.iter().map(|&position| &quasi[position]).collect::<Vec<_>>(), n_rows)
    }

    /// The findings of this perspective. Moves its unmet requirements to `unmet`.
    fn findings(&self, found: Findings, learned: Vec<LearnedFindings>, unmet: &mut Vec<Violation>) -> AudienceFindings {
        let Findings { classes, k, unique_persons, average_risk, class_sizes, sensitive, unmet: failed, .. } = found;
        unmet.extend(failed.into_iter().map(|violation| self.whose.blame(violation)));
        let audience = self.whose.name().to_owned();
        AudienceFindings { audience, classes, k, unique_persons, average_risk, class_sizes, sensitive, learned }
    }
}

impl Perspectives {
    /// Counts a roll from each perspective. With audiences, each figure is the worst over the audiences, and `classes`
    /// counts the classes in all quasi columns. `shown` are, for each quasi column, the texts of its cells and the
    /// column that gives them their meaning.
    ///
    /// # Errors
    /// If a requirement can't be evaluated. A requirement that fails is a finding.
    ///
    /// # Panics
    /// If the roll has no rows.
    pub(crate) fn count(
        &self,
        roll: &Roll<'_>,
        shown: &[(&Texts, &Column)],
        source: Source,
    ) -> Result<Findings, Violations> {
        let read = |(cells, (texts, column)): (&CellIds<'_>, &(&Texts, &Column))| {
            QuasiLabels::new(cells, roll.n_rows, texts, column, source)
        };
        // Without audiences, every reader is assumed to know every quasi column, so labels need not be read.
        let is_for_all = self.coalitions.is_empty();
        let labels: Vec<QuasiLabels> =
            if is_for_all { Vec::new() } else { roll.quasi.iter().zip(shown).map(read).collect() };
        let of_perspective = |perspective: &Perspective| -> Result<(Findings, Vec<LearnedFindings>), Violations> {
            let classes = perspective.classes(&roll.quasi, roll.n_rows);
            let mut found = count_classes(roll, &perspective.requirements, &classes)?;
            let mut learned = Vec::new();
            let unknown = (0..roll.quasi.len()).filter(|column| !perspective.quasi.contains(column));
            for column in unknown.filter(|_| perspective.whose != Whose::Anybody) {
                let asked = perspective.hidden.iter().filter(|hidden| hidden.column == column);
                let asked: Vec<&Requirement> = asked.map(|hidden| &hidden.requirement).collect();
                if let Some(told) = labels[column].told(&classes, &roll.quasi[column], roll) {
                    found.unmet.extend(told.unmet(&asked));
                    learned.push(told.findings());
                }
            }
            Ok((found, learned))
        };
        let mut each: Vec<(Findings, Vec<LearnedFindings>)> =
            self.each.iter().map(of_perspective).collect::<Result<_, _>>()?;
        if is_for_all {
            return Ok(each.swap_remove(0).0);
        }
        let coalitions = self.coalitions.iter().map(of_perspective).collect::<Result<_, _>>()?;
        let mut findings = self.worst(each, coalitions);
        let is_kept_from_somebody = |column: &usize| self.all().any(|perspective| !perspective.quasi.contains(column));
        let labels = (0..labels.len()).filter(is_kept_from_somebody).map(|column| &labels[column]);
        let columns = labels.filter(|labels| labels.is_unknown()).map(QuasiLabels::column);
        findings.skipped = columns.map(|column| Skipped::Labels { column: column.to_owned() }).collect();
        Ok(findings)
    }

    /// The classes of every perspective, with the requirements on them.
    pub(crate) fn classes_and_requirements(
        &self,
        quasi: &[CellIds<'_>],
        n_rows: usize,
    ) -> Vec<(Classes, Vec<Requirement>)> {
        self.all().map(|perspective| (perspective.classes(quasi, n_rows), perspective.requirements.clone())).collect()
    }

    /// For each row, the size (in rows) of its smallest class, over all audiences with a requirement on own k.
    pub(crate) fn sizes_for_own_k(&self, quasi: &[CellIds<'_>], n_rows: usize) -> Vec<u32> {
        let asks = |requirement: &Requirement| requirement.own_k_column().is_some();
        let mut smallest = vec![u32::MAX; n_rows];
        for perspective in self.all().filter(|perspective| perspective.requirements.iter().any(asks)) {
            let classes = perspective.classes(quasi, n_rows);
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

    /// The k that a person needs in classes on all quasi columns, given the columns of own k; 1 if nothing is required.
    /// With audiences, the largest k that is required for any coalition.
    pub(crate) fn needed(&self, own_k: &[OwnK], person: usize) -> u64 {
        let perspectives = if self.coalitions.is_empty() { &self.each } else { &self.coalitions };
        let asked = perspectives.iter().flat_map(|perspective| &perspective.requirements);
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
        let mut class_sizes: BTreeMap<u64, u64> = BTreeMap::new();
        let mut sensitive: Vec<SensitiveFindings> = Vec::new();
        let mut unmet = Vec::new();
        let mut audiences = Vec::with_capacity(found.len());
        for (perspective, (found, learned)) in self.each.iter().zip(found) {
            for &(size, n_classes) in &found.class_sizes {
                *class_sizes.entry(size).or_default() += n_classes;
            }
            // Every perspective measures the same columns in the same order.
            meet_all(&mut sensitive, found.sensitive.clone());
            audiences.push(perspective.findings(found, learned, &mut unmet));
        }
        let union = together[0].0.clone();
        let coalitions = self.coalitions.iter().zip(together);
        let coalitions = coalitions
            .map(|(perspective, (found, learned))| perspective.findings(found, learned, &mut unmet))
            .collect();
        let k = audiences.iter().map(|audience| audience.k).min().unwrap_or(0);
        Findings {
            k,
            unique_persons: audiences.iter().map(|audience| audience.unique_persons).max().unwrap_or(0),
            class_sizes: class_sizes.into_iter().collect(),
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

#[cfg(test)]
mod tests;
