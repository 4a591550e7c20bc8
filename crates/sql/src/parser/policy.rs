//! `IMPORT POLICY`.

use super::Statement;
use super::cursor::Cursor;
use super::error::{ParseError, ParseErrorKind};

pub(super) fn parse_import(cursor: &mut Cursor<'_>) -> Result<Statement, ParseError> {
    cursor.example("IMPORT POLICY 'policy.toml' INTO choices").skip(1);
    cursor.expect_word("POLICY")?;
    let file = cursor.text("the policy's file in single quotes")?;
    cursor.expect_word("INTO")?;
    let table = cursor.table("the table's name")?;
    let (mut person, mut k) = (None, None);
    while !cursor.is_at_end() {
        let place = cursor.place();
        if cursor.take_word("PERSON") {
            if person.replace(cursor.name("the column that names persons")?).is_some() {
                return Err(cursor.fault(place, ParseErrorKind::Twice("PERSON")));
            }
        } else if cursor.take_word("K") {
            if k.replace(cursor.number("a whole number", |_: &u32| true)?).is_some() {
                return Err(cursor.fault(place, ParseErrorKind::Twice("K")));
            }
        } else {
            return Err(cursor.expected("PERSON, K or the end of the statement"));
        }
    }
    Ok(Statement::ImportPolicy { file, table, person, k })
}
