//! One released table: in memory, as a file that was read back, by itself, and against the private table.

pub(crate) mod against;
pub(crate) mod measure;
pub(crate) mod recoding;
pub(crate) mod records;
pub(crate) mod release;
pub(crate) mod written;
