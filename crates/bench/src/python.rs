//! Python packages that do what kohort does, each in an environment of its own below cargo's folder.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use serde::de::DeserializeOwned;

use crate::child;

/// A Python with some packages.
pub(crate) struct Python {
    program: PathBuf,
}

impl Python {
    /// The environment of this name, which is installed if it does not exist yet.
    pub(crate) fn with(name: &str, packages: &[&str]) -> Result<Python, Box<dyn Error>> {
        let folder = child::target_folder()?.join(name);
        let program = folder.join("bin/python");
        if program.exists() {
            return Ok(Python { program });
        }
        let listed = packages.join(", ");
        eprintln!("installing {listed}");
        let steps = [
            Command::new("python3").args(["-m", "venv"]).arg(&folder).status()?,
            Command::new(&program).args(["-m", "pip", "install", "--quiet"]).args(packages).status()?,
        ];
        if steps.iter().all(ExitStatus::success) {
            return Ok(Python { program });
        }
        std::fs::remove_dir_all(folder)?;
        Err(format!("{listed} could not be installed; python3 with venv and pip is needed").into())
    }

    /// The JSON that a script in `peers/` prints; `None` if the time limit ended it.
    pub(crate) fn run<T: DeserializeOwned>(
        &self,
        script: &str,
        arguments: &[&str],
    ) -> Result<Option<T>, Box<dyn Error>> {
        let output = Command::new(&self.program)
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(script))
            .args(arguments)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()?;
        match output.status.code() {
            Some(0) => Ok(Some(serde_json::from_slice(&output.stdout)?)),
            // The alarm of the system ended the script.
            None => Ok(None),
            Some(_) => Err(format!("peers/{script} failed").into()),
        }
    }
}
