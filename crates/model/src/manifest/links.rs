//! How the tables of a release hang together.

use serde::{Deserialize, Serialize};

/// How one released table points to another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LinkManifest {
    /// What the link says about its rows; not written where they belong to the row it names.
    #[serde(default, skip_serializing_if = "LinkMeaning::is_parent")]
    pub kind: LinkMeaning,
    /// The table that points to another.
    pub table: String,
    /// Its column that holds the other's key.
    pub foreign_key: String,
    /// The other table.
    pub parent: String,
    /// The other table's key.
    pub key: String,
}

/// What a link says about the rows that hold it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkMeaning {
    /// They belong to the row it names.
    #[default]
    Parent,
    /// They name a row that they do not belong to, by a column with `references`.
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
pub struct ReferenceManifest {
    /// The table that has it.
    pub table: String,
    /// The column.
    pub column: String,
    /// Released rows that name a row.
    pub kept: u64,
    /// Released rows that name none although their private row does: its target was left out, or the pattern of
    /// references would have told persons apart.
    pub removed: u64,
}
