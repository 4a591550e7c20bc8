//! `kohort anonymize`: from a spec of one or several tables, or a table and flags, to a verified release.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use clap::{Args, value_parser};
use kohort::{
    CellForm, Existing, Format, Job, Manifest, Memory, MissingText, Spec, TooLarge, TotalChange, WriteOptions,
    check_target,
};

use super::{Output, size};
use crate::failure::{Failure, Report, Status};
use crate::files::write_private;
use crate::flags::FlagSpec;
use crate::progress::Bars;
use crate::render::summary;
use crate::terminal;

const EXAMPLES: &str = "\
Examples:
  kohort anonymize release.toml -o out/
  kohort anonymize release.toml --dry-run           what it would lose, nothing written
  kohort anonymize release.toml --memory 2GB -o out/            a table that is larger than memory
  kohort anonymize patients.csv --k 5 --quasi age,zip,sex --sensitive disease:l=3 --identifier name -o out/
  kohort anonymize patients.csv --k 5 --quasi age,zip --hierarchy age=steps:5,10,50 --drop note -o - > out.csv

Exit codes: 0 done and verified, 1 the requirement can't be reached, 2 wrong use or input, 3 I/O or a fault,
130 stopped by Ctrl-C. Unless it is 0, nothing was written.";

/// Anonymize tables, verify the release and write it
///
/// INPUT is a spec (release.toml) of one or several tables, or a table whose columns the flags describe. Every column needs
/// a role. A spec may name several audiences of one table, each with its own columns and its own k.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Anonymize {
    /// A spec (.toml), or a table: CSV (also .gz, .zst), Parquet or Arrow; - is a table on stdin
    input: PathBuf,
    /// The folder of the release; - prints the table as CSV, if there is only one
    #[arg(short, long, value_name = "FOLDER", required_unless_present = "dry_run")]
    output: Option<PathBuf>,

    /// How much work auto spends on less loss: up to this many rounds of its longest step; 1 without it
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1000))]
    effort: Option<u32>,
    /// The seed of algorithms that use chance; never in the release
    #[arg(long)]
    seed: Option<u64>,
    /// How many threads to use; all cores without it
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// How much memory to use for the data, such as 2GB: a larger table is anonymized in cells, whose rows wait on the disk,
    /// encrypted, beside the output folder. Without it, half of the machine's memory if an estimate says that the table would
    /// not fit; KOHORT_MEMORY=8GB says how much memory the machine has
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory: Option<u64>,
    /// The format of released tables: csv, csv.gz, csv.zst, parquet, arrow or arrows; without it, the format of the input
    #[arg(long)]
    format: Option<String>,
    /// The form of quasi cells: labels such as `[20,29]`, or bounds, two typed columns age_lo and age_hi in place of age.
    /// Columns with a hierarchy, with nulls, or of text always have labels
    #[arg(long, default_value = "labels", value_parser = ["labels", "bounds"])]
    cells: String,
    /// Replace the release that is already in the folder
    #[arg(long)]
    force: bool,
    /// Release although a blatant risk was found; the manifest then names it
    #[arg(long)]
    accept_risks: bool,
    /// If values are missing from hierarchy files, write them to this CSV file, which only you can read. It holds cells of the private
    /// tables
    #[arg(long, value_name = "FILE")]
    missing: Option<PathBuf>,
    /// Do everything except write; with --memory only count the rows, and say what the work would take
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object: the manifest, and where the release is
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    table: TableFlags,
}

/// Flags that replace a spec.
#[derive(Args)]
#[command(next_help_heading = "Without a spec")]
struct TableFlags {
    /// The number of persons in the smallest class; there is no default. With a spec: in place of the spec's k; an audience with
    /// a k of its own keeps it
    #[arg(long, allow_negative_numbers = true)]
    k: Option<i64>,
    /// Columns that others could know about a person; generalized
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
    quasi: Vec<String>,
    /// Columns that nobody should learn, with requirements: disease:l=3,t=0.2
    #[arg(long, value_name = "COLUMN[:SETTING,...]")]
    sensitive: Vec<String>,
    /// Columns that name a person outright; never released
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
    identifier: Vec<String>,
    /// The column that names the person; without it each row is a person
    #[arg(long, value_name = "COLUMN")]
    person: Option<String>,
    /// Columns that are released as they are
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
    plain: Vec<String>,
    /// Columns that are not released
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
    drop: Vec<String>,
    /// zip=zip.csv | age=steps:5,10,50 | zip=mask:right | birth=date | birth=dates:month,year | sex=flat
    #[arg(long, value_name = "COLUMN=HIERARCHY")]
    hierarchy: Vec<String>,
    /// The algorithm that makes classes
    #[arg(long, value_parser = ["auto", "mondrian", "top-down", "datafly", "cluster", "full-domain"])]
    algorithm: Option<String>,
    /// At most this share of the persons may be left out
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    max_suppressed: Option<f64>,
    /// What to do with persons that fit into no class
    #[arg(long, value_parser = ["merge", "suppress"])]
    leftovers: Option<String>,
    /// The order of released rows; that of the input can give people away
    #[arg(long, value_parser = ["sorted", "input"])]
    order: Option<String>,
}

/// What only the publisher is told.
#[derive(Default)]
struct OnlyPublisher {
    /// Rows that were left out because of earlier releases.
    rows_left_out: Vec<u64>,
    /// By how much rows of child tables that are left out change totals.
    totals: Vec<TotalChange>,
    /// Columns whose released hierarchy lists only values of the private table.
    listed: Vec<String>,
}

impl Anonymize {
    pub(crate) fn output(&self) -> Output {
        Output::from_flag(self.json)
    }

    pub(crate) fn run(&self) -> Result<(), Failure> {
        let target = self.target()?;
        let job = self.job()?;
        let spec = job.spec();
        if matches!(target, Target::Stdout) && (spec.tables.len() > 1 || !spec.registers.is_empty()) {
            return Err(Failure::input("several tables can't be printed", "name a folder, for example -o out/"));
        }
        super::use_threads(self.threads)?;
        if let Target::Folder { path, options } = &target {
            check_target(path, options.existing).map_err(kohort::Error::from)?;
        }

        let bars = Bars::cancelled_by_interrupt()?;
        if let Some(n_bytes) = self.memory {
            return self.run_in_cells(&job, &target, Memory::bytes(n_bytes), &bars);
        }
        if !matches!(target, Target::Stdout)
            && let Some(n_bytes) = super::machine_memory()?
            && let Some(TooLarge { n_bytes_needed, memory }) = job.too_large_for(n_bytes)
        {
            terminal::note(&format!(
                "about {} MB of memory would be needed and {} MB are there, so the table is anonymized in cells with {} MB; \
                 --memory says how much to use",
                n_bytes_needed >> 20,
                n_bytes >> 20,
                memory.n_bytes() >> 20
            ));
            return self.run_in_cells(&job, &target, memory, &bars);
        }
        let release = match job.anonymize_with(&bars) {
            Ok(release) => release,
            Err(error) => {
                self.list_missing(&job, &error, &bars)?;
                return Err(error.into());
            }
        };
        let manifest = match &target {
            Target::Folder { path, options } => release.write_with(path, *options, &bars)?,
            Target::Stdout => {
                release.write_csv(&mut std::io::stdout().lock())?;
                release.manifest().clone()
            }
            Target::Nowhere => release.manifest().clone(),
        };
        bars.clear();
        let listed = if matches!(target, Target::Folder { .. }) { release.own_values_listed() } else { Vec::new() };
        let only_publisher =
            OnlyPublisher { rows_left_out: release.rows_left_out().to_vec(), totals: release.total_changes(), listed };
        self.report(&manifest, &target, &only_publisher)
    }

    /// Writes the values that hierarchies lack to the file that the publisher named for them.
    fn list_missing(&self, job: &Job, error: &kohort::Error, bars: &Bars) -> Result<(), Failure> {
        let (Some(path), kohort::Error::Input(_)) = (&self.missing, error) else { return Ok(()) };
        // Other problems of the input may also keep the tables from being read. They are reported anyway.
        let Ok(missing) = job.missing_values(bars) else { return Ok(()) };
        bars.clear();
        if missing.is_empty() {
            return Ok(());
        }
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let mut text = "table,column,value,rows\n".to_owned();
        for value in &missing {
            let MissingText { table, column, value, n_rows } = value;
            text += &format!("{},{},{},{n_rows}\n", quoted(table), quoted(column), quoted(value));
        }
        write_private(path, &text)?;
        terminal::note(&format!(
            "{} missing from hierarchies {} listed in {}, which holds cells of private tables: keep it to yourself",
            if missing.len() == 1 { "1 value".to_owned() } else { format!("{} values", missing.len()) },
            if missing.len() == 1 { "is" } else { "are" },
            path.display()
        ));
        Ok(())
    }

    /// Anonymizes a table that may be larger than memory.
    fn run_in_cells(&self, job: &Job, target: &Target, memory: Memory, bars: &Bars) -> Result<(), Failure> {
        let (path, options) = match target {
            Target::Folder { path, options } => (path, options),
            Target::Nowhere => {
                let planned = job.plan_in_cells(memory, bars)?;
                bars.clear();
                return terminal::print(&match self.output() {
                    Output::Words => summary::planned(planned, memory),
                    Output::Json => summary::planned_json(planned, memory),
                });
            }
            Target::Stdout => {
                return Err(Failure::input("--memory needs an output folder", "name one, for example -o out/"));
            }
        };
        let written = job.write_in_cells(path, *options, memory, bars)?;
        bars.clear();
        let only_publisher = OnlyPublisher { listed: written.own_values_listed, ..OnlyPublisher::default() };
        self.report(&written.manifest, target, &only_publisher)?;
        if let Some(why) = written.without_documents {
            terminal::note(&format!(
                "the release has no report, because {}; to make one in memory: kohort report {}",
                why.join("; "),
                path.display()
            ));
        }
        Ok(())
    }

    /// Prints what was done.
    fn report(&self, manifest: &Manifest, target: &Target, only_publisher: &OnlyPublisher) -> Result<(), Failure> {
        let OnlyPublisher { rows_left_out, totals, listed } = only_publisher;
        let place = target.place();
        match self.output() {
            Output::Words => terminal::say(&summary::words(manifest, place.as_deref())),
            Output::Json => terminal::print(&summary::json(manifest, place.as_deref(), rows_left_out, totals))?,
        }
        if let Some(left_out) = summary::left_out(rows_left_out) {
            terminal::note(&left_out);
        }
        if let Some(totals) = summary::changed_totals(totals) {
            terminal::note(&totals);
        }
        for note in &manifest.notes {
            terminal::note(&note.message);
        }
        if !listed.is_empty() {
            // Only the publisher is told, because the note would tell readers that the table holds every listed value.
            terminal::note(&format!(
                "the released hierarchy of {} lists only values that the table holds: if you made the hierarchy from the table, withhold it (hierarchies = \"withhold\")",
                listed.iter().map(|column| format!("'{column}'")).collect::<Vec<_>>().join(" and ")
            ));
        }
        for risk in &manifest.accepted_risks {
            terminal::warning(&risk.message);
        }
        Ok(())
    }

    fn target(&self) -> Result<Target, Failure> {
        let known: Vec<&str> = Format::ALL.iter().map(|format| format.extension()).collect();
        let format = match &self.format {
            None => None,
            Some(word) => Some(Format::from_word(word).ok_or_else(|| {
                Failure::input(format!("--format {word}: no such format"), format!("use {}", known.join(", ")))
            })?),
        };
        let existing = if self.force { Existing::Replace } else { Existing::Refuse };
        match &self.output {
            _ if self.dry_run => Ok(Target::Nowhere),
            None => Ok(Target::Nowhere),
            Some(path) if path == Path::new("-") => match format.map(Format::extension) {
                None | Some("csv") if !self.json => Ok(Target::Stdout),
                None | Some("csv") => Err(Failure::input("-o - and --json both print to stdout", "keep one of them")),
                Some(_) => Err(Failure::input("only CSV can be printed", "leave --format out, or name a folder")),
            },
            Some(path) => Ok(Target::Folder { path: path.clone(), options: WriteOptions { format, existing } }),
        }
    }

    /// The job, from a spec or from flags.
    fn job(&self) -> Result<Job, Failure> {
        let is_spec = self.input.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"));
        let mut job = if is_spec {
            let mut given = self.table.given();
            // k is the one setting of a spec that is tried with several values.
            given.retain(|flag| *flag != "--k");
            if !given.is_empty() {
                let reports = given.iter().map(|flag| {
                    Report::new(format!("{flag} can't be given with a spec"))
                        .hint(format!("say it in {}", self.input.display()))
                });
                return Err(Failure::new(Status::Input, reports.collect()));
            }
            let job = Job::read(&self.input)?;
            match self.table.k {
                None => job,
                Some(k) => job.k(positive(k)?),
            }
        } else {
            Job::new(self.table.spec(&self.input)?, "")
        };
        if let Some(effort) = self.effort {
            job = job.effort(effort);
        }
        if let Some(seed) = self.seed {
            job = job.seed(seed);
        }
        if self.accept_risks {
            job = job.accept_risks();
        }
        Ok(job.cells(if self.cells == "bounds" { CellForm::Bounds } else { CellForm::Labels }))
    }
}

impl TableFlags {
    /// The flags that were given.
    fn given(&self) -> Vec<&'static str> {
        let flags = [
            ("--k", self.k.is_some()),
            ("--quasi", !self.quasi.is_empty()),
            ("--sensitive", !self.sensitive.is_empty()),
            ("--identifier", !self.identifier.is_empty()),
            ("--person", self.person.is_some()),
            ("--plain", !self.plain.is_empty()),
            ("--drop", !self.drop.is_empty()),
            ("--hierarchy", !self.hierarchy.is_empty()),
            ("--algorithm", self.algorithm.is_some()),
            ("--max-suppressed", self.max_suppressed.is_some()),
            ("--leftovers", self.leftovers.is_some()),
            ("--order", self.order.is_some()),
        ];
        flags.into_iter().filter(|&(_, is_given)| is_given).map(|(flag, _)| flag).collect()
    }

    /// The flags as a spec of this file.
    fn spec(&self, file: &Path) -> Result<Spec, Failure> {
        let mut missing = Vec::new();
        if self.k.is_none() {
            missing.push(Report::new("there is no k").hint("say how many persons must look alike, for example --k 5"));
        }
        if self.quasi.is_empty() {
            missing.push(
                Report::new("no column is quasi, so nothing would be protected")
                    .hint("name the columns that others could know, for example --quasi age,postcode"),
            );
        }
        if !missing.is_empty() {
            return Err(Failure::new(Status::Input, missing));
        }
        let mut flags = FlagSpec::default();
        flags.set("k", self.k.unwrap_or_default());
        let words = [("algorithm", &self.algorithm), ("leftovers", &self.leftovers), ("order", &self.order)];
        for (key, word) in words {
            if let Some(word) = word {
                flags.set(key, word.as_str());
            }
        }
        if let Some(share) = self.max_suppressed {
            flags.set("max_suppressed", share);
        }
        flags.data("-", self.person.as_deref());
        flags.columns("quasi", &self.quasi);
        flags.sensitive(&self.sensitive);
        flags.columns("identifier", &self.identifier);
        flags.columns("plain", &self.plain);
        flags.columns("drop", &self.drop);
        flags.hierarchies(&self.hierarchy);
        let mut spec = flags.finish()?;
        // The path is set here, because a path need not be UTF-8, but the text of a spec must be.
        spec.tables[0].file = file.to_owned();
        spec.tables[0].name = table_name(file);
        Ok(spec)
    }
}

/// A k in place of that of the spec.
fn positive(k: i64) -> Result<NonZeroU32, Failure> {
    let number = u32::try_from(k).ok().and_then(NonZeroU32::new);
    number
        .ok_or_else(|| Failure::input(format!("--k {k}: k must be a whole number of at least 1"), "for example --k 5"))
}

/// The name of a file up to its first dot.
fn table_name(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy().replace([':', '*', '?', '"', '<', '>', '|'], "_");
    match name.split('.').find(|part| !part.is_empty()) {
        Some(part) if part != "-" => part.to_owned(),
        _ => "table".to_owned(),
    }
}

/// Where a release goes.
enum Target {
    Folder {
        path: PathBuf,
        options: WriteOptions,
    },
    Stdout,
    /// A dry run.
    Nowhere,
}

impl Target {
    /// Where the release is, if anywhere.
    fn place(&self) -> Option<String> {
        match self {
            Target::Folder { path, .. } => Some(path.display().to_string()),
            Target::Stdout => Some("stdout".to_owned()),
            Target::Nowhere => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_called_as_its_file_up_to_the_first_dot() {
        for (file, name) in [
            ("a/patients.csv", "patients"),
            ("patients.csv.gz", "patients"),
            ("-", "table"),
            (".hidden.csv", "hidden"),
            ("a:b.csv", "a_b"),
        ] {
            assert_eq!(table_name(Path::new(file)), name);
        }
    }
}
