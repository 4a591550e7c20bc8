//! `kohort check`: counts which requirements any table satisfies, whoever made it.

use std::path::PathBuf;

use clap::Args;
use kohort::{Memory, RiskOptions, Role};

use super::{Counting, Output, Verdict, size};
use crate::failure::Failure;
use crate::flags::FlagSpec;
use crate::progress::Bars;
use crate::reading::{CsvFlags, NotationFlags};
use crate::render::{findings, risks};
use crate::terminal;

const EXAMPLES: &str = "\
Examples:
  kohort check patients.csv --quasi age,zip,sex
  kohort check out/patients.csv --quasi age,zip,sex --sensitive disease:l=3 --k 5
  kohort check patienten.csv --quasi alter,plz --encoding windows-1252 --decimal , --date-format %d.%m.%Y
  kohort check visits.parquet --quasi age,zip --person patient_id --json
  kohort check patients.csv --quasi age,zip,sex --by-column --suda 3      which columns make rows unique
  kohort check patients.csv --quasi age,zip,sex --records risks.csv       the risk of each row, for the table's owner
  kohort check survey.csv --quasi age,zip,sex --population 80000          the risk among all 80,000";

/// Measure how well a table hides people: any table, also another tool's output
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
    /// The column that names the person; without it each row is a person
    #[arg(long, value_name = "COLUMN")]
    person: Option<String>,
    /// The number of persons that the smallest class must have
    #[arg(long, allow_negative_numbers = true)]
    k: Option<i64>,
    /// How much memory to use for the data, such as 1GB: the table may be larger, and its rows wait on the disk, encrypted, in the
    /// folder for temporary files
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with_all = ["separator", "encoding", "null", "decimal", "date_format"])]
    memory: Option<u64>,
    /// Show how much risk each quasi column adds
    #[arg(long, conflicts_with = "memory")]
    by_column: bool,
    /// Score rows and columns by sets of up to so many quasi columns in which a row is unique, and unique in no smaller part (SUDA)
    #[arg(long, value_name = "COLUMNS", conflicts_with = "memory")]
    suda: Option<usize>,
    /// The table is a sample of this many persons: estimate the risk among them
    #[arg(long, value_name = "PERSONS", conflicts_with = "memory")]
    population: Option<u64>,
    /// Write the risk of each row into a file of comma-separated values: row number, persons who look the same, risk, and with
    /// --suda the score. It names the rows that are easiest to find, so it is for the owner of the table alone
    #[arg(long, value_name = "FILE", conflicts_with = "memory")]
    records: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) counting: Counting,
    #[command(flatten)]
    csv: CsvFlags,
    #[command(flatten)]
    notation: NotationFlags,
}

impl Check {
    pub(crate) fn run(&self) -> Result<Verdict, Failure> {
        self.counting.begin()?;
        let check = self.check()?;
        let csv = self.notation.added_to(self.csv.csv());
        let asks_of_risks =
            self.by_column || self.suda.is_some() || self.population.is_some() || self.records.is_some();
        let (bars, checked, found) = match self.memory {
            None if asks_of_risks => {
                let bars = Bars::cancelled_by_interrupt()?;
                let options = RiskOptions { suda: self.suda, population: self.population, csv };
                let (checked, found) = check.risks_of_file(&self.data, &options, &bars)?;
                (bars, checked, Some(found))
            }
            None => {
                let bars = Bars::new();
                let checked = check.file_read_as(&self.data, csv, &bars)?;
                (bars, checked, None)
            }
            Some(n_bytes) => {
                let bars = Bars::cancelled_by_interrupt()?;
                let checked = check.file_within(&self.data, Memory::bytes(n_bytes), &bars)?;
                (bars, checked, None)
            }
        };
        bars.clear();
        if let (Some(file), Some(found)) = (&self.records, &found) {
            std::fs::write(file, risks::records(found))
                .map_err(|error| Failure::from(kohort::Error::file(file, "written", &error)))?;
            let name = file.display();
            terminal::warning(&format!(
                "{name} says which rows are easiest to find: don't give it away with the table"
            ));
        }
        let is_asked = !check.requirements.is_empty();
        terminal::print(&match self.counting.output() {
            Output::Words => {
                let mut text = findings::words(&checked.findings);
                text += &found.map_or_else(String::new, |found| risks::words(&found, self.by_column));
                text
            }
            Output::Json => findings::json(&checked.findings, is_asked, found.as_ref().map(risks::object)),
        })?;
        Ok(Verdict::of(checked.unmet))
    }

    /// The requirements on the table, read like those of a spec.
    fn check(&self) -> Result<kohort::Check, Failure> {
        let mut flags = FlagSpec::default();
        flags.set("k", self.k.unwrap_or(1));
        flags.data("-", self.person.as_deref());
        flags.columns("quasi", &self.quasi);
        flags.sensitive(&self.sensitive);
        let spec = flags.finish()?;
        let table = &spec.tables[0];
        let sensitive = table.columns.iter().filter(|column| column.role == Role::Sensitive);
        let mut requirements = spec.requirements(table);
        if self.k.is_none() {
            requirements.retain(|requirement| requirement.k().is_none());
        }
        Ok(kohort::Check {
            quasi: self.quasi.clone(),
            sensitive: sensitive.map(|column| column.name.clone()).collect(),
            person: self.person.clone(),
            requirements,
        })
    }
}
