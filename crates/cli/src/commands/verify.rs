//! `kohort verify`: counts a release again, from its files and its manifest alone, or against the private tables.

use std::path::{Path, PathBuf};

use clap::Args;
use kohort_io::{
    LinkManifest, LoadedRegisters, LoadedTables, TablesManifest, load, load_registers, load_tables, read_release,
    read_release_of,
};
use kohort_model::spec::{RegisterRows, TableSpec};
use kohort_model::{AchievedSensitive, Distance, Manifest, Persons, Requirement, Role, Spec, Table, TableManifest};
use kohort_verify::{
    AskedOfJoin, Counted, Findings, ReleasedLink, Skipped, Suppressed, Violations, verify_against, verify_alone,
    verify_joined_against, verify_joined_alone, verify_tables_against, verify_tables_alone,
};

use super::{Output, Verdict};
use crate::failure::{Failure, Report, Status, violation_reports};
use crate::files::{folder_of, read_spec};
use crate::job::asked_of_join;
use crate::manifest::{
    achieved, asked_for_audiences, audiences, is_within_limit, joined_by_word, link_manifests, released_links,
    requirement, requirements,
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
/// Exit code 0: the release satisfies what its manifest says. 1: it does not, or is not truthful.
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
        let mut notes = Vec::new();
        let mut wrong = Vec::new();
        let (manifest, counted) = match &self.against {
            None => {
                let (manifest, tables) = read_release(&self.release, &bars)?;
                let counted = count_alone(&self.release, &manifest, &tables, &mut notes)?;
                (manifest, counted)
            }
            Some(spec) => self.count_against(spec, &mut wrong, &bars)?,
        };
        let TablesManifest { manifest, .. } = manifest;
        if manifest.previous.is_some() {
            notes.push("what readers of earlier releases learn is counted when a release is made".to_owned());
        }
        bars.clear();
        let found = match counted {
            Ok(found) => found,
            Err(violations) => {
                wrong.extend(violation_reports(&violations.0));
                return Err(Failure::new(Status::NotMet, wrong));
            }
        };
        notes.extend(found.skipped.iter().map(ToString::to_string));
        wrong.extend(differences(&manifest, &found));
        terminal::print(&self.render(&manifest, &found, &notes, wrong.is_empty()))?;
        if wrong.is_empty() { Ok(Verdict::Done) } else { Ok(Verdict::NotMet(wrong)) }
    }

    /// Counts persons, and compares rows with the private tables.
    fn count_against(
        &self,
        path: &Path,
        wrong: &mut Vec<Report>,
        bars: &Bars,
    ) -> Result<(TablesManifest, Result<Findings, Violations>), Failure> {
        let spec = read_spec(path)?;
        let folder = folder_of(path);
        if let [table_spec] = spec.tables.as_slice()
            && !spec.registers.is_empty()
        {
            return self.count_against_registers(path, &spec, table_spec, wrong, bars);
        }
        if let [table_spec] = spec.tables.as_slice() {
            let original = load(folder, &spec, table_spec, bars)?.table;
            let (manifest, tables) = self.read_of(std::slice::from_ref(&original), path, bars)?;
            wrong.extend(not_as_asked(&manifest, &spec, path, &[]));
            let rows = manifest.manifest.tables[0].rows_suppressed;
            let suppressed = Suppressed { rows, persons: manifest.manifest.persons.suppressed };
            let counted = match spec.audiences_of(table_spec) {
                Some(audiences) => verify_against(&tables[0], &original, &audiences, suppressed),
                None => verify_against(&tables[0], &original, &spec.requirements(table_spec), suppressed),
            };
            return Ok((manifest, counted));
        }
        let LoadedTables { tables: originals, schema, .. } = load_tables(folder, &spec, bars)?;
        let (manifest, tables) = self.read_of(&originals, path, bars)?;
        let links = link_manifests(&ReleasedLink::of(&schema, &originals));
        wrong.extend(not_as_asked(&manifest, &spec, path, &links));
        let requirements: Vec<Vec<Requirement>> = spec.tables.iter().map(|table| spec.requirements(table)).collect();
        // In a table of persons each row is one.
        let suppressed = manifest.manifest.tables.iter().map(|table| table.rows_suppressed);
        let suppressed: Vec<Suppressed> = suppressed.map(|rows| Suppressed { rows, persons: rows }).collect();
        let counted = verify_tables_against(&tables, &originals, &schema, &requirements, &suppressed);
        Ok((manifest, counted))
    }

    /// Compares rows with the private table and its registers.
    fn count_against_registers(
        &self,
        path: &Path,
        spec: &Spec,
        table_spec: &TableSpec,
        wrong: &mut Vec<Report>,
        bars: &Bars,
    ) -> Result<(TablesManifest, Result<Findings, Violations>), Failure> {
        let folder = folder_of(path);
        let mut original = load(folder, spec, table_spec, bars)?;
        let registers = load_registers(folder, spec, &mut original, bars)?;
        let original = original.table;
        let (manifest, tables) = read_release_of(std::slice::from_ref(&original), &self.release, bars)?;
        wrong.extend(not_as_asked(&manifest, spec, path, &[]));
        wrong.extend(other_registers(&manifest.manifest, &registers, spec, path));
        let requirements = spec.requirements(table_spec);
        let persons = manifest.manifest.persons.suppressed;
        let suppressed = Suppressed { rows: persons, persons };
        let asked = asked_of_join(spec, &requirements, &[]);
        let counted = verify_joined_against(&tables, &original, &registers.joined, asked, suppressed);
        Ok((manifest, counted))
    }

    /// The release of as many private tables.
    fn read_of(&self, originals: &[Table], spec: &Path, bars: &Bars) -> Result<(TablesManifest, Vec<Table>), Failure> {
        let (manifest, tables) = read_release_of(originals, &self.release, bars)?;
        if tables.len() == originals.len() {
            return Ok((manifest, tables));
        }
        let count = |n: usize| if n == 1 { "1 table".to_owned() } else { format!("{n} tables") };
        let (spec, release) = (spec.display(), self.release.display());
        let message = format!("{spec} has {}, and {release} {}", count(originals.len()), count(tables.len()));
        Err(Failure::input(message, "verify against the spec that the release was made from"))
    }

    fn render(&self, manifest: &Manifest, found: &Findings, notes: &[String], is_verified: bool) -> String {
        match self.output() {
            Output::Words => {
                let mut text = findings::words(found);
                text += &format!("\nasked            {}\n", asked_k(manifest));
                for note in notes {
                    text += &format!("not counted      {note}\n");
                }
                text += match (is_verified, &self.against) {
                    (false, _) => "verified         no\n",
                    (true, None) => "verified         yes, from the released files alone\n",
                    (true, Some(_)) if found.joined.is_some() => {
                        "verified         yes, against the private table and its registers\n"
                    }
                    (true, Some(_)) if found.tables.is_empty() => "verified         yes, against the private table\n",
                    (true, Some(_)) => "verified         yes, against the private tables\n",
                };
                text
            }
            Output::Json => {
                let mut object = findings::object(found);
                object.insert("verified".to_owned(), is_verified.into());
                object.insert("against".to_owned(), self.against.is_some().into());
                object.insert("not_counted".to_owned(), notes.to_vec().into());
                format!("{:#}\n", serde_json::Value::Object(object))
            }
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
    let n_persons = manifest.persons.n_out;
    if let [table] = tables
        && n_persons != table.n_rows as u64
        && table.person.is_none()
        && manifest.register.is_none()
    {
        let n_rows = table.n_rows;
        notes.push(format!("{n_persons} persons have {n_rows} rows, and nothing released tells whose: see --against"));
    }
    for asked in &mut asked {
        let is_hidden = |requirement: &mut Requirement| {
            matches!(requirement, Requirement::TCloseness { distance: Distance::Hierarchical, .. })
        };
        for requirement in asked.extract_if(.., is_hidden) {
            let column = requirement.column().unwrap_or_default();
            notes.push(format!("t of '{column}' needs its hierarchy, which is not released: see --against"));
        }
    }
    if let (Some(register), [asked]) = (&manifest.register, asked.as_slice()) {
        let rows = RegisterRows::from_word(&register.release).ok_or_else(unknown)?;
        let asked = AskedOfJoin {
            requirements: asked,
            delta_presence: manifest.requirement.delta_presence,
            rows,
            previous: &[],
        };
        return Ok(verify_joined_alone(tables, asked));
    }
    match (tables, asked.as_slice()) {
        ([table], [asked]) => {
            let quasi = table.with_role(Role::Quasi);
            Ok(match asked_for_audiences(&manifest.audiences, &manifest.requirement, asked) {
                Some(audiences) => verify_alone(table, &quasi, &audiences),
                None => verify_alone(table, &quasi, asked),
            })
        }
        ([], _) => {
            let message = format!("{}: manifest.json names no table", release.display());
            Err(Failure::input(message, "name a folder that `kohort anonymize` wrote"))
        }
        _ => Ok(verify_tables_alone(tables, &released_links(links), &asked)),
    }
}

/// Which k was asked, of whom.
fn asked_k(manifest: &Manifest) -> String {
    if manifest.audiences.is_empty() {
        return format!("k = {}", manifest.requirement.k);
    }
    let of_each = manifest.audiences.iter().map(|(name, audience)| format!("{} for {name}", audience.k));
    let together = manifest.requirement.collusion_k.map(|k| format!("{k} for all together"));
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
    if requirement(spec) != manifest.requirement || audiences(spec) != manifest.audiences {
        let message = format!("{} asks for something else than manifest.json says was asked", path.display());
        wrong.push(Report::new(message).hint(hint));
    }
    if links != claimed {
        let message = format!("{} joins tables otherwise than manifest.json says", path.display());
        wrong.push(Report::new(message).hint(hint));
    }
    // Of several tables those that hang off none are of persons, each row one.
    let is_of_persons = |table: &&TableManifest| links.iter().all(|link| link.table != table.name);
    let persons: Vec<Persons> = match manifest.tables.as_slice() {
        _ if manifest.register.is_some() => vec![manifest.persons],
        [_] => vec![manifest.persons],
        tables => tables.iter().filter(is_of_persons).map(persons_of_rows).collect(),
    };
    if persons.into_iter().any(|persons| !is_within_limit(persons, spec.max_suppressed)) {
        wrong.push(Report::new("more persons were left out than max_suppressed allows"));
    }
    wrong
}

/// Registers that are not those of the manifest, or are used otherwise.
fn other_registers(manifest: &Manifest, read: &LoadedRegisters, spec: &Spec, path: &Path) -> Vec<Report> {
    let hint = "verify against the spec and the registers that the release was made from";
    let mut wrong = Vec::new();
    let claimed = manifest.registers.iter().map(|register| (&register.name, &register.sha256));
    if !claimed.eq(read.registers.iter().map(|register| (&register.name, &register.sha256))) {
        wrong.push(Report::new(format!("{} has other registers than manifest.json says", path.display())).hint(hint));
    }
    let used = manifest.register.as_ref().map(|register| (register.release.as_str(), register.joined_by.as_str()));
    if used != Some((spec.register.release.word(), joined_by_word(read.by))) {
        let message = format!("{} uses registers otherwise than manifest.json says", path.display());
        wrong.push(Report::new(message).hint(hint));
    }
    wrong
}

fn persons_of_rows(table: &TableManifest) -> Persons {
    Persons { n_in: table.rows_in, n_out: table.rows_out, suppressed: table.rows_suppressed }
}

/// Figures of the manifest that are not those counted.
pub(crate) fn differences(manifest: &Manifest, found: &Findings) -> Vec<Report> {
    let mut differences = Vec::new();
    let mut compare = |what: String, claimed: f64, counted: f64| {
        if (claimed - counted).abs() > 1e-6 {
            let message = format!("manifest.json says {what} = {claimed}, and {counted} was counted");
            differences.push(Report::new(message).hint("the manifest is not this release's: don't trust it"));
        }
    };
    compare("classes".to_owned(), manifest.classes as f64, found.classes as f64);
    if let Some(joined) = &found.joined {
        let register = manifest.register.as_ref();
        let claimed = register.map_or(0, |register| register.sensitive_groups);
        compare("register.sensitive_groups".to_owned(), claimed as f64, joined.groups as f64);
        if let Some(group_k) = joined.group_k {
            let claimed = register.and_then(|register| register.group_k).unwrap_or(0);
            compare("register.group_k".to_owned(), claimed as f64, group_k as f64);
            compare("persons.out".to_owned(), manifest.persons.n_out as f64, found.persons as f64);
        }
        compare_sensitive(manifest, found, &mut compare);
        if manifest.achieved.k > found.k && !found.skipped.contains(&Skipped::Crowd) {
            compare("achieved.k".to_owned(), manifest.achieved.k as f64, found.k as f64);
        }
        return differences;
    }
    // Where persons have several rows and can't be told apart, rows were counted, and the figures are others.
    let is_comparable = found.counted == Counted::Persons || found.rows == manifest.persons.n_out;
    if is_comparable {
        compare("persons.out".to_owned(), manifest.persons.n_out as f64, found.persons as f64);
        compare("achieved.k".to_owned(), manifest.achieved.k as f64, found.k as f64);
        compare("risk.highest.after".to_owned(), manifest.risk.highest.after, found.highest_risk);
        compare("risk.average.after".to_owned(), manifest.risk.average.after, found.average_risk);
        let counted = achieved(found);
        for (audience, &k) in &counted.audiences {
            let claimed = manifest.achieved.audiences.get(audience).copied().unwrap_or(0);
            compare(format!("achieved.audiences.{audience}"), claimed as f64, k as f64);
        }
        if let Some(k) = counted.collusion_k {
            let claimed = manifest.achieved.collusion_k.unwrap_or(0);
            compare("achieved.collusion_k".to_owned(), claimed as f64, k as f64);
        }
        compare_sensitive(manifest, found, &mut compare);
    }
    differences
}

fn compare_sensitive(manifest: &Manifest, found: &Findings, compare: &mut impl FnMut(String, f64, f64)) {
    let counted = achieved(found);
    for (column, claimed) in &manifest.achieved.sensitive {
        let Some(counted) = counted.sensitive.get(column) else { continue };
        let figures = |figures: &AchievedSensitive| {
            [
                ("l", figures.l as f64),
                ("entropy_l", figures.entropy_l),
                ("t", figures.t),
                ("alpha", figures.alpha),
                ("beta", figures.beta),
            ]
        };
        for ((key, claimed), (_, counted)) in figures(claimed).into_iter().zip(figures(counted)) {
            compare(format!("achieved.sensitive.{column}.{key}"), claimed, counted);
        }
    }
}
