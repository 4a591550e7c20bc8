//! [`Meter`]: what joining two representatives loses, and which of their nodes are paired.
//!
//! The cost of a pair is by how much the loss (LM) of all persons on both sides grows: their own cells first, then all
//! cells below, rows without a partner counted in full. MiRaCle pairs siblings by the cost of whole subtrees, MiRaCleX
//! by that of the nodes alone, and goes down only below the pairs it chose.
//!
//! # Guarantee
//! pairing is the same whether a cost is only asked for or the two are joined; with optimal pairing no pairing of the
//! same siblings has a lower cost
//! # Paper
//! algorithms 4 and 5 of `[NCN08]`
//! # Deviations
//! the paper's cost is that of one person per side; ours counts everybody, so that a large cluster is widened last
//! # Cost
//! siblings that look the same are one with a count; so a pairing costs the product of different siblings, whatever
//! their number

use kohort_model::spec::Pairing;

use super::forest::{Forest, Kind};
use super::pairing::{self, Side};
use super::representative::{Layer, Representative};
use crate::encode::{Encoded, Widths};

/// Columns with at most this many codes keep the width of every interval in a table.
const TABULATED: u32 = 1024;

/// If a table has at most this many different subtrees, the cost of each with each node of a cluster is computed once.
const MEMOIZED: usize = 1024;

/// The cost that decides which siblings are paired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Basis {
    /// The cost of whole subtrees, as in MiRaCle.
    Subtree,
    /// The cost of a node's own cells, as in MiRaCleX.
    Node,
}

/// Measures representatives of one forest.
#[derive(Debug)]
pub(super) struct Meter<'f> {
    pub(super) kinds: &'f [Kind],
    /// Per kind and quasi column.
    widths: Vec<Vec<Widths<'f>>>,
    basis: Basis,
    pairing: Pairing,
    counting: Counting,
    /// For each kind one representative of each different subtree, if there are few.
    subtrees: Vec<Option<Representative>>,
}

/// Whether to count every pair of nodes whose cost the algorithm asks for, even if the cost is known already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counting {
    Yes,
    No,
}

/// The cost of pairing each node of a cluster with each subtree of its table, for persons of weight one.
#[derive(Debug, Default)]
pub(super) struct Profile {
    layers: Vec<Option<ProfileLayer>>,
}

#[derive(Debug)]
struct ProfileLayer {
    n_subtrees: usize,
    /// Per node and subtree.
    costs: Vec<f64>,
    /// The number of pairs of nodes that computing the same would compare; empty if pairs are not counted.
    n_pairs: Vec<u32>,
}

/// Memory of one thread.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// Per kind; `None` while it is in use.
    sets: Vec<Option<Box<Set>>>,
    /// The number of pairs of nodes that were compared. Siblings that look the same count one by one.
    pub(super) n_pairs: u64,
}

/// Two sets of siblings, what pairs of them cost, and who is paired.
#[derive(Debug, Default)]
struct Set {
    a: Side,
    b: Side,
    /// Per run of `a` and run of `b`.
    costs: Vec<f64>,
    matches: Vec<pairing::Match>,
    room: pairing::Room,
}

/// Paired siblings and those without a partner, node by node.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    pub(super) matched: Vec<(u32, u32)>,
    pub(super) left_of_a: Vec<u32>,
    pub(super) left_of_b: Vec<u32>,
}

/// A representative and a range of siblings in one of its layers.
type Siblings<'r> = (&'r Representative, (u32, u32));

/// The same, with what is known about the representative.
type ProfiledSiblings<'r> = (&'r Representative, Option<&'r Profile>, (u32, u32));

impl<'f> Meter<'f> {
    /// Prepares the widths of all columns, and one of each different subtree.
    pub(super) fn new(
        forest: &'f Forest,
        encoded: &'f [Encoded<'_>],
        basis: Basis,
        pairing: Pairing,
        counting: Counting,
    ) -> Meter<'f> {
        let widths =
            |encoded: &'f Encoded<'_>| encoded.domains.iter().map(|domain| Widths::new(domain, TABULATED)).collect();
        let subtrees = |kind: usize| {
            let of_kind = &forest.kinds[kind];
            if of_kind.parent.is_none() || of_kind.children.is_empty() {
                return None;
            }
            let examples = forest.examples(kind);
            (examples.len() <= MEMOIZED).then(|| Representative::of_subtrees(forest, kind, &examples))
        };
        Meter {
            kinds: &forest.kinds,
            widths: encoded.iter().map(widths).collect(),
            basis,
            pairing,
            counting,
            subtrees: (0..forest.kinds.len()).map(subtrees).collect(),
        }
    }

    /// Computes the costs that pairing persons of weight one with a cluster needs again and again.
    pub(super) fn profile(&self, scratch: &mut Scratch, cluster: &Representative) -> Profile {
        scratch.sets.resize_with(self.kinds.len(), || None);
        let layers = (0..self.kinds.len()).map(|kind| {
            let subtrees = self.subtrees[kind].as_ref()?;
            let n_subtrees = subtrees.layers[kind].len();
            let layer = &cluster.layers[kind];
            let n_costs = layer.len() * n_subtrees;
            let mut profile = ProfileLayer { n_subtrees, costs: Vec::with_capacity(n_costs), n_pairs: Vec::new() };
            let counted = scratch.n_pairs;
            for i in 0..layer.len() as u32 {
                for j in 0..n_subtrees as u32 {
                    let before = scratch.n_pairs;
                    let own = self.own_growth(kind, cluster, i, subtrees, j);
                    let below = self.growth_below(scratch, kind, (cluster, None, i), (subtrees, j), 1, f64::INFINITY);
                    profile.costs.push(own + below);
                    if self.counting == Counting::Yes {
                        profile.n_pairs.push((scratch.n_pairs - before) as u32);
                    }
                }
            }
            // Nobody has asked yet.
            scratch.n_pairs = counted;
            Some(profile)
        });
        Profile { layers: layers.collect() }
    }

    /// The interval that a cell shows to cover these codes.
    pub(super) fn hull(&self, kind: usize, column: usize, lo: u32, hi: u32) -> (u32, u32) {
        self.widths[kind][column].domain.hull(lo, hi)
    }

    pub(super) fn own_width(&self, kind: usize, layer: &Layer, node: usize) -> f64 {
        let widths = &self.widths[kind];
        let bounds = &layer.bounds[node * widths.len()..][..widths.len()];
        widths.iter().zip(bounds).map(|(widths, &(lo, hi))| widths.of(lo, hi)).sum()
    }

    /// By how much the loss of all persons grows when two representatives are joined; infinite if it is more than
    /// `most`. A profile of `a` saves work where `b` is a person.
    pub(super) fn growth(
        &self,
        scratch: &mut Scratch,
        a: (&Representative, Option<&Profile>),
        b: &Representative,
        most: f64,
    ) -> f64 {
        scratch.sets.resize_with(self.kinds.len(), || None);
        let profile = a.1.filter(|_| b.weight == 1 && b.members.len() == 1);
        let own = self.own_growth(0, a.0, 0, b, 0);
        if own + self.least_below(a.0, b) > most {
            return f64::INFINITY;
        }
        own + self.growth_below(scratch, 0, (a.0, profile, 0), (b, 0), 1, most - own)
    }

    /// By how much the loss of persons' own cells grows when this many persons with these codes join a cluster.
    pub(super) fn growth_of_persons(&self, cluster: &Representative, codes: &[u32], weight: u32) -> f64 {
        let persons = &cluster.layers[0];
        let of_column =
            |((widths, &(lo, hi)), &code): ((&Widths<'_>, &(u32, u32)), &u32)| widths.of(lo.min(code), hi.max(code));
        let width: f64 = self.widths[0].iter().zip(&persons.bounds).zip(codes).map(of_column).sum();
        (cluster.weight as f64 + f64::from(weight)) * width - cluster.weight as f64 * persons.own[0]
    }

    /// A lower bound of the cost of leaving out the surplus of one side.
    fn least_below(&self, a: &Representative, b: &Representative) -> f64 {
        let mut least = 0.0;
        for &child in &self.kinds[0].children {
            let (in_a, in_b) = (&a.layers[child], &b.layers[child]);
            let (larger, surplus) = match in_a.len().checked_sub(in_b.len()) {
                Some(surplus) => (a, surplus),
                None => (b, in_b.len() - in_a.len()),
            };
            if surplus > 0 {
                least += surplus as f64 * larger.weight as f64 * larger.layers[child].least_kept;
            }
        }
        least
    }

    pub(super) fn pair(&self, scratch: &mut Scratch, kind: usize, a: Siblings<'_>, b: Siblings<'_>, pairs: &mut Pairs) {
        pairs.matched.clear();
        pairs.left_of_a.clear();
        pairs.left_of_b.clear();
        scratch.sets.resize_with(self.kinds.len(), || None);
        let mut set = scratch.sets[kind].take().unwrap_or_default();
        self.match_siblings(scratch, &mut set, kind, (a.0, None, a.1), b, 0);
        let (mut next_a, mut next_b) = (set.a.firsts.clone(), set.b.firsts.clone());
        for found in &set.matches {
            let (a, b) = (&mut next_a[found.a as usize], &mut next_b[found.b as usize]);
            pairs.matched.extend((*a..*a + found.count).zip(*b..*b + found.count));
            *a += found.count;
            *b += found.count;
        }
        let left = |side: &Side, next: &[u32], left: &mut Vec<u32>| {
            for ((&first, &count), &next) in side.firsts.iter().zip(&side.counts).zip(next) {
                left.extend(next..first + count);
            }
        };
        left(&set.a, &next_a, &mut pairs.left_of_a);
        left(&set.b, &next_b, &mut pairs.left_of_b);
        scratch.sets[kind] = Some(set);
    }

    #[inline]
    fn own_growth(&self, kind: usize, a: &Representative, i: u32, b: &Representative, j: u32) -> f64 {
        let (in_a, in_b) = (&a.layers[kind], &b.layers[kind]);
        let widths = &self.widths[kind];
        let (i, j, n_quasi) = (i as usize, j as usize, widths.len());
        let (of_a, of_b) = (&in_a.bounds[i * n_quasi..][..n_quasi], &in_b.bounds[j * n_quasi..][..n_quasi]);
        let mut width = 0.0;
        for (widths, (a, b)) in widths.iter().zip(of_a.iter().zip(of_b)) {
            width += widths.of(a.0.min(b.0), a.1.max(b.1));
        }
        (a.weight + b.weight) as f64 * width - a.weight as f64 * in_a.own[i] - b.weight as f64 * in_b.own[j]
    }

    /// The cost of two paired nodes in all tables below them; `times` is the number of such pairs, and is used only for
    /// counting.
    fn growth_below(
        &self,
        scratch: &mut Scratch,
        kind: usize,
        (a, profile, i): (&Representative, Option<&Profile>, u32),
        (b, j): (&Representative, u32),
        times: u64,
        most: f64,
    ) -> f64 {
        let mut growth = 0.0;
        for (position, &child) in self.kinds[kind].children.iter().enumerate() {
            let in_a = a.layers[kind].children(position, i);
            let in_b = b.layers[kind].children(position, j);
            growth += self.growth_of_set(scratch, child, (a, profile, in_a), (b, in_b), times);
            if growth > most {
                return f64::INFINITY;
            }
        }
        growth
    }

    fn growth_of_set(
        &self,
        scratch: &mut Scratch,
        kind: usize,
        a: ProfiledSiblings<'_>,
        b: Siblings<'_>,
        times: u64,
    ) -> f64 {
        let mut set = scratch.sets[kind].take().unwrap_or_default();
        self.match_siblings(scratch, &mut set, kind, a, b, times);
        let mut growth = set.a.leaving() + set.b.leaving();
        let n_b = set.b.firsts.len();
        let goes_down = self.basis == Basis::Node && !self.kinds[kind].children.is_empty();
        for found in &set.matches {
            let (i, j) = (found.a as usize, found.b as usize);
            let mut cost = set.costs[i * n_b + j];
            if goes_down {
                let nodes = ((a.0, a.1, set.a.firsts[i]), (b.0, set.b.firsts[j]));
                cost = self.subtree_growth(scratch, kind, nodes.0, nodes.1, times * u64::from(found.count));
            }
            growth += f64::from(found.count) * (cost - set.a.leave[i] - set.b.leave[j]);
        }
        scratch.sets[kind] = Some(set);
        growth
    }

    /// The cost of pairing two nodes with everything below them.
    fn subtree_growth(
        &self,
        scratch: &mut Scratch,
        kind: usize,
        a: (&Representative, Option<&Profile>, u32),
        b: (&Representative, u32),
        times: u64,
    ) -> f64 {
        if let Some(known) = a.1.and_then(|profile| profile.layers[kind].as_ref()) {
            let place = a.2 as usize * known.n_subtrees + b.0.layers[kind].numbers[b.1 as usize] as usize;
            if let Some(&n_pairs) = known.n_pairs.get(place) {
                scratch.n_pairs += times * u64::from(n_pairs);
            }
            return known.costs[place];
        }
        self.own_growth(kind, a.0, a.2, b.0, b.1) + self.growth_below(scratch, kind, a, b, times, f64::INFINITY)
    }

    /// Fills a set with two sides, the costs of their pairs, and the best matches.
    fn match_siblings(
        &self,
        scratch: &mut Scratch,
        set: &mut Set,
        kind: usize,
        (a, profile, in_a): ProfiledSiblings<'_>,
        (b, in_b): Siblings<'_>,
        times: u64,
    ) {
        set.a.fill(a, kind, in_a);
        set.b.fill(b, kind, in_b);
        set.costs.clear();
        set.matches.clear();
        if set.a.firsts.is_empty() || set.b.firsts.is_empty() {
            return;
        }
        scratch.n_pairs += times * u64::from(set.a.n_nodes) * u64::from(set.b.n_nodes);
        let goes_down = self.basis == Basis::Subtree && !self.kinds[kind].children.is_empty();
        let known = profile.and_then(|profile| profile.layers[kind].as_ref());
        if let Some(known) = known.filter(|_| goes_down && self.counting == Counting::No) {
            let numbers = &b.layers[kind].numbers;
            for &i in &set.a.firsts {
                let costs = &known.costs[i as usize * known.n_subtrees..][..known.n_subtrees];
                set.costs.extend(set.b.firsts.iter().map(|&j| costs[numbers[j as usize] as usize]));
            }
        } else if goes_down {
            for (&i, &count_of_i) in set.a.firsts.iter().zip(&set.a.counts) {
                for (&j, &count_of_j) in set.b.firsts.iter().zip(&set.b.counts) {
                    let times = times * u64::from(count_of_i) * u64::from(count_of_j);
                    set.costs.push(self.subtree_growth(scratch, kind, (a, profile, i), (b, j), times));
                }
            }
        } else {
            self.own_growths(set, kind, a, b);
        }
        pairing::find(self.pairing, &set.a, &set.b, &set.costs, &mut set.room, &mut set.matches);
    }

    /// Costs of all pairs by their own cells.
    fn own_growths(&self, set: &mut Set, kind: usize, a: &Representative, b: &Representative) {
        let (in_a, in_b) = (&a.layers[kind], &b.layers[kind]);
        let [widths] = self.widths[kind].as_slice() else {
            for &i in &set.a.firsts {
                set.costs.extend(set.b.firsts.iter().map(|&j| self.own_growth(kind, a, i, b, j)));
            }
            return;
        };
        // Child tables mostly have one column, and most of the time is spent here.
        let (weight_a, weight_b) = (a.weight as f64, b.weight as f64);
        let weight = weight_a + weight_b;
        for &i in &set.a.firsts {
            let (lo, hi) = in_a.bounds[i as usize];
            let before = weight_a * in_a.own[i as usize];
            set.costs.extend(set.b.firsts.iter().map(|&j| {
                let (other_lo, other_hi) = in_b.bounds[j as usize];
                let width = widths.of(lo.min(other_lo), hi.max(other_hi));
                weight * width - before - weight_b * in_b.own[j as usize]
            }));
        }
    }
}
