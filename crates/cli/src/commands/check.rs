//! `kohort check`: counts which requirements any table satisfies, whoever made it.

use std::path::PathBuf;

use clap::Args;
use kohort::{Memory, Role};

use super::{Counting, Output, Verdict, size};
use crate::failure::Failure;
use crate::flags::FlagSpec;
use crate::progress::Bars;
use crate::reading::{CsvFlags, NotationFlags};
use crate::render::findings;
use crate::terminal;

const EXAMPLES: &str = "\
Examples:
  kohort check patients.csv --quasi age,zip,sex
  kohort check out/patients.csv --quasi age,zip,sex --sensitive disease:l=3 --k 5
  kohort check patienten.csv --quasi alter,plz --encoding windows-1252 --decimal , --date-format %d.%m.%Y
  kohort check visits.parquet --quasi age,zip --person patient_id --json";

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
        let (bars, checked) = match self.memory {
            None => {
                let bars = Bars::new();
                let checked = check.file_read_as(&self.data, self.notation.added_to(self.csv.csv()), &bars)?;
                (bars, checked)
            }
            Some(n_bytes) => {
                let bars = Bars::cancelled_by_interrupt()?;
                let checked = check.file_within(&self.data, Memory::bytes(n_bytes), &bars)?;
                (bars, checked)
            }
        };
        bars.clear();
        terminal::print(&match self.counting.output() {
            Output::Words => findings::words(&checked.findings),
            Output::Json => findings::json(&checked.findings, !check.requirements.is_empty()),
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
