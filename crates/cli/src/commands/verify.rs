//! `kohort verify`: counts a release again, from its files and its manifest alone, or against the private table.

use std::path::{Path, PathBuf};

use clap::Args;
use kohort_io::{load, read_release, read_release_of};
use kohort_model::{AchievedSensitive, Distance, Manifest, Requirement, Role, Table};
use kohort_verify::{Counted, Findings, Suppressed, Violations, verify_against, verify_alone};

use super::{Output, Verdict};
use crate::failure::{Failure, Report, Status, violation_reports};
use crate::files::{folder_of, read_spec};
use crate::manifest::{achieved, is_within_limit, requirement, requirements};
use crate::progress::Bars;
use crate::render::findings;
use crate::terminal;

/// Count a release again, from its files alone or against the private table
///
/// Exit code 0: the release satisfies what its manifest says. 1: it does not, or is not truthful.
#[derive(Args)]
pub(crate) struct Verify {
    /// The folder of the release
    release: PathBuf,
    /// The spec it was made from: also checks that the release is a truthful recoding of the spec's table
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
                let counted = self.count_alone(&manifest, &self.only_table(tables)?, &mut notes)?;
                (manifest, counted)
            }
            Some(spec) => self.count_against(spec, &mut wrong, &bars)?,
        };
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

    fn count_alone(
        &self,
        manifest: &Manifest,
        table: &Table,
        notes: &mut Vec<String>,
    ) -> Result<Result<Findings, Violations>, Failure> {
        let asked = requirements(&manifest.requirement).ok_or_else(|| {
            let message = format!("{}: manifest.json asks for something unknown", self.release.display());
            Failure::input(message, "use the version that wrote it")
        })?;
        if manifest.requirement.person_k {
            notes.push("each person's own k can't be recounted from what is released".to_owned());
        }
        let n_persons = manifest.persons.n_out;
        if n_persons != table.n_rows as u64 && table.person.is_none() {
            let n_rows = table.n_rows;
            notes.push(format!(
                "{n_persons} persons have {n_rows} rows, and nothing released tells whose: see --against"
            ));
        }
        let (countable, hidden): (Vec<Requirement>, Vec<Requirement>) = asked.into_iter().partition(|requirement| {
            !matches!(requirement, Requirement::TCloseness { distance: Distance::Hierarchical, .. })
        });
        for requirement in &hidden {
            let column = requirement.column().unwrap_or_default();
            notes.push(format!("t of '{column}' needs its hierarchy, which is not released: see --against"));
        }
        Ok(verify_alone(table, &table.with_role(Role::Quasi), &countable))
    }

    /// Counts persons, and compares rows with the private table.
    fn count_against(
        &self,
        path: &Path,
        wrong: &mut Vec<Report>,
        bars: &Bars,
    ) -> Result<(Manifest, Result<Findings, Violations>), Failure> {
        let spec = read_spec(path)?;
        let [table_spec] = spec.tables.as_slice() else {
            let message = format!("{}: several tables are not available in this version", path.display());
            return Err(Failure::input(message, "name the spec of one table that the release was made from"));
        };
        let original = load(folder_of(path), &spec, table_spec, bars)?;
        let (manifest, tables) = read_release_of(&original.table, &self.release, bars)?;
        let table = self.only_table(tables)?;
        if requirement(&spec, table_spec) != manifest.requirement {
            wrong.push(
                Report::new(format!("{} asks for something else than manifest.json says was asked", path.display()))
                    .hint("verify against the spec that the release was made from"),
            );
        }
        if !is_within_limit(manifest.persons, spec.max_suppressed) {
            wrong.push(Report::new("more persons were left out than max_suppressed allows"));
        }
        let rows = manifest.tables.first().map_or(0, |table| table.rows_suppressed);
        let suppressed = Suppressed { rows, persons: manifest.persons.suppressed };
        let counted = verify_against(&table, &original.table, &spec.requirements(table_spec), suppressed);
        Ok((manifest, counted))
    }

    fn only_table(&self, mut tables: Vec<Table>) -> Result<Table, Failure> {
        match (tables.pop(), tables.as_slice()) {
            (Some(table), []) => Ok(table),
            _ => {
                let message = format!("{}: a release of several tables can't be verified yet", self.release.display());
                Err(Failure::input(message, "use the version that wrote it"))
            }
        }
    }

    fn render(&self, manifest: &Manifest, found: &Findings, notes: &[String], is_verified: bool) -> String {
        match self.output() {
            Output::Words => {
                let mut text = findings::words(found);
                text += &format!("\nasked            k = {}\n", manifest.requirement.k);
                for note in notes {
                    text += &format!("not counted      {note}\n");
                }
                text += match (is_verified, &self.against) {
                    (false, _) => "verified         no\n",
                    (true, None) => "verified         yes, from the released files alone\n",
                    (true, Some(_)) => "verified         yes, against the private table\n",
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

/// Figures of the manifest that are not those counted.
fn differences(manifest: &Manifest, found: &Findings) -> Vec<Report> {
    let mut differences = Vec::new();
    let mut compare = |what: String, claimed: f64, counted: f64| {
        if (claimed - counted).abs() > 1e-6 {
            let message = format!("manifest.json says {what} = {claimed}, and {counted} was counted");
            differences.push(Report::new(message).hint("the manifest is not this release's: don't trust it"));
        }
    };
    compare("classes".to_owned(), manifest.classes as f64, found.classes as f64);
    // Where persons have several rows and can't be told apart, rows were counted, and the figures are others.
    let is_comparable = found.counted == Counted::Persons || found.rows == manifest.persons.n_out;
    if is_comparable {
        compare("persons.out".to_owned(), manifest.persons.n_out as f64, found.persons as f64);
        compare("achieved.k".to_owned(), manifest.achieved.k as f64, found.k as f64);
        compare("risk.highest.after".to_owned(), manifest.risk.highest.after, found.highest_risk);
        compare("risk.average.after".to_owned(), manifest.risk.average.after, found.average_risk);
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
    differences
}
