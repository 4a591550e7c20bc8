//! [`Previous`]: earlier releases that a new one may be read beside, from their folders.
//!
//! Each is verified as anybody can verify it, before anything is made of it. A release that was itself made to be read
//! beside others must come with all of them: what holds of two releases need not hold of three.

use std::path::Path;

use kohort_io::{LoadedRegister, TablesManifest, manifest_digest, read_release_of};
use kohort_model::{InRegister, JoinedRegister, Manifest, PreviousRelease, Progress, Spec, Table};

use crate::commands::verify::{count_alone, differences};
use crate::failure::{Failure, Report, Status, violation_reports};

/// Earlier releases.
pub(crate) struct Previous {
    /// What their files show.
    pub(crate) releases: Vec<PreviousRelease>,
    /// Digests of their manifests.
    pub(crate) manifests: Vec<String>,
}

impl Previous {
    /// Reads the earlier releases of a spec. `folder` is where the spec's paths start.
    pub(crate) fn read(
        spec: &Spec,
        folder: &Path,
        original: &Table,
        joined: &JoinedRegister,
        registers: &[LoadedRegister],
        progress: &dyn Progress,
    ) -> Result<Previous, Failure> {
        let mut previous = Previous { releases: Vec::new(), manifests: Vec::new() };
        let mut needed = Vec::new();
        for path in &spec.previous {
            let release = folder.join(path);
            let (manifest, tables) = read_verified(&release, original, progress)?;
            refuse_other_kinds(&release, &manifest.manifest)?;
            refuse_other_registers(&release, &manifest.manifest, registers)?;
            previous.manifests.push(manifest_digest(&release)?);
            let known = known_persons(joined, registers, &manifest.manifest);
            needed.extend(manifest.manifest.previous.map(|earlier| (release.clone(), earlier.manifests)));
            let name = release.display().to_string();
            previous.releases.push(PreviousRelease { name, tables, known });
        }
        for (release, earlier) in needed {
            let n = earlier.iter().filter(|digest| !previous.manifests.contains(digest)).count();
            if n > 0 {
                let (releases, are) = if n == 1 {
                    ("1 earlier release".to_owned(), "is")
                } else {
                    (format!("{n} earlier releases"), "are")
                };
                let message =
                    format!("{} was made to be read beside {releases} that {are} not named here", release.display());
                return Err(Failure::input(message, "name all of them: previous = [\"first/\", \"second/\"]"));
            }
        }
        Ok(previous)
    }
}

/// Reads a release, and counts it again from its files.
fn read_verified(
    release: &Path,
    original: &Table,
    progress: &dyn Progress,
) -> Result<(TablesManifest, Vec<Table>), Failure> {
    let in_release = |mut failure: Failure| {
        let place = release.display().to_string();
        for report in failure.reports.iter_mut().filter(|report| !report.message.starts_with(&place)) {
            report.message.insert_str(0, &format!("{place}: "));
        }
        failure
    };
    let read = read_release_of(std::slice::from_ref(original), release, progress);
    let (manifest, tables) = read.map_err(|problem| in_release(problem.into()))?;
    let counted = count_alone(release, &manifest, &tables, &mut Vec::new())?;
    let wrong: Vec<Report> = match counted {
        Ok(found) => differences(&manifest.manifest, &found),
        Err(violations) => violation_reports(&violations.0),
    };
    if wrong.is_empty() { Ok((manifest, tables)) } else { Err(in_release(Failure::new(Status::NotMet, wrong))) }
}

/// Refuses what can't be read beside a register.
fn refuse_other_kinds(release: &Path, manifest: &Manifest) -> Result<(), Failure> {
    let kind = match () {
        () if !manifest.audiences.is_empty() => "for several audiences",
        () if manifest.register.is_none() && manifest.tables.len() > 1 => "of several tables",
        () => return Ok(()),
    };
    let message = format!("{} is a release {kind}: what it says beside a register is not known", release.display());
    Err(Failure::input(message, "name releases of one table, with or without a register"))
}

/// Refuses releases that were made with other registers: nothing says who stood in them.
fn refuse_other_registers(release: &Path, manifest: &Manifest, registers: &[LoadedRegister]) -> Result<(), Failure> {
    let is_here = |digest: &String| registers.iter().any(|register| register.sha256 == *digest);
    let other = manifest.registers.iter().find(|register| !is_here(&register.sha256));
    let Some(other) = other else { return Ok(()) };
    let message = format!(
        "{} was made with register '{}', whose file is not among the registers here",
        release.display(),
        other.name
    );
    Err(Failure::input(
        message,
        "use the register of then, and pin it with sha256: nothing else shows who was a candidate both times",
    ))
}

/// Of whom the registers of a release said what they say now. Where others have been added since, only persons that are
/// in the old ones for sure.
fn known_persons(joined: &JoinedRegister, registers: &[LoadedRegister], manifest: &Manifest) -> Vec<bool> {
    let was_used = |register: &LoadedRegister| manifest.registers.iter().any(|then| then.sha256 == register.sha256);
    let all_known = manifest.registers.is_empty() || registers.iter().all(was_used);
    let private = joined.persons.iter().map(|person| all_known && *person == InRegister::Same);
    let is_known = |row: u32| all_known || registers.iter().any(|r| was_used(r) && r.joined.contains(&row));
    private.chain(joined.register_rows().map(is_known)).collect()
}
