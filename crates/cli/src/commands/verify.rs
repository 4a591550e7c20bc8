//! `kohort verify`: counts a release again, from its files and its manifest alone, or against the private tables.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::Args;
use kohort::model::{Coalition, Manifest};
use kohort::{Job, Memory, Verification, counts};

use super::{Counting, Output, Verdict, size};
use crate::failure::Failure;
use crate::files::read_text;
use crate::progress::Bars;
use crate::render::findings;
use crate::terminal;

const EXAMPLES: &str = "\
Examples:
  kohort verify out/
  kohort verify out/ --against release.toml         also that it is a truthful recoding of the private tables
  kohort verify new/ --applied-from old/            a release that `kohort apply` made, together with the earlier one
  kohort verify out/ --against release.toml --memory 2GB        tables that are larger than memory";

/// Count a release again, from its files alone or against the private tables
///
/// Exit codes: 0 verified, as far as the given files show. 1 a requirement is not met, or the release is not truthful. 2
/// wrong use or input. 3 I/O. 4 can't tell: with --against, it was not decided whether the release can have come from the
/// private tables.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Verify {
    /// The folder of the release
    release: PathBuf,
    /// The spec that the release was made from: also checks that the release is a truthful recoding of its tables
    #[arg(long, value_name = "SPEC")]
    against: Option<PathBuf>,
    /// The k that was given to `anonymize` in place of that of the spec
    #[arg(long, requires = "against")]
    k: Option<NonZeroU32>,
    /// The release whose classes this one has, because `kohort apply` made it: also counts both together
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["against", "memory"])]
    applied_from: Option<PathBuf>,
    /// How much memory to use for the data, such as 1GB: the release and the private table may be larger, and their rows wait on the
    /// disk, encrypted, in the folder for temporary files
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory: Option<u64>,
    #[command(flatten)]
    pub(crate) counting: Counting,
}

impl Verify {
    pub(crate) fn run(&self) -> Result<Verdict, Failure> {
        self.counting.begin()?;
        let bars = if self.memory.is_some() { Bars::cancelled_by_interrupt()? } else { Bars::new() };
        let found = match (&self.against, self.memory) {
            (None, None) if self.applied_from.is_some() => {
                let earlier = self.applied_from.as_deref().unwrap_or(&self.release);
                kohort::verify_applied(&self.release, earlier, &bars)
            }
            (None, None) => kohort::verify_with(&self.release, &bars),
            (None, Some(n_bytes)) => kohort::verify_within(&self.release, Memory::bytes(n_bytes), &bars),
            (Some(spec), memory) => {
                let mut job = Job::from_text(&read_text(spec)?, spec)?;
                if let Some(k) = self.k {
                    job = job.k(k);
                }
                match memory {
                    None => kohort::verify_against_with(&self.release, &job, &bars),
                    Some(n_bytes) => kohort::verify_against_within(&self.release, &job, Memory::bytes(n_bytes), &bars),
                }
            }
        }?;
        bars.clear();
        terminal::print(&self.render(&found))?;
        Ok(Verdict::of(found.wrong))
    }

    fn render(&self, verification: &Verification) -> String {
        let Verification { manifest, findings: found, verdict, not_counted: notes, claims, .. } = verification;
        match self.counting.output() {
            Output::Words => {
                let mut text = findings::words(found);
                text += &format!("\nasked            {}\n", asked_k(manifest));
                for note in notes {
                    text += &format!("not counted      {note}\n");
                }
                text += &keys("as manifest says", &claims.taken);
                text += &keys("not confirmed", &claims.unconfirmed);
                let by = match &self.against {
                    None if self.applied_from.is_some() => "from the released files, together with the earlier release",
                    None => "from the released files alone",
                    Some(_) if found.joined.is_some() => "against the private table and its registers",
                    Some(_) if found.tables.is_empty() => "against the private table",
                    Some(_) => "against the private tables",
                };
                text += &match verdict {
                    kohort::Verdict::NotMet => "verified         no\n".to_owned(),
                    kohort::Verdict::InPart => format!("verified         in part: what was counted, {by}\n"),
                    kohort::Verdict::Verified => format!("verified         yes, {by}\n"),
                };
                text
            }
            Output::Json => {
                let mut object = counts(found);
                object.insert("verified".to_owned(), (*verdict != kohort::Verdict::NotMet).into());
                object.insert("verdict".to_owned(), verdict.word().into());
                object.insert("against".to_owned(), self.against.is_some().into());
                object.insert("not_counted".to_owned(), notes.clone().into());
                object.insert("as_manifest_says".to_owned(), claims.taken.clone().into());
                object.insert("not_confirmed".to_owned(), claims.unconfirmed.clone().into());
                format!("{:#}\n", serde_json::Value::Object(object))
            }
        }
    }
}

/// Keys of the manifest, in as many lines as they need.
fn keys(label: &str, keys: &[String]) -> String {
    const WIDTH: usize = 100;
    let mut text = String::new();
    let mut line = format!("{label:<17}");
    for (position, key) in keys.iter().enumerate() {
        let word = if position + 1 < keys.len() { format!("{key}, ") } else { key.clone() };
        if line.len() + word.trim_end().len() > WIDTH {
            text += line.trim_end();
            text.push('\n');
            line = format!("{:<17}", "");
        }
        line += &word;
    }
    if keys.is_empty() { text } else { text + line.trim_end() + "\n" }
}

/// The k that was asked, for each audience if there are some.
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
