//! Reading a view: which plan and which classes, and the operator that shows them.
//!
//! | module | its job |
//! | --- | --- |
//! | [`plan`] | the two plans there are |
//! | [`choose`] | the classes whose labels could satisfy what is asked |
//! | [`source`] | where private rows come from |
//! | [`assemble`] | private rows and their classes as a verified block |
//! | [`exec`] | the operator that hands verified blocks to a query |
//! | [`point`] | a few classes without a plan |
//! | [`labels`] | the labels that a column can show |
//! | [`trace`] | a view together with the persons its rows are of, for the owner |

pub(super) mod assemble;
pub(super) mod choose;
pub(super) mod exec;
pub(super) mod labels;
pub(super) mod plan;
pub(super) mod point;
pub(super) mod source;
pub(super) mod trace;
