//! Settings of PostgreSQL and options of views: set, and back to what they were when the client connected.
//!
//! A pooler gives a connection from one client to the next after DISCARD ALL: nothing of what the first one set may remain,
//! least of all the purpose it asked under.

use datafusion::config::ConfigOptions;

use super::Connection;
use crate::error::AnswerError;
use crate::settings::SettingScope;

impl Connection {
    /// Sets a setting of PostgreSQL, and tells the client what it should know.
    pub(super) fn set(&mut self, name: &str, value: Option<&str>, scope: SettingScope) -> Result<(), AnswerError> {
        if let Some(note) = self.settings.set(name, value, scope)? {
            self.say(&note)?;
        }
        self.report(Some(name))
    }

    /// Everything is what it was when the client connected.
    pub(super) fn reset_all(&mut self) -> Result<(), AnswerError> {
        self.settings.reset_all();
        self.put_options(self.initial_options.clone());
        self.report(None)
    }

    /// An option of views is what it was when the client connected.
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

    /// What an option of views is.
    pub(super) fn option(&self, name: &str) -> Option<String> {
        value_of(&self.options(), name)
    }

    pub(super) fn put_options(&self, options: ConfigOptions) {
        *self.session.context().state_ref().write().config_mut().options_mut() = options;
    }

    /// Sets an option to what it was before, which it can be.
    pub(super) fn put_option(&self, name: &str, value: &str) {
        let state = self.session.context().state_ref();
        let _ = state.write().config_mut().options_mut().set(&name.to_lowercase(), value);
    }
}

/// The value of an option; empty where it has none, as it is set to have none.
fn value_of(options: &ConfigOptions, name: &str) -> Option<String> {
    let entry = options.entries().into_iter().find(|entry| entry.key.eq_ignore_ascii_case(name))?;
    Some(entry.value.unwrap_or_default())
}
