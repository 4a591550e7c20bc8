//! The `kohort` command.

mod arguments;
mod columns;
mod commands;
mod described;
mod estimate;
mod expression;
mod failure;
mod fault;
mod files;
mod flags;
mod glossary;
mod job;
mod manifest;
mod previous;
mod progress;
mod render;
mod suggest;
mod terminal;

use std::process::ExitCode;

fn main() -> ExitCode {
    fault::guard(commands::run)
}
