//! Which of the two plans reads a view, by what its directory tells.
//!
//! ```text
//! anonymize first:  all rows -> partition -> verify -> all classes -> the query's filter
//! select first:     directory -> classes that could match -> their rows -> verify -> the query's filter
//! ```
//!
//! # Guarantee
//! Both give the same rows. The choice and all that EXPLAIN says of it follow from released labels and class sizes:
//! how many private rows match is never looked at.
//! # Paper
//! `[EPS+12]` sections 5.1 to 5.3; the choice by cost is its future work

use std::fmt;
use std::str::FromStr;

use super::Directory;
use super::assemble::Chosen;

/// Relative costs per row, as measured on a million rows of a census in Parquet.
const READ: f64 = 1.0;
const SHOW: f64 = 9.0;
const PARTITION: f64 = 32.0;

/// How a view is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlanWish {
    /// Whichever costs less.
    #[default]
    Auto,
    /// Everything is anonymized once more, then selected from.
    AnonymizeFirst,
    /// Classes that could match are selected, then built.
    SelectFirst,
}

/// The words of `kohort.plan`.
impl FromStr for PlanWish {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word.to_lowercase().as_str() {
            "auto" | "" => Ok(PlanWish::Auto),
            "anonymize_first" => Ok(PlanWish::AnonymizeFirst),
            "select_first" => Ok(PlanWish::SelectFirst),
            _ => Err("kohort.plan is one of auto, anonymize_first, select_first".to_owned()),
        }
    }
}

impl fmt::Display for PlanWish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PlanWish::Auto => "auto",
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
    /// The cheaper plan for classes that could match, unless one is wished for.
    pub fn choose(wish: PlanWish, directory: &Directory, chosen: Chosen) -> Plan {
        let n_rows = directory.n_rows() as f64;
        let n_chosen = match &chosen {
            Chosen::All | Chosen::Complete => n_rows,
            Chosen::Classes(classes) => classes.iter().map(|&class| f64::from(directory.class(class).n_rows)).sum(),
        };
        let anonymize_first = n_rows * (READ + PARTITION + SHOW);
        let select_first = n_rows * READ + n_chosen * SHOW;
        match wish {
            PlanWish::AnonymizeFirst => Plan::AnonymizeFirst,
            PlanWish::Auto if anonymize_first < select_first => Plan::AnonymizeFirst,
            PlanWish::Auto | PlanWish::SelectFirst => Plan::SelectFirst { chosen },
        }
    }

    /// What EXPLAIN says.
    pub(super) fn describe(&self, directory: &Directory) -> String {
        match self {
            Plan::AnonymizeFirst => "anonymize first".to_owned(),
            Plan::SelectFirst { chosen: Chosen::All | Chosen::Complete } => "select first, all classes".to_owned(),
            Plan::SelectFirst { chosen: Chosen::Classes(classes) } => {
                format!("select first, {} of {} classes", classes.len(), directory.n_classes())
            }
        }
    }
}
