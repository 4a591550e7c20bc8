//! `kohort schema`.

use clap::Args;

use crate::failure::Failure;
use crate::terminal;

/// Print the JSON Schema of a spec, for editors
#[derive(Args)]
pub(crate) struct Schema {}

impl Schema {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        terminal::print(kohort_model::spec::json_schema())
    }
}
