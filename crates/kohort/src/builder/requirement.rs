//! Requirements on sensitive columns, under the names that the literature uses.

use toml::Value;

/// A requirement on a sensitive column.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnRequirement {
    /// Keys of the column in a spec.
    pub(super) settings: Vec<(&'static str, Value)>,
}

fn one(key: &'static str, value: impl Into<Value>) -> ColumnRequirement {
    ColumnRequirement { settings: vec![(key, value.into())] }
}

/// l-diversity: every class has enough different sensitive values.
#[derive(Clone, Copy, Debug)]
pub struct LDiversity;

impl LDiversity {
    /// At least `l` distinct values. Others call this p-sensitivity, and a spec takes `p` for `l`.
    pub fn distinct(l: u32) -> ColumnRequirement {
        one("l", i64::from(l))
    }

    /// The entropy of the values is at least log `l`.
    pub fn entropy(l: f64) -> ColumnRequirement {
        one("entropy_l", l)
    }

    /// Recursive (c,l)-diversity: the most frequent value is less frequent than `c` times all values from the l-th most
    /// frequent on together.
    pub fn recursive(c: f64, l: u32) -> ColumnRequirement {
        one("recursive_cl", vec![Value::from(c), Value::from(i64::from(l))])
    }

    /// No value has a larger share of a class than `alpha`, as in (alpha,k)-anonymity.
    pub fn alpha(alpha: f64) -> ColumnRequirement {
        one("alpha", alpha)
    }
}

/// t-closeness: the values of every class are distributed nearly as in the whole table.
#[derive(Clone, Copy, Debug)]
pub struct TCloseness;

impl TCloseness {
    /// All values are equally far from each other.
    pub fn equal(t: f64) -> ColumnRequirement {
        Self::by("equal", t)
    }

    /// The distance of two values is the difference of their ranks.
    pub fn ordered(t: f64) -> ColumnRequirement {
        Self::by("ordered", t)
    }

    /// The distance of two values is their distance in the hierarchy of the column.
    pub fn hierarchical(t: f64) -> ColumnRequirement {
        Self::by("hierarchical", t)
    }

    fn by(distance: &str, t: f64) -> ColumnRequirement {
        ColumnRequirement { settings: vec![("t", t.into()), ("distance", distance.into())] }
    }
}

/// beta-likeness: no value becomes much more likely within a class than it is in the whole table.
#[derive(Clone, Copy, Debug)]
pub struct BetaLikeness;

impl BetaLikeness {
    /// The relative gain of a value's share in a class over its share in the table is at most `beta`.
    pub fn basic(beta: f64) -> ColumnRequirement {
        one("beta", beta)
    }

    /// The enhanced bound, which is stricter for frequent values.
    pub fn enhanced(beta: f64) -> ColumnRequirement {
        one("enhanced_beta", beta)
    }
}
