//! [`TablesManifest`]: what `manifest.json` holds, of one table or of several that hang together.

use std::collections::BTreeMap;

use kohort_model::{Loss, Manifest};
use serde::{Deserialize, Serialize};

/// The manifest of any release: [`Manifest`], and for several tables how they hang together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TablesManifest {
    /// What holds for one table as for many. Of many tables sensitive columns are named `table.column`.
    #[serde(flatten)]
    pub manifest: Manifest,
    /// How the released tables join; empty for one table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkManifest>,
    /// What recoding cost in each table, by name; empty for one table.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub table_loss: BTreeMap<String, Loss>,
}

/// How one released table hangs off another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LinkManifest {
    /// The table that hangs off another.
    pub table: String,
    /// Its column that holds the parent's key.
    pub foreign_key: String,
    /// The other table.
    pub parent: String,
    /// The other table's key.
    pub key: String,
}

impl From<Manifest> for TablesManifest {
    fn from(manifest: Manifest) -> Self {
        TablesManifest { manifest, links: Vec::new(), table_loss: BTreeMap::new() }
    }
}
