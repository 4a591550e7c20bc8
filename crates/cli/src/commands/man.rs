//! `kohort man`: manual pages, made from the same text as `--help`.

use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man as Page;

use super::external;
use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::terminal;

const EXAMPLES: &str = "\
Examples:
  kohort man > kohort.1
  kohort man -o ~/.local/share/man/man1             one page per command: man kohort-anonymize";

/// Print the manual page, or write one page per command
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Man {
    /// Write the page of each command to this folder, which must exist
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let mut command = Arguments::command();
        command.build();
        match &self.output {
            None => terminal::print(&String::from_utf8_lossy(&rendered(&page_of(command)))),
            Some(folder) => write_pages(&command, folder),
        }
    }
}

/// Writes the page of a command and of its subcommands. The programs behind `sql` and `serve` have pages of their own.
fn write_pages(command: &Command, folder: &Path) -> Result<(), Failure> {
    let page = page_of(command.clone());
    let file = folder.join(page.get_filename());
    std::fs::write(&file, rendered(&page)).map_err(|error| kohort::Error::file(&file, "written", &error))?;
    let is_ours = |subcommand: &&Command| {
        subcommand.get_name() != "help" && !external::SUBCOMMANDS.contains(&subcommand.get_name())
    };
    command.get_subcommands().filter(is_ours).try_for_each(|subcommand| write_pages(subcommand, folder))
}

fn page_of(command: Command) -> Page {
    Page::new(command).source(concat!("kohort ", env!("CARGO_PKG_VERSION")))
}

fn rendered(page: &Page) -> Vec<u8> {
    let mut text = Vec::new();
    page.render(&mut text).expect("writing to memory can't fail");
    text
}
