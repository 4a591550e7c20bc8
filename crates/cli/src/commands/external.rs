//! `kohort sql` and `kohort serve` run programs of their own from the folder of this one, like git and cargo do.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode};

use clap::Args;

use super::Output;
use crate::failure::{Failure, Report, Status};

/// Subcommands that run a program of their own.
pub(crate) const SUBCOMMANDS: [&str; 2] = ["sql", "serve"];

#[derive(Args)]
pub(crate) struct External {
    /// The arguments of that program
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl External {
    /// Runs a program from the folder of this one, and returns its exit code.
    pub(crate) fn run(&self, program: &str) -> ExitCode {
        self.hand_over(program).unwrap_or_else(|failure| failure.report(Output::Words))
    }

    fn hand_over(&self, program: &str) -> Result<ExitCode, Failure> {
        let own = std::env::current_exe().map_err(|error| {
            Failure::new(
                Status::Fault,
                vec![Report::new(format!("kohort can't find the folder that it was installed to: {error}"))],
            )
        })?;
        let folder = own.parent().unwrap_or(Path::new(""));
        let path = folder.join(format!("{program}{}", std::env::consts::EXE_SUFFIX));
        let install = format!("install {program} {} into {}", env!("CARGO_PKG_VERSION"), folder.display());
        if !path.is_file() {
            return Err(Failure::input(format!("{program} is not installed"), install));
        }
        check_version(&path, program, &install)?;
        let status = Command::new(&path).args(&self.arguments).status();
        let status = status.map_err(|error| kohort::Error::file(&path, "run", &error))?;
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        Ok(ExitCode::from(code.unwrap_or(Status::Fault as u8)))
    }
}

/// Both programs must have the same version, so that they read the same specs and write the same releases.
fn check_version(path: &Path, program: &str, install: &str) -> Result<(), Failure> {
    let output = Command::new(path).arg("--version").output();
    let output = output.map_err(|error| kohort::Error::file(path, "run", &error))?;
    let says = String::from_utf8_lossy(&output.stdout);
    let version = says.trim().rsplit(' ').next().unwrap_or_default();
    if version == env!("CARGO_PKG_VERSION") {
        Ok(())
    } else {
        let message = format!("{program} has another version than kohort {}", env!("CARGO_PKG_VERSION"));
        Err(Failure::input(message, install))
    }
}
