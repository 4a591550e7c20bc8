//! Limits on what a query may take of the server's own process.
//!
//! | module | what it bounds |
//! | --- | --- |
//! | [`growth`] | values that an analyst's plan makes while it is planned |
//! | [`memory`] | sorts, joins and groupings of all queries together |
//! | [`windows`] | window operators, which ask no pool by themselves |

pub(super) mod growth;
pub(super) mod memory;
pub(super) mod windows;
