//! [`OwnerReport`]: figures of a release that need its private tables. They are for the owner of the tables alone, and must never
//! be given away with the release.

use serde::{Deserialize, Serialize};

use super::AboveReport;

/// What the owner of the private tables can know about a release, besides its report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OwnerReport {
    /// The version of kohort that made the report.
    pub kohort: String,
    /// Says that the report is not for readers of the release.
    pub warning: String,
    /// So many persons share each bin of a marginal.
    pub k: u64,
    /// Persons whose risk is above a threshold, before and after.
    pub above: Vec<AboveBeforeAfter>,
    /// Persons who are alone in a class, before and after.
    pub unique: (u64, u64),
    /// The quasi columns of the table of persons.
    pub marginals: Vec<MarginalReport>,
    /// How far counts of two columns at once are off.
    pub pairs: PairCounts,
    /// How strongly pairs of columns of the table of persons go together, before and after. Empty with a register.
    pub associations: Vec<AssociationReport>,
    /// Sums and means of numbers that are released as they are.
    pub sums: Vec<SumsReport>,
    /// The risk in the population that the private table is a sample of, if the owner said how large it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub population: Option<PopulationBeforeAfter>,
    /// How well a column can be predicted from such a release, if the owner asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<TargetReport>,
    /// What each column and each requirement costs, if the owner asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub costs: Option<CostsReport>,
}

/// Persons above a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AboveBeforeAfter {
    /// In the private table, if its quasi columns were released as they are.
    pub before: AboveReport,
    /// In the release.
    pub after: AboveReport,
}

/// How often the values of a column occur.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MarginalReport {
    /// The name of the column.
    pub column: String,
    /// Disjoint bins of the private values. At least k persons hold a value of each.
    pub bins: Vec<BinReport>,
    /// Half of the sum of the differences of shares: 0 if both are the same, 1 if nothing is. Absent if readers can't estimate the
    /// column.
    pub distance: Option<f64>,
}

/// Some values of a column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BinReport {
    /// The values.
    pub label: String,
    /// Private rows.
    pub before: u64,
    /// The released rows that a reader expects, by `kohort estimate`; absent if readers can't estimate the column.
    pub after: Option<f64>,
}

/// How far estimated counts of pairs of bins are from the counts in the private table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PairCounts {
    /// The number of pairs of bins that were counted. Each has at least k rows in the private table.
    pub n: u64,
    /// The median of the relative errors; absent without pairs.
    pub median_error: Option<f64>,
    /// The largest relative error.
    pub largest_error: Option<f64>,
}

/// The sum and the mean of a column before and after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SumsReport {
    /// The table.
    pub table: String,
    /// The column.
    pub column: String,
    /// In the private table.
    pub before: SumReport,
    /// In the release.
    pub after: SumReport,
}

/// The sum and the mean of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SumReport {
    /// Cells that hold a number.
    pub n: u64,
    /// Their sum.
    pub sum: f64,
    /// Their mean; absent without cells.
    pub mean: Option<f64>,
}

/// How strongly two columns go together, before and after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AssociationReport {
    /// The names of the columns.
    pub columns: (String, String),
    /// How it is measured.
    pub measure: AssociationMeasure,
    /// In the private table; absent if one of the columns is constant.
    pub before: Option<f64>,
    /// As readers expect it; absent if they can't estimate a column, or expect it to be constant.
    pub after: Option<f64>,
}

/// How the association of two columns is measured. Values are counted in bins of at least k persons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AssociationMeasure {
    /// The correlation of the ranks of two columns of numbers, dates or times: -1 to 1.
    RankCorrelation,
    /// Cramér's V: 0 to 1.
    CramersV,
}

/// The risk in a population, before and after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PopulationBeforeAfter {
    /// Persons of the population.
    pub persons: u64,
    /// The share of them that is in the private table.
    pub share: f64,
    /// With the private table, if its quasi columns were released as they are.
    pub before: PopulationReport,
    /// With the release. Absent with a register, which counts the population instead of estimating it.
    pub after: Option<PopulationReport>,
}

/// The risk in a population, by models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PopulationReport {
    /// Persons who are alone in a class of the table.
    pub alone_in_table: u64,
    /// By each model, persons who are alone in the population.
    pub alone: Vec<ModelledPersons>,
    /// The chance of a journalist for the persons who are easiest to find, by the Poisson model.
    pub highest_risk: f64,
    /// The mean of these chances over the persons of the table.
    pub average_risk: f64,
}

/// A number of persons, by a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelledPersons {
    /// The model: `poisson`, `zayatz`, `snb` or `pitman`.
    pub model: String,
    /// The number.
    pub persons: f64,
}

/// How well a column is predicted by naive Bayes from all other quasi and plain columns, counted in bins of at least k persons. The
/// classifier is trained on two thirds of the persons and tested on the private rows of the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetReport {
    /// The name of the column that is predicted.
    pub column: String,
    /// The columns that it is predicted from.
    pub from: Vec<String>,
    /// The number of different answers.
    pub answers: u64,
    /// Rows of the persons who trained.
    pub trained: u64,
    /// Rows of the persons who tested.
    pub tested: u64,
    /// The share of right answers if the answer is always the most frequent one.
    pub most_frequent: f64,
    /// The share of right answers if the private rows train.
    pub before: f64,
    /// The share of right answers if a release of these rows by the same spec trains; absent if there is none.
    pub after: Option<f64>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without: Option<String>,
}

/// What each column and each requirement costs: releases of the same tables by specs that leave one of them out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CostsReport {
    /// The release with everything that was asked.
    pub all: CostFigures,
    /// The release if one quasi column is plain.
    pub columns: Vec<CostReport>,
    /// The release without one requirement.
    pub requirements: Vec<CostReport>,
}

/// What is different without a column or a requirement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CostReport {
    /// The column or the requirement, in words.
    pub without: String,
    /// The figures of a verified release without it; absent if there is none.
    pub figures: Option<CostFigures>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreachable: Option<String>,
    /// By how much the loss in the other quasi columns shrinks, in LM.
    pub saved: Option<f64>,
}

/// The figures of a release.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CostFigures {
    /// Persons in the smallest class.
    pub k: u64,
    /// Classes.
    pub classes: u64,
    /// Persons left out.
    pub suppressed: u64,
    /// LM over all quasi columns.
    pub loss: f64,
}
