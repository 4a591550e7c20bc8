//! Tests of the public interface: tables, transactions, refusals, backups, and random histories compared with a model.

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
