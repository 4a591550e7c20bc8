//! Which of the two plans reads a view.
//!
//! ```text
//! anonymize first:  all rows -> partition -> verify -> all classes -> the query's filter
//! select first:     directory -> classes that could match -> their rows -> verify -> the query's filter
//! ```
//!
//! # Guarantee
//! Both give the same rows. All that EXPLAIN says follows from released labels: how many private rows match is never
//! looked at.
//! # Paper
//! `[EPS+12]` sections 5.1 to 5.3
//! # Deviations
//! The paper leaves a choice by cost to others. Here is none to make: the directory is always at hand, and with it even
//! the whole view costs less than to partition it again.

use std::fmt;
use std::str::FromStr;

use super::assemble::Chosen;

/// How a view is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlanWish {
    /// Classes that could match are selected, then built.
    #[default]
    SelectFirst,
    /// Everything is anonymized once more, then selected from.
    AnonymizeFirst,
}

/// The words of `kohort.plan`; `auto` is the one that is taken unless another is asked for.
impl FromStr for PlanWish {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word.to_lowercase().as_str() {
            "auto" | "select_first" | "" => Ok(PlanWish::SelectFirst),
            "anonymize_first" => Ok(PlanWish::AnonymizeFirst),
            _ => Err("kohort.plan is one of auto, anonymize_first, select_first".to_owned()),
        }
    }
}

impl fmt::Display for PlanWish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PlanWish::AnonymizeFirst => "anonymize_first",
            PlanWish::SelectFirst => "select_first",
        })
    }
}

/// A plan that was chosen.
#[derive(Clone, Debug)]
pub enum Plan {
    /// All rows are partitioned once more.
    AnonymizeFirst,
    /// The chosen classes are built.
    SelectFirst {
        /// Which.
        chosen: Chosen,
    },
}

impl Plan {
    /// The plan that is wished for, where these classes could match.
    pub fn of(wish: PlanWish, chosen: Chosen) -> Plan {
        match wish {
            PlanWish::AnonymizeFirst => Plan::AnonymizeFirst,
            PlanWish::SelectFirst => Plan::SelectFirst { chosen },
        }
    }

    /// What EXPLAIN says of it, for a view of so many classes.
    pub(in crate::view) fn describe(&self, n_classes: usize) -> String {
        match self {
            Plan::AnonymizeFirst => "anonymize first".to_owned(),
            Plan::SelectFirst { chosen: Chosen::All | Chosen::Complete } => "select first, all classes".to_owned(),
            Plan::SelectFirst { chosen: Chosen::Classes(classes) } => {
                format!("select first, {} of {n_classes} classes", classes.len())
            }
        }
    }
}
