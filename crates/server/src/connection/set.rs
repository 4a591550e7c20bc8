//! Sets and resets PostgreSQL's settings and the options of views.
//!
//! A connection pooler passes a connection to the next client after DISCARD ALL. So nothing that the first client set
//! may remain, least of all its purpose.

use datafusion::config::ConfigOptions;
use datafusion::execution::SendableRecordBatchStream;
use kohort_sql::SqlError;
use kohort_sql::parser::{Parsed, parse};

use super::Connection;
use crate::error::AnswerError;
use crate::setting_calls::{self, SettingCall, SettingRequest};
use crate::settings::SettingScope;

impl Connection {
    /// Sets a setting of PostgreSQL, and reports it to the client.
    pub(super) fn set(&mut self, name: &str, value: Option<&str>, scope: SettingScope) -> Result<(), AnswerError> {
        if let Some(note) = self.settings.set(name, value, scope)? {
            self.say(&note)?;
        }
        self.report(Some(name))
    }

    /// Resets everything to the values at the time of the login.
    pub(super) fn reset_all(&mut self) -> Result<(), AnswerError> {
        self.settings.reset_all();
        self.put_options(self.initial_options.clone());
        self.report(None)
    }

    /// Resets an option of views to its value at the time of the login.
    pub(super) fn reset_option(&mut self, name: &str) -> Result<(), AnswerError> {
        let Some(value) = value_of(&self.initial_options, name) else {
            return Err(no_setting(name));
        };
        self.put_option(name, &value);
        Ok(())
    }

    /// Answers a query of calls of `set_config` and `current_setting`, one after the other.
    pub(super) async fn configure(&mut self, query: &Parsed) -> Result<SendableRecordBatchStream, AnswerError> {
        let requests: Result<Vec<_>, _> = setting_calls::calls_in(query).iter().map(SettingCall::request).collect();
        let mut values = Vec::new();
        for request in requests? {
            values.push(match request {
                SettingRequest::Nothing => None,
                SettingRequest::Read { name, or_null } => match self.setting(&name) {
                    None if !or_null => return Err(no_setting(&name)),
                    value => value,
                },
                SettingRequest::Set { name, value, is_local } => {
                    let scope = if is_local { SettingScope::Local } else { SettingScope::Session };
                    match self.settings.knows(&name) {
                        true => self.set(&name, Some(&value), scope)?,
                        false => self.set_view_option(&name, &value, scope).await?,
                    }
                    self.setting(&name)
                }
            });
        }
        setting_calls::row(setting_calls::columns_of(query), values)
    }

    /// The value of a setting of PostgreSQL or an option of views.
    fn setting(&self, name: &str) -> Option<String> {
        let of_views = || is_view_option(name).then(|| self.option(name)).flatten();
        self.settings.get(name).map(str::to_owned).or_else(of_views)
    }

    /// Sets an option of views by its name.
    pub(super) async fn set_view_option(
        &mut self,
        name: &str,
        value: &str,
        scope: SettingScope,
    ) -> Result<(), AnswerError> {
        if !is_view_option(name) {
            return Err(no_setting(name));
        }
        let set = format!("SET {name} = '{}'", value.replace('\'', "''"));
        for parsed in parse(&set).map_err(SqlError::from)? {
            match scope {
                SettingScope::Local => self.set_local_option(name, parsed).await?,
                SettingScope::Session => self.command(parsed).await?,
            }
        }
        Ok(())
    }

    /// The engine's options of this session.
    pub(super) fn options(&self) -> ConfigOptions {
        self.session.context().state_ref().read().config().options().as_ref().clone()
    }

    /// The value of an option of views.
    pub(super) fn option(&self, name: &str) -> Option<String> {
        value_of(&self.options(), name)
    }

    pub(super) fn put_options(&self, options: ConfigOptions) {
        *self.session.context().state_ref().write().config_mut().options_mut() = options;
    }

    /// Sets an option to an earlier value, which must be valid.
    pub(super) fn put_option(&self, name: &str, value: &str) {
        let state = self.session.context().state_ref();
        let _ = state.write().config_mut().options_mut().set(&name.to_lowercase(), value);
    }
}

/// Whether this is a name of an option of views, and nothing else that a statement could hold.
fn is_view_option(name: &str) -> bool {
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
    is_name && name.to_lowercase().starts_with("kohort.")
}

fn no_setting(name: &str) -> AnswerError {
    AnswerError::statement("42704", format!("there is no setting \"{name}\""))
}

/// The value of an option; the empty text if it is not set.
fn value_of(options: &ConfigOptions, name: &str) -> Option<String> {
    let entry = options.entries().into_iter().find(|entry| entry.key.eq_ignore_ascii_case(name))?;
    Some(entry.value.unwrap_or_default())
}
