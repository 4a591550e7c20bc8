//! Statements that change something: rows of the data folder, and what the catalog holds.
//!
//! | module | its job |
//! | --- | --- |
//! | [`transactions`] | whose turn it is to change the data folder, BEGIN and COMMIT |
//! | [`stored`] | tables of the data folder and their rows |
//! | [`values`] | the rows of an INSERT that needs no plan |
//! | [`copy`] | the rows of a file |
//! | [`import`] | a policy file as a table of choices |
//! | [`catalog`] | tables of files, plain views and DGHs |

pub(super) mod catalog;
pub(super) mod copy;
pub(super) mod import;
pub(super) mod stored;
pub(super) mod transactions;
pub(super) mod values;
