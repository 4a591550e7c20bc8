//! [`open`] logs in to a server; a [`PostgresConnection`] is one read-only transaction there.

use std::error::Error as _;
use std::io;
use std::sync::Arc;

use tokio::task::JoinHandle;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::PostgresError;
use super::address::Address;
use super::columns::Encoding;

/// Begins the transaction for all queries: one state of the data, no writes, only the server's own functions and
/// operators, and a fixed format of dates and times.
const BEGIN: &str = "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY; \
                     SET LOCAL search_path = pg_catalog; SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO, YMD'";

/// A transaction on a server, which ends when this is dropped.
pub(super) struct PostgresConnection {
    pub(super) client: Client,
    /// The encoding of texts in the database.
    pub(super) encoding: Encoding,
    task: JoinHandle<()>,
}

impl Drop for PostgresConnection {
    fn drop(&mut self) {
        // Otherwise the task would go on reading rows that nobody wants.
        self.task.abort();
    }
}

impl PostgresConnection {
    /// Connects and begins the transaction.
    ///
    /// # Errors
    /// If the server can't be reached, can't prove its identity, or refuses the user.
    pub(super) async fn begin(address: &Address) -> Result<PostgresConnection, PostgresError> {
        let Opened { client, encoding, task, .. } = open(address).await?;
        let connection = PostgresConnection { client, encoding, task };
        connection.client.batch_execute(BEGIN).await.map_err(|error| address.problem(&error))?;
        Ok(connection)
    }
}

/// A connection that has logged in.
pub(super) struct Opened {
    pub(super) client: Client,
    /// The encoding of texts in the database.
    pub(super) encoding: Encoding,
    /// How the server is reached by TLS, if it is.
    pub(super) tls: Option<MakeRustlsConnect>,
    /// Reads what the server sends.
    pub(super) task: JoinHandle<()>,
}

/// Connects and logs in.
///
/// # Errors
/// If the server can't be reached, can't prove its identity, or refuses the user.
pub(super) async fn open(address: &Address) -> Result<Opened, PostgresError> {
    let mut config = address.config.clone();
    if let Some(password) = address.login.password(address.passfile.as_deref())? {
        config.password(password);
    }
    let failed = |error: Error| address.problem(&error);
    let encoding = |told: Option<&str>| if told == Some("UTF8") { Encoding::Utf8 } else { Encoding::Other };
    match config.get_ssl_mode() {
        SslMode::Disable => {
            let (client, connection) = config.connect(NoTls).await.map_err(failed)?;
            let encoding = encoding(connection.parameter("server_encoding"));
            let task = tokio::spawn(async move { drop(connection.await) });
            Ok(Opened { client, encoding, tls: None, task })
        }
        _ => {
            let tls = tls(address)?;
            let (client, connection) = config.connect(tls.clone()).await.map_err(failed)?;
            let encoding = encoding(connection.parameter("server_encoding"));
            let task = tokio::spawn(async move { drop(connection.await) });
            Ok(Opened { client, encoding, tls: Some(tls), task })
        }
    }
}

impl Address {
    /// Converts an error, without the server's message.
    pub(super) fn problem(&self, error: &Error) -> PostgresError {
        let (server, user) = (self.login.server(), self.login.user.clone());
        let (schema, table) = (self.schema.clone(), self.table.clone());
        let Some(code) = error.code() else {
            let source = error.source();
            let kind = source.and_then(|source| source.downcast_ref::<io::Error>()).map(io::Error::kind);
            return match (error.to_string(), kind) {
                (said, _) if said.starts_with("invalid configuration") => PostgresError::NoPassword { server, user },
                (said, _) if said.starts_with("error performing TLS") => PostgresError::Untrusted { server },
                (said, _) if said.starts_with("authentication error") => PostgresError::Rejected { server, user },
                (said, None) if said.starts_with("timeout") => {
                    PostgresError::Unreachable { server, kind: io::ErrorKind::TimedOut }
                }
                (_, kind) => {
                    PostgresError::Unreachable { server, kind: kind.unwrap_or(io::ErrorKind::ConnectionAborted) }
                }
            };
        };
        match *code {
            SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
                PostgresError::Rejected { server, user }
            }
            SqlState::INVALID_CATALOG_NAME => {
                PostgresError::UnknownDatabase { server, database: self.login.database.clone() }
            }
            SqlState::INSUFFICIENT_PRIVILEGE => PostgresError::NotAllowed { user, schema, table },
            SqlState::UNDEFINED_TABLE => PostgresError::UnknownTable { schema, table },
            SqlState::UNDEFINED_COLUMN => PostgresError::Changed { schema, table },
            _ => PostgresError::Failed { server, code: code.code().to_owned() },
        }
    }
}

/// TLS with certificates that are verified.
fn tls(address: &Address) -> Result<MakeRustlsConnect, PostgresError> {
    let untrusted = || PostgresError::Untrusted { server: address.login.server() };
    let mut roots = RootCertStore::empty();
    match &address.root_certificate {
        Some(file) => {
            let fault = || PostgresError::File { file: file.clone(), fault: "it contains no certificate" };
            for certificate in CertificateDer::pem_file_iter(file).map_err(|_| fault())? {
                roots.add(certificate.map_err(|_| fault())?).map_err(|_| fault())?;
            }
            if roots.is_empty() {
                return Err(fault());
            }
        }
        // Certificates that can't be read are skipped.
        None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().map_err(|_| untrusted())?;
    Ok(MakeRustlsConnect::new(config.with_root_certificates(roots).with_no_client_auth()))
}
