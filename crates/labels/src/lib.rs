//! Comparisons with labels, for any table of DataFusion whose columns show labels in place of values.
//!
//! | module | its job |
//! | --- | --- |
//! | [`meaning`] | what a label can stand for, and whether that could satisfy a condition |
//! | [`rewrite`] | finds comparisons with labels in a plan, and has them asked of [`meaning`] |
//!
//! This crate knows nothing of views, persons, classes or sessions. Its caller says which columns of a scan show labels
//! ([`rewrite::ProtectedColumns`]).

pub mod meaning;
pub mod rewrite;
