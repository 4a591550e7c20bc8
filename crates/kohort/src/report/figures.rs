//! [`figures`]: the report of a release, from what the verifier counts in its files alone and from its manifest.

use kohort_model::report::{
    CountedIn, ReleaseKind, ReleaseReport, ReportedRelease, SuppressionReport, TableReport, VerificationReport,
};
use kohort_model::{Column, Manifest, Role, Table, TableManifest};
use kohort_verify::{Look, common_looks, persons_of_rows};

use super::answers::answers;
use super::columns::{CountedCells, Holders, column_report, common_look, common_report};
use super::readers::readers;
use crate::error::{Error, violation_reports};
use crate::manifest::released_links;
use crate::verification::Verification;

/// How many combinations of cells are named per table.
pub(crate) const MOST_COMMON: usize = 10;

/// Where the rows of a release are.
#[derive(Clone, Copy)]
pub(crate) enum ReleasedRows<'a> {
    /// In its tables.
    InMemory,
    /// In a file. Its only table has a row for each text, and the rows of the file were counted.
    Counted {
        /// For each column the number of nulls, and then of rows that hold each text.
        counts: &'a [Vec<u64>],
        /// The largest groups of rows that look the same, at most [`MOST_COMMON`].
        looks: &'a [Look],
    },
}

/// The report of a release that was counted. `tables` are its tables.
///
/// # Errors
/// If its tables don't join, which the verification would have found.
pub(super) fn figures(
    verification: &Verification,
    tables: &[Table],
    rows: ReleasedRows<'_>,
) -> Result<ReleaseReport, Error> {
    let Verification { manifest, findings, verdict, not_counted, claims, .. } = verification;
    let kind = kind_of(manifest);
    let readers = readers(manifest, findings, kind, tables);
    let counted = readers.first().map_or(CountedIn::Unknown, |reader| reader.counted);
    let persons = persons(manifest, kind, tables, counted)?;
    let k = fewest_named(manifest);
    let table_reports: Vec<TableReport> = manifest
        .tables
        .iter()
        .zip(tables)
        .zip(&persons)
        .map(|((entry, table), holders)| table_report(entry, table, rows, holders, k))
        .collect();
    let cells = || table_reports.iter().flat_map(|table| &table.columns).filter_map(|column| column.cells);
    let share = manifest.persons.suppressed as f64 / (manifest.persons.n_in.max(1)) as f64;
    let suppression = SuppressionReport {
        persons: manifest.persons.suppressed,
        share,
        allowed: manifest.requirement.max_suppressed,
        rows: rows_left_out(manifest),
        cells: cells().map(|cells| cells.nothing).sum(),
        of_cells: cells().map(|cells| cells.exact + cells.wider + cells.nothing).sum(),
    };
    Ok(ReleaseReport {
        report: ReleaseReport::FORM,
        kohort: env!("CARGO_PKG_VERSION").to_owned(),
        release: ReportedRelease {
            kohort: manifest.kohort.clone(),
            kind,
            algorithm: manifest.algorithm.clone(),
            order: manifest.order,
            classes: manifest.classes,
        },
        requirement: manifest.requirement.clone(),
        achieved: manifest.achieved.clone(),
        persons: manifest.persons,
        answers: answers(manifest, &readers, tables),
        readers,
        risk: manifest.risk,
        suppression,
        loss: manifest.loss.clone(),
        table_loss: manifest.table_loss.clone(),
        savings: manifest.savings.clone(),
        tables: table_reports,
        registers: manifest.registers.clone(),
        register: manifest.register.clone(),
        previous: manifest.previous.clone(),
        references: manifest.references.clone(),
        notes: manifest.notes.clone(),
        accepted_risks: manifest.accepted_risks.clone(),
        verification: VerificationReport {
            verdict: verdict.word().to_owned(),
            not_counted: not_counted.clone(),
            as_manifest_says: claims.taken.clone(),
            not_confirmed: claims.unconfirmed.clone(),
        },
    })
}

fn kind_of(manifest: &Manifest) -> ReleaseKind {
    if manifest.register.is_some() {
        ReleaseKind::Register
    } else if !manifest.audiences.is_empty() {
        ReleaseKind::Audiences
    } else if manifest.tables.len() > 1 || !manifest.links.is_empty() {
        ReleaseKind::ManyTables
    } else {
        ReleaseKind::OneTable
    }
}

/// The rows left out of all private tables. Both files beside a register come from the same one.
fn rows_left_out(manifest: &Manifest) -> u64 {
    let n_tables = if manifest.register.is_some() { 1 } else { manifest.tables.len() };
    manifest.tables.iter().take(n_tables).map(|table| table.rows_suppressed).sum()
}

/// So many persons must share a cell that the report names: the largest k that was asked of anybody.
pub(super) fn fewest_named(manifest: &Manifest) -> u64 {
    let of_audiences = manifest.audiences.values().map(|audience| audience.k);
    u64::from(of_audiences.chain([manifest.requirement.k]).max().unwrap_or(0))
}

/// Whose the rows of each table are.
fn persons(
    manifest: &Manifest,
    kind: ReleaseKind,
    tables: &[Table],
    counted: CountedIn,
) -> Result<Vec<Holders>, Error> {
    if kind == ReleaseKind::ManyTables {
        let persons = persons_of_rows(tables, &released_links(&manifest.links))
            .map_err(|violations| Error::NotMet(violation_reports(&violations.0)))?;
        return Ok(persons.into_iter().map(Holders::Named).collect());
    }
    let holders = |_| match (counted, kind) {
        // The rows of the sensitive table beside a register are a private person's each.
        (CountedIn::Persons | CountedIn::PersonsAndRegister, _) => Holders::RowsEach,
        // Each audience has classes and a k of its own, so a class in all columns may have fewer persons.
        (CountedIn::Unknown, ReleaseKind::Audiences) => Holders::Unknown,
        (CountedIn::Unknown, _) => Holders::WholeClasses,
    };
    Ok(tables.iter().map(holders).collect())
}

fn table_report(
    entry: &TableManifest,
    table: &Table,
    rows: ReleasedRows<'_>,
    holders: &Holders,
    k: u64,
) -> TableReport {
    let counted = |position: usize, column: &Column| match rows {
        ReleasedRows::InMemory => CountedCells::of(column),
        ReleasedRows::Counted { counts, .. } => CountedCells::known(&counts[position]),
    };
    let columns = table.columns.iter().enumerate();
    let columns =
        columns.map(|(position, column)| column_report(entry, column, counted(position, column), holders, k)).collect();
    let common = match rows {
        ReleasedRows::InMemory => {
            let quasi = table.with_role(Role::Quasi);
            let looks = common_looks(table, &quasi, MOST_COMMON);
            looks.iter().filter_map(|rows| common_report(table, &quasi, rows, holders, k)).collect()
        }
        ReleasedRows::Counted { looks, .. } => looks.iter().filter_map(|look| common_look(look, holders, k)).collect(),
    };
    TableReport {
        name: entry.name.clone(),
        file: entry.file.clone(),
        sha256: entry.sha256.to_lowercase(),
        rows_in: entry.rows_in,
        rows_out: entry.rows_out,
        rows_suppressed: entry.rows_suppressed,
        columns,
        common,
    }
}
