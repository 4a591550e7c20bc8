//! [`Release`]: recoded tables in memory, with cells as they will be written.
//!
//! A release is only a claim. `kohort-verify` alone can turn it into a `Verified<Release>`, and only that can be
//! written.

use crate::Texts;

/// The tables of a release.
///
/// The library's `kohort::Release` holds one that was verified, with the private tables it was made from.
#[derive(Clone, Debug)]
pub struct Release {
    /// The tables, in the order of the spec.
    pub tables: Vec<ReleasedTable>,
}

/// One released table.
#[derive(Clone, Debug)]
pub struct ReleasedTable {
    /// The name in the spec.
    pub name: String,
    /// The row of the private table that each released row comes from, in the released order.
    pub rows: Vec<u32>,
    /// The released columns, in the order of the file.
    pub columns: Vec<ReleasedColumn>,
}

/// One released column.
#[derive(Clone, Debug)]
pub struct ReleasedColumn {
    /// The name of the column.
    pub name: String,
    /// The position of the private column that the cells come from.
    pub source: usize,
    /// What the cells show.
    pub cells: Cells,
}

/// What the cells of a released column show.
#[derive(Clone, Debug)]
pub enum Cells {
    /// Generalized labels.
    Recoded {
        /// The distinct labels.
        labels: Texts,
        /// The id of the label in each released row, or [`crate::NULL`].
        ids: Vec<u32>,
    },
    /// The cells of the private column, unchanged.
    Copied,
    /// Keys that are numbered from 1 in the released order. Equal keys have equal numbers.
    Surrogate {
        /// The number in each released row, or [`crate::NULL`].
        ids: Vec<u32>,
    },
}
