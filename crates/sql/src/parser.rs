//! [`parse`]: SQL, and the statements about A-views that no SQL parser knows.
//!
//! Everything works on tokens, never on text: a `;`, a `PURPOSE` or a comment inside a literal is what it is.
//! `PURPOSE x RECIPIENT y` at the end of a statement, in either order or either alone, says under which purpose and for
//! whom it is asked. Both are ordinary names elsewhere (`SELECT purpose p`), so they count as that clause only where
//! the statement does not parse with them in it.
//!
//! # Paper
//! `[EPS+12]`, sections 3 and 4, figure 5.
//! # Deviations
//! Clauses of a view come in any order, each once; pairs of a DGH may be given as rows of `VALUES` too.

mod access;
mod cursor;
mod depth;
mod error;
mod extent;
mod hierarchy;
mod ignored;
mod policy;
mod source;
mod structure;
mod view;

use datafusion::common::TableReference;
use datafusion::sql::parser::{DFParserBuilder, Statement as DFStatement};
use datafusion::sql::sqlparser::ast::{Ident, Query, Statement as SqlStatement};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use kohort_model::spec::HierarchySource;

use crate::role::Role;

pub use access::{Granted, Password};
use cursor::Cursor;
pub use depth::STACK;
pub use error::{ParseError, ParseErrorKind};
use extent::{Extent, check_extent};
use source::Source;
pub use source::is_complete;
pub use structure::StatementText;
pub use view::{
    Answers, BlockSize, Changes, Clauses, ColumnClause, Departures, PolicyReference, Purposes, ViewStatement,
};

const DIALECT: PostgreSqlDialect = PostgreSqlDialect {};

/// A name as the planner reads it: in small letters unless it is quoted, and letters beyond ASCII as they are. Whoever
/// finds something by a name without the planner finds it by this, or finds another.
pub fn spelled(name: &Ident) -> String {
    folded(&name.value, name.quote_style)
}

fn folded(name: &str, quote: Option<char>) -> String {
    if quote.is_some() { name.to_owned() } else { name.to_ascii_lowercase() }
}

/// One statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// What it says.
    pub statement: Statement,
    /// Under which purpose and for whom it is asked.
    pub access: Access,
    /// How it was written.
    pub text: StatementText,
}

/// Under which purpose and for whom a statement is asked, as far as it says so itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// What the answer is for.
    pub purpose: Option<String>,
    /// Who gets it.
    pub recipient: Option<String>,
}

/// Whether the owner takes what readers could combine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// No.
    No,
    /// Yes.
    Yes,
}

/// How a materialized view is partitioned anew; any other is made anew in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refresh {
    /// All of it, or not at all where readers of the old and the new could tell persons apart.
    Whole,
    /// What can be shown without that; the rest stays as it is, or hidden.
    Partial,
    /// All of it, whatever readers of both could tell.
    Force,
}

/// What a statement says. Names are as SQL takes them: lower case unless quoted.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// Anything that is not about A-views.
    Sql(Box<DFStatement>),
    /// `CREATE [OR REPLACE] DGH`.
    CreateHierarchy {
        /// The DGH.
        name: String,
        /// Whether it may replace another.
        or_replace: bool,
        /// Where its nodes come from; `None` where they are inserted as pairs.
        source: Option<HierarchySource>,
    },
    /// `INSERT INTO DGH`.
    InsertHierarchy {
        /// The DGH.
        name: String,
        /// Children and their parents.
        pairs: Vec<(String, String)>,
    },
    /// `DROP DGH`.
    DropHierarchy {
        /// The DGH.
        name: String,
        /// Whether it may be gone already.
        if_exists: bool,
    },
    /// `CREATE [OR REPLACE] [MATERIALIZED] ANONYMIZATION_VIEW`.
    CreateView(Box<ViewStatement>),
    /// `DROP ANONYMIZATION_VIEW`.
    DropView {
        /// The view.
        name: String,
        /// Whether it may be gone already.
        if_exists: bool,
    },
    /// `REFRESH ANONYMIZATION_VIEW`.
    RefreshView {
        /// The view.
        name: String,
        /// How.
        how: Refresh,
    },
    /// `SHOW ANONYMIZATION_VIEWS`.
    ShowViews,
    /// `SHOW ANONYMIZATION_VIEW ... DRIFT`: what a view loses beside what it would if it were refreshed.
    ShowDrift {
        /// The view.
        view: String,
    },
    /// `SHOW DGHS`.
    ShowHierarchies,
    /// `SHOW COMPLIANCE LOG`.
    ShowLog,
    /// `SHOW COLLECTION`: columns of a view that nobody allows for any purpose.
    ShowCollection {
        /// The view.
        view: String,
    },
    /// `EXPLAIN UTILITY`.
    ExplainUtility(Box<Query>),
    /// `COPY table FROM 'file'`.
    CopyFrom {
        /// The stored table.
        table: TableReference,
        /// The file.
        file: String,
    },
    /// `BACKUP TO 'file'`.
    Backup {
        /// The new file.
        file: String,
    },
    /// `IMPORT POLICY`.
    ImportPolicy {
        /// The policy's file, TOML or P3P.
        file: String,
        /// The table of choices it becomes.
        table: TableReference,
        /// The column of that table that names persons.
        person: Option<String>,
        /// k where the file has none.
        k: Option<u32>,
    },
    /// About users and grants.
    Access(AccessStatement),
}

/// A statement about users and grants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessStatement {
    /// `CREATE USER`.
    CreateUser {
        /// The user.
        name: String,
        /// What they may run.
        role: Role,
        /// Their password.
        password: Password,
    },
    /// `ALTER USER ... PASSWORD`.
    SetPassword {
        /// The user.
        name: String,
        /// Their new password.
        password: Password,
    },
    /// `DROP USER`.
    DropUser {
        /// The user.
        name: String,
        /// Whether they may be gone already.
        if_exists: bool,
    },
    /// `GRANT`.
    Grant {
        /// What.
        what: Granted,
        /// To whom.
        user: String,
        /// Whether it may be somebody who could read a view that was dropped.
        force: bool,
    },
    /// `REVOKE`.
    Revoke {
        /// What.
        what: Granted,
        /// From whom.
        user: String,
    },
    /// `SHOW USERS`.
    ShowUsers,
    /// `SHOW GRANTS`.
    ShowGrants,
}

/// Reads all statements of a text, separated by `;`, however many there are.
///
/// # Errors
/// The first problem, with its line and column, and an example where the statement is one of ours.
pub fn parse(sql: &str) -> Result<Vec<Parsed>, ParseError> {
    Statements::within(sql, Extent::ALL)?.parse()
}

/// A text that can be parsed without harm: it is not too large, and none of its statements is too deep.
pub struct Statements<'t> {
    source: Source<'t>,
    n: usize,
}

impl<'t> Statements<'t> {
    /// The statements of a text that somebody sent.
    ///
    /// # Errors
    /// Where one of them is too large or too deep, or the text has no tokens.
    pub fn sent_by(role: Role, text: &'t str) -> Result<Self, ParseError> {
        Statements::within(text, Extent::of(role))
    }

    fn within(text: &'t str, extent: Extent) -> Result<Self, ParseError> {
        check_extent(text, extent)?;
        let source = Source::read(text)?;
        let mut n = 0;
        // All of them before any is parsed: whatever becomes of one, somebody may turn to the rest.
        for tokens in source.statements() {
            depth::check_depth(tokens)?;
            n += 1;
            if n > extent.most_statements {
                let (place, most) = (tokens[0].span.start.into(), extent.most_statements);
                return Err(ParseError::new(place, ParseErrorKind::TooManyStatements { most }));
            }
        }
        Ok(Statements { source, n })
    }

    /// How many there are.
    pub fn n_statements(&self) -> usize {
        self.n
    }

    /// What they say.
    ///
    /// # Errors
    /// The first problem.
    pub fn parse(&self) -> Result<Vec<Parsed>, ParseError> {
        self.source.statements().map(|tokens| parse_statement(&self.source, tokens)).collect()
    }
}

fn parse_statement(source: &Source<'_>, tokens: &[TokenWithSpan]) -> Result<Parsed, ParseError> {
    let text =
        |n_of_access| StatementText::read(source.between(tokens.first(), source.end_of(tokens)), tokens, n_of_access);
    let mut cursor = Cursor::new(tokens, source.end_of(tokens));
    if let Some(statement) = parse_own(source, &mut cursor)? {
        return Ok(Parsed { statement, access: Access::default(), text: text(0) });
    }
    let is_utility = cursor.starts_with(&["EXPLAIN", "UTILITY"]);
    let asked = if is_utility { &tokens[2..] } else { tokens };
    let (statement, access) = with_access(asked, |tokens| match is_utility {
        true => parse_query(tokens, source.end_of(tokens)).map(Statement::ExplainUtility),
        false => parse_sql(tokens, source.end_of(tokens)).map(|sql| Statement::Sql(Box::new(sql))),
    })?;
    let n_stated = [&access.purpose, &access.recipient].into_iter().flatten().count();
    Ok(Parsed { statement, access, text: text(2 * n_stated) })
}

/// One of our own statements, `None` where it is not. Those that ask something are left to [`with_access`].
fn parse_own(source: &Source<'_>, cursor: &mut Cursor<'_>) -> Result<Option<Statement>, ParseError> {
    let own = if cursor.starts_with(&["CREATE", "DGH"]) || cursor.starts_with(&["CREATE", "OR", "REPLACE", "DGH"]) {
        hierarchy::parse_create(cursor)?
    } else if cursor.starts_with(&["INSERT", "INTO", "DGH"]) && hierarchy::is_insert(cursor) {
        hierarchy::parse_insert(cursor)?
    } else if view::is_create(cursor) {
        Statement::CreateView(Box::new(view::parse_create(source, cursor)?))
    } else if cursor.starts_with(&["DROP", "DGH"]) {
        cursor.example("DROP DGH zip").skip(2);
        let (name, if_exists) = parse_dropped(cursor, "the DGH's name")?;
        Statement::DropHierarchy { name, if_exists }
    } else if cursor.starts_with(&["DROP", "ANONYMIZATION_VIEW"]) {
        cursor.example("DROP ANONYMIZATION_VIEW patients").skip(2);
        let (name, if_exists) = parse_dropped(cursor, "the view's name")?;
        Statement::DropView { name, if_exists }
    } else if cursor.starts_with(&["REFRESH"]) {
        cursor.example("REFRESH ANONYMIZATION_VIEW patients, with PARTIAL or FORCE if it is materialized").skip(1);
        cursor.expect_word("ANONYMIZATION_VIEW")?;
        let name = cursor.name("the view's name")?;
        let how = match (cursor.take_word("FORCE"), cursor.take_word("PARTIAL")) {
            (true, _) => Refresh::Force,
            (false, true) => Refresh::Partial,
            (false, false) => Refresh::Whole,
        };
        Statement::RefreshView { name, how }
    } else if cursor.starts_with(&["SHOW", "ANONYMIZATION_VIEWS"]) {
        cursor.example("SHOW ANONYMIZATION_VIEWS").skip(2);
        Statement::ShowViews
    } else if cursor.starts_with(&["SHOW", "ANONYMIZATION_VIEW"]) {
        cursor.example("SHOW ANONYMIZATION_VIEW patients DRIFT").skip(2);
        let view = cursor.name("the view's name")?;
        cursor.expect_word("DRIFT")?;
        Statement::ShowDrift { view }
    } else if cursor.starts_with(&["SHOW", "DGHS"]) {
        cursor.example("SHOW DGHS").skip(2);
        Statement::ShowHierarchies
    } else if cursor.starts_with(&["SHOW", "COMPLIANCE"]) {
        cursor.example("SHOW COMPLIANCE LOG").skip(2);
        cursor.expect_word("LOG")?;
        Statement::ShowLog
    } else if cursor.starts_with(&["SHOW", "COLLECTION"]) {
        cursor.example("SHOW COLLECTION patients").skip(2);
        Statement::ShowCollection { view: cursor.name("the view's name")? }
    } else if cursor.starts_with(&["COPY"]) && cursor.rest().get(2).is_some_and(|next| cursor::is_word(next, "FROM")) {
        cursor.example("COPY patient FROM 'patient.csv'").skip(1);
        let table = cursor.table("the table")?;
        cursor.expect_word("FROM")?;
        Statement::CopyFrom { table, file: cursor.text("a file's name in quotes")? }
    } else if cursor.starts_with(&["BACKUP"]) {
        cursor.example("BACKUP TO 'monday.db'").skip(1);
        cursor.expect_word("TO")?;
        Statement::Backup { file: cursor.text("a file's name in quotes")? }
    } else if cursor.starts_with(&["IMPORT"]) {
        policy::parse_import(cursor)?
    } else if access::is_access(cursor) {
        access::parse_access(cursor)?
    } else {
        return Ok(None);
    };
    cursor.finish()?;
    Ok(Some(own))
}

fn parse_dropped(cursor: &mut Cursor<'_>, what: &str) -> Result<(String, bool), ParseError> {
    let if_exists = cursor.take_word("IF");
    if if_exists {
        cursor.expect_word("EXISTS")?;
    }
    Ok((cursor.name(what)?, if_exists))
}

/// Parses as it stands; where that fails, without the purpose and recipient at the end.
fn with_access<T>(
    tokens: &[TokenWithSpan],
    parse: impl Fn(&[TokenWithSpan]) -> Result<T, ParseError>,
) -> Result<(T, Access), ParseError> {
    let as_it_stands = match parse(tokens) {
        Ok(parsed) => return Ok((parsed, Access::default())),
        Err(problem) => problem,
    };
    let (rest, access) = split_access(tokens);
    if rest.len() == tokens.len() {
        return Err(as_it_stands);
    }
    parse(rest).map(|parsed| (parsed, access))
}

/// The tokens before `PURPOSE x RECIPIENT y`, and what that says.
fn split_access(tokens: &[TokenWithSpan]) -> (&[TokenWithSpan], Access) {
    let mut access = Access::default();
    let mut rest = tokens;
    while let [before @ .., clause, value] = rest {
        let value = match &value.token {
            Token::Word(word) => &word.value,
            Token::SingleQuotedString(text) => text,
            _ => break,
        };
        let slot = if cursor::is_word(clause, "PURPOSE") {
            &mut access.purpose
        } else if cursor::is_word(clause, "RECIPIENT") {
            &mut access.recipient
        } else {
            break;
        };
        if slot.is_some() {
            break;
        }
        *slot = Some(value.clone());
        rest = before;
    }
    (rest, access)
}

fn parse_sql(tokens: &[TokenWithSpan], end: source::Place) -> Result<DFStatement, ParseError> {
    let problem = |error| ParseError::from_sql(&error, end);
    let mut parser = DFParserBuilder::new(tokens.to_vec()).with_dialect(&DIALECT).build().map_err(problem)?;
    let statement = parser.parse_statement().map_err(problem)?;
    let next = parser.parser.peek_token();
    if next.token != Token::EOF {
        return Err(cursor::unexpected(&next, "the end of the statement"));
    }
    match ignored::find_ignored(&statement) {
        None => Ok(statement),
        Some(clause) => {
            let place = tokens.first().map_or(end, |token| token.span.start.into());
            Err(ParseError::new(place, ParseErrorKind::Ignored { clause }))
        }
    }
}

/// The tokens as one query.
fn parse_query(tokens: &[TokenWithSpan], end: source::Place) -> Result<Box<Query>, ParseError> {
    let place = tokens.first().map_or(end, |token| token.span.start.into());
    match parse_sql(tokens, end)? {
        DFStatement::Statement(statement) => match *statement {
            SqlStatement::Query(query) => Ok(query),
            _ => Err(ParseError::new(place, ParseErrorKind::NoQuery)),
        },
        _ => Err(ParseError::new(place, ParseErrorKind::NoQuery)),
    }
}

#[cfg(test)]
mod tests;
