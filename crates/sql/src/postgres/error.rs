//! [`PostgresError`]: failures with tables of a PostgreSQL server. No message contains a password, a cell or a server's
//! message.

use std::io;
use std::path::PathBuf;

/// Why a table of a PostgreSQL server can't be created or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the variants and fields are")]
pub enum PostgresError {
    #[error("the location of a PostgreSQL table {fault}")]
    Location { fault: &'static str },
    #[error("the location of a PostgreSQL table must not contain a password, because the location is stored and shown")]
    PasswordInLocation,
    #[error("a PostgreSQL table has no option '{name}'")]
    Option { name: String },
    #[error("the columns of a PostgreSQL table can't be listed: they are read from the server")]
    ColumnsGiven,
    #[error("'{}' can't be used: {fault}", .file.display())]
    File { file: PathBuf, fault: &'static str },
    #[error("the PostgreSQL server {server} can't be reached: {kind}")]
    Unreachable { server: String, kind: io::ErrorKind },
    #[error("the PostgreSQL server {server} has no valid TLS certificate")]
    Untrusted { server: String },
    #[error("the PostgreSQL server {server} wants a password for user '{user}', and none was found")]
    NoPassword { server: String, user: String },
    /// The password or the user is wrong, or the server does not accept connections from here.
    #[error("the PostgreSQL server {server} refused the login of user '{user}'")]
    Rejected { server: String, user: String },
    #[error("the PostgreSQL server {server} has no database '{database}'")]
    UnknownDatabase { server: String, database: String },
    #[error("there is no table '{schema}.{table}' on the PostgreSQL server")]
    UnknownTable { schema: String, table: String },
    #[error("user '{user}' may not read '{schema}.{table}' on the PostgreSQL server")]
    NotAllowed { user: String, schema: String, table: String },
    #[error("column '{column}' has the type {data_type}, which is not supported in PostgreSQL tables")]
    UnsupportedType { column: String, data_type: String },
    /// The column's type here can't hold a value.
    #[error("column '{column}' of the PostgreSQL table contains {what}")]
    Value { column: String, what: &'static str },
    #[error("the columns of '{schema}.{table}' on the PostgreSQL server have changed")]
    Changed { schema: String, table: String },
    #[error("the PostgreSQL server could not be told to cancel a statement")]
    NotCancelled,
    #[error("the PostgreSQL server {server} fails with SQLSTATE {code}")]
    Failed { server: String, code: String },
}

impl PostgresError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            PostgresError::Location { .. } => Some("write 'postgres://user@host:5432/database'"),
            PostgresError::PasswordInLocation | PostgresError::NoPassword { .. } => Some(
                "put the password into ~/.pgpass or PGPASSWORD, or name a file in the same format: OPTIONS (passfile '...')",
            ),
            PostgresError::Option { .. } => Some("the options are table, schema, passfile and root_certificate"),
            PostgresError::ColumnsGiven => Some("leave the columns out here, and choose some in queries"),
            PostgresError::Untrusted { .. } => Some(
                "name the authority that signed it: OPTIONS (root_certificate '...'); or, in a trusted network only, write ?sslmode=disable",
            ),
            PostgresError::UnknownTable { .. } => Some("name the table: OPTIONS (schema '...', table '...')"),
            PostgresError::UnsupportedType { .. } => {
                Some("create a view on the server that casts the column or leaves it out, and use that view")
            }
            PostgresError::Value { .. } => {
                Some("create a view on the server that replaces the value, and use that view")
            }
            PostgresError::Changed { .. } => Some("DROP the table here and create it again"),
            PostgresError::File { .. }
            | PostgresError::Unreachable { .. }
            | PostgresError::Rejected { .. }
            | PostgresError::UnknownDatabase { .. }
            | PostgresError::NotAllowed { .. }
            | PostgresError::NotCancelled
            | PostgresError::Failed { .. } => None,
        }
    }
}
