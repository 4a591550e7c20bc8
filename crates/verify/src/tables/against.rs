//! [`verify_tables_against`]: whether released tables can have come from private ones, when nothing links the two.
//!
//! # Guarantee
//! There is a way to give every released person a private person of their own, and every released row of the one a row
//! of the other that hangs where it hung, whose quasi cells it covers and whose sensitive and plain cells it equals.
//! That way also puts everyone into a class of at least their own k. Rows and persons left over are as many as the
//! release admits. Every requirement holds.
//!
//! Exact: it is found wherever it exists, unless [`Violation::TooManyOrigins`] says that too many pairs of persons would
//! have to be compared. Keys are followed but not compared, for they may be renumbered.
//! # Cost
//! Persons with equal trees are one. A released person is compared with the private persons that share its rarest
//! row's copied cells, or with those in its own row's box, whichever are fewer; persons without either are compared
//! with all.

use std::sync::atomic::{AtomicU64, Ordering};

use kohort_model::{NULL, Requirement, Schema, Table};
use rayon::prelude::*;

use super::alone::{check_tables, join_read};
use super::count::{TableRoll, count_tables, counted_here, roll_of_rows};
use super::embedding::{Cells, Decided, Embedding, Trees};
use super::forest::Forest;
use super::lineage::Lineage;
use super::shape::{ReleasedLink, Shape, same_count};
use crate::against::{Pairs, joined, narrow};
use crate::assignment::Network;
use crate::candidates::PointTree;
use crate::cells::CellIds;
use crate::coverage::{Coverage, Runs};
use crate::grouping::Classes;
use crate::roll::{OwnK, Sensitive};
use crate::structure::check_table;
use crate::{Findings, Suppressed, Violation, Violations};

/// How many pairs of a released and a private person are compared.
const MAX_PAIRS: u64 = 1 << 26;

/// Fewer candidates than this are not looked for elsewhere.
const FEW: usize = 64;

/// Verifies released tables against the private tables they are said to come from, with as many rows and persons
/// suppressed in each as it admits. Persons count in person tables only.
///
/// # Errors
/// Everything that is wrong with them.
pub fn verify_tables_against(
    released: &[Table],
    originals: &[Table],
    schema: &Schema,
    requirements: &[Vec<Requirement>],
    suppressed: &[Suppressed],
) -> Result<Findings, Violations> {
    same_count("the release", released.len(), originals.len()).map_err(Violations)?;
    same_count("the requirements", requirements.len(), originals.len()).map_err(Violations)?;
    same_count("the counts of suppressed rows", suppressed.len(), originals.len()).map_err(Violations)?;
    let private_shape = Shape::of_schema(schema, originals).map_err(Violations)?;
    let mut violations = check_tables(released, &private_shape);
    let mut pairs = Vec::with_capacity(released.len());
    for (table, (public, original)) in released.iter().zip(originals).enumerate() {
        if public.name != original.name {
            violations.push(Violation::TableName { table: original.name.clone(), released: public.name.clone() });
        }
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
        let asked = counted_here(&requirements[table], &shape, table);
        let mut found = Vec::new();
        let sensitive = Sensitive::measured(&pairs.copied, None, &asked, &mut found);
        violations.extend(found.into_iter().map(|violation| violation.in_table(&public.name)));
        rolls.push(TableRoll {
            name: &public.name,
            roll: roll_of_rows(public.n_rows, quasi, sensitive),
            requirements: asked,
        });
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
        }
        let wrong = admitted.into_iter().filter(|&(_, admitted)| admitted != counted);
        let wrong = wrong.map(|(what, admitted)| Violation::SuppressedMiscounted { what, admitted, counted });
        violations.extend(wrong.map(|violation| violation.in_table(&public.name)));
        findings.tables[table].suppressed = Some(suppressed[table]);
    }
    let sides = Sides { shape: &shape, forest: &forest, released, originals, pairs: &pairs };
    violations.extend(sides.without_origin(&lineage, &own_ks));
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    let sum = |of: fn(&Suppressed) -> u64| suppressed.iter().map(of).sum();
    let persons = (0..released.len()).filter(|&table| shape.is_of_persons(table));
    let persons = persons.map(|table| suppressed[table].persons).sum();
    findings.suppressed = Some(Suppressed { rows: sum(|suppressed| suppressed.rows), persons });
    Ok(findings)
}

/// The released and the private tables.
struct Sides<'a> {
    shape: &'a Shape,
    forest: &'a Forest,
    released: &'a [Table],
    originals: &'a [Table],
    pairs: &'a [Pairs<'a>],
}

/// The private rows that lead to a person.
struct PrivateRows {
    /// Per table which rows they are.
    rows: Vec<Vec<u32>>,
    forest: Forest,
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
        PrivateRows { rows, forest: Forest { n_rows, parents } }
    }
}

impl<'a> Sides<'a> {
    /// Released persons that get no origin, however origins are handed out, per person table.
    fn without_origin(&self, lineage: &Lineage, own_ks: &[Vec<OwnK>]) -> Vec<Violation> {
        let cells = self.cells();
        let private = PrivateRows::of(self.shape, lineage);
        let released_looks = self.released_looks(&cells);
        let private_looks = self.private_looks(&private, own_ks);
        let released_trees = Trees::fold(self.shape, self.forest, &released_looks, |_, row| row);
        let private_trees =
            Trees::fold(self.shape, &private.forest, &private_looks, |table, row| private.rows[table][row as usize]);
        let embedding =
            Embedding { shape: self.shape, released: &released_trees, private: &private_trees, cells: &cells };
        let postings = Postings::of(self, &cells, &private, &released_looks, &private_looks);
        let sizes = self.class_sizes();
        let mut violations = Vec::new();
        for root in (0..self.shape.n_tables()).filter(|&table| self.shape.is_of_persons(table)) {
            let boxes = Boxes::of(root, &cells[root], &private_trees, private_looks[root].len());
            let wishes = |look: u32| {
                let person = private_trees.row(root, look);
                own_ks[root].iter().map(|own_k| own_k.of_person(person)).max().unwrap_or(0)
            };
            let n_pairs = AtomicU64::new(0);
            let candidates = |decided: &mut Decided, look: usize| -> Option<Vec<u32>> {
                let row = released_looks[root].rows(look)[0] as usize;
                let mut candidates = postings.rarest(root, look);
                if candidates.len() > FEW {
                    let in_box = boxes.candidates(&cells[root], row);
                    if in_box.len() < candidates.len() {
                        candidates = in_box;
                    }
                }
                let n = candidates.len() as u64;
                if n_pairs.fetch_add(n, Ordering::Relaxed) + n > MAX_PAIRS {
                    return None;
                }
                candidates.retain(|&other| {
                    u64::from(sizes[root][row]) >= wishes(other) && embedding.fits(root, look as u32, other, decided)
                });
                Some(candidates)
            };
            let found: Option<Vec<Vec<u32>>> =
                (0..released_looks[root].len()).into_par_iter().map_init(Decided::new, candidates).collect();
            let Some(found) = found else {
                violations.push(Violation::TooManyOrigins { limit: MAX_PAIRS });
                continue;
            };
            let lacking = assign(&found, &released_looks[root], &private_looks[root]);
            violations.extend(lacking.map(|violation| violation.in_table(&self.released[root].name)));
        }
        violations
    }

    /// Per table what its cells say about which rows fit.
    fn cells(&self) -> Vec<Cells<'_>> {
        let of_table = |table: usize| {
            let Pairs { quasi, copied } = &self.pairs[table];
            let quasi = quasi
                .par_iter()
                .map(|&(public, private)| (Runs::new(&Coverage::new(private, &public.texts)), public, private));
            let copied: Vec<CellIds<'_>> = copied.par_iter().map(|(public, private)| joined(public, private)).collect();
            let n_released = self.released[table].n_rows;
            let both = Classes::group(&copied.iter().collect::<Vec<_>>(), n_released + self.originals[table].n_rows);
            let mut released = both.class_of_rows();
            let private = released.split_off(n_released);
            Cells { quasi: quasi.collect(), released, private }
        };
        (0..self.released.len()).map(of_table).collect()
    }

    /// The released quasi cells of a table.
    fn quasi(&self, table: usize) -> Vec<CellIds<'a>> {
        self.pairs[table].quasi.iter().map(|&(public, _)| CellIds::by_text(&public.ids, &public.texts)).collect()
    }

    /// Released rows grouped by all that decides where they fit.
    fn released_looks(&self, cells: &[Cells<'_>]) -> Vec<Classes> {
        let of_table = |table: usize| {
            let groups = &cells[table].released;
            let n_groups = groups.iter().max().map_or(0, |&group| group as usize + 1);
            let mut columns = self.quasi(table);
            columns.push(CellIds::by_id(groups.clone(), n_groups));
            columns
        };
        looks(self.shape, self.forest, &(0..self.released.len()).map(of_table).collect::<Vec<_>>())
    }

    /// Private rows grouped by all that decides what fits them.
    fn private_looks(&self, private: &PrivateRows, own_ks: &[Vec<OwnK>]) -> Vec<Classes> {
        let of_table = |table: usize| -> Vec<CellIds<'_>> {
            let rows = private.rows[table].as_slice();
            let Pairs { quasi, copied } = &self.pairs[table];
            let cells = quasi
                .iter()
                .chain(copied)
                .map(|(_, column)| CellIds::by_id(column.ids.as_slice(), column.texts.len()).of_rows(Some(rows)));
            let wishes = own_ks[table].iter().map(|own_k| {
                let wishes: Vec<u32> = rows.iter().map(|&row| narrow(own_k.of_person(row as usize))).collect();
                CellIds::by_id(wishes, u32::MAX as usize)
            });
            cells.chain(wishes).collect()
        };
        looks(self.shape, &private.forest, &(0..self.originals.len()).map(of_table).collect::<Vec<_>>())
    }

    /// Per person table and released person the persons that look the same.
    fn class_sizes(&self) -> Vec<Vec<u32>> {
        let columns: Vec<Vec<CellIds<'_>>> = (0..self.released.len()).map(|table| self.quasi(table)).collect();
        let looks = looks(self.shape, self.forest, &columns);
        let sizes = |classes: &Classes| {
            classes.class_of_rows().iter().map(|&class| classes.rows(class as usize).len() as u32).collect()
        };
        let of_table = |table: usize| {
            if self.shape.is_of_persons(table) { sizes(&looks[table]) } else { Vec::new() }
        };
        (0..self.shape.n_tables()).map(of_table).collect()
    }
}

/// Per table its rows grouped by look.
fn looks(shape: &Shape, forest: &Forest, cells: &[Vec<CellIds<'_>>]) -> Vec<Classes> {
    let cells: Vec<Vec<&CellIds<'_>>> = cells.iter().map(|columns| columns.iter().collect()).collect();
    forest.looks(shape, &cells)
}

/// Hands out private persons to released ones that fit them.
fn assign(found: &[Vec<u32>], released: &Classes, private: &Classes) -> Option<Violation> {
    let mut starts = vec![0];
    starts.extend(found.iter().scan(0, |end, candidates| {
        *end += candidates.len();
        Some(*end)
    }));
    let sizes = |looks: &Classes| (0..looks.len()).map(|look| looks.rows(look).len() as u32).collect();
    let network = Network { starts, points: found.concat(), needs: sizes(released), supplies: sizes(private) };
    let (mut n, mut first_row) = (0, u64::MAX);
    for (look, lacking) in network.assign().into_iter().enumerate() {
        if lacking > 0 {
            n += u64::from(lacking);
            first_row = first_row.min(u64::from(released.rows(look)[0]) + 1);
        }
    }
    (n > 0).then_some(Violation::PersonWithoutOrigin { n, first_row })
}

/// Private persons by the copied cells of their rows.
struct Postings {
    /// Per table and group of equal copied cells the looks of private persons who have such a row, ascending.
    persons: Vec<Vec<Vec<u32>>>,
    /// Per person table and released look the table and group with the fewest persons.
    rarest: Vec<Vec<(u32, u32)>>,
}

impl Postings {
    fn of(
        sides: &Sides<'_>,
        cells: &[Cells<'_>],
        private: &PrivateRows,
        released_looks: &[Classes],
        private_looks: &[Classes],
    ) -> Postings {
        let shape = sides.shape;
        let persons_of_rows = private.forest.persons(shape);
        let persons: Vec<Vec<Vec<u32>>> = (0..shape.n_tables())
            .map(|table| {
                let look_of_person = private_looks[shape.root(table)].class_of_rows();
                let groups = cells[table].released.iter().chain(&cells[table].private).max();
                let mut persons: Vec<Vec<u32>> = vec![Vec::new(); groups.map_or(0, |&group| group as usize + 1)];
                for (&row, &person) in private.rows[table].iter().zip(&persons_of_rows[table]) {
                    persons[cells[table].private[row as usize] as usize].push(look_of_person[person as usize]);
                }
                persons.iter_mut().for_each(|persons| {
                    persons.sort_unstable();
                    persons.dedup();
                });
                persons
            })
            .collect();
        let mut rarest: Vec<Vec<(u32, u32)>> = vec![Vec::new(); shape.n_tables()];
        for root in (0..shape.n_tables()).filter(|&table| shape.is_of_persons(table)) {
            let group = |look: usize| cells[root].released[released_looks[root].rows(look)[0] as usize];
            rarest[root] = (0..released_looks[root].len()).map(|look| (root as u32, group(look))).collect();
        }
        for (table, of_rows) in sides.forest.persons(shape).iter().enumerate() {
            let root = shape.root(table);
            let look_of_person = released_looks[root].class_of_rows();
            for (&person, &group) in of_rows.iter().zip(&cells[table].released) {
                let best = &mut rarest[root][look_of_person[person as usize] as usize];
                let n = |&(table, group): &(u32, u32)| persons[table as usize][group as usize].len();
                if n(&(table as u32, group)) < n(best) {
                    *best = (table as u32, group);
                }
            }
        }
        Postings { persons, rarest }
    }

    /// The looks of private persons who share the rarest copied cells of a released one.
    fn rarest(&self, root: usize, look: usize) -> Vec<u32> {
        let (table, group) = self.rarest[root][look];
        self.persons[table as usize][group as usize].clone()
    }
}

/// Private persons by the quasi cells of their own row.
struct Boxes {
    tree: PointTree,
}

impl Boxes {
    fn of(root: usize, cells: &Cells<'_>, private: &Trees, n_looks: usize) -> Boxes {
        let mut coordinates = Vec::with_capacity(n_looks * cells.quasi.len());
        for look in 0..n_looks {
            let row = private.row(root, look as u32);
            coordinates.extend(cells.quasi.iter().map(|(runs, _, column)| runs.position(column.ids[row])));
        }
        Boxes { tree: PointTree::new(cells.quasi.len(), coordinates, n_looks) }
    }

    /// The looks of private persons whose own row is covered.
    fn candidates(&self, cells: &Cells<'_>, row: usize) -> Vec<u32> {
        let sides: Vec<(u32, u32)> = cells.quasi.iter().map(|(runs, public, _)| runs.run(public.ids[row])).collect();
        self.tree.within(&sides)
    }
}

#[cfg(test)]
mod tests;
