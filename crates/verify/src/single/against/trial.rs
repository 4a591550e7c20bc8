//! [`Trial`]: judges single classes while the search gives rows to one person after another.
//!
//! A class is judged as in the finished release: its values are counted, then [`judge`] is called. Judging single
//! classes is enough, because an exchange of two rows touches few of them.

use kohort_model::Requirement;

use crate::Violations;
use crate::asked::Perspectives;
use crate::count::cells::CellIds;
use crate::count::grouping::Classes;
use crate::count::requirement::{CountedClass, Distances, Verdict, judge};
use crate::count::roll::{Roll, Shares};
use crate::count::{Scratch, distances, targets};

/// The classes of a release, to be judged one at a time.
pub(crate) struct Trial<'a> {
    roll: &'a Roll<'a>,
    distances: Vec<Distances<'a>>,
    pub(crate) perspectives: Vec<TrialClasses>,
    scratch: Scratch,
    members: Vec<u32>,
}

/// The classes of one perspective.
pub(crate) struct TrialClasses {
    pub(crate) classes: Classes,
    pub(crate) class_of_row: Vec<u32>,
    requirements: Vec<Requirement>,
    targets: Vec<usize>,
}

impl<'a> Trial<'a> {
    /// A trial for a roll and one way to give its rows to persons. Classes are compared with the distribution of values
    /// over all of these persons, which is the same for every way that leaves out the same persons.
    ///
    /// # Errors
    /// If a requirement can't be evaluated.
    pub(crate) fn new(
        roll: &'a Roll<'a>,
        perspectives: &Perspectives,
        persons: &[u32],
        n_persons: usize,
    ) -> Result<Self, Violations> {
        let persons = CellIds::by_id(persons, n_persons);
        let each = perspectives.classes_and_requirements(&roll.quasi, roll.n_rows);
        let asked: Vec<Requirement> = each.iter().flat_map(|(_, requirements)| requirements.clone()).collect();
        let distances = distances(roll, Some(&persons), &asked)?;
        let perspectives = each.into_iter().map(|(classes, requirements)| {
            let targets = targets(roll, &requirements)?;
            Ok(TrialClasses { class_of_row: classes.class_of_rows(), classes, requirements, targets })
        });
        let perspectives = perspectives.collect::<Result<Vec<_>, Violations>>()?;
        Ok(Trial { roll, distances, perspectives, scratch: Scratch::new(roll.sensitive.len()), members: Vec::new() })
    }

    /// How far a class is from satisfying its requirements; 0 if it does. `persons` gives the person of each row.
    pub(crate) fn gap(&mut self, perspective: usize, class: u32, persons: &[u32]) -> f64 {
        let perspective = &self.perspectives[perspective];
        let rows = perspective.classes.rows(class as usize);
        self.members.clear();
        self.members.extend(rows.iter().map(|&row| persons[row as usize]));
        self.members.sort_unstable();
        self.members.dedup();
        let n_persons = self.members.len() as u64;
        let mut counted = usize::MAX;
        let mut gap = 0.0;
        for (requirement, &target) in perspective.requirements.iter().zip(&perspective.targets) {
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
                    sensitive = Some(self.scratch.counted(target, Shares::Pairs, &self.distances[target]));
                }
            }
            let verdict = judge(requirement, &CountedClass { n_persons, own_k, sensitive });
            gap += shortfall(requirement, &verdict, own_k);
        }
        gap
    }
}

/// 0 if a requirement holds, otherwise between 1 and 2: the larger, the farther the class is from satisfying it.
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
