//! `kohort explore`: what several values of k would cost.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use kohort::model::spec::Algorithm;
use kohort::{ExploreOptions, Job, Outcome};

use super::{Counting, Output, Verdict};
use crate::failure::{Failure, Report, Status};
use crate::progress::Bars;
use crate::render::explored;
use crate::terminal;

const EXAMPLES: &str = "\
Examples:
  kohort explore release.toml --k 2..100
  kohort explore release.toml --k 2,5,10,20 --max-suppressed 0,0.01,0.05 --plot explored.svg
  kohort explore release.toml --k 5..50 --drop-column zip,birth --json

Exit codes: 0 some release was reached, 1 none can be reached, 2 wrong use or input, 3 I/O or a fault.
No release is written.";

/// Show what several values of k would cost, without writing a release
///
/// The tables are read once. Each run is a whole release that the verifier has accepted; only its figures are kept. Runs that
/// differ in k alone form a series. The knee of a series is the run farthest below the straight line from the run of the
/// highest risk to the run of the highest loss, both scaled to 0 to 1: up to it, a little loss saves much risk.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Explore {
    /// The spec of the release (.toml)
    spec: PathBuf,
    /// Values of k: 2,5,10 or a range 2..100, of which --steps values are taken
    #[arg(long, value_name = "K,...", value_delimiter = ',', required = true)]
    k: Vec<Ks>,
    /// How many values of a range of k are taken; each is about the same factor above the one before it
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(2..=1000))]
    steps: u32,
    /// The largest shares of persons that may be left out; that of the spec without it
    #[arg(long, value_name = "SHARE,...", value_delimiter = ',', allow_negative_numbers = true)]
    max_suppressed: Vec<f64>,
    /// Algorithms; that of the spec without it
    #[arg(long, value_name = "ALGORITHM,...", value_delimiter = ',')]
    algorithm: Vec<String>,
    /// Quasi columns, each of which is left out in a series of its own; its cells count as lost wholly
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
    drop_column: Vec<String>,
    /// Write the plot of risk against loss to this SVG file instead of printing it as text
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) counting: Counting,
}

/// A value of k, or a range of them.
#[derive(Clone, Copy, Debug)]
enum Ks {
    One(u32),
    Range(u32, u32),
}

impl FromStr for Ks {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let k = |text: &str| text.trim().parse().ok().filter(|&k: &u32| k > 0).ok_or("write whole numbers from 1 on");
        match text.split_once("..") {
            None => Ok(Ks::One(k(text)?)),
            Some((first, last)) => match (k(first)?, k(last)?) {
                (first, last) if first <= last => Ok(Ks::Range(first, last)),
                _ => Err("the range ends before it begins".to_owned()),
            },
        }
    }
}

impl Ks {
    /// The values that are tried.
    fn values(self, steps: u32) -> Vec<u32> {
        match self {
            Ks::One(k) => vec![k],
            Ks::Range(first, last) if last - first < steps => (first..=last).collect(),
            Ks::Range(first, last) => {
                let factor = f64::from(last) / f64::from(first);
                let value =
                    |step| (f64::from(first) * factor.powf(f64::from(step) / f64::from(steps - 1))).round() as u32;
                (0..steps).map(value).collect()
            }
        }
    }
}

impl Explore {
    pub(crate) fn run(&self) -> Result<Verdict, Failure> {
        let options = self.options()?;
        if let Some(path) = &self.plot
            && !path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg"))
        {
            let message = format!("--plot {}: the name does not end in .svg", path.display());
            return Err(Failure::input(message, "name an SVG file, for example --plot explored.svg"));
        }
        self.counting.begin()?;
        let bars = Bars::cancelled_by_interrupt()?;
        let found = Job::read(&self.spec)?.explore(&options, &bars)?;
        bars.clear();
        if let Some(path) = &self.plot {
            std::fs::write(path, explored::svg(&found))
                .map_err(|error| Failure::from(kohort::Error::file(path, "written", &error)))?;
        }
        terminal::print(&match self.counting.output() {
            Output::Words if self.plot.is_some() => explored::table(&found),
            Output::Words => explored::table(&found) + &explored::text_plot(&found),
            Output::Json => explored::json(&found),
        })?;
        if self.counting.output() == Output::Words {
            for risk in &found.risks {
                terminal::warning(&format!("a release would be refused: {}", risk.message));
            }
            let runs = found.series.iter().flat_map(|series| &series.runs);
            let mut notes: Vec<&String> =
                runs.filter_map(|run| run.outcome.figures()).flat_map(|figures| &figures.notes).collect();
            notes.sort();
            notes.dedup();
            for note in notes {
                terminal::note(note);
            }
        }
        let mut runs = found.series.iter().flat_map(|series| &series.runs);
        let is_reached = runs.any(|run| matches!(run.outcome, Outcome::Reached(_)));
        let none =
            || vec![Report::new("no release can be reached").hint("explore smaller values of k, or change the spec")];
        Ok(if is_reached { Verdict::Done } else { Verdict::NotMet(none()) })
    }

    fn options(&self) -> Result<ExploreOptions, Failure> {
        let mut unknown = Vec::new();
        let mut algorithms = Vec::new();
        for word in &self.algorithm {
            match Algorithm::from_word(word) {
                Some(algorithm) => algorithms.push(algorithm),
                None => unknown.push(
                    Report::new(format!("--algorithm {word}: no such algorithm"))
                        .hint(format!("use {}", Algorithm::ALL.map(Algorithm::word).join(", "))),
                ),
            }
        }
        if !unknown.is_empty() {
            return Err(Failure::new(Status::Input, unknown));
        }
        Ok(ExploreOptions {
            k: self.k.iter().flat_map(|ks| ks.values(self.steps)).collect(),
            max_suppressed: self.max_suppressed.clone(),
            algorithms,
            drop_columns: self.drop_column.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_taken_whole_or_in_even_factors_with_both_ends() {
        let values = |text: &str, steps| text.parse::<Ks>().unwrap().values(steps);
        assert_eq!(values("2..9", 8), [2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(values("2..100", 8), [2, 3, 6, 11, 19, 33, 57, 100]);
        assert_eq!(values("5..500", 3), [5, 50, 500]);
        assert_eq!(values("7..7", 8), [7]);
        assert_eq!(values("7", 8), [7]);
        for bad in ["0", "0..5", "5..2", "2..", "..", "x", "-3", "2...5"] {
            assert!(bad.parse::<Ks>().is_err(), "{bad}");
        }
    }
}
