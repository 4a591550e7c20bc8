//! Anonymization views over the PostgreSQL wire protocol.
//!
//! ```text
//! client -> wire: whole messages -> login: TLS, SCRAM -> connection -> request -> kohort_sql::Session
//!                                                          |              |
//!                                                       portals        catalog, settings, transactions
//! ```
//!
//! Messages are read here, byte by byte checked; they are written, with all types, by `pgwire` and `arrow-pg`; what
//! psql, pgjdbc and SQLAlchemy look up in `pg_catalog` is answered by `datafusion-pg-catalog` from the catalog of the
//! session, which holds the views granted to the login. What a login may do is decided in `kohort-sql`, never here.
//!
//! | module | its job |
//! | --- | --- |
//! | [`configuration`] | how a server listens and what it allows |
//! | [`server`] | connections: accepted, bounded, ended |
//! | [`tls`] | certificates, and what logins bind to |
//! | [`metrics`] | counts for Prometheus |
//! | [`command`] | the command `kohort-serve` |

mod attempts;
mod catalog;
pub mod command;
pub mod configuration;
mod connection;
mod error;
mod frontend;
#[cfg(any(fuzzing, test))]
pub mod fuzzed;
mod login;
pub mod metrics;
mod names;
mod newcomers;
mod parameters;
mod places;
mod request;
mod rows;
mod scram;
pub mod server;
mod settings;
pub mod tls;
mod wire;

pub use configuration::Configuration;
pub use server::Server;
pub use wire::ByteStream;
