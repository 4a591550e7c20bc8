//! Prints the results of benchmarks as Markdown tables and keeps them in `bench/RESULTS.md`, one section per benchmark.
//!
//! A run of some benchmarks rewrites only their sections, so each section says when and where it was measured.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, io};

use chrono::DateTime;

use crate::plot::Figure;

const PREFACE: &str = "\
# Benchmarks

Written by `cargo xtask bench [NAME...]`; a run rewrites the sections it measured. Times are medians. The ratios matter
most: both sides of a ratio were measured in the same run, one after the other, on the same machine. CPU is the time of
all threads together. Figures are drawn from the same numbers as the tables beside them.
";

/// The results of one benchmark.
pub(crate) struct Section {
    /// The benchmark's name, the section's heading.
    pub(crate) name: &'static str,
    /// Paragraphs and tables.
    pub(crate) body: String,
    /// Figures, which the body links to.
    pub(crate) figures: Vec<Figure>,
}

/// A Markdown table.
pub(crate) struct Grid {
    rows: Vec<Vec<String>>,
}

impl Grid {
    /// A table with these column names.
    pub(crate) fn new<const N: usize>(header: [&str; N]) -> Grid {
        Grid { rows: vec![header.map(str::to_owned).to_vec()] }
    }

    /// Appends a row.
    pub(crate) fn push<const N: usize>(&mut self, row: [String; N]) {
        self.rows.push(row.into());
    }

    /// The table as text, with the first column aligned left and numbers aligned right.
    pub(crate) fn render(&self) -> String {
        let n_columns = self.rows[0].len();
        let width = |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).max(3);
        let widths: Vec<usize> = (0..n_columns).map(width).collect();
        let mut text = String::new();
        for (position, row) in self.rows.iter().enumerate() {
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                let padded = if column == 0 { format!("| {cell:<width$} ") } else { format!("| {cell:>width$} ") };
                text.push_str(&padded);
            }
            text.push_str("|\n");
            if position == 0 {
                for (column, width) in widths.iter().enumerate() {
                    let line = "-".repeat(width - 1);
                    let rule = if column == 0 { format!("| {line}- ") } else { format!("| {line}: ") };
                    text.push_str(&rule);
                }
                text.push_str("|\n");
            }
        }
        text
    }
}

/// Prints a section and puts it in its place in the results.
pub(crate) fn publish(root: &Path, section: &Section, all_names: &[&str]) -> io::Result<()> {
    let text = format!("## {}\n\n{}\n\n{}", section.name, circumstances(root), section.body.trim_end());
    println!("\n{text}");
    let path: PathBuf = root.join("bench/RESULTS.md");
    let old = fs::read_to_string(&path).unwrap_or_default();
    let plots = root.join("bench/plots");
    fs::create_dir_all(&plots)?;
    for figure in &section.figures {
        fs::write(plots.join(figure.file).with_extension("svg"), &figure.svg)?;
    }
    fs::write(path, with_section(&old, section.name, &text, all_names))
}

/// The results with one section replaced, all in the order of `all_names`.
fn with_section(old: &str, name: &str, text: &str, all_names: &[&str]) -> String {
    let mut results = PREFACE.to_owned();
    for &known in all_names {
        let kept = old.split("\n## ").skip(1).find(|section| section.lines().next() == Some(known));
        if known == name {
            write!(results, "\n{}\n", text.trim_end()).expect("writing to a string does not fail");
        } else if let Some(kept) = kept {
            write!(results, "\n## {}\n", kept.trim_end()).expect("writing to a string does not fail");
        }
    }
    results
}

/// The machine, the day and the revision.
fn circumstances(root: &Path) -> String {
    let field = |file: &str, name: &str| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.trim_start_matches([' ', '\t', ':']).to_owned()
    };
    let cpu = field("/proc/cpuinfo", "model name");
    let kilobytes: u64 = field("/proc/meminfo", "MemTotal").trim_end_matches(" kB").parse().unwrap_or(0);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    format!(
        "{day}, revision {revision}; {cpu}, {cores} cores, {memory:.0} GB; load at the end {load}",
        day = today(),
        revision = revision(root),
        memory = kilobytes as f64 / 1e6,
        load = load.split(' ').next().unwrap_or("unknown"),
    )
}

fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    DateTime::from_timestamp(seconds as i64, 0).map_or_else(String::new, |time| time.format("%Y-%m-%d").to_string())
}

/// The commit that was measured, if git knows one.
fn revision(root: &Path) -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("--no-optional-locks").args(arguments).current_dir(root).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short=10", "HEAD"]) else { return "unknown".to_owned() };
    let is_changed = git(&["status", "--porcelain", "--", "crates"]).is_some_and(|changes| !changes.is_empty());
    if is_changed { format!("{commit} with changes") } else { commit }
}

/// Seconds with a sensible number of digits.
pub(crate) fn seconds(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        0.0..0.001 => format!("{:.0} µs", seconds * 1e6),
        0.001..0.1 => format!("{:.1} ms", seconds * 1e3),
        0.1..1.0 => format!("{:.0} ms", seconds * 1e3),
        1.0..10.0 => format!("{seconds:.2} s"),
        _ => format!("{seconds:.1} s"),
    }
}

/// `time` divided by `of`.
pub(crate) fn ratio(time: Duration, of: Duration) -> String {
    number(time.as_secs_f64() / of.as_secs_f64())
}

/// A ratio with a sensible number of digits.
pub(crate) fn number(ratio: f64) -> String {
    if ratio >= 20.0 { format!("{ratio:.0}") } else { format!("{ratio:.2}") }
}

/// A count with separated thousands.
pub(crate) fn count(n: usize) -> String {
    let digits = n.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).expect("digits are ASCII")).collect();
    groups.join(",")
}

/// Bytes in MB.
pub(crate) fn megabytes(bytes: u64) -> String {
    format!("{} MB", count((bytes / 1_000_000) as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_replaced_and_the_others_stay() {
        let names = ["a", "b", "c"];
        let first = with_section("", "c", "## c\n\nold", &names);
        let second = with_section(&first, "a", "## a\n\nnew", &names);
        let third = with_section(&second, "c", "## c\n\nnewer", &names);
        assert_eq!(third, format!("{PREFACE}\n## a\n\nnew\n\n## c\n\nnewer\n"));
    }

    #[test]
    fn tables_line_up() {
        let mut grid = Grid::new(["rows", "time"]);
        grid.push(["1,000".to_owned(), "5 s".to_owned()]);
        assert_eq!(grid.render(), "| rows  | time |\n| ----- | ---: |\n| 1,000 |  5 s |\n");
    }

    #[test]
    fn thousands_stand_apart() {
        assert_eq!([count(0), count(999), count(2_500_000)], ["0", "999", "2,500,000"]);
    }
}
