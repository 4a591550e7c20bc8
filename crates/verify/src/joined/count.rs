//! Counts a release beside a register, if it is known where each row comes from.

use std::cmp::Ordering;

use kohort_model::register::SENSITIVE_TABLE;
use kohort_model::spec::RegisterRows;
use kohort_model::{JoinedRegister, NULL, Requirement, Table};
use rayon::prelude::*;

use super::crowd::{Boxes, said_otherwise};
use super::faces::Faces;
use super::presence::{Sureness, asked_k};
use super::{AskedOfJoin, CellsOf, Heads, JoinedRows, SensitiveRows, classes_of};
use crate::count::cells::CellIds;
use crate::count::grouping::Classes;
use crate::count::roll::{Roll, Sensitive, Shares, own_ks};
use crate::count::{all_sizes, count};
use crate::reading::coverage::Coverage;
use crate::structure::Places;
use crate::{Counted, Findings, JoinedFindings, Violation, Violations};

impl JoinedRows<'_> {
    /// Counts classes and sensitive groups.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub(super) fn count(
        &self,
        original: &Table,
        joined: &JoinedRegister,
        asked: AskedOfJoin<'_>,
    ) -> Result<Findings, Violations> {
        let mut violations = Vec::new();
        let cells = self.quasi.iter().map(|(labels, ids)| CellIds::by_text(ids, labels));
        let classes = classes_of(cells, &self.groups);
        let is_private = |row: u32| (self.rows[row as usize] as usize) < joined.n_microdata;
        let n_private: Vec<u32> = (0..classes.len())
            .map(|class| classes.rows(class).iter().filter(|&&row| is_private(row)).count() as u32)
            .collect();
        let sizes = self.sizes(&classes, joined, asked);
        violations.extend(
            classes_where(&classes, |class| n_private[class] == 0)
                .map(|(n, first_row)| Violation::ClassWithoutPrivate { n, first_row }),
        );
        violations.extend(self.too_small(&classes, &sizes, original, joined, asked.requirements));
        let k = asked_k(asked.requirements);
        let faces = Faces { shown: self, classes: &classes, joined, n_private: &n_private, k };
        let presence = Sureness::of(&faces, asked, &sizes);
        violations.extend(presence.violation(&classes, asked));
        let of_groups = match &self.values {
            None => None,
            Some(values) => {
                violations.extend(self.misplaced(values, joined.n_microdata));
                violations.extend(values.out_of_order());
                let found = values.count(original, asked.requirements);
                match found {
                    Ok(mut found) => {
                        violations.extend(found.unmet.drain(..).map(|violation| violation.in_table(SENSITIVE_TABLE)));
                        Some(found)
                    }
                    Err(Violations(more)) => {
                        violations.extend(more);
                        None
                    }
                }
            }
        };
        let together = if asked.previous.is_empty() {
            None
        } else {
            match self.count_together((&classes, &sizes), original, joined, asked) {
                Ok(found) => Some(found),
                Err(Violations(more)) => {
                    violations.extend(more);
                    None
                }
            }
        };
        if !violations.is_empty() {
            return Err(Violations(violations));
        }
        let n_persons: u64 = n_private.iter().map(|&n| u64::from(n)).sum();
        let risk: f64 = n_private.iter().zip(&sizes).map(|(&n, &size)| f64::from(n) / size as f64).sum();
        let k = sizes.iter().copied().min().unwrap_or(0);
        let narrow: Vec<u32> = sizes.iter().map(|&size| size.min(u64::from(u32::MAX)) as u32).collect();
        let (group_k, groups) = of_groups.as_ref().map_or((None, 0), |found| (Some(found.k), found.classes));
        Ok(Findings {
            counted: Counted::Persons,
            persons: n_persons,
            classes: classes.len() as u64,
            k,
            unique_persons: sizes.iter().filter(|&&size| size == 1).count() as u64,
            class_sizes: all_sizes(&narrow),
            highest_risk: 1.0 / k as f64,
            average_risk: risk / n_persons.max(1) as f64,
            sensitive: of_groups.map_or_else(Vec::new, |found| found.sensitive),
            joined: Some(JoinedFindings {
                groups,
                group_k,
                presence: Some(presence.shares),
                together,
                together_within: None,
            }),
            ..Findings::uncounted(self.rows.len() as u64)
        })
    }

    /// How many persons count in each class.
    fn sizes(&self, classes: &Classes, joined: &JoinedRegister, asked: AskedOfJoin<'_>) -> Vec<u64> {
        match asked.rows {
            RegisterRows::All => {
                let counts = self.counting_rows(joined);
                let size = |class| {
                    let mut heads = Heads::default();
                    let counting = classes.rows(class).iter().filter(|&&row| counts[row as usize]);
                    counting.for_each(|&row| heads.add(joined, self.rows[row as usize]));
                    heads.count(asked.told_apart)
                };
                (0..classes.len()).into_par_iter().map(size).collect()
            }
            RegisterRows::Microdata => {
                let labels: Vec<_> = self.quasi.iter().map(|&(labels, _)| labels).collect();
                let cells_of = |class: usize| {
                    let row = classes.rows(class)[0] as usize;
                    self.quasi.iter().map(|(_, ids)| ids[row]).collect()
                };
                let cells: Vec<Vec<u32>> = (0..classes.len()).map(cells_of).collect();
                let crowd = Boxes::new(joined, &labels, &cells).count(joined.n_microdata);
                crowd.heads.into_iter().map(|heads| heads.count(asked.told_apart)).collect()
            }
        }
    }

    /// For each row, whether its person counts: the cells must also cover the values that the register gives the
    /// person.
    fn counting_rows(&self, joined: &JoinedRegister) -> Vec<bool> {
        let mut counts = vec![true; self.rows.len()];
        let others: Vec<(usize, u32)> = self
            .rows
            .iter()
            .enumerate()
            .filter_map(|(row, &source)| Some((row, said_otherwise(joined, source)?)))
            .collect();
        if others.is_empty() {
            return counts;
        }
        for ((labels, ids), column) in self.quasi.iter().zip(&joined.rows.columns) {
            let coverage = Coverage::new(column, labels);
            for &(row, other) in &others {
                counts[row] &= coverage.covers(ids[row], column.ids[other as usize]);
            }
        }
        counts
    }

    /// Classes in which too few persons count.
    fn too_small(
        &self,
        classes: &Classes,
        sizes: &[u64],
        original: &Table,
        joined: &JoinedRegister,
        requirements: &[Requirement],
    ) -> Vec<Violation> {
        let mut violations = Vec::new();
        let private: Vec<u32> = (0..self.rows.len() as u32)
            .filter(|&row| (self.rows[row as usize] as usize) < joined.n_microdata)
            .collect();
        let sources: Vec<u32> = private.iter().map(|&row| self.rows[row as usize]).collect();
        let own_k = own_ks(original, Some(&sources), None, requirements, &mut violations);
        let mut largest = vec![0u64; classes.len()];
        let class_of_rows = classes.class_of_rows();
        for requirement in requirements {
            let needed: Vec<u64> = match requirement {
                Requirement::K(k) => vec![u64::from(*k); classes.len()],
                Requirement::PersonK { column } => {
                    let Some(own_k) = own_k.iter().find(|own_k| own_k.column == *column) else { continue };
                    largest.fill(0);
                    for (position, &row) in private.iter().enumerate() {
                        let of_class = &mut largest[class_of_rows[row as usize] as usize];
                        *of_class = (*of_class).max(own_k.get(position, None));
                    }
                    largest.clone()
                }
                Requirement::DistinctL { .. }
                | Requirement::EntropyL { .. }
                | Requirement::RecursiveCL { .. }
                | Requirement::TCloseness { .. }
                | Requirement::Alpha { .. }
                | Requirement::Beta { .. }
                | Requirement::EnhancedBeta { .. } => continue,
            };
            violations.extend(unmet(requirement, classes, sizes, &needed));
        }
        violations
    }

    /// Private persons who are missing from the sensitive table, listed there several times or in another group; and
    /// groups that are not numbered in the order of the released rows.
    fn misplaced(&self, values: &SensitiveRows<'_>, n_microdata: usize) -> Vec<Violation> {
        let mut violations = Vec::new();
        let mut group_of_private = vec![NULL; n_microdata];
        for (row, &source) in self.rows.iter().enumerate().filter(|(_, source)| (**source as usize) < n_microdata) {
            group_of_private[source as usize] = self.groups[row];
        }
        let n_released = group_of_private.iter().filter(|&&group| group != NULL).count();
        let mut in_other_group = Places::default();
        for (row, (&source, &group)) in (1..).zip(values.rows.iter().zip(&values.groups)) {
            if group_of_private[source as usize] != group || group == NULL {
                in_other_group.add(row);
            }
        }
        if let Some((n, first_row)) = in_other_group.found() {
            violations.push(Violation::OtherGroup { n, first_row });
        }
        if values.rows.len() != n_released {
            let (persons, rows) = (n_released as u64, values.rows.len() as u64);
            violations.push(Violation::ValuesMiscounted { persons, rows });
        }
        let mut last = 0;
        let mut met = vec![false; self.rows.len() + 1];
        for (row, &group) in (1..).zip(&self.groups) {
            let is_met = met.get_mut(group as usize).map(|met| std::mem::replace(met, true));
            last += u32::from(is_met == Some(false));
            if is_met.is_none() || (is_met == Some(false) && group != last) {
                violations.push(Violation::GroupNumber { first_row: row });
                break;
            }
        }
        violations
    }
}

impl SensitiveRows<'_> {
    /// Counts every requirement for the private persons of each group.
    fn count(&self, original: &Table, requirements: &[Requirement]) -> Result<Findings, Violations> {
        let mut violations = Vec::new();
        let rows = (self.cells == CellsOf::PrivateRows).then_some(self.rows);
        let sensitive = Sensitive::measured(&self.copied, rows, requirements, &mut violations);
        let own_k = own_ks(original, Some(self.rows), None, requirements, &mut violations);
        if !violations.is_empty() {
            return Err(Violations(violations));
        }
        let most = self.groups.iter().copied().filter(|&group| group != NULL).max().unwrap_or(0);
        let quasi = vec![CellIds::by_id(self.groups.as_slice(), most as usize + 1)];
        let roll = Roll { n_rows: self.rows.len(), quasi, persons: None, shares: Shares::Pairs, sensitive, own_k };
        count(&roll, requirements)
    }

    /// The first row that is not sorted by group and cells. Any other order could tell whose row it is.
    fn out_of_order(&self) -> Option<Violation> {
        let place = |row: usize| match self.cells {
            CellsOf::PrivateRows => self.rows[row] as usize,
            CellsOf::ShownRows => row,
        };
        let compare = |a: usize, b: usize| {
            let mut cells = self.copied.iter().map(|(shown, _)| shown.cell(place(a)).cmp(&shown.cell(place(b))));
            let by_cells = || cells.find(|order| order.is_ne()).unwrap_or(Ordering::Equal);
            self.groups[a].cmp(&self.groups[b]).then_with(by_cells)
        };
        let wrong = |&row: &usize| compare(row - 1, row).is_gt();
        let first = (1..self.rows.len()).find(wrong)?;
        Some(Violation::SensitiveOrder { first_row: first as u64 + 1 })
    }
}

/// The number of classes that are wrong, and the first row of them, numbered from 1.
pub(super) fn classes_where(classes: &Classes, is_wrong: impl Fn(usize) -> bool) -> Option<(u64, u64)> {
    let wrong = (0..classes.len()).filter(|&class| is_wrong(class));
    let found: Vec<u64> = wrong.map(|class| u64::from(classes.rows(class)[0]) + 1).collect();
    found.iter().min().map(|&first_row| (found.len() as u64, first_row))
}

/// The violation if classes have fewer persons than they need.
pub(super) fn unmet(requirement: &Requirement, classes: &Classes, sizes: &[u64], needed: &[u64]) -> Option<Violation> {
    let fails = |class: usize| sizes[class] < needed[class];
    let (n_classes, first_row) = classes_where(classes, fails)?;
    let failing = || (0..classes.len()).filter(|&class| fails(class));
    let first = failing().find(|&class| u64::from(classes.rows(class)[0]) + 1 == first_row)?;
    let reached = failing().map(|class| sizes[class]).min().unwrap_or(0) as f64;
    let requirement = requirement.clone();
    Some(Violation::Unmet { requirement, n_classes, reached, first_row, class_size: sizes[first] })
}
