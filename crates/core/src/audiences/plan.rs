//! [`Plan`]: which columns the audiences share, and which they have to themselves.
//!
//! # Guarantee
//! Take rows that show one box in the columns of a split's body and satisfy the plan's rules together. They satisfy an
//! audience if they satisfy it in the columns of the audience's part.
//! # Paper
//! `[PTL+08]` definitions 2 and 4
//! # Deviations
//! Nested splits are ours. Definition 4 puts a column that any two audiences share into the body of all. A nested split
//! puts the audiences into two groups that share as little as possible. Only the shared columns of the groups are in
//! the body, and each group is then a plan of its own. Theorem 5 does not hold for more than two audiences: not
//! everything that satisfies them is made of super butterflies.

use std::collections::BTreeSet;

use kohort_model::Requirement;

use super::Shape;
use crate::encode::Domain;
use crate::requirement::{Rules, UnfitColumn};

/// The columns and requirements of some audiences.
pub(super) struct Plan {
    /// All columns that any of the audiences knows, ascending.
    pub(super) columns: Vec<usize>,
    /// The domains of these.
    pub(super) domains: Vec<Domain>,
    /// Everything that any of the audiences asks. Rows that satisfy it may show one box in all columns.
    pub(super) rules: Rules,
    /// The split of the super butterfly; `None` for one audience.
    pub(super) split: Option<Split>,
    /// A split into two groups of audiences, if it differs from the super butterfly's.
    pub(super) nested: Option<Split>,
}

/// Columns that rows must agree on, and parts that are then independent of one another.
pub(super) struct Split {
    /// The columns in more than one part.
    pub(super) body: Vec<usize>,
    /// The domains of these.
    pub(super) domains: Vec<Domain>,
    /// The audiences or groups, each with the columns that are not in the body. An audience without such columns asks
    /// nothing more.
    pub(super) parts: Vec<Plan>,
}

/// What one audience asks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ask {
    /// Its columns.
    pub(super) columns: BTreeSet<usize>,
    /// The requirements of the audience's classes.
    pub(super) requirements: Vec<Requirement>,
}

impl Ask {
    pub(super) fn k(&self) -> u32 {
        self.requirements.iter().filter_map(Requirement::k).max().unwrap_or(1)
    }

    /// Whether classes that satisfy `other` always satisfy this ask too.
    fn follows_from(&self, other: &Ask) -> bool {
        let asked = |requirement: &Requirement| match requirement.k() {
            Some(k) => k <= other.k(),
            None => other.requirements.contains(requirement),
        };
        self.columns.is_subset(&other.columns) && self.requirements.iter().all(asked)
    }

    pub(super) fn without(&self, columns: &BTreeSet<usize>) -> Ask {
        Ask { columns: &self.columns - columns, requirements: self.requirements.clone() }
    }
}

/// The asks that do not follow from others.
pub(super) fn without_redundant(asks: &[Ask]) -> Vec<Ask> {
    let mut kept: Vec<Ask> = Vec::new();
    for (position, ask) in asks.iter().enumerate() {
        // If two asks follow from each other, the first one is kept.
        let redundant = asks.iter().enumerate().any(|(other_position, other)| {
            other_position != position
                && ask.follows_from(other)
                && (other_position < position || !other.follows_from(ask))
        });
        if !redundant && !ask.columns.is_empty() {
            kept.push(ask.clone());
        }
    }
    kept
}

/// Every requirement of any ask, each once.
pub(super) fn together(asks: &[Ask]) -> Vec<Requirement> {
    let mut all: Vec<Requirement> = Vec::new();
    for requirement in asks.iter().flat_map(|ask| &ask.requirements) {
        if !all.contains(requirement) {
            all.push(requirement.clone());
        }
    }
    all
}

/// The columns in more than one of the sets.
pub(super) fn shared<'s>(sets: impl Iterator<Item = &'s BTreeSet<usize>>) -> BTreeSet<usize> {
    let (mut seen, mut shared) = (BTreeSet::new(), BTreeSet::new());
    for &column in sets.flatten() {
        if !seen.insert(column) {
            shared.insert(column);
        }
    }
    shared
}

/// Compiles requirements for the rows that take part.
pub(super) type Compile<'c> = &'c dyn Fn(&[Requirement]) -> Result<Rules, UnfitColumn>;

impl Plan {
    /// The plan of some asks, none of which follows from another.
    pub(super) fn new(
        asks: &[Ask],
        domains: &[Domain],
        compile: Compile<'_>,
        shape: Shape,
    ) -> Result<Plan, UnfitColumn> {
        let columns: Vec<usize> = columns_of(asks).into_iter().collect();
        let (domains_of, rules) = (domains_of(domains, &columns), compile(&together(asks))?);
        let mut plan = Plan { columns, domains: domains_of, rules, split: None, nested: None };
        if asks.len() < 2 {
            return Ok(plan);
        }
        let each: Vec<Vec<Ask>> = asks.iter().map(|ask| vec![ask.clone()]).collect();
        let split = Split::new(&each, domains, compile, shape)?;
        if asks.len() > 2 && shape == Shape::Nested {
            let nested = Split::new(&groups(asks, domains), domains, compile, shape)?;
            plan.nested = (nested.body != split.body).then_some(nested);
        }
        plan.split = Some(split);
        Ok(plan)
    }
}

impl Split {
    fn new(groups: &[Vec<Ask>], domains: &[Domain], compile: Compile<'_>, shape: Shape) -> Result<Split, UnfitColumn> {
        let columns: Vec<BTreeSet<usize>> = groups.iter().map(|group| columns_of(group)).collect();
        let shared = shared(columns.iter());
        let mut parts = Vec::new();
        for group in groups {
            let asks: Vec<Ask> = group.iter().map(|ask| ask.without(&shared)).collect();
            let asks = without_redundant(&asks);
            if !asks.is_empty() {
                parts.push(Plan::new(&asks, domains, compile, shape)?);
            }
        }
        let body: Vec<usize> = shared.into_iter().collect();
        Ok(Split { domains: domains_of(domains, &body), body, parts })
    }
}

/// The domains of some columns.
pub(super) fn domains_of(domains: &[Domain], columns: &[usize]) -> Vec<Domain> {
    columns.iter().map(|&column| domains[column].clone()).collect()
}

/// All columns of some asks.
pub(super) fn columns_of(asks: &[Ask]) -> BTreeSet<usize> {
    asks.iter().flat_map(|ask| &ask.columns).copied().collect()
}

/// With more audiences than this, not every division into two groups is tried.
const MOST_TRIED: usize = 12;

/// The division into two groups of audiences whose shared columns have the fewest different cells. Among equals the
/// most even one wins, then the first.
fn groups(asks: &[Ask], domains: &[Domain]) -> Vec<Vec<Ask>> {
    let sides = |mask: usize| -> Vec<Vec<Ask>> {
        let on_side = |side: usize| {
            let chosen = asks
                .iter()
                .enumerate()
                .filter(move |(ask, _)| (mask.checked_shr(*ask as u32).unwrap_or(0) & 1) == side);
            chosen.map(|(_, ask)| ask.clone()).collect()
        };
        vec![on_side(0), on_side(1)]
    };
    // The last audience is always on the first side, so that no split is tried twice and neither side is empty.
    let n_tried = (asks.len() - 1).min(MOST_TRIED);
    let cost = |mask: usize| -> f64 {
        let columns: Vec<BTreeSet<usize>> = sides(mask).iter().map(|side| columns_of(side)).collect();
        shared(columns.iter()).iter().map(|&column| f64::from(domains[column].n_codes()).ln()).sum()
    };
    let unevenness = |mask: usize| (2 * mask.count_ones() as usize).abs_diff(asks.len());
    let costs: Vec<f64> = (0..1 << n_tried).map(cost).collect();
    let by_cost = |&a: &usize, &b: &usize| costs[a].total_cmp(&costs[b]).then(unevenness(a).cmp(&unevenness(b)));
    sides((1..1 << n_tried).min_by(by_cost).unwrap_or(1))
}
