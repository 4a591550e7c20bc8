//! How the tables of a release are linked.

use serde::{Deserialize, Serialize};

/// How one released table points to another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LinkManifest {
    /// What the link means; not written if it is the link to the parent.
    #[serde(default, skip_serializing_if = "LinkMeaning::is_parent")]
    pub kind: LinkMeaning,
    /// The table that points to another.
    pub table: String,
    /// The column that holds the key of the other table.
    pub foreign_key: String,
    /// The other table.
    pub parent: String,
    /// The key column of the other table.
    pub key: String,
}

/// What a link says about the rows that hold it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LinkMeaning {
    /// The rows belong to the row that they name.
    #[default]
    Parent,
    /// The rows name a row that they do not belong to, by a column with `references`.
    Reference,
}

impl LinkMeaning {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    fn is_parent(&self) -> bool {
        *self == LinkMeaning::Parent
    }
}

/// What became of a second foreign key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReferenceManifest {
    /// The table that has the foreign key.
    pub table: String,
    /// The column.
    pub column: String,
    /// The number of released rows that name a row.
    pub kept: u64,
    /// The number of released rows that name no row although their private row does, because the target was left out,
    /// or because the references would have told persons apart.
    pub removed: u64,
}
