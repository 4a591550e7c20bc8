//! [`Spec`]: the release a user asks for, read from `release.toml` or given by flags.
//!
//! The parser reports every fault with its place, so every `Spec` is consistent in itself. Whether it fits the files
//! that it names is checked when they are read.

mod error;
mod keys;
mod parse;
mod schema;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use error::{SpecError, SpecErrorKind, SpecErrors};
pub use schema::json_schema;

use crate::hierarchy::Rule;
use crate::{Audience, Audiences, Coalition, Requirement, Role, Steer, Transform, ValueType};

/// The release a user asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The least number of persons in a class. There is no default.
    pub k: u32,
    /// The partitioner that runs.
    pub algorithm: Algorithm,
    /// The loss that partitioners minimize.
    pub objective: LossObjective,
    /// How much work `auto` spends on classes of less loss: up to this many rounds of the last, longest step.
    pub effort: u32,
    /// The largest share of persons that may be left out, 0 to 1.
    pub max_suppressed: f64,
    /// What happens to persons who fit into no class.
    pub leftovers: Leftovers,
    /// The order of released rows.
    pub order: Order,
    /// What happens to keys.
    pub keys: Keys,
    /// The part of hierarchy files that readers get.
    pub hierarchies: ReleasedHierarchies,
    /// The seed for partitioners that use random numbers; never released.
    pub seed: u64,
    /// Parameters of Mondrian.
    pub mondrian: MondrianSpec,
    /// Parameters of Datafly.
    pub datafly: DataflySpec,
    /// Parameters of the full-domain search.
    pub full_domain: FullDomainSpec,
    /// Parameters of clustering partitioners.
    pub clustering: ClusteringSpec,
    /// The tables, in the order of the spec.
    pub tables: Vec<TableSpec>,
    /// Audiences by name.
    pub audiences: BTreeMap<String, AudienceSpec>,
    /// Audiences that may combine what they know: all of them first, if the spec has requirements for that, then by
    /// name.
    pub coalitions: Vec<CoalitionSpec>,
    /// Which columns may decide how rows are grouped for audiences.
    pub steer: Steer,
    /// Public registers by name.
    pub registers: BTreeMap<String, RegisterSpec>,
    /// How registers are used.
    pub register: RegisterUse,
    /// The least and the largest share of private persons in a class, with a register.
    pub delta_presence: Option<(f64, f64)>,
    /// Folders of earlier releases of the same people, relative to the spec.
    pub previous: Vec<PathBuf>,
}

/// The partitioner that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Tries several methods, and takes the one with the least loss.
    Auto,
    /// Median cuts.
    Mondrian,
    /// Top-down greedy clustering.
    TopDown,
    /// Generalizes one column by one level at a time.
    Datafly,
    /// Single-pass clustering.
    Cluster,
    /// Searches for one level per column.
    FullDomain,
    /// Trees of rows, paired by subtree.
    Miracle,
    /// Trees of rows, paired by node.
    MiracleX,
}

/// The loss that partitioners minimize.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LossObjective {
    /// LM: the share of its column's leaves, or of its column's range, that a cell covers.
    #[default]
    Lm,
    /// The share of the table's rows whose value lies in the cell's range or below its node.
    Rank,
    /// Non-uniform entropy: how little a cell tells about the value that it stands for.
    Entropy,
    /// The information on this column that is lost by generalizing the quasi columns.
    Target(String),
}

/// What happens to persons who fit into no class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftovers {
    /// Persons who fit into no class join the nearest one.
    Merge,
    /// Persons who fit into no class are left out, up to the limit.
    Suppress,
}

/// The order of released rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Rows are sorted by their released cells.
    #[default]
    Sorted,
    /// Rows keep the order of the input, which can give people away.
    Input,
}

/// What happens to keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// Keys are renumbered in the released order.
    Surrogate,
    /// Keys are kept.
    Keep,
}

/// The part of hierarchy files that readers get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleasedHierarchies {
    /// For each label that a cell shows, all values below it.
    Shown,
    /// Nothing. Readers who have the file from elsewhere can still use it.
    Withhold,
}

/// Parameters of Mondrian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MondrianSpec {
    /// Whether rows with the median value may go to both sides of a cut.
    pub cuts: Cuts,
    /// The column that is cut.
    pub choose: Choose,
}

/// Whether rows with the median value may go to both sides of a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cuts {
    /// Equal values stay together.
    Strict,
    /// Rows that share the median value are dealt to both sides.
    Relaxed,
}

/// The column that Mondrian cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choose {
    /// The column whose values are widest, relative to the whole column.
    Widest,
    /// Each column in turn.
    RoundRobin,
}

/// Parameters of Datafly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataflySpec {
    /// The number of rows of a block, in the order of their persons; `None` takes the whole table as one block.
    pub block: Option<u32>,
}

/// Parameters of the full-domain search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FullDomainSpec {
    /// The measure that is minimized.
    pub objective: Objective,
}

/// The measure that a search minimizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objective {
    /// LM: the mean share of its column's leaves, or of its column's range, that a cell covers.
    Lm,
    /// Discernibility: the squares of class sizes.
    Dm,
}

/// Parameters of clustering partitioners; `None` lets the partitioner choose.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClusteringSpec {
    /// The largest loss at which a row joins a cluster.
    pub threshold: Option<f64>,
    /// The largest number of open clusters.
    pub cluster_limit: Option<u32>,
    /// How children of two trees are paired.
    pub pairing: Option<Pairing>,
}

/// How children of two trees are paired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// Each child in turn takes its cheapest partner.
    Greedy,
    /// The total cost is minimized.
    Optimal,
}

/// The largest share of a child table's rows that a release leaves out without a warning, if the spec sets no limit.
pub const MAX_ROWS_LEFT_OUT: f64 = 0.05;

/// One table of the spec.
#[derive(Clone, Debug, PartialEq)]
pub struct TableSpec {
    /// The name of the table.
    pub name: String,
    /// The file, relative to the spec; `-` is stdin.
    pub file: PathBuf,
    /// How a CSV file is read.
    pub csv: CsvSpec,
    /// The column that names the person.
    pub person: Option<String>,
    /// The table's own key.
    pub key: Option<String>,
    /// The parent table, and the column that names a row of it.
    pub parent: Option<ParentSpec>,
    /// What happens to rows without a parent row.
    pub orphans: Orphans,
    /// What happens to persons of this table without a row in any child table.
    pub childless: Childless,
    /// The largest share of this child table's rows that may be left out.
    pub max_rows_left_out: Option<f64>,
    /// The columns, in the order of the spec; keys that the spec does not list as columns come last.
    pub columns: Vec<ColumnSpec>,
}

/// How a CSV file is read. Absent settings are detected, unless a field says otherwise.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CsvSpec {
    /// The character between cells.
    pub separator: Option<char>,
    /// The encoding, such as `utf-8` or `windows-1252`.
    pub encoding: Option<String>,
    /// The decimal sign: `,` if decimals are written `3,14`.
    pub decimal: Option<char>,
    /// Unquoted cells that mean null. If absent, an unquoted empty cell does.
    pub null: Option<Vec<String>>,
    /// Whether the first row names the columns. If absent, it does.
    pub header: Option<bool>,
    /// The `strftime` format of dates.
    pub date_format: Option<String>,
}

/// The parent of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentSpec {
    /// The name of the parent table.
    pub table: String,
    /// The column of the child that holds the parent's key.
    pub foreign_key: String,
}

/// What happens to rows of a child table without a parent row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Orphans {
    /// Rows without a parent row are an error.
    #[default]
    Refuse,
    /// Rows without a parent row are left out, with all rows below them.
    Drop,
}

/// What happens to persons without a row in any child table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Childless {
    /// Persons without children are an error.
    #[default]
    Refuse,
    /// Persons without children are persons like any other.
    Keep,
}

/// One column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnSpec {
    /// The name of the column.
    pub name: String,
    /// What the column is for.
    pub role: Role,
    /// The table that the column references, if it is a second foreign key.
    pub references: Option<String>,
    /// The type of the values, if the user says so.
    pub value_type: Option<ValueType>,
    /// Where the hierarchy comes from.
    pub hierarchy: Option<HierarchySource>,
    /// What is done to the cells before classes are made.
    pub transform: Transform,
    /// The requirements on a sensitive column, or on a quasi column for the audiences it is sensitive to. Never
    /// [`Requirement::K`] or [`Requirement::PersonK`].
    pub requirements: Vec<Requirement>,
    /// The names of the audiences that must not learn this quasi column.
    pub sensitive_to: Vec<String>,
    /// How much the loss of this quasi column counts, compared with others; usually 1.
    pub weight: f64,
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
    /// The quasi columns that the audience may know.
    pub quasi: Vec<String>,
    /// The k of the audience, if it differs from that of the spec.
    pub k: Option<u32>,
}

/// Audiences that may combine what they know.
#[derive(Clone, Debug, PartialEq)]
pub struct CoalitionSpec {
    /// The name; `None` for all audiences together.
    pub name: Option<String>,
    /// The names of the members; empty for all audiences.
    pub audiences: Vec<String>,
    /// The k of the coalition, if it has one.
    pub k: Option<u32>,
    /// Whether each person's own k must hold.
    pub own_k: OwnKOfCoalition,
    /// Requirements on sensitive columns, or on quasi columns that no member knows.
    pub requirements: Vec<Requirement>,
}

/// Whether each person's own k must hold for a coalition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OwnKOfCoalition {
    /// Own k need not hold.
    #[default]
    Ignored,
    /// Own k must hold.
    Kept,
}

/// A public register.
#[derive(Clone, Debug, PartialEq)]
pub struct RegisterSpec {
    /// The file, relative to the spec.
    pub file: PathBuf,
    /// The column with the values of the person column. Without it, rows are joined by their quasi values, one to one.
    pub key: Option<String>,
    /// For each column whose name differs: the name in the table, and the name in the register.
    pub columns: BTreeMap<String, String>,
    /// The day that the register describes, as written.
    pub date: Option<String>,
    /// The digest that the file must have.
    pub sha256: Option<String>,
    /// The files of this register at the times of earlier releases, relative to the spec.
    pub previous: Vec<PathBuf>,
}

/// How registers are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterUse {
    /// How classes are found.
    pub method: RegisterMethod,
    /// What happens to register rows that lack a quasi value.
    pub missing: RegisterMissing,
    /// Which rows are released.
    pub release: RegisterRows,
    /// How private persons count whom no register row matches. This setting applies only if registers have no key;
    /// [`Spec::unmatched`] takes that into account.
    pub unmatched: Unmatched,
}

/// How classes are found with a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterMethod {
    /// By both methods; the result that loses less is taken.
    Auto,
    /// By refining the classes of the release without a register.
    Refine,
    /// By partitioning the rows of the join.
    Direct,
}

/// What happens to register rows that lack a quasi value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterMissing {
    /// Incomplete rows are not used.
    Skip,
    /// Incomplete rows are an error.
    Refuse,
}

/// Which rows are released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterRows {
    /// Rows of the private table and of the register.
    All,
    /// Rows of the private table only, because presence in it is public.
    Microdata,
}

/// How private persons count whom no register row matches.
///
/// Without a key, persons are matched by their values alone. A private person whom no register row matches may
/// therefore be a register person under other values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmatched {
    /// Each such person may be any register person whom no private row matches. So a class counts `matched +
    /// max(unmatched private persons, unmatched register persons)`, the fewest persons to whom its rows can belong.
    Doubt,
    /// The publisher vouches that these persons are not in the register, so all of them count.
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
    /// A spec with a k, no table yet, and defaults for everything else.
    pub fn new(k: u32) -> Self {
        Spec {
            k,
            algorithm: Algorithm::Auto,
            objective: LossObjective::Lm,
            effort: 1,
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

    /// The quasi columns whose loss counts more or less than that of others, with their weights, by table.
    pub fn weights(&self) -> impl Iterator<Item = (&TableSpec, &ColumnSpec)> {
        let columns = self.tables.iter().flat_map(|table| table.columns.iter().map(move |column| (table, column)));
        columns.filter(|(_, column)| column.weight != 1.0)
    }

    /// Whether partitioners minimize anything but LM.
    pub fn has_objective(&self) -> bool {
        self.objective != LossObjective::Lm || self.weights().next().is_some()
    }

    /// The columns whose cells are changed before classes are made.
    pub fn transformed(&self) -> impl Iterator<Item = &ColumnSpec> {
        self.tables.iter().flat_map(|table| &table.columns).filter(|column| !column.transform.is_nothing())
    }

    /// The largest k that is asked for, by anybody.
    pub fn largest_k(&self) -> u32 {
        let of_audiences = self.audiences.values().filter_map(|audience| audience.k);
        let of_coalitions = self.coalitions.iter().filter_map(|coalition| coalition.k);
        of_audiences.chain(of_coalitions).fold(self.k, u32::max)
    }

    /// Whether rows point to each other, so that a person can have more than one row: there are several tables, or one
    /// table with a reference to itself.
    pub fn links_rows(&self) -> bool {
        self.tables.len() > 1 || self.tables.iter().any(TableSpec::has_references)
    }

    /// What every class of a table must satisfy: k, each person's own k, and the requirements of sensitive columns.
    pub fn requirements(&self, table: &TableSpec) -> Vec<Requirement> {
        let for_everybody = table.columns.iter().filter(|column| column.sensitive_to.is_empty());
        std::iter::once(Requirement::K(self.k))
            .chain(own_k(table))
            .chain(for_everybody.flat_map(|column| column.requirements.iter().cloned()))
            .collect()
    }

    /// How private persons count whom no register row matches. If registers have a key, all of them count, because the
    /// key says who is not in the register. Otherwise the spec decides.
    pub fn unmatched(&self) -> Unmatched {
        let by_key = self.registers.values().any(|register| register.key.is_some());
        if by_key { Unmatched::Count } else { self.register.unmatched }
    }

    /// The audiences of a table, each with its requirements: its own k or else that of the spec, each person's own k,
    /// the requirements of sensitive columns, and those of quasi columns that it must not learn. `None` if the spec
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

/// The requirement on persons' own k, if the table has a column of it.
fn own_k(table: &TableSpec) -> impl Iterator<Item = Requirement> {
    let columns = table.columns.iter().filter(|column| column.role == Role::PersonK);
    columns.map(|column| Requirement::PersonK { column: column.name.clone() })
}

impl TableSpec {
    /// Whether a column holds a second foreign key.
    pub fn has_references(&self) -> bool {
        self.columns.iter().any(|column| column.references.is_some())
    }

    /// Whether a column is released as pseudonyms.
    pub fn has_pseudonyms(&self) -> bool {
        self.columns.iter().any(|column| column.transform.pseudonym_key.is_some())
    }
}

impl LossObjective {
    /// The word that begins an objective with a target.
    const TARGET: &'static str = "target:";

    /// How a spec and a manifest write it.
    pub fn word(&self) -> Cow<'static, str> {
        match self {
            LossObjective::Lm => Cow::Borrowed("lm"),
            LossObjective::Rank => Cow::Borrowed("rank"),
            LossObjective::Entropy => Cow::Borrowed("entropy"),
            LossObjective::Target(column) => Cow::Owned(format!("{}{column}", Self::TARGET)),
        }
    }

    /// The objective that is written like this.
    pub fn from_word(word: &str) -> Option<Self> {
        match (word, word.strip_prefix(Self::TARGET)) {
            ("lm", _) => Some(LossObjective::Lm),
            ("rank", _) => Some(LossObjective::Rank),
            ("entropy", _) => Some(LossObjective::Entropy),
            (_, Some(column)) if !column.is_empty() => Some(LossObjective::Target(column.to_owned())),
            _ => None,
        }
    }
}

impl RegisterMethod {
    /// The word a spec uses.
    pub fn word(self) -> &'static str {
        match self {
            RegisterMethod::Auto => "auto",
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

    /// The setting with this word.
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

    /// The setting with this word.
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
