//! [`Requirement`]: what every class of a release must satisfy.
//!
//! Classes are counted in persons. Where a person has several rows in one class, the person counts once, and each
//! pair of a person and a sensitive value counts once. With `n` persons in a class, `c(v)` of them holding value `v`,
//! `c` the sum of all `c(v)`, `q(v) = c(v) / c`, and `p(v)` the same share over all persons of the release:
//!
//! | requirement | holds when |
//! | --- | --- |
//! | `K` | `n >= k` |
//! | `PersonK` | `n >=` every member's own k |
//! | `DistinctL` | at least `l` values occur |
//! | `EntropyL` | the entropy of `q` is at least `ln l` |
//! | `RecursiveCL` | `r1 < c * (rl + ... + rm)`, `r1 >= r2 >= ...` the counts `c(v)` |
//! | `TCloseness` | the distance of `q` and `p` is at most `t` |
//! | `Alpha` | `c(v) / n <= alpha` for every value |
//! | `Beta` | `(q(v) - p(v)) / p(v) <= beta` for every value |
//! | `EnhancedBeta` | `(q(v) - p(v)) / p(v) <= min(beta, -ln p(v))` for every value |
//!
//! NULL is a sensitive value like any other. Comparisons of shares allow for rounding of 1e-9.
//! Each holds for the union of two classes for which it holds, as long as nobody is in both; where a person has rows
//! in both, the union must be counted anew.
//!
//! # Quasi columns that only others know
//!
//! A requirement of an audience or coalition may name a quasi column that nobody in it knows. It then speaks of the
//! cells that the release shows there, which may be generalized. A cell *tells nothing* if it is `*`, the root of the
//! column's hierarchy or a node with all its leaves, or a range that holds every cell of the column in the release. Two labels are *disjoint* if no
//! value is in both. With `q(L)` the share of label `L` among all cells of a class, `u` the share of those that tell
//! nothing, and `p(L)` the share of `L` among the cells of the release that tell something:
//!
//! | requirement | holds when |
//! | --- | --- |
//! | `DistinctL` | no cell of the class tells anything, or `l` labels that tell something are pairwise disjoint |
//! | `TCloseness` | the sum over labels that tell something of `max(0, q(L) - (1 - u) p(L))` is at most `t` |
//!
//! The first is the number of distinct values in every table that the release could be of. The second takes labels
//! that overlap as entirely different and a cell that tells nothing as spread like the others of the release. It is
//! never below the distance of values, as long as a label means the same values equally often wherever it stands. Both
//! hold for the union of two classes for which they hold. No other requirement and no other distance is defined there.

/// What every class must satisfy. Matched without `_`, so that a new one does not compile until both the partitioner
/// and the verifier know it; `cargo xtask test` refuses `_`, `matches!` and `if let`. Code that needs one property of
/// a requirement asks the methods below.
#[derive(Clone, Debug, PartialEq)]
pub enum Requirement {
    /// At least so many persons.
    K(u32),
    /// At least as many persons as each member asks for in this column.
    PersonK {
        /// The column with each person's own k.
        column: String,
    },
    /// At least `l` distinct sensitive values.
    DistinctL {
        /// The sensitive column.
        column: String,
        /// How many values.
        l: u32,
    },
    /// Entropy of the sensitive values at least `ln l`.
    EntropyL {
        /// The sensitive column.
        column: String,
        /// The effective number of values.
        l: f64,
    },
    /// Recursive (c,l)-diversity.
    RecursiveCL {
        /// The sensitive column.
        column: String,
        /// The factor.
        c: f64,
        /// The rank from which counts are summed.
        l: u32,
    },
    /// The class's distribution is within `t` of the release's.
    TCloseness {
        /// The sensitive column.
        column: String,
        /// The largest distance.
        t: f64,
        /// How far two values are apart.
        distance: Distance,
    },
    /// (alpha,k)-anonymity: no value is held by more than this share of the persons.
    Alpha {
        /// The sensitive column.
        column: String,
        /// The largest share.
        alpha: f64,
    },
    /// Basic beta-likeness.
    Beta {
        /// The sensitive column.
        column: String,
        /// The largest relative gain.
        beta: f64,
    },
    /// Enhanced beta-likeness.
    EnhancedBeta {
        /// The sensitive column.
        column: String,
        /// The largest relative gain.
        beta: f64,
    },
}

/// How far two sensitive values are apart, for t-closeness (the earth mover's ground distance).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Distance {
    /// Any two different values are 1 apart.
    Equal,
    /// The number of values between them in the column's order, over the number of values less one. NULL comes last.
    Ordered,
    /// The height of their lowest common ancestor over the height of the hierarchy. NULL hangs off the root.
    Hierarchical,
}

impl Requirement {
    /// The sensitive or person_k column it speaks of.
    pub fn column(&self) -> Option<&str> {
        match self {
            Requirement::K(_) => None,
            Requirement::PersonK { column }
            | Requirement::DistinctL { column, .. }
            | Requirement::EntropyL { column, .. }
            | Requirement::RecursiveCL { column, .. }
            | Requirement::TCloseness { column, .. }
            | Requirement::Alpha { column, .. }
            | Requirement::Beta { column, .. }
            | Requirement::EnhancedBeta { column, .. } => Some(column),
        }
    }

    /// How many persons it asks of every class alike.
    pub fn k(&self) -> Option<u32> {
        match self {
            Requirement::K(k) => Some(*k),
            Requirement::PersonK { .. }
            | Requirement::DistinctL { .. }
            | Requirement::EntropyL { .. }
            | Requirement::RecursiveCL { .. }
            | Requirement::TCloseness { .. }
            | Requirement::Alpha { .. }
            | Requirement::Beta { .. }
            | Requirement::EnhancedBeta { .. } => None,
        }
    }

    /// The column with each person's own k, where it asks for that.
    pub fn own_k_column(&self) -> Option<&str> {
        match self {
            Requirement::PersonK { column } => Some(column),
            Requirement::K(_)
            | Requirement::DistinctL { .. }
            | Requirement::EntropyL { .. }
            | Requirement::RecursiveCL { .. }
            | Requirement::TCloseness { .. }
            | Requirement::Alpha { .. }
            | Requirement::Beta { .. }
            | Requirement::EnhancedBeta { .. } => None,
        }
    }

    /// The sensitive column, where it asks for something of its values.
    pub fn sensitive_column(&self) -> Option<&str> {
        match self {
            Requirement::K(_) | Requirement::PersonK { .. } => None,
            Requirement::DistinctL { column, .. }
            | Requirement::EntropyL { column, .. }
            | Requirement::RecursiveCL { column, .. }
            | Requirement::TCloseness { column, .. }
            | Requirement::Alpha { column, .. }
            | Requirement::Beta { column, .. }
            | Requirement::EnhancedBeta { column, .. } => Some(column),
        }
    }

    /// Whether it compares a class with the whole release, so that nothing can be said of a class alone.
    pub fn compares_with_release(&self) -> bool {
        match self {
            Requirement::TCloseness { .. } | Requirement::Beta { .. } | Requirement::EnhancedBeta { .. } => true,
            Requirement::K(_)
            | Requirement::PersonK { .. }
            | Requirement::DistinctL { .. }
            | Requirement::EntropyL { .. }
            | Requirement::RecursiveCL { .. }
            | Requirement::Alpha { .. } => false,
        }
    }

    /// The ground distance it compares distributions by.
    pub fn distance(&self) -> Option<Distance> {
        match self {
            Requirement::TCloseness { distance, .. } => Some(*distance),
            Requirement::K(_)
            | Requirement::PersonK { .. }
            | Requirement::DistinctL { .. }
            | Requirement::EntropyL { .. }
            | Requirement::RecursiveCL { .. }
            | Requirement::Alpha { .. }
            | Requirement::Beta { .. }
            | Requirement::EnhancedBeta { .. } => None,
        }
    }
}
