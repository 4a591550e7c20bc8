//! [`verify_tables`]: whether a release of many tables is true and satisfies what was asked.
//!
//! # Guarantee
//! Everything that [`crate::verify_release`] shows of one table, of each; every released row joins with exactly one
//! released row of its parent table, the one it hung off before; nothing of a row that is left out is released, nor of
//! what hung off it; no more persons of a table are left out than is asked; every orbit satisfies every requirement.
//!
//! Released keys tell released rows apart, so what depended on a key still does.

use kohort_model::{Cells, NULL, Release, ReleasedTable, Requirement, Schema, Table};
use rayon::prelude::*;

use super::alone::reference_names;
use super::count::{TableRoll, count_tables, counted_here, roll_of_rows};
use super::forest::Forest;
use super::keys::KeyCells;
use super::lineage::{Lineage, of_released};
use super::shape::{Reference, Shape, same_count};
use crate::count::cells::CellIds;
use crate::count::roll::{OwnK, Sensitive};
use crate::single::recoding::{KeyColumns, cells, columns, source_rows};
use crate::structure::{check_table, place};
use crate::{Findings, Suppressed, SuppressionLimit, Verified, Violation, Violations};

/// Verifies a release of many tables against the private tables it was made from. Tables, their schema and
/// `requirements`, those of each table, are in one order.
///
/// # Errors
/// Everything that is wrong with it.
pub fn verify_tables(
    release: Release,
    originals: &[Table],
    schema: &Schema,
    requirements: &[Vec<Requirement>],
    limit: SuppressionLimit,
) -> Result<Verified<Release>, Violations> {
    let tables = release.tables.as_slice();
    same_count("the release", tables.len(), originals.len()).map_err(Violations)?;
    same_count("the requirements", requirements.len(), originals.len()).map_err(Violations)?;
    let shape = Shape::of_schema(schema, originals).map_err(Violations)?;
    let keys: Vec<KeyColumns> = (0..tables.len()).map(|table| shape.keys(schema, originals, table)).collect();
    let mut violations = Vec::new();
    for (table, (released, original)) in tables.iter().zip(originals).enumerate() {
        if released.name != original.name {
            let (table, released) = (original.name.clone(), released.name.clone());
            violations.push(Violation::TableName { table, released });
        }
        let mut found = check_table(original);
        if !released.rows.is_empty() || shape.is_of_persons(table) {
            found.extend(source_rows(&released.rows, original));
        }
        found.extend(columns(released, original, &keys[table]));
        violations.extend(found.into_iter().map(|violation| violation.in_table(&original.name)));
    }
    // Beyond this point cells are looked up, so everything must point somewhere.
    if !violations.is_empty() {
        return Err(Violations(violations));
    }
    for (table, (released, original)) in tables.iter().zip(originals).enumerate() {
        let cells =
            released.columns.par_iter().filter_map(|column| cells(column, &released.rows, original, &keys[table]));
        violations.extend(cells.map(|violation| violation.in_table(&original.name)).collect::<Vec<_>>());
    }
    let lineage = match Lineage::of(&shape, schema, originals) {
        Ok(lineage) => lineage,
        Err(more) => {
            violations.extend(more);
            return Err(Violations(violations));
        }
    };
    let forest = match joined(tables, originals, &shape, &lineage) {
        Ok(forest) => forest,
        Err(more) => {
            violations.extend(more);
            return Err(Violations(violations));
        }
    };
    let own_ks = lineage.own_ks(&shape, originals, requirements, &mut violations);
    let rolls = rolls(tables, originals, &shape, &own_ks, requirements, &mut violations);
    // A requirement that names no column can't be counted.
    if violations.iter().any(cannot_be_counted) {
        return Err(Violations(violations));
    }
    match count_tables(&shape, &forest, rolls) {
        Err(Violations(more)) => violations.extend(more),
        Ok(mut findings) => {
            violations.append(&mut findings.unmet);
            note_suppressed(&mut findings, tables, originals, &shape);
            violations.extend(beyond_limit(&findings, originals, &shape, limit));
            if violations.is_empty() {
                note_removed(&mut findings, tables, &forest, &lineage);
                return Ok(Verified::attest(release, findings));
            }
        }
    }
    Err(Violations(violations))
}

fn cannot_be_counted(violation: &Violation) -> bool {
    match violation {
        Violation::InTable { violation, .. } => cannot_be_counted(violation),
        Violation::UnknownColumn { .. } | Violation::OwnKUnreadable { .. } => true,
        _ => false,
    }
}

/// The released rows as trees, by their released keys.
///
/// # Errors
/// Keys that do not tell rows apart, rows that join with nothing or with what is not theirs.
fn joined(
    tables: &[ReleasedTable],
    originals: &[Table],
    shape: &Shape,
    lineage: &Lineage,
) -> Result<Forest, Vec<Violation>> {
    let mut violations = Vec::new();
    let mut parents: Vec<Vec<u32>> = vec![Vec::new(); tables.len()];
    for &table in &shape.top_down {
        let (released, original) = (&tables[table], &originals[table]);
        let column = |table: usize, column: usize| originals[table].columns[column].name.clone();
        if let Some(key) = shape.key(table)
            && let Some((n, first_row)) = KeyCells::of_release(released, key, original).and_then(|keys| keys.unusable())
        {
            let violation = Violation::ReleasedKeys { column: column(table, key), n, first_row };
            violations.push(violation.in_table(&original.name));
        }
        let Some(link) = shape.link(table) else { continue };
        let foreign_keys = KeyCells::of_release(released, link.foreign_key, original);
        let keys = KeyCells::of_release(&tables[link.parent], link.key, &originals[link.parent]);
        // What is not released as a key joins with nothing.
        let met = match (foreign_keys, keys) {
            (Some(foreign_keys), Some(keys)) => foreign_keys.join(&keys),
            _ => vec![NULL; released.rows.len()],
        };
        let mut row_of_source = vec![NULL; originals[link.parent].n_rows];
        for (row, &source) in (0..).zip(&tables[link.parent].rows) {
            row_of_source[source as usize] = row;
        }
        let fates: Vec<Fate> = released
            .rows
            .iter()
            .zip(&met)
            .map(|(&source, &met)| match lineage.parents[table][source as usize] {
                NULL => Fate::Orphan,
                parent if row_of_source[parent as usize] == NULL => Fate::OfSuppressed,
                _ if met == NULL => Fate::MeetsNothing,
                parent if row_of_source[parent as usize] != met => Fate::MeetsAnother,
                _ => Fate::MeetsParent,
            })
            .collect();
        let parent = || originals[link.parent].name.clone();
        let foreign_key = || column(table, link.foreign_key);
        let all = [Fate::Orphan, Fate::OfSuppressed, Fate::MeetsNothing, Fate::MeetsAnother];
        for wrong in all {
            let Some((n, first_row)) = place(fates.len(), |row| fates[row] == wrong) else { continue };
            let violation = match wrong {
                Fate::MeetsParent => continue,
                Fate::Orphan => Violation::OrphanReleased { parent: parent(), n, first_row },
                Fate::OfSuppressed => Violation::ParentSuppressed { parent: parent(), n, first_row },
                Fate::MeetsNothing => {
                    Violation::WithoutParent { column: foreign_key(), parent: parent(), n, first_row }
                }
                Fate::MeetsAnother => Violation::FalseParent { column: foreign_key(), parent: parent(), n, first_row },
            };
            violations.push(violation.in_table(&original.name));
        }
        parents[table] = met;
    }
    let mut targets = Vec::with_capacity(tables.len());
    for (table, (released, original)) in tables.iter().zip(originals).enumerate() {
        let mut of_table = Vec::new();
        for (reference, private) in shape.references(table).iter().zip(&lineage.targets[table]) {
            let (found, named) = referenced(reference, private, released, original, tables, originals);
            violations.extend(found.into_iter().map(|violation| violation.in_table(&original.name)));
            of_table.push(named);
        }
        targets.push(of_table);
    }
    let n_rows = tables.iter().map(|table| table.rows.len()).collect();
    if violations.is_empty() { Ok(Forest { n_rows, parents, targets }) } else { Err(violations) }
}

/// Per released row the released row it references, or [`NULL`], and what is wrong with that.
fn referenced(
    reference: &Reference,
    private: &[u32],
    released: &ReleasedTable,
    original: &Table,
    tables: &[ReleasedTable],
    originals: &[Table],
) -> (Vec<Violation>, Vec<u32>) {
    let (target, of_target) = (&tables[reference.table], &originals[reference.table]);
    let cells = KeyCells::of_release(released, reference.column, original);
    let keys = KeyCells::of_release(target, reference.key, of_target);
    let (Some(cells), Some(keys)) = (cells, keys) else { return (Vec::new(), vec![NULL; released.rows.len()]) };
    let named = cells.join(&keys);
    let (column, name) = (&original.columns[reference.column].name, &of_target.name);
    let mut violations = Vec::new();
    if let Some((n, first_row)) = place(named.len(), |row| named[row] == NULL && !cells.is_null(row)) {
        let (column, target) = (column.clone(), name.clone());
        violations.push(Violation::WithoutTarget { column, target, n, first_row });
    }
    let is_false =
        |row: usize| named[row] != NULL && target.rows[named[row] as usize] != private[released.rows[row] as usize];
    if let Some((n, first_row)) = place(named.len(), is_false) {
        let (column, target) = (column.clone(), name.clone());
        violations.push(Violation::FalseReference { column, target, n, first_row });
    }
    (violations, named)
}

/// What becomes of a released row when tables are joined.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    MeetsParent,
    Orphan,
    OfSuppressed,
    MeetsNothing,
    MeetsAnother,
}

/// The released rows, to be counted.
fn rolls<'a>(
    tables: &'a [ReleasedTable],
    originals: &'a [Table],
    shape: &Shape,
    own_ks: &[Vec<OwnK>],
    requirements: &[Vec<Requirement>],
    violations: &mut Vec<Violation>,
) -> Vec<TableRoll<'a>> {
    let roll = |(table, (released, original)): (usize, (&'a ReleasedTable, &'a Table))| {
        let (mut quasi, mut copied) = (Vec::new(), Vec::new());
        for column in &released.columns {
            let source = &original.columns[column.source];
            match &column.cells {
                Cells::Recoded { labels, ids } => quasi.push(CellIds::by_text(ids, labels)),
                Cells::Copied => copied.push((source, source)),
                Cells::Surrogate { .. } => {}
            }
        }
        let mut found = Vec::new();
        let mut asked = counted_here(&requirements[table], shape, table);
        let sensitive = Sensitive::measured(&copied, Some(&released.rows), &asked, &mut found);
        violations.extend(found.into_iter().map(|violation| violation.in_table(&original.name)));
        let mut roll = roll_of_rows(released.rows.len(), quasi, sensitive);
        for (requirement, own_k) in of_released(&own_ks[table], &released.rows) {
            asked.push(requirement);
            roll.own_k.push(own_k);
        }
        TableRoll {
            name: &original.name,
            roll,
            requirements: asked,
            references: reference_names(shape, original, table),
        }
    };
    tables.iter().zip(originals).enumerate().map(roll).collect()
}

/// References that private rows have and released ones don't.
fn note_removed(findings: &mut Findings, tables: &[ReleasedTable], forest: &Forest, lineage: &Lineage) {
    for (table, released) in tables.iter().enumerate() {
        for (position, found) in findings.tables[table].references.iter_mut().enumerate() {
            let (public, private) = (&forest.targets[table][position], &lineage.targets[table][position]);
            let rows = released.rows.iter().zip(public);
            let removed = rows.filter(|&(&source, &target)| target == NULL && private[source as usize] != NULL);
            found.removed = Some(removed.count() as u64);
        }
    }
}

/// Rows left out, and persons with them.
fn note_suppressed(findings: &mut Findings, tables: &[ReleasedTable], originals: &[Table], shape: &Shape) {
    let mut all = Suppressed::default();
    for (table, (released, original)) in tables.iter().zip(originals).enumerate() {
        let rows = (original.n_rows - released.rows.len()) as u64;
        let suppressed = Suppressed { rows, persons: if shape.is_of_persons(table) { rows } else { 0 } };
        all.rows += suppressed.rows;
        all.persons += suppressed.persons;
        findings.tables[table].suppressed = Some(suppressed);
    }
    findings.suppressed = Some(all);
}

/// Tables of persons of whom too many are left out; each row is one.
fn beyond_limit(findings: &Findings, originals: &[Table], shape: &Shape, limit: SuppressionLimit) -> Vec<Violation> {
    let of_table = |(table, original): (usize, &Table)| {
        let suppressed = findings.tables[table].suppressed.filter(|_| shape.is_of_persons(table))?;
        let violation = limit.exceeded(suppressed.persons, original.n_rows as u64)?;
        Some(violation.in_table(&original.name))
    };
    originals.iter().enumerate().filter_map(of_table).collect()
}

#[cfg(test)]
mod tests;
