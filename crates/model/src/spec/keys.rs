//! Every key and word of a spec. The parser accepts no others, and a test compares the JSON Schema with these.

use super::{
    Childless, Choose, Cuts, Keys, Leftovers, Objective, Order, Orphans, Pairing, RegisterMethod, RegisterMissing,
    RegisterRows, ReleasedHierarchies, Unmatched,
};
use crate::hierarchy::{DateLevel, MaskSide};
use crate::{Distance, Steer};

pub(super) const TOP: &[&str] = &[
    "k",
    "preset",
    "algorithm",
    "objective",
    "effort",
    "max_suppressed",
    "leftovers",
    "order",
    "keys",
    "hierarchies",
    "seed",
    "delta_presence",
    "previous",
    "mondrian",
    "datafly",
    "full_domain",
    "clustering",
    "tables",
    "audiences",
    "collusion",
    "steer",
    "registers",
    "register",
];
pub(super) const TABLE: &[&str] = &[
    "file",
    "separator",
    "encoding",
    "decimal",
    "null",
    "header",
    "date_format",
    "person",
    "key",
    "parent",
    "orphans",
    "childless",
    "max_rows_left_out",
    "columns",
];
pub(super) const PARENT: &[&str] = &["table", "foreign_key"];
pub(super) const COLUMN: &[&str] = &[
    "role",
    "references",
    "type",
    "hierarchy",
    "round",
    "truncate",
    "top",
    "bottom",
    "key_file",
    "sensitive_to",
    "weight",
    "l",
    "p",
    "entropy_l",
    "recursive_cl",
    "t",
    "distance",
    "alpha",
    "beta",
    "enhanced_beta",
];
/// The keys that are requirements: a column may have them only if it is sensitive to somebody, and a coalition may set
/// them for a column.
pub(super) const REQUIREMENTS: &[&str] =
    &["l", "p", "entropy_l", "recursive_cl", "t", "distance", "alpha", "beta", "enhanced_beta"];
pub(super) const HIERARCHY: &[&str] = &["steps", "mask", "dates", "edges"];
/// The role of a column that is released as pseudonyms: a plain column whose cells are replaced.
pub(super) const PSEUDONYM: &str = "pseudonym";
/// The keys that change cells before classes are made.
pub(super) const TRANSFORM: &[&str] = &["round", "truncate", "top", "bottom"];
pub(super) const QUANTILE: &[&str] = &["quantile"];
pub(super) const MONDRIAN: &[&str] = &["cuts", "choose"];
pub(super) const DATAFLY: &[&str] = &["block"];
pub(super) const FULL_DOMAIN: &[&str] = &["objective"];
pub(super) const CLUSTERING: &[&str] = &["threshold", "cluster_limit", "pairing"];
pub(super) const AUDIENCE: &[&str] = &["quasi", "k"];
/// The keys of `[collusion]` itself. Every other key there is the name of a coalition.
pub(super) const COLLUSION: &[&str] = &["k", "person_k", "sensitive"];
pub(super) const COALITION: &[&str] = &["audiences", "k", "person_k", "sensitive"];
pub(super) const REGISTER_FILE: &[&str] = &["file", "key", "columns", "date", "sha256", "previous"];
pub(super) const REGISTER: &[&str] = &["method", "missing", "release", "unmatched"];

pub(super) const PRESETS: &[(&str, u32)] = &[("ema", 12), ("cms", 11)];
pub(super) const LEFTOVERS: &[(&str, Leftovers)] = &[("merge", Leftovers::Merge), ("suppress", Leftovers::Suppress)];
pub(super) const ORDERS: &[(&str, Order)] = &[("sorted", Order::Sorted), ("input", Order::Input)];
pub(super) const KEYS: &[(&str, Keys)] = &[("surrogate", Keys::Surrogate), ("keep", Keys::Keep)];
pub(super) const HIERARCHIES: &[(&str, ReleasedHierarchies)] =
    &[("shown", ReleasedHierarchies::Shown), ("withhold", ReleasedHierarchies::Withhold)];
pub(super) const ORPHANS: &[(&str, Orphans)] = &[("refuse", Orphans::Refuse), ("drop", Orphans::Drop)];
pub(super) const CHILDLESS: &[(&str, Childless)] = &[("refuse", Childless::Refuse), ("keep", Childless::Keep)];
pub(super) const STEERS: &[(&str, Steer)] = &[("all", Steer::All), ("common", Steer::Common)];
pub(super) const CUTS: &[(&str, Cuts)] = &[("strict", Cuts::Strict), ("relaxed", Cuts::Relaxed)];
pub(super) const CHOOSE: &[(&str, Choose)] = &[("widest", Choose::Widest), ("round-robin", Choose::RoundRobin)];
pub(super) const OBJECTIVES: &[(&str, Objective)] = &[("lm", Objective::Lm), ("dm", Objective::Dm)];
pub(super) const PAIRINGS: &[(&str, Pairing)] = &[("greedy", Pairing::Greedy), ("optimal", Pairing::Optimal)];
pub(super) const DECIMALS: &[(&str, char)] = &[(".", '.'), (",", ',')];
pub(super) const MASKS: &[(&str, MaskSide)] = &[("right", MaskSide::Right), ("left", MaskSide::Left)];
pub(super) const DATE_LEVELS: &[(&str, DateLevel)] = &[
    ("day", DateLevel::Day),
    ("month", DateLevel::Month),
    ("quarter", DateLevel::Quarter),
    ("year", DateLevel::Year),
    ("decade", DateLevel::Decade),
];
pub(super) const PERIODS: &[(&str, DateLevel)] = &[
    ("month", DateLevel::Month),
    ("quarter", DateLevel::Quarter),
    ("year", DateLevel::Year),
    ("decade", DateLevel::Decade),
];
pub(super) const DISTANCES: &[(&str, Distance)] =
    &[("equal", Distance::Equal), ("ordered", Distance::Ordered), ("hierarchical", Distance::Hierarchical)];
pub(super) const REGISTER_METHODS: &[(&str, RegisterMethod)] =
    &[("auto", RegisterMethod::Auto), ("refine", RegisterMethod::Refine), ("direct", RegisterMethod::Direct)];
pub(super) const REGISTER_MISSING: &[(&str, RegisterMissing)] =
    &[("skip", RegisterMissing::Skip), ("refuse", RegisterMissing::Refuse)];
pub(super) const REGISTER_ROWS: &[(&str, RegisterRows)] =
    &[("all", RegisterRows::All), ("microdata", RegisterRows::Microdata)];
pub(super) const UNMATCHED: &[(&str, Unmatched)] = &[("doubt", Unmatched::Doubt), ("count", Unmatched::Count)];

/// The known word that a mistyped one resembles most, if any does. The distance counts insertions, deletions and
/// replacements of characters, and swaps of neighbours.
pub(super) fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let word = word.to_lowercase();
    let allowed = (word.chars().count() / 3).clamp(1, 3);
    known
        .into_iter()
        .map(|known| (strsim::osa_distance(&word, known), known))
        .filter(|&(distance, known)| distance <= allowed && distance < known.chars().count())
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_word_finds_its_neighbour() {
        let known = || TABLE.iter().copied();
        assert_eq!(nearest("persn", known()), Some("person"));
        assert_eq!(nearest("colunms", known()), Some("columns"));
        assert_eq!(nearest("Key", known()), Some("key"));
        assert_eq!(nearest("whatever", known()), None);
        assert_eq!(nearest("x", ["k"]), None);
        assert_eq!(nearest("", known()), None);
    }
}
