//! `kohort completions`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::terminal;

const EXAMPLES: &str = "\
Examples:
  kohort completions bash > ~/.local/share/bash-completion/completions/kohort";

/// Print completions for a shell
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Arguments::command(), "kohort", &mut script);
        terminal::print(&String::from_utf8_lossy(&script))
    }
}
