//! [`Block`]: rows of an A-view as they leave it, and [`Consent`]: what their persons allow.
//!
//! A block is a claim, as a release is. Only `kohort-verify` turns it into a verified one, bound to the private rows it
//! was verified with, and only that becomes rows for a reader.

use crate::Texts;

/// The class of a row whose person asks for a k of 0 or 1: shown as it is, and never part of anybody's crowd.
pub const ALONE: u32 = u32::MAX;

/// Rows of an A-view.
#[derive(Clone, Debug)]
pub struct Block {
    /// Per row, in the order in which they leave, the row of the private table it comes from.
    pub rows: Vec<u32>,
    /// Per row the number of its class, or [`ALONE`].
    pub classes: Vec<u32>,
    /// The columns of the view, one for each of the private table.
    pub columns: Vec<BlockCells>,
}

/// What the cells of a column show.
#[derive(Clone, Debug)]
pub enum BlockCells {
    /// Labels: a dictionary and, per row, a label's id; [`crate::NULL`] hides the cell.
    Labels {
        /// The distinct labels.
        labels: Texts,
        /// Per row.
        ids: Vec<u32>,
    },
    /// The private cells themselves.
    Own {
        /// Per row whether the cell is hidden.
        hidden: Vec<bool>,
    },
}

/// What persons allow, per row of the private table.
#[derive(Clone, Debug)]
pub struct Consent {
    /// The k of the row's person: 0 shows the row as it is, 1 hides identifiers, more asks for a class.
    pub k: Vec<u32>,
    /// By how many levels sensitive values are raised.
    pub level: Vec<u8>,
    /// The columns that must not be shown, bit by bit in the order of the private table's columns.
    pub refused: Vec<u64>,
}

/// What a cell that a person refuses does to others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Disclosure {
    /// The column says nothing of anybody in the class.
    #[default]
    Class,
    /// The cell alone is null. Safe only while nobody knows who refused.
    Row,
}
