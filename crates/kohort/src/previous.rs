//! [`Previous`]: earlier releases, whose readers may also read a new one, from their folders.
//!
//! Each release is first verified from its files, as anybody can. If it was itself made to be read together with others,
//! these must be named, too, because a guarantee for two releases need not hold for three.

use std::path::Path;

use kohort_io::{EarlierRegister, LoadedRegister, manifest_digest, read_release_of};
use kohort_model::{Column, JoinedRegister, Manifest, NULL, PreviousRelease, Progress, ReadBeside, Spec, Table};

use kohort_verify::check_claims;

use crate::error::{Error, Report, violation_reports};
use crate::verification::{claim_reports, count_alone};

/// Earlier releases.
pub(crate) struct Previous {
    /// The content of the releases' files.
    pub(crate) releases: Vec<PreviousRelease>,
    /// Digests of the releases' manifests.
    pub(crate) manifests: Vec<String>,
}

impl Previous {
    /// Reads the earlier releases of a spec. Paths start from `folder`.
    pub(crate) fn read(
        spec: &Spec,
        folder: &Path,
        original: &Table,
        joined: &JoinedRegister,
        registers: (&[LoadedRegister], &[EarlierRegister]),
        progress: &dyn Progress,
    ) -> Result<Previous, Error> {
        let mut previous = Previous { releases: Vec::new(), manifests: Vec::new() };
        let (mut needed, mut read) = (Vec::new(), Vec::new());
        for path in &spec.previous {
            let release = folder.join(path);
            let (manifest, tables) = read_verified(&release, original, progress)?;
            refuse_other_kinds(&release, &manifest)?;
            refuse_other_registers(&release, &manifest, registers)?;
            previous.manifests.push(manifest_digest(&release)?);
            let places = Places::of(joined, registers, &manifest);
            let shows = |column: &Column| tables[0].column(&column.name).is_some();
            read.push((manifest.clone(), places.is_whole && joined.rows.columns.iter().all(shows)));
            needed.extend(manifest.previous.map(|earlier| (release.clone(), earlier.manifests)));
            let name = release.display().to_string();
            previous.releases.push(PreviousRelease { name, tables, places: places.rows, beside: None });
        }
        for (release, beside) in previous.releases.iter_mut().zip(read_beside(&previous.manifests, &read)) {
            release.beside = beside;
        }
        for (release, earlier) in needed {
            let n = earlier.iter().filter(|digest| !previous.manifests.contains(digest)).count();
            if n > 0 {
                let (releases, are) = if n == 1 {
                    ("1 earlier release".to_owned(), "is")
                } else {
                    (format!("{n} earlier releases"), "are")
                };
                let message = format!(
                    "{} was made to be read together with {releases} that {are} not named here",
                    release.display()
                );
                return Err(Error::input(message, "name all of them: previous = [\"first/\", \"second/\"]"));
            }
        }
        Ok(previous)
    }
}

/// Reads a release, and counts it again from its files.
fn read_verified(release: &Path, original: &Table, progress: &dyn Progress) -> Result<(Manifest, Vec<Table>), Error> {
    let read = read_release_of(std::slice::from_ref(original), release, progress);
    let (manifest, tables) = read.map_err(|problem| Error::from(problem).at(release))?;
    let counted = count_alone(release, &manifest, &tables, &mut Vec::new())?;
    let wrong: Vec<Report> = match counted {
        Ok(found) => claim_reports(&check_claims(&manifest, &found, None)),
        Err(violations) => violation_reports(&violations.0),
    };
    if wrong.is_empty() { Ok((manifest, tables)) } else { Err(Error::NotMet(wrong).at(release)) }
}

/// Refuses kinds of releases that can't be compared with a register.
fn refuse_other_kinds(release: &Path, manifest: &Manifest) -> Result<(), Error> {
    let kind = match () {
        () if !manifest.audiences.is_empty() => "for several audiences",
        () if manifest.register.is_none() && manifest.tables.len() > 1 => "of several tables",
        () => return Ok(()),
    };
    let message = format!(
        "{} is a release {kind}, which can't be compared with a release that uses a register",
        release.display()
    );
    Err(Error::input(message, "name releases of one table, with or without a register"))
}

/// Refuses releases that were made with registers which are not given, because nothing tells who was in them.
fn refuse_other_registers(
    release: &Path,
    manifest: &Manifest,
    (now, then): (&[LoadedRegister], &[EarlierRegister]),
) -> Result<(), Error> {
    let is_here = |digest: &String| {
        now.iter().any(|register| register.sha256 == *digest) || then.iter().any(|register| register.sha256 == *digest)
    };
    let Some(other) = manifest.registers.iter().find(|register| !is_here(&register.sha256)) else { return Ok(()) };
    let (release, name) = (release.display(), &other.name);
    let message = format!("{release} was made with another file of register '{name}', which is not named here");
    Err(Error::input(message, "name that file, too: previous = \"FILE\" in the register's section"))
}

/// For each person, the row that shows how the registers of a release described them.
struct Places {
    rows: Vec<u32>,
    /// Whether `rows` has a row for all persons of these registers. If registers were added since, nothing tells in which of
    /// them a private person was.
    is_whole: bool,
}

impl Places {
    fn of(
        joined: &JoinedRegister,
        (now, then): (&[LoadedRegister], &[EarlierRegister]),
        manifest: &Manifest,
    ) -> Places {
        let was_used = |digest: &str| manifest.registers.iter().any(|register| register.sha256 == digest);
        let n_persons = (joined.n_microdata + joined.n_register) as u32;
        let n_ever = then.iter().map(|register| register.places.len()).max().unwrap_or(0).max(n_persons as usize);
        let mut rows = vec![NULL; n_ever];
        let are_all_used = manifest.registers.is_empty() || now.iter().all(|register| was_used(&register.sha256));
        let is_any_used = now.iter().any(|register| was_used(&register.sha256));
        let stands_in = |row: u32| now.iter().any(|found| was_used(&found.sha256) && found.joined.contains(&row));
        for person in 0..n_persons {
            let was_there = are_all_used || (person as usize >= joined.n_microdata && stands_in(person));
            rows[person as usize] = joined.public_place(person).filter(|_| was_there).unwrap_or(NULL);
        }
        let mut contradicted = Vec::new();
        for register in then.iter().filter(|register| was_used(&register.sha256)) {
            for (person, &place) in register.places.iter().enumerate().filter(|(_, place)| **place != NULL) {
                match rows[person] {
                    NULL => rows[person] = place,
                    other if is_same(joined, other, place) => {}
                    _ => contradicted.push(person),
                }
            }
        }
        contradicted.into_iter().for_each(|person| rows[person] = NULL);
        Places { rows, is_whole: are_all_used || !is_any_used }
    }
}

/// Whether two joined rows have the same cells.
fn is_same(joined: &JoinedRegister, a: u32, b: u32) -> bool {
    a == b || joined.rows.columns.iter().all(|column| column.ids[a as usize] == column.ids[b as usize])
}

/// For each release the k that its manifest claims for it and others together. The claim also covers people who have left
/// since, so it is used only where the registers and columns of that time are known in full.
fn read_beside(manifests: &[String], read: &[(Manifest, bool)]) -> Vec<Option<ReadBeside>> {
    let beside = |(manifest, is_whole): &(Manifest, bool)| {
        let previous = manifest.previous.as_ref().filter(|_| *is_whole)?;
        let position = |digest: &String| manifests.iter().position(|known| known == digest);
        let releases = previous.manifests.iter().filter_map(position).filter(|&release| read[release].1).collect();
        Some(ReadBeside { releases, k: previous.k })
    };
    read.iter().map(beside).collect()
}
