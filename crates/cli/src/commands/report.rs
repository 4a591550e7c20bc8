//! `kohort report`: makes the documents of a release anew, from its files and its manifest alone.

use std::path::PathBuf;

use clap::Args;
use kohort::{Costs, Job, OwnerOptions};

use super::Output;
use crate::failure::{Failure, Report as Problem, Status};
use crate::files::read_text;
use crate::progress::Bars;
use crate::terminal;

const EXAMPLES: &str = "\
Examples:
  kohort report out/
  kohort report out/ --json                         the figures on stdout, nothing written
  kohort report out/ --against release.toml -o owner/      figures from the private tables, for their owner alone
  kohort report out/ --against release.toml --costs --target diagnosis --population 80000 -o owner/

`kohort anonymize` writes the report with every release that fits into memory. Open out/report.html in a browser; it needs no
network and prints to PDF.";

/// Make the report of a release: what was asked, reached and lost, and what is not protected
///
/// Writes report.html, report.json, README.txt and datapackage.json into the folder of the release, and replaces those that are
/// there. They follow from the released files alone, so they tell nothing new. A release that does not verify gets no report.
///
/// Exit codes: 0 done. 1 the release does not verify. 2 wrong use or input. 3 I/O.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReportRelease {
    /// The folder of the release
    release: PathBuf,
    /// The spec that the release was made from: makes a second report with figures that need the private tables, for their owner
    /// alone; needs -o
    #[arg(long, value_name = "SPEC", requires = "output", conflicts_with = "json")]
    against: Option<PathBuf>,
    /// The folder for the report of --against, outside of the release
    #[arg(short, long, value_name = "FOLDER", requires = "against")]
    output: Option<PathBuf>,
    /// With --against: measure what each quasi column and each requirement costs, by leaving out one at a time; takes a run for each
    #[arg(long, requires = "against")]
    costs: bool,
    /// With --against: measure how well this column can be predicted from such a release; takes one run more
    #[arg(long, value_name = "COLUMN", requires = "against")]
    target: Option<String>,
    /// With --against: the private table is a sample of this many persons; estimate the risk among them
    #[arg(long, value_name = "PERSONS", requires = "against")]
    population: Option<u64>,
    /// How many threads to use; all cores without it
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print report.json and write nothing
    #[arg(long)]
    json: bool,
}

impl ReportRelease {
    pub(crate) fn output(&self) -> Output {
        Output::from_flag(self.json)
    }

    fn options(&self) -> OwnerOptions {
        OwnerOptions {
            population: self.population,
            target: self.target.clone(),
            costs: if self.costs { Costs::Measured } else { Costs::Unmeasured },
        }
    }

    pub(crate) fn run(&self) -> Result<(), Failure> {
        super::use_threads(self.threads)?;
        let bars = Bars::new();
        if let (Some(spec), Some(folder)) = (&self.against, &self.output) {
            let job = Job::from_text(&read_text(spec)?, spec)?;
            let report = kohort::report_against_with(&self.release, &job, &self.options(), &bars)?;
            kohort::write_owner_report(&report, &self.release, folder)?;
            bars.clear();
            let line = |name: &str, text: String| terminal::say(&format!("{name:<16} {text}\n"));
            line("owner's report", folder.join("owner-report.html").display().to_string());
            terminal::warning("these figures come from the private tables: don't give them away with the release");
            return Ok(());
        }
        let report = match self.json {
            true => kohort::report(&self.release),
            false => kohort::write_report(&self.release, &bars),
        }?;
        bars.clear();
        if self.json {
            let text = serde_json::to_string_pretty(&report);
            let fault = |error: serde_json::Error| Failure::new(Status::Fault, vec![Problem::new(error.to_string())]);
            return terminal::print(&(text.map_err(fault)? + "\n"));
        }
        terminal::say(&format!("{:<16} {}\n", "report", self.release.join("report.html").display()));
        Ok(())
    }
}
