//! `kohort verify`: counts a release again, from its files and its manifest alone, or against the private tables.

use std::path::{Path, PathBuf};

use clap::Args;
use kohort_io::{
    ColumnManifests, JoinedBy, LinkManifest, LoadedRegister, LoadedRegisters, LoadedTables, TablesManifest, load,
    load_registers, load_tables, read_release, read_release_of,
};
use kohort_model::spec::{RegisterRows, TableSpec, Unmatched};
use kohort_model::{Coalition, Distance, InRegister, Manifest, Progress, Requirement, Role, Spec, Table};
use kohort_verify::{
    Asked, AskedOfJoin, ClaimFindings, Claims, Findings, PrivateFacts, RegisterFacts, ReleasedLink, RowsOf, Skipped,
    Suppressed, SuppressionLimit, ToldApart, Violation, Violations, check_claims, measure, measure_tables,
    verify_against, verify_alone, verify_joined_against, verify_joined_alone, verify_tables_against,
    verify_tables_alone,
};

use super::{Output, Verdict};
use crate::described::Described;
use crate::failure::{Failure, Report, Status, violation_reports};
use crate::files::{folder_of, read_spec};
use crate::job::{AskedOfOne, asked_of_join, limit_of, without_orphans};
use crate::manifest::{
    UnknownSetting, asked_for_audiences, audiences, joined_by_word, link_manifests, released_links, requirement,
    requirements,
};
use crate::progress::Bars;
use crate::render::findings;
use crate::terminal;

const EXAMPLES: &str = "\
Examples:
  kohort verify out/
  kohort verify out/ --against release.toml         also that it is a truthful recoding of the private tables";

/// Count a release again, from its files alone or against the private tables
///
/// Exit codes: 0 verified, as far as what was given shows. 1 a requirement is not met, or the release is not truthful. 2
/// wrong use or input. 3 I/O. 4 can't tell: with --against, whether the release can have come from the private tables was
/// not decided.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Verify {
    /// The folder of the release
    release: PathBuf,
    /// The spec it was made from: also checks that the release is a truthful recoding of the spec's tables
    #[arg(long, value_name = "SPEC")]
    against: Option<PathBuf>,
    /// How many threads; all cores without it
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Verify {
    pub(crate) fn output(&self) -> Output {
        Output::from_flag(self.json)
    }

    pub(crate) fn run(&self) -> Result<Verdict, Failure> {
        super::use_threads(self.threads)?;
        let bars = Bars::new();
        let judged = self.judge(&bars)?;
        bars.clear();
        let shown = judged.shown();
        terminal::print(&self.render(&judged, shown))?;
        if judged.wrong.is_empty() { Ok(Verdict::Done) } else { Ok(Verdict::NotMet(judged.wrong)) }
    }

    /// Counts a release, and compares what its manifest claims.
    fn judge(&self, progress: &dyn Progress) -> Result<Judged, Failure> {
        let mut notes = Vec::new();
        let mut wrong = Vec::new();
        let (manifest, counted, private) = match &self.against {
            None => {
                let (manifest, tables) = read_release(&self.release, progress)?;
                let counted = count_alone(&self.release, &manifest, &tables, &mut notes)?;
                wrong.extend(claims_beyond_limit(&manifest.manifest));
                (manifest, counted, None)
            }
            Some(spec) => {
                let Compared { manifest, counted, private } = self.count_against(spec, &mut wrong, progress)?;
                (manifest, counted, Some(private))
            }
        };
        if manifest.manifest.previous.is_some() {
            notes.push("what readers of earlier releases learn is counted when a release is made".to_owned());
        }
        let found = match counted {
            Ok(found) => found,
            Err(violations) => {
                let is_undecided = wrong.is_empty() && violations.0.iter().all(Violation::is_undecided);
                wrong.extend(violation_reports(&violations.0));
                return Err(Failure::new(if is_undecided { Status::CannotTell } else { Status::NotMet }, wrong));
            }
        };
        // What is said of figures, or of presence where nothing bounds it, takes nothing away from what was asked.
        let takes_away = |skipped: &Skipped| match skipped {
            Skipped::Figures => false,
            Skipped::Presence => manifest.manifest.requirement.delta_presence.is_some(),
            _ => true,
        };
        let holds = if notes.is_empty() && !found.skipped.iter().any(takes_away) { Holds::All } else { Holds::InPart };
        notes.extend(found.skipped.iter().map(ToString::to_string));
        let claims = compare_claims(&manifest, &found, private.as_ref());
        wrong.extend(claim_reports(&claims));
        Ok(Judged { manifest: manifest.manifest, found, holds, notes, claims, wrong })
    }

    /// Counts persons, and compares rows with the private tables.
    fn count_against(
        &self,
        path: &Path,
        wrong: &mut Vec<Report>,
        progress: &dyn Progress,
    ) -> Result<Compared, Failure> {
        let spec = read_spec(path)?;
        let folder = folder_of(path);
        if let [table_spec] = spec.tables.as_slice()
            && !spec.registers.is_empty()
        {
            return self.count_against_registers(path, &spec, table_spec, wrong, progress);
        }
        if let [table_spec] = spec.tables.as_slice()
            && !spec.links_rows()
        {
            let loaded = load(folder, &spec, table_spec, progress)?;
            let original = &loaded.table;
            let (manifest, tables) = self.read_of(std::slice::from_ref(original), path, progress)?;
            wrong.extend(not_as_asked(&manifest, &spec, path, &[]));
            let expected = vec![loaded.columns_of_read(&tables[0])];
            wrong.extend(self.misdescribed(&spec, &manifest, &tables, expected, vec![original])?);
            let rows = manifest.manifest.tables[0].rows_suppressed;
            let suppressed = Suppressed { rows, persons: manifest.manifest.persons.suppressed };
            let asked = AskedOfOne::new(&spec);
            let before = measure_before(original, &asked)?;
            let counted = verify_against(&tables[0], original, &asked, suppressed, limit_of(&spec));
            let rows = vec![original.n_rows as u64];
            let persons = n_persons(original);
            let private = PrivateFacts { rows, persons, before, registers: Vec::new(), found_and_contradicting: None };
            return Ok(Compared { manifest, counted, private });
        }
        let loaded = load_tables(folder, &spec, progress)?;
        let LoadedTables { tables: originals, schema, .. } = &loaded;
        let (manifest, tables) = self.read_of(originals, path, progress)?;
        let links = ReleasedLink::of(schema, originals);
        wrong.extend(not_as_asked(&manifest, &spec, path, &link_manifests(&links)));
        let expected = loaded.columns_of_read(&tables);
        wrong.extend(self.misdescribed(&spec, &manifest, &tables, expected, originals.iter().collect())?);
        let requirements: Vec<Vec<Requirement>> = spec.tables.iter().map(|table| spec.requirements(table)).collect();
        // In a table of persons each row is one.
        let suppressed = manifest.manifest.tables.iter().map(|table| table.rows_suppressed);
        let suppressed: Vec<Suppressed> = suppressed.map(|rows| Suppressed { rows, persons: rows }).collect();
        let (limit, keys) = (limit_of(&spec), spec.keys);
        let counted = verify_tables_against(&tables, originals, schema, &requirements, &suppressed, limit, keys);
        let before = measure_tables(&without_orphans(originals, schema), &links)
            .map_err(|violations| Failure::new(Status::NotMet, violation_reports(&violations.0)))?;
        let private = PrivateFacts {
            rows: originals.iter().map(|table| table.n_rows as u64).collect(),
            persons: schema.roots().into_iter().map(|root| n_persons(&originals[root])).sum(),
            before,
            registers: Vec::new(),
            found_and_contradicting: None,
        };
        Ok(Compared { manifest, counted, private })
    }

    /// Compares rows with the private table and its registers.
    fn count_against_registers(
        &self,
        path: &Path,
        spec: &Spec,
        table_spec: &TableSpec,
        wrong: &mut Vec<Report>,
        progress: &dyn Progress,
    ) -> Result<Compared, Failure> {
        let folder = folder_of(path);
        let mut original = load(folder, spec, table_spec, progress)?;
        let registers = load_registers(folder, spec, &mut original, progress)?;
        let loaded = original;
        let original = &loaded.table;
        let (manifest, tables) = read_release_of(std::slice::from_ref(original), &self.release, progress)?;
        let expected = loaded.joined_columns_of_read(&registers.joined, &tables);
        let private = vec![&registers.joined.rows, original];
        wrong.extend(self.misdescribed(spec, &manifest, &tables, expected, private)?);
        wrong.extend(not_as_asked(&manifest, spec, path, &[]));
        wrong.extend(other_registers(&manifest.manifest, &registers, spec, path));
        let requirements = spec.requirements(table_spec);
        let persons = manifest.manifest.persons.suppressed;
        let suppressed = Suppressed { rows: persons, persons };
        let asked = asked_of_join(spec, &requirements, &[]);
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
        };
        Ok(Compared { manifest, counted, private })
    }

    /// What the manifest says about cells and is not so.
    fn misdescribed(
        &self,
        spec: &Spec,
        manifest: &TablesManifest,
        tables: &[Table],
        expected: Vec<ColumnManifests>,
        private: Vec<&Table>,
    ) -> Result<Vec<Report>, Failure> {
        let TablesManifest { manifest, .. } = manifest;
        Described { folder: &self.release, manifest, tables, expected, private, spec }.misdescribed()
    }

    /// The release of as many private tables.
    fn read_of(
        &self,
        originals: &[Table],
        spec: &Path,
        progress: &dyn Progress,
    ) -> Result<(TablesManifest, Vec<Table>), Failure> {
        let (manifest, tables) = read_release_of(originals, &self.release, progress)?;
        if tables.len() == originals.len() {
            return Ok((manifest, tables));
        }
        let count = |n: usize| if n == 1 { "1 table".to_owned() } else { format!("{n} tables") };
        let (spec, release) = (spec.display(), self.release.display());
        let message = format!("{spec} has {}, and {release} {}", count(originals.len()), count(tables.len()));
        Err(Failure::input(message, "verify against the spec that the release was made from"))
    }

    fn render(&self, judged: &Judged, shown: Shown) -> String {
        let Judged { manifest, found, notes, claims, .. } = judged;
        match self.output() {
            Output::Words => {
                let mut text = findings::words(found);
                text += &format!("\nasked            {}\n", asked_k(manifest));
                for note in notes {
                    text += &format!("not counted      {note}\n");
                }
                text += &keys("as manifest says", &claims.taken);
                text += &keys("not confirmed", &claims.unconfirmed);
                let by = match &self.against {
                    None => "from the released files alone",
                    Some(_) if found.joined.is_some() => "against the private table and its registers",
                    Some(_) if found.tables.is_empty() => "against the private table",
                    Some(_) => "against the private tables",
                };
                text += &match shown {
                    Shown::NotMet => "verified         no\n".to_owned(),
                    Shown::InPart => format!("verified         what was counted, {by}\n"),
                    Shown::Everything => format!("verified         yes, {by}\n"),
                };
                text
            }
            Output::Json => {
                let mut object = findings::object(found);
                object.insert("verified".to_owned(), (shown != Shown::NotMet).into());
                object.insert("verdict".to_owned(), shown.word().into());
                object.insert("against".to_owned(), self.against.is_some().into());
                object.insert("not_counted".to_owned(), notes.clone().into());
                object.insert("as_manifest_says".to_owned(), claims.taken.clone().into());
                object.insert("not_confirmed".to_owned(), claims.unconfirmed.clone().into());
                format!("{:#}\n", serde_json::Value::Object(object))
            }
        }
    }
}

/// A line of keys of the manifest, as many lines as they need.
fn keys(label: &str, keys: &[String]) -> String {
    const WIDTH: usize = 100;
    let mut text = String::new();
    let mut line = format!("{label:<17}");
    for (position, key) in keys.iter().enumerate() {
        let word = if position + 1 < keys.len() { format!("{key}, ") } else { key.clone() };
        if line.len() + word.trim_end().len() > WIDTH {
            text += line.trim_end();
            text.push('\n');
            line = format!("{:<17}", "");
        }
        line += &word;
    }
    if keys.is_empty() { text } else { text + line.trim_end() + "\n" }
}

/// A release, what its private tables say of it, and what is known of them.
struct Compared {
    manifest: TablesManifest,
    counted: Result<Findings, Violations>,
    private: PrivateFacts,
}

/// A release that could be counted.
struct Judged {
    manifest: Manifest,
    found: Findings,
    /// How much of what was asked was counted.
    holds: Holds,
    /// What was not counted.
    notes: Vec<String>,
    claims: ClaimFindings,
    /// What is wrong; nothing where the release is verified.
    wrong: Vec<Report>,
}

/// How much of what was asked was counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    All,
    InPart,
}

impl Judged {
    fn shown(&self) -> Shown {
        match (self.wrong.is_empty(), self.holds) {
            (false, _) => Shown::NotMet,
            (true, Holds::InPart) => Shown::InPart,
            (true, Holds::All) => Shown::Everything,
        }
    }
}

/// What was shown of a release that could be counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// Something asked does not hold, or something claimed is not so.
    NotMet,
    /// Whatever could be counted holds; the rest can't be seen in what was given.
    InPart,
    /// Everything asked holds.
    Everything,
}

impl Shown {
    /// For programs.
    fn word(self) -> &'static str {
        match self {
            Shown::NotMet => "not_met",
            Shown::InPart => "in_part",
            Shown::Everything => "verified",
        }
    }
}

/// Counts what the files of a release show by themselves; `notes` get what they don't.
pub(crate) fn count_alone(
    release: &Path,
    manifest: &TablesManifest,
    tables: &[Table],
    notes: &mut Vec<String>,
) -> Result<Result<Findings, Violations>, Failure> {
    let TablesManifest { manifest, links, .. } = manifest;
    let unknown = || {
        let message = format!("{}: manifest.json asks for something unknown", release.display());
        Failure::input(message, "use the version that wrote it")
    };
    // Beside a register the second table holds sensitive groups of the first.
    let of_spec = if manifest.register.is_some() { manifest.tables.get(..1) } else { Some(&manifest.tables[..]) };
    let mut asked = of_spec.and_then(|tables| requirements(&manifest.requirement, tables)).ok_or_else(unknown)?;
    if manifest.requirement.person_k {
        notes.push("each person's own k can't be recounted from what is released".to_owned());
    }
    asked.iter_mut().for_each(|asked| set_hidden_aside(asked, notes, |_| true));
    if let (Some(register), [asked]) = (&manifest.register, asked.as_slice()) {
        let rows = RegisterRows::from_word(&register.release).ok_or_else(unknown)?;
        let unmatched = register.unmatched.as_deref().map(|word| Unmatched::from_word(word).ok_or_else(unknown));
        let told_apart = match (register.joined_by.as_str(), unmatched.transpose()?) {
            ("key", None) => ToldApart::ByKey,
            // Releases of before there was a choice counted everybody.
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
            let is_each = manifest.persons.n_out == table.n_rows as u64;
            let rows_of = if is_each { RowsOf::PersonsEach } else { RowsOf::PersonsUnnamed };
            let audiences = asked_for_audiences(&manifest.audiences, &manifest.requirement, asked);
            Ok(match audiences.map_err(|UnknownSetting| unknown())? {
                Some(mut audiences) => {
                    for coalition in &mut audiences.coalitions {
                        // Of quasi columns the manifest says how labels are read.
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
            Err(Failure::input(message, "name a folder that `kohort anonymize` wrote"))
        }
        _ => Ok(verify_tables_alone(tables, &released_links(links), &asked)),
    }
}

/// Takes out what can't be counted without a hierarchy, and says so once.
fn set_hidden_aside(asked: &mut Vec<Requirement>, notes: &mut Vec<String>, lacks_hierarchy: impl Fn(&str) -> bool) {
    let is_hidden = |requirement: &mut Requirement| {
        requirement.distance() == Some(Distance::Hierarchical) && requirement.column().is_some_and(&lacks_hierarchy)
    };
    for requirement in asked.extract_if(.., is_hidden) {
        let column = requirement.column().unwrap_or_default();
        let note = format!("t of '{column}' needs its hierarchy, which is not released: see --against");
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
}

/// Too many persons left out, by what the manifest itself says.
fn claims_beyond_limit(manifest: &Manifest) -> Vec<Report> {
    let Manifest { persons, requirement, .. } = manifest;
    let limit = SuppressionLimit::share(requirement.max_suppressed);
    violation_reports(limit.exceeded(persons.suppressed, persons.n_out.saturating_add(persons.suppressed)).as_slice())
}

/// How many persons a private table has.
fn n_persons(table: &Table) -> u64 {
    table.person_column().map_or(table.n_rows, |persons| persons.texts.len()) as u64
}

/// Which k was asked, of whom.
fn asked_k(manifest: &Manifest) -> String {
    if manifest.audiences.is_empty() {
        return format!("k = {}", manifest.requirement.k);
    }
    let of_each = manifest.audiences.iter().map(|(name, audience)| format!("{} for {name}", audience.k));
    let together = manifest.requirement.coalitions.iter().filter_map(|(name, coalition)| {
        let who = if name == Coalition::ALL { "all together" } else { name };
        Some(format!("{} for {who}", coalition.k?))
    });
    format!("k = {}", of_each.chain(together).collect::<Vec<_>>().join(", "))
}

/// What a manifest says was asked, where the spec asks for something else.
fn not_as_asked(manifest: &TablesManifest, spec: &Spec, path: &Path, links: &[LinkManifest]) -> Vec<Report> {
    let mut wrong = Vec::new();
    let TablesManifest { manifest, links: claimed, .. } = manifest;
    let mut claimed = claimed.clone();
    let mut links = links.to_vec();
    claimed.sort_unstable();
    links.sort_unstable();
    let hint = "verify against the spec that the release was made from";
    let asked = [serde_json::to_string(&requirement(spec)), serde_json::to_string(&audiences(spec))];
    let claims = [serde_json::to_value(&manifest.requirement), serde_json::to_value(&manifest.audiences)];
    if !asked.into_iter().zip(claims).all(|(asked, claimed)| reads_as(asked, claimed)) {
        let message = format!("{} asks for something else than manifest.json says was asked", path.display());
        wrong.push(Report::new(message).hint(hint));
    }
    if links != claimed {
        let message = format!("{} joins tables otherwise than manifest.json says", path.display());
        wrong.push(Report::new(message).hint(hint));
    }
    wrong
}

/// Whether JSON reads as this value. Reading can change the last bit of a fraction, and does so in the same way each time,
/// so what is asked is compared after it was written and read as the manifest was.
fn reads_as(asked: serde_json::Result<String>, claimed: serde_json::Result<serde_json::Value>) -> bool {
    let read = asked.and_then(|asked| serde_json::from_str::<serde_json::Value>(&asked));
    matches!((read, claimed), (Ok(read), Ok(claimed)) if read == claimed)
}

/// Registers that are not those of the manifest, or are used otherwise.
fn other_registers(manifest: &Manifest, read: &LoadedRegisters, spec: &Spec, path: &Path) -> Vec<Report> {
    let hint = "verify against the spec and the registers that the release was made from";
    let mut wrong = Vec::new();
    let claimed = manifest.registers.iter().map(|register| (&register.name, &register.sha256));
    if !claimed.eq(read.registers.iter().map(|register| (&register.name, &register.sha256))) {
        wrong.push(Report::new(format!("{} has other registers than manifest.json says", path.display())).hint(hint));
    }
    let used = manifest
        .register
        .as_ref()
        .map(|register| (register.release.as_str(), register.joined_by.as_str(), register.unmatched.as_deref()));
    let unmatched = (read.by == JoinedBy::Values).then(|| spec.unmatched().word());
    if used != Some((spec.register.release.word(), joined_by_word(read.by), unmatched)) {
        let message = format!("{} uses registers otherwise than manifest.json says", path.display());
        wrong.push(Report::new(message).hint(hint));
    }
    wrong
}

/// What became of the claims of a manifest.
pub(crate) fn compare_claims(
    manifest: &TablesManifest,
    found: &Findings,
    private: Option<&PrivateFacts>,
) -> ClaimFindings {
    let TablesManifest { manifest, links: _, references, table_loss } = manifest;
    let references: Vec<(&str, &str, u64)> =
        references.iter().map(|entry| (entry.table.as_str(), entry.column.as_str(), entry.kept)).collect();
    check_claims(Claims { manifest, references: &references, table_loss }, found, private)
}

/// Claims that are not so.
pub(crate) fn claim_reports(claims: &ClaimFindings) -> Vec<Report> {
    let hint = "the manifest is not this release's: don't trust it";
    claims.wrong.iter().map(|claim| Report::new(claim.to_string()).hint(hint)).collect()
}

/// The private table, if its quasi columns were released as they are.
fn measure_before<'a>(original: &Table, asked: impl Into<Asked<'a>>) -> Result<Findings, Failure> {
    measure(original, &original.with_role(Role::Quasi), &[], asked)
        .map_err(|violations| Failure::new(Status::NotMet, violation_reports(&violations.0)))
}

#[cfg(test)]
mod mutations;
