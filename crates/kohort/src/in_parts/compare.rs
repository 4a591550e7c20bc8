//! [`compare_in_parts`]: compares a release with its private table, both larger than memory.
//!
//! 1. Read the release: its rows go to parts that have whole classes.
//! 2. Count each part. Its rows, each with the size of its class, go to groups that can be traced by themselves.
//! 3. Read the private table: its rows go to the same groups, and to parts in which the risk before is counted.
//! 4. Trace each group. A group that is too large is parted once more.

use std::path::Path;

use kohort_io::{CellStore, CountedRowsAgain, NumberedRows, RowsAgain, Sources, Spill, StoredRows, parts_of};
use kohort_model::spec::TableSpec;
use kohort_model::{Progress, Requirement, Role, Table};
use kohort_verify::{CountedRows, Findings, OriginCut, PartsAgainst, PartsCounter, Violation, Violations};

use crate::error::Error;
use crate::memory::Memory;

/// A release and its private table, whose rows are read piece by piece.
pub(crate) struct BothTables<'a> {
    pub(crate) released: &'a mut CountedRowsAgain,
    pub(crate) n_released: u64,
    pub(crate) private: &'a mut RowsAgain,
    pub(crate) original: CountedRows<'a>,
    pub(crate) sources: Sources<'a>,
    pub(crate) table_spec: &'a TableSpec,
}

/// What is counted of both tables.
pub(crate) struct ComparedInParts {
    /// The release, compared with the private table.
    pub(crate) counted: Result<Findings, Violations>,
    /// The private table, as if its quasi columns were released unchanged.
    pub(crate) before: Result<Findings, Violations>,
}

/// The rows of a group.
struct Group<'s> {
    released: StoredRows<'s>,
    private: StoredRows<'s>,
}

/// Compares all rows. `folder` is where they wait.
pub(crate) fn compare_in_parts(
    mut against: PartsAgainst<'_>,
    tables: BothTables<'_>,
    memory: Memory,
    folder: &Path,
    progress: &dyn Progress,
) -> Result<ComparedInParts, Error> {
    let BothTables { released, n_released, private, original, sources, table_spec } = tables;
    if n_released.max(original.n_rows) >= u64::from(u32::MAX) {
        return Err(Error::input("tables of more than 4294967294 rows can't be compared", "compare parts of them"));
    }
    let (public_columns, private_columns) = (against.released_columns(), against.private_columns());
    let quasi: Vec<usize> = (0..against.n_quasi()).collect();
    // Each released row has the size of its class and its number as two more columns.
    let (n_public, n_private) = (public_columns.len() + 2, private_columns.len());
    let n_numbers = n_released * (2 * n_public - 1) as u64 + original.n_rows * (n_private + quasi.len()) as u64;
    let spill = Spill::below(folder, n_numbers.saturating_mul(4).saturating_mul(9) / 8)?;
    let waiting = memory.waiting_rows(n_public.max(n_private) * 2);
    let cancelled = || if progress.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) };

    let n_parts = n_released.div_ceil(memory.rows_of_part(n_public)).max(1);
    let mut parts = CellStore::new(&spill, n_parts as usize, n_public - 1, waiting);
    let mut first = 0;
    released.for_each_piece(progress, |rows: &NumberedRows| -> Result<(), Error> {
        let mut compared = columns_of(rows, &public_columns);
        let n_rows = rows.first().map_or(0, Vec::len) as u32;
        compared.push((first..first + n_rows).collect());
        first += n_rows;
        Ok(parts.add(&compared, &parts_of(&compared, &quasi, n_parts))?)
    })?;

    let most_rows = memory.traced_rows(n_public.max(n_private));
    let cut = against.cut(&against.counts(), most_rows).filter(|_| n_released + original.n_rows > most_rows);
    let n_groups = cut.as_ref().map_or(1, OriginCut::n_groups);
    let mut of_released = CellStore::new(&spill, n_groups, n_public, waiting);
    progress.begin("counting", n_released);
    for part in parts.into_rows()? {
        cancelled()?;
        memory.check_part(part.n_rows(), n_public)?;
        let mut rows = part.all(n_public - 1)?;
        drop(part);
        let Some(row_numbers) = rows.pop().filter(|numbers| !numbers.is_empty()) else { continue };
        let sizes = match against.count_classes(&rows, &row_numbers) {
            Ok(sizes) => sizes,
            Err(violations) => {
                return Ok(ComparedInParts { counted: Err(violations), before: Err(Violations(vec![])) });
            }
        };
        progress.advance(row_numbers.len() as u64);
        rows.extend([sizes, row_numbers]);
        let groups = groups(cut.as_ref(), &rows, |cut| against.groups_of_released(cut, &rows));
        of_released.add(&rows, &groups)?;
    }

    let before_columns: Vec<usize> = original.table.with_role(Role::Quasi);
    let all: Vec<usize> = (0..before_columns.len()).collect();
    let n_before = original.n_rows.div_ceil(memory.rows_of_part(all.len())).max(1);
    let mut of_before = CellStore::new(&spill, n_before as usize, all.len(), waiting);
    let mut of_private = CellStore::new(&spill, n_groups, n_private, waiting);
    private.for_each_piece(sources, table_spec, progress, |rows: &NumberedRows| -> Result<(), Error> {
        let compared = columns_of(rows, &private_columns);
        let groups = groups(cut.as_ref(), rows, |cut| against.groups_of_private(cut, &compared));
        of_private.add(&compared, &groups)?;
        let quasi = columns_of(rows, &before_columns);
        Ok(of_before.add(&quasi, &parts_of(&quasi, &all, n_before))?)
    })?;
    let before = count_before(original.table, &before_columns, of_before.into_rows()?, &cancelled)?;

    let pairs = of_released.into_rows()?.into_iter().zip(of_private.into_rows()?);
    let mut waiting_groups: Vec<Group<'_>> = pairs.map(|(released, private)| Group { released, private }).collect();
    waiting_groups.reverse();
    let n_all = n_released + original.n_rows;
    progress.begin("tracing rows back", n_all);
    let tracing = Tracing { spill: &spill, memory, n_columns: (n_public, n_private), waiting };
    while let Some(group) = waiting_groups.pop() {
        cancelled()?;
        let n_rows = group.released.n_rows() + group.private.n_rows();
        match tracing.trace(&mut against, &group)? {
            Traced::Done => progress.advance(n_rows),
            Traced::Parted(groups) => waiting_groups.extend(groups.into_iter().rev()),
            Traced::Wrong(violations) => return Ok(ComparedInParts { counted: Err(violations), before }),
        }
    }
    Ok(ComparedInParts { counted: against.finish(), before })
}

/// What became of a group.
enum Traced<'s> {
    Done,
    Parted(Vec<Group<'s>>),
    Wrong(Violations),
}

/// What is needed to trace groups.
struct Tracing<'s> {
    spill: &'s Spill,
    memory: Memory,
    /// The columns of released and of private rows.
    n_columns: (usize, usize),
    waiting: usize,
}

impl<'s> Tracing<'s> {
    /// Traces the rows of a group, or parts them if they don't fit into memory.
    fn trace(&self, against: &mut PartsAgainst<'_>, group: &Group<'s>) -> Result<Traced<'s>, Error> {
        let (n_public, n_private) = self.n_columns;
        let n_rows = group.released.n_rows() + group.private.n_rows();
        let most_rows = self.memory.traced_rows(n_public.max(n_private));
        if n_rows > most_rows
            && let Some(parted) = self.part(against, group, most_rows)?
        {
            return Ok(Traced::Parted(parted));
        }
        self.memory.check_traced(n_rows, n_public.max(n_private))?;
        let (released, private) = (group.released.all(n_public)?, group.private.all(n_private)?);
        match against.trace(&released, &private, self.memory.of_origins()) {
            Ok(()) => Ok(Traced::Done),
            // Too many private rows could be the origin of each released row. There are fewer in a smaller group.
            Err(violations) if matches!(violations.0[..], [Violation::TooManyOrigins { .. }]) => {
                drop((released, private));
                Ok(match self.part(against, group, n_rows / 2)? {
                    Some(parted) => Traced::Parted(parted),
                    None => Traced::Wrong(violations),
                })
            }
            Err(violations) => Ok(Traced::Wrong(violations)),
        }
    }

    /// Parts the rows of a group, if that is possible.
    fn part(
        &self,
        against: &PartsAgainst<'_>,
        group: &Group<'s>,
        most_rows: u64,
    ) -> Result<Option<Vec<Group<'s>>>, Error> {
        let (n_public, n_private) = self.n_columns;
        let mut counts = against.no_counts();
        group.released.for_each_piece(|rows| -> Result<(), Error> {
            counts.add_released(rows);
            Ok(())
        })?;
        group.private.for_each_piece(|rows| -> Result<(), Error> {
            counts.add_private(rows);
            Ok(())
        })?;
        let Some(cut) = against.cut(&counts, most_rows) else { return Ok(None) };
        drop(counts);
        let mut of_released = CellStore::new(self.spill, cut.n_groups(), n_public, self.waiting);
        let mut of_private = CellStore::new(self.spill, cut.n_groups(), n_private, self.waiting);
        group.released.for_each_piece(|rows| of_released.add(rows, &against.groups_of_released(&cut, rows)))?;
        group.private.for_each_piece(|rows| of_private.add(rows, &against.groups_of_private(&cut, rows)))?;
        let pairs = of_released.into_rows()?.into_iter().zip(of_private.into_rows()?);
        Ok(Some(pairs.map(|(released, private)| Group { released, private }).collect()))
    }
}

/// Counts the private table as if its quasi columns were released unchanged.
fn count_before(
    table: &Table,
    quasi: &[usize],
    parts: Vec<StoredRows<'_>>,
    cancelled: &impl Fn() -> Result<(), Error>,
) -> Result<Result<Findings, Violations>, Error> {
    let columns: Vec<_> = quasi.iter().map(|&position| table.columns[position].clone()).collect();
    let table = Table { name: table.name.clone(), columns, n_rows: 0, person: None };
    let all: Vec<usize> = (0..quasi.len()).collect();
    let asked: &[Requirement] = &[];
    let mut counter = match PartsCounter::of_table(&table, &all, &[], asked) {
        Ok(counter) => counter,
        Err(violations) => return Ok(Err(violations)),
    };
    for part in parts.into_iter().filter(|part| part.n_rows() > 0) {
        cancelled()?;
        let ids = part.all(quasi.len())?;
        let n_rows = part.n_rows() as usize;
        let columns = table.columns.iter().zip(ids).map(|(column, ids)| column.with_ids(ids)).collect();
        let rows = Table { name: table.name.clone(), columns, n_rows, person: None };
        let row_numbers: Vec<u32> = (0..n_rows as u32).collect();
        if let Err(violations) = counter.count(&rows, &row_numbers, &[]) {
            return Ok(Err(violations));
        }
    }
    Ok(counter.finish().ok_or_else(|| Violation::NoRows { table: table.name.clone() }.into()))
}

/// Some columns of some rows.
fn columns_of(rows: &NumberedRows, columns: &[usize]) -> Vec<Vec<u32>> {
    columns.iter().map(|&column| rows[column].clone()).collect()
}

/// The group of each row; all are in one without a cut.
fn groups(cut: Option<&OriginCut>, rows: &NumberedRows, of_cut: impl Fn(&OriginCut) -> Vec<u32>) -> Vec<u32> {
    cut.map_or_else(|| vec![0; rows.first().map_or(0, Vec::len)], of_cut)
}
