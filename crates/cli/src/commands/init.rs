//! `kohort init`: a spec to begin with, which does not run before its reader has set k.

use std::path::PathBuf;

use clap::Args;

use crate::failure::Failure;
use crate::progress::Bars;
use crate::terminal;

const EXAMPLES: &str = "\
Examples:
  kohort init patients.csv > release.toml";

/// Names the schema for editors that know taplo, such as VS Code with Even Better TOML. The path starts from the folder of
/// the spec.
const SCHEMA: &str = "#:schema ./kohort.schema.json\n";

/// Print a spec to begin with: a role and a hierarchy suggested for each column, with reasons
///
/// The spec sets no k, and does not run before you set one. Its first line names the schema that `kohort schema` prints:
/// editors that know taplo complete and check the spec if the schema is beside it.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Init {
    /// The table: CSV (also .gz, .zst), Parquet or Arrow; - is stdin
    data: PathBuf,
}

impl Init {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        if self.data.to_str().is_none() {
            let message = format!("{}: the path is not UTF-8, so no spec can name it", self.data.display());
            return Err(Failure::input(message, "rename the file or its folder"));
        }
        let bars = Bars::new();
        let suggestions = kohort::suggest(&self.data, &bars)?;
        bars.clear();
        terminal::print(&format!("{SCHEMA}{}", suggestions.to_toml(&self.data)))
    }
}
