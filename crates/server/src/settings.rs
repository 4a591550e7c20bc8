//! [`Settings`]: the settings of PostgreSQL that clients read and set.
//!
//! Options of views (`kohort.purpose`) belong to the engine. A value that this server can't support is an error, or is
//! accepted with a notice that it has no effect. It is never accepted silently.

use std::collections::BTreeMap;
use std::time::Duration;

use datafusion::sql::sqlparser::ast::{Expr, Value};
use kohort_sql::Role;

use crate::error::{AnswerError, ErrorMessage};

/// The PostgreSQL version that is reported to clients.
pub(crate) const SERVER_VERSION: &str = "15.0";

/// The warning for SET LOCAL and SET TRANSACTION outside of a transaction.
pub(crate) const NO_TRANSACTION: &str = "warning: this setting has no effect outside of a transaction";

/// How long a value stays set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SettingScope {
    /// Until it is set again, or the transaction that set it is rolled back.
    Session,
    /// Until the transaction ends.
    Local,
}

/// The values that a setting accepts.
#[derive(Clone, Copy)]
enum Takes {
    Anything,
    Nothing,
    /// On or off.
    Truth,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Any value. A value that does not begin with one of these words gets a notice with the reason why it has no
    /// effect.
    Noted(&'static [&'static str], &'static str),
    /// One of these words, in upper or lower case.
    OneOf(&'static [&'static str]),
    /// The name of one of these encodings. Only letters and digits count, as in PostgreSQL: asyncpg writes `'utf-8'`
    /// with quotes.
    Encoding(&'static [&'static str]),
    /// A time, in milliseconds unless it has a unit.
    Time,
}

const LEVELS: &[&str] = &["read uncommitted", "read committed", "repeatable read", "serializable"];
/// The levels of messages, from the least to the most severe.
const MESSAGES: &[&str] = &["debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error"];

/// The settings: name, default, and accepted values.
const KNOWN: [(&str, &str, Takes); 29] = [
    ("application_name", "", Takes::Anything),
    ("bytea_output", "hex", Takes::OneOf(&["hex"])),
    ("client_encoding", "UTF8", Takes::Encoding(&["utf8", "unicode"])),
    ("client_min_messages", "notice", Takes::Word(MESSAGES)),
    ("datestyle", "ISO, MDY", Takes::OneOf(&["iso", "iso, mdy", "iso, dmy", "iso, ymd"])),
    ("default_table_access_method", "heap", Takes::Nothing),
    ("default_transaction_isolation", "read committed", Takes::Word(LEVELS)),
    ("default_transaction_read_only", "off", Takes::Truth),
    ("extra_float_digits", "1", Takes::Noted(&["1", "2", "3"], "numbers are always written with full precision")),
    ("idle_in_transaction_session_timeout", "0", Takes::Time),
    ("in_hot_standby", "off", Takes::Nothing),
    ("integer_datetimes", "on", Takes::Nothing),
    ("intervalstyle", "postgres", Takes::OneOf(&["postgres"])),
    ("is_superuser", "off", Takes::Nothing),
    ("jit", "off", Takes::Noted(&["off", "false"], "this server has no just-in-time compiler")),
    ("lock_timeout", "0", Takes::Time),
    ("max_identifier_length", "63", Takes::Nothing),
    ("row_security", "on", Takes::Noted(&["on", "true"], "this server has no row security")),
    ("search_path", "public", Takes::Noted(&["public", "\"$user\"", "$user"], "names are always looked up in public")),
    ("server_encoding", "UTF8", Takes::Nothing),
    ("server_version", SERVER_VERSION, Takes::Nothing),
    ("server_version_num", "150000", Takes::Nothing),
    ("session_authorization", "", Takes::Nothing),
    ("standard_conforming_strings", "on", Takes::OneOf(&["on", "true", "1", "yes"])),
    ("statement_timeout", "0", Takes::Time),
    (
        "synchronous_commit",
        "on",
        Takes::Noted(&["on", "true", "local", "remote"], "a commit always waits for the disk"),
    ),
    ("timezone", "UTC", Takes::OneOf(&["utc", "etc/utc", "gmt", "default"])),
    ("transaction_isolation", "read committed", Takes::Word(LEVELS)),
    ("transaction_read_only", "off", Takes::Truth),
];

/// The settings that are reported to clients at the start and when they change, by the names that clients expect.
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

type SettingValues = BTreeMap<&'static str, String>;

/// The settings of one connection.
pub(crate) struct Settings {
    values: SettingValues,
    /// The values for RESET.
    initial: SettingValues,
    transaction: Option<InTransaction>,
    role: Role,
    /// The server's limits for the time of a statement and the idle time in a transaction.
    longest: Longest,
}

/// The values to restore when a transaction ends.
struct InTransaction {
    rolled_back: SettingValues,
    committed: SettingValues,
}

/// Times that a client may only shorten.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Longest {
    pub(crate) statement: Option<Duration>,
    pub(crate) idle_in_transaction: Option<Duration>,
}

impl Longest {
    fn of(&self, name: &str) -> Option<Duration> {
        match name {
            "statement_timeout" => self.statement,
            "idle_in_transaction_session_timeout" => self.idle_in_transaction,
            _ => None,
        }
    }
}

impl Settings {
    /// The initial settings of a connection.
    pub(crate) fn new(user: &str, role: Role, longest: Longest) -> Settings {
        let first = |name: &str, value: &str| match longest.of(name) {
            Some(longest) => longest.as_millis().to_string(),
            None => value.to_owned(),
        };
        let mut values: SettingValues = KNOWN.into_iter().map(|(name, value, _)| (name, first(name, value))).collect();
        values.insert("session_authorization", user.to_owned());
        Settings { initial: values.clone(), values, transaction: None, role, longest }
    }

    /// Makes the current values those for RESET, after the values of the startup message were set.
    pub(crate) fn keep_as_initial(&mut self) {
        self.initial.clone_from(&self.values);
    }

    /// Resets everything.
    pub(crate) fn reset_all(&mut self) {
        self.values.clone_from(&self.initial);
        if let Some(transaction) = &mut self.transaction {
            transaction.committed.clone_from(&self.initial);
        }
    }

    /// Notes that a transaction begins.
    pub(crate) fn begin(&mut self) {
        let (rolled_back, committed) = (self.values.clone(), self.values.clone());
        self.transaction.get_or_insert(InTransaction { rolled_back, committed });
        for (name, default) in [
            ("transaction_read_only", "default_transaction_read_only"),
            ("transaction_isolation", "default_transaction_isolation"),
        ] {
            let value = self.values.get(default).cloned().unwrap_or_default();
            self.values.insert(name, value);
        }
    }

    /// Notes that a transaction ends, and returns whether settings change with it.
    pub(crate) fn end(&mut self, is_kept: bool) -> bool {
        let Some(InTransaction { rolled_back, committed }) = self.transaction.take() else { return false };
        let after = if is_kept { committed } else { rolled_back };
        let changes = REPORTED.iter().any(|(name, _)| self.values.get(name) != after.get(name));
        self.values = after;
        changes
    }

    /// Whether changes are refused now.
    pub(crate) fn is_read_only(&self) -> bool {
        let name = match self.transaction {
            Some(_) => "transaction_read_only",
            None => "default_transaction_read_only",
        };
        self.values.get(name).is_some_and(|value| value == "on")
    }

    /// Whether the client wants messages of this level, such as `notice` or `warning`.
    pub(crate) fn hears(&self, severity: &str) -> bool {
        let place = |word: &str| MESSAGES.iter().position(|known| *known == word);
        let least = self.values.get("client_min_messages").and_then(|word| place(word));
        place(severity) >= least
    }

    /// The value of a setting; `None` if there is no such setting.
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

    /// Sets a setting, or resets it if there is no value. Returns a notice for the client.
    ///
    /// # Errors
    /// If the value is not accepted.
    pub(crate) fn set(
        &mut self,
        name: &str,
        value: Option<&str>,
        scope: SettingScope,
    ) -> Result<Option<String>, AnswerError> {
        let name = name.to_lowercase();
        let Some((name, initial, takes)) = KNOWN.into_iter().find(|(known, ..)| *known == name) else {
            return Err(AnswerError::statement("42704", format!("there is no setting \"{name}\"")));
        };
        let is_of_transaction = ["transaction_read_only", "transaction_isolation"].contains(&name);
        let wrong = || ErrorMessage::new("22023", format!("\"{name}\" can't be set to this value"));
        let mut note = None;
        let value = match (takes, value) {
            (Takes::Nothing, _) => return Err(AnswerError::statement("55P02", format!("\"{name}\" can't be changed"))),
            (_, None) => self.initial.get(name).cloned().unwrap_or_default(),
            (Takes::Anything | Takes::Noted(..), Some(value)) if value.len() > 1000 => return Err(wrong().into()),
            (Takes::Anything, Some(value)) => value.to_owned(),
            (Takes::Truth, Some(value)) => match truth(value) {
                Some(truth) => if truth { "on" } else { "off" }.to_owned(),
                None => return Err(wrong().hint("set it to on or off").into()),
            },
            (Takes::Word(words), Some(value)) => match words.iter().find(|word| value.eq_ignore_ascii_case(word)) {
                Some(word) => (*word).to_owned(),
                None => return Err(wrong().hint(&format!("use one of: {}", words.join(", "))).into()),
            },
            (Takes::Noted(done, why), Some(value)) => {
                let is_done = done.iter().any(|start| value.to_lowercase().starts_with(start));
                note = (!is_done).then(|| format!("this value of \"{name}\" has no effect: {why}"));
                value.to_owned()
            }
            (Takes::OneOf(allowed), Some(value)) => match allowed.iter().any(|word| value.eq_ignore_ascii_case(word)) {
                true => initial.to_owned(),
                false => return Err(wrong().hint(&format!("the only possible value is {initial}")).into()),
            },
            (Takes::Encoding(known), Some(value)) => {
                let letters = value.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
                match known.contains(&letters.as_str()) {
                    true => initial.to_owned(),
                    false => return Err(wrong().hint(&format!("the only possible value is {initial}")).into()),
                }
            }
            (Takes::Time, Some(value)) => {
                let time = milliseconds(value).ok_or_else(wrong)?;
                let longest = self.longest.of(name);
                if longest.is_some_and(|longest| time == 0 || u128::from(time) > longest.as_millis()) {
                    return Err(wrong().hint("the value can't exceed the server's own limit").into());
                }
                if name == "lock_timeout" && time > 0 {
                    note =
                        Some("\"lock_timeout\" has no effect: a change always waits 10 seconds for another".to_owned());
                }
                time.to_string()
            }
        };
        if name.ends_with("transaction_isolation")
            && self.role == Role::Analyst
            && ["repeatable read", "serializable"].contains(&value.as_str())
        {
            note = Some(
                "each statement still reads its own state of the data, and a later one may read a newer state"
                    .to_owned(),
            );
        }
        match (&mut self.transaction, scope) {
            (None, SettingScope::Local) => return Ok(Some(NO_TRANSACTION.to_owned())),
            (None, SettingScope::Session) if is_of_transaction => return Ok(Some(NO_TRANSACTION.to_owned())),
            (Some(transaction), SettingScope::Session) if !is_of_transaction => {
                transaction.committed.insert(name, value.clone());
            }
            _ => {}
        }
        self.values.insert(name, value);
        Ok(note)
    }

    /// How long a statement may run.
    pub(crate) fn statement_timeout(&self) -> Option<Duration> {
        self.time("statement_timeout")
    }

    /// How long a client may be idle in an open transaction.
    pub(crate) fn idle_in_transaction_timeout(&self) -> Option<Duration> {
        self.time("idle_in_transaction_session_timeout")
    }

    fn time(&self, name: &str) -> Option<Duration> {
        let time = self.values.get(name).and_then(|time| time.parse().ok()).unwrap_or(0);
        (time > 0).then(|| Duration::from_millis(time))
    }

    /// The reported values, of all settings or of one.
    pub(crate) fn reported<'s>(&'s self, only: Option<&'s str>) -> impl Iterator<Item = (&'static str, &'s str)> {
        let is_wanted = move |known: &str| only.is_none_or(|only| only.eq_ignore_ascii_case(known));
        let reported = REPORTED.into_iter().filter(move |(known, _)| is_wanted(known));
        reported.map(|(known, said)| (said, self.values.get(known).map_or("", String::as_str)))
    }
}

/// A boolean in one of PostgreSQL's spellings.
pub(crate) fn truth(text: &str) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "on" | "true" | "yes" | "1" | "t" => Some(true),
        "off" | "false" | "no" | "0" | "f" => Some(false),
        _ => None,
    }
}

/// A time in PostgreSQL's spelling: `250`, `250ms`, `5s`, `2min`.
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

/// The text of a value in a SET statement; `None` means DEFAULT.
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

    fn settings(role: Role, seconds: u64) -> Settings {
        let time = (seconds > 0).then(|| Duration::from_secs(seconds));
        Settings::new("ann", role, Longest { statement: time, idle_in_transaction: time })
    }

    #[test]
    fn a_timeout_can_be_shortened_and_not_lengthened() {
        let mut settings = settings(Role::Owner, 10);
        settings.set("statement_timeout", Some("2s"), SettingScope::Session).unwrap();
        assert_eq!(settings.statement_timeout(), Some(Duration::from_secs(2)));
        for longer in ["0", "11s", "1min", "x"] {
            assert!(settings.set("statement_timeout", Some(longer), SettingScope::Session).is_err(), "{longer}");
            assert!(settings.set("idle_in_transaction_session_timeout", Some(longer), SettingScope::Session).is_err());
        }
        settings.set("STATEMENT_TIMEOUT", None, SettingScope::Session).unwrap();
        assert_eq!(settings.statement_timeout(), Some(Duration::from_secs(10)));
    }

    #[test]
    fn unsupported_values_are_refused_or_get_a_notice() {
        let mut settings = settings(Role::Analyst, 0);
        for (name, value) in [
            ("client_encoding", "LATIN1"),
            ("timezone", "Europe/Rome"),
            ("server_version", "9"),
            ("default_transaction_read_only", "perhaps"),
            ("default_transaction_isolation", "chaos"),
        ] {
            assert!(settings.set(name, Some(value), SettingScope::Session).is_err(), "{name}");
        }
        for (name, value) in [
            ("lock_timeout", "1s"),
            ("search_path", "secret"),
            ("extra_float_digits", "0"),
            ("synchronous_commit", "off"),
            ("default_transaction_isolation", "serializable"),
        ] {
            assert!(settings.set(name, Some(value), SettingScope::Session).unwrap().is_some(), "{name}");
        }
        for name in ["utf-8", "'utf-8'", "UTF8", "unicode"] {
            assert_eq!(settings.set("client_encoding", Some(name), SettingScope::Session).unwrap(), None, "{name}");
        }
        assert_eq!(settings.get("Client_Encoding"), Some("UTF8"));
        assert_eq!(settings.get("transaction isolation level"), Some("read committed"));
        assert_eq!(settings.get("nothing"), None);
    }

    #[test]
    fn local_settings_end_with_the_transaction_and_a_rollback_undoes_all() {
        let mut settings = settings(Role::Owner, 0);
        let name = |settings: &Settings| settings.get("application_name").unwrap().to_owned();
        settings.set("application_name", Some("at first"), SettingScope::Session).unwrap();
        assert!(settings.set("application_name", Some("x"), SettingScope::Local).unwrap().is_some());
        assert_eq!(name(&settings), "at first");
        settings.begin();
        settings.set("application_name", Some("local"), SettingScope::Local).unwrap();
        assert_eq!(name(&settings), "local");
        assert!(settings.end(true));
        assert_eq!(name(&settings), "at first");
        for (is_kept, after) in [(false, "at first"), (true, "kept")] {
            settings.begin();
            settings.set("application_name", Some("kept"), SettingScope::Session).unwrap();
            settings.end(is_kept);
            assert_eq!(name(&settings), after);
        }
        settings.begin();
        settings.set("transaction_read_only", Some("on"), SettingScope::Session).unwrap();
        assert!(settings.is_read_only());
        settings.end(true);
        assert!(!settings.is_read_only());
        settings.set("default_transaction_read_only", Some("on"), SettingScope::Session).unwrap();
        settings.begin();
        assert!(settings.is_read_only());
        settings.end(false);
        settings.reset_all();
        assert!(!settings.is_read_only());
        assert_eq!(name(&settings), "");
    }
}
