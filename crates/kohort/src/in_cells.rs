//! [`Job::write_in_cells`]: from a table that may be larger than memory to a verified release folder.
//!
//! 1. Read the table once: distinct texts, their counts, and a sample.
//! 2. Cut the table into cells that fit into memory, by the sample.
//! 3. Read the table again, and put each row into its cell on the disk.
//! 4. Join cells in which the requirement can't be reached with their neighbours.
//! 5. Anonymize and verify each cell.
//! 6. Merge the released rows into one file, which the verifier reads and counts.

mod join;
mod passes;

use std::path::Path;

use kohort_core::AnonymizeError;
use kohort_core::cells::{CellPlan, JoinedLoss, Whole, anonymize_cell};
use kohort_core::encode::{Domain, Encoded};
use kohort_io::{
    CellStore, LoadedTable, NumberedRows, ReleasedCells, RowsAgain, Spill, StreamedTable, WriteOptions, check_target,
};
use kohort_model::spec::Order;
use kohort_model::{Cells, Manifest, Note, Progress, Quiet, ReleasedTable, Requirement, Role, Spec, Table, Texts};
use kohort_verify::{CellsVerifier, Findings, RisksInCells, joined_findings, measure};

use crate::described::own_values_listed;
use crate::error::{Error, Report};
use crate::job::{Job, limit_of};
use crate::manifest::{Facts, TableFacts};
use crate::memory::{Memory, Together};
use join::join_unreachable;
use passes::{PASSES, Passes};

/// Rows by which it is judged whether a column names persons.
const ROWS_OF_GROUPS: u64 = 1 << 16;

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
        let written = self.in_cells(folder.as_ref(), options, memory, &Passes::new(progress));
        match written {
            // A folder that is there already stays.
            Err(_) if progress.is_cancelled() => Err(Error::Cancelled),
            Err(Error::Unreachable(_)) if self.leaves_out_nobody() => Err(Error::input(
                "the requirement can't be reached in cells, where t and beta allow nobody to be left out",
                "anonymize the table in memory, or loosen the requirement",
            )),
            written => written,
        }
    }

    /// Refuses what can't be cut into cells in this version, and names all of it.
    pub(crate) fn refuse_in_cells(&self) -> Result<(), Error> {
        let spec = &self.spec;
        let [table] = spec.tables.as_slice() else {
            return Err(Error::input(
                "only one table can be anonymized in cells in this version",
                "anonymize them in memory",
            ));
        };
        let refused = [
            (spec.links_rows(), "tables that refer to rows"),
            (!spec.audiences.is_empty(), "several audiences"),
            (!spec.registers.is_empty(), "registers"),
            (table.person.is_some(), "a person column"),
            (spec.order == Order::Input, "order = \"input\""),
        ];
        let report = |&(_, what): &(bool, &str)| {
            Report::new(format!("{what} can't be anonymized in cells in this version")).hint("anonymize it in memory")
        };
        let reports: Vec<Report> = refused.iter().filter(|(is_refused, _)| *is_refused).map(report).collect();
        if reports.is_empty() { Ok(()) } else { Err(Error::Input(reports)) }
    }

    /// How the table would be cut into cells. The table is read once, and nothing is written.
    ///
    /// # Errors
    /// As [`Job::write_in_cells`], as far as they show in the first reading.
    pub fn plan_in_cells(&self, memory: Memory, progress: &dyn Progress) -> Result<PlannedCells, Error> {
        self.refuse_in_cells()?;
        let requirements = self.spec.requirements(&self.spec.tables[0]);
        let planned = self.planned(&requirements, memory, progress);
        if progress.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let Planned { loaded, counts, n_rows, plan, largest_cell, .. } = planned?;
        let n_bytes_on_disk = bytes_on_disk(&loaded.table, &counts, n_rows);
        Ok(PlannedCells { n_rows, n_cells: plan.n_cells() as u64, rows_of_largest_cell: largest_cell, n_bytes_on_disk })
    }

    /// Reads the table for the first time, and cuts it into cells.
    fn planned(&self, requirements: &[Requirement], memory: Memory, progress: &dyn Progress) -> Result<Planned, Error> {
        let (spec, table_spec) = (&self.spec, &self.spec.tables[0]);
        let streamed = StreamedTable::count(self.sources(), spec, table_spec, memory.of_texts(), progress)?;
        let StreamedTable { loaded, counts, n_rows, sample, rows } = streamed;
        let loaded = loaded.released_as(self.form())?;
        let n_columns = loaded.table.columns.len();
        let encoded = Whole { table: &loaded.table, counts: &counts }.encoded()?;
        let sample = codes_of(&encoded, sample);
        let plan = CellPlan::from_sample(&encoded.domains, &sample, n_rows, memory.planned_rows(n_columns));
        let largest_cell = plan.largest_cell(&sample, n_rows);
        let mut together = persons_together(&loaded.table, requirements);
        together.push(Together { n_rows: largest_cell, why: "some equal persons" });
        memory.check(&together, n_rows, n_columns)?;
        drop(encoded);
        Ok(Planned { loaded, counts, n_rows, rows, plan, largest_cell })
    }

    /// The spec that each cell must satisfy. t and beta compare a class with all released persons, so all cells together would have
    /// to agree on who is left out. Nobody is.
    fn cell_spec(&self) -> Spec {
        let max_suppressed = if self.leaves_out_nobody() { 0.0 } else { self.spec.max_suppressed };
        Spec { max_suppressed, ..self.spec.clone() }
    }

    /// Whether persons may be left out by the spec, but not in cells.
    fn leaves_out_nobody(&self) -> bool {
        let requirements = self.spec.requirements(&self.spec.tables[0]);
        self.spec.max_suppressed > 0.0 && requirements.iter().any(Requirement::compares_with_release)
    }

    fn in_cells(
        &self,
        folder: &Path,
        options: WriteOptions,
        memory: Memory,
        progress: &dyn Progress,
    ) -> Result<WrittenInCells, Error> {
        check_target(folder, options.existing)?;
        let (spec, table_spec) = (&self.cell_spec(), &self.spec.tables[0]);
        let requirements = spec.requirements(table_spec);
        let Planned { loaded, counts, n_rows, mut rows, plan, .. } = self.planned(&requirements, memory, progress)?;
        let n_columns = loaded.table.columns.len();
        let whole = Whole { table: &loaded.table, counts: &counts };
        let encoded = whole.encoded()?;

        let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let spill = Spill::below(parent, bytes_on_disk(&loaded.table, &counts, n_rows))?;
        let mut store = CellStore::new(&spill, plan.n_cells(), n_columns, memory.waiting_rows(n_columns));
        let mut verifier = CellsVerifier::new(&requirements, limit_of(spec));
        let mut risks = RisksInCells::new(&loaded.table, &counts, n_rows);
        let mut groups: Vec<Group> =
            risks.may_name_persons().into_iter().map(|column| Group::new(column, &rows, &counts, n_columns)).collect();
        // Rows wait until there are many, because the verifier looks at every distinct text each time.
        let most_waiting = memory.waiting_rows(n_columns);
        let mut waiting: Vec<Vec<u32>> = vec![Vec::new(); n_columns];
        let note = |verifier: &mut CellsVerifier, rows: &mut Vec<Vec<u32>>| {
            verifier.note_read(&with_ids(&loaded.table, std::mem::replace(rows, vec![Vec::new(); n_columns])));
        };
        rows.for_each_piece(self.sources(), table_spec, progress, |rows: &NumberedRows| -> Result<(), Error> {
            store.add(rows, &plan.cells_of(&encoded, rows))?;
            groups.iter_mut().for_each(|group| group.add(rows));
            waiting.iter_mut().zip(rows).for_each(|(waiting, ids)| waiting.extend_from_slice(ids));
            if waiting[0].len() >= most_waiting {
                note(&mut verifier, &mut waiting);
            }
            Ok(())
        })?;
        note(&mut verifier, &mut waiting);
        store.flush()?;
        drop(rows);
        let groups: Vec<(usize, Table)> =
            groups.into_iter().map(|Group { column, rows, .. }| (column, with_ids(&loaded.table, rows))).collect();
        let risks_before = self.judge(risks.before(&groups, &requirements))?;
        drop(groups);

        let cells = join_unreachable(&store, plan.n_cells(), &whole, (spec, &requirements), memory, progress)?;
        let nulls: Vec<Option<u32>> = encoded.domains.iter().map(Domain::null).collect();
        let mut released = ReleasedCells::new(&spill, &loaded, &nulls, cells.len(), memory.of_writing());
        let mut made = Made::default();
        progress.begin("anonymizing cells", n_rows);
        for numbers in &cells {
            if progress.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let cell = store.table(numbers, &loaded.table)?;
            store.remove(numbers)?;
            let done = anonymize_cell(&cell, &whole, spec, &requirements, &Quiet(progress))?;
            made.loss.add(&done.anonymized.loss, done.anonymized.persons);
            made.algorithm = done.anonymized.algorithm;
            made.notes.extend(done.anonymized.notes);
            let quasi = cell.with_role(Role::Quasi);
            let before: &[Requirement] = &[];
            made.before.push(measure(&cell, &quasi, &[], before).map_err(|found| Error::unverified(&found))?);
            let verified = verifier.verify_cell(done.anonymized.release, &cell);
            let verified = verified.map_err(|violations| Error::unverified(&violations))?;
            risks.add(&cell, &verified.get().tables[0]);
            released.add(&verified, &cell, &done.intervals)?;
            progress.advance(cell.n_rows as u64);
        }

        let verifier = verifier.into_file().map_err(|violations| Error::unverified(&violations))?;
        let staged = released.stage(verifier, folder, options, progress)?;
        if progress.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let labels = labels_of(&loaded, &staged.shown);
        let accepted_risks = self.judge(risks.after(risks_before, &labels))?;
        let mut notes = Note::joined(made.notes);
        if self.leaves_out_nobody() {
            notes.push(Note::NobodyLeftOut);
        }
        if memory.is_chosen() {
            notes.push(Note::MemoryChosen { n_megabytes: memory.n_bytes() >> 20 });
        }
        if cells.len() > 1 {
            notes.push(Note::InCells { n_cells: cells.len() as u64 });
        }
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
            applied: None,
            previous: Vec::new(),
            before,
        };
        let manifest = facts.manifest(&self.spec, staged.staged.files(), staged.staged.findings());
        let own_values_listed = own_values_listed(&self.spec, std::slice::from_ref(&staged.shown), &[&loaded.table]);
        staged.staged.publish(&manifest)?;
        Ok(WrittenInCells { manifest, own_values_listed })
    }
}

/// How a table would be cut into cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedCells {
    /// The rows of the table.
    pub n_rows: u64,
    /// The number of cells. Cells in which the requirement can't be reached are joined later.
    pub n_cells: u64,
    /// The rows that the largest cell is expected to have.
    pub rows_of_largest_cell: u64,
    /// What the work may take on the disk at most, the release included.
    pub n_bytes_on_disk: u64,
}

impl PlannedCells {
    /// How often all rows are read: the table to be counted and to be sent to its cells, the cells, and the release to be merged,
    /// and to be verified in two readings.
    pub const PASSES: u64 = PASSES.len() as u64;
}

/// A table that was read once, and how it is cut.
struct Planned {
    loaded: LoadedTable,
    counts: Vec<Vec<u64>>,
    n_rows: u64,
    rows: RowsAgain,
    plan: CellPlan,
    largest_cell: u64,
}

/// What was made of all cells so far.
#[derive(Default)]
struct Made {
    algorithm: &'static str,
    notes: Vec<Note>,
    loss: JoinedLoss,
    before: Vec<Findings>,
}

/// The columns of a table with other rows.
fn with_ids(table: &Table, ids: Vec<Vec<u32>>) -> Table {
    let n_rows = ids.first().map_or(0, Vec::len);
    let columns = table.columns.iter().zip(ids).map(|(column, ids)| column.with_ids(ids)).collect();
    Table { name: table.name.clone(), columns, n_rows, person: None }
}

/// A sample as codes of the quasi columns.
fn codes_of(encoded: &Encoded<'_>, sample: Vec<(Vec<u32>, u64)>) -> Vec<(Vec<u32>, u64)> {
    let codes = |ids: Vec<u32>| {
        encoded.columns.iter().enumerate().map(|(column, &source)| encoded.code_of(column, ids[source])).collect()
    };
    sample.into_iter().map(|(ids, n)| (codes(ids), n)).collect()
}

/// Persons who must be in one cell because somebody asks for a class of so many.
fn persons_together(table: &Table, requirements: &[Requirement]) -> Vec<Together> {
    let own_k = requirements.iter().filter_map(Requirement::own_k_column).filter_map(|name| table.column(name));
    let largest_own_k = own_k.flat_map(|column| column.texts.iter().filter_map(|text| text.parse::<u64>().ok())).max();
    let k = requirements.iter().filter_map(Requirement::k).max().map(u64::from);
    let own_k = largest_own_k.map(|n_rows| Together { n_rows, why: "the largest own k" });
    own_k.into_iter().chain(k.map(|n_rows| Together { n_rows, why: "a class of k persons" })).collect()
}

/// What the work may take on the disk at most: rows of all cells and released rows first, then released rows and the file.
fn bytes_on_disk(table: &Table, counts: &[Vec<u64>], n_rows: u64) -> u64 {
    let n_quasi = table.with_role(Role::Quasi).len() as u64;
    let is_copied = |role: Role| matches!(role, Role::Sensitive | Role::Plain);
    let n_copied = table.columns.iter().filter(|column| is_copied(column.role)).count() as u64;
    let (cells, released) = (4 * table.columns.len() as u64 * n_rows, 4 * (2 * n_quasi + n_copied) * n_rows);
    let texts = |(column, counts): (&kohort_model::Column, &Vec<u64>)| -> u64 {
        // A range shows two values, brackets, a comma and quotes; every cell is followed by a separator.
        let of_all: u64 = column.texts.iter().zip(counts).map(|(text, &count)| text.len() as u64 * count).sum();
        match column.role {
            Role::Quasi => 2 * of_all + 6 * n_rows,
            role if is_copied(role) => of_all + 3 * n_rows,
            _ => 0,
        }
    };
    let file: u64 = table.columns.iter().zip(counts).map(texts).sum();
    // Frames and encryption take a little more than the numbers.
    (cells.max(file) + released).saturating_mul(9) / 8
}

/// All rows of some values of a column, by which it is judged whether the column names persons.
struct Group {
    column: usize,
    is_chosen: Vec<bool>,
    rows: Vec<Vec<u32>>,
}

impl Group {
    /// The values with the smallest hashes, so that the choice does not depend on the order of rows.
    fn new(column: usize, rows: &RowsAgain, counts: &[Vec<u64>], n_columns: usize) -> Group {
        let mut by_hash: Vec<(u64, usize)> = rows.hashes_of(column).iter().copied().zip(0..).collect();
        by_hash.sort_unstable();
        let mut is_chosen = vec![false; by_hash.len()];
        let mut n_rows = 0;
        for (_, id) in by_hash {
            if n_rows >= ROWS_OF_GROUPS {
                break;
            }
            is_chosen[id] = true;
            n_rows += counts[column][id];
        }
        Group { column, is_chosen, rows: vec![Vec::new(); n_columns] }
    }

    fn add(&mut self, rows: &NumberedRows) {
        let of_column = rows[self.column].iter().enumerate();
        for (row, _) in of_column.filter(|(_, id)| self.is_chosen.get(**id as usize).copied().unwrap_or(false)) {
            self.rows.iter_mut().zip(rows).for_each(|(group, ids)| group.push(ids[row]));
        }
    }
}

/// For each column the labels of the release, if it is generalized.
fn labels_of<'a>(loaded: &LoadedTable, shown: &'a ReleasedTable) -> Vec<Option<&'a Texts>> {
    let labels = |source: usize| {
        let column = shown.columns.iter().find(|column| column.source == source)?;
        match &column.cells {
            Cells::Recoded { labels, .. } => Some(labels),
            Cells::Copied | Cells::Surrogate { .. } => None,
        }
    };
    (0..loaded.table.columns.len()).map(labels).collect()
}
