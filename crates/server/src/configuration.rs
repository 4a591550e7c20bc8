//! [`Configuration`]: how a server listens and what it allows, from a file of TOML and the command line.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::tls::{Tls, TlsError};

/// How a server listens, and what it allows. Times are in seconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Configuration {
    /// Where clients connect.
    pub listen: SocketAddr,
    /// The certificate that clients see, PEM.
    pub tls_certificate: Option<PathBuf>,
    /// Its key, PEM.
    pub tls_key: Option<PathBuf>,
    /// Whether whoever speaks no TLS is refused.
    pub require_tls: bool,
    /// Where counts are read, if anywhere.
    pub metrics: Option<SocketAddr>,
    /// The data folder: tables, views, users and grants.
    pub data: Option<PathBuf>,
    /// A file that who asked what is appended to.
    pub log: Option<PathBuf>,
    /// How many may be connected at a time.
    pub max_connections: usize,
    /// Bytes of the longest message a client may send.
    pub max_message: usize,
    /// Megabytes that sorts, joins and groupings of all statements may take together.
    pub query_memory: usize,
    /// How long a statement may take; 0 is as long as it likes.
    pub statement_timeout: u64,
    /// How long a client may say nothing; 0 is for ever.
    pub idle_timeout: u64,
    /// How long an owner may say nothing while a transaction is open; 0 is for ever.
    pub idle_in_transaction_timeout: u64,
    /// How long a cursor stays open that nobody fetches from; 0 is for ever.
    pub cursor_timeout: u64,
    /// How long a client may take to log in.
    pub startup_timeout: u64,
    /// How long running statements get once the server is to stop.
    pub shutdown_timeout: u64,
}

impl Default for Configuration {
    fn default() -> Configuration {
        Configuration {
            listen: SocketAddr::from(([127, 0, 0, 1], 5433)),
            tls_certificate: None,
            tls_key: None,
            require_tls: false,
            metrics: None,
            data: None,
            log: None,
            max_connections: 100,
            max_message: 16 * 1024 * 1024,
            query_memory: 1024,
            statement_timeout: 300,
            idle_timeout: 3600,
            idle_in_transaction_timeout: 60,
            cursor_timeout: 600,
            startup_timeout: 10,
            shutdown_timeout: 30,
        }
    }
}

/// What is wrong with a configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigurationError {
    /// A file that can't be read.
    #[error("{}: can't be read: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file that is no configuration.
    #[error("{}: {reason}", .path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A certificate without a key, or a key without a certificate.
    #[error("TLS needs both a certificate and its key")]
    HalfTls,
    /// TLS is required, and there is none.
    #[error("TLS is required, and there is no certificate")]
    NoTls,
    /// Others could read along.
    #[error("{listen} can be reached from other machines, and TLS is not required")]
    Exposed {
        /// The address.
        listen: SocketAddr,
    },
    /// Counts that others could read.
    #[error("metrics are answered on loopback addresses only, and {address} is none")]
    ExposedMetrics {
        /// The address.
        address: SocketAddr,
    },
    /// A limit under which nothing works.
    #[error("{name} must be at least {least}")]
    TooSmall {
        /// The limit.
        name: &'static str,
        /// What it must be at least.
        least: u64,
    },
    /// A certificate or key that is none.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl ConfigurationError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            ConfigurationError::HalfTls | ConfigurationError::NoTls => {
                Some("give --tls-certificate server.crt --tls-key server.key")
            }
            ConfigurationError::Exposed { .. } => {
                Some("give a certificate, its key and --require-tls, or listen on 127.0.0.1")
            }
            ConfigurationError::ExposedMetrics { .. } => Some("give --metrics 127.0.0.1:9187"),
            _ => None,
        }
    }
}

impl Configuration {
    /// Reads a file of TOML.
    ///
    /// # Errors
    /// Where it can't be read, or says something that is none.
    pub fn read(path: &Path) -> Result<Configuration, ConfigurationError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigurationError::Read { path: path.to_owned(), source })?;
        toml::from_str(&text)
            .map_err(|error| ConfigurationError::Parse { path: path.to_owned(), reason: error.message().to_owned() })
    }

    /// Whether a server can be started with it; returns its TLS.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<Option<Tls>, ConfigurationError> {
        let tls = match (&self.tls_certificate, &self.tls_key) {
            (Some(certificate), Some(key)) => Some(Tls::read(certificate, key)?),
            (None, None) => None,
            _ => return Err(ConfigurationError::HalfTls),
        };
        if self.require_tls && tls.is_none() {
            return Err(ConfigurationError::NoTls);
        }
        if !self.listen.ip().is_loopback() && !self.require_tls {
            return Err(ConfigurationError::Exposed { listen: self.listen });
        }
        if let Some(address) = self.metrics.filter(|address| !address.ip().is_loopback()) {
            return Err(ConfigurationError::ExposedMetrics { address });
        }
        let limits = [
            ("max_connections", self.max_connections as u64, 1),
            ("query_memory", self.query_memory as u64, 16),
            ("max_message", self.max_message as u64, 10_000),
            ("startup_timeout", self.startup_timeout, 1),
        ];
        match limits.into_iter().find(|(_, value, least)| value < least) {
            Some((name, _, least)) => Err(ConfigurationError::TooSmall { name, least }),
            None => Ok(tls),
        }
    }

    pub(crate) fn statement_timeout(&self) -> Option<Duration> {
        seconds(self.statement_timeout)
    }

    pub(crate) fn idle_timeout(&self) -> Option<Duration> {
        seconds(self.idle_timeout)
    }

    pub(crate) fn idle_in_transaction_timeout(&self) -> Option<Duration> {
        seconds(self.idle_in_transaction_timeout)
    }

    pub(crate) fn cursor_timeout(&self) -> Option<Duration> {
        seconds(self.cursor_timeout)
    }
}

fn seconds(seconds: u64) -> Option<Duration> {
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_others_can_reach_needs_tls() {
        let mut configuration = Configuration::default();
        assert!(configuration.check().is_ok());
        configuration.listen = SocketAddr::from(([0, 0, 0, 0], 5433));
        assert!(matches!(configuration.check(), Err(ConfigurationError::Exposed { .. })));
        configuration.require_tls = true;
        assert!(matches!(configuration.check(), Err(ConfigurationError::NoTls)));
        configuration.tls_key = Some("key".into());
        assert!(matches!(configuration.check(), Err(ConfigurationError::HalfTls)));
        configuration.tls_certificate = Some("nowhere.crt".into());
        assert!(matches!(configuration.check(), Err(ConfigurationError::Tls(_))));
    }

    #[test]
    fn a_file_says_what_differs_from_the_default() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kohort-serve.toml");
        std::fs::write(&path, "listen = \"127.0.0.1:7000\"\nmax_connections = 3\n").unwrap();
        let configuration = Configuration::read(&path).unwrap();
        assert_eq!((configuration.listen.port(), configuration.max_connections), (7000, 3));
        assert_eq!(configuration.statement_timeout, Configuration::default().statement_timeout);
        std::fs::write(&path, "max_conections = 3\n").unwrap();
        let problem = Configuration::read(&path).unwrap_err().to_string();
        assert!(problem.contains("unknown field `max_conections`"), "{problem}");
    }
}
