//! Limits on the memory and time of queries in the server's own process.
//!
//! | module | what it limits |
//! | --- | --- |
//! | [`copies`] | how often columns of an analyst's nested queries are computed from each other |
//! | [`growth`] | the size of values that an analyst's query makes |
//! | [`memory`] | the sorts, joins and groupings of all queries together |
//! | [`windows`] | window operators, which do not ask the memory pool themselves |

pub(super) mod copies;
pub(super) mod growth;
pub(super) mod memory;
pub(super) mod windows;
