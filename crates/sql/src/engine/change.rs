//! Statements that change something: rows of the data folder, and tables, views and DGHs of the catalog.
//!
//! | module | its job |
//! | --- | --- |
//! | [`transactions`] | turns to change the data folder, BEGIN and COMMIT |
//! | [`stored`] | tables of the data folder and their rows |
//! | [`values`] | INSERT of literals, without a plan |
//! | [`copy`] | COPY: the rows of a file |
//! | [`import`] | IMPORT POLICY: a policy file as a table of choices |
//! | [`catalog`] | tables of files, plain views and DGHs |

pub(super) mod catalog;
pub(super) mod copy;
pub(super) mod import;
pub(super) mod stored;
pub(super) mod transactions;
pub(super) mod values;
