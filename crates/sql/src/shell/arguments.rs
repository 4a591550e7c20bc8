//! What may stand on the command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use super::output::Format;

const EXAMPLES: &str = "\
Examples:
  kohort-sql                                    talk to it
  kohort-sql -f setup.sql -c 'SELECT zip, count(*) FROM patients GROUP BY zip PURPOSE research'
  kohort-sql -f setup.sql --as analyst -i       files as the owner, then questions as an analyst
  kohort-sql --csv < questions.sql > answers.csv
  kohort-sql --data clinic/ -f changes.sql      tables and views that are still there tomorrow
  kohort-sql backup clinic/ monday.db
  kohort-sql check monday.db

Exit codes: 0 done, 1 a requirement can't be reached or a folder is not sound, 2 wrong use or input, 3 I/O or a fault, 130 cancelled.";

/// Asks anonymization views in SQL.
#[derive(Parser)]
#[command(name = "kohort-sql", version, max_term_width = 100, after_help = EXAMPLES)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) action: Option<Action>,
    /// Keep tables, DGHs and views in this folder; it is made where there is none
    #[arg(short, long, value_name = "FOLDER")]
    pub(super) data: Option<PathBuf>,
    /// Run the statements of this file first, as the owner; may be repeated
    #[arg(short, long, value_name = "FILE")]
    pub(super) file: Vec<PathBuf>,
    /// Run these statements, after files; may be repeated
    #[arg(short, long, value_name = "SQL")]
    pub(super) command: Vec<String>,
    /// Talk on after files
    #[arg(short, long, conflicts_with = "command")]
    pub(super) interactive: bool,
    /// Who asks: an analyst sees anonymization views only. Files are always run as the owner
    #[arg(long = "as", value_name = "ROLE", default_value = "owner")]
    pub(super) role: RoleWord,
    /// Answers as a table of characters; the default
    #[arg(long, group = "format")]
    table: bool,
    /// Answers as CSV: a bare empty cell is NULL, "" is empty text
    #[arg(long, group = "format")]
    csv: bool,
    /// Answers as JSON lines: one object per row
    #[arg(long, group = "format")]
    json: bool,
    /// Append to this file who asked what under which purpose, one JSON object per statement, without values
    #[arg(long, value_name = "FILE")]
    pub(super) log: Option<PathBuf>,
    /// Say how long each statement took, the first with reading the text it stands in
    #[arg(long)]
    pub(super) timing: bool,
    /// Keep no file of what was typed
    #[arg(long)]
    pub(super) no_history: bool,
}

/// What else the command does.
#[derive(Subcommand)]
pub(super) enum Action {
    /// Copy a data folder to one new file, also while a server uses it
    ///
    /// To use the copy, put it into a folder of its own under the name kohort.db.
    #[command(after_help = "Examples:\n  kohort-sql backup clinic/ monday.db")]
    Backup {
        /// The data folder
        folder: PathBuf,
        /// The new file
        file: PathBuf,
    },
    /// Read a whole data folder, or a backup, and say whether it is sound, also while a server uses it
    #[command(after_help = "Examples:\n  kohort-sql check clinic/\n  kohort-sql check monday.db")]
    Check {
        /// The data folder, or the file of a backup
        folder: PathBuf,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum RoleWord {
    Owner,
    Analyst,
}

impl Arguments {
    pub(super) fn format(&self) -> Format {
        // `--table` is there to be said; clap sees to it that only one of them is.
        match (self.table, self.csv, self.json) {
            (_, true, _) => Format::Csv,
            (_, _, true) => Format::Json,
            _ => Format::Table,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn one_format_is_chosen() {
        let format = |flags: &[&str]| Arguments::try_parse_from([&["kohort-sql"], flags].concat()).map(|a| a.format());
        assert_eq!(format(&[]).unwrap(), Format::Table);
        assert_eq!(format(&["--json"]).unwrap(), Format::Json);
        assert!(format(&["--json", "--csv"]).is_err());
    }
}
