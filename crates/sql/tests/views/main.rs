//! A-views as a user runs them: statements in, rows out.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod aggregates;
mod concurrency;
mod files;
mod golden;
mod kept;
mod properties;
mod session;
mod shown;
mod slt;
