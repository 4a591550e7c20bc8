//! [`JoinedRegister`]: the full outer join of a private table and public registers of the same population.
//!
//! The join has only quasi columns, each with a dictionary and one id per row, so that registers of many millions of
//! persons fit into memory.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::{Notation, Table, Texts};

/// The released column with the sensitive group of a row. The person of the row may have any values of this group in
/// [`SENSITIVE_TABLE`].
pub const SENSITIVE_GROUP: &str = "sensitive_group";

/// The released table of sensitive groups and their values, with one row per released private row.
pub const SENSITIVE_TABLE: &str = "sensitive";

/// The full outer join of the private table and the registers.
#[derive(Clone, Debug)]
pub struct JoinedRegister {
    /// The rows of the join, with the quasi columns of the private table in their order, and with their names and
    /// types. The rows are, one kind after another:
    /// 1. the rows of the private table, in their order;
    /// 2. register persons who are not in the private table;
    /// 3. the values that the register gives to persons of the private table;
    /// 4. the values that earlier registers gave to anybody, if these differ or the person is gone.
    ///
    /// Texts are spelled as they were read, except those in [`respelled`](JoinedRegister::respelled), so a value may
    /// have several texts.
    pub rows: Table,
    /// The number of rows of the private table.
    pub n_microdata: usize,
    /// The number of register persons who are not in the private table.
    pub n_register: usize,
    /// Whether and how the register describes the person of each private row.
    pub persons: Vec<InRegister>,
    /// If registers have a key, a hash of the key of each row of the join after the private ones, made by the verifier
    /// while the row was read. Empty if persons are matched by their values.
    pub key_prints: Vec<u64>,
    /// Register texts that `rows` holds in another spelling of the same value.
    pub respelled: Vec<Respelled>,
}

/// Texts of a register column that the join holds in another spelling of the same value, because the private table or
/// its hierarchy has that spelling, or because the register writes numbers or dates in another notation.
#[derive(Clone, Debug)]
pub struct Respelled {
    /// The position of the column in the join.
    pub column: usize,
    /// How the register writes its values.
    pub notation: Notation,
    /// The texts as they were read.
    pub as_read: Texts,
    /// For each text, the id of the spelling in the join.
    pub texts: Vec<u32>,
}

/// Whether and how the register describes the person of a private row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InRegister {
    /// The person is in no register.
    Absent,
    /// The register gives the same value in every quasi column, in this row of the join.
    Same(u32),
    /// The register gives other values, in this row of the join.
    Differs(u32),
}

impl InRegister {
    /// The row of the join with the values of the register.
    pub fn row(self) -> Option<u32> {
        match self {
            InRegister::Absent => None,
            InRegister::Same(row) | InRegister::Differs(row) => Some(row),
        }
    }
}

impl JoinedRegister {
    /// The rows of the join that are register persons who are not in the private table.
    pub fn register_rows(&self) -> Range<u32> {
        self.n_microdata as u32..(self.n_microdata + self.n_register) as u32
    }

    /// The row of the join with the values that the registers give to a person; `None` if they don't list the person.
    pub fn public_place(&self, person: u32) -> Option<u32> {
        match self.persons.get(person as usize) {
            None => Some(person),
            Some(in_register) => in_register.row(),
        }
    }
}

/// The files of an earlier release that readers may have, too.
#[derive(Clone, Debug)]
pub struct PreviousRelease {
    /// The folder of the release.
    pub name: String,
    /// The rows of the release, and its sensitive table if there is one.
    pub tables: Vec<Table>,
    /// For each person, the row of the join with the values that the registers of that time gave them;
    /// [`NULL`](crate::NULL) if these registers did not list the person, or contradicted each other. The persons are
    /// those of the join, in its order, and after them people who were in an earlier register but are now in neither
    /// the private table nor a register.
    pub places: Vec<u32>,
    /// What was verified about this release and still earlier ones.
    pub beside: Option<ReadBeside>,
}

/// A release was verified together with earlier ones: everybody who was in it and can have been in those is one of at
/// least `k` persons whom the classes of all these releases cover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadBeside {
    /// The positions of these earlier releases in the list that contains the release itself.
    pub releases: Vec<usize>,
    /// The fewest persons that were counted.
    pub k: u64,
}

/// How sure a reader who knows the register can be that somebody is in the private table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Presence {
    /// The surest that a reader can be of anybody: the largest share of private persons that a class can have, or what
    /// an attack on the rows and boxes of the release reaches.
    pub highest: f64,
    /// The mean share of private persons in the class of a private person.
    pub average: f64,
    /// The number of classes that consist only of private persons.
    pub certain: u64,
}
