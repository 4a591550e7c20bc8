//! [`ReleaseReport`]: the content of a release's `report.json`, the figures that people look at before they sign.
//!
//! # Guarantee
//! A report follows from the files of its release alone, so anybody who has the release can make the report again and compare
//! them. A value of a column is named only if at least k persons of the release hold it.

mod owner;
mod schema;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use owner::{
    AboveBeforeAfter, AssociationMeasure, AssociationReport, BinReport, CostFigures, CostReport, CostsReport,
    MarginalReport, ModelledPersons, OwnerReport, PairCounts, PopulationBeforeAfter, PopulationReport, SumReport,
    SumsReport, TargetReport,
};
pub use schema::report_schema;

use crate::NoteManifest;
use crate::manifest::{Achieved, JoinManifest, Loss, Persons, PreviousManifest, ReferenceManifest, RegisterManifest};
use crate::manifest::{RequirementManifest, Risk, SavingsManifest};
use crate::spec::Order;

/// The whole report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReleaseReport {
    /// The version of the form of reports: 1.
    pub report: u32,
    /// The version of kohort that made the report.
    pub kohort: String,
    /// The release.
    pub release: ReportedRelease,
    /// What was asked, as in the manifest.
    pub requirement: RequirementManifest,
    /// What was reached, as in the manifest.
    pub achieved: Achieved,
    /// Numbers of persons in the input, in the release, and left out.
    pub persons: Persons,
    /// Who can read the release, and how well they find persons in it. One entry without audiences.
    pub readers: Vec<ReaderReport>,
    /// The risk of the private table and of the release, as in the manifest.
    pub risk: Risk,
    /// What is not in the release, or tells nothing.
    pub suppression: SuppressionReport,
    /// What was lost, as in the manifest.
    pub loss: Loss,
    /// The loss of each table, by name; empty for one table.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub table_loss: BTreeMap<String, Loss>,
    /// What one release for all audiences saved, as in the manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub savings: Option<SavingsManifest>,
    /// The tables of the release.
    pub tables: Vec<TableReport>,
    /// The registers, as in the manifest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub registers: Vec<RegisterManifest>,
    /// The join with the registers, as in the manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub register: Option<JoinManifest>,
    /// Earlier releases that were taken into account, as in the manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<PreviousManifest>,
    /// What happened to references, as in the manifest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<ReferenceManifest>,
    /// The three questions of Opinion 05/2014 of the Article 29 Working Party (WP216), each with its answer.
    pub answers: Vec<AnswerReport>,
    /// What was done differently than the spec lets a reader expect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<NoteManifest>,
    /// Blatant risks that the publisher accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted_risks: Vec<NoteManifest>,
    /// What `kohort verify` finds in the files alone.
    pub verification: VerificationReport,
}

impl ReleaseReport {
    /// The version of the form of reports that this version of kohort writes.
    pub const FORM: u32 = 1;
}

/// A release, as its manifest describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReportedRelease {
    /// The version of kohort that wrote the release.
    pub kohort: String,
    /// The kind of release.
    pub kind: ReleaseKind,
    /// The partitioner that ran.
    pub algorithm: String,
    /// The order of the released rows.
    pub order: Order,
    /// Groups of persons who look the same in all quasi columns.
    pub classes: u64,
}

/// The kind of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReleaseKind {
    /// One table for all readers.
    OneTable,
    /// Several tables that refer to each other.
    ManyTables,
    /// One table for several audiences.
    Audiences,
    /// One table beside public registers.
    Register,
}

/// How well somebody finds persons in the release.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReaderReport {
    /// Who reads.
    pub kind: ReaderKind,
    /// The name of the audience or coalition; absent for everybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The columns that the reader may know of a person; `table.column` if there are several tables.
    pub knows: Vec<String>,
    /// The k that was asked; absent if nothing was asked for this coalition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k_asked: Option<u32>,
    /// Persons in the smallest class that the reader sees.
    pub k: u64,
    /// What the members of a class are.
    pub counted: CountedIn,
    /// The class sizes that occur, ascending. Empty if the files don't tell how many persons a class has.
    pub class_sizes: Vec<ClassSizeReport>,
    /// Somebody who looks for a person who is known to be in the private table. Absent if the release tells on purpose
    /// nobody which of its persons are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prosecutor: Option<AttackerReport>,
    /// Somebody who looks for any person of the population, and does not know who is in the private table.
    pub journalist: AttackerReport,
    /// Somebody who looks for everybody at once: the share of persons who are found on average.
    pub marketer: ShareReport,
    /// Limits that authorities publish, and whether the smallest class is within them.
    pub presets: Vec<PresetReport>,
}

/// Who reads a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReaderKind {
    /// Everybody: there are no audiences.
    Everybody,
    /// One audience.
    Audience,
    /// Audiences that put together what they know.
    Coalition,
}

/// What the members of a class are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CountedIn {
    /// Persons of the private table.
    Persons,
    /// Persons of the private table and of the registers.
    PersonsAndRegister,
    /// Persons have several rows and nothing tells which, so the files show no number of persons.
    Unknown,
}

/// A size and the number of classes of that size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClassSizeReport {
    /// The number of members.
    pub size: u64,
    /// The number of classes.
    pub classes: u64,
}

/// Where a figure comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Counted in the released files. Everybody who has them can count it again.
    Counted,
    /// Claimed by the manifest. The publisher's verifier counted it with the private table.
    Claimed,
    /// Not known; at most this.
    AtMost,
}

/// The chances of an attacker to find the right person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AttackerReport {
    /// Where the figures come from.
    pub basis: Basis,
    /// The chance for the person who is easiest to find: one over the smallest class.
    pub highest: f64,
    /// The mean over all persons.
    pub average: f64,
    /// Persons whose risk is above a threshold. Empty if class sizes are not known.
    pub above: Vec<AboveReport>,
}

/// Persons whose risk is above a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AboveReport {
    /// The threshold.
    pub risk: f64,
    /// Persons of the release with a higher risk.
    pub persons: u64,
    /// Their share.
    pub share: f64,
}

/// A share of persons.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ShareReport {
    /// Where the figure comes from.
    pub basis: Basis,
    /// The share.
    pub share: f64,
}

/// A published limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PresetReport {
    /// The name of the preset in specs.
    pub name: String,
    /// The persons that the smallest class must have.
    pub k: u32,
    /// Whether it has them.
    pub met: bool,
}

/// What is not in the release, or tells nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SuppressionReport {
    /// Persons left out.
    pub persons: u64,
    /// The share of the persons in the input.
    pub share: f64,
    /// The largest share that was allowed.
    pub allowed: f64,
    /// Rows left out of all tables.
    pub rows: u64,
    /// Released quasi cells that tell nothing, because they stand for every value.
    pub cells: u64,
    /// All released quasi cells.
    pub of_cells: u64,
}

/// One released table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TableReport {
    /// The name of the table.
    pub name: String,
    /// The file in the release folder.
    pub file: String,
    /// Digest of the file.
    pub sha256: String,
    /// Rows of the private table.
    pub rows_in: u64,
    /// Rows of the released file.
    pub rows_out: u64,
    /// Rows left out.
    pub rows_suppressed: u64,
    /// The released columns in the order of the file.
    pub columns: Vec<ColumnReport>,
    /// The combinations of cells in all quasi columns that most rows show, largest first. Only combinations that at least k
    /// persons share.
    pub common: Vec<CommonReport>,
}

/// One released column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ColumnReport {
    /// The name of the column.
    pub name: String,
    /// The role.
    pub role: String,
    /// The type of the values.
    #[serde(rename = "type")]
    pub value_type: String,
    /// Rows that hold null.
    pub nulls: u64,
    /// What the cells of a quasi column tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cells: Option<CellsReport>,
    /// The most frequent cells, largest count first. Only cells that at least k persons share; none of key columns.
    pub values: Vec<ValueReport>,
    /// All other cells but null.
    pub others: OthersReport,
    /// Why no cell is named, if that has a reason other than k.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unnamed: Option<Unnamed>,
}

/// Why no cell of a column is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unnamed {
    /// The column has keys, which only join tables.
    Keys,
    /// Persons have several rows and nothing tells which, so nobody can say which values k persons share.
    Persons,
}

/// What the cells of a quasi column tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CellsReport {
    /// Cells that show their value, or null.
    pub exact: u64,
    /// Cells that stand for several values.
    pub wider: u64,
    /// Cells that stand for every value.
    pub nothing: u64,
}

/// A cell and the rows that show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ValueReport {
    /// The text of the cell.
    pub value: String,
    /// The number of rows.
    pub rows: u64,
}

/// Cells that are not named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OthersReport {
    /// The number of distinct texts.
    pub values: u64,
    /// The number of rows that show one of them.
    pub rows: u64,
}

/// A combination of cells that many rows show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CommonReport {
    /// The cells in the order of the quasi columns; null is null.
    pub cells: Vec<Option<String>>,
    /// The number of rows.
    pub rows: u64,
}

/// One of the three questions, and its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AnswerReport {
    /// The question.
    pub question: Question,
    /// The answer in a word.
    pub answer: Answer,
    /// The answer in sentences: the figures that it rests on, and what it does not cover.
    pub because: Vec<String>,
}

/// The three questions that WP216 asks of every anonymization.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// Is it still possible to single out an individual?
    SinglingOut,
    /// Is it still possible to link records relating to an individual?
    Linkability,
    /// Can information be inferred concerning an individual?
    Inference,
}

/// The answer to one of the three questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Bounded by a requirement that holds for everybody in the release.
    Bounded,
    /// Bounded only in part: a requirement bounds some of it.
    InPart,
    /// Nothing that was asked bounds it.
    NotBounded,
}

/// What `kohort verify` finds in the files alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VerificationReport {
    /// `verified`, or `in_part` if some of what was asked can't be seen in the files.
    pub verdict: String,
    /// What could not be counted, in words.
    pub not_counted: Vec<String>,
    /// Keys of the manifest that decide what is counted.
    pub as_manifest_says: Vec<String>,
    /// Keys of the manifest that the files neither confirm nor refute.
    pub not_confirmed: Vec<String>,
}
