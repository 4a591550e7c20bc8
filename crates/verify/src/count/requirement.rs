//! Whether one class satisfies one requirement, computed from the definitions in `kohort_model::Requirement`.
//!
//! Comparisons of shares tolerate a rounding error of 1e-9. Recursive (c,l)-diversity compares whole counts and is
//! strict, so it tolerates none.

use kohort_model::{Distance, Requirement};

use crate::count::distance::{Distribution, Held, HierarchicalDistance, OrderedDistance, equal_distance};
use crate::count::roll::Shares;

/// The rounding error that comparisons tolerate.
pub(crate) const TOLERANCE: f64 = 1e-9;

/// The distances of a sensitive column that requirements ask for.
pub(crate) struct Distances<'a> {
    /// The whole table's distribution.
    pub(crate) reference: Distribution,
    /// The distance by the order of values.
    pub(crate) ordered: Option<OrderedDistance>,
    /// The distance by the hierarchy.
    pub(crate) hierarchical: Option<HierarchicalDistance<'a>>,
}

/// The counts of one class that a requirement is judged by.
pub(crate) struct CountedClass<'a> {
    /// Persons in the class.
    pub(crate) n_persons: u64,
    /// The largest own k of the members, if the requirement is on own k.
    pub(crate) own_k: u64,
    /// The sensitive values of the class, if the requirement is on a sensitive column.
    pub(crate) sensitive: Option<CountedValues<'a>>,
}

/// The values of one sensitive column in one class.
#[derive(Clone, Copy)]
pub(crate) struct CountedValues<'a> {
    /// The values whose shares are compared.
    pub(crate) held: &'a Held,
    /// Each value with the number of persons who hold it.
    pub(crate) holders: &'a Held,
    /// How the shares are counted.
    pub(crate) shares: Shares,
    /// The column's distances.
    pub(crate) distances: &'a Distances<'a>,
}

/// The result of judging a class by a requirement.
pub(crate) struct Verdict {
    /// Whether the requirement holds.
    pub(crate) holds: bool,
    /// What the class reaches in the measure that the requirement bounds.
    pub(crate) reached: f64,
}

/// Which end of a measure is the worst.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Worst {
    Smallest,
    Largest,
}

impl Worst {
    /// The worst end of the measure that this requirement bounds.
    pub(crate) fn of(requirement: &Requirement) -> Worst {
        match requirement {
            Requirement::K(_)
            | Requirement::PersonK { .. }
            | Requirement::DistinctL { .. }
            | Requirement::EntropyL { .. } => Worst::Smallest,
            Requirement::RecursiveCL { .. }
            | Requirement::TCloseness { .. }
            | Requirement::Alpha { .. }
            | Requirement::Beta { .. }
            | Requirement::EnhancedBeta { .. } => Worst::Largest,
        }
    }

    /// The worse of two figures.
    pub(crate) fn pick(self, a: f64, b: f64) -> f64 {
        match self {
            Worst::Smallest => a.min(b),
            Worst::Largest => a.max(b),
        }
    }
}

/// Whether a class satisfies a requirement.
///
/// # Panics
/// If the requirement is on a sensitive column and `class` holds no sensitive values.
pub(crate) fn judge(requirement: &Requirement, class: &CountedClass<'_>) -> Verdict {
    let n_persons = class.n_persons;
    let sensitive = || class.sensitive.expect("a requirement on a sensitive column comes with its values");
    let at_least = |reached: f64, bound: f64| Verdict { holds: reached >= bound, reached };
    let at_most = |reached: f64, bound: f64| Verdict { holds: reached <= bound + TOLERANCE, reached };
    if let Some(CountedValues { held, shares: Shares::Hidden, .. }) = class.sensitive {
        return judge_hidden(requirement, n_persons, held.counts.len());
    }
    match requirement {
        Requirement::K(k) => at_least(n_persons as f64, f64::from(*k)),
        Requirement::PersonK { .. } => Verdict { holds: n_persons >= class.own_k, reached: n_persons as f64 },
        Requirement::DistinctL { l, .. } => at_least(diversity(&sensitive(), n_persons) as f64, f64::from(*l)),
        Requirement::EntropyL { l, .. } => {
            let entropy = entropy(sensitive().held);
            Verdict { holds: entropy >= l.ln() - TOLERANCE, reached: entropy.exp() }
        }
        Requirement::RecursiveCL { c, l, .. } => {
            let (first, rest) = recursive(sensitive().held, *l);
            Verdict { holds: (first as f64) < c * rest as f64, reached: first as f64 / rest as f64 }
        }
        Requirement::TCloseness { t, distance, .. } => {
            let CountedValues { held, distances, .. } = sensitive();
            let reached = match distance {
                Distance::Equal => equal_distance(held, &distances.reference),
                Distance::Ordered => {
                    distances.ordered.as_ref().expect("prepared where a requirement asks for it").of(held)
                }
                Distance::Hierarchical => {
                    distances.hierarchical.as_ref().expect("prepared where a requirement asks for it").of(held)
                }
            };
            at_most(reached, *t)
        }
        Requirement::Alpha { alpha, .. } => at_most(largest_share(sensitive().holders, n_persons), *alpha),
        Requirement::Beta { beta, .. } => {
            let CountedValues { held, distances, .. } = sensitive();
            at_most(largest_gain(held, &distances.reference), *beta)
        }
        Requirement::EnhancedBeta { beta, .. } => {
            let CountedValues { held, distances, .. } = sensitive();
            let reached = largest_gain(held, &distances.reference);
            let holds = reached <= beta + TOLERANCE && gains_stay_below_surprise(held, &distances.reference);
            Verdict { holds, reached }
        }
    }
}

/// Whether a class can satisfy a requirement, if it is not known which of its rows belong to the same person.
///
/// The class has at most as many persons as rows. Only the number of its distinct values is certain. It bounds three
/// measures: `exp` of the entropy is at most this number; fewer than `l` values are never recursively diverse; and
/// because everybody holds one of the values, some value has a share of at least one over this number. The counts of
/// the values are not certain, so requirements on distributions can't be refuted.
fn judge_hidden(requirement: &Requirement, n_rows: u64, n_values: usize) -> Verdict {
    let n_values = n_values as f64;
    match requirement {
        Requirement::K(k) => Verdict { holds: n_rows >= u64::from(*k), reached: n_rows as f64 },
        Requirement::DistinctL { l, .. } => Verdict { holds: n_values >= f64::from(*l), reached: n_values },
        Requirement::EntropyL { l, .. } => Verdict { holds: n_values >= l - TOLERANCE, reached: n_values },
        Requirement::RecursiveCL { l, .. } => Verdict { holds: n_values >= f64::from(*l), reached: f64::INFINITY },
        Requirement::Alpha { alpha, .. } => {
            Verdict { holds: 1.0 / n_values <= alpha + TOLERANCE, reached: 1.0 / n_values }
        }
        Requirement::PersonK { .. }
        | Requirement::TCloseness { .. }
        | Requirement::Beta { .. }
        | Requirement::EnhancedBeta { .. } => Verdict { holds: true, reached: 0.0 },
    }
}

/// The largest `l` for which the class is diverse: the number of distinct values. If a person can have several rows
/// that look the same, `l` is also at most the number of persons divided by the number of holders of the most frequent
/// value.
pub(crate) fn diversity(values: &CountedValues<'_>, n_persons: u64) -> u64 {
    let distinct = values.held.counts.len() as u64;
    match values.shares {
        Shares::Pairs | Shares::Hidden => distinct,
        Shares::Rows => {
            let most = values.holders.counts.iter().map(|&(_, count)| u64::from(count)).max();
            distinct.min(most.map_or(0, |most| n_persons / most))
        }
    }
}

/// The entropy of the values' shares.
pub(crate) fn entropy(held: &Held) -> f64 {
    let total = held.total as f64;
    let weighted: f64 = held.counts.iter().map(|&(_, count)| f64::from(count) * f64::from(count).ln()).sum();
    (total.ln() - weighted / total).max(0.0)
}

/// The largest count, and the sum of the counts from rank `l` on. The largest has rank 1.
pub(crate) fn recursive(held: &Held, l: u32) -> (u64, u64) {
    let mut counts: Vec<u32> = held.counts.iter().map(|&(_, count)| count).collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let from = (l.max(1) - 1) as usize;
    (u64::from(counts[0]), counts.iter().skip(from).map(|&count| u64::from(count)).sum())
}

/// The largest share of the class's persons that hold one value.
pub(crate) fn largest_share(held: &Held, n_persons: u64) -> f64 {
    held.counts.iter().map(|&(_, count)| f64::from(count) / n_persons as f64).fold(0.0, f64::max)
}

/// The largest relative gain of a value's share over the reference.
pub(crate) fn largest_gain(held: &Held, reference: &Distribution) -> f64 {
    gains(held, reference).map(|(_, gain)| gain).fold(f64::NEG_INFINITY, f64::max)
}

/// Whether no value gains more than `-ln p`, where `p` is its share in the reference.
pub(crate) fn gains_stay_below_surprise(held: &Held, reference: &Distribution) -> bool {
    gains(held, reference).all(|(share, gain)| gain <= -share.ln() + TOLERANCE)
}

/// For each value of the class, its share in the reference and its relative gain. Values that the class lacks are left
/// out, because their share only falls.
fn gains<'a>(held: &'a Held, reference: &'a Distribution) -> impl Iterator<Item = (f64, f64)> + 'a {
    held.shares().map(|(value, share)| {
        let before = reference.share(value);
        (before, (share - before) / before)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(counts: &[u32]) -> Held {
        let counts: Vec<(u32, u32)> = (0..).zip(counts.iter().copied()).collect();
        let total = counts.iter().map(|&(_, count)| u64::from(count)).sum();
        Held { counts, total }
    }

    fn holds(requirement: &Requirement, n_persons: u64, counts: &[u32], reference: &[u64]) -> bool {
        let held = held(counts);
        let distances = Distances {
            reference: Distribution { counts: reference.to_vec(), total: reference.iter().sum() },
            ordered: None,
            hierarchical: None,
        };
        let sensitive = CountedValues { held: &held, holders: &held, shares: Shares::Pairs, distances: &distances };
        judge(requirement, &CountedClass { n_persons, own_k: 3, sensitive: Some(sensitive) }).holds
    }

    fn column() -> String {
        "s".to_owned()
    }

    #[test]
    fn each_requirement_has_its_boundary() {
        let cases = [
            (Requirement::K(3), Requirement::K(4)),
            (Requirement::DistinctL { column: column(), l: 2 }, Requirement::DistinctL { column: column(), l: 3 }),
            (
                // Shares 2/3 and 1/3: exp(entropy) is 3 / 2^(2/3).
                Requirement::EntropyL { column: column(), l: 3.0 / 2f64.powf(2.0 / 3.0) },
                Requirement::EntropyL { column: column(), l: 1.9 },
            ),
            (
                Requirement::RecursiveCL { column: column(), c: 2.01, l: 2 },
                Requirement::RecursiveCL { column: column(), c: 2.0, l: 2 },
            ),
            (
                Requirement::TCloseness { column: column(), t: 1.0 / 6.0, distance: Distance::Equal },
                Requirement::TCloseness { column: column(), t: 0.166, distance: Distance::Equal },
            ),
            (
                Requirement::Alpha { column: column(), alpha: 2.0 / 3.0 },
                Requirement::Alpha { column: column(), alpha: 0.66 },
            ),
            (
                Requirement::Beta { column: column(), beta: 1.0 / 3.0 },
                Requirement::Beta { column: column(), beta: 0.33 },
            ),
            (
                Requirement::EnhancedBeta { column: column(), beta: 1.0 / 3.0 },
                Requirement::EnhancedBeta { column: column(), beta: 0.33 },
            ),
        ];
        for (kept, broken) in cases {
            assert!(holds(&kept, 3, &[2, 1], &[4, 4]), "{kept:?}");
            assert!(!holds(&broken, 3, &[2, 1], &[4, 4]), "{broken:?}");
        }
        let own_k = Requirement::PersonK { column: column() };
        assert!(holds(&own_k, 3, &[1], &[1]) && !holds(&own_k, 2, &[1], &[1]));
    }

    #[test]
    fn enhanced_beta_is_bounded_by_surprise_where_basic_beta_is_not() {
        // The share grows from 1/2 to 1. That is a gain of 1, more than ln 2.
        assert!(holds(&Requirement::Beta { column: column(), beta: 1.0 }, 2, &[2], &[4, 4]));
        assert!(!holds(&Requirement::EnhancedBeta { column: column(), beta: 1.0 }, 2, &[2], &[4, 4]));
    }

    #[test]
    fn a_value_that_everyone_holds_in_one_of_two_rows_is_not_diverse() {
        let distances =
            Distances { reference: Distribution { counts: vec![2, 2], total: 4 }, ordered: None, hierarchical: None };
        let rows = held(&[2, 2]);
        let diversity_of = |shares, holders: &[u32]| {
            let holders = held(holders);
            diversity(&CountedValues { held: &rows, holders: &holders, shares, distances: &distances }, 2)
        };
        assert_eq!(diversity_of(Shares::Rows, &[2, 2]), 1);
        assert_eq!(diversity_of(Shares::Rows, &[1, 1]), 2);
        assert_eq!(diversity_of(Shares::Pairs, &[2, 2]), 2);
    }

    #[test]
    fn a_class_with_fewer_values_than_l_is_never_recursively_diverse() {
        assert!(!holds(&Requirement::RecursiveCL { column: column(), c: 1e300, l: 3 }, 3, &[2, 1], &[4, 4]));
    }
}
