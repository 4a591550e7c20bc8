//! [`Manifest`]: the content of a release's `manifest.json`. It contains no private value, no seed, and no digest of
//! private input.

mod cells;
mod links;
mod schema;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use cells::{ColumnManifest, CsvManifest, LabelsManifest};
pub use links::{LinkManifest, LinkMeaning, ReferenceManifest};
pub use schema::manifest_schema;

use crate::spec::Order;
use crate::{NoteManifest, Presence};

/// The whole manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Manifest {
    /// The version of kohort that wrote the release.
    pub kohort: String,
    /// The partitioner that ran.
    pub algorithm: String,
    /// The effort that was asked for; absent if the usual one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<u32>,
    /// The loss that was minimized; absent if it was LM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<String>,
    /// How much the loss of each column counted, by its name; columns that are absent counted 1.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub weights: BTreeMap<String, f64>,
    /// The order of the released rows. If absent, rows are taken for sorted, because the rows of two sorted releases
    /// must never be taken for the same persons.
    #[serde(default)]
    pub order: Order,
    /// The requirements of the spec.
    pub requirement: RequirementManifest,
    /// What the verifier counted.
    pub achieved: Achieved,
    /// The numbers of persons in the input, in the release, and left out.
    pub persons: Persons,
    /// The number of classes: groups of persons who look the same in all quasi columns, even if no audience knows all
    /// of them.
    pub classes: u64,
    /// The loss of the release.
    pub loss: Loss,
    /// Re-identification risk.
    pub risk: Risk,
    /// One entry per released table.
    pub tables: Vec<TableManifest>,
    /// The audiences and the columns that each may know, by name; empty if there are none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub audiences: BTreeMap<String, AudienceManifest>,
    /// The loss of one release for all audiences, compared with two other ways to serve them; only with audiences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub savings: Option<SavingsManifest>,
    /// The public registers among whose persons private persons hide, by name; empty if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub registers: Vec<RegisterManifest>,
    /// The join with the registers; only with registers. Classes then consist of private and register persons, while
    /// `persons` counts private ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub register: Option<JoinManifest>,
    /// Earlier releases that were taken into account; only if the spec names some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<PreviousManifest>,
    /// The earlier release whose classes this one has; only if it was made by applying them to new persons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<AppliedManifest>,
    /// What was done differently than the spec lets a reader expect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<NoteManifest>,
    /// Blatant risks that were found and that the publisher accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted_risks: Vec<NoteManifest>,
    /// Always true: a release that was not verified is not written.
    pub verified: bool,
    /// How the released tables join; empty for one table. With many tables, sensitive columns are named `table.column`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkManifest>,
    /// What happened to references; empty if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<ReferenceManifest>,
    /// The loss of each table, by name; empty for one table.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub table_loss: BTreeMap<String, Loss>,
}

/// What was asked, as in the spec.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RequirementManifest {
    /// The k that every class had to reach.
    pub k: u32,
    /// Whether each person's own k was required.
    #[serde(default, skip_serializing_if = "is_false")]
    pub person_k: bool,
    /// The k of classes in the columns of all audiences together, if that was required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collusion_k: Option<u32>,
    /// The requirements of coalitions, by name. The coalition of all audiences is called `all`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub coalitions: BTreeMap<String, CoalitionManifest>,
    /// Which columns were allowed to decide how rows are grouped, as in the spec; absent if all were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steer: Option<String>,
    /// The least and the largest share of private persons in a class, if that was required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta_presence: Option<(f64, f64)>,
    /// The largest share of persons that may be left out.
    pub max_suppressed: f64,
    /// For each child table that has a limit, the largest share of its rows that may be left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub max_rows_left_out: BTreeMap<String, f64>,
    /// The requirements of each sensitive column, by their names in the spec.
    pub sensitive: Settings,
}

/// The requirements of each column, by their names in the spec.
pub type Settings = BTreeMap<String, BTreeMap<String, Setting>>;

/// What was asked of audiences that put together what they know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CoalitionManifest {
    /// The names of the coalition's members.
    pub audiences: Vec<String>,
    /// The k of classes in the columns of all members, if that was required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k: Option<u32>,
    /// Whether each person's own k was required.
    #[serde(default, skip_serializing_if = "is_false")]
    pub person_k: bool,
    /// The requirements of sensitive columns, and of quasi columns that no member knows.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sensitive: Settings,
}

/// A requirement's setting: a number, a word or a list of numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Achieved {
    /// Persons in the smallest class; with audiences, in the smallest class that any audience sees.
    pub k: u64,
    /// Persons in the smallest class of each audience, by its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub audiences: BTreeMap<String, u64>,
    /// Persons in the smallest class that all audiences together see; only with audiences, and then even if nothing was
    /// required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collusion_k: Option<u64>,
    /// What coalitions see, by name. The coalition of all audiences, `all`, is listed even if nothing was required.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub coalitions: BTreeMap<String, AchievedCoalition>,
    /// What the release tells each audience about quasi columns that only others know.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub learned: BTreeMap<String, BTreeMap<String, AchievedLearned>>,
    /// One entry per sensitive column; with audiences, the worst over all audiences in each measure.
    pub sensitive: BTreeMap<String, AchievedSensitive>,
}

/// The worst class of one sensitive column, measure by measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AchievedSensitive {
    /// Fewest distinct values in a class.
    pub l: u64,
    /// Smallest effective number of values, `exp` of the entropy.
    pub entropy_l: f64,
    /// Largest distance to the distribution in the release, if any two values are 1 apart.
    pub t: f64,
    /// Largest distance by order or by hierarchy, if such a distance was required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub t_by_distance: Option<f64>,
    /// Largest share of a class's persons that hold one value.
    pub alpha: f64,
    /// Largest relative gain of a value's share over its share in the release.
    pub beta: f64,
}

/// What the members of a coalition see if they put together what they know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AchievedCoalition {
    /// Persons in the smallest class.
    pub k: u64,
    /// One entry per sensitive column.
    pub sensitive: BTreeMap<String, AchievedSensitive>,
    /// One entry per quasi column that no member knows.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub learned: BTreeMap<String, AchievedLearned>,
}

/// What a quasi column tells those who do not know it, over all their classes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AchievedLearned {
    /// Fewest pairwise disjoint labels in a class whose cells tell something; absent if no cell does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l: Option<u64>,
    /// Largest distance of a class's labels to those of the release.
    pub t: f64,
    /// Persons whose label is certain, because all cells of their class show the same one.
    pub certain: u64,
}

/// The numbers of persons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Persons {
    /// Persons in the private table.
    #[serde(rename = "in")]
    pub n_in: u64,
    /// Persons in the release.
    #[serde(rename = "out")]
    pub n_out: u64,
    /// Persons left out.
    pub suppressed: u64,
}

/// One recipient of the release.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AudienceManifest {
    /// The k of the audience: its own, or else that of the release.
    pub k: u32,
    /// The quasi columns that the audience may know.
    pub quasi: Vec<String>,
    /// The requirements of quasi columns that the audience must not learn.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sensitive: Settings,
}

/// One public register.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RegisterManifest {
    /// The name of the register in the spec.
    pub name: String,
    /// The day that the register describes, if the spec says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// Digest of the file.
    pub sha256: String,
    /// The number of rows.
    pub rows: u64,
    /// Rows that lack a quasi value or a key, and count for nobody.
    pub rows_incomplete: u64,
    /// The number of the register's persons in the classes of the release, without persons of the private table and of
    /// registers listed before.
    pub rows_used: u64,
}

/// What became of the registers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JoinManifest {
    /// How classes were found, as in the spec. If presence is public, `refine` is used if `direct` would have lost
    /// more.
    pub method: String,
    /// The partitioners that made the classes. `auto` leaves large tables to Mondrian, or lets Mondrian cut them into
    /// pieces.
    #[serde(default)]
    pub partitioners: Vec<String>,
    /// Which rows are released, as in the spec.
    pub release: String,
    /// How persons were matched: by `key`, or by `values`, which is never certain.
    pub joined_by: String,
    /// The number of private persons whom a register row matches: by key, with the same or other values; or without a
    /// key, by equal values.
    #[serde(default)]
    pub found: u64,
    /// How private persons count whom no register row matches, as in the spec; only if `joined_by` is `values`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmatched: Option<String>,
    /// The number of persons about whom registers contradict each other or themselves. Their register rows are not
    /// used.
    pub contradicting: u64,
    /// The number of sensitive groups; 0 if there is no sensitive table.
    pub sensitive_groups: u64,
    /// Private persons in the smallest sensitive group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_k: Option<u64>,
    /// How sure a reader who has the registers can be that somebody is in the private table.
    pub presence: Presence,
}

/// What readers of this release and of earlier ones learn together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PreviousManifest {
    /// Digests of the manifests of the earlier releases.
    pub manifests: Vec<String>,
    /// For each private person, a reader of all releases still has to consider everybody who, by the register of each
    /// time, can have been in the person's classes, the current one and the earlier ones, the person included. This is
    /// the smallest number of them over all private persons.
    pub k: u64,
    /// For each sensitive column, the fewest distinct values that a group has in common with the earlier groups that
    /// somebody of it can have been in.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub l: BTreeMap<String, u64>,
}

/// An earlier release whose classes were applied to new persons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AppliedManifest {
    /// Digest of the manifest of the earlier release.
    pub manifest: String,
    /// Digests of the tables of the earlier release, by the names of their files.
    pub files: BTreeMap<String, String>,
    /// Whether the publisher compared the new persons with those of the earlier release and found nobody in both. If not, a
    /// person who is in both may be found in the values that two classes have in common.
    pub persons_compared: bool,
    /// Persons in the smallest class that both releases together show.
    pub k: u64,
    /// The worst class of both releases together, per sensitive column of which something is required.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sensitive: BTreeMap<String, AchievedSensitive>,
}

/// What one release for all audiences loses, beside two other ways to serve them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SavingsManifest {
    /// `unchanged` if the table satisfied every audience without generalization, `union` if no row is in a butterfly,
    /// else `butterflies`.
    pub shape: String,
    /// The share of released rows that are in a butterfly, in which audiences see different classes.
    pub in_butterflies: f64,
    /// How well a lower bound predicted which butterflies lower the loss. This, and the loss of the other ways, depend on the
    /// columns of all audiences, so they are absent if only common columns may decide how rows are grouped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<BoundManifest>,
    /// The loss of this release.
    pub release: MethodLoss,
    /// The loss of one release whose classes look the same in the columns of all audiences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub union: Option<MethodLoss>,
    /// The loss of separate releases for each audience. It is mostly the least, but unsafe, because somebody who has
    /// two of the releases may single people out. A column of several audiences counts with the mean of their losses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub separate: Option<MethodLoss>,
    /// No release that satisfies all audiences and coalitions has an uncertainty penalty below this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_penalty: Option<f64>,
    /// How many times more is lost because only common columns decided how rows are grouped. Never written, because it
    /// depends on the columns of all audiences.
    #[serde(skip)]
    pub steer_cost: Option<f64>,
}

/// How many groups of rows became butterflies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BoundManifest {
    /// Groups for which the bound was computed.
    pub asked: u64,
    /// Groups for which a butterfly might lower the loss according to the bound, so that one was built.
    pub let_through: u64,
    /// Groups for which the butterfly did lower the loss.
    pub taken: u64,
}

/// What a way to serve all audiences loses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MethodLoss {
    /// Uncertainty penalty in columns that several audiences may know.
    pub common_penalty: f64,
    /// Uncertainty penalty in columns that only one audience may know.
    pub own_penalty: f64,
    /// Mean loss over all cells, 0 to 1.
    pub lm: f64,
}

impl MethodLoss {
    /// Uncertainty penalty in all columns.
    pub fn penalty(&self) -> f64 {
        self.common_penalty + self.own_penalty
    }
}

/// Information loss; 0 where nothing is lost. Classes are those in all quasi columns, also where there are audiences.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Loss {
    /// Mean over all quasi cells of (leaves - 1) / (all leaves - 1), or of the width over the column's range; 1 for
    /// suppressed cells.
    pub lm: f64,
    /// Normalized certainty penalty, mean over all quasi cells.
    pub ncp: f64,
    /// Discernibility: the sum of squared class sizes, plus the size of the whole table for each suppressed person.
    pub dm: f64,
    /// Mean number of persons per class.
    pub average_class: f64,
    /// Sum over rows and columns of the width of the cell, divided by the column's range. Categories count by their
    /// order.
    pub uncertainty_penalty: f64,
    /// Sum over persons of the size of their class minus the k they need.
    pub k_deviation: f64,
    /// Mean over all quasi cells of the share of the private rows whose value lies in the cell's range or below its node; 0
    /// for a value, 1 for suppressed cells. Absent with many tables, registers and cells of a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<f64>,
    /// Non-uniform entropy: for each quasi column the sum over all rows of log(rows that the cell may stand for / rows that
    /// have the value), divided by the sum if all cells stood for everything; then the mean over columns. Absent as `rank` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entropy: Option<f64>,
    /// The LM of each quasi column.
    pub columns: BTreeMap<String, f64>,
}

/// Risk of re-identification by linking, of the private table and of the release.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Risk {
    /// One over the persons of the smallest class.
    pub highest: BeforeAfter,
    /// Mean over persons of one over the size of their class.
    pub average: BeforeAfter,
}

/// A measure of the private table, if its quasi columns were released as they are, and of the release.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BeforeAfter {
    /// In the private table; absent if an audience could learn from it something that only others know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<f64>,
    /// In the release.
    pub after: f64,
}

/// One released table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TableManifest {
    /// The name of the table in the spec.
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
    /// How the file is read, if it is CSV. Absent in releases of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csv: Option<CsvManifest>,
    /// Released columns by name.
    pub columns: BTreeMap<String, ColumnManifest>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_false(value: &bool) -> bool {
    !value
}
