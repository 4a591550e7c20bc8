//! [`report_texts`], [`owner_report_texts`]: documents as texts, for programs that show them or keep them themselves.

use std::path::Path;

use kohort_model::Progress;
use kohort_model::report::OwnerReport;

use super::{documents, owner_page};
use crate::error::{Error, Report};

/// The names and the texts of the documents that [`crate::write_report`] would write. Nothing is written.
///
/// # Errors
/// As [`crate::report()`], and [`Error::Cancelled`].
pub fn report_texts(release: impl AsRef<Path>, progress: &dyn Progress) -> Result<[(&'static str, String); 4], Error> {
    documents(release.as_ref(), progress).map(|documents| documents.files)
}

/// The names and the texts of the files that [`crate::write_owner_report`] would write.
///
/// # Errors
/// [`Error::Fault`] if the figures can't be written as JSON.
pub fn owner_report_texts(report: &OwnerReport) -> Result<[(&'static str, String); 2], Error> {
    let json =
        serde_json::to_string_pretty(report).map_err(|error| Error::Fault(vec![Report::new(error.to_string())]))?;
    Ok([("owner-report.html", owner_page::html(report)), ("owner-report.json", json + "\n")])
}
