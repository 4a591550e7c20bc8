//! The extended protocol: statements that are prepared, given values, described and run in parts.
//!
//! Purpose and recipient belong to a statement and are kept with it; whether they are granted is looked at when it runs.

use std::sync::Arc;

use tokio::time::Instant;

use arrow_pg::datatypes::field_into_pg_type;
use datafusion::arrow::datatypes::{DataType, Field, SchemaRef};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use kohort_sql::Role;
use kohort_sql::parser::{Parsed, StatementText};
use pgwire::api::Type;
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::data::{NoData, ParameterDescription};
use pgwire::messages::extendedquery::{BindComplete, CloseComplete, ParseComplete, PortalSuspended};
use pgwire::messages::response::EmptyQueryResponse;

use super::Connection;
use super::run::{Answer, check_revocations};
use crate::error::{AnswerError, ErrorMessage};
use crate::frontend::{Bind, Target};
use crate::metrics::Metrics;
use crate::names::ColumnNames;
use crate::parameters;
use crate::places::{NoPlace, Place};
use crate::request::Request;
use crate::rows::{Rows, SentRows, description, fields};

/// Statements one connection may keep.
const MOST_STATEMENTS: usize = 1000;
/// Bytes of an owner's texts together, as a multiple of the longest message.
const MOST_TEXT: usize = 2;
/// Words, signs and values of an analyst's statements together, of those that are kept and of those that have values: each
/// takes half a kilobyte once it is parsed.
const MOST_TOKENS: usize = 200_000;
/// Bytes that one of them takes.
const PER_TOKEN: usize = 512;

/// A statement that is kept.
pub(crate) struct Prepared {
    /// `None` where the text was empty.
    request: Option<Request>,
    /// Types of its parameters, as the client was or would be told.
    types: Vec<Type>,
    /// Columns of its rows; `None` where there are none, or they are known once it runs.
    schema: Option<SchemaRef>,
    extent: TextExtent,
    /// What it takes among all that statements take.
    _memory: MemoryReservation,
}

/// How much of a statement is kept.
#[derive(Clone, Copy, Default)]
pub(super) struct TextExtent {
    pub(super) n_bytes: usize,
    pub(super) n_tokens: usize,
}

impl TextExtent {
    /// Of a statement that was parsed.
    pub(super) fn of(text: &StatementText) -> TextExtent {
        TextExtent { n_bytes: text.written.len(), n_tokens: text.n_tokens }
    }

    fn and(self, other: TextExtent) -> TextExtent {
        TextExtent { n_bytes: self.n_bytes + other.n_bytes, n_tokens: self.n_tokens + other.n_tokens }
    }
}

/// A statement with values.
pub(crate) struct Portal {
    state: PortalState,
    formats: Vec<i16>,
    schema: Option<SchemaRef>,
    origin: StatementOrigin,
    /// What its statement and its values take.
    extent: TextExtent,
    /// Its place among cursors, where it stays open from one message to the next.
    place: Option<CursorPlace>,
    used: Instant,
}

/// A place among cursors, which is counted.
pub(super) struct CursorPlace {
    _place: Place<String>,
    metrics: Arc<Metrics>,
}

impl CursorPlace {
    fn new(place: Place<String>, metrics: &Arc<Metrics>) -> CursorPlace {
        metrics.cursors.add(1);
        CursorPlace { _place: place, metrics: Arc::clone(metrics) }
    }
}

impl Drop for CursorPlace {
    fn drop(&mut self) {
        self.metrics.cursors.less();
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StatementOrigin {
    /// Bound by a message: ends with the series of messages, or the transaction.
    Bound,
    /// Declared by a statement.
    Declared,
}

enum PortalState {
    /// It has not run. `None` is an empty statement.
    Ready(Option<Box<Request>>),
    /// Its rows are on their way.
    Rows(Rows),
    /// All of it has been sent.
    Finished,
    /// Nobody fetched from it for too long.
    TimedOut,
}

impl Portal {
    /// The cursor of a DECLARE.
    pub(super) fn declared(rows: Rows, place: CursorPlace) -> Portal {
        Portal {
            state: PortalState::Rows(rows),
            formats: Vec::new(),
            schema: None,
            origin: StatementOrigin::Declared,
            extent: TextExtent::default(),
            place: Some(place),
            used: Instant::now(),
        }
    }

    /// When it was last used, where it holds rows.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        matches!(self.state, PortalState::Rows(_)).then_some(self.used)
    }

    /// Lets its rows go.
    pub(super) fn time_out(&mut self) {
        self.state = PortalState::TimedOut;
        self.place = None;
    }

    pub(super) fn is_timed_out(&self) -> bool {
        matches!(self.state, PortalState::TimedOut)
    }

    pub(super) fn is_declared(&self) -> bool {
        self.origin == StatementOrigin::Declared
    }

    pub(super) fn rows(&mut self) -> Option<&mut Rows> {
        self.used = Instant::now();
        match &mut self.state {
            PortalState::Rows(rows) => Some(rows),
            _ => None,
        }
    }
}

impl Connection {
    pub(super) async fn prepare(&mut self, name: String, query: &str, oids: &[u32]) -> Result<(), AnswerError> {
        if !name.is_empty() && self.statements.contains_key(&name) {
            return Err(AnswerError::statement("42P05", format!("there is a prepared statement \"{name}\" already")));
        }
        let mut requests = Request::read(query, &self.session, &self.server.catalog, &self.settings)?;
        let mut request = requests.pop();
        if let Some(request) = &mut request {
            self.answer_keys(request).await;
        }
        if !requests.is_empty() {
            return Err(AnswerError::statement("42601", "cannot insert multiple commands into a prepared statement"));
        }
        if let Some(request) = &request {
            self.check_transaction(request.ends_transaction())?;
        }
        let extent =
            request.as_ref().and_then(Request::parsed).map(|parsed| TextExtent::of(&parsed.text)).unwrap_or_default();
        self.check_statements(extent)?;
        let (types, schema) = self.look_at(request.as_ref(), oids).await?;
        let memory = MemoryConsumer::new("prepared statements").register(&self.memory());
        memory.try_grow(extent.n_tokens * PER_TOKEN)?;
        let prepared = Prepared { request, types, schema, extent, _memory: memory };
        self.statements.insert(name, Arc::new(prepared));
        Ok(self.wire.put(&PgWireBackendMessage::ParseComplete(ParseComplete::new()))?)
    }

    /// Whether one more statement may be kept.
    pub(super) fn check_statements(&self, more: TextExtent) -> Result<(), AnswerError> {
        let by_sql = self.prepared.values().map(|prepared| prepared.extent);
        let known = self.statements.values().map(|prepared| prepared.extent).chain(by_sql);
        if known.clone().count() >= MOST_STATEMENTS || self.is_too_much(known.fold(more, TextExtent::and)) {
            return Err(AnswerError::statement("53400", "too many statements are prepared: close some"));
        }
        Ok(())
    }

    fn is_too_much(&self, all: TextExtent) -> bool {
        let is_analyst = self.session.role() == Role::Analyst;
        all.n_bytes > MOST_TEXT * self.server.configuration.max_message || is_analyst && all.n_tokens > MOST_TOKENS
    }

    /// The types of a statement's parameters, and its columns where it is a query.
    async fn look_at(
        &mut self,
        request: Option<&Request>,
        oids: &[u32],
    ) -> Result<(Vec<Type>, Option<SchemaRef>), AnswerError> {
        let Some((request, parsed)) = request.and_then(|request| Some((request, request.parsed()?))) else {
            return Ok((Vec::new(), None));
        };
        let n_parameters = parameters::count(parsed)?.max(oids.len());
        let is_query = matches!(request, Request::Rows(_));
        if is_query && n_parameters == 0 {
            return Ok((Vec::new(), self.columns_of(parsed).await?));
        }
        // Where it fails it may be for a parameter whose type only the client knows.
        let guessed = if is_query { self.session.describe(parsed).await.ok().flatten() } else { None };
        let stated = |position: usize| oids.get(position).copied().filter(|oid| *oid != 0);
        let inferred =
            |position: usize| guessed.as_ref()?.parameters.get(&format!("${}", position + 1)).cloned().flatten();
        let type_of = |position: usize| match stated(position) {
            Some(oid) => Type::from_oid(oid)
                .ok_or_else(|| AnswerError::statement("42704", format!("there is no type with number {oid}"))),
            None => Ok(inferred(position).map_or(Type::TEXT, |inferred| parameter_type(&inferred))),
        };
        let types: Result<Vec<Type>, AnswerError> = (0..n_parameters).map(type_of).collect();
        let types = types?;
        if !is_query {
            return Ok((types, None));
        }
        // Columns may depend on what the client says of its parameters.
        let mut typed = parsed.clone();
        let nulls: Vec<_> = types.iter().map(parameters::null_of).collect();
        parameters::substitute(&mut typed, &nulls, self.server.configuration.max_message)?;
        let schema = self.columns_of(&typed).await?;
        Ok((types, schema))
    }

    /// The columns of a query that is about to run, as the client is told of them.
    async fn columns_of(&mut self, query: &Parsed) -> Result<Option<SchemaRef>, AnswerError> {
        let described = self.session.prepare(query).await?;
        Ok(described.map(|described| ColumnNames::of(query).give(described.schema)))
    }

    pub(super) fn bind(&mut self, bind: Bind) -> Result<(), AnswerError> {
        let Bind { portal, statement, formats, values, result_formats } = bind;
        let prepared = self.statements.get(&statement).ok_or_else(|| no_statement(&statement))?;
        let n_wanted = prepared.types.len();
        if values.len() != n_wanted {
            let message = format!("there are {} values for {n_wanted} parameters", values.len());
            return Err(AnswerError::statement("08P01", message));
        }
        let format = |position: usize| match formats.as_slice() {
            [] => Ok(0),
            [format] => Ok(*format),
            formats => formats
                .get(position)
                .copied()
                .ok_or_else(|| AnswerError::statement("08P01", "there are fewer formats than values")),
        };
        let mut literals = Vec::new();
        for (position, (value, of)) in values.iter().zip(&prepared.types).enumerate() {
            literals.push(parameters::literal(value.as_ref(), of, format(position)?, position)?);
        }
        let mut request = prepared.request.clone();
        if let Some(parsed) = request.as_mut().and_then(Request::parsed_mut) {
            parameters::substitute(parsed, &literals, self.server.configuration.max_message)?;
        }
        if let Some(schema) = &prepared.schema {
            fields(schema, &result_formats)?;
        }
        let values = values.iter().flatten().map(bytes::Bytes::len).sum();
        let extent = prepared.extent.and(TextExtent { n_bytes: values, n_tokens: 0 });
        let bound = Portal {
            state: PortalState::Ready(request.map(Box::new)),
            formats: result_formats,
            schema: prepared.schema.clone(),
            origin: StatementOrigin::Bound,
            extent,
            place: None,
            used: Instant::now(),
        };
        if portal.is_empty() {
            self.portals.remove("");
        }
        self.check_portals(&portal)?;
        if self.is_too_much(self.portals.values().map(|portal| portal.extent).fold(extent, TextExtent::and)) {
            return Err(AnswerError::statement("53400", "too many statements have values and did not run: close some"));
        }
        self.portals.insert(portal, bound);
        Ok(self.wire.put(&PgWireBackendMessage::BindComplete(BindComplete::new()))?)
    }

    pub(super) async fn describe(&mut self, target: Target) -> Result<(), AnswerError> {
        match target {
            Target::Statement(name) => {
                let prepared = Arc::clone(self.statements.get(&name).ok_or_else(|| no_statement(&name))?);
                let types = prepared.types.iter().map(Type::oid).collect();
                let parameters = ParameterDescription::new(types);
                self.wire.put(&PgWireBackendMessage::ParameterDescription(parameters))?;
                let schema = match (&prepared.schema, &prepared.request) {
                    (Some(schema), _) => Some(Arc::clone(schema)),
                    // What lists something is run to see what its columns are; it changes nothing.
                    (None, Some(request @ (Request::Rows(_) | Request::Show(_) | Request::Health)))
                        if prepared.types.is_empty() =>
                    {
                        match self.run(request.clone(), None, &[]).await? {
                            Answer::Rows(rows) => Some(rows.schema()),
                            Answer::Done(_) => None,
                        }
                    }
                    (None, Some(Request::Fetch { name, .. })) => {
                        self.portals.get_mut(name).and_then(Portal::rows).map(|rows| rows.schema())
                    }
                    _ => None,
                };
                self.put_columns(schema.as_ref(), &[])
            }
            Target::Portal(name) => {
                let portal = self.portals.get(&name).ok_or_else(|| no_portal(&name))?;
                let formats = portal.formats.clone();
                let schema = match &portal.state {
                    PortalState::Rows(rows) => Some(rows.schema()),
                    PortalState::Ready(Some(request)) => match request.as_ref() {
                        Request::Rows(_) | Request::Show(_) | Request::Health => {
                            self.start(&name).await?;
                            self.stay_open(&name)?;
                            self.portals.get_mut(&name).and_then(Portal::rows).map(|rows| rows.schema())
                        }
                        Request::Fetch { name, .. } => {
                            let name = name.clone();
                            self.portals.get_mut(&name).and_then(Portal::rows).map(|rows| rows.schema())
                        }
                        _ => None,
                    },
                    _ => None,
                };
                self.put_columns(schema.as_ref(), &formats)
            }
        }
    }

    fn put_columns(&mut self, schema: Option<&SchemaRef>, formats: &[i16]) -> Result<(), AnswerError> {
        let message = match schema {
            Some(schema) => PgWireBackendMessage::RowDescription(description(&fields(schema, formats)?)),
            None => PgWireBackendMessage::NoData(NoData::new()),
        };
        Ok(self.wire.put(&message)?)
    }

    /// Runs a portal that is a query, up to its first row.
    async fn start(&mut self, name: &str) -> Result<(), AnswerError> {
        let portal = self.portals.get_mut(name).ok_or_else(|| no_portal(name))?;
        let PortalState::Ready(request) = std::mem::replace(&mut portal.state, PortalState::Finished) else {
            return Err(no_portal(name));
        };
        let Some(request) = request else { return Ok(()) };
        let (schema, formats) = (portal.schema.clone(), portal.formats.clone());
        self.check_transaction(request.ends_transaction())?;
        self.check_read_only(&request)?;
        if let Answer::Rows(rows) = self.run(*request, schema, &formats).await?
            && let Some(portal) = self.portals.get_mut(name)
        {
            portal.state = PortalState::Rows(rows);
        }
        Ok(())
    }

    pub(super) async fn execute(&mut self, name: &str, max_rows: usize) -> Result<(), AnswerError> {
        let portal = self.portals.get_mut(name).ok_or_else(|| no_portal(name))?;
        match &portal.state {
            PortalState::Ready(None) => {
                return Ok(self.wire.put(&PgWireBackendMessage::EmptyQueryResponse(EmptyQueryResponse::new()))?);
            }
            PortalState::Ready(Some(request))
                if matches!(**request, Request::Rows(_) | Request::Show(_) | Request::Health) =>
            {
                self.start(name).await?;
            }
            PortalState::Ready(Some(_)) => {
                let PortalState::Ready(Some(request)) = std::mem::replace(&mut portal.state, PortalState::Finished)
                else {
                    return Err(no_portal(name));
                };
                let formats = portal.formats.clone();
                self.check_transaction(request.ends_transaction())?;
                self.check_read_only(&request)?;
                if let Answer::Done(tag) = self.run(*request, None, &formats).await?
                    && !tag.is_empty()
                {
                    self.complete(&tag)?;
                }
                return Ok(());
            }
            PortalState::Rows(_) | PortalState::Finished | PortalState::TimedOut => {}
        }
        self.check_transaction(false)?;
        let now = self.session.revocations();
        let Some(portal) = self.portals.get_mut(name) else { return Err(no_portal(name)) };
        if portal.is_timed_out() {
            return Err(timed_out(name));
        }
        let Some(rows) = portal.rows() else { return self.complete("SELECT 0") };
        check_revocations(rows, now)?;
        match rows.send(&mut self.wire, (max_rows > 0).then_some(max_rows)).await? {
            SentRows::All(n_rows) => {
                portal.state = PortalState::Finished;
                portal.place = None;
                self.count_rows(n_rows);
                self.complete(&format!("SELECT {n_rows}"))
            }
            SentRows::Some(n_rows) => {
                self.count_rows(n_rows);
                self.stay_open(name)?;
                Ok(self.wire.put(&PgWireBackendMessage::PortalSuspended(PortalSuspended::new()))?)
            }
        }
    }

    /// A portal that stays open from one message to the next is a cursor, for which there must be a place.
    fn stay_open(&mut self, name: &str) -> Result<(), AnswerError> {
        if self.portals.get(name).is_none_or(|portal| portal.place.is_some()) {
            return Ok(());
        }
        let place = self.cursor_place().inspect_err(|_| drop(self.portals.remove(name)))?;
        if let Some(portal) = self.portals.get_mut(name) {
            portal.place = Some(place);
        }
        Ok(())
    }

    /// A place for one more cursor.
    pub(super) fn cursor_place(&self) -> Result<CursorPlace, AnswerError> {
        let place = self.server.cursors.take(self.user.clone(), self.session.role()).map_err(|problem| {
            let whose = match problem {
                NoPlace::Full => "too many cursors are open",
                NoPlace::Share => "too many cursors of this login are open",
            };
            AnswerError::from(ErrorMessage::new("53400", whose).hint("CLOSE some, or fetch all their rows"))
        })?;
        Ok(CursorPlace::new(place, &self.server.metrics))
    }

    pub(super) fn close(&mut self, target: &Target) -> Result<(), AnswerError> {
        match target {
            Target::Statement(name) => drop(self.statements.remove(name)),
            Target::Portal(name) => drop(self.portals.remove(name)),
        }
        Ok(self.wire.put(&PgWireBackendMessage::CloseComplete(CloseComplete::new()))?)
    }
}

/// The type a client should send for a parameter.
fn parameter_type(inferred: &DataType) -> Type {
    let field = Arc::new(Field::new("parameter", inferred.clone(), true));
    match field_into_pg_type(&field) {
        Ok(Type::UNKNOWN) | Err(_) => Type::TEXT,
        Ok(known) => known,
    }
}

pub(super) fn no_statement(name: &str) -> AnswerError {
    AnswerError::statement("26000", format!("there is no prepared statement \"{name}\""))
}

pub(super) fn timed_out(name: &str) -> AnswerError {
    AnswerError::statement(
        "34000",
        format!("the cursor \"{name}\" was closed, since nobody fetched from it for too long"),
    )
}

fn no_portal(name: &str) -> AnswerError {
    AnswerError::statement("34000", format!("there is no portal \"{name}\""))
}
