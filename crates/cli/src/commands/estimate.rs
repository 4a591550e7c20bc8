//! `kohort estimate`: estimates counts and sensitive values from the released files alone.

use std::path::PathBuf;

use clap::Args;
use kohort::{Estimate, EstimateOptions, ValueCount, Widths};
use serde_json::{Value, json};

use super::Output;
use crate::failure::Failure;
use crate::flags::hierarchy_sources;
use crate::progress::Bars;
use crate::render::number;
use crate::terminal;

const EXAMPLES: &str = "\
Examples:
  kohort estimate out/ \"age between 20 and 40\"
  kohort estimate out/ \"age >= 65 and sex in ('f', 'x')\" --json
  kohort estimate out/ \"zip = '88512'\" --hierarchy zip=zip.csv";

/// Estimate from a release how many rows match, and their sensitive values
///
/// The estimate assumes that the rows behind a cell are spread evenly over everything it can stand for. With a register only
/// rows of the private table are estimated. Conditions are joined by 'and': =, <, <=, >, >=, between .. and .., in (.., ..).
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct EstimateRows {
    /// The folder of the release
    release: PathBuf,
    /// Conditions on quasi columns, for example "age between 20 and 40 and zip = '88512'"
    conditions: String,
    /// zip=zip.csv | zip=edges:zip.csv: the values that the labels of a column stand for, if the release does not say
    #[arg(long, value_name = "COLUMN=HIERARCHY")]
    hierarchy: Vec<String>,
    /// Measure ranges of whole numbers and days like continuous ones: `[20,29]` is 9 wide, not 10
    #[arg(long)]
    continuous: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl EstimateRows {
    pub(crate) fn output(&self) -> Output {
        Output::from_flag(self.json)
    }

    pub(crate) fn run(&self) -> Result<(), Failure> {
        let widths = if self.continuous { Widths::Continuous } else { Widths::Steps };
        let options = EstimateOptions { widths, hierarchies: hierarchy_sources(&self.hierarchy)? };
        let bars = Bars::new();
        let found = kohort::estimate(&self.release, &self.conditions, &options, &bars)?;
        bars.clear();
        terminal::print(&match self.output() {
            Output::Words => words(&found),
            Output::Json => self.object(&found),
        })
    }

    fn object(&self, found: &Estimate) -> String {
        let value = |(value, count): &ValueCount| json!({ "value": value, "count": count });
        let columns = found.sensitive.iter().map(|(column, values)| {
            let values: Vec<Value> = values.iter().map(value).collect();
            (column.clone(), Value::from(values))
        });
        let object = json!({
            "conditions": self.conditions,
            "count": found.count,
            "of": found.of,
            "sensitive": columns.collect::<serde_json::Map<String, Value>>(),
        });
        format!("{object:#}\n")
    }
}

fn words(found: &Estimate) -> String {
    let share = if found.of > 0.0 { 100.0 * found.count / found.of } else { 0.0 };
    let mut text = format!("{:<16} {} of {} rows ({share:.1} %)\n", "expected", number(found.count), number(found.of));
    for (column, values) in &found.sensitive {
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "(null)".to_owned());
        let names = values.iter().map(|(value, _)| shown(value).chars().count());
        let width = names.chain([column.chars().count(), 16]).max().unwrap_or(16);
        text += &format!("\n{column:<width$} {:>10}\n", "rows");
        for (value, count) in values {
            text += &format!("{:<width$} {:>10}\n", shown(value), number(*count));
        }
    }
    text
}
