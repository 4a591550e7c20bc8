//! Oracles that say whether a changed release is harmful, by definition and by brute force.
//!
//! | release | oracle |
//! | --- | --- |
//! | of one table, for everybody or for audiences | [`OneTable`] |
//! | of many tables | [`ManyTables`] |
//! | beside a register | [`BesideRegister`] |
//! | a block of an A-view | [`ShownBlock::harm`](super::blocks::ShownBlock::harm) |
//! | a step or a refresh of a materialized one | [`ShownStep::harm`](super::steps::ShownStep::harm) and its sibling |

mod beside_register;
mod blocks;
mod many_tables;
mod one_table;
mod steps;

use std::collections::BTreeMap;

use serde_json::Value;

pub use beside_register::BesideRegister;
pub use many_tables::ManyTables;
pub use one_table::OneTable;

/// What the oracle says about a changed release.
#[derive(Clone, Debug, PartialEq)]
pub enum Judgement {
    /// The release is not a truthful recoding of the private tables.
    Untrue(String),
    /// The release is truthful but does not satisfy the requirements. Contains the correct figures.
    Unmet(Figures),
    /// The release is truthful and satisfies the requirements. Contains the correct figures.
    True(Figures),
}

/// What the oracle says about a changed block, step or refresh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Harm {
    /// Every promise holds.
    Harmless,
    /// A promise is broken; the text says which.
    Harmful(String),
    /// A share is exactly at its limit, so rounding decides.
    DecidedByRounding,
}

/// Figures by their path in a manifest; `None` if a figure is absent.
pub type Figures = BTreeMap<String, Option<f64>>;

/// The places where a manifest differs from these figures.
pub fn false_claims(manifest: &Value, figures: &Figures) -> Vec<String> {
    let is_false = |(path, counted): &(&String, &Option<f64>)| match (claimed(manifest, path), counted) {
        (None, None) => false,
        (Some(claimed), Some(counted)) => {
            claimed.as_f64().is_none_or(|claimed| (claimed - counted).abs() > 1e-5 + 1e-9 * counted.abs())
        }
        (None, Some(_)) | (Some(_), None) => true,
    };
    figures.iter().filter(is_false).map(|(path, _)| path.clone()).collect()
}

/// The manifest with these figures in place of its own.
///
/// # Panics
/// If the manifest has no place for one of them.
pub fn with_figures(manifest: &Value, figures: &Figures) -> Value {
    let mut manifest = manifest.clone();
    for (path, figure) in figures {
        let (above, key) = split(path);
        let place = above.iter().fold(&mut manifest, |value, name| match value {
            Value::Array(list) => &mut list[name.parse::<usize>().expect("a place in a list")],
            value => &mut value[name.as_str()],
        });
        match figure {
            // Whole numbers stay whole, because a manifest counts with them.
            Some(figure) if place[key.as_str()].is_u64() => place[key] = Value::from(*figure as u64),
            Some(figure) => place[key] = Value::from(*figure),
            None => drop(place.as_object_mut().map(|map| map.remove(&key))),
        }
    }
    manifest
}

/// What a manifest says in a place.
fn claimed<'m>(manifest: &'m Value, path: &str) -> Option<&'m Value> {
    let (above, key) = split(path);
    let place = above.iter().try_fold(manifest, |value, name| match value {
        Value::Array(list) => list.get(name.parse::<usize>().ok()?),
        value => value.get(name.as_str()),
    });
    place?.get(&key)
}

/// The names of a path. A slash separates them, because names of columns may contain dots.
fn split(path: &str) -> (Vec<String>, String) {
    let mut names: Vec<String> = path.split('/').map(str::to_owned).collect();
    let key = names.pop().expect("a path has a name");
    (names, key)
}

/// Gives each of `n` things a partner of its own among `m` that fits; `None` if that is impossible.
pub(crate) fn assign(n: usize, m: usize, fits: impl Fn(usize, usize) -> bool) -> Option<Vec<usize>> {
    let mut taken: Vec<Option<usize>> = vec![None; m];
    for thing in 0..n {
        if !place(thing, &mut taken, &mut vec![false; m], &fits) {
            return None;
        }
    }
    let mut places = vec![0; n];
    for (place, thing) in taken.into_iter().enumerate() {
        if let Some(thing) = thing {
            places[thing] = place;
        }
    }
    Some(places)
}

fn place(
    thing: usize,
    taken: &mut Vec<Option<usize>>,
    tried: &mut Vec<bool>,
    fits: &impl Fn(usize, usize) -> bool,
) -> bool {
    for at in 0..taken.len() {
        if !tried[at] && fits(thing, at) {
            tried[at] = true;
            if taken[at].is_none_or(|other| place(other, taken, tried, fits)) {
                taken[at] = Some(thing);
                return true;
            }
        }
    }
    false
}
