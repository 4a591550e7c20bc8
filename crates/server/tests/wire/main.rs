//! Tests of the server with psql, psycopg, SQLAlchemy, pgjdbc, and malicious clients.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod access;
mod attacks;
mod client;
mod command;
mod cursors;
mod drivers;
mod fixture;
mod fuzz;
mod golden;
mod histories;
mod limits;
mod logins;
mod mcp;
mod psql;
mod settings;
mod transactions;
mod workers;
