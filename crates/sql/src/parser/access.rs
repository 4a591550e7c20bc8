//! Users and grants: `CREATE USER`, `ALTER USER`, `DROP USER`, `GRANT`, `REVOKE`, `SHOW USERS`, `SHOW GRANTS`.

use super::cursor::{Cursor, either};
use super::error::ParseError;
use super::{AccessStatement, parse_dropped};
use crate::access::Granted;
use crate::policy::Pair;
use crate::role::Role;

/// Parses a statement about users or grants; `None` for any other.
pub(super) fn parse_access(cursor: &mut Cursor<'_>) -> Result<Option<AccessStatement>, ParseError> {
    Ok(Some(if cursor.begins(&["CREATE", "USER"], "CREATE USER ann ANALYST PASSWORD '...'") {
        let name = cursor.name("the user's name")?;
        let role = match cursor.starts_with(&["PASSWORD"]) {
            true => Role::Analyst,
            false => {
                cursor.one_of(&[("OWNER", Role::Owner), ("ANALYST", Role::Analyst), ("PASSWORD", Role::Analyst)])?
            }
        };
        AccessStatement::CreateUser { name, role, password: password(cursor)? }
    } else if cursor.begins(&["ALTER", "USER"], "ALTER USER ann PASSWORD '...'") {
        AccessStatement::SetPassword { name: cursor.name("the user's name")?, password: password(cursor)? }
    } else if cursor.begins(&["DROP", "USER"], "DROP USER ann") {
        let (name, if_exists) = parse_dropped(cursor, "the user's name")?;
        AccessStatement::DropUser { name, if_exists }
    } else if cursor.begins(&["GRANT"], GRANT) {
        let (what, user) = granted(cursor, "TO")?;
        let force = matches!(what, Granted::View(_)) && cursor.take_word("FORCE");
        AccessStatement::Grant { what, user, force }
    } else if cursor.begins(&["REVOKE"], REVOKE) {
        let (what, user) = granted(cursor, "FROM")?;
        AccessStatement::Revoke { what, user }
    } else if cursor.begins(&["SHOW", "USERS"], "SHOW USERS") {
        AccessStatement::ShowUsers
    } else if cursor.begins(&["SHOW", "GRANTS"], "SHOW GRANTS") {
        AccessStatement::ShowGrants
    } else {
        return Ok(None);
    }))
}

const GRANT: &str = "GRANT SELECT ON patients TO ann, or GRANT PURPOSE care RECIPIENT nurse TO ann";
const REVOKE: &str = "REVOKE SELECT ON patients FROM ann, or REVOKE PURPOSE care RECIPIENT nurse FROM ann";

/// Reads what is granted or revoked, and the user after this word.
fn granted(cursor: &mut Cursor<'_>, before_user: &str) -> Result<(Granted, String), ParseError> {
    let what = if cursor.take_word("SELECT") {
        cursor.expect_word("ON")?;
        Granted::View(cursor.name("the view's name")?)
    } else if cursor.take_word("PURPOSE") {
        let purpose = Some(cursor.word_or_text("a purpose")?);
        cursor.expect_word("RECIPIENT")?;
        Granted::Pair(Pair { purpose, recipient: Some(cursor.word_or_text("a recipient")?) })
    } else {
        return Err(cursor.expected(&either(["SELECT", "PURPOSE"])));
    };
    cursor.expect_word(before_user)?;
    Ok((what, cursor.name("the user's name")?))
}

/// `PASSWORD '...'`.
fn password(cursor: &mut Cursor<'_>) -> Result<Password, ParseError> {
    cursor.expect_word("PASSWORD")?;
    cursor.text("the password in single quotes").map(Password)
}

/// A password. `Debug` does not print it.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(pub(crate) String);

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Password(...)")
    }
}
