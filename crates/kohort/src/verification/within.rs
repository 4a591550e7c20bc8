//! [`verify_within`], [`verify_against_within`]: count a release again that may be larger than memory.

use std::path::Path;

use kohort_io::{CountedTable, ReleasedColumns, StreamedTable, count_released, read_manifest_of};
use kohort_model::spec::TableSpec;
use kohort_model::{ColumnManifest, Manifest, Progress, Role, Table, TableManifest};
use kohort_verify::{CountedRows, Look, PartsAgainst, PartsCounter, PrivateFacts, Suppressed, Violation, Violations};

use super::{
    Compared, Verdict, Verification, asked_of_tables, claims_beyond_limit, compare_documents, judge, not_as_asked,
    rows_of,
};
use crate::Job;
use crate::described::Described;
use crate::error::{Error, Report, violation_reports};
use crate::in_parts::{BothTables, ComparedInParts, compare_in_parts, count_in_parts};
use crate::job::limit_of;
use crate::memory::Memory;
use crate::report::{Documents, MOST_COMMON, ReleasedRows, not_compared_in_parts, written_documents};

/// Does the same as [`crate::verify_with`] for a release that may be larger than memory. Rows wait encrypted in the folder for temporary
/// files.
///
/// # Errors
/// As [`crate::verify`], and [`Error::Input`] for releases that can't be counted in parts in this version: of several tables, for several
/// audiences, with a register, or with cells as bounds.
pub fn verify_within(
    release: impl AsRef<Path>,
    memory: Memory,
    progress: &dyn Progress,
) -> Result<Verification, Error> {
    let release = release.as_ref();
    let manifest = read_manifest_of(release)?;
    let place = (memory, std::env::temp_dir());
    if written_documents(release)?.is_empty() {
        let columns = ReleasedColumns::Asked;
        return Ok(count_within(release, manifest, columns, (place.0, &place.1), progress)?.verification);
    }
    // Documents need all columns. If they don't fit, the others are counted alone.
    match count_within(release, manifest.clone(), ReleasedColumns::All, (place.0, &place.1), progress) {
        Err(Error::Input(_)) => {
            let columns = ReleasedColumns::Asked;
            let mut verification =
                count_within(release, manifest, columns, (place.0, &place.1), progress)?.verification;
            verification.not_counted.extend(not_compared_in_parts(release)?);
            if verification.verdict == Verdict::Verified {
                verification.verdict = Verdict::InPart;
            }
            Ok(verification)
        }
        counted => {
            let CountedWithin { mut verification, table, counts, looks } = counted?;
            let rows = ReleasedRows::Counted { counts: &counts, looks: &looks };
            compare_documents(&mut verification, release, std::slice::from_ref(&table), rows)?;
            Ok(verification)
        }
    }
}

/// The documents of a release whose rows may not fit into memory. `folder` is where they wait.
pub(crate) fn documents_within(
    release: &Path,
    manifest: Manifest,
    (memory, folder): (Memory, &Path),
    progress: &dyn Progress,
) -> Result<Documents, Error> {
    let counted = count_within(release, manifest, ReleasedColumns::All, (memory, folder), progress)?;
    let CountedWithin { verification, table, counts, looks } = counted;
    let rows = ReleasedRows::Counted { counts: &counts, looks: &looks };
    Documents::of_rows(&verification, std::slice::from_ref(&table), rows)
}

/// What was counted in the files of a release alone.
struct CountedWithin {
    verification: Verification,
    /// The columns, with a row for each text.
    table: Table,
    /// For each column the number of nulls, and then of rows that hold each text.
    counts: Vec<Vec<u64>>,
    looks: Vec<Look>,
}

/// Counts a release. The documents in its folder are not looked at.
fn count_within(
    release: &Path,
    manifest: Manifest,
    columns: ReleasedColumns,
    (memory, folder): (Memory, &Path),
    progress: &dyn Progress,
) -> Result<CountedWithin, Error> {
    let entry = refuse_in_parts(&manifest)?;
    let mut counted = count_released(release, &manifest, entry, (columns, memory.of_texts()), progress)?;
    let mut notes = Vec::new();
    let asked = asked_of_tables(release, &manifest, &manifest.tables, &mut notes)?;
    let rows_of = rows_of(&manifest, counted.n_rows);
    let quasi = counted.table.with_role(Role::Quasi);
    let mut looks = Vec::new();
    let found = match PartsCounter::of_release(&counted.table, asked.first().map_or(&[], Vec::as_slice), rows_of) {
        Err(violations) => Err(violations),
        Ok(counter) => {
            let mut counter = counter.with_looks(MOST_COMMON);
            let found = count_in_parts(&mut counted, &mut counter, &quasi, memory, folder, progress)?;
            looks = counter.take_looks();
            let no_rows = || Violations(vec![Violation::NoRows { table: entry.name.clone() }]);
            found.and_then(|()| counter.finish().ok_or_else(no_rows))
        }
    };
    let found = found.and_then(|found| if found.unmet.is_empty() { Ok(found) } else { Err(Violations(found.unmet)) });
    let wrong = claims_beyond_limit(&manifest);
    let verification = judge(Compared { manifest, counted: found, private: None }, notes, wrong, progress)?;
    Ok(CountedWithin { verification, table: counted.table, counts: counted.counts, looks })
}

/// The only table of a release, unless the release can't be counted in parts in this version.
pub(crate) fn refuse_in_parts(manifest: &Manifest) -> Result<&TableManifest, Error> {
    let is_bound = |column: &ColumnManifest| column.role == ColumnManifest::LOWER_BOUND;
    let is_pseudonym = |column: &ColumnManifest| column.pseudonym.is_some();
    let is_earlier = |table: &TableManifest| table.csv.is_none() && table.file.contains(".csv");
    let refused = [
        (!manifest.audiences.is_empty(), "a release for several audiences"),
        (manifest.register.is_some(), "a release with a register"),
        (manifest.tables.iter().flat_map(|table| table.columns.values()).any(is_bound), "cells as bounds"),
        (manifest.tables.iter().any(is_earlier), "a CSV release of an earlier version"),
        (!manifest.links.is_empty(), "tables that refer to rows"),
        (manifest.tables.iter().flat_map(|table| table.columns.values()).any(is_pseudonym), "pseudonyms"),
    ];
    let mut reports: Vec<Report> =
        refused.iter().filter(|(is_refused, _)| *is_refused).map(|(_, what)| not_in_parts(what)).collect();
    match manifest.tables.as_slice() {
        [table] if reports.is_empty() => return Ok(table),
        [_] => {}
        _ => reports.push(not_in_parts("a release of several tables")),
    }
    Err(Error::Input(reports))
}

/// Does the same as [`crate::verify_against_with`] for a release and a private table that may be larger than memory. Rows wait
/// encrypted in the folder for temporary files.
///
/// # Errors
/// As [`crate::verify_against`], and [`Error::Input`] for releases that can't be compared in parts in this version: those that
/// [`verify_within`] refuses, and persons with several rows.
pub fn verify_against_within(
    release: impl AsRef<Path>,
    job: &Job,
    memory: Memory,
    progress: &dyn Progress,
) -> Result<Verification, Error> {
    let release = release.as_ref();
    let manifest = read_manifest_of(release)?;
    let entry = refuse_in_parts(&manifest)?;
    let table_spec = refuse_job_in_parts(job)?;
    let mut wrong = Vec::new();
    let compared = compare(release, manifest.clone(), entry, (job, table_spec), memory, &mut wrong, progress);
    if progress.is_cancelled() {
        return Err(Error::Cancelled);
    }
    let mut verification = judge(compared?, Vec::new(), wrong, progress)?;
    // The documents say what the files alone show, so these are counted once more.
    if verification.verdict != Verdict::NotMet && !written_documents(release)?.is_empty() {
        let alone = verify_within(release, memory, progress)?;
        if alone.verdict == Verdict::NotMet {
            verification.verdict = Verdict::NotMet;
            verification.wrong = alone.wrong;
        } else if let Some(note) = not_compared_in_parts(release)?.filter(|note| alone.not_counted.contains(note)) {
            verification.verdict = Verdict::InPart;
            verification.not_counted.push(note);
        }
    }
    Ok(verification)
}

/// Counts persons, and compares rows with the private table.
fn compare(
    release: &Path,
    manifest: Manifest,
    entry: &TableManifest,
    (job, table_spec): (&Job, &TableSpec),
    memory: Memory,
    wrong: &mut Vec<Report>,
    progress: &dyn Progress,
) -> Result<Compared, Error> {
    let spec = &job.spec;
    let streamed = StreamedTable::count(job.sources(), spec, table_spec, memory.of_texts(), progress)?;
    let StreamedTable { loaded, counts, n_rows, rows: mut private_rows, .. } = streamed;
    if let Some(person) = loaded.table.person
        && counts[person].iter().any(|&n_rows| n_rows > 1)
    {
        return Err(Error::Input(vec![not_in_parts("a table of persons with several rows")]));
    }
    let columns = (ReleasedColumns::All, memory.of_texts());
    let CountedTable { table, counts: mut released_counts, n_rows: n_released, rows: mut released_rows, .. } =
        count_released(release, &manifest, entry, columns, progress)?;
    // The number of nulls is at the end, as for the private table.
    released_counts.iter_mut().for_each(|counts| counts.rotate_left(1));
    wrong.extend(not_as_asked(&manifest, job, &[]));
    let expected = vec![loaded.columns_of_read(&table)];
    let described = Described {
        folder: release,
        manifest: &manifest,
        tables: std::slice::from_ref(&table),
        expected,
        private: vec![&loaded.table],
        spec,
    };
    let unread = described.not_compared();
    wrong.extend(described.misdescribed()?);

    let requirements = spec.requirements(table_spec);
    let suppressed = Suppressed { rows: entry.rows_suppressed, persons: manifest.persons.suppressed };
    let released = CountedRows { table: &table, counts: &released_counts, n_rows: n_released };
    let original = CountedRows { table: &loaded.table, counts: &counts, n_rows };
    let against = match PartsAgainst::new(released, original, &requirements, suppressed, limit_of(spec)) {
        Ok(against) => against,
        Err(violations) => return Ok(Compared { manifest, counted: Err(violations), private: None }),
    };
    let tables = BothTables {
        released: &mut released_rows,
        n_released,
        private: &mut private_rows,
        original,
        sources: job.sources(),
        table_spec,
    };
    let ComparedInParts { counted, before } =
        compare_in_parts(against, tables, memory, &std::env::temp_dir(), progress)?;
    if counted.is_err() {
        return Ok(Compared { manifest, counted, private: None });
    }
    let before = before.map_err(|violations| Error::NotMet(violation_reports(&violations.0)))?;
    let private = PrivateFacts {
        rows: vec![n_rows],
        persons: n_rows,
        before,
        registers: Vec::new(),
        found_and_contradicting: None,
        previous: Vec::new(),
        unread,
    };
    Ok(Compared { manifest, counted, private: Some(private) })
}

/// The only table of a job, unless its release can't be compared in parts in this version.
fn refuse_job_in_parts(job: &Job) -> Result<&TableSpec, Error> {
    let spec = &job.spec;
    let refused = [
        (spec.links_rows(), "tables that refer to rows"),
        (!spec.audiences.is_empty(), "a spec with several audiences"),
        (!spec.registers.is_empty(), "a spec with a register"),
        (spec.tables.len() != 1, "a spec of several tables"),
        (spec.tables.iter().any(TableSpec::has_pseudonyms), "pseudonyms"),
    ];
    let reports: Vec<Report> =
        refused.iter().filter(|(is_refused, _)| *is_refused).map(|(_, what)| not_in_parts(what)).collect();
    match spec.tables.as_slice() {
        [table] if reports.is_empty() => Ok(table),
        _ => Err(Error::Input(reports)),
    }
}

fn not_in_parts(what: &str) -> Report {
    Report::new(format!("{what} can't be counted in parts in this version"))
        .hint("set no limit on memory: then all of it is read at once")
}
