//! [`ComplianceLog`]: a record of each statement: who ran it, for which purpose, and which views it read.
//!
//! # Guarantee
//! An entry contains the structure of a statement and never a literal, because literals can be private values. The
//! caller provides the time. An entry is in the file whole or not at all: an incomplete entry is removed if the disk is
//! full, and after a crash the next entry begins on a line of its own. If an entry can't be written although its event
//! has already happened, it is written before any later entry.
//! # Cost
//! The last [`MOST_KEPT`] entries are in memory, or fewer if they are long. The file, if there is one, has all entries.
//! Long texts in an entry are cut and get a digest of the whole text, because users decide how long statements are.

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

use super::Pair;
use crate::role::Role;

/// How many entries are kept in memory.
const MOST_KEPT: usize = 10_000;

/// How many bytes of entries are kept in memory.
const MOST_BYTES: usize = 32 << 20;

/// How many bytes of a text an entry contains.
const MOST_OF_TEXT: usize = 8 << 10;

/// The latest entries in memory, and all entries in a file if there is one.
#[derive(Debug, Default)]
pub struct ComplianceLog {
    entries: VecDeque<LogEntry>,
    /// The size of all entries in memory.
    n_bytes: usize,
    file: Option<LogFile>,
    /// Entries that could not be written, oldest first. They are written before any other entry. There are few of them,
    /// because a statement whose entry can't be written changes nothing permanently.
    owed: VecDeque<LogEntry>,
}

/// Whether an entry must be flushed to the disk before the caller continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flushed {
    /// The entry must be flushed, because the change that it records is about to be committed.
    Now,
    /// The operating system may write it later.
    Later,
}

/// The file of a log. Every line is an entry.
#[derive(Debug)]
struct LogFile {
    file: File,
    /// Whether the last line is an incomplete entry.
    is_torn: bool,
}

/// The record of one statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogEntry {
    pub time: DateTime<Utc>,
    pub role: Role,
    /// The user, if somebody had logged in.
    pub login: Option<String>,
    /// The statement without its literals.
    pub statement: String,
    /// The purpose and the recipient.
    pub pair: Pair,
    /// The views that the statement read.
    pub views: Vec<UsedView>,
    /// How the statement ended.
    pub outcome: LogOutcome,
}

/// A view that a statement read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UsedView {
    /// The view.
    pub name: String,
    pub version: u64,
}

/// How a statement ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogOutcome {
    /// The statement was answered, or the answer began: see [`LogOutcome::BrokenOff`].
    Answered,
    /// Something failed after the statement had been recorded: its answer was not sent completely, or its change may
    /// not have been committed.
    BrokenOff,
    /// It was not allowed.
    Refused,
    /// The statement was faulty, or something failed.
    Failed,
    /// The statement took too long, was cancelled, or its client disconnected.
    Stopped,
}

impl LogOutcome {
    /// The word for it in the log.
    pub(crate) fn word(self) -> &'static str {
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
    /// An entry without a statement.
    pub(crate) fn new(
        time: DateTime<Utc>,
        role: Role,
        login: Option<&str>,
        pair: &Pair,
        outcome: LogOutcome,
    ) -> LogEntry {
        let pair = Pair {
            purpose: pair.purpose.as_deref().map(shortened),
            recipient: pair.recipient.as_deref().map(shortened),
        };
        let login = login.map(str::to_owned);
        LogEntry { time, role, login, statement: String::new(), pair, views: Vec::new(), outcome }
    }

    /// Sets the statement, whose text must not contain literals.
    #[must_use]
    pub(crate) fn saying(mut self, statement: &str) -> Self {
        self.statement = shortened(statement);
        self
    }

    /// The approximate size of the entry in bytes.
    fn n_bytes(&self) -> usize {
        let texts = [&self.pair.purpose, &self.pair.recipient, &self.login].into_iter().flatten();
        let views = self.views.iter().map(|view| &view.name);
        let texts = texts.chain(views).chain([&self.statement]);
        texts.map(|text| text.len() + size_of::<UsedView>()).sum::<usize>() + size_of::<LogEntry>()
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
            "role": self.role.word(),
            "login": self.login,
            "statement": self.statement,
            "purpose": self.pair.purpose,
            "recipient": self.pair.recipient,
            "views": views,
            "outcome": self.outcome.word(),
        })
        .to_string()
    }
}

/// The text, or if it is too long, its beginning and a digest of the whole.
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

    /// A log that is also appended to this file, one JSON object per line. Only its owner can read a new file.
    ///
    /// # Errors
    /// If the file can't be opened.
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
    /// If the file can't be written. The entry is in memory nevertheless. A caller that must not answer without a
    /// record must refuse the statement then.
    pub(crate) fn record(&mut self, entry: LogEntry) -> io::Result<()> {
        self.write(entry, Flushed::Later)
    }

    /// Adds an entry for a change that is committed afterwards, and flushes it to the disk.
    ///
    /// # Errors
    /// If the file can't be written. The change must not be committed then.
    pub(crate) fn record_ahead(&mut self, entry: LogEntry) -> io::Result<()> {
        self.write(entry, Flushed::Now)
    }

    /// Adds an entry for something that has already happened. If the file can't be written, the entry is written later,
    /// before any other. It is lost only if the process ends before that.
    pub(crate) fn record_or_owe(&mut self, entry: LogEntry) -> io::Result<()> {
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

    /// Writes the entries that could not be written earlier, and then this one.
    fn append(&mut self, entry: &LogEntry, flushed: Flushed) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        while let Some(owed) = self.owed.front() {
            file.append(owed, Flushed::Now)?;
            self.owed.pop_front();
        }
        file.append(entry, flushed)
    }

    /// The columns of [`ComplianceLog::to_batch`].
    pub(crate) fn schema() -> SchemaRef {
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
    pub(crate) fn to_batch(&self) -> RecordBatch {
        type Entries = VecDeque<LogEntry>;
        fn texts<'e, T: AsRef<str>>(entries: &'e Entries, text: impl Fn(&'e LogEntry) -> Option<T>) -> ArrayRef {
            Arc::new(entries.iter().map(text).collect::<StringArray>())
        }
        let entries = &self.entries;
        let times = entries.iter().map(|entry| entry.time.timestamp_micros());
        let columns: Vec<ArrayRef> = vec![
            Arc::new(TimestampMicrosecondArray::from_iter_values(times).with_timezone("UTC")),
            texts(entries, |entry| Some(entry.role.word())),
            texts(entries, |entry| entry.login.as_deref()),
            texts(entries, |entry| Some(entry.statement.as_str())),
            texts(entries, |entry| entry.pair.purpose.as_deref()),
            texts(entries, |entry| entry.pair.recipient.as_deref()),
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
            // If not even truncating works, the next entry begins on a new line.
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
        let pair = Pair { purpose: Some("Treatment".to_owned()), recipient: None };
        let time = DateTime::from_timestamp(0, 0).unwrap();
        let views = vec![UsedView { name: "patients".to_owned(), version: 3 }];
        LogEntry { views, ..LogEntry::new(time, Role::Analyst, None, &pair, LogOutcome::Answered) }
            .saying(&StatementText::of(text).structure)
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
    fn entries_in_memory_are_limited_and_the_file_has_all() {
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
    fn long_texts_are_cut_and_have_a_digest_and_all_are_limited() {
        let mut log = ComplianceLog::new();
        let long = |last: &str| format!("SELECT {} {last}", "é".repeat(1 << 20));
        let (one, another) = (entry(&long("a")), entry(&long("b")));
        assert_ne!(one.statement, another.statement);
        assert!(one.statement.len() < MOST_OF_TEXT + 200, "{}", one.statement.len());
        for _ in 0..MOST_KEPT {
            let mut long = one.clone();
            long.pair.purpose = Some("p".repeat(MOST_OF_TEXT));
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
    fn entries_refused_by_a_full_disk_are_written_before_later_ones() {
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
