//! Anonymization views over the PostgreSQL wire protocol.
//!
//! ```text
//! client -> wire: whole messages -> login: TLS, SCRAM -> connection -> request -> kohort_sql::Session
//!                                                          |              |
//!                                                       portals        catalog, settings, transactions
//! ```
//!
//! This crate reads and checks messages itself. `pgwire` and `arrow-pg` write messages and values of all types.
//! `datafusion-pg-catalog` answers what psql, pgjdbc and SQLAlchemy ask of `pg_catalog`, from the session's catalog,
//! which contains the views granted to the login. `kohort-sql` alone decides what a login may do.
//!
//! | module | content |
//! | --- | --- |
//! | [`configuration`] | addresses, files and limits of a server |
//! | [`server`] | accepting, limiting and ending connections |
//! | [`tls`] | certificates, and channel binding of logins |
//! | `mcp` | views for AI agents: a client of a server |
//! | [`metrics`] | metrics for Prometheus |
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
mod mcp;
pub mod metrics;
mod names;
mod newcomers;
mod parameters;
mod places;
mod request;
mod rows;
mod scram;
pub mod server;
mod setting_calls;
mod settings;
pub mod tls;
mod wire;

pub use configuration::Configuration;
pub use server::Server;
pub use wire::ByteStream;
