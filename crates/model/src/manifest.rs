//! [`Manifest`]: what `manifest.json` of a release says. Holds no value of the data, no seed, no digest of private input.

mod cells;
mod links;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use cells::{ColumnManifest, CsvManifest, LabelsManifest};
pub use links::{LinkManifest, LinkMeaning, ReferenceManifest};

use crate::spec::Order;
use crate::{NoteManifest, Presence};

/// The whole manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of kohort that wrote the release.
    pub kohort: String,
    /// The partitioner that ran.
    pub algorithm: String,
    /// The order of the released rows. A manifest that does not say is of sorted rows, because the rows of two sorted
    /// releases must never be taken for the same persons.
    #[serde(default)]
    pub order: Order,
    /// What was asked.
    pub requirement: RequirementManifest,
    /// What the verifier counted.
    pub achieved: Achieved,
    /// Persons in, out and suppressed.
    pub persons: Persons,
    /// Classes of persons that look the same in all quasi columns, whoever may know them.
    pub classes: u64,
    /// What recoding cost.
    pub loss: Loss,
    /// Re-identification risk.
    pub risk: Risk,
    /// One entry per released table.
    pub tables: Vec<TableManifest>,
    /// Who receives the release and what each may know, by name; empty where nobody is told apart.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub audiences: BTreeMap<String, AudienceManifest>,
    /// What one release for all audiences loses, beside the two other ways to serve them; only with audiences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub savings: Option<SavingsManifest>,
    /// The public registers that made the crowd larger, by name; empty where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub registers: Vec<RegisterManifest>,
    /// What became of them; only with registers. Classes then are of everybody, and persons those of the private table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub register: Option<JoinManifest>,
    /// Earlier releases it was made to be read beside; only where the spec names some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<PreviousManifest>,
    /// What was done otherwise than the spec would have a reader expect; empty where nothing was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<NoteManifest>,
    /// Blatant risks that were found and that the publisher accepted; empty where none was found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted_risks: Vec<NoteManifest>,
    /// Always true: a release that was not verified is not written.
    pub verified: bool,
    /// How the released tables join; empty for one table. Of many tables sensitive columns are named `table.column`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkManifest>,
    /// What became of references; empty where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<ReferenceManifest>,
    /// What recoding cost in each table, by name; empty for one table.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub table_loss: BTreeMap<String, Loss>,
}

/// What was asked, as in the spec.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequirementManifest {
    /// The smallest class.
    pub k: u32,
    /// Whether persons' own k was honoured.
    #[serde(default, skip_serializing_if = "is_false")]
    pub person_k: bool,
    /// The smallest class on the union of all audiences' columns, where that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collusion_k: Option<u32>,
    /// What was asked of audiences that put together what they know, by name; all together are called `all`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub coalitions: BTreeMap<String, CoalitionManifest>,
    /// Which columns were allowed to decide how rows are grouped, in the spec's words, where these are not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steer: Option<String>,
    /// The least and the largest share of private persons in a class, where that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta_presence: Option<(f64, f64)>,
    /// The largest share of persons that may be left out.
    pub max_suppressed: f64,
    /// Per sensitive column its requirements by their names in the spec.
    pub sensitive: Settings,
}

/// Per column its requirements by their names in the spec.
pub type Settings = BTreeMap<String, BTreeMap<String, Setting>>;

/// What was asked of audiences that put together what they know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoalitionManifest {
    /// The names of its members.
    pub audiences: Vec<String>,
    /// The smallest class among the columns of all members, where that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k: Option<u32>,
    /// Whether persons' own k was honoured.
    #[serde(default, skip_serializing_if = "is_false")]
    pub person_k: bool,
    /// Per sensitive column, or quasi column that no member knows, what was asked.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sensitive: Settings,
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
    /// Persons in the smallest class; with audiences in the smallest that any of them can make out by itself.
    pub k: u64,
    /// Persons in the smallest class of each audience, by its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub audiences: BTreeMap<String, u64>,
    /// Persons in the smallest class that all audiences together can make out; with audiences, asked or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collusion_k: Option<u64>,
    /// What audiences that put together what they know see, by name; all together are called `all`, asked or not.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub coalitions: BTreeMap<String, AchievedCoalition>,
    /// Per audience what the release tells it about quasi columns that only others know.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub learned: BTreeMap<String, BTreeMap<String, AchievedLearned>>,
    /// Per sensitive column; with audiences the worst of theirs, measure by measure.
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

/// What audiences that put together what they know see.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AchievedCoalition {
    /// Persons in the smallest class.
    pub k: u64,
    /// Per sensitive column.
    pub sensitive: BTreeMap<String, AchievedSensitive>,
    /// Per quasi column that no member knows.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub learned: BTreeMap<String, AchievedLearned>,
}

/// What a quasi column tells those who do not know it, over all their classes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AchievedLearned {
    /// Fewest pairwise disjoint labels in a class whose cells tell something; absent where no cell does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l: Option<u64>,
    /// Largest distance of a class's labels to the release's.
    pub t: f64,
    /// Persons in a class whose cells all show one label that tells something.
    pub certain: u64,
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

/// One recipient of the release.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AudienceManifest {
    /// The smallest class among its columns that was asked: its own k, or else the release's.
    pub k: u32,
    /// The quasi columns it may know.
    pub quasi: Vec<String>,
    /// Per quasi column that it must not learn what was asked.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sensitive: Settings,
}

/// One public register.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisterManifest {
    /// Its name in the spec.
    pub name: String,
    /// The day it describes, where the spec says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// Digest of its file.
    pub sha256: String,
    /// Its rows.
    pub rows: u64,
    /// Rows that lack a quasi value or a key, and count for nobody.
    pub rows_incomplete: u64,
    /// Its persons in the classes of the release, but for those of the private table and of registers before it.
    pub rows_used: u64,
}

/// What became of the registers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JoinManifest {
    /// How classes were found, in the spec's words; where presence is public, refine where direct would have lost more.
    pub method: String,
    /// The partitioners that made the classes: `auto` leaves many rows to Mondrian, or has it cut them into pieces.
    #[serde(default)]
    pub partitioners: Vec<String>,
    /// Whose rows are released, in the spec's words.
    pub release: String,
    /// How persons were found in private table and registers: by `key`, or by `values`, which tells nobody for sure.
    pub joined_by: String,
    /// Persons of the private table whom a register row matches: by key, with the same values or others; without a key
    /// by equal values.
    #[serde(default)]
    pub found: u64,
    /// How private persons count whom no register row matches, in the spec's words; only where `joined_by` is `values`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmatched: Option<String>,
    /// Persons of whom registers contradict each other, or themselves; their register rows are not used.
    pub contradicting: u64,
    /// Sensitive groups; 0 where there is no sensitive table.
    pub sensitive_groups: u64,
    /// Private persons in the smallest of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_k: Option<u64>,
    /// How sure a reader who has the registers can be that somebody is in the private table.
    pub presence: Presence,
}

/// What readers of this release and of earlier ones learn together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviousManifest {
    /// Digests of the earlier releases' manifests.
    pub manifests: Vec<String>,
    /// The fewest persons among whom a reader of all releases finds somebody: those whom a class of this release holds,
    /// by the registers of now, and classes of earlier releases hold, by the registers of their time, and the person.
    pub k: u64,
    /// Per sensitive column the fewest distinct values that groups somebody can be in have in common.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub l: BTreeMap<String, u64>,
}

/// What one release for all audiences loses, beside two other ways to serve them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavingsManifest {
    /// `unchanged`, where the table satisfied every audience as it was; `union`, where no row is in a butterfly;
    /// `butterflies`.
    pub shape: String,
    /// Share of the released rows that are in a butterfly, in which audiences see different classes.
    pub in_butterflies: f64,
    /// How well a lower bound foretold which butterflies pay. This and what other ways lose depend on the columns of
    /// all audiences, so they are absent where common columns alone may steer the groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<BoundManifest>,
    /// What this release loses.
    pub release: MethodLoss,
    /// What one release loses whose classes look the same in the columns of all audiences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub union: Option<MethodLoss>,
    /// What a release of its own for each audience loses. Mostly less than any other way, and unsafe: whoever holds two
    /// of them may single people out. A column of several audiences counts with their mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub separate: Option<MethodLoss>,
    /// How many times as much is lost because common columns alone steered the groups; never written, because it
    /// depends on the columns of all audiences.
    #[serde(skip)]
    pub steer_cost: Option<f64>,
}

/// How many groups of rows became butterflies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundManifest {
    /// Groups of which the bound was asked whether a butterfly may pay.
    pub asked: u64,
    /// Of these, where it may, so that one was built.
    pub let_through: u64,
    /// Of those, where it did pay.
    pub taken: u64,
}

/// What a way to serve all audiences loses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MethodLoss {
    /// Uncertainty penalty in columns that several audiences may know.
    pub common_penalty: f64,
    /// Uncertainty penalty in columns that only one may know.
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
    /// In the private table; absent where an audience could learn from it what only others know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<f64>,
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
    /// How the file is read, where it is CSV. Releases of earlier versions don't say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csv: Option<CsvManifest>,
    /// Released columns by name.
    pub columns: BTreeMap<String, ColumnManifest>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_false(value: &bool) -> bool {
    !value
}
