//! [`PostgresError`]: why a table of a server can't be read. Holds no password, no cell and no message of the server.

use std::io;
use std::path::PathBuf;

/// Why a table of a PostgreSQL server can't be made or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PostgresError {
    /// The location is none.
    #[error("the location of a PostgreSQL table {fault}")]
    Location {
        /// What is wrong with it.
        fault: &'static str,
    },
    /// A password in a statement, which is kept and shown.
    #[error("the location of a PostgreSQL table holds a password, which would be kept and shown with it")]
    PasswordInLocation,
    /// An option that is none.
    #[error("a PostgreSQL table has no option '{name}'")]
    Option {
        /// Its name.
        name: String,
    },
    /// Columns in the statement, which the server has to tell.
    #[error("the columns of a PostgreSQL table are those it has on its server")]
    ColumnsGiven,
    /// A file that can't be used.
    #[error("'{}' can't be used: {fault}", .file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// Why.
        fault: &'static str,
    },
    /// Nobody answers.
    #[error("the PostgreSQL server {server} can't be reached: {kind}")]
    Unreachable {
        /// Host and port.
        server: String,
        /// What kind of failure.
        kind: io::ErrorKind,
    },
    /// The way to the server is not safe.
    #[error("the PostgreSQL server {server} does not show by TLS that it is the one")]
    Untrusted {
        /// Host and port.
        server: String,
    },
    /// The server asks for a password, and there is none.
    #[error("the PostgreSQL server {server} asks for a password of user '{user}', and none is known")]
    NoPassword {
        /// Host and port.
        server: String,
        /// Who would log in.
        user: String,
    },
    /// The password or the user is wrong, or the server does not let them in from here.
    #[error("the PostgreSQL server {server} does not let user '{user}' in")]
    Rejected {
        /// Host and port.
        server: String,
        /// Who would log in.
        user: String,
    },
    /// There is no such database.
    #[error("the PostgreSQL server {server} has no database '{database}'")]
    UnknownDatabase {
        /// Host and port.
        server: String,
        /// Its name.
        database: String,
    },
    /// There is no such table.
    #[error("there is no table '{schema}.{table}' on the PostgreSQL server")]
    UnknownTable {
        /// Its schema.
        schema: String,
        /// Its name.
        table: String,
    },
    /// The user may not read it.
    #[error("user '{user}' may not read '{schema}.{table}' on the PostgreSQL server")]
    NotAllowed {
        /// Who asks.
        user: String,
        /// The table's schema.
        schema: String,
        /// The table.
        table: String,
    },
    /// A column of a type that is not read.
    #[error("column '{column}' is of type {data_type}, which is not read from PostgreSQL")]
    UnsupportedType {
        /// The column.
        column: String,
        /// Its type there.
        data_type: String,
    },
    /// A value that has no place in the column's type here.
    #[error("column '{column}' of the PostgreSQL table holds {what}")]
    Value {
        /// The column.
        column: String,
        /// What kind of value.
        what: &'static str,
    },
    /// The table is not the one it was.
    #[error("the columns of '{schema}.{table}' on the PostgreSQL server are not those they were")]
    Changed {
        /// Its schema.
        schema: String,
        /// Its name.
        table: String,
    },
    /// Anything else the server says, by its code.
    #[error("the PostgreSQL server {server} fails with SQLSTATE {code}")]
    Failed {
        /// Host and port.
        server: String,
        /// The code.
        code: String,
    },
}

impl PostgresError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            PostgresError::Location { .. } => Some("write 'postgres://user@host:5432/database'"),
            PostgresError::PasswordInLocation | PostgresError::NoPassword { .. } => {
                Some("put it into ~/.pgpass or PGPASSWORD, or name a file like ~/.pgpass: OPTIONS (passfile '...')")
            }
            PostgresError::Option { .. } => Some("there are table, schema, passfile and root_certificate"),
            PostgresError::ColumnsGiven => Some("leave them out, and choose some in queries"),
            PostgresError::Untrusted { .. } => Some(
                "name its authority: OPTIONS (root_certificate '...'); or write ?sslmode=disable where nobody listens",
            ),
            PostgresError::UnknownTable { .. } => Some("name it: OPTIONS (schema '...', table '...')"),
            PostgresError::UnsupportedType { .. } => {
                Some("make a view there that casts the column or leaves it out, and name that view")
            }
            PostgresError::Value { .. } => Some("make a view there that replaces it, and name that view"),
            PostgresError::Changed { .. } => Some("DROP the table here and make it again"),
            PostgresError::File { .. }
            | PostgresError::Unreachable { .. }
            | PostgresError::Rejected { .. }
            | PostgresError::UnknownDatabase { .. }
            | PostgresError::NotAllowed { .. }
            | PostgresError::Failed { .. } => None,
        }
    }
}
