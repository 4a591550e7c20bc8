//! `kohort audit`: what several releases of the same persons give away together.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use clap::Args;
use kohort::model::spec::HierarchySource;
use kohort::verifier::Knows;

use super::{Counting, Output, Verdict};
use crate::failure::{Failure, Report, Status};
use crate::flags::hierarchy_sources;
use crate::progress::Bars;
use crate::render::audit;
use crate::terminal;

const EXAMPLES: &str = "\
Examples:
  kohort audit insurer.csv hr.csv --audience insurer=age,vehicle --audience hr=age,job --k 5
  kohort audit 2025.csv 2026.csv --audience anybody=age,zip --person id
  kohort audit release-2025/ release-2026/ --audience anybody=age,zip --person id
  kohort audit insurer.csv hr.csv --audience both=age,vehicle --hierarchy vehicle=vehicle.csv --json";

/// Measure how well several releases hide people who are in all of them
///
/// All releases must be of the same persons. Row n of each release is taken for the same person, unless --person names a
/// column to match them by; releases that kohort sorted need it. For each person, the facts that the releases show are
/// combined, and the persons who still look the same are counted. With --k the exit code says whether every audience finds
/// everybody among at least k persons: 0 yes, 1 no.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Audit {
    /// The releases: folders that kohort wrote, or files: CSV (also .gz, .zst), Parquet or Arrow
    #[arg(required = true, value_name = "RELEASE")]
    files: Vec<PathBuf>,
    /// An audience and the columns that it may know: insurer=age,vehicle; give the flag once for each audience
    #[arg(long, value_name = "NAME=COLUMN,...", required = true)]
    audience: Vec<String>,
    /// The column that names the person in every release; without it rows are matched by their order, which is refused if a
    /// manifest says that rows are sorted
    #[arg(long, value_name = "COLUMN")]
    person: Option<String>,
    /// vehicle=vehicle.csv | vehicle=edges:vehicle.csv: the values that a label stands for; without it, different labels are
    /// taken for different facts
    #[arg(long, value_name = "COLUMN=HIERARCHY")]
    hierarchy: Vec<String>,
    /// The number of persons among whom everybody must hide
    #[arg(long, allow_negative_numbers = true)]
    k: Option<i64>,
    #[command(flatten)]
    pub(crate) counting: Counting,
}

impl Audit {
    pub(crate) fn run(&self) -> Result<Verdict, Failure> {
        self.counting.begin()?;
        let audiences = self.audiences()?;
        let columns: BTreeSet<String> = audiences.iter().flat_map(|audience| audience.columns.clone()).collect();
        let audit = kohort::Audit {
            releases: self.files.clone(),
            hierarchies: self.hierarchies(&columns)?,
            audiences,
            person: self.person.clone(),
            k: self.k()?,
        };
        let bars = Bars::new();
        let audited = audit.run(&bars)?;
        bars.clear();
        let rendered = audit::Rendered::new(&audit);
        terminal::print(&match self.counting.output() {
            Output::Words => rendered.words(&audited.findings),
            Output::Json => rendered.json(&audited.findings, audited.unmet.is_empty()),
        })?;
        Ok(Verdict::of(audited.unmet))
    }

    fn k(&self) -> Result<Option<u64>, Failure> {
        match self.k {
            None => Ok(None),
            Some(k) if k >= 1 => Ok(Some(k.unsigned_abs())),
            Some(k) => {
                let message = format!("--k: must be a whole number of at least 1, not {k}");
                Err(Failure::input(message, "for example --k 5"))
            }
        }
    }

    fn audiences(&self) -> Result<Vec<Knows>, Failure> {
        let mut audiences: Vec<Knows> = Vec::new();
        let mut problems = Vec::new();
        for flag in &self.audience {
            let (name, columns) = flag.split_once('=').unwrap_or((flag, ""));
            let columns: Vec<String> = columns.split(',').map(|column| column.trim().to_owned()).collect();
            if name.is_empty() || columns.contains(&String::new()) {
                problems.push(
                    Report::new(format!(
                        "--audience {flag}: not a name, '=' and the columns that the audience may know"
                    ))
                    .hint("for example --audience insurer=age,vehicle,postcode"),
                );
            } else if audiences.iter().any(|audience| audience.audience == name) {
                problems.push(
                    Report::new(format!("--audience {flag}: there is an audience '{name}' already"))
                        .hint("name all columns of an audience at once, separated by commas"),
                );
            } else {
                audiences.push(Knows { audience: name.to_owned(), columns });
            }
        }
        if problems.is_empty() { Ok(audiences) } else { Err(Failure::new(Status::Input, problems)) }
    }

    fn hierarchies(&self, columns: &BTreeSet<String>) -> Result<BTreeMap<String, HierarchySource>, Failure> {
        for flag in &self.hierarchy {
            if let Some((column, _)) = flag.split_once('=').filter(|(column, _)| !columns.contains(*column)) {
                let message = format!("--hierarchy {flag}: no audience may know column '{column}'");
                return Err(Failure::input(
                    message,
                    format!("add '{column}' to an --audience, or leave the hierarchy out"),
                ));
            }
        }
        hierarchy_sources(&self.hierarchy)
    }
}
