//! Whether one class satisfies one requirement, straight from the table in `kohort_model::Requirement`.
//!
//! Comparisons of shares allow for rounding of 1e-9. Recursive (c,l)-diversity compares counts and is strict, so it
//! allows for none.

use kohort_model::{Distance, Requirement};

use crate::count::distance::{Held, HierarchicalDistance, OrderedDistance, Reference, equal_distance};
use crate::count::roll::Shares;

/// What rounding may hide.
const TOLERANCE: f64 = 1e-9;

/// A sensitive column's distances, as far as requirements ask for them.
pub(crate) struct Distances<'a> {
    /// The whole table's distribution.
    pub(crate) reference: Reference,
    /// By the order of values.
    pub(crate) ordered: Option<OrderedDistance>,
    /// By the hierarchy.
    pub(crate) hierarchical: Option<HierarchicalDistance<'a>>,
}

/// One class as a requirement on one column sees it.
pub(crate) struct ClassView<'a> {
    /// Persons in the class.
    pub(crate) n_persons: u64,
    /// The largest own k of its members, for a requirement on that.
    pub(crate) own_k: u64,
    /// Its sensitive values, for a requirement on a sensitive column.
    pub(crate) sensitive: Option<SensitiveView<'a>>,
}

/// One sensitive column in one class.
#[derive(Clone, Copy)]
pub(crate) struct SensitiveView<'a> {
    /// The values whose shares count.
    pub(crate) held: &'a Held,
    /// Each value with the persons who hold it.
    pub(crate) holders: &'a Held,
    /// What the shares are counted in.
    pub(crate) shares: Shares,
    /// The column's distances.
    pub(crate) distances: &'a Distances<'a>,
}

/// What a class reaches.
pub(crate) struct Verdict {
    /// Whether the requirement holds.
    pub(crate) holds: bool,
    /// The measure the requirement bounds.
    pub(crate) reached: f64,
}

/// Which end of a measure is the worst.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Worst {
    Smallest,
    Largest,
}

impl Worst {
    /// Of the measure that this requirement bounds.
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

    /// The worse of two.
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
/// Where the view lacks what the requirement speaks of.
pub(crate) fn judge(requirement: &Requirement, class: &ClassView<'_>) -> Verdict {
    let n_persons = class.n_persons;
    let sensitive = || class.sensitive.expect("a requirement on a sensitive column comes with its values");
    let at_least = |reached: f64, bound: f64| Verdict { holds: reached >= bound, reached };
    let at_most = |reached: f64, bound: f64| Verdict { holds: reached <= bound + TOLERANCE, reached };
    if let Some(SensitiveView { held, shares: Shares::Hidden, .. }) = class.sensitive {
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
            let SensitiveView { held, distances, .. } = sensitive();
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
            let SensitiveView { held, distances, .. } = sensitive();
            at_most(largest_gain(held, &distances.reference), *beta)
        }
        Requirement::EnhancedBeta { beta, .. } => {
            let SensitiveView { held, distances, .. } = sensitive();
            let reached = largest_gain(held, &distances.reference);
            let holds = reached <= beta + TOLERANCE && gains_stay_below_surprise(held, &distances.reference);
            Verdict { holds, reached }
        }
    }
}

/// Whether a class can satisfy a requirement, when it is not known which of its rows are of the same person.
///
/// The class has at most as many persons as rows. Its distinct values are certain: `exp` of the entropy is at most their
/// number, fewer than `l` are never recursively diverse, and since everybody holds one of them, somebody's share is at
/// least one over their number. Their counts are not certain, so no distribution is judged.
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

/// The largest `l` for which the class is diverse: its distinct values, and where several rows of a person look the
/// same, no more than the class has persons for each who holds the most frequent one.
pub(crate) fn diversity(view: &SensitiveView<'_>, n_persons: u64) -> u64 {
    let distinct = view.held.counts.len() as u64;
    match view.shares {
        Shares::Pairs | Shares::Hidden => distinct,
        Shares::Rows => {
            let most = view.holders.counts.iter().map(|&(_, count)| u64::from(count)).max();
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

/// The largest count, and the sum of the counts from rank `l` on, ranks beginning with 1.
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
pub(crate) fn largest_gain(held: &Held, reference: &Reference) -> f64 {
    gains(held, reference).map(|(_, gain)| gain).fold(f64::NEG_INFINITY, f64::max)
}

/// Whether no value gains more than `-ln p`.
pub(crate) fn gains_stay_below_surprise(held: &Held, reference: &Reference) -> bool {
    gains(held, reference).all(|(share, gain)| gain <= -share.ln() + TOLERANCE)
}

/// Per value of the class its share in the reference and its relative gain. A value that the class lacks loses.
fn gains<'a>(held: &'a Held, reference: &'a Reference) -> impl Iterator<Item = (f64, f64)> + 'a {
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
            reference: Reference { counts: reference.to_vec(), total: reference.iter().sum() },
            ordered: None,
            hierarchical: None,
        };
        let sensitive = SensitiveView { held: &held, holders: &held, shares: Shares::Pairs, distances: &distances };
        let view = ClassView { n_persons, own_k: 3, sensitive: Some(sensitive) };
        judge(requirement, &view).holds
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
        // From 1/2 to 1: a gain of 1, more than ln 2.
        assert!(holds(&Requirement::Beta { column: column(), beta: 1.0 }, 2, &[2], &[4, 4]));
        assert!(!holds(&Requirement::EnhancedBeta { column: column(), beta: 1.0 }, 2, &[2], &[4, 4]));
    }

    #[test]
    fn a_value_that_everyone_holds_in_one_of_two_rows_is_not_diverse() {
        let distances =
            Distances { reference: Reference { counts: vec![2, 2], total: 4 }, ordered: None, hierarchical: None };
        let rows = held(&[2, 2]);
        let diversity_of = |shares, holders: &[u32]| {
            let holders = held(holders);
            diversity(&SensitiveView { held: &rows, holders: &holders, shares, distances: &distances }, 2)
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
