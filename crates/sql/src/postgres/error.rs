//! [`PostgresError`]: failures with tables of a PostgreSQL server. No message contains a password, a cell or a server's
//! message.

use std::io;
use std::path::PathBuf;

/// Why a table of a PostgreSQL server can't be created or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PostgresError {
    /// The location is not valid.
    #[error("the location of a PostgreSQL table {fault}")]
    Location {
        /// The fault.
        fault: &'static str,
    },
    /// The location contains a password.
    #[error("the location of a PostgreSQL table must not contain a password, because the location is stored and shown")]
    PasswordInLocation,
    /// There is no such option.
    #[error("a PostgreSQL table has no option '{name}'")]
    Option {
        /// Its name.
        name: String,
    },
    /// The statement lists columns.
    #[error("the columns of a PostgreSQL table can't be listed: they are read from the server")]
    ColumnsGiven,
    /// A file can't be used.
    #[error("'{}' can't be used: {fault}", .file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The reason.
        fault: &'static str,
    },
    /// The server can't be reached.
    #[error("the PostgreSQL server {server} can't be reached: {kind}")]
    Unreachable {
        /// Host and port.
        server: String,
        /// The kind of failure.
        kind: io::ErrorKind,
    },
    /// The server can't prove its identity.
    #[error("the PostgreSQL server {server} has no valid TLS certificate")]
    Untrusted {
        /// Host and port.
        server: String,
    },
    /// The server wants a password, and none is known.
    #[error("the PostgreSQL server {server} wants a password for user '{user}', and none was found")]
    NoPassword {
        /// Host and port.
        server: String,
        /// The user.
        user: String,
    },
    /// The password or the user is wrong, or the server does not accept connections from here.
    #[error("the PostgreSQL server {server} refused the login of user '{user}'")]
    Rejected {
        /// Host and port.
        server: String,
        /// The user.
        user: String,
    },
    /// The database does not exist.
    #[error("the PostgreSQL server {server} has no database '{database}'")]
    UnknownDatabase {
        /// Host and port.
        server: String,
        /// Its name.
        database: String,
    },
    /// The table does not exist.
    #[error("there is no table '{schema}.{table}' on the PostgreSQL server")]
    UnknownTable {
        /// Its schema.
        schema: String,
        /// Its name.
        table: String,
    },
    /// The user may not read the table.
    #[error("user '{user}' may not read '{schema}.{table}' on the PostgreSQL server")]
    NotAllowed {
        /// The user.
        user: String,
        /// The table's schema.
        schema: String,
        /// The table.
        table: String,
    },
    /// The type of a column is not supported.
    #[error("column '{column}' has the type {data_type}, which is not supported in PostgreSQL tables")]
    UnsupportedType {
        /// The column.
        column: String,
        /// The type on the server.
        data_type: String,
    },
    /// The column's type here can't hold a value.
    #[error("column '{column}' of the PostgreSQL table contains {what}")]
    Value {
        /// The column.
        column: String,
        /// The kind of value.
        what: &'static str,
    },
    /// The table has changed.
    #[error("the columns of '{schema}.{table}' on the PostgreSQL server have changed")]
    Changed {
        /// Its schema.
        schema: String,
        /// Its name.
        table: String,
    },
    /// Any other error of the server.
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
            | PostgresError::Failed { .. } => None,
        }
    }
}
