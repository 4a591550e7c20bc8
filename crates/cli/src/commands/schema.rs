//! `kohort schema`: JSON Schemas of the files that people and programs read and write.

use clap::{Args, ValueEnum};

use crate::failure::Failure;
use crate::terminal;

const EXAMPLES: &str = "\
Examples:
  kohort schema > kohort.schema.json                editors that know taplo then check a spec that `kohort init` wrote
  kohort schema manifest > manifest.schema.json     what a program finds in the manifest.json of a release
  kohort schema report > report.schema.json         what a program finds in its report.json";

/// Print the JSON Schema of a spec, a manifest or a report
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Schema {
    /// What the schema describes
    #[arg(value_enum, value_name = "KIND", default_value_t = Described::Spec)]
    described: Described,
}

#[derive(Clone, Copy, ValueEnum)]
enum Described {
    /// The spec of a release, release.toml
    Spec,
    /// The manifest of a release, manifest.json
    Manifest,
    /// The figures of a report, report.json
    Report,
}

impl Schema {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        terminal::print(match self.described {
            Described::Spec => kohort::model::spec::json_schema(),
            Described::Manifest => kohort::model::manifest_schema(),
            Described::Report => kohort::model::report::report_schema(),
        })
    }
}
