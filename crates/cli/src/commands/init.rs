//! `kohort init`: a spec to begin with, which does not run before its reader has set k.

use std::path::PathBuf;

use clap::Args;

use crate::failure::Failure;
use crate::progress::Bars;
use crate::terminal;

const EXAMPLES: &str = "\
Examples:
  kohort init patients.csv > release.toml";

/// Print a spec to begin with: a role and a hierarchy suggested for each column, with reasons
///
/// It sets no k, and does not run before you have.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Init {
    /// The table: CSV (also .gz, .zst), Parquet or Arrow; - is stdin
    data: PathBuf,
}

impl Init {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let bars = Bars::new();
        let suggestions = kohort::suggest(&self.data, &bars)?;
        bars.clear();
        terminal::print(&suggestions.to_toml(&self.data))
    }
}
