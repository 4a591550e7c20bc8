//! [`Change`]: the transaction that writes.
//!
//! # Guarantee
//!
//! Each call takes effect as a whole or not at all: if one row of a batch is refused, no row is inserted. A
//! [`Savepoint`] undoes several calls together. Dropping a change undoes all of it.

use std::ops::{Deref, Range};
use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use rusqlite::types::ToSqlOutput;
use rusqlite::{ErrorCode, Statement, params};

use crate::catalog::{self, Table};
use crate::encoding::Cells;
use crate::session::{Held, Session};
use crate::{State, StoreError, TableDescription, Uniqueness};

/// A change under way. Its own reads see what it wrote.
pub struct Change {
    state: State,
}

/// A place in a change to which it can be undone. Undoing or releasing an earlier savepoint ends all later ones.
#[derive(Debug)]
pub struct Savepoint {
    name: String,
}

impl Deref for Change {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        // Open scans may keep the session, but the transaction ends now. SQLite keeps nothing of it even if this fails.
        let _ = self.state.session.close();
    }
}

impl Change {
    pub(crate) fn new(session: Session) -> Self {
        Self { state: State { session: Arc::new(session) } }
    }

    /// Creates a table.
    pub fn create_table(&self, description: &TableDescription) -> Result<(), StoreError> {
        self.all_or_nothing(|held| {
            if held.catalog.tables.contains_key(&description.name) {
                return Err(StoreError::TableExists { table: description.name.clone() });
            }
            catalog::create_table(&held.sql, description)?;
            held.read_catalog()
        })
    }

    /// Removes a table and its rows.
    pub fn drop_table(&self, table: &str) -> Result<(), StoreError> {
        self.all_or_nothing(|held| {
            let id = held.catalog.table(table)?.id;
            catalog::drop_table(&held.sql, id)?;
            held.note_write(id);
            held.next_rows.remove(&id);
            held.read_catalog()
        })
    }

    /// Creates an index over columns of a table.
    pub fn create_index(&self, table: &str, columns: &[String], uniqueness: Uniqueness) -> Result<(), StoreError> {
        self.all_or_nothing(|held| {
            let found = held.catalog.table(table)?;
            found.description.validate_index(columns)?;
            let positions = found.description.positions(columns)?;
            let made = catalog::create_index(&held.sql, found.id, &positions, catalog::role(uniqueness));
            made.map_err(|error| match error.sqlite_error_code() {
                Some(ErrorCode::ConstraintViolation) => {
                    StoreError::NotUnique { table: table.to_owned(), columns: columns.to_vec() }
                }
                _ => error.into(),
            })?;
            held.read_catalog()
        })
    }

    /// The number that the next row of a table gets.
    pub fn next_row(&self, table: &str) -> Result<i64, StoreError> {
        self.state.session.with(|held| held.next_row(held.catalog.table(table)?.id))
    }

    /// Appends rows and returns their numbers. The columns must be the table's columns in the same order.
    pub fn insert(&self, table: &str, rows: &RecordBatch) -> Result<Range<i64>, StoreError> {
        self.all_or_nothing(|held| {
            let catalog = held.catalog.clone();
            let found = catalog.table(table)?;
            let cells = cells(found, &whole_width(found, rows)?, rows)?;
            let first = held.next_row(found.id)?;
            let n_rows = i64::try_from(rows.num_rows()).expect("a batch is in memory");
            let next = first.checked_add(n_rows).ok_or(StoreError::Full)?;

            let marks = vec!["?"; cells.len() + 1].join(",");
            let mut statement = held.sql.prepare_cached(&format!("INSERT INTO t{} VALUES ({marks})", found.id))?;
            for (row, number) in (first..next).enumerate() {
                statement.raw_bind_parameter(1, number)?;
                bind(&mut statement, 2, found, &cells, row)?;
                statement.raw_execute().map_err(|error| refused(error, found, row))?;
            }
            drop(statement);
            held.next_rows.insert(found.id, next);
            held.note_write(found.id);
            Ok(first..next)
        })
    }

    /// Removes the rows with these numbers.
    pub fn delete(&self, table: &str, numbers: &[i64]) -> Result<(), StoreError> {
        self.all_or_nothing(|held| {
            let id = held.catalog.table(table)?.id;
            let mut statement = held.sql.prepare_cached(&format!("DELETE FROM t{id} WHERE row = ?"))?;
            for number in numbers {
                if statement.execute([number])? == 0 {
                    return Err(StoreError::UnknownRow { table: table.to_owned(), row: *number });
                }
            }
            drop(statement);
            held.note_write(id);
            Ok(())
        })
    }

    /// Changes some columns of the rows with these numbers. Each row of `columns` has the new values for the number at
    /// the same position.
    pub fn update(&self, table: &str, numbers: &[i64], columns: &RecordBatch) -> Result<(), StoreError> {
        self.all_or_nothing(|held| {
            let catalog = held.catalog.clone();
            let found = catalog.table(table)?;
            let other = |why: &str| StoreError::OtherColumns { table: table.to_owned(), why: why.to_owned() };
            if columns.num_rows() != numbers.len() {
                return Err(other("the number of rows is not the number of row numbers"));
            }
            if columns.num_columns() == 0 {
                return Err(other("there are no columns"));
            }
            let names: Vec<String> = columns.schema().fields().iter().map(|field| field.name().clone()).collect();
            let positions = found.description.positions(&names)?;
            let cells = cells(found, &positions, columns)?;

            let settings: Vec<String> = positions.iter().map(|position| format!("c{position} = ?")).collect();
            let sql = format!("UPDATE t{} SET {} WHERE row = ?", found.id, settings.join(", "));
            let mut statement = held.sql.prepare_cached(&sql)?;
            for (row, number) in numbers.iter().enumerate() {
                bind(&mut statement, 1, found, &cells, row)?;
                statement.raw_bind_parameter(cells.len() + 1, number)?;
                if statement.raw_execute().map_err(|error| refused(error, found, row))? == 0 {
                    return Err(StoreError::UnknownRow { table: table.to_owned(), row: *number });
                }
            }
            drop(statement);
            held.note_write(found.id);
            Ok(())
        })
        .map_err(StoreError::without_row)
    }

    /// Stores a text under a kind and a name, and replaces an older one.
    pub fn put_record(&self, kind: &str, name: &str, text: &str) -> Result<(), StoreError> {
        self.state.session.with(|held| {
            let mut statement = held.sql.prepare_cached("INSERT OR REPLACE INTO records VALUES (?, ?, ?)")?;
            statement.execute([kind, name, text])?;
            Ok(())
        })
    }

    /// Removes the text under a kind and a name, and returns whether there was one.
    pub fn remove_record(&self, kind: &str, name: &str) -> Result<bool, StoreError> {
        self.state.session.with(|held| {
            let mut statement = held.sql.prepare_cached("DELETE FROM records WHERE kind = ? AND name = ?")?;
            Ok(statement.execute([kind, name])? > 0)
        })
    }

    /// Marks a place to which the change can be undone.
    pub fn savepoint(&self) -> Result<Savepoint, StoreError> {
        self.state.session.with(|held| {
            held.n_savepoints += 1;
            let name = format!("s{}", held.n_savepoints);
            held.run(&format!("SAVEPOINT {name}"))?;
            Ok(Savepoint { name })
        })
    }

    /// Ends the savepoint. What was done since then stays part of the change.
    #[expect(clippy::needless_pass_by_value, reason = "a savepoint ends once")]
    pub fn release(&self, savepoint: Savepoint) -> Result<(), StoreError> {
        self.state.session.with(|held| held.run(&format!("RELEASE {}", savepoint.name)))
    }

    /// Undoes everything since the savepoint.
    #[expect(clippy::needless_pass_by_value, reason = "a savepoint ends once")]
    pub fn undo(&self, savepoint: Savepoint) -> Result<(), StoreError> {
        self.state.session.with(|held| held.undo(&savepoint.name))
    }

    /// Commits the change to the disk. New snapshots see it.
    pub fn commit(&self) -> Result<(), StoreError> {
        let session = &self.state.session;
        session.with(|held| {
            let mut statement = held.sql.prepare_cached("UPDATE tables SET next_row = ? WHERE id = ?")?;
            for (table_id, next) in &held.next_rows {
                statement.execute(params![next, table_id])?;
            }
            drop(statement);
            held.run("COMMIT")
        })?;
        session.close()
    }

    /// Undoes the change, as dropping it does, and reports a failure.
    pub fn rollback(&self) -> Result<(), StoreError> {
        self.state.session.close()
    }

    /// Does the work, or undoes all of it if it fails.
    fn all_or_nothing<T>(&self, work: impl FnOnce(&mut Held) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.state.session.with(|held| {
            held.run("SAVEPOINT step")?;
            match work(held) {
                Ok(done) => {
                    held.run("RELEASE step")?;
                    Ok(done)
                }
                Err(error) => {
                    // After some failures SQLite has already rolled back the whole transaction. Then there is nothing
                    // to undo, and the next call returns `TransactionOver`.
                    if !held.sql.is_autocommit() {
                        held.undo("step")?;
                    }
                    Err(error)
                }
            }
        })
    }
}

impl Held {
    fn run(&self, statement: &str) -> Result<(), StoreError> {
        self.sql.prepare_cached(statement)?.execute([])?;
        Ok(())
    }

    /// Undoes everything since a savepoint, and ends the savepoint.
    fn undo(&mut self, savepoint: &str) -> Result<(), StoreError> {
        self.run(&format!("ROLLBACK TO {savepoint}"))?;
        self.run(&format!("RELEASE {savepoint}"))?;
        for n_writes in self.writes.values_mut() {
            *n_writes += 1;
        }
        self.read_catalog()
    }

    /// Records that the table changed, so that open scans of it fail.
    fn note_write(&mut self, table_id: i64) {
        *self.writes.entry(table_id).or_default() += 1;
    }

    /// The least number that no row of the table ever had.
    fn next_row(&self, table_id: i64) -> Result<i64, StoreError> {
        if let Some(next) = self.next_rows.get(&table_id) {
            return Ok(*next);
        }
        let mut statement = self.sql.prepare_cached("SELECT next_row FROM tables WHERE id = ?")?;
        Ok(statement.query_row([table_id], |row| row.get(0))?)
    }
}

/// The positions of all columns, if the batch has exactly the table's columns.
fn whole_width(table: &Table, rows: &RecordBatch) -> Result<Vec<usize>, StoreError> {
    let columns = &table.description.columns;
    let schema = rows.schema();
    let names = schema.fields().iter().map(|field| field.name());
    if !names.eq(columns.iter().map(|column| &column.name)) {
        let why = "names or their order differ".to_owned();
        return Err(StoreError::OtherColumns { table: table.description.name.clone(), why });
    }
    Ok((0..columns.len()).collect())
}

/// The cells of a batch, whose columns are the table's columns at these positions.
fn cells<'a>(table: &Table, positions: &[usize], rows: &'a RecordBatch) -> Result<Vec<(usize, Cells<'a>)>, StoreError> {
    let mut cells = Vec::with_capacity(positions.len());
    for (array, position) in rows.columns().iter().zip(positions) {
        let column = &table.description.columns[*position];
        if *array.data_type() != column.data_type {
            let why = format!("column '{}' is of type {}, not {}", column.name, array.data_type(), column.data_type);
            return Err(StoreError::OtherColumns { table: table.description.name.clone(), why });
        }
        if !column.nullable
            && let Some(nulls) = array.nulls()
            && let Some(row) = nulls.iter().position(|is_valid| !is_valid)
        {
            return Err(StoreError::Missing { column: column.name.clone(), row: number(row) });
        }
        cells.push((*position, Cells::of(array.as_ref(), &table.types[*position])));
    }
    Ok(cells)
}

/// Binds the cells of a row to the parameters of a statement, starting with parameter `first`.
fn bind(
    statement: &mut Statement<'_>,
    first: usize,
    table: &Table,
    cells: &[(usize, Cells<'_>)],
    row: usize,
) -> Result<(), StoreError> {
    for (parameter, (position, column)) in (first..).zip(cells) {
        let does_not_fit = || {
            let column = &table.description.columns[*position];
            StoreError::DoesNotFit {
                column: column.name.clone(),
                data_type: column.data_type.clone(),
                row: number(row),
            }
        };
        let value = column.bound(row).ok_or_else(does_not_fit)?;
        let bound = statement.raw_bind_parameter(parameter, ToSqlOutput::Borrowed(value.as_value()));
        bound.map_err(|error| match error.sqlite_error_code() {
            Some(ErrorCode::TooBig) => does_not_fit(),
            _ => error.into(),
        })?;
    }
    Ok(())
}

/// The number of the row at a position of a batch.
fn number(position: usize) -> Option<u64> {
    Some(position as u64 + 1)
}

/// Converts the error with which SQLite refused a row.
fn refused(error: rusqlite::Error, table: &Table, row: usize) -> StoreError {
    let rusqlite::Error::SqliteFailure(code, Some(message)) = &error else {
        return error.into();
    };
    if code.code != ErrorCode::ConstraintViolation {
        return error.into();
    }
    // The message is "UNIQUE constraint failed: t3.c0, t3.c2". The names in the file contain the positions of the
    // columns.
    let named = message.rsplit_once(": ").map_or("", |(_, columns)| columns);
    let column = |name: &str| {
        let position: usize = name.rsplit_once(".c")?.1.parse().ok()?;
        Some(table.description.columns.get(position)?.name.clone())
    };
    let columns: Option<Vec<String>> = named.split(", ").map(column).collect();
    match columns {
        Some(columns) => StoreError::Duplicate { table: table.description.name.clone(), columns, row: number(row) },
        None => error.into(),
    }
}
