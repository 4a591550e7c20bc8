//! `kohort completions`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::terminal;

/// Print completions for a shell
///
/// For example: kohort completions bash > ~/.local/share/bash-completion/completions/kohort
#[derive(Args)]
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
