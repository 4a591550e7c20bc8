//! [`ComplianceLog`]: who asked what, under which purpose, of which version of which view.
//!
//! # Guarantee
//! An entry holds the structure of a statement, never a literal of it: a query's text can hold private values. The clock
//! is the caller's. An entry is in the file whole or not at all: what a full disk left of one is taken back, and what a crash
//! left of one never runs into the next. An entry that is owed, because the file took none when something had happened
//! already, is in the file before any later one.
//! # Cost
//! The last [`MOST_KEPT`] entries are in memory, or fewer where they are long; the file, where there is one, has them all.
//! What is long in an entry is cut, with a digest of all of it: who asks decides how long that is.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, Utc};
use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray, TimestampMicrosecondArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::parser::Access;

/// How many entries are kept in memory.
const MOST_KEPT: usize = 10_000;

/// How many bytes of entries are kept in memory.
const MOST_BYTES: usize = 32 << 20;

/// How many bytes of a text are kept.
const MOST_OF_TEXT: usize = 8 << 10;

/// What was asked of late, in memory, and everything that was, appended to a file where there is one.
#[derive(Debug, Default)]
pub struct ComplianceLog {
    entries: VecDeque<LogEntry>,
    /// Bytes of the entries together.
    n_bytes: usize,
    file: Option<LogFile>,
    /// Entries that the file did not take, oldest first. Nothing else is written before them, so few come together: a
    /// statement whose entry can't be written changes nothing that lasts.
    owed: VecDeque<LogEntry>,
}

/// Whether an entry has to survive a power cut before anything else happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flushed {
    /// It must be on the disk: what it records is about to be.
    Now,
    /// The system may write it later.
    Later,
}

/// The file of a log, of which every line is an entry.
#[derive(Debug)]
struct LogFile {
    file: File,
    /// Whether the last line is only a part of an entry.
    is_torn: bool,
}

/// One statement that was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// When.
    pub time: DateTime<Utc>,
    /// As whom: `owner` or `analyst`.
    pub role: String,
    /// Who had logged in, where somebody had.
    pub login: Option<String>,
    /// The statement without its literals.
    pub statement: String,
    /// What for and to whom.
    pub access: Access,
    /// The views it read.
    pub views: Vec<UsedView>,
    /// How it ended.
    pub outcome: LogOutcome,
}

/// A view that a statement read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedView {
    /// The view.
    pub name: String,
    /// Its version.
    pub version: u64,
}

/// How a statement ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogOutcome {
    /// With an answer, or one that began to leave: see [`LogOutcome::BrokenOff`].
    Answered,
    /// An answer that was recorded before did not leave whole, or a change that was recorded before may not have been kept,
    /// because something failed on the way.
    BrokenOff,
    /// Without one, because it was not allowed.
    Refused,
    /// Without one, because it was wrong or something failed.
    Failed,
    /// Without one, because it took too long, was cancelled, or its client was gone.
    Stopped,
}

impl LogOutcome {
    /// The word in the log.
    pub fn word(self) -> &'static str {
        match self {
            LogOutcome::Answered => "answered",
            LogOutcome::BrokenOff => "broke off",
            LogOutcome::Refused => "refused",
            LogOutcome::Failed => "failed",
            LogOutcome::Stopped => "stopped",
        }
    }
}

impl LogEntry {
    /// An entry of a statement, which is given without its literals.
    pub fn new(time: DateTime<Utc>, role: &str, statement: &str, access: &Access, outcome: LogOutcome) -> Self {
        let access = Access {
            purpose: access.purpose.as_deref().map(shortened),
            recipient: access.recipient.as_deref().map(shortened),
        };
        let (role, statement) = (role.to_owned(), shortened(statement));
        LogEntry { time, role, login: None, statement, access, views: Vec::new(), outcome }
    }

    /// The entry with the statement, which is given without its literals.
    #[must_use]
    pub fn saying(mut self, statement: &str) -> Self {
        self.statement = shortened(statement);
        self
    }

    /// About as many bytes as it takes.
    fn n_bytes(&self) -> usize {
        let texts = [&self.access.purpose, &self.access.recipient, &self.login].into_iter().flatten();
        let views = self.views.iter().map(|view| &view.name);
        let texts = texts.chain(views).chain([&self.statement, &self.role]);
        texts.map(|text| text.len() + size_of::<UsedView>()).sum::<usize>() + size_of::<LogEntry>()
    }

    /// The entry with who had logged in.
    #[must_use]
    pub fn by(mut self, login: Option<&str>) -> Self {
        self.login = login.map(str::to_owned);
        self
    }

    /// The entry with the views the statement read.
    #[must_use]
    pub fn reading(mut self, views: Vec<UsedView>) -> Self {
        self.views = views;
        self
    }

    /// `patients 3, visits 1`.
    fn render_views(&self) -> String {
        self.views.iter().map(|view| format!("{} {}", view.name, view.version)).collect::<Vec<_>>().join(", ")
    }

    fn to_json(&self) -> String {
        let views: Vec<_> =
            self.views.iter().map(|view| json!({ "name": view.name, "version": view.version })).collect();
        json!({
            "time": self.time.to_rfc3339_opts(SecondsFormat::Micros, true),
            "role": self.role,
            "login": self.login,
            "statement": self.statement,
            "purpose": self.access.purpose,
            "recipient": self.access.recipient,
            "views": views,
            "outcome": self.outcome.word(),
        })
        .to_string()
    }
}

/// A text that may be long, and a digest of all of it where it is.
fn shortened(text: &str) -> String {
    if text.len() <= MOST_OF_TEXT {
        return text.to_owned();
    }
    let digest: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    let shown = &text[..text.floor_char_boundary(MOST_OF_TEXT)];
    format!("{shown}... ({} bytes, SHA-256 {digest})", text.len())
}

impl ComplianceLog {
    /// A log in memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// A log that is also appended to this file, one JSON object per line. A file that is new is its owner's alone.
    ///
    /// # Errors
    /// Where the file can't be opened.
    pub fn with_file(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.create(true).read(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = LogFile::new(options.open(path)?)?;
        Ok(ComplianceLog { file: Some(file), ..ComplianceLog::default() })
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// Where the file can't be written to; the entry is in memory all the same. Whoever must not answer without a
    /// record has to refuse then.
    pub fn record(&mut self, entry: LogEntry) -> io::Result<()> {
        self.write(entry, Flushed::Later)
    }

    /// Adds an entry of something that is kept once the entry is on the disk.
    ///
    /// # Errors
    /// Where the file can't be written to: what the entry records must not be kept then.
    pub fn record_ahead(&mut self, entry: LogEntry) -> io::Result<()> {
        self.write(entry, Flushed::Now)
    }

    /// Adds an entry of something that has happened. Where the file can't be written to, the entry is written before any
    /// other is, unless the process ends before there is room.
    ///
    /// # Errors
    /// Where the file can't be written to.
    pub fn record_or_owe(&mut self, entry: LogEntry) -> io::Result<()> {
        let written = self.write(entry.clone(), Flushed::Now);
        if written.is_err() {
            self.owed.push_back(entry);
        }
        written
    }

    fn write(&mut self, entry: LogEntry, flushed: Flushed) -> io::Result<()> {
        let written = self.append(&entry, flushed);
        self.n_bytes += entry.n_bytes();
        self.entries.push_back(entry);
        while (self.entries.len() > MOST_KEPT || self.n_bytes > MOST_BYTES)
            && let Some(oldest) = self.entries.pop_front()
        {
            self.n_bytes -= oldest.n_bytes();
        }
        written
    }

    /// Writes what is owed, and then this.
    fn append(&mut self, entry: &LogEntry, flushed: Flushed) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        while let Some(owed) = self.owed.front() {
            file.append(owed, Flushed::Now)?;
            self.owed.pop_front();
        }
        file.append(entry, flushed)
    }

    /// The columns of [`ComplianceLog::to_batch`].
    pub fn schema() -> SchemaRef {
        let text = |name: &str, nullable| Field::new(name, DataType::Utf8, nullable);
        let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        Arc::new(Schema::new(vec![
            Field::new("time", time, false),
            text("role", false),
            text("login", true),
            text("statement", false),
            text("purpose", true),
            text("recipient", true),
            text("views", false),
            text("outcome", false),
        ]))
    }

    /// The entries in memory as rows, oldest first.
    pub fn to_batch(&self) -> RecordBatch {
        type Entries = VecDeque<LogEntry>;
        fn texts<'e, T: AsRef<str>>(entries: &'e Entries, text: impl Fn(&'e LogEntry) -> Option<T>) -> ArrayRef {
            Arc::new(entries.iter().map(text).collect::<StringArray>())
        }
        let entries = &self.entries;
        let times = entries.iter().map(|entry| entry.time.timestamp_micros());
        let columns: Vec<ArrayRef> = vec![
            Arc::new(TimestampMicrosecondArray::from_iter_values(times).with_timezone("UTC")),
            texts(entries, |entry| Some(entry.role.as_str())),
            texts(entries, |entry| entry.login.as_deref()),
            texts(entries, |entry| Some(entry.statement.as_str())),
            texts(entries, |entry| entry.access.purpose.as_deref()),
            texts(entries, |entry| entry.access.recipient.as_deref()),
            texts(entries, |entry| Some(entry.render_views())),
            texts(entries, |entry| Some(entry.outcome.word())),
        ];
        RecordBatch::try_new(Self::schema(), columns).expect("every column has a cell per entry, of its type")
    }
}

impl LogFile {
    fn new(mut file: File) -> io::Result<Self> {
        let is_torn = match file.seek(SeekFrom::End(0))? {
            0 => false,
            _ => {
                file.seek(SeekFrom::End(-1))?;
                let mut last = [0];
                file.read_exact(&mut last)?;
                last != *b"\n"
            }
        };
        Ok(LogFile { file, is_torn })
    }

    fn append(&mut self, entry: &LogEntry, flushed: Flushed) -> io::Result<()> {
        let before = if self.is_torn { "\n" } else { "" };
        let line = format!("{before}{}\n", entry.to_json());
        let length = self.file.metadata()?.len();
        let written = self.file.write_all(line.as_bytes());
        let written = written.and_then(|()| match flushed {
            Flushed::Now => self.file.sync_data(),
            Flushed::Later => Ok(()),
        });
        match &written {
            Ok(()) => self.is_torn = false,
            // Where not even this can be undone, the next entry begins a line of its own.
            Err(_) => self.is_torn |= self.file.set_len(length).is_err(),
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::AsArray;
    use datafusion::arrow::util::pretty::pretty_format_batches;

    use super::*;
    use crate::parser::StatementText;

    fn entry(text: &str) -> LogEntry {
        let access = Access { purpose: Some("Treatment".to_owned()), recipient: None };
        let time = DateTime::from_timestamp(0, 0).unwrap();
        LogEntry::new(time, "analyst", &StatementText::of(text).structure, &access, LogOutcome::Answered)
            .reading(vec![UsedView { name: "patients".to_owned(), version: 3 }])
    }

    #[test]
    fn an_entry_shows_no_literal() {
        let mut log = ComplianceLog::new();
        log.record(entry("SELECT * FROM patients WHERE name = 'Smith' -- Smith")).unwrap();
        insta::assert_snapshot!(pretty_format_batches(&[log.to_batch()]).unwrap(), @r"
        +----------------------+---------+-------+---------------------------------------+-----------+-----------+------------+----------+
        | time                 | role    | login | statement                             | purpose   | recipient | views      | outcome  |
        +----------------------+---------+-------+---------------------------------------+-----------+-----------+------------+----------+
        | 1970-01-01T00:00:00Z | analyst |       | SELECT * FROM patients WHERE name = ? | Treatment |           | patients 3 | answered |
        +----------------------+---------+-------+---------------------------------------+-----------+-----------+------------+----------+
        ");
        assert!(!format!("{log:?}").contains("Smith"));
    }

    #[test]
    fn what_is_kept_in_memory_is_bounded_and_the_file_has_it_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        let mut log = ComplianceLog::with_file(&path).unwrap();
        for _ in 0..MOST_KEPT {
            log.record(entry("SELECT 1")).unwrap();
        }
        log.record(entry("SELECT 1 FROM newest")).unwrap();
        let kept = log.to_batch();
        assert_eq!(kept.num_rows(), MOST_KEPT);
        let statements = kept["statement"].as_string::<i32>();
        assert_eq!(statements.value(MOST_KEPT - 1), "SELECT ? FROM newest");
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), MOST_KEPT + 1);
    }

    #[test]
    fn what_is_long_is_cut_and_told_apart_and_all_together_is_bounded() {
        let mut log = ComplianceLog::new();
        let long = |last: &str| format!("SELECT {} {last}", "é".repeat(1 << 20));
        let (one, another) = (entry(&long("a")), entry(&long("b")));
        assert_ne!(one.statement, another.statement);
        assert!(one.statement.len() < MOST_OF_TEXT + 200, "{}", one.statement.len());
        for _ in 0..MOST_KEPT {
            let mut long = one.clone();
            long.access.purpose = Some("p".repeat(MOST_OF_TEXT));
            log.record(long).unwrap();
        }
        let kept: usize = log.entries.iter().map(|entry| entry.statement.len()).sum();
        assert!((MOST_BYTES / 4..=MOST_BYTES).contains(&kept), "{kept}");
        assert_eq!(log.n_bytes, log.entries.iter().map(LogEntry::n_bytes).sum::<usize>());
    }

    #[cfg(unix)]
    #[test]
    fn a_new_file_is_its_owners_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        ComplianceLog::with_file(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_line_that_a_crash_tore_does_not_run_into_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        std::fs::write(&path, "{\"outcome\":\"answered\"}\n{\"outco").unwrap();
        let mut log = ComplianceLog::with_file(&path).unwrap();
        log.record(entry("SELECT 1")).unwrap();
        log.record(entry("SELECT 2")).unwrap();
        let written = std::fs::read_to_string(&path).unwrap();
        let whole = |line: &str| serde_json::from_str::<serde_json::Value>(line).is_ok();
        assert_eq!(written.lines().map(whole).collect::<Vec<_>>(), [true, false, true, true]);
    }

    #[test]
    fn what_a_full_disk_did_not_take_is_written_before_anything_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        let mut log = ComplianceLog::with_file(Path::new("/dev/full")).unwrap();
        assert!(log.record(entry("SELECT 1 FROM forgotten")).is_err());
        assert!(log.record_ahead(entry("SELECT 1 FROM refused")).is_err());
        assert!(log.record_or_owe(entry("SELECT 1 FROM owed")).is_err());
        assert!(log.record_or_owe(entry("SELECT 1 FROM owed_too")).is_err());
        let on_a_disk_with_room = ComplianceLog::with_file(&path).unwrap();
        log.file = on_a_disk_with_room.file;
        log.record(entry("SELECT 1 FROM next")).unwrap();
        log.record(entry("SELECT 1 FROM last")).unwrap();
        let written = std::fs::read_to_string(&path).unwrap();
        let tables: Vec<&str> =
            written.lines().map(|line| line.split("FROM ").nth(1).unwrap().split('"').next().unwrap()).collect();
        assert_eq!(tables, ["owed", "owed_too", "next", "last"]);
    }

    #[test]
    fn entries_are_appended_to_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        for _ in 0..2 {
            ComplianceLog::with_file(&path).unwrap().record(entry("SELECT 'a\nb'")).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap();
        assert_eq!(written.lines().count(), 2);
        insta::assert_snapshot!(written.lines().next().unwrap(), @r#"{"login":null,"outcome":"answered","purpose":"Treatment","recipient":null,"role":"analyst","statement":"SELECT ?","time":"1970-01-01T00:00:00.000000Z","views":[{"name":"patients","version":3}]}"#);
    }
}
