//! [`Spec`]: the release a user asks for, as read from `release.toml` or given by flags.
//!
//! Reading reports every problem with its place; a `Spec` that exists is consistent in itself. Whether it fits the
//! files it names is found out when they are read.

mod error;
mod keys;
mod parse;
mod schema;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use error::{SpecError, SpecErrorKind, SpecErrors};
pub use schema::json_schema;

use crate::hierarchy::Rule;
use crate::{Audience, Audiences, Coalition, Requirement, Role, Steer, ValueType};

/// What a user asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The smallest class, in persons. There is no default.
    pub k: u32,
    /// Which partitioner runs.
    pub algorithm: Algorithm,
    /// The largest share of persons that may be left out, 0 to 1.
    pub max_suppressed: f64,
    /// What becomes of persons that fit into no class.
    pub leftovers: Leftovers,
    /// The order of released rows.
    pub order: Order,
    /// What becomes of keys.
    pub keys: Keys,
    /// What readers get of hierarchy files.
    pub hierarchies: ReleasedHierarchies,
    /// For partitioners that use chance; never in the release.
    pub seed: u64,
    /// How Mondrian cuts.
    pub mondrian: MondrianSpec,
    /// What Datafly takes together.
    pub datafly: DataflySpec,
    /// What the full-domain search makes least.
    pub full_domain: FullDomainSpec,
    /// Parameters of clustering partitioners.
    pub clustering: ClusteringSpec,
    /// The tables, in the order of the spec.
    pub tables: Vec<TableSpec>,
    /// Audiences by name.
    pub audiences: BTreeMap<String, AudienceSpec>,
    /// Audiences that may put together what they know: all of them first, where that is asked, then by name.
    pub coalitions: Vec<CoalitionSpec>,
    /// Which columns may decide how rows are grouped for audiences.
    pub steer: Steer,
    /// Public registers by name.
    pub registers: BTreeMap<String, RegisterSpec>,
    /// How registers are used.
    pub register: RegisterUse,
    /// Bounds of the microdata's share in a class, with a register.
    pub delta_presence: Option<(f64, f64)>,
    /// Folders of earlier releases of the same people, relative to the spec.
    pub previous: Vec<PathBuf>,
}

/// Which partitioner runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// The least loss within a reasonable wait.
    Auto,
    /// Median cuts.
    Mondrian,
    /// Top-down greedy clustering.
    TopDown,
    /// One level at a time.
    Datafly,
    /// Single-pass clustering.
    Cluster,
    /// One level per column.
    FullDomain,
    /// Trees of rows, paired by subtree.
    Miracle,
    /// Trees of rows, paired by node.
    MiracleX,
}

/// What becomes of persons that fit into no class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftovers {
    /// They join the nearest class.
    Merge,
    /// They are left out, up to the limit.
    Suppress,
}

/// The order of released rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// By their released cells.
    #[default]
    Sorted,
    /// As in the input, which can give people away.
    Input,
}

/// What becomes of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// They are renumbered in the released order.
    Surrogate,
    /// They are kept.
    Keep,
}

/// What readers get of hierarchy files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleasedHierarchies {
    /// Beside the tables, for each label that a cell shows, all values of the file that are below it.
    Shown,
    /// Nothing: readers who have the file elsewhere can still use it.
    Withhold,
}

/// How Mondrian cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MondrianSpec {
    /// Whether rows with the cut's value may go to both sides.
    pub cuts: Cuts,
    /// Which column is cut.
    pub choose: Choose,
}

/// Whether rows with the cut's value may go to both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cuts {
    /// Equal values stay together.
    Strict,
    /// Rows that share the median value are dealt to both sides.
    Relaxed,
}

/// Which column is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choose {
    /// The one whose values are widest, relative to the whole column.
    Widest,
    /// Each in turn.
    RoundRobin,
}

/// What Datafly takes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataflySpec {
    /// So many rows are a block, in the order of their persons; `None` takes the whole table as one.
    pub block: Option<u32>,
}

/// What the full-domain search makes least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FullDomainSpec {
    /// The measure.
    pub objective: Objective,
}

/// What a search makes least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objective {
    /// The share of its leaves or its range that a cell shows, on average.
    Lm,
    /// Discernibility: the squares of class sizes.
    Dm,
}

/// Parameters of clustering partitioners; `None` lets the partitioner choose.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClusteringSpec {
    /// The largest loss at which a row joins a cluster.
    pub threshold: Option<f64>,
    /// How many clusters are kept open.
    pub cluster_limit: Option<u32>,
    /// How children of two trees are paired.
    pub pairing: Option<Pairing>,
}

/// How children of two trees are paired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// Each in turn takes its cheapest partner.
    Greedy,
    /// Least total cost.
    Optimal,
}

/// One table of the spec.
#[derive(Clone, Debug, PartialEq)]
pub struct TableSpec {
    /// Its name.
    pub name: String,
    /// Its file, relative to the spec; `-` is stdin.
    pub file: PathBuf,
    /// How a CSV file is read.
    pub csv: CsvSpec,
    /// The column that names the person.
    pub person: Option<String>,
    /// The table's own key.
    pub key: Option<String>,
    /// The table it hangs off, and the column that says on which row.
    pub parent: Option<ParentSpec>,
    /// What becomes of its rows that hang off nothing.
    pub orphans: Orphans,
    /// What becomes of persons of this table that no row hangs off.
    pub childless: Childless,
    /// Roles by column, in the order of the spec; keys that it does not list come last.
    pub columns: Vec<ColumnSpec>,
}

/// How a CSV file is read; what is absent is found out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CsvSpec {
    /// Between cells.
    pub separator: Option<char>,
    /// Such as `utf-8` or `windows-1252`.
    pub encoding: Option<String>,
    /// `,` where decimals are written `3,14`.
    pub decimal: Option<char>,
    /// Bare cells that mean null; a bare empty cell without it.
    pub null: Option<Vec<String>>,
    /// Whether the first row names the columns; it does unless said otherwise.
    pub header: Option<bool>,
    /// The `strftime` format of dates.
    pub date_format: Option<String>,
}

/// The table another hangs off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentSpec {
    /// The parent's name.
    pub table: String,
    /// The column of the child that holds the parent's key.
    pub foreign_key: String,
}

/// What becomes of rows of a child table that hang off nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Orphans {
    /// They are an error.
    #[default]
    Refuse,
    /// They are left out, with everything that hangs off them.
    Drop,
}

/// What becomes of persons without a row in any child table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Childless {
    /// They are an error.
    #[default]
    Refuse,
    /// They are persons like any other.
    Keep,
}

/// One column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnSpec {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// The table whose key a second foreign key holds.
    pub references: Option<String>,
    /// The type of its values, where the user says so.
    pub value_type: Option<ValueType>,
    /// Where its hierarchy comes from.
    pub hierarchy: Option<HierarchySource>,
    /// What a sensitive column must satisfy, or a quasi column for those it is sensitive to. Never
    /// [`Requirement::K`] or [`Requirement::PersonK`].
    pub requirements: Vec<Requirement>,
    /// The audiences that must not learn this quasi column, by name.
    pub sensitive_to: Vec<String>,
}

/// Where a column's hierarchy comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum HierarchySource {
    /// A file of paths from leaf to root, ARX's format.
    Paths(PathBuf),
    /// A file of (child, parent) edges.
    Edges(PathBuf),
    /// Made by rule from the column's values.
    Rule(Rule),
}

/// A recipient with its own quasi columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AudienceSpec {
    /// Its quasi columns.
    pub quasi: Vec<String>,
    /// Its own k.
    pub k: Option<u32>,
}

/// Audiences that may put together what they know.
#[derive(Clone, Debug, PartialEq)]
pub struct CoalitionSpec {
    /// Its name; none for all audiences together.
    pub name: Option<String>,
    /// The names of its members; empty for all audiences.
    pub audiences: Vec<String>,
    /// Its k, where one is asked.
    pub k: Option<u32>,
    /// Whether each person's own k must hold.
    pub own_k: OwnKOfCoalition,
    /// What it must not learn of sensitive columns, or of quasi columns that no member knows.
    pub requirements: Vec<Requirement>,
}

/// Whether each person's own k must hold for a coalition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OwnKOfCoalition {
    /// It need not.
    #[default]
    Ignored,
    /// It must.
    Kept,
}

/// A public register.
#[derive(Clone, Debug, PartialEq)]
pub struct RegisterSpec {
    /// Its file, relative to the spec.
    pub file: PathBuf,
    /// The column that equals the person column's values; without it rows are joined by their quasi values, one to one.
    pub key: Option<String>,
    /// Names of its columns where they differ, by the table's names.
    pub columns: BTreeMap<String, String>,
    /// The day it describes, as written.
    pub date: Option<String>,
    /// Digest its file must have.
    pub sha256: Option<String>,
    /// Its files when earlier releases were made, relative to the spec.
    pub previous: Vec<PathBuf>,
}

/// How registers are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterUse {
    /// Direct or refinement.
    pub method: RegisterMethod,
    /// Register rows without a quasi value.
    pub missing: RegisterMissing,
    /// Which rows are released.
    pub release: RegisterRows,
    /// Whether private persons whom no register row matches count beside the register's. Means something only where
    /// registers have no key; [`Spec::unmatched`] says what holds.
    pub unmatched: Unmatched,
}

/// Direct or refinement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterMethod {
    /// Refines the classes of the plain release.
    Refine,
    /// Partitions the joined rows.
    Direct,
}

/// What becomes of register rows without a quasi value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterMissing {
    /// They are not used.
    Skip,
    /// They are an error.
    Refuse,
}

/// Which rows are released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterRows {
    /// Rows of microdata and register alike.
    All,
    /// Microdata only, where presence is public.
    Microdata,
}

/// How private persons count whom no register row matches.
///
/// Without a key a register row is found by its values alone. A private person whom no register row matches may
/// therefore be one of the register's persons under other values, so the two may be one person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmatched {
    /// Each of them may be any register person whom no private row matches. A class counts `matched + max(unmatched
    /// private persons, unmatched register persons)`, which is the fewest persons that its rows can be of.
    Doubt,
    /// The publisher says that they are not in the register, so all of them count.
    Count,
}

impl Default for MondrianSpec {
    fn default() -> Self {
        MondrianSpec { cuts: Cuts::Strict, choose: Choose::Widest }
    }
}

impl Default for FullDomainSpec {
    fn default() -> Self {
        FullDomainSpec { objective: Objective::Lm }
    }
}

impl Default for RegisterUse {
    fn default() -> Self {
        RegisterUse {
            method: RegisterMethod::Refine,
            missing: RegisterMissing::Skip,
            release: RegisterRows::All,
            unmatched: Unmatched::Doubt,
        }
    }
}

impl Spec {
    /// A spec of one k and no table yet, everything else at its default.
    pub fn new(k: u32) -> Self {
        Spec {
            k,
            algorithm: Algorithm::Auto,
            max_suppressed: 0.0,
            leftovers: Leftovers::Merge,
            order: Order::Sorted,
            keys: Keys::Surrogate,
            hierarchies: ReleasedHierarchies::Shown,
            seed: 0,
            mondrian: MondrianSpec::default(),
            datafly: DataflySpec::default(),
            full_domain: FullDomainSpec::default(),
            clustering: ClusteringSpec::default(),
            tables: Vec::new(),
            audiences: BTreeMap::new(),
            coalitions: Vec::new(),
            steer: Steer::All,
            registers: BTreeMap::new(),
            register: RegisterUse::default(),
            delta_presence: None,
            previous: Vec::new(),
        }
    }

    /// Whether rows of tables point to each other, so that a person is more than a row: there are several tables, or
    /// one with a reference to itself.
    pub fn links_rows(&self) -> bool {
        self.tables.len() > 1 || self.tables.iter().any(TableSpec::has_references)
    }

    /// What every class of the first table must satisfy: k, each person's own k, and the sensitive columns'.
    pub fn requirements(&self, table: &TableSpec) -> Vec<Requirement> {
        let for_everybody = table.columns.iter().filter(|column| column.sensitive_to.is_empty());
        std::iter::once(Requirement::K(self.k))
            .chain(own_k(table))
            .chain(for_everybody.flat_map(|column| column.requirements.iter().cloned()))
            .collect()
    }

    /// How private persons count whom no register row matches: all of them where registers have a key, because the
    /// key says who is not in the register; otherwise as the spec says.
    pub fn unmatched(&self) -> Unmatched {
        let by_key = self.registers.values().any(|register| register.key.is_some());
        if by_key { Unmatched::Count } else { self.register.unmatched }
    }

    /// The audiences of a table, each with what its classes must satisfy: its own k or else the release's, each
    /// person's own k, the sensitive columns', and those of quasi columns that it must not learn. None where the spec
    /// names no audience.
    pub fn audiences_of(&self, table: &TableSpec) -> Option<Audiences> {
        let each: Vec<Audience> = self
            .audiences
            .iter()
            .map(|(name, audience)| {
                let mut requirements = self.requirements(table);
                requirements[0] = Requirement::K(audience.k.unwrap_or(self.k));
                let hidden = table.columns.iter().filter(|column| column.sensitive_to.contains(name));
                requirements.extend(hidden.flat_map(|column| column.requirements.iter().cloned()));
                Audience { name: name.clone(), quasi: audience.quasi.clone(), requirements }
            })
            .collect();
        let names: Vec<String> = each.iter().map(|audience| audience.name.clone()).collect();
        let coalition = |coalition: &CoalitionSpec| {
            let own_k = match coalition.own_k {
                OwnKOfCoalition::Ignored => Vec::new(),
                OwnKOfCoalition::Kept => own_k(table).collect(),
            };
            let k = coalition.k.map(Requirement::K).into_iter();
            Coalition {
                name: coalition.name.clone(),
                members: if coalition.audiences.is_empty() { names.clone() } else { coalition.audiences.clone() },
                requirements: k.chain(own_k).chain(coalition.requirements.iter().cloned()).collect(),
            }
        };
        let coalitions = self.coalitions.iter().map(coalition).collect();
        (!each.is_empty()).then_some(Audiences { each, coalitions, steer: self.steer })
    }
}

/// Persons' own k, where the table has a column of it.
fn own_k(table: &TableSpec) -> impl Iterator<Item = Requirement> {
    let columns = table.columns.iter().filter(|column| column.role == Role::PersonK);
    columns.map(|column| Requirement::PersonK { column: column.name.clone() })
}

impl TableSpec {
    /// Whether a column holds another table's key, besides the one that leads to the parent.
    pub fn has_references(&self) -> bool {
        self.columns.iter().any(|column| column.references.is_some())
    }
}

impl RegisterMethod {
    /// The word a spec uses.
    pub fn word(self) -> &'static str {
        match self {
            RegisterMethod::Refine => "refine",
            RegisterMethod::Direct => "direct",
        }
    }
}

impl RegisterRows {
    /// The word a spec uses.
    pub fn word(self) -> &'static str {
        match self {
            RegisterRows::All => "all",
            RegisterRows::Microdata => "microdata",
        }
    }

    /// What is released under this word.
    pub fn from_word(word: &str) -> Option<Self> {
        [RegisterRows::All, RegisterRows::Microdata].into_iter().find(|rows| rows.word() == word)
    }
}

impl Unmatched {
    /// The word a spec and a manifest use.
    pub fn word(self) -> &'static str {
        match self {
            Unmatched::Doubt => "doubt",
            Unmatched::Count => "count",
        }
    }

    /// What a word says.
    pub fn from_word(word: &str) -> Option<Self> {
        [Unmatched::Doubt, Unmatched::Count].into_iter().find(|unmatched| unmatched.word() == word)
    }
}

impl Algorithm {
    /// Every algorithm.
    pub const ALL: [Algorithm; 8] = [
        Algorithm::Auto,
        Algorithm::Mondrian,
        Algorithm::TopDown,
        Algorithm::Datafly,
        Algorithm::Cluster,
        Algorithm::FullDomain,
        Algorithm::Miracle,
        Algorithm::MiracleX,
    ];

    /// The word a spec uses.
    pub fn word(self) -> &'static str {
        match self {
            Algorithm::Auto => "auto",
            Algorithm::Mondrian => "mondrian",
            Algorithm::TopDown => "top-down",
            Algorithm::Datafly => "datafly",
            Algorithm::Cluster => "cluster",
            Algorithm::FullDomain => "full-domain",
            Algorithm::Miracle => "miracle",
            Algorithm::MiracleX => "miraclex",
        }
    }

    /// The algorithm with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Algorithm::ALL.into_iter().find(|algorithm| algorithm.word() == word)
    }
}
