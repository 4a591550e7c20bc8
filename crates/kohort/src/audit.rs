//! [`Audit`]: measures how well several releases hide people if they are read together.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use kohort_io::{AuditOptions, read_for_audit};
use kohort_model::Progress;
use kohort_model::spec::HierarchySource;
use kohort_verify::{AuditFindings, Knows};

use crate::error::{Error, Report, violation_reports};

/// Releases of the same persons, and the columns that each audience may know.
///
/// ```no_run
/// use kohort::{Audit, Knows, Silent};
///
/// # fn main() -> Result<(), kohort::Error> {
/// let insurer = Knows { audience: "insurer".to_owned(), columns: vec!["age".to_owned(), "zip".to_owned()] };
/// let audit = Audit {
///     releases: vec!["2025.csv".into(), "2026.csv".into()],
///     audiences: vec![insurer],
///     person: Some("id".to_owned()),
///     k: Some(5),
///     ..Audit::default()
/// };
/// let audited = audit.run(&Silent)?;
/// println!("{} audiences see somebody among fewer than 5", audited.unmet.len());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Audit {
    /// Folders that kohort wrote, or files.
    pub releases: Vec<PathBuf>,
    /// The audiences, and the columns that each may know.
    pub audiences: Vec<Knows>,
    /// The column that names the person in every release. Without it rows are matched by their order, which is refused if a
    /// manifest says that rows are sorted.
    pub person: Option<String>,
    /// Hierarchies by column. They tell which values a label stands for. Without one, two different labels are taken for two
    /// different facts.
    pub hierarchies: BTreeMap<String, HierarchySource>,
    /// The number of persons among whom everybody must hide.
    pub k: Option<u64>,
}

/// What an audit counted.
#[derive(Clone, Debug)]
pub struct Audited {
    /// The counts.
    pub findings: AuditFindings,
    /// One report for each audience that finds somebody among fewer than `k` persons.
    pub unmet: Vec<Report>,
}

impl Audit {
    /// Reads the releases and counts.
    ///
    /// # Errors
    /// [`Error::Input`] if a release can't be read, or rows can't be matched.
    pub fn run(&self, progress: &dyn Progress) -> Result<Audited, Error> {
        if self.releases.is_empty() {
            return Err(Error::input("there is no release to audit", "name at least one"));
        }
        let columns: BTreeSet<String> = self.audiences.iter().flat_map(|audience| audience.columns.clone()).collect();
        let options =
            AuditOptions { columns: &columns, person: self.person.as_deref(), hierarchies: &self.hierarchies };
        let releases = read_for_audit(&self.releases, options, progress)?;
        let findings = kohort_verify::audit(&releases, &self.audiences, self.k)
            .map_err(|violations| Error::Input(violation_reports(&violations.0)))?;
        let unmet = self.unmet(&findings);
        Ok(Audited { findings, unmet })
    }

    fn unmet(&self, found: &AuditFindings) -> Vec<Report> {
        let Some(k) = self.k else { return Vec::new() };
        let hint = "release one table for all audiences: see [audiences] in a spec, and `kohort explain audience`";
        let mut reports = Vec::new();
        for (audience, counted) in self.audiences.iter().zip(&found.audiences) {
            let name = &audience.audience;
            let mut report = |below_k: Option<u64>, place: &str| {
                let n = below_k.unwrap_or(0);
                if n > 0 {
                    let hide = if n == 1 { "1 person hides".to_owned() } else { format!("{n} persons hide") };
                    reports.push(
                        Report::new(format!("audience '{name}': {hide} among fewer than {k} {place}")).hint(hint),
                    );
                }
                n > 0
            };
            let n_releases = self.releases.len();
            let place = if n_releases == 1 { "in this release" } else { "when all releases are read together" };
            if !report(counted.together.below_k, place) && n_releases > 1 {
                for (file, alone) in self.releases.iter().zip(&counted.alone) {
                    let place = format!("in {} by itself", file.display());
                    report(alone.as_ref().and_then(|alone| alone.below_k), &place);
                }
            }
        }
        reports
    }
}
