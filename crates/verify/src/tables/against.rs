//! [`verify_tables_against`]: whether released tables can have come from private ones, if nothing says which row came
//! from which.
//!
//! # Guarantee
//! Every released person can be given an origin: a private person of their own, such that every released row has a
//! private row at the same place in that person's tree whose quasi cells it covers and whose sensitive and plain cells
//! it equals. With these origins, everybody is in a class of at least their own k. As many rows and persons are left
//! over as the release states, and no more persons, nor rows of a child table, than the limits allow. Every requirement
//! holds.
//!
//! The search is exact: it finds origins if they exist, unless [`Violation::TooManyOrigins`] says that too many pairs
//! of persons would have to be compared. Rows are joined by their keys. Keys that are kept are also compared like plain
//! cells. References are part of what persons look like, but the search does not show that they lead to the same rows
//! as before, so they are reported as skipped.
//! # Cost
//! Persons with equal trees are folded, and so are private values that are covered by the same labels. A released
//! person is compared only with private persons who have a row in the box of each of its most selective rows (`index`),
//! and only until enough are found (`matching`). So even if no column tells persons apart, not all pairs are compared.

use std::collections::BTreeMap;

use kohort_model::spec::Keys;
use kohort_model::{NULL, Requirement, Schema, Table};
use rayon::prelude::*;

use super::alone::{check_tables, join_read};
use super::count::{CountedColumns, count_tables};
use super::embedding::{Decided, Embedding, FitCells, Trees};
use super::forest::Forest;
use super::index::Index;
use super::lineage::Lineage;
use super::matching::Matching;
use super::shape::{ReleasedLink, Shape, same_count};
use super::symmetry;
use crate::count::cells::CellIds;
use crate::count::grouping::Classes;
use crate::count::loss::{LossSums, PersonSums};
use crate::count::roll::OwnK;
use crate::limit::too_many_rows_left_out;
use crate::reading::coverage::{Coverage, Runs};
use crate::single::against::{Pairs, concatenated, narrow};
use crate::structure::{check_table, other_name};
use crate::{Findings, Skipped, Suppressed, SuppressionLimit, Violation, Violations};

/// How many pairs of a released and a private person are compared at most.
const MAX_PAIRS: u64 = 1 << 28;

/// The private tables that released ones are compared with, and what the release states. All lists have one entry per
/// table, in the same order.
#[derive(Clone, Copy, Debug)]
pub struct TablesAgainst<'a> {
    /// The private tables.
    pub originals: &'a [Table],
    /// How the private tables are linked.
    pub schema: &'a Schema,
    /// The requirements of each table.
    pub requirements: &'a [Vec<Requirement>],
    /// The rows that the release states to have left out of each table; persons count in person tables only.
    pub suppressed: &'a [Suppressed],
    /// How many persons of each person table may be left out.
    pub limit: SuppressionLimit,
    /// Whether the released keys are those of the private tables.
    pub keys: Keys,
}

/// Verifies released tables against the private tables they are said to come from.
///
/// # Errors
/// Everything that is wrong with the released tables.
pub fn verify_tables_against(released: &[Table], against: &TablesAgainst<'_>) -> Result<Findings, Violations> {
    let TablesAgainst { originals, schema, requirements, suppressed, limit, keys } = *against;
    same_count("the release", released.len(), originals.len()).map_err(Violations)?;
    same_count("the requirements", requirements.len(), originals.len()).map_err(Violations)?;
    same_count("the counts of suppressed rows", suppressed.len(), originals.len()).map_err(Violations)?;
    let private_shape = Shape::of_schema(schema, originals).map_err(Violations)?;
    let mut violations = check_tables(released, &private_shape);
    let mut pairs = Vec::with_capacity(released.len());
    for (table, (public, original)) in released.iter().zip(originals).enumerate() {
        violations.extend(other_name(&public.name, &original.name));
        let mut found = check_table(original);
        let keys = private_shape.keys(schema, originals, table);
        pairs.push(Pairs::new(public, original, &keys, &mut found));
        violations.extend(found.into_iter().map(|violation| violation.in_table(&original.name)));
    }
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    let shape = Shape::of_links(&ReleasedLink::of(schema, originals), released).map_err(Violations)?;
    let lineage = Lineage::of(&private_shape, schema, originals).map_err(Violations)?;
    let forest = join_read(released, &shape).map_err(Violations)?;
    let own_ks = lineage.own_ks(&shape, originals, requirements, &mut violations);
    let mut rolls = Vec::with_capacity(released.len());
    for (table, (public, pairs)) in released.iter().zip(&pairs).enumerate() {
        let quasi = pairs.quasi.iter().map(|(public, _)| CellIds::by_text(&public.ids, &public.texts)).collect();
        let columns = CountedColumns { quasi, copied: pairs.copied.clone(), rows: None };
        rolls.push(columns.roll(public, &shape.of(table), &requirements[table], &mut violations));
    }
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    let mut findings = count_tables(&shape, &forest, rolls)?;
    violations.append(&mut findings.unmet);
    for (table, (public, original)) in released.iter().zip(originals).enumerate() {
        let counted = original.n_rows.saturating_sub(public.n_rows) as u64;
        let mut admitted = vec![("rows", suppressed[table].rows)];
        if shape.is_of_persons(table) {
            admitted.push(("persons", suppressed[table].persons));
            let exceeded = limit.exceeded(counted, original.n_rows as u64);
            violations.extend(exceeded.map(|violation| violation.in_table(&public.name)));
        } else if let Some(share) = schema.tables[table].max_rows_left_out {
            let exceeded = too_many_rows_left_out(counted, original.n_rows as u64, share);
            violations.extend(exceeded.map(|violation| violation.in_table(&public.name)));
        }
        let wrong = admitted.into_iter().filter(|&(_, admitted)| admitted != counted);
        let wrong = wrong.map(|(what, admitted)| Violation::SuppressedMiscounted { what, admitted, counted });
        violations.extend(wrong.map(|violation| violation.in_table(&public.name)));
        findings.tables[table].suppressed = Some(suppressed[table]);
    }
    let sides = TableSides { shape: &shape, forest: &forest, released, originals, pairs: &pairs, keys };
    let sizes = sides.class_sizes();
    violations.extend(sides.without_origin(&lineage, &own_ks, &sizes));
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    if shape.has_references() {
        findings.skipped.push(Skipped::References);
    }
    let sum = |of: fn(&Suppressed) -> u64| suppressed.iter().map(of).sum();
    let persons = (0..released.len()).filter(|&table| shape.is_of_persons(table));
    let persons = persons.map(|table| suppressed[table].persons).sum();
    findings.suppressed = Some(Suppressed { rows: sum(|suppressed| suppressed.rows), persons });
    sides.count_loss(requirements, &own_ks, &sizes, &mut findings);
    Ok(findings)
}

/// The released and the private tables.
pub(crate) struct TableSides<'a> {
    pub(crate) shape: &'a Shape,
    forest: &'a Forest,
    released: &'a [Table],
    originals: &'a [Table],
    pairs: &'a [Pairs<'a>],
    /// Whether the released keys are those of the private tables.
    keys: Keys,
}

/// The private rows that belong to a person.
pub(crate) struct PrivateRows {
    /// The rows of each table.
    pub(crate) rows: Vec<Vec<u32>>,
    pub(crate) forest: Forest,
}

impl PrivateRows {
    fn of(shape: &Shape, lineage: &Lineage) -> PrivateRows {
        let n_tables = shape.n_tables();
        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); n_tables];
        let mut positions: Vec<Vec<u32>> = vec![Vec::new(); n_tables];
        let mut parents: Vec<Vec<u32>> = vec![Vec::new(); n_tables];
        for &table in &shape.top_down {
            positions[table] = vec![NULL; lineage.persons[table].len()];
            for (row, &person) in (0..).zip(&lineage.persons[table]) {
                if person != NULL {
                    positions[table][row as usize] = rows[table].len() as u32;
                    rows[table].push(row);
                }
            }
            if let Some(link) = shape.link(table) {
                let parent = |&row: &u32| positions[link.parent][lineage.parents[table][row as usize] as usize];
                parents[table] = rows[table].iter().map(parent).collect();
            }
        }
        let n_rows = rows.iter().map(Vec::len).collect();
        PrivateRows { rows, forest: Forest { n_rows, parents, targets: vec![Vec::new(); n_tables] } }
    }
}

impl<'a> TableSides<'a> {
    /// Released persons who lack an origin, however origins are assigned, as one violation per person table.
    fn without_origin(&self, lineage: &Lineage, own_ks: &[Vec<OwnK>], sizes: &[Vec<u32>]) -> Vec<Violation> {
        let cells = self.cells();
        let private = PrivateRows::of(self.shape, lineage);
        let released_looks = self.released_looks(&cells);
        let private_looks = self.private_looks(&cells, &private, own_ks);
        let released_trees = Trees::fold(self.shape, self.forest, &released_looks, |_, row| row);
        let private_trees =
            Trees::fold(self.shape, &private.forest, &private_looks, |table, row| private.rows[table][row as usize]);
        let embedding =
            Embedding { shape: self.shape, released: &released_trees, private: &private_trees, cells: &cells };
        let index = Index::new(self, &cells, &private, &released_trees, &private_looks);
        let mut violations = Vec::new();
        for root in (0..self.shape.n_tables()).filter(|&table| self.shape.is_of_persons(table)) {
            let wishes = |look: u32| {
                let person = private_trees.row(root, look);
                own_ks[root].iter().map(|own_k| own_k.of_person(person)).max().unwrap_or(0)
            };
            let mut decided = Decided::new();
            let fits = |look: u32, other: u32| {
                let row = released_trees.row(root, look);
                u64::from(sizes[root][row]) >= wishes(other) && embedding.fits(root, look, other, &mut decided)
            };
            let n_of = |looks: &Classes| (0..looks.len()).map(|look| looks.rows(look).len() as u32).collect();
            let candidates = index.candidates(self.shape, root);
            let matching = Matching::new(candidates, n_of(&released_looks[root]), n_of(&private_looks[root]));
            let violation = match matching.lacking(fits, MAX_PAIRS) {
                None => Some(Violation::TooManyOrigins { limit: MAX_PAIRS }),
                Some(lacking) => {
                    let lacking = || (0..).zip(&lacking).filter(|(_, lacking)| **lacking > 0);
                    let n = lacking().map(|(_, &lacking)| u64::from(lacking)).sum();
                    let first_row = lacking().map(|(look, _)| u64::from(released_looks[root].rows(look)[0]) + 1).min();
                    first_row.map(|first_row| Violation::PersonWithoutOrigin { n, first_row })
                }
            };
            violations.extend(violation.map(|violation| violation.in_table(&self.released[root].name)));
        }
        violations
    }

    /// Adds the loss of each table and of all tables together.
    fn count_loss(
        &self,
        requirements: &[Vec<Requirement>],
        own_ks: &[Vec<OwnK>],
        sizes: &[Vec<u32>],
        findings: &mut Findings,
    ) {
        let n_tables = self.released.len();
        let of_rows = |table: usize| {
            LossSums::of(&self.pairs[table].quasi, self.released[table].n_rows, self.originals[table].n_rows)
        };
        let sums: Vec<LossSums> = (0..n_tables).map(of_rows).collect();
        let of_persons = |root: usize| {
            let n_persons = self.originals[root].n_rows;
            let left_out = (n_persons - sizes[root].len()) as u64;
            let k = requirements[root].iter().filter_map(Requirement::k).max().map_or(1, u64::from);
            let needed = |person: usize| own_ks[root].iter().map(|own_k| own_k.of_person(person)).fold(k, u64::max);
            let needed = match own_ks[root].is_empty() {
                true => Some(sizes[root].len() as u64 * k),
                // Anybody may be the one who is left out, so the k that the others need is known only if nobody is left
                // out.
                false => (left_out == 0).then(|| (0..n_persons).map(needed).sum()),
            };
            PersonSums::of(classes_of_sizes(&sizes[root]), left_out, n_persons as u64, needed)
        };
        let persons: Vec<Option<PersonSums>> =
            (0..n_tables).map(|table| self.shape.is_of_persons(table).then(|| of_persons(table))).collect();
        for (table, sums) in sums.iter().enumerate() {
            let of_root = persons[self.shape.root(table)].map(|sums| PersonSums::together(&[sums]));
            findings.tables[table].loss = Some(sums.alone(of_root));
        }
        let named: Vec<(&str, &LossSums)> = self.released.iter().map(|table| table.name.as_str()).zip(&sums).collect();
        let of_all = PersonSums::together(&persons.into_iter().flatten().collect::<Vec<_>>());
        findings.loss = Some(LossSums::together(&named, Some(of_all)));
    }

    /// For each table, the cells that decide which rows fit.
    fn cells(&self) -> Vec<FitCells<'_>> {
        let of_table = |table: usize| {
            let Pairs { quasi, copied, keys } = &self.pairs[table];
            let kept = match self.keys {
                Keys::Surrogate => &[],
                Keys::Keep => keys.as_slice(),
            };
            let quasi = quasi.par_iter().map(|&(public, private)| {
                (Runs::new(&Coverage::new(private, &public.texts)).coarse(), public, private)
            });
            let copied: Vec<CellIds<'_>> =
                copied.par_iter().chain(kept).map(|(public, private)| concatenated(public, private)).collect();
            let n_released = self.released[table].n_rows;
            let both = Classes::group(&copied.iter().collect::<Vec<_>>(), n_released + self.originals[table].n_rows);
            let mut released = both.class_of_rows();
            let private = released.split_off(n_released);
            FitCells { quasi: quasi.collect(), released, private }
        };
        (0..self.released.len()).map(of_table).collect()
    }

    /// The released quasi cells of a table.
    fn quasi(&self, table: usize) -> Vec<CellIds<'a>> {
        self.pairs[table].quasi.iter().map(|&(public, _)| CellIds::by_text(&public.ids, &public.texts)).collect()
    }

    /// Released rows, grouped by everything that decides which private rows they fit.
    fn released_looks(&self, cells: &[FitCells<'_>]) -> Vec<Classes> {
        let of_table = |table: usize| {
            let groups = &cells[table].released;
            let n_groups = groups.iter().max().map_or(0, |&group| group as usize + 1);
            let mut columns = self.quasi(table);
            columns.push(CellIds::by_id(groups.clone(), n_groups));
            columns
        };
        looks(self.shape, self.forest, &(0..self.released.len()).map(of_table).collect::<Vec<_>>())
    }

    /// Private rows, grouped by everything that decides which released rows fit them.
    fn private_looks(&self, cells: &[FitCells<'_>], private: &PrivateRows, own_ks: &[Vec<OwnK>]) -> Vec<Classes> {
        let of_table = |table: usize| -> Vec<CellIds<'_>> {
            let rows = private.rows[table].as_slice();
            let by_number = |numbers: Vec<u32>| {
                let n = numbers.iter().max().map_or(0, |&most| most as usize + 1);
                CellIds::by_id(numbers, n)
            };
            let copied = rows.iter().map(|&row| cells[table].private[row as usize]).collect();
            let cells = cells[table].quasi.iter().map(|(runs, _, column)| {
                by_number(rows.iter().map(|&row| runs.position(column.ids[row as usize])).collect())
            });
            let cells = cells.chain(std::iter::once(by_number(copied)));
            let wishes = own_ks[table].iter().map(|own_k| {
                let wishes: Vec<u32> = rows.iter().map(|&row| narrow(own_k.of_person(row as usize))).collect();
                CellIds::by_id(wishes, u32::MAX as usize)
            });
            cells.chain(wishes).collect()
        };
        looks(self.shape, &private.forest, &(0..self.originals.len()).map(of_table).collect::<Vec<_>>())
    }

    /// For each person table and released person, the number of persons who look the same.
    fn class_sizes(&self) -> Vec<Vec<u32>> {
        let columns: Vec<Vec<CellIds<'_>>> = (0..self.released.len()).map(|table| self.quasi(table)).collect();
        let looks = match self.shape.has_references() {
            false => looks(self.shape, self.forest, &columns),
            true => {
                let cells: Vec<Vec<&CellIds<'_>>> = columns.iter().map(|columns| columns.iter().collect()).collect();
                let orbits = symmetry::orbits(self.shape, self.forest, &cells, |_, _| Default::default());
                orbits.expect("count_tables refused circles")
            }
        };
        let sizes = |classes: &Classes| {
            classes.class_of_rows().iter().map(|&class| classes.rows(class as usize).len() as u32).collect()
        };
        let of_table = |table: usize| {
            if self.shape.is_of_persons(table) { sizes(&looks[table]) } else { Vec::new() }
        };
        (0..self.shape.n_tables()).map(of_table).collect()
    }
}

/// The sizes of all classes, given the size of the class of each person.
fn classes_of_sizes(sizes: &[u32]) -> impl Iterator<Item = u64> {
    let mut n_of_size: BTreeMap<u32, usize> = BTreeMap::new();
    sizes.iter().for_each(|&size| *n_of_size.entry(size).or_default() += 1);
    let classes = n_of_size.into_iter();
    classes.flat_map(|(size, n_persons)| std::iter::repeat_n(u64::from(size), n_persons / size as usize))
}

/// The rows of each table, grouped by look.
fn looks(shape: &Shape, forest: &Forest, cells: &[Vec<CellIds<'_>>]) -> Vec<Classes> {
    let cells: Vec<Vec<&CellIds<'_>>> = cells.iter().map(|columns| columns.iter().collect()).collect();
    forest.looks(shape, &cells)
}

#[cfg(test)]
mod tests;
