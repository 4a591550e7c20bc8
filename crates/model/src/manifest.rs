//! [`Manifest`]: what `manifest.json` of a release says. Holds no value of the data, no seed, no digest of private input.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The whole manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of kohort that wrote the release.
    pub kohort: String,
    /// The partitioner that ran.
    pub algorithm: String,
    /// What was asked.
    pub requirement: RequirementManifest,
    /// What the verifier counted.
    pub achieved: Achieved,
    /// Persons in, out and suppressed.
    pub persons: Persons,
    /// Classes of persons that look the same.
    pub classes: u64,
    /// What recoding cost.
    pub loss: Loss,
    /// Re-identification risk.
    pub risk: Risk,
    /// One entry per released table.
    pub tables: Vec<TableManifest>,
    /// Always true: a release that was not verified is not written.
    pub verified: bool,
}

/// What was asked, as in the spec.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequirementManifest {
    /// The smallest class.
    pub k: u32,
    /// Whether persons' own k was honoured.
    #[serde(default, skip_serializing_if = "is_false")]
    pub person_k: bool,
    /// The largest share of persons that may be left out.
    pub max_suppressed: f64,
    /// Per sensitive column its requirements by their names in the spec.
    pub sensitive: BTreeMap<String, BTreeMap<String, Setting>>,
}

/// A requirement's setting: a number, a word or a list of numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Setting {
    /// Such as `l = 3`.
    Whole(u64),
    /// Such as `t = 0.2`.
    Number(f64),
    /// Such as `distance = "ordered"`.
    Word(String),
    /// Such as `recursive_cl = [3, 2]`.
    Numbers(Vec<f64>),
}

/// What the verifier counted in the released files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Achieved {
    /// Persons in the smallest class.
    pub k: u64,
    /// Per sensitive column.
    pub sensitive: BTreeMap<String, AchievedSensitive>,
}

/// The worst class of one sensitive column, measure by measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AchievedSensitive {
    /// Fewest distinct values in a class.
    pub l: u64,
    /// Smallest effective number of values, `exp` of the entropy.
    pub entropy_l: f64,
    /// Largest distance to the release's distribution, values any two of which are 1 apart.
    pub t: f64,
    /// The same under the distance asked for, where that is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub t_by_distance: Option<f64>,
    /// Largest share of a class's persons that hold one value.
    pub alpha: f64,
    /// Largest relative gain of a value's share over the release's.
    pub beta: f64,
}

/// How many persons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Persons {
    /// In the private table.
    #[serde(rename = "in")]
    pub n_in: u64,
    /// In the release.
    #[serde(rename = "out")]
    pub n_out: u64,
    /// Left out.
    pub suppressed: u64,
}

/// Information loss; 0 where nothing is lost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Loss {
    /// Mean over all quasi cells: (leaves-1)/(all leaves-1), or width over the column's range; suppressed cells 1.
    pub lm: f64,
    /// Normalized certainty penalty, mean over all quasi cells.
    pub ncp: f64,
    /// Discernibility: the sum of squared class sizes, a suppressed person counted as the whole table.
    pub dm: f64,
    /// Mean number of persons per class.
    pub average_class: f64,
    /// Sum over rows and columns of the width of the cell over the column's range, categories in their order.
    pub uncertainty_penalty: f64,
    /// Sum over persons of the size of their class less the k they need.
    pub k_deviation: f64,
    /// LM per quasi column.
    pub columns: BTreeMap<String, f64>,
}

/// Risk of re-identification by linking, of the private table and of the release.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Risk {
    /// One over the persons of the smallest class.
    pub highest: BeforeAfter,
    /// Mean over persons of one over the size of their class.
    pub average: BeforeAfter,
}

/// A measure of the private table, if its quasi columns were released as they are, and of the release.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BeforeAfter {
    /// In the private table.
    pub before: f64,
    /// In the release.
    pub after: f64,
}

/// One released table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableManifest {
    /// Its name in the spec.
    pub name: String,
    /// The file in the release folder.
    pub file: String,
    /// Rows of the private table.
    pub rows_in: u64,
    /// Rows of the released file.
    pub rows_out: u64,
    /// Rows left out.
    pub rows_suppressed: u64,
    /// Digest of the released file.
    pub sha256: String,
    /// Released columns by name.
    pub columns: BTreeMap<String, ColumnManifest>,
}

/// One released column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnManifest {
    /// Its role, in the spec's words; of a quasi column written as two, [`ColumnManifest::LOWER_BOUND`] or
    /// [`ColumnManifest::UPPER_BOUND`].
    pub role: String,
    /// The type of its values.
    #[serde(rename = "type")]
    pub value_type: String,
}

impl ColumnManifest {
    /// The role of the column that holds the lowest value each quasi cell may stand for. It is named after the quasi
    /// column with `_lo` behind, and the column of upper bounds stands next to it.
    pub const LOWER_BOUND: &'static str = "quasi_lo";
    /// The role of the column that holds the highest one, named with `_hi` behind.
    pub const UPPER_BOUND: &'static str = "quasi_hi";
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_false(value: &bool) -> bool {
    !value
}
