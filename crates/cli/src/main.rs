//! The `kohort` command.

mod arguments;
mod commands;
mod failure;
mod fault;
mod files;
mod flags;
mod glossary;
mod progress;
mod reading;
mod render;
mod terminal;

use std::process::ExitCode;

fn main() -> ExitCode {
    fault::guard(commands::run)
}
