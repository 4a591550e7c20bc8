//! Tables of the data folder: making them and changing their rows.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, RecordBatch, UInt64Array};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef, TimeUnit};
use datafusion::catalog::TableProvider;
use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::common::{Constraint, TableReference};
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{
    CreateIndex, CreateMemoryTable, DmlStatement, Expr, LogicalPlan, LogicalPlanBuilder, WriteOp,
};
use datafusion::sql::parser::Statement as DFStatement;
use futures::TryStreamExt;
use kohort_store::{ColumnDescription, IndexDescription, ScanRequest, TableDescription, TableKind, Uniqueness};

use super::catalog::{self, CatalogChange};
use super::transactions::{self, Transaction, blocking};
use super::values::literal_rows;
use crate::SqlError;
use crate::engine::query::plans::reads_any;
use crate::engine::session::recorded;
use crate::engine::session::{Outcome, counted, rows, stream_of};
use crate::engine::{Session, Shared};
use crate::policy::{Pair, UsedView};
use crate::role::Role;
use crate::store::{Reading, StoredTable, numbered, numbers_and};

/// Changes rows of a stored table; `None` if the table is not stored.
pub(crate) async fn change_stored(
    session: &mut Session,
    context: &SessionContext,
    dml: &DmlStatement,
    read: &[UsedView],
) -> Result<Option<Outcome>, SqlError> {
    let provider = source_as_provider(&dml.target)?;
    let Some(table) = provider.downcast_ref::<StoredTable>() else { return Ok(None) };
    recorded::reads_for_change(session, read);
    let n_rows = change_rows(session, context, dml, table).await?;
    changed_count(n_rows).map(Some)
}

/// Inserts rows of literals into a stored table; `None` for any other statement.
pub(crate) async fn insert_literals(
    session: &mut Session,
    statement: &DFStatement,
) -> Result<Option<Outcome>, SqlError> {
    if session.shared.store.is_none() || session.role != Role::Owner {
        return Ok(None);
    }
    let Some(literal) = literal_rows(statement) else { return Ok(None) };
    let Some(table) = stored_table(&session.context, &literal.table).await else { return Ok(None) };
    let schema = table.schema();
    let Some(batch) = literal.batch(&schema) else { return Ok(None) };
    let (name, shared) = (table.description().name.clone(), Arc::clone(&session.shared));
    let n_rows = batch.num_rows() as u64;
    let batch = as_table(&batch, &schema)?;
    // Ask for watched columns inside the turn, because a view may have been made just before it.
    let insert = move |transaction: &mut Transaction| {
        transaction.touch(&name, &batch, &shared.watched(&name)?)?;
        transaction.change.insert(&name, &batch)?;
        Ok(())
    };
    match session.is_in_transaction() {
        false => transactions::in_own_transaction(session, insert).await?,
        true => transactions::in_transaction(session, async |transaction| insert(transaction)).await?,
    }
    changed_count(n_rows).map(Some)
}

/// Reads a file into a stored table.
pub(crate) async fn copy_from(session: &mut Session, table: &TableReference, file: &str) -> Result<Outcome, SqlError> {
    session.transaction.check()?;
    let context = session.scoped(&Pair::default())?;
    let Some(stored) = stored_table(&context, table).await else {
        return Err(match session.shared.store {
            Some(_) => SqlError::NotStored { name: table.table().to_owned() },
            None => SqlError::NoDataFolder,
        });
    };
    let schema = stored.schema();
    let (name, shared) = (table.table().to_owned(), Arc::clone(&session.shared));
    let n_rows = transactions::in_transaction(session, async |transaction| {
        let watched = shared.watched(&name)?;
        let stream = super::copy::read_file(file, &schema);
        insert(transaction, &name, &schema, stream, &watched).await
    })
    .await?;
    Ok(Outcome::Done(format!("copied {} into {name}", counted(n_rows as usize, "row"))))
}

/// Changes rows as a statement says, and says how many.
async fn change_rows(
    session: &mut Session,
    context: &SessionContext,
    dml: &DmlStatement,
    table: &StoredTable,
) -> Result<u64, SqlError> {
    let name = table.description().name.clone();
    let schema = table.schema();
    let input = match &dml.op {
        // TRUNCATE names no rows, so read all of them.
        WriteOp::Truncate => {
            LogicalPlanBuilder::scan(dml.table_name.clone(), Arc::clone(&dml.target), None)?.build()?.into()
        }
        _ => Arc::clone(&dml.input),
    };
    let (op, shared) = (dml.op.clone(), Arc::clone(&session.shared));
    let context = context.clone();
    transactions::in_transaction(session, async |transaction| {
        // Ask inside the turn, because a view may have been made just before it.
        let watched = shared.watched(&name)?;
        let context = reading(&context, transaction);
        match op {
            WriteOp::Insert(InsertOp::Append) => {
                let frame = context.execute_logical_plan(input.as_ref().clone()).await?;
                let stream = match reads_any(&input, <dyn TableProvider>::is::<StoredTable>)? {
                    false => frame.execute_stream().await.map_err(SqlError::while_running)?,
                    // Read all rows first, because the statement may change the table it reads.
                    true => stream_of(Arc::clone(&schema), frame.collect().await.map_err(SqlError::while_running)?),
                };
                insert(transaction, &name, &schema, stream, &watched).await
            }
            WriteOp::Delete | WriteOp::Truncate => delete(transaction, &context, &name, &input, &watched).await,
            WriteOp::Update => update(transaction, &context, &name, &schema, &input, &watched).await,
            _ => Err(SqlError::NotForStored { what: "INSERT OVERWRITE and MERGE" }),
        }
    })
    .await
}

pub(crate) async fn create_table(
    session: &Session,
    context: &SessionContext,
    create: &CreateMemoryTable,
) -> Result<Outcome, SqlError> {
    let name = create.name.table().to_owned();
    let is_taken = || -> Result<bool, SqlError> {
        session.shared.check_name(&name)?;
        match context.table_exist(create.name.clone())? {
            true if !create.if_not_exists => Err(SqlError::Taken { name: name.clone() }),
            is_there => Ok(is_there),
        }
    };
    let is_there = || Ok(Outcome::Done(format!("there is a table {name} already")));
    if is_taken()? {
        return is_there();
    }
    if !create.column_defaults.is_empty() {
        return Err(SqlError::NotForStored { what: "DEFAULT" });
    }
    let description = describe(create)?;
    let store = session.shared.store.as_ref().ok_or(SqlError::NoDataFolder)?;
    let table = Arc::new(StoredTable::new(store.clone(), description.clone()));
    let schema = table.schema();
    let mut transaction = transactions::begin(session).await?;
    // Check again, because somebody may have taken the name before this turn.
    if is_taken()? {
        return is_there();
    }
    transaction.make_room(&name)?;
    let change = Arc::clone(&transaction.change);
    blocking(move || change.create_table(&description)).await?;
    let mut with_rows = String::new();
    if !matches!(create.input.as_ref(), LogicalPlan::EmptyRelation(_)) {
        let frame = reading(context, &transaction).execute_logical_plan(create.input.as_ref().clone()).await?;
        let stream = frame.execute_stream().await.map_err(SqlError::while_running)?;
        let n_rows = insert(&mut transaction, &name, &schema, stream, &[]).await?;
        with_rows = format!(" with {}", counted(n_rows as usize, "row"));
    }
    let done = format!("created table {name}{with_rows}");
    let register = move |shared: &Shared| shared.register(&TableReference::bare(name), table);
    catalog::publish(session, CatalogChange::Kept(transaction), register).await?;
    Ok(Outcome::Done(done))
}

pub(crate) async fn create_index(
    session: &mut Session,
    context: &SessionContext,
    create: &CreateIndex,
) -> Result<Outcome, SqlError> {
    let name = create.table.table().to_owned();
    if stored_table(context, &create.table).await.is_none() {
        return Err(SqlError::NotStored { name });
    }
    let columns = create.columns.iter().map(|column| match &column.expr {
        Expr::Column(column) => Ok(column.name.clone()),
        _ => Err(SqlError::NotForStored { what: "an index over expressions" }),
    });
    let columns: Vec<String> = columns.collect::<Result<_, _>>()?;
    let uniqueness = if create.unique { Uniqueness::Unique } else { Uniqueness::Plain };
    let table = name.clone();
    transactions::in_transaction(session, async |transaction| {
        let change = Arc::clone(&transaction.change);
        blocking(move || change.create_index(&table, &columns, uniqueness)).await
    })
    .await?;
    Ok(Outcome::Done(format!("created an index on {name}")))
}

async fn stored_table(context: &SessionContext, table: &TableReference) -> Option<Arc<StoredTable>> {
    let provider = context.table_provider(table.clone()).await.ok()?;
    provider.downcast_ref::<StoredTable>().map(|table| Arc::new(table.clone()))
}

/// The number of changed rows as an answer.
fn changed_count(n_rows: u64) -> Result<Outcome, SqlError> {
    let schema = Schema::new(vec![Field::new("count", DataType::UInt64, false)]);
    let counts = RecordBatch::try_new(schema.into(), vec![Arc::new(UInt64Array::from(vec![n_rows]))]);
    Ok(rows(counts.map_err(DataFusionError::from)?))
}

/// The session, reading what a transaction has changed so far.
pub(crate) fn reading(context: &SessionContext, transaction: &Transaction) -> SessionContext {
    of_state(context, Reading::Change(Arc::clone(&transaction.change)))
}

/// The session, reading one state of the store.
pub(crate) fn of_state(context: &SessionContext, reading: Reading) -> SessionContext {
    let mut state = context.state();
    state.config_mut().set_extension(Arc::new(reading));
    SessionContext::new_with_state(state)
}

async fn insert(
    transaction: &mut Transaction,
    table: &str,
    schema: &SchemaRef,
    mut stream: SendableRecordBatchStream,
    watched: &[String],
) -> Result<u64, SqlError> {
    let mut n_rows = 0;
    while let Some(batch) = stream.try_next().await.map_err(SqlError::while_running)? {
        let batch = as_table(&batch, schema)?;
        let n_before = n_rows;
        n_rows += batch.num_rows() as u64;
        transaction.touch(table, &batch, watched)?;
        let (change, table) = (Arc::clone(&transaction.change), table.to_owned());
        blocking(move || change.insert(&table, &batch).map_err(|error| error.after_rows(n_before))).await?;
    }
    Ok(n_rows)
}

async fn delete(
    transaction: &mut Transaction,
    context: &SessionContext,
    table: &str,
    input: &LogicalPlan,
    watched: &[String],
) -> Result<u64, SqlError> {
    let old = numbered_rows(context, numbers_and(watched, input)?).await?;
    let mut n_rows = 0;
    for batch in old {
        let (numbers, rest) = split_numbers(&batch)?;
        n_rows += numbers.len() as u64;
        transaction.touch(table, &rest, watched)?;
        let (change, table) = (Arc::clone(&transaction.change), table.to_owned());
        blocking(move || change.delete(&table, &numbers)).await?;
    }
    Ok(n_rows)
}

async fn update(
    transaction: &mut Transaction,
    context: &SessionContext,
    table: &str,
    schema: &SchemaRef,
    input: &LogicalPlan,
    watched: &[String],
) -> Result<u64, SqlError> {
    let mut n_rows = 0;
    for batch in numbered_rows(context, numbered(input)?).await? {
        let (numbers, new) = split_numbers(&batch)?;
        let new = as_table(&new, schema)?;
        n_rows += numbers.len() as u64;
        // Find the old rows by their numbers, because the WHERE may find others when it is asked again.
        let old = old_rows(transaction, table, &numbers, watched).await?;
        for old in &old {
            transaction.touch(table, old, watched)?;
        }
        transaction.touch(table, &new, watched)?;
        transaction.note_renamed(table, &old, &new, watched)?;
        let (change, table) = (Arc::clone(&transaction.change), table.to_owned());
        blocking(move || change.update(&table, &numbers, &new)).await?;
    }
    Ok(n_rows)
}

/// The watched columns of rows, before the rows are changed.
async fn old_rows(
    transaction: &Transaction,
    table: &str,
    numbers: &[i64],
    watched: &[String],
) -> Result<Vec<RecordBatch>, SqlError> {
    if watched.is_empty() {
        return Ok(Vec::new());
    }
    let (columns, numbers) = (Some(watched.to_vec()), Some(numbers.to_vec()));
    let request = ScanRequest { columns, numbers, ..ScanRequest::default() };
    let (change, table) = (Arc::clone(&transaction.change), table.to_owned());
    blocking(move || change.scan(&table, &request)?.collect::<Result<_, _>>()).await
}

/// Rows with their numbers. All of them are read before the first is changed.
async fn numbered_rows(context: &SessionContext, numbered: LogicalPlan) -> Result<Vec<RecordBatch>, SqlError> {
    let frame = context.execute_logical_plan(numbered).await?;
    frame.collect().await.map_err(SqlError::while_running)
}

fn split_numbers(batch: &RecordBatch) -> Result<(Vec<i64>, RecordBatch), SqlError> {
    let last = batch.num_columns() - 1;
    let numbers = batch.column(last).as_primitive::<Int64Type>().values().to_vec();
    let rest = batch.project(&(0..last).collect::<Vec<_>>()).map_err(DataFusionError::from)?;
    Ok((numbers, rest))
}

/// Rows, converted to the columns of a table.
fn as_table(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, SqlError> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| cast_with_options(column, field.data_type(), &options));
    let columns: Result<Vec<_>, _> = columns.collect();
    let failed = |error: datafusion::arrow::error::ArrowError| SqlError::while_running(error.into());
    RecordBatch::try_new(nullable(schema), columns.map_err(failed)?).map_err(failed)
}

/// The columns of a table, all of them nullable. The store decides where NULL is allowed.
pub(super) fn nullable(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

impl Transaction {
    /// Notes the values of watched columns in rows that are inserted or deleted.
    fn touch(&mut self, table: &str, rows: &RecordBatch, watched: &[String]) -> Result<(), SqlError> {
        self.changed.insert(table.to_owned());
        for name in watched {
            let known = self.touched.entry(table.to_owned()).or_default().entry(name.clone()).or_default();
            known.extend(texts_of(rows, name)?);
        }
        Ok(())
    }

    /// Notes values of watched columns that the new rows have and none of the old rows had.
    fn note_renamed(
        &mut self,
        table: &str,
        old: &[RecordBatch],
        new: &RecordBatch,
        watched: &[String],
    ) -> Result<(), SqlError> {
        for name in watched {
            let mut given = texts_of(new, name)?;
            for old in old {
                let had = texts_of(old, name)?;
                given.retain(|value| !had.contains(value));
            }
            self.renamed.entry(table.to_owned()).or_default().entry(name.clone()).or_default().extend(given);
        }
        Ok(())
    }
}

/// The distinct values of a column as texts; none if there is no such column.
fn texts_of(rows: &RecordBatch, column: &str) -> Result<BTreeSet<String>, SqlError> {
    let Some(column) = rows.column_by_name(column) else { return Ok(BTreeSet::new()) };
    let texts = cast(column, &DataType::Utf8).map_err(|error| SqlError::while_running(error.into()))?;
    Ok(texts.as_string::<i32>().iter().flatten().map(str::to_owned).collect())
}

/// A new table as the store keeps it.
fn describe(create: &CreateMemoryTable) -> Result<TableDescription, SqlError> {
    let schema = create.input.schema();
    let name_of = |position: &usize| schema.field(*position).name().clone();
    let (mut primary_key, mut indexes) = (Vec::new(), Vec::new());
    for constraint in create.constraints.iter() {
        match constraint {
            Constraint::PrimaryKey(columns) => primary_key = columns.iter().map(name_of).collect(),
            Constraint::Unique(columns) => {
                let columns = columns.iter().map(name_of).collect();
                indexes.push(IndexDescription { columns, uniqueness: Uniqueness::Unique });
            }
        }
    }
    let columns = columns_of(schema.as_arrow(), &primary_key);
    Ok(TableDescription { name: create.name.table().to_owned(), columns, primary_key, indexes, kind: TableKind::Base })
}

/// Columns as the store keeps them. Columns of the key are never NULL.
pub(crate) fn columns_of(schema: &Schema, key: &[String]) -> Vec<ColumnDescription> {
    let column = |field: &Arc<Field>| ColumnDescription {
        name: field.name().clone(),
        data_type: stored_type(field.data_type()),
        nullable: field.is_nullable() && !key.contains(field.name()),
    };
    schema.fields().iter().map(column).collect()
}

/// The type in which the store keeps values of a type.
fn stored_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8,
        DataType::BinaryView | DataType::LargeBinary => DataType::Binary,
        DataType::Float16 | DataType::Float32 => DataType::Float64,
        DataType::Date64 => DataType::Date32,
        DataType::UInt64 => DataType::Decimal128(20, 0),
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
        DataType::Dictionary(_, values) => stored_type(values),
        other => other.clone(),
    }
}
