//! Tables, DGHs and views of a data folder: what they hold, how they change, and what survives a crash.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod abuse;
mod backup;
mod copying;
mod crashes;
mod folder;
mod format;
mod histories;
mod killed;
mod materialized;
mod pinned;
mod postgres;
mod power_cut;
mod pushdown;
mod recorded;
mod reopening;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../views/session.rs"]
mod session;
mod sessions;
mod warned;
