//! `kohort schema`.

use clap::Args;

use crate::failure::Failure;
use crate::terminal;

const EXAMPLES: &str = "\
Examples:
  kohort schema > release.schema.json";

/// Print the JSON Schema of a spec, for editors
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Schema {}

impl Schema {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        terminal::print(kohort::model::spec::json_schema())
    }
}
