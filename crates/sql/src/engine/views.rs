//! Statements about anonymization views.
//!
//! | module | its job |
//! | --- | --- |
//! | [`create`] | CREATE, REFRESH and DROP |
//! | [`materialize`] | making materialized views, and letting them follow the changes of transactions |
//! | [`warnings`] | warnings for the owner |

pub(super) mod create;
pub(super) mod materialize;
pub(super) mod warnings;
