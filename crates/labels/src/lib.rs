//! Comparisons with labels, for any table of DataFusion whose columns show labels in place of values.
//!
//! | module | its job |
//! | --- | --- |
//! | [`meaning`] | the values a label can stand for, and whether one of them could satisfy a condition |
//! | [`rewrite`] | finds comparisons with labels in a plan and replaces them by functions of [`meaning`] |
//!
//! This crate knows nothing of views, persons, classes or sessions. The caller says which columns of a scan show labels
//! ([`rewrite::ProtectedColumns`]).

pub mod meaning;
pub mod rewrite;
