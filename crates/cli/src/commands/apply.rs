//! `kohort apply`: releases new persons in the classes of an earlier release.

use std::path::PathBuf;

use clap::Args;
use kohort::model::spec::HierarchySource;
use kohort::{Apply, Existing, Format, Manifest, WriteOptions, check_target};

use super::Output;
use crate::failure::Failure;
use crate::progress::Bars;
use crate::reading::CsvFlags;
use crate::render::summary;
use crate::terminal;

const EXAMPLES: &str = "\
Examples:
  kohort apply old-release/ new.csv --identifier name -o new-release/
  kohort apply old-release/ new.csv --person id --not-in old.csv -o new-release/      refuses persons of the old release

`kohort verify new-release/ --applied-from old-release/` counts both again.
Exit codes: 0 done and verified, 1 the requirement can't be reached, alone or together with the old release, 2 wrong use or
input, 3 I/O or a fault, 130 stopped by Ctrl-C. Unless it is 0, nothing was written.";

/// Release new persons in the classes of an earlier release
///
/// Roles, types and requirements are those of the old release, as its manifest says. Each new person gets the cells of an old
/// class that covers all her values. The new release satisfies the requirement by itself, and together with the old one; persons
/// who fit into no class in which enough other new persons are, are left out and counted. A person should be in one of the two
/// releases only: give --person and --not-in, and persons of the old release are refused.
#[derive(Args)]
#[command(name = "apply", after_help = EXAMPLES)]
pub(crate) struct ApplyClasses {
    /// The folder of the old release
    old: PathBuf,
    /// The table of new persons: CSV (also .gz, .zst), Parquet or Arrow; - is CSV on stdin
    new: PathBuf,
    /// The folder of the new release
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,

    /// The column that names the person; without it each row is a person
    #[arg(long, value_name = "COLUMN")]
    person: Option<String>,
    /// The private table that the old release was made from: its persons are refused
    #[arg(long, value_name = "FILE", requires = "person")]
    not_in: Option<PathBuf>,
    /// Columns that name a person outright; never released
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
    identifier: Vec<String>,
    /// Columns that are not released
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
    drop: Vec<String>,
    /// The hierarchy file of a column, if the old release withholds it: zip=zip.csv
    #[arg(long, value_name = "COLUMN=FILE")]
    hierarchy: Vec<String>,
    /// At most this share of the new persons may be left out; any share without it
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, hide_default_value = true, allow_negative_numbers = true)]
    max_suppressed: f64,

    /// How many threads to use; all cores without it
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// The format of the new release: csv, csv.gz, csv.zst, parquet, arrow or arrows; without it, the format of the new table
    #[arg(long)]
    format: Option<String>,
    /// Replace the release that is already in the folder
    #[arg(long)]
    force: bool,
    /// Release although a blatant risk was found; the manifest then names it
    #[arg(long)]
    accept_risks: bool,
    /// Print one JSON object: the manifest, and where the release is
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    csv: CsvFlags,
}

impl ApplyClasses {
    pub(crate) fn output(&self) -> Output {
        Output::from_flag(self.json)
    }

    pub(crate) fn run(&self) -> Result<(), Failure> {
        let options = self.options()?;
        let apply = self.apply()?;
        super::use_threads(self.threads)?;
        check_target(&self.output, options.existing).map_err(kohort::Error::from)?;
        let bars = Bars::cancelled_by_interrupt()?;
        let release = apply.release_with(&bars)?;
        let manifest = release.write_with(&self.output, options, &bars)?;
        bars.clear();
        self.report(&manifest)
    }

    fn apply(&self) -> Result<Apply, Failure> {
        let mut apply = Apply::new(&self.old, &self.new).max_suppressed(self.max_suppressed).csv(self.csv.csv());
        if let Some(person) = &self.person {
            apply = apply.person(person);
        }
        if let Some(file) = &self.not_in {
            apply = apply.not_in(file);
        }
        apply = self.identifier.iter().fold(apply, Apply::identifier);
        apply = self.drop.iter().fold(apply, Apply::drop);
        for given in &self.hierarchy {
            let Some((column, file)) =
                given.split_once('=').filter(|(column, file)| !column.is_empty() && !file.is_empty())
            else {
                return Err(Failure::input(
                    format!("--hierarchy {given}: no column and file"),
                    "for example --hierarchy zip=zip.csv",
                ));
            };
            apply = apply.hierarchy(column, HierarchySource::Paths(file.into()));
        }
        Ok(if self.accept_risks { apply.accept_risks() } else { apply })
    }

    fn options(&self) -> Result<WriteOptions, Failure> {
        let known: Vec<&str> = Format::ALL.iter().map(|format| format.extension()).collect();
        let format = match &self.format {
            None => None,
            Some(word) => Some(Format::from_word(word).ok_or_else(|| {
                Failure::input(format!("--format {word}: no such format"), format!("use {}", known.join(", ")))
            })?),
        };
        Ok(WriteOptions { format, existing: if self.force { Existing::Replace } else { Existing::Refuse } })
    }

    /// Prints what was done.
    fn report(&self, manifest: &Manifest) -> Result<(), Failure> {
        let place = self.output.display().to_string();
        match self.output() {
            Output::Words => {
                terminal::say(&summary::words(manifest, Some(&place)));
                if let Some(applied) = &manifest.applied {
                    let (old, k) = (self.old.display(), applied.k);
                    terminal::say(&format!(
                        "together         {k} persons in the smallest class of {place} and {old}\n"
                    ));
                }
            }
            Output::Json => terminal::print(&summary::json(manifest, Some(&place), &[], &[]))?,
        }
        for note in &manifest.notes {
            terminal::note(&note.message);
        }
        for risk in &manifest.accepted_risks {
            terminal::warning(&risk.message);
        }
        Ok(())
    }
}
