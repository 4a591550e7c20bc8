//! [`Plan`]: which of the two plans reads a view.
//!
//! ```text
//! anonymize first:  all rows -> partition -> verify -> all classes -> the query's filter
//! select first:     directory -> classes that could match -> their rows -> verify -> the query's filter
//! ```
//!
//! # Guarantee
//! Both plans give the same rows. Everything that EXPLAIN shows follows from released labels, never from how many private
//! rows match.
//! # Paper
//! `[EPS+12]` sections 5.1 to 5.3
//! # Deviations
//! The paper leaves a choice by cost to others. Here no such choice is needed: with the directory, which is always in
//! memory, even the whole view costs less than partitioning it again.

use std::fmt;
use std::str::FromStr;

use super::assemble::Chosen;

/// The plan that a reader wishes for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PlanWish {
    /// Classes that could match are selected, then built.
    #[default]
    SelectFirst,
    /// Everything is anonymized again, then selected from.
    AnonymizeFirst,
}

/// The words of `kohort.plan`; `auto` is the default plan.
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

/// The plan that reads a view.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    /// All rows are partitioned again.
    AnonymizeFirst,
    /// The chosen classes are built.
    SelectFirst {
        /// Which.
        chosen: Chosen,
    },
}

impl Plan {
    /// The plan that is wished for, if these classes could match.
    pub(crate) fn of(wish: PlanWish, chosen: Chosen) -> Plan {
        match wish {
            PlanWish::AnonymizeFirst => Plan::AnonymizeFirst,
            PlanWish::SelectFirst => Plan::SelectFirst { chosen },
        }
    }

    /// The words of EXPLAIN for it, in a view with this many classes.
    pub(in crate::view) fn describe(&self, n_classes: usize) -> String {
        match self {
            Plan::AnonymizeFirst => "anonymize first".to_owned(),
            Plan::SelectFirst { chosen: Chosen::All } => "select first, all classes".to_owned(),
            Plan::SelectFirst { chosen: Chosen::Classes(classes) } => {
                format!("select first, {} of {n_classes} classes", classes.len())
            }
        }
    }
}
