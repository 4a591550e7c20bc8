//! Runs one request, which returns rows or a command tag.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{Schema, SchemaRef, UInt64Type};
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::sqlparser::ast::Statement as SqlStatement;
use futures::TryStreamExt;
use kohort_sql::parser::{Parsed, parse};
use kohort_sql::{Outcome, Role, SqlError};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::response::{CommandComplete, TransactionStatus};

use super::extended::{Portal, TextExtent, no_statement, timed_out};
use super::{Connection, PreparedBySql};
use crate::error::{AnswerError, ErrorMessage, WARNING, notice};
use crate::names::ColumnNames;
use crate::request::Request;
use crate::rows::{Rows, SentRows};

/// The largest numbers of open cursors and portals per connection: of an owner, and of an analyst.
const MOST_PORTALS: usize = 100;
const MOST_PORTALS_OF_ANALYST: usize = 16;

/// The result of a request.
pub(super) enum Answer {
    Rows(Rows),
    Done(String),
}

impl Connection {
    /// Runs a request of the simple protocol.
    pub(super) async fn run_simply(&mut self, request: Request) -> Result<(), AnswerError> {
        self.check_transaction(request.ends_transaction())?;
        self.check_read_only(&request)?;
        if let Request::Fetch { name, .. } | Request::Move { name, .. } = &request {
            self.start_bound(name).await?;
        }
        if let Request::Fetch { name, max_rows } = &request {
            return self.fetch(name, *max_rows, DescribedAnswer::Yes).await;
        }
        match self.run(request, None, &[]).await? {
            Answer::Rows(mut rows) => {
                self.wire.put(&PgWireBackendMessage::RowDescription(rows.description()))?;
                let (SentRows::All(n_rows) | SentRows::Some(n_rows)) = rows.send(&mut self.wire, None).await?;
                self.count_rows(n_rows);
                self.complete(&format!("SELECT {n_rows}"))
            }
            Answer::Done(tag) => self.complete(&tag),
        }
    }

    /// Runs a request. Rows have the columns that were described to the client, in the formats that it wants.
    pub(super) async fn run(
        &mut self,
        request: Request,
        described: Option<SchemaRef>,
        formats: &[i16],
    ) -> Result<Answer, AnswerError> {
        let tag = match request {
            Request::Rows(parsed) => {
                let names = ColumnNames::of(&parsed);
                return match self.session.run(*parsed).await? {
                    Outcome::Rows(stream) => {
                        let described = described.unwrap_or_else(|| names.give(stream.schema()));
                        self.rows(stream, Some(described), formats)
                    }
                    Outcome::Done(message) => {
                        self.say(&message)?;
                        Ok(Answer::Done("DONE".to_owned()))
                    }
                };
            }
            Request::Command { parsed, tag } => {
                self.command(*parsed).await?;
                tag.to_owned()
            }
            Request::Change { parsed, tag } => format!("{tag} {}", self.change(*parsed).await?),
            Request::Transaction(transaction) => self.transact(transaction).await?.to_owned(),
            Request::Set { name, value, scope } => {
                self.set(&name, value.as_deref(), scope)?;
                if value.is_some() { "SET" } else { "RESET" }.to_owned()
            }
            Request::SetLocalOption { name, parsed } => {
                self.set_local_option(&name, *parsed).await?;
                "SET".to_owned()
            }
            Request::Reset(name) => {
                match name {
                    Some(name) => self.reset_option(&name)?,
                    None => self.reset_all()?,
                }
                "RESET".to_owned()
            }
            Request::SetTransaction { modes, scope } => {
                self.set_modes(&modes, scope)?;
                "SET".to_owned()
            }
            Request::Show(name) => {
                let value = self.settings.get(&name).unwrap_or_default().to_owned();
                return self.rows(texts(&name.to_lowercase().replace(' ', "_"), value)?, described, formats);
            }
            Request::Health => {
                self.session.health().await?;
                return self.rows(texts("health", "ok".to_owned())?, described, formats);
            }
            Request::Declare { name, query } => {
                self.check_portals(&name)?;
                let place = self.cursor_place()?;
                let names = ColumnNames::of(&query);
                let Outcome::Rows(stream) = self.session.run(*query).await? else {
                    return Err(AnswerError::statement("42P11", "DECLARE needs a query"));
                };
                let named = names.give(stream.schema());
                let mut rows = Rows::new(stream, Some(named), &[], self.session.revocations(), &self.memory())?;
                rows.begin().await?;
                self.portals.insert(name, Portal::declared(rows, place));
                "DECLARE CURSOR".to_owned()
            }
            // In the extended protocol a FETCH is a portal itself, and all its rows are returned at once.
            Request::Fetch { name, max_rows } => {
                self.fetch(&name, max_rows, DescribedAnswer::No).await?;
                return Ok(Answer::Done(String::new()));
            }
            Request::Move { name, max_rows } => {
                self.session.note("MOVE")?;
                let rows = rows_of_cursor(&mut self.portals, &name, self.session.revocations())?;
                format!("MOVE {}", rows.skip(max_rows).await?)
            }
            Request::Configure(parsed) => {
                let stream = self.configure(&parsed).await?;
                return self.rows(stream, described, formats);
            }
            Request::CloseCursor(None) => {
                self.portals.retain(|_, portal| !portal.is_declared());
                "CLOSE CURSOR ALL".to_owned()
            }
            Request::CloseCursor(Some(name)) => {
                self.portals.remove(&name).ok_or_else(|| no_cursor(&name))?;
                "CLOSE CURSOR".to_owned()
            }
            Request::Prepare { name, parsed } => {
                let kept = PreparedBySql { extent: TextExtent::of(&parsed.text), changes: !prepares_query(&parsed) };
                self.check_statements(kept.extent)?;
                self.command(*parsed).await?;
                self.prepared.insert(name, kept);
                "PREPARE".to_owned()
            }
            Request::Deallocate(None) => {
                self.deallocate_all().await?;
                "DEALLOCATE ALL".to_owned()
            }
            Request::Deallocate(Some(name)) => {
                if self.statements.remove(&name).is_none() && !self.deallocate(&name).await? {
                    return Err(no_statement(&name));
                }
                "DEALLOCATE".to_owned()
            }
            Request::DiscardAll => {
                if self.status != TransactionStatus::Idle {
                    return Err(AnswerError::statement("25001", "DISCARD ALL can't run in a transaction"));
                }
                self.deallocate_all().await?;
                self.portals.clear();
                self.reset_all()?;
                "DISCARD ALL".to_owned()
            }
            Request::Nothing(tag) => tag.to_owned(),
        };
        Ok(Answer::Done(tag))
    }

    fn rows(
        &self,
        stream: SendableRecordBatchStream,
        described: Option<SchemaRef>,
        formats: &[i16],
    ) -> Result<Answer, AnswerError> {
        Ok(Answer::Rows(Rows::new(stream, described, formats, self.session.revocations(), &self.memory())?))
    }

    /// The memory pool of queries.
    pub(super) fn memory(&self) -> Arc<dyn MemoryPool> {
        Arc::clone(&self.session.context().runtime_env().memory_pool)
    }

    async fn deallocate_all(&mut self) -> Result<(), AnswerError> {
        self.statements.clear();
        while let Some(name) = self.prepared.keys().next().cloned() {
            self.deallocate(&name).await?;
        }
        Ok(())
    }

    /// Removes a statement of PREPARE, and returns whether there was one.
    async fn deallocate(&mut self, name: &str) -> Result<bool, AnswerError> {
        if self.prepared.remove(name).is_none() {
            return Ok(false);
        }
        let statement = format!("DEALLOCATE \"{}\"", name.replace('"', "\"\""));
        for parsed in parse(&statement).map_err(SqlError::from)? {
            self.session.run(parsed).await?;
        }
        Ok(true)
    }

    /// Runs a statement without rows, and sends its message as a notice.
    pub(super) async fn command(&mut self, parsed: Parsed) -> Result<(), AnswerError> {
        match self.session.run(parsed).await? {
            Outcome::Done(message) if message == "done" => Ok(()),
            Outcome::Done(message) => self.say(&message),
            Outcome::Rows(stream) => Ok(stream.try_for_each(|_| async { Ok(()) }).await?),
        }
    }

    /// Sends each line of a message as a notice or a warning.
    pub(super) fn say(&mut self, message: &str) -> Result<(), AnswerError> {
        for line in message.lines() {
            let severity = if line.starts_with(WARNING) { "warning" } else { "notice" };
            if self.settings.hears(severity) {
                self.wire.put(&notice(line))?;
            }
        }
        Ok(())
    }

    /// Runs a statement that changes rows, and returns their number.
    async fn change(&mut self, parsed: Parsed) -> Result<u64, AnswerError> {
        let stream = match self.session.run(parsed).await? {
            Outcome::Rows(stream) => stream,
            Outcome::Done(message) => {
                self.say(&message)?;
                return Ok(0);
            }
        };
        let batches: Vec<RecordBatch> = stream.try_collect().await?;
        let count = |batch: &RecordBatch| {
            let counts = batch.columns().first()?.as_primitive_opt::<UInt64Type>()?;
            Some(counts.iter().flatten().sum::<u64>())
        };
        Ok(batches.iter().filter_map(count).sum())
    }

    /// Rows of a cursor.
    pub(super) async fn fetch(
        &mut self,
        name: &str,
        max_rows: Option<usize>,
        described: DescribedAnswer,
    ) -> Result<(), AnswerError> {
        self.session.note("FETCH")?;
        let rows = rows_of_cursor(&mut self.portals, name, self.session.revocations())?;
        if described == DescribedAnswer::Yes {
            self.wire.put(&PgWireBackendMessage::RowDescription(rows.description()))?;
        }
        let (SentRows::All(n_rows) | SentRows::Some(n_rows)) = rows.send(&mut self.wire, max_rows).await?;
        self.count_rows(n_rows);
        self.complete(&format!("FETCH {n_rows}"))
    }

    pub(super) fn check_portals(&self, name: &str) -> Result<(), AnswerError> {
        if !name.is_empty() && self.portals.contains_key(name) {
            return Err(AnswerError::statement("42P03", format!("cursor \"{name}\" already exists")));
        }
        let most = match self.session.role() {
            Role::Owner => MOST_PORTALS,
            Role::Analyst => MOST_PORTALS_OF_ANALYST,
        };
        if self.portals.len() >= most {
            return Err(AnswerError::statement(
                "53400",
                format!("this connection has {most} open cursors, which is the limit"),
            ));
        }
        Ok(())
    }

    pub(super) fn complete(&mut self, tag: &str) -> Result<(), AnswerError> {
        self.server.metrics.answered.add(1);
        Ok(self.wire.put(&PgWireBackendMessage::CommandComplete(CommandComplete::new(tag.to_owned())))?)
    }

    pub(super) fn count_rows(&self, n_rows: u64) {
        self.server.metrics.rows.add(n_rows);
    }
}

/// Whether to send a description of the columns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DescribedAnswer {
    Yes,
    No,
}

/// Refuses to continue with rows if rights were revoked since they were requested.
pub(super) fn check_revocations(rows: &Rows, now: u64) -> Result<(), AnswerError> {
    if rows.revocations == now {
        return Ok(());
    }
    let refusal = ErrorMessage::new("42501", "grants have changed since this query was started");
    Err(refusal.hint("run the query again").into())
}

/// The rows of a cursor that are left, if the login may still read them.
fn rows_of_cursor<'p>(
    portals: &'p mut HashMap<String, Portal>,
    name: &str,
    revocations: u64,
) -> Result<&'p mut Rows, AnswerError> {
    let portal = portals.get_mut(name).ok_or_else(|| no_cursor(name))?;
    if portal.is_timed_out() {
        return Err(timed_out(name));
    }
    let rows = portal.rows().ok_or_else(|| no_cursor(name))?;
    check_revocations(rows, revocations)?;
    Ok(rows)
}

fn no_cursor(name: &str) -> AnswerError {
    AnswerError::statement("34000", format!("there is no cursor \"{name}\""))
}

/// Whether this is a PREPARE of a query.
fn prepares_query(parsed: &Parsed) -> bool {
    let Some(SqlStatement::Prepare { statement, .. }) = parsed.sql() else { return false };
    matches!(statement.as_ref(), SqlStatement::Query(_))
}

/// One row with one text.
fn texts(name: &str, text: String) -> Result<SendableRecordBatchStream, AnswerError> {
    let column = Arc::new(StringArray::from(vec![text]));
    let batch = RecordBatch::try_from_iter([(name, column as _)]).map_err(DataFusionError::from)?;
    let schema: Arc<Schema> = batch.schema();
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::iter([Ok(batch)]))))
}
