//! Runs the command in a folder of its own.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// A small clinic: nobody in it is real.
pub(crate) const PATIENTS: &str = "\
name,age,zip,sex,ward,disease
Ada,34,88512,f,north,flu
Ben,36,88514,m,north,asthma
Cleo,35,88540,f,south,ulcer
Dan,38,88541,m,south,flu
Eve,61,89321,f,north,asthma
Fay,63,89344,f,south,ulcer
Gus,65,89345,m,north,flu
Hal,68,89346,m,south,asthma
";

/// A spec of the small clinic.
pub(crate) const SPEC: &str = "\
k = 2
[tables.patients]
file = \"patients.csv\"
[tables.patients.columns]
name = \"identifier\"
age = \"quasi\"
zip = { role = \"quasi\", type = \"text\", hierarchy = { mask = \"right\" } }
sex = { role = \"quasi\", hierarchy = \"flat\" }
ward = \"plain\"
disease = { role = \"sensitive\", l = 2 }
";

/// A folder to run in.
pub(crate) struct Folder {
    folder: TempDir,
}

/// How a run ended.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Folder {
    pub(crate) fn new() -> Self {
        // The folder is beside the command, so that the command can be linked into it.
        let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        Folder { folder }
    }

    /// A folder with these files.
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let folder = Folder::new();
        for (name, text) in files {
            folder.write(name, text.as_bytes());
        }
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// The manifest of the release in `out`.
    pub(crate) fn manifest(&self) -> Value {
        serde_json::from_str(&self.read("out/manifest.json")).unwrap()
    }

    /// Removes the documents of the release in `out`. They repeat what its files say, so after a change they would be found even
    /// where nothing else is.
    pub(crate) fn without_documents(&self) {
        for name in ["README.txt", "datapackage.json", "report.html", "report.json"] {
            let _ = std::fs::remove_file(self.path("out").join(name));
        }
    }

    /// Changes a file of the release in `out`, and its digest in the manifest so that it fits.
    pub(crate) fn forge(&self, file: &str, change: impl FnOnce(&str) -> String) {
        self.without_documents();
        let text = self.read(file);
        let forged = change(&text);
        assert_ne!(text, forged);
        self.write(file, forged.as_bytes());
        let manifest = self.read("out/manifest.json");
        let manifest = manifest.replace(&digest(text.as_bytes()), &digest(forged.as_bytes()));
        self.write("out/manifest.json", manifest.as_bytes());
    }

    /// Changes the manifest of the release in `out`.
    pub(crate) fn claim(&self, change: impl FnOnce(&mut Value)) {
        self.without_documents();
        let mut manifest = self.manifest();
        change(&mut manifest);
        self.write("out/manifest.json", manifest.to_string().as_bytes());
    }

    /// Every file below the folder with its bytes, and every empty folder.
    pub(crate) fn contents(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut contents = BTreeMap::new();
        let mut open = vec![self.folder.path().to_owned()];
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    contents.insert(path.clone(), Vec::new());
                    open.push(path);
                } else {
                    contents.insert(path.clone(), std::fs::read(&path).unwrap());
                }
            }
        }
        contents
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        self.run_program(Path::new(env!("CARGO_BIN_EXE_kohort")), arguments, b"")
    }

    /// Runs with these bytes on stdin.
    pub(crate) fn pipe(&self, bytes: &[u8], arguments: &[&str]) -> Ran {
        self.run_program(Path::new(env!("CARGO_BIN_EXE_kohort")), arguments, bytes)
    }

    /// Runs, and checks that the files in the folder stay as they were.
    pub(crate) fn run_in_vain(&self, arguments: &[&str]) -> Ran {
        let before = self.contents();
        let ran = self.run(arguments);
        assert_eq!(before, self.contents(), "something was written");
        ran
    }

    pub(crate) fn run_program(&self, program: &Path, arguments: &[&str], stdin: &[u8]) -> Ran {
        let mut child = Command::new(program)
            .args(arguments)
            .current_dir(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that fails early may not read all of stdin.
        let _ = child.stdin.take().unwrap().write_all(stdin);
        let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
        Ran {
            code: status.code().unwrap(),
            stdout: String::from_utf8(stdout).unwrap(),
            stderr: String::from_utf8(stderr).unwrap(),
        }
    }
}

/// A digest as manifests show it.
pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "exit {}", self.code)?;
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !text.is_empty() {
                write!(f, "--- {name}\n{text}")?;
            }
        }
        Ok(())
    }
}
