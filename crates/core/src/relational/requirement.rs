//! [`TreesJudge`]: whether the members of a cluster may be a class.
//!
//! k and each person's own k count persons. Requirements on a sensitive column hold for every orbit of a class. An
//! orbit is a set of nodes of a table that look the same, in their own cells, in everything below and in everything
//! above, so that nobody can tell which row of a person is at which of them. Shares of values count all rows of an
//! orbit; `alpha` counts the persons who hold a value in any of their rows there.
//!
//! # Guarantee
//! with `l`, no value of an orbit is held by more than one in `l` of the class's persons: several rows of one person
//! can't make up for the others
//! # Paper
//! left open by `[NCN08]`
//! # Cost
//! A check costs the rows of the class. A cluster that was refused is not checked again before it has grown by a
//! sixteenth.

use std::collections::BTreeMap;

use kohort_model::{NULL, Requirement, Table};

use super::forest::{Forest, Grove};
use super::representative::Representative;
use crate::requirement::{Rules, Tally, UnfitColumn};

/// A cluster that was refused is checked again when it has grown by one part in this many.
const ASKED_AGAIN: u64 = 16;

/// The requirements on classes of trees.
#[derive(Debug)]
pub(super) struct TreesJudge<'f> {
    forest: &'f Forest,
    pub(super) k: u32,
    /// For each folded person, the largest k of its members, if persons have their own.
    own_k: Option<Vec<u32>>,
    /// For each kind, what is asked of its sensitive columns: of rows, and of the persons who hold a value.
    rules: Vec<Vec<Rules>>,
}

/// Checks clusters, in memory that it reuses.
#[derive(Debug)]
pub(super) struct Asker<'j> {
    judge: &'j TreesJudge<'j>,
    tallies: Vec<Vec<Tally<'j>>>,
}

/// The reasons why a cluster can't be a class.
#[derive(Debug, Default)]
pub(super) struct Unmet {
    /// Whether there are too few persons, or the persons' own columns don't satisfy the requirements.
    pub(super) persons: bool,
    /// For each kind and node, whether it is in an orbit that does not satisfy the requirements. Empty if all do.
    pub(super) nodes: Vec<Vec<bool>>,
}

impl<'f> TreesJudge<'f> {
    /// Compiles what is asked, table by table; shares are measured over the rows for which `takes_part` holds.
    pub(super) fn new(
        tables: &[Table],
        grove: &Grove<'_>,
        forest: &'f Forest,
        requirements: &[Vec<Requirement>],
        takes_part: impl Fn(usize, u32) -> bool,
    ) -> Result<TreesJudge<'f>, UnfitColumn> {
        let mut judge = TreesJudge { forest, k: 1, own_k: None, rules: Vec::new() };
        for (kind, of_kind) in grove.kinds.iter().enumerate() {
            let table = &tables[of_kind.table];
            let asked = with_shares_of_l(&requirements[of_kind.table]);
            let rows: Vec<u32> = (0..table.n_rows as u32)
                .filter(|&row| grove.persons[kind][row as usize] != NULL && takes_part(kind, row))
                .collect();
            if kind == 0 {
                let rules = Rules::compile(table, &asked, &rows)?;
                judge.k = rules.k();
                let largest = |folded: u32| forest.members(folded).iter().map(|&row| rules.k_of_row(row)).max();
                let has_own_k = asked.iter().any(|asked| asked.own_k_column().is_some());
                judge.own_k =
                    has_own_k.then(|| (0..forest.len() as u32).map(|folded| largest(folded).unwrap_or(0)).collect());
                judge.rules.push(if asked.iter().any(is_of_values) { vec![rules] } else { Vec::new() });
                continue;
            }
            let of_values = asked.into_iter().filter(is_of_values);
            let (of_holders, of_rows): (Vec<Requirement>, Vec<Requirement>) = of_values.partition(counts_holders);
            let mut rules = Vec::new();
            if !of_rows.is_empty() {
                rules.push(Rules::compile(table, &of_rows, &rows)?);
            }
            if !of_holders.is_empty() {
                let persons = Some(grove.persons[kind].clone());
                rules.push(Rules::compile_for_persons(table, &of_holders, &rows, persons)?);
            }
            judge.rules.push(rules);
        }
        Ok(judge)
    }

    /// Whether nothing but numbers of persons is asked.
    pub(super) fn weight_suffices(&self) -> bool {
        self.rules.iter().all(Vec::is_empty)
    }

    /// Whether nothing but k is asked, so that anybody may join any class.
    pub(super) fn all_ask_alike(&self) -> bool {
        self.weight_suffices() && self.own_k.is_none()
    }

    /// Whether leaving somebody out changes what is asked of the others.
    pub(super) fn measures_against_release(&self) -> bool {
        self.rules.iter().flatten().any(Rules::measures_against_release)
    }

    /// How many persons a class with these members needs.
    fn needed(&self, members: &[u32]) -> u64 {
        let own = self.own_k.as_ref().and_then(|own_k| members.iter().map(|&member| own_k[member as usize]).max());
        u64::from(own.unwrap_or(0).max(self.k))
    }
}

impl<'j> Asker<'j> {
    pub(super) fn new(judge: &'j TreesJudge<'j>) -> Asker<'j> {
        Asker { judge, tallies: judge.rules.iter().map(|rules| rules.iter().map(Tally::new).collect()).collect() }
    }

    /// Whether the members may be a class. A cluster that was refused is refused again, without counting, until it has
    /// grown.
    pub(super) fn stands(&mut self, cluster: &mut Representative) -> bool {
        if cluster.weight < self.judge.needed(&cluster.members) || cluster.weight < cluster.asked_from {
            return false;
        }
        let stands = self.judge.weight_suffices() || self.unmet(cluster).holds();
        if !stands {
            cluster.asked_from = cluster.weight + cluster.weight / ASKED_AGAIN + 1;
        }
        stands
    }

    /// The same, counted even if the cluster was refused a moment ago.
    pub(super) fn stands_after_all(&mut self, cluster: &mut Representative) -> bool {
        cluster.asked_from = 0;
        self.stands(cluster)
    }

    /// The reasons why the members can't be a class.
    pub(super) fn unmet(&mut self, cluster: &Representative) -> Unmet {
        let judge = self.judge;
        let mut unmet = Unmet { persons: cluster.weight < judge.needed(&cluster.members), nodes: Vec::new() };
        if judge.weight_suffices() {
            return unmet;
        }
        let orbits = cluster.orbits(&judge.forest.kinds);
        unmet.nodes = cluster.layers.iter().map(|layer| vec![false; layer.len()]).collect();
        for (kind, tallies) in self.tallies.iter_mut().enumerate() {
            let mut nodes_of_orbit: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
            for (node, &orbit) in orbits[kind].iter().enumerate() {
                nodes_of_orbit.entry(orbit).or_default().push(node);
            }
            for tally in tallies {
                for nodes in nodes_of_orbit.values() {
                    tally.recount(nodes.iter().flat_map(|&node| cluster.rows_at(judge.forest, kind, node)));
                    if !tally.stands() {
                        nodes.iter().for_each(|&node| unmet.nodes[kind][node] = true);
                    }
                }
            }
        }
        unmet.persons |= unmet.nodes[0][0];
        unmet
    }

    /// Whether rows of a kind satisfy what is asked of an orbit.
    pub(super) fn rows_stand(&mut self, kind: usize, rows: &[u32]) -> bool {
        self.tallies[kind].iter_mut().all(|tally| {
            tally.recount(rows.iter().copied());
            tally.stands()
        })
    }
}

impl Unmet {
    pub(super) fn holds(&self) -> bool {
        !self.persons && !self.nodes.iter().flatten().any(|&unmet| unmet)
    }
}

/// The requirements, with the largest share that each `l` allows a value.
pub(super) fn with_shares_of_l(requirements: &[Requirement]) -> Vec<Requirement> {
    let share = |asked: &Requirement| match asked {
        Requirement::DistinctL { column, l } => {
            Some(Requirement::Alpha { column: column.clone(), alpha: 1.0 / f64::from((*l).max(1)) })
        }
        Requirement::K(_)
        | Requirement::PersonK { .. }
        | Requirement::EntropyL { .. }
        | Requirement::RecursiveCL { .. }
        | Requirement::TCloseness { .. }
        | Requirement::Alpha { .. }
        | Requirement::Beta { .. }
        | Requirement::EnhancedBeta { .. } => None,
    };
    requirements.iter().cloned().chain(requirements.iter().filter_map(share)).collect()
}

fn is_of_values(requirement: &Requirement) -> bool {
    requirement.sensitive_column().is_some()
}

/// Whether the requirement counts the persons who hold a value rather than rows.
fn counts_holders(requirement: &Requirement) -> bool {
    match requirement {
        Requirement::Alpha { .. } => true,
        Requirement::K(_)
        | Requirement::PersonK { .. }
        | Requirement::DistinctL { .. }
        | Requirement::EntropyL { .. }
        | Requirement::RecursiveCL { .. }
        | Requirement::TCloseness { .. }
        | Requirement::Beta { .. }
        | Requirement::EnhancedBeta { .. } => false,
    }
}
