//! [`Apply`]: releases new persons in the classes of an earlier release.
//!
//! The spec of the new release comes from the manifest of the earlier one: roles, types, rules and requirements are the same. The
//! earlier release is first verified from its files, as anybody can. The new release satisfies the requirements by itself, and
//! together with the earlier one; both are counted by the verifier.

mod earlier;
mod persons;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kohort_core::apply_classes;
use kohort_io::{AskedOfOne, Batches, Private, load, read_release};
use kohort_model::spec::{CsvSpec, HierarchySource};
use kohort_model::{
    AppliedManifest, Cells, Column, NULL, Note, Progress, Release as Recoded, Role, Silent, Table, Texts,
};
use kohort_verify::{Findings, find_risks, measure, verify_applied as count_applied, verify_release};

use crate::Job;
use crate::error::{Error, Report, violation_reports};
use crate::job::limit_of;
use crate::manifest::{Facts, TableFacts, achieved, requirements};
use crate::release::Release;
use crate::verification::{Verdict, Verification, verify_with};
use earlier::Earlier;
use persons::refuse_persons_in_both;

/// A table of new persons, and an earlier release whose classes they get.
///
/// ```no_run
/// # fn main() -> Result<(), kohort::Error> {
/// let release = kohort::Apply::new("release-2025", "arrivals.csv")
///     .identifier("name")
///     .person("patient_id")
///     .not_in("patients-2025.csv") // refuses persons of the earlier release
///     .release()?;
/// println!("{} persons fit no class", release.manifest().persons.suppressed);
/// release.write("release-2026")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Apply {
    earlier: PathBuf,
    table: PathBuf,
    /// The rows of the table, if they are not read from its file.
    rows: Option<Batches>,
    csv: CsvSpec,
    person: Option<String>,
    roles: BTreeMap<String, Role>,
    hierarchies: BTreeMap<String, HierarchySource>,
    not_in: Option<PathBuf>,
    max_suppressed: f64,
    accepts_risks: Risks,
}

/// Whether a release with a blatant risk is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Risks {
    Refused,
    Accepted,
}

impl Apply {
    /// Applies the classes of the release in a folder to the persons of a table: CSV (also `.gz`, `.zst`), Parquet or Arrow; `-` is
    /// standard input. The table has the columns of the release; the others need a role.
    pub fn new(earlier: impl Into<PathBuf>, table: impl Into<PathBuf>) -> Self {
        Apply {
            earlier: earlier.into(),
            table: table.into(),
            rows: None,
            csv: CsvSpec::default(),
            person: None,
            roles: BTreeMap::new(),
            hierarchies: BTreeMap::new(),
            not_in: None,
            max_suppressed: 1.0,
            accepts_risks: Risks::Refused,
        }
    }

    /// Takes the new persons from memory. The path of the table is then only its name in messages.
    #[must_use]
    pub fn instead_of(mut self, rows: Batches) -> Self {
        self.rows = Some(rows);
        self
    }

    /// Names the column that names the person. Without it, each row is a person.
    #[must_use]
    pub fn person(mut self, column: impl Into<String>) -> Self {
        self.person = Some(column.into());
        self
    }

    /// Says that a column names a person outright. It is not released.
    #[must_use]
    pub fn identifier(mut self, column: impl Into<String>) -> Self {
        self.roles.insert(column.into(), Role::Identifier);
        self
    }

    /// Leaves out a column.
    #[must_use]
    pub fn drop(mut self, column: impl Into<String>) -> Self {
        self.roles.insert(column.into(), Role::Drop);
        self
    }

    /// Gives the hierarchy of a column that the earlier release withholds.
    #[must_use]
    pub fn hierarchy(mut self, column: impl Into<String>, source: HierarchySource) -> Self {
        self.hierarchies.insert(column.into(), source);
        self
    }

    /// The private table of the earlier release. New persons who are in it are refused. It needs the column that names the person.
    #[must_use]
    pub fn not_in(mut self, earlier_table: impl Into<PathBuf>) -> Self {
        self.not_in = Some(earlier_table.into());
        self
    }

    /// The largest share of the new persons that may be left out; without it, any share.
    #[must_use]
    pub fn max_suppressed(mut self, share: f64) -> Self {
        self.max_suppressed = share;
        self
    }

    /// How the file of the new table is read, if it is CSV. Decimal signs and dates are spelled as in the earlier release.
    #[must_use]
    pub fn csv(mut self, csv: CsvSpec) -> Self {
        self.csv = csv;
        self
    }

    /// Allows a release although a blatant risk is found. The manifest then names the risk.
    #[must_use]
    pub fn accept_risks(mut self) -> Self {
        self.accepts_risks = Risks::Accepted;
        self
    }

    /// Reads, applies the classes and verifies. Nothing is written yet.
    ///
    /// # Errors
    /// If the earlier release is damaged, does not satisfy what it claims or is of a kind whose classes can't be applied; if the table
    /// does not fit it, holds persons of it, or the requirements can't be reached.
    pub fn release(&self) -> Result<Release, Error> {
        self.release_with(&Silent)
    }

    /// Does the same as [`Apply::release`]. `progress` is told how far the work is, and can cancel it.
    ///
    /// # Errors
    /// As [`Apply::release`], and [`Error::Cancelled`].
    pub fn release_with(&self, progress: &dyn Progress) -> Result<Release, Error> {
        let made = self.make(progress);
        if progress.is_cancelled() { Err(Error::Cancelled) } else { made }
    }

    fn make(&self, progress: &dyn Progress) -> Result<Release, Error> {
        if !(0.0..=1.0).contains(&self.max_suppressed) {
            let message = format!("max_suppressed = {}: a share is from 0 to 1", self.max_suppressed);
            return Err(Error::input(message, "for example 0.05"));
        }
        let earlier = Earlier::read(&self.earlier, self.hierarchies.keys(), progress)?;
        let spec = earlier.spec(self);
        let job = match self.accepts_risks {
            Risks::Refused => Job::new(spec, ""),
            Risks::Accepted => Job::new(spec, "").accept_risks(),
        };
        let job = match &self.rows {
            Some(rows) => job.instead_of(&self.table, rows.clone()),
            None => job,
        };
        let spec = job.spec();
        let loaded = load(job.sources(), spec, &spec.tables[0], progress)?;
        let original = loaded
            .generalized_as(&earlier.table, earlier.entry())
            .map_err(|problems| Error::from(kohort_io::ReadErrors { file: self.table.clone(), problems }))?;
        let mut notes = Vec::new();
        match (&self.not_in, &self.person) {
            (Some(file), Some(person)) => refuse_persons_in_both(&original.table, (file, person), &earlier, progress)?,
            (Some(_), None) => {
                let message =
                    "persons can't be compared with those of the earlier release, because no column names the person";
                return Err(Error::input(message, "name it: {person=id}"));
            }
            (None, _) => notes.push(Note::PersonsNotCompared),
        }
        let asked = spec.requirements(&spec.tables[0]);
        let quasi = original.table.with_role(Role::Quasi);
        let before =
            measure(&original.table, &quasi, &[], &asked).map_err(|violations| Error::unverified(&violations))?;
        let done = apply_classes(&original.table, &earlier.table, &asked, progress)?;
        progress.begin("verifying", 0);
        let limit = limit_of(spec);
        let exceeded = limit.exceeded(done.persons.suppressed, done.persons.n_in);
        if let Some(violation) = exceeded {
            return Err(Error::NotMet(violation_reports(&[violation])));
        }
        let release = verify_release(done.release, &original.table, &AskedOfOne::new(spec), limit)
            .map_err(|violations| Error::unverified(&violations))?;
        let shown = as_read(release.get(), &original.table);
        let together = count_applied(&shown, &earlier.table, &asked)
            .map_err(|violations| Error::NotMet(violation_reports(&violations.0)))?;
        let risks = find_risks(&original.table, &asked, Some(&release.get().tables[0]));
        let facts = Facts {
            algorithm: done.algorithm,
            notes,
            accepted_risks: job.judge(risks)?,
            loss: done.loss,
            tables: vec![TableFacts {
                name: original.table.name.clone(),
                rows_in: original.table.n_rows as u64,
                loss: None,
            }],
            links: Vec::new(),
            saved: None,
            registers: None,
            applied: Some(earlier.applied(&together, self.not_in.is_some())),
            previous: Vec::new(),
            before,
        };
        Ok(Release::new(facts, release, Private::one(spec.clone(), original), Vec::new()))
    }
}

/// A release as its readers see it, with the persons of its rows.
fn as_read(release: &Recoded, original: &Table) -> Table {
    let [released] = release.tables.as_slice() else { unreachable!("one table was released") };
    let rows_of =
        |column: &Column| column.with_ids(released.rows.iter().map(|&row| column.ids[row as usize]).collect());
    let mut columns: Vec<Column> = Vec::new();
    for column in &released.columns {
        let source = &original.columns[column.source];
        columns.push(match &column.cells {
            Cells::Recoded { labels, ids } => {
                Column { texts: labels.clone(), ids: ids.clone(), hierarchy: None, ..source.without_cells() }
            }
            Cells::Copied => rows_of(source),
            Cells::Surrogate { ids } => {
                let number = |id: &u32| if *id == NULL { String::new() } else { id.to_string() };
                let texts: Texts = ids.iter().map(number).collect();
                Column { texts, ids: (0..ids.len() as u32).collect(), ..source.without_cells() }
            }
        });
    }
    let person = original.person_column().map(|person| {
        columns.push(rows_of(person));
        columns.len() - 1
    });
    Table { name: released.name.clone(), columns, n_rows: released.rows.len(), person }
}

/// Counts a release that was made by applying the classes of an earlier one: by itself, and together with the earlier release.
/// Both are verified from their files alone.
///
/// # Errors
/// As [`crate::verify`], for either release.
pub fn verify_applied(
    release: impl AsRef<Path>,
    earlier: impl AsRef<Path>,
    progress: &dyn Progress,
) -> Result<Verification, Error> {
    let (release, earlier) = (release.as_ref(), earlier.as_ref());
    let mut verification = verify_with(release, progress)?;
    let Some(claimed) = verification.manifest.applied.clone() else {
        let message = format!("{} was not made by applying the classes of another release", release.display());
        return Err(Error::input(message, "verify it without the earlier release"));
    };
    let read = Earlier::read_for_readers(earlier, progress)?;
    let mut wrong = Vec::new();
    if read.digest() != claimed.manifest || read.files() != claimed.files {
        let message = format!("{} is not the release whose classes were applied", earlier.display());
        return Err(Error::NotMet(vec![Report::new(message).hint("name the folder of that release")]));
    }
    let (manifest, tables) = read_release(release, progress)?;
    wrong.extend(read.other_meanings(release, &manifest.tables[0])?);
    let asked = requirements(&manifest.requirement, &manifest.tables).unwrap_or_default().concat();
    match count_applied(&tables[0], &read.table, &asked) {
        Ok(found) => {
            // If persons of the new release have several rows, only its publisher can count them.
            if manifest.persons.n_out == tables[0].n_rows as u64 {
                wrong.extend(wrong_claims(&claimed, &read.applied(&found, claimed.persons_compared)));
                verification.not_counted.retain(|note| note != NOT_COUNTED);
                verification.claims.unconfirmed.retain(|key| key != "applied");
                verification.claims.unconfirmed.push("applied.persons_compared".to_owned());
                verification.claims.unconfirmed.sort_unstable();
                if verification.not_counted.is_empty() && verification.verdict == Verdict::InPart {
                    verification.verdict = Verdict::Verified;
                }
            }
        }
        Err(violations) => wrong.extend(violation_reports(&violations.0)),
    }
    if !wrong.is_empty() {
        verification.verdict = Verdict::NotMet;
        verification.wrong.extend(wrong);
    }
    Ok(verification)
}

/// What can't be counted without the earlier release.
pub(crate) const NOT_COUNTED: &str =
    "what readers of this release and of the one whose classes it has count together; give that release to count it";

fn wrong_claims(claimed: &AppliedManifest, counted: &AppliedManifest) -> Vec<Report> {
    let mut wrong = Vec::new();
    let hint = "the manifest does not belong to this release: don't trust it";
    if claimed.k != counted.k {
        let message = format!("manifest.json says applied.k = {}, but {} was counted", claimed.k, counted.k);
        wrong.push(Report::new(message).hint(hint));
    }
    let is_near = |one: f64, other: f64| one == other || (one - other).abs() <= 1e-6;
    let is_same = |(one, other): (_, _)| {
        let (one, other): (&kohort_model::AchievedSensitive, &kohort_model::AchievedSensitive) = (one, other);
        one.l == other.l
            && is_near(one.entropy_l, other.entropy_l)
            && is_near(one.t, other.t)
            && is_near(one.alpha, other.alpha)
            && is_near(one.beta, other.beta)
            && is_near(one.t_by_distance.unwrap_or(0.0), other.t_by_distance.unwrap_or(0.0))
    };
    let names: std::collections::BTreeSet<&String> = claimed.sensitive.keys().chain(counted.sensitive.keys()).collect();
    for name in names {
        let pair = claimed.sensitive.get(name).zip(counted.sensitive.get(name));
        if !pair.is_some_and(is_same) {
            let message = format!("manifest.json says something else in applied.sensitive.{name} than was counted");
            wrong.push(Report::new(message).hint(hint));
        }
    }
    wrong
}

impl Earlier {
    /// What the manifest of the new release says about the earlier one.
    fn applied(&self, together: &Findings, persons_compared: bool) -> AppliedManifest {
        let found = achieved(together);
        AppliedManifest {
            manifest: self.digest().to_owned(),
            files: self.files(),
            persons_compared,
            k: found.k,
            sensitive: found.sensitive,
        }
    }
}
