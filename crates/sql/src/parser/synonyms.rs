//! Spellings that the SQL parser does not know, or reads only roughly, brought to those it knows.
//!
//! | written | read as | because |
//! | --- | --- | --- |
//! | `TABLE name` | `SELECT * FROM name` | the parser loses the quotes of the name, and the query engine refuses it |
//! | `x AVLIKE y` | `x = y` | on labels every `=` means "could be", which the paper writes as AVLIKE |
//! | `MOVE 5 FROM c` | `FETCH 5 FROM c` | only the server tells them apart |
//! | `x = ANY (ARRAY['a', 'b'])`, `x = ANY ('{a,b}')` | `x IN ('a', 'b')` | labels are compared with values, not with arrays |
//! | `x <> ALL (ARRAY['a', 'b'])` | `x NOT IN ('a', 'b')` | the same |
//! | `FETCH 5 c` | `FETCH 5 FROM c` | PostgreSQL's grammar lets FROM out |
//!
//! `avlike` is an ordinary name elsewhere (`SELECT zip avlike FROM v`), so the word is read as an operator only in a
//! statement that does not parse otherwise.
//!
//! # Paper
//! `[EPS+12]` section 5.1, step 4

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as DFStatement;
use datafusion::sql::sqlparser::ast::{
    Array, ArrayElemTypeDef, BinaryOperator, DataType, Expr, Statement as SqlStatement, Value, visit_expressions_mut,
};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::cursor::is_word;

/// The tokens with `SELECT * FROM name` for `TABLE name`; `None` if no query is written that way.
pub(super) fn with_tables_selected(tokens: &[TokenWithSpan]) -> Option<Vec<TokenWithSpan>> {
    (0..tokens.len()).any(|place| is_table_query(tokens, place)).then(|| {
        let mut spelled = Vec::with_capacity(tokens.len() + 2);
        for (place, token) in tokens.iter().enumerate() {
            match is_table_query(tokens, place) {
                true => {
                    let words = [Token::make_keyword("SELECT"), Token::Mul, Token::make_keyword("FROM")];
                    spelled.extend(words.map(|word| TokenWithSpan { token: word, span: token.span }));
                }
                false => spelled.push(token.clone()),
            }
        }
        spelled
    })
}

/// Whether a query `TABLE name` begins at this place. In `DROP TABLE name` none does.
fn is_table_query(tokens: &[TokenWithSpan], place: usize) -> bool {
    const BEFORE_A_QUERY: [&str; 9] =
        ["UNION", "EXCEPT", "INTERSECT", "ALL", "DISTINCT", "EXPLAIN", "ANALYZE", "VERBOSE", "FOR"];
    let names_a_table = matches!(tokens.get(place + 1).map(|next| &next.token), Some(Token::Word(_)));
    if !is_word(&tokens[place], "TABLE") || !names_a_table {
        return false;
    }
    let before = |n: usize| place.checked_sub(n).map(|place| &tokens[place]);
    match before(1) {
        None => true,
        // In `CREATE TABLE t (table text)` the word is a column.
        Some(TokenWithSpan { token: Token::LParen, .. }) => {
            !matches!(before(2).map(|token| &token.token), Some(Token::Word(word)) if word.keyword == Keyword::NoKeyword)
        }
        Some(word) => BEFORE_A_QUERY.iter().any(|known| is_word(word, known)),
    }
}

/// The tokens with `=` for `AVLIKE`; `None` if there is no such word.
pub(super) fn with_equality(tokens: &[TokenWithSpan]) -> Option<Vec<TokenWithSpan>> {
    let is_operator = |token: &TokenWithSpan| is_word(token, "AVLIKE");
    tokens.iter().any(is_operator).then(|| {
        let spelled = |token: &TokenWithSpan| match is_operator(token) {
            true => TokenWithSpan { token: Token::Eq, span: token.span },
            false => token.clone(),
        };
        tokens.iter().map(spelled).collect()
    })
}

/// The tokens of a MOVE or FETCH as those of a FETCH with FROM, which PostgreSQL's grammar lets out.
pub(super) fn as_fetch(tokens: &[TokenWithSpan]) -> Vec<TokenWithSpan> {
    let mut spelled = tokens.to_vec();
    spelled[0].token = Token::make_keyword("FETCH");
    if let [.., before, cursor] = tokens
        && !["FROM", "IN"].iter().any(|word| is_word(before, word))
    {
        spelled.insert(tokens.len() - 1, TokenWithSpan { token: Token::make_keyword("FROM"), span: cursor.span });
    }
    spelled
}

/// Replaces comparisons with all elements of an array by IN.
pub(super) fn spell_arrays(statement: &mut DFStatement) {
    match statement {
        DFStatement::Statement(statement) => spell_arrays_in(statement),
        DFStatement::Explain(explain) => spell_arrays(&mut explain.statement),
        _ => {}
    }
}

/// Replaces comparisons with all elements of an array by IN, for example after parameters got their values.
pub fn spell_arrays_in(statement: &mut SqlStatement) {
    let _ = visit_expressions_mut(statement, |expression| {
        let (left, right, negated) = match expression {
            Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => (left, right, false),
            Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right } => (left, right, true),
            _ => return ControlFlow::<()>::Continue(()),
        };
        if let Some(list) = elements(right) {
            *expression = match list.is_empty() {
                true => Expr::value(Value::Boolean(negated)),
                false => Expr::InList { expr: left.clone(), list, negated },
            };
        }
        ControlFlow::Continue(())
    });
}

/// The elements of an array that is written out; `None` for any other expression.
fn elements(array: &Expr) -> Option<Vec<Expr>> {
    match array {
        Expr::Array(Array { elem, .. }) => {
            let is_nested = elem.iter().any(|element| matches!(element, Expr::Array(_)));
            (!is_nested).then(|| elem.clone())
        }
        Expr::Nested(array) => elements(array),
        Expr::Cast { expr, data_type: DataType::Array(of), .. } => {
            let of = match of {
                ArrayElemTypeDef::SquareBracket(of, _) | ArrayElemTypeDef::AngleBracket(of) => Some(of.as_ref()),
                ArrayElemTypeDef::Parenthesis(of) => Some(of.as_ref()),
                ArrayElemTypeDef::None => None,
            };
            let is_text = of.is_none_or(|of| matches!(of, DataType::Text | DataType::Varchar(_)));
            match expr.as_ref() {
                Expr::Value(value) if !is_text => {
                    let Value::SingleQuotedString(text) = &value.value else { return None };
                    array_in_braces(text)?.into_iter().map(number_or_null).collect()
                }
                array => elements(array),
            }
        }
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(written) => {
                let text = |element: Option<String>| element.map_or(Value::Null, Value::SingleQuotedString);
                Some(array_in_braces(written)?.into_iter().map(|element| Expr::value(text(element))).collect())
            }
            _ => None,
        },
        _ => None,
    }
}

/// A number as SQL writes it.
fn number_or_null(element: Option<String>) -> Option<Expr> {
    let Some(digits) = element else { return Some(Expr::value(Value::Null)) };
    let is_number = digits.trim_start_matches('-').chars().all(|digit| digit.is_ascii_digit() || digit == '.');
    (is_number && digits.parse::<f64>().is_ok()).then(|| Expr::value(Value::Number(digits, false)))
}

/// The most elements of an array in one text. A text is one token, so the limits on tokens do not bound them.
pub const MOST_ELEMENTS: usize = 20_000;

/// The elements of an array as PostgreSQL writes it: `{a,"b, c",NULL}`. `None` for anything else, also for an array of
/// arrays, or of more than [`MOST_ELEMENTS`].
pub fn array_in_braces(text: &str) -> Option<Vec<Option<String>>> {
    let mut rest = text.trim().strip_prefix('{')?.strip_suffix('}')?.chars().peekable();
    let mut elements = Vec::new();
    let skip_blanks = |rest: &mut std::iter::Peekable<std::str::Chars<'_>>| {
        while rest.next_if(|next| next.is_whitespace()).is_some() {}
    };
    skip_blanks(&mut rest);
    if rest.peek().is_none() {
        return Some(elements);
    }
    loop {
        skip_blanks(&mut rest);
        let is_quoted = rest.next_if_eq(&'"').is_some();
        let mut element = String::new();
        loop {
            match rest.peek() {
                Some('"') if is_quoted => {
                    rest.next();
                    break;
                }
                Some(',') if !is_quoted => break,
                None if !is_quoted => break,
                Some('\\') => {
                    rest.next();
                    element.push(rest.next()?);
                }
                Some('{' | '}' | '"') if !is_quoted => return None,
                Some(_) => element.extend(rest.next()),
                None => return None,
            }
        }
        if !is_quoted {
            element.truncate(element.trim_end().len());
            if element.is_empty() {
                return None;
            }
        }
        let is_null = !is_quoted && element.eq_ignore_ascii_case("null");
        if elements.len() == MOST_ELEMENTS {
            return None;
        }
        elements.push((!is_null).then_some(element));
        skip_blanks(&mut rest);
        match rest.next() {
            None => return Some(elements),
            Some(',') => {}
            Some(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_read_as_postgresql_writes_them() {
        let read = |text: &str| {
            array_in_braces(text).map(|elements| {
                elements
                    .into_iter()
                    .map(|element| element.unwrap_or_else(|| "(null)".into()))
                    .collect::<Vec<_>>()
                    .join("|")
            })
        };
        for (text, elements) in [
            ("{}", Some("")),
            ("{a}", Some("a")),
            ("{ a , b c ,NULL}", Some("a|b c|(null)")),
            (r#"{"a,b","NULL","q\"\\"}"#, Some(r#"a,b|NULL|q"\"#)),
            ("{\"\"}", Some("")),
            ("a,b", None),
            ("{a,}", None),
            ("{{a},{b}}", None),
            ("{\"a}", None),
            ("{a\"b}", None),
        ] {
            assert_eq!(read(text).as_deref(), elements, "{text}");
        }
        let many =
            |n: usize| array_in_braces(&format!("{{{}}}", vec!["1"; n].join(","))).map(|elements| elements.len());
        assert_eq!((many(MOST_ELEMENTS), many(MOST_ELEMENTS + 1)), (Some(MOST_ELEMENTS), None));
    }
}
