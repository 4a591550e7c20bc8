//! [`parse`]: SQL, and the statements about A-views that no SQL parser knows.
//!
//! The parser works on tokens, never on text, so a `;`, a `PURPOSE` or a comment sign inside a literal has no meaning.
//! `PURPOSE x RECIPIENT y` at the end of a statement, in either order or either alone, says for which purpose and which
//! recipient the statement is run. Both words are ordinary names elsewhere (`SELECT purpose p`), so they are read as
//! that clause only if the statement does not parse otherwise. An `=` may stand before their values, as in the paper.
//!
//! # Paper
//! `[EPS+12]`, sections 3 and 4, figure 5.
//! # Deviations
//! Clauses of a view may come in any order, each once. Pairs of a DGH may also be given as rows of `VALUES`. The braces
//! of figure 5 may be written around the columns of a view, or left out.

mod access;
mod cursor;
mod depth;
mod error;
mod extent;
mod hierarchy;
mod ignored;
mod source;
mod structure;
mod synonyms;
mod view;

use datafusion::common::TableReference;
use datafusion::sql::parser::{DFParserBuilder, Statement as DFStatement};
use datafusion::sql::sqlparser::ast::{FetchDirection, Ident, Query, Statement as SqlStatement};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use kohort_model::spec::HierarchySource;

use crate::access::Granted;
use crate::policy::Pair;
use crate::role::Role;

pub use access::Password;
use cursor::Cursor;
pub use depth::STACK;
pub(crate) use depth::bodies;
pub use error::{ParseError, ParseErrorKind};
use extent::{Extent, check_extent};
use source::Source;
pub use source::is_complete;
pub use structure::StatementText;
pub use synonyms::{MOST_ELEMENTS, array_in_braces, spell_arrays_in};
pub use view::{
    Answers, BlockSize, Changes, Clauses, ColumnClause, Departures, PolicyReference, Purposes, ViewStatement,
};

const DIALECT: PostgreSqlDialect = PostgreSqlDialect {};

/// A name as the planner reads it: lower case unless quoted, with letters beyond ASCII unchanged. Code that looks up a
/// name without the planner must use this function, because another folding could find another table.
pub fn spelled(name: &Ident) -> String {
    folded(&name.value, name.quote_style)
}

fn folded(name: &str, quote: Option<char>) -> String {
    if quote.is_some() { name.to_owned() } else { name.to_ascii_lowercase() }
}

/// One statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The statement itself.
    pub statement: Statement,
    /// For which purpose and which recipient the statement is run.
    pub pair: Pair,
    /// The text of the statement.
    pub text: StatementText,
}

impl Parsed {
    /// The statement, if it is one of SQL's own. EXPLAIN and CREATE EXTERNAL TABLE are not.
    pub fn sql(&self) -> Option<&SqlStatement> {
        let Statement::Sql(statement) = &self.statement else { return None };
        let DFStatement::Statement(statement) = statement.as_ref() else { return None };
        Some(statement)
    }

    /// Refuses a statement of SQL that another parser has made, if it is too deep to be planned.
    ///
    /// # Errors
    /// If the statement is too deep or reads too many tables.
    pub fn check_depth(&self) -> Result<(), ParseError> {
        let Statement::Sql(statement) = &self.statement else { return Ok(()) };
        depth::check_tree(statement).map_err(|fault| ParseError::new(source::Place::START, fault))
    }
}

/// How `REFRESH` partitions a materialized view again. Other views are always rebuilt as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refresh {
    /// The whole view, or nothing if readers of the old and the new rows could tell persons apart.
    Whole,
    /// The rows that can be shown without telling persons apart. The others stay as they are, or stay hidden.
    Partial,
    /// The whole view, even if readers of the old and the new rows can tell persons apart.
    Force,
}

/// A statement as parsed. Names are in lower case unless they were quoted.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "fields are named after the parts of the statements")]
pub enum Statement {
    /// A statement of SQL, parsed by the query engine's parser.
    Sql(Box<DFStatement>),
    /// `CREATE [OR REPLACE] DGH`. Without a source its nodes will be inserted as pairs.
    CreateHierarchy { name: String, or_replace: bool, source: Option<HierarchySource> },
    /// `INSERT INTO DGH`: children and their parents.
    InsertHierarchy { name: String, pairs: Vec<(String, String)> },
    /// `DROP DGH [IF EXISTS]`.
    DropHierarchy { name: String, if_exists: bool },
    /// `CREATE [OR REPLACE] [MATERIALIZED] ANONYMIZATION_VIEW`.
    CreateView(Box<ViewStatement>),
    /// `DROP ANONYMIZATION_VIEW [IF EXISTS]`.
    DropView { name: String, if_exists: bool },
    /// `REFRESH ANONYMIZATION_VIEW`.
    RefreshView { name: String, how: Refresh },
    /// `SHOW ANONYMIZATION_VIEWS`.
    ShowViews,
    /// `SHOW ANONYMIZATION_VIEW ... DRIFT`: the view's information loss now, and after a refresh.
    ShowDrift { view: String },
    /// `SHOW CREATE ANONYMIZATION_VIEW`: the statement that made a view.
    ShowCreateView { view: String },
    /// `SHOW CREATE DGH`: the statements that make a DGH.
    ShowCreateHierarchy { name: String },
    /// `SHOW DGHS`.
    ShowHierarchies,
    /// `SHOW COMPLIANCE LOG`.
    ShowLog,
    /// `SHOW COLLECTION`: columns of a view whose use no person allows for any purpose.
    ShowCollection { view: String },
    /// `EXPLAIN UTILITY`.
    ExplainUtility(Box<Query>),
    /// `COPY table FROM 'file'`.
    CopyFrom { table: TableReference, file: String },
    /// `BACKUP TO 'file'`.
    Backup { file: String },
    /// `IMPORT POLICY 'file' INTO table`, perhaps with the column that names persons, and the k to use if the file has none.
    ImportPolicy { file: String, table: TableReference, person: Option<String>, k: Option<u32> },
    /// A statement about users and grants.
    Access(AccessStatement),
    /// `MOVE`: a FETCH that shows no rows.
    Move { cursor: String, direction: FetchDirection },
}

/// A statement about users and grants.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "fields are named after the parts of the statements")]
pub enum AccessStatement {
    /// `CREATE USER`.
    CreateUser { name: String, role: Role, password: Password },
    /// `ALTER USER ... PASSWORD`.
    SetPassword { name: String, password: Password },
    /// `DROP USER [IF EXISTS]`.
    DropUser { name: String, if_exists: bool },
    /// `GRANT ... TO user [FORCE]`: with FORCE, even if the user could read a dropped view of the same rows.
    Grant { what: Granted, user: String, force: bool },
    /// `REVOKE ... FROM user`.
    Revoke { what: Granted, user: String },
    /// `SHOW USERS`.
    ShowUsers,
    /// `SHOW GRANTS`.
    ShowGrants,
}

/// Parses all statements of a text, separated by `;`, without a limit on their number.
///
/// # Errors
/// The first problem, with its line and column, and with an example if the statement is one of our own.
pub fn parse(sql: &str) -> Result<Vec<Parsed>, ParseError> {
    Statements::within(sql, Extent::ALL)?.parse()
}

/// A text that is safe to parse: it is not too large, and parsing none of its statements takes too long.
pub struct Statements<'t> {
    source: Source<'t>,
    n: usize,
}

impl<'t> Statements<'t> {
    /// Checks a text that a user of this role sent.
    ///
    /// # Errors
    /// If the text is too large, can't be split into tokens, or has a statement that would take too long to parse.
    pub fn sent_by(role: Role, text: &'t str) -> Result<Self, ParseError> {
        Statements::within(text, Extent::of(role))
    }

    fn within(text: &'t str, extent: Extent) -> Result<Self, ParseError> {
        check_extent(text, extent)?;
        let source = Source::read(text)?;
        let mut n = 0;
        // Check all statements before parsing any: after one fails, the caller may still parse the others.
        for tokens in source.statements() {
            depth::check_tokens(tokens)?;
            n += 1;
            if n > extent.most_statements {
                let (place, most) = (tokens[0].span.start.into(), extent.most_statements);
                return Err(ParseError::new(place, ParseErrorKind::TooManyStatements { most }));
            }
        }
        Ok(Statements { source, n })
    }

    /// The number of statements.
    pub fn n_statements(&self) -> usize {
        self.n
    }

    /// Parses the statements.
    ///
    /// # Errors
    /// The first problem.
    pub fn parse(&self) -> Result<Vec<Parsed>, ParseError> {
        self.source.statements().map(|tokens| parse_statement(&self.source, tokens)).collect()
    }
}

fn parse_statement(source: &Source<'_>, tokens: &[TokenWithSpan]) -> Result<Parsed, ParseError> {
    let text =
        |n_of_pair| StatementText::read(source.between(tokens.first(), source.end_of(tokens)), tokens, n_of_pair);
    let mut cursor = Cursor::new(tokens, source.end_of(tokens));
    if let Some(statement) = parse_own(source, &mut cursor)? {
        return Ok(Parsed { statement, pair: Pair::default(), text: text(0) });
    }
    let is_utility = cursor.starts_with(&["EXPLAIN", "UTILITY"]);
    let asked = if is_utility { &tokens[2..] } else { tokens };
    let (statement, ending) = with_ending(asked, |tokens| match is_utility {
        true => parse_query(tokens, source.end_of(tokens)).map(Statement::ExplainUtility),
        false => parse_sql(tokens, source.end_of(tokens)).map(|sql| Statement::Sql(Box::new(sql))),
    })?;
    Ok(Parsed { statement, pair: ending.pair, text: text(ending.n_tokens) })
}

/// Parses one of our own statements; `None` for any other. `EXPLAIN UTILITY` is left to [`with_ending`], because it can
/// end with a purpose.
fn parse_own(source: &Source<'_>, cursor: &mut Cursor<'_>) -> Result<Option<Statement>, ParseError> {
    let own = if cursor.starts_with(&["CREATE", "DGH"]) || cursor.starts_with(&["CREATE", "OR", "REPLACE", "DGH"]) {
        hierarchy::parse_create(cursor)?
    } else if cursor.starts_with(&["INSERT", "INTO", "DGH"]) && hierarchy::is_insert(cursor) {
        hierarchy::parse_insert(cursor)?
    } else if view::is_create(cursor) {
        Statement::CreateView(Box::new(view::parse_create(source, cursor)?))
    } else if cursor.begins(&["DROP", "DGH"], "DROP DGH zip") {
        let (name, if_exists) = parse_dropped(cursor, "the DGH's name")?;
        Statement::DropHierarchy { name, if_exists }
    } else if cursor.begins(&["DROP", "ANONYMIZATION_VIEW"], "DROP ANONYMIZATION_VIEW patients") {
        let (name, if_exists) = parse_dropped(cursor, "the view's name")?;
        Statement::DropView { name, if_exists }
    } else if cursor
        .begins(&["REFRESH"], "REFRESH ANONYMIZATION_VIEW patients, with PARTIAL or FORCE if it is materialized")
    {
        cursor.expect_word("ANONYMIZATION_VIEW")?;
        let name = cursor.name("the view's name")?;
        let how = match (cursor.take_word("FORCE"), cursor.take_word("PARTIAL")) {
            (true, _) => Refresh::Force,
            (false, true) => Refresh::Partial,
            (false, false) => Refresh::Whole,
        };
        Statement::RefreshView { name, how }
    } else if cursor.begins(&["SHOW", "ANONYMIZATION_VIEWS"], "SHOW ANONYMIZATION_VIEWS") {
        Statement::ShowViews
    } else if cursor.begins(&["SHOW", "ANONYMIZATION_VIEW"], "SHOW ANONYMIZATION_VIEW patients DRIFT") {
        let view = cursor.name("the view's name")?;
        cursor.expect_word("DRIFT")?;
        Statement::ShowDrift { view }
    } else if cursor.begins(&["SHOW", "CREATE", "ANONYMIZATION_VIEW"], "SHOW CREATE ANONYMIZATION_VIEW patients") {
        Statement::ShowCreateView { view: cursor.name("the view's name")? }
    } else if cursor.begins(&["SHOW", "CREATE", "DGH"], "SHOW CREATE DGH zip") {
        Statement::ShowCreateHierarchy { name: cursor.name("the DGH's name")? }
    } else if cursor.begins(&["SHOW", "DGHS"], "SHOW DGHS") {
        Statement::ShowHierarchies
    } else if cursor.begins(&["SHOW", "COMPLIANCE"], "SHOW COMPLIANCE LOG") {
        cursor.expect_word("LOG")?;
        Statement::ShowLog
    } else if cursor.begins(&["SHOW", "COLLECTION"], "SHOW COLLECTION patients") {
        Statement::ShowCollection { view: cursor.name("the view's name")? }
    } else if cursor.starts_with(&["COPY"]) && cursor.rest().get(2).is_some_and(|next| cursor::is_word(next, "FROM")) {
        cursor.example("COPY patient FROM 'patient.csv'").skip(1);
        let table = cursor.table("the table")?;
        cursor.expect_word("FROM")?;
        Statement::CopyFrom { table, file: cursor.text("a file's name in quotes")? }
    } else if cursor.begins(&["BACKUP"], "BACKUP TO 'monday.db'") {
        cursor.expect_word("TO")?;
        Statement::Backup { file: cursor.text("a file's name in quotes")? }
    } else if cursor.begins(&["IMPORT"], "IMPORT POLICY 'policy.toml' INTO choices") {
        parse_import(cursor)?
    } else if cursor.starts_with(&["MOVE"]) {
        parse_move(cursor, source.end_of(cursor.rest()))?
    } else if let Some(statement) = access::parse_access(cursor)? {
        Statement::Access(statement)
    } else {
        return Ok(None);
    };
    cursor.finish()?;
    Ok(Some(own))
}

/// The rest of `IMPORT POLICY`.
fn parse_import(cursor: &mut Cursor<'_>) -> Result<Statement, ParseError> {
    cursor.expect_word("POLICY")?;
    let file = cursor.text("the policy's file in single quotes")?;
    cursor.expect_word("INTO")?;
    let table = cursor.table("the table's name")?;
    let (mut person, mut k) = (None, None);
    while !cursor.is_at_end() {
        let place = cursor.place();
        let (clause, is_second) = if cursor.take_word("PERSON") {
            ("PERSON", person.replace(cursor.name("the column that names persons")?).is_some())
        } else if cursor.take_word("K") {
            ("K", k.replace(cursor.number("a whole number", |_: &u32| true)?).is_some())
        } else {
            return Err(cursor.expected("PERSON, K or the end of the statement"));
        };
        if is_second {
            return Err(cursor.fault(place, ParseErrorKind::Twice(clause)));
        }
    }
    Ok(Statement::ImportPolicy { file, table, person, k })
}

/// `MOVE 5 FROM cursor`.
fn parse_move(cursor: &mut Cursor<'_>, end: source::Place) -> Result<Statement, ParseError> {
    let fetch = parse_sql(&synonyms::as_fetch(cursor.rest()), end)?;
    if let DFStatement::Statement(fetch) = fetch
        && let SqlStatement::Fetch { name, direction, into: None, .. } = *fetch
    {
        cursor.skip(cursor.rest().len());
        return Ok(Statement::Move { cursor: name.value, direction });
    }
    Err(cursor.expected("MOVE 5 FROM a cursor"))
}

fn parse_dropped(cursor: &mut Cursor<'_>, what: &str) -> Result<(String, bool), ParseError> {
    let if_exists = cursor.take_word("IF");
    if if_exists {
        cursor.expect_word("EXISTS")?;
    }
    Ok((cursor.name(what)?, if_exists))
}

/// `PURPOSE x RECIPIENT y` at the end of a statement.
#[derive(Clone, Default)]
struct Ending {
    pair: Pair,
    n_tokens: usize,
}

/// Parses all tokens. If that fails, parses without the purpose and recipient at the end: without both, then without
/// the last one, because `WHERE recipient = 'nurse' PURPOSE care` ends with one of them.
fn with_ending<T>(
    tokens: &[TokenWithSpan],
    parse: impl Fn(&[TokenWithSpan]) -> Result<T, ParseError>,
) -> Result<(T, Ending), ParseError> {
    let as_it_stands = match parse(tokens) {
        Ok(parsed) => return Ok((parsed, Ending::default())),
        Err(problem) => problem,
    };
    let mut endings = endings(tokens);
    let Some(longest) = endings.pop() else { return Err(as_it_stands) };
    let without = |ending: &Ending| parse(&tokens[..tokens.len() - ending.n_tokens]);
    let problem = match without(&longest) {
        Ok(parsed) => return Ok((parsed, longest)),
        Err(problem) => problem,
    };
    for shorter in endings {
        if let Ok(parsed) = without(&shorter) {
            return Ok((parsed, shorter));
        }
    }
    Err(problem)
}

/// The ends of a statement that may be a purpose and a recipient, the longest last.
fn endings(tokens: &[TokenWithSpan]) -> Vec<Ending> {
    let mut endings: Vec<Ending> = Vec::new();
    let mut rest = tokens;
    while let [before @ .., value] = rest {
        let before = match before {
            [before @ .., equals] if equals.token == Token::Eq => before,
            before => before,
        };
        let value = match &value.token {
            Token::Word(word) => &word.value,
            Token::SingleQuotedString(text) => text,
            _ => break,
        };
        let [before @ .., clause] = before else { break };
        let mut pair = endings.last().map(|ending| ending.pair.clone()).unwrap_or_default();
        let slot = if cursor::is_word(clause, "PURPOSE") {
            &mut pair.purpose
        } else if cursor::is_word(clause, "RECIPIENT") {
            &mut pair.recipient
        } else {
            break;
        };
        if slot.is_some() {
            break;
        }
        *slot = Some(value.clone());
        endings.push(Ending { pair, n_tokens: tokens.len() - before.len() });
        rest = before;
    }
    endings
}

/// Parses a statement of SQL, in our spellings or its own.
fn parse_sql(tokens: &[TokenWithSpan], end: source::Place) -> Result<DFStatement, ParseError> {
    let selected = match tokens.first() {
        Some(first) if cursor::is_word(first, "FETCH") => Some(synonyms::as_fetch(tokens)),
        _ => synonyms::with_tables_selected(tokens),
    };
    let tokens = selected.as_deref().unwrap_or(tokens);
    let problem = match parse_spelled(tokens, end) {
        Ok(statement) => return Ok(statement),
        Err(problem) => problem,
    };
    match synonyms::with_equality(tokens) {
        Some(tokens) => parse_spelled(&tokens, end),
        None => Err(problem),
    }
}

fn parse_spelled(tokens: &[TokenWithSpan], end: source::Place) -> Result<DFStatement, ParseError> {
    let problem = |error| ParseError::from_sql(&error, end);
    let mut parser = DFParserBuilder::new(tokens.to_vec()).with_dialect(&DIALECT).build().map_err(problem)?;
    let mut statement = parser.parse_statement().map_err(problem)?;
    let next = parser.parser.peek_token();
    if next.token != Token::EOF {
        return Err(cursor::unexpected(&next, "the end of the statement"));
    }
    let refused = |fault| ParseError::new(tokens.first().map_or(end, |token| token.span.start.into()), fault);
    depth::check_tree(&statement).map_err(refused)?;
    match ignored::find_ignored(&statement) {
        None => {
            synonyms::spell_arrays(&mut statement);
            Ok(statement)
        }
        Some(clause) => Err(refused(ParseErrorKind::Ignored { clause })),
    }
}

/// Parses the tokens as one query.
fn parse_query(tokens: &[TokenWithSpan], end: source::Place) -> Result<Box<Query>, ParseError> {
    let place = tokens.first().map_or(end, |token| token.span.start.into());
    if let DFStatement::Statement(statement) = parse_sql(tokens, end)?
        && let SqlStatement::Query(query) = *statement
    {
        return Ok(query);
    }
    Err(ParseError::new(place, ParseErrorKind::NoQuery))
}

#[cfg(test)]
mod tests;
