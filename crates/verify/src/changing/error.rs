//! [`StepErrors`]: everything that is wrong with a step or a refresh.

use std::fmt;

use kohort_model::Requirement;

/// The members of an atom that an error is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Members who are shown after the step.
    Shown,
    /// Members who are no longer shown.
    Removed,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::Shown => "members who are shown",
            Part::Removed => "members who are no longer shown",
        })
    }
}

/// One error of a step. Atoms are numbered from 1, in the order of the step. No message contains a cell.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum StepError {
    #[error("atom {atom}: {n} members or labels do not fit the view's columns")]
    Malformed { atom: usize, n: usize },
    #[error("atom {atom}: {n} persons are in it twice")]
    PersonTwice { atom: usize, n: usize },
    #[error("atom {atom}: {n} of its persons are also in an earlier atom of the list")]
    InTwoAtoms { atom: usize, n: usize },
    #[error("atom {atom}: {n} of its rows also belong to another person")]
    RowOfTwo { atom: usize, n: usize },
    #[error("atom {atom}: an earlier atom of the list has the same number")]
    NumberTwice { atom: usize },
    #[error("atom {atom}: an earlier atom of the list shows the same class with other labels")]
    OtherLabels { atom: usize },
    #[error("atom {atom}: {n} members joined or changed after the atom was first shown")]
    Gained { atom: usize, n: usize },
    #[error("atom {atom}: {n} members have a k below 2 and must be shown without a class")]
    AsksForNoClass { atom: usize, n: usize },
    #[error("atom {atom}: it is new, but readers saw something of {n} members before")]
    SeenBefore { atom: usize, n: usize },
    #[error(
        "atom {atom}: its members must all come from one former atom, or all be new, but they come from {n} of these"
    )]
    Mixed { atom: usize, n: usize },
    #[error("atom {atom}: quasi column {column}: the label does not cover the values of {n} members")]
    NotCovered { atom: usize, column: usize, n: usize },
    #[error("atom {atom}: the labels of its class changed")]
    Relabelled { atom: usize },
    #[error("atom {atom}: its members were shown before, but its class was not")]
    ClassIsNew { atom: usize },
    #[error("atom {atom}: {part}: {n_persons} persons do not satisfy {requirement:?}")]
    Unmet { atom: usize, part: Part, requirement: Requirement, n_persons: usize },
    #[error("requirement {requirement:?} can't be counted in a view over changing data")]
    Uncountable { requirement: Requirement },
}

/// All errors of a step or a refresh.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct StepErrors(pub Vec<StepError>);
