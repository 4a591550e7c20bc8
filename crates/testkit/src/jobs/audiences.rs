//! Judges jobs for several audiences: each audience and each coalition is counted by the columns it knows.

use std::collections::BTreeMap;

use kohort_core::AnonymizeError;
use kohort_core::audiences::AnonymizedForAudiences;
use kohort_model::{Requirement, Table};

use super::one_table::{can_be_released, recount_rows, verify_every_way};
use super::{FaultKind, Judged};
use crate::generate::audiences::{AudiencesJob, Onlooker};
use crate::oracle::{self, Labels, Verdict};

pub(super) fn judge(asked: &AudiencesJob) -> Judged {
    match asked.run() {
        Ok(done) => judge_release(asked, &done),
        Err(error) => refused(asked, &error),
    }
}

fn judge_release(asked: &AudiencesJob, done: &AnonymizedForAudiences) -> Judged {
    let mut judged = Judged::released();
    let AudiencesJob { job, audiences } = asked;
    let release = &done.anonymized.release;
    let released = &release.tables[0].rows;
    let union = audiences.union();
    let labels: BTreeMap<&str, Labels<'_>> =
        union.iter().map(|&column| (column, Labels::new(&job.table, release, column))).collect();
    for Onlooker { name, known, requirements } in asked.onlookers() {
        for places in classes(&job.table, done, &known) {
            judged.classes += 1;
            let rows: Vec<u32> = places.iter().map(|&place| released[place]).collect();
            for requirement in &requirements {
                let verdict = match requirement.column().and_then(|column| labels.get(column)) {
                    Some(labels) if labels.satisfies(requirement, &places) => Verdict::Holds,
                    Some(_) => Verdict::Fails,
                    None => oracle::judge(&job.table, requirement, &rows, released),
                };
                judged.class(verdict, || format!("{requirement:?} of {name} in the class of rows {rows:?}"));
            }
        }
    }
    recount_rows(&mut judged, job, &done.anonymized);
    verify_every_way(&mut judged, job, &done.anonymized, audiences);
    judged
}

/// The positions of released rows that look the same in some columns.
fn classes(table: &Table, done: &AnonymizedForAudiences, columns: &[String]) -> Vec<Vec<usize>> {
    let release = &done.anonymized.release;
    let released = &release.tables[0];
    let known: Vec<usize> =
        (0..released.columns.len()).filter(|&column| columns.contains(&released.columns[column].name)).collect();
    let mut classes: BTreeMap<Vec<Option<String>>, Vec<usize>> = BTreeMap::new();
    for (place, cells) in oracle::released_cells(table, release).iter().enumerate() {
        classes.entry(known.iter().map(|&column| cells[column].clone()).collect()).or_default().push(place);
    }
    classes.into_values().collect()
}

fn refused(asked: &AudiencesJob, error: &AnonymizeError) -> Judged {
    let is_reason = matches!(
        error,
        AnonymizeError::OneValue { .. }
            | AnonymizeError::TooFewPersons { .. }
            | AnonymizeError::OwnKTooLarge { .. }
            | AnonymizeError::TooFrequent { .. }
    );
    // A release in which all rows look the same to every audience would satisfy the requirements, and would tell an
    // audience nothing about columns that it does not know, unless everybody has the same value there.
    let found = match error {
        AnonymizeError::OneValue { column } => Some(one_value(asked, column)),
        _ => {
            let union = asked.audiences.union();
            let is_hidden = |asked: &Requirement| asked.column().is_some_and(|column| union.contains(&column));
            let requirements = asked.onlookers().into_iter().flat_map(|onlooker| onlooker.requirements);
            let requirements: Vec<Requirement> = requirements.filter(|asked| !is_hidden(asked)).collect();
            can_be_released(&asked.job, &requirements)
        }
    };
    let mut judged = Judged::refused(error, found);
    if !is_reason {
        judged.fault(FaultKind::RefusedWithoutNeed, error.to_string());
    }
    judged
}

/// Judges a refusal that says that everybody has the same value in a column: it is right if they have.
fn one_value(asked: &AudiencesJob, column: &str) -> Verdict {
    let column = asked.job.table.column(column).expect("the error names a column of the table");
    let cells: std::collections::BTreeSet<Option<&str>> =
        (0..asked.job.table.n_rows).map(|row| column.cell(row)).collect();
    if cells.len() == 1 { Verdict::Fails } else { Verdict::TooClose }
}

#[cfg(test)]
mod tests {
    use proptest::strategy::ValueTree;

    use super::*;
    use crate::generate::Size;
    use crate::generate::audiences::audiences_job;
    use crate::jobs::{System, tree};

    #[test]
    fn an_audience_that_sees_too_few_persons_is_found() {
        let mut n_judged = 0;
        for number in 0..60 {
            let mut job = tree(audiences_job(Size::SMALL), System::Audiences, number).current();
            let Ok(done) = job.run() else { continue };
            n_judged += 1;
            // Only the last audience asks for more.
            let last = job.audiences.each.last_mut().expect("there is an audience");
            last.requirements[0] = Requirement::K(1000);
            let judged = judge_release(&job, &done);
            for kind in [FaultKind::UnderRequirement, FaultKind::Rejected] {
                assert!(judged.faults.iter().any(|fault| fault.kind == kind), "{job:?}");
            }
        }
        assert!(n_judged > 20, "{n_judged}");
    }
}
