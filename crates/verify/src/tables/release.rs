//! [`verify_tables`]: whether a release of many tables is truthful and satisfies its requirements.
//!
//! # Guarantee
//! Each table satisfies everything that [`crate::verify_release`] checks for one table. Every released row joins with
//! exactly one released row of its parent table, which is its parent in the private tables. If a row is left out, so
//! are all rows below it. No table leaves out more persons, and no child table more rows, than its limit allows. Every
//! orbit satisfies every requirement.
//!
//! Released keys tell released rows apart, so columns that depend on a key still do.

use kohort_model::{Cells, NULL, Release, ReleasedTable, Requirement, Schema, Table};
use rayon::prelude::*;

use super::count::{CountedColumns, TableRoll, count_tables};
use super::forest::Forest;
use super::keys::KeyCells;
use super::lineage::Lineage;
use super::shape::{Reference, Shape, same_count};
use crate::count::cells::CellIds;
use crate::count::roll::OwnK;
use crate::limit::too_many_rows_left_out;
use crate::single::recoding::{KeyColumns, cells, columns, source_rows};
use crate::structure::{check_table, other_name, place};
use crate::{Findings, Suppressed, SuppressionLimit, Verified, Violation, Violations};

/// Verifies a release of many tables against the private tables it was made from. The released and private tables, the
/// schema and `requirements` have one entry per table, in the same order.
///
/// # Errors
/// Everything that is wrong with the release.
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
        violations.extend(other_name(&released.name, &original.name));
        let mut found = check_table(original);
        if !released.rows.is_empty() || shape.is_of_persons(table) {
            found.extend(source_rows(&released.rows, original));
        }
        found.extend(columns(released, original, &keys[table]));
        violations.extend(found.into_iter().map(|violation| violation.in_table(&original.name)));
    }
    // The checks below look cells up by position, so no cell may be missing.
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
    let recoded = RecodedTables { tables, originals, shape: &shape };
    let forest = match recoded.join(&lineage) {
        Ok(forest) => forest,
        Err(more) => {
            violations.extend(more);
            return Err(Violations(violations));
        }
    };
    let own_ks = lineage.own_ks(&shape, originals, requirements, &mut violations);
    let rolls = recoded.rolls(&own_ks, requirements, &mut violations);
    // Requirements that name an unknown or unreadable column can't be counted.
    if violations.iter().any(cannot_be_counted) {
        return Err(Violations(violations));
    }
    match count_tables(&shape, &forest, rolls) {
        Err(Violations(more)) => violations.extend(more),
        Ok(mut findings) => {
            violations.append(&mut findings.unmet);
            recoded.note_suppressed(&mut findings);
            violations.extend(recoded.beyond_limit(&findings, schema, limit));
            if violations.is_empty() {
                recoded.note_removed(&mut findings, &forest, &lineage);
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

/// Released tables, the private tables they come from, and how these are linked.
struct RecodedTables<'a> {
    tables: &'a [ReleasedTable],
    originals: &'a [Table],
    shape: &'a Shape,
}

impl<'a> RecodedTables<'a> {
    /// The released rows as trees, joined by their released keys.
    ///
    /// # Errors
    /// Keys that do not tell rows apart, and rows without a parent or with a wrong one.
    fn join(&self, lineage: &Lineage) -> Result<Forest, Vec<Violation>> {
        let RecodedTables { tables, originals, shape } = *self;
        let mut violations = Vec::new();
        let mut parents: Vec<Vec<u32>> = vec![Vec::new(); tables.len()];
        for &table in &shape.top_down {
            let (released, original) = (&tables[table], &originals[table]);
            let column = |table: usize, column: usize| originals[table].columns[column].name.clone();
            if let Some(key) = shape.key(table)
                && let Some((n, first_row)) =
                    KeyCells::of_release(released, key, original).and_then(|keys| keys.unusable())
            {
                let violation = Violation::ReleasedKeys { column: column(table, key), n, first_row };
                violations.push(violation.in_table(&original.name));
            }
            let Some(link) = shape.link(table) else { continue };
            let foreign_keys = KeyCells::of_release(released, link.foreign_key, original);
            let keys = KeyCells::of_release(&tables[link.parent], link.key, &originals[link.parent]);
            // A column that is not released as a key joins with nothing.
            let met = match (foreign_keys, keys) {
                (Some(foreign_keys), Some(keys)) => foreign_keys.join(&keys),
                _ => vec![NULL; released.rows.len()],
            };
            let mut row_of_source = vec![NULL; originals[link.parent].n_rows];
            for (row, &source) in (0..).zip(&tables[link.parent].rows) {
                row_of_source[source as usize] = row;
            }
            // The row that each released row must join with: `None` without a private parent, NULL if the parent is
            // left out.
            let expected = |row: usize| match lineage.parents[table][released.rows[row] as usize] {
                NULL => None,
                parent => Some(row_of_source[parent as usize]),
            };
            let is_released = |row: usize| expected(row).is_some_and(|parent| parent != NULL);
            let rows = met.len();
            let orphans = place(rows, |row| expected(row).is_none());
            let of_suppressed = place(rows, |row| expected(row) == Some(NULL));
            let with_nothing = place(rows, |row| is_released(row) && met[row] == NULL);
            let with_another =
                place(rows, |row| is_released(row) && met[row] != NULL && Some(met[row]) != expected(row));
            let (parent, column) = (originals[link.parent].name.clone(), column(table, link.foreign_key));
            let name = || (column.clone(), parent.clone());
            let found = [
                orphans.map(|(n, first_row)| Violation::OrphanReleased { parent: name().1, n, first_row }),
                of_suppressed.map(|(n, first_row)| Violation::ParentSuppressed { parent: name().1, n, first_row }),
                with_nothing.map(|(n, first_row)| {
                    let (column, parent) = name();
                    Violation::WithoutParent { column, parent, n, first_row }
                }),
                with_another.map(|(n, first_row)| {
                    let (column, parent) = name();
                    Violation::FalseParent { column, parent, n, first_row }
                }),
            ];
            violations.extend(found.into_iter().flatten().map(|violation| violation.in_table(&original.name)));
            parents[table] = met;
        }
        let mut targets = Vec::with_capacity(tables.len());
        for (table, original) in originals.iter().enumerate() {
            let mut of_table = Vec::new();
            for (reference, private) in shape.references(table).iter().zip(&lineage.targets[table]) {
                let (found, named) = self.referenced(table, reference, private);
                violations.extend(found.into_iter().map(|violation| violation.in_table(&original.name)));
                of_table.push(named);
            }
            targets.push(of_table);
        }
        let n_rows = tables.iter().map(|table| table.rows.len()).collect();
        if violations.is_empty() { Ok(Forest { n_rows, parents, targets }) } else { Err(violations) }
    }

    /// For each released row of a table, the released row that it references, or [`NULL`]; and what is wrong with the
    /// references. `private` holds the references of the private rows.
    fn referenced(&self, table: usize, reference: &Reference, private: &[u32]) -> (Vec<Violation>, Vec<u32>) {
        let (released, original) = (&self.tables[table], &self.originals[table]);
        let (target, of_target) = (&self.tables[reference.table], &self.originals[reference.table]);
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

    /// The released rows, to be counted.
    fn rolls(
        &self,
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
            let columns = CountedColumns { quasi, copied, rows: Some(&released.rows) };
            let mut roll = columns.roll(original, &self.shape.of(table), &requirements[table], violations);
            roll.require_own_k(&own_ks[table], &released.rows);
            roll
        };
        self.tables.iter().zip(self.originals).enumerate().map(roll).collect()
    }

    /// Counts the references that private rows have and released ones don't.
    fn note_removed(&self, findings: &mut Findings, forest: &Forest, lineage: &Lineage) {
        for (table, released) in self.tables.iter().enumerate() {
            for (position, found) in findings.tables[table].references.iter_mut().enumerate() {
                let (public, private) = (&forest.targets[table][position], &lineage.targets[table][position]);
                let rows = released.rows.iter().zip(public);
                let removed = rows.filter(|&(&source, &target)| target == NULL && private[source as usize] != NULL);
                found.removed = Some(removed.count() as u64);
            }
        }
    }

    /// Counts the rows and persons that are left out.
    fn note_suppressed(&self, findings: &mut Findings) {
        let mut all = Suppressed::default();
        for (table, (released, original)) in self.tables.iter().zip(self.originals).enumerate() {
            let rows = (original.n_rows - released.rows.len()) as u64;
            let suppressed = Suppressed { rows, persons: if self.shape.is_of_persons(table) { rows } else { 0 } };
            all.rows += suppressed.rows;
            all.persons += suppressed.persons;
            findings.tables[table].suppressed = Some(suppressed);
        }
        findings.suppressed = Some(all);
    }

    /// Person tables of which too many persons are left out, and child tables of which too many rows are. Each row of a
    /// person table is a person.
    fn beyond_limit(&self, findings: &Findings, schema: &Schema, limit: SuppressionLimit) -> Vec<Violation> {
        let of_table = |(table, original): (usize, &Table)| {
            let (suppressed, n_rows) = (findings.tables[table].suppressed?, original.n_rows as u64);
            let violation = match schema.tables[table].max_rows_left_out {
                _ if self.shape.is_of_persons(table) => limit.exceeded(suppressed.persons, n_rows)?,
                Some(share) => too_many_rows_left_out(suppressed.rows, n_rows, share)?,
                None => return None,
            };
            Some(violation.in_table(&original.name))
        };
        self.originals.iter().enumerate().filter_map(of_table).collect()
    }
}

#[cfg(test)]
mod tests;
