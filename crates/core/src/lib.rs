//! From a private table to a release: encode, partition, recode.
//!
//! Pure, synchronous and deterministic: no clock, no file, no global, no unseeded chance. The same table, spec and
//! seed give the same release with one thread and with eight. What comes out is a claim; `kohort-verify` decides.

pub mod audiences;
mod blocks;
pub mod changing;
pub mod encode;
pub mod loss;
pub mod partition;
pub mod recode;
pub mod register;
pub mod relational;
pub mod requirement;
mod suppress;
pub mod utility;

use std::num::NonZeroUsize;

use kohort_model::spec::{Algorithm, ClusteringSpec, Leftovers};
use kohort_model::{Loss, Note, Persons, Progress, Release, Requirement, Role, Spec, Table, WhyNobody};

use blocks::Blocks;
use encode::{Encoded, ForeignValues, Rows};
use partition::{
    Classes, Cluster, Datafly, FullDomain, KeepTree, LeastLoss, Mondrian, OwnK, Partitioner, Task, TopDown,
    join_leftovers,
};
use recode::{Shown, recode};
use requirement::{Rules, Tally, UnfitColumn};

/// A release and what it costs, not yet verified.
#[derive(Debug)]
pub struct Anonymized {
    /// The release.
    pub release: Release,
    /// What recoding lost.
    pub loss: Loss,
    /// Persons in, out and suppressed.
    pub persons: Persons,
    /// The partitioner that ran.
    pub algorithm: &'static str,
    /// What was done otherwise than the spec would have a reader expect.
    pub notes: Vec<Note>,
}

/// Why there is no release.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AnonymizeError {
    /// Fewer persons than k.
    #[error("k = {k} can't be reached with {persons} persons")]
    TooFewPersons {
        /// In the table.
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
        /// In the table.
        persons: u64,
        /// How many ask for more than can be there. How much they ask for is a cell.
        asking: u64,
    },
    /// A sensitive value is too frequent in the whole table.
    #[error(
        "the requirement on '{column}' can't be reached: some of its values are too frequent, or there are too few"
    )]
    TooFrequent {
        /// The sensitive column.
        column: String,
        /// How many persons might have been left out.
        limit: u64,
    },
    /// The table has no quasi column.
    #[error("there is no quasi column, so there is nothing to anonymize")]
    NoQuasiColumn,
    /// The spec names a partitioner for something else, or one that is not there yet.
    #[error("algorithm '{name}' is not available for one table in this version", name = .0.word())]
    Unavailable(Algorithm),
    /// The spec names a partitioner for one table, and there are several.
    #[error("algorithm '{name}' is not available for several tables", name = .0.word())]
    UnavailableForTables(Algorithm),
    /// The spec names a partitioner that shows a whole column at one level, and audiences need some rows finer.
    #[error("algorithm '{name}' is not available for several audiences", name = .0.word())]
    UnavailableForAudiences(Algorithm),
    /// A column can't be kept from those who don't know it: everybody has the same value.
    #[error("the requirement on '{column}' can't be reached: everybody has the same value, which tells it")]
    OneValue {
        /// The quasi column.
        column: String,
    },
    /// The spec names a partitioner that shows a whole column at one level, and a register makes some classes finer.
    #[error("algorithm '{name}' is not available with a register", name = .0.word())]
    UnavailableWithRegister(Algorithm),
    /// Private table and register together have fewer persons than k.
    #[error("k = {k} can't be reached with {persons} persons of the table and its registers")]
    TooFewJoined {
        /// In both.
        persons: u64,
        /// Asked.
        k: u32,
    },
    /// Somebody's presence in the private table is too sure, or too sure to be ruled out.
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
    /// Leftovers are private rows that don't fit, and classes must not depend on who is private.
    #[error(
        "leftovers = \"suppress\" can't be used where register rows are released: which rows are left out would tell \
         who is in the private table"
    )]
    LeftoversWithRegister,
    /// An earlier release shows a quasi column that the new one does not have.
    #[error(
        "an earlier release shows the quasi column '{column}', which is none here: nothing says whom its classes hold"
    )]
    PreviousColumn {
        /// The column.
        column: String,
    },
    /// Labels of an earlier release that mean nothing here.
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
    /// Readers of the new and earlier releases would find people among too few, whatever is released.
    #[error(
        "no class can take {} beside the earlier releases, because fewer than {k} persons of the same earlier classes are \
         still in the register: {}",
        if rows.len() == 1 { "1 person".to_owned() } else { format!("{} persons", rows.len()) }, InRows(rows)
    )]
    PreviousCrowd {
        /// Their rows in the private table, from 1.
        rows: Vec<u64>,
        /// Asked.
        k: u32,
    },
    /// Readers of the new and earlier releases would learn values.
    #[error(
        "the release can't be read together with earlier ones: of '{column}' too few values are common to both, \
         or too few came or went"
    )]
    PreviousValues {
        /// The sensitive column.
        column: String,
    },
    /// Whoever waited for the result does not want it any more.
    #[error("the work was cancelled")]
    Cancelled,
    /// A fault of ours: a column should have been refused by the reader.
    #[error(transparent)]
    ForeignValues(#[from] ForeignValues),
    /// A fault of ours: a column should have been refused by the reader.
    #[error(transparent)]
    UnfitColumn(#[from] UnfitColumn),
    /// A fault of ours: rows that can stand together were refused by the partitioner.
    #[error(transparent)]
    Unreachable(#[from] partition::Unreachable),
}

/// Row numbers, the first few.
struct InRows<'a>(&'a [u64]);

impl std::fmt::Display for InRows<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let n_named = self.0.len().min(10);
        let named: Vec<String> = self.0[..n_named].iter().map(u64::to_string).collect();
        write!(f, "{} {}", if self.0.len() == 1 { "row" } else { "rows" }, named.join(", "))?;
        match self.0.len() - n_named {
            0 => Ok(()),
            n => write!(f, " and {n} more"),
        }
    }
}

impl AnonymizeError {
    /// What the user can do about it.
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
            AnonymizeError::OneValue { .. } => Some("drop the column, or take the requirement out"),
            AnonymizeError::NoQuasiColumn => Some("give the columns an attacker may know the role quasi"),
            AnonymizeError::Unavailable(_)
            | AnonymizeError::UnavailableForTables(_)
            | AnonymizeError::UnavailableForAudiences(_)
            | AnonymizeError::UnavailableWithRegister(_) => Some("use algorithm = \"auto\""),
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
/// Where the requirement can't be reached; nothing is half done.
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
    let Classified { rows, rules, classes, shown, persons, algorithm, notes } =
        classify(table, &encoded, spec, requirements, progress)?;
    let loss = loss::measure(table, &encoded, &rules, &rows, &classes, &shown, persons);
    let release = recode(table, &encoded, &rows, &classes, &shown, spec.order);
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

/// Partitions a table as the spec asks. What is encoded may be a longer table that begins with its rows.
fn classify(
    table: &Table,
    encoded: &Encoded<'_>,
    spec: &Spec,
    requirements: &[Requirement],
    progress: &dyn Progress,
) -> Result<Classified, AnonymizeError> {
    classify_without(table, encoded, spec, requirements, &[], progress)
}

/// The same where some rows are left out already, within the spec's limit.
fn classify_without(
    table: &Table,
    encoded: &Encoded<'_>,
    spec: &Spec,
    requirements: &[Requirement],
    left_out: &[u32],
    progress: &dyn Progress,
) -> Result<Classified, AnonymizeError> {
    let kept = suppress::rows_that_can_stand_without(table, encoded, requirements, spec.max_suppressed, left_out)?;
    let rules = Rules::compile(table, requirements, &kept)?;
    let Blocks { rows, ends } = blocks::fold(table, encoded, &rules, &kept, block_size(spec));
    let partitioner = partitioner(spec, ends)?;
    let all: Vec<u32> = (0..table.n_rows as u32).collect();
    let n_in = suppress::n_persons(&rules, &all);
    let unplaceable = n_in - suppress::n_persons(&rules, &kept);
    let allowance = suppress::allowance(spec.max_suppressed, n_in) - unplaceable;
    // Nobody is left out by halves: where persons have several rows, only a full-domain search takes out all of them.
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
    // Classes that show the same cells are one to a reader, and a person may have rows in several of them.
    let stands = |class: &[u32]| task.stands(&mut Tally::new(&rules), class.iter().copied());
    while rules.person_of_row().is_some() && !shown.folded_rows(&classes).iter().all(|class| stands(class)) {
        classes = join_leftovers(&task, shown.folded_rows(&classes), stands);
        shown = Shown::new(&classes, encoded, &rows);
    }
    let released: Vec<u32> = classes.all_rows().iter().flat_map(|&row| rows.members(row)).copied().collect();
    let n_out = suppress::n_persons(&rules, &released);
    let persons = Persons { n_in, n_out, suppressed: n_in - n_out };
    Ok(Classified { rows, rules, classes, shown, persons, algorithm: partitioner.name(), notes })
}

/// Classes of work that was cancelled may be anything, so nothing is made of them.
fn stop_if_cancelled(progress: &dyn Progress) -> Result<(), AnonymizeError> {
    if progress.is_cancelled() { Err(AnonymizeError::Cancelled) } else { Ok(()) }
}

/// How many rows are partitioned together, where that is not all of them.
fn block_size(spec: &Spec) -> Option<NonZeroUsize> {
    let block = spec.datafly.block.filter(|_| spec.algorithm == Algorithm::Datafly)?;
    NonZeroUsize::new(block as usize)
}

/// The partitioner a spec asks for.
fn partitioner(spec: &Spec, block_ends: Vec<u32>) -> Result<Box<dyn Partitioner>, AnonymizeError> {
    Ok(match spec.algorithm {
        Algorithm::Auto => Box::new(LeastLoss),
        Algorithm::Mondrian => Box::new(Mondrian { spec: spec.mondrian, keep_tree: KeepTree::No }),
        Algorithm::Datafly => Box::new(OwnK(Datafly { steps: None, block_ends })),
        Algorithm::Cluster => {
            let ClusteringSpec { threshold, cluster_limit, pairing: _ } = spec.clustering;
            Box::new(Cluster { threshold, cluster_limit })
        }
        Algorithm::FullDomain => Box::new(FullDomain { objective: spec.full_domain.objective }),
        Algorithm::TopDown => Box::new(TopDown),
        Algorithm::Miracle | Algorithm::MiracleX => {
            return Err(AnonymizeError::Unavailable(spec.algorithm));
        }
    })
}
