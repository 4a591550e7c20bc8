//! [`ViewOptions`]: what `SET kohort.... = ...` sets for a session.

use std::any::Any;

use datafusion::common::config::{ConfigEntry, ConfigExtension, ExtensionOptions};
use datafusion::error::{DataFusionError, Result};

use crate::engine::Role;
use crate::view::PlanWish;

/// Under which purpose a session reads, for whom, and by which plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ViewOptions {
    /// What answers are for.
    pub purpose: Option<String>,
    /// Who gets them.
    pub recipient: Option<String>,
    /// How views are read.
    pub plan: PlanWish,
    /// Who reads. Not an option: sessions are made with it.
    pub role: Role,
}

impl ConfigExtension for ViewOptions {
    const PREFIX: &'static str = "kohort";
}

// Written by hand: the macro for extensions lists its entries without their prefix.
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
            "purpose" => self.purpose = stated(),
            "recipient" => self.recipient = stated(),
            "plan" => self.plan = value.parse().map_err(DataFusionError::Configuration)?,
            _ => {
                let message = format!("there is no option kohort.{key}; there are purpose, recipient and plan");
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
            entry("purpose", self.purpose.clone(), "what answers from anonymization views are for"),
            entry("recipient", self.recipient.clone(), "who gets answers from anonymization views"),
            entry("plan", Some(self.plan.to_string()), "auto, anonymize_first or select_first"),
        ]
    }
}
