//! [`ServerAddress`] and [`ServerClient`]: a program's own connection to a server, by the rules that external tables follow: where a
//! password is found, when TLS is required, and which certificates are trusted.

use std::collections::HashMap;
use std::path::PathBuf;

use tokio::task::JoinHandle;
use tokio_postgres::{CancelToken, Client, Error, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::PostgresError;
use super::address::Address;
use super::connection::{Opened, open};

/// The address of a server and who logs in. Contains no password.
#[derive(Clone, Debug)]
pub struct ServerAddress(Address);

/// A connection that ends when this is dropped.
pub struct ServerClient {
    client: Client,
    cancels: CancelToken,
    tls: Option<MakeRustlsConnect>,
    task: JoinHandle<()>,
}

impl ServerAddress {
    /// Reads `postgres://user@host:port/database`.
    ///
    /// # Errors
    /// If it can't be understood, or contains a password.
    pub fn parse(location: &str, root_certificate: Option<PathBuf>) -> Result<ServerAddress, PostgresError> {
        let mut address = Address::parse(location, &HashMap::new(), "")?;
        address.root_certificate = root_certificate;
        Ok(ServerAddress(address))
    }

    /// The same address with the name of a program, and with settings for the session.
    #[must_use]
    pub fn with_settings<'a>(
        mut self,
        program: &str,
        settings: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> ServerAddress {
        let mut options = self.0.config.get_options().unwrap_or_default().to_owned();
        for (name, value) in settings {
            let value = value.replace('\\', "\\\\").replace(' ', "\\ ");
            options.push_str(&format!(" -c {name}={value}"));
        }
        self.0.config.application_name(program);
        if !options.trim().is_empty() {
            self.0.config.options(options.trim());
        }
        self
    }

    /// Who logs in.
    pub fn user(&self) -> &str {
        &self.0.login.user
    }

    /// Logs in.
    ///
    /// # Errors
    /// If the server can't be reached, can't prove its identity, or refuses the login.
    pub async fn connect(&self) -> Result<ServerClient, PostgresError> {
        let Opened { client, tls, task, .. } = open(&self.0).await?;
        Ok(ServerClient { cancels: client.cancel_token(), client, tls, task })
    }

    /// Converts an error, without the server's message.
    pub fn problem(&self, error: &Error) -> PostgresError {
        self.0.problem(error)
    }
}

impl ServerClient {
    /// The connection.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Asks the server to cancel the statement that runs.
    ///
    /// # Errors
    /// If the server can't be reached.
    pub async fn cancel(&self) -> Result<(), PostgresError> {
        let asked = match &self.tls {
            Some(tls) => self.cancels.cancel_query(tls.clone()).await,
            None => self.cancels.cancel_query(NoTls).await,
        };
        asked.map_err(|_| PostgresError::NotCancelled)
    }
}

impl Drop for ServerClient {
    fn drop(&mut self) {
        self.task.abort();
    }
}
