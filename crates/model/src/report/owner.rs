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
    /// Sums and means of numbers that are released as they are.
    pub sums: Vec<SumsReport>,
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
