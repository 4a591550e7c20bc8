//! [`Settings`]: the settings of PostgreSQL that clients ask for and set, as far as they mean something here.
//!
//! Options of views (`kohort.purpose`) are the engine's. What is set to something this server can't do is an error,
//! rather than taken and not done.

use std::collections::BTreeMap;
use std::time::Duration;

use datafusion::sql::sqlparser::ast::{Expr, Value};

use crate::failure::{Failure, Refusal};

/// The version of PostgreSQL that clients are told.
pub(crate) const SERVER_VERSION: &str = "15.0";

/// What a setting may be.
#[derive(Clone, Copy)]
enum Takes {
    Anything,
    Nothing,
    /// One of these, in any case.
    OneOf(&'static [&'static str]),
    /// A time, in milliseconds unless it says otherwise.
    Time,
}

/// Names, what they are at first, and what they may be.
const KNOWN: [(&str, &str, Takes); 27] = [
    ("application_name", "", Takes::Anything),
    ("bytea_output", "hex", Takes::OneOf(&["hex"])),
    ("client_encoding", "UTF8", Takes::OneOf(&["utf8", "utf-8", "unicode"])),
    ("client_min_messages", "notice", Takes::Anything),
    ("datestyle", "ISO, MDY", Takes::OneOf(&["iso", "iso, mdy", "iso, dmy", "iso, ymd"])),
    ("default_transaction_isolation", "read committed", Takes::Anything),
    ("default_transaction_read_only", "off", Takes::Anything),
    ("extra_float_digits", "1", Takes::Anything),
    ("idle_in_transaction_session_timeout", "0", Takes::Time),
    ("in_hot_standby", "off", Takes::Nothing),
    ("integer_datetimes", "on", Takes::Nothing),
    ("intervalstyle", "postgres", Takes::OneOf(&["postgres"])),
    ("is_superuser", "off", Takes::Nothing),
    ("lock_timeout", "0", Takes::Time),
    ("max_identifier_length", "63", Takes::Nothing),
    ("row_security", "on", Takes::Anything),
    ("search_path", "public", Takes::Anything),
    ("server_encoding", "UTF8", Takes::Nothing),
    ("server_version", SERVER_VERSION, Takes::Nothing),
    ("server_version_num", "150000", Takes::Nothing),
    ("session_authorization", "", Takes::Nothing),
    ("standard_conforming_strings", "on", Takes::OneOf(&["on", "true", "1", "yes"])),
    ("statement_timeout", "0", Takes::Time),
    ("synchronous_commit", "on", Takes::Anything),
    ("timezone", "UTC", Takes::OneOf(&["utc", "etc/utc", "gmt", "default"])),
    ("transaction_isolation", "read committed", Takes::Anything),
    ("transaction_read_only", "off", Takes::Anything),
];

/// Those that clients are told at the start, and when they change, by the names they know.
const REPORTED: [(&str, &str); 12] = [
    ("application_name", "application_name"),
    ("client_encoding", "client_encoding"),
    ("datestyle", "DateStyle"),
    ("default_transaction_read_only", "default_transaction_read_only"),
    ("in_hot_standby", "in_hot_standby"),
    ("integer_datetimes", "integer_datetimes"),
    ("intervalstyle", "IntervalStyle"),
    ("is_superuser", "is_superuser"),
    ("server_encoding", "server_encoding"),
    ("server_version", "server_version"),
    ("standard_conforming_strings", "standard_conforming_strings"),
    ("timezone", "TimeZone"),
];

/// Settings of one connection.
pub(crate) struct Settings {
    values: BTreeMap<&'static str, String>,
    /// How long a statement may take at most.
    longest: Option<Duration>,
}

impl Settings {
    /// The settings of somebody's connection, whose statements may take so long.
    pub(crate) fn new(user: &str, longest: Option<Duration>) -> Settings {
        let mut values: BTreeMap<&'static str, String> =
            KNOWN.into_iter().map(|(name, value, _)| (name, value.to_owned())).collect();
        values.insert("session_authorization", user.to_owned());
        values.insert("statement_timeout", longest.map_or(0, |longest| longest.as_millis()).to_string());
        Settings { values, longest }
    }

    /// The value of a setting; `None` where it is not one of these.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let name = match name.to_lowercase().as_str() {
            "transaction isolation level" | "transaction.isolation.level" => "transaction_isolation".to_owned(),
            "time zone" | "time.zone" => "timezone".to_owned(),
            name => name.to_owned(),
        };
        self.values.get(name.as_str()).map(String::as_str)
    }

    /// Whether there is a setting of this name.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Sets it, or back to what it was at first.
    ///
    /// # Errors
    /// Where it can't be that.
    pub(crate) fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), Failure> {
        let name = name.to_lowercase();
        let Some((name, initial, takes)) = KNOWN.into_iter().find(|(known, ..)| *known == name) else {
            return Err(Failure::statement("42704", format!("there is no setting \"{name}\"")));
        };
        let wrong = || Refusal::new("22023", format!("\"{name}\" can't be set to this"));
        let value = match (takes, value) {
            (Takes::Nothing, _) => return Err(Failure::statement("55P02", format!("\"{name}\" can't be changed"))),
            (_, None) if name == "statement_timeout" => self.longest.map_or(0, |time| time.as_millis()).to_string(),
            (_, None) => initial.to_owned(),
            (Takes::Anything, Some(value)) if value.len() > 1000 => return Err(wrong().into()),
            (Takes::Anything, Some(value)) => value.to_owned(),
            (Takes::OneOf(allowed), Some(value)) => match allowed.iter().any(|word| value.eq_ignore_ascii_case(word)) {
                true => initial.to_owned(),
                false => return Err(wrong().hint(&format!("it is always {initial}")).into()),
            },
            (Takes::Time, Some(value)) => {
                let time = milliseconds(value).ok_or_else(wrong)?;
                let is_longer = self.longest.is_some_and(|longest| time == 0 || u128::from(time) > longest.as_millis());
                if name == "statement_timeout" && is_longer {
                    return Err(wrong().hint("this server allows no more than it sets at first").into());
                }
                time.to_string()
            }
        };
        self.values.insert(name, value);
        Ok(())
    }

    /// How long a statement may take.
    pub(crate) fn statement_timeout(&self) -> Option<Duration> {
        let time = self.values.get("statement_timeout").and_then(|time| time.parse().ok()).unwrap_or(0);
        (time > 0).then(|| Duration::from_millis(time))
    }

    /// What clients are told, all of it or of one setting.
    pub(crate) fn reported<'s>(&'s self, only: Option<&'s str>) -> impl Iterator<Item = (&'static str, &'s str)> {
        let is_wanted = move |known: &str| only.is_none_or(|only| only.eq_ignore_ascii_case(known));
        let reported = REPORTED.into_iter().filter(move |(known, _)| is_wanted(known));
        reported.map(|(known, said)| (said, self.values.get(known).map_or("", String::as_str)))
    }
}

/// A time as PostgreSQL writes it: `250`, `250ms`, `5s`, `2min`.
fn milliseconds(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let scale = match unit.trim() {
        "" | "ms" => 1,
        "s" => 1000,
        "min" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(scale)
}

/// The text of a value as it is set; `None` is DEFAULT.
pub(crate) fn text_of(values: &[Expr]) -> Option<String> {
    let text = |value: &Expr| match value {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => text.clone(),
            other => other.to_string(),
        },
        Expr::Identifier(name) => name.value.clone(),
        other => other.to_string(),
    };
    let text = values.iter().map(text).collect::<Vec<_>>().join(", ");
    (!text.eq_ignore_ascii_case("default")).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_can_be_shortened_and_not_lengthened() {
        let mut settings = Settings::new("ann", Some(Duration::from_secs(10)));
        settings.set("statement_timeout", Some("2s")).unwrap();
        assert_eq!(settings.statement_timeout(), Some(Duration::from_secs(2)));
        for longer in ["0", "11s", "1min", "x"] {
            assert!(settings.set("statement_timeout", Some(longer)).is_err(), "{longer}");
        }
        settings.set("STATEMENT_TIMEOUT", None).unwrap();
        assert_eq!(settings.statement_timeout(), Some(Duration::from_secs(10)));
    }

    #[test]
    fn what_this_server_cannot_do_is_refused() {
        let mut settings = Settings::new("ann", None);
        for (name, value) in [("client_encoding", "LATIN1"), ("timezone", "Europe/Rome"), ("server_version", "9")] {
            assert!(settings.set(name, Some(value)).is_err(), "{name}");
        }
        settings.set("client_encoding", Some("utf-8")).unwrap();
        assert_eq!(settings.get("Client_Encoding"), Some("UTF8"));
        assert_eq!(settings.get("transaction isolation level"), Some("read committed"));
        assert_eq!(settings.get("nothing"), None);
    }
}
