//! [`Configuration`]: addresses, files and limits of a server, from a TOML file and the command line.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::tls::{Tls, TlsError};

/// The addresses, files and limits of a server. Times are in seconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Configuration {
    /// The address for clients.
    pub listen: SocketAddr,
    /// The file of the TLS certificate, in PEM format.
    pub tls_certificate: Option<PathBuf>,
    /// The file of the certificate's key, in PEM format.
    pub tls_key: Option<PathBuf>,
    /// Whether connections without TLS are refused.
    pub require_tls: bool,
    /// The address for metrics.
    pub metrics: Option<SocketAddr>,
    /// The data folder: tables, views, users and grants.
    pub data: Option<PathBuf>,
    /// The file of the compliance log.
    pub log: Option<PathBuf>,
    /// The largest number of connections at the same time.
    pub max_connections: usize,
    /// The largest message of a client in bytes.
    pub max_message: usize,
    /// The memory for sorts, joins and groupings of all statements together, in megabytes.
    pub query_memory: usize,
    /// How long a statement may run; 0 means no limit.
    pub statement_timeout: u64,
    /// How long a client may be idle; 0 means no limit.
    pub idle_timeout: u64,
    /// How long an owner may be idle in an open transaction; 0 means no limit.
    pub idle_in_transaction_timeout: u64,
    /// How long a cursor may stay open without a FETCH; 0 means no limit.
    pub cursor_timeout: u64,
    /// How long a client may take to log in.
    pub startup_timeout: u64,
    /// How long the server waits for running statements when it stops.
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

/// A fault of a configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the variants and fields are")]
pub enum ConfigurationError {
    #[error("{}: can't be read: {source}", .path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{}: {reason}", .path.display())]
    Parse { path: PathBuf, reason: String },
    #[error("TLS needs both a certificate and its key")]
    HalfTls,
    #[error("TLS is required, but there is no certificate")]
    NoTls,
    /// Connections from other machines would not be encrypted.
    #[error("{listen} can be reached from other machines, but TLS is not required")]
    Exposed { listen: SocketAddr },
    #[error("metrics need a loopback address, and {address} is not one")]
    ExposedMetrics { address: SocketAddr },
    #[error("{name} must be at least {least}")]
    TooSmall { name: &'static str, least: u64 },
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl ConfigurationError {
    /// How to correct the fault.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            ConfigurationError::HalfTls | ConfigurationError::NoTls => {
                Some("add --tls-certificate server.crt --tls-key server.key")
            }
            ConfigurationError::Exposed { .. } => {
                Some("add a certificate, its key and --require-tls, or listen on 127.0.0.1")
            }
            ConfigurationError::ExposedMetrics { .. } => Some("use --metrics 127.0.0.1:9187"),
            _ => None,
        }
    }
}

impl Configuration {
    /// Reads a TOML file.
    ///
    /// # Errors
    /// If the file can't be read or is not a valid configuration.
    pub fn read(path: &Path) -> Result<Configuration, ConfigurationError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigurationError::Read { path: path.to_owned(), source })?;
        toml::from_str(&text).map_err(|mut error| {
            error.set_input(Some(&without_values(&text)));
            ConfigurationError::Parse { path: path.to_owned(), reason: error.to_string().trim_end().to_owned() }
        })
    }

    /// Checks that a server can be started with it, and returns the TLS settings.
    ///
    /// # Errors
    /// The first fault.
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

/// The text with dots in place of all values, so that an error can show its line without a secret that somebody wrote
/// there. Places stay the same.
fn without_values(text: &str) -> String {
    let hidden = |line: &str| {
        let start = line.find('=').map_or(0, |equals| equals + 1);
        let dots = line[start..].chars().map(|c| if c.is_whitespace() { c.into() } else { ".".repeat(c.len_utf8()) });
        line[..start].to_owned() + &dots.collect::<String>()
    };
    text.split_inclusive('\n').map(hidden).collect()
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

    #[test]
    fn an_error_has_its_line_and_no_value() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kohort-serve.toml");
        let problem = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Configuration::read(&path).unwrap_err().to_string()
        };
        let unknown = problem("max_connections = 3\npassword = \"hunter2 \u{fc}\"\n");
        assert!(unknown.contains("line 2, column 1\n  |\n2 | password = ........ ...\n"), "{unknown}");
        assert!(unknown.contains("unknown field `password`, expected one of `listen`"), "{unknown}");
        for faulty in ["password = hunter2", "password = \"hunter2", "hunter2", "[hunter2", "a = [\n\"hunter2\",\n}"] {
            let problem = problem(faulty);
            assert!(
                problem.contains("TOML parse error at line") && !problem.contains("hunter2"),
                "{faulty}: {problem}"
            );
        }
    }
}
