//! [`verify`], [`verify_against`]: count a release again, from its files and its manifest alone, or against the private
//! tables.

mod within;

use std::path::Path;

use kohort_io::{
    AskedOfOne, ColumnManifests, JoinedBy, LoadedRegister, LoadedRegisters, LoadedTables, asked_of_join, load,
    load_registers, load_tables, read_release, read_release_of,
};
use kohort_model::spec::{RegisterRows, TableSpec, Unmatched};
use kohort_model::{
    Distance, InRegister, LinkManifest, Manifest, Progress, Requirement, Role, Silent, Table, TableManifest,
};
use kohort_verify::{
    Asked, AskedOfJoin, ClaimFindings, Findings, PrivateFacts, RegisterFacts, ReleasedLink, RowsOf, Skipped,
    Suppressed, SuppressionLimit, TablesAgainst, ToldApart, Violation, Violations, check_claims, find_non_pseudonyms,
    measure, measure_tables, too_many_rows_left_out, verify_alone, verify_joined_against, verify_joined_alone,
    verify_tables_against, verify_tables_alone,
};

use crate::Job;
use crate::described::Described;
use crate::error::{Error, Report, violation_reports};
use crate::job::{limit_of, without_orphans};
use crate::manifest::{
    UnknownSetting, asked_for_audiences, audiences, joined_by_word, link_manifests, released_links, requirement,
    requirements,
};
use crate::previous::Previous;
use crate::report::{ReleasedRows, check_documents, written_documents};
pub(crate) use within::{documents_within, refuse_in_parts};
pub use within::{verify_against_within, verify_within};

/// The result of counting a release again.
#[derive(Clone, Debug)]
pub struct Verification {
    /// The manifest of the release.
    pub manifest: Manifest,
    /// What was counted.
    pub findings: Findings,
    /// Whether what was asked holds.
    pub verdict: Verdict,
    /// Requirements that could not be counted, in words.
    pub not_counted: Vec<String>,
    /// Which keys of the manifest were confirmed, refuted or neither.
    pub claims: ClaimFindings,
    /// All problems; empty unless the verdict is [`Verdict::NotMet`].
    pub wrong: Vec<Report>,
}

/// The verdict on a release that could be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A requirement does not hold, or a claim of the manifest is false.
    NotMet,
    /// Everything that could be counted holds. The rest can't be seen in the given files.
    InPart,
    /// Everything asked holds.
    Verified,
}

impl Verdict {
    /// The word that programs read.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::NotMet => "not_met",
            Verdict::InPart => "in_part",
            Verdict::Verified => "verified",
        }
    }
}

/// Counts a release again, from its files and its manifest alone.
///
/// ```no_run
/// # fn main() -> Result<(), kohort::Error> {
/// let verification = kohort::verify("out")?;
/// assert_ne!(verification.verdict, kohort::Verdict::NotMet, "{:?}", verification.wrong);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Input`] if there is no release, [`Error::NotMet`] if its files are not those of its manifest.
pub fn verify(release: impl AsRef<Path>) -> Result<Verification, Error> {
    verify_with(release, &Silent)
}

/// Does the same as [`verify`]. `progress` is told how far the work is, and can cancel it.
///
/// # Errors
/// As [`verify`], and [`Error::Cancelled`].
pub fn verify_with(release: impl AsRef<Path>, progress: &dyn Progress) -> Result<Verification, Error> {
    let release = release.as_ref();
    let (manifest, tables) = read_release(release, progress)?;
    let mut verification = count_read(release, manifest, &tables, progress)?;
    compare_documents(&mut verification, release, &tables, ReleasedRows::InMemory)?;
    Ok(verification)
}

/// Counts tables of a release that were read. The documents in its folder are not looked at.
pub(crate) fn count_read(
    release: &Path,
    manifest: Manifest,
    tables: &[Table],
    progress: &dyn Progress,
) -> Result<Verification, Error> {
    let mut notes = Vec::new();
    let counted = count_alone(release, &manifest, tables, &mut notes)?;
    let mut wrong = claims_beyond_limit(&manifest);
    wrong.extend(non_pseudonyms(&manifest, tables));
    judge(Compared { manifest, counted, private: None }, notes, wrong, progress)
}

/// Compares the documents of a release with what was counted in its files alone. If something else is wrong, the documents only
/// repeat it.
fn compare_documents(
    verification: &mut Verification,
    release: &Path,
    tables: &[Table],
    rows: ReleasedRows<'_>,
) -> Result<(), Error> {
    if verification.verdict == Verdict::NotMet {
        return Ok(());
    }
    let found = check_documents(release, verification, tables, rows)?;
    if !found.wrong.is_empty() {
        verification.verdict = Verdict::NotMet;
    } else if !found.not_compared.is_empty() {
        verification.verdict = Verdict::InPart;
    }
    verification.wrong.extend(found.wrong);
    verification.not_counted.extend(found.not_compared);
    Ok(())
}

/// Counts a release again, in persons, and checks that it is a truthful recoding of the private tables of a job.
///
/// # Errors
/// As [`verify`], and [`Error::CannotTell`] if it was not decided whether the release can have come from these tables.
pub fn verify_against(release: impl AsRef<Path>, job: &Job) -> Result<Verification, Error> {
    verify_against_with(release, job, &Silent)
}

/// Does the same as [`verify_against`]. `progress` is told how far the work is, and can cancel it.
///
/// # Errors
/// As [`verify_against`], and [`Error::Cancelled`].
pub fn verify_against_with(
    release: impl AsRef<Path>,
    job: &Job,
    progress: &dyn Progress,
) -> Result<Verification, Error> {
    let mut wrong = Vec::new();
    let against = Against { release: release.as_ref(), job };
    let compared = against.count(&mut wrong, progress)?;
    let mut verification = judge(compared, Vec::new(), wrong, progress)?;
    // The documents say what the files alone show, so these are counted once more.
    if verification.verdict != Verdict::NotMet && !written_documents(against.release)?.is_empty() {
        let alone = verify_with(against.release, progress)?;
        if alone.verdict == Verdict::NotMet {
            verification.verdict = Verdict::NotMet;
            verification.wrong = alone.wrong;
        }
    }
    Ok(verification)
}

/// Compares what the manifest claims with what was counted.
fn judge(
    compared: Compared,
    mut notes: Vec<String>,
    mut wrong: Vec<Report>,
    progress: &dyn Progress,
) -> Result<Verification, Error> {
    let Compared { manifest, counted, private } = compared;
    if progress.is_cancelled() {
        return Err(Error::Cancelled);
    }
    if manifest.previous.is_some() && private.is_none() {
        notes.push("what readers of earlier releases learn can't be counted without those releases and the register; verify against the private tables to count it".to_owned());
    }
    if manifest.applied.is_some() {
        notes.push(crate::apply::NOT_COUNTED.to_owned());
    }
    let found = match counted {
        Ok(found) => found,
        Err(violations) => {
            let is_undecided = wrong.is_empty() && violations.0.iter().all(Violation::is_undecided);
            wrong.extend(violation_reports(&violations.0));
            return Err(if is_undecided { Error::CannotTell(wrong) } else { Error::NotMet(wrong) });
        }
    };
    // Notes about figures don't concern a requirement, and notes about presence do so only if the spec bounds it.
    let takes_away = |skipped: &Skipped| match skipped {
        Skipped::Figures => false,
        Skipped::Presence => manifest.requirement.delta_presence.is_some(),
        _ => true,
    };
    let is_whole = notes.is_empty() && !found.skipped.iter().any(takes_away);
    notes.extend(found.skipped.iter().map(ToString::to_string));
    let claims = check_claims(&manifest, &found, private.as_ref());
    wrong.extend(claim_reports(&claims));
    let verdict = match (wrong.is_empty(), is_whole) {
        (false, _) => Verdict::NotMet,
        (true, false) => Verdict::InPart,
        (true, true) => Verdict::Verified,
    };
    Ok(Verification { manifest, findings: found, verdict, not_counted: notes, claims, wrong })
}

/// A release, the counts in it, and facts about the private tables, if they are given.
struct Compared {
    manifest: Manifest,
    counted: Result<Findings, Violations>,
    private: Option<PrivateFacts>,
}

/// A release and the job it was made from.
struct Against<'a> {
    release: &'a Path,
    job: &'a Job,
}

impl Against<'_> {
    /// Counts persons, and compares rows with the private tables.
    fn count(&self, wrong: &mut Vec<Report>, progress: &dyn Progress) -> Result<Compared, Error> {
        let spec = &self.job.spec;
        if let [table_spec] = spec.tables.as_slice()
            && !spec.registers.is_empty()
        {
            return self.count_with_registers(table_spec, wrong, progress);
        }
        if let [table_spec] = spec.tables.as_slice()
            && !spec.links_rows()
        {
            let loaded = load(self.job.sources(), spec, table_spec, progress)?;
            let original = &loaded.table;
            let (manifest, tables) = self.read_of(std::slice::from_ref(original), progress)?;
            wrong.extend(not_as_asked(&manifest, self.job, &[]));
            let expected = vec![loaded.columns_of_read(&tables[0])];
            let described = self.described(&manifest, &tables, expected, vec![original]);
            let unread = described.not_compared();
            wrong.extend(described.misdescribed()?);
            let rows = manifest.tables[0].rows_suppressed;
            let suppressed = Suppressed { rows, persons: manifest.persons.suppressed };
            let asked = AskedOfOne::new(spec);
            let before = measure_before(original, &asked)?;
            let counted = kohort_verify::verify_against(&tables[0], original, &asked, suppressed, limit_of(spec));
            let rows = vec![original.n_rows as u64];
            let persons = n_persons(original);
            let private = PrivateFacts {
                rows,
                persons,
                before,
                registers: Vec::new(),
                found_and_contradicting: None,
                previous: Vec::new(),
                unread,
            };
            return Ok(Compared { manifest, counted, private: Some(private) });
        }
        let loaded = load_tables(self.job.sources(), spec, progress)?;
        let LoadedTables { tables: originals, schema, .. } = &loaded;
        let (manifest, tables) = self.read_of(originals, progress)?;
        let links = ReleasedLink::of(schema, originals);
        wrong.extend(not_as_asked(&manifest, self.job, &link_manifests(&links)));
        let expected = loaded.columns_of_read(&tables);
        let described = self.described(&manifest, &tables, expected, originals.iter().collect());
        let unread = described.not_compared();
        wrong.extend(described.misdescribed()?);
        let requirements: Vec<Vec<Requirement>> = spec.tables.iter().map(|table| spec.requirements(table)).collect();
        // In a table of persons each row is one person.
        let suppressed = manifest.tables.iter().map(|table| table.rows_suppressed);
        let suppressed: Vec<Suppressed> = suppressed.map(|rows| Suppressed { rows, persons: rows }).collect();
        let against = TablesAgainst {
            originals,
            schema,
            requirements: &requirements,
            suppressed: &suppressed,
            limit: limit_of(spec),
            keys: spec.keys,
        };
        let counted = verify_tables_against(&tables, &against);
        let before = measure_tables(&without_orphans(originals, schema), &links)
            .map_err(|violations| Error::NotMet(violation_reports(&violations.0)))?;
        let private = PrivateFacts {
            rows: originals.iter().map(|table| table.n_rows as u64).collect(),
            persons: schema.roots().into_iter().map(|root| n_persons(&originals[root])).sum(),
            before,
            registers: Vec::new(),
            found_and_contradicting: None,
            previous: Vec::new(),
            unread,
        };
        Ok(Compared { manifest, counted, private: Some(private) })
    }

    /// Compares rows with the private table and its registers.
    fn count_with_registers(
        &self,
        table_spec: &TableSpec,
        wrong: &mut Vec<Report>,
        progress: &dyn Progress,
    ) -> Result<Compared, Error> {
        let spec = &self.job.spec;
        let mut original = load(self.job.sources(), spec, table_spec, progress)?;
        let registers = load_registers(self.job.sources(), spec, &mut original, progress)?;
        let loaded = original;
        let original = &loaded.table;
        let (manifest, tables) = read_release_of(std::slice::from_ref(original), self.release, progress)?;
        let expected = loaded.joined_columns_of_read(&registers.joined, &tables);
        let described = self.described(&manifest, &tables, expected, vec![&registers.joined.rows, original]);
        let unread = described.not_compared();
        wrong.extend(described.misdescribed()?);
        wrong.extend(not_as_asked(&manifest, self.job, &[]));
        wrong.extend(other_registers(&manifest, &registers, self.job));
        let requirements = spec.requirements(table_spec);
        let persons = manifest.persons.suppressed;
        let suppressed = Suppressed { rows: persons, persons };
        let LoadedRegisters { joined, registers: now, earlier: then, .. } = &registers;
        let previous = Previous::read(spec, &self.job.folder, original, joined, (now, then), progress)?;
        let asked = asked_of_join(spec, &requirements, &previous.releases);
        let counted = verify_joined_against(&tables, original, &registers.joined, asked, suppressed);
        let before = measure_before(original, &requirements)?;
        let n_found = registers.joined.persons.iter().filter(|person| **person != InRegister::Absent).count() as u64;
        let facts = |register: &LoadedRegister| RegisterFacts {
            date: register.date.clone(),
            rows: register.rows,
            incomplete: register.incomplete,
        };
        let private = PrivateFacts {
            rows: vec![original.n_rows as u64],
            persons: n_persons(original),
            before,
            registers: registers.registers.iter().map(facts).collect(),
            found_and_contradicting: Some((n_found, registers.contradicting)),
            previous: previous.manifests,
            unread,
        };
        Ok(Compared { manifest, counted, private: Some(private) })
    }

    /// The release, and the description of its cells that its manifest should have.
    fn described<'d>(
        &'d self,
        manifest: &'d Manifest,
        tables: &'d [Table],
        expected: Vec<ColumnManifests>,
        private: Vec<&'d Table>,
    ) -> Described<'d> {
        Described { folder: self.release, manifest, tables, expected, private, spec: &self.job.spec }
    }

    /// Reads the release, which must have as many tables as the spec.
    fn read_of(&self, originals: &[Table], progress: &dyn Progress) -> Result<(Manifest, Vec<Table>), Error> {
        let (manifest, tables) = read_release_of(originals, self.release, progress)?;
        if tables.len() == originals.len() {
            return Ok((manifest, tables));
        }
        let count = |n: usize| if n == 1 { "1 table".to_owned() } else { format!("{n} tables") };
        let (spec, release) = (self.job.place(), self.release.display());
        let message = format!("{spec} has {}, but {release} has {}", count(originals.len()), count(tables.len()));
        Err(Error::input(message, "verify against the spec that the release was made from"))
    }
}

/// Counts what the files of a release show by themselves. `notes` gets what could not be counted.
pub(crate) fn count_alone(
    release: &Path,
    manifest: &Manifest,
    tables: &[Table],
    notes: &mut Vec<String>,
) -> Result<Result<Findings, Violations>, Error> {
    let links = &manifest.links;
    let unknown = || unknown_request(release);
    // With a register the second table holds the sensitive groups of the first.
    let of_spec = if manifest.register.is_some() { manifest.tables.get(..1) } else { Some(&manifest.tables[..]) };
    let asked = asked_of_tables(release, manifest, of_spec.ok_or_else(unknown)?, notes)?;
    if let (Some(register), [asked]) = (&manifest.register, asked.as_slice()) {
        let rows = RegisterRows::from_word(&register.release).ok_or_else(unknown)?;
        let unmatched = register.unmatched.as_deref().map(|word| Unmatched::from_word(word).ok_or_else(unknown));
        let told_apart = match (register.joined_by.as_str(), unmatched.transpose()?) {
            ("key", None) => ToldApart::ByKey,
            // Releases of versions without this choice counted everybody.
            ("values", unmatched) => ToldApart::ByValues(unmatched.unwrap_or(Unmatched::Count)),
            _ => return Err(unknown()),
        };
        let asked = AskedOfJoin {
            requirements: asked,
            delta_presence: manifest.requirement.delta_presence,
            rows,
            told_apart,
            previous: &[],
            limit: SuppressionLimit::share(manifest.requirement.max_suppressed),
        };
        return Ok(verify_joined_alone(tables, asked));
    }
    match (tables, asked.as_slice()) {
        ([table], [asked]) if links.is_empty() => {
            let quasi = table.with_role(Role::Quasi);
            let rows_of = rows_of(manifest, table.n_rows as u64);
            let audiences = asked_for_audiences(&manifest.audiences, &manifest.requirement, asked);
            Ok(match audiences.map_err(|UnknownSetting| unknown())? {
                Some(mut audiences) => {
                    for coalition in &mut audiences.coalitions {
                        // For quasi columns the manifest says how labels are read, so only sensitive columns lack their
                        // hierarchy.
                        let is_sensitive =
                            |name: &str| table.column(name).is_some_and(|column| column.role == Role::Sensitive);
                        set_hidden_aside(&mut coalition.requirements, notes, is_sensitive);
                    }
                    verify_alone(table, &quasi, &audiences, rows_of)
                }
                None => verify_alone(table, &quasi, asked, rows_of),
            })
        }
        ([], _) => {
            let message = format!("{}: manifest.json names no table", release.display());
            Err(Error::input(message, "name a folder that `kohort anonymize` wrote"))
        }
        _ => Ok(verify_tables_alone(tables, &released_links(links), &asked)),
    }
}

/// What the manifest says was asked of each table, as far as it can be counted. `notes` gets the rest.
fn asked_of_tables(
    release: &Path,
    manifest: &Manifest,
    tables: &[TableManifest],
    notes: &mut Vec<String>,
) -> Result<Vec<Vec<Requirement>>, Error> {
    let mut asked = requirements(&manifest.requirement, tables).ok_or_else(|| unknown_request(release))?;
    if manifest.requirement.person_k {
        notes.push("each person's own k can't be recounted from what is released".to_owned());
    }
    asked.iter_mut().for_each(|asked| set_hidden_aside(asked, notes, |_| true));
    Ok(asked)
}

fn unknown_request(release: &Path) -> Error {
    let message = format!("{}: manifest.json asks for something unknown", release.display());
    Error::input(message, "use the version of kohort that wrote the release")
}

/// Whether each row of the only released table is a person.
fn rows_of(manifest: &Manifest, n_rows: u64) -> RowsOf {
    if manifest.persons.n_out == n_rows { RowsOf::PersonsEach } else { RowsOf::PersonsUnnamed }
}

/// Removes requirements that can't be counted without a hierarchy, and notes each of them once.
fn set_hidden_aside(asked: &mut Vec<Requirement>, notes: &mut Vec<String>, lacks_hierarchy: impl Fn(&str) -> bool) {
    let is_hidden = |requirement: &mut Requirement| {
        requirement.distance() == Some(Distance::Hierarchical) && requirement.column().is_some_and(&lacks_hierarchy)
    };
    for requirement in asked.extract_if(.., is_hidden) {
        let column = requirement.column().unwrap_or_default();
        let note = format!(
            "t of '{column}' needs its hierarchy, which is not released; verify against the private tables to count it"
        );
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
}

/// A report for each column that is said to hold pseudonyms and does not, as far as anybody can see without the key.
fn non_pseudonyms(manifest: &Manifest, tables: &[Table]) -> Vec<Report> {
    let of_table = |(entry, table): (&TableManifest, &Table)| -> Vec<Violation> {
        let known = entry.columns.iter().filter(|(_, column)| column.pseudonym.is_some());
        known.filter_map(|(name, _)| find_non_pseudonyms(table.column(name)?)).collect()
    };
    let found: Vec<Violation> = manifest.tables.iter().zip(tables).flat_map(of_table).collect();
    violation_reports(&found)
}

/// A report for each limit that the release exceeds by what the manifest itself says: too many persons were left out, or
/// too many rows of a child table.
fn claims_beyond_limit(manifest: &Manifest) -> Vec<Report> {
    let Manifest { persons, requirement, tables, .. } = manifest;
    let limit = SuppressionLimit::share(requirement.max_suppressed);
    let mut exceeded: Vec<Violation> =
        limit.exceeded(persons.suppressed, persons.n_out.saturating_add(persons.suppressed)).into_iter().collect();
    exceeded.extend(tables.iter().filter_map(|table| {
        let share = *requirement.max_rows_left_out.get(&table.name)?;
        let left_out = table.rows_in.saturating_sub(table.rows_out).max(table.rows_suppressed);
        Some(too_many_rows_left_out(left_out, table.rows_in, share)?.in_table(&table.name))
    }));
    violation_reports(&exceeded)
}

/// The number of persons in a private table.
pub(crate) fn n_persons(table: &Table) -> u64 {
    table.person_column().map_or(table.n_rows, |persons| persons.texts.len()) as u64
}

/// Reports every difference between what the spec asks and what the manifest says was asked.
fn not_as_asked(manifest: &Manifest, job: &Job, links: &[LinkManifest]) -> Vec<Report> {
    let mut wrong = Vec::new();
    let mut claimed = manifest.links.clone();
    let mut links = links.to_vec();
    claimed.sort_unstable();
    links.sort_unstable();
    let hint = "verify against the spec that the release was made from";
    let asked = [serde_json::to_string(&requirement(&job.spec)), serde_json::to_string(&audiences(&job.spec))];
    let claims = [serde_json::to_value(&manifest.requirement), serde_json::to_value(&manifest.audiences)];
    if !asked.into_iter().zip(claims).all(|(asked, claimed)| reads_as(asked, claimed)) {
        let message = format!("{} asks for other requirements than manifest.json names", job.place());
        wrong.push(Report::new(message).hint(hint));
    }
    if links != claimed {
        let message = format!("{} joins tables in another way than manifest.json says", job.place());
        wrong.push(Report::new(message).hint(hint));
    }
    wrong
}

/// Whether JSON text reads as this value. Reading can change the last bit of a fraction, always in the same way. So the
/// spec's requirement is also written and read before it is compared.
fn reads_as(asked: serde_json::Result<String>, claimed: serde_json::Result<serde_json::Value>) -> bool {
    let read = asked.and_then(|asked| serde_json::from_str::<serde_json::Value>(&asked));
    matches!((read, claimed), (Ok(read), Ok(claimed)) if read == claimed)
}

/// Reports every register, or use of a register, that differs from the manifest.
fn other_registers(manifest: &Manifest, read: &LoadedRegisters, job: &Job) -> Vec<Report> {
    let spec = &job.spec;
    let hint = "verify against the spec and the registers that the release was made from";
    let mut wrong = Vec::new();
    let claimed = manifest.registers.iter().map(|register| (&register.name, &register.sha256));
    if !claimed.eq(read.registers.iter().map(|register| (&register.name, &register.sha256))) {
        wrong.push(Report::new(format!("{} has other registers than manifest.json says", job.place())).hint(hint));
    }
    let used = manifest
        .register
        .as_ref()
        .map(|register| (register.release.as_str(), register.joined_by.as_str(), register.unmatched.as_deref()));
    let unmatched = (read.by == JoinedBy::Values).then(|| spec.unmatched().word());
    if used != Some((spec.register.release.word(), joined_by_word(read.by), unmatched)) {
        let message = format!("{} uses registers in another way than manifest.json says", job.place());
        wrong.push(Report::new(message).hint(hint));
    }
    wrong
}

/// Reports for false claims.
pub(crate) fn claim_reports(claims: &ClaimFindings) -> Vec<Report> {
    let hint = "the manifest does not belong to this release: don't trust it";
    claims.wrong.iter().map(|claim| Report::new(claim.to_string()).hint(hint)).collect()
}

/// The counts of the private table, as if its quasi columns were released unchanged.
pub(crate) fn measure_before<'a>(original: &Table, asked: impl Into<Asked<'a>>) -> Result<Findings, Error> {
    measure(original, &original.with_role(Role::Quasi), &[], asked)
        .map_err(|violations| Error::NotMet(violation_reports(&violations.0)))
}
