//! [`ViewOptions`]: the options of a session that `SET kohort.NAME = ...` sets.

use std::any::Any;

use datafusion::common::config::{ConfigEntry, ConfigExtension, ExtensionOptions};
use datafusion::error::{DataFusionError, Result};

use crate::policy::Pair;
use crate::role::Role;
use crate::view::PlanWish;

/// The default of `kohort.keep_mb`.
const KEEP_MB: usize = 256;

/// The purpose and recipient of a session, and how it reads views.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ViewOptions {
    /// The purpose and the recipient of answers.
    pub pair: Pair,
    /// The plan by which views are read.
    pub plan: PlanWish,
    /// Megabytes of rows that a view keeps in memory when it is made or refreshed.
    pub keep_mb: usize,
    /// Whether an owner or an analyst reads. This is not an option: each session has it from the start.
    pub role: Role,
}

impl Default for ViewOptions {
    fn default() -> Self {
        let (plan, role) = (PlanWish::default(), Role::default());
        ViewOptions { pair: Pair::default(), plan, keep_mb: KEEP_MB, role }
    }
}

impl ViewOptions {
    /// Bytes of rows that a view keeps in memory.
    pub(crate) fn most_kept_bytes(&self) -> usize {
        self.keep_mb.saturating_mul(1_000_000)
    }
}

impl ConfigExtension for ViewOptions {
    const PREFIX: &'static str = "kohort";
}

// Written by hand, because DataFusion's macro lists options without their prefix.
impl ExtensionOptions for ViewOptions {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let stated = || (!value.is_empty()).then(|| value.to_owned());
        match key {
            "purpose" => self.pair.purpose = stated(),
            "recipient" => self.pair.recipient = stated(),
            "plan" => self.plan = value.parse().map_err(DataFusionError::Configuration)?,
            "keep_mb" => {
                let number =
                    || DataFusionError::Configuration("kohort.keep_mb is a whole number of megabytes".to_owned());
                self.keep_mb = if value.is_empty() { KEEP_MB } else { value.parse().map_err(|_| number())? };
            }
            _ => {
                let message =
                    format!("there is no option kohort.{key}; there are purpose, recipient, plan and keep_mb");
                return Err(DataFusionError::Configuration(message));
            }
        }
        Ok(())
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        let entry = |key: &str, value: Option<String>, description| ConfigEntry {
            key: format!("{}.{key}", ViewOptions::PREFIX),
            value,
            description,
        };
        vec![
            entry("purpose", self.pair.purpose.clone(), "what answers from anonymization views are for"),
            entry("recipient", self.pair.recipient.clone(), "who gets answers from anonymization views"),
            entry("plan", Some(self.plan.to_string()), "select_first, also called auto, or anonymize_first"),
            entry(
                "keep_mb",
                Some(self.keep_mb.to_string()),
                "megabytes of rows that a view keeps in memory, 0 for none",
            ),
        ]
    }
}
