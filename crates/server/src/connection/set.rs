//! Sets and resets PostgreSQL's settings and the options of views.
//!
//! A connection pooler passes a connection to the next client after DISCARD ALL. So nothing that the first client set
//! may remain, least of all its purpose.

use datafusion::config::ConfigOptions;

use super::Connection;
use crate::error::AnswerError;
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
            return Err(AnswerError::statement("42704", format!("there is no setting \"{name}\"")));
        };
        self.put_option(name, &value);
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

/// The value of an option; the empty text if it is not set.
fn value_of(options: &ConfigOptions, name: &str) -> Option<String> {
    let entry = options.entries().into_iter().find(|entry| entry.key.eq_ignore_ascii_case(name))?;
    Some(entry.value.unwrap_or_default())
}
