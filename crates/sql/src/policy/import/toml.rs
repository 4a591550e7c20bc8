//! Policies in TOML.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use chrono::{Days, NaiveDate};
use serde::Deserialize;

use super::{ImportDefaults, ImportError, ImportFault, ImportedRow, last_day_of_all, p3p, read_text};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyFile {
    person: Option<String>,
    k: Option<u32>,
    #[serde(default)]
    sa_level: u8,
    p3p: Option<PathBuf>,
    #[serde(default)]
    retention: BTreeMap<String, Retention>,
    #[serde(default)]
    data: BTreeMap<String, String>,
    #[serde(default)]
    policy: Vec<Policy>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Policy {
    purpose: Option<String>,
    recipient: Option<String>,
    k: Option<u32>,
    sa_level: Option<u8>,
    #[serde(default)]
    columns: BTreeMap<String, Retention>,
    #[serde(default)]
    exceptions: Vec<Exception>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exception {
    person: String,
    k: Option<u32>,
    sa_level: Option<u8>,
    columns: Option<BTreeMap<String, Retention>>,
}

/// How long something may be shown.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "::toml::Value")]
enum Retention {
    Forever,
    Until(NaiveDate),
    Days(u64),
}

impl TryFrom<::toml::Value> for Retention {
    type Error = &'static str;

    fn try_from(value: ::toml::Value) -> Result<Self, Self::Error> {
        let retention = match &value {
            ::toml::Value::String(word) if word == "forever" => Some(Retention::Forever),
            ::toml::Value::Integer(days) => u64::try_from(*days).ok().map(Retention::Days),
            ::toml::Value::Datetime(date) if date.time.is_none() => date.date.and_then(|date| {
                let date = NaiveDate::from_ymd_opt(i32::from(date.year), u32::from(date.month), u32::from(date.day));
                date.map(Retention::Until)
            }),
            _ => None,
        };
        retention.ok_or("a retention must be \"forever\", a date such as 2030-12-31, or a number of days")
    }
}

/// Reads the column that names persons, and the rows.
pub(super) fn read(
    path: &Path,
    defaults: &ImportDefaults,
    today: NaiveDate,
) -> Result<(Option<String>, Vec<ImportedRow>), ImportError> {
    let text = read_text(path)?;
    let file: PolicyFile = ::toml::from_str(&text).map_err(|error| syntax(&text, &error).of(path))?;
    let k = file.k.or(defaults.k);
    let mut rows = policy_rows(file.policy, k, file.sa_level, today).map_err(|fault| fault.of(path))?;
    if let Some(p3p_file) = file.p3p {
        let p3p_path = path.parent().unwrap_or(Path::new("")).join(p3p_file);
        let retention = last_days(&file.retention, today).map_err(|fault| fault.of(path))?;
        let terms = p3p::PolicyTerms { k, level: file.sa_level, retention, data: file.data };
        // For the same purpose and recipient, this file takes precedence over the P3P file.
        let own: Vec<_> = rows.iter().map(pair).collect();
        rows.extend(p3p::read(&p3p_path, &terms)?.into_iter().filter(|row| !own.contains(&pair(row))));
    }
    Ok((file.person.or_else(|| defaults.person.clone()), rows))
}

/// The rows of policies and their exceptions.
fn policy_rows(
    policies: Vec<Policy>,
    k: Option<u32>,
    level: u8,
    today: NaiveDate,
) -> Result<Vec<ImportedRow>, ImportFault> {
    let (mut rows, mut seen) = (Vec::new(), HashSet::new());
    for (index, policy) in policies.into_iter().enumerate() {
        let position = index + 1;
        let mut push = |row: ImportedRow| {
            if !seen.insert((pair(&row), row.person.clone())) {
                return Err(ImportFault::Twice { position });
            }
            rows.push(row);
            Ok(())
        };
        let general = ImportedRow {
            person: None,
            k: policy.k.or(k).ok_or(ImportFault::NoK { position })?,
            level: policy.sa_level.unwrap_or(level),
            columns: last_days(&policy.columns, today)?,
            purpose: policy.purpose,
            recipient: policy.recipient,
        };
        for exception in policy.exceptions {
            let columns = match &exception.columns {
                Some(columns) => last_days(columns, today)?,
                None => general.columns.clone(),
            };
            let k = exception.k.unwrap_or(general.k);
            let level = exception.sa_level.unwrap_or(general.level);
            push(ImportedRow { person: Some(exception.person), k, level, columns, ..general.clone() })?;
        }
        push(general)?;
    }
    Ok(rows)
}

/// The purpose and recipient of a row, in lower case.
fn pair(row: &ImportedRow) -> (Option<String>, Option<String>) {
    let lower = |name: &Option<String>| name.as_ref().map(|name| name.to_lowercase());
    (lower(&row.purpose), lower(&row.recipient))
}

fn last_days(
    columns: &BTreeMap<String, Retention>,
    today: NaiveDate,
) -> Result<BTreeMap<String, NaiveDate>, ImportFault> {
    columns.iter().map(|(column, retention)| Ok((column.clone(), last_day(*retention, today)?))).collect()
}

fn last_day(retention: Retention, today: NaiveDate) -> Result<NaiveDate, ImportFault> {
    let last_day = match retention {
        Retention::Forever => Some(last_day_of_all()),
        Retention::Until(date) => Some(date),
        Retention::Days(days) => today.checked_add_days(Days::new(days)),
    };
    last_day.filter(|last_day| *last_day <= last_day_of_all()).ok_or(ImportFault::TooLong)
}

/// The line of a syntax error, and its message, unless the message contains a value of the file.
fn syntax(text: &str, error: &::toml::de::Error) -> ImportFault {
    let start = error.span().map_or(0, |span| span.start.min(text.len()));
    let line = text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count() + 1;
    let message = error.message();
    let holds_a_value = message.starts_with("invalid type") || message.starts_with("invalid value");
    let what = if holds_a_value { "the value has a wrong type for this key" } else { message };
    ImportFault::Syntax { line, what: what.to_owned() }
}
