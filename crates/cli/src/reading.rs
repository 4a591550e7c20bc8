//! Flags that say how a CSV file is read, as a spec says it for its tables.

use clap::Args;
use kohort::model::spec::CsvSpec;

/// How a CSV file is read.
#[derive(Args)]
#[command(next_help_heading = "How a CSV file is read")]
pub(crate) struct CsvFlags {
    /// The character between cells; found by itself without it
    #[arg(long, value_name = "CHARACTER")]
    separator: Option<char>,
    /// The encoding, such as utf-8 or windows-1252; utf-8 or utf-16 without it
    #[arg(long, value_name = "NAME")]
    encoding: Option<String>,
    /// Words for null, besides an empty cell
    #[arg(long, value_name = "WORD,...", value_delimiter = ',')]
    null: Vec<String>,
}

/// How numbers and dates are spelled in a CSV file.
#[derive(Args)]
#[command(next_help_heading = "How a CSV file is read")]
pub(crate) struct NotationFlags {
    /// The decimal sign of numbers: a point without it
    #[arg(long, value_name = "SIGN", value_parser = [",", "."])]
    decimal: Option<String>,
    /// The format of dates, such as %d.%m.%Y; that of ISO 8601 without it
    #[arg(long, value_name = "FORMAT")]
    date_format: Option<String>,
}

impl CsvFlags {
    /// The flags as a spec says them.
    pub(crate) fn csv(&self) -> CsvSpec {
        let words = || std::iter::once(String::new()).chain(self.null.iter().cloned()).collect();
        CsvSpec {
            separator: self.separator,
            encoding: self.encoding.clone(),
            null: (!self.null.is_empty()).then(words),
            ..CsvSpec::default()
        }
    }
}

impl NotationFlags {
    /// The same reading with these decimals and dates.
    pub(crate) fn added_to(&self, csv: CsvSpec) -> CsvSpec {
        let decimal = self.decimal.as_ref().and_then(|sign| sign.chars().next());
        CsvSpec { decimal, date_format: self.date_format.clone(), ..csv }
    }
}
