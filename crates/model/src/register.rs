//! [`JoinedRegister`]: the full outer join of a private table and what public registers say of the same population.
//!
//! Only quasi columns, a dictionary and one id per row each, so that registers of many millions of persons fit: nothing
//! of a person is kept but the codes of their cells, and for private rows what the register says of the same person.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::{Notation, Table, Texts};

/// The released column that says which values a row may have: those of its group in [`SENSITIVE_TABLE`].
pub const SENSITIVE_GROUP: &str = "sensitive_group";

/// The released table of sensitive groups and their values, a row per private row.
pub const SENSITIVE_TABLE: &str = "sensitive";

/// The full outer join of the private table and the registers.
#[derive(Clone, Debug)]
pub struct JoinedRegister {
    /// The quasi columns of the private table, in its order and with its names and types. First its rows, in its order;
    /// then register persons that the private table does not have; then what the register says of persons of the
    /// private table, the same or something else; then what earlier registers said of anybody, where that was something
    /// else or the person is gone. Texts are spelled
    /// as they were read, but for those of [`respelled`](JoinedRegister::respelled), so equal values may have several
    /// texts.
    pub rows: Table,
    /// Rows of the private table.
    pub n_microdata: usize,
    /// Register persons that the private table does not have.
    pub n_register: usize,
    /// Per private row what the register says of its person.
    pub persons: Vec<InRegister>,
    /// Where registers have a key, one number per joined row behind the private ones, that the verifier made from the
    /// row's key while it was read. Empty where persons are found by their values.
    pub key_prints: Vec<u64>,
    /// Register texts that stand in `rows` as another text of the same value.
    pub respelled: Vec<Respelled>,
}

/// Texts of a register's column that stand in the joined column as another text of the same value: because the private
/// table or its hierarchy has that text, or because the register writes numbers or dates in another notation.
#[derive(Clone, Debug)]
pub struct Respelled {
    /// The position of the joined column.
    pub column: usize,
    /// How the register writes its values.
    pub notation: Notation,
    /// The texts as they were read.
    pub as_read: Texts,
    /// Per text the id of the one that stands for it.
    pub texts: Vec<u32>,
}

/// What the register says of the person of a private row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InRegister {
    /// Nothing.
    Absent,
    /// The same value in every quasi column: the joined row that holds it.
    Same(u32),
    /// Something else: the joined row that holds it.
    Differs(u32),
}

impl InRegister {
    /// The joined row that holds what the register says.
    pub fn row(self) -> Option<u32> {
        match self {
            InRegister::Absent => None,
            InRegister::Same(row) | InRegister::Differs(row) => Some(row),
        }
    }
}

impl JoinedRegister {
    /// The joined rows that are register persons and nobody of the private table.
    pub fn register_rows(&self) -> Range<u32> {
        self.n_microdata as u32..(self.n_microdata + self.n_register) as u32
    }

    /// The joined row that says where the registers describe a person of the join; none where they don't.
    pub fn public_place(&self, person: u32) -> Option<u32> {
        match self.persons.get(person as usize) {
            None => Some(person),
            Some(in_register) => in_register.row(),
        }
    }
}

/// An earlier release that may be read beside the new one, as its files show it.
#[derive(Clone, Debug)]
pub struct PreviousRelease {
    /// Where it is.
    pub name: String,
    /// Its rows, and where there is one its sensitive table.
    pub tables: Vec<Table>,
    /// Per person the joined row that says where the registers of its time described them; [`NULL`](crate::NULL) where
    /// these registers did not have the person, or contradicted each other. Persons are those of the join, in its order,
    /// and behind them people who stood in an earlier register and are in neither the private table nor a register now.
    pub places: Vec<u32>,
    /// What its own verification showed of it and still earlier releases.
    pub beside: Option<ReadBeside>,
}

/// A release was verified to be read beside earlier ones: whoever was in it and can have been in those is one of `k`
/// persons at least, whom the classes of all of them hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadBeside {
    /// Positions of these earlier releases in the list that the release itself is in.
    pub releases: Vec<usize>,
    /// The fewest persons that were counted.
    pub k: u64,
}

/// How sure a reader who knows the register can be that somebody is in the private table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Presence {
    /// Nobody can be surer of anybody, by all that the release shows: the largest share of private persons that a class
    /// can have, or what an attack on its rows and boxes has found.
    pub highest: f64,
    /// The mean share of private persons in the class of a private person.
    pub average: f64,
    /// Classes of nobody but private persons.
    pub certain: u64,
}
