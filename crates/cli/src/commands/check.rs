//! `kohort check`: what any table satisfies, whoever made it.

use std::path::PathBuf;

use clap::Args;
use kohort_io::{CheckOptions, infer_type, read_for_check};
use kohort_model::{Distance, Notation, Requirement, Role, Table};
use kohort_verify::measure;

use super::{Output, Verdict};
use crate::columns;
use crate::failure::{Failure, Status, violation_reports};
use crate::flags::FlagSpec;
use crate::progress::Bars;
use crate::render::findings;
use crate::terminal;

const EXAMPLES: &str = "\
Examples:
  kohort check patients.csv --quasi age,zip,sex
  kohort check out/patients.csv --quasi age,zip,sex --sensitive disease:l=3 --k 5
  kohort check visits.parquet --quasi age,zip --person patient_id --json";

/// Count how alone people are in any table, also another tool's output
///
/// Rows with the same cells in the quasi columns are one class. With --k, or with requirements on sensitive columns,
/// the exit code says whether they are met: 0 yes, 1 no.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Check {
    /// The table: CSV (also .gz, .zst), Parquet or Arrow; - is stdin
    data: PathBuf,
    /// Columns that others could know about a person
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',', required = true)]
    quasi: Vec<String>,
    /// Columns that nobody should learn, with requirements if any: disease:l=3,t=0.2
    #[arg(long, value_name = "COLUMN[:SETTING,...]")]
    sensitive: Vec<String>,
    /// The column that names the person; without it each row is one
    #[arg(long, value_name = "COLUMN")]
    person: Option<String>,
    /// The smallest class that is good enough
    #[arg(long, allow_negative_numbers = true)]
    k: Option<i64>,
    /// How many threads; all cores without it
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Check {
    pub(crate) fn output(&self) -> Output {
        Output::from_flag(self.json)
    }

    pub(crate) fn run(&self) -> Result<Verdict, Failure> {
        super::use_threads(self.threads)?;
        let requirements = self.requirements()?;
        let bars = Bars::new();
        let mut table = read_for_check(&self.data, &CheckOptions::default(), &bars)?;
        let quasi = columns::positions(&self.data, &table, &self.quasi)?;
        let sensitive = columns::positions(&self.data, &table, &requirements.sensitive)?;
        table.person = columns::positions(&self.data, &table, self.person.as_slice())?.first().copied();
        order_values(&mut table, &requirements.all);
        let found = measure(&table, &quasi, &sensitive, &requirements.all)
            .map_err(|violations| Failure::new(Status::Input, violation_reports(&violations.0)))?;
        bars.clear();
        terminal::print(&match self.output() {
            Output::Words => findings::words(&found),
            Output::Json => findings::json(&found, !requirements.all.is_empty()),
        })?;
        if found.unmet.is_empty() { Ok(Verdict::Done) } else { Ok(Verdict::NotMet(violation_reports(&found.unmet))) }
    }

    /// What is asked of the table, read as a spec reads it.
    fn requirements(&self) -> Result<Asked, Failure> {
        let mut flags = FlagSpec::default();
        flags.set("k", self.k.unwrap_or(1));
        flags.data("-", self.person.as_deref());
        flags.columns("quasi", &self.quasi);
        flags.sensitive(&self.sensitive);
        let spec = flags.finish()?;
        let table = &spec.tables[0];
        let sensitive = table.columns.iter().filter(|column| column.role == Role::Sensitive);
        let mut all = spec.requirements(table);
        if self.k.is_none() {
            all.retain(|requirement| requirement.k().is_none());
        }
        Ok(Asked { sensitive: sensitive.map(|column| column.name.clone()).collect(), all })
    }
}

struct Asked {
    sensitive: Vec<String>,
    all: Vec<Requirement>,
}

/// Gives the columns whose order a requirement asks for their type.
fn order_values(table: &mut Table, requirements: &[Requirement]) {
    for requirement in requirements {
        if requirement.distance() == Some(Distance::Ordered)
            && let Some(position) = requirement.sensitive_column().and_then(|column| table.position(column))
        {
            let column = &mut table.columns[position];
            column.value_type = infer_type(&column.texts, &Notation::default());
        }
    }
}
