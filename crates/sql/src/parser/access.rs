//! Users and grants: `CREATE USER`, `ALTER USER`, `DROP USER`, `GRANT`, `REVOKE`, `SHOW USERS`, `SHOW GRANTS`.

use super::cursor::{Cursor, either};
use super::error::ParseError;
use super::{AccessStatement, Statement, parse_dropped};
use crate::access::GrantedPair;
use crate::role::Role;

/// Whether the statement is about users or grants.
pub(super) fn is_access(cursor: &Cursor<'_>) -> bool {
    const STARTS: [&[&str]; 7] = [
        &["CREATE", "USER"],
        &["ALTER", "USER"],
        &["DROP", "USER"],
        &["GRANT"],
        &["REVOKE"],
        &["SHOW", "USERS"],
        &["SHOW", "GRANTS"],
    ];
    STARTS.iter().any(|words| cursor.starts_with(words))
}

pub(super) fn parse_access(cursor: &mut Cursor<'_>) -> Result<Statement, ParseError> {
    let statement = if cursor.starts_with(&["CREATE"]) {
        cursor.example("CREATE USER ann ANALYST PASSWORD '...'").skip(2);
        let name = cursor.name("the user's name")?;
        let role = match cursor.starts_with(&["PASSWORD"]) {
            true => Role::Analyst,
            false => {
                cursor.one_of(&[("OWNER", Role::Owner), ("ANALYST", Role::Analyst), ("PASSWORD", Role::Analyst)])?
            }
        };
        AccessStatement::CreateUser { name, role, password: password(cursor)? }
    } else if cursor.starts_with(&["ALTER"]) {
        cursor.example("ALTER USER ann PASSWORD '...'").skip(2);
        AccessStatement::SetPassword { name: cursor.name("the user's name")?, password: password(cursor)? }
    } else if cursor.starts_with(&["DROP"]) {
        cursor.example("DROP USER ann").skip(2);
        let (name, if_exists) = parse_dropped(cursor, "the user's name")?;
        AccessStatement::DropUser { name, if_exists }
    } else if cursor.starts_with(&["GRANT"]) {
        cursor.example("GRANT SELECT ON patients TO ann, or GRANT PURPOSE care RECIPIENT nurse TO ann").skip(1);
        let (what, user) = granted(cursor, "TO")?;
        let force = matches!(what, Granted::View(_)) && cursor.take_word("FORCE");
        AccessStatement::Grant { what, user, force }
    } else if cursor.starts_with(&["REVOKE"]) {
        cursor.example("REVOKE SELECT ON patients FROM ann, or REVOKE PURPOSE care RECIPIENT nurse FROM ann").skip(1);
        let (what, user) = granted(cursor, "FROM")?;
        AccessStatement::Revoke { what, user }
    } else if cursor.starts_with(&["SHOW", "USERS"]) {
        cursor.example("SHOW USERS").skip(2);
        AccessStatement::ShowUsers
    } else {
        cursor.example("SHOW GRANTS").skip(2);
        AccessStatement::ShowGrants
    };
    Ok(Statement::Access(statement))
}

/// What is granted or revoked, and the user after this word.
fn granted(cursor: &mut Cursor<'_>, before_user: &str) -> Result<(Granted, String), ParseError> {
    let what = if cursor.take_word("SELECT") {
        cursor.expect_word("ON")?;
        Granted::View(cursor.name("the view's name")?)
    } else if cursor.take_word("PURPOSE") {
        let purpose = cursor.word_or_text("a purpose")?;
        cursor.expect_word("RECIPIENT")?;
        Granted::Pair(GrantedPair { purpose, recipient: cursor.word_or_text("a recipient")? })
    } else {
        return Err(cursor.expected(&either(["SELECT", "PURPOSE"])));
    };
    cursor.expect_word(before_user)?;
    Ok((what, cursor.name("the user's name")?))
}

/// `PASSWORD '...'`, or what PostgreSQL's clients write before it.
fn password(cursor: &mut Cursor<'_>) -> Result<Password, ParseError> {
    cursor.expect_word("PASSWORD")?;
    cursor.text("the password in single quotes").map(Password)
}

/// What a GRANT or REVOKE speaks of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Granted {
    /// Reading a view.
    View(String),
    /// Asking for a purpose and a recipient.
    Pair(GrantedPair),
}

/// A password, which is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(pub(crate) String);

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Password(...)")
    }
}
