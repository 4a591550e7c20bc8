//! [`Trial`]: what classes reach while rows are given to persons in one way after another.
//!
//! Counting is that of the finished release: the values of a class, then [`judge`]. Here it is asked of single classes,
//! because a change of two rows touches few of them.

use kohort_model::Requirement;

use crate::Violations;
use crate::asked::Views;
use crate::count::cells::CellIds;
use crate::count::grouping::Classes;
use crate::count::requirement::{ClassView, Distances, Verdict, judge};
use crate::count::roll::{Roll, Shares};
use crate::count::{Scratch, distances, targets};

/// The classes of a release, to be judged one at a time.
pub(crate) struct Trial<'a> {
    roll: &'a Roll<'a>,
    distances: Vec<Distances<'a>>,
    pub(crate) views: Vec<TrialView>,
    scratch: Scratch,
    members: Vec<u32>,
}

/// The classes of one view.
pub(crate) struct TrialView {
    pub(crate) classes: Classes,
    pub(crate) class_of_row: Vec<u32>,
    requirements: Vec<Requirement>,
    targets: Vec<usize>,
}

impl<'a> Trial<'a> {
    /// Of a roll and one way to give its rows to persons. Distributions are measured against that of these persons, which
    /// is the same for every way that leaves the same persons out.
    ///
    /// # Errors
    /// Where a requirement can't be evaluated.
    pub(crate) fn new(
        roll: &'a Roll<'a>,
        views: &Views,
        persons: &[u32],
        n_persons: usize,
    ) -> Result<Self, Violations> {
        let persons = CellIds::by_id(persons, n_persons);
        let looks = views.looks(&roll.quasi, roll.n_rows);
        let asked: Vec<Requirement> = looks.iter().flat_map(|(_, requirements)| requirements.clone()).collect();
        let distances = distances(roll, Some(&persons), &asked)?;
        let views = looks.into_iter().map(|(classes, requirements)| {
            let targets = targets(roll, &requirements)?;
            Ok(TrialView { class_of_row: classes.class_of_rows(), classes, requirements, targets })
        });
        let views = views.collect::<Result<Vec<_>, Violations>>()?;
        Ok(Trial { roll, distances, views, scratch: Scratch::new(roll.sensitive.len()), members: Vec::new() })
    }

    /// How far a class is from what is asked of it, 0 where it satisfies everything. `persons` says of every row whose
    /// it is.
    pub(crate) fn gap(&mut self, view: usize, class: u32, persons: &[u32]) -> f64 {
        let view = &self.views[view];
        let rows = view.classes.rows(class as usize);
        self.members.clear();
        self.members.extend(rows.iter().map(|&row| persons[row as usize]));
        self.members.sort_unstable();
        self.members.dedup();
        let n_persons = self.members.len() as u64;
        let mut counted = usize::MAX;
        let mut gap = 0.0;
        for (requirement, &target) in view.requirements.iter().zip(&view.targets) {
            let mut own_k = 0;
            let mut sensitive = None;
            match requirement {
                Requirement::K(_) => {}
                Requirement::PersonK { .. } => {
                    let wishes = self.members.iter().map(|&person| self.roll.own_k[target].of_person(person as usize));
                    own_k = wishes.max().unwrap_or(0);
                }
                Requirement::DistinctL { .. }
                | Requirement::EntropyL { .. }
                | Requirement::RecursiveCL { .. }
                | Requirement::TCloseness { .. }
                | Requirement::Alpha { .. }
                | Requirement::Beta { .. }
                | Requirement::EnhancedBeta { .. } => {
                    if counted != target {
                        let values = &self.roll.sensitive[target].values.cells;
                        self.scratch.count_values(target, values, Shares::Pairs, rows, |row| persons[row as usize]);
                        counted = target;
                    }
                    sensitive = Some(self.scratch.view(target, Shares::Pairs, &self.distances[target]));
                }
            }
            let verdict = judge(requirement, &ClassView { n_persons, own_k, sensitive });
            gap += shortfall(requirement, &verdict, own_k);
        }
        gap
    }
}

/// 0 where a requirement holds, else from 1 to 2, the more the farther it is missed.
fn shortfall(requirement: &Requirement, verdict: &Verdict, own_k: u64) -> f64 {
    if verdict.holds {
        return 0.0;
    }
    let bound = match requirement {
        Requirement::K(k) => f64::from(*k),
        Requirement::PersonK { .. } => own_k as f64,
        Requirement::DistinctL { l, .. } => f64::from(*l),
        Requirement::EntropyL { l, .. } => *l,
        Requirement::RecursiveCL { c, .. } => *c,
        Requirement::TCloseness { t, .. } => *t,
        Requirement::Alpha { alpha, .. } => *alpha,
        Requirement::Beta { beta, .. } | Requirement::EnhancedBeta { beta, .. } => *beta,
    };
    let missed = (verdict.reached - bound).abs();
    1.0 + if missed.is_finite() { missed / (1.0 + missed) } else { 1.0 }
}
