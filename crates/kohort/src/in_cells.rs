//! [`Job::write_in_cells`]: from a table that may be larger than memory to a verified release folder.
//!
//! 1. Read the table once: distinct texts, their counts, and a sample.
//! 2. Cut the table into cells that fit into memory, by the sample.
//! 3. Read the table again, and put each row into its cell on the disk.
//! 4. Join cells in which the requirement can't be reached with their neighbours.
//! 5. Anonymize and verify each cell.
//! 6. Merge the released rows into one file, which the verifier reads and counts.

use std::path::Path;

use kohort_core::AnonymizeError;
use kohort_core::cells::{CellPlan, JoinedLoss, Whole, anonymize_cell, can_stand};
use kohort_core::encode::Domain;
use kohort_io::{
    CellForm, CellStore, LoadedTable, NumberedRows, ReleasedCells, Spill, StreamedTable, WriteOptions, check_target,
};
use kohort_model::spec::Order;
use kohort_model::{Column, Manifest, NULL, Note, Progress, Quiet, ReleasedTable, Requirement, Role, Table, Texts};
use kohort_verify::{BlatantRisk, CellsVerifier, Findings, find_risks, find_risks_by_counts, joined_findings, measure};

use crate::described::own_values_listed;
use crate::error::{Error, Report};
use crate::job::{Job, limit_of};
use crate::manifest::{Facts, TableFacts};

/// Rows that the verifier takes note of at once.
const ROWS_AT_ONCE: usize = 1 << 20;

/// How much memory a job may use.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    n_bytes: u64,
    most_rows: Option<u64>,
}

impl Memory {
    /// About this many bytes, beside the program itself.
    pub fn bytes(n_bytes: u64) -> Self {
        Memory { n_bytes, most_rows: None }
    }

    /// Cells of at most this many rows, although more would fit into memory. Smaller cells lose more.
    #[must_use]
    pub fn rows_per_cell(mut self, most_rows: u64) -> Self {
        self.most_rows = Some(most_rows);
        self
    }

    /// Distinct texts may take this much.
    fn of_texts(self) -> u64 {
        self.n_bytes / 4
    }

    /// The rows of a cell, whose partitioning takes about half of the memory.
    fn rows_of_cell(self, n_columns: usize) -> u64 {
        let bytes_per_row = 56 + 16 * n_columns as u64;
        let fitting = (self.n_bytes / 2 / bytes_per_row).max(1);
        self.most_rows.map_or(fitting, |most| most.min(fitting))
    }
}

/// A release that was written in cells.
#[derive(Debug)]
pub struct WrittenInCells {
    /// What was asked, reached and lost.
    pub manifest: Manifest,
    /// See [`crate::Release::own_values_listed`].
    pub own_values_listed: Vec<String>,
}

impl Job {
    /// Reads, anonymizes, verifies and writes one table that may be larger than memory.
    ///
    /// The table is cut into cells that fit into the given memory, and rows wait on the disk beside `folder`, encrypted with a
    /// key that exists only in this process. Everything that was written is read back and verified.
    ///
    /// # Errors
    /// As [`Job::anonymize`] and [`crate::Release::write`], and [`Error::Input`] for jobs that can't be cut into cells in this
    /// version: several tables, audiences, registers, persons with several rows.
    pub fn write_in_cells(
        &self,
        folder: impl AsRef<Path>,
        options: WriteOptions,
        memory: Memory,
        progress: &dyn Progress,
    ) -> Result<WrittenInCells, Error> {
        self.refuse_in_cells()?;
        let written = self.in_cells(folder.as_ref(), options, memory, progress);
        if progress.is_cancelled() { Err(Error::Cancelled) } else { written }
    }

    /// Refuses what can't be cut into cells in this version, and names all of it.
    fn refuse_in_cells(&self) -> Result<(), Error> {
        let spec = &self.spec;
        let [table] = spec.tables.as_slice() else {
            return Err(Error::input(
                "only one table can be anonymized in cells in this version",
                "anonymize them in memory",
            ));
        };
        let requirements = spec.requirements(table);
        let compares = requirements.iter().any(Requirement::compares_with_release);
        let refused = [
            (spec.links_rows(), "tables that refer to rows"),
            (!spec.audiences.is_empty(), "several audiences"),
            (!spec.registers.is_empty(), "registers"),
            (table.person.is_some(), "a person column"),
            (spec.order == Order::Input, "order = \"input\""),
            (self.form() == CellForm::Bounds, "cells as bounds"),
            (compares && spec.max_suppressed > 0.0, "t or beta together with max_suppressed"),
        ];
        let report = |&(_, what): &(bool, &str)| {
            Report::new(format!("{what} can't be anonymized in cells in this version")).hint("anonymize it in memory")
        };
        let reports: Vec<Report> = refused.iter().filter(|(is_refused, _)| *is_refused).map(report).collect();
        if reports.is_empty() { Ok(()) } else { Err(Error::Input(reports)) }
    }

    fn in_cells(
        &self,
        folder: &Path,
        options: WriteOptions,
        memory: Memory,
        progress: &dyn Progress,
    ) -> Result<WrittenInCells, Error> {
        check_target(folder, options.existing)?;
        let (spec, table_spec) = (&self.spec, &self.spec.tables[0]);
        let requirements = spec.requirements(table_spec);
        let mut streamed = StreamedTable::count(self.sources(), spec, table_spec, memory.of_texts(), progress)?;
        let (loaded, counts, n_rows) = (streamed.loaded.clone(), streamed.counts.clone(), streamed.n_rows);
        let whole = Whole { table: &loaded.table, counts: &counts };
        let encoded = whole.encoded()?;
        let codes_of = |ids: &[u32]| {
            encoded.columns.iter().enumerate().map(|(column, &source)| encoded.code_of(column, ids[source])).collect()
        };
        let sample: Vec<(Vec<u32>, u64)> = streamed.sample.iter().map(|(ids, n)| (codes_of(ids), *n)).collect();
        let most_rows = memory.rows_of_cell(loaded.table.columns.len());
        let plan = CellPlan::from_sample(&encoded.domains, &sample, n_rows, most_rows);

        let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Numbers of 4 bytes for each cell of the table, and for both ends of each generalized cell.
        let per_row = 4 * (loaded.table.columns.len() + 2 * encoded.columns.len()) as u64;
        let spill = Spill::below(parent, n_rows.saturating_mul(per_row))?;
        let mut store = CellStore::new(&spill, plan.n_cells(), loaded.table.columns.len());
        let mut verifier = CellsVerifier::new(&requirements, limit_of(spec));
        // Rows wait until there are many, because the verifier looks at every distinct text each time.
        let mut waiting: Vec<Vec<u32>> = vec![Vec::new(); loaded.table.columns.len()];
        let note = |verifier: &mut CellsVerifier, rows: &mut Vec<Vec<u32>>| {
            let n_columns = rows.len();
            verifier.note_read(&with_ids(&loaded.table, std::mem::replace(rows, vec![Vec::new(); n_columns])));
        };
        streamed.for_each_piece(self.sources(), table_spec, progress, |rows: &NumberedRows| -> Result<(), Error> {
            store.add(rows, &plan.cells_of(&encoded, rows))?;
            waiting.iter_mut().zip(rows).for_each(|(waiting, ids)| waiting.extend_from_slice(ids));
            if waiting[0].len() >= ROWS_AT_ONCE {
                note(&mut verifier, &mut waiting);
            }
            Ok(())
        })?;
        note(&mut verifier, &mut waiting);
        store.flush()?;

        let groups = join_unreachable(&store, plan.n_cells(), &whole, &self.spec, &requirements, progress)?;
        let nulls: Vec<Option<u32>> = encoded.domains.iter().map(Domain::null).collect();
        let mut released = ReleasedCells::new(&spill, &loaded, &nulls);
        let mut made = Made::default();
        progress.begin("anonymizing cells", n_rows);
        for group in &groups {
            if progress.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let cell = store.table(group, &loaded.table)?;
            store.remove(group)?;
            let done = anonymize_cell(&cell, &whole, spec, &requirements, &Quiet(progress))?;
            made.loss.add(&done.anonymized.loss, done.anonymized.persons);
            made.algorithm = done.anonymized.algorithm;
            made.notes.extend(done.anonymized.notes);
            let quasi = cell.with_role(Role::Quasi);
            let before: &[Requirement] = &[];
            made.before.push(measure(&cell, &quasi, &[], before).map_err(|found| Error::unverified(&found))?);
            let verified = verifier.verify_cell(done.anonymized.release, &cell);
            let verified = verified.map_err(|violations| Error::unverified(&violations))?;
            made.judge_cell(&cell, &verified.get().tables[0]);
            released.add(&verified, &cell, &done.intervals)?;
            progress.advance(cell.n_rows as u64);
        }

        let verifier = verifier.into_file().map_err(|violations| Error::unverified(&violations))?;
        let staged = released.stage(verifier, folder, options, progress)?;
        if progress.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let accepted_risks = self.judge(made.risks(&loaded, &counts, &staged.shown, n_rows, &requirements))?;
        let mut notes = made.notes;
        if groups.len() > 1 {
            notes.push(Note::InCells { n_cells: groups.len() as u64 });
        }
        notes.sort();
        notes.dedup_by_key(|note| note.code());
        let before = joined_findings(made.before).ok_or(Error::Unreachable(AnonymizeError::NoQuasiColumn))?;
        let facts = Facts {
            algorithm: made.algorithm,
            notes,
            accepted_risks,
            loss: made.loss.loss(staged.sizes.n_classes, staged.sizes.squares),
            tables: vec![TableFacts { name: loaded.table.name.clone(), rows_in: n_rows, loss: None }],
            links: Vec::new(),
            saved: None,
            registers: None,
            previous: Vec::new(),
            before,
        };
        let manifest = facts.manifest(spec, staged.staged.files(), staged.staged.findings());
        let own_values_listed = own_values_listed(spec, std::slice::from_ref(&staged.shown), &[&loaded.table]);
        staged.staged.publish(&manifest)?;
        Ok(WrittenInCells { manifest, own_values_listed })
    }
}

/// The columns of a table with other rows.
fn with_ids(table: &Table, ids: Vec<Vec<u32>>) -> Table {
    let n_rows = ids.first().map_or(0, Vec::len);
    let columns = table.columns.iter().zip(ids).map(|(column, ids)| column.with_ids(ids)).collect();
    Table { name: table.name.clone(), columns, n_rows, person: None }
}

/// Groups of neighbouring cells, in each of which the requirement can be reached.
fn join_unreachable(
    store: &CellStore<'_>,
    n_cells: usize,
    whole: &Whole<'_>,
    spec: &kohort_model::Spec,
    requirements: &[Requirement],
    progress: &dyn Progress,
) -> Result<Vec<Vec<usize>>, Error> {
    let asks_for_k_alone = requirements.iter().all(|requirement| requirement.k().is_some());
    let stands = |cells: &[usize]| -> Result<bool, Error> {
        if progress.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let n_rows: u64 = cells.iter().map(|&cell| store.n_rows(cell)).sum();
        if n_rows < u64::from(spec.k) || asks_for_k_alone {
            return Ok(n_rows >= u64::from(spec.k));
        }
        Ok(can_stand(&store.table(cells, whole.table)?, whole, spec, requirements)?)
    };
    progress.begin("checking cells", n_cells as u64);
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut open = Vec::new();
    for cell in 0..n_cells {
        open.push(cell);
        if stands(&open)? {
            groups.push(std::mem::take(&mut open));
        }
        progress.advance(1);
    }
    while !open.is_empty() {
        let Some(mut last) = groups.pop() else {
            // Not even all cells together: the partitioner tells why.
            groups.push(std::mem::take(&mut open));
            break;
        };
        last.append(&mut open);
        if stands(&last)? {
            groups.push(last);
        } else {
            open = last;
        }
    }
    Ok(groups)
}

/// What was made of all cells so far.
#[derive(Default)]
struct Made {
    algorithm: &'static str,
    notes: Vec<Note>,
    loss: JoinedLoss,
    before: Vec<Findings>,
    /// Rows of cells, and the risks that were found in them.
    risks_of_cells: Vec<(u64, Vec<BlatantRisk>)>,
}

impl Made {
    /// Looks for risks that show only in whole rows. The rows of a person, and the persons of a class, are in one cell.
    fn judge_cell(&mut self, cell: &Table, released: &ReleasedTable) {
        let used: Vec<Column> = cell.columns.iter().map(without_unused).collect();
        let cell = Table { name: cell.name.clone(), columns: used, n_rows: cell.n_rows, person: None };
        let is_of_rows = |risk: &BlatantRisk| {
            matches!(risk, BlatantRisk::RowsAreNotPersons { .. } | BlatantRisk::PlainTellsApart { .. })
        };
        let risks = find_risks(&cell, &[], Some(released)).into_iter().filter(is_of_rows).collect();
        self.risks_of_cells.push((cell.n_rows as u64, risks));
    }

    /// All risks. A risk of whole rows counts if cells with at least half of all rows have it.
    fn risks(
        &self,
        loaded: &LoadedTable,
        counts: &[Vec<u64>],
        shown: &ReleasedTable,
        n_rows: u64,
        requirements: &[Requirement],
    ) -> Vec<BlatantRisk> {
        let labels = |source: usize| {
            let column = shown.columns.iter().find(|column| column.source == source)?;
            match &column.cells {
                kohort_model::Cells::Recoded { labels, .. } => Some(labels),
                kohort_model::Cells::Copied | kohort_model::Cells::Surrogate { .. } => None,
            }
        };
        let labels: Vec<Option<&Texts>> = (0..loaded.table.columns.len()).map(labels).collect();
        let mut risks = find_risks_by_counts(&loaded.table, counts, &labels, n_rows, requirements);
        let mut of_rows: Vec<(u64, BlatantRisk)> = Vec::new();
        for (rows, risk) in
            self.risks_of_cells.iter().flat_map(|(rows, risks)| risks.iter().map(move |risk| (rows, risk)))
        {
            match of_rows.iter_mut().find(|(_, known)| is_same(known, risk)) {
                Some((rows_so_far, known)) => {
                    *rows_so_far += rows;
                    add_counts(known, risk);
                }
                None => of_rows.push((*rows, risk.clone())),
            }
        }
        risks.extend(of_rows.into_iter().filter(|(rows, _)| 2 * rows >= n_rows).map(|(_, risk)| risk));
        risks
    }
}

/// Whether two cells have the same risk.
fn is_same(some: &BlatantRisk, other: &BlatantRisk) -> bool {
    match (some, other) {
        (BlatantRisk::RowsAreNotPersons { column: a, .. }, BlatantRisk::RowsAreNotPersons { column: b, .. }) => a == b,
        (BlatantRisk::PlainTellsApart { columns: a, .. }, BlatantRisk::PlainTellsApart { columns: b, .. }) => a == b,
        _ => false,
    }
}

/// Adds the counts of another cell.
fn add_counts(known: &mut BlatantRisk, other: &BlatantRisk) {
    match (known, other) {
        (
            BlatantRisk::RowsAreNotPersons { n_persons, n_rows, .. },
            BlatantRisk::RowsAreNotPersons { n_persons: more_persons, n_rows: more_rows, .. },
        ) => {
            *n_persons += more_persons;
            *n_rows += more_rows;
        }
        (
            BlatantRisk::PlainTellsApart { n_unique, n_persons, .. },
            BlatantRisk::PlainTellsApart { n_unique: more_unique, n_persons: more_persons, .. },
        ) => {
            *n_unique += more_unique;
            *n_persons += more_persons;
        }
        _ => {}
    }
}

/// A column whose dictionary has no text that no row holds.
fn without_unused(column: &Column) -> Column {
    let mut numbers = vec![NULL; column.texts.len()];
    let mut texts = Texts::new();
    let ids = column.ids.iter().map(|&id| {
        if id != NULL && numbers[id as usize] == NULL {
            numbers[id as usize] = texts.push(column.texts.get(id));
        }
        if id == NULL { NULL } else { numbers[id as usize] }
    });
    let ids = ids.collect();
    Column { texts, ids, ..column.without_cells() }
}
