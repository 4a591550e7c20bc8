//! Many tables: a person is a tree of rows.
//!
//! # Guarantee
//! Two persons are in one class if their trees of released quasi cells are equal, whatever the order of the rows below
//! each row. Null counts as a value. No query over the released tables tells two persons of a class apart, whatever
//! rows it joins, counts or misses. So classes of at least k persons imply definition 5 of the paper. The converse
//! holds if attackers also know which rows are absent and how many there are (complete data). If they don't, a release
//! may satisfy definition 5 and still be refused.
//!
//! With references, persons are connected in a graph. Two persons are then in one class only if a symmetry of the whole
//! release exchanges them, so not even an attacker who knows how everybody is connected tells them apart. See
//! `symmetry`.
//! # Paper       `[NCN08]`, definitions 4 and 5, theorem 1
//! # Deviations
//! The paper does not speak of requirements on sensitive values. We require them of every orbit: the rows of one class
//! and table that look the same, including their ancestors and descendants. Nobody can see which of a person's rows in
//! an orbit corresponds to which row of another person. So shares are counted over all rows of the orbit and compared
//! with all released rows of the table. `alpha` bounds the persons of the class who hold a value in any of their rows
//! in the orbit. `l` requires as many distinct values, and that no value is held by more than a share of `1/l` of the
//! persons.

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

pub use against::{TablesAgainst, verify_tables_against};
pub use alone::{measure_tables, persons_of_rows, verify_tables_alone};
pub use release::verify_tables;
pub use shape::{LinkKind, ReleasedLink};
pub use written::verify_tables_written;
