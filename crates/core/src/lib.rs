//! From a private table to a release: encode, partition, recode.
//!
//! Pure, synchronous and deterministic: no clock, no file, no global, no unseeded chance. The same table, spec and seed
//! give the same release with one thread and with eight. A release made here is only a claim: `kohort-verify` decides
//! whether it holds.

mod applied;
pub mod audiences;
mod blocks;
pub mod cells;
pub mod changing;
pub mod encode;
mod lists;
pub mod loss;
pub mod partition;
mod ranks;
pub mod recode;
pub mod register;
pub mod relational;
pub mod requirement;
mod suppress;

pub use applied::apply_classes;

use std::num::NonZeroUsize;

use kohort_model::spec::{Algorithm, ClusteringSpec, Leftovers};
use kohort_model::{Loss, Note, Persons, Progress, Release, Requirement, Role, Spec, Table, WhyNobody};

use encode::{Encoded, ForeignValues, Rows};
use partition::{
    Classes, Cluster, Datafly, FullDomain, KeepTree, LeastLoss, Mondrian, OwnK, Partitioner, Task, TopDown,
};
use recode::{Recoding, Shown};
use requirement::{Rules, Tally, UnfitColumn};

/// A release and what it costs, not yet verified.
#[derive(Debug)]
pub struct Anonymized {
    /// The release.
    pub release: Release,
    /// The loss of recoding.
    pub loss: Loss,
    /// Persons in, out and suppressed.
    pub persons: Persons,
    /// The partitioner that ran.
    pub algorithm: &'static str,
    /// Where the result differs from what a reader of the spec would expect.
    pub notes: Vec<Note>,
}

/// Why there is no release.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AnonymizeError {
    /// Fewer persons than k.
    #[error("k = {k} can't be reached with {persons} persons")]
    TooFewPersons {
        /// Persons in the table.
        persons: u64,
        /// Asked.
        k: u32,
    },
    /// Somebody wants a larger k than there are persons.
    #[error(
        "{asking} {} for a k of their own that is larger than the number of persons, which is {persons}",
        if *asking == 1 { "person asks" } else { "persons ask" }
    )]
    OwnKTooLarge {
        /// Persons in the table.
        persons: u64,
        /// The number of persons who ask for more. Their k is a cell of the private table, so it is not reported.
        asking: u64,
    },
    /// A sensitive value is too frequent in the whole table.
    #[error(
        "the requirement on '{column}' can't be reached: some of its values are too frequent, or there are too few"
    )]
    TooFrequent {
        /// The sensitive column.
        column: String,
    },
    /// The table has no quasi column.
    #[error("there is no quasi column, so there is nothing to anonymize")]
    NoQuasiColumn,
    /// The spec names a partitioner for another kind of release.
    #[error("algorithm '{name}' is not available {kind}", name = .algorithm.word())]
    Unavailable {
        /// The partitioner.
        algorithm: Algorithm,
        /// The kind of release: `with a register`.
        kind: &'static str,
    },
    /// A column can't be kept from those who don't know it: everybody has the same value.
    #[error("the requirement on '{column}' can't be reached: everybody has the same value, so any cell tells it")]
    OneValue {
        /// The quasi column.
        column: String,
    },
    /// Private table and register together have fewer persons than k.
    #[error("k = {k} can't be reached with {persons} persons of the table and its registers")]
    TooFewJoined {
        /// Persons in both.
        persons: u64,
        /// Asked.
        k: u32,
    },
    /// More rows of a child table find no partner than the spec allows to leave out.
    #[error(
        "table '{table}': {n_left_out} of {n_rows} rows would be left out, because they find no partner or belong to nobody: more \
         than max_rows_left_out = {limit} allows"
    )]
    RowsLeftOut {
        /// The child table.
        table: String,
        /// The fewest rows that would be left out.
        n_left_out: u64,
        /// All rows of the table.
        n_rows: u64,
        /// The largest share that may be left out.
        limit: f64,
    },
    /// A class tells too surely that somebody is in the private table, or that somebody is not.
    #[error(
        "the presence of persons can't be kept between {least} and {most}: {classes} {} outside",
        if *classes == 1 { "class is" } else { "classes are" }
    )]
    Presence {
        /// The smallest share asked.
        least: f64,
        /// The largest share asked.
        most: f64,
        /// Classes outside.
        classes: u64,
    },
    /// Leaving out private rows that fit into no class would show who is private.
    #[error(
        "leftovers = \"suppress\" can't be used where register rows are released: which rows are left out would tell \
         who is in the private table"
    )]
    LeftoversWithRegister,
    /// An earlier release shows a quasi column that the new one does not have.
    #[error(
        "an earlier release shows the quasi column '{column}', which is not quasi here, so its classes can't be compared"
    )]
    PreviousColumn {
        /// The column.
        column: String,
    },
    /// An earlier release has labels that mean nothing here.
    #[error(
        "column '{column}': {n} {} of an earlier release neither in its hierarchy nor a range",
        if *n == 1 { "label is" } else { "labels are" }
    )]
    PreviousLabels {
        /// The column.
        column: String,
        /// How many labels.
        n: u64,
    },
    /// Whatever is released, readers of the new and earlier releases would find somebody among too few persons.
    #[error(
        "no class can take {} beside the earlier releases, because fewer than {k} persons of the same earlier classes are \
         still in the register: {}",
        if rows.len() == 1 { "1 person".to_owned() } else { format!("{} persons", rows.len()) }, in_rows(rows)
    )]
    PreviousCrowd {
        /// Their rows in the private table, from 1.
        rows: Vec<u64>,
        /// Asked.
        k: u32,
    },
    /// Readers of the new and earlier releases would learn values.
    #[error(
        "the release can't be read together with earlier ones: too few values of '{column}' are common to both, \
         or too few came or went"
    )]
    PreviousValues {
        /// The sensitive column.
        column: String,
    },
    /// The classes of an earlier release take in nobody of a new table.
    #[error(
        "none of the {persons} new persons can be released: no class of the earlier release satisfies the requirement with new persons alone"
    )]
    NobodyFits {
        /// Persons in the new table.
        persons: u64,
    },
    /// The caller cancelled the work.
    #[error("the work was cancelled")]
    Cancelled,
    /// A fault of ours: a column should have been refused by the reader.
    #[error(transparent)]
    ForeignValues(#[from] ForeignValues),
    /// A fault of ours: a column should have been refused by the reader.
    #[error(transparent)]
    UnfitColumn(#[from] UnfitColumn),
    /// A fault of ours: the partitioner refused rows that satisfy the rules together.
    #[error(transparent)]
    Unreachable(#[from] partition::Unreachable),
}

/// The first few row numbers.
fn in_rows(rows: &[u64]) -> String {
    let named: Vec<String> = rows.iter().take(10).map(u64::to_string).collect();
    let named = format!("{} {}", if rows.len() == 1 { "row" } else { "rows" }, named.join(", "));
    match rows.len().saturating_sub(10) {
        0 => named,
        n => format!("{named} and {n} more"),
    }
}

impl AnonymizeError {
    /// What the user can do about the error.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            AnonymizeError::TooFewPersons { .. } => Some("ask for a smaller k, or release more persons"),
            AnonymizeError::OwnKTooLarge { .. } => Some("allow persons to be left out with max_suppressed"),
            AnonymizeError::TooFrequent { .. } => {
                Some("loosen the requirement, or allow more persons to be left out with max_suppressed")
            }
            AnonymizeError::TooFewJoined { .. } => Some("ask for a smaller k, or use a register of more persons"),
            AnonymizeError::Presence { .. } => {
                Some("widen delta_presence, ask for a larger k, or use a register of more persons")
            }
            AnonymizeError::LeftoversWithRegister => {
                Some("use leftovers = \"merge\", or release = \"microdata\" where presence is public")
            }
            AnonymizeError::PreviousColumn { .. } => Some("give the column the role quasi here, too"),
            AnonymizeError::PreviousLabels { .. } => {
                Some("use the hierarchy of the earlier release, with all its values")
            }
            AnonymizeError::PreviousCrowd { .. } => {
                Some("allow persons to be left out with max_suppressed, take these rows out, or ask for a smaller k")
            }
            AnonymizeError::PreviousValues { .. } => {
                Some("release later, when more has changed; or the same persons and values as before")
            }
            AnonymizeError::RowsLeftOut { .. } => Some(
                "allow a larger share, ask for a smaller k, or allow persons to be left out with max_suppressed and \
                 leftovers = \"suppress\"",
            ),
            AnonymizeError::NobodyFits { .. } => Some(
                "wait until there are more new persons, or release the new persons by themselves with `kohort anonymize`",
            ),
            AnonymizeError::OneValue { .. } => Some("drop the column, or take the requirement out"),
            AnonymizeError::NoQuasiColumn => Some("give the columns an attacker may know the role quasi"),
            AnonymizeError::Unavailable { .. } => Some("use algorithm = \"auto\""),
            AnonymizeError::Cancelled
            | AnonymizeError::ForeignValues(_)
            | AnonymizeError::UnfitColumn(_)
            | AnonymizeError::Unreachable(_) => None,
        }
    }
}

/// Anonymizes one table as the spec asks.
///
/// # Errors
/// If the requirement can't be reached. There is then no release at all.
pub fn anonymize(
    table: &Table,
    spec: &Spec,
    requirements: &[Requirement],
    progress: &dyn Progress,
) -> Result<Anonymized, AnonymizeError> {
    let quasi = table.with_role(Role::Quasi);
    if quasi.is_empty() {
        return Err(AnonymizeError::NoQuasiColumn);
    }
    progress.begin("encode", 0);
    let encoded = Encoded::new(table, &quasi)?;
    let encoded = match spec.algorithm {
        // These choose whole levels, by measures of their own.
        Algorithm::Datafly | Algorithm::FullDomain => encoded,
        _ => encoded.minimizing(spec),
    };
    let classified = classify(table, &encoded, spec, requirements, &[], progress)?;
    let Classified { rows, rules, classes, shown, persons, algorithm, notes } = classified;
    let recoding = Recoding { table, encoded: &encoded, rows: &rows, classes: &classes, shown: &shown };
    let (loss, release) = (loss::measure(&recoding, &rules, persons), recoding.release(spec.order));
    Ok(Anonymized { release, loss, persons, algorithm, notes })
}

/// A table in classes, before anything is rendered.
struct Classified {
    rows: Rows,
    rules: Rules,
    classes: Classes,
    shown: Shown,
    persons: Persons,
    algorithm: &'static str,
    notes: Vec<Note>,
}

/// Partitions a table as the spec asks, without the rows that are left out already, within the spec's limit. The encoded
/// table may be a longer one that begins with the rows of `table`. If the table is a part of a larger one, shares of sensitive
/// values are those of the whole.
fn classify(
    table: &Table,
    encoded: &Encoded<'_>,
    spec: &Spec,
    requirements: &[Requirement],
    left_out: &[u32],
    progress: &dyn Progress,
) -> Result<Classified, AnonymizeError> {
    let kept = suppress::rows_that_can_stand(table, encoded, requirements, spec.max_suppressed, left_out)?;
    let rules = match encoded.whole() {
        None => Rules::compile(table, requirements, &kept)?,
        Some(whole) => Rules::compile_within(table, requirements, whole)?,
    };
    let (rows, ends) = blocks::fold(table, encoded, &rules, &kept, block_size(spec));
    let partitioner = partitioner(spec, ends)?;
    let all: Vec<u32> = (0..table.n_rows as u32).collect();
    let n_in = suppress::n_persons(&rules, &all);
    let unplaceable = n_in - suppress::n_persons(&rules, &kept);
    let allowance = suppress::allowance(spec.max_suppressed, n_in) - unplaceable;
    // A person must leave with all rows. If persons have several rows, only a full-domain search takes out all of them.
    let (rows, allowance) = match rules.person_of_row() {
        None => (rows, allowance),
        Some(_) if spec.algorithm == Algorithm::FullDomain && allowance > 0 => {
            (rows.parted(|row| rules.person(row)), allowance)
        }
        Some(_) => (rows, 0),
    };
    let task =
        Task { rows: &rows, domains: &encoded.domains, rules: &rules, allowance, leftovers: spec.leftovers, progress };
    let classes = partitioner.partition(&task);
    stop_if_cancelled(progress)?;
    let mut classes = classes?;
    let mut notes = Note::unused(spec);
    notes.append(&mut classes.notes);
    if spec.leftovers == Leftovers::Suppress {
        // A full-domain search leaves out whole classes and is not trimmed.
        let is_trimmed = classes.boxes.is_none();
        if is_trimmed && rules.person_of_row().is_some() {
            notes.push(Note::NobodyTrimmed(WhyNobody::SeveralRows));
        } else if is_trimmed && rules.measures_against_release() {
            notes.push(Note::NobodyTrimmed(WhyNobody::ComparedWithRelease));
        }
        classes = suppress::trim(&task, classes);
    }

    progress.begin("recode", 0);
    let mut shown = Shown::new(&classes, encoded, &rows);
    // To a reader, classes that show the same cells are one class, and a person may have rows in several of them.
    let stands = |class: &[u32]| task.stands(&mut Tally::new(&rules), class.iter().copied());
    while rules.person_of_row().is_some() && !shown.folded_rows(&classes).iter().all(|class| stands(class)) {
        classes = task.join_leftovers(shown.folded_rows(&classes), stands);
        shown = Shown::new(&classes, encoded, &rows);
    }
    let released: Vec<u32> = classes.all_rows().iter().flat_map(|&row| rows.members(row)).copied().collect();
    let n_out = suppress::n_persons(&rules, &released);
    let persons = Persons { n_in, n_out, suppressed: n_in - n_out };
    Ok(Classified { rows, rules, classes, shown, persons, algorithm: partitioner.name(), notes })
}

/// Stops work that was cancelled, because its classes may be incomplete.
fn stop_if_cancelled(progress: &dyn Progress) -> Result<(), AnonymizeError> {
    if progress.is_cancelled() { Err(AnonymizeError::Cancelled) } else { Ok(()) }
}

/// How many rows are partitioned together; `None` for all.
fn block_size(spec: &Spec) -> Option<NonZeroUsize> {
    let block = spec.datafly.block.filter(|_| spec.algorithm == Algorithm::Datafly)?;
    NonZeroUsize::new(block as usize)
}

/// The partitioner a spec asks for.
fn partitioner(spec: &Spec, block_ends: Vec<u32>) -> Result<Box<dyn Partitioner>, AnonymizeError> {
    Ok(match spec.algorithm {
        Algorithm::Auto => Box::new(LeastLoss { repacks: spec.effort }),
        Algorithm::Mondrian => Box::new(Mondrian { spec: spec.mondrian, keep_tree: KeepTree::No }),
        Algorithm::Datafly => Box::new(OwnK(Datafly { block_ends })),
        Algorithm::Cluster => {
            let ClusteringSpec { threshold, cluster_limit, pairing: _ } = spec.clustering;
            Box::new(Cluster { threshold, cluster_limit })
        }
        Algorithm::FullDomain => Box::new(FullDomain { objective: spec.full_domain.objective }),
        Algorithm::TopDown => Box::new(TopDown),
        algorithm @ (Algorithm::Miracle | Algorithm::MiracleX) => {
            return Err(AnonymizeError::Unavailable { algorithm, kind: "for one table in this version" });
        }
    })
}

/// How a property is tested that takes long per case: on `PROPTEST_CASES` / 256 times this many, and on this many without the
/// variable.
#[cfg(test)]
fn random_cases(cases: u32) -> proptest::prelude::ProptestConfig {
    let default = proptest::prelude::ProptestConfig::default();
    proptest::prelude::ProptestConfig { cases: (cases * default.cases).div_ceil(256), ..default }
}
