//! Tables, DGHs and views that a data folder keeps: what they hold, when it changes, and what survives.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod abuse;
mod folder;
mod histories;
mod killed;
mod materialized;
mod pinned;
mod postgres;
mod reopening;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../views/session.rs"]
mod session;
mod sessions;
