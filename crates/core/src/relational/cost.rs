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
//! their number; large sets are divided into parts first

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use kohort_model::spec::Pairing;

use super::forest::{Forest, Kind};
use super::pairing::{self, Side};
use super::representative::{Layer, Representative};
use crate::encode::{Encoded, Widths};

/// Columns with at most this many codes keep the width of every interval in a table.
const TABULATED: u32 = 1024;

/// The costs of subtrees with the nodes of a cluster are remembered, for each table, if these are at most so many pairs.
const MEMOIZED: usize = 1 << 17;

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
    /// For each kind with tables above and below it, the number of different subtrees.
    n_subtrees: Vec<Option<usize>>,
}

/// Whether to count every pair of nodes whose cost the algorithm asks for, even if the cost is known already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counting {
    Yes,
    No,
}

/// The costs of pairing nodes of a cluster with subtrees of their tables, for persons of weight one. A cost is computed when
/// it is first asked for. Threads that ask at the same time compute the same.
#[derive(Debug, Default)]
pub(super) struct Profile {
    layers: Vec<Option<ProfileLayer>>,
}

#[derive(Debug)]
struct ProfileLayer {
    n_subtrees: usize,
    /// Per node and subtree, the bits of the cost; of no number while the cost is unknown.
    costs: Vec<AtomicU64>,
    /// The number of pairs of nodes that computing the same would compare; empty if pairs are not counted.
    n_pairs: Vec<AtomicU32>,
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
    /// One part of the two sides, if they are large.
    part: Option<Box<Set>>,
}

/// Where the siblings of two sides are, for dividing them.
pub(super) struct Spread<'s> {
    widths: &'s [Widths<'s>],
    smaller: (&'s Side, &'s Layer),
    larger: (&'s Side, &'s Layer),
}

impl Spread<'_> {
    /// The same with the other side as the smaller.
    pub(super) fn turned(&self) -> Spread<'_> {
        Spread { widths: self.widths, smaller: self.larger, larger: self.smaller }
    }

    /// The column in which runs spread most; the first of equals, `None` if there is none.
    pub(super) fn widest(&self, smaller: &[(u32, u32)], larger: &[(u32, u32)]) -> Option<usize> {
        let mut widest: Option<(f64, usize)> = None;
        for (column, widths) in self.widths.iter().enumerate() {
            let of_smaller = smaller.iter().map(|&(run, _)| self.bounds(self.smaller, column, run));
            let bounds = of_smaller.chain(larger.iter().map(|&(run, _)| self.bounds(self.larger, column, run)));
            let (lo, hi) = bounds.fold((u32::MAX, 0), |(lo, hi), bounds| (lo.min(bounds.0), hi.max(bounds.1)));
            let width = widths.of(lo, hi);
            if widest.is_none_or(|(most, _)| width > most) {
                widest = Some((width, column));
            }
        }
        widest.map(|(_, column)| column)
    }

    /// Twice the middle of a run's interval. Without a column, runs are where they are in canonical order.
    pub(super) fn of_smaller(&self, column: Option<usize>, run: u32) -> u64 {
        self.middle(self.smaller, column, run)
    }

    /// The same for the larger side.
    pub(super) fn of_larger(&self, column: Option<usize>, run: u32) -> u64 {
        self.middle(self.larger, column, run)
    }

    fn middle(&self, side: (&Side, &Layer), column: Option<usize>, run: u32) -> u64 {
        let Some(column) = column else { return u64::from(run) };
        let (lo, hi) = self.bounds(side, column, run);
        u64::from(lo) + u64::from(hi)
    }

    fn bounds(&self, (side, layer): (&Side, &Layer), column: usize, run: u32) -> (u32, u32) {
        layer.bounds[side.firsts[run as usize] as usize * self.widths.len() + column]
    }
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
        let n_subtrees = |kind: usize| {
            let of_kind = &forest.kinds[kind];
            (of_kind.parent.is_some() && !of_kind.children.is_empty()).then(|| forest.n_subtrees(kind))
        };
        Meter {
            kinds: &forest.kinds,
            widths: encoded.iter().map(widths).collect(),
            basis,
            pairing,
            counting,
            n_subtrees: (0..forest.kinds.len()).map(n_subtrees).collect(),
        }
    }

    /// Makes room for the costs that pairing persons of weight one with a cluster needs again and again.
    pub(super) fn profile(&self, cluster: &Representative) -> Profile {
        let layers = cluster.layers.iter().zip(&self.n_subtrees).map(|(layer, n_subtrees)| {
            let n_subtrees = (*n_subtrees)?;
            let n_costs = layer.len().checked_mul(n_subtrees).filter(|&n_costs| n_costs <= MEMOIZED)?;
            let n_counts = if self.counting == Counting::Yes { n_costs } else { 0 };
            Some(ProfileLayer {
                n_subtrees,
                costs: (0..n_costs).map(|_| AtomicU64::new(f64::NAN.to_bits())).collect(),
                n_pairs: (0..n_counts).map(|_| AtomicU32::new(0)).collect(),
            })
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
        let goes_down = self.basis == Basis::Node && !self.kinds[kind].children.is_empty();
        for found in &set.matches {
            let (i, j) = (found.a as usize, found.b as usize);
            let mut cost = found.cost;
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
        let compute = |scratch: &mut Scratch, times: u64| {
            self.own_growth(kind, a.0, a.2, b.0, b.1) + self.growth_below(scratch, kind, a, b, times, f64::INFINITY)
        };
        let Some(known) = a.1.and_then(|profile| profile.layers[kind].as_ref()) else {
            return compute(scratch, times);
        };
        let place = a.2 as usize * known.n_subtrees + b.0.layers[kind].numbers[b.1 as usize] as usize;
        let mut cost = f64::from_bits(known.costs[place].load(Ordering::Acquire));
        if cost.is_nan() {
            let before = std::mem::take(&mut scratch.n_pairs);
            cost = compute(scratch, 1);
            if let Some(n_pairs) = known.n_pairs.get(place) {
                n_pairs.store(scratch.n_pairs as u32, Ordering::Relaxed);
            }
            scratch.n_pairs = before;
            known.costs[place].store(cost.to_bits(), Ordering::Release);
        }
        if let Some(n_pairs) = known.n_pairs.get(place) {
            scratch.n_pairs += times * u64::from(n_pairs.load(Ordering::Relaxed));
        }
        cost
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
        set.matches.clear();
        if set.a.firsts.len() * set.b.firsts.len() <= pairing::MOST_PAIRS {
            return self.match_all(scratch, set, kind, (a, profile), b, times);
        }
        let spread = Spread {
            widths: &self.widths[kind],
            smaller: (&set.a, &a.layers[kind]),
            larger: (&set.b, &b.layers[kind]),
        };
        let mut part = set.part.take().unwrap_or_default();
        for (of_a, of_b) in pairing::divided(&set.a, &set.b, &spread) {
            (part.a, part.b) = (set.a.part(&of_a), set.b.part(&of_b));
            part.matches.clear();
            self.match_all(scratch, &mut part, kind, (a, profile), b, times);
            let in_whole = part.matches.iter().map(|found| pairing::Match {
                a: of_a[found.a as usize].0,
                b: of_b[found.b as usize].0,
                ..*found
            });
            set.matches.extend(in_whole);
        }
        set.part = Some(part);
    }

    /// Compares all pairs of two sides, and finds the best matches.
    fn match_all(
        &self,
        scratch: &mut Scratch,
        set: &mut Set,
        kind: usize,
        (a, profile): (&Representative, Option<&Profile>),
        b: &Representative,
        times: u64,
    ) {
        set.costs.clear();
        if set.a.firsts.is_empty() || set.b.firsts.is_empty() {
            return;
        }
        scratch.n_pairs += times * u64::from(set.a.n_nodes) * u64::from(set.b.n_nodes);
        if self.basis == Basis::Subtree && !self.kinds[kind].children.is_empty() {
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
