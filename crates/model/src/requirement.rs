//! [`Requirement`]: what every class of a release must satisfy.
//!
//! Classes are counted in persons. If a person has several rows in a class, the person counts once, and each pair of a
//! person and a sensitive value counts once. Let `n` be the number of persons in a class, `c(v)` the number of them who
//! hold value `v`, `c` the sum of all `c(v)`, `q(v) = c(v) / c`, and `p(v)` the same share over all persons of the
//! release:
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
//! NULL is a sensitive value like any other. Comparisons of shares tolerate a rounding error of 1e-9. If a requirement
//! holds for two classes and nobody is in both, it holds for their union. If a person has rows in both, the union must
//! be counted anew.
//!
//! # Quasi columns that only others know
//!
//! A requirement of an audience or coalition may name a quasi column that nobody in it knows. It then applies to the
//! cells that the release shows in this column, which may be generalized. A cell *tells nothing* if it is `*`, the root
//! of the column's hierarchy, a node above all leaves, or a range that covers every cell of the column in the release.
//! Two labels are *disjoint* if no value is in both. Let `q(L)` be the share of label `L` among all cells of a class,
//! `u` the share of cells that tell nothing, and `p(L)` the share of `L` among the cells of the release that tell
//! something:
//!
//! | requirement | holds when |
//! | --- | --- |
//! | `DistinctL` | no cell of the class tells anything, or `l` labels that tell something are pairwise disjoint |
//! | `TCloseness` | the sum over labels that tell something of `max(0, q(L) - (1 - u) p(L))` is at most `t` |
//!
//! The first guarantees `l` distinct values in every table that the release could have come from. The second treats
//! labels that overlap as entirely different, and cells that tell nothing as distributed like the other cells of the
//! release. It is never below the distance of the values themselves, if a label stands for its values in the same
//! proportions in every class. Both hold for the union of two classes for which they hold. No other requirement and no
//! other distance is defined for such columns.

/// What every class must satisfy. Matched without `_`, so that a new requirement does not compile until both the
/// partitioner and the verifier know it; `cargo xtask test` refuses `_`, `matches!` and `if let`. Code that needs one
/// property of a requirement calls one of the methods below.
#[derive(Clone, Debug, PartialEq)]
pub enum Requirement {
    /// At least this many persons.
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
    /// An entropy of the sensitive values of at least `ln l`.
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
        /// The factor `c`.
        c: f64,
        /// The rank `l` from which counts are summed.
        l: u32,
    },
    /// The distribution of values in the class is within `t` of that in the release.
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
    /// The difference of the two ranks in the column's order, divided by the largest difference. NULL comes last.
    Ordered,
    /// The height of the values' lowest common ancestor, divided by the height of the hierarchy. NULL is a child of the root.
    Hierarchical,
}

impl Requirement {
    /// The sensitive or person_k column that the requirement names.
    pub fn column(&self) -> Option<&str> {
        self.own_k_column().or_else(|| self.sensitive_column())
    }

    /// The k that every class must reach, if this is such a requirement.
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

    /// The column with each person's own k, if this is a requirement on it.
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

    /// The sensitive column, if this is a requirement on its values.
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

    /// Whether the requirement compares a class with the whole release, so that a class can't be judged alone.
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

    /// The distance between values by which the requirement compares distributions.
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
