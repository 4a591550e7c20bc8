//! [`Judge`]: whether the members of a cluster may be a class.
//!
//! k and each person's own k count persons. What is asked of a sensitive column holds for every orbit of a class: the
//! nodes of its table that look the same, in their own cells, in everything below and in everything above, so that
//! nobody can tell which row of a person stood at which of them. Shares of values count all rows of an orbit; `alpha`
//! counts the persons who hold a value in any of their rows there.
//!
//! # Guarantee
//! with `l`, no value of an orbit is held by more than one in `l` of the class's persons: several rows of one person
//! can't make up for the others
//! # Paper
//! left open by `[NCN08]`
//! # Cost
//! asking costs the rows of the class, and is put off while a cluster that was refused has grown by less than a
//! sixteenth

use std::collections::BTreeMap;

use kohort_model::{Column, NULL, Requirement, Role, Table};

use super::forest::{Forest, Grove};
use super::representative::Representative;
use crate::requirement::{Rules, Tally, UnfitColumn};

/// After a refusal a cluster is asked about again when it has grown by this share.
const ASKED_AGAIN: u64 = 16;

/// What is asked of classes.
#[derive(Debug)]
pub(super) struct Judge<'f> {
    forest: &'f Forest,
    k: u32,
    /// Per folded person the largest k of its members, where persons have their own.
    own_k: Option<Vec<u32>>,
    /// Per kind, what is asked of its sensitive columns: of rows, and of the persons who hold a value.
    rules: Vec<Vec<Rules>>,
}

/// Asks a judge, in memory it reuses.
#[derive(Debug)]
pub(super) struct Asker<'j> {
    judge: &'j Judge<'j>,
    tallies: Vec<Vec<Tally<'j>>>,
}

/// What a cluster lacks to be a class.
#[derive(Debug, Default)]
pub(super) struct Unmet {
    /// Whether there are too few persons, or the persons' own columns don't hold.
    pub(super) persons: bool,
    /// Per kind and node, whether it is in an orbit that doesn't hold. Empty where all hold.
    pub(super) nodes: Vec<Vec<bool>>,
}

impl<'f> Judge<'f> {
    /// Compiles what is asked, table by table; shares are measured over the rows for which `takes_part` holds.
    pub(super) fn new(
        tables: &[Table],
        grove: &Grove<'_>,
        forest: &'f Forest,
        requirements: &[Vec<Requirement>],
        takes_part: impl Fn(usize, u32) -> bool,
    ) -> Result<Judge<'f>, UnfitColumn> {
        let mut judge = Judge { forest, k: 1, own_k: None, rules: Vec::new() };
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
                rules.push(Rules::compile(&with_persons(table, &grove.persons[kind]), &of_holders, &rows)?);
            }
            judge.rules.push(rules);
        }
        Ok(judge)
    }

    /// The k every class needs.
    pub(super) fn k(&self) -> u32 {
        self.k
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
    pub(super) fn new(judge: &'j Judge<'j>) -> Asker<'j> {
        Asker { judge, tallies: judge.rules.iter().map(|rules| rules.iter().map(Tally::new).collect()).collect() }
    }

    /// Whether the members may be a class. A cluster that was refused says no until it has grown.
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

    /// The same, however often it was asked.
    pub(super) fn stands_after_all(&mut self, cluster: &mut Representative) -> bool {
        cluster.asked_from = 0;
        self.stands(cluster)
    }

    /// What the members lack to be a class.
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
                    tally.clear();
                    for &node in nodes {
                        cluster.rows_at(judge.forest, kind, node, |row| tally.add(row));
                    }
                    if !tally.stands() {
                        nodes.iter().for_each(|&node| unmet.nodes[kind][node] = true);
                    }
                }
            }
        }
        unmet.persons |= unmet.nodes[0][0];
        unmet
    }
}

/// Asks whether rows that look the same may stand, in memory it reuses.
pub(super) struct RowAsker<'j> {
    tallies: Vec<Vec<Tally<'j>>>,
}

impl<'j> RowAsker<'j> {
    pub(super) fn new(judge: &'j Judge<'j>) -> RowAsker<'j> {
        RowAsker { tallies: Asker::new(judge).tallies }
    }

    /// Whether the rows of a kind satisfy what is asked of an orbit.
    pub(super) fn stand(&mut self, kind: usize, rows: &[u32]) -> bool {
        self.tallies[kind].iter_mut().all(|tally| {
            tally.clear();
            rows.iter().for_each(|&row| tally.add(row));
            tally.stands()
        })
    }
}

impl Unmet {
    /// Whether nothing is lacking.
    pub(super) fn holds(&self) -> bool {
        !self.persons && !self.nodes.iter().flatten().any(|&unmet| unmet)
    }
}

/// What is asked, with the largest share that `l` allows a value.
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

/// Whether it counts the persons who hold a value rather than rows.
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

/// The sensitive columns of a child table, and a column that names the person of each row.
fn with_persons(table: &Table, persons: &[u32]) -> Table {
    let mut texts = kohort_model::Texts::new();
    let mut number_of =
        vec![NULL; persons.iter().filter(|&&person| person != NULL).max().map_or(0, |&p| p as usize + 1)];
    let ids = persons.iter().map(|&person| match number_of.get_mut(person as usize) {
        None => NULL,
        Some(number) => {
            if *number == NULL {
                *number = texts.push("");
            }
            *number
        }
    });
    let ids = ids.collect();
    let mut person = Column::from_cells("", Role::Key, []);
    (person.texts, person.ids) = (texts, ids);
    let mut columns: Vec<Column> = vec![person];
    columns.extend(table.columns.iter().filter(|column| column.role == Role::Sensitive).cloned());
    Table { name: table.name.clone(), columns, n_rows: table.n_rows, person: Some(0) }
}
