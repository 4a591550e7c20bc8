//! The extended protocol: prepared statements with parameters, which are described and run in parts.
//!
//! Purpose and recipient are stored with a prepared statement. Whether they are granted is checked when it runs.

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
use crate::setting_calls;

/// The largest number of prepared statements per connection.
const MOST_STATEMENTS: usize = 1000;
/// The limit on all texts of an owner's prepared statements, as a multiple of the longest message.
const MOST_TEXT: usize = 2;
/// The limit on the tokens of all prepared and bound statements of an analyst. A parsed token takes half a kilobyte.
const MOST_TOKENS: usize = 200_000;
/// The memory of a parsed token in bytes.
const PER_TOKEN: usize = 512;

/// A prepared statement.
pub(crate) struct Prepared {
    /// The statement; `None` if the text was empty.
    request: Option<Request>,
    /// The types of its parameters.
    types: Vec<Type>,
    /// The columns of the statement's rows; `None` if it returns no rows, or its columns are known only when it runs.
    schema: Option<SchemaRef>,
    extent: TextExtent,
    /// The statement's share of the memory of all statements.
    _memory: MemoryReservation,
}

/// The size of a statement.
#[derive(Clone, Copy, Default)]
pub(super) struct TextExtent {
    pub(super) n_bytes: usize,
    pub(super) n_tokens: usize,
}

impl TextExtent {
    /// The size of a parsed statement.
    pub(super) fn of(text: &StatementText) -> TextExtent {
        TextExtent { n_bytes: text.written.len(), n_tokens: text.n_tokens }
    }

    fn and(self, other: TextExtent) -> TextExtent {
        TextExtent { n_bytes: self.n_bytes + other.n_bytes, n_tokens: self.n_tokens + other.n_tokens }
    }
}

/// A statement with values for its parameters.
pub(crate) struct Portal {
    state: PortalState,
    formats: Vec<i16>,
    schema: Option<SchemaRef>,
    origin: StatementOrigin,
    /// The size of the statement and its values.
    extent: TextExtent,
    /// The portal's place among the cursors, if it stays open between messages.
    place: Option<CursorPlace>,
    used: Instant,
}

/// A place among the cursors, which is counted in the metrics.
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
    /// Created by a Bind message. It ends at the next Sync, or with the transaction.
    Bound,
    /// Created by DECLARE.
    Declared,
}

enum PortalState {
    /// The portal has not run yet. `None` means an empty statement.
    Ready(Option<Box<Request>>),
    /// The portal's rows are being sent.
    Rows(Rows),
    /// All rows have been sent.
    Finished,
    /// The portal was closed because it was idle for too long.
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

    /// The time of its last use, if it has rows.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        matches!(self.state, PortalState::Rows(_)).then_some(self.used)
    }

    /// Closes it and frees its rows.
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
            return Err(AnswerError::statement("42P05", format!("prepared statement \"{name}\" already exists")));
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

    /// Checks that another statement may be prepared.
    pub(super) fn check_statements(&self, more: TextExtent) -> Result<(), AnswerError> {
        let by_sql = self.prepared.values().map(|prepared| prepared.extent);
        let known = self.statements.values().map(|prepared| prepared.extent).chain(by_sql);
        if known.clone().count() >= MOST_STATEMENTS || self.is_too_much(known.fold(more, TextExtent::and)) {
            return Err(AnswerError::statement("53400", "too many prepared statements: close some"));
        }
        Ok(())
    }

    fn is_too_much(&self, all: TextExtent) -> bool {
        let is_analyst = self.session.role() == Role::Analyst;
        all.n_bytes > MOST_TEXT * self.server.configuration.max_message || is_analyst && all.n_tokens > MOST_TOKENS
    }

    /// The types of a statement's parameters, and its columns if it is a query.
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
        let configured = match request {
            Request::Configure(parsed) => Some(setting_calls::columns_of(parsed)),
            _ => None,
        };
        if is_query && n_parameters == 0 {
            return Ok((Vec::new(), self.columns_of(parsed).await?));
        }
        // This may fail because only the client knows the type of a parameter.
        let guessed = if is_query { self.session.describe(parsed).await.ok().flatten() } else { None };
        let stated = |position: usize| oids.get(position).copied().filter(|oid| *oid != 0);
        let inferred =
            |position: usize| guessed.as_ref()?.parameters.get(&format!("${}", position + 1)).cloned().flatten();
        let arrays = parameters::arrays(parsed);
        let type_of = |position: usize| match stated(position) {
            Some(oid) => Type::from_oid(oid)
                .ok_or_else(|| AnswerError::statement("42704", format!("there is no type with number {oid}"))),
            None if arrays.contains(&position) => Ok(Type::TEXT_ARRAY),
            None => Ok(inferred(position).map_or(Type::TEXT, |inferred| parameter_type(&inferred))),
        };
        let types: Result<Vec<Type>, AnswerError> = (0..n_parameters).map(type_of).collect();
        let types = types?;
        if !is_query {
            return Ok((types, configured));
        }
        // The columns may depend on the parameter types that the client states.
        let mut typed = parsed.clone();
        let nulls: Vec<_> = types.iter().map(parameters::null_of).collect();
        parameters::substitute(&mut typed, &nulls, self.server.configuration.max_message)?;
        let schema = self.columns_of(&typed).await?;
        Ok((types, schema))
    }

    /// The columns of a query that is about to run, as described to the client.
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
            return Err(AnswerError::statement("53400", "too many bound statements have not run yet: close some"));
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
                    // Run SHOW statements to find out their columns. They change nothing.
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
                        Request::Configure(_) => portal.schema.clone(),
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

    /// Starts the query of a portal, up to its first row.
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

    /// Starts the query of a portal that was bound and not run yet, so that FETCH and MOVE find its rows.
    pub(super) async fn start_bound(&mut self, name: &str) -> Result<(), AnswerError> {
        let is_query = |portal: &Portal| match &portal.state {
            PortalState::Ready(Some(request)) => matches!(request.as_ref(), Request::Rows(_)),
            _ => false,
        };
        if self.portals.get(name).is_some_and(is_query) {
            self.start(name).await?;
            self.stay_open(name)?;
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
                if matches!(
                    **request,
                    Request::Rows(_) | Request::Configure(_) | Request::Show(_) | Request::Health
                ) =>
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

    /// Takes a place among the cursors for a portal that stays open between messages.
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

    /// Takes a place for another cursor.
    pub(super) fn cursor_place(&self) -> Result<CursorPlace, AnswerError> {
        let place = self.server.cursors.take(self.user.clone(), self.session.role()).map_err(|problem| {
            let whose = match problem {
                NoPlace::Full => "too many cursors are open",
                NoPlace::Share => "this login has too many open cursors",
            };
            AnswerError::from(ErrorMessage::new("53400", whose).hint("CLOSE some, or fetch all of their rows"))
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

/// The type that a client should send for a parameter.
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
    AnswerError::statement("34000", format!("the cursor \"{name}\" was closed because it was idle for too long"))
}

fn no_portal(name: &str) -> AnswerError {
    AnswerError::statement("34000", format!("there is no portal \"{name}\""))
}
