//! [`associations`]: how strongly pairs of columns go together in the private table, and in the eyes of a reader of the release.
//!
//! Values are counted in bins of at least k persons. Two columns that have an order are compared by the correlation of the ranks of
//! their bins (Spearman's, with equal ranks within a bin), all others by Cramér's V. What a reader expects is spread evenly over
//! the values of a label, so associations within labels are lost, and `after` is smaller where labels are wide.

use kohort_model::report::{AssociationMeasure, AssociationReport};
use rayon::prelude::*;

use super::spread::Spread;

/// A column before and after.
pub(super) struct BeforeAfterSpread {
    pub(super) name: String,
    pub(super) is_ordered: bool,
    pub(super) before: Spread,
    pub(super) after: Option<Spread>,
}

/// The associations of all pairs of columns.
pub(super) fn associations(columns: &[BeforeAfterSpread]) -> Vec<AssociationReport> {
    let with_bins: Vec<&BeforeAfterSpread> = columns.iter().filter(|column| column.before.n_bins() > 1).collect();
    let pairs: Vec<(&BeforeAfterSpread, &BeforeAfterSpread)> = with_bins
        .iter()
        .enumerate()
        .flat_map(|(position, one)| with_bins[position + 1..].iter().map(move |other| (*one, *other)))
        .collect();
    let of_pair = |(one, other): &(&BeforeAfterSpread, &BeforeAfterSpread)| {
        let measure = match one.is_ordered && other.is_ordered {
            true => AssociationMeasure::RankCorrelation,
            false => AssociationMeasure::CramersV,
        };
        let of = |counts: &[Vec<f64>]| match measure {
            AssociationMeasure::RankCorrelation => rank_correlation(counts),
            AssociationMeasure::CramersV => cramers_v(counts),
        };
        let after = one.after.as_ref().zip(other.after.as_ref());
        AssociationReport {
            columns: (one.name.clone(), other.name.clone()),
            measure,
            before: of(&one.before.joint(&other.before)),
            after: after.and_then(|(one, other)| of(&one.joint(other))),
        }
    };
    pairs.par_iter().map(of_pair).collect()
}

/// The sums of the rows and of the columns of a table, and of all of it.
fn margins(counts: &[Vec<f64>]) -> (Vec<f64>, Vec<f64>, f64) {
    let rows: Vec<f64> = counts.iter().map(|row| row.iter().sum()).collect();
    let n_columns = counts.first().map_or(0, Vec::len);
    let columns: Vec<f64> = (0..n_columns).map(|column| counts.iter().map(|row| row[column]).sum()).collect();
    let total = rows.iter().sum();
    (rows, columns, total)
}

/// Cramér's V; `None` if one of the columns has less than two bins that occur.
fn cramers_v(counts: &[Vec<f64>]) -> Option<f64> {
    let (rows, columns, total) = margins(counts);
    let occurring = |sums: &[f64]| sums.iter().filter(|sum| **sum > 0.0).count();
    let freedom = occurring(&rows).min(occurring(&columns)).checked_sub(1).filter(|freedom| *freedom > 0)?;
    let mut chi_squared = 0.0;
    for (row, of_row) in counts.iter().zip(&rows) {
        for (count, of_column) in row.iter().zip(&columns) {
            let expected = of_row * of_column / total;
            if expected > 0.0 {
                chi_squared += (count - expected).powi(2) / expected;
            }
        }
    }
    Some((chi_squared / total / freedom as f64).sqrt().min(1.0))
}

/// The correlation of the middle ranks of bins; `None` if one of the columns is constant.
fn rank_correlation(counts: &[Vec<f64>]) -> Option<f64> {
    let (rows, columns, total) = margins(counts);
    let ranks = |sums: &[f64]| {
        let mut below = 0.0;
        let middle = |sum: &f64| {
            below += sum;
            below - sum / 2.0 - total / 2.0
        };
        sums.iter().map(middle).collect::<Vec<f64>>()
    };
    let (of_rows, of_columns) = (ranks(&rows), ranks(&columns));
    let spread = |ranks: &[f64], sums: &[f64]| ranks.iter().zip(sums).map(|(rank, sum)| rank * rank * sum).sum::<f64>();
    let both = |(row, rank): (&Vec<f64>, &f64)| {
        row.iter().zip(&of_columns).map(|(count, other)| count * rank * other).sum::<f64>()
    };
    let together: f64 = counts.iter().zip(&of_rows).map(both).sum();
    let scale = (spread(&of_rows, &rows) * spread(&of_columns, &columns)).sqrt();
    (scale > 1e-9 * total).then(|| (together / scale).clamp(-1.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_near(found: Option<f64>, wanted: f64) {
        assert!(found.is_some_and(|found| (found - wanted).abs() < 1e-9), "{found:?} is not {wanted}");
    }

    #[test]
    fn cramers_v_by_hand() {
        is_near(cramers_v(&[vec![5.0, 0.0], vec![0.0, 5.0]]), 1.0);
        is_near(cramers_v(&[vec![2.0, 4.0], vec![1.0, 2.0]]), 0.0);
        // Expected 6, 4, 6, 4 of 20; each is off by 2: 4/6 + 4/4 + 4/6 + 4/4 = 10/3, over 20.
        is_near(cramers_v(&[vec![8.0, 2.0], vec![4.0, 6.0]]), (1.0f64 / 6.0).sqrt());
        assert_eq!(cramers_v(&[vec![8.0, 2.0], vec![0.0, 0.0]]), None);
    }

    #[test]
    fn rank_correlations_by_hand() {
        is_near(rank_correlation(&[vec![3.0, 0.0], vec![0.0, 4.0]]), 1.0);
        is_near(rank_correlation(&[vec![0.0, 3.0], vec![4.0, 0.0]]), -1.0);
        // Ranks 1, 2, 3 against 1, 3, 2: 1 - 6 (1 + 1) / (3 8) = 1/2.
        let counts = [vec![1.0, 0.0, 0.0], vec![0.0, 0.0, 1.0], vec![0.0, 1.0, 0.0]];
        is_near(rank_correlation(&counts), 0.5);
        assert_eq!(rank_correlation(&[vec![1.0], vec![2.0]]), None);
    }
}
