//! [`Address`]: the server and name of a table, from a location and options. Contains no password.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::PostgresError;
use super::passwords::PostgresLogin;

/// How long to wait for the server's first answer, if the location does not say it.
const PATIENCE: Duration = Duration::from_secs(10);
const PORT: u16 = 5432;

/// A table on a server.
#[derive(Clone, Debug)]
pub(super) struct Address {
    /// How to reach the server, without a password.
    pub(super) config: Config,
    pub(super) login: PostgresLogin,
    pub(super) schema: String,
    pub(super) table: String,
    pub(super) passfile: Option<PathBuf>,
    pub(super) root_certificate: Option<PathBuf>,
}

impl Address {
    /// Reads the address from the parts of a statement.
    ///
    /// # Errors
    /// If the location or the options are wrong.
    pub(super) fn parse(
        location: &str,
        options: &HashMap<String, String>,
        name: &str,
    ) -> Result<Address, PostgresError> {
        let fault = |fault| PostgresError::Location { fault };
        if !["postgres://", "postgresql://"].iter().any(|scheme| location.starts_with(scheme)) {
            return Err(fault("does not begin with postgres://"));
        }
        // The parser's message may contain a password.
        let mut config: Config = location.parse().map_err(|_| fault("can't be understood"))?;
        if config.get_password().is_some() {
            return Err(PostgresError::PasswordInLocation);
        }
        let [host] = config.get_hosts() else { return Err(fault("does not name one host")) };
        let user = config.get_user().ok_or_else(|| fault("names no user"))?.to_owned();
        let login = PostgresLogin {
            host: match host {
                Host::Tcp(host) => host.clone(),
                Host::Unix(folder) => folder.display().to_string(),
            },
            port: config.get_ports().first().copied().unwrap_or(PORT),
            database: config.get_dbname().map_or_else(|| user.clone(), str::to_owned),
            user,
        };
        let is_near = match (host, config.get_hostaddrs()) {
            (_, addresses @ [_, ..]) => addresses.iter().all(IpAddr::is_loopback),
            (Host::Unix(_), []) => true,
            (Host::Tcp(host), []) => {
                host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
            }
        };
        if config.get_ssl_mode() == SslMode::Prefer {
            config.ssl_mode(if is_near { SslMode::Disable } else { SslMode::Require });
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(PATIENCE);
        }
        config.application_name("kohort");
        let mut address = Address {
            config,
            login,
            schema: "public".to_owned(),
            table: name.to_owned(),
            passfile: None,
            root_certificate: None,
        };
        for (option, value) in options {
            // DataFusion puts options without a namespace into the namespace `format`.
            match option.strip_prefix("format.").unwrap_or(option) {
                "table" => address.table.clone_from(value),
                "schema" => address.schema.clone_from(value),
                "passfile" => address.passfile = Some(value.into()),
                "root_certificate" => address.root_certificate = Some(value.into()),
                other => return Err(PostgresError::Option { name: other.to_owned() }),
            }
        }
        Ok(address)
    }

    /// The quoted name of the table, for SQL on the server.
    pub(super) fn quoted(&self) -> String {
        format!("{}.{}", quoted(&self.schema), quoted(&self.table))
    }
}

/// A quoted name, for SQL on the server.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(location: &str) -> Result<Address, PostgresError> {
        Address::parse(location, &HashMap::new(), "patient")
    }

    #[test]
    fn servers_elsewhere_are_spoken_to_by_tls_unless_the_location_says_otherwise() {
        let mode = |location: &str| parse(location).unwrap().config.get_ssl_mode();
        assert_eq!(mode("postgres://ann@db.example/clinic"), SslMode::Require);
        assert_eq!(mode("postgres://ann@db.example/clinic?sslmode=prefer"), SslMode::Require);
        assert_eq!(mode("postgres://ann@db.example/clinic?sslmode=disable"), SslMode::Disable);
        assert_eq!(mode("postgres://ann@127.0.0.1/clinic"), SslMode::Disable);
        assert_eq!(mode("postgres://ann@localhost/clinic?sslmode=require"), SslMode::Require);
        assert_eq!(mode("postgres://ann@localhost/clinic?hostaddr=192.0.2.1"), SslMode::Require);
        assert_eq!(mode("postgres://ann@%2Frun%2Fpostgresql/clinic"), SslMode::Disable);
    }

    #[test]
    fn a_password_in_a_location_is_refused_and_not_repeated() {
        for location in ["postgres://ann:hunter2@localhost/clinic", "postgres://ann@localhost/clinic?password=hunter2"]
        {
            let problem = parse(location).unwrap_err();
            assert_eq!(problem, PostgresError::PasswordInLocation);
        }
        let problem = parse("postgres://ann:hunter2@localhost:port/clinic").unwrap_err();
        assert!(!format!("{problem} {problem:?}").contains("hunter2"), "{problem}");
    }

    #[test]
    fn a_location_names_one_host_and_a_user() {
        for location in ["postgres:///clinic", "postgres://localhost/clinic", "postgres://ann@a,b/c", "clinic.csv"] {
            assert!(matches!(parse(location), Err(PostgresError::Location { .. })), "{location}");
        }
    }

    #[test]
    fn names_are_quoted_whatever_they_hold() {
        assert_eq!(quoted("a\"; DROP TABLE b; --"), "\"a\"\"; DROP TABLE b; --\"");
    }
}
