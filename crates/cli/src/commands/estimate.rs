//! `kohort estimate`: estimates counts and sensitive values from the released files alone.

use std::path::PathBuf;

use clap::Args;
use kohort::{EstimateOptions, GroupBy, Widths};

use super::Output;
use crate::failure::Failure;
use crate::flags::hierarchy_sources;
use crate::progress::Bars;
use crate::render::estimated;
use crate::terminal;

const EXAMPLES: &str = "\
Examples:
  kohort estimate out/ \"age between 20 and 40\"
  kohort estimate out/ \"age >= 65 and sex in ('f', 'x')\" --json
  kohort estimate out/ --by sex
  kohort estimate out/ \"sex = 'f'\" --by age:10 --csv > counts.csv
  kohort estimate out/ \"zip = '88512'\" --hierarchy zip=zip.csv";

/// Estimate from a release how many rows match, and their sensitive values
///
/// The estimate assumes that the rows behind a cell are spread evenly over everything it can stand for. Beside it stand bounds that
/// hold however they are spread. With a register only rows of the private table are estimated. Conditions are joined by 'and':
/// =, <, <=, >, >=, between .. and .., in (.., ..).
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct EstimateRows {
    /// The folder of the release
    release: PathBuf,
    /// Conditions on quasi columns, for example "age between 20 and 40 and zip = '88512'"; without them all rows match
    #[arg(default_value = "", hide_default_value = true)]
    conditions: String,
    /// One estimate per group: sex | age:10 (ranges of numbers) | birth:month | birth:year | birth:decade
    #[arg(long, value_name = "COLUMN[:WIDTH]")]
    by: Option<String>,
    /// zip=zip.csv | zip=edges:zip.csv: the values that the labels of a column stand for, if the release does not say
    #[arg(long, value_name = "COLUMN=HIERARCHY")]
    hierarchy: Vec<String>,
    /// Measure ranges of whole numbers and days like continuous ones: `[20,29]` is 9 wide, not 10
    #[arg(long)]
    continuous: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Print a table as comma-separated values: one line for each figure
    #[arg(long, conflicts_with = "json")]
    csv: bool,
}

impl EstimateRows {
    pub(crate) fn output(&self) -> Output {
        Output::from_flag(self.json)
    }

    pub(crate) fn run(&self) -> Result<(), Failure> {
        let widths = if self.continuous { Widths::Continuous } else { Widths::Steps };
        let options = EstimateOptions { widths, hierarchies: hierarchy_sources(&self.hierarchy)? };
        let by = self.by.as_deref().map(GroupBy::parse).transpose();
        let by = by.map_err(|report| kohort::Error::Input(vec![report]))?;
        let bars = Bars::new();
        let Some(by) = by else {
            let found = kohort::estimate(&self.release, &self.conditions, &options, &bars)?;
            bars.clear();
            return terminal::print(&match self.output() {
                _ if self.csv => estimated::lines(None, &[(String::new(), found)]),
                Output::Words => estimated::words(&found),
                Output::Json => estimated::object(&self.conditions, &found),
            });
        };
        let found = kohort::estimate_by(&self.release, &self.conditions, &by, &options, &bars)?;
        bars.clear();
        terminal::print(&match self.output() {
            _ if self.csv => estimated::lines(Some(by.column()), &found),
            Output::Words => estimated::groups(by.column(), &found),
            Output::Json => estimated::object_of_groups(&self.conditions, by.column(), &found),
        })
    }
}
