//! `CREATE ANONYMIZATION_VIEW`.

use std::collections::HashSet;
use std::num::NonZeroUsize;

use datafusion::common::TableReference;
use datafusion::sql::sqlparser::ast::Query;
use datafusion::sql::sqlparser::tokenizer::Token;
use kohort_model::Disclosure;
use kohort_model::spec::{Algorithm, Leftovers};

use super::cursor::{self, Cursor};
use super::error::{ParseError, ParseErrorKind};
use super::source::{Source, find_outermost};

const EXAMPLE: &str = "CREATE ANONYMIZATION_VIEW v ON SELECT name, zip, disease FROM patient WITH ANONYMIZATION_ID \
                       name ANONYMIZATION_QUASI_ID (zip DGH_NAME zip) ANONYMIZATION_SENSITIVE_ATTR (disease) K 5";

const ID: &str = "ANONYMIZATION_ID";
const QUASI_ID: &str = "ANONYMIZATION_QUASI_ID";
const SENSITIVE_ATTR: &str = "ANONYMIZATION_SENSITIVE_ATTR";
const OTHER: &str = "ANONYMIZATION_OTHER";

/// An A-view as it was asked for. Whether its columns are those of its query is not known here.
#[derive(Clone, Debug, PartialEq)]
pub struct ViewStatement {
    /// The view.
    pub name: String,
    /// Whether it may replace another.
    pub or_replace: bool,
    /// What it shows.
    pub query: Box<Query>,
    /// The query as written.
    pub query_text: String,
    /// The column that names the person.
    pub identifier: String,
    /// Columns by which somebody could be recognized.
    pub quasi: Vec<ColumnClause>,
    /// Columns nobody may learn of a person.
    pub sensitive: Vec<ColumnClause>,
    /// All others.
    pub other: Vec<String>,
    /// What else is asked of it.
    pub clauses: Clauses,
}

/// What is asked of a view, whatever its columns are: by its statement, and by the definition made of that.
#[derive(Clone, Debug, PartialEq)]
pub struct Clauses {
    /// Whether its rows are stored.
    pub is_materialized: bool,
    /// The table in which persons choose.
    pub policy: Option<PolicyReference>,
    /// How classes are found.
    pub algorithm: Algorithm,
    /// How many persons look the same, for all.
    pub k: Option<u32>,
    /// How many rows are anonymized at a time.
    pub block: BlockSize,
    /// How far a class's sensitive values may be from everybody's.
    pub t: Option<f64>,
    /// How many sensitive values a class has.
    pub l: Option<u32>,
    /// What becomes of persons that fit into no class.
    pub leftovers: Leftovers,
    /// What one person's opting out hides.
    pub disclosure: Disclosure,
    /// Which classes answer a comparison.
    pub answers: Answers,
    /// Whether purposes share classes.
    pub purposes: Purposes,
    /// How a materialized view follows its table.
    pub changes: Option<Changes>,
    /// How persons leave a materialized view.
    pub departures: Option<Departures>,
}

impl Default for Clauses {
    fn default() -> Clauses {
        Clauses {
            is_materialized: false,
            policy: None,
            algorithm: Algorithm::Datafly,
            k: None,
            block: BlockSize::default(),
            t: None,
            l: None,
            leftovers: Leftovers::Merge,
            disclosure: Disclosure::default(),
            answers: Answers::default(),
            purposes: Purposes::default(),
            changes: None,
            departures: None,
        }
    }
}

/// A column, and the DGH its values are generalized in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnClause {
    /// The column of the query.
    pub name: String,
    /// Its DGH.
    pub hierarchy: Option<String>,
}

/// `name REFERENCES choices (k, sa_level)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyReference {
    /// The column that names the person, in the query and in the table of choices.
    pub person_column: String,
    /// The table of choices.
    pub table: TableReference,
    /// Its column of k.
    pub k_column: String,
    /// Its column of the level sensitive values are raised to.
    pub level_column: Option<String>,
}

/// How many rows are anonymized at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockSize {
    /// All.
    #[default]
    All,
    /// About so many; a person is never in two blocks.
    Rows(NonZeroUsize),
}

/// Which classes answer a comparison with a quasi column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answers {
    /// Those whose label could match.
    #[default]
    View,
    /// Those that hold a row whose own value matches, which tells that there is one.
    Matching,
}

/// Whether purposes share classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purposes {
    /// One partition, with each person's largest k.
    #[default]
    Together,
    /// One partition per purpose and recipient, for logins that never hold two.
    Apart,
}

/// How a materialized view follows its table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Changes {
    /// In steps of which each shows and hides sets of persons that satisfy the requirement by themselves.
    #[default]
    Epochs,
    /// At once, as the paper has it. It is read so that a data folder that has such a view can say why it is lost; no
    /// view is made with it.
    Paper,
}

/// How persons leave a materialized view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Departures {
    /// Their rows stay shown until enough have left together.
    #[default]
    Batch,
    /// At once, and with them everybody who came with them.
    Withdraw,
}

/// A statement as far as its clauses were read.
#[derive(Default)]
struct Read {
    /// Words that begin the clauses, none of which may stand twice.
    words: Vec<&'static str>,
    identifier: Option<String>,
    quasi: Option<Vec<ColumnClause>>,
    sensitive: Vec<ColumnClause>,
    other: Vec<String>,
    clauses: Clauses,
}

pub(super) fn is_create(cursor: &Cursor<'_>) -> bool {
    let words: [&[&str]; 4] = [
        &["CREATE", "ANONYMIZATION_VIEW"],
        &["CREATE", "MATERIALIZED", "ANONYMIZATION_VIEW"],
        &["CREATE", "OR", "REPLACE", "ANONYMIZATION_VIEW"],
        &["CREATE", "OR", "REPLACE", "MATERIALIZED", "ANONYMIZATION_VIEW"],
    ];
    words.iter().any(|words| cursor.starts_with(words))
}

pub(super) fn parse_create(source: &Source<'_>, cursor: &mut Cursor<'_>) -> Result<ViewStatement, ParseError> {
    cursor.example(EXAMPLE).skip(1);
    let or_replace = cursor.take_word("OR");
    cursor.skip(usize::from(or_replace));
    let is_materialized = cursor.take_word("MATERIALIZED");
    cursor.skip(1);
    let name = cursor.name("the view's name")?;
    cursor.expect_word("ON")?;

    let first_clauses = [ID, QUASI_ID, SENSITIVE_ATTR, OTHER];
    let n_query = find_outermost(cursor, "WITH", &first_clauses);
    let Some(n_query) = n_query else {
        cursor.skip(cursor.rest().len());
        return Err(cursor.expected("WITH ANONYMIZATION_ID after the query"));
    };
    let query_tokens = &cursor.rest()[..n_query];
    cursor.skip(n_query);
    let end = cursor.place();
    let query = super::parse_query(query_tokens, end)?;
    let query_text = source.between(query_tokens.first(), end).to_owned();
    cursor.expect_word("WITH")?;

    let mut read = Read::default();
    read.clauses.is_materialized = is_materialized;
    while !cursor.is_at_end() {
        read.clause(cursor)?;
    }
    let end = cursor.place();
    let Read { words, identifier, quasi, sensitive, other, clauses } = read;
    let missing = |clause| cursor.fault(end, ParseErrorKind::Missing(clause));
    if clauses.k.is_none() && clauses.policy.is_none() {
        return Err(cursor.fault(end, ParseErrorKind::NoK));
    }
    for (is_asked, clause) in [(clauses.t.is_some(), "T_CLOSENESS"), (clauses.l.is_some(), "L_DIVERSITY")] {
        if is_asked && !words.contains(&SENSITIVE_ATTR) {
            return Err(cursor.fault(end, ParseErrorKind::NothingSensitive(clause)));
        }
    }
    let identifier = identifier.ok_or_else(|| missing(ID))?;
    let quasi = quasi.ok_or_else(|| missing(QUASI_ID))?;
    let view = ViewStatement { name, or_replace, query, query_text, identifier, quasi, sensitive, other, clauses };
    match view.column_twice() {
        Some(column) => Err(cursor.fault(end, ParseErrorKind::ColumnTwice(column.to_owned()))),
        None => Ok(view),
    }
}

impl ViewStatement {
    fn column_twice(&self) -> Option<&str> {
        let labelled = self.quasi.iter().chain(&self.sensitive).map(|column| column.name.as_str());
        let mut columns = labelled.chain(self.other.iter().map(String::as_str)).chain([self.identifier.as_str()]);
        let mut seen = HashSet::new();
        columns.find(|column| !seen.insert(*column))
    }
}

impl Read {
    fn clause(&mut self, cursor: &mut Cursor<'_>) -> Result<(), ParseError> {
        let place = cursor.place();
        let clauses = &mut self.clauses;
        let word = if cursor.rest().get(1).is_some_and(|next| cursor::is_word(next, "REFERENCES")) {
            clauses.policy = Some(parse_reference(cursor)?);
            "REFERENCES"
        } else if cursor.take_word(ID) {
            self.identifier = Some(in_parentheses_or_not(cursor, |cursor| cursor.name("a column"))?);
            ID
        } else if cursor.take_word(QUASI_ID) {
            self.quasi = Some(parse_columns(cursor)?);
            QUASI_ID
        } else if cursor.take_word(SENSITIVE_ATTR) {
            self.sensitive = parse_columns(cursor)?;
            SENSITIVE_ATTR
        } else if cursor.take_word(OTHER) {
            self.other = in_parentheses_or_not(cursor, |cursor| cursor.list(|cursor| cursor.name("a column")))?;
            OTHER
        } else if cursor.take_word("USING") {
            clauses.algorithm = parse_algorithm(cursor)?;
            "USING"
        } else if cursor.take_word("K") {
            clauses.k = Some(cursor.number("a whole number above 0", |k| *k > 0)?);
            "K"
        } else if cursor.take_word("BLOCK") {
            clauses.block = match cursor.take_word("ALL") {
                true => BlockSize::All,
                false => BlockSize::Rows(cursor.number("a number of rows above 0, or ALL", |_| true)?),
            };
            "BLOCK"
        } else if cursor.take_word("T_CLOSENESS") {
            clauses.t = Some(cursor.number("a number from 0 to 1", |t| (0.0..=1.0).contains(t))?);
            "T_CLOSENESS"
        } else if cursor.take_word("L_DIVERSITY") {
            clauses.l = Some(cursor.number("a whole number above 0", |l| *l > 0)?);
            "L_DIVERSITY"
        } else if cursor.take_word("LEFTOVERS") {
            clauses.leftovers = cursor.one_of(&[("MERGE", Leftovers::Merge), ("SUPPRESS", Leftovers::Suppress)])?;
            "LEFTOVERS"
        } else if cursor.take_word("DISCLOSURE") {
            clauses.disclosure = cursor.one_of(&[("CLASS", Disclosure::Class), ("ROW", Disclosure::Row)])?;
            "DISCLOSURE"
        } else if cursor.take_word("ANSWERS") {
            clauses.answers = cursor.one_of(&[("VIEW", Answers::View), ("MATCHING", Answers::Matching)])?;
            "ANSWERS"
        } else if cursor.take_word("PER") {
            cursor.expect_word("PURPOSE")?;
            clauses.purposes = Purposes::Apart;
            "PER PURPOSE"
        } else if cursor.take_word("CHANGES") {
            clauses.changes = Some(cursor.one_of(&[("EPOCHS", Changes::Epochs), ("PAPER", Changes::Paper)])?);
            "CHANGES"
        } else if cursor.take_word("DEPARTURES") {
            let ways = [("BATCH", Departures::Batch), ("WITHDRAW", Departures::Withdraw)];
            clauses.departures = Some(cursor.one_of(&ways)?);
            "DEPARTURES"
        } else {
            return Err(cursor.expected("a clause of the view"));
        };
        if self.words.contains(&word) {
            return Err(cursor.fault(place, ParseErrorKind::Twice(word)));
        }
        self.words.push(word);
        Ok(())
    }
}

/// `(a DGH_NAME x, b)`, also without the parentheses.
fn parse_columns(cursor: &mut Cursor<'_>) -> Result<Vec<ColumnClause>, ParseError> {
    in_parentheses_or_not(cursor, |cursor| {
        cursor.list(|cursor| {
            let name = cursor.name("a column")?;
            let hierarchy = if cursor.take_word("DGH_NAME") { Some(cursor.name("a DGH's name")?) } else { None };
            Ok(ColumnClause { name, hierarchy })
        })
    })
}

fn in_parentheses_or_not<T>(
    cursor: &mut Cursor<'_>,
    read: impl FnOnce(&mut Cursor<'_>) -> Result<T, ParseError>,
) -> Result<T, ParseError> {
    let is_open = cursor.take(&Token::LParen);
    let content = read(cursor)?;
    if is_open {
        cursor.expect(&Token::RParen)?;
    }
    Ok(content)
}

fn parse_reference(cursor: &mut Cursor<'_>) -> Result<PolicyReference, ParseError> {
    let person_column = cursor.name("a column")?;
    cursor.expect_word("REFERENCES")?;
    let table = cursor.table("the table of choices")?;
    cursor.expect(&Token::LParen)?;
    let k_column = cursor.name("the column of k")?;
    let level_column = if cursor.take(&Token::Comma) { Some(cursor.name("the column of levels")?) } else { None };
    cursor.expect(&Token::RParen)?;
    Ok(PolicyReference { person_column, table, k_column, level_column })
}

/// A partitioner of one table: `top_down`, or as a spec spells it, `'top-down'`.
fn parse_algorithm(cursor: &mut Cursor<'_>) -> Result<Algorithm, ParseError> {
    let is_for_one_table = |algorithm: &Algorithm| !matches!(algorithm, Algorithm::Miracle | Algorithm::MiracleX);
    let known: Vec<Algorithm> = Algorithm::ALL.into_iter().filter(is_for_one_table).collect();
    let spelled: Vec<String> = known.iter().map(|algorithm| algorithm.word().replace('-', "_")).collect();
    let given = match cursor.rest().first().map(|token| &token.token) {
        Some(Token::Word(word)) => word.value.to_ascii_lowercase(),
        Some(Token::SingleQuotedString(text)) => text.to_ascii_lowercase(),
        _ => String::new(),
    };
    match spelled.iter().position(|word| *word == given.replace('-', "_")) {
        Some(position) => {
            cursor.skip(1);
            Ok(known[position])
        }
        None => Err(cursor.expected(&cursor::either(spelled.iter().map(String::as_str)))),
    }
}
