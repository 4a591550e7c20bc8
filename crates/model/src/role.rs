//! [`Role`]: what a column is for.

use std::fmt;
use std::str::FromStr;

/// What a column is for. There is no default: a column without a role is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Names a person directly; never released.
    Identifier,
    /// May be known to attackers; generalized until persons look alike.
    Quasi,
    /// Something an attacker wants to learn; released unchanged, subject to requirements.
    Sensitive,
    /// Joins tables or names the person; renumbered, and released only if another table points to it.
    Key,
    /// Released unchanged.
    Plain,
    /// The person's own k; never released.
    PersonK,
    /// Not released.
    Drop,
}

impl Role {
    /// Every role, in the order of the documentation.
    pub const ALL: [Role; 7] =
        [Role::Identifier, Role::Quasi, Role::Sensitive, Role::Key, Role::Plain, Role::PersonK, Role::Drop];

    /// The word for this role in a spec.
    pub fn word(self) -> &'static str {
        match self {
            Role::Identifier => "identifier",
            Role::Quasi => "quasi",
            Role::Sensitive => "sensitive",
            Role::Key => "key",
            Role::Plain => "plain",
            Role::PersonK => "person_k",
            Role::Drop => "drop",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for Role {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        Role::ALL.into_iter().find(|role| role.word() == word).ok_or(())
    }
}
