//! The store as its users meet it: tables, transactions, refusals, backups, and histories against a model.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod backups;
mod damage;
mod histories;
mod refusals;
mod sample;
mod snapshots;
mod tables;
mod transactions;
mod values;
