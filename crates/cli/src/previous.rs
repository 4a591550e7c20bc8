//! [`Previous`]: earlier releases that a new one may be read beside, from their folders.
//!
//! Each is verified as anybody can verify it, before anything is made of it. A release that was itself made to be read
//! beside others must come with all of them: what holds of two releases need not hold of three.

use std::path::Path;

use kohort_io::{EarlierRegister, LoadedRegister, TablesManifest, manifest_digest, read_release_of};
use kohort_model::{InRegister, JoinedRegister, Manifest, PreviousRelease, Progress, Spec, Table};

use crate::commands::verify::{claim_reports, compare_claims, count_alone};
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
        registers: (&[LoadedRegister], &[EarlierRegister]),
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
            let (known, elsewhere) = known_persons(joined, registers, &manifest.manifest);
            needed.extend(manifest.manifest.previous.map(|earlier| (release.clone(), earlier.manifests)));
            let name = release.display().to_string();
            previous.releases.push(PreviousRelease { name, tables, known, elsewhere });
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
        Ok(found) => claim_reports(&compare_claims(&manifest, &found, None)),
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
fn refuse_other_registers(
    release: &Path,
    manifest: &Manifest,
    (now, then): (&[LoadedRegister], &[EarlierRegister]),
) -> Result<(), Failure> {
    let is_here = |digest: &String| {
        now.iter().any(|register| register.sha256 == *digest) || then.iter().any(|register| register.sha256 == *digest)
    };
    let Some(other) = manifest.registers.iter().find(|register| !is_here(&register.sha256)) else { return Ok(()) };
    let (release, name) = (release.display(), &other.name);
    let message = format!("{release} was made with another file of register '{name}', which is not named here");
    Err(Failure::input(message, "name that file, too: previous = \"FILE\" in the register's section"))
}

/// Of whom the registers of a release said what those of now say, and where they described private persons otherwise.
/// Where registers have been added since, only persons count that are in the old ones for sure.
fn known_persons(
    joined: &JoinedRegister,
    (now, then): (&[LoadedRegister], &[EarlierRegister]),
    manifest: &Manifest,
) -> (Vec<bool>, Vec<(u32, u32)>) {
    let was_used = |digest: &str| manifest.registers.iter().any(|register| register.sha256 == digest);
    let all_known = manifest.registers.is_empty() || now.iter().all(|register| was_used(&register.sha256));
    let private = joined.persons.iter().map(|person| all_known && matches!(person, InRegister::Same(_)));
    let in_range = |row: u32| now.iter().any(|register| was_used(&register.sha256) && register.joined.contains(&row));
    let others = joined.register_rows().map(|row| all_known || in_range(row));
    let mut known: Vec<bool> = private.chain(others).collect();
    let mut elsewhere = Vec::new();
    for register in then.iter().filter(|register| was_used(&register.sha256)) {
        known.iter_mut().zip(&register.known).for_each(|(known, &then)| *known |= then);
        elsewhere.extend_from_slice(&register.elsewhere);
    }
    (known, elsewhere)
}
