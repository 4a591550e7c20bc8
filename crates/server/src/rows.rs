//! [`Rows`]: the rows of an answer, which are sent to the client in parts.
//!
//! # Guarantee
//! Rows that are kept until the client asks for more count towards the memory of queries, and fail if there is no
//! memory left. After the last row, no memory is reserved.

use std::sync::Arc;

use arrow_pg::datatypes::{arrow_schema_to_pg_fields, encode_recordbatch};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::physical_plan::EmptyRecordBatchStream;
use futures::StreamExt;
use pgwire::api::portal::Format;
use pgwire::api::results::FieldInfo;
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::data::{FieldDescription, RowDescription};

use crate::error::AnswerError;
use crate::wire::Outgoing;

/// The number of rows that are encoded and sent before other tasks get a turn.
const SLICE: usize = 512;

/// The rows of a query that are not all sent yet.
pub(crate) struct Rows {
    stream: SendableRecordBatchStream,
    /// The columns as described to the client.
    schema: SchemaRef,
    fields: Arc<Vec<FieldInfo>>,
    /// Rows that were read and not sent yet.
    rest: Option<RecordBatch>,
    /// The memory of these rows.
    memory: MemoryReservation,
    /// The number of revocations when the query was started.
    pub(crate) revocations: u64,
}

/// Whether there may be more rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SentRows {
    All(u64),
    Some(u64),
}

impl Rows {
    /// Rows with these columns, in the formats that the client wants.
    pub(crate) fn new(
        stream: SendableRecordBatchStream,
        described: Option<SchemaRef>,
        formats: &[i16],
        revocations: u64,
        memory: &Arc<dyn MemoryPool>,
    ) -> Result<Rows, AnswerError> {
        let schema = described.unwrap_or_else(|| stream.schema());
        let fields = Arc::new(fields(&schema, formats)?);
        let memory = MemoryConsumer::new("rows of a cursor").register(memory);
        Ok(Rows { stream, schema, fields, rest: None, memory, revocations })
    }

    pub(crate) fn description(&self) -> RowDescription {
        description(&self.fields)
    }

    /// The columns.
    pub(crate) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Reads the first rows, so that their memory is known. A query of views has them ready.
    pub(crate) async fn begin(&mut self) -> Result<(), AnswerError> {
        self.rest = self.next_batch().await?;
        self.keep()
    }

    /// Reserves memory for the kept rows. A slice keeps the whole batch from which it was cut.
    fn keep(&mut self) -> Result<(), AnswerError> {
        let n_bytes = self.rest.as_ref().map_or(0, RecordBatch::get_array_memory_size);
        self.memory.try_resize(n_bytes).map_err(|error| {
            self.let_go();
            error.into()
        })
    }

    /// Frees the rows and their memory.
    fn let_go(&mut self) {
        self.rest = None;
        self.stream = Box::pin(EmptyRecordBatchStream::new(self.stream.schema()));
        self.memory.free();
    }

    /// Sends at most this many rows.
    pub(crate) async fn send(&mut self, wire: &mut Outgoing, max_rows: Option<usize>) -> Result<SentRows, AnswerError> {
        let mut n_sent = 0;
        loop {
            let left = max_rows.map_or(usize::MAX, |max_rows| max_rows - n_sent);
            if left == 0 {
                self.keep()?;
                return Ok(SentRows::Some(n_sent as u64));
            }
            let Some(batch) = self.next_batch().await? else { return Ok(SentRows::All(n_sent as u64)) };
            let n_rows = batch.num_rows().min(left).min(SLICE);
            if n_rows < batch.num_rows() {
                self.rest = Some(batch.slice(n_rows, batch.num_rows() - n_rows));
            }
            for row in encode_recordbatch(Arc::clone(&self.fields), batch.slice(0, n_rows)) {
                let row = row.map_err(|_| AnswerError::statement("0A000", "a value can't be encoded"))?;
                wire.put(&PgWireBackendMessage::DataRow(row))?;
            }
            n_sent += n_rows;
            wire.flush_if_full().await?;
        }
    }

    /// Passes over at most this many rows, and returns their number.
    pub(crate) async fn skip(&mut self, max_rows: Option<usize>) -> Result<u64, AnswerError> {
        let mut n_skipped = 0;
        while max_rows.is_none_or(|max_rows| n_skipped < max_rows) {
            let left = max_rows.map_or(usize::MAX, |max_rows| max_rows - n_skipped);
            let Some(batch) = self.next_batch().await? else { break };
            let n_rows = batch.num_rows().min(left);
            if n_rows < batch.num_rows() {
                self.rest = Some(batch.slice(n_rows, batch.num_rows() - n_rows));
            }
            n_skipped += n_rows;
        }
        self.keep()?;
        Ok(n_skipped as u64)
    }

    /// The next rows, with the columns that were described to the client.
    async fn next_batch(&mut self) -> Result<Option<RecordBatch>, AnswerError> {
        if let Some(rest) = self.rest.take() {
            return Ok(Some(rest));
        }
        loop {
            let Some(batch) = self.stream.next().await else {
                self.let_go();
                return Ok(None);
            };
            let batch = batch?;
            if batch.num_rows() > 0 {
                return Ok(Some(conform(&batch, &self.schema)?));
            }
        }
    }
}

/// The description of the columns as a message.
pub(crate) fn description(fields: &[FieldInfo]) -> RowDescription {
    RowDescription::new(fields.iter().map(FieldDescription::from).collect())
}

/// The columns in PostgreSQL's types.
pub(crate) fn fields(schema: &Schema, formats: &[i16]) -> Result<Vec<FieldInfo>, AnswerError> {
    let n_columns = schema.fields().len();
    let format = match formats {
        [] => Format::UnifiedText,
        [format] => Format::from(*format),
        formats if formats.len() == n_columns => Format::Individual(formats.to_vec()),
        formats => {
            let message = format!("there are {} result formats and {n_columns} columns", formats.len());
            return Err(AnswerError::statement("08P01", message));
        }
    };
    arrow_schema_to_pg_fields(schema, &format, None)
        .map_err(|_| AnswerError::statement("0A000", "a column has a type that PostgreSQL does not know"))
}

/// A batch with the types of a schema.
fn conform(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, AnswerError> {
    if batch.num_columns() != schema.fields().len() {
        return Err(AnswerError::statement("0A000", "the columns of this statement have changed"));
    }
    let own = batch.schema();
    let mut pairs = own.fields().iter().zip(schema.fields());
    if pairs.all(|(own, told)| own.data_type() == told.data_type()) {
        return Ok(batch.clone());
    }
    let told = batch.columns().iter().zip(schema.fields());
    let columns: Result<Vec<_>, _> = told.map(|(column, field)| cast(column, field.data_type())).collect();
    let columns = columns.map_err(DataFusionError::from)?;
    // Planning may have found out that a column is never null, so ignore nullability.
    let loose: Vec<_> = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(loose)), columns);
    Ok(batch.map_err(DataFusionError::from)?)
}
