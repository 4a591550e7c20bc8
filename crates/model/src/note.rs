//! [`Note`]: something that was done differently than a reader of the spec would expect.
//!
//! No release is made by a lesser method in silence. Code that falls back to another method, tries less, or can't
//! follow a setting adds a note. Every note is printed and written to the manifest. Notes contain counts and names of
//! settings, never values.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Spec;
use crate::spec::{Algorithm, ClusteringSpec, RegisterMethod, RegisterRows};

/// A remark, for the output and the manifest, that the program did something other than the spec asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Note {
    /// The spec sets something that this job does not use.
    Unused {
        /// The setting, as a spec writes it.
        setting: &'static str,
        /// The algorithm or kind of release that uses the setting.
        used_by: &'static str,
    },
    /// `auto` tries less on a large table.
    LessTried {
        /// The number of different rows.
        n_distinct: u64,
        /// The largest number of different rows for which everything is tried.
        limit: u64,
    },
    /// `auto` moves no rows between classes, because persons have several rows.
    OnlyCut,
    /// `auto` compared its methods on a part of the persons.
    ComparedOnPart {
        /// The number of different persons.
        n_persons: u64,
        /// The number of persons on whom every method was tried.
        n_tried: u64,
    },
    /// A loss other than LM was asked for, but cells of a table that is larger than memory minimize LM.
    ObjectiveInCells,
    /// A search for the best levels was stopped before its end.
    SearchEnded,
    /// Some persons have too many siblings to compare all pairs of them.
    PairedInParts {
        /// The largest number of pairs of different siblings of which all are compared.
        limit: u64,
    },
    /// More rows of a child table are left out than is usual, and the spec sets no limit.
    RowsLeftOut {
        /// The child table.
        table: String,
        /// Rows left out.
        n: u64,
        /// Rows of the private table.
        n_rows: u64,
    },
    /// `leftovers = "suppress"` leaves out nobody to make a class narrower.
    NobodyTrimmed(WhyNobody),
    /// Nobody is left out in cells, although the spec allows it: t and beta compare each cell with all persons.
    NobodyLeftOut,
    /// The job would not have fitted into memory, so it was done in cells although nobody asked for that.
    MemoryChosen {
        /// The memory that was used for the data.
        n_megabytes: u64,
    },
    /// The table was anonymized in cells, because of the memory that was given.
    InCells {
        /// The number of cells.
        n_cells: u64,
    },
    /// Classes of an earlier release were applied to new persons, who were not compared with its persons.
    PersonsNotCompared,
    /// A column is released as pseudonyms.
    Pseudonyms {
        /// The column.
        column: String,
    },
}

/// Why nobody is left out to make a class narrower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WhyNobody {
    /// A person has several rows, which may be in several classes.
    SeveralRows,
    /// A requirement compares classes with the whole release, which changes with everybody who leaves.
    ComparedWithRelease,
}

/// A note as a manifest shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NoteManifest {
    /// A word that stays the same from version to version.
    pub code: String,
    /// The note in words.
    pub message: String,
}

impl Note {
    /// The word for this note in a manifest.
    pub fn code(&self) -> &'static str {
        match self {
            Note::Unused { .. } => "unused_setting",
            Note::LessTried { .. } => "less_tried",
            Note::OnlyCut => "only_cut",
            Note::ComparedOnPart { .. } => "compared_on_part",
            Note::ObjectiveInCells => "objective_in_cells",
            Note::SearchEnded => "search_ended",
            Note::PairedInParts { .. } => "paired_in_parts",
            Note::RowsLeftOut { .. } => "rows_left_out",
            Note::NobodyTrimmed(_) => "nobody_trimmed",
            Note::NobodyLeftOut => "nobody_left_out",
            Note::MemoryChosen { .. } => "memory_chosen",
            Note::InCells { .. } => "in_cells",
            Note::PersonsNotCompared => "persons_not_compared",
            Note::Pseudonyms { .. } => "pseudonyms",
        }
    }

    /// What readers should know about columns of pseudonyms.
    pub fn of_pseudonyms(spec: &Spec) -> Vec<Note> {
        let columns = spec.transformed().filter(|column| column.transform.pseudonym_key.is_some());
        columns.map(|column| Note::Pseudonyms { column: column.name.clone() }).collect()
    }

    /// The notes on the parts of a table as notes on the whole, each once. Counts of different persons add up; of tables that
    /// were too large, the largest is named.
    pub fn joined(mut notes: Vec<Note>) -> Vec<Note> {
        notes.sort();
        notes.dedup_by(|next, kept| match (&mut *kept, next) {
            (Note::LessTried { n_distinct, .. }, Note::LessTried { n_distinct: other, .. }) => {
                *n_distinct = (*n_distinct).max(*other);
                true
            }
            (
                Note::ComparedOnPart { n_persons, n_tried },
                Note::ComparedOnPart { n_persons: more_persons, n_tried: more_tried },
            ) => {
                *n_persons += *more_persons;
                *n_tried += *more_tried;
                true
            }
            (kept, next) => kept == next,
        });
        notes
    }

    /// The settings of a spec that its algorithm does not use. Settings at their default are not named, because they
    /// change nothing.
    pub fn unused(spec: &Spec) -> Vec<Note> {
        let is_clustering = matches!(spec.algorithm, Algorithm::Cluster | Algorithm::Miracle | Algorithm::MiracleX)
            || spec.algorithm == Algorithm::Auto && spec.links_rows();
        let ClusteringSpec { threshold, cluster_limit, pairing } = spec.clustering;
        // The steps that effort repeats lower the loss of private and register persons together. They may raise the loss of the private
        // ones alone, which is the loss that is reported, so refinement does without them.
        let is_refined = !spec.registers.is_empty()
            && spec.register.method == RegisterMethod::Refine
            && spec.register.release == RegisterRows::All;
        let settings = [
            (
                spec.effort != 1 && (spec.algorithm != Algorithm::Auto || spec.links_rows() || is_refined),
                "effort",
                "algorithm = \"auto\" with one table, without refinement of a register",
            ),
            (
                spec.has_objective() && matches!(spec.algorithm, Algorithm::Datafly | Algorithm::FullDomain),
                "objective, with the weights of columns,",
                "algorithm = \"auto\", \"mondrian\", \"top-down\" or \"cluster\"",
            ),
            (spec.seed != 0, "seed", "algorithms that use random numbers, of which this version has none"),
            (
                spec.algorithm != Algorithm::Mondrian && spec.mondrian != Default::default(),
                "[mondrian]",
                "algorithm = \"mondrian\"",
            ),
            (
                spec.algorithm != Algorithm::Datafly && spec.datafly != Default::default(),
                "[datafly]",
                "algorithm = \"datafly\"",
            ),
            (
                spec.algorithm != Algorithm::FullDomain && spec.full_domain != Default::default(),
                "[full_domain]",
                "algorithm = \"full-domain\"",
            ),
            (
                !is_clustering && (threshold.is_some() || cluster_limit.is_some()),
                "[clustering]",
                "algorithm = \"cluster\", \"miracle\" or \"miraclex\"",
            ),
            (pairing.is_some() && !spec.links_rows(), "pairing", "releases of several tables"),
        ];
        let unused = settings.into_iter().filter(|&(is_unused, ..)| is_unused);
        unused.map(|(_, setting, used_by)| Note::Unused { setting, used_by }).collect()
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Unused { setting, used_by } => {
                write!(f, "the setting {setting} has no effect here: it is for {used_by}")
            }
            Note::LessTried { n_distinct, limit } => write!(
                f,
                "auto tried less than it does on smaller tables, because there are {n_distinct} different rows and \
                 everything is tried up to {limit}: the loss may be higher than it could be"
            ),
            Note::OnlyCut => write!(
                f,
                "auto cut classes but moved no rows between them, because persons have several rows: the loss may be \
                 higher than it could be"
            ),
            Note::ComparedOnPart { n_persons, n_tried } => write!(
                f,
                "auto compared its methods on {n_tried} of {n_persons} different persons and ran the best method on all"
            ),
            Note::ObjectiveInCells => write!(
                f,
                "the objective and the weights of columns have no effect in cells, because a cell does not know how values are \
                 spread in the whole table: LM was minimized"
            ),
            Note::SearchEnded => write!(
                f,
                "the search for the best levels was stopped before its end: another choice of levels may lose less"
            ),
            Note::PairedInParts { limit } => write!(
                f,
                "rows of two persons with more than {limit} pairs of different rows were divided into parts, and paired \
                 within the parts: the loss may be higher than it could be"
            ),
            Note::RowsLeftOut { table, n, n_rows } => write!(
                f,
                "{n} of {n_rows} rows of table '{table}' are left out ({:.1} %), so counts and totals over it are too low: \
                 max_rows_left_out limits this share",
                100.0 * *n as f64 / (*n_rows).max(1) as f64
            ),
            Note::NobodyTrimmed(why) => {
                let why = match why {
                    WhyNobody::SeveralRows => "persons have several rows",
                    WhyNobody::ComparedWithRelease => {
                        "a requirement compares classes with the whole release, which changes with everybody who leaves"
                    }
                };
                write!(f, "leftovers = \"suppress\" left out nobody who makes a class wide, because {why}")
            }
            Note::NobodyLeftOut => write!(
                f,
                "nobody was left out, although max_suppressed allows it, because t and beta compare each cell with all persons: \
                 the loss may be higher than in memory"
            ),
            Note::MemoryChosen { n_megabytes } => write!(
                f,
                "the table would not have fitted into memory, so its rows waited on the disk, and about {n_megabytes} MB of \
                 memory were used for the data"
            ),
            Note::InCells { n_cells } => write!(
                f,
                "the table was anonymized in {n_cells} cells that share no class, to stay within the given memory: the loss \
                 may be a little higher than with more memory"
            ),
            Note::Pseudonyms { column } => write!(
                f,
                "'{column}' holds pseudonyms: releases with pseudonyms of the same key can be joined person by person, and were \
                 not counted together; whoever has the key knows everybody"
            ),
            Note::PersonsNotCompared => write!(
                f,
                "nobody checked whether a person is in the earlier release, too: whoever knows that somebody is in both learns \
                 which sensitive values the person's two classes have in common"
            ),
        }
    }
}

impl From<&Note> for NoteManifest {
    fn from(note: &Note) -> Self {
        NoteManifest { code: note.code().to_owned(), message: note.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_another_algorithm_are_noted() {
        let spec = |settings: &str| {
            Spec::parse(&format!(
                "k = 2\n{settings}\n[tables.a]\nfile = \"a.csv\"\n[tables.a.columns]\nage = \"quasi\"\n"
            ))
            .unwrap()
        };
        let unused = |settings: &str| -> Vec<&'static str> {
            let settings = Note::unused(&spec(settings)).into_iter().map(|note| match note {
                Note::Unused { setting, .. } => setting,
                other => panic!("{other}"),
            });
            settings.collect()
        };
        assert_eq!(unused(""), [""; 0]);
        assert_eq!(unused("algorithm = \"mondrian\"\nmondrian = { cuts = \"relaxed\" }"), [""; 0]);
        assert_eq!(unused("mondrian = { cuts = \"relaxed\" }\nseed = 7"), ["seed", "[mondrian]"]);
        assert_eq!(unused("mondrian = { cuts = \"strict\" }"), [""; 0]);
        assert_eq!(unused("effort = 3"), [""; 0]);
        assert_eq!(unused("effort = 3\nalgorithm = \"datafly\""), ["effort"]);
        let objective = "objective, with the weights of columns,";
        assert_eq!(unused("objective = \"rank\""), [""; 0]);
        assert_eq!(unused("objective = \"rank\"\nalgorithm = \"datafly\""), [objective]);
        assert_eq!(unused("clustering = { threshold = 0.3, pairing = \"optimal\" }"), ["[clustering]", "pairing"]);
    }
}
