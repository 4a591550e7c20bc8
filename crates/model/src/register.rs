//! [`JoinedRegister`]: the full outer join of a private table and what public registers say of the same population.
//!
//! Only quasi columns, a dictionary and one id per row each, so that registers of many millions of persons fit: nothing
//! of a person is kept but the codes of their cells, and for private rows what the register says of the same person.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::Table;

/// The released column that says which values a row may have: those of its group in [`SENSITIVE_TABLE`].
pub const SENSITIVE_GROUP: &str = "sensitive_group";

/// The released table of sensitive groups and their values, a row per private row.
pub const SENSITIVE_TABLE: &str = "sensitive";

/// The full outer join of the private table and the registers.
#[derive(Clone, Debug)]
pub struct JoinedRegister {
    /// The quasi columns of the private table, in its order and with its names and types. First its rows, in its order;
    /// then register persons that the private table does not have; then, for persons of whom the register says something
    /// else than the private table, what the register says; then what earlier registers said of private persons.
    pub rows: Table,
    /// Rows of the private table.
    pub n_microdata: usize,
    /// Register persons that the private table does not have.
    pub n_register: usize,
    /// Per private row what the register says of its person.
    pub persons: Vec<InRegister>,
}

/// What the register says of the person of a private row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InRegister {
    /// Nothing.
    Absent,
    /// The same in every quasi column.
    Same,
    /// Something else: the joined row that holds it.
    Differs(u32),
}

impl JoinedRegister {
    /// The joined rows that are register persons and nobody of the private table.
    pub fn register_rows(&self) -> Range<u32> {
        self.n_microdata as u32..(self.n_microdata + self.n_register) as u32
    }
}

/// An earlier release that may be read beside the new one, as its files show it.
#[derive(Clone, Debug)]
pub struct PreviousRelease {
    /// Where it is.
    pub name: String,
    /// Its rows, and where there is one its sensitive table.
    pub tables: Vec<Table>,
    /// Per person of the join whether the registers of its time said the same of them.
    pub known: Vec<bool>,
    /// Private rows whose person the registers of its time described otherwise, and the joined row that says how.
    pub elsewhere: Vec<(u32, u32)>,
}

/// How sure a reader who knows the register can be that somebody is in the private table: the share of private persons
/// among those of a released class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Presence {
    /// The largest share of a class.
    pub highest: f64,
    /// The mean share over private persons.
    pub average: f64,
    /// How many classes have a share up to a tenth, above that up to two tenths, and so on.
    pub classes: [u64; 10],
    /// Classes of nobody but private persons.
    pub certain: u64,
}
