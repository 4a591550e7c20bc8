//! [`ReleasedCells`]: the verified releases of all cells, on the disk until they are merged into one file.
//!
//! # Guarantee
//! Rows are written in the order of a release, whatever the cells were: first by the intervals of their quasi cells, then by the
//! texts of their copied cells. A folder is staged only if the verifier, which reads the file back, finds in it exactly the rows
//! of the verified cells.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::Path;

use kohort_model::{Cells, Column, CsvManifest, NULL, Progress, ReleasedColumn, ReleasedTable, Role, Table, Texts};
use kohort_verify::{FileVerifier, VerifiedCell};
use rayon::prelude::*;

use super::merge::Merge;
use super::persons::PersonsOfRows;
use super::read_back::{WrittenRows, read_back};
use super::spill::{Spill, SpillFile};
use crate::digest::sha256_of_file;
use crate::read::Original;
use crate::write::{
    CellIds, CellsOf, FileColumn, Kind, Partial, RowWriter, ShownBounds, check_reading, described, file_name_of, sync,
    write_listings,
};
use crate::{Format, LoadedTable, Staged, WriteError, WriteOptions, WrittenFile};

/// Rows that each file holds in memory while all are merged, at least and at most. Every frame has a cost of its own.
const ROWS_PER_FRAME: (usize, usize) = (1 << 6, 1 << 13);
/// Rows that are written at once, at least and at most.
const ROWS_PER_PIECE: (usize, usize) = (1 << 10, 1 << 18);
/// Rows that the verifier is given at once, at least and at most. It looks at all distinct texts each time.
const ROWS_PER_COUNT: (usize, usize) = (1 << 12, 1 << 20);

/// The number of the label of each interval.
type LabelNumbers = HashMap<(u32, u32), u32>;

/// The verified releases of cells.
#[derive(Debug)]
pub struct ReleasedCells<'s> {
    spill: &'s Spill,
    whole: &'s LoadedTable,
    files: Vec<SpillFile>,
    room: Room,
    quasi: Vec<QuasiColumn>,
    copied: Vec<CopiedColumn>,
    /// The persons of the rows of the file, if the table names persons.
    persons: Option<PersonsOfRows<'s>>,
    n_rows: u64,
    sizes: ClassSizes,
}

/// How many rows may be in memory on their way to the file.
#[derive(Clone, Copy, Debug)]
struct Room {
    per_frame: usize,
    per_piece: usize,
    per_count: usize,
}

impl Room {
    /// Divides the memory: a third is for merging, a third for writing, and a third for reading the file back.
    fn new(n_bytes: u64, n_files: usize, n_columns: usize) -> Room {
        // Rows that are written, or counted, are in memory in several forms.
        let rows = |copies: usize| (n_bytes / 3) as usize / (4 * n_columns.max(1) * copies.max(1));
        let within = |rows: usize, (least, most): (usize, usize)| rows.clamp(least, most);
        Room {
            per_frame: within(rows(2 * n_files), ROWS_PER_FRAME),
            per_piece: within(rows(3), ROWS_PER_PIECE),
            per_count: within(rows(5), ROWS_PER_COUNT),
        }
    }
}

/// The sizes of the classes in the file, as readers tell them apart.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClassSizes {
    /// The number of classes.
    pub n_classes: u64,
    /// The sum of their sizes in persons.
    pub members: u64,
    /// The sum of the squares of these sizes.
    pub squares: f64,
}

/// A verified file of all cells.
#[derive(Debug)]
pub struct StagedCells {
    /// The folder, which does not have its final name yet.
    pub staged: Staged,
    /// The sizes of its classes.
    pub sizes: ClassSizes,
    /// A release of a few rows in which every label occurs that the file shows, and no other.
    pub shown: ReleasedTable,
}

/// A generalized column.
#[derive(Debug)]
struct QuasiColumn {
    source: usize,
    /// The code of null.
    null: Option<u32>,
    /// The label of each interval that is shown.
    labels: BTreeMap<(u32, u32), String>,
}

/// A column that is released as it is.
#[derive(Debug)]
struct CopiedColumn {
    source: usize,
    /// The place of each text in the order of texts, from 1; 0 is null.
    ranks: Vec<u32>,
    /// For each text, whether a released row shows it.
    is_shown: Vec<bool>,
}

impl<'s> ReleasedCells<'s> {
    /// No cell yet. `nulls` has the code of null of each quasi column. Rows of `n_cells` cells on their way to the file may take
    /// about `n_bytes` of memory.
    pub fn new(spill: &'s Spill, whole: &'s LoadedTable, nulls: &[Option<u32>], n_cells: usize, n_bytes: u64) -> Self {
        let table = &whole.table;
        let quasi = table.with_role(Role::Quasi).into_iter().zip(nulls);
        let is_copied = |column: &Column| matches!(column.role, Role::Sensitive | Role::Plain);
        let copied = (0..table.columns.len()).filter(|&source| is_copied(&table.columns[source]));
        ReleasedCells {
            spill,
            whole,
            files: Vec::new(),
            room: Room::new(
                n_bytes,
                n_cells,
                2 * nulls.len() + copied.clone().count() + usize::from(table.person.is_some()),
            ),
            persons: table.person.map(|_| PersonsOfRows::new(spill)),
            quasi: quasi.map(|(source, &null)| QuasiColumn { source, null, labels: BTreeMap::new() }).collect(),
            copied: copied.map(|source| CopiedColumn::new(source, &table.columns[source].texts)).collect(),
            n_rows: 0,
            sizes: ClassSizes::default(),
        }
    }

    /// Adds the release of a cell. `intervals` has, for each quasi column, the interval of codes that each label stands for.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn add(
        &mut self,
        verified: &VerifiedCell,
        cell: &Table,
        intervals: &[Vec<(u32, u32)>],
    ) -> Result<(), WriteError> {
        let [table] = verified.release.get().tables.as_slice() else { return Ok(()) };
        let mut columns: Vec<Vec<u32>> = Vec::new();
        for (quasi, intervals) in self.quasi.iter_mut().zip(intervals) {
            let Some((labels, ids)) = recoded(table, quasi.source) else { continue };
            quasi.labels.extend(intervals.iter().copied().zip(labels.iter().map(str::to_owned)));
            let null = quasi.null.unwrap_or(NULL);
            let interval = |id: &u32| if *id == NULL { (null, null) } else { intervals[*id as usize] };
            columns.push(ids.par_iter().map(|id| interval(id).0).collect());
            columns.push(ids.par_iter().map(|id| interval(id).1).collect());
        }
        for copied in &mut self.copied {
            let ids = &cell.columns[copied.source].ids;
            let mut ranks = Vec::with_capacity(table.rows.len());
            for &row in &table.rows {
                match ids[row as usize] {
                    NULL => ranks.push(0),
                    id => {
                        copied.is_shown[id as usize] = true;
                        ranks.push(copied.ranks[id as usize]);
                    }
                }
            }
            columns.push(ranks);
        }
        // Persons come last, so they don't change the order of rows that a reader can tell apart.
        columns.extend(verified.persons.clone());
        let mut file = self.spill.file();
        let n_rows = table.rows.len();
        for first in (0..n_rows).step_by(self.room.per_frame) {
            let rows = first..(first + self.room.per_frame).min(n_rows);
            let frame: Vec<Vec<u32>> = columns.iter().map(|column| column[rows.clone()].to_vec()).collect();
            self.spill.append(&mut file, frame)?;
        }
        self.files.push(file);
        self.n_rows += n_rows as u64;
        Ok(())
    }

    /// Merges the cells into one file in a new folder beside `folder`, and has it verified there.
    ///
    /// # Errors
    /// If something can't be written or read back, or the file does not hold the verified rows. Then nothing is kept.
    pub fn stage(
        mut self,
        verifier: FileVerifier,
        folder: &Path,
        options: WriteOptions,
        progress: &dyn Progress,
    ) -> Result<StagedCells, WriteError> {
        let partial = Partial::beside(folder, options)?;
        let format = options.format.unwrap_or(self.whole.origin.format);
        let name = file_name_of(&self.whole.table.name, format)?;
        let path = partial.complete.join(&name);
        let (shown, released) = self.shown();
        let original = Original { table: &shown, origin: &self.whole.origin };
        self.write(&path, format, original, &released, progress)?;
        sync(&path)?;
        let listings = write_listings(&released, original, &partial.complete, &mut vec![name.clone()])?;
        let columns = described(&released, original, &listings, &partial.complete)?;
        let written = WrittenRows {
            path: &path,
            format,
            n_rows: self.n_rows,
            per_count: self.room.per_count,
            persons: self.persons.as_ref(),
        };
        let (findings, read) = read_back(&written, original, &released, verifier, progress)?;
        check_reading(&read, &columns, &self.whole.table, &partial.complete)?;
        let csv = match format {
            Format::Csv(_) => Some(CsvManifest::new(self.whole.origin.separator.into())),
            Format::Parquet | Format::ArrowFile | Format::ArrowStream => None,
        };
        let sha256 = sha256_of_file(&path).map_err(WriteError::io(&path))?;
        let file = WrittenFile { name, sha256, n_rows: self.n_rows, csv, columns };
        Ok(StagedCells { staged: partial.staged(vec![file], findings, Vec::new()), sizes: self.sizes, shown: released })
    }

    /// A private table and its release that have only a few rows, in which every text and label occurs that the file shows and
    /// none that it does not show. Headers, types and manifests follow from them.
    fn shown(&self) -> (Table, ReleasedTable) {
        let table = &self.whole.table;
        let texts: Vec<Texts> = (0..table.columns.len())
            .map(|source| match self.copied.iter().find(|copied| copied.source == source) {
                Some(copied) => copied.shown(&table.columns[source].texts),
                None => table.columns[source].texts.clone(),
            })
            .collect();
        let labels: Vec<usize> = self.quasi.iter().map(|quasi| quasi.labels.len()).collect();
        let n_rows = texts.iter().map(Texts::len).chain(labels).max().unwrap_or(0) as u32 + 1;
        let each_once = |n: usize| {
            let last = if n == 0 { NULL } else { n as u32 - 1 };
            (0..n_rows).map(|row| if row < n as u32 { row } else { last }).collect::<Vec<u32>>()
        };
        let column = |(column, texts): (&Column, Texts)| {
            let mut ids = each_once(texts.len());
            // A column with nulls has no bounds.
            if column.role == Role::Quasi
                && column.has_nulls()
                && let Some(last) = ids.last_mut()
            {
                *last = NULL;
            }
            Column { ids, texts, ..column.without_cells() }
        };
        let columns: Vec<Column> = table.columns.iter().zip(texts).map(column).collect();
        let released = table.columns.iter().enumerate().filter_map(|(source, column)| {
            let cells = match self.quasi.iter().find(|quasi| quasi.source == source) {
                Some(quasi) => {
                    Cells::Recoded { labels: quasi.labels.values().collect(), ids: each_once(quasi.labels.len()) }
                }
                None if self.copied.iter().any(|copied| copied.source == source) => Cells::Copied,
                None => return None,
            };
            Some(ReleasedColumn { name: column.name.clone(), source, cells })
        });
        let released =
            ReleasedTable { name: table.name.clone(), rows: (0..n_rows).collect(), columns: released.collect() };
        (Table { name: table.name.clone(), columns, n_rows: n_rows as usize, person: None }, released)
    }

    /// Writes all rows in their order, and counts the sizes of classes.
    fn write(
        &mut self,
        path: &Path,
        format: Format,
        original: Original<'_>,
        released: &ReleasedTable,
        progress: &dyn Progress,
    ) -> Result<(), WriteError> {
        progress.begin("writing", self.n_rows);
        let target = File::create_new(path).map_err(WriteError::io(path))?;
        let mut writer = RowWriter::new(format, Box::new(target), path);
        let mut merge = Merge::new(self.spill, &self.files)?;
        let n_columns = 2 * self.quasi.len() + self.copied.len() + usize::from(self.persons.is_some());
        let numbers: Vec<LabelNumbers> =
            self.quasi.iter().map(|quasi| quasi.labels.keys().copied().zip(0..).collect()).collect();
        let shown_ids: Vec<Vec<u32>> = self.copied.iter().map(CopiedColumn::shown_by_rank).collect();
        let with_bounds = released.columns.iter().filter(|column| original.shows_bounds(column));
        let bounds = with_bounds.filter_map(|column| {
            let (labels, _) = recoded(released, column.source)?;
            let bounds = ShownBounds::both(&column.name, labels, &original.table.columns[column.source]);
            Some(bounds.map(|bounds| (column.source, bounds)))
        });
        let bounds: BTreeMap<usize, [ShownBounds; 2]> = bounds.collect::<Result<_, WriteError>>()?;
        let mut class = OpenClass::default();
        loop {
            let mut rows = vec![Vec::with_capacity(self.room.per_piece); n_columns];
            merge.take(&mut rows, self.room.per_piece)?;
            let n_rows = rows[0].len();
            if n_rows == 0 || progress.is_cancelled() {
                break;
            }
            let persons = self.persons.as_ref().and_then(|_| rows.pop());
            class.add(&rows[..2 * self.quasi.len()], persons.as_deref(), &mut self.sizes);
            if let (Some(of_rows), Some(persons)) = (&mut self.persons, persons) {
                of_rows.append(persons)?;
            }
            let label = |(pair, numbers): (&[Vec<u32>], &LabelNumbers)| -> Vec<u32> {
                let number = |(&lo, &hi): (&u32, &u32)| numbers.get(&(lo, hi)).copied().unwrap_or(NULL);
                let mut last = ((u32::MAX, 0), NULL);
                let cells = pair[0].iter().zip(&pair[1]).map(|(lo, hi)| {
                    if last.0 != (*lo, *hi) {
                        last = ((*lo, *hi), number((lo, hi)));
                    }
                    last.1
                });
                cells.collect()
            };
            let pairs: Vec<&[Vec<u32>]> = rows[..2 * self.quasi.len()].chunks(2).collect();
            let labelled = pairs.into_par_iter().zip(&numbers).map(label);
            let copied = rows[2 * self.quasi.len()..].par_iter().zip(&shown_ids);
            let copied = copied.map(|(ranks, ids)| ranks.iter().map(|&rank| ids[rank as usize]).collect());
            let sources =
                self.quasi.iter().map(|quasi| quasi.source).chain(self.copied.iter().map(|copied| copied.source));
            let ids: BTreeMap<usize, Vec<u32>> =
                sources.zip(labelled.chain(copied).collect::<Vec<Vec<u32>>>()).collect();
            let columns = released.columns.iter().flat_map(|column| {
                let (ids, bounds) = (&ids[&column.source], bounds.get(&column.source));
                file_columns(column, original, ids, bounds)
            });
            let columns: Vec<FileColumn<'_>> = columns.collect();
            writer.write(&columns, n_rows, original)?;
            progress.advance(n_rows as u64);
        }
        class.close(&mut self.sizes);
        writer.finish()
    }
}

impl CopiedColumn {
    fn new(source: usize, texts: &Texts) -> Self {
        let mut by_text: Vec<u32> = (0..texts.len() as u32).collect();
        by_text.par_sort_unstable_by_key(|&id| texts.get(id));
        let mut ranks = vec![0; texts.len()];
        (1..).zip(&by_text).for_each(|(rank, &id)| ranks[id as usize] = rank);
        CopiedColumn { source, ranks, is_shown: vec![false; texts.len()] }
    }

    /// The texts that are shown, in the order of texts, because that of their ids would tell the order of private rows.
    fn shown(&self, texts: &Texts) -> Texts {
        let mut by_rank = vec![None; self.ranks.len() + 1];
        for (id, (&rank, _)) in (0..).zip(self.ranks.iter().zip(&self.is_shown)).filter(|(_, (_, is_shown))| **is_shown)
        {
            by_rank[rank as usize] = Some(id);
        }
        by_rank.into_iter().flatten().map(|id: u32| texts.get(id)).collect()
    }

    /// Turns ranks of all texts into positions among the shown texts. Texts that are not shown have none, and neither has rank 0,
    /// which is null.
    fn shown_by_rank(&self) -> Vec<u32> {
        let mut is_shown = vec![false; self.ranks.len() + 1];
        self.ranks.iter().zip(&self.is_shown).for_each(|(&rank, &shown)| is_shown[rank as usize] = shown);
        let mut n_shown = 0;
        let number = |is_shown: bool| {
            n_shown += u32::from(is_shown);
            if is_shown { n_shown - 1 } else { NULL }
        };
        is_shown.into_iter().map(number).collect()
    }
}

/// The class whose rows are being written.
#[derive(Default)]
struct OpenClass {
    cells: Vec<u32>,
    n_rows: u64,
    /// The person of each row, if rows are not persons.
    persons: Vec<u32>,
}

impl OpenClass {
    fn add(&mut self, columns: &[Vec<u32>], persons: Option<&[u32]>, sizes: &mut ClassSizes) {
        for row in 0..columns.first().map_or(0, Vec::len) {
            if self.n_rows == 0 || columns.iter().zip(&self.cells).any(|(column, &cell)| column[row] != cell) {
                self.close(sizes);
                self.cells = columns.iter().map(|column| column[row]).collect();
            }
            self.n_rows += 1;
            self.persons.extend(persons.map(|persons| persons[row]));
        }
    }

    fn close(&mut self, sizes: &mut ClassSizes) {
        self.persons.sort_unstable();
        self.persons.dedup();
        let size = if self.persons.is_empty() { self.n_rows } else { self.persons.len() as u64 };
        if size > 0 {
            sizes.n_classes += 1;
            sizes.members += size;
            sizes.squares += (size as f64).powi(2);
        }
        self.n_rows = 0;
        self.persons.clear();
    }
}

/// The labels of a generalized column, and the label of each row.
fn recoded(table: &ReleasedTable, source: usize) -> Option<(&Texts, &[u32])> {
    table.columns.iter().find(|column| column.source == source).and_then(|column| match &column.cells {
        Cells::Recoded { labels, ids } => Some((labels, ids.as_slice())),
        Cells::Copied | Cells::Surrogate { .. } => None,
    })
}

/// The columns of the file for a released column, whose cells are numbers of the texts that it shows.
fn file_columns<'a>(
    column: &'a ReleasedColumn,
    original: Original<'a>,
    ids: &'a [u32],
    bounds: Option<&'a [ShownBounds; 2]>,
) -> Vec<FileColumn<'a>> {
    let source = column.source;
    if let Some(bounds) = bounds {
        let of_bounds = |bounds: &'a ShownBounds| FileColumn {
            name: Cow::Borrowed(&bounds.name),
            source,
            kind: Kind::Bounds,
            ids: CellIds::Renumbered { ids: CellsOf::Released(ids), numbers: bounds.numbers.clone() },
            texts: Some(Cow::Borrowed(&bounds.texts)),
        };
        return bounds.iter().map(of_bounds).collect();
    }
    let (kind, texts) = match &column.cells {
        Cells::Recoded { labels, .. } => (Kind::Labels, labels),
        Cells::Copied | Cells::Surrogate { .. } => (Kind::Copied, &original.table.columns[source].texts),
    };
    let (name, ids) = (Cow::Borrowed(column.name.as_str()), CellIds::Plain(CellsOf::Released(ids)));
    vec![FileColumn { name, source, kind, ids, texts: Some(Cow::Borrowed(texts)) }]
}
