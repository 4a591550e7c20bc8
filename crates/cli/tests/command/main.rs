//! The command as a user meets it: its output, its exit codes, the files it writes and those it leaves alone.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod anonymize;
mod apply;
mod audiences;
mod audit;
mod bad_input;
mod bounds;
mod canaries;
mod cancelled;
mod cells;
mod check;
mod documents;
mod estimate;
mod explore;
mod help;
mod hierarchy;
mod init;
mod killed;
mod many_tables;
mod memory;
mod notes;
mod pseudonyms;
mod register;
mod report;
mod republication;
mod risks;
mod runner;
mod schemas;
mod stranger;
mod transform;
mod verify;
