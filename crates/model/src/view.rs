//! [`Block`]: rows of an A-view as readers will see them, and [`Consent`]: what the persons of these rows allow.
//!
//! A block is only a claim, like a release. Readers get rows only from a block that `kohort-verify` has verified and
//! bound to the private rows it was verified with.

use crate::Texts;

/// The class number of a row whose person has a k of 0 or 1. Such a row is shown without a class, and hides nobody
/// else.
pub const ALONE: u32 = u32::MAX;

/// Rows of an A-view.
#[derive(Clone, Debug)]
pub struct Block {
    /// The row of the private table that each row comes from, in the order in which rows are shown.
    pub rows: Vec<u32>,
    /// The class number of each row, or [`ALONE`].
    pub classes: Vec<u32>,
    /// The columns of the view, one for each column of the private table.
    pub columns: Vec<BlockCells>,
}

/// What the cells of a column show.
#[derive(Clone, Debug)]
pub enum BlockCells {
    /// Labels.
    Labels {
        /// The distinct labels.
        labels: Texts,
        /// The id of the label in each row; [`crate::NULL`] hides the cell.
        ids: Vec<u32>,
    },
    /// The private cells themselves.
    Own {
        /// For each row, whether the cell is hidden.
        hidden: Vec<bool>,
    },
}

/// What persons allow. Each list has one entry per row of the private table.
#[derive(Clone, Debug)]
pub struct Consent {
    /// The k of the row's person: 0 shows the row as it is, 1 hides identifiers, and 2 or more requires a class.
    pub k: Vec<u32>,
    /// By how many levels of the hierarchy sensitive values are generalized.
    pub level: Vec<u8>,
    /// The columns that must not be shown, one bit each, in the order of the private table's columns.
    pub refused: Vec<u64>,
}

/// Which cells are hidden if a person refuses to show a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Disclosure {
    /// The cells of everybody in the class, in that column.
    #[default]
    Class,
    /// Only that cell. This is safe only as long as nobody knows who refused.
    Row,
}
