//! The command as a user meets it: what it prints, how it ends, what it writes and what it leaves alone.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod anonymize;
mod audiences;
mod audit;
mod bad_input;
mod bounds;
mod canaries;
mod cells;
mod check;
mod documents;
mod estimate;
mod help;
mod hierarchy;
mod init;
mod killed;
mod many_tables;
mod notes;
mod register;
mod republication;
mod risks;
mod runner;
mod stranger;
mod verify;
