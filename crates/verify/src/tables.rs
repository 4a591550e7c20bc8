//! Many tables: a person is a tree of rows.
//!
//! # Guarantee
//! Persons fall into classes by the canonical form of their unordered tree of released quasi cells, null being a value.
//! Two persons of a class are told apart by no view over the released tables, whatever rows it joins, counts or misses;
//! so classes of at least k persons imply definition 5 of the paper. Where attackers know absence and counts as well
//! (complete data) the converse holds too. Where they don't, a release may satisfy definition 5 and still be refused.
//!
//! With references a person is part of a graph. Classes then are orbits: persons whom a symmetry of the whole release
//! exchanges, so not even somebody who knows how everybody is connected tells them apart. See `symmetry`.
//! # Paper       `[NCN08]`, definitions 4 and 5, theorem 1
//! # Deviations
//! What is asked of sensitive values, which the paper leaves open, is asked of every orbit: the rows of one class and
//! table that look the same, their ancestors and descendants included. Nobody can see which of a person's rows in an
//! orbit was matched to which of another's. So shares are counted over all rows of the orbit, against all released
//! rows of the table, while `alpha` bounds the persons of the class who hold a value in any of their rows there, and
//! `l` asks for as many distinct values and, besides, for no value that more than a share of `1/l` of the persons hold.

mod against;
mod alone;
#[cfg(test)]
mod cases;
mod count;
mod embedding;
mod forest;
mod index;
mod keys;
mod lineage;
mod matching;
mod release;
mod shape;
mod symmetry;
mod written;

pub use against::verify_tables_against;
pub use alone::{measure_tables, verify_tables_alone};
pub use release::verify_tables;
pub use shape::{LinkKind, ReleasedLink};
pub use written::verify_tables_written;
