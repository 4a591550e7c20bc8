//! [`Release`]: recoded tables in memory, cells as they will be written.
//!
//! A release is a claim. Only `kohort-verify` turns it into a `Verified<Release>`, and only that can be written.

use crate::Texts;

/// The tables of a release.
///
/// The library's `kohort::Release` holds one that was verified, with the private tables it was made from.
#[derive(Clone, Debug)]
pub struct Release {
    /// In the order of the spec.
    pub tables: Vec<ReleasedTable>,
}

/// One released table.
#[derive(Clone, Debug)]
pub struct ReleasedTable {
    /// Its name in the spec.
    pub name: String,
    /// Per released row, in the released order, the row of the private table it comes from.
    pub rows: Vec<u32>,
    /// The released columns, in the order of the file.
    pub columns: Vec<ReleasedColumn>,
}

/// One released column.
#[derive(Clone, Debug)]
pub struct ReleasedColumn {
    /// Its name.
    pub name: String,
    /// Position of the private column it comes from.
    pub source: usize,
    /// What its cells show.
    pub cells: Cells,
}

/// What the cells of a released column show.
#[derive(Clone, Debug)]
pub enum Cells {
    /// Generalized labels: a dictionary and, per released row, a label's id or [`crate::NULL`].
    Recoded {
        /// The distinct labels.
        labels: Texts,
        /// Per released row.
        ids: Vec<u32>,
    },
    /// The cells of the private column, unchanged.
    Copied,
    /// A key renumbered from 1 in the released order; equal keys keep being equal.
    Surrogate {
        /// Per released row.
        ids: Vec<u32>,
    },
}
