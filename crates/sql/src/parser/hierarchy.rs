//! `CREATE DGH` and `INSERT INTO DGH`.

use datafusion::sql::sqlparser::tokenizer::Token;
use kohort_model::hierarchy::{DateLevel, MaskSide, Rule};
use kohort_model::spec::HierarchySource;

use super::Statement;
use super::cursor::{self, Cursor};
use super::error::ParseError;

const DATE_LEVELS: [(&str, DateLevel); 5] = [
    ("day", DateLevel::Day),
    ("month", DateLevel::Month),
    ("quarter", DateLevel::Quarter),
    ("year", DateLevel::Year),
    ("decade", DateLevel::Decade),
];

pub(super) fn parse_create(cursor: &mut Cursor<'_>) -> Result<Statement, ParseError> {
    cursor.example("CREATE DGH zip FROM 'zip.csv'").skip(1);
    let or_replace = cursor.take_word("OR");
    cursor.skip(if or_replace { 2 } else { 1 });
    let name = cursor.name("the DGH's name")?;
    let source = if cursor.take_word("FROM") { Some(parse_source(cursor)?) } else { None };
    Ok(Statement::CreateHierarchy { name, or_replace, source })
}

fn parse_source(cursor: &mut Cursor<'_>) -> Result<HierarchySource, ParseError> {
    let rule = if cursor.take_word("STEPS") {
        cursor.example("CREATE DGH age FROM STEPS (5, 10, 50)");
        let is_width = |step: &f64| step.is_finite() && *step > 0.0;
        Rule::Steps(in_parentheses(cursor, |cursor| cursor.number("a width above 0", is_width))?)
    } else if cursor.take_word("MASK") {
        cursor.example("CREATE DGH zip FROM MASK RIGHT");
        Rule::Mask(cursor.one_of(&[("RIGHT", MaskSide::Right), ("LEFT", MaskSide::Left)])?)
    } else if cursor.take_word("DATES") {
        cursor.example("CREATE DGH birth FROM DATES (month, year, decade)");
        Rule::Dates(in_parentheses(cursor, |cursor| cursor.one_of(&DATE_LEVELS))?)
    } else if cursor.take_word("FLAT") {
        Rule::Flat
    } else if cursor.take_word("EDGES") {
        cursor.example("CREATE DGH zip FROM EDGES 'zip.csv'");
        return Ok(HierarchySource::Edges(cursor.text("a file of child;parent rows in single quotes")?.into()));
    } else {
        let sources = "a file in single quotes, EDGES, STEPS, MASK, DATES or FLAT";
        return Ok(HierarchySource::Paths(cursor.text(sources)?.into()));
    };
    Ok(HierarchySource::Rule(rule))
}

fn in_parentheses<T>(
    cursor: &mut Cursor<'_>,
    item: impl FnMut(&mut Cursor<'_>) -> Result<T, ParseError>,
) -> Result<Vec<T>, ParseError> {
    cursor.expect(&Token::LParen)?;
    let items = cursor.list(item)?;
    cursor.expect(&Token::RParen)?;
    Ok(items)
}

/// Whether a name follows `INSERT INTO DGH`. Otherwise the statement inserts into a table called `dgh`.
pub(super) fn is_insert(cursor: &Cursor<'_>) -> bool {
    const AFTER_A_TABLE: [&str; 6] = ["VALUES", "SELECT", "WITH", "TABLE", "DEFAULT", "OVERRIDING"];
    match cursor.rest().get(3) {
        Some(next) => {
            matches!(next.token, Token::Word(_)) && !AFTER_A_TABLE.iter().any(|word| cursor::is_word(next, word))
        }
        None => true,
    }
}

pub(super) fn parse_insert(cursor: &mut Cursor<'_>) -> Result<Statement, ParseError> {
    cursor.example("INSERT INTO DGH zip VALUES ('88512', '885**'), ('88540', '885**')").skip(3);
    let name = cursor.name("the DGH's name")?;
    let pairs = if cursor.take_word("VALUES") {
        cursor.list(|cursor| {
            cursor.expect(&Token::LParen)?;
            let pair = parse_pair(cursor)?;
            cursor.expect(&Token::RParen)?;
            Ok(pair)
        })?
    } else if matches!(
        cursor.rest().first().map(|token| &token.token),
        Some(Token::SingleQuotedString(_) | Token::Number(..))
    ) {
        vec![parse_pair(cursor)?]
    } else {
        return Err(cursor.expected("VALUES, or a child and its parent in single quotes"));
    };
    Ok(Statement::InsertHierarchy { name, pairs })
}

fn parse_pair(cursor: &mut Cursor<'_>) -> Result<(String, String), ParseError> {
    let child = parse_label(cursor, "a child")?;
    cursor.expect(&Token::Comma)?;
    Ok((child, parse_label(cursor, "its parent")?))
}

/// A label in single quotes, or a bare number.
fn parse_label(cursor: &mut Cursor<'_>, what: &str) -> Result<String, ParseError> {
    if let Some(Token::Number(digits, _)) = cursor.rest().first().map(|token| &token.token) {
        cursor.skip(1);
        return Ok(digits.clone());
    }
    cursor.text(&format!("{what} in single quotes"))
}
