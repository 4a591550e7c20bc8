//! Reading a view: the choice of a plan and of classes, and the operator that shows them.
//!
//! | module | its job |
//! | --- | --- |
//! | [`plan`] | the two plans there are |
//! | [`choose`] | comparisons with labels, and the classes or rows that could satisfy them |
//! | [`source`] | where private rows come from |
//! | [`assemble`] | makes a verified block of private rows and their classes |
//! | [`pieces`] | the classes that leave together |
//! | [`sizes`] | labels and sizes of classes, for queries that want nothing else |
//! | [`totals`] | what views show that answer only aggregates |
//! | [`exec`] | the operator that hands verified blocks to a query |
//! | [`point`] | a few classes, without a plan |
//! | [`labels`] | the labels that a column shows, as a table |
//! | [`trace`] | a view together with the identifiers of its rows, for the owner's figures |

pub(super) mod assemble;
pub(super) mod choose;
pub(super) mod exec;
pub(super) mod labels;
mod pieces;
pub(super) mod plan;
pub(super) mod point;
mod sizes;
pub(super) mod source;
pub(super) mod totals;
pub(super) mod trace;
