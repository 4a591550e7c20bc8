//! [`report`], [`write_report`]: the documents of a release folder, for people who sign, receive and read it.
//!
//! | file | for |
//! | --- | --- |
//! | `report.html` | people who decide: what was asked, reached and lost, and what is not protected |
//! | `report.json` | programs: the same figures, described by [`kohort_model::report::report_schema`] |
//! | `README.txt` | people who receive the release: what its cells mean |
//! | `datapackage.json` | programs that read it: files and columns as a Frictionless Data Package |
//!
//! # Guarantee
//! The documents follow from the manifest and the tables alone, so they tell nothing that the release does not, and verifying a
//! release makes them again and compares. They are made only from a release that verifies.

mod answers;
mod associations;
mod bins;
mod columns;
mod compare;
mod costs;
mod figures;
mod owner;
mod owner_page;
mod page;
mod readers;
mod recipients;
mod sections;
mod shown;
mod spread;
mod target;
mod texts;
mod words;

use std::fs;
use std::path::{Component, Path};

use kohort_io::read_release;
use kohort_model::report::{OwnerReport, ReleaseReport};
use kohort_model::{Manifest, Progress, Silent, Table};

pub use owner::{Costs, OwnerOptions, report_against, report_against_with};
pub use texts::{owner_report_texts, report_texts};

pub(crate) use compare::{check_documents, not_compared_in_parts, written_documents};
pub(crate) use figures::{MOST_COMMON, ReleasedRows};

use crate::error::{Error, Report};
use crate::verification::{Verdict, Verification, count_read};

/// The documents of a release.
pub(crate) struct Documents {
    pub(crate) report: ReleaseReport,
    /// The names and the texts of the files.
    pub(crate) files: [(&'static str, String); 4],
}

impl Documents {
    /// The documents of a release that was counted from its files alone. `tables` are its tables.
    ///
    /// # Errors
    /// If the release does not verify.
    pub(crate) fn of(verification: &Verification, tables: &[Table]) -> Result<Documents, Error> {
        Documents::of_rows(verification, tables, ReleasedRows::InMemory)
    }

    /// The same where the rows of the tables may not be in memory.
    ///
    /// # Errors
    /// As [`Documents::of`].
    pub(crate) fn of_rows(
        verification: &Verification,
        tables: &[Table],
        rows: ReleasedRows<'_>,
    ) -> Result<Documents, Error> {
        if verification.verdict == Verdict::NotMet {
            return Err(Error::NotMet(verification.wrong.clone()));
        }
        let manifest = &verification.manifest;
        let report = figures::figures(verification, tables, rows)?;
        let json = |value: Result<String, serde_json::Error>| {
            value.map(|text| text + "\n").map_err(|error| Error::Fault(vec![Report::new(error.to_string())]))
        };
        let files = [
            ("README.txt", recipients::readme(&report, manifest, tables)),
            ("datapackage.json", json(serde_json::to_string_pretty(&recipients::data_package(manifest, tables)))?),
            ("report.html", sections::html(&report)),
            ("report.json", json(serde_json::to_string_pretty(&report))?),
        ];
        Ok(Documents { report, files })
    }
}

/// The report of a release, from its files and its manifest alone.
///
/// ```no_run
/// # fn main() -> Result<(), kohort::Error> {
/// let report = kohort::report("out")?;
/// println!("{} persons in the smallest class", report.achieved.k);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`crate::verify`], [`Error::NotMet`] if the release does not verify, and [`Error::Input`] if a newer version of kohort wrote
/// it.
pub fn report(release: impl AsRef<Path>) -> Result<ReleaseReport, Error> {
    documents(release.as_ref(), &Silent).map(|documents| documents.report)
}

/// Makes the documents of a release and writes them into its folder: `report.html`, `report.json`, `README.txt` and
/// `datapackage.json`. Documents that are there already are replaced. `progress` is told how far the work is, and can cancel it.
///
/// # Errors
/// As [`report`], [`Error::Cancelled`], and [`Error::Io`] if a file can't be written.
pub fn write_report(release: impl AsRef<Path>, progress: &dyn Progress) -> Result<ReleaseReport, Error> {
    let release = release.as_ref();
    let documents = documents(release, progress)?;
    // Files are complete when they get their names, so that a release never holds half a document.
    let parent = release.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    for (name, text) in &documents.files {
        let target = release.join(name);
        let fault = |error: &std::io::Error| {
            Error::Io(vec![Report::new(format!("{}: can't be written: {error}", target.display()))])
        };
        let beside =
            tempfile::Builder::new().prefix(".kohort-document-").tempdir_in(parent).map_err(|error| fault(&error))?;
        let complete = beside.path().join(name);
        fs::write(&complete, text).and_then(|()| fs::rename(&complete, &target)).map_err(|error| fault(&error))?;
    }
    Ok(documents.report)
}

/// Writes a report of [`report_against`] into a folder that its owner names: `owner-report.html` and `owner-report.json`. The folder
/// is made if it is not there. Files of these names are replaced.
///
/// # Errors
/// [`Error::Input`] if the folder is that of the release or inside of it, and [`Error::Io`] if a file can't be written.
pub fn write_owner_report(
    report: &OwnerReport,
    release: impl AsRef<Path>,
    folder: impl AsRef<Path>,
) -> Result<(), Error> {
    let (release, folder) = (release.as_ref(), folder.as_ref());
    let refused = || {
        let message = format!("{} is in the release, whose readers must not see these figures", folder.display());
        Error::input(message, "name a folder elsewhere")
    };
    let fault = |error: &std::io::Error| {
        Error::Io(vec![Report::new(format!("{}: can't be written: {error}", folder.display()))])
    };
    let of_release = release.canonicalize().map_err(|error| Error::file(release, "read", &error))?;
    // A folder that is not there yet is in the release if the first folder above it that is there is. Nobody knows where `..`
    // leads from a folder that is not there.
    let there = folder.ancestors().find_map(|above| {
        let place = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        let below = folder.strip_prefix(above).ok()?;
        let is_plain = below.components().all(|part| part != Component::ParentDir);
        Some((place.canonicalize().ok()?, is_plain))
    });
    if there.is_none_or(|(place, is_plain)| !is_plain || place.starts_with(&of_release)) {
        return Err(refused());
    }
    let texts = owner_report_texts(report)?;
    fs::create_dir_all(folder).map_err(|error| fault(&error))?;
    for (name, text) in texts {
        fs::write(folder.join(name), text).map_err(|error| fault(&error))?;
    }
    Ok(())
}

fn documents(release: &Path, progress: &dyn Progress) -> Result<Documents, Error> {
    let (manifest, tables) = read_release(release, progress)?;
    refuse_newer(release, &manifest)?;
    let verification = count_read(release, manifest, &tables, progress)?;
    Documents::of(&verification, &tables)
}

/// Refuses a release of a newer version, because its manifest may mean more than this version understands.
fn refuse_newer(release: &Path, manifest: &Manifest) -> Result<(), Error> {
    let own = env!("CARGO_PKG_VERSION");
    match compare::is_newer(&manifest.kohort, own) {
        false => Ok(()),
        true => {
            let message = format!(
                "{} was written by kohort {}, which is newer than this kohort {own}",
                release.display(),
                manifest.kohort
            );
            Err(Error::input(message, "use the version of kohort that wrote the release, or a newer one"))
        }
    }
}
