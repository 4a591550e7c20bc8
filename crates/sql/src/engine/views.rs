//! Statements about anonymization views.
//!
//! | module | its job |
//! | --- | --- |
//! | [`create`] | CREATE, REFRESH and DROP |
//! | [`materialize`] | making materialized views, and having them follow what transactions change |
//! | [`warnings`] | what the owner is warned of |

pub(super) mod create;
pub(super) mod materialize;
pub(super) mod warnings;
