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
const REFERENCES: &str = "REFERENCES";

/// The first words of all clauses but REFERENCES, which begins with a column.
const CLAUSES: &str = "ANONYMIZATION_ID ANONYMIZATION_QUASI_ID ANONYMIZATION_SENSITIVE_ATTR ANONYMIZATION_OTHER USING K \
                       BLOCK T_CLOSENESS L_DIVERSITY LEFTOVERS DISCLOSURE ANSWERS PER CHANGES DEPARTURES";

/// A `CREATE ANONYMIZATION_VIEW` as written. Whether the query has the named columns is checked later.
#[derive(Clone, Debug, PartialEq)]
pub struct ViewStatement {
    /// The view.
    pub name: String,
    /// Whether the new view may replace an old one of the same name.
    pub or_replace: bool,
    /// The query whose rows the view anonymizes.
    pub query: Box<Query>,
    /// The query as written.
    pub query_text: String,
    /// The column that names the person.
    pub identifier: String,
    /// Columns by which a person could be recognized.
    pub quasi: Vec<ColumnClause>,
    /// Columns whose value nobody may learn of a person.
    pub sensitive: Vec<ColumnClause>,
    /// All other columns.
    pub other: Vec<String>,
    /// All other clauses.
    pub clauses: Clauses,
}

/// The clauses of a view that do not name its columns. The statement and the stored definition share this type.
#[derive(Clone, Debug, PartialEq)]
pub struct Clauses {
    /// Whether the view's rows are stored.
    pub is_materialized: bool,
    /// The table of the persons' choices.
    pub policy: Option<PolicyReference>,
    /// The partitioner.
    pub algorithm: Algorithm,
    /// The k for all persons.
    pub k: Option<u32>,
    /// How many rows are anonymized at a time.
    pub block: BlockSize,
    /// t-closeness: how far the sensitive values of a class may differ from those of all persons.
    pub t: Option<f64>,
    /// l-diversity: how many sensitive values a class must have.
    pub l: Option<u32>,
    /// What happens to persons that fit into no class.
    pub leftovers: Leftovers,
    /// Which cells are hidden when one person opts out.
    pub disclosure: Disclosure,
    /// Which classes answer a comparison.
    pub answers: Answers,
    /// Whether purposes share classes.
    pub purposes: Purposes,
    /// How a materialized view follows its table.
    pub changes: Option<Changes>,
    /// How deleted persons leave a materialized view.
    pub departures: Option<Departures>,
}

impl Clauses {
    /// Whether a requirement is asked of sensitive values.
    pub fn asks_of_values(&self) -> bool {
        self.l.is_some() || self.t.is_some()
    }
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

/// A column, and the DGH by which its values are generalized.
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
    /// The column of that table with each person's k.
    pub k_column: String,
    /// The column of that table with the level to which each person's sensitive values are generalized.
    pub level_column: Option<String>,
}

/// How many rows are anonymized at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockSize {
    /// All rows.
    #[default]
    All,
    /// About this many rows. The rows of one person are always in one block.
    Rows(NonZeroUsize),
}

/// Which classes answer a comparison with a quasi column, and with what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answers {
    /// Classes whose label could match.
    #[default]
    View,
    /// Classes with a row whose original value matches. This reveals that there is such a row.
    Matching,
    /// Classes whose label could match, and only with their sizes and totals.
    Aggregates,
}

/// Whether purposes share classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purposes {
    /// One partition for all purposes, which uses each person's largest k.
    #[default]
    Together,
    /// One partition per purpose and recipient. Safe only if no login may use two of them.
    Apart,
}

/// How a materialized view follows its table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Changes {
    /// In steps. Each set of persons that a step shows or hides satisfies the requirement by itself.
    #[default]
    Epochs,
    /// At once, as in the paper. No view can be created with it any more. It is still parsed, so that a data folder
    /// with such a view can report why the view is lost.
    Paper,
}

/// How deleted persons leave a materialized view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Departures {
    /// Their rows stay shown until enough have left together.
    #[default]
    Batch,
    /// At once, together with everybody who was added in the same step.
    Withdraw,
}

/// The clauses read so far.
#[derive(Default)]
struct Read {
    /// The first words of these clauses. None may be repeated.
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
        let word = match cursor.rest().get(1).is_some_and(|next| cursor::is_word(next, REFERENCES)) {
            true => REFERENCES,
            false => {
                let word = CLAUSES.split(' ').find(|word| cursor.take_word(word));
                word.ok_or_else(|| cursor.expected("a clause of the view"))?
            }
        };
        match word {
            REFERENCES => clauses.policy = Some(parse_reference(cursor)?),
            ID => self.identifier = Some(in_brackets_or_not(cursor, |cursor| cursor.name("a column"))?),
            QUASI_ID => self.quasi = Some(parse_columns(cursor)?),
            SENSITIVE_ATTR => self.sensitive = parse_columns(cursor)?,
            OTHER => {
                self.other = in_brackets_or_not(cursor, |cursor| cursor.list(|cursor| cursor.name("a column")))?;
            }
            "USING" => clauses.algorithm = parse_algorithm(cursor)?,
            "K" => clauses.k = Some(cursor.number("a whole number above 0", |k| *k > 0)?),
            "BLOCK" => {
                clauses.block = match cursor.take_word("ALL") {
                    true => BlockSize::All,
                    false => BlockSize::Rows(cursor.number("a number of rows above 0, or ALL", |_| true)?),
                };
            }
            "T_CLOSENESS" => clauses.t = Some(cursor.number("a number from 0 to 1", |t| (0.0..=1.0).contains(t))?),
            "L_DIVERSITY" => clauses.l = Some(cursor.number("a whole number above 0", |l| *l > 0)?),
            "LEFTOVERS" => {
                clauses.leftovers = cursor.one_of(&[("MERGE", Leftovers::Merge), ("SUPPRESS", Leftovers::Suppress)])?;
            }
            "DISCLOSURE" => {
                clauses.disclosure = cursor.one_of(&[("CLASS", Disclosure::Class), ("ROW", Disclosure::Row)])?;
            }
            "ANSWERS" => {
                let ways =
                    [("VIEW", Answers::View), ("MATCHING", Answers::Matching), ("AGGREGATES", Answers::Aggregates)];
                clauses.answers = cursor.one_of(&ways)?;
            }
            "PER" => {
                cursor.expect_word("PURPOSE")?;
                clauses.purposes = Purposes::Apart;
            }
            "CHANGES" => {
                clauses.changes = Some(cursor.one_of(&[("EPOCHS", Changes::Epochs), ("PAPER", Changes::Paper)])?);
            }
            _ => {
                let ways = [("BATCH", Departures::Batch), ("WITHDRAW", Departures::Withdraw)];
                clauses.departures = Some(cursor.one_of(&ways)?);
            }
        }
        if self.words.contains(&word) {
            return Err(cursor.fault(place, ParseErrorKind::Twice(word)));
        }
        self.words.push(word);
        Ok(())
    }
}

/// `(a DGH_NAME x, b)`, or the same without parentheses, or with the braces of figure 5: `{{a DGH_NAME x}, {b}}`.
fn parse_columns(cursor: &mut Cursor<'_>) -> Result<Vec<ColumnClause>, ParseError> {
    in_brackets_or_not(cursor, |cursor| {
        let columns = cursor.list(|cursor| {
            let is_braced = cursor.take(&Token::LBrace);
            let mut columns = vec![parse_column(cursor)?];
            while is_braced && cursor.take(&Token::Comma) {
                columns.push(parse_column(cursor)?);
            }
            if is_braced {
                cursor.expect(&Token::RBrace)?;
            }
            Ok(columns)
        })?;
        Ok(columns.concat())
    })
}

fn parse_column(cursor: &mut Cursor<'_>) -> Result<ColumnClause, ParseError> {
    let name = cursor.name("a column")?;
    let hierarchy = if cursor.take_word("DGH_NAME") { Some(cursor.name("a DGH's name")?) } else { None };
    Ok(ColumnClause { name, hierarchy })
}

fn in_brackets_or_not<T>(
    cursor: &mut Cursor<'_>,
    read: impl FnOnce(&mut Cursor<'_>) -> Result<T, ParseError>,
) -> Result<T, ParseError> {
    let brackets = [(Token::LParen, Token::RParen), (Token::LBrace, Token::RBrace)];
    // Of `{a}, {b}` the braces belong to the columns.
    let around_all = match cursor.rest() {
        [first, second, ..] if first.token == Token::LBrace && second.token != Token::LBrace => None,
        _ => brackets.into_iter().find(|(open, _)| cursor.take(open)),
    };
    let content = read(cursor)?;
    if let Some((_, close)) = around_all {
        cursor.expect(&close)?;
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

/// A partitioner for single tables, written `top_down`, or `'top-down'` as in a spec.
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
