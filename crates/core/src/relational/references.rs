//! Which references stay, once persons are in classes.
//!
//! A reference tells something about the row that has it and about the row it names: who shares a target, and what the
//! target looks like. So references of a class stay together or not at all. A *spot* is the rows of one class at the
//! same place of their persons' trees. The references that are kept from one spot to another are chosen so that every
//! row of the target spot is named equally often. Persons who keep theirs and persons who don't are two classes from
//! then on. All other references become null.
//!
//! # Guarantee
//! Kept references are true. Rows of a spot look the same to a reader who follows references forth and back, at any
//! depth: each names the same number of rows of every other spot, and is named by as many. No references make a circle,
//! so rows that look the same by following references can also be exchanged (see the verifier). Every class has the
//! persons and values it needs. A null may stand for a reference that was removed, for a row that was left out, or for
//! a private null.
//! # Deviations
//! Greedy: spots with most references first, and a class that takes part in kept references is never parted again. A
//! person keeps references to one row per spot and column. Of several persons who could keep theirs, the first by key
//! does, or the first of the input if persons have no keys.
//! # Cost
//! One sort of all references, and per spot as many steps as it has references.

use std::collections::{BTreeMap, BTreeSet};

use kohort_model::spec::Keys;
use kohort_model::{NULL, Requirement, Schema, Table};

use super::forest::{Forest, Grove, copied_ranks};
use super::requirement::{Asker, TreesJudge};
use super::shown::Shown;
use crate::ranks::text_ranks;
use crate::requirement::{Rules, UnfitColumn};

/// One table of persons and the tables below it, in classes.
pub(super) struct Planned<'t> {
    pub(super) root: usize,
    pub(super) grove: Grove<'t>,
    pub(super) forest: Forest,
    pub(super) shown: Shown,
    /// The rules of the persons, which know the k that each needs.
    pub(super) needed: Rules,
    pub(super) n_in: u64,
}

/// For each table and reference, which row each row references in the release; [`NULL`] if it shows none.
pub(super) type Kept = Vec<Vec<Vec<u32>>>;

/// For each table, its plan and its position in the plan.
pub(super) fn places(planned: &[Planned<'_>], n_tables: usize) -> Vec<(usize, usize)> {
    let mut places = vec![(0, 0); n_tables];
    for (plan, of_plan) in planned.iter().enumerate() {
        for (kind, of_kind) in of_plan.grove.kinds.iter().enumerate() {
            places[of_kind.table] = (plan, kind);
        }
    }
    places
}

/// Chooses the references that stay, and divides classes in which only some persons keep theirs.
pub(super) fn keep(
    tables: &[Table],
    schema: &Schema,
    requirements: &[Vec<Requirement>],
    planned: &mut [Planned<'_>],
) -> Result<Kept, UnfitColumn> {
    let nothing = schema.tables.iter().zip(tables);
    let mut kept: Kept = nothing.map(|(table, rows)| vec![vec![NULL; rows.n_rows]; table.references.len()]).collect();
    if !schema.has_references() {
        return Ok(kept);
    }
    let judges = planned.iter().map(|plan| {
        let is_shown = |kind: usize, row: u32| plan.shown.layers[kind].node_of_row[row as usize] != NULL;
        TreesJudge::new(tables, &plan.grove, &plan.forest, requirements, is_shown)
    });
    let judges: Vec<TreesJudge<'_>> = judges.collect::<Result<_, _>>()?;
    let mut choice = Choice::new(tables, schema, planned, &judges);
    for offer in ReferenceSet::all(tables, schema, &choice) {
        // Classes may have been divided since, so that one spot has become two.
        let mut now: BTreeMap<(u32, u32), Vec<(u32, u32)>> = BTreeMap::new();
        let to = schema.tables[offer.table].references[offer.reference].table;
        for (row, target) in offer.rows {
            let spots = (choice.spot[offer.table][row as usize], choice.spot[to][target as usize]);
            now.entry(spots).or_default().push((row, target));
        }
        for ((from_spot, to_spot), rows) in now {
            let edge = Edge { table: offer.table, from_spot, to, to_spot };
            for (row, target) in choice.take(edge, &rows) {
                kept[offer.table][offer.reference][row as usize] = target;
            }
        }
    }
    let classes: Vec<Vec<u32>> = planned.iter().map(|plan| choice.spot[plan.root].clone()).collect();
    for (plan, classes) in planned.iter_mut().zip(classes) {
        plan.shown.part_classes(&classes);
    }
    Ok(kept)
}

/// References of one column that lead from rows that look the same to rows that look the same.
struct ReferenceSet {
    table: usize,
    reference: usize,
    /// The rows, each with the row it references.
    rows: Vec<(u32, u32)>,
}

impl ReferenceSet {
    /// All references between rows that are shown, most of a kind first.
    fn all(tables: &[Table], schema: &Schema, choice: &Choice<'_, '_>) -> Vec<ReferenceSet> {
        let mut offers: BTreeMap<(u32, usize, u32), ReferenceSet> = BTreeMap::new();
        for (table, linked) in schema.tables.iter().enumerate() {
            for (reference, &to) in linked.references.iter().enumerate() {
                let targets = schema.reference_rows(tables, table, to);
                for (row, target) in (0..).zip(targets).filter(|&(_, target)| target != NULL) {
                    let (from, at) = (choice.spot[table][row as usize], choice.spot[to.table][target as usize]);
                    if from != NULL && at != NULL {
                        let offer = offers.entry((from, reference, at));
                        offer.or_insert(ReferenceSet { table, reference, rows: Vec::new() }).rows.push((row, target));
                    }
                }
            }
        }
        let mut offers: Vec<ReferenceSet> = offers.into_values().collect();
        // Stable, so that equally large ones stay in the order of their spots.
        offers.sort_by_key(|offer| std::cmp::Reverse(offer.rows.len()));
        offers
    }
}

/// Rows of one spot that reference rows of another.
#[derive(Clone, Copy)]
struct Edge {
    table: usize,
    from_spot: u32,
    to: usize,
    to_spot: u32,
}

/// Where references may be kept: spots, and who is connected with whom already.
struct Choice<'p, 't> {
    planned: &'p [Planned<'t>],
    judges: &'p [TreesJudge<'p>],
    /// For each table its plan, and its position in the plan.
    place: Vec<(usize, usize)>,
    /// For each table and row, its spot, [`NULL`] for a row that is left out.
    spot: Vec<Vec<u32>>,
    /// The rows of each spot.
    rows_of_spot: Vec<Vec<u32>>,
    /// Classes, by the spot of their persons, that take part in kept references.
    is_used: BTreeSet<u32>,
    /// For each table, the rows of each person of its plan.
    rows_of_person: Vec<BTreeMap<u32, Vec<u32>>>,
    /// For each plan, the rank of each person's key.
    ranks: Vec<Vec<u32>>,
    /// For each table, the ranks of the cells that are released as they are.
    contents: Vec<Vec<Vec<u32>>>,
    /// For each person, all plans together, another person they are connected with, or themselves.
    connected: Vec<u32>,
    /// For each plan, the number of its first person.
    first_person: Vec<u32>,
}

/// References of a person's rows below one row to one target.
struct Bundle {
    person: u32,
    target: u32,
    rows: Vec<u32>,
}

/// Persons who keep a bundle each.
struct Taken {
    bundles: Vec<Bundle>,
    /// How many rows of each bundle keep their reference.
    size: usize,
}

impl<'p, 't> Choice<'p, 't> {
    fn new(
        tables: &[Table],
        schema: &Schema,
        planned: &'p [Planned<'t>],
        judges: &'p [TreesJudge<'p>],
    ) -> Choice<'p, 't> {
        let mut choice = Choice {
            planned,
            judges,
            place: places(planned, tables.len()),
            spot: tables.iter().map(|table| vec![NULL; table.n_rows]).collect(),
            rows_of_spot: Vec::new(),
            is_used: BTreeSet::new(),
            rows_of_person: vec![BTreeMap::new(); tables.len()],
            ranks: Vec::new(),
            contents: tables.iter().map(|table| copied_ranks(table, Keys::Surrogate)).collect(),
            connected: Vec::new(),
            first_person: Vec::new(),
        };
        for of_plan in planned {
            let n_persons = tables[of_plan.root].n_rows as u32;
            let first = choice.connected.len() as u32;
            choice.first_person.push(first);
            choice.connected.extend(first..first + n_persons);
            choice.ranks.push(match schema.tables[of_plan.root].key {
                None => vec![0; n_persons as usize],
                Some(key) => text_ranks(&tables[of_plan.root].columns[key]),
            });
            for (kind, of_kind) in of_plan.grove.kinds.iter().enumerate() {
                let layer = &of_plan.shown.layers[kind];
                let mut spots: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
                for (row, &look) in (0..).zip(&layer.looks).filter(|&(_, &look)| look != NULL) {
                    let above = of_kind.parent.map_or(0, |parent| {
                        choice.spot[of_plan.grove.kinds[parent].table][layer.parents[row as usize] as usize]
                    });
                    spots.entry((above, look)).or_default().push(row);
                    let person = of_plan.grove.persons[kind][row as usize];
                    choice.rows_of_person[of_kind.table].entry(person).or_default().push(row);
                }
                for rows in spots.into_values() {
                    let spot = choice.rows_of_spot.len() as u32;
                    rows.iter().for_each(|&row| choice.spot[of_kind.table][row as usize] = spot);
                    choice.rows_of_spot.push(rows);
                }
            }
        }
        choice
    }

    fn person(&self, table: usize, row: u32) -> u32 {
        let (plan, kind) = self.place[table];
        self.planned[plan].grove.persons[kind][row as usize]
    }

    /// The spot of the person a row is of, which names the class.
    fn class(&self, table: usize, row: u32) -> u32 {
        let (plan, _) = self.place[table];
        self.spot[self.planned[plan].root][self.person(table, row) as usize]
    }

    /// Keeps as many of these references as may stay, and returns them.
    fn take(&mut self, edge: Edge, rows: &[(u32, u32)]) -> Vec<(u32, u32)> {
        let (class, to_class) = (self.class(edge.table, rows[0].0), self.class(edge.to, rows[0].1));
        let n_persons = self.rows_of_spot[class as usize].len();
        let rows_each = self.rows_of_spot[edge.from_spot as usize].len() / n_persons;
        let is_used = self.is_used.contains(&class);
        // Marking some rows of a spot divides the spot, and a class with references can't be divided.
        if class == to_class || (is_used && rows_each > 1) {
            return Vec::new();
        }
        let mut sizes: Vec<usize> = self.bundles(edge, rows).iter().map(|bundle| bundle.rows.len()).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let mut best: Option<Taken> = None;
        for size in sizes.into_iter().rev() {
            let Some(taken) = self.balanced(edge, class, self.bundles(edge, rows), size) else { continue };
            if best.as_ref().is_none_or(|best| best.bundles.len() * best.size < taken.bundles.len() * size) {
                best = Some(taken);
            }
        }
        let Some(taken) = best else { return Vec::new() };
        let mut kept = Vec::new();
        for bundle in &taken.bundles {
            kept.extend(bundle.rows[..taken.size].iter().map(|&row| (row, bundle.target)));
            let (a, b) = (self.node(edge.table, bundle.person), self.node_of_target(edge, bundle.target));
            let (a, b) = (self.root_of(a), self.root_of(b));
            self.connected[a as usize] = b;
        }
        let marked: BTreeSet<u32> = kept.iter().map(|&(row, _)| row).collect();
        let persons: Vec<u32> = taken.bundles.iter().map(|bundle| bundle.person).collect();
        self.is_used.insert(to_class);
        let class = if persons.len() < n_persons || rows_each > 1 { self.part(edge, &persons, &marked) } else { class };
        self.is_used.insert(class);
        kept
    }

    /// The references in bundles: those of one person from the rows below one row to one target. Persons are in the
    /// order of their keys.
    fn bundles(&self, edge: Edge, rows: &[(u32, u32)]) -> Vec<Bundle> {
        let (plan, kind) = self.place[edge.table];
        let layer = &self.planned[plan].shown.layers[kind];
        let mut bundles: BTreeMap<(u32, u32, u32), Vec<u32>> = BTreeMap::new();
        for &(row, target) in rows {
            let person = self.person(edge.table, row);
            bundles.entry((person, layer.parents[row as usize], target)).or_default().push(row);
        }
        let content =
            |row: u32| -> Vec<u32> { self.contents[edge.table].iter().map(|ranks| ranks[row as usize]).collect() };
        let mut bundles: Vec<Bundle> = bundles
            .into_iter()
            .map(|((person, _, target), mut rows)| {
                rows.sort_by_cached_key(|&row| content(row));
                Bundle { person, target, rows }
            })
            .collect();
        bundles.sort_by_cached_key(|bundle| {
            let contents: Vec<Vec<u32>> = bundle.rows.iter().map(|&row| content(row)).collect();
            (self.ranks[plan][bundle.person as usize], bundle.person, contents)
        });
        bundles
    }

    /// Finds as many bundles of a size as possible, so that every row of the spot they lead to gets the same number,
    /// each person keeps at most one, no two persons are connected twice, and both parts of the class satisfy the
    /// rules.
    fn balanced(&self, edge: Edge, class: u32, bundles: Vec<Bundle>, size: usize) -> Option<Taken> {
        let targets = &self.rows_of_spot[edge.to_spot as usize];
        let mut waiting: BTreeMap<u32, Vec<Bundle>> = BTreeMap::new();
        for bundle in bundles.into_iter().filter(|bundle| bundle.rows.len() >= size) {
            waiting.entry(bundle.target).or_default().push(bundle);
        }
        if waiting.len() < targets.len() {
            return None;
        }
        // Bundles are taken from the end, and targets with few bundles choose first.
        waiting.values_mut().for_each(|bundles| bundles.reverse());
        let mut by_choice: Vec<u32> = targets.clone();
        let (to_plan, _) = self.place[edge.to];
        let rank = |row: u32| {
            let person = self.person(edge.to, row);
            (self.ranks[to_plan][person as usize], row)
        };
        by_choice.sort_by_key(|target| (waiting[target].len(), rank(*target)));
        let mut joined: BTreeMap<u32, u32> = BTreeMap::new();
        let mut taken: Vec<Bundle> = Vec::new();
        let mut is_taken: BTreeSet<u32> = BTreeSet::new();
        'rounds: loop {
            let mut round: Vec<Bundle> = Vec::with_capacity(targets.len());
            for target in &by_choice {
                let mut to_root = self.root_of(self.node_of_target(edge, *target));
                while let Some(&next) = joined.get(&to_root) {
                    to_root = next;
                }
                let found = waiting.get_mut(target).and_then(|waiting| {
                    while let Some(bundle) = waiting.pop() {
                        let mut root = self.root_of(self.node(edge.table, bundle.person));
                        while let Some(&next) = joined.get(&root) {
                            root = next;
                        }
                        if !is_taken.contains(&bundle.person) && root != to_root {
                            return Some((bundle, root));
                        }
                    }
                    None
                });
                let Some((bundle, root)) = found else { break 'rounds };
                joined.insert(root, to_root);
                is_taken.insert(bundle.person);
                round.push(bundle);
            }
            taken.append(&mut round);
        }
        while !taken.is_empty() {
            let keeps: BTreeSet<u32> = taken.iter().map(|bundle| bundle.person).collect();
            let (kept, rest): (Vec<u32>, Vec<u32>) =
                self.rows_of_spot[class as usize].iter().copied().partition(|person| keeps.contains(person));
            let marked = taken.iter().flat_map(|bundle| &bundle.rows[..size]).copied().collect();
            let part = |persons: &[u32], marked: &BTreeSet<u32>| self.may_stand(edge, persons, marked);
            let is_whole = rest.is_empty() || (!self.is_used.contains(&class) && part(&rest, &BTreeSet::new()));
            if is_whole && part(&kept, &marked) {
                return Some(Taken { bundles: taken, size });
            }
            taken.truncate(taken.len() - targets.len());
        }
        None
    }

    /// Whether persons may be a class when these of their rows keep references.
    fn may_stand(&self, edge: Edge, persons: &[u32], marked: &BTreeSet<u32>) -> bool {
        let (plan, _) = self.place[edge.table];
        let of_plan = &self.planned[plan];
        let needed = persons.iter().map(|&person| of_plan.needed.k_of_row(person)).max().unwrap_or(0);
        if (persons.len() as u64) < u64::from(needed) {
            return false;
        }
        let judge = &self.judges[plan];
        if judge.weight_suffices() {
            return true;
        }
        let mut asker = Asker::new(judge);
        let spots = self.spots_when_marked(edge, persons, marked);
        spots.into_iter().enumerate().all(|(kind, spots)| spots.into_values().all(|rows| asker.rows_stand(kind, &rows)))
    }

    /// The rows of these persons by table and spot, where spots are parted by which rows keep references, in the row
    /// itself, below it or beside it.
    fn spots_when_marked(
        &self,
        edge: Edge,
        persons: &[u32],
        marked: &BTreeSet<u32>,
    ) -> Vec<BTreeMap<(u32, bool, u32), Vec<u32>>> {
        let (plan, marked_kind) = self.place[edge.table];
        let of_plan = &self.planned[plan];
        let kinds = &of_plan.grove.kinds;
        // A row is marked if a row below it is.
        let mut is_marked: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); kinds.len()];
        is_marked[marked_kind].clone_from(marked);
        let mut kind = marked_kind;
        while let Some(parent) = kinds[kind].parent {
            let above = is_marked[kind].iter().map(|&row| of_plan.shown.layers[kind].parents[row as usize]).collect();
            is_marked[parent] = above;
            kind = parent;
        }
        let mut spots: Vec<BTreeMap<(u32, bool, u32), Vec<u32>>> = Vec::with_capacity(kinds.len());
        let mut number: Vec<BTreeMap<u32, u32>> = Vec::with_capacity(kinds.len());
        for (kind, of_kind) in kinds.iter().enumerate() {
            let mut of_rows: BTreeMap<(u32, bool, u32), Vec<u32>> = BTreeMap::new();
            for person in persons {
                for &row in self.rows_of_person[of_kind.table].get(person).into_iter().flatten() {
                    let above = of_kind
                        .parent
                        .map_or(0, |parent| number[parent][&of_plan.shown.layers[kind].parents[row as usize]]);
                    let key = (self.spot[of_kind.table][row as usize], is_marked[kind].contains(&row), above);
                    of_rows.entry(key).or_default().push(row);
                }
            }
            let mut numbers = BTreeMap::new();
            for (position, rows) in (0..).zip(of_rows.values()) {
                numbers.extend(rows.iter().map(|&row| (row, position)));
            }
            number.push(numbers);
            spots.push(of_rows);
        }
        spots
    }

    /// Gives these persons a class of their own, with spots by which of their rows keep references, and returns it.
    fn part(&mut self, edge: Edge, persons: &[u32], marked: &BTreeSet<u32>) -> u32 {
        let (plan, _) = self.place[edge.table];
        let spots = self.spots_when_marked(edge, persons, marked);
        let mut class = 0;
        let planned = self.planned;
        for (kind, of_kind) in planned[plan].grove.kinds.iter().enumerate() {
            let mut left: BTreeSet<u32> = BTreeSet::new();
            for rows in spots[kind].values() {
                let new = self.rows_of_spot.len() as u32;
                for &row in rows {
                    left.insert(std::mem::replace(&mut self.spot[of_kind.table][row as usize], new));
                }
                self.rows_of_spot.push(rows.clone());
                class = if kind == 0 { new } else { class };
            }
            for old in left {
                let spot = &self.spot[of_kind.table];
                self.rows_of_spot[old as usize].retain(|&row| spot[row as usize] == old);
            }
        }
        class
    }

    /// A person among those of all plans.
    fn node(&self, table: usize, person: u32) -> u32 {
        self.first_person[self.place[table].0] + person
    }

    fn node_of_target(&self, edge: Edge, target: u32) -> u32 {
        self.node(edge.to, self.person(edge.to, target))
    }

    /// The person who represents everybody connected with a person.
    fn root_of(&self, person: u32) -> u32 {
        let mut root = person;
        while self.connected[root as usize] != root {
            root = self.connected[root as usize];
        }
        root
    }
}
