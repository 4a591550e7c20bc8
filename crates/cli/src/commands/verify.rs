//! `kohort verify`: counts a release again, from its files and its manifest alone, or against the private tables.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use kohort_io::{
    ColumnManifests, JoinedBy, LinkManifest, LoadedRegisters, LoadedTables, TablesManifest, load, load_registers,
    load_tables, read_release, read_release_of,
};
use kohort_model::spec::{RegisterRows, TableSpec, Unmatched};
use kohort_model::{
    AchievedLearned, AchievedSensitive, Coalition, Distance, InRegister, Manifest, Requirement, Role, Spec, Table,
};
use kohort_verify::{
    AskedOfJoin, Counted, Findings, ReleasedLink, RowsOf, Skipped, Suppressed, SuppressionLimit, ToldApart, Violation,
    Violations, verify_against, verify_alone, verify_joined_against, verify_joined_alone, verify_tables_against,
    verify_tables_alone,
};

use super::{Output, Verdict};
use crate::described::Described;
use crate::failure::{Failure, Report, Status, violation_reports};
use crate::files::{folder_of, read_spec};
use crate::job::{asked_of_join, limit_of};
use crate::manifest::{
    UnknownSetting, achieved, asked_for_audiences, audiences, joined_by_word, link_manifests, released_links,
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
        let mut notes = Vec::new();
        let mut wrong = Vec::new();
        let (manifest, counted) = match &self.against {
            None => {
                let (manifest, tables) = read_release(&self.release, &bars)?;
                let counted = count_alone(&self.release, &manifest, &tables, &mut notes)?;
                wrong.extend(claims_beyond_limit(&manifest.manifest));
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
                let is_undecided = wrong.is_empty() && violations.0.iter().all(Violation::is_undecided);
                wrong.extend(violation_reports(&violations.0));
                return Err(Failure::new(if is_undecided { Status::CannotTell } else { Status::NotMet }, wrong));
            }
        };
        // What is said of figures, or of presence where nothing bounds it, takes nothing away from what was asked.
        let takes_away = |skipped: &Skipped| match skipped {
            Skipped::Figures => false,
            Skipped::Presence => manifest.requirement.delta_presence.is_some(),
            _ => true,
        };
        let in_part = !notes.is_empty() || found.skipped.iter().any(takes_away);
        notes.extend(found.skipped.iter().map(ToString::to_string));
        wrong.extend(differences(&manifest, &found));
        let shown = match (wrong.is_empty(), in_part) {
            (false, _) => Shown::NotMet,
            (true, true) => Shown::InPart,
            (true, false) => Shown::Everything,
        };
        terminal::print(&self.render(&manifest, &found, &notes, shown))?;
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
        if let [table_spec] = spec.tables.as_slice()
            && !spec.links_rows()
        {
            let loaded = load(folder, &spec, table_spec, bars)?;
            let original = &loaded.table;
            let (manifest, tables) = self.read_of(std::slice::from_ref(original), path, bars)?;
            wrong.extend(not_as_asked(&manifest, &spec, path, &[]));
            let expected = vec![loaded.columns_of_read(&tables[0])];
            wrong.extend(self.misdescribed(&spec, &manifest, &tables, expected, vec![original])?);
            let rows = manifest.manifest.tables[0].rows_suppressed;
            let suppressed = Suppressed { rows, persons: manifest.manifest.persons.suppressed };
            let counted = match spec.audiences_of(table_spec) {
                Some(audiences) => verify_against(&tables[0], original, &audiences, suppressed),
                None => verify_against(&tables[0], original, &spec.requirements(table_spec), suppressed),
            };
            if let Ok(found) = &counted {
                wrong.extend(beyond_limit(found.suppressed, n_persons(original), &spec));
            }
            return Ok((manifest, counted));
        }
        let loaded = load_tables(folder, &spec, bars)?;
        let LoadedTables { tables: originals, schema, .. } = &loaded;
        let (manifest, tables) = self.read_of(originals, path, bars)?;
        let links = link_manifests(&ReleasedLink::of(schema, originals));
        wrong.extend(not_as_asked(&manifest, &spec, path, &links));
        let expected = loaded.columns_of_read(&tables);
        wrong.extend(self.misdescribed(&spec, &manifest, &tables, expected, originals.iter().collect())?);
        let requirements: Vec<Vec<Requirement>> = spec.tables.iter().map(|table| spec.requirements(table)).collect();
        // In a table of persons each row is one.
        let suppressed = manifest.manifest.tables.iter().map(|table| table.rows_suppressed);
        let suppressed: Vec<Suppressed> = suppressed.map(|rows| Suppressed { rows, persons: rows }).collect();
        let counted = verify_tables_against(&tables, originals, schema, &requirements, &suppressed);
        if let Ok(found) = &counted {
            let of_table =
                |table: usize| beyond_limit(found.tables[table].suppressed, n_persons(&originals[table]), &spec);
            wrong.extend(schema.roots().into_iter().flat_map(of_table));
        }
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
        let loaded = original;
        let original = &loaded.table;
        let (manifest, tables) = read_release_of(std::slice::from_ref(original), &self.release, bars)?;
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
        Ok((manifest, counted))
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

    fn render(&self, manifest: &Manifest, found: &Findings, notes: &[String], shown: Shown) -> String {
        match self.output() {
            Output::Words => {
                let mut text = findings::words(found);
                text += &format!("\nasked            {}\n", asked_k(manifest));
                for note in notes {
                    text += &format!("not counted      {note}\n");
                }
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
                object.insert("not_counted".to_owned(), notes.to_vec().into());
                format!("{:#}\n", serde_json::Value::Object(object))
            }
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

/// Too many persons left out, by the verifier's count and not by the manifest's.
fn beyond_limit(suppressed: Option<Suppressed>, n_persons: u64, spec: &Spec) -> Vec<Report> {
    let left_out = suppressed.map_or(n_persons, |suppressed| suppressed.persons);
    violation_reports(limit_of(spec).exceeded(left_out, n_persons).as_slice())
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
    let found = read.joined.persons.iter().filter(|person| **person != InRegister::Absent).count() as u64;
    if let Some(register) = manifest.register.as_ref().filter(|register| register.found != found) {
        let claimed = register.found;
        let message = format!("manifest.json says register.found = {claimed}, and {found} was counted");
        wrong.push(Report::new(message).hint("the manifest is not this release's: don't trust it"));
    }
    wrong
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
    let persons = manifest.persons;
    compare("persons.in".to_owned(), persons.n_in as f64, persons.n_out.saturating_add(persons.suppressed) as f64);
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
    // Where persons have several rows, figures differ between the ways to trace rows back to persons.
    let is_each_person = found.rows == manifest.persons.n_out;
    let is_one_way = found.skipped.contains(&Skipped::Figures);
    let is_comparable = is_each_person || (found.counted == Counted::Persons && !is_one_way);
    if !is_comparable {
        compare_bounds(manifest, found, &mut compare);
    }
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
        compare_coalitions(manifest, found, &mut compare);
        compare_sensitive(manifest, found, &mut compare);
    }
    differences
}

/// What each audience and each coalition is said to learn, and what was counted.
fn compare_coalitions(manifest: &Manifest, found: &Findings, compare: &mut impl FnMut(String, f64, f64)) {
    let counted = achieved(found);
    let mut compare_learned = |place: &str, claimed: Option<&Learned>, counted: &Learned| {
        for (column, counted) in counted {
            let claimed = claimed.and_then(|claimed| claimed.get(column));
            // Where nothing is told there is no l, and where nothing is claimed no figure fits.
            let figures = |learned: &AchievedLearned| {
                [("l", learned.l.map_or(0.0, |l| l as f64)), ("t", learned.t), ("certain", learned.certain as f64)]
            };
            let claimed = claimed.map_or([("", f64::INFINITY); 3], figures);
            for ((_, claimed), (key, counted)) in claimed.into_iter().zip(figures(counted)) {
                compare(format!("{place}.{column}.{key}"), claimed, counted);
            }
        }
    };
    for (audience, learned) in &counted.learned {
        compare_learned(&format!("achieved.learned.{audience}"), manifest.achieved.learned.get(audience), learned);
    }
    for (name, coalition) in &counted.coalitions {
        let claimed = manifest.achieved.coalitions.get(name);
        let learned = claimed.map(|claimed| &claimed.learned);
        compare_learned(&format!("achieved.coalitions.{name}.learned"), learned, &coalition.learned);
    }
    for (name, coalition) in &counted.coalitions {
        let claimed = manifest.achieved.coalitions.get(name);
        let k = claimed.map_or(0.0, |claimed| claimed.k as f64);
        compare(format!("achieved.coalitions.{name}.k"), k, coalition.k as f64);
        for (column, counted) in &coalition.sensitive {
            let l = claimed.and_then(|claimed| claimed.sensitive.get(column)).map_or(0.0, |claimed| claimed.l as f64);
            compare(format!("achieved.coalitions.{name}.sensitive.{column}.l"), l, counted.l as f64);
        }
    }
}

/// Compares what is the same whichever rows share a person: a class has at most as many persons as rows, and the smallest
/// at most as many as classes have on average; distinct values are what they are.
fn compare_bounds(manifest: &Manifest, found: &Findings, compare: &mut impl FnMut(String, f64, f64)) {
    let claimed = manifest.persons.n_out;
    if found.counted == Counted::Persons || claimed > found.persons {
        compare("persons.out".to_owned(), claimed as f64, found.persons as f64);
    }
    let most = match found.counted {
        // k is asked of the classes of each audience, and of all columns only where there are no audiences.
        Counted::Persons => {
            let classes = found.audiences.iter().map(|audience| audience.classes).max().unwrap_or(found.classes);
            found.rows / classes.max(1)
        }
        Counted::Rows => found.k,
    };
    if manifest.achieved.k > most {
        compare("achieved.k".to_owned(), manifest.achieved.k as f64, most as f64);
    }
    let counted = achieved(found);
    for (column, claimed) in &manifest.achieved.sensitive {
        if let Some(counted) = counted.sensitive.get(column) {
            compare(format!("achieved.sensitive.{column}.l"), claimed.l as f64, counted.l as f64);
        }
    }
}

type Learned = BTreeMap<String, AchievedLearned>;

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
