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
mod persons;
mod plan;
mod told_persons;

use std::path::Path;

use kohort_core::AnonymizeError;
use kohort_core::cells::{AnonymizedCell, CellPlan, Holders, JoinedLoss, Whole, anonymize_cell};
use kohort_core::encode::Domain;
use kohort_io::{CellStore, LoadedTable, Piece, ReleasedCells, Spill, WriteOptions, check_target};
use kohort_model::spec::Order;
use kohort_model::{
    Cells, Loss, Manifest, Note, Progress, Quiet, ReleasedTable, Requirement, Role, Spec, Table, Texts,
};
use kohort_verify::{CellsVerifier, Findings, RisksInCells, joined_findings, measure};
use rayon::prelude::*;

use crate::described::own_values_listed;
use crate::error::{Error, Report};
use crate::job::{Job, limit_of};
use crate::manifest::{Facts, TableFacts};
use crate::memory::Memory;
use crate::release::{as_fault, as_read};
use crate::verification::{documents_within, refuse_in_parts};
use join::join_unreachable;
use passes::{COUNTING_FOR_REPORT, Passes};
use persons::RiskBefore;
pub use plan::PlannedCells;
use plan::{Planned, bytes_on_disk};
use told_persons::Group;

/// A release that was written in cells.
#[derive(Debug)]
pub struct WrittenInCells {
    /// What was asked, reached and lost.
    pub manifest: Manifest,
    /// See [`crate::Release::own_values_listed`].
    pub own_values_listed: Vec<String>,
    /// Why the release has no documents, if it has none.
    pub without_documents: Option<Vec<String>>,
}

impl Job {
    /// Reads, anonymizes, verifies and writes one table that may be larger than memory.
    ///
    /// The table is cut into cells that fit into the given memory, and rows wait on the disk beside `folder`, encrypted with a
    /// key that exists only in this process. Everything that was written is read back and verified.
    ///
    /// # Errors
    /// As [`Job::anonymize`] and [`crate::Release::write`], and [`Error::Input`] for jobs that can't be cut into cells in this
    /// version: several tables, audiences, registers.
    pub fn write_in_cells(
        &self,
        folder: impl AsRef<Path>,
        options: WriteOptions,
        memory: Memory,
        progress: &dyn Progress,
    ) -> Result<WrittenInCells, Error> {
        self.refuse_in_cells()?;
        let written = self.in_cells(
            folder.as_ref(),
            options,
            memory,
            &Passes::new(progress, self.spec.tables[0].person.is_some()),
        );
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
            (spec.order == Order::Input, "order = \"input\""),
            (table.has_pseudonyms(), "pseudonyms"),
        ];
        let report = |&(_, what): &(bool, &str)| {
            Report::new(format!("{what} can't be anonymized in cells in this version")).hint("anonymize it in memory")
        };
        let reports: Vec<Report> = refused.iter().filter(|(is_refused, _)| *is_refused).map(report).collect();
        if reports.is_empty() { Ok(()) } else { Err(Error::Input(reports)) }
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
        let Planned { loaded, counts, n_rows, mut rows, plan, persons, .. } =
            self.planned(&requirements, memory, progress)?;
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
        let mut before =
            loaded.table.person.map(|person| RiskBefore::new(&spill, &loaded.table, person, n_rows, memory));
        // Rows wait until there are many, because the verifier looks at every distinct text each time.
        let most_waiting = memory.waiting_rows(n_columns);
        let mut waiting: Vec<Vec<u32>> = vec![Vec::new(); n_columns];
        let note = |verifier: &mut CellsVerifier, rows: &mut Vec<Vec<u32>>| {
            verifier.note_read_as(&loaded.table, &std::mem::replace(rows, vec![Vec::new(); n_columns]));
        };
        rows.for_each_piece_as_read(self.sources(), table_spec, progress, |piece: Piece<'_>| -> Result<(), Error> {
            let Piece { rows, as_read, .. } = piece;
            let cells =
                persons.as_ref().map_or_else(|| plan.cells_of(&encoded, rows), |persons| persons.cells_of(rows));
            store.add(rows, &cells)?;
            before.as_mut().map_or(Ok(()), |before| before.add(rows))?;
            groups.iter_mut().for_each(|group| group.add(rows));
            waiting.iter_mut().zip(as_read).for_each(|(waiting, ids)| waiting.extend_from_slice(ids));
            if waiting[0].len() >= most_waiting {
                note(&mut verifier, &mut waiting);
            }
            Ok(())
        })?;
        note(&mut verifier, &mut waiting);
        drop(waiting);
        store.flush()?;
        drop(rows);
        let groups: Vec<(usize, Table)> =
            groups.into_iter().map(|Group { column, rows, .. }| (column, with_ids(&loaded.table, rows))).collect();
        let risks_before = self.judge(risks.before(&groups, &requirements))?;
        drop(groups);
        let mut made = Made::default();
        made.before.extend(before.map(|before| before.count(&loaded.table, memory)).transpose()?);
        let are_named = persons.is_some();
        let of_persons = match are_named && requirements.iter().any(Requirement::compares_with_release) {
            true => Some(count_holders(&store, &plan, &whole)?),
            false => None,
        };
        let whole = Whole { table: &loaded.table, counts: of_persons.as_deref().unwrap_or(&counts) };

        let n_persons = |cell: usize| persons.as_ref().map_or(store.n_rows(cell), |persons| persons.n_persons(cell));
        let cells =
            join_unreachable((&store, plan.n_cells(), &n_persons), &whole, (spec, &requirements), memory, progress)?;
        let nulls: Vec<Option<u32>> = encoded.domains.iter().map(Domain::null).collect();
        let mut released = ReleasedCells::new(&spill, &loaded, &nulls, cells.len(), memory.of_writing());
        progress.begin("anonymizing cells", n_rows);
        let bytes_of_texts = loaded.table.columns.iter().map(|column| column.texts.memory() as u64).sum();
        let mut left = cells.as_slice();
        while !left.is_empty() {
            if progress.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let sizes = left.iter().map(|numbers| numbers.iter().map(|&cell| store.n_rows(cell)).sum());
            let n_at_once = memory.cells_at_once(sizes, n_columns, bytes_of_texts);
            let (now, later) = left.split_at(n_at_once);
            left = later;
            let anonymized = |numbers: &Vec<usize>| -> Result<(Table, AnonymizedCell), Error> {
                let cell = store.table(numbers, &loaded.table)?;
                let done = anonymize_cell(&cell, &whole, spec, &requirements, &Quiet(progress))?;
                Ok((cell, done))
            };
            // Cells share nothing, so neither their order nor the number of threads changes what is made of them.
            let done: Vec<Result<(Table, AnonymizedCell), Error>> = now.par_iter().map(anonymized).collect();
            for (numbers, done) in now.iter().zip(done) {
                let (cell, done) = done?;
                store.remove(numbers)?;
                made.first_loss.get_or_insert_with(|| done.anonymized.loss.clone());
                made.loss.add(&done.anonymized.loss, cell.n_rows as u64, done.anonymized.persons);
                made.algorithm = done.anonymized.algorithm;
                made.notes.extend(done.anonymized.notes);
                if !are_named {
                    let quasi = cell.with_role(Role::Quasi);
                    let before: &[Requirement] = &[];
                    made.before.push(measure(&cell, &quasi, &[], before).map_err(|found| Error::unverified(&found))?);
                }
                let verified = verifier.verify_cell(done.anonymized.release, &cell);
                let verified = verified.map_err(|violations| Error::unverified(&violations))?;
                risks.add(&cell, &verified.release.get().tables[0]);
                released.add(&verified, &cell, &done.intervals)?;
                progress.advance(cell.n_rows as u64);
            }
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
        // Persons with several rows were counted in parts that share no class, and their figures are no sums of those of parts.
        let before = if are_named { made.before.pop() } else { joined_findings(made.before) };
        let before = before.ok_or(Error::Unreachable(AnonymizeError::NoQuasiColumn))?;
        // Adding up changes the last bits of fractions, and one cell is the whole table.
        let only = made.first_loss.filter(|_| cells.len() == 1);
        let sizes = staged.sizes;
        let loss = only.unwrap_or_else(|| made.loss.loss(sizes.n_classes, sizes.members, sizes.squares));
        let facts = Facts {
            algorithm: made.algorithm,
            notes,
            accepted_risks,
            loss,
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
        // Rows of cells make room for those of the release, which is counted as its readers count it.
        drop(store);
        drop(spill);
        progress.begin(COUNTING_FOR_REPORT, n_rows);
        let read = as_read(&manifest)?;
        let without_documents = match refuse_in_parts(&read) {
            Err(refused) => Some(refused.reports().into_iter().map(|report| report.message).collect()),
            Ok(_) => {
                let quiet = Quiet(progress);
                match documents_within(staged.staged.place(), read, (memory, parent), &quiet) {
                    // The release is verified. Its labels are other texts than those of the table, and may be more.
                    Err(Error::Input(_)) => {
                        Some(vec!["its columns can't be counted in parts with the given memory".to_owned()])
                    }
                    documents => {
                        for (name, text) in &documents.map_err(as_fault)?.files {
                            staged.staged.add_document(name, text)?;
                        }
                        None
                    }
                }
            }
        };
        progress.advance(n_rows);
        if progress.is_cancelled() {
            return Err(Error::Cancelled);
        }
        staged.staged.publish(&manifest)?;
        Ok(WrittenInCells { manifest, own_values_listed, without_documents })
    }
}

/// What was made of all cells so far.
#[derive(Default)]
struct Made {
    algorithm: &'static str,
    notes: Vec<Note>,
    loss: JoinedLoss,
    /// The loss of the first cell.
    first_loss: Option<Loss>,
    before: Vec<Findings>,
}

/// The counts of the whole table with persons who hold a sensitive value in place of rows, because persons have several rows.
fn count_holders(store: &CellStore<'_>, plan: &CellPlan, whole: &Whole<'_>) -> Result<Vec<Vec<u64>>, Error> {
    let mut holders = Holders::new(whole.table).map_err(AnonymizeError::from)?;
    for cell in 0..plan.n_cells() {
        holders.add(&store.table(&[cell], whole.table)?);
    }
    Ok(holders.counts(whole))
}

/// The columns of a table with other rows.
fn with_ids(table: &Table, ids: Vec<Vec<u32>>) -> Table {
    let n_rows = ids.first().map_or(0, Vec::len);
    let columns = table.columns.iter().zip(ids).map(|(column, ids)| column.with_ids(ids)).collect();
    Table { name: table.name.clone(), columns, n_rows, person: None }
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
