//! `kohort completions`: lets a shell complete commands and flags.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::terminal;

const EXAMPLES: &str = "\
Install them for your user, then start a new shell:
  kohort completions bash > ~/.local/share/bash-completion/completions/kohort
  kohort completions zsh > ~/.zfunc/_kohort
  kohort completions fish > ~/.config/fish/completions/kohort.fish

The folder must exist. bash needs the package bash-completion. zsh looks into ~/.zfunc if these lines are in ~/.zshrc:
'fpath+=~/.zfunc' and after it 'autoload -Uz compinit && compinit'.";

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
