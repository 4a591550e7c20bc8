//! The arguments of `kohort-sql`.

use std::path::PathBuf;

use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use clap_mangen::Man;

use super::output::Format;

const EXAMPLES: &str = "\
Examples:
  kohort-sql                                    type statements at a prompt
  kohort-sql -f setup.sql -c 'SELECT zip, count(*) FROM patients GROUP BY zip PURPOSE research'
  kohort-sql -f setup.sql --as analyst -i       run a file as the owner, then type statements as an analyst
  kohort-sql --csv < questions.sql > answers.csv
  kohort-sql --data clinic/ -f changes.sql      keep tables and views in a data folder
  kohort-sql backup clinic/ monday.db
  kohort-sql check monday.db

Exit codes: 0 success, 1 a requirement can't be met or a folder is damaged, 2 wrong arguments or input, 3 I/O error or bug, \
130 cancelled.";

const COMPLETIONS: &str = "\
Install them for your user, then start a new shell:
  kohort-sql completions bash > ~/.local/share/bash-completion/completions/kohort-sql
  kohort-sql completions zsh > ~/.zfunc/_kohort-sql
  kohort-sql completions fish > ~/.config/fish/completions/kohort-sql.fish";

/// Creates and queries anonymization views in SQL.
#[derive(Parser)]
#[command(name = "kohort-sql", version, max_term_width = 100, after_help = EXAMPLES)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) action: Option<Action>,
    /// Keep tables, DGHs and views in this folder; created if it does not exist
    #[arg(short, long, value_name = "FOLDER")]
    pub(super) data: Option<PathBuf>,
    /// Run the statements of this file first, as the owner; can be repeated
    #[arg(short, long, value_name = "FILE")]
    pub(super) file: Vec<PathBuf>,
    /// Run these statements after the files; can be repeated
    #[arg(short, long, value_name = "SQL")]
    pub(super) command: Vec<String>,
    /// Read statements from the terminal after the files
    #[arg(short, long, conflicts_with = "command")]
    pub(super) interactive: bool,
    /// The role for statements: an analyst sees only anonymization views. Files always run as the owner
    #[arg(long = "as", value_name = "ROLE", default_value = "owner")]
    pub(super) role: RoleWord,
    /// Print answers as a table; the default
    #[arg(long, group = "format")]
    table: bool,
    /// Print answers as CSV: an empty cell is NULL, "" is an empty text
    #[arg(long, group = "format")]
    csv: bool,
    /// Print answers as JSON lines: one object per row
    #[arg(long, group = "format")]
    json: bool,
    /// Append the compliance log to this file: user, statement without values, and purpose, as one JSON object per
    /// statement
    #[arg(long, value_name = "FILE")]
    pub(super) log: Option<PathBuf>,
    /// Print how long each statement took; the first time includes parsing
    #[arg(long)]
    pub(super) timing: bool,
    /// Do not save typed statements in the history file
    #[arg(long)]
    pub(super) no_history: bool,
}

/// The subcommands.
#[derive(Subcommand)]
pub(super) enum Action {
    /// Copy a data folder to a new file, also while a server uses the folder
    ///
    /// To use the copy, put it into a folder of its own under the name kohort.db.
    #[command(after_help = "Examples:\n  kohort-sql backup clinic/ monday.db")]
    Backup {
        /// The data folder
        folder: PathBuf,
        /// The new file
        file: PathBuf,
    },
    /// Check a data folder or a backup for damage, also while a server uses the folder
    #[command(after_help = "Examples:\n  kohort-sql check clinic/\n  kohort-sql check monday.db")]
    Check {
        /// The data folder, or the file of a backup
        folder: PathBuf,
    },
    /// Print completions for a shell
    #[command(after_help = COMPLETIONS)]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page
    #[command(after_help = "Examples:\n  kohort-sql man > ~/.local/share/man/man1/kohort-sql.1")]
    Man,
}

/// The completions for a shell.
pub(super) fn completions(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "kohort-sql", &mut script);
    script
}

/// The manual page.
pub(super) fn man() -> Vec<u8> {
    let mut page = Vec::new();
    Man::new(Arguments::command()).render(&mut page).expect("writing to memory can't fail");
    page
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum RoleWord {
    Owner,
    Analyst,
}

impl Arguments {
    pub(super) fn format(&self) -> Format {
        // `--table` only states the default. clap allows only one of the three.
        match (self.table, self.csv, self.json) {
            (_, true, _) => Format::Csv,
            (_, _, true) => Format::Json,
            _ => Format::Table,
        }
    }
}

#[cfg(test)]
mod tests {
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
