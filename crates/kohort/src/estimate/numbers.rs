//! [`NumberEstimate`]: the mean and the quartiles of a sensitive column of numbers, with bounds.
//!
//! # Guarantee
//! As for [`Bounds`]: whichever rows of each group match, as many as may, the figure lies within its bounds.

use kohort_model::Column;

use super::bounds::{Bounds, Matching};
use super::shown::Group;

/// What is expected of the numbers of rows that match. Rows without a value are left out.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberEstimate {
    /// The mean.
    pub mean: Estimated,
    /// The least number that at least a quarter, a half and three quarters of the rows do not exceed.
    pub quartiles: [Estimated; 3],
}

/// A figure and its bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimated {
    /// What is expected if rows are spread evenly.
    pub expected: f64,
    /// What it is at least and at most, if any row matches.
    pub bounds: Bounds,
}

/// A number, and how many rows have it.
type Counted = (f64, f64);

/// Rows that match in any case, and rows that may, both in ascending order of their numbers.
struct Chosen {
    surely: Vec<Counted>,
    perhaps: Vec<Counted>,
}

impl NumberEstimate {
    /// The estimate for a column of numbers, where `expected` has the rows that are expected to match for each text of the
    /// column; `None` if a text is no number, or if no row is expected to match.
    pub(super) fn of(
        column: &Column,
        expected: &[f64],
        groups: &[Group],
        matching: &[Matching],
    ) -> Option<NumberEstimate> {
        let numbers = numbers(column)?;
        let mut weighted: Vec<Counted> = numbers.iter().copied().zip(expected.iter().copied()).collect();
        weighted.retain(|(_, n)| *n > 0.0);
        weighted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        if weighted.is_empty() {
            return None;
        }
        let lowest = choose(column, &numbers, groups, matching, 1.0);
        // The highest numbers are the lowest ones of the other sign.
        let highest = choose(column, &numbers, groups, matching, -1.0);
        let mean = Estimated {
            expected: mean_of(&weighted),
            bounds: Bounds { least: lowest.least_mean(), most: -highest.least_mean() },
        };
        let quartile = |share: f64| Estimated {
            expected: quantile_of(&weighted, share),
            bounds: Bounds { least: lowest.least_quantile(share), most: -highest.least_upper_quantile(1.0 - share) },
        };
        Some(NumberEstimate { mean, quartiles: [0.25, 0.5, 0.75].map(quartile) })
    }
}

/// The number that each text of a column spells; `None` if one of them spells none, or there is none.
fn numbers(column: &Column) -> Option<Vec<f64>> {
    let comma = column.notation.decimal_comma;
    let number = |text: &str| {
        let text = text.trim();
        let read = if comma { text.replace(',', ".").parse() } else { text.parse() };
        read.ok().filter(|number: &f64| number.is_finite())
    };
    let numbers: Option<Vec<f64>> = column.texts.iter().map(number).collect();
    numbers.filter(|numbers| !numbers.is_empty())
}

/// The rows with the lowest numbers of each group after multiplication by `sign`: as many as must match, then as many more as
/// may.
fn choose(column: &Column, numbers: &[f64], groups: &[Group], matching: &[Matching], sign: f64) -> Chosen {
    let mut chosen = Chosen { surely: Vec::new(), perhaps: Vec::new() };
    for (group, matching) in groups.iter().zip(matching) {
        let mut counts: Vec<(f64, u64)> =
            numbers.iter().map(|number| sign * number).zip(group.counts(column)).collect();
        counts.retain(|(_, n)| *n > 0);
        counts.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let n_with_number = counts.iter().map(|(_, n)| n).sum::<u64>();
        let Matching { least, most } = matching.part(n_with_number, group.n_rows);
        let (mut n_sure, mut n_perhaps) = (least, most - least);
        for (number, n) in counts {
            let sure = n.min(n_sure);
            let perhaps = (n - sure).min(n_perhaps);
            (n_sure, n_perhaps) = (n_sure - sure, n_perhaps - perhaps);
            chosen.surely.extend((sure > 0).then_some((number, sure as f64)));
            chosen.perhaps.extend((perhaps > 0).then_some((number, perhaps as f64)));
        }
    }
    chosen.surely.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    chosen.perhaps.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    chosen
}

impl Chosen {
    /// The least mean of the sure rows and any of the others.
    fn least_mean(&self) -> f64 {
        let (mut sum, mut n) = total(&self.surely);
        for &(number, more) in &self.perhaps {
            // A number below the mean lowers it. Without a sure row, at least one of the others matches.
            if n > 0.0 && number * n >= sum {
                break;
            }
            let more = if n > 0.0 { more } else { 1.0 };
            (sum, n) = (sum + number * more, n + more);
        }
        sum / n
    }

    /// The least of all quantiles: the least number below or at which at least this share of the rows may lie.
    fn least_quantile(&self, share: f64) -> f64 {
        self.least(|sure_below, n_sure, perhaps_below| sure_below + perhaps_below >= share * (n_sure + perhaps_below))
    }

    /// The same for quantiles from above: more than this share of the rows must lie below or at the number.
    fn least_upper_quantile(&self, share: f64) -> f64 {
        self.least(|sure_below, n_sure, perhaps_below| sure_below + perhaps_below > share * (n_sure + perhaps_below))
    }

    /// The least number for which the rows below or at it are enough, given as sure rows, all sure rows, and other rows. All
    /// other rows up to the number are taken, and none above it, because that makes the share largest.
    fn least(&self, is_enough: impl Fn(f64, f64, f64) -> bool) -> f64 {
        let n_sure = total(&self.surely).1;
        let mut all: Vec<f64> = self.surely.iter().chain(&self.perhaps).map(|(number, _)| *number).collect();
        all.sort_unstable_by(f64::total_cmp);
        all.dedup();
        let below = |rows: &[Counted], number: f64| {
            rows.iter().take_while(|(other, _)| *other <= number).map(|(_, n)| n).sum::<f64>()
        };
        let reached = |&number: &f64| {
            let (sure_below, perhaps_below) = (below(&self.surely, number), below(&self.perhaps, number));
            n_sure + perhaps_below > 0.0 && is_enough(sure_below, n_sure, perhaps_below)
        };
        // The more numbers lie below, the larger is the share, so the first that is enough is found by halving.
        let first = all.partition_point(|number| !reached(number));
        all.get(first).copied().unwrap_or(f64::NAN)
    }
}

fn total(rows: &[Counted]) -> (f64, f64) {
    rows.iter().fold((0.0, 0.0), |(sum, n), (number, more)| (sum + number * more, n + more))
}

fn mean_of(rows: &[Counted]) -> f64 {
    let (sum, n) = total(rows);
    sum / n
}

/// The least number that at least this share of the rows do not exceed.
fn quantile_of(rows: &[Counted], share: f64) -> f64 {
    let wanted = share * total(rows).1;
    let mut n_below = 0.0;
    // Rounding must not let the sum miss the share by a hair.
    let reached = rows.iter().find(|(_, n)| {
        n_below += n;
        n_below >= wanted * (1.0 - 1e-12)
    });
    reached.or(rows.last()).map_or(f64::NAN, |(number, _)| *number)
}

#[cfg(test)]
mod tests {
    use kohort_model::{Column, Role};
    use proptest::prelude::*;

    use super::*;

    /// Every choice of rows that may match, as lists of numbers.
    fn choices(groups: &[(Vec<f64>, Matching)]) -> Vec<Vec<f64>> {
        let mut all = vec![Vec::new()];
        for (numbers, matching) in groups {
            let mut longer = Vec::new();
            for chosen in 0u32..1 << numbers.len() {
                if !(matching.least..=matching.most).contains(&u64::from(chosen.count_ones())) {
                    continue;
                }
                let picked = numbers.iter().enumerate().filter(|(row, _)| chosen >> row & 1 == 1).map(|(_, n)| *n);
                let picked: Vec<f64> = picked.collect();
                longer.extend(all.iter().map(|before: &Vec<f64>| [&before[..], &picked].concat()));
            }
            all = longer;
        }
        all.retain(|chosen| !chosen.is_empty());
        all
    }

    proptest! {
        #[test]
        fn bounds_are_the_least_and_the_largest_figure_of_all_choices_of_rows(
            drawn in prop::collection::vec((prop::collection::vec(-3i32..4, 1..5), 0u64..5, 0u64..5), 1..4),
        ) {
            let groups: Vec<(Vec<f64>, Matching)> = drawn.into_iter().map(|(numbers, a, b)| {
                let n = numbers.len() as u64;
                let (least, most) = (a.min(b).min(n), a.max(b).min(n));
                (numbers.into_iter().map(f64::from).collect(), Matching { least, most })
            }).collect();
            let all = choices(&groups);
            prop_assume!(!all.is_empty());
            let cells: Vec<String> = groups.iter().flat_map(|(numbers, _)| numbers).map(f64::to_string).collect();
            let column = Column::from_cells("cost", Role::Sensitive, cells.iter().map(|cell| Some(cell.as_str())));
            let mut next = 0;
            let shown: Vec<Group> = groups.iter().map(|(numbers, _)| {
                let rows = (next..next + numbers.len() as u32).collect();
                next += numbers.len() as u32;
                Group { n_rows: numbers.len() as u64, rows }
            }).collect();
            let matching: Vec<Matching> = groups.iter().map(|(_, matching)| *matching).collect();
            let found = NumberEstimate::of(&column, &vec![1.0; column.texts.len()], &shown, &matching).unwrap();
            let range = |figure: &dyn Fn(&[Counted]) -> f64| {
                let figures = all.iter().map(|chosen| {
                    let mut rows: Vec<Counted> = chosen.iter().map(|number| (*number, 1.0)).collect();
                    rows.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
                    figure(&rows)
                });
                figures.fold((f64::MAX, f64::MIN), |(least, most), figure| (least.min(figure), most.max(figure)))
            };
            let (least, most) = range(&mean_of);
            prop_assert!((found.mean.bounds.least - least).abs() < 1e-9, "{} is not {least}", found.mean.bounds.least);
            prop_assert!((found.mean.bounds.most - most).abs() < 1e-9, "{} is not {most}", found.mean.bounds.most);
            for (quartile, share) in found.quartiles.iter().zip([0.25, 0.5, 0.75]) {
                let (least, most) = range(&|rows| quantile_of(rows, share));
                prop_assert_eq!((quartile.bounds.least, quartile.bounds.most), (least, most));
            }
        }
    }

    #[test]
    fn columns_of_words_have_no_numbers() {
        let column = Column::from_cells("c", Role::Sensitive, [Some("1"), Some("flu")]);
        assert_eq!(numbers(&column), None);
    }
}
